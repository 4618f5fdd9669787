//! Links: messages between peers, by name. Bytes, never shares; nothing here blocks except [`Link::wait`] and [`Link::close`].
//!
//! A [`Link`] is one participant's end of its connections to all its peers, for one lane. A message has a name, a
//! [`Channel`]: the receiver announces it with its length, and the link lands it once, whole, whatever arrives before
//! it. The engine that runs a plan uses links, and so does the code that connects its participants; protocols are sans-I/O and do not.
//!
//! ```text
//! sender     post(to, name, bytes) ─► frames, within the peer's credit ─┐
//!                                                                       │  memory │ tls │ fabric
//! receiver   expect(from, name, length) … land(from, name, into) ◄──────┘
//! ```
//!
//! # Getting started
//!
//! ```
//! # fn main() -> Result<(), veil_link::LinkError> {
//! use veil_link::{Bounds, Link, memory};
//! use veil_session::{Channel, Frame, PartyId, Peer, StepId};
//!
//! let [alice, bob, _] = PartyId::THREE.map(Peer::Party);
//! let bounds = Bounds { longest: 1 << 16, early: 1 << 20, credit: 1 << 20, places: 10, chunks: 1, epochs: 1 };
//! let [mut a, mut b] = memory::mesh(&[alice, bob], bounds).try_into().expect("two ends");
//! let frame = Frame { epoch: 0, lane: 0, chunk: 0, rows: 8 };
//! let name = Channel { frame, step: StepId { place: 3, cycle: 0 }, part: 0 };
//! a.post(bob, name, b"veil")?;
//! let mut into = [0; 4];
//! b.expect(alice, name, 4)?;
//! assert!(b.land(alice, name, &mut into)? && into == *b"veil");
//! # Ok(())
//! # }
//! ```
//!
//! [`memory`] connects the participants of one process, [`tls`] connects them over a network by TCP and TLS 1.3, [`fabric`] by libfabric.
//! [`shape`] slows a link down to another network; [`tap`] lets a test cheat on it.
//!
//! # Promises
//!
//! - A message lands once, whole, under the name and at the length that both sides announced, from the peer that TLS authenticated, or there
//!   is an error that names peer and message.
//! - Whatever bytes a peer sends, this side neither panics nor holds more for it than [`Bounds`] says.
//! - One side's abort reaches all its peers ahead of the messages that wait.
//!
//! # Limits
//!
//! - A peer may send nothing, or send wrong values.
//! - A lost connection does not come back.
//! - An observer of the network learns the lengths and times of messages; they follow from the plan, which is public.

mod aead;
mod bounds;
pub mod copy;
mod error;
pub mod fabric;
#[cfg(feature = "floor")]
pub mod floor;
mod forward;
mod frame;
mod fuzz;
mod inbox;
mod kind;
mod line;
pub mod memory;
mod pool;
pub mod shape;
pub mod tap;
pub mod tls;

use std::time::Instant;

pub use bounds::Bounds;
pub use error::{LinkError, LinkFault};
pub use fuzz::fuzz_frame;
pub use kind::{LinkKind, NoLink, Provider};
use veil_session::{Channel, Peer, SessionId, Wiped};
use zeroize::Zeroizing;

/// The event that ended a [`Link::wait`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// Something may have arrived, or there is room to send again.
    Ready,
    /// The deadline passed.
    TimedOut,
}

