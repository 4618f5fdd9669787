//! One job of a service, in its own thread: its runs, one after the other, until it is done or given up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tracing::field::Empty;
use veil_engine::TraceId;
use veil_runtime::{As, Course, Ended, Heard, Participant, RunError, Stage, Step};
use veil_session::PlanHash;

use super::attempt::{Position, attempt, begin, forget, rest};
use super::attendance::{Closes, Seen, enough};
use super::ended::{Failed, GivenUp, explain};
use super::handler::{Consent, MEETINGS};
use super::said::{NO_MEMORY, NOT_HERE, OWN_FILES, public_reason};
use super::{News, ServiceState};
use crate::control::{Reply, Request};
use crate::jobs::{Entry, State, Status, Why};
use crate::log::Event;
use crate::planner::{Planned, Prepared};
use crate::stages::{self, ANSWER, ask_all};

/// Room for planning and for what an engine does in the thread of its caller; lanes have threads of their own.
const STACK: usize = 2 << 20;

/// Of a job that may run, and has no place to be met.
const MANY: &str = "it may run, and as many jobs are met at this party as may be: it is met when one of them is over";

/// Starts a job, if it may run now.
pub(super) fn make_ready(shared: &Arc<ServiceState>, plan: PlanHash) -> Option<JoinHandle<()>> {
    let known = |entry: &mut Entry| (entry.asked_by.clone(), Arc::clone(&entry.planned));
    let (asked_by, planned) = shared.jobs.with(plan, known)?;
    match shared.consent(&planned, asked_by.as_deref(), Consent::Look) {
        decision if decision.allows() => {}
        decision if decision.refuses() => {
            shared.note_refusal(&planned, asked_by.as_deref(), &decision);
            shared
                .jobs
                .set(plan, State::Refused, Some(public_reason(&decision)));
            return None;
        }
        decision => {
            shared
                .jobs
                .keep(plan, State::Pending, &public_reason(&decision));
            return None;
        }
    }
    if let Err(why) = shared.may_take(&planned, asked_by.as_deref()) {
        let why = Why::all(why);
        shared.jobs.set(plan, State::Refused, Some(why));
        return None;
    }
    if let Some(options) = shared.unbound(plan, &planned) {
        let here = format!(
            "its own data are not bound: `veil approve {} {options}` says where they are",
            &Event::plan(plan)[..16]
        );
        let why = Why::apart(OWN_FILES, here);
        shared.jobs.keep(plan, State::Pending, &why);
        return None;
    }
    let [all, own] = shared.jobs.active(asked_by.as_deref());
    if own >= shared.meetings(asked_by.as_deref()) || all >= MEETINGS {
        shared.jobs.keep(plan, State::Pending, &Why::all(MANY));
        return None;
    }
    let claim = shared.claim(plan, &planned, asked_by.as_deref());
    if let Err(why) = shared
        .slots
        .may_reserve(&claim, planned.held, shared.shares())
    {
        shared
            .jobs
            .keep(plan, State::Pending, &Why::apart(NO_MEMORY, why));
        return None;
    }
    let stop = Arc::new(AtomicBool::new(false));
    shared.jobs.with(plan, |entry| {
        entry.stop = Arc::clone(&stop);
        entry.clear_stop();
        entry.spent = false;
        // Nothing is left of a run before it.
        let Status {
            phase,
            rows,
            sent,
            received,
            trace,
            ..
        } = &mut entry.status;
        (*phase, *rows, *sent, *received, *trace) = (None, 0, 0, 0, None);
    });
    shared.jobs.set(plan, State::Meeting, None);
    // Jobs come first, however short they are.
    shared.refills.stop();
    let running = Arc::clone(shared);
    let started = thread::Builder::new()
        .name(format!("job {plan}"))
        .stack_size(STACK)
        .spawn(move || {
            let ran = catch_unwind(AssertUnwindSafe(|| {
                with_plan(&running, plan, (asked_by.as_deref(), &planned), &stop);
            }));
            if ran.is_err() {
                let why =
                    "it ended by a defect of this program; please report what its log lines say";
                running.jobs.set(plan, State::Failed, Some(Why::all(why)));
            }
            // The deciding thread looks often enough without it.
            let _ = running.events.try_send(News::Over);
        });
    match started {
        Ok(thread) => Some(thread),
        Err(error) => {
            let why = Why::apart(NOT_HERE, format!("no thread can be started: {error}"));
            shared.jobs.set(plan, State::Failed, Some(why));
            None
        }
    }
}

