//! How a participant takes part: what it was told to, its consent, and where it is reached.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use veil_engine::Progress;
use veil_job::Schedule;
use veil_link::tls::{Port, Reception, SetupError};
use veil_link::{LinkKind, shape};
use veil_node::meeting::{Foreground, HeldFor, Parties};
use veil_node::order::{self, Heard};
use veil_node::policy::Facts;
use veil_node::stages::{self, StageStore};
use veil_node::{Begins, Home, Request, roles_of};
use veil_program::Job;
use veil_protocol::Plan;
use veil_runtime::{Neighbours, Passes, Stage, Stages};
use veil_session::{PartyId, Peer};

use super::At;
use crate::devices::Devices;
use crate::failure::{Code, Failure};
use crate::launch::stores;
use crate::ordered::{self, GARBLER, Known, Ordered};
use crate::room::RoomArgs;
use crate::signals::Stop;
use crate::trace::TraceFile;

/// How long the parties have to hear what holds this participant up.
const TELL: Duration = Duration::from_secs(1);

/// How a participant takes part.
pub(crate) struct Engagement<'a> {
    pub(crate) home: &'a Home,
    pub(crate) job: &'a Job,
    /// The job as it is written: what is approved, and logged. Its garbler may have another order of gates.
    pub(crate) plan: &'a Passes,
    /// What is known of that order.
    pub(crate) known: &'a Known,
    /// Where its results go.
    pub(crate) out: &'a Path,
    /// Where a party listens.
    pub(crate) listen: Option<&'a str>,
    /// Where parties keep shares, if it is not in their homes.
    pub(crate) stores: Option<&'a Path>,
    /// How long the others have to turn up, for each stage.
    pub(crate) wait: Duration,
    /// Without any progress for so long, the run is given up.
    pub(crate) timeout: Duration,
    pub(crate) link: LinkKind,
    pub(crate) net: Option<shape::Profile>,
    /// What it computes on, if it is a party.
    pub(crate) devices: &'a Devices,
    /// What memory it takes.
    pub(crate) room: &'a RoomArgs,
    /// Tries a durable job again when a run is interrupted.
    pub(crate) again: bool,
    /// Approves the job without asking the operator.
    pub(crate) yes: bool,
    /// Whether a run was counted by the rules of the policy: what follows repeats it.
    pub(crate) counted: AtomicBool,
    /// Whether something may have been opened in the run that is under way.
    pub(crate) opened: AtomicBool,
    /// Writes down the rounds, if a trace is wanted.
    pub(crate) trace: Option<&'a Arc<TraceFile>>,
    /// What a party in the foreground says of its job to those with a part in it.
    pub(crate) foreground: Option<Foreground>,
    pub(crate) stop: &'a Stop,
    pub(crate) progress: &'a (dyn Fn(Progress) + Sync),
    pub(crate) say: &'a (dyn Fn(&str) + Sync),
}

