//! One participant of a deployment in the foreground, in each role that it has in the job.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use veil_engine::{Data, Progress, Recorder, Report, Settings};
use veil_link::shape;
use veil_link::tls::{Identity, Port, Reception};
use veil_node::log::Event;
use veil_node::participant::{self, Neighbours, Part};
use veil_node::policy::Facts;
use veil_node::stages::{self, AGAIN, Disagreement, Ends, Shelf, Stage, Stages};
use veil_node::{Decision, Home, Receipt, Request, Time, receipt, roles_of};
use veil_program::{Job, Output, Source};
use veil_protocol::Plan;
use veil_protocol::Replicated;
use veil_session::{PartyId, Peer};

use crate::failure::{Code, Failure};
use crate::launch::stores;
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
    /// Where parties keep shares, if it is not in their homes.
    pub(crate) stores: Option<&'a Path>,
    /// How long the others have to turn up, for each stage.
    pub(crate) wait: Duration,
    /// Without any progress for so long, the run is given up.
    pub(crate) timeout: Duration,
    pub(crate) net: Option<shape::Profile>,
    /// Tries a durable job again when a run is interrupted.
    pub(crate) again: bool,
    /// Approves the job without asking anybody.
    pub(crate) yes: bool,
    /// Writes down the rounds, if a trace is wanted.
    pub(crate) trace: Option<Arc<dyn Recorder>>,
    pub(crate) stop: &'a Stop,
    pub(crate) progress: &'a (dyn Fn(Progress) + Sync),
    pub(crate) say: &'a (dyn Fn(&str) + Sync),
}

/// What a participant brings to one stage as one of its roles, ready to connect.
struct Role {
    me: Peer,
    neighbours: Neighbours,
    source: Option<Arc<dyn Source>>,
    sink: Option<Arc<Output>>,
    shares: Ends,
}

/// One stage of the job, as this participant takes part in it.
#[derive(Clone, Copy)]
struct At<'a> {
    stages: &'a Stages,
    stage: Stage,
    plan: &'a Arc<Plan>,
    port: Option<&'a Port>,
    identity: &'a Identity,
}

/// An owner whose values the parties say to have keeps calling for so long: they may find out that one of them has not.
const LINGER: Duration = Duration::from_secs(5);

/// Between two meetings of parties that disagree on whether the inputs are kept.
const PAUSE: Duration = Duration::from_millis(300);

/// Takes part. Everything that can be checked on this machine is checked before anybody is called.
pub(crate) fn run(engagement: &Engagement<'_>) -> Result<Outcome, Failure> {
    let Engagement {
        home,
        job,
        plan,
        say,
        ..
    } = *engagement;
    let name = &home.settings().name;
    let mine = participant::roles(plan, name)?;
    let stages = Stages::new(job, plan)?;
    let party = mine.iter().find_map(|me| me.party());
    if party.is_some() && stages.are_guaranteed() {
        let message = "a party of a job whose output is guaranteed answers the others for as long as the job is there, and this command does not";
        return Err(Failure::new(Code::Input, message)
            .help("run `veil serve` at every party, or write `delivery = \"abort\"`"));
    }
    let shelf = engagement.shelf(&stages)?;
    let mut at = At {
        stages: &stages,
        stage: if stages.are_two() {
            Stage::Input
        } else {
            Stage::Whole
        },
        plan,
        port: None,
        identity: &home.identity(),
    };
    if party.is_some() {
        let (stage, unusable) = shelf.stage()?;
        at.stage = stage;
        if let Some(error) = unusable {
            say(&format!("the inputs that are kept cannot be used: {error}"));
        }
    }
    engagement.consent(None)?;
    let port = OnceCell::new();
    let mut outcome = Outcome::default();
    let until = Instant::now() + engagement.wait;
    let mut failures = 0;
    loop {
        at.plan = stages.plan(at.stage);
        let last = at.stage != Stage::Input;
        let has_part = veil_engine::participants(at.plan)
            .into_iter()
            .any(|peer| veil_engine::name_of(at.plan, peer) == *name);
        if !has_part {
            if last {
                return Ok(outcome);
            }
            at.stage = Stage::Compute;
            continue;
        }
        if let (Some(awaits), Some(_)) = (stages.awaits(at.stage), party) {
            say(&awaits);
        }
        let reach = || {
            if let Some(port) = port.get() {
                return Ok(Option::as_ref(port));
            }
            let open = open(engagement, &mine)?;
            Ok(port.get_or_init(|| open).as_ref())
        };
        match one_stage(engagement, at, &shelf, until, &reach)? {
            Ended::Done(done) => {
                let known = |took: &Took| done.participants.iter().any(|new| new.role == took.role);
                outcome.participants.retain(|took| !known(took));
                outcome.participants.extend(done.participants);
                outcome.answers.extend(done.answers);
                if last {
                    shelf.forget()?;
                    return Ok(outcome);
                }
                at.stage = Stage::Compute;
                failures = 0;
            }
            Ended::Interrupted(failure) => {
                let Some(pause) = stages::pause(failures) else {
                    return Err(failure);
                };
                failures += 1;
                let seconds = pause.as_secs();
                say(&format!(
                    "{}; again in {seconds} s, attempt {failures} of {AGAIN}",
                    failure.in_a_line()
                ));
                engagement.rest(pause)?;
                if party.is_some() {
                    at.stage = shelf.stage()?.0;
                }
            }
            Ended::Disagreed(why) => {
                say(&why);
                shelf.forget()?;
                at.stage = Stage::Input;
                thread::sleep(PAUSE);
            }
            Ended::Moved(stage) => {
                if let Some(out) = stages.without(stage) {
                    say(&format!("`{out}` is out, and the other parties finish"));
                }
                at.stage = stage;
            }
            Ended::NotAsked => {
                say("the parties have kept the inputs: this owner's data are not asked for again");
                at.stage = Stage::Compute;
            }
        }
    }
}

