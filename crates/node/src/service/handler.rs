//! Admission of callers, and answers to their questions.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use veil_link::tls::{Admission, Caller, Fingerprint, Lane};
use veil_program::Files;
use veil_session::PlanHash;

use super::said::{NO_ROOM, NOT_HERE, held, of_join, of_rotation, public_reason};
use super::slots::Claim;
use super::{News, ServiceState};
use crate::approvals::{Begins, Decision, Filed, Filing, Request, plan_of};
use crate::attendance::Missing;
use crate::control::{self, Hello, Kind, Reply, Request as Asked};
use crate::home::HomeError;
use crate::jobs::{Entry, State, Status};
use crate::log::Event;
use crate::members::Standing;
use crate::members::all_known;
use crate::planner::{Planned, Prepared, Refusal, Terms};
use crate::settings::Quota;
use crate::stages::At;
use crate::stock::kind_of;
use crate::time::Time;
use veil_runtime::Stage;

/// The most that meetings take: threads, and places at the port. Each member has its part of them.
pub(super) const MEETINGS: usize = 256;

/// Between two lines that say the same of one member's proposals.
const QUIET: Duration = Duration::from_secs(60);

/// A refused proposal is answered so much later: what takes some megabytes to send and is refused at once would else be sent all the time.
const SLOWED: Duration = Duration::from_millis(500);

/// Refusals of a member's proposals that were not said in a line of their own.
#[derive(Default)]
pub(super) struct Unsaid {
    since: Option<Instant>,
    count: u64,
}

impl ServiceState {
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

    /// Where a question waits: a proposal takes long, and this participant's own commands do not wait.
    pub(super) fn lane(&self, caller: &Caller, request: &[u8]) -> Lane {
        if caller.key == self.home.identity().fingerprint() {
            return Lane::Own;
        }
        match control::kind(request) {
            Kind::Quick => Lane::Quick,
            Kind::Proposal => Lane::Slow,
            Kind::Other => Lane::Usual,
        }
    }

    /// Answers a question.
    pub(super) fn answer(&self, caller: Caller, request: &[u8]) -> Vec<u8> {
        let reply = if control::kind(request) == Kind::Proposal {
            self.propose(caller, request)
        } else {
            match control::decode(request) {
                Ok(request) => self.reply(caller, request),
                Err(error) => Reply::Refused {
                    why: format!("the request was not understood: {error}"),
                },
            }
        };
        control::encode(&reply)
    }

    /// Answers a proposal, which is read by a process of its own.
    fn propose(&self, caller: Caller, request: &[u8]) -> Reply {
        let members = self.home.members();
        let Some(member) = members.by_fingerprint(&caller.key) else {
            return Reply::Refused {
                why: "only members may ask that: join first".into(),
            };
        };
        let asked_by = member.name.clone();
        match self.proposed(request, &asked_by) {
            Ok(reply) => reply,
            Err(why) => {
                self.say_refused(&asked_by, &why);
                // In its own thread of those that answer proposals: a member has one at a time.
                std::thread::sleep(SLOWED);
                Reply::Refused { why }
            }
        }
    }

    /// Says that a proposal was refused: once in a while for each member, with how many there were.
    fn say_refused(&self, asked_by: &str, why: &str) {
        if let Some(refused) = self.due(asked_by.to_owned()) {
            tracing::info!(%asked_by, %why, refused, "a proposal is refused");
        }
    }

