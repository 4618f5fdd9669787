//! Three parties of whom one may be malicious compute on integers what the circuit says in the clear, and notice every wrong message before
//! anything is opened.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::common::{
    NOT_THE_SAME, NOT_ZERO, assert_found, found_by_codes, found_of_product, made, of_circuit,
};
use veil_circuit::{Builder, Circuit, Per};
use veil_device::Cpu;
use veil_job::{Audience, Slice};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::{PartyId, Peer};
use veil_testkit::sample::{against_malicious, dot, everything, guarded, peer};
use veil_testkit::{Adding, Kind, Message, Outcome, Seed, Values, World};

fn world(blocks: &[u64], chunk_rows: u32, lanes: u16) -> World {
    let job = against_malicious(everything(Ring::Z64, blocks));
    World::in_chunks(job, chunk_rows, lanes)
}

/// Eight layers of 20 products in 512 rows: all values of a layer are used in the next.
fn long(rows: u64) -> World {
    let mut b = Builder::new(Ring::Z64);
    let mut x = b.input("x", 20, Per::Row);
    for layer in 0..8 {
        x = (0..20)
            .map(|k| {
                let sum = b.add(x[k], x[(k + 7) % 20]);
                b.mul(sum, x[(k + 1 + layer) % 20])
            })
            .collect();
    }
    b.output("z", &x);
    let job = of_circuit(b.finish().expect("a valid circuit"), rows);
    World::in_chunks(job, 512, 1).devices(|_| Box::new(Cpu::detect()))
}

#[test]
fn long_circuits_are_checked_once_per_chunk() {
    let outcome = long(600).run();
    outcome.assert_right();
    let chunks = 2;
    assert_eq!(outcome.of(Kind::CheckSums).count(), 3 * chunks);
}

/// What becomes of a message.
type Change = fn(&[u8]) -> Vec<u8>;

/// The lowest bit of every element; all bits of every element; the lowest bit of the last one.
const CHANGES: [Change; 3] = [
    |bytes| {
        (0..)
            .zip(bytes)
            .map(|(k, b)| b ^ u8::from(k % 16 == 0))
            .collect()
    },
    |bytes| bytes.iter().map(|b| !b).collect(),
    |bytes| {
        let last = bytes.len() - 16;
        let flip = |(k, b): (usize, &u8)| b ^ u8::from(k == last);
        bytes.iter().enumerate().map(flip).collect()
    },
];

fn changed(message: &Message, change: Change) -> impl Fn(&Message) -> Fate + Send + Sync + 'static {
    let name = (message.from, message.to, message.at);
    move |m: &Message| {
        if (m.from, m.to, m.at) == name {
            Fate::Replace(change(&m.bytes))
        } else {
            Fate::Pass
        }
    }
}

fn messages(outcome: &Outcome, kinds: &[Kind]) -> Vec<Message> {
    let of_kind = |m: &&Message| m.kind.is_some_and(|kind| kinds.contains(&kind));
    outcome.transcript.iter().filter(of_kind).cloned().collect()
}

