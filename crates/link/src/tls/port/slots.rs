//! The jobs that await peers on a port, and the peers that have come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use veil_session::{Peer, PlanHash};

use super::lock;
use crate::LinkKind;
use crate::tls::handshake::Handshake;
use crate::tls::identity::Fingerprint;
use crate::tls::preface::{LaneCall, Refusal, VERSION};
use crate::tls::socket::hung_up;
use crate::tls::{Connected, Ended, GLANCE, Misses, SetupError, Terms};

/// All jobs that await a participant.
pub(super) struct Slots {
    by_plan: Mutex<BTreeMap<PlanHash, Arc<Slot>>>,
    /// Only one job at a time is ever met here.
    sole: bool,
    /// Failures from before the job awaited its peers: a peer that was turned away may not come again.
    early: Mutex<String>,
}

/// A job that awaits peers.
pub(super) struct Slot {
    terms: Terms,
    peers: Vec<Peer>,
    lanes: u16,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Lanes that were promised to a caller or are here.
    taken: BTreeSet<Seat>,
    connected: Vec<Connected>,
    failed: Option<SetupError>,
    /// The last failure of a caller.
    hint: String,
}

/// A lane of a peer.
type Seat = (Peer, u16);

/// A lane that was promised to a caller. Dropped before the caller is there, it leaves the lane to the next caller.
pub(super) struct Promise {
    slot: Arc<Slot>,
    seat: Seat,
    kept: bool,
}

/// Why a lane is refused, what to answer, and what to tell those who wait.
pub(super) struct No {
    pub(super) refusal: Refusal,
    pub(super) plan: PlanHash,
    pub(super) link: LinkKind,
    pub(super) why: String,
}

impl Slots {
    pub(super) fn new(sole: bool) -> Self {
        Slots {
            by_plan: Mutex::default(),
            sole,
            early: Mutex::default(),
        }
    }

    fn all(&self) -> Vec<Arc<Slot>> {
        lock(&self.by_plan).values().cloned().collect()
    }

    /// Notes what went wrong, for those who wait in vain.
    pub(super) fn hint(&self, hint: &str) {
        // Held meanwhile, so that a job which is not among them looks after this.
        let mut early = lock(&self.early);
        let all = self.all();
        if self.sole && all.is_empty() {
            hint.clone_into(&mut early);
        }
        for slot in all {
            hint.clone_into(&mut lock(&slot.state).hint);
        }
    }

    pub(super) fn drop_key(&self, key: &Fingerprint) {
        for slot in self.all() {
            if let Some(peer) = slot.holder(key) {
                slot.fail(SetupError::Dropped { peer });
            }
        }
    }

    /// The holder of `key` speaks another version: whatever it was called for will not come about.
    pub(super) fn other_version(&self, key: &Fingerprint, theirs: u8) -> String {
        for slot in self.all() {
            // Several jobs on one port: the port cannot tell which of them it meant, and the others are no business of its.
            if let Some(peer) = slot.holder(key).filter(|_| self.sole) {
                slot.fail(SetupError::Version {
                    peer,
                    ours: VERSION,
                    theirs,
                });
            }
        }
        format!("it speaks version {theirs} of the connection, and we speak {VERSION}")
    }

    /// Finds the job that awaits this call of the holder of `key`, and promises it the lane.
    pub(super) fn seat(&self, key: Fingerprint, call: LaneCall) -> Result<Promise, No> {
        let found = lock(&self.by_plan).get(&call.plan).cloned();
        // A job in which it has no part does not exist for it.
        let found = found.and_then(|slot| Some((slot.holder(&key)?, slot)));
        let Some((holder, slot)) = found else {
            return Err(self.unknown(&key, call.plan));
        };
        let (plan, link) = (call.plan, slot.terms.link);
        slot.admit(key, call)
            .map(|seat| Promise {
                slot: Arc::clone(&slot),
                seat,
                kept: false,
            })
            .map_err(|(refusal, why)| {
                let peer = holder;
                slot.fail(match refusal {
                    Refusal::Link => SetupError::Link {
                        peer,
                        ours: link,
                        theirs: call.link,
                    },
                    _ => SetupError::Refused {
                        peer,
                        why: format!("we turned it down: {why}"),
                    },
                });
                No {
                    refusal,
                    plan,
                    link,
                    why: why.into(),
                }
            })
    }