/// Bytes of the header before each message: [`Meters::bytes_sent`] counts them and the payload.
pub const HEADER_BYTES: u64 = frame::HEADER as u64;

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
    ///
    /// # Errors
    /// [`LinkFault::NoSuchPeer`] without a link to `to`; [`LinkFault::Misuse`] after [`Link::abort`] or [`Link::close`], or for a
    /// message beyond [`Bounds::longest`]; the fault that this connection already has ([`LinkFault::Aborted`],
    /// [`LinkFault::Closed`] and so on), also if the peer has left.
    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError>;

    /// Announces that `from` will send `bytes` bytes as `at`. May be called rounds ahead.
    ///
    /// # Errors
    /// [`LinkFault::NoSuchPeer`] without a link to `from`; [`LinkFault::Misuse`] if the message was announced before;
    /// [`LinkFault::Length`] if it is here already, at another length.
    fn expect(&mut self, from: Peer, at: Channel, bytes: u64) -> Result<(), LinkError>;

    /// Takes the expected message `at` into `into`, whose length is that announced. `Ok(false)`: not here yet.
    ///
    /// # Errors
    /// [`LinkFault::NoSuchPeer`] without a link to `from`; [`LinkFault::Misuse`] if the message was not announced, or at another
    /// length than `into` has; the connection's fault, or [`LinkFault::Closed`] if the peer has left, where the message is not
    /// here and will not come.
    fn land(&mut self, from: Peer, at: Channel, into: &mut [u8]) -> Result<bool, LinkError>;

    /// Sends a message that lies in several places, in their order: as [`Link::post`], and so is what a wrapper does that has no method of its own.
    ///
    /// # Errors
    /// Those of [`Link::post`].
    fn post_pieces(&mut self, to: Peer, at: Channel, pieces: &[&[u8]]) -> Result<bool, LinkError> {
        match pieces {
            [bytes] => self.post(to, at, bytes),
            pieces => self.post(to, at, &Zeroizing::new(pieces.concat())),
        }
    }

    /// Takes the expected message `at`, of so many bytes, which goes to several places: `put` gets all of its bytes, in order, if it is here. As
    /// [`Link::land`], and so is what a wrapper does that has no method of its own.
    ///
    /// # Errors
    /// Those of [`Link::land`].
    fn land_pieces(
        &mut self,
        from: Peer,
        at: Channel,
        bytes: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, LinkError> {
        let mut whole = Zeroizing::new(vec![0; bytes]);
        let here = self.land(from, at, &mut whole)?;
        if here {
            put(&whole);
        }
        Ok(here)
    }

    /// Takes the expected message `at` as [`Link::land`] does, and may exchange the memory of `into` for that in which the message came: a long one is not
    /// copied. What `into` held is the link's then, which wipes it with its own at the end.
    ///
    /// # Errors
    /// Those of [`Link::land`].
    fn land_whole(
        &mut self,
        from: Peer,
        at: Channel,
        into: &mut Wiped<u8>,
    ) -> Result<bool, LinkError> {
        self.land(from, at, into)
    }

    /// Moves bytes without blocking: sends what waits, takes what came. `true` if anything moved.
    ///
    /// # Errors
    /// The foremost fault of all connections, an abort before others, with its peer and, where it is known, the message.
    fn poll(&mut self) -> Result<bool, LinkError>;

    /// Blocks until something may have changed or `until` has passed.
    ///
    /// # Errors
    /// [`LinkError`] as of [`Link::poll`]; [`LinkFault::Closed`] if the system cannot wait for this link's sockets.
    fn wait(&mut self, until: Instant) -> Result<Woken, LinkError>;

    /// Tells every peer, ahead of everything that waits to be sent, that this side gave up. One constant code: peers learn nothing
    /// about the reason. Never fails: a peer that cannot be told finds the connection closed.
    fn abort(&mut self);

    /// Messages are held up here by a clock, as on the way to a peer that is far: to be polled for, before [`Link::close`] is called,
    /// by a caller that must not wait there. A wrapper says so for the link within, too.
    fn under_way(&self) -> bool {
        false
    }

    /// Sends what is left and closes in order: peers that still need our bytes get them, until `until`.
    ///
    /// # Errors
    /// [`LinkFault::Unsent`] if a peer has not taken all bytes until `until`, [`LinkFault::Unexpected`] if a message of a peer
    /// was never announced, else the connections' foremost fault. After an abort it has no error of a peer.
    fn close(&mut self, until: Instant) -> Result<(), LinkError>;

    /// What was moved so far.
    fn meters(&self) -> Meters;
}

impl<L: Link + ?Sized> Link for Box<L> {
    crate::forward!(self, **self, bind post post_pieces expect land land_pieces land_whole poll wait abort under_way close meters);
}

impl Meters {
    /// Counts a message that was posted, with so many bytes of payload.
    pub fn sent(&mut self, payload: usize) {
        self.messages_sent += 1;
        self.payload_sent += payload as u64;
        self.bytes_sent += (payload + frame::HEADER) as u64;
    }

    /// These meters for received messages, and `sent` for sent ones: of a link that hands messages on later than they were posted.
    #[must_use]
    pub fn with_sent(self, sent: Meters) -> Meters {
        Meters {
            messages_received: self.messages_received,
            payload_received: self.payload_received,
            ..sent
        }
    }

    /// Counts a message that came, with so many bytes of payload.
    pub fn received(&mut self, payload: usize) {
        self.messages_received += 1;
        self.payload_received += payload as u64;
    }
}

impl std::ops::Add for Meters {
    type Output = Meters;
    fn add(self, other: Meters) -> Meters {
        Meters {
            messages_sent: self.messages_sent + other.messages_sent,
            payload_sent: self.payload_sent + other.payload_sent,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            messages_received: self.messages_received + other.messages_received,
            payload_received: self.payload_received + other.payload_received,
        }
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
