//! What honest rounds give, what they cost, and that messages hide what they should.

use veil_device::{Fault, Lpn, Op, Silent};
use veil_protocol::ot::extension::Challenge;
use veil_protocol::ot::vole::{Sets, Shape, Way};
use veil_protocol::{Cost, Round};
use veil_prss::DomainTag;

use crate::common::Kind;
use crate::ot_transfers::pair::{End, PRIVATE};
use crate::ot_vole::pair::{Pair, TOYS, dot, honest};

const CHALLENGES: [Challenge; 2] = [Challenge::Hash, Challenge::Coin(PRIVATE)];

fn shape(entries: u32) -> Shape {
    Shape::with(entries, TOYS).expect("rounds that follow each other")
}

#[test]
fn products_have_a_factor_that_changes_nothing() {
    let one = 1 << 127 | 1 << 126 | 1 << 121 | 1;
    let x = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978;
    assert_eq!((dot(x, one), dot(one, x)), (x, x));
    assert_eq!(dot(x, 7), dot(x, 1) ^ dot(x, 2) ^ dot(x, 4));
}

/// Every way, at its edges: of transfers, of one and of several silent rounds, of one and of several rounds over blocks.
#[test]
fn entries_are_products() {
    let base = TOYS.blocks.base() as u32;
    let made = TOYS.blocks.outputs() as u32;
    let lasts = (TOYS.blocks.trees - TOYS.blocks.base_trees()) << TOYS.blocks.height;
    for kind in Kind::all() {
        for (k, (entries, places)) in (0..).zip([
            (0, 1),
            (1, 1),
            (3, 1),
            (4, 4),
            (base, 4),
            (base + 1, 7),
            (made, 7),
            (made + 1, 10),
            (lasts + made, 10),
            (lasts + made + 1, 13),
        ]) {
            for challenge in CHALLENGES {
                let shape = shape(entries);
                assert_eq!(shape.places(Challenge::Hash), places, "{entries}");
                let mut pair = Pair::new(shape, kind, k, challenge);
                let rounds = pair.rounds();
                assert_eq!(rounds[0].len() as u32, shape.places(challenge));
                assert_eq!(pair.run(&mut honest), Ok(()), "{kind:?}, {entries}");
                assert_eq!(pair.entries()[0].len() as u32, entries.max(1));
                pair.check();
            }
        }
    }
}

/// Several silent rounds before entries.
#[test]
fn entries_are_packed_of_several_rounds() {
    let sets = Sets {
        silent: Lpn::of(16, 3, 6),
        blocks: Lpn::over_blocks(20, 3, 4),
    };
    for kind in Kind::all() {
        for (entries, way) in [
            (24, Way::Silent { rounds: 4 }),
            (29, Way::Silent { rounds: 5 }),
            (
                30,
                Way::Expanded {
                    rounds: 5,
                    expansions: 1,
                },
            ),
            (
                600,
                Way::Expanded {
                    rounds: 5,
                    expansions: 2,
                },
            ),
        ] {
            let shape = Shape::with(entries, sets).expect("rounds that follow each other");
            assert_eq!(shape.way(), way);
            let mut pair = Pair::new(shape, kind, 4, Challenge::Hash);
            assert_eq!(pair.run(&mut honest), Ok(()), "{kind:?}, {entries}");
            pair.check();
        }
    }
}

/// The default sets: the ways, and that one refuses what has no room.
#[test]
fn ways_follow_from_the_number() {
    for (entries, way) in [
        (2179, Way::Transfers),
        (2180, Way::Silent { rounds: 1 }),
        (24_320, Way::Silent { rounds: 1 }),
        (24_321, Way::Silent { rounds: 2 }),
        (68_097, Way::Silent { rounds: 3 }),
        (
            68_098,
            Way::Expanded {
                rounds: 3,
                expansions: 1,
            },
        ),
        (
            1_310_720,
            Way::Expanded {
                rounds: 3,
                expansions: 1,
            },
        ),
        (
            1_310_721,
            Way::Expanded {
                rounds: 3,
                expansions: 2,
            },
        ),
        (
            12_400_000,
            Way::Expanded {
                rounds: 4,
                expansions: 10,
            },
        ),
    ] {
        assert_eq!(Shape::of(entries).way(), way, "{entries}");
    }
    assert!(Shape::with(u32::MAX, Sets::default()).is_none());
    // A round that leaves no base has no second one.
    let blocks = Lpn::over_blocks(2, 5, 3);
    let once = Sets { blocks, ..TOYS };
    assert!(Shape::with(10_000, once).is_none());
    // 1.24 M entries: bits for an entry, both directions, with everything.
    let pair = Pair::new(shape(1), Kind::Reference, 1, Challenge::Hash);
    let [sender, receiver] = Shape::of(1_240_000).cost(&pair.base);
    let bits = 8.0 * (sender.bytes + receiver.bytes) as f64 / 1.24e6;
    assert!((bits - 15.1).abs() < 0.1, "{bits}");
}