    /// What to say to a member whose plan is none that awaits it.
    fn unknown(&self, key: &Fingerprint, theirs: PlanHash) -> No {
        if let Some(no) = self.other_stage(key, theirs) {
            return no;
        }
        let mut others = self.all().into_iter().filter(|_| self.sole);
        let other = others.find_map(|slot| Some((slot.missing_of(key)?, slot)));
        if let Some((peer, slot)) = other {
            let ours = slot.terms.plan;
            slot.fail(SetupError::Plan { peer, ours, theirs });
            return No {
                refusal: Refusal::Plan,
                plan: ours,
                link: LinkKind::Tls,
                why: String::new(),
            };
        }
        No {
            refusal: Refusal::NotYet,
            plan: PlanHash([0; 32]),
            link: LinkKind::Tls,
            why: format!("it came for plan {theirs}, in which nobody here awaits it now"),
        }
    }

    /// What to say to a member that comes for the other stage of a job of which one is met here.
    fn other_stage(&self, key: &Fingerprint, theirs: PlanHash) -> Option<No> {
        let all = self.all().into_iter();
        let found = all.filter_map(|slot| Some((slot.terms.came_for_other(key, theirs)?, slot)));
        let ((peer, over), slot) = found.last()?;
        let ours = slot.terms.plan;
        match peer {
            Peer::Party(_) if over => slot.fail(SetupError::Plan { peer, ours, theirs }),
            // It is further than this side, and comes back.
            Peer::Party(_) | Peer::Owner(_) => {}
            Peer::Recipient(_) if over => {}
            // Its stage comes after this one.
            Peer::Recipient(_) => return None,
        }
        Some(No {
            refusal: Refusal::Plan,
            plan: ours,
            link: LinkKind::Tls,
            why: "it came for the other stage of the job".into(),
        })
    }

    /// Awaits `lanes` connections of each of `peers`.
    pub(super) fn gather(
        &self,
        terms: &Terms,
        peers: &[Peer],
        lanes: u16,
        (until, ended): (Instant, &Ended<'_>),
        lacks: &Misses<'_>,
    ) -> Result<Vec<Connected>, SetupError> {
        for &peer in peers {
            terms.pin(peer)?;
        }
        let slot = Arc::new(Slot {
            terms: terms.clone(),
            peers: peers.to_owned(),
            lanes,
            state: Mutex::new(State {
                taken: BTreeSet::new(),
                connected: Vec::new(),
                failed: None,
                hint: String::new(),
            }),
            changed: Condvar::new(),
        });
        {
            let mut slots = lock(&self.by_plan);
            if slots.contains_key(&terms.plan) {
                return Err(SetupError::Twice { plan: terms.plan });
            }
            slots.insert(terms.plan, Arc::clone(&slot));
        }
        let early = std::mem::take(&mut *lock(&self.early));
        if !early.is_empty() {
            lock(&slot.state).hint = early;
        }
        let met = slot.wait(until, ended, lacks);
        lock(&self.by_plan).remove(&terms.plan);
        // A caller that came after the end of the wait is dropped with the slot, and calls again.
        met
    }
}

impl Slot {
    /// As whom the holder of `key` is awaited.
    fn holder(&self, key: &Fingerprint) -> Option<Peer> {
        let pinned = |peer: &Peer| self.terms.pin(*peer).as_ref() == Ok(key);
        self.peers.iter().copied().find(pinned)
    }

