//! One participant of a deployment in the foreground: its stages, one after the other.

mod engagement;
mod lobby;
mod owner;
mod roles;

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use veil_engine::Report;
use veil_link::tls::{Identity, Port};
use veil_node::Time;
use veil_node::log::Event;
use veil_node::meeting::HeldFor;
use veil_node::stages::{self, StageStore};
use veil_program::Sources;
use veil_runtime::{
    Again, As, Because, Course, Ended, Heard, Participant, Passes, Stage, Stages, Step,
};

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
    plan: &'a Passes,
    port: Option<&'a Port>,
    identity: &'a Identity,
}

/// Takes part. Everything that can be checked on this machine is checked before any connect request.
pub(crate) fn run(engagement: &Engagement<'_>) -> Result<Outcome, Failure> {
    let Engagement {
        home,
        job,
        plan,
        say,
        ..
    } = *engagement;
    let name = &home.settings().name;
    let mine = veil_runtime::roles(plan, name)?;
    let stages = veil_node::stages::of(job, plan)?;
    let party = mine.iter().find_map(|me| me.party());
    if party.is_some() && stages.are_guaranteed() {
        let message = "a party of a job whose output is guaranteed answers the others for as long as the job is there, and this command does not";
        return Err(Failure::new(Code::Input, message)
            .help("run `veil serve` at every party, or write `delivery = \"abort\"`"));
    }
    let stage_store = engagement.stage_store(&stages)?;
    let consents = engagement.consent(&stages, None);
    consents.inspect_err(|_| engagement.held(HeldFor::Approval))?;
    let takes_part = |stage| {
        let plan = stages.plan(stage);
        let mut peers = veil_engine::participants(plan).into_iter();
        peers.any(|peer| veil_engine::name_of(plan, peer) == *name)
    };
    let course = Course {
        me: match party {
            Some(_) => As::Party { serves: false },
            None => As::Guest {
                input: takes_part(Stage::Input),
                compute: takes_part(Stage::Compute),
            },
        },
        two: stages.are_two(),
        guaranteed: stages.are_guaranteed(),
        wait: engagement.wait,
    };
    let (port, agreed) = (OnceCell::new(), OnceCell::new());
    let until = Instant::now() + engagement.wait;
    // The plan that runs and the port on which a party is reached, once this side's data are checked.
    let reach = |stage: Stage| {
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
        let plan = match stage {
            Stage::Whole => plan,
            _ => stages.plan(stage),
        };
        Ok::<_, Failure>((plan, port.as_ref()))
    };
    let identity = home.identity();
    let mut attendance = None;
    let mut outcome = Outcome::default();
    let (mut me, mut step) = Participant::<Failure>::new(course, Instant::now());
    loop {
        let heard = match step {
            Step::Locate => {
                let (stage, unusable) = stage_store.stage()?;
                if let Some(error) = unusable {
                    say(&format!("the inputs that are kept cannot be used: {error}"));
                }
                Heard::At(stage)
            }
            Step::Prepare(stage, because) => {
                say_why(&stages, (stage, because), party.is_some(), say);
                // What the stage before held is let go first.
                drop(attendance.take());
                let at = At {
                    stages: &stages,
                    stage,
                    plan: stages.plan(stage),
                    port: None,
                    identity: &identity,
                };
                attendance = Some(Attendance::new(engagement, at, &stage_store, &reach)?);
                Heard::Ready
            }
            Step::Run(_) => match &mut attendance {
                Some(attendance) => attendance.run(&mut outcome)?,
                None => Heard::Ready,
            },
            Step::AskKept => Heard::Yes(asked(attendance.as_ref(), Owner::is_over)),
            Step::AskWanted => {
                let first = attendance.as_ref().and_then(|here| here.ready.first());
                let over = |owner: &Owner<'_>| owner.is_wanted_by_no_party(first);
                Heard::Yes(asked(attendance.as_ref(), over))
            }
            Step::AskStage => Heard::Parties(stages::now(home, &stages)),
            Step::Rest {
                pause,
                attempt,
                why,
            } => {
                if let (Some(failure), Some((attempt, of))) = (why, attempt) {
                    let (why, seconds) = (failure.in_a_line(), pause.as_secs());
                    say(&format!(
                        "{why}; again in {seconds} s, attempt {attempt} of {of}"
                    ));
                }
                engagement.rest(pause)?;
                Heard::Ready
            }
            Step::Forget => {
                stage_store.forget()?;
                Heard::Ready
            }
            Step::Finished => {
                if me.because() == Because::Kept {
                    say(NOT_ASKED);
                }
                outcome.ordered = agreed.get().and_then(|(_, ordered)| ordered.clone());
                return Ok(outcome);
            }
            Step::GivenUp(given) => return Err(given.failure.unwrap_or_else(gone)),
            // Parties in the foreground answer no questions, and ask none.
            Step::AskDone => Heard::Yes(false),
        };
        step = me.next(heard, Instant::now());
    }
}