/// Bytes and messages by formula are those of the rounds.
#[test]
fn costs_are_those_of_the_rounds() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for entries in [1, 4, 9, 70, 100, 200] {
        for challenge in CHALLENGES {
            let pair = Pair::new(shape(entries), kind, 1, challenge);
            let rounds = pair.rounds();
            let meter = |end: usize| {
                let rounds: &[Round] = &rounds[end];
                let sends = rounds.iter().flat_map(|round| &round.sends);
                let receives = rounds.iter().filter(|round| !round.recvs.is_empty());
                Cost {
                    rounds: receives.count() as u64,
                    messages: sends.clone().count() as u64,
                    bytes: sends
                        .map(|send| send.bytes(&pair.layouts[end], pair.rows))
                        .sum(),
                }
            };
            let want = shape(entries).cost(&pair.base);
            assert_eq!([meter(0), meter(1)], want, "{entries}, {challenge:?}");
        }
    }
}

/// The default sets with one round over blocks, on the fastest device of this machine.
#[test]
fn rounds_of_the_real_parameters_are_right() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let mut pair = Pair::new(Shape::of(100_000), kind, 5, Challenge::Hash);
    assert_eq!(pair.run(&mut honest), Ok(()));
    pair.check();
}

/// Entries of two runs have nothing in common, and half of the bits of messages are set.
#[test]
fn messages_look_random() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let mut seen = vec![(0u64, 0u64); 7];
    for seed in 0..60 {
        let mut pair = Pair::new(shape(60), kind, 100 + seed, Challenge::Hash);
        let done = pair.run(&mut |_, place, bytes| {
            let (ones, all) = &mut seen[place as usize];
            *ones += bytes.iter().map(|b| u64::from(b.count_ones())).sum::<u64>();
            *all += 8 * bytes.len() as u64;
        });
        assert_eq!(done, Ok(()));
    }
    for (place, (ones, all)) in seen.into_iter().enumerate() {
        let distance = (ones as f64 - all as f64 / 2.0).abs() / (all as f64 / 4.0).sqrt();
        assert!(all > 0 && distance < 4.5, "{place}: {ones} of {all}");
    }
}

/// Rounds over blocks that repeat ring at both ends of the reference device: in the number of a tree, or in what they take.
#[test]
fn rounds_that_repeat_ring() {
    let rings = |end: &mut End, round: &Round, wanted: fn(&Silent) -> bool| {
        let all = round.local.iter().chain(&round.finish);
        let is = |op: &Op| matches!(op, Op::Silent(step) if wanted(step));
        let step = all.clone().find(|command| is(&command.op));
        let step = std::slice::from_ref(step.expect("a step of the round"));
        match end.device.submit(end.workspace, step, veil_device::Tag(0)) {
            Err(Fault::Reuse(reuse)) => reuse.tag,
            other => panic!("{other:?}"),
        }
    };
    let mut pair = Pair::new(shape(60), Kind::Reference, 3, Challenge::Hash);
    let rounds = pair.rounds();
    assert_eq!(pair.run(&mut honest), Ok(()));
    for (end, rounds) in pair.ends.iter_mut().zip(&rounds) {
        let trees = |step: &Silent| matches!(step, Silent::Grow { .. } | Silent::Puncture { .. });
        assert_eq!(rings(end, &rounds[4], trees), DomainTag::VOLE_TREE);
        let second = |step: &Silent| matches!(step, Silent::Give { .. } | Silent::Fill { .. });
        assert_eq!(rings(end, &rounds[4], second), DomainTag::VOLE_LEAF);
        let rows = |step: &Silent| matches!(step, Silent::Rows { .. });
        assert_eq!(rings(end, &rounds[6], rows), DomainTag::VOLE_ROWS);
        let packs = |step: &Silent| matches!(step, Silent::Pack);
        assert_eq!(rings(end, &rounds[3], packs), DomainTag::OT_BASE);
    }
}
