//! Oblivious transfers that a participant keeps between runs: the next run with the same party begins from them, without curves.
//!
//! In memory only. Cached transfers are taken out before the other end hears of them, and used in that run or not at all: only a run that
//! ends well puts new ones back. So a run that fails has told its peer nothing about transfers that are used again (rule R3).
//!
//! Memory can be copied: a virtual machine is set back to a snapshot, or a process goes on twice. Then each copy holds what another one has used.
//! That is what [`Marks`] are for: a word on a disk, which no copy of the memory takes with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use veil_device::Trees;
use veil_protocol::ot::cache::{CachedReceiver, CachedSender};
use veil_session::{Secret, SessionId};

/// How long a participant keeps transfers, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Runs that may follow each other without curves.
    pub runs: u32,
    /// How long after the curves they may begin.
    pub age: Duration,
    /// Peers and roles, each with transfers of its own. The oldest ones make room.
    pub states: usize,
}

impl Default for Limits {
    /// 1000 runs, an hour, 64 peers: about 12 kB each.
    fn default() -> Self {
        Limits {
            runs: 1000,
            age: Duration::from_secs(3600),
            states: 64,
        }
    }
}

/// A record of the use of cached transfers that outlives this memory.
pub trait Marks: Send + Sync {
    /// Writes down for good that something is used from now on. False if that cannot be written, or if another writer has written since this
    /// memory last did: then it is a copy of one that went on, or was set back, and nothing that it keeps may be used.
    fn used(&self) -> bool;
}

/// Transfers that a participant keeps for its next runs, of all peers. Wiped on drop.
pub struct OtCache {
    limits: Limits,
    /// Where each use is written down before it.
    marks: Option<Box<dyn Marks>>,
    /// The process whose memory this is: a child that goes on with a copy has another number.
    process: u32,
    /// States stay where they are when the list moves: nothing of them is left behind.
    states: Mutex<Vec<(With, Box<State>)>>,
    /// How often something was forgotten; it changes under the lock of the states.
    forgotten: AtomicU64,
}

/// Between whom transfers are, and for what.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct With {
    /// Identities of this participant and of the other, as the run's binding has them.
    pub(crate) identities: [[u8; 32]; 2],
    pub(crate) protocol: &'static str,
    /// Whether this participant is the sender.
    pub(crate) sends: bool,
    pub(crate) trees: Trees,
}

/// What is kept.
pub(crate) struct State {
    pub(crate) end: End,
    /// What proves to the other end, and to no other peer, that it is this one.
    pub(crate) key: Secret,
    pub(crate) chain: Chain,
    /// The run that left it.
    pub(crate) left_by: SessionId,
}

/// What a run leaves if it ends well. Wiped on drop.
pub(crate) struct PendingEntry {
    store: Arc<OtCache>,
    with: With,
    state: Box<State>,
    /// The count of forgotten transfers when the run began.
    forgotten: u64,
}

impl PendingEntry {
    pub(crate) fn new(store: Arc<OtCache>, with: With, state: Box<State>) -> Self {
        let forgotten = store.forgotten.load(Ordering::SeqCst);
        PendingEntry {
            store,
            with,
            state,
            forgotten,
        }
    }

    /// The run has ended well. What was forgotten meanwhile does not come back: this may be of such a key.
    pub(crate) fn keep(self) {
        self.store.put(self.with, self.state, self.forgotten);
    }
}

/// An end of cached transfers.
pub(crate) enum End {
    Sender(CachedSender),
    Receiver(CachedReceiver),
}

/// Runs since there were curves.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    runs: u32,
    since: Instant,
}

impl Chain {
    /// Of a run with curves.
    pub(crate) fn begin() -> Self {
        Chain {
            runs: 0,
            since: Instant::now(),
        }
    }

    /// With one run more.
    pub(crate) const fn longer(self) -> Self {
        Chain {
            runs: self.runs.saturating_add(1),
            ..self
        }
    }
}

impl Default for OtCache {
    fn default() -> Self {
        OtCache::within(Limits::default())
    }
}

impl OtCache {
    /// Nothing yet, and no more than `limits` allow.
    pub fn within(limits: Limits) -> Self {
        OtCache {
            limits,
            marks: None,
            process: std::process::id(),
            states: Mutex::default(),
            forgotten: AtomicU64::new(0),
        }
    }

