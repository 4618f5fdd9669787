//! Messages of a set-up as a function of bytes, for a fuzzer.

use std::convert::Infallible;
use std::sync::OnceLock;

use veil_device::Trees;
use veil_prss::{DomainTag, Prf};
use veil_session::{PartyId, Peer, Secret, SessionId};

use super::hash::{For, SEAL, seal};
use super::trees::message_length;
use super::{Cheat, Ends, Pins, Punctured, ReceiverSetUp, SenderSetUp, SenderTrees, Whole};

/// Which message is changed.
#[derive(Clone, Copy)]
enum Message {
    /// Points of base transfers, to the receiver.
    Points,
    /// The point of their sender, to the sender.
    Point,
    /// The receiver's trees, to the sender.
    Trees,
    /// The turn that follows these trees where there are transfers of both directions.
    Turn,
    /// Trees of the second direction, to the receiver.
    Back,
}

impl Message {
    const ALL: [Message; 5] = [
        Message::Points,
        Message::Point,
        Message::Trees,
        Message::Turn,
        Message::Back,
    ];

    /// What its seal says.
    fn sealed(self) -> (Ends, For) {
        match self {
            Message::Points => (ends(), For::BaseReceiver),
            Message::Point => (ends(), For::BaseSender),
            Message::Trees => (ends(), For::Trees),
            Message::Turn => (ends(), For::Turn),
            Message::Back => (ends().reversed(), For::Trees),
        }
    }
}

/// For fuzzing: changes a message of an honest set-up as `bytes` say, and hands it to its end. The first byte says which message it is and
/// whether its seal is made anew; of the rest two bytes are a place and one is added there, and a change at the end of the message makes it
/// shorter or longer. Returns whether the end took it.
///
/// # Panics
///
/// If an end takes a message that is shorter or longer than agreed, or that has no seal of its own, or if it has other leaves than agreed.
#[doc(hidden)]
pub fn fuzz_set_up(bytes: &[u8]) -> bool {
    let (&first, changes) = bytes.split_first().unwrap_or((&0, &[]));
    let which = Message::ALL[usize::from(first & 0x7f) % Message::ALL.len()];
    let (body, (ends, what)) = (honest(which), which.sealed());
    let mut message = body.clone();
    for change in changes.as_chunks::<3>().0 {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]]));
        match message.get_mut(place) {
            Some(byte) => *byte ^= change[2],
            None if change[2] & 1 == 0 => message.truncate(place % (message.len() + 1)),
            None => message.extend_from_slice(change),
        }
    }
    let fits = message.len() == body.len();
    let fresh = first & 0x80 == 0;
    // Otherwise it is the seal of the message as it was.
    let sealed = if fresh { &message } else { body };
    let sealed = seal(&ends, what, sealed);
    let own = fresh || message == *body;
    message.extend_from_slice(&sealed);
    let taken = take(which, &message);
    assert!(!taken || (fits && own), "a message is as it was agreed");
    taken
}

const TREES: Trees = Trees::ALL[1];

fn ends() -> Ends {
    let [sender, receiver] = PartyId::TWO.map(Peer::Party);
    Ends {
        session: SessionId([0x5e; 32]),
        sender,
        receiver,
    }
}

/// Bytes that follow from a number: a run of the fuzzer is repeated by its input alone.
fn drawn(seed: u8) -> impl FnMut(&mut [u8]) -> Result<(), Infallible> {
    let prf = Prf::new(&Secret::new([seed; 16]));
    let mut at = 0u64;
    move |bytes| {
        prf.stream(DomainTag(1), 0, at << 20, 0, bytes);
        at += 1;
        Ok(())
    }
}

fn sender() -> (SenderSetUp, Vec<u8>) {
    let Ok(started) = SenderSetUp::start(&ends(), TREES, Pins::default(), &mut drawn(1));
    started
}

