//! One job of a service, in its own thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use tracing::field::Empty;
use veil_engine::{Abort, Data, Progress, Report, TraceId};
use veil_program::{Output, Sink, Source};
use veil_protocol::Plan;
use veil_protocol::rep3::Rep3;
use veil_session::{Peer, PlanHash};

use super::door::{Consent, Prepared};
use super::{Desk, News};
use crate::approvals::Decision;
use crate::jobs::State;
use crate::log::Event;
use crate::participant::{Neighbours, Part, RunError};
use crate::receipt::{self, Receipt};
use crate::time::Time;

/// Room for planning and for what an engine does in the thread of its caller; lanes have threads of their own.
const STACK: usize = 2 << 20;

/// Why a job did not come to its end.
enum Failed {
    Run(RunError),
    /// This participant cannot take part.
    Here(String),
    /// All places were taken for too long.
    Full,
}

/// Starts a job, if it may run now.
pub(super) fn make_ready(desk: &Arc<Desk>, plan: PlanHash) -> Option<JoinHandle<()>> {
    let asked_by = desk.jobs.with(plan, |entry| entry.asked_by.clone())?;
    let (prepared, _) = match desk.filed(plan) {
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

/// From the first call to the last word.
fn whole(desk: &Desk, prepared: &Prepared, asked_by: Option<&str>, stop: &AtomicBool) {
    let plan = &prepared.plan;
    let span = tracing::info_span!("job", plan = %plan.hash, name = %plan.job.name, trace = Empty);
    let _entered = span.enter();
    let start = Instant::now();
    let trace = std::cell::Cell::new(None);
    let ended = attempt(desk, prepared, asked_by, stop, &span);
    let began = !matches!(ended, Err((false, _)));
    let cause = match ended {
        Ok(report) => {
            trace.set(Some(report.trace));
            tracing::info!(
                seconds = report.elapsed.as_secs_f64(),
                sent = report.meters.payload_sent,
                "done"
            );
            desk.metrics.done(&report, plan.lanes);
            desk.jobs.set(plan.hash, State::Done, None);
            "done".to_owned()
        }
        Err((_, failed)) => {
            let stopped = desk
                .jobs
                .with(plan.hash, |entry| entry.stopped_for.clone())
                .flatten();
            let (code, why) = match (&failed, stopped) {
                (_, Some(why)) => ("stopped", why),
                (Failed::Run(error), None) => (cause(error), who_is_who(prepared, error)),
                (Failed::Here(why), None) => ("input", why.clone()),
                (Failed::Full, None) => (
                    "busy",
                    "other jobs ran all the time; ask again later".to_owned(),
                ),
            };
            if let Failed::Run(RunError::Abort(abort)) = &failed {
                desk.metrics.aborted(abort);
            }
            tracing::warn!(code, why, "given up");
            desk.metrics.ended(code);
            desk.jobs.set(plan.hash, State::Failed, Some(why));
            code.to_owned()
        }
    };
    if began {
        let known = desk
            .jobs
            .with(plan.hash, |entry| entry.status.trace.clone())
            .flatten();
        desk.record(Event::RunEnded {
            plan: Event::plan(plan.hash),
            job: plan.job.name.clone(),
            trace: trace
                .get()
                .map(|trace: TraceId| trace.to_string())
                .or(known),
            cause,
            seconds: start.elapsed().as_secs(),
        });
    }
}

/// Meets everybody and runs; whether it had begun to run when it failed.
fn attempt(
    desk: &Desk,
    prepared: &Prepared,
    asked_by: Option<&str>,
    stop: &AtomicBool,
    span: &tracing::Span,
) -> Result<Report, (bool, Failed)> {
    let plan = &prepared.plan;
    let before = |error: &dyn std::fmt::Display| (false, Failed::Here(error.to_string()));
    let me = crate::participant::roles(plan, &desk.home.settings().name).map_err(|e| before(&e))?;
    let me = me.into_iter().find(|peer| peer.party().is_some());
    let me = me.ok_or_else(|| before(&"this participant is no party of the job"))?;
    let neighbours = Neighbours::find(plan, me, &desk.home.members()).map_err(|e| before(&e))?;
    let folder = desk.home.job_folder(plan.hash).join("results");
    let (data, sink) = ends(prepared, me, &folder).map_err(|why| before(&why))?;
    desk.jobs.with(plan.hash, |entry| {
        entry.keys = neighbours.pins.values().copied().collect();
    });
    let identity = desk.home.identity();
    let part = Part {
        plan,
        me,
        identity: &identity,
        port: Some(desk.port()),
        neighbours: &neighbours,
        net: desk.options.net,
        stop,
    };
    let timeouts = desk.home.settings().timeouts;
    tracing::info!("waiting for the participants");
    let wait = desk.options.wait.unwrap_or(timeouts.meet);
    let connections = part
        .meet(wait)
        .map_err(|error| (false, Failed::Run(error.into())))?;
    desk.jobs.set(plan.hash, State::Queued, None);
    let engine = desk.engine();
    let Some(_place) = desk.jobs.place(engine.timeout, stop) else {
        return Err((false, Failed::Full));
    };
    let decision = desk.consent(prepared, asked_by, Consent::Start);
    if !decision.allows() {
        return Err(before(&decision));
    }
    desk.jobs.set(plan.hash, State::Running, None);
    let started = Time::now();
    tracing::info!("running");
    let progress = |progress: Progress| {
        if let Some(trace) = progress.trace {
            span.record("trace", tracing::field::display(trace));
        }
        desk.jobs.progress(plan, &progress);
    };
    let wrap = |link| desk.metrics.count(link);
    let run = part.run(connections, &engine, data, &wrap, &progress);
    let report = run.map_err(|abort| (true, Failed::Run(abort.into())))?;
    if sink.is_some() {
        let keys = |peer: Peer| match neighbours.pins.get(&peer) {
            Some(pin) => Some(*pin),
            None => (peer == me).then(|| identity.fingerprint()),
        };
        let protocol = Rep3::new(Arc::clone(plan), me);
        let receipt = Receipt::new(plan, &protocol, me, &keys, false, started);
        published(desk, plan, receipt, &report, &folder);
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

/// What this party brings and takes, if anything.
fn ends(
    prepared: &Prepared,
    me: Peer,
    folder: &Path,
) -> Result<(Data, Option<Arc<Output>>), String> {
    let Prepared { job, plan, .. } = prepared;
    let holder = job
        .holders()
        .into_iter()
        .find(|holder| holder.peer() == Some(me));
    let source = holder.map(|holder| job.source(holder)).transpose();
    let source: Option<Arc<dyn Source>> = source.map_err(|error| error.to_string())?.map(Arc::from);
    let receives = plan
        .job
        .audiences
        .iter()
        .any(|audience| audience.includes(me));
    let sink = if receives {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        Some(Arc::new(
            job.sink(me, folder).map_err(|error| error.to_string())?,
        ))
    } else {
        None
    };
    let data = Data {
        source,
        sink: sink.as_ref().map(|sink| Arc::clone(sink) as Arc<dyn Sink>),
        ..Data::default()
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
fn who_is_who(prepared: &Prepared, error: &RunError) -> String {
    // Where they differ is for the owners of the block alone, and everybody with a part in the job reads this.
    if matches!(error, RunError::Abort(Abort::Misaligned { .. })) {
        return "the owners of a block have its rows in different orders; they were told where"
            .to_owned();
    }
    let message = error.to_string();
    let names = crate::participant::who_is_who(&prepared.plan, &message);
    if names.is_empty() {
        message
    } else {
        format!("{message} ({names})")
    }
}
