//! Lies on the link: whatever a party says that is not what it should, the receiver finds, before it has entries.

use veil_protocol::ot::extension::Challenge;
use veil_protocol::ot::vole::Shape;
use veil_session::Peer;

use crate::common::Kind;
use crate::ot_transfers::pair::{Failed, RECEIVER, SENDER, flip};
use crate::ot_vole::pair::{Pair, TOYS, TREES_OF_ENTRIES, TREES_OF_SILENT, caught, honest};

fn pair(seed: u64) -> Pair {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let shape = Shape::with(60, TOYS).expect("rounds that follow each other");
    Pair::new(shape, kind, seed, Challenge::Hash)
}

/// All rounds, in which `pass` has its way with messages. A receiver that finds a lie has no entries.
fn told(seed: u64, pass: &mut dyn FnMut(Peer, u32, &mut Vec<u8>)) -> Result<(), Failed> {
    let mut lied = pair(seed);
    let told = lied.run(pass);
    if told.is_err() {
        let mut other = pair(seed);
        assert_eq!(other.run(&mut honest), Ok(()));
        let [[_, a, _], [_, b, _]] = [lied.entries(), other.entries()];
        let same = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert_eq!(same, 0, "entries exist");
    }
    told
}

/// Every message of the round over blocks, with one bit that is another: sums of each level, d of each tree, the receiver's answer, the digest.
#[test]
fn every_wrong_bit_is_caught() {
    let (levels, trees) = (TOYS.blocks.levels() as usize, TOYS.blocks.trees as usize);
    let height = usize::from(TOYS.blocks.height);
    for (from, place, blocks) in [
        (SENDER, 4, levels + trees),
        (RECEIVER, 5, 1),
        (SENDER, 6, 2),
    ] {
        let mut uncaught = Vec::new();
        for seed in 0..60u64 {
            let bit = (seed as usize * 7919 + 13) % (128 * blocks);
            let done = told(seed, &mut |by, at, bytes| {
                if (by, at) == (from, place) {
                    assert_eq!(bytes.len(), 16 * blocks);
                    flip(bytes, bit);
                }
            });
            if done != caught(TREES_OF_ENTRIES) {
                uncaught.push((bit, done));
            }
        }
        for (bit, done) in uncaught {
            // Bit 0 of a leaf is no part of it: a change of it in the last level changes nothing.
            let in_levels = place == 4 && bit / 128 < levels;
            let last = in_levels && bit % 128 == 0 && bit / 128 % height == height - 1;
            assert!(last && done.is_ok(), "place {place}, bit {bit}: {done:?}");
        }
    }
}

/// Lies in the silent round are found there.
#[test]
fn wrong_silent_rounds_are_caught() {
    for (place, from) in [(1, SENDER), (2, RECEIVER), (3, SENDER)] {
        let done = told(7, &mut |by, at, bytes| {
            if (by, at) == (from, place) {
                flip(bytes, 77);
            }
        });
        assert_eq!(done, caught(TREES_OF_SILENT), "place {place}");
    }
}

/// Messages of another round over blocks are not taken.
#[test]
fn messages_of_another_round_are_caught() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let shape = Shape::with(100, TOYS).expect("rounds that follow each other");
    for k in 0..3 {
        let mut pair = Pair::new(shape, kind, 8, Challenge::Hash);
        let mut kept = Vec::new();
        let done = pair.run(&mut |_: Peer, at, bytes: &mut Vec<u8>| {
            if at == 4 + k {
                kept.clone_from(bytes);
            } else if at == 7 + k {
                bytes.clone_from(&kept);
            }
        });
        assert_eq!(done, caught(TREES_OF_ENTRIES), "{k}");
    }
}

/// A sender that changes d of a tree bets on the receiver's leaf: with the change added to that leaf it passes as often as the leaf is the guessed one. Here it changes
/// nothing else, so that it never does.
#[test]
fn a_wrong_d_is_caught_whatever_the_leaf() {
    let at = 16 * TOYS.blocks.levels() as usize;
    for seed in 0..40 {
        let done = told(seed, &mut |_, place, bytes| {
            if place == 4 {
                bytes[at + 16 * (seed as usize % TOYS.blocks.trees as usize) + 3] ^= 0x40;
            }
        });
        assert_eq!(done, caught(TREES_OF_ENTRIES), "{seed}");
    }
}