/// Plans a job that may run, once there is room for its plans, and runs it.
fn with_plan(
    shared: &ServiceState,
    plan: PlanHash,
    (asked_by, planned): (Option<&str>, &Planned),
    stop: &AtomicBool,
) {
    let claim = shared.claim(plan, planned, asked_by);
    let _held = match shared.slots.reserve(&claim, planned.held, shared.shares()) {
        Ok(held) => held,
        Err(why) => {
            return shared
                .jobs
                .keep(plan, State::Pending, &Why::apart(NO_MEMORY, why));
        }
    };
    let (mut prepared, filed) = match shared.filed(plan) {
        Ok(filed) => filed,
        Err(why) => {
            tracing::error!(%plan, why, "a filed job cannot be used");
            let why = Why::apart(NOT_HERE, why);
            return shared.jobs.set(plan, State::Failed, Some(why));
        }
    };
    match filed.align_key() {
        Ok(Some(key)) => prepared.job.set_align_key(key),
        Ok(None) => {}
        Err(error) => {
            tracing::error!(%plan, %error, "an approved job cannot run");
            let why = Why::apart(OWN_FILES, error.to_string());
            return shared.jobs.set(plan, State::Failed, Some(why));
        }
    }
    whole(shared, &prepared, asked_by, stop);
}

/// From the first call to the last word: one run, or the stages of a durable job, as the machine of a participant has it.
fn whole(shared: &ServiceState, prepared: &Prepared, asked_by: Option<&str>, stop: &AtomicBool) {
    let job = prepared.plan.hash;
    let _closes = Closes(shared, job);
    let course = Course {
        me: As::Party { serves: true },
        two: prepared.stages.are_two(),
        guaranteed: prepared.stages.are_guaranteed(),
        wait: shared.wait(),
    };
    let (mut me, mut step) = Participant::<GivenUp>::new(course, Instant::now());
    let mut position = None;
    let mut before = None;
    loop {
        let heard = match step {
            Step::AskDone => Heard::Yes(done_without_us(shared, prepared, &mut position)),
            Step::Locate => match located(shared, prepared) {
                Ok(found) => {
                    let stage = found.stage;
                    position = Some(found);
                    Heard::At(stage)
                }
                Err(given) => Heard::failed(given),
            },
            Step::Run(_) => match &position {
                Some(position) => {
                    one_run(shared, prepared, position, (asked_by, before.take()), stop)
                }
                None => Heard::Ready,
            },
            Step::Forget => {
                if let Some(position) = &position {
                    forget(&position.stage_store);
                }
                shared
                    .jobs
                    .with(job, |entry| entry.status.kept = Some(false));
                Heard::Ready
            }
            Step::Rest {
                pause,
                attempt,
                why,
            } => {
                let seconds = pause.as_secs();
                let (attempt, of) = attempt.unwrap_or_default();
                tracing::info!(plan = %job, attempt, of, seconds, "armed again");
                if let Some(given) = why {
                    let why = given.says_with(&format!("again in {seconds} s: "));
                    shared.jobs.set(job, State::Meeting, Some(why));
                    before = Some(given.why);
                }
                stages::nap(pause, stop);
                Heard::Ready
            }
            Step::Finished => return shared.jobs.set(job, State::Done, None),
            Step::GivenUp(given) => {
                return give_up(shared, prepared, given.failure, given.again.is_some());
            }
            // Its data are made ready with the run, and no guest's questions are a party's.
            Step::Prepare(..) | Step::AskKept | Step::AskWanted | Step::AskStage => Heard::Ready,
        };
        step = me.next(heard, Instant::now());
    }
}

/// The job is given up here; `again`: another attempt would have followed, if fewer had failed.
fn give_up(shared: &ServiceState, prepared: &Prepared, given: Option<GivenUp>, again: bool) {
    let job = prepared.plan.hash;
    let given = given.unwrap_or_else(GivenUp::gone);
    let why = given.says_with("");
    shared.holds_up(&prepared.plan, &given.why);
    shared.jobs.set(job, given.state, Some(why));
    if again && prepared.stages.are_guaranteed() {
        // Parties go on by themselves for so long and no longer, whichever of them asks.
        shared.jobs.with(job, |entry| entry.spent = true);
    }
}

/// Where this party is in the job, and what it says of that.
fn located<'a>(shared: &ServiceState, prepared: &'a Prepared) -> Result<Position<'a>, GivenUp> {
    let position = begin(shared, prepared).map_err(|why| {
        let (code, given) = explain(shared, prepared, None, &Failed::Here(why));
        tracing::warn!(code, why = given.logged(), "given up");
        shared.metrics.ended(code);
        given
    })?;
    if prepared.stages.are_two() {
        let kept = position.stage != Stage::Input;
        shared
            .jobs
            .with(prepared.plan.hash, |entry| entry.status.kept = Some(kept));
    }
    Ok(position)
}

