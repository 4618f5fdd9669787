//! All participants of a job in this process, over links in memory.
//!
//! A lane is one thread that steps every participant in turn: no participant ever blocks, so nothing is lost to waking threads, and a core's
//! cache holds the three parties' workspaces of the same chunk.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use veil_link::{Bounds, Link, memory};
use veil_protocol::Plan;
use veil_protocol::passes::PassProgram;
use veil_session::Peer;

use crate::abort::Abort;
use crate::setup::{Binding, Random, system};
use crate::shared::Shared;
use crate::status::{Progress, Report};
use crate::worker::{Step, Worker};
use crate::{Acts, Data, Settings, participants, program_bounds};

/// A run ended at each participant for its own reason.
#[derive(Debug)]
pub struct Failure(pub BTreeMap<Peer, Abort>);

impl Failure {
    /// The reason that explains the others: not one that a participant was told of.
    ///
    /// # Panics
    /// If there is no reason in it, which no run returns.
    ///
    /// # Panics
    /// If there is no reason in it, which no run returns.
    pub fn first(&self) -> (Peer, &Abort) {
        let own = self.0.iter().find(|(_, a)| {
            !matches!(
                a,
                Abort::Told { .. } | Abort::Link(_) | Abort::Stalled { .. }
            )
        });
        let untold = || {
            self.0
                .iter()
                .find(|(_, a)| !matches!(a, Abort::Told { .. }))
        };
        let (peer, abort) = own
            .or_else(untold)
            .or_else(|| self.0.iter().next())
            .expect("a failure has a reason");
        (*peer, abort)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (peer, abort) = self.first();
        write!(f, "{peer}: {abort}")
    }
}

impl std::error::Error for Failure {}

/// Runs the job; `progress` is called for each participant, parties first, about ten times a second.
///
/// # Errors
/// [`Failure`] with an [`Abort`] for each participant that gave up: a check, a link, a device, a source or a sink failed, a
/// participant's data are missing, or nothing moved for [`Settings::timeout`].
pub fn run(
    plan: &Arc<Plan>,
    settings: &Settings,
    data: impl Fn(Peer) -> Data,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<BTreeMap<Peer, Report>, Failure> {
    run_on(plan, settings, data, progress, |_, _, link| Box::new(link))
}

/// As [`run`], with every link wrapped by `wrap(participant, lane, link)`: shaped, metered, or tapped by a test.
///
/// # Errors
/// [`Failure`] as of [`run`].
pub fn run_on(
    plan: &Arc<Plan>,
    settings: &Settings,
    data: impl Fn(Peer) -> Data,
    progress: &(dyn Fn(Progress) + Sync),
    wrap: impl Fn(Peer, u16, memory::MemoryLink) -> Box<dyn Link>,
) -> Result<BTreeMap<Peer, Report>, Failure> {
    let conditions = Conditions {
        settings: &|_| settings.clone(),
        wrap: &wrap,
        stop: None,
    };
    run_with(plan, data, progress, &conditions)
}

/// As [`run_on`], with other choices for each participant: another device, or one that records.
///
/// # Errors
/// [`Failure`] as of [`run`].
pub fn run_with(
    plan: &Arc<Plan>,
    data: impl Fn(Peer) -> Data,
    progress: &(dyn Fn(Progress) + Sync),
    conditions: &Conditions<'_>,
) -> Result<BTreeMap<Peer, Report>, Failure> {
    let program = Arc::new(Arc::clone(plan).into());
    run_program(&program, |peer, _| data(peer), progress, conditions)
}

/// As [`run_with`], of all passes of a program: `data(participant, pass)` is what it brings to a pass.
///
/// # Errors
/// [`Failure`] as of [`run`].
pub fn run_program(
    program: &Arc<PassProgram>,
    data: impl Fn(Peer, usize) -> Data,
    progress: &(dyn Fn(Progress) + Sync),
    conditions: &Conditions<'_>,
) -> Result<BTreeMap<Peer, Report>, Failure> {
    run_under(program, data, progress, conditions, &mut |_, bytes| {
        system(bytes)
    })
}

/// Conditions that differ from participant to participant.
pub struct Conditions<'a> {
    /// The choices of each participant.
    pub settings: &'a dyn Fn(Peer) -> Settings,
    /// Wraps each participant's link of each lane.
    pub wrap: &'a dyn Fn(Peer, u16, memory::MemoryLink) -> Box<dyn Link>,
    /// Ends the run at all participants once it is set.
    pub stop: Option<&'a AtomicBool>,
}

/// A run whose nonces, key shares and seeds are what `randomness(participant, bytes)` writes: **for tests alone**, which see the same bytes
/// on the links every time. A holder of this randomness reads all inputs.
///
/// It exists in one process only. [`party::run`](crate::party::run), which meets others over a network, has no such way in.
///
/// # Errors
/// [`Failure`] as of [`run`].
pub fn rehearse(
    plan: &Arc<Plan>,
    data: impl Fn(Peer) -> Data,
    conditions: &Conditions<'_>,
    mut randomness: impl FnMut(Peer, &mut [u8]),
) -> Result<BTreeMap<Peer, Report>, Failure> {
    let mut random = |peer, bytes: &mut [u8]| {
        randomness(peer, bytes);
        Ok(())
    };
    let program = Arc::new(Arc::clone(plan).into());
    run_under(
        &program,
        |peer, _| data(peer),
        &|_| (),
        conditions,
        &mut random,
    )
}

