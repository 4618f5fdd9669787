//! What honest rounds give, what they cost, and that messages hide the choices.

use veil_device::{Fault, Lpn, Op, Silent};
use veil_protocol::ot::silent::{cost, outputs};
use veil_protocol::{Cost, Round};
use veil_prss::DomainTag;

use crate::common::Kind;
use crate::ot_silent::pair::{ITEMS, LASTING, Pair, honest};
use crate::ot_transfers::pair::{End, drawn};

fn choices(pair: &Pair, seed: u64) -> Vec<u8> {
    drawn(seed, (ITEMS * pair.rows.div_ceil(8)) as usize)
}

/// Bases, rounds that follow each other, and one that leaves nothing; of each the first and the last outputs.
#[test]
fn labels_differ_by_the_offset_where_the_choice_is_one() {
    for kind in Kind::all() {
        for (k, set) in (0..).zip([LASTING, Lpn::of(40, 1, 4), Lpn::of(9, 7, 7)]) {
            for coin in [false, true] {
                let mut pair = Pair::new(set, kind, k, coin);
                assert_eq!(pair.base(&mut honest), Ok(()));
                for number in 0..3 {
                    let lasts = number < 2;
                    assert_eq!(pair.round(number, lasts, &mut honest), Ok(()));
                    let made = u64::from(outputs(set, lasts)) << set.height;
                    for first in [0, made - u64::from(ITEMS * pair.rows)] {
                        let choices = choices(&pair, number ^ first);
                        pair.choose(first, &choices);
                        pair.check();
                    }
                }
            }
        }
    }
}

/// The parameters that are used, on the fastest device of this machine.
#[test]
fn rounds_of_the_real_parameters_are_right() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let set = Lpn::C11;
    assert_eq!(outputs(set, true), 1170 - 140);
    assert_eq!(outputs(Lpn::C12, true), 1520 - 137);
    let mut pair = Pair::new(set, kind, 5, false);
    assert_eq!(pair.base(&mut honest), Ok(()));
    for number in 0..2 {
        assert_eq!(pair.round(number, number == 0, &mut honest), Ok(()));
        for first in [0, 1 << 19, (1030 << 10) - u64::from(ITEMS * pair.rows)] {
            let choices = choices(&pair, first);
            pair.choose(first, &choices);
            pair.check();
        }
    }
}

/// Bytes and messages by formula are those of the rounds.
#[test]
fn costs_are_those_of_the_rounds() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let pair = Pair::new(LASTING, kind, 1, false);
    let levels = u64::from(LASTING.trees) * u64::from(LASTING.height);
    let meter = |end: usize, rounds: &[Round]| {
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
    let metered = [
        meter(0, &pair.sender.round(0, 0, true)),
        meter(1, &pair.receiver.round(0, 0, true)),
    ];
    assert_eq!(metered, cost(LASTING));
    assert_eq!(metered[0].bytes, 16 * levels + 32);
    // Bits for an output, as documentation has them: both directions, without the base.
    for (set, want) in [(Lpn::C12, 0.76), (Lpn::C11, 1.42), (Lpn::F13, 0.21)] {
        let [sender, receiver] = cost(set);
        let bits = 8.0 * (sender.bytes + receiver.bytes) as f64;
        let made = u64::from(outputs(set, true)) << set.height;
        assert!((bits / made as f64 - want).abs() < 0.01, "{set:?}");
    }
}

/// With all choices 0 and with all 1, half of the bits of every message are set.
#[test]
fn messages_do_not_depend_on_choices() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for byte in [0, 0xff] {
        let mut seen = [(0u64, 0u64); 4];
        for seed in 0..60 {
            let mut pair = Pair::new(LASTING, kind, 100 + seed, false);
            assert_eq!(pair.base(&mut honest), Ok(()));
            let mut count = |place: u32, bytes: &[u8]| {
                let (ones, all) = &mut seen[place as usize];
                *ones += bytes.iter().map(|b| u64::from(b.count_ones())).sum::<u64>();
                *all += 8 * bytes.len() as u64;
            };
            let done = pair.round(0, false, &mut |_, place, bytes| count(place, bytes));
            assert_eq!(done, Ok(()));
            let width = pair.rows.div_ceil(8) as usize;
            let sent = pair.choose(0, &vec![byte; ITEMS as usize * width]);
            // Without the padding behind the last row.
            for item in sent.chunks(width) {
                count(3, &item[..width - 1]);
            }
        }
        for (place, (ones, all)) in seen.into_iter().enumerate() {
            let distance = (ones as f64 - all as f64 / 2.0).abs() / (all as f64 / 4.0).sqrt();
            assert!(distance < 4.5, "{place}, choices {byte}: {ones} of {all}");
        }
    }
}

/// Cases A8 and F13: rounds with the number of another one, and rounds that take what was taken, ring at both ends of the reference device.
#[test]
fn rounds_that_repeat_ring() {
    let rings = |end: &mut End, round: &Round| {
        let all = round.local.iter().chain(&round.finish);
        let trees = |op: &Op| {
            matches!(
                op,
                Op::Silent(Silent::Grow { .. } | Silent::Puncture { .. })
            )
        };
        let step = all.clone().find(|command| trees(&command.op));
        let step = std::slice::from_ref(step.expect("trees of a round"));
        match end.device.submit(end.workspace, step, veil_device::Tag(0)) {
            Err(Fault::Reuse(reuse)) => reuse.tag,
            other => panic!("{other:?}"),
        }
    };
    let mut pair = Pair::new(LASTING, Kind::Reference, 3, false);
    assert_eq!(pair.base(&mut honest), Ok(()));
    assert_eq!(pair.round(0, true, &mut honest), Ok(()));
    for (number, tag) in [(0, DomainTag::OT_TREE), (2, DomainTag::OT_BASE)] {
        let rounds = [
            &pair.sender.round(0, number, true)[0],
            &pair.receiver.round(0, number, true)[0],
        ];
        for (end, round) in pair.ends.iter_mut().zip(rounds) {
            assert_eq!(rings(end, round), tag, "round {number}");
        }
    }
}