/// To an owner whose part is over.
const NOT_ASKED: &str =
    "the parties have kept the inputs: this owner's data are not asked for again";

/// Says why the job goes on at a stage, where that is news.
fn say_why(
    stages: &Stages,
    (stage, because): (Stage, Because),
    is_party: bool,
    say: &dyn Fn(&str),
) {
    if because == Because::Kept {
        say(NOT_ASKED);
    }
    if let (Because::Moved, Some(out)) = (because, stages.without(stage)) {
        say(&format!("the other parties finish without `{out}`"));
    }
    if let Some(awaits) = stages.awaits(stage).filter(|_| is_party) {
        say(&awaits);
    }
}

fn disagreed(why: &str) -> Failure {
    let message = format!("the parties do not agree on how the job goes on: {why}");
    Failure::new(Code::Link, message)
}

/// The inputs were kept, and cannot be read again.
fn gone() -> Failure {
    let message = "the inputs were kept, and are gone when the next stage is to begin";
    Failure::new(Code::Input, message)
        .help("`veil shares list` shows what is there; run the job again")
}

/// The answer of the parties to an owner; no, for others.
fn asked<'a>(here: Option<&Attendance<'a>>, ask: impl FnOnce(&Owner<'a>) -> bool) -> bool {
    here.and_then(|here| here.owner.as_ref()).is_some_and(ask)
}

/// A participant at one stage, with what it brings and takes.
struct Attendance<'a> {
    engagement: &'a Engagement<'a>,
    at: At<'a>,
    ready: Vec<Role>,
    lobby: Lobby<'a>,
    owner: Option<Owner<'a>>,
    /// Whether the run has begun.
    began: Mutex<bool>,
    start: Instant,
    started: Time,
    /// Dropped after the sinks: a folder is removed when it is empty.
    folders: Folders,
}

/// The plan that runs, and the port on which a party is reached.
type Reach<'a> = dyn Fn(Stage) -> Result<(&'a Passes, Option<&'a Port>), Failure> + 'a;