/// How a stage ended that did not fail.
enum Ended {
    Done(Outcome),
    /// The run of a durable job was interrupted from outside, and may be tried again.
    Interrupted(Failure),
    /// The parties disagree on whether the inputs are kept.
    Disagreed(String),
    /// The parties are at the stage after this one.
    NotAsked,
    /// The parties finish without one of them.
    Moved(Stage),
}

/// Takes part in one stage. `reach` gives the port on which a party is reached, once this side's data are checked.
fn one_stage<'a>(
    engagement: &Engagement<'_>,
    mut at: At<'a>,
    shelf: &Shelf<'_>,
    until: Instant,
    reach: &dyn Fn() -> Result<Option<&'a Port>, Failure>,
) -> Result<Ended, Failure> {
    let Engagement { home, job, out, .. } = *engagement;
    let members = home.members();
    // Before the sinks, so that it is dropped after them: a folder is removed when it is empty.
    let mut folders = Folders::new();
    let mut ready = Vec::new();
    for me in participant::roles(at.plan, &home.settings().name)? {
        let neighbours = at.stages.neighbours(at.stage, me, &members)?;
        let supplies = prepare::supplies(at.plan, me);
        let source = supplies.then(|| prepare::source(job, me)).transpose()?;
        let shares = shelf.ends(at.stage)?;
        let mut sink = None;
        if prepare::receives(at.plan, me) {
            folders.make(out)?;
            sink = Some(prepare::sink(job, me, out)?);
        }
        ready.push(Role {
            me,
            neighbours,
            source: source.flatten().or_else(|| shares.source.clone()),
            sink,
            shares,
        });
    }
    at.port = reach()?;
    let start = Instant::now();
    let started = Time::now();
    let began = Mutex::new(false);
    let is_party = ready.iter().any(|role| role.me.party().is_some());
    let ran = loop {
        let ran = all_roles(engagement, at, &ready, &began);
        match ran {
            Err(Stopped::Disagree(other)) if is_party => return Ok(Ended::Disagreed(other.why)),
            Err(Stopped::Disagree(Disagreement {
                theirs: Stage::Finish(out),
                ..
            })) => {
                // It takes the word of all the others, and not of the one that says so first.
                if stages::verdict(home, at.stages) == Some(out) {
                    return Ok(Ended::Moved(Stage::Finish(out)));
                }
                if start.elapsed() >= engagement.wait {
                    let message = "the parties do not agree on whether one of them is out";
                    return Err(Failure::new(Code::Link, message));
                }
                engagement.rest(PAUSE)?;
            }
            Err(Stopped::Disagree(_)) => {
                if start.elapsed() >= LINGER || Instant::now() >= until {
                    return Ok(Ended::NotAsked);
                }
                thread::sleep(PAUSE);
            }
            Err(Stopped::Failed(failure)) => break Err((failure, false)),
            Err(Stopped::Interrupted(failure)) => break Err((failure, true)),
            Ok(reports) => break Ok(reports),
        }
    };
    if *began.lock().unwrap_or_else(PoisonError::into_inner) {
        let trace = ran.as_ref().ok().and_then(|reports| reports.first());
        home.log().append(Event::RunEnded {
            plan: Event::plan(engagement.plan.hash),
            job: at.plan.job.name.clone(),
            trace: trace.map(|report| report.trace.to_string()),
            cause: ran
                .as_ref()
                .map_or_else(|(failure, _)| failure.cause(), |_| "done")
                .to_owned(),
            seconds: start.elapsed().as_secs(),
        })?;
    }
    let reports = match ran {
        Ok(reports) => reports,
        Err((failure, true)) => return Ok(Ended::Interrupted(failure)),
        Err((failure, false)) => return Err(failure),
    };
    let mut outcome = Outcome::default();
    for (role, report) in ready.iter().zip(reports) {
        outcome
            .participants
            .push(Took::new(at.plan, role.me, &report));
        if let Some(sink) = &role.sink {
            write_receipt(engagement, at, role, &report, started)?;
            let answer = Answer::new(at.plan, role.me, Some(out.to_owned()), sink);
            outcome.answers.extend(answer);
        }
    }
    folders.keep();
    Ok(Ended::Done(outcome))
}

