//! Lies on the link: whatever a party says that is not what it should, the receiver finds, before it has outputs.

use veil_session::Peer;

use crate::common::Kind;
use crate::ot_silent::pair::{LASTING, Pair, caught, honest};
use crate::ot_transfers::pair::{self, Failed, RECEIVER, SENDER, flip};

/// A round in which `pass` has its way with messages.
fn told(seed: u64, pass: &mut dyn FnMut(Peer, u32, &mut Vec<u8>)) -> Result<(), Failed> {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let mut pair = Pair::new(LASTING, kind, seed, false);
    assert_eq!(pair.base(&mut honest), Ok(()));
    let told = pair.round(0, true, pass);
    if told.is_err() {
        // Leaves have not become outputs: no row was added to them.
        let mut other = Pair::new(LASTING, kind, seed, false);
        assert_eq!(other.base(&mut honest), Ok(()));
        assert_eq!(other.round(0, true, &mut honest), Ok(()));
        let outputs = [&pair, &other].map(|pair| {
            let end = &pair.ends[1];
            let view = end.device.view(end.workspace, pair.receiver.outputs(true));
            view.expect("tests reach it").to_vec()
        });
        let (a, b) = (outputs[0].chunks(16), outputs[1].chunks(16));
        let same = a.zip(b).filter(|(a, b)| a == b).count();
        assert!(same < 4, "{same} outputs exist");
    }
    told
}

/// Cases F11 and F12: every message of a round, with one bit that is another: sums of each level, the receiver's question, the digest.
#[test]
fn every_wrong_bit_is_caught() {
    let levels = (LASTING.trees * u32::from(LASTING.height)) as usize;
    for (from, place, blocks) in [(SENDER, 0, levels), (RECEIVER, 1, 1), (SENDER, 2, 2)] {
        let mut uncaught = Vec::new();
        for seed in 0..60u64 {
            let bit = (seed as usize * 7919 + 13) % (128 * blocks);
            let done = told(seed, &mut |by, at, bytes| {
                if (by, at) == (from, place) {
                    assert_eq!(bytes.len(), 16 * blocks);
                    flip(bytes, bit);
                }
            });
            if done != caught() {
                uncaught.push((bit, done));
            }
        }
        for (bit, done) in uncaught {
            // Bit 0 of a leaf is no part of it: a change of it in the last level changes nothing.
            let last = place == 0 && bit % 128 == 0 && bit / 128 % 5 == 4;
            assert!(last && done.is_ok(), "place {place}, bit {bit}: {done:?}");
        }
    }
}

/// Case F13: messages of another round are not taken.
#[test]
fn messages_of_another_round_are_caught() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for place in 0..3 {
        let mut pair = Pair::new(LASTING, kind, 8, false);
        assert_eq!(pair.base(&mut honest), Ok(()));
        let mut kept = Vec::new();
        let done = pair.round(0, true, &mut |_, at, bytes| {
            if at == place {
                kept.clone_from(bytes);
            }
        });
        assert_eq!(done, Ok(()));
        let done = pair.round(1, true, &mut |_, at, bytes| {
            if at == place {
                bytes.clone_from(&kept);
            }
        });
        assert_eq!(done, caught(), "place {place}");
    }
}

/// Case F14: corrections of the base that are not of one string of choices are the sender's to find, before it grows a tree.
#[test]
fn a_wrong_base_is_caught() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for coin in [false, true] {
        let mut pair = Pair::new(LASTING, kind, 11, coin);
        let mut first = true;
        let done = pair.base(&mut |from, _, bytes| {
            if from == RECEIVER && std::mem::take(&mut first) {
                // In no tree but the first, so that no other choices are those of all.
                flip(bytes, 5);
            }
        });
        assert_eq!(done, pair::caught());
    }
}
