//! The set-up of transfers between two parties, as a machine for each end.
//!
//! | | sender → receiver | receiver → sender |
//! | --- | --- | --- |
//! | first, at once | points of 128 base transfers | the point of their sender |
//! | then | | sums of trees, and their check |
//!
//! With transfers that were kept from the session before ([`cache`](super::cache)):
//!
//! | | sender → receiver | receiver → sender |
//! | --- | --- | --- |
//! | first | the cached transfers, turned | |
//! | then | | sums of trees, and their check |
//!
//! If both keep something for the next session, the receiver turns the base transfers of this one in the message with the trees.
//!
//! With transfers of both directions (names of the ends are those of the first direction):
//!
//! | | sender → receiver | receiver → sender |
//! | --- | --- | --- |
//! | first, at once | points of 128 base transfers | the point of their sender |
//! | then | | sums of trees, and their check; the base transfers, turned by the receiver's own offset |
//! | then | sums of trees of the other direction, and their check | |
//!
//! Every error is the peer's doing: lengths, encodings and digests are all its own.

use veil_device::Trees;
use veil_session::Secret;
use zeroize::{Zeroize, Zeroizing};

use super::base::{
    BaseReceiver, BaseSender, RECEIVER_MESSAGE, RECEIVER_RANDOM, SENDER_MESSAGE, SENDER_RANDOM,
};
use super::cache::{CachedReceiver, CachedSender};
use super::{Cheat, Ends, Leaf, Pins, Punctured, Whole, reversal, trees};

/// Where secrets come from: the operating system, unless a run is rehearsed.
pub type Random<'a, E> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), E>;

/// The receiver's end: it chooses in the transfers, and is the sender of the base transfers. Wiped on drop.
pub struct ReceiverSetUp {
    ends: Ends,
    trees: Trees,
    base: Base,
    roots: Vec<Secret>,
}

/// Where the receiver's keys come from.
enum Base {
    Points(BaseSender),
    Cached(CachedReceiver),
}

impl ReceiverSetUp {
    /// Bytes of the message that it waits for.
    pub const EXPECTS: usize = RECEIVER_MESSAGE;

    /// Bytes that it draws.
    pub const fn random(trees: Trees) -> usize {
        SENDER_RANDOM + 16 * trees.count() as usize
    }

    /// The receiver, and its first message ([`SenderSetUp::EXPECTS`]). Draws 64 bytes, and 16 for each tree.
    ///
    /// # Errors
    /// The error of `random`, unchanged.
    pub fn start<E>(
        ends: &Ends,
        trees: Trees,
        random: Random<'_, E>,
    ) -> Result<(Self, Vec<u8>), E> {
        let mut bytes = Zeroizing::new([0; SENDER_RANDOM]);
        random(&mut bytes[..])?;
        let (base, message) = BaseSender::start(ends, &bytes);
        let set_up = ReceiverSetUp {
            ends: *ends,
            trees,
            base: Base::Points(base),
            roots: secrets(trees.count() as usize, random)?,
        };
        Ok((set_up, message))
    }

    /// The receiver that has cached transfers. It sends nothing first, and waits for [`reversal::MESSAGE`] bytes. Draws 16 bytes for each tree.
    ///
    /// # Errors
    /// The error of `random`, unchanged.
    pub fn again<E>(
        ends: &Ends,
        trees: Trees,
        kept: CachedReceiver,
        random: Random<'_, E>,
    ) -> Result<Self, E> {
        Ok(ReceiverSetUp {
            ends: *ends,
            trees,
            base: Base::Cached(kept),
            roots: secrets(trees.count() as usize, random)?,
        })
    }

    /// The sender's message is here: the message with the trees, which has [`trees::message_length`] bytes, and all leaves.
    ///
    /// # Errors
    /// [`Cheat`] as of [`BaseSender::finish`] or, with cached transfers, of [`reversal::offer`].
    pub fn finish(self, message: &[u8]) -> Result<Whole, Cheat> {
        let (message, leaves, _) = self.grown(message)?;
        Ok((message, leaves))
    }

