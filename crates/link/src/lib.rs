//! Links: messages between peers. Bytes, never shares; nothing here blocks except [`Link::wait`].
//!
//! A message has a name, the [`Channel`]. A receiver says what it expects before it takes anything: a message that nobody
//! expects is an error with the peer and the step in it, and never makes this side hold more memory than was agreed.

mod bounds;
mod error;
mod frame;
mod inbox;
pub mod memory;
mod pool;
pub mod tls;

use std::time::Instant;

pub use bounds::Bounds;
pub use error::{LinkError, LinkFault};
use veil_session::{Channel, Peer, SessionId};

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
    /// Gives the session its name: messages from here on carry it, and messages that carry another are faults. Called once,
    /// when all participants have what the name is made from. Messages of peers that were quicker wait, within
    /// [`Bounds::early`], until it is.
    fn bind(&mut self, session: SessionId);

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

impl<L: Link + ?Sized> Link for Box<L> {
    fn bind(&mut self, session: SessionId) {
        (**self).bind(session);
    }

    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        (**self).post(to, at, bytes)
    }

    fn expect(&mut self, from: Peer, at: Channel, bytes: u64) -> Result<(), LinkError> {
        (**self).expect(from, at, bytes)
    }

    fn land(&mut self, from: Peer, at: Channel, into: &mut [u8]) -> Result<bool, LinkError> {
        (**self).land(from, at, into)
    }

    fn poll(&mut self) -> Result<bool, LinkError> {
        (**self).poll()
    }

    fn wait(&mut self, until: Instant) -> Result<Woken, LinkError> {
        (**self).wait(until)
    }

    fn abort(&mut self) {
        (**self).abort();
    }

    fn close(&mut self, until: Instant) -> Result<(), LinkError> {
        (**self).close(until)
    }

    fn meters(&self) -> Meters {
        (**self).meters()
    }
}

impl Meters {
    fn sent(&mut self, payload: usize) {
        self.messages_sent += 1;
        self.payload_sent += payload as u64;
        self.bytes_sent += (payload + frame::HEADER) as u64;
    }

    fn received(&mut self, payload: usize) {
        self.messages_received += 1;
        self.payload_received += payload as u64;
    }
}

/// May this side post a message of `bytes` bytes, as far as only this side matters?
fn check_post(over: bool, bytes: usize, longest: u64) -> Result<(), LinkFault> {
    if over {
        return Err(LinkFault::Misuse(
            "a message is posted after close or abort",
        ));
    }
    if bytes as u64 > longest || u32::try_from(bytes).is_err() {
        return Err(LinkFault::Misuse(
            "a message is posted that is longer than the bounds say",
        ));
    }
    Ok(())
}
