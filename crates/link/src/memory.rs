//! Links between participants in one process: a message is copied once into a pooled buffer and once out of it.
//!
//! Between two ends lies a pipe under a lock that is held for a few pushes, never for a copy. An end that waits sleeps on its bell; the
//! bell is rung only while an end sleeps, so ends that are stepped in turn by one thread never enter the kernel.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use veil_session::{Channel, Peer, SessionId, Wiped};

use crate::copy::{append, copy};
use crate::frame::tag;
use crate::inbox::Inbox;
use crate::pool::{Pool, forget};
use crate::{Bounds, Link, LinkError, LinkFault, Meters, Woken, check_post};

/// A message on its way.
#[derive(Debug)]
struct Parcel {
    tag: u64,
    at: Channel,
    body: Vec<u8>,
}

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts: any of them may hold with any other"
)]
struct PipeState {
    queue: VecDeque<Parcel>,
    /// Payload bytes in `queue`.
    bytes: u64,
    /// Empty buffers on their way back to the sender.
    spare: Vec<Vec<u8>>,
    /// The sender was told that there is no room.
    refused: bool,
    goodbye: bool,
    aborted: bool,
    /// The sender's or the receiver's end is gone.
    dropped: bool,
}

impl Drop for PipeState {
    /// Buffers may have held what is the receiver's.
    fn drop(&mut self) {
        self.queue.drain(..).for_each(|parcel| forget(parcel.body));
        self.spare.drain(..).for_each(forget);
    }
}

/// One direction between two participants.
#[derive(Debug, Default)]
struct Pipe {
    state: Mutex<PipeState>,
    /// Something for the receiver is in `state`.
    filled: AtomicBool,
    /// The receiver made room for a sender that was refused, or left.
    drained: AtomicBool,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        // No code panics while it holds this lock, and what it guards is a queue: whole after every statement.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Wakes the thread that waits at one end, if one does.
#[derive(Debug, Default)]
struct Bell {
    asleep: AtomicBool,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Bell {
    fn ring(&self) {
        // Pairs with the fence in `sleep`: either this side sees the sleeper, or the sleeper sees what was put down before.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            let guard = self
                .lock
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            self.asleep.store(false, Ordering::Relaxed);
            drop(guard);
            self.woken.notify_one();
        }
    }