impl<'a> Attendance<'a> {
    /// Makes ready what this participant brings and takes; then it can be reached.
    fn new(
        engagement: &'a Engagement<'a>,
        mut at: At<'a>,
        stage_store: &StageStore<'_>,
        reach: &Reach<'a>,
    ) -> Result<Self, Failure> {
        let Engagement { home, job, out, .. } = *engagement;
        let members = home.members();
        let mut folders = Folders::new();
        let mut ready = Vec::new();
        for me in veil_runtime::roles(at.plan, &home.settings().name)? {
            let neighbours = at.stages.neighbours(at.stage, me, &*members)?;
            let supplies = prepare::supplies(at.plan, me);
            let (mut sources, mut read) = (Sources::new(), Vec::new());
            if let Some(holder) = prepare::holder(job, me).filter(|_| supplies) {
                let brings = home.reading(job, || job.sources(holder));
                let (brings, of) = brings.inspect_err(|_| engagement.held(HeldFor::Data))?;
                (sources, read) = (brings, of);
            }
            let room = engagement.room.of(at.plan, me, engagement.link);
            let room = room.inspect_err(|_| engagement.held(HeldFor::Disk))?;
            let shares = stage_store.ends(at.stage)?;
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
                sources: if sources.is_empty() {
                    let own = shares.source.iter();
                    own.map(|own| (0, Arc::clone(own))).collect()
                } else {
                    sources
                },
                read,
                sink,
                shares,
                room,
            });
        }
        (at.plan, at.port) = reach(at.stage)?;
        let is_party = ready.iter().any(|role| role.me.party().is_some());
        engagement.opened.store(false, Ordering::Relaxed);
        Ok(Attendance {
            engagement,
            at,
            ready,
            lobby: Lobby::new(engagement, at.plan),
            owner: (at.stage == Stage::Input && !is_party).then(|| Owner::new(engagement, at)),
            began: Mutex::new(false),
            start: Instant::now(),
            started: Time::now(),
            folders,
        })
    }

    fn has_begun(&self) -> bool {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Meets the others and runs; what came of it is added to `outcome`.
    fn run(&mut self, outcome: &mut Outcome) -> Result<Heard<Failure>, Failure> {
        let (engagement, at) = (self.engagement, self.at);
        let all = |halt: &AtomicBool| {
            roles::all(engagement, at, &self.ready, &self.lobby, &self.began, halt)
        };
        let ran = match &self.owner {
            Some(owner) => owner.unless_over(&|| self.has_begun(), all),
            None => Some(all(engagement.stop.flag())),
        };
        let Some(ran) = ran else {
            let (ended, void) = (Ended::Kept, false);
            return Ok(Heard::Ended { ended, void });
        };
        let is_party = self.ready.iter().any(|role| role.me.party().is_some());
        let void = is_party && matches!(ran, Err(Stopped::Disagree(_)));
        let ran = ran.map_err(|stopped| match stopped {
            Stopped::Disagree(other) => (Some(Again::Disagreed), disagreed(&other.why)),
            Stopped::Unmet(failure) => (Some(Again::Unmet).filter(|_| !is_party), failure),
            Stopped::Interrupted(failure) => (Some(Again::Interrupted), failure),
            Stopped::Failed(failure) => (None, failure),
        });
        if self.has_begun() {
            let trace = ran.as_ref().ok().and_then(|reports| reports.first());
            engagement.home.log().append(Event::RunEnded {
                plan: Event::plan(engagement.plan.hash),
                job: at.plan.job.name.clone(),
                stage: at.stage.name().to_owned(),
                opened: engagement.opened.load(Ordering::Relaxed),
                trace: trace.map(|report| report.trace.to_string()),
                cause: ran
                    .as_ref()
                    .map_or_else(|(_, failure)| failure.cause(), |_| "done")
                    .to_owned(),
                seconds: self.start.elapsed().as_secs(),
            })?;
        }
        let ended = match ran {
            Ok(reports) => {
                self.done(&reports, outcome)?;
                Ended::Done
            }
            Err((Some(again), failure)) => Ended::Again(again, failure),
            Err((None, failure)) => Ended::Failed(failure),
        };
        Ok(Heard::Ended { ended, void })
    }

    /// Writes receipts, and adds what the stage took and gave to `outcome`, in the place of what an earlier stage took in the same role.
    fn done(&mut self, reports: &[Report], outcome: &mut Outcome) -> Result<(), Failure> {
        let (engagement, at) = (self.engagement, self.at);
        for (role, report) in self.ready.iter().zip(reports) {
            let took = Took {
                peak_bytes: peak::bytes(),
                ..Took::new(at.plan, role.me, report, engagement.devices)
            };
            outcome.participants.retain(|known| known.role != took.role);
            outcome.participants.push(took);
            if let Some(sink) = &role.sink {
                roles::write_receipt(engagement, at, role, report, self.started)?;
                let out = Some(engagement.out.to_owned());
                outcome
                    .answers
                    .extend(Answer::new(at.plan, role.me, out, sink));
            }
        }
        self.folders.keep();
        Ok(())
    }
}
