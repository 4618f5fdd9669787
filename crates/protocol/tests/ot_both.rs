//! Transfers of both directions after one set of curves, between honest ends and with ends that cheat (cases D1 to D3).

use std::collections::BTreeSet;
use std::ops::Range;

use veil_device::Trees;
use veil_protocol::ot::base::{BaseSender, TRANSFERS};
use veil_protocol::ot::reversal::{MESSAGE, choices, choose};
use veil_protocol::ot::trees::{self, message_length};
use veil_protocol::ot::{Cheat, Ends, Leaf, Pins, ReceiverSetUp, SenderTrees};
use veil_session::Secret;

use crate::common::Kind;
use crate::common::transfers::{For, SEAL, agree, drawn, ends, sealed, start_pinned};
use crate::ot_cache::forged;
use crate::ot_transfers::pair::{PRIVATE, Pair, SHAPE, START, Shape, block, choices as bits};

/// Fixed bits of both offsets, the first sender's first: bit 0 is 1 in both, bit 1 in one.
const PINS: [Pins; 2] = [Pins::new(2, 2), Pins::new(2, 0)];

const TREES: Trees = Trees::ALL[2];

/// The sender before it has trees, the receiver, and the points that it waits for.
fn begin(session: u8, trees: Trees) -> (SenderTrees, ReceiverSetUp, Vec<u8>) {
    let (sender, points, receiver, point) = start_pinned(session, trees, PINS[0]);
    (
        sender.base(&point).expect("both are honest"),
        receiver,
        points,
    )
}

/// The receiver's message, all leaves of the first direction, and that end in the second.
fn turn(
    (session, receiver): (u8, ReceiverSetUp),
    points: &[u8],
) -> Result<(Vec<u8>, Vec<Leaf>, SenderTrees), Cheat> {
    let drawn = drawn(2000 + u64::from(session)).secret();
    receiver.finish_and_turn(points, &drawn, PINS[1])
}

/// The receiver, when it waits for trees.
fn back(session: u8) -> SenderTrees {
    let (_, receiver, points) = begin(session, TREES);
    let made = turn((session, receiver), &points);
    made.expect("both are honest").2
}

fn roots(session: u8, trees: Trees) -> Vec<Secret> {
    drawn(3000 + u64::from(session)).secrets(trees.count() as usize)
}

/// Both ends of a direction.
struct Half {
    offset: Secret,
    all: Vec<Leaf>,
    some: Vec<Leaf>,
}

/// An honest set-up, and the two messages that follow the points.
fn honest(session: u8, trees: Trees) -> ([Half; 2], [Vec<u8>; 2]) {
    let (sender, receiver, points) = begin(session, trees);
    let (turned, all, back) = turn((session, receiver), &points).expect("both are honest");
    let made = sender.finish_and_grow(&turned, &roots(session, trees));
    let ((offset, some), (grown, theirs)) = made.expect("both are honest");
    let first = Half { offset, all, some };
    let (offset, some) = back.finish(&grown).expect("both are honest");
    let all = theirs;
    ([first, Half { offset, all, some }], [turned, grown])
}

#[test]
fn every_direction_has_an_offset_and_leaves_of_its_own() {
    for trees in Trees::ALL {
        let (halves, [turned, grown]) = honest(1, trees);
        assert_eq!(turned.len(), message_length(trees) + MESSAGE);
        assert_eq!(grown.len(), message_length(trees));
        let mut seen = BTreeSet::new();
        for Half { offset, all, some } in &halves {
            agree(trees, offset, all, some);
            assert!(seen.insert(*offset.expose()));
            assert!(all.iter().all(|(_, leaf)| seen.insert(*leaf.expose())));
        }
        let [a, b] = halves.map(|half| u128::from_le_bytes(*half.offset.expose()));
        assert_eq!((a & 3, b & 3), (3, 1));
        // Bits that are not fixed are drawn.
        assert!((a ^ b).count_ones() > 30);
    }
}

/// Q = T ⊕ x Δ, where each end has the keys that the set-up gave it, in both directions.
#[test]
fn transfers_of_both_directions_obey_their_law() {
    for trees in Trees::ALL {
        let (halves, _) = honest(2, trees);
        for (seed, half) in halves.iter().enumerate() {
            let offset = u128::from_le_bytes(*half.offset.expose());
            let leaf = |tree, x| *half.all[usize::from(trees.index(tree, x))].1.expose();
            let shape = Shape { trees, ..SHAPE };
            for kind in Kind::all() {
                let place = (0, 3, shape.rows.max(512));
                let mut pair = Pair::with(shape, kind, offset, &leaf, place);
                pair.load(START, &[0, 1], block(7, 1));
                pair.load(PRIVATE, &[0], block(7, 2));
                pair.choose(&bits(shape, seed as u64));
                pair.honest();
                pair.check();
            }
        }
    }
}

