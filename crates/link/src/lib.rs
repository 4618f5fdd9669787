//! Links: messages between peers. Bytes, never shares; nothing here blocks except [`Link::wait`].
//!
//! A message has a name, the [`Channel`]. A receiver says what it expects before it takes anything: a message that nobody
//! expects is an error with the peer and the step in it, and never makes this side hold more memory than was agreed.

mod bounds;
mod error;

use std::time::Instant;

pub use bounds::Bounds;
pub use error::{LinkError, LinkFault};
use veil_session::{Channel, Peer};

/// What ended a [`Link::wait`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// Something may have arrived, or there is room to send again.
    Ready,
    /// The deadline passed.
    TimedOut,
}

/// Bytes and messages that a link moved.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Meters {
    /// Messages posted.
    pub messages_sent: u64,
    /// Payload bytes posted.
    pub payload_sent: u64,
    /// Bytes with our frame headers, before encryption.
    pub bytes_sent: u64,
    /// Messages landed.
    pub messages_received: u64,
    /// Payload bytes landed.
    pub payload_received: u64,
}

/// One participant's end of its links to all its peers, for one lane.
pub trait Link: Send {
    /// Sends `bytes` as the message `at`. `Ok(false)`: no room now, nothing was taken, try again after [`Link::wait`].
    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError>;

    /// Announces that `from` will send `bytes` bytes as `at`. May be called rounds ahead.
    fn expect(&mut self, from: Peer, at: Channel, bytes: u64) -> Result<(), LinkError>;

    /// Takes the expected message `at` into `into`, whose length is that announced. `Ok(false)`: not here yet.
    fn land(&mut self, from: Peer, at: Channel, into: &mut [u8]) -> Result<bool, LinkError>;

    /// Moves bytes without blocking: sends what waits, takes what came. `true` if anything moved.
    fn poll(&mut self) -> Result<bool, LinkError>;

    /// Blocks until something may have changed or `until` has passed.
    fn wait(&mut self, until: Instant) -> Result<Woken, LinkError>;

    /// Tells every peer, ahead of everything that waits to be sent, that this side gave up. One constant code: peers learn nothing
    /// about the reason. Never fails: whoever cannot be told finds the connection closed.
    fn abort(&mut self);

    /// Sends what is left and closes in order: peers that still need our bytes get them, until `until`.
    fn close(&mut self, until: Instant) -> Result<(), LinkError>;

    /// What was moved so far.
    fn meters(&self) -> Meters;
}
