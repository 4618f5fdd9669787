//! How a driver reaches a core of shares: orders, and streams that it gives and takes.

use serde::{Deserialize, Serialize};
use veil_session::Secret;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::four::{MAC_BYTES, MACS};
pub(super) use super::models::folded;
pub(crate) use super::models::simulated;
use crate::driver::CardError;

/// Streams that a core makes, at most: results, and the messages of products.
pub(crate) const MADE: usize = 4;
/// Streams that it takes, at most: shares, and messages.
pub(crate) const GIVEN: usize = 3;

/// MACs that begin: the keys of two parties, and the PRF calls of their masks.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Begins {
    /// Of each MAC 16 bytes.
    pub(crate) keys: [u8; MACS * MAC_BYTES],
    /// Domain tags, 16 bits each.
    pub(crate) used: u32,
    /// Lane.
    pub(crate) lane: u16,
    /// Counter.
    pub(crate) counter: u64,
    /// Chunk.
    pub(crate) chunk: u32,
}

/// A key on its way to a core.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Key(pub(super) [u8; 16]);

/// What a core is told beside its streams.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Take a key, by its number.
    Key {
        /// Number.
        number: u32,
        /// Key.
        key: Key,
    },
    /// `rep4_local`: which party this is, which messages leave, and whether there are MACs of the others.
    Form {
        /// As `share_pkg::form_t`.
        form: u32,
        /// Bit k: message k leaves.
        sends: u8,
        /// Whether there are MACs.
        checks: bool,
    },
    /// `rep4_join`: to which components messages are added, and whether there are MACs of them.
    Parts {
        /// Whether there are two messages.
        two: bool,
        /// Components, two bits each.
        to: u8,
        /// Whether there are MACs.
        checks: bool,
    },
    /// Begin MACs.
    Begin(Begins),
    /// Give so many MACs, after the column that closes them.
    Codes {
        /// How many.
        count: u32,
    },
    /// Say whether these are the MACs of the messages.
    Verdict([u8; MACS * MAC_BYTES]),
    /// Wipe keys and all that was computed.
    Scrub,
    /// Say whether there are keys.
    Ready,
}

impl Order {
    /// Take a key.
    pub(super) fn key(number: u32, key: &Secret) -> Self {
        Order::Key {
            number,
            key: Key(*key.expose()),
        }
    }
}

/// What a core says to an order.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Said {
    /// Nothing, or yes.
    Yes,
    /// It has not, or cannot.
    No,
    /// MACs.
    Codes {
        /// Cycles that it took; 0 if there are none.
        cycles: u64,
        /// Of each MAC 16 bytes.
        codes: [u8; MACS * MAC_BYTES],
    },
    /// A verdict.
    Verdict {
        /// Cycles that it took.
        cycles: u64,
        /// 1: right, 0: wrong, else: none came.
        said: u32,
    },
}

/// What became of streams.
pub(crate) struct Ran {
    /// Cycles that it took.
    pub(crate) cycles: u64,
    /// Bytes of each stream that was made; 0 of those that are not there.
    pub(crate) moved: [u64; MADE],
}

/// A way to a core.
///
/// A core that is gone has the same [`CardError::Board`] for whatever it is told, at once.
pub(crate) trait Port: Send {
    /// Name of the kind, for reports.
    fn name(&self) -> &'static str;

    /// Tells it something.
    fn order(&mut self, order: &Order) -> Result<Said, CardError>;

    /// Gives it streams, and takes those that it makes, as far as there is room.
    fn run(&mut self, given: &[&[u8]], made: &mut [&mut [u8]]) -> Result<Ran, CardError>;
}
