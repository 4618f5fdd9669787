//! One job of a service, in its own thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tracing::field::Empty;
use veil_engine::{Abort, Data, Progress, Report, TraceId};
use veil_program::{DataError, Output, Sink, Source};
use veil_protocol::Plan;
use veil_protocol::Replicated;
use veil_session::{PartyId, Peer, PlanHash};

use super::door::{Consent, Prepared};
use super::meet::meet;
use super::{Desk, News, roll};
use crate::approvals::Decision;
use crate::control::{self, Reply, Request};
use crate::jobs::State;
use crate::log::Event;
use crate::participant::RunError;
use crate::receipt::{self, Receipt};
use crate::stages::{self, AGAIN, Shelf, Stage};
use crate::time::Time;

/// Room for planning and for what an engine does in the thread of its caller; lanes have threads of their own.
const STACK: usize = 2 << 20;

/// How long each of the others has to say how a durable job is there.
const ANSWER: Duration = Duration::from_secs(2);

/// Why a job did not come to its end.
pub(super) enum Failed {
    Run(RunError),
    /// This participant cannot take part.
    Here(String),
    /// Its own data cannot be read, or its results not be written.
    Data(Arc<DataError>),
    /// Other jobs ran for too long: what it waited for.
    Full(String),
    /// A party is out.
    Out(PartyId),
}

/// What others read of a party whose own files are in the way: neither what is in them nor where they are (rule R3).
const OWN_FILES: &str =
    "this party's own files do not allow it; its operator reads why with `veil jobs` there";

