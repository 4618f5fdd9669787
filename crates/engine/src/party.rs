//! One participant of a job, over links to the others: a thread per lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use veil_link::Link;
use veil_protocol::{Plan, Protocol};

use crate::abort::Abort;
use crate::setup::{Binding, Random, system};
use crate::shared::Shared;
use crate::status::{Progress, Report};
use crate::worker::{Step, Worker};
use crate::{Acts, Data, Settings};

/// How long a lane sleeps at most before it looks at its siblings and at the request to stop.
const TICK: Duration = Duration::from_millis(50);

/// Runs `protocol` with one link per lane. `stop` ends the run from outside; `progress` is called about ten times a second.
///
/// # Errors
/// [`Abort::Missing`] if `links` are not one per lane of the plan, this participant brings less than the job needs of it, or
/// `stop` was set; another [`Abort`] if a check, a link, the device, a source or a sink failed, a peer gave up ([`Abort::Told`]),
/// nothing moved for [`Settings::timeout`] ([`Abort::Stalled`]) or a peer had said nothing when the time for meeting was over
/// ([`Abort::Unmet`]). Of several lanes' reasons the one counts that this participant knows best.
pub fn run(
    plan: &Arc<Plan>,
    protocol: &Arc<dyn Protocol>,
    settings: &Settings,
    ends: (Data, Binding),
    links: Vec<Box<dyn Link>>,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, Abort> {
    let acts = Arc::new(Acts::one(plan, protocol));
    let (data, binding) = ends;
    let ends = (Arc::from([data]), binding);
    run_program(&acts, settings, ends, links, stop, progress)
}

/// As [`run`], of all passes of a program, with what this participant brings to each of them.
///
/// # Errors
/// [`Abort`] as of [`run`].
pub fn run_program(
    acts: &Arc<Acts>,
    settings: &Settings,
    (ends, binding): (Arc<[Data]>, Binding),
    links: Vec<Box<dyn Link>>,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Report, Abort> {
    let start = Instant::now();
    let plan = acts.plan();
    if links.len() != usize::from(plan.lanes) {
        return Err(Abort::Missing(format!(
            "the plan has {} lanes and {} links were given",
            plan.lanes,
            links.len()
        )));
    }
    let shared = Arc::new(Shared::new(acts, settings.room.as_ref()));
    let mut workers = Vec::new();
    let mut links = links.into_iter().enumerate();
    while let Some((lane, link)) = links.next() {
        let rest = (
            Arc::clone(&ends),
            binding.clone(),
            settings,
            &mut system as Random<'_>,
        );
        let (acts, shared) = (Arc::clone(acts), Arc::clone(&shared));
        match Worker::new(acts, lane as u16, link, shared, rest) {
            Ok(worker) => workers.push(worker),
            Err(abort) => {
                // The others are told on all lanes, whichever of them hears of it first.
                for worker in &mut workers {
                    worker.stop(abort.clone());
                }
                links.for_each(|(_, mut link)| link.abort());
                return Err(abort);
            }
        }
    }
    let (over, ended) = mpsc::channel();
    let mut outcome = Ok(());
    std::thread::scope(|scope| {
        for worker in workers {
            let over = over.clone();
            scope.spawn(move || {
                // The receiver lives as long as the scope.
                let _ = over.send(drive(worker, stop));
            });
        }
        drop(over);
        loop {
            match ended.recv_timeout(Duration::from_millis(100)) {
                Ok(Err(abort)) => match &mut outcome {
                    Ok(()) => outcome = Err(abort),
                    Err(first) => first.join(abort),
                },
                Ok(Ok(())) | Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            progress(shared.progress());
        }
    });
    outcome?;
    shared.finish(&ends)?;
    shared.keep();
    Ok(shared.report(start.elapsed()))
}

fn drive(mut worker: Worker, stop: &AtomicBool) -> Result<(), Abort> {
    loop {
        match worker.step()? {
            Step::Moved => {}
            Step::Done => return Ok(()),
            Step::Waiting => {
                worker.wait(TICK)?;
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Err(worker.stop(Abort::stopped()));
        }
    }
}