/// Whether the other parties have finished the job while this one was away with the inputs it has kept: what is left is to remove them.
/// Those that have not are told that this party goes on. Where one of them may lie and the output is guaranteed, two have to say so.
fn done_without_us<'a>(
    shared: &ServiceState,
    prepared: &'a Prepared,
    position: &mut Option<Position<'a>>,
) -> bool {
    let plan = prepared.plan.hash;
    // Why a stage cannot begin is said when it does.
    *position = begin(shared, prepared).ok();
    let stage = position.as_ref().map(|position| position.stage);
    if !matches!(stage, Some(Stage::Compute | Stage::Finish(_))) {
        return false;
    }
    let (identity, members) = (shared.home.identity(), shared.home.members());
    let request = Request::GoOn {
        plan: Event::plan(plan),
    };
    let done = |reply| match reply {
        // A party that is away, or knows nothing of the job, is met or not.
        Ok(Reply::Jobs { jobs }) => jobs
            .iter()
            .any(|job| job.plan == Event::plan(plan) && job.state == State::Done),
        _ => false,
    };
    let names = || prepared.plan.job.parties.iter().map(String::as_str);
    let replies = ask_all(&identity, &members, names(), &request, ANSWER).into_iter();
    let said: Vec<&str> = names()
        .zip(replies)
        .filter_map(|(name, reply)| done(reply).then_some(name))
        .collect();
    if said.len() < enough(prepared.stages.are_guaranteed()) {
        return false;
    }
    let by = said.join(", ");
    tracing::info!(%plan, by, "the job was finished without this party: the inputs that it kept are removed");
    true
}

/// One run of the job, at the stage at which this party is.
fn one_run(
    shared: &ServiceState,
    prepared: &Prepared,
    position: &Position<'_>,
    (asked_by, before): (Option<&str>, Option<String>),
    stop: &AtomicBool,
) -> Heard<GivenUp> {
    let (job, stages, stage) = (prepared.plan.hash, &prepared.stages, position.stage);
    let name = &prepared.plan.job.name;
    let span = tracing::info_span!("job", plan = %job, name = %name, stage = Empty, trace = Empty);
    let _entered = span.enter();
    let start = Instant::now();
    shared.jobs.with(job, |entry| entry.opened = false);
    if stages.are_two() {
        span.record("stage", stage.name());
    }
    let ended = if position.is_left_out() {
        Err((false, rest(shared, prepared, position, stop)))
    } else {
        attempt(shared, prepared, position, (asked_by, before), stop, &span)
    };
    let void = void(prepared, position, &ended);
    if let Err((_, Failed::Seen(Seen::Over))) = &ended {
        tracing::info!(
            "two others have finished the job: the inputs that this party kept are removed"
        );
        let ended = Ended::Done;
        return Heard::Ended { ended, void };
    }
    let began = !matches!(ended, Err((false, _)));
    let trace = ended.as_ref().ok().map(|report| report.trace);
    let ended = ended.map_err(|(_, failed)| failed);
    let (code, ended) = match ended {
        Ok(report) => {
            let (seconds, sent) = (report.elapsed.as_secs_f64(), report.meters.payload_sent);
            tracing::info!(seconds, sent, "done");
            shared.metrics.done(&report, prepared.plan.lanes);
            ("done", Ended::Done)
        }
        Err(failed) => {
            let (code, given) = explain(shared, prepared, Some(position), &failed);
            tracing::warn!(code, why = given.logged(), "given up");
            shared.metrics.ended(code);
            let again = given.again.filter(|_| !stop.load(Ordering::Relaxed));
            let ended = match again {
                Some(again) => Ended::Again(again, given),
                None => Ended::Failed(given),
            };
            (code, ended)
        }
    };
    if began {
        let known = shared.jobs.with(job, |entry| entry.status.trace.clone());
        let trace = trace.map(|trace: TraceId| trace.to_string());
        shared.record(Event::RunEnded {
            plan: Event::plan(job),
            job: stages.plan(stage).job.name.clone(),
            stage: stage.name().to_owned(),
            opened: shared.jobs.with(job, |entry| entry.opened).unwrap_or(true),
            trace: trace.or(known.flatten()),
            cause: code.to_owned(),
            seconds: start.elapsed().as_secs(),
        });
    }
    Heard::Ended { ended, void }
}

/// Whether the inputs that are kept are of no use any more.
fn void<T>(
    prepared: &Prepared,
    position: &Position<'_>,
    ended: &Result<T, (bool, Failed)>,
) -> bool {
    let (stages, stage) = (&prepared.stages, position.stage);
    match ended {
        // Where one of them may lie and the output is guaranteed, no single party is believed.
        Err((_, Failed::Run(RunError::Setup(error)))) if !stages.are_guaranteed() => {
            let other = stages.disagree(stage, error).map(|other| other.theirs);
            other.is_some_and(|theirs| [stage, theirs].contains(&Stage::Input))
        }
        Err((_, Failed::Seen(Seen::Out(out)))) => position.party == *out && position.view.is_none(),
        Err((_, Failed::Seen(Seen::Lost | Seen::Over))) => true,
        // When the job is done the machine removes them.
        Ok(_) | Err(_) => false,
    }
}