impl<'a> Engagement<'a> {
    /// Where this participant has shares, if the job needs any.
    fn shelf<'b>(&self, stages: &'b Stages) -> Result<Shelf<'b>, Failure>
    where
        'a: 'b,
    {
        let job: &'b Job = self.job;
        match self.stores {
            Some(root) => Shelf::new(job, stages, &self.home.settings().name, |parties, party| {
                stores::open(root, parties, party)
            }),
            None => Ok(Shelf::of_home(self.home, job, stages)?),
        }
    }

    /// Sleeps so long, unless it is asked to stop.
    fn rest(&self, pause: Duration) -> Result<(), Failure> {
        stages::nap(pause, self.stop.flag());
        if self.stop.asked() {
            return Err(Failure::stopped());
        }
        Ok(())
    }

    /// Asks whether the job may run; when all participants of a stage are there, that the run begins is logged. Rules that count runs
    /// count the stage that computes.
    fn consent(&self, begins: Option<At<'_>>) -> Result<(), Failure> {
        let protocol = Replicated::new(Arc::clone(self.plan), Peer::Party(PartyId::THREE[0]));
        let facts = Facts::of(self.job, self.plan, &protocol);
        let request = Request {
            plan: self.plan.hash,
            facts: &facts,
            asked_by: None,
            roles: roles_of(self.plan, &self.home.settings().name),
        };
        let counted = begins.is_some_and(|at| at.stage != Stage::Input);
        let decision = if counted {
            self.home.start(&request)?
        } else {
            self.home.decide(&request)?
        };
        let begun = || match begins {
            Some(at) => self.home.log().append(Event::RunStarted {
                plan: Event::plan(self.plan.hash),
                job: at.plan.job.name.clone(),
                asked_by: None,
                rule: None,
            }),
            None => Ok(()),
        };
        match decision {
            decision if decision.allows() => {
                if !counted {
                    begun()?;
                }
                Ok(())
            }
            Decision::Pending { .. } if self.yes => Ok(begun()?),
            decision => Err(Failure::new(Code::Input, format!("the job may not run here: {decision}"))
                .help("`veil approve JOB` shows the job and asks; `--yes` approves this run without asking")),
        }
    }
}

/// Opens the port of this participant, if it is a party, and says that it waits.
fn open(engagement: &Engagement<'_>, mine: &[Peer]) -> Result<Option<Port>, Failure> {
    let port = port(engagement, mine)?;
    if let Some(port) = &port {
        (engagement.say)(&format!("listening on {}", port.address()));
    }
    (engagement.say)(&format!(
        "plan {}, waiting for the others",
        engagement.plan.hash
    ));
    Ok(port)
}