    /// As [`ReceiverSetUp::finish`], and turns the base transfers by these choices: [`reversal::MESSAGE`] bytes follow in the message, and there is
    /// something to keep. Choices are new random bits, used for nothing else.
    ///
    /// # Errors
    /// [`Cheat`] as of [`ReceiverSetUp::finish`].
    pub fn finish_and_keep(
        self,
        message: &[u8],
        choices: &Secret,
    ) -> Result<(Vec<u8>, Vec<Leaf>, CachedReceiver), Cheat> {
        let ends = self.ends;
        let (mut message, leaves, pairs) = self.grown(message)?;
        let choices = reversal::choices(choices);
        let (more, keys) = reversal::choose(&ends, &pairs, &choices);
        message.extend_from_slice(&more);
        Ok((message, leaves, CachedReceiver { choices, keys }))
    }

    /// As [`ReceiverSetUp::finish`], and begins transfers of the other direction, in which this end is the sender. Its offset there is `drawn`,
    /// random bits that are used for nothing else, with pinned bits as `pins` say. It turns the base transfers by that offset:
    /// [`reversal::MESSAGE`] bytes follow in the message. Then the end waits for trees, as every sender does.
    ///
    /// # Errors
    /// [`Cheat`] as of [`ReceiverSetUp::finish`].
    pub fn finish_and_turn(
        self,
        message: &[u8],
        drawn: &Secret,
        pins: Pins,
    ) -> Result<(Vec<u8>, Vec<Leaf>, SenderTrees), Cheat> {
        let (ends, trees) = (self.ends, self.trees);
        let (mut message, leaves, pairs) = self.grown(message)?;
        let offset = pins.offset(drawn);
        let choices = trees::choices(trees, &offset);
        let (more, keys) = reversal::choose(&ends, &pairs, &choices);
        message.extend_from_slice(&more);
        let back = SenderTrees {
            ends: ends.reversed(),
            trees,
            offset,
            keys,
        };
        Ok((message, leaves, back))
    }

    /// The message with the trees, the leaves, and the base transfers.
    fn grown(self, message: &[u8]) -> Result<Grown, Cheat> {
        let pairs = match self.base {
            Base::Points(base) => base.finish(message)?,
            Base::Cached(kept) => {
                reversal::offer(&self.ends.reversed(), &kept.choices, &kept.keys, message)?
            }
        };
        let (message, leaves) = trees::grow(&self.ends, self.trees, &self.roots, &pairs);
        Ok((message, leaves, pairs))
    }
}

/// A message with trees, all leaves, and both keys of each base transfer.
type Grown = (Vec<u8>, Vec<Leaf>, Vec<[Secret; 2]>);

/// Draws secrets, 16 bytes each: one for each tree, its root.
///
/// # Errors
/// The error of `random`, unchanged.
pub fn secrets<E>(count: usize, random: Random<'_, E>) -> Result<Vec<Secret>, E> {
    let mut secrets = Vec::with_capacity(count);
    for _ in 0..count {
        secrets.push(secret(random)?);
    }
    Ok(secrets)
}

/// The sender's end: it has the offset, and is the receiver of the base transfers. Wiped on drop.
pub struct SenderSetUp {
    ends: Ends,
    trees: Trees,
    offset: Secret,
    base: BaseReceiver,
}

impl SenderSetUp {
    /// Bytes of the message that it waits for.
    pub const EXPECTS: usize = SENDER_MESSAGE;
    /// Bytes that it draws.
    pub const RANDOM: usize = 16 + RECEIVER_RANDOM;

    /// The sender, and its first message ([`ReceiverSetUp::EXPECTS`]). Draws 16 bytes, which become the offset but for the bits that are pinned;
    /// and 128 for each base transfer.
    ///
    /// # Errors
    /// The error of `random`, unchanged.
    pub fn start<E>(
        ends: &Ends,
        trees: Trees,
        pins: Pins,
        random: Random<'_, E>,
    ) -> Result<(Self, Vec<u8>), E> {
        let offset = pins.offset(&secret(random)?);
        let mut seed = Zeroizing::new([0; RECEIVER_RANDOM]);
        random(&mut seed[..])?;
        let (base, message) = BaseReceiver::start(ends, trees::choices(trees, &offset), &seed);
        let ends = *ends;
        let set_up = SenderSetUp {
            ends,
            trees,
            offset,
            base,
        };
        Ok((set_up, message))
    }