    /// The same, of which nothing is used before `marks` say so.
    #[must_use]
    pub fn marked(self, marks: impl Marks + 'static) -> Self {
        OtCache {
            marks: Some(Box::new(marks)),
            ..self
        }
    }

    /// How many peers and roles there are transfers for.
    pub fn count(&self) -> usize {
        self.states().len()
    }

    /// Wipes the transfers kept with peers whose key satisfies `key`: the identity of the run's binding, either end's.
    pub fn forget(&self, key: impl Fn(&[u8; 32]) -> bool) {
        let mut states = self.states();
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        states.retain(|(with, _)| !with.identities.iter().any(&key));
    }

    /// Wipes transfers that are too old to be used.
    pub fn sweep(&self) {
        self.states().retain(|(_, state)| self.holds(state.chain));
    }

    /// Takes out what is kept for such a run, if anything. It is on a disk that it is used when this returns.
    pub(crate) fn take(&self, with: &With) -> Option<Box<State>> {
        let mut states = self.states();
        let at = states.iter().position(|(other, _)| other == with)?;
        let (_, state) = states.swap_remove(at);
        if !self.holds(state.chain) {
            return None;
        }
        let alone = self.process == std::process::id();
        if alone && self.marks.as_ref().is_none_or(|marks| marks.used()) {
            return Some(state);
        }
        // What one copy knows to be used may be used by any.
        states.clear();
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        None
    }

    /// Keeps what a run has left that ended well, unless something was forgotten since `forgotten` times. Of two that end at once both ends keep the
    /// same one.
    fn put(&self, with: With, state: Box<State>, forgotten: u64) {
        let mut states = self.states();
        if self.forgotten.load(Ordering::SeqCst) != forgotten || !self.holds(state.chain) {
            return;
        }
        if let Some((_, old)) = states.iter_mut().find(|(other, _)| *other == with) {
            if old.left_by.0 < state.left_by.0 || !self.holds(old.chain) {
                *old = state;
            }
            return;
        }
        while states.len() >= self.limits.states.max(1) {
            let ages = states.iter().enumerate();
            let oldest = ages.min_by_key(|(_, (_, state))| state.chain.since);
            let Some(at) = oldest.map(|(at, _)| at) else {
                break;
            };
            drop(states.swap_remove(at));
        }
        states.push((with, state));
    }

    fn holds(&self, chain: Chain) -> bool {
        chain.runs < self.limits.runs && chain.since.elapsed() < self.limits.age
    }

    fn states(&self) -> MutexGuard<'_, Vec<(With, Box<State>)>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use veil_protocol::ot::{Ends, Pins, ReceiverSetUp, SenderSetUp};
    use veil_session::{PartyId, Peer};

    use super::*;

    fn with(peer: u8) -> With {
        With {
            identities: [[0; 32], [peer; 32]],
            protocol: "yao",
            sends: true,
            trees: Trees::default(),
        }
    }

    /// What a session of this name leaves.
    fn state(session: u8) -> State {
        let [sender, receiver] = PartyId::TWO.map(Peer::Party);
        let session = SessionId([session; 32]);
        let ends = Ends {
            session,
            sender,
            receiver,
        };
        let mut number = 0u64;
        let mut random = |bytes: &mut [u8]| {
            for byte in bytes {
                number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                *byte = (number >> 56) as u8;
            }
            Ok::<_, Infallible>(())
        };
        let trees = Trees::default();
        let Ok((sender, points)) = SenderSetUp::start(&ends, trees, Pins::default(), &mut random);
        let Ok((receiver, point)) = ReceiverSetUp::start(&ends, trees, &mut random);
        let choices = Secret::new([3; 16]);
        let made = receiver.finish_and_keep(&points, &choices);
        let (message, ..) = made.expect("both are honest");
        let sender = sender.base(&point).expect("both are honest");
        let (_, _, cache) = sender.finish_and_keep(&message).expect("both are honest");
        State {
            end: End::Sender(cache),
            key: Secret::new([0; 16]),
            chain: Chain::begin(),
            left_by: session,
        }
    }

    #[test]
    fn what_is_taken_is_gone() {
        let cache = OtCache::default();
        cache.put(with(1), Box::new(state(1)), 0);
        let other = With {
            sends: false,
            ..with(1)
        };
        assert!(cache.take(&other).is_none());
        assert!(cache.take(&with(2)).is_none());
        assert!(cache.take(&with(1)).is_some());
        assert!(cache.take(&with(1)).is_none());
    }

