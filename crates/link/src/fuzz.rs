//! The receiving checks as a function of bytes, for a fuzzer.

use veil_session::{Channel, Frame, Peer, StepId};

use crate::Bounds;
use crate::frame::{Body, HEADER, Header};
use crate::inbox::{Admit, Inbox};

/// For fuzzing: takes `bytes` for what a peer sends, a stream of frames, and puts them through the checks of an inbox that expects a few messages; ends where
/// a transport would end.
///
/// # Panics
///
/// If a header does not encode to the bytes that it was read from, or if more is held than the bounds allow.
pub fn fuzz_frame(mut bytes: &[u8]) {
    let bounds = Bounds {
        longest: 4096,
        early: 10_000,
        credit: 0,
        places: 16,
        chunks: 4,
        epochs: 1,
    };
    let mut inbox = Inbox::new(Peer::Owner(0), bounds, 0);
    let expected = |place| Channel {
        frame: Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: 0,
        },
        step: StepId { place, cycle: 0 },
        part: 0,
    };
    for place in 0..8 {
        // Nothing is announced twice here, so this cannot fail.
        let _ = inbox.expect(expected(place), u64::from(place) * 16);
    }
    while let Some((head, rest)) = bytes.split_first_chunk::<HEADER>() {
        let Ok(header) = Header::decode(head) else {
            return;
        };
        assert_eq!(
            &header.encode(),
            head,
            "a header encodes to the bytes that it was read from"
        );
        bytes = rest;
        let Body::Message { at, length } = header.body else {
            return;
        };
        let Ok(Admit::Now) = inbox.admit(header.tag, at, u64::from(length)) else {
            return;
        };
        let Some((payload, rest)) = bytes.split_at_checked(length as usize) else {
            return;
        };
        bytes = rest;
        let mut body = inbox.pool().take(payload.len());
        body.extend_from_slice(payload);
        if inbox.deliver(header.tag, at, body).is_err() {
            return;
        }
        assert!(
            inbox.early() <= bounds.early,
            "no more is held than was agreed"
        );
        // Every other message is taken at once, which makes the next one like it a duplicate.
        if at.step.place % 2 == 0 {
            let _ = inbox.land(at, &mut vec![0; payload.len()]);
        }
    }
    inbox.bind(1);
    assert!(
        inbox.early() <= bounds.early,
        "no more is held than was agreed"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::tests::at;
    use veil_testkit::Seed;

    /// Mutations of a valid stream get deeper than random bytes do. The seed is in the failure message.
    #[test]
    fn mutated_streams_never_panic_nor_hold_too_much() {
        let mut stream = Vec::new();
        for (place, length) in [(1, 16), (2, 32), (9, 100), (10, 0), (7, 112), (11, 4096)] {
            let mut at = at(place);
            at.frame.rows = 0;
            stream.extend_from_slice(
                &Header {
                    tag: 0,
                    body: Body::Message { at, length },
                }
                .encode(),
            );
            stream.resize(stream.len() + length as usize, place as u8);
        }
        fuzz_frame(&stream);
        for seed in 0..20_000u64 {
            let mut numbers = Seed(seed).numbers("damaged streams");
            let mut bytes = stream.clone();
            for _ in 0..=numbers.index(4) {
                // Mostly within the first frames, where the headers are.
                let near = if numbers.index(3) > 0 {
                    200
                } else {
                    bytes.len()
                };
                match numbers.index(4) {
                    0 => bytes[numbers.index(near)] ^= 1 << numbers.index(8),
                    1 => bytes[numbers.index(near)] = [0, 1, 0x7f, 0x80, 0xff][numbers.index(5)],
                    2 => bytes.truncate(200 + numbers.index(bytes.len() - 199)),
                    _ => {
                        let from = numbers.index(near);
                        let copy = bytes[from..].to_vec();
                        bytes.extend_from_slice(&copy);
                    }
                }
            }
            let fed = std::panic::catch_unwind(|| fuzz_frame(&bytes));
            assert!(fed.is_ok(), "seed {seed}");
        }
    }
}
