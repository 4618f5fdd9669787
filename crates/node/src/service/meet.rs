//! The meeting of a job: with the members as they are, also when they change meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use veil_engine::name_of;
use veil_link::tls::{Around, Identity};
use veil_session::Peer;

use super::ServiceState;
use super::attempt::Position;
use super::attendance::{Seen, Watch};
use super::ended::Failed;
use crate::home::Home;
use crate::jobs::{Meeting, State};
use crate::planner::Prepared;
use crate::stages;
use veil_runtime::{Connections, Neighbours, Part, Passes};

/// By which keys a run is met.
pub(super) struct Here {
    pub(super) identity: Arc<Identity>,
    pub(super) neighbours: Neighbours,
    /// Until when every participant has to be there.
    pub(super) until: Instant,
}

impl Here {
    pub(super) fn part<'a>(
        &'a self,
        shared: &'a ServiceState,
        plan: &'a Passes,
        me: Peer,
        stop: &'a AtomicBool,
    ) -> Part<'a> {
        Part {
            plan,
            me,
            identity: &self.identity,
            port: Some(shared.port()),
            neighbours: &self.neighbours,
            link: shared.options.link,
            net: shared.options.net,
            stop,
        }
    }
}

/// Before a meeting begins anew. Others hear of a changed key within a second too: a participant that met at once would meet some that are about
/// to leave.
const SETTLE: Duration = Duration::from_secs(2);

/// How long parties have to turn up for a run after one that has failed: none of them stays in that one for longer than a run may stall,
/// and finding out takes a few questions for each view that it is behind.
fn shortly(shared: &ServiceState) -> Duration {
    2 * shared.engine().timeout + Duration::from_secs(20)
}

/// Meets; the parties of a job whose output is guaranteed ask each other meanwhile where they are. What ended it, if that did.
fn watched<T>(
    shared: &ServiceState,
    prepared: &Prepared,
    at: &Position<'_>,
    halt: &AtomicBool,
    meet: impl FnOnce() -> T,
) -> (T, Option<Seen>) {
    if !prepared.stages.are_guaranteed() {
        return (meet(), None);
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| Watch::new(shared, prepared, at).until(&over, halt));
        let met = meet();
        over.store(true, Ordering::Relaxed);
        (met, watcher.join().ok().flatten())
    })
}

/// Connects with all participants, wherever the members say that they are now. Keys that change meanwhile make it begin anew.
pub(super) fn meet(
    shared: &ServiceState,
    prepared: &Prepared,
    at: &Position<'_>,
    stop: &AtomicBool,
) -> Result<(Here, Connections), Failed> {
    let (job, me, stage) = (prepared.plan.hash, at.me, at.stage);
    let again = at.view.is_some_and(|view| view > 0);
    let wait = if again {
        shared.wait().min(shortly(shared))
    } else {
        shared.wait()
    };
    let until = Instant::now() + wait;
    loop {
        let stages = prepared.stages.clone();
        let find = move |home: &Home| stages.neighbours(stage, me, &*home.members());
        let neighbours = find(&shared.home).map_err(Failed::Part)?;
        let identity = shared.home.identity();
        let (pins, others) = (neighbours.pins.clone(), neighbours.others.clone());
        let here = Here {
            identity,
            neighbours,
            until,
        };
        let key = here.identity.fingerprint();
        let keys = pins.values().copied().collect();
        let halt = Arc::new(AtomicBool::new(false));
        let stale = Box::new(move |home: &Home| {
            let same_keys = |now: Neighbours| now.pins == pins && now.others == others;
            home.identity().fingerprint() != key || !find(home).is_ok_and(same_keys)
        });
        let meeting = Meeting {
            halt: Arc::clone(&halt),
            stale,
        };
        shared.jobs.meets(job, keys, meeting);
        let plan = prepared.stages.plan(stage);
        let moved = |peer| {
            let members = shared.home.members();
            members.by_name(name_of(plan, peer))?.address.clone()
        };
        let wait = until.saturating_duration_since(Instant::now());
        let (met, seen) = watched(shared, prepared, at, &halt, || {
            let missing = |peers: &[Peer]| shared.jobs.missing(job, plan, peers);
            let around = Around {
                moved: &moved,
                missing: &missing,
            };
            here.part(shared, plan, me, &halt).meet_at(wait, &around)
        });
        if let Some(seen) = seen {
            return Err(Failed::Seen(seen));
        }
        if met.is_ok() {
            shared.jobs.set(job, State::Queued, None);
        }
        if halt.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
            tracing::info!("a key changed: the participants are met anew");
            if met.is_ok() {
                shared.jobs.set(job, State::Meeting, None);
            }
            // No participant is to think that this party is there.
            drop(met);
            stages::nap(SETTLE, stop);
            continue;
        }
        return Ok((here, met.map_err(|error| Failed::Run(error.into()))?));
    }
}