    /// Counts a refusal: how many there were since the last one that was said, if it is time to say one.
    fn due(&self, of: String) -> Option<u64> {
        let mut unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        let of = unsaid.entry(of).or_default();
        of.count += 1;
        let due = of.since.is_none_or(|since| since.elapsed() >= QUIET);
        due.then(|| {
            of.since = Some(Instant::now());
            std::mem::take(&mut of.count)
        })
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
                    tracing::warn!(key = %caller.key, %error, "a participant could not join");
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
            // What is proposed is read elsewhere.
            (Asked::Propose(_), _) | (_, None) => stranger(),
            (Asked::Hello {}, Some(member)) => {
                let settings = self.home.settings();
                Reply::Hello(Hello {
                    name: settings.name.clone(),
                    role: settings.role,
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    time: Time::now().seconds(),
                    knows_you_as: Some(member.name.clone()),
                    computes: Some(self.computes.clone()),
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
            (Asked::Attendance { plan, said }, Some(member)) => {
                self.called(&plan, &said, &member.name)
            }
            (Asked::GoOn { plan }, Some(member)) => Reply::Jobs {
                jobs: self.goes_on(&plan, &member.name),
            },
            (Asked::Held { plan, why }, Some(member)) => Reply::Jobs {
                jobs: self.held(&plan, why, &member.name),
            },
            (asked @ Asked::Refill { .. }, Some(member)) => match self.refills(member, asked) {
                Ok(reply) => reply,
                Err(why) => {
                    let member = &member.name;
                    if let Some(refused) = self.due(format!("stock of {member}")) {
                        tracing::info!(%member, %why, refused, "a refill of stock is refused");
                    }
                    Reply::Refused { why }
                }
            },
            (Asked::Unfinished { makings, transfers }, Some(member)) => self
                .finishes(member, kind_of(transfers), &makings)
                .unwrap_or_else(|why| Reply::Refused { why }),
            (Asked::Keep { plan, cells }, Some(_)) => self.keeps(&plan, cells, caller.key),
            // A service garbles on a processor, to which every order is as good.
            (Asked::Schedule { .. }, Some(_)) => Reply::Schedule { schedule: None },
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
            // A party that is not heard now asks again before its next attempt.
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
            Some((job, _)) => self.attendances.hear(job, said),
        };
        Reply::Attendance { said, at }
    }

    /// Has a proposed job planned, asks consent, and keeps it unless it is refused.
    fn proposed(&self, request: &[u8], asked_by: &str) -> Result<Reply, String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err("the service is stopping: propose it again later".into());
        }
        if self.no_room().is_some() {
            tracing::warn!(%asked_by, "a proposal is refused: there is no room on the disk");
            return Err(NO_ROOM.to_owned());
        }
        let quota = self.home.settings().quotas.of(asked_by);
        let worked = self.planner.plan(&self.terms(false), request, || {
            self.usage.may_propose(asked_by, &quota)
        });
        if let Some(took) = worked.took {
            self.usage.proposed(asked_by, took);
            let how = worked.found.as_ref().map_or_else(Refusal::how, |_| "ok");
            self.metrics.planned(took, how);
        }
        let planned = worked.found.map_err(|refusal| {
            if let Refusal::Crashed(why) | Refusal::Unconfined(why) = &refusal {
                tracing::error!(%asked_by, %why, "a proposal cannot be planned");
            }
            refusal.for_sender()
        })?;
        if !planned.participants.iter().any(|name| name == asked_by) {
            return Err(format!(
                "`{asked_by}` has no part in the job: only its participants may propose it"
            ));
        }
        all_known(&planned.participants, &self.home)?;
        let hash = planned.hash().ok_or("the plan has no hash")?;
        let digits = planned.plan.clone();
        if self.jobs.with(hash, |entry| entry.status.state.active()) == Some(true) {
            return Ok(Reply::Accepted { plan: digits });
        }
        let pending = self
            .jobs
            .with(hash, |entry| entry.status.state == State::Pending);
        if pending != Some(true) && self.jobs.waiting_of(asked_by) >= quota.waiting_jobs {
            return Err(format!(
                "quota: {} jobs of `{asked_by}` wait here, and no more may; again when one of them has begun or was refused",
                quota.waiting_jobs
            ));
        }
        if planned.facts.keeps {
            self.may_store(asked_by)?;
        }
        self.may_take(&planned, Some(asked_by))?;
        let decision = self.consent(&planned, Some(asked_by), Consent::Look);
        if decision.refuses() {
            // What was refused before was said before: no member fills the log by asking again.
            let before = |entry: &mut Entry| entry.status.state == State::Refused;
            if worked.took.is_some() && self.jobs.with(hash, before) != Some(true) {
                self.note_refusal(&planned, Some(asked_by), &decision);
            }
            return Err(public_reason(&decision).into_parts().0);
        }
        self.file(hash, &planned, request, (asked_by, quota.filed))?;
        self.jobs.note(hash, &planned, Some(asked_by.to_owned()));
        if pending != Some(true) {
            tracing::info!(plan = %hash, job = %planned.name, %asked_by, "a job was proposed");
        }
        let reply = if decision.allows() {
            Reply::Accepted { plan: digits }
        } else {
            self.jobs
                .set(hash, State::Pending, Some(public_reason(&decision)));
            Reply::Pending { plan: digits }
        };
        // A full queue of news means that many jobs came at once; a participant that waits for this one sends a connect request.
        let _ = self.events.try_send(News::Asked(hash));
        Ok(reply)
    }