    #[test]
    fn the_oldest_makes_room() {
        let cache = OtCache::within(Limits {
            states: 2,
            ..Limits::default()
        });
        for peer in 1..=3 {
            cache.put(with(peer), Box::new(state(peer)), 0);
        }
        assert_eq!(cache.count(), 2);
        let held = [1, 2, 3].map(|peer| cache.take(&with(peer)).is_some());
        assert_eq!(held, [false, true, true]);
    }

    /// The word on a disk, and what a memory believes it to be.
    struct Word {
        disk: Arc<AtomicU64>,
        memory: AtomicU64,
    }

    impl Marks for Word {
        fn used(&self) -> bool {
            let next = self.disk.fetch_add(1, Ordering::SeqCst) + 1;
            self.memory.swap(next, Ordering::SeqCst) + 1 == next
        }
    }

    /// Case S11: an end whose memory is set back to a snapshot again and again. Each copy holds what was kept then; only the first that uses
    /// something gets it, and none that goes on with what another one has used.
    #[test]
    fn a_copy_of_the_memory_gets_nothing() {
        let disk = Arc::new(AtomicU64::new(7));
        let snapshot = || {
            let cache = OtCache::default().marked(Word {
                disk: Arc::clone(&disk),
                memory: AtomicU64::new(7),
            });
            for peer in 1..=3 {
                cache.put(with(peer), Box::new(state(peer)), 0);
            }
            cache
        };
        let used = |cache: &OtCache, peer| cache.take(&with(peer)).is_some();
        let original = snapshot();
        assert!(used(&original, 1) && used(&original, 2));
        for _ in 0..68 {
            let copy = snapshot();
            // Nothing of it, used by the original or not.
            assert!(!used(&copy, 3));
            assert_eq!(copy.count(), 0);
            assert!(!used(&copy, 1));
            // It goes on with what it makes itself.
            let fresh = PendingEntry::new(Arc::new(copy), with(1), Box::new(state(1)));
            let copy = Arc::clone(&fresh.store);
            fresh.keep();
            assert!(used(&copy, 1));
        }
        // Now the original is the one that was overtaken.
        assert!(!used(&original, 3));
    }

    #[test]
    fn what_cannot_be_marked_is_not_used() {
        struct Full;
        impl Marks for Full {
            fn used(&self) -> bool {
                false
            }
        }
        let cache = OtCache::default().marked(Full);
        cache.put(with(1), Box::new(state(1)), 0);
        assert!(cache.take(&with(1)).is_none());
        assert_eq!(cache.count(), 0);
    }

    /// A child of a process has a copy of its memory.
    #[test]
    fn another_process_gets_nothing() {
        let mut cache = OtCache::default();
        cache.process = cache.process.wrapping_add(1);
        cache.put(with(1), Box::new(state(1)), 0);
        assert!(cache.take(&with(1)).is_none());
        assert_eq!(cache.count(), 0);
    }

    /// Ends that hear of the ends of two runs in another order keep the same.
    #[test]
    fn of_two_runs_at_once_the_greater_name_stays() {
        for order in [[1, 2], [2, 1]] {
            let cache = OtCache::default();
            for session in order {
                cache.put(with(1), Box::new(state(session)), 0);
            }
            assert_eq!(cache.count(), 1);
            let pending = cache.take(&with(1)).map(|state| state.left_by.0);
            assert_eq!(pending, Some([2; 32]));
        }
    }

    #[test]
    fn what_is_too_old_is_wiped() {
        let mut cache = OtCache::default();
        cache.put(with(1), Box::new(state(1)), 0);
        cache.sweep();
        assert_eq!(cache.count(), 1);
        cache.limits.age = Duration::ZERO;
        cache.sweep();
        assert_eq!(cache.count(), 0);
    }

    /// A run that began before may be of a key that was forgotten meanwhile.
    #[test]
    fn what_is_forgotten_does_not_come_back() {
        let cache = Arc::new(OtCache::default());
        let [before, after] = [1, 2].map(|peer| (with(peer), Box::new(state(peer))));
        let before = PendingEntry::new(Arc::clone(&cache), before.0, before.1);
        cache.forget(|_| false);
        before.keep();
        assert_eq!(cache.count(), 0);
        PendingEntry::new(Arc::clone(&cache), after.0, after.1).keep();
        assert_eq!(cache.count(), 1);
        cache.forget(|key| *key == [2; 32]);
        assert_eq!(cache.count(), 0);
    }
}
