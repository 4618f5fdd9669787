//! Who is let in, and what is answered to questions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use veil_engine::Memory;
use veil_link::LinkKind;
use veil_link::tls::{Admission, Caller, Fingerprint};
use veil_program::{Audience, Files, Job};
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, Peer, PlanHash};

use super::said::{NO_ROOM, held, of_join, of_rotation, public_reason};
use super::{Desk, News};
use crate::approvals::{Begins, Decision, Filed, Filing, Request, plan_of, roles_of};
use crate::control::{self, Hello, Proposal, Reply, Request as Asked};
use crate::home::HomeError;
use crate::jobs::{State, Status, mib};
use crate::log::Event;
use crate::members::Standing;
use crate::participant;
use crate::policy::Facts;
use crate::roll::Missing;
use crate::stages::{At, Stage, Stages};
use crate::time::Time;

/// A job that is planned and could run.
pub(super) struct Prepared {
    pub(super) job: Job,
    pub(super) plan: Arc<Plan>,
    pub(super) stages: Stages,
    /// Bytes of working memory that a run takes here, at most.
    pub(super) need: u64,
    facts: Facts,
}

impl Prepared {
    fn new(
        job: Job,
        plan: Plan,
        me: PartyId,
        (window, link): (usize, LinkKind),
    ) -> Result<Self, PlanError> {
        let plan = Arc::new(plan);
        let stages = Stages::new(&job, &plan)?;
        let protocol =
            |plan: &Arc<Plan>| veil_protocol::protocol(Arc::clone(plan), Peer::Party(me));
        let facts = Facts::of(&job, &plan, &*protocol(&plan)).against(stages.adversary());
        // Who finishes is one of three parties, whichever is left out: none of the plans takes more at another of them.
        let need = |stage| {
            let plan = stages.plan(stage);
            let left = plan.parties().iter().copied();
            let of = |me| veil_protocol::protocol(Arc::clone(plan), Peer::Party(me));
            match stage {
                Stage::Finish(_) => left
                    .map(|me| Memory::new(plan, &*of(me), window, link).total())
                    .max()
                    .unwrap_or_default(),
                _ => Memory::new(plan, &*protocol(plan), window, link).total(),
            }
        };
        let need = stages.all().into_iter().map(need).max();
        Ok(Prepared {
            need: need.unwrap_or_default(),
            job,
            plan,
            stages,
            facts,
        })
    }
}

impl Desk {
    /// As what a key is let in.
    pub(super) fn admit(&self, key: &Fingerprint) -> Admission {
        match self.home.members().standing(key) {
            Standing::Active(_) => Admission::Member,
            // This participant's own commands.
            _ if *key == self.home.identity().fingerprint() => Admission::Member,
            Standing::Stranger if self.home.expects_joiners() => Admission::Joiner,
            Standing::Stranger | Standing::Former(_) | Standing::Revoked(_) => Admission::Stranger,
        }
    }

    /// Answers a question.
    pub(super) fn answer(&self, caller: Caller, request: &[u8]) -> Vec<u8> {
        let reply = match control::decode(request) {
            Ok(request) => self.reply(caller, request),
            Err(error) => Reply::Refused {
                why: format!("the request was not understood: {error}"),
            },
        };
        control::encode(&reply)
    }

    fn reply(&self, caller: Caller, request: Asked) -> Reply {
        let members = self.home.members();
        let member = members.by_fingerprint(&caller.key);
        let stranger = || {
            self.strangers.asks(&caller.key, &members);
            Reply::Stranger {}
        };
        match (request, member) {
            (Asked::Join(join), _) => match self.home.accept_join(&join, caller.key) {
                Ok(joined) => {
                    tracing::info!(member = %joined.member.name, key = %caller.key, "joined");
                    Reply::Welcome {
                        name: self.home.settings().name.clone(),
                    }
                }
                Err(error) => {
                    tracing::warn!(key = %caller.key, %error, "somebody could not join");
                    Reply::Refused {
                        why: of_join(&error),
                    }
                }
            },
            (Asked::Jobs {}, None) if caller.key == self.home.identity().fingerprint() => {
                Reply::Jobs {
                    jobs: self.jobs.list(None),
                }
            }
            (_, None) => stranger(),
            (Asked::Hello {}, Some(member)) => {
                let settings = self.home.settings();
                Reply::Hello(Hello {
                    name: settings.name.clone(),
                    role: settings.role,
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    time: Time::now().seconds(),
                    knows_you_as: Some(member.name.clone()),
                })
            }
            (Asked::Rotate { statement }, Some(member)) => {
                match self.home.accept_rotation(&statement) {
                    Ok(joined) => {
                        tracing::info!(member = %joined.member.name, key = %joined.member.fingerprint, "a member has a new key");
                        Reply::Welcome {
                            name: self.home.settings().name.clone(),
                        }
                    }
                    Err(error) => {
                        let member = &member.name;
                        tracing::warn!(%member, %error, "a statement of a new key is not taken");
                        Reply::Refused {
                            why: of_rotation(&error),
                        }
                    }
                }
            }
            (Asked::Jobs {}, Some(member)) => Reply::Jobs {
                jobs: self.jobs.list(Some(&member.name)),
            },
            (Asked::Roll { plan, said }, Some(member)) => self.called(&plan, &said, &member.name),
            (Asked::GoOn { plan }, Some(member)) => Reply::Jobs {
                jobs: self.goes_on(&plan, &member.name),
            },
            // A service garbles on a processor, to which every order is as good.
            (Asked::Schedule { .. }, Some(_)) => Reply::Schedule { schedule: None },
            (Asked::Propose(proposal), Some(member)) => {
                let asked_by = member.name.clone();
                if self.no_room().is_some() {
                    tracing::warn!(%asked_by, "a proposal is refused: there is no room on the disk");
                    return Reply::Refused {
                        why: NO_ROOM.to_owned(),
                    };
                }
                match self.proposed(&proposal, &asked_by) {
                    Ok(reply) => reply,
                    Err(why) => {
                        tracing::info!(%asked_by, %why, "a proposal is refused");
                        Reply::Refused { why }
                    }
                }
            }
        }
    }

