//! Messages of a set-up as a function of bytes, for a fuzzer.

use std::convert::Infallible;
use std::sync::OnceLock;

use veil_device::Trees;
use veil_prss::{DomainTag, Prf};
use veil_session::{PartyId, Peer, Secret, SessionId};

use super::hash::{For, SEAL, seal};
use super::trees::message_length;
use super::{Ends, Pins, ReceiverSetUp, SenderSetUp};

/// Which message is changed.
#[derive(Clone, Copy)]
enum Message {
    /// Points of base transfers, to the receiver.
    Points,
    /// The point of their sender, to the sender.
    Point,
    /// The receiver's trees, to the sender.
    Trees,
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
    let which = [Message::Points, Message::Point, Message::Trees][usize::from(first & 0x7f) % 3];
    let (body, what) = honest(which);
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
    let sealed = seal(&ends(), what, sealed);
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

/// A message of honest ends without its seal, and what the seal is for.
fn honest(which: Message) -> (&'static Vec<u8>, For) {
    static MESSAGES: OnceLock<[Vec<u8>; 3]> = OnceLock::new();
    let messages = MESSAGES.get_or_init(|| {
        let (_, points) = sender();
        let (receiver, point) = receiver();
        let trees = receiver.finish(&points).map(|(message, _)| message);
        [points, point, trees.unwrap_or_default()].map(|mut message| {
            message.truncate(message.len() - SEAL);
            message
        })
    });
    let what = [For::BaseReceiver, For::BaseSender, For::Trees][which as usize];
    (&messages[which as usize], what)
}

/// Whether an end takes a message.
fn take(which: Message, message: &[u8]) -> bool {
    match which {
        Message::Points => receiver().0.finish(message).is_ok_and(|(message, leaves)| {
            assert_eq!(message.len(), message_length(TREES));
            assert_eq!(leaves.len(), usize::from(TREES.index(TREES.count(), 0)));
            true
        }),
        Message::Point => sender().0.base(message).is_ok(),
        Message::Trees => {
            let (_, point) = receiver();
            let set_up = sender().0.base(&point);
            let taken = set_up.and_then(|set_up| set_up.finish(message));
            taken.is_ok_and(|(offset, leaves)| {
                assert_eq!(offset.expose()[0] & 1, 1);
                assert!(
                    leaves
                        .iter()
                        .all(|(leaf, _)| *leaf < TREES.index(TREES.count(), 0))
                );
                true
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_messages_are_taken_or_refused() {
        for which in 0..3 {
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
        for _ in 0..60 {
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
