//! Stock that services make in idle time, where both allow it.
//!
//! The service that is short of stock asks the other one. That one looks at its own settings, jobs, record of the day and stock, and comes or says why not. Both
//! then run, and yield to jobs: a making stops at the end of a batch, and what has passed at both is kept ([`crate::stock`]). Nothing that a party asks for is made beyond what the
//! other one's operator has written down, and a making that fails costs it the next ones for a while.

mod answer;
mod make;
mod unfinished;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use veil_job::StockKind;
use veil_link::tls::Fingerprint;
use veil_runtime::Passes;
use veil_session::Peer;
use veil_store::stock::{Between, Stocks, discard_unfinished};

use super::ServiceState;
use crate::jobs::State as Job;
use crate::members::Member;
use crate::settings::Settings;
use crate::stock::Making;
use answer::{Unasked, ask};
pub(super) use make::count;
use make::make;

/// How often the stock is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// How long the other service has to answer, and then to turn up.
const MEET: Duration = Duration::from_secs(20);

/// For so long the evaluator leaves it to the garbler to ask: two that ask at once refuse each other.
const LEAVES: Duration = Duration::from_secs(10);

/// After the first failure or refusal nothing is asked for so long; twice as long after each one that follows.
const PAUSE: Duration = Duration::from_secs(10);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(3600);

/// Stock that is made here.
#[derive(Default)]
pub(super) struct Refills {
    /// The end of a making that the other service asked for.
    pub(super) making: Making,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    under_way: Option<UnderWay>,
    parties: BTreeMap<(String, StockKind), Party>,
    looked: Option<Instant>,
    counted: Counted,
}

/// A making that goes on.
struct UnderWay {
    party: String,
    stop: Arc<AtomicBool>,
    /// When the time of the day for it is over.
    until: Instant,
}

/// What is known of another party, and of a kind of stock with it.
#[derive(Default)]
struct Party {
    /// Since when there is too little.
    short: Option<Instant>,
    /// Nothing is made before.
    again: Option<Instant>,
    /// Makings with it that have failed, since one has succeeded.
    failures: u32,
    /// Questions that it has refused, since it has taken one.
    refusals: u32,
    /// Questions to which it gave no answer, since it has given one.
    unanswered: u32,
}

impl Party {
    /// Nothing follows for a while: longer after each of so many.
    fn pauses(&mut self, before: u32) {
        let pause = PAUSE.saturating_mul(1 << before.min(20)).min(LONGEST);
        self.again = Some(Instant::now() + pause);
    }

    /// For how long nothing is made with it.
    fn rests(&self) -> Option<Duration> {
        let left = self.again?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// What the metrics have counted: cells made and used of each generation.
#[derive(Default)]
struct Counted {
    changed: Option<SystemTime>,
    known: Option<BTreeMap<String, [u64; 2]>>,
}

/// A making to which both services have agreed.
pub(super) struct Agreed {
    party: Member,
    plan: Passes,
    me: Peer,
    stocks: Stocks,
    cells: u64,
    disk: u64,
    /// Whether this service has asked.
    asks: bool,
    place: Place,
}

/// The only place for a making: free again when this is dropped.
pub(super) struct Place {
    state: Arc<Mutex<State>>,
    /// Ends the making at the next batch.
    stop: Arc<AtomicBool>,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.state).under_way = None;
    }
}

