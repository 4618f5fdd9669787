//! One participant of a deployment in the foreground, in each role that it has in the job.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use veil_engine::{Progress, Recorder, Report, Settings};
use veil_link::shape;
use veil_link::tls::{Identity, Port, Reception};
use veil_node::log::Event;
use veil_node::participant::{self, Neighbours, Part};
use veil_node::policy::Facts;
use veil_node::{Decision, Home, Receipt, Request, Time, receipt, roles_of};
use veil_program::{Job, Output, Source};
use veil_protocol::Plan;
use veil_protocol::rep3::Rep3;
use veil_session::{PartyId, Peer};

use crate::failure::{Code, Failure};
use crate::launch::{Answer, Outcome, Took};
use crate::output::Folders;
use crate::prepare;
use crate::signals::Stop;

/// How a participant takes part.
pub(crate) struct Engagement<'a> {
    pub(crate) home: &'a Home,
    pub(crate) job: &'a Job,
    pub(crate) plan: &'a Arc<Plan>,
    /// Where its results go.
    pub(crate) out: &'a Path,
    /// Where a party listens.
    pub(crate) listen: Option<&'a str>,
    /// How long the others have to turn up.
    pub(crate) wait: Duration,
    /// Without any progress for so long, the run is given up.
    pub(crate) timeout: Duration,
    pub(crate) net: Option<shape::Profile>,
    /// Approves the job without asking anybody.
    pub(crate) yes: bool,
    /// Writes down the rounds, if a trace is wanted.
    pub(crate) trace: Option<Arc<dyn Recorder>>,
    pub(crate) stop: &'a Stop,
    pub(crate) progress: &'a (dyn Fn(Progress) + Sync),
    pub(crate) say: &'a (dyn Fn(&str) + Sync),
}

/// What a participant brings as one of its roles, ready to connect.
struct Role {
    me: Peer,
    neighbours: Neighbours,
    source: Option<Arc<dyn Source>>,
    sink: Option<Arc<Output>>,
}

/// Takes part. Everything that can be checked on this machine is checked before anybody is called.
pub(crate) fn run(engagement: &Engagement<'_>) -> Result<Outcome, Failure> {
    let Engagement {
        home,
        job,
        plan,
        out,
        say,
        ..
    } = *engagement;
    let members = home.members();
    // Before the sinks, so that it is dropped after them: a folder is removed when it is empty.
    let mut folders = Folders::new();
    let mut ready = Vec::new();
    for me in participant::roles(plan, &home.settings().name)? {
        ready.push(Role {
            me,
            neighbours: Neighbours::find(plan, me, &members)?,
            source: prepare::source(job, me)?,
            sink: None,
        });
    }
    engagement.consent(false)?;
    let identity = home.identity();
    let port = port(engagement, &ready, &identity)?;
    for role in &mut ready {
        if prepare::receives(plan, role.me) {
            folders.make(out)?;
            role.sink = Some(prepare::sink(job, role.me, out)?);
        }
    }
    if let Some(port) = &port {
        say(&format!("listening on {}", port.address()));
    }
    say(&format!("plan {}, waiting for the others", plan.hash));
    let start = Instant::now();
    let began = Mutex::new(false);
    let ran = all_roles(engagement, &ready, &identity, port.as_ref(), &began);
    if *began.lock().unwrap_or_else(PoisonError::into_inner) {
        let trace = ran.as_ref().ok().and_then(|reports| reports.first());
        home.log().append(Event::RunEnded {
            plan: Event::plan(plan.hash),
            job: plan.job.name.clone(),
            trace: trace.map(|report| report.trace.to_string()),
            cause: ran
                .as_ref()
                .map_or_else(Failure::cause, |_| "done")
                .to_owned(),
            seconds: start.elapsed().as_secs(),
        })?;
    }
    let mut outcome = Outcome::default();
    let started = Time::now();
    for (role, report) in ready.iter().zip(ran?) {
        outcome.participants.push(Took::new(plan, role.me, &report));
        if let Some(sink) = &role.sink {
            write_receipt(engagement, role, &identity, &report, started)?;
            let answer = Answer::new(plan, role.me, Some(out.to_owned()), sink);
            outcome.answers.push(answer);
        }
    }
    folders.keep();
    Ok(outcome)
}

impl Engagement<'_> {
    /// Asks whether the job may run; `start` when all participants are there, which logs that a run begins.
    fn consent(&self, start: bool) -> Result<(), Failure> {
        let protocol = Rep3::new(Arc::clone(self.plan), Peer::Party(PartyId::ALL[0]));
        let facts = Facts::of(self.job, self.plan, &protocol);
        let request = Request {
            plan: self.plan.hash,
            facts: &facts,
            asked_by: None,
            roles: roles_of(self.plan, &self.home.settings().name),
        };
        let decision = if start {
            self.home.start(&request)?
        } else {
            self.home.decide(&request)?
        };
        match decision {
            decision if decision.allows() => Ok(()),
            Decision::Pending { .. } if self.yes => {
                if start {
                    self.home.log().append(Event::RunStarted {
                        plan: Event::plan(self.plan.hash),
                        job: self.plan.job.name.clone(),
                        asked_by: None,
                        rule: None,
                    })?;
                }
                Ok(())
            }
            decision => Err(Failure::new(Code::Input, format!("the job may not run here: {decision}"))
                .help("`veil approve JOB` shows the job and asks; `--yes` approves this run without asking")),
        }
    }
}