/// Every message of products, of MACs, of sums and of the check itself, of every party and layer, one bit wrong or all.
#[test]
fn a_wrong_message_is_found_before_anything_is_opened() {
    let honest = world(&[13, 9], 8, 1).window(1);
    let outcome = honest.run();
    outcome.assert_right();
    let of_rows = [
        Kind::Product,
        Kind::SumProduct,
        Kind::JobWideMac,
        Kind::CheckSums,
        Kind::CheckProduct,
    ];
    let of_job = [Kind::JobProduct, Kind::JobCheckSums, Kind::JobCheckProduct];
    for (kinds, round) in [
        (&of_rows[..], Kind::Difference),
        (&of_job, Kind::JobDifference),
    ] {
        let all = messages(&outcome, kinds);
        for kind in kinds {
            assert!(
                all.iter().any(|m| m.kind == Some(*kind)),
                "{kind:?} is sent"
            );
        }
        for message in &all {
            for change in CHANGES {
                let outcome = honest.clone().cheat(changed(message, change)).run();
                let chunk = message.at.frame.chunk;
                let found = found_by_codes(round, &[NOT_ZERO, NOT_THE_SAME]);
                assert_found(&outcome, chunk, &found, message.from);
                let before = |s: &Slice| {
                    let chunk = outcome.plan.chunk(chunk.saturating_sub(1));
                    let chunk = chunk.expect("a chunk");
                    (s.block, s.first) < (chunk.block, chunk.first)
                };
                for (who, seen) in &outcome.seen {
                    let opened = seen.slices().into_iter().map(|(_, slice)| slice);
                    assert!(
                        opened.clone().all(|s| before(&s)),
                        "{}: {who} was given rows that depend on it",
                        outcome.seed
                    );
                }
            }
        }
    }
}

/// A party that lies about a component of the difference, to one of the others or to both, stops the run and nothing else.
#[test]
fn a_wrong_component_of_the_difference_is_found() {
    let honest = world(&[13, 9], 8, 1).window(1);
    let outcome = honest.run();
    outcome.assert_right();
    for kind in [Kind::Difference, Kind::JobDifference] {
        let all = messages(&outcome, &[kind]);
        assert!(all.len() >= 6, "{kind:?} is sent");
        for message in all {
            for change in CHANGES {
                let outcome = honest.clone().cheat(changed(&message, change)).run();
                let chunk = message.at.frame.chunk;
                let mut found = found_by_codes(kind, &[NOT_THE_SAME]);
                found.retain(|f| f.by() == message.to);
                assert_found(&outcome, chunk, &found, message.from);
            }
        }
    }
}

/// No honest party sends anything that depends on a batch before it is checked: of a chunk with a wrong product not even an agreement.
#[test]
fn honest_parties_do_not_agree_to_open_what_is_wrong() {
    let honest = world(&[13, 9], 8, 1).window(1);
    for corrupt in 0..3 {
        let outcome = adding(&honest, corrupt, 0, 0, 1).run();
        for kind in [Kind::Agreement, Kind::Opened, Kind::Total] {
            let sent = outcome.of(kind).filter(|m| m.from != peer(corrupt));
            assert_eq!(sent.count(), 0, "{kind:?}");
        }
    }
}

/// Party `corrupt` adds `error` to an element of the message of program `program`, and goes on as if that was right.
fn adding(honest: &World, corrupt: u8, program: u32, element: usize, error: u128) -> World {
    honest.clone().devices(move |who| {
        let device = Box::new(Cpu::detect());
        if who == peer(corrupt) {
            Box::new(Adding::new(device, program, element, error))
        } else {
            device
        }
    })
}

/// Whatever a party adds to a product, to a MAC, or to the MAC of an input, in the rows and in the set-up, and however it goes on: what
/// could change a result is found, and what could not has no effect that a participant sees.
#[test]
fn whatever_is_added_to_a_message_is_found() {
    let honest = world(&[13], 16, 1).window(1);
    honest.run().assert_right();
    let plan = std::sync::Arc::clone(honest.plan());
    let (rows, of_rows) = (13, plan.layers.len());
    for (index, layer) in plan.all_layers().enumerate() {
        let (rows, chunk, round) = if index < of_rows {
            (rows, 1, Kind::Difference)
        } else {
            (1, 0, Kind::JobDifference)
        };
        let messages = layer.products as usize;
        // Of the first product, of its MAC, of the last value that is authenticated.
        let mut items = vec![
            0,
            layer.authenticated.products as usize,
            messages.saturating_sub(1),
        ];
        items.retain(|item| *item < messages);
        items.dedup();
        for (k, item) in items.into_iter().enumerate() {
            for (j, error) in [1, 1 << 63, u128::MAX, 0x5_0000_0000]
                .into_iter()
                .enumerate()
            {
                let corrupt = ((index + k + j) % 3) as u8;
                let element = item * rows + (j * 5) % rows;
                let program = layer.program as u32;
                let outcome = adding(&honest, corrupt, program, element, error).run();
                let found = found_by_codes(round, &[NOT_ZERO]);
                assert_found(&outcome, chunk, &found, peer(corrupt));
            }
            // Of these the results are the same: whether they are found, now or when it goes on with what others do not have, depends on what
            // no party knows.
            for (j, error) in [1 << 64, 3 << 100, 1 << 127].into_iter().enumerate() {
                let corrupt = ((index + j) % 3) as u8;
                let outcome = adding(&honest, corrupt, layer.program as u32, item * rows, error);
                let outcome = outcome.run();
                if outcome.aborts.is_empty() {
                    outcome.assert_right();
                } else {
                    outcome.assert_sound(Some(peer(corrupt)));
                }
            }
        }
    }
}