/// Starts a job, if it may run now.
pub(super) fn make_ready(desk: &Arc<Desk>, plan: PlanHash) -> Option<JoinHandle<()>> {
    let asked_by = desk.jobs.with(plan, |entry| entry.asked_by.clone())?;
    let (mut prepared, filed) = match desk.filed(plan) {
        Ok(filed) => filed,
        Err(why) => {
            tracing::error!(%plan, why, "a filed job cannot be used");
            desk.jobs.set(plan, State::Failed, Some(why));
            return None;
        }
    };
    match desk.consent(&prepared, asked_by.as_deref(), Consent::Look) {
        decision if decision.allows() => {}
        Decision::Refused { why, .. } => {
            desk.jobs.set(plan, State::Refused, Some(why));
            return None;
        }
        decision => {
            // Said once: a pending job is looked at all the time.
            let pending = desk.jobs.in_state(|state| state == State::Pending);
            if !pending.contains(&plan) {
                desk.jobs
                    .set(plan, State::Pending, Some(decision.to_string()));
            }
            return None;
        }
    }
    match filed.align_key() {
        Ok(Some(key)) => prepared.job.set_align_key(key),
        Ok(None) => {}
        Err(error) => {
            tracing::error!(%plan, %error, "an approved job cannot run");
            desk.jobs
                .fail(plan, OWN_FILES.to_owned(), Some(error.to_string()));
            return None;
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    desk.jobs.with(plan, |entry| {
        entry.stop = Arc::clone(&stop);
        entry.stopped_for = None;
        entry.status.rows = 0;
        entry.status.trace = None;
    });
    desk.jobs.set(plan, State::Meeting, None);
    let running = Arc::clone(desk);
    let started = thread::Builder::new()
        .name(format!("job {plan}"))
        .stack_size(STACK)
        .spawn(move || {
            let ran = catch_unwind(AssertUnwindSafe(|| {
                whole(&running, &prepared, asked_by.as_deref(), &stop);
            }));
            if ran.is_err() {
                let why =
                    "it ended by a defect of this program; please report what its log lines say";
                running.jobs.set(plan, State::Failed, Some(why.into()));
            }
            // The deciding thread looks often enough without it.
            let _ = running.events.try_send(News::Over);
        });
    match started {
        Ok(thread) => Some(thread),
        Err(error) => {
            desk.jobs.set(
                plan,
                State::Failed,
                Some(format!("no thread can be started: {error}")),
            );
            None
        }
    }
}

/// From the first call to the last word: one run, or the stages of a durable job, each of them until it succeeds or has failed too often.
fn whole(desk: &Desk, prepared: &Prepared, asked_by: Option<&str>, stop: &AtomicBool) {
    let job = prepared.plan.hash;
    let mut failures = 0;
    let mut before = None;
    // The inputs were kept a moment ago: nobody can have finished the job without this party.
    let mut together = false;
    loop {
        if !together && done_without_us(desk, prepared) {
            desk.rolls.close(job);
            desk.jobs.set(job, State::Done, None);
            return;
        }
        let given = match one_run(desk, prepared, asked_by, stop, before.take()) {
            Ok(Stage::Input) => {
                (failures, together) = (0, true);
                continue;
            }
            Ok(Stage::Whole | Stage::Compute | Stage::Finish(_)) => {
                desk.rolls.close(job);
                desk.jobs.set(job, State::Done, None);
                return;
            }
            Err(given) => given,
        };
        let pause = match given.again {
            _ if stop.load(Ordering::Relaxed) => None,
            None => None,
            Some(Again::Interrupted) => stages::pause(failures),
            Some(Again::Disagreed) => stages::pause(failures).and(stages::pause(0)),
        };
        let Some(pause) = pause else {
            desk.jobs.fail(job, given.why, given.here);
            return;
        };
        (failures, together) = (failures + 1, false);
        let seconds = pause.as_secs();
        tracing::info!(plan = %job, attempt = failures, of = AGAIN, seconds, "armed again");
        let why = format!("again in {seconds} s: {}", given.why);
        desk.jobs.set(job, State::Meeting, Some(why));
        before = Some(given.why);
        stages::nap(pause, stop);
    }
}

/// A run that was given up.
struct GivenUp {
    why: String,
    /// What only this participant's people may read, if it is more.
    here: Option<String>,
    /// Why another attempt may fare better, if it may.
    again: Option<Again>,
}

/// Why a stage is tried again.
#[derive(Clone, Copy)]
enum Again {
    /// Its run was interrupted.
    Interrupted,
    /// The parties were not at the same stage, and are next time. Their owners wait for that, so it comes soon.
    Disagreed,
}

/// Whether the other parties have finished the job while this one was away with the inputs it has kept: what is left is to remove them.
/// Those who have not are told that this party goes on.
fn done_without_us(desk: &Desk, prepared: &Prepared) -> bool {
    let plan = prepared.plan.hash;
    // Why a stage cannot begin is said when it does.
    let Ok(at) = begin(desk, prepared) else {
        return false;
    };
    if !matches!(at.stage, Stage::Compute | Stage::Finish(_)) {
        return false;
    }
    let (identity, members) = (desk.home.identity(), desk.home.members());
    let names = prepared.plan.job.parties.iter();
    let mut others = names.filter_map(|name| members.by_name(name));
    let request = Request::GoOn {
        plan: Event::plan(plan),
    };
    let done = others.find(|party| {
        let asked = control::ask(&identity, party, &request, Instant::now() + ANSWER);
        // Whoever is away, or knows nothing of the job, is met or not.
        matches!(asked, Ok(Reply::Jobs { jobs }) if jobs.iter().any(|job| job.state == State::Done))
    });
    if let Some(party) = done {
        tracing::info!(%plan, by = %party.name, "the job was finished without this party: the inputs that it kept are removed");
        forget(&at.shelf);
    }
    done.is_some()
}

/// One run of the job, at the stage at which this party is.
fn one_run(
    desk: &Desk,
    prepared: &Prepared,
    asked_by: Option<&str>,
    stop: &AtomicBool,
    before: Option<String>,
) -> Result<Stage, GivenUp> {
    let (job, stages) = (prepared.plan.hash, &prepared.stages);
    let name = &prepared.plan.job.name;
    let span = tracing::info_span!("job", plan = %job, name = %name, stage = Empty, trace = Empty);
    let _entered = span.enter();
    let start = Instant::now();
    let at = begin(desk, prepared);
    let stage = at.as_ref().map_or(Stage::Whole, |at| at.stage);
    if stages.are_two() {
        span.record("stage", stage.name());
    }
    let ended = at.map_err(|why| (false, Failed::Here(why))).and_then(|at| {
        let ended = attempt(desk, prepared, &at, (asked_by, before), stop, &span);
        let forgets = match &ended {
            Ok(_) => matches!(stage, Stage::Compute | Stage::Finish(_)),
            Err((_, Failed::Run(RunError::Setup(error)))) => {
                let other = stages.disagree(stage, error).map(|other| other.theirs);
                other.is_some_and(|theirs| [stage, theirs].contains(&Stage::Input))
            }
            Err((_, Failed::Out(out))) => at.party == *out,
            Err(_) => false,
        };
        if forgets {
            forget(&at.shelf);
        }
        ended
    });
    let began = !matches!(ended, Err((false, _)));
    let trace = ended.as_ref().ok().map(|report| report.trace);
    let ended = ended.map_err(|(_, failed)| failed);
    let (code, given) = match ended {
        Ok(report) => {
            let (seconds, sent) = (report.elapsed.as_secs_f64(), report.meters.payload_sent);
            tracing::info!(seconds, sent, "done");
            desk.metrics.done(&report, prepared.plan.lanes);
            ("done", Ok(stage))
        }
        Err(failed) => {
            let (code, given) = explain(desk, prepared, stage, &failed);
            tracing::warn!(code, why = given.why, "given up");
            desk.metrics.ended(code);
            (code, Err(given))
        }
    };
    if began {
        let known = desk.jobs.with(job, |entry| entry.status.trace.clone());
        let trace = trace.map(|trace: TraceId| trace.to_string());
        desk.record(Event::RunEnded {
            plan: Event::plan(job),
            job: stages.plan(stage).job.name.clone(),
            trace: trace.or(known.flatten()),
            cause: code.to_owned(),
            seconds: start.elapsed().as_secs(),
        });
    }
    given
}

/// The code of a failure, why, and whether to try again.
fn explain(
    desk: &Desk,
    prepared: &Prepared,
    stage: Stage,
    failed: &Failed,
) -> (&'static str, GivenUp) {
    let stages = &prepared.stages;
    if let Failed::Run(RunError::Abort(abort)) = failed {
        desk.metrics.aborted(abort);
    }
    let stopped = desk
        .jobs
        .with(prepared.plan.hash, |entry| entry.stopped_for.clone())
        .flatten();
    let mut here = None;
    let (code, why) = match (failed, stopped) {
        (_, Some(why)) => ("stopped", why),
        (Failed::Run(RunError::Setup(error)), None)
            if let Some(other) = stages.disagree(stage, error) =>
        {
            let (why, here) = (other.why, None);
            let again = Some(Again::Disagreed);
            return ("not met", GivenUp { why, here, again });
        }
        (Failed::Out(out), None) => {
            let party = stages.party(*out);
            let own = party == desk.home.settings().name;
            let why = if own {
                "this party was out of reach for too long: the others finish the job without it"
                    .into()
            } else {
                format!(
                    "`{party}` is out: all others have missed it for too long, and finish without it"
                )
            };
            let again = (!own).then_some(Again::Disagreed);
            return ("out", GivenUp { why, here, again });
        }
        (Failed::Data(error) | Failed::Run(RunError::Abort(Abort::Data(error))), None)
            if error.is_own() =>
        {
            if error.quotes() {
                tracing::warn!("`veil jobs` says what is wrong with this party's data");
            } else {
                tracing::warn!(%error, "this party's own files do not allow it");
            }
            here = Some(error.to_string());
            ("input", OWN_FILES.to_owned())
        }
        // Where they differ is for the owners of the block alone, and everybody with a part in the job reads the reason.
        (Failed::Run(RunError::Abort(abort @ Abort::Misaligned { .. })), None) => {
            here = Some(abort.to_string());
            let why =
                "the owners of a block have its rows in different orders; they were told where";
            ("input", why.to_owned())
        }
        (Failed::Run(error), None) => (cause(error), who_is_who(stages.plan(stage), error)),
        (Failed::Here(why), None) => ("input", why.clone()),
        (Failed::Data(error), None) => ("input", error.to_string()),
        (Failed::Full(why), None) => (
            "busy",
            format!("other jobs ran all the time, and {why}; ask again later"),
        ),
    };
    let repeats =
        matches!(failed, Failed::Run(RunError::Abort(abort)) if stages.may_repeat(stage, abort));
    let again = (repeats && code != "stopped").then_some(Again::Interrupted);
    (code, GivenUp { why, here, again })
}

/// Where a job goes on.
pub(super) struct At<'a> {
    /// As whom this party takes part in the stage.
    pub(super) me: Peer,
    /// Which party of the job it is.
    party: PartyId,
    shelf: Shelf<'a>,
    pub(super) stage: Stage,
}

/// Finds out at which stage of the job this party is.
fn begin<'a>(desk: &Desk, prepared: &'a Prepared) -> Result<At<'a>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let name = &desk.home.settings().name;
    let as_party = |plan: &Plan| {
        let roles = crate::participant::roles(plan, name).map_err(|e| text(&e))?;
        let party = roles.into_iter().find_map(Peer::party);
        party.ok_or_else(|| "this participant is no party of the job".to_owned())
    };
    let party = as_party(&prepared.plan)?;
    roll::open(desk, prepared);
    let shelf = Shelf::of_home(&desk.home, &prepared.job, &prepared.stages);
    let shelf = shelf.map_err(|e| text(&e))?;
    let (stage, unusable) = shelf.stage().map_err(|e| text(&e))?;
    if let Some(error) = unusable {
        tracing::warn!(%error, "the inputs that are kept cannot be used: their owners have to send them again");
    }
    let me = Peer::Party(as_party(prepared.stages.plan(stage))?);
    Ok(At {
        me,
        party,
        shelf,
        stage,
    })
}