/// Every change leaves it whole.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Refills {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Ends what goes on at the next batch.
    pub(super) fn stop(&self) {
        if let Some(under_way) = &self.lock().under_way {
            under_way.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Takes the only place, for the time that is left of the day; nothing if it is taken.
    fn reserve(&self, party: &str, left: Duration) -> Option<Place> {
        let mut state = self.lock();
        if state.under_way.is_some() {
            return None;
        }
        let stop = Arc::new(AtomicBool::new(false));
        state.under_way = Some(UnderWay {
            party: party.to_owned(),
            stop: Arc::clone(&stop),
            until: Instant::now() + left,
        });
        let state = Arc::clone(&self.state);
        Some(Place { state, stop })
    }

    fn with<T>(&self, (party, kind): (&str, StockKind), with: impl FnOnce(&mut Party) -> T) -> T {
        let of = (party.to_owned(), kind);
        with(self.lock().parties.entry(of).or_default())
    }
}

/// Looks whether to make stock, or to stop: a thread that makes some, if it is to begin.
pub(super) fn look(shared: &Arc<ServiceState>) -> Option<JoinHandle<()>> {
    let refills = &shared.refills;
    let busy = !shared.jobs.in_state(Job::active).is_empty();
    {
        let mut state = refills.lock();
        if let Some(under_way) = &state.under_way {
            let over = Instant::now() >= under_way.until;
            if (busy || over) && !under_way.stop.swap(true, Ordering::Relaxed) {
                let party = &under_way.party;
                tracing::info!(%party, busy, "making stock stops at the next batch");
            }
            return None;
        }
        if state.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return None;
        }
        state.looked = Some(Instant::now());
    }
    count(shared);
    if busy || shared.stopping.load(Ordering::Relaxed) {
        return None;
    }
    let settings = shared.home.settings();
    discard(shared, settings);
    let all = settings.stock.iter();
    let all = all.flat_map(|(name, with)| StockKind::ALL.map(|kind| (name, kind, with)));
    let wants = all.filter(|(_, kind, with)| with.target_of(*kind) > 0);
    for (name, kind, with) in wants {
        if refills.with((name, kind), |party| party.rests().is_some()) {
            continue;
        }
        let Ok(may) = shared.may_make((name, kind), with, None) else {
            continue;
        };
        let short = may.left <= with.target_of(kind) / 2 && may.cells > 0;
        let since = refills.with((name, kind), |party| {
            party.short = party.short.filter(|_| short).or(short.then(Instant::now));
            party.short
        });
        let waits = if with.garbles(&settings.name, name) {
            Duration::ZERO
        } else {
            LEAVES
        };
        if since.is_none_or(|since| since.elapsed() < waits) {
            continue;
        }
        let place = refills.reserve(name, may.time)?;
        let (beside, name, with) = (Arc::clone(shared), name.clone(), *with);
        let asking = thread::Builder::new().name("stock".to_owned());
        let asking = asking.spawn(move || {
            match ask(&beside, &name, &with, may, place) {
                Ok(Some(agreed)) => make(&beside, &agreed),
                Ok(None) => {}
                Err(unasked) => beside.refills.with((&name, kind), |party| match unasked {
                    Unasked::Refused(why) => {
                        tracing::info!(party = %name, %why, "no stock is made");
                        party.pauses(party.refusals.min(6));
                        (party.refusals, party.unanswered) = (party.refusals + 1, 0);
                    }
                    Unasked::Failed(why) => {
                        tracing::info!(party = %name, %why, "no stock is made: the other party cannot be asked");
                        party.pauses(party.unanswered.min(6));
                        party.unanswered += 1;
                    }
                }),
            }
        });
        return asking
            .inspect_err(|error| tracing::error!(%error, "no thread can be started"))
            .ok();
    }
    None
}

/// Removes what is left of makings of a kind that this party does not make any more with the other one.
fn discard(shared: &ServiceState, settings: &Settings) {
    let members = shared.home.members();
    let wanted = |of: &Between| {
        let member = members.by_fingerprint(&Fingerprint::from_bytes(of.peer));
        let with = member.and_then(|member| settings.stock.get(&member.name));
        with.is_some_and(|with| with.target_of(of.kind) > 0)
    };
    let Ok(key) = shared.home.stock_key() else {
        return;
    };
    match discard_unfinished(&shared.home.stock_folder(), &key, &wanted) {
        Ok(0) => {}
        Ok(removed) => tracing::info!(
            removed,
            "what was left of makings of stock is removed: no more of it is wanted"
        ),
        Err(error) => tracing::error!(%error, "the stock cannot be read"),
    }
}

/// Makes stock to which this service has agreed, in a thread of its own.
pub(super) fn begin(shared: &Arc<ServiceState>, agreed: Agreed) -> Option<JoinHandle<()>> {
    let beside = Arc::clone(shared);
    let making = thread::Builder::new().name("stock".to_owned());
    let making = making.spawn(move || {
        make(&beside, &agreed);
    });
    making
        .inspect_err(|error| tracing::error!(%error, "no thread can be started"))
        .ok()
}