/// Of a comparison, whose bits are proved and whose integers are checked: every message of products, one bit wrong or all.
#[test]
fn a_wrong_bit_of_an_integer_is_found() {
    let honest = World::in_chunks(made("int-lt:6", 13), 16, 1).window(1);
    let outcome = honest.run();
    outcome.assert_right();
    let change: Change = |bytes| bytes.iter().map(|b| b ^ 1).collect();
    let (mut bits, mut integers) = (0, 0);
    for message in messages(&outcome, &[Kind::Product]) {
        // Messages of integers are the first of a layer.
        let of_bits = message.at.part >= 2;
        let outcome = honest.clone().cheat(changed(&message, change)).run();
        let found = if of_bits {
            found_of_product(message.from, Kind::Findings)
        } else {
            found_by_codes(Kind::Difference, &[NOT_ZERO, NOT_THE_SAME])
        };
        assert_found(&outcome, 1, &found, message.from);
        assert_eq!(outcome.of(Kind::Opened).count(), 0);
        *(if of_bits { &mut bits } else { &mut integers }) += 1;
    }
    assert!(bits >= 9 && integers >= 6, "{bits} and {integers} messages");
}

/// What is made of sums is checked before it is opened.
#[test]
fn a_wrong_total_is_found() {
    let honest = World::in_chunks(
        against_malicious(guarded(everything(Ring::Z64, &[13]), 1 << 63)),
        8,
        1,
    );
    let outcome = honest.run();
    outcome.assert_right();
    let chunk = outcome.plan.totals_frame().chunk;
    let kinds = [Kind::Product, Kind::CheckSums, Kind::CheckProduct];
    let mut all = messages(&outcome, &kinds);
    all.retain(|m| m.at.frame.chunk == chunk && m.from == peer(1));
    assert!(all.len() >= 10, "{} messages", all.len());
    for message in &all {
        let outcome = honest.clone().cheat(changed(message, CHANGES[1])).run();
        let found = if message.kind == Some(Kind::Product) && message.at.part >= 2 {
            found_of_product(message.from, Kind::Findings)
        } else {
            found_by_codes(Kind::Difference, &[NOT_ZERO, NOT_THE_SAME])
        };
        assert_found(&outcome, chunk, &found, message.from);
        assert_eq!(outcome.of(Kind::Total).count(), 0);
    }
}