/// Fills bytes for a participant.
type Randomness<'a> = dyn FnMut(Peer, &mut [u8]) -> Result<(), Abort> + 'a;

fn run_under(
    program: &Arc<PassProgram>,
    data: impl Fn(Peer, usize) -> Data,
    progress: &(dyn Fn(Progress) + Sync),
    conditions: &Conditions<'_>,
    random: &mut Randomness<'_>,
) -> Result<BTreeMap<Peer, Report>, Failure> {
    let start = Instant::now();
    let plan = program.first();
    let peers = participants(plan);
    let acts = peers.iter().map(|me| Acts::new(Arc::clone(program), *me));
    let acts: Vec<Arc<Acts>> = acts.map(Arc::new).collect();
    let shared = peers.iter().zip(&acts).map(|(peer, acts)| {
        let room = (conditions.settings)(*peer).room;
        Arc::new(Shared::new(acts, room.as_ref()))
    });
    let shared: Vec<Arc<Shared>> = shared.collect();
    let passes = 0..program.passes().len();
    let of_peer = |peer: &Peer| passes.clone().map(|pass| data(*peer, pass)).collect();
    let brought: Vec<Arc<[Data]>> = peers.iter().map(of_peer).collect();
    let mut failed = BTreeMap::new();
    let mut lanes = Vec::new();
    for lane in 0..plan.lanes {
        let limits = acts
            .iter()
            .map(|acts| program_bounds(acts))
            .reduce(Bounds::wider)
            .expect("there are parties");
        let mut workers = Vec::new();
        for (k, link) in memory::mesh(&peers, limits).into_iter().enumerate() {
            let link = (conditions.wrap)(peers[k], lane, link);
            let settings = (conditions.settings)(peers[k]);
            let mut random = |bytes: &mut [u8]| random(peers[k], bytes);
            let rest = (
                Arc::clone(&brought[k]),
                Binding::default(),
                &settings,
                &mut random as Random<'_>,
            );
            let worker = Worker::new(
                Arc::clone(&acts[k]),
                lane,
                link,
                Arc::clone(&shared[k]),
                rest,
            );
            match worker {
                Ok(worker) => workers.push((peers[k], worker.in_turn())),
                Err(abort) => {
                    failed.insert(peers[k], abort);
                }
            }
        }
        lanes.push(workers);
    }
    if !failed.is_empty() {
        return Err(Failure(failed));
    }
    let (over, ended) = mpsc::channel();
    let stop = conditions.stop;
    std::thread::scope(|scope| {
        for workers in lanes {
            let over = over.clone();
            scope.spawn(move || {
                let failures = step_all(workers, stop);
                // The receiver lives as long as the scope.
                let _ = over.send(failures);
            });
        }
        drop(over);
        loop {
            match ended.recv_timeout(Duration::from_millis(100)) {
                Ok(failures) => {
                    for (peer, abort) in failures {
                        match failed.entry(peer) {
                            Entry::Vacant(first) => {
                                first.insert(abort);
                            }
                            Entry::Occupied(mut first) => first.get_mut().join(abort),
                        }
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            for shared in &shared {
                progress(shared.progress());
            }
        }
    });
    for (k, peer) in peers.iter().enumerate() {
        if !failed.is_empty() {
            break;
        }
        if let Err(abort) = shared[k].finish(&brought[k]) {
            failed.insert(*peer, abort);
        }
    }
    if !failed.is_empty() {
        return Err(Failure(failed));
    }
    for shared in &shared {
        shared.keep();
    }
    let elapsed = start.elapsed();
    Ok(peers
        .iter()
        .copied()
        .zip(shared.iter().map(|s| s.report(elapsed)))
        .collect())
}

/// Steps the participants of one lane in turn until all are done or have failed, or are stopped.
fn step_all(mut workers: Vec<(Peer, Worker)>, stop: Option<&AtomicBool>) -> Vec<(Peer, Abort)> {
    let mut failures = Vec::new();
    let mut idle = 0u32;
    while !workers.is_empty() {
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            let stopped = workers.iter_mut();
            failures.extend(stopped.map(|(peer, worker)| (*peer, worker.stop(Abort::stopped()))));
            break;
        }
        let mut moved = false;
        workers.retain_mut(|(peer, worker)| match worker.step() {
            Ok(Step::Moved) => {
                moved = true;
                true
            }
            Ok(Step::Waiting) => true,
            Ok(Step::Done) => {
                moved = true;
                false
            }
            Err(abort) => {
                moved = true;
                failures.push((*peer, abort));
                false
            }
        });
        // Nothing moved: another lane, a shaped link or a stall. Yield first, sleep when it lasts.
        idle = if moved { 0 } else { idle + 1 };
        match idle {
            0..8 => {}
            8..64 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
    }
    failures
}
