//! One participant of a deployment in the foreground: its stages, one after the other.

mod engagement;
mod lobby;
mod owner;
mod roles;

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use veil_link::tls::{Identity, Port};
use veil_node::Time;
use veil_node::log::Event;
use veil_node::meeting::HeldFor;
use veil_node::participant;
use veil_node::stages::{self, Shelf, Stage, Stages};
use veil_protocol::Plan;

pub(crate) use engagement::Engagement;
use lobby::Lobby;
use owner::Owner;
use roles::{Role, Stopped};

use crate::failure::{Code, Failure};
use crate::launch::{Answer, Outcome, Took};
use crate::output::Folders;
use crate::{peak, prepare};

/// One stage of the job, as this participant takes part in it.
#[derive(Clone, Copy)]
struct At<'a> {
    stages: &'a Stages,
    stage: Stage,
    plan: &'a Arc<Plan>,
    port: Option<&'a Port>,
    identity: &'a Identity,
}

/// An owner whose values a party says to have keeps calling for so long, if not all do: they may find out that one of them has not.
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
    let consents = engagement.consent(&stages, None);
    consents.inspect_err(|_| engagement.held(HeldFor::Approval))?;
    let (port, agreed) = (OnceCell::new(), OnceCell::new());
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
        let (stage, stage_plan) = (at.stage, at.plan);
        let reach = || {
            // Jobs that garble have one stage; the plans of others are those of their stages.
            let (plan, _) = if let Some(agreed) = agreed.get() {
                agreed
            } else {
                let found = engagement.agreed(until)?;
                agreed.get_or_init(|| found)
            };
            let port = if let Some(port) = port.get() {
                port
            } else {
                let open = engagement.open(&mine, plan)?;
                port.get_or_init(|| open)
            };
            let whole = stage == Stage::Whole;
            Ok((if whole { plan } else { stage_plan }, port.as_ref()))
        };
        match one_stage(engagement, at, &shelf, until, &reach)? {
            Ended::Done(done) => {
                let known = |took: &Took| done.participants.iter().any(|new| new.role == took.role);
                outcome.participants.retain(|took| !known(took));
                outcome.participants.extend(done.participants);
                outcome.answers.extend(done.answers);
                outcome.ordered = agreed.get().and_then(|(_, ordered)| ordered.clone());
                if last {
                    shelf.forget()?;
                    return Ok(outcome);
                }
                at.stage = Stage::Compute;
                failures = 0;
            }
            Ended::Interrupted(failure) => {
                let (pause, most) = stages.pause(failures);
                let Some(pause) = pause else {
                    return Err(failure);
                };
                failures += 1;
                let seconds = pause.as_secs();
                say(&format!(
                    "{}; again in {seconds} s, attempt {failures} of {most}",
                    failure.in_a_line()
                ));
                engagement.rest(pause)?;
                if party.is_some() {
                    at.stage = shelf.stage()?.0;
                } else if last && stages.are_guaranteed() {
                    let now = stages::now(home, &stages);
                    at.stage = moved(&stages, at.stage, now.unwrap_or(at.stage), say);
                }
            }
            Ended::Disagreed(why) => {
                say(&why);
                shelf.forget()?;
                at.stage = Stage::Input;
                thread::sleep(PAUSE);
            }
            Ended::Moved(stage) => at.stage = moved(&stages, at.stage, stage, say),
            Ended::NotAsked => {
                say("the parties have kept the inputs: this owner's data are not asked for again");
                at.stage = Stage::Compute;
            }
        }
    }
}

/// Says it, if the parties go on without one of them, or without another one than before.
fn moved(stages: &Stages, from: Stage, to: Stage, say: &dyn Fn(&str)) -> Stage {
    if let Some(out) = stages.without(to).filter(|_| from != to) {
        say(&format!("the other parties finish without `{out}`"));
    }
    to
}

fn disagreed(why: &str) -> Failure {
    let message = format!("the parties do not agree on how the job goes on: {why}");
    Failure::new(Code::Link, message)
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
    /// The parties go on at this stage.
    Moved(Stage),
}