fn receiver() -> (ReceiverSetUp, Vec<u8>) {
    let Ok(started) = ReceiverSetUp::start(&ends(), TREES, &mut drawn(2));
    started
}

/// The sender, when it waits for trees.
fn waiting() -> Result<SenderTrees, Cheat> {
    sender().0.base(&receiver().1)
}

/// What the receiver sends for transfers of both directions, trees and turn apart, and that end, when it waits for trees.
fn turned() -> Result<([Vec<u8>; 2], SenderTrees), Cheat> {
    let offset = Secret::new([0xa5; 16]);
    let made = receiver()
        .0
        .finish_and_turn(&sender().1, &offset, Pins::default());
    let (mut trees, _, back) = made?;
    let turn = trees.split_off(message_length(TREES));
    Ok(([trees, turn], back))
}

/// What the sender answers with, and all leaves.
fn grown(message: &[u8]) -> Result<Whole, Cheat> {
    let roots = vec![Secret::new([0x5a; 16]); TREES.count() as usize];
    let (_, grown) = waiting()?.finish_and_grow(message, &roots)?;
    Ok(grown)
}

/// A message of honest ends without its seal.
fn honest(which: Message) -> &'static Vec<u8> {
    static MESSAGES: OnceLock<[Vec<u8>; 5]> = OnceLock::new();
    let messages = MESSAGES.get_or_init(|| {
        let [trees, turn] = turned().map(|(both, _)| both).unwrap_or_default();
        let back = grown(&[&trees[..], &turn].concat()).unwrap_or_default().0;
        [sender().1, receiver().1, trees, turn, back].map(|mut message| {
            message.truncate(message.len() - SEAL);
            message
        })
    });
    &messages[which as usize]
}

/// Whether an end takes a message.
fn take(which: Message, message: &[u8]) -> bool {
    match which {
        Message::Points => receiver().0.finish(message).is_ok_and(|made| all(&made)),
        Message::Point => sender().0.base(message).is_ok(),
        Message::Trees => {
            let taken = waiting().and_then(|set_up| set_up.finish(message));
            taken.is_ok_and(|made| some(&made))
        }
        Message::Turn => {
            let trees = turned().map(|([trees, _], _)| trees);
            let taken = trees.and_then(|trees| grown(&[&trees[..], message].concat()));
            taken.is_ok_and(|made| all(&made))
        }
        Message::Back => {
            let taken = turned().and_then(|(_, back)| back.finish(message));
            taken.is_ok_and(|made| some(&made))
        }
    }
}

/// A message with trees, and all leaves, are as agreed.
fn all((message, leaves): &Whole) -> bool {
    assert_eq!(message.len(), message_length(TREES));
    assert_eq!(leaves.len(), usize::from(TREES.index(TREES.count(), 0)));
    true
}

/// An offset and leaves are as agreed.
fn some((offset, leaves): &Punctured) -> bool {
    assert_eq!(offset.expose()[0] & 1, 1);
    let end = TREES.index(TREES.count(), 0);
    assert!(leaves.iter().all(|(leaf, _)| *leaf < end));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_messages_are_taken_or_refused() {
        for which in 0..5 {
            assert!(fuzz_set_up(&[which]), "as it was");
            assert!(fuzz_set_up(&[which | 0x80]), "with the seal that it had");
        }
        let mut seed = 0x5eed_0007_u64;
        let mut number = || {
            // Marsaglia, "Xorshift RNGs", 2003.
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..100 {
            let first = number() as u8;
            let mut bytes = vec![first];
            for _ in 0..number() % 3 {
                let place = number() as u16 % 9000;
                bytes.extend_from_slice(&place.to_le_bytes());
                bytes.push(number() as u8);
            }
            *(if fuzz_set_up(&bytes) {
                &mut taken
            } else {
                &mut refused
            }) += 1;
        }
        assert!(
            taken > 5 && refused > 20,
            "{taken} taken, {refused} refused"
        );
    }
}
