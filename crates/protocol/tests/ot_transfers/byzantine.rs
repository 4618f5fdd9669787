//! Lies of the receiver, and messages that are said again (cases D1, D2 and D3).

use std::cell::Cell;

use veil_device::{Device, Op, Ot, Trees};

use crate::common::Kind;
use crate::ot_transfers::pair::{AT, Pair, RECEIVER, SHAPE, Shape, caught, choices, drawn, flip};

/// Cases D2 and D3: a receiver that sends other corrections in c trees passes if it has guessed all their bits of the offset, here
/// that they are zero: with probability 2^-kc. If it passes it has learnt these bits, and the labels are as if they were.
#[test]
fn other_corrections_in_some_trees_cost_a_guess_of_their_bits() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for (bits, wrong, trials) in [(1, 1, 400), (1, 3, 400), (2, 1, 400), (4, 1, 600)] {
        for coin in [false, true] {
            let shape = Shape {
                trees: Trees::new(bits).expect("there are such trees"),
                coin,
                items: 1,
                ..SHAPE
            };
            let mut passed = 0;
            for seed in 0..trials {
                let mut pair = Pair::new(shape, kind, 1000 * u64::from(bits) + seed);
                pair.choose(&choices(shape, seed));
                let item = 8 * shape.rows.div_ceil(8) as usize;
                // Not in the first tree, whose bit 0 it knows.
                let lie = |device: &mut dyn Device, workspace, message| {
                    let message = device.map(workspace, message).expect("it is mapped");
                    (1..=wrong).for_each(|tree| flip(message, tree * item + 5));
                };
                let corrections =
                    pair.receiver
                        .rounds(AT, pair.ends[1].choices, pair.ends[1].labels(0))[0]
                        .sends[0]
                        .span;
                let told = pair.transfers(
                    &mut |_, op, device, workspace| {
                        if matches!(op, Op::Ot(Ot::Receive { .. })) {
                            lie(device, workspace, corrections);
                        }
                    },
                    &mut |_, _, _| {},
                );
                let guessed = pair.offset >> bits & ((1 << (usize::from(bits) * wrong)) - 1) == 0;
                if guessed {
                    passed += 1;
                    assert_eq!(told, Ok(()));
                    pair.check();
                } else {
                    assert_eq!(told, caught());
                    // Nothing was made of what is wrong.
                    assert!(pair.ends[0].see(0).iter().all(|label| *label == 0));
                }
            }
            let want = 0.5f64.powi(i32::from(bits) * wrong as i32);
            let deviation = (want * (1.0 - want) / trials as f64).sqrt();
            let rate = f64::from(passed) / trials as f64;
            assert!(
                (rate - want).abs() < 4.5 * deviation,
                "trees of {bits} bits, {wrong} wrong: {rate}"
            );
        }
    }
}

/// Case D2: another string of choices in every tree is never believed, and no wrong fold is.
#[test]
fn lies_about_all_trees_are_caught() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for coin in [false, true] {
        let shape = Shape { coin, ..SHAPE };
        for seed in 0..50 {
            let mut pair = Pair::new(shape, kind, seed);
            pair.choose(&choices(shape, seed));
            let other = drawn(seed + 1, 10_000);
            let told = pair.transfers(&mut |_, _, _, _| {}, &mut |from, part, bytes| {
                if (from, part) == (RECEIVER, 0) {
                    bytes.iter_mut().zip(&other).for_each(|(a, b)| *a ^= b);
                }
            });
            assert_eq!(told, caught());
        }
    }
}

#[test]
fn every_wrong_byte_of_the_check_is_caught() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let parts = [(1, 31 * 16), (2, 129 * 16)];
    for coin in [false, true] {
        let shape = Shape { coin, ..SHAPE };
        for (part, length) in parts {
            for seed in 0..100u64 {
                let mut pair = Pair::new(shape, kind, seed);
                pair.choose(&choices(shape, seed));
                let bit = (seed as usize * 7919 + seed as usize % 8) % (8 * length);
                let told = pair.transfers(&mut |_, _, _, _| {}, &mut |from, p, bytes| {
                    if (from, p) == (RECEIVER, part) {
                        assert_eq!(bytes.len(), length);
                        flip(bytes, bit);
                    }
                });
                // A correction of the last block is believed if all bits of its tree are zero.
                let zero = || (pair.offset >> (4 * (1 + bit / 128))).trailing_zeros() >= 4;
                if part == 1 && coin && zero() {
                    assert_eq!(told, Ok(()));
                } else {
                    assert_eq!(told, caught(), "part {part} bit {bit}");
                }
            }
        }
    }
}

/// Case D1: messages of another use of the same keys are not taken.
#[test]
fn replayed_messages_are_caught() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for coin in [false, true] {
        for replayed in [0, 1, 2] {
            let shape = Shape { coin, ..SHAPE };
            let kept = Cell::new(Vec::new());
            let mut old = Pair::new(shape, kind, 1);
            old.choose(&choices(shape, 1));
            let told = old.transfers_at(500, &mut |_, _, _, _| {}, &mut |from, part, bytes| {
                if (from, part) == (RECEIVER, replayed) {
                    kept.set(bytes.clone());
                }
            });
            assert_eq!(told, Ok(()));
            let kept = kept.take();
            let mut pair = Pair::new(shape, kind, 1);
            pair.choose(&choices(shape, 1));
            let told = pair.transfers(&mut |_, _, _, _| {}, &mut |from, part, bytes| {
                if (from, part) == (RECEIVER, replayed) {
                    bytes.clone_from(&kept);
                }
            });
            assert_eq!(told, caught(), "part {replayed}");
        }
    }
}