/// Takes part in one stage. `reach` gives the plan that runs and the port on which a party is reached, once this side's data are checked.
fn one_stage<'a>(
    engagement: &Engagement<'_>,
    mut at: At<'a>,
    shelf: &Shelf<'_>,
    until: Instant,
    reach: &dyn Fn() -> Result<(&'a Arc<Plan>, Option<&'a Port>), Failure>,
) -> Result<Ended, Failure> {
    let Engagement { home, job, out, .. } = *engagement;
    let members = home.members();
    // Before the sinks, so that it is dropped after them: a folder is removed when it is empty.
    let mut folders = Folders::new();
    let mut ready = Vec::new();
    for me in participant::roles(at.plan, &home.settings().name)? {
        let neighbours = at.stages.neighbours(at.stage, me, &members)?;
        let supplies = prepare::supplies(at.plan, me);
        let (mut source, mut read) = (None, Vec::new());
        if let Some(holder) = prepare::holder(job, me).filter(|_| supplies) {
            let brings = home.reading(job, || job.source(holder));
            let (brings, of) = brings.inspect_err(|_| engagement.held(HeldFor::Data))?;
            (source, read) = (Some(Arc::from(brings)), of);
        }
        let shares = shelf.ends(at.stage)?;
        let mut sink = None;
        if prepare::receives(at.plan, me) {
            let made = folders.make(out).and_then(|()| {
                let finished = at.stages.finished(at.stage);
                prepare::sink(job, me, out, finished)
            });
            sink = Some(made.inspect_err(|_| engagement.held(HeldFor::Disk))?);
        }
        ready.push(Role {
            me,
            neighbours,
            source: source.or_else(|| shares.source.clone()),
            read,
            sink,
            shares,
        });
    }
    (at.plan, at.port) = reach()?;
    let lobby = Lobby::new(engagement, at.plan);
    let start = Instant::now();
    let started = Time::now();
    let began = Mutex::new(false);
    engagement.opened.store(false, Ordering::Relaxed);
    let is_party = ready.iter().any(|role| role.me.party().is_some());
    let owner = (at.stage == Stage::Input && !is_party).then(|| Owner::new(engagement, at));
    let has_begun = || *began.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = loop {
        let all = |halt: &AtomicBool| roles::all(engagement, at, &ready, &lobby, &began, halt);
        let ran = match &owner {
            Some(owner) => owner.unless_over(&has_begun, all),
            None => Some(all(engagement.stop.flag())),
        };
        let Some(ran) = ran else {
            return Ok(Ended::NotAsked);
        };
        match (ran, &owner) {
            (Err(Stopped::Disagree(other)), _) if is_party => {
                return Ok(Ended::Disagreed(other.why));
            }
            // An owner's part is over, if no party comes for it any more.
            (Err(Stopped::Disagree(other)), Some(owner)) => {
                let late = Instant::now() >= until;
                if (late || start.elapsed() >= LINGER) && owner.is_wanted_by_nobody(ready.first()) {
                    return Ok(Ended::NotAsked);
                }
                if late && start.elapsed() >= engagement.wait {
                    return Err(disagreed(&other.why));
                }
                engagement.rest(PAUSE)?;
            }
            (Err(Stopped::Unmet(_)), Some(owner)) if owner.is_over() => {
                return Ok(Ended::NotAsked);
            }
            (Err(Stopped::Unmet(failure)), _) if is_party => break Err((failure, false)),
            (Err(stopped @ (Stopped::Disagree(_) | Stopped::Unmet(_))), None) => {
                // It believes two of the parties, or a verdict, and not the one that says so first.
                match (stages::now(home, at.stages), stopped) {
                    (Some(stage), _) if stage != at.stage => return Ok(Ended::Moved(stage)),
                    (_, Stopped::Disagree(other)) if start.elapsed() >= engagement.wait => {
                        return Err(disagreed(&other.why));
                    }
                    (_, Stopped::Unmet(failure)) if start.elapsed() >= engagement.wait => {
                        break Err((failure, false));
                    }
                    _ => engagement.rest(PAUSE)?,
                }
            }
            (Err(Stopped::Unmet(failure)), Some(_)) | (Err(Stopped::Failed(failure)), _) => {
                break Err((failure, false));
            }
            (Err(Stopped::Interrupted(failure)), _) => break Err((failure, true)),
            (Ok(reports), _) => break Ok(reports),
        }
    };
    if has_begun() {
        let trace = ran.as_ref().ok().and_then(|reports| reports.first());
        home.log().append(Event::RunEnded {
            plan: Event::plan(engagement.plan.hash),
            job: at.plan.job.name.clone(),
            stage: at.stage.name().to_owned(),
            opened: engagement.opened.load(Ordering::Relaxed),
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
        outcome.participants.push(Took {
            peak_bytes: peak::bytes(),
            ..Took::new(at.plan, role.me, &report, engagement.devices)
        });
        if let Some(sink) = &role.sink {
            roles::write_receipt(engagement, at, role, &report, started)?;
            let answer = Answer::new(at.plan, role.me, Some(out.to_owned()), sink);
            outcome.answers.extend(answer);
        }
    }
    folders.keep();
    Ok(Ended::Done(outcome))
}