impl<'a> Engagement<'a> {
    /// Where this participant has shares, if the job needs any.
    pub(super) fn stage_store<'b>(&self, stages: &'b Stages) -> Result<StageStore<'b>, Failure>
    where
        'a: 'b,
    {
        let job: &'b Job = self.job;
        match self.stores {
            Some(root) => {
                StageStore::new(job, stages, &self.home.settings().name, |parties, party| {
                    stores::open(root, parties, party)
                })
            }
            None => Ok(StageStore::of_home(self.home, job, stages)?),
        }
    }

    /// Tells the parties what holds this participant up, before it calls them or when it had to leave; a word, and no reason.
    pub(super) fn held(&self, why: HeldFor) {
        // The operator that started this process sees it there.
        if self.again {
            Parties::of(self.home, self.plan).tell(why, TELL);
        }
    }

    /// Sleeps so long, unless it is asked to stop.
    pub(super) fn rest(&self, pause: Duration) -> Result<(), Failure> {
        stages::nap(pause, self.stop.flag());
        if self.stop.asked() {
            return Err(Failure::stopped());
        }
        Ok(())
    }

    /// Asks whether the job may run; when all participants of a stage are there, that the run begins is logged. What this command runs is one
    /// run to rules that count: the stage that computes, or at an owner the one that takes its data, however often it is repeated.
    pub(super) fn consent(&self, stages: &Stages, begins: Option<At<'_>>) -> Result<(), Failure> {
        let protocol = self.plan.protocol(Peer::Party(PartyId::TWO[0]));
        let facts = Facts::of(self.job, self.plan, &*protocol).against(stages.adversary());
        let request = Request {
            plan: self.plan.hash,
            facts: &facts,
            asked_by: None,
            roles: roles_of(self.plan, &self.home.settings().name),
            repeats: self.counted.load(Ordering::Relaxed),
        };
        let decision = match begins {
            None => self.home.decide(&request)?.or_yes(self.yes),
            Some(at) => {
                let input = at.stage == Stage::Input;
                let stage = input.then_some(at.plan.job.name.as_str());
                let begins = Begins {
                    stage,
                    yes: self.yes,
                    at: at.stage,
                };
                let decision = self.home.start(&request, begins)?;
                if decision.allows() && (!input || request.brings_only()) {
                    self.counted.store(true, Ordering::Relaxed);
                }
                decision
            }
        };
        if decision.allows() {
            return Ok(());
        }
        Err(Failure::new(Code::Input, format!("the job may not run here: {decision}"))
            .about(crate::consent::about(&decision))
            .help("`veil approve JOB` shows the job and asks; `--yes` approves this run without asking"))
    }

    /// The plan that runs, and why its gates are in the order that they are in, if they are garbled: the plan of the job, unless the
    /// garbler has another order, for which another participant asks it.
    pub(super) fn agreed(&self, until: Instant) -> Result<(Passes, Option<Ordered>), Failure> {
        let (plan, ordered) = match self.known {
            Known::Written => (self.plan.clone(), Ordered::written(self.job, self.plan)),
            Known::Chosen(plan, ordered) => (plan.clone(), Some(ordered.clone())),
            Known::Open => {
                let stated = self.asked(until)?;
                let (plan, ordered) = ordered::stated(self.job, self.plan, stated)?;
                (plan, Some(ordered))
            }
        };
        if let Some(trace) = self.trace.filter(|_| plan.hash != self.plan.hash) {
            trace.is_of(&plan);
        }
        if let Some(ordered) = &ordered {
            (self.say)(&ordered.line());
        }
        Ok((plan, ordered))
    }

    /// The order that the garbler states.
    fn asked(&self, until: Instant) -> Result<Option<Schedule>, Failure> {
        let garbler = veil_engine::name_of(self.plan, GARBLER);
        let members = self.home.members();
        let Some(garbler) = members.by_name(garbler) else {
            // The meeting says that it is no member.
            return Ok(None);
        };
        let name = &garbler.name;
        (self.say)(&format!(
            "asking `{name}`, who garbles, for the order of gates"
        ));
        let (identity, stop) = (self.home.identity(), self.stop.flag());
        match order::ask(&identity, garbler, self.plan.hash, until, stop) {
            Ok(Heard::States(schedule)) => Ok(schedule),
            Ok(Heard::Missing(_)) if self.stop.asked() => Err(Failure::stopped()),
            Ok(Heard::Missing(hint)) => {
                let peers = vec![GARBLER];
                let error = SetupError::TimedOut { peers, hint };
                Err(Failure::setup(self.plan, &error))
            }
            Err(error) => Err(Failure::new(Code::Input, error.to_string())),
        }
    }

    /// Opens the port of this participant, if it is a party, and says that it waits for those of a plan.
    pub(super) fn open(&self, mine: &[Peer], plan: &Plan) -> Result<Option<Port>, Failure> {
        let port = self.port(mine)?;
        if let Some(port) = &port {
            (self.say)(&format!("listening on {}", port.address()));
        }
        (self.say)(&format!("plan {}, waiting for the others", plan.hash));
        Ok(port)
    }

    /// The port of a computing party; others have none.
    fn port(&self, mine: &[Peer]) -> Result<Option<Port>, Failure> {
        if !mine.iter().any(|me| me.party().is_some()) {
            return Ok(None);
        }
        let plan = self.plan;
        let members = self.home.members();
        let mut known = BTreeSet::new();
        for me in mine {
            known.extend(Neighbours::find(plan, *me, &*members)?.pins.into_values());
        }
        let listen = self.listen.map(str::to_owned);
        let listen =
            listen.or_else(|| self.home.settings().listen.map(|listen| listen.to_string()));
        let listen = listen.ok_or_else(|| {
            Failure::new(
                Code::Input,
                "a computing party needs an address to listen on",
            )
            .help("set `listen` in veil.toml of its home, or give `--listen 0.0.0.0:7000`")
        })?;
        let mut reception = Reception::sole(known);
        let other = match self.known {
            Known::Chosen(chosen, _) => {
                let own = chosen.job.security.schedule;
                Some((own != plan.job.security.schedule).then_some(own))
            }
            _ => None,
        };
        let statement = other.map(|other| order::statement(plan.hash, other));
        let handler = match (&self.foreground, statement) {
            (Some(foreground), statement) => {
                let others = statement.unwrap_or_else(|| order::statement(plan.hash, None));
                Some(foreground.handler(others))
            }
            (None, statement) => statement,
        };
        if let Some(handler) = handler {
            reception = reception.with_handler(handler);
        }
        let port = Port::bind(&self.home.identity(), &listen, reception);
        Ok(Some(port.map_err(|error| Failure::setup(plan, &error))?))
    }
}