/// What a new seal says: between whom, and for what.
type Seal = (Ends, For);

/// A message with one bit changed in a part of it, under the seal that it had or a new one.
fn changed(message: &[u8], part: Range<usize>, place: usize, seal: Option<Seal>) -> Vec<u8> {
    let mut other = message[part.clone()].to_vec();
    other[place] ^= 0x80;
    if let Some((ends, what)) = seal {
        other = sealed(&ends, what, other);
    }
    [&message[..part.start], &other, &message[part.end..]].concat()
}

/// Case D1: every message, with a byte changed, and what the end that it reaches says.
#[test]
fn what_is_changed_is_refused() {
    let points = begin(5, TREES).2;
    for (seal, want) in [
        (None, Cheat::Stranger),
        // A point's highest bit: no encoding has it.
        (Some((ends(5), For::BaseReceiver)), Cheat::Point),
    ] {
        for place in [31, 32 * 255 + 31] {
            let points = changed(&points, 0..points.len(), place, seal);
            let told = turn((5, begin(5, TREES).1), &points);
            assert_eq!(told.err(), Some(want));
        }
    }
    let (_, [turned, grown]) = honest(5, TREES);
    let (first, second) = (0..grown.len(), grown.len()..turned.len());
    let digest = grown.len() - SEAL - 1;
    let [of_trees, of_turn] = [For::Trees, For::Turn].map(|what| Some((ends(5), what)));
    for (part, place, seal, want) in [
        (&first, 0, None, Cheat::Stranger),
        (&first, digest, None, Cheat::Stranger),
        (&first, digest, of_trees, Cheat::Trees),
        (&second, 0, None, Cheat::Stranger),
        (&second, MESSAGE - 1, None, Cheat::Stranger),
        // A correction, after which the challenge is another one; and a fold.
        (&second, 40, of_turn, Cheat::Reversed),
        (&second, MESSAGE - SEAL - 1, of_turn, Cheat::Reversed),
    ] {
        let turned = changed(&turned, part.clone(), place, seal);
        let told = begin(5, TREES).0.finish_and_grow(&turned, &roots(5, TREES));
        assert_eq!(told.err(), Some(want), "{place}");
    }
    let of_trees = Some((ends(5).reversed(), For::Trees));
    for (place, seal, want) in [
        (0, None, Cheat::Stranger),
        (digest, None, Cheat::Stranger),
        (digest, of_trees, Cheat::Trees),
        // A sum of check values.
        (32 * TRANSFERS, of_trees, Cheat::Trees),
    ] {
        let grown = changed(&grown, first.clone(), place, seal);
        assert_eq!(back(5).finish(&grown).err(), Some(want), "{place}");
    }
}

#[test]
fn other_lengths_are_refused() {
    let (_, [turned, grown]) = honest(5, TREES);
    for length in [
        0,
        SEAL,
        grown.len(),
        MESSAGE,
        turned.len() - 1,
        turned.len() + 1,
    ] {
        let mut other = turned.clone();
        other.resize(length, 0);
        let told = begin(5, TREES).0.finish_and_grow(&other, &roots(5, TREES));
        assert_eq!(told.err(), Some(Cheat::Length), "{length}");
    }
    for length in [0, SEAL, grown.len() - 1, grown.len() + 1, turned.len()] {
        let mut other = grown.clone();
        other.resize(length, 0);
        assert_eq!(
            back(5).finish(&other).err(),
            Some(Cheat::Length),
            "{length}"
        );
    }
}