fn forget(shelf: &Shelf<'_>) {
    if let Err(error) = shelf.forget() {
        tracing::error!(%error, "the kept inputs cannot be removed: `veil shares list` shows them");
    }
}

/// Meets everybody and runs; whether it had begun to run when it failed.
fn attempt(
    desk: &Desk,
    prepared: &Prepared,
    at: &At<'_>,
    (asked_by, before): (Option<&str>, Option<String>),
    stop: &AtomicBool,
    span: &tracing::Span,
) -> Result<Report, (bool, Failed)> {
    let (job, stages) = (prepared.plan.hash, &prepared.stages);
    let (me, stage) = (at.me, at.stage);
    let plan = stages.plan(stage);
    let before_it = |error: &dyn std::fmt::Display| (false, Failed::Here(error.to_string()));
    // Whoever is no member is known before any table is read.
    let members = desk.home.members();
    (stages.neighbours(stage, me, &members)).map_err(|e| before_it(&e))?;
    let folder = desk.home.job_folder(job).join("results");
    let (data, sink) = ends(prepared, at, &folder).map_err(|failed| (false, failed))?;
    if let Some(awaits) = stages.awaits(stage) {
        tracing::info!("waiting for the participants; {awaits}");
        let why = match before {
            Some(before) => format!("{awaits}; the attempt before ended: {before}"),
            None => awaits,
        };
        desk.jobs.set(job, State::Meeting, Some(why));
    } else {
        tracing::info!("waiting for the participants");
    }
    let (here, connections) = meet(desk, prepared, at, stop).map_err(|failed| (false, failed))?;
    let engine = desk.engine();
    let place = desk.jobs.place(job, prepared.need, engine.timeout, stop);
    let _place = place.map_err(|why| (false, Failed::Full(why)))?;
    let how = match stage {
        Stage::Input => Consent::StartInput,
        Stage::Whole | Stage::Compute | Stage::Finish(_) => Consent::Start,
    };
    let decision = desk.consent(prepared, asked_by, how);
    if !decision.allows() {
        return Err(before_it(&decision));
    }
    desk.jobs.set(job, State::Running, None);
    let started = Time::now();
    tracing::info!("running");
    let progress = |progress: Progress| {
        if let Some(trace) = progress.trace {
            span.record("trace", tracing::field::display(trace));
        }
        desk.jobs.progress(job, plan, &progress);
    };
    let wrap = |link| desk.metrics.count(link);
    let run = here
        .part(desk, plan, me, stop)
        .run(connections, &engine, data, &wrap, &progress);
    let report = run.map_err(|abort| (true, Failed::Run(abort.into())))?;
    if sink.is_some() {
        let keys = |peer: Peer| match here.neighbours.pins.get(&peer) {
            Some(pin) => Some(*pin),
            None => (peer == me).then(|| here.identity.fingerprint()),
        };
        let protocol = Replicated::new(Arc::clone(plan), me);
        let mut receipt = Receipt::new(plan, &protocol, me, &keys, false, started);
        receipt.without = stages.without(stage);
        published(desk, &prepared.plan, receipt, &report, &folder);
    }
    Ok(report)
}