/// What was sent in an earlier chunk is not accepted for a later one.
#[test]
fn what_was_sent_in_an_earlier_chunk_does_not_count_again() {
    for kind in [
        Kind::Product,
        Kind::JobWideMac,
        Kind::CheckSums,
        Kind::CheckProduct,
    ] {
        let kept: Mutex<BTreeMap<_, Vec<u8>>> = Mutex::default();
        let cheat = move |m: &Message| {
            if m.kind != Some(kind) || m.from != peer(1) {
                return Fate::Pass;
            }
            let mut kept = kept.lock().unwrap();
            let step = (m.at.step.place, m.at.part);
            match m.at.frame.chunk {
                1 => drop(kept.insert(step, m.bytes.clone())),
                2 => return Fate::Replace(kept[&step].clone()),
                _ => {}
            }
            Fate::Pass
        };
        let outcome = world(&[24], 8, 1).window(1).cheat(cheat).run();
        let found = found_by_codes(Kind::Difference, &[NOT_ZERO, NOT_THE_SAME]);
        assert_found(&outcome, 2, &found, peer(1));
    }
}

/// A circuit of random gates: sums, products of sums and of inputs, of rows and of the job, summed over the rows and not, and bits of them.
fn random_circuit(seed: u64) -> Circuit {
    let mut numbers = Seed(seed).numbers("circuit");
    let mut below = |n: usize| (numbers.next_u128() % n as u128) as usize;
    let mut b = Builder::new(Ring::Z64);
    let mut wires = b.input("x", 3, Per::Row);
    wires.extend(b.input("k", 2, Per::Job));
    for _ in 0..4 + below(14) {
        let (x, y) = (wires[below(wires.len())], wires[below(wires.len())]);
        let made = match below(12) {
            0..=3 => b.mul(x, y),
            4..=7 => b.add(x, y),
            8 => b.sub(x, y),
            9 => b.plus(x, 7),
            10 => b.random(),
            _ => {
                let bit = b.bit(x, below(64) as u32);
                b.lift(bit)
            }
        };
        wires.push(made);
    }
    let last = wires.len() - 4;
    b.output("z", &wires[last..]);
    b.output_sum("sum", &wires[last + 1..]);
    b.finish().expect("a valid circuit")
}

/// Whatever a circuit fuses, shares and sums: the plan has a MAC for every product, and honest parties find that all MACs fit.
#[test]
fn codes_of_random_circuits_fit() {
    for seed in 0..150 {
        let circuit = random_circuit(seed);
        let exact = !circuit.is_random();
        let world = World::in_chunks(of_circuit(circuit, 9), 4, 1).seed(Seed(seed));
        let outcome = world.run();
        assert!(outcome.aborts.is_empty(), "{seed}: {:?}", outcome.aborts);
        if exact {
            outcome.assert_right();
        }
    }
}

/// A left factor that is a sum of inputs, or of inputs and products: its MAC is a sum of MACs, and each of these is checked.
#[test]
fn codes_of_sums_are_checked_one_by_one() {
    let mut b = Builder::new(Ring::Z64);
    let (x, y) = (b.input("x", 3, Per::Row), b.input("y", 2, Per::Row));
    let (left, right) = (b.add(x[0], x[1]), b.add(y[0], y[1]));
    let product = b.mul(x[1], x[2]);
    let mixed = b.add(x[0], product);
    let wires = [b.mul(left, right), b.mul(left, left), b.mul(mixed, right)];
    b.output("z", &wires);
    let job = of_circuit(b.finish().expect("a valid circuit"), 1);
    let honest = World::in_chunks(job, 4, 1);
    honest.run().assert_right();
    let plan = std::sync::Arc::clone(honest.plan());
    for layer in &plan.layers {
        for item in 0..layer.products as usize {
            let program = layer.program as u32;
            let outcome = adding(&honest, 1, program, item, 1).run();
            let found = found_by_codes(Kind::Difference, &[NOT_ZERO]);
            assert_found(&outcome, 1, &found, peer(1));
        }
    }
}