    /// Sleeps until rung or `until`, unless `ready` says after lying down that there is no need to.
    fn sleep(&self, until: Instant, ready: impl Fn() -> bool) -> Woken {
        let mut guard = self
            .lock
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        loop {
            if ready() || !self.asleep.load(Ordering::Relaxed) {
                self.asleep.store(false, Ordering::Relaxed);
                return Woken::Ready;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.asleep.store(false, Ordering::Relaxed);
                return Woken::TimedOut;
            }
            guard = self
                .woken
                .wait_timeout(guard, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
    }
}

/// This end's half of the connection to one peer.
#[derive(Debug)]
struct Side {
    peer: Peer,
    out: Arc<Pipe>,
    into: Arc<Pipe>,
    bell: Arc<Bell>,
    inbox: Inbox,
    /// Taken from the pipe, not yet in the inbox.
    arrived: VecDeque<Parcel>,
    /// Buffers for what this side sends.
    pool: Pool,
    /// The peer said goodbye or is gone.
    left: bool,
}

impl Side {
    fn error(&self, at: Option<Channel>, fault: LinkFault) -> LinkError {
        LinkError {
            peer: self.peer,
            at,
            fault,
        }
    }

    /// Moves what came into the inbox. `true` if anything did.
    fn drain(&mut self) -> bool {
        let mut moved = false;
        loop {
            while let Some(Parcel { tag, at, body }) = self.arrived.pop_front() {
                match self.inbox.offer(tag, at, body) {
                    Ok(None) => moved = true,
                    Ok(Some(body)) => {
                        self.arrived.push_front(Parcel { tag, at, body });
                        return moved;
                    }
                    Err(fault) => {
                        self.inbox.fail(Some(at), fault);
                        self.arrived.clear();
                        return true;
                    }
                }
            }
            if self.inbox.fault().is_some() || !self.into.filled.swap(false, Ordering::AcqRel) {
                return moved;
            }
            moved |= self.fetch();
        }
    }

    /// Gives empty buffers back, so that the next message comes in one that the cache still has. A busy peer gets them later.
    fn give_back(&mut self) {
        if let Ok(mut state) = self.into.state.try_lock() {
            self.inbox.pool().give(&mut state.spare);
        }
    }

    /// Takes what is in the pipe, and gives empty buffers back. `arrived` is empty.
    fn fetch(&mut self) -> bool {
        let mut state = self.into.lock();
        std::mem::swap(&mut state.queue, &mut self.arrived);
        state.bytes = 0;
        self.inbox.pool().give(&mut state.spare);
        let room = std::mem::take(&mut state.refused);
        let (goodbye, aborted, dropped) = (state.goodbye, state.aborted, state.dropped);
        drop(state);
        if room {
            self.into.drained.store(true, Ordering::Release);
            self.bell.ring();
        }
        self.left |= goodbye || dropped;
        if aborted {
            self.inbox.aborted();
        } else if dropped && !goodbye {
            // What came before is still delivered: the owner sees the fault when it asks for more.
            self.inbox
                .fail(None, LinkFault::Closed("the other end is gone".into()));
        }
        room || self.left || aborted || !self.arrived.is_empty()
    }

    /// Changes the outgoing pipe and wakes the peer.
    fn tell(&self, change: impl FnOnce(&mut PipeState)) {
        let mut state = self.out.lock();
        change(&mut state);
        self.out.filled.store(true, Ordering::Release);
        drop(state);
        self.bell.ring();
    }
}

/// One participant's end of a [`mesh`].
#[derive(Debug)]
pub struct MemoryLink {
    sides: Vec<Side>,
    bell: Arc<Bell>,
    bounds: Bounds,
    meters: Meters,
    /// Something came that the owner has not been told of.
    news: bool,
    /// Closed or aborted: nothing more may be posted.
    over: bool,
    aborted: bool,
}

/// Connects every party with all participants, and owners and recipients with the parties only. The ends are in the order of `peers`.
pub fn mesh(peers: &[Peer], bounds: Bounds) -> Vec<MemoryLink> {
    let bells: Vec<Arc<Bell>> = peers.iter().map(|_| Arc::default()).collect();
    let mut links: Vec<MemoryLink> = bells
        .iter()
        .map(|bell| MemoryLink {
            sides: Vec::new(),
            bell: Arc::clone(bell),
            bounds,
            meters: Meters::default(),
            news: false,
            over: false,
            aborted: false,
        })
        .collect();
    for (j, &second) in peers.iter().enumerate() {
        for (i, &first) in peers[..j].iter().enumerate() {
            if first.party().is_none() && second.party().is_none() {
                continue;
            }
            let (there, back) = (Arc::<Pipe>::default(), Arc::<Pipe>::default());
            links[i].connect(second, &there, &back, &bells[j]);
            links[j].connect(first, &back, &there, &bells[i]);
        }
    }
    links
}

impl MemoryLink {
    fn connect(&mut self, peer: Peer, out: &Arc<Pipe>, into: &Arc<Pipe>, bell: &Arc<Bell>) {
        self.sides.push(Side {
            peer,
            out: Arc::clone(out),
            into: Arc::clone(into),
            bell: Arc::clone(bell),
            inbox: Inbox::new(peer, self.bounds, 0),
            arrived: VecDeque::new(),
            pool: Pool::new(self.bounds.credit.saturating_mul(2)),
            left: false,
        });
    }

    fn side(&mut self, peer: Peer, at: Channel) -> Result<&mut Side, LinkError> {
        let found = self.sides.iter_mut().find(|s| s.peer == peer);
        found.ok_or(LinkError {
            peer,
            at: Some(at),
            fault: LinkFault::NoSuchPeer,
        })
    }
}

impl MemoryLink {
    /// Lands a message of so many bytes, of which `land` says whether it is here.
    fn landed(
        &mut self,
        from: Peer,
        (at, bytes): (Channel, usize),
        mut land: impl FnMut(&mut Inbox) -> Result<bool, LinkError>,
    ) -> Result<bool, LinkError> {
        let side = self.side(from, at)?;
        let mut here = land(&mut side.inbox)?;
        let mut moved = false;
        if !here {
            moved = side.drain();
            here = moved && land(&mut side.inbox)?;
            if !here {
                if let Some(fault) = side.inbox.fault() {
                    return Err(fault.clone());
                }
                if side.left && side.arrived.is_empty() {
                    return Err(side.error(Some(at), LinkFault::left()));
                }
            }
        }
        if here {
            side.give_back();
        }
        self.news |= moved;
        if here {
            self.meters.received(bytes);
        }
        Ok(here)
    }

    /// Sleeps until a peer has done something, or `until`.
    fn sleep(&self, until: Instant) -> Woken {
        self.bell.sleep(until, || {
            self.sides.iter().any(|side| {
                // A side that has something that may not come in yet has nothing new to tell.
                let filled = side.arrived.is_empty() && side.into.filled.load(Ordering::Acquire);
                filled || side.out.drained.load(Ordering::Acquire)
            })
        })
    }
}

impl Link for MemoryLink {
    fn bind(&mut self, session: SessionId) {
        for side in &mut self.sides {
            side.inbox.bind(tag(&session.0));
            self.news = true;
        }
    }

    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        self.post_pieces(to, at, &[bytes])
    }

    fn post_pieces(&mut self, to: Peer, at: Channel, pieces: &[&[u8]]) -> Result<bool, LinkError> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let Bounds {
            longest, credit, ..
        } = self.bounds;
        let over = self.over;
        let side = self.side(to, at)?;
        if let Some(fault) = side.inbox.fault() {
            return Err(fault.clone());
        }
        check_post(over, bytes, longest).map_err(|fault| side.error(Some(at), fault))?;
        if side.left {
            return Err(side.error(Some(at), LinkFault::left()));
        }
        let mut state = side.out.lock();
        side.pool.receive(&mut state.spare);
        if state.dropped {
            drop(state);
            return Err(side.error(Some(at), LinkFault::left()));
        }
        if !state.queue.is_empty() && state.bytes.saturating_add(bytes as u64) > credit {
            state.refused = true;
            return Ok(false);
        }
        drop(state);
        let mut body = side.pool.take(bytes);
        for piece in pieces {
            append(&mut body, piece);
        }
        // No other sender fills this pipe: there is as much room as before.
        let mut state = side.out.lock();
        state.queue.push_back(Parcel {
            tag: side.inbox.tag(),
            at,
            body,
        });
        state.bytes += bytes as u64;
        side.out.filled.store(true, Ordering::Release);
        drop(state);
        side.bell.ring();
        self.meters.sent(bytes);
        Ok(true)
    }

