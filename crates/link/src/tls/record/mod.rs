//! The record layer of TLS 1.3 (RFC 8446, section 5) after the handshake: bytes in, bytes out, no sockets.
//!
//! rustls shakes hands and checks identities; then its traffic secrets come here, and all later ones of them. A record is sealed from the sender's bytes into one buffer for the socket, and opened from the buffer of the socket into
//! the receiver's bytes, where all of it goes to one place.
//!
//! After the handshake a peer may send application data, alerts, key updates and, to a client, tickets, which no link uses. Anything else
//! ends the connection with the alert that RFC 8446 names. The length of padding shows in the time that it takes to look for its end, as the
//! RFC says it may; no other step depends on what a record holds.

mod fuzz;
mod keys;
mod open;
mod post;
mod seal;
#[cfg(test)]
mod tests;

use std::io::IoSlice;

use rustls::{AlertDescription, Error};

pub use self::fuzz::fuzz_records;
pub(crate) use self::keys::Keys;
use self::open::{Event, Opener};
use self::seal::Sealer;
use crate::aead::TAG;

/// Bytes before the sealed part of a record: outer type, version, length.
const HEAD: usize = 5;

/// Bytes that a record takes beside its plaintext: the type inside is one of them.
const OVERHEAD: usize = HEAD + 1 + TAG;

/// Bytes of plaintext in a record at most (RFC 8446, section 5.1).
pub(crate) const FULL: usize = 1 << 14;

/// Bytes of the sealed part at most (RFC 8446, section 5.2).
const LONGEST: usize = FULL + 256;

/// Types of records (RFC 8446, appendix B.1).
mod kind {
    pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(super) const ALERT: u8 = 21;
    pub(super) const HANDSHAKE: u8 = 22;
    pub(super) const DATA: u8 = 23;
}

/// The header of a record whose sealed part has so many bytes.
fn head(sealed: usize) -> [u8; HEAD] {
    // At most `LONGEST`, which is far below 2^16.
    let [high, low] = (sealed as u16).to_be_bytes();
    [kind::DATA, 3, 3, high, low]
}

/// The bytes of the first record in `bytes`, if it is there as a whole; all of them where no record begins.
pub(super) fn first(bytes: &[u8]) -> Option<usize> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
    let known = kind::CHANGE_CIPHER_SPEC..=kind::DATA;
    if !known.contains(&head[0]) || head[1] != 3 || length > LONGEST {
        return Some(bytes.len());
    }
    (rest.len() >= length).then_some(HEAD + length)
}

/// Why a peer's bytes are refused, and the alert that tells it so.
#[derive(Debug)]
struct Refusal {
    /// None where the peer has said a fatal alert itself.
    alert: Option<AlertDescription>,
    error: Error,
}

impl Refusal {
    fn new(alert: AlertDescription, error: impl Into<Error>) -> Self {
        Refusal {
            alert: Some(alert),
            error: error.into(),
        }
    }
}

/// Both directions of one connection.
pub(crate) struct Records {
    sealer: Sealer,
    opener: Opener,
}

impl Records {
    /// Goes on where the handshake left off, with the keys of what this side sends and of what it receives. `client`: this side dialled; the
    /// peer may send it tickets. `came` are bytes from the socket that are here already.
    pub(crate) const fn new(sends: Keys, receives: Keys, client: bool, came: Vec<u8>) -> Self {
        Records {
            sealer: Sealer::new(sends),
            opener: Opener::new(receives, client, came),
        }
    }

    /// Takes plaintext: how many bytes. 0: not before some of what waits has left.
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, Error> {
        self.sealer.write(slices)
    }

    /// Whether something waits for the socket.
    pub(crate) fn wants_write(&self) -> bool {
        self.sealer.wants_write()
    }

    /// What waits for the socket.
    pub(crate) fn waiting(&mut self) -> Result<&[u8], Error> {
        self.sealer.waiting()
    }

    /// So much of what waits has left.
    pub(crate) fn left(&mut self, bytes: usize) {
        self.sealer.left(bytes);
    }

    /// This side sends nothing more.
    pub(crate) fn close(&mut self) -> Result<(), Error> {
        self.sealer.alert(AlertDescription::CloseNotify)
    }

    /// Where bytes from the socket go: into its spare capacity.
    pub(crate) fn space(&mut self) -> &mut Vec<u8> {
        self.opener.space()
    }

    /// Whether a record is here as a whole, or plaintext that was not taken.
    pub(crate) fn backlog(&self) -> bool {
        !self.opener.plain().is_empty() || self.opener.whole()
    }

    /// Plaintext that is here.
    pub(crate) fn plain(&self) -> &[u8] {
        self.opener.plain()
    }

    /// So much of the plaintext was taken.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.opener.take(bytes);
    }

    /// Opens the next record. `false`: none is here as a whole. A refused one is answered with an alert, which waits for the socket.
    pub(crate) fn open(&mut self) -> Result<bool, Error> {
        match self.opener.open() {
            Ok(None) => Ok(false),
            Ok(Some(event)) => {
                self.follow(event);
                Ok(true)
            }
            Err(refusal) => Err(self.refuse(refusal)),
        }
    }

    /// Moves plaintext to the front of `into`, opening records straight into it: how many bytes. The last byte of `into` is room for the type
    /// that each record has inside, and never plaintext.
    pub(crate) fn fill(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let want = into.len().saturating_sub(1);
        let mut have = 0;
        while have < want {
            let plain = self.opener.plain();
            if !plain.is_empty() {
                let some = plain.len().min(want - have);
                crate::copy::copy(&mut into[have..have + some], &plain[..some]);
                self.opener.take(some);
                have += some;
                continue;
            }
            match self.opener.open_into(&mut into[have..]) {
                Ok(Some((bytes, event))) => {
                    have += bytes;
                    self.follow(event);
                }
                Ok(None) if self.open()? => {}
                Ok(None) => break,
                Err(refusal) => return Err(self.refuse(refusal)),
            }
        }
        Ok(have)
    }

    /// Forgets what came.
    pub(crate) fn forget(&mut self) {
        self.opener.forget();
    }

    /// The peer has said already that nothing more comes.
    pub(crate) const fn end(&mut self) {
        self.opener.end();
    }

    fn follow(&mut self, event: Event) {
        match event {
            Event::Nothing => {}
            Event::Updated { answer } => {
                self.opener.renew();
                self.sealer.owes |= answer;
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal) -> Error {
        if let Some(alert) = refusal.alert {
            // What cannot be sealed is not sent: the peer finds the connection closed.
            let _ = self.sealer.alert(alert);
        }
        refusal.error
    }
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Records")
    }
}
