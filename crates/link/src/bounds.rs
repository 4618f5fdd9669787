//! Bounds on the memory that a peer may make this side hold.

use crate::LinkKind;

/// Limits of a link, from the plan: a message outside them is an error of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The longest payload of any message, in bytes.
    pub longest: u64,
    /// Bytes per peer that may arrive before they are expected, each message counting 64 bytes more than its payload; beyond it this side
    /// stops reading from that peer until a message is taken. A plan that allows less than a correct peer may be ahead stalls.
    pub early: u64,
    /// Payload bytes per peer that may wait to be sent before `post` says no.
    pub credit: u64,
    /// Rounds of the plan: a step at or beyond it does not exist.
    pub places: u32,
    /// Chunks of the plan; the frames of set-up and totals count as chunks.
    pub chunks: u32,
    /// Passes of the plan, each of which is an epoch of its own.
    pub epochs: u16,
}

impl Bounds {
    /// Those that hold the traffic of both: links in memory share them.
    #[must_use]
    pub fn wider(self, other: Self) -> Self {
        Bounds {
            longest: self.longest.max(other.longest),
            early: self.early.max(other.early),
            credit: self.credit.max(other.credit),
            places: self.places.max(other.places),
            chunks: self.chunks.max(other.chunks),
            epochs: self.epochs.max(other.epochs),
        }
    }

    /// Bytes that a connection with one peer may hold: what came early, what waits to be sent, a message or two under way in either
    /// direction, and the buffers of the link.
    pub const fn held(&self, link: LinkKind) -> u64 {
        self.early
            .saturating_add(self.credit)
            .saturating_add(self.longest.saturating_mul(4))
            .saturating_add(link.buffers())
    }
}