/// Puts the receipt beside a result, and says in the log that it is there.
fn published(desk: &Desk, plan: &Plan, receipt: Receipt, report: &Report, folder: &Path) {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.map(|entry| PathBuf::from(entry.file_name()));
    let mut names: Vec<PathBuf> = names
        .filter(|name| name.as_os_str() != receipt::NAME)
        .collect();
    names.sort();
    let trace = Some(report.trace.to_string());
    if let Err(error) = receipt.write(folder, &names, trace.clone()) {
        tracing::error!(%error, "the receipt cannot be written");
    }
    desk.record(Event::ResultPublished {
        plan: Event::plan(plan.hash),
        job: plan.job.name.clone(),
        trace,
        files: names.len() as u64,
    });
    tracing::info!(folder = %folder.display(), "results are written");
}

/// What this party brings, takes, loads and keeps, if anything.
fn ends(
    prepared: &Prepared,
    at: &At<'_>,
    folder: &Path,
) -> Result<(Data, Option<Arc<Output>>), Failed> {
    let data = |error: DataError| Failed::Data(Arc::new(error));
    let (job, plan, me) = (&prepared.job, prepared.stages.plan(at.stage), at.me);
    let holders = plan.job.blocks.iter().flat_map(|block| &block.holders);
    let holder = holders.copied().find(|holder| holder.peer() == Some(me));
    let shares = at.shelf.ends(at.stage);
    let shares = shares.map_err(|error| Failed::Here(error.to_string()))?;
    let source: Option<Arc<dyn Source>> = match (shares.source, holder) {
        (None, Some(holder)) => Some(Arc::from(job.source(holder).map_err(data)?)),
        (source, _) => source,
    };
    let receives = plan
        .job
        .audiences
        .iter()
        .any(|audience| audience.includes(me));
    let sink = if receives {
        std::fs::create_dir_all(folder).map_err(|source| {
            data(DataError::Io {
                doing: "create",
                file: folder.to_owned(),
                source,
            })
        })?;
        // The job numbers all its parties, whoever is out.
        let own = Peer::Party(at.party);
        Some(Arc::new(job.sink(own, folder).map_err(data)?))
    } else {
        None
    };
    let data = Data {
        source,
        sink: sink.as_ref().map(|sink| Arc::clone(sink) as Arc<dyn Sink>),
        stored: shares.stored,
        keeps: shares.keeps,
    };
    Ok((data, sink))
}

/// The code of a cause, for logs and metrics.
fn cause(error: &RunError) -> &'static str {
    match error {
        RunError::Setup(_) => "not met",
        RunError::Abort(Abort::Cheated { .. } | Abort::SetUp { .. }) => "check",
        RunError::Abort(Abort::Device(_)) => "device",
        RunError::Abort(Abort::Data(_) | Abort::Misaligned { .. }) => "input",
        RunError::Abort(Abort::Told { .. }) => "told",
        RunError::Abort(Abort::Link(_) | Abort::Stalled { .. }) => "link",
        RunError::Abort(_) => "other",
    }
}

/// The error, with the names of those whom it numbers.
fn who_is_who(plan: &Plan, error: &RunError) -> String {
    let message = error.to_string();
    let names = crate::participant::who_is_who(plan, &message);
    if names.is_empty() {
        message
    } else {
        format!("{message} ({names})")
    }
}