    /// How a durable job is with which another party goes on. Unless it is done, or was tried often enough, this party goes on with it as
    /// well.
    fn goes_on(&self, plan: &str, by: &str) -> Vec<Status> {
        let known = plan_of(plan).and_then(|plan| self.recall(plan, by));
        let status = known.and_then(|plan| self.jobs.status(plan, by));
        if let (Some(plan), Some(status)) = (known, &status)
            && status.state != State::Done
            && self.jobs.wakes(plan, by)
        {
            // Whoever is not heard now asks again before its next attempt.
            let _ = self.events.try_send(News::Asked(plan));
        }
        status.into_iter().collect()
    }

    /// Who is missing in a job, and where this party is, as far as it is known at once: nothing is planned, and nothing made ready.
    fn called(&self, plan: &str, said: &[Missing], by: &str) -> Reply {
        let job = plan_of(plan).and_then(|plan| self.jobs.find(plan));
        let status = job.and_then(|job| Some((job, self.jobs.status(job, by)?)));
        let (said, at) = match status {
            None => (Vec::new(), At::Away),
            Some((_, status)) if status.state == State::Done => (Vec::new(), At::Done),
            Some((job, _)) => self.rolls.hear(job, said),
        };
        Reply::Roll { said, at }
    }

    /// Plans a proposed job, asks consent, and keeps it unless it is refused.
    fn proposed(&self, proposal: &Proposal, asked_by: &str) -> Result<Reply, String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err("the service is stopping: propose it again later".into());
        }
        let here = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "a proposal cannot be kept");
            "this party cannot keep the job: its operator finds the reason in its log lines"
                .to_owned()
        };
        let sent = proposal.sent().map_err(|error| error.to_string())?;
        let job = Job::sent(&proposal.job, &sent).map_err(|error| error.for_sender())?;
        let prepared = self.plan(job, proposal.lanes)?;
        let plan = &prepared.plan;
        if !participant::has_part(plan, asked_by) {
            return Err(format!(
                "`{asked_by}` has no part in the job: only its participants may propose it"
            ));
        }
        let hash = plan.hash;
        let digits = Event::plan(hash);
        if self.jobs.with(hash, |entry| entry.status.state.active()) == Some(true) {
            return Ok(Reply::Accepted { plan: digits });
        }
        let decision = self.consent(&prepared, Some(asked_by), Consent::Look);
        if let Decision::Refused { rule, why } = &decision {
            self.record(Event::Refusal {
                plan: digits,
                job: plan.job.name.clone(),
                asked_by: Some(asked_by.to_owned()),
                rule: Some(rule.clone()),
                why: why.clone(),
            });
            return Err(public_reason(&decision).into_parts().0);
        }
        let files: Vec<_> = sent.into_iter().collect();
        let stages = prepared.stages.hashes();
        let filing = Filing {
            plan: hash,
            stages: &stages,
            name: &plan.job.name,
            lanes: proposal.lanes,
            job: &proposal.job,
            base: None,
            explained: &opened(plan),
            data: &[],
            align_key: None,
            files: &files,
            asked_by: Some(asked_by),
        };
        self.home.file_job(&filing).map_err(|error| here(&error))?;
        self.jobs.note(plan, stages, Some(asked_by.to_owned()));
        tracing::info!(plan = %hash, job = %plan.job.name, %asked_by, "a job was proposed");
        let reply = if decision.allows() {
            Reply::Accepted { plan: digits }
        } else {
            self.jobs
                .set(hash, State::Pending, Some(public_reason(&decision)));
            Reply::Pending { plan: digits }
        };
        // A full queue of news means that many jobs came at once; whoever waits for this one knocks.
        let _ = self.events.try_send(News::Asked(hash));
        Ok(reply)
    }

    /// Plans a job, within the limits of the home.
    fn plan(&self, job: Job, lanes: u16) -> Result<Prepared, String> {
        let limits = self.home.settings().limits;
        if lanes == 0 || lanes > limits.lanes {
            return Err(format!(
                "the job has {lanes} lanes, and this party takes 1 to {}",
                limits.lanes
            ));
        }
        let lowered = job.lowered();
        if lowered.rows() > limits.rows {
            return Err(format!(
                "the job has {} rows, and this party takes at most {}",
                lowered.rows(),
                limits.rows
            ));
        }
        let options = Options {
            lanes,
            chunk_rows: None,
        };
        let plan = Plan::new(Arc::new(lowered.clone()), options);
        let unplanned = |error: PlanError| format!("the job cannot be planned: {error}");
        let plan = plan.map_err(unplanned)?;
        let name = &self.home.settings().name;
        let mine = participant::roles(&plan, name).map_err(|error| error.to_string())?;
        let me = mine.iter().find_map(|peer| peer.party());
        let me = me.ok_or_else(|| format!("`{name}` is no computing party of the job"))?;
        let prepared = Prepared::new(job, plan, me, (self.engine().window, self.options.link))
            .map_err(unplanned)?;
        let need = mib(prepared.need);
        if need > limits.memory_mib {
            return Err(format!(
                "`{}` needs up to {need} MiB of working memory (`veil explain` shows it), and this party gives all its jobs {} MiB: its \
                 operator sets `memory_mib` under [limits] in veil.toml",
                prepared.plan.job.name, limits.memory_mib
            ));
        }
        Ok(prepared)
    }

    /// The job of a plan, or of the plan of a stage, for somebody whom it names; one that is filed and that this process has not seen yet
    /// is planned, and remembered.
    pub(super) fn recall(&self, plan: PlanHash, by: &str) -> Option<PlanHash> {
        if let Some(known) = self.jobs.find(plan) {
            return Some(known);
        }
        let job = self.home.filed(plan).ok()??;
        let job = Some(job).filter(|job| job.names(by))?.plan;
        if self.jobs.find(job).is_none() {
            let (prepared, filed) = self.filed(job).ok()?;
            let stages = prepared.stages.hashes();
            self.jobs.note(&prepared.plan, stages, filed.asked_by);
        }
        Some(job)
    }

    /// Reads and plans a filed job.
    pub(super) fn filed(&self, plan: PlanHash) -> Result<(Prepared, Filed), String> {
        let filed = self.home.filed(plan).map_err(|error| error.to_string())?;
        let filed = filed.ok_or("no such job is filed in this home")?;
        let (_, job) = filed
            .read(Files::new())
            .map_err(|error| error.to_string())?;
        let prepared = self.plan(job, filed.lanes)?;
        if prepared.plan.hash != plan {
            return Err("its circuit or this program is another than when it was filed: propose or approve it again".into());
        }
        Ok((prepared, filed))
    }

    /// Whether a job may run.
    pub(super) fn consent(
        &self,
        prepared: &Prepared,
        asked_by: Option<&str>,
        how: Consent,
    ) -> Decision {
        let request = Request {
            plan: prepared.plan.hash,
            facts: &prepared.facts,
            asked_by,
            roles: roles_of(&prepared.plan, &self.home.settings().name),
            repeats: how == Consent::StartAgain,
        };
        let yes = self.options.yes;
        let input = || prepared.stages.plan(Stage::Input).job.name.as_str();
        let begins = |stage| Begins { stage, yes };
        let decided = match how {
            Consent::Look => self.look_at(&request),
            Consent::StartInput => self.home.start(&request, begins(Some(input()))),
            Consent::Start | Consent::StartAgain => self.home.start(&request, begins(None)),
        };
        decided.unwrap_or_else(|error| {
            tracing::error!(%error, "nobody can say whether a job may run");
            held(&error)
        })
    }

    /// Whether a job may run, and this could be logged.
    fn look_at(&self, request: &Request<'_>) -> Result<Decision, HomeError> {
        let decision = self.home.decide(request)?.or_yes(self.options.yes);
        if decision.allows() {
            let unlogged = |error| HomeError::Unlogged(Box::new(error));
            self.home.log().writable().map_err(unlogged)?;
        }
        Ok(decision)
    }
}

/// What is asked of consent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Consent {
    /// Whether the job may run; nothing changes.
    Look,
    /// The same, and that a run begins is logged with the answer.
    Start,
    /// The same for a later run on the inputs that are kept: rules that count runs count the first.
    StartAgain,
    /// The same for the input stage of a durable job, which opens nothing: rules that count runs count the other stage.
    StartInput,
}

/// What is opened to whom, a line each: what people who approve look at first.
fn opened(plan: &Plan) -> String {
    let to = |audience: &Audience| match audience {
        Audience::Stored => "nobody: the parties keep shares".to_owned(),
        Audience::Parties => plan.job.parties.join(", "),
        Audience::Party(party) => plan.job.parties[party.index()].clone(),
        Audience::Recipient(index) => plan.job.recipients[usize::from(*index)].clone(),
    };
    let lines = plan.job.opened.iter().zip(&plan.job.audiences);
    let lines = lines.map(|(what, audience)| format!("opened: {what}, to: {}\n", to(audience)));
    lines.collect::<Vec<_>>().concat()
}
