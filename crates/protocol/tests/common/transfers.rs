//! Two ends that set up oblivious transfers, with randomness that follows from a number.

use std::convert::Infallible;

use sha2::{Digest, Sha256};
use veil_device::Trees;
use veil_protocol::ot::{Ends, Leaf, Pins, ReceiverSetUp, SenderSetUp};
use veil_session::{PartyId, Peer, Secret, SessionId};

/// Bytes that follow from a number: SHA-256 in counter mode.
pub(crate) struct Drawn(u64, Vec<u8>);

impl Drawn {
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        while self.1.len() < bytes.len() {
            self.0 += 1;
            self.1
                .extend_from_slice(&Sha256::digest(self.0.to_le_bytes()));
        }
        let rest = self.1.split_off(bytes.len());
        bytes.copy_from_slice(&self.1);
        self.1 = rest;
    }

    pub(crate) fn secret(&mut self) -> Secret {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        Secret::new(bytes)
    }

    pub(crate) fn secrets(&mut self, count: usize) -> Vec<Secret> {
        (0..count).map(|_| self.secret()).collect()
    }
}

pub(crate) fn drawn(seed: u64) -> Drawn {
    Drawn(seed << 32, Vec::new())
}

pub(crate) fn ends(session: u8) -> Ends {
    let [sender, receiver, _] = PartyId::THREE.map(Peer::Party);
    Ends {
        session: SessionId([session; 32]),
        sender,
        receiver,
    }
}

pub(crate) fn never(mut drawn: Drawn) -> impl FnMut(&mut [u8]) -> Result<(), Infallible> {
    move |bytes| {
        drawn.fill(bytes);
        Ok(())
    }
}

/// What a hash of the set-up is for.
#[derive(Clone, Copy)]
pub(crate) enum For {
    BaseSender = 3,
    BaseReceiver = 4,
    Trees = 6,
    String = 7,
    Challenge = 8,
    Turn = 10,
}

/// A hash of the set-up.
pub(crate) fn hash(ends: &Ends, what: For, parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"veilworks oblivious transfer 1");
    hash.update([what as u8]);
    hash.update(ends.session.0);
    hash.update(ends.sender.to_bytes());
    hash.update(ends.receiver.to_bytes());
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

/// Bytes of a seal.
pub(crate) const SEAL: usize = 32;

/// The message with the seal that it should have.
pub(crate) fn sealed(ends: &Ends, what: For, mut message: Vec<u8>) -> Vec<u8> {
    message.truncate(message.len() - SEAL);
    let seal = hash(ends, what, &[&message]);
    message.extend_from_slice(&seal);
    message
}

pub(crate) fn start(session: u8, trees: Trees) -> (SenderSetUp, Vec<u8>, ReceiverSetUp, Vec<u8>) {
    start_pinned(session, trees, Pins::default())
}

/// Both ends and their first messages, that to the receiver first; some bits of the sender's offset are fixed.
pub(crate) fn start_pinned(
    session: u8,
    trees: Trees,
    pins: Pins,
) -> (SenderSetUp, Vec<u8>, ReceiverSetUp, Vec<u8>) {
    let seed = u64::from(session);
    let sender = SenderSetUp::start(&ends(session), trees, pins, &mut never(drawn(seed)));
    let receiver = ReceiverSetUp::start(&ends(session), trees, &mut never(drawn(1000 + seed)));
    let ((s, to_receiver), (r, to_sender)) = match (sender, receiver) {
        (Ok(s), Ok(r)) => (s, r),
    };
    (s, to_receiver, r, to_sender)
}

/// The sender's leaves are the receiver's but one of each tree, and that one is what the offset says.
pub(crate) fn agree(trees: Trees, offset: &Secret, all: &[Leaf], some: &[Leaf]) {
    let offset = u128::from_le_bytes(*offset.expose());
    assert_eq!(all.len(), (trees.count() * trees.leaves()) as usize);
    assert_eq!(some.len(), all.len() - trees.count() as usize);
    let mut some = some.iter();
    for tree in 0..trees.count() {
        let path = (offset >> (tree * trees.bits())) as u32 & (trees.leaves() - 1);
        for y in 1..trees.leaves() {
            let (index, leaf) = some.next().expect("it was counted");
            assert_eq!(*index, trees.index(tree, y));
            let (same, want) = &all[trees.index(tree, y ^ path) as usize];
            assert_eq!(*same, trees.index(tree, y ^ path));
            assert_eq!(
                leaf.expose(),
                want.expose(),
                "tree {tree} leaf {y} under {path}"
            );
        }
    }
}