    fn expect(&mut self, from: Peer, at: Channel, bytes: u64) -> Result<(), LinkError> {
        self.side(from, at)?.inbox.expect(at, bytes)
    }

    fn land(&mut self, from: Peer, at: Channel, into: &mut [u8]) -> Result<bool, LinkError> {
        let bytes = into.len();
        self.land_pieces(from, at, bytes, &mut |body| copy(into, body))
    }

    fn land_pieces(
        &mut self,
        from: Peer,
        at: Channel,
        bytes: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, LinkError> {
        self.landed(from, (at, bytes), |inbox| inbox.land_pieces(at, bytes, put))
    }

    fn land_whole(
        &mut self,
        from: Peer,
        at: Channel,
        into: &mut Wiped<u8>,
    ) -> Result<bool, LinkError> {
        self.landed(from, (at, into.len()), |inbox| inbox.land_whole(at, into))
    }

    fn poll(&mut self) -> Result<bool, LinkError> {
        let mut moved = std::mem::take(&mut self.news);
        for side in &mut self.sides {
            moved |= side.drain();
            moved |= side.out.drained.swap(false, Ordering::AcqRel);
        }
        match LinkError::foremost(self.sides.iter().filter_map(|s| s.inbox.fault())) {
            Some(error) => Err(error.clone()),
            None => Ok(moved),
        }
    }

    fn wait(&mut self, until: Instant) -> Result<Woken, LinkError> {
        if self.poll()? {
            return Ok(Woken::Ready);
        }
        Ok(self.sleep(until))
    }

    fn abort(&mut self) {
        (self.over, self.aborted) = (true, true);
        for side in &self.sides {
            side.tell(|state| {
                state.queue.clear();
                state.bytes = 0;
                state.aborted = true;
            });
        }
    }

    /// After an abort, waits until each peer is known to have left, as far as `until` allows.
    fn close(&mut self, until: Instant) -> Result<(), LinkError> {
        if self.aborted {
            loop {
                for side in &mut self.sides {
                    // No reader takes it any more.
                    side.arrived.clear();
                    side.drain();
                    if side.inbox.fault().is_some() {
                        side.into.filled.store(false, Ordering::Relaxed);
                    }
                    side.out.drained.store(false, Ordering::Relaxed);
                }
                let gone = |side: &Side| side.left || side.inbox.fault().is_some();
                if self.sides.iter().all(gone) || Instant::now() >= until {
                    return Ok(());
                }
                self.sleep(until);
            }
        }
        // What was posted stays in the pipes for as long as the peers want it.
        if !std::mem::replace(&mut self.over, true) {
            for side in &self.sides {
                side.tell(|state| state.goodbye = true);
            }
        }
        match self.sides.iter().find_map(|s| {
            s.inbox
                .left_over()
                .map(|at| s.error(Some(at), LinkFault::Unexpected))
        }) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn meters(&self) -> Meters {
        self.meters
    }
}

impl Drop for MemoryLink {
    fn drop(&mut self) {
        for side in &self.sides {
            let mut into = side.into.lock();
            into.dropped = true;
            // No reader will take it any more.
            into.queue.clear();
            drop(into);
            side.into.drained.store(true, Ordering::Release);
            side.tell(|state| state.dropped = true);
        }
    }
}