    /// As whom the holder of `key` is awaited and not there with all lanes: it may have several parts in the job.
    fn missing_of(&self, key: &Fingerprint) -> Option<Peer> {
        let state = lock(&self.state);
        let pinned = |peer: &Peer| self.terms.pin(*peer).as_ref() == Ok(key);
        let missing = |peer: &Peer| pinned(peer) && self.lacks(&state, *peer);
        self.peers.iter().copied().find(missing)
    }

    fn lacks(&self, state: &State, peer: Peer) -> bool {
        let here = state.connected.iter().filter(|c| c.peer == peer).count();
        here < usize::from(self.lanes)
    }

    fn fail(&self, error: SetupError) {
        lock(&self.state).failed.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Checks a call of the holder of `key`, which has a part in this job, and promises it the lane.
    fn admit(&self, key: Fingerprint, call: LaneCall) -> Result<Seat, (Refusal, &'static str)> {
        if !self.peers.contains(&call.from) {
            return Err((
                Refusal::Stranger,
                "it says it is a participant whom we do not await",
            ));
        }
        if self.terms.pin(call.from) != Ok(key) {
            return Err((
                Refusal::Key,
                "the key that it shows is not pinned for whom it says it is",
            ));
        }
        if call.to != self.terms.me {
            return Err((
                Refusal::WrongNumber,
                "it wanted another participant: compare the addresses",
            ));
        }
        if call.link != self.terms.link {
            return Err((Refusal::Link, "it uses another link"));
        }
        let seat = (call.from, call.lane);
        let mut state = lock(&self.state);
        // A caller that hung up and comes again, after a restart perhaps, takes its old place.
        state.leave(|connected| connected.seat() == seat && hung_up(&connected.line.socket));
        if call.lane >= self.lanes || !state.taken.insert(seat) {
            return Err((
                Refusal::Lane,
                "that lane is connected already or not in the plan",
            ));
        }
        Ok(seat)
    }

    fn wait(
        &self,
        until: Instant,
        ended: &Ended<'_>,
        says: &Misses<'_>,
    ) -> Result<Vec<Connected>, SetupError> {
        let mut state = lock(&self.state);
        loop {
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            let lacks = |peer: &Peer| self.lacks(&state, *peer);
            let mut missing: Vec<Peer> = self.peers.iter().copied().filter(lacks).collect();
            if missing.is_empty() {
                state.leave(|connected| hung_up(&connected.line.socket));
                let lacks = |peer: &Peer| self.lacks(&state, *peer);
                missing = self.peers.iter().copied().filter(lacks).collect();
            }
            if missing.is_empty() {
                return Ok(std::mem::take(&mut state.connected));
            }
            let gone = |c: &&Connected| !missing.contains(&c.peer) && hung_up(&c.line.socket);
            let gone: Vec<Peer> = state
                .connected
                .iter()
                .filter(gone)
                .map(|c| c.peer)
                .collect();
            let mut away = missing.clone();
            away.extend(gone);
            says(&away);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || ended.now() {
                return Err(ended.missing(missing, std::mem::take(&mut state.hint)));
            }
            let waited = self.changed.wait_timeout(state, left.min(GLANCE));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Promise {
    /// Keeps it: the caller is there.
    pub(super) fn keep(mut self, handshake: Handshake) {
        let (peer, lane) = self.seat;
        lock(&self.slot.state).connected.push(Connected {
            line: handshake,
            peer,
            lane,
            plan: self.slot.terms.plan,
            link: self.slot.terms.link,
        });
        self.kept = true;
        self.slot.changed.notify_all();
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.kept {
            lock(&self.slot.state).taken.remove(&self.seat);
        }
    }
}

impl State {
    /// Forgets connections.
    fn leave(&mut self, gone: impl Fn(&Connected) -> bool) {
        let taken = &mut self.taken;
        self.connected.retain(|connected| {
            let gone = gone(connected);
            if gone {
                taken.remove(&connected.seat());
            }
            !gone
        });
    }
}

impl Connected {
    fn seat(&self) -> Seat {
        (self.peer, self.lane)
    }
}
