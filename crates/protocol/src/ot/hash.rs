//! Hashes of the set-up: each has the session, both ends, and what it is for.

use sha2::digest::Update;
use sha2::{Digest, Sha256};
use veil_session::{Peer, SessionId};

/// Between whom, and in which session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The session: nonces of both ends went into it.
    pub session: SessionId,
    /// Who has the offset.
    pub sender: Peer,
    /// Who chooses.
    pub receiver: Peer,
}

impl Ends {
    /// The same pair in the other roles.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Ends {
            session: self.session,
            sender: self.receiver,
            receiver: self.sender,
        }
    }
}

/// What a hash is for. Its first byte tells it from the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum For {
    /// A point, to another point (64 bytes, that become one).
    Point = 1,
    /// A point of an agreement, to a key.
    Key = 2,
    /// The message of the base transfers' sender.
    BaseSender = 3,
    /// The message of the base transfers' receiver.
    BaseReceiver = 4,
    /// Digests that prove leaves right.
    Leaves = 5,
    /// The message with the trees.
    Trees = 6,
    /// A string of turned transfers.
    String = 7,
    /// The challenge of their check.
    Challenge = 8,
    /// A key of a turned transfer.
    Reversed = 9,
    /// The message that turns transfers.
    Turn = 10,
    /// Claims that an end has cached transfers.
    Claim = 11,
}

/// A hash that has begun with all that it must depend on.
pub(super) fn start<H: Digest + Update>(ends: &Ends, what: For) -> H {
    let mut hash = H::new();
    Update::update(&mut hash, b"veilworks oblivious transfer 1");
    Update::update(&mut hash, &[what as u8]);
    Update::update(&mut hash, &ends.session.0);
    Update::update(&mut hash, &ends.sender.to_bytes());
    Update::update(&mut hash, &ends.receiver.to_bytes());
    hash
}

/// The digest that ends a message. It is no proof of anything, but no message of another session ends with it.
pub(super) fn seal(ends: &Ends, what: For, message: &[u8]) -> [u8; SEAL] {
    let mut hash: Sha256 = start(ends, what);
    Update::update(&mut hash, message);
    hash.finalize().into()
}

/// Bytes of [`seal`].
pub(super) const SEAL: usize = 32;

/// The message without its seal, if it has `length` bytes in all and the seal is right.
pub(super) fn open<'a>(
    ends: &Ends,
    what: For,
    length: usize,
    message: &'a [u8],
) -> Result<&'a [u8], super::Cheat> {
    if message.len() != length {
        return Err(super::Cheat::Length);
    }
    let (body, sealed) = message.split_at(length - SEAL);
    if seal(ends, what, body) != *sealed {
        return Err(super::Cheat::Stranger);
    }
    Ok(body)
}