/// The port of a computing party; others have none.
fn port(engagement: &Engagement<'_>, mine: &[Peer]) -> Result<Option<Port>, Failure> {
    if !mine.iter().any(|me| me.party().is_some()) {
        return Ok(None);
    }
    let plan = engagement.plan;
    let members = engagement.home.members();
    let mut known = BTreeSet::new();
    for me in mine {
        known.extend(Neighbours::find(plan, *me, &members)?.pins.into_values());
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
    let port = Port::bind(&engagement.home.identity(), &listen, Reception::sole(known));
    Ok(Some(port.map_err(|error| Failure::setup(plan, &error))?))
}

/// Why a stage did not come to its end.
enum Stopped {
    /// Parties are at the other stage.
    Disagree(Disagreement),
    /// The run may be tried again.
    Interrupted(Failure),
    Failed(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Stopped::Failed(failure)
    }
}

/// Runs every role in a thread of its own. The first failure ends the others.
fn all_roles(
    engagement: &Engagement<'_>,
    at: At<'_>,
    roles: &[Role],
    began: &Mutex<bool>,
) -> Result<Vec<Report>, Stopped> {
    let first = Mutex::new(None);
    let one = |role| {
        let fail = |stopped| {
            // A disagreement or an interruption is no end: roles that wait for the same parties find it out themselves.
            let failed = matches!(stopped, Stopped::Failed(_));
            first
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(stopped);
            if failed {
                engagement.stop.flag().store(true, Ordering::Relaxed);
            }
        };
        one_role(engagement, at, role, began).map_err(fail).ok()
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
        Some(stopped) => Err(stopped),
        None => Ok(reports.into_iter().flatten().collect()),
    }
}

fn one_role(
    engagement: &Engagement<'_>,
    at: At<'_>,
    role: &Role,
    began: &Mutex<bool>,
) -> Result<Report, Stopped> {
    let (plan, stop) = (at.plan, engagement.stop);
    let part = Part {
        plan,
        me: role.me,
        identity: at.identity,
        port: at.port,
        neighbours: &role.neighbours,
        net: engagement.net,
        stop: stop.flag(),
    };
    let connections = part.meet(engagement.wait).map_err(|error| {
        if stop.asked() {
            return Stopped::Failed(Failure::stopped());
        }
        match at.stages.disagree(at.stage, &error) {
            Some(other) => Stopped::Disagree(other),
            None => Stopped::Failed(Failure::setup(plan, &error)),
        }
    })?;
    {
        // Once for all roles: it is one run.
        let mut began = began.lock().unwrap_or_else(PoisonError::into_inner);
        if !*began {
            engagement.consent(Some(at))?;
            *began = true;
        }
    }
    (engagement.say)(&format!("connected as {}", prepare::role(role.me)));
    let settings = Settings {
        timeout: engagement.timeout,
        // What is written down is the stage that computes.
        trace: engagement
            .trace
            .clone()
            .filter(|_| at.stage != Stage::Input),
        ..Settings::default()
    };
    let data = Data {
        stored: role.shares.stored.clone(),
        keeps: role.shares.keeps.clone(),
        ..prepare::data(role.source.clone(), role.sink.as_ref())
    };
    let ran = part.run(
        connections,
        &settings,
        data,
        &|link| link,
        engagement.progress,
    );
    ran.map_err(|abort| {
        let failure = Failure::abort(plan, role.me, &abort);
        if stop.asked() {
            Stopped::Failed(Failure::stopped())
        } else if engagement.again && at.stages.may_repeat(at.stage, &abort) {
            Stopped::Interrupted(failure)
        } else {
            Stopped::Failed(failure)
        }
    })
}

/// Puts the receipt beside a result, and says in the log that it is there.
fn write_receipt(
    engagement: &Engagement<'_>,
    at: At<'_>,
    role: &Role,
    report: &Report,
    started: Time,
) -> Result<(), Failure> {
    let (plan, out) = (at.plan, engagement.out);
    let keys = |peer: Peer| match role.neighbours.pins.get(&peer) {
        Some(pin) => Some(*pin),
        None => (peer == role.me).then(|| at.identity.fingerprint()),
    };
    let protocol = Replicated::new(Arc::clone(plan), role.me);
    let names: Vec<PathBuf> = prepare::results(engagement.job, role.me)
        .into_iter()
        .filter(|name| out.join(name).is_file())
        .collect();
    let trace = Some(report.trace.to_string());
    let mut receipt = Receipt::new(plan, &protocol, role.me, &keys, false, started);
    receipt.without = at.stages.without(at.stage);
    receipt.write(out, &names, trace.clone()).map_err(|error| {
        let message = format!(
            "the result is there, and its {} is not: {error}",
            receipt::NAME
        );
        Failure::new(Code::Other, message)
    })?;
    engagement.home.log().append(Event::ResultPublished {
        plan: Event::plan(engagement.plan.hash),
        job: engagement.plan.job.name.clone(),
        trace,
        files: names.len() as u64,
    })?;
    Ok(())
}