    /// The sender that has cached transfers, and its message ([`reversal::MESSAGE`]). Draws 16 bytes, as [`SenderSetUp::start`].
    ///
    /// # Errors
    /// The error of `random`, unchanged.
    pub fn again<E>(
        ends: &Ends,
        trees: Trees,
        pins: Pins,
        kept: CachedSender,
        random: Random<'_, E>,
    ) -> Result<(SenderTrees, Vec<u8>), E> {
        let offset = pins.offset(&secret(random)?);
        let choices = trees::choices(trees, &offset);
        let CachedSender { pairs } = kept;
        let (message, keys) = reversal::choose(&ends.reversed(), &pairs, &choices);
        let ends = *ends;
        let set_up = SenderTrees {
            ends,
            trees,
            offset,
            keys,
        };
        Ok((set_up, message))
    }

    /// The receiver's first message is here; it sends another one.
    ///
    /// # Errors
    /// [`Cheat`] as of [`BaseReceiver::finish`].
    pub fn base(self, message: &[u8]) -> Result<SenderTrees, Cheat> {
        let keys = self.base.finish(message)?;
        Ok(SenderTrees {
            ends: self.ends,
            trees: self.trees,
            offset: self.offset,
            keys,
        })
    }
}

/// The sender before it has trees; also the receiver, in the direction in which it is the sender. Wiped on drop.
pub struct SenderTrees {
    ends: Ends,
    trees: Trees,
    offset: Secret,
    keys: Vec<Secret>,
}

impl SenderTrees {
    /// Bytes of the message that it waits for.
    pub const fn expects(&self) -> usize {
        trees::message_length(self.trees)
    }

    /// The offset Δ (little-endian; pinned bits are as they should be) and all leaves but one of each tree, numbered as [`trees::puncture`] does, if the message passes
    /// its check. Before this nothing may be made with the offset.
    ///
    /// # Errors
    /// [`Cheat`] as of [`trees::puncture`].
    pub fn finish(self, message: &[u8]) -> Result<Punctured, Cheat> {
        let leaves = trees::puncture(&self.ends, self.trees, &self.offset, &self.keys, message)?;
        Ok((self.offset, leaves))
    }

    /// As [`SenderTrees::finish`], of a message that [`reversal::MESSAGE`] bytes follow, and the transfers to keep for the next session.
    ///
    /// # Errors
    /// [`Cheat::Length`] if the message is too short, else [`Cheat`] as of [`trees::puncture`] and [`reversal::offer`].
    pub fn finish_and_keep(
        self,
        message: &[u8],
    ) -> Result<(Secret, Vec<Leaf>, CachedSender), Cheat> {
        let (leaves, pairs) = self.turned(message)?;
        Ok((self.offset, leaves, CachedSender { pairs }))
    }

    /// As [`SenderTrees::finish`], of a message that [`reversal::MESSAGE`] bytes follow ([`ReceiverSetUp::finish_and_turn`]); and then what
    /// [`ReceiverSetUp::finish`] gives, in the other direction, where this end is the receiver: the message with trees that grow from these roots,
    /// and all their leaves. Roots are new random bits ([`secrets`]).
    ///
    /// # Panics
    /// If there are not as many roots as trees.
    ///
    /// # Errors
    /// [`Cheat`] as of [`SenderTrees::finish_and_keep`].
    pub fn finish_and_grow(
        self,
        message: &[u8],
        roots: &[Secret],
    ) -> Result<(Punctured, Whole), Cheat> {
        let (leaves, pairs) = self.turned(message)?;
        let grown = trees::grow(&self.ends.reversed(), self.trees, roots, &pairs);
        Ok(((self.offset, leaves), grown))
    }

    /// The leaves, and both keys of each turned transfer: all that the receiver has sent has passed its checks.
    fn turned(&self, message: &[u8]) -> Result<(Vec<Leaf>, Vec<[Secret; 2]>), Cheat> {
        let Some((message, turn)) = message.split_at_checked(self.expects()) else {
            return Err(Cheat::Length);
        };
        let choices = trees::choices(self.trees, &self.offset);
        let leaves = trees::puncture(&self.ends, self.trees, &self.offset, &self.keys, message)?;
        let pairs = reversal::offer(&self.ends, &choices, &self.keys, turn)?;
        Ok((leaves, pairs))
    }
}

fn secret<E>(random: Random<'_, E>) -> Result<Secret, E> {
    let mut bytes = [0; 16];
    let drawn = random(&mut bytes);
    let secret = Secret::new(bytes);
    bytes.zeroize();
    drawn.map(|()| secret)
}