    /// Writes down that a rule refuses a job.
    pub(super) fn note_refusal(
        &self,
        planned: &Planned,
        asked_by: Option<&str>,
        decision: &Decision,
    ) {
        if let Decision::Refused { rule, why } = decision {
            self.record(Event::Refusal {
                plan: planned.plan.clone(),
                job: planned.name.clone(),
                asked_by: asked_by.map(str::to_owned),
                rule: Some(rule.clone()),
                why: why.clone(),
            });
        }
    }

    /// Files a job that a member proposed, unless it is filed: what is filed stays as it is.
    fn file(
        &self,
        plan: PlanHash,
        planned: &Planned,
        request: &[u8],
        (asked_by, room): (&str, u64),
    ) -> Result<(), String> {
        let here = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "a proposal cannot be kept");
            "this party cannot keep the job: its operator finds the reason in its log lines"
                .to_owned()
        };
        if self
            .home
            .filed(plan)
            .map_err(|error| here(&error))?
            .is_some()
        {
            return Ok(());
        }
        let taken = self
            .home
            .filed_bytes(asked_by)
            .map_err(|error| here(&error))?;
        if taken.saturating_add(request.len() as u64) > room {
            return Err(format!(
                "quota: the jobs of `{asked_by}` that are filed here take {taken} bytes of {room}; the operator removes what is over"
            ));
        }
        // It was read, and planned, within limits.
        let Ok(Asked::Propose(proposal)) = control::decode(request) else {
            return Err("the request was not understood".into());
        };
        let files = proposal.sent().map_err(|error| error.to_string())?;
        let files: Vec<_> = files.into_iter().collect();
        let filing = Filing {
            plan,
            stages: &planned.stage_hashes(),
            name: &planned.name,
            lanes: proposal.lanes,
            stocked: proposal.stocked,
            job: &proposal.job,
            explained: &planned.opened,
            data: &[],
            align_key: None,
            files: &files,
            asked_by: Some(asked_by),
        };
        self.home.file_job(&filing).map_err(|error| here(&error))?;
        Ok(())
    }

    /// Whether the datasets that a member's jobs keep here are within its quota.
    pub(super) fn may_store(&self, asked_by: &str) -> Result<(), String> {
        let room = self.home.settings().quotas.of(asked_by).stored;
        let taken = self.home.stored_bytes(asked_by).map_err(|error| {
            tracing::error!(%error, "it cannot be read what datasets take");
            NOT_HERE.to_owned()
        })?;
        if taken <= room {
            return Ok(());
        }
        Err(format!(
            "quota: datasets of jobs of `{asked_by}` take {taken} bytes here, of {room}; the operator removes what is over with `veil shares \
             remove`"
        ))
    }

    /// Under which terms this party plans jobs.
    fn terms(&self, kept: bool) -> Terms {
        let settings = self.home.settings();
        Terms {
            name: settings.name.clone(),
            rows: settings.limits.rows,
            lanes: settings.limits.lanes,
            memory_mib: settings.limits.memory_mib,
            spill: settings.admission.spill,
            window: self.engine().window,
            link: self.options.link.to_string(),
            kept,
        }
    }

    /// What is missing of this party's own data for a job: the options that say where it is.
    pub(super) fn unbound(&self, plan: PlanHash, planned: &Planned) -> Option<String> {
        if planned.asks.is_empty() {
            return None;
        }
        let filed = self.home.filed(plan).ok().flatten();
        let bound = filed.map(|filed| filed.data).unwrap_or_default();
        self.home.missing(&planned.name, &planned.asks, &bound)
    }

    /// Into how many equal parts common limits are divided: one for each member, and one for this party.
    pub(super) fn shares(&self) -> u64 {
        self.home.members().iter().count() as u64 + 1
    }

    /// How many jobs of a member may be met at once, so that all others find places.
    pub(super) fn meetings(&self, asked_by: Option<&str>) -> usize {
        let part = (MEETINGS / self.shares() as usize).max(1);
        match asked_by {
            Some(member) => {
                let waiting = self.home.settings().quotas.of(member).waiting_jobs;
                part.min(usize::try_from(waiting).unwrap_or(part))
            }
            None => part,
        }
    }

    /// What a job wants of the places to run.
    pub(super) fn claim(&self, job: PlanHash, planned: &Planned, asked_by: Option<&str>) -> Claim {
        let quotas = &self.home.settings().quotas;
        Claim {
            job,
            member: asked_by.map(str::to_owned),
            quota: asked_by.map_or_else(Quota::default, |member| quotas.of(member)),
            need: planned.need,
            work: planned.work,
        }
    }

    /// The job of a plan, or of the plan of a stage, for a participant that it names; one that is filed and that this process has not seen yet
    /// is planned, and remembered.
    pub(super) fn recall(&self, plan: PlanHash, by: &str) -> Option<PlanHash> {
        if let Some(known) = self.jobs.find(plan) {
            return Some(known);
        }
        let job = self.home.filed(plan).ok()??;
        let job = Some(job).filter(|job| job.names(by))?.plan;
        if self.jobs.find(job).is_none() {
            let filed = self.home.filed(job).ok()??;
            let planned = self.planned(&filed)?;
            self.jobs.note(job, &planned, filed.asked_by);
        }
        Some(job)
    }

    /// What is known of a filed job that this process has not seen, from a process of its own: most of what is filed was written by others.
    fn planned(&self, filed: &Filed) -> Option<Arc<Planned>> {
        let proposal = filed.proposal().inspect_err(|error| {
            tracing::error!(plan = %filed.plan, %error, "a filed job cannot be read");
        });
        let request = control::encode(&Asked::Propose(proposal.ok()?));
        let found = self
            .planner
            .plan(&self.terms(true), &request, || Ok(()))
            .found;
        let found = found.inspect_err(|refusal| {
            tracing::warn!(plan = %filed.plan, ?refusal, "a filed job cannot be planned");
        });
        found
            .ok()
            .filter(|planned| planned.hash() == Some(filed.plan))
    }

    /// Reads and plans a filed job that may run, in this process.
    pub(super) fn filed(&self, plan: PlanHash) -> Result<(Prepared, Filed), String> {
        let filed = self.home.filed(plan).map_err(|error| error.to_string())?;
        let filed = filed.ok_or("no such job is filed in this home")?;
        let read = filed.read(Files::new());
        let (_, mut job) = read.map_err(|error| error.to_string())?;
        self.home.bind(&mut job);
        let prepared = self
            .known
            .prepare(job, (filed.lanes, filed.stocked), &self.terms(true))?;
        if prepared.plan.hash != plan {
            return Err("its circuit or this program is another than when it was filed: propose or approve it again".into());
        }
        Ok((prepared, filed))
    }

    /// Whether a job may run.
    pub(super) fn consent(
        &self,
        planned: &Planned,
        asked_by: Option<&str>,
        how: Consent,
    ) -> Decision {
        let Some(plan) = planned.hash() else {
            return Decision::Pending { why: Vec::new() };
        };
        let request = Request {
            plan,
            facts: &planned.facts,
            asked_by,
            roles: planned.roles.clone(),
            repeats: matches!(how, Consent::StartAgain(_)),
        };
        let yes = self.options.yes;
        let begins = |stage, at| Begins { stage, yes, at };
        let decided = match how {
            Consent::Look => self.look_at(&request),
            Consent::StartInput => {
                let begins = begins(Some(planned.input.as_str()), Stage::Input);
                self.home.start(&request, begins)
            }
            Consent::Start(at) | Consent::StartAgain(at) => {
                self.home.start(&request, begins(None, at))
            }
        };
        decided.unwrap_or_else(|error| {
            tracing::error!(%error, "it cannot be decided whether a job may run");
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
    Start(Stage),
    /// The same for a later run on the inputs that are kept: rules that count runs count the first.
    StartAgain(Stage),
    /// The same for the input stage of a durable job, which opens nothing: rules that count runs count the other stage.
    StartInput,
}
