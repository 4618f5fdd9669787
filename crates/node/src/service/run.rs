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

use super::attempt::{Place, attempt, begin, forget, rest};
use super::door::{Consent, MEETINGS};
use super::ended::{Failed, GivenUp, explain};
use super::roll::{Closes, Seen, enough};
use super::said::{NO_MEMORY, NOT_HERE, OWN_FILES, public_reason};
use super::{Desk, News};
use crate::approvals::Decision;
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
pub(super) fn make_ready(desk: &Arc<Desk>, plan: PlanHash) -> Option<JoinHandle<()>> {
    let known = |entry: &mut Entry| (entry.asked_by.clone(), Arc::clone(&entry.planned));
    let (asked_by, planned) = desk.jobs.with(plan, known)?;
    match desk.consent(&planned, asked_by.as_deref(), Consent::Look) {
        decision if decision.allows() => {}
        decision @ Decision::Refused { .. } => {
            desk.note_refusal(&planned, asked_by.as_deref(), &decision);
            desk.jobs
                .set(plan, State::Refused, Some(public_reason(&decision)));
            return None;
        }
        decision => {
            desk.jobs
                .keep(plan, State::Pending, &public_reason(&decision));
            return None;
        }
    }
    if let Some(options) = desk.unbound(plan, &planned) {
        let here = format!(
            "its own data are not bound: `veil approve {} {options}` says where they are",
            &Event::plan(plan)[..16]
        );
        let why = Why::apart(OWN_FILES, here);
        desk.jobs.keep(plan, State::Pending, &why);
        return None;
    }
    let [all, own] = desk.jobs.active(asked_by.as_deref());
    if own >= desk.meetings(asked_by.as_deref()) || all >= MEETINGS {
        desk.jobs.keep(plan, State::Pending, &Why::all(MANY));
        return None;
    }
    let claim = desk.claim(plan, &planned, asked_by.as_deref());
    if let Err(why) = desk.places.may_hold(&claim, planned.held, desk.shares()) {
        desk.jobs
            .keep(plan, State::Pending, &Why::apart(NO_MEMORY, why));
        return None;
    }
    let stop = Arc::new(AtomicBool::new(false));
    desk.jobs.with(plan, |entry| {
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
    desk.jobs.set(plan, State::Meeting, None);
    let running = Arc::clone(desk);
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
            desk.jobs.set(plan, State::Failed, Some(why));
            None
        }
    }
}

/// Plans a job that may run, once there is room for its plans, and runs it.
fn with_plan(
    desk: &Desk,
    plan: PlanHash,
    (asked_by, planned): (Option<&str>, &Planned),
    stop: &AtomicBool,
) {
    let claim = desk.claim(plan, planned, asked_by);
    let _held = match desk.places.hold(&claim, planned.held, desk.shares()) {
        Ok(held) => held,
        Err(why) => {
            return desk
                .jobs
                .keep(plan, State::Pending, &Why::apart(NO_MEMORY, why));
        }
    };
    let (mut prepared, filed) = match desk.filed(plan) {
        Ok(filed) => filed,
        Err(why) => {
            tracing::error!(%plan, why, "a filed job cannot be used");
            let why = Why::apart(NOT_HERE, why);
            return desk.jobs.set(plan, State::Failed, Some(why));
        }
    };
    match filed.align_key() {
        Ok(Some(key)) => prepared.job.set_align_key(key),
        Ok(None) => {}
        Err(error) => {
            tracing::error!(%plan, %error, "an approved job cannot run");
            let why = Why::apart(OWN_FILES, error.to_string());
            return desk.jobs.set(plan, State::Failed, Some(why));
        }
    }
    whole(desk, &prepared, asked_by, stop);
}

/// From the first call to the last word: one run, or the stages of a durable job, as the machine of a participant has it.
fn whole(desk: &Desk, prepared: &Prepared, asked_by: Option<&str>, stop: &AtomicBool) {
    let job = prepared.plan.hash;
    let _closes = Closes(desk, job);
    let course = Course {
        me: As::Party { serves: true },
        two: prepared.stages.are_two(),
        guaranteed: prepared.stages.are_guaranteed(),
        wait: desk.wait(),
    };
    let (mut me, mut step) = Participant::<GivenUp>::new(course, Instant::now());
    let mut place = None;
    let mut before = None;
    loop {
        let heard = match step {
            Step::AskDone => Heard::Yes(done_without_us(desk, prepared, &mut place)),
            Step::Locate => match located(desk, prepared) {
                Ok(found) => {
                    let stage = found.stage;
                    place = Some(found);
                    Heard::At(stage)
                }
                Err(given) => Heard::failed(given),
            },
            Step::Run(_) => match &place {
                Some(place) => one_run(desk, prepared, place, (asked_by, before.take()), stop),
                None => Heard::Ready,
            },
            Step::Forget => {
                if let Some(place) = &place {
                    forget(&place.shelf);
                }
                desk.jobs.with(job, |entry| entry.status.kept = Some(false));
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
                    desk.jobs.set(job, State::Meeting, Some(why));
                    before = Some(given.why);
                }
                stages::nap(pause, stop);
                Heard::Ready
            }
            Step::Finished => return desk.jobs.set(job, State::Done, None),
            Step::GivenUp(given) => {
                return give_up(desk, prepared, given.failure, given.again.is_some());
            }
            // Its data are made ready with the run, and no guest's questions are a party's.
            Step::Prepare(..) | Step::AskKept | Step::AskWanted | Step::AskStage => Heard::Ready,
        };
        step = me.next(heard, Instant::now());
    }
}