/// The port of a computing party; others have none.
fn port(
    engagement: &Engagement<'_>,
    roles: &[Role],
    identity: &Identity,
) -> Result<Option<Port>, Failure> {
    if !roles.iter().any(|role| role.me.party().is_some()) {
        return Ok(None);
    }
    let listen = engagement.listen.map(str::to_owned);
    let listen = listen.or_else(|| {
        engagement
            .home
            .settings()
            .listen
            .map(|listen| listen.to_string())
    });
    let listen = listen.ok_or_else(|| {
        Failure::new(
            Code::Input,
            "a computing party needs an address to listen on",
        )
        .help("set `listen` in veil.toml of its home, or give `--listen 0.0.0.0:7000`")
    })?;
    let known = roles.iter().flat_map(|role| role.neighbours.pins.values());
    let reception = Reception::sole(known.copied());
    let port = Port::bind(identity, &listen, reception);
    Ok(Some(port.map_err(|error| {
        Failure::setup(engagement.plan, &error)
    })?))
}

/// Runs every role in a thread of its own. The first failure ends the others.
fn all_roles(
    engagement: &Engagement<'_>,
    roles: &[Role],
    identity: &Identity,
    port: Option<&Port>,
    began: &Mutex<bool>,
) -> Result<Vec<Report>, Failure> {
    let first = Mutex::new(None);
    let one = |role| {
        let fail = |failure| {
            first
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(failure);
            engagement.stop.flag().store(true, Ordering::Relaxed);
        };
        one_role(engagement, role, identity, port, began)
            .map_err(fail)
            .ok()
    };
    let reports: Vec<Option<Report>> = thread::scope(|scope| {
        let threads: Vec<_> = roles.iter().map(|role| scope.spawn(|| one(role))).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => Ok(reports.into_iter().flatten().collect()),
    }
}

fn one_role(
    engagement: &Engagement<'_>,
    role: &Role,
    identity: &Identity,
    port: Option<&Port>,
    began: &Mutex<bool>,
) -> Result<Report, Failure> {
    let (plan, stop) = (engagement.plan, engagement.stop);
    let part = Part {
        plan,
        me: role.me,
        identity,
        port,
        neighbours: &role.neighbours,
        net: engagement.net,
        stop: stop.flag(),
    };
    let met = part.meet(engagement.wait);
    let connections = met.map_err(|error| {
        if stop.asked() {
            Failure::stopped()
        } else {
            Failure::setup(plan, &error)
        }
    })?;
    {
        // Once for all roles: it is one run.
        let mut began = began.lock().unwrap_or_else(PoisonError::into_inner);
        if !*began {
            engagement.consent(true)?;
            *began = true;
        }
    }
    (engagement.say)(&format!("connected as {}", prepare::role(role.me)));
    let settings = Settings {
        timeout: engagement.timeout,
        trace: engagement.trace.clone(),
        ..Settings::default()
    };
    let data = prepare::data(role.source.clone(), role.sink.as_ref());
    let ran = part.run(
        connections,
        &settings,
        data,
        &|link| link,
        engagement.progress,
    );
    ran.map_err(|abort| {
        if stop.asked() {
            Failure::stopped()
        } else {
            Failure::abort(plan, role.me, &abort)
        }
    })
}

/// Puts the receipt beside a result, and says in the log that it is there.
fn write_receipt(
    engagement: &Engagement<'_>,
    role: &Role,
    identity: &Identity,
    report: &Report,
    started: Time,
) -> Result<(), Failure> {
    let (plan, out) = (engagement.plan, engagement.out);
    let keys = |peer: Peer| match role.neighbours.pins.get(&peer) {
        Some(pin) => Some(*pin),
        None => (peer == role.me).then(|| identity.fingerprint()),
    };
    let protocol = Rep3::new(Arc::clone(plan), role.me);
    let names = prepare::result_files(engagement.job, role.me);
    let names: Vec<PathBuf> = names
        .into_iter()
        .filter(|name| out.join(name).is_file())
        .collect();
    let trace = Some(report.trace.to_string());
    Receipt::new(plan, &protocol, role.me, &keys, false, started)
        .write(out, &names, trace.clone())
        .map_err(|error| {
            let message = format!(
                "the result is there, and its {} is not: {error}",
                receipt::NAME
            );
            Failure::new(Code::Other, message)
        })?;
    engagement.home.log().append(Event::ResultPublished {
        plan: Event::plan(plan.hash),
        job: plan.job.name.clone(),
        trace,
        files: names.len() as u64,
    })?;
    Ok(())
}