/// Case D1: the trees of a direction as those of the other one, and a turn of the other direction, of another session, or by an end that has other keys.
#[test]
fn no_message_is_one_of_the_other_direction() {
    let (_, [turned, grown]) = honest(6, TREES);
    let (first, turn_of) = turned.split_at(grown.len());
    let take = |message: Vec<u8>| {
        let told = begin(6, TREES)
            .0
            .finish_and_grow(&message, &roots(6, TREES));
        told.err()
    };
    // The receiver's own trees come back to it.
    assert_eq!(back(6).finish(first).err(), Some(Cheat::Stranger));
    let anew = sealed(&ends(6).reversed(), For::Trees, first.to_vec());
    assert_eq!(back(6).finish(&anew).err(), Some(Cheat::Trees));
    let told = take([&grown, turn_of].concat());
    assert_eq!(told, Some(Cheat::Stranger));
    let anew = sealed(&ends(6), For::Trees, grown.clone());
    assert_eq!(take([&anew, turn_of].concat()), Some(Cheat::Trees));
    // A turn is made with the keys of these ends, in this session, in this direction.
    let mut random = drawn(6);
    let pairs = (0..TRANSFERS).map(|_| [random.secret(), random.secret()]);
    let (pairs, by): (Vec<_>, _) = (pairs.collect(), choices(&random.secret()));
    for (of, want) in [
        (ends(6).reversed(), Cheat::Stranger),
        (ends(5), Cheat::Stranger),
        (ends(6), Cheat::Reversed),
    ] {
        let (other, _) = choose(&of, &pairs, &by);
        assert_eq!(take([first, &other].concat()), Some(want));
    }
    let (_, [old, older]) = honest(5, TREES);
    assert_eq!(take(old), Some(Cheat::Stranger));
    assert_eq!(back(6).finish(&older).err(), Some(Cheat::Stranger));
}

/// Case D3: the end that grows trees of the second direction and sends a wrong sum passes if the other end does not use it, which is a bit of
/// that end's offset.
#[test]
fn a_wrong_sum_of_the_second_direction_costs_a_guess() {
    let (halves, [_, grown]) = honest(7, TREES);
    let used = trees::choices(TREES, &halves[1].offset);
    for transfer in [0, 2, 3, 63, 126, 127] {
        for side in [0, 1] {
            let mut other = grown.clone();
            other[32 * transfer + 16 * usize::from(side)] ^= 1;
            let told = back(7).finish(&sealed(&ends(7).reversed(), For::Trees, other));
            let want = (side == used[transfer]).then_some(Cheat::Trees);
            assert_eq!(told.err(), want, "transfer {transfer} side {side}");
        }
    }
}

/// Cases D2 and D3: the end that turns the base transfers deviates in a sum of its trees and in two corrections of its turn. It passes if it has
/// guessed the bits of the first offset for all three, and otherwise the first check that fails ends the session.
#[test]
fn guesses_of_an_offset_add_up() {
    let (halves, [turned, grown]) = honest(9, TREES);
    let used = trees::choices(TREES, &halves[0].offset);
    let by = Box::new(trees::choices(TREES, &halves[1].offset));
    let mut own = [0; 64];
    drawn(1009).fill(&mut own);
    let base = BaseSender::start(&ends(9), &own).0;
    let pairs = base.finish(&begin(9, TREES).2).expect("both are honest");
    let honest = forged(&ends(9), &pairs, &by, &[]);
    assert_eq!(honest, turned[grown.len()..]);
    let mut passed = 0;
    for guess in 0..8u8 {
        let [sum, lies @ ..] = [0, 1, 2].map(|i| guess >> i & 1);
        let mut first = turned[..grown.len()].to_vec();
        first[32 * 64 + 16 * usize::from(1 - sum)] ^= 1;
        let first = sealed(&ends(9), For::Trees, first);
        let message = [first, forged(&ends(9), &pairs, &by, &lies)].concat();
        let told = begin(9, TREES)
            .0
            .finish_and_grow(&message, &roots(9, TREES));
        let right = (0..2).all(|i| lies[i] == 1 - used[i]);
        let want = match (used[64] == sum, right) {
            (false, _) => Some(Cheat::Trees),
            (true, false) => Some(Cheat::Reversed),
            (true, true) => None,
        };
        assert_eq!(told.as_ref().err(), want.as_ref(), "{guess}");
        passed += u32::from(told.is_ok());
    }
    assert_eq!(passed, 1);
}

/// An end that turns the base transfers by another offset than it uses gets no trees.
#[test]
fn who_lacks_the_turned_keys_has_no_trees() {
    let (_, receiver, points) = begin(8, TREES);
    let other = drawn(9).secret();
    let (_, _, back) = receiver.finish_and_turn(&points, &other, PINS[1]).unwrap();
    let (_, [_, grown]) = honest(8, TREES);
    assert_eq!(back.finish(&grown).err(), Some(Cheat::Trees));
}
