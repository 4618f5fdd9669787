//! Events for a recorder: one event per round, times and sizes, never a value.

use std::time::Instant;

use veil_protocol::{Round, Task};
use veil_session::{Frame, Peer};

use crate::status::TraceId;

/// Writes down what a run does. Called by every lane at the end of each round: it should not take long, and must not block.
pub trait Recorder: Send + Sync {
    /// The session of `me` has its name; before its first round.
    fn session(&self, me: Peer, trace: TraceId);

    /// A round ended.
    fn round(&self, event: &RoundEvent<'_>);
}

/// A round of one chunk at one participant, when it is over.
#[derive(Debug)]
pub struct RoundEvent<'a> {
    /// The participant.
    pub me: Peer,
    /// The chunk.
    pub frame: Frame,
    /// The task of the round.
    pub task: Task,
    /// Which of the task's rounds it is, from 0.
    pub index: u32,
    /// The round itself: commands and transfers.
    pub round: &'a Round,
    /// Local commands were submitted.
    pub began: Instant,
    /// Local commands were done: sending starts.
    pub computed: Instant,
    /// The last message was posted.
    pub posted: Instant,
    /// The last message had landed: finishing commands were submitted.
    pub landed: Instant,
    /// Finishing commands were done.
    pub ended: Instant,
    /// Payload bytes of each of [`Round::sends`].
    pub sent: &'a [u64],
    /// Payload bytes of each of [`Round::recvs`], and when it landed.
    pub received: &'a [(u64, Instant)],
}

/// Times of a round that is going on. Kept only in runs that are recorded.
#[derive(Clone)]
pub(crate) struct Stamps {
    pub(crate) began: Instant,
    pub(crate) computed: Instant,
    pub(crate) posted: Instant,
    pub(crate) landed: Instant,
    pub(crate) sent: Vec<u64>,
    pub(crate) received: Vec<(u64, Instant)>,
}

impl Stamps {
    pub(crate) fn new(sent: Vec<u64>, received: impl Iterator<Item = u64>) -> Self {
        let now = Instant::now();
        Stamps {
            began: now,
            computed: now,
            posted: now,
            landed: now,
            sent,
            received: received.map(|bytes| (bytes, now)).collect(),
        }
    }
}
