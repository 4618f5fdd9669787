//! The set-up of transfers between two parties, as a machine for each end.
//!
//! | | sender → receiver | receiver → sender |
//! | --- | --- | --- |
//! | first, at once | points of 128 base transfers | the point of their sender |
//! | then | | sums of trees, and their check |
//!
//! What went wrong is the peer's doing: lengths, encodings and digests are all its own.

use veil_device::Trees;
use veil_session::Secret;
use zeroize::{Zeroize, Zeroizing};

use super::base::{
    BaseReceiver, BaseSender, RECEIVER_MESSAGE, RECEIVER_RANDOM, SENDER_MESSAGE, SENDER_RANDOM,
};
use super::{Cheat, Ends, Leaf, trees};

/// Where secrets come from: the operating system, unless a run is rehearsed.
pub type Random<'a, E> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), E>;

/// The receiver's end: it chooses in the transfers, and is the sender of the base transfers. Wiped on drop.
pub struct ReceiverSetUp {
    ends: Ends,
    trees: Trees,
    base: BaseSender,
    roots: Vec<Secret>,
}

impl ReceiverSetUp {
    /// Bytes of the message that it waits for.
    pub const EXPECTS: usize = RECEIVER_MESSAGE;

    /// Bytes that it draws.
    pub const fn random(trees: Trees) -> usize {
        SENDER_RANDOM + 16 * trees.count() as usize
    }

    /// The receiver, and its first message ([`SenderSetUp::EXPECTS`]). Draws 64 bytes, and 16 for each tree.
    pub fn start<E>(
        ends: &Ends,
        trees: Trees,
        random: Random<'_, E>,
    ) -> Result<(Self, Vec<u8>), E> {
        let mut bytes = Zeroizing::new([0; SENDER_RANDOM]);
        random(&mut bytes[..])?;
        let (base, message) = BaseSender::start(ends, &bytes);
        let mut roots = Vec::with_capacity(trees.count() as usize);
        for _ in 0..trees.count() {
            roots.push(secret(random)?);
        }
        let ends = *ends;
        let set_up = ReceiverSetUp {
            ends,
            trees,
            base,
            roots,
        };
        Ok((set_up, message))
    }

    /// The sender's message is here: the message with the trees, which has [`trees::message_length`] bytes, and all leaves.
    pub fn finish(self, message: &[u8]) -> Result<(Vec<u8>, Vec<Leaf>), Cheat> {
        let keys = self.base.finish(message)?;
        Ok(trees::grow(&self.ends, self.trees, &self.roots, &keys))
    }
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

    /// The sender, and its first message ([`ReceiverSetUp::EXPECTS`]). Draws 16 bytes, which become the offset but for bit 0 of byte 0, which
    /// is 1; and 128 for each base transfer.
    pub fn start<E>(
        ends: &Ends,
        trees: Trees,
        random: Random<'_, E>,
    ) -> Result<(Self, Vec<u8>), E> {
        let drawn = secret(random)?;
        let mut bytes = *drawn.expose();
        bytes[0] |= 1;
        let offset = Secret::new(bytes);
        bytes.zeroize();
        let mut draws = Zeroizing::new([0; RECEIVER_RANDOM]);
        random(&mut draws[..])?;
        let (base, message) = BaseReceiver::start(ends, trees::choices(trees, &offset), &draws);
        let ends = *ends;
        let set_up = SenderSetUp {
            ends,
            trees,
            offset,
            base,
        };
        Ok((set_up, message))
    }

    /// The receiver's first message is here; it sends another one.
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

/// The sender between both messages of the receiver.
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

    /// The offset Δ (little-endian; bit 0 is 1) and all leaves but one of each tree, numbered as [`trees::puncture`] does, if the message passes
    /// its check. Before this nothing may be made with the offset.
    pub fn finish(self, message: &[u8]) -> Result<(Secret, Vec<Leaf>), Cheat> {
        let leaves = trees::puncture(&self.ends, self.trees, &self.offset, &self.keys, message)?;
        Ok((self.offset, leaves))
    }
}

fn secret<E>(random: Random<'_, E>) -> Result<Secret, E> {
    let mut bytes = [0; 16];
    let drawn = random(&mut bytes);
    let secret = Secret::new(bytes);
    bytes.zeroize();
    drawn.map(|()| secret)
}