/// The job is given up here; `again`: another attempt would have followed, if fewer had failed.
fn give_up(desk: &Desk, prepared: &Prepared, given: Option<GivenUp>, again: bool) {
    let job = prepared.plan.hash;
    let given = given.unwrap_or_else(GivenUp::gone);
    let why = given.says_with("");
    desk.holds_up(&prepared.plan, &given.why);
    desk.jobs.set(job, given.state, Some(why));
    if again && prepared.stages.are_guaranteed() {
        // Parties go on by themselves for so long and no longer, whichever of them asks.
        desk.jobs.with(job, |entry| entry.spent = true);
    }
}

/// Where this party is in the job, and what it says of that.
fn located<'a>(desk: &Desk, prepared: &'a Prepared) -> Result<Place<'a>, GivenUp> {
    let place = begin(desk, prepared).map_err(|why| {
        let (code, given) = explain(desk, prepared, None, &Failed::Here(why));
        tracing::warn!(code, why = given.logged(), "given up");
        desk.metrics.ended(code);
        given
    })?;
    if prepared.stages.are_two() {
        let kept = place.stage != Stage::Input;
        desk.jobs
            .with(prepared.plan.hash, |entry| entry.status.kept = Some(kept));
    }
    Ok(place)
}

/// Whether the other parties have finished the job while this one was away with the inputs it has kept: what is left is to remove them.
/// Those that have not are told that this party goes on. Where one of them may lie and the output is guaranteed, two have to say so.
fn done_without_us<'a>(desk: &Desk, prepared: &'a Prepared, place: &mut Option<Place<'a>>) -> bool {
    let plan = prepared.plan.hash;
    // Why a stage cannot begin is said when it does.
    *place = begin(desk, prepared).ok();
    let stage = place.as_ref().map(|place| place.stage);
    if !matches!(stage, Some(Stage::Compute | Stage::Finish(_))) {
        return false;
    }
    let (identity, members) = (desk.home.identity(), desk.home.members());
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
    desk: &Desk,
    prepared: &Prepared,
    place: &Place<'_>,
    (asked_by, before): (Option<&str>, Option<String>),
    stop: &AtomicBool,
) -> Heard<GivenUp> {
    let (job, stages, stage) = (prepared.plan.hash, &prepared.stages, place.stage);
    let name = &prepared.plan.job.name;
    let span = tracing::info_span!("job", plan = %job, name = %name, stage = Empty, trace = Empty);
    let _entered = span.enter();
    let start = Instant::now();
    desk.jobs.with(job, |entry| entry.opened = false);
    if stages.are_two() {
        span.record("stage", stage.name());
    }
    let ended = if place.is_left_out() {
        Err((false, rest(desk, prepared, place, stop)))
    } else {
        attempt(desk, prepared, place, (asked_by, before), stop, &span)
    };
    let void = void(prepared, place, &ended);
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
            desk.metrics.done(&report, prepared.plan.lanes);
            ("done", Ended::Done)
        }
        Err(failed) => {
            let (code, given) = explain(desk, prepared, Some(place), &failed);
            tracing::warn!(code, why = given.logged(), "given up");
            desk.metrics.ended(code);
            let again = given.again.filter(|_| !stop.load(Ordering::Relaxed));
            let ended = match again {
                Some(again) => Ended::Again(again, given),
                None => Ended::Failed(given),
            };
            (code, ended)
        }
    };
    if began {
        let known = desk.jobs.with(job, |entry| entry.status.trace.clone());
        let trace = trace.map(|trace: TraceId| trace.to_string());
        desk.record(Event::RunEnded {
            plan: Event::plan(job),
            job: stages.plan(stage).job.name.clone(),
            stage: stage.name().to_owned(),
            opened: desk.jobs.with(job, |entry| entry.opened).unwrap_or(true),
            trace: trace.or(known.flatten()),
            cause: code.to_owned(),
            seconds: start.elapsed().as_secs(),
        });
    }
    Heard::Ended { ended, void }
}

/// Whether the inputs that are kept are of no use any more.
fn void<T>(prepared: &Prepared, place: &Place<'_>, ended: &Result<T, (bool, Failed)>) -> bool {
    let (stages, stage) = (&prepared.stages, place.stage);
    match ended {
        // Where one of them may lie and the output is guaranteed, no single party is believed.
        Err((_, Failed::Run(RunError::Setup(error)))) if !stages.are_guaranteed() => {
            let other = stages.disagree(stage, error).map(|other| other.theirs);
            other.is_some_and(|theirs| [stage, theirs].contains(&Stage::Input))
        }
        Err((_, Failed::Seen(Seen::Out(out)))) => place.party == *out && place.turn.is_none(),
        Err((_, Failed::Seen(Seen::Lost | Seen::Over))) => true,
        // When the job is done the machine removes them.
        Ok(_) | Err(_) => false,
    }
}