/// An error of 2^127 in the MAC of x changes nothing, and makes that of x y depend on y: whether it is found does not.
#[test]
fn whether_an_error_is_found_tells_nothing_about_values() {
    let mut b = Builder::new(Ring::Z64);
    let (x, y) = (b.input("x", 1, Per::Row), b.input("y", 1, Per::Row));
    let z = b.mul(x[0], y[0]);
    b.output("z", &[z]);
    let job = of_circuit(b.finish().expect("a valid circuit"), 1);
    let runs = 240;
    let found = [4, 5].map(|y| {
        let values = Values::new(&job, |_, _, port, _| [3, y][port]);
        let found = (0..runs).filter(|seed| {
            let honest = World::in_chunks(job.clone(), 1, 1).values(values.clone());
            let first = honest.plan().layers.iter().find(|l| l.products > 0);
            let program = first.expect("the code of x").program as u32;
            let outcome = adding(&honest.seed(Seed(*seed)), 1, program, 0, 1 << 127).run();
            !outcome.aborts.is_empty()
        });
        found.count() as f64
    });
    // One half, with a deviation of 0.032.
    for found in found.map(|found| found / runs as f64) {
        assert!((0.37..0.63).contains(&found), "{found}");
    }
}

/// Sums of products: what is added to a sum, or to its MAC.
#[test]
fn whatever_is_added_to_a_sum_is_found() {
    let honest = World::in_chunks(
        against_malicious(dot(Ring::Z64, 20, Audience::Parties)),
        8,
        1,
    );
    honest.run().assert_right();
    let plan = std::sync::Arc::clone(honest.plan());
    let layer = plan.layers.iter().find(|l| l.sums > 0);
    let layer = layer.expect("a sum of products");
    for element in 0..layer.sums as usize {
        for error in [1, 1 << 63] {
            let program = layer.program as u32;
            let cheat = honest.clone().devices(move |who| {
                let device = Box::new(Cpu::detect());
                if who == peer(2) {
                    Box::new(Adding::new(device, program, element, error).in_sums())
                } else {
                    device
                }
            });
            let outcome = cheat.run();
            let found = found_by_codes(Kind::Difference, &[NOT_ZERO]);
            assert_found(&outcome, 1, &found, peer(2));
            assert_eq!(outcome.of(Kind::Total).count(), 0);
        }
    }
}

/// One wrong chunk among others that are in flight, in two lanes: nothing of it is opened, and no sum.
#[test]
fn a_wrong_chunk_among_others_in_flight_is_found() {
    let honest = world(&[60, 40], 8, 2).window(6);
    let outcome = honest.run();
    outcome.assert_right();
    for chunk in [3, 7] {
        let message = messages(&outcome, &[Kind::Product]).into_iter();
        let mut message = message.filter(|m| m.at.frame.chunk == chunk && m.from == peer(0));
        let message = message.next_back().expect("products of the chunk");
        let outcome = honest.clone().cheat(changed(&message, CHANGES[1])).run();
        outcome.assert_sound(Some(peer(0)));
        let parties = PartyId::THREE.map(Peer::Party);
        assert!(parties.iter().all(|p| outcome.aborts.contains_key(p)));
        let opened = outcome.of(Kind::Opened);
        assert_eq!(opened.filter(|m| m.at.frame.chunk == chunk).count(), 0);
        assert_eq!(outcome.of(Kind::Total).count(), 0);
    }
}

/// Random values, words of bits and truncation are made without opening anything; a random factor has a MAC as any other.
#[test]
fn nothing_is_opened_before_codes_are_checked() {
    let mut b = Builder::new(Ring::Z64);
    let x = b.input("x", 1, Per::Row);
    let r = b.random();
    let (product, square) = (b.mul(r, x[0]), b.mul(r, r));
    let flip = b.random_bit();
    let flip = b.lift(flip);
    let chosen = b.mul(flip, square);
    let zero = b.sub(chosen, chosen);
    b.output("z", &[product, chosen, zero]);
    let outcome = World::in_chunks(of_circuit(b.finish().expect("valid"), 9), 4, 1).run();
    assert!(outcome.aborts.is_empty(), "{:?}", outcome.aborts);
    assert_eq!(outcome.of(Kind::Masked).count(), 0);
}
