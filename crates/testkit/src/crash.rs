//! A participant that is killed or stands still at a chosen message.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use veil_link::{Link, LinkError, LinkFault, Meters, Woken};
use veil_session::{Channel, Peer, SessionId};

/// How a participant leaves a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crash {
    /// Its connections end without a word: the process was killed.
    Killed,
    /// Its connections stay, and nothing passes any more: the process or the network stands still.
    Paused,
}

/// State of the falling participant, over all its lanes.
#[derive(Debug)]
pub(crate) struct Edge {
    crash: Crash,
    /// Messages that it still posts.
    left: AtomicU64,
    down: AtomicBool,
    /// Links that stand still: peers must not see them close before the end.
    limbo: Mutex<Vec<Parked>>,
}

/// A link that no participant uses any more.
struct Parked(#[expect(dead_code, reason = "it is kept, not used")] Box<dyn Link>);

impl std::fmt::Debug for Parked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parked(..)")
    }
}

impl Edge {
    pub(crate) fn new(crash: Crash, after: u64) -> Self {
        Edge {
            crash,
            left: AtomicU64::new(after),
            down: AtomicBool::new(false),
            limbo: Mutex::default(),
        }
    }
}

/// A link that its owner loses.
pub(crate) struct CrashingLink {
    inner: Option<Box<dyn Link>>,
    edge: Arc<Edge>,
}

impl CrashingLink {
    pub(crate) fn new(inner: Box<dyn Link>, edge: Arc<Edge>) -> Self {
        CrashingLink {
            inner: Some(inner),
            edge,
        }
    }

    /// The link, as long as there is one; else how it was lost.
    fn inner(&mut self) -> Result<&mut Box<dyn Link>, Crash> {
        if self.edge.down.load(Ordering::Acquire) {
            if self.edge.crash == Crash::Killed {
                self.inner = None;
            }
            return Err(self.edge.crash);
        }
        self.inner.as_mut().ok_or(self.edge.crash)
    }

    /// What a call on the lost link gives: a killed participant fails, one that stands still waits.
    fn lost<T>(crash: Crash, peer: Option<Peer>, quiet: T) -> Result<T, LinkError> {
        match crash {
            Crash::Paused => Ok(quiet),
            Crash::Killed => Err(LinkError {
                peer: peer.unwrap_or(Peer::Recipient(u16::MAX)),
                at: None,
                fault: LinkFault::Closed("this participant was killed by the test".into()),
            }),
        }
    }
}

impl Link for CrashingLink {
    fn bind(&mut self, session: SessionId) {
        if let Ok(link) = self.inner() {
            link.bind(session);
        }
    }

    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        // One message less, taken back if there is no room for it now.
        let less = |left: u64| left.checked_sub(1);
        let taken = self
            .edge
            .left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        if taken.is_err() {
            self.edge.down.store(true, Ordering::Release);
        }
        let posted = match self.inner() {
            Ok(link) => link.post(to, at, bytes)?,
            Err(crash) => return Self::lost(crash, Some(to), false),
        };
        if !posted {
            self.edge.left.fetch_add(1, Ordering::AcqRel);
        }
        Ok(posted)
    }

    fn expect(&mut self, from: Peer, at: Channel, bytes: u64) -> Result<(), LinkError> {
        match self.inner() {
            Ok(link) => link.expect(from, at, bytes),
            Err(crash) => Self::lost(crash, Some(from), ()),
        }
    }

    fn land(&mut self, from: Peer, at: Channel, into: &mut [u8]) -> Result<bool, LinkError> {
        match self.inner() {
            Ok(link) => link.land(from, at, into),
            Err(crash) => Self::lost(crash, Some(from), false),
        }
    }

    fn poll(&mut self) -> Result<bool, LinkError> {
        match self.inner() {
            Ok(link) => link.poll(),
            Err(crash) => Self::lost(crash, None, false),
        }
    }

    fn wait(&mut self, until: Instant) -> Result<Woken, LinkError> {
        match self.inner() {
            Ok(link) => link.wait(until),
            Err(crash) => {
                std::thread::sleep(
                    until
                        .saturating_duration_since(Instant::now())
                        .min(Duration::from_millis(5)),
                );
                Self::lost(crash, None, Woken::TimedOut)
            }
        }
    }

    /// A participant that is killed or stands still tells no peer.
    fn abort(&mut self) {
        if let Ok(link) = self.inner() {
            link.abort();
        }
    }

    fn under_way(&self) -> bool {
        let down = self.edge.down.load(Ordering::Acquire);
        !down && self.inner.as_ref().is_some_and(Link::under_way)
    }

    fn close(&mut self, until: Instant) -> Result<(), LinkError> {
        match self.inner() {
            Ok(link) => link.close(until),
            Err(crash) => Self::lost(crash, None, ()),
        }
    }

    fn meters(&self) -> Meters {
        self.inner.as_ref().map(Link::meters).unwrap_or_default()
    }
}

impl Drop for CrashingLink {
    fn drop(&mut self) {
        if self.edge.crash == Crash::Paused
            && self.edge.down.load(Ordering::Acquire)
            && let Some(link) = self.inner.take()
        {
            let mut limbo = self
                .edge
                .limbo
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            limbo.push(Parked(link));
        }
    }
}
