//! Three simulated nodes on a modelled network: products of shares, started by their hosts or by one, against the CPU device; what goes
//! wrong; and what a multiplication costs.

mod byzantine;
mod circuit;
mod cpu;
mod faults;
mod four;
mod headless;
mod link;
mod lists;
mod model;
mod refused;
mod run;

use veil_device_fpga::node::{
    Command, Event, Failure, LANES, Op, Segment, Shape, Start, Throughput, Trio, Tuple, accesses,
    latency, pair_key, throughput,
};
use veil_device_fpga::{Absent, Stalls};
use veil_math::Ring;
use veil_prss::{DomainTag, Prf};

pub(crate) const RINGS: [Ring; 3] = [Ring::Bits, Ring::Z64, Ring::Z128];
pub(crate) const TIMEOUT: u32 = 20_000;

/// Random bytes.
pub(crate) fn random(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// What tests need, or a message and nothing.
pub(crate) fn built<T>(made: Result<T, Absent>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(absent @ Absent::NoVerilator) => {
            eprintln!("skipped: {absent}");
            None
        }
        Err(absent) => panic!("{absent}"),
    }
}

/// Three nodes with room for values, of which the first `shared` are random ones.
pub(crate) fn trio(
    (values, words, shared): (u32, u32, u32),
    seed: u64,
    stalls: Stalls,
) -> Option<Trio> {
    let shape = Shape {
        stalls,
        ..Shape::new(3)
    };
    let made = built(Trio::new(shape, (values, words), seed, TIMEOUT))?;
    let mut trio = made.unwrap_or_else(|error| panic!("{error}"));
    for value in 0..shared {
        let components = components(seed, value, words);
        let components = components.each_ref().map(Vec::as_slice);
        trio.share(value, components).expect("the memory is there");
    }
    Some(trio)
}

/// The components of a random value.
pub(crate) fn components(seed: u64, value: u32, words: u32) -> [Vec<u8>; 3] {
    [0, 1, 2].map(|k| random(seed << 16 | u64::from(3 * value + k), 16 * words as usize))
}

/// The sum of columns.
pub(crate) fn sum(ring: Ring, columns: &[Vec<u8>]) -> Vec<u8> {
    columns[1..].iter().fold(columns[0].clone(), |a, b| {
        elements(ring, &a, b, |a, b| match ring {
            Ring::Bits => a ^ b,
            Ring::Z32 | Ring::Z64 | Ring::Z128 => a.wrapping_add(b),
        })
    })
}

/// The product of columns, element by element.
pub(crate) fn product(ring: Ring, a: &[u8], b: &[u8]) -> Vec<u8> {
    elements(ring, a, b, |a, b| match ring {
        Ring::Bits => a & b,
        Ring::Z32 | Ring::Z64 | Ring::Z128 => a.wrapping_mul(b),
    })
}

fn elements(ring: Ring, a: &[u8], b: &[u8], of: impl Fn(u128, u128) -> u128) -> Vec<u8> {
    let bytes = if ring == Ring::Z64 { 8 } else { 16 };
    let number = |of: &[u8]| {
        let mut whole = [0; 16];
        whole[..bytes].copy_from_slice(of);
        u128::from_le_bytes(whole)
    };
    let pairs = a.chunks(bytes).zip(b.chunks(bytes));
    pairs
        .flat_map(|(a, b)| of(number(a), number(b)).to_le_bytes()[..bytes].to_vec())
        .collect()
}

/// The value that the nodes hold, and that they hold the same components.
pub(crate) fn opened(trio: &mut Trio, ring: Ring, value: u32) -> Vec<u8> {
    let mut all = Vec::new();
    for me in 0..3 {
        let own = trio.component(me, 0, value).expect("the memory is there");
        let next = (me + 1) % 3;
        let there = trio.component(next, 1, value);
        assert_eq!(there.as_ref(), Ok(&own), "component {me} at {next}");
        all.push(own);
    }
    sum(ring, &all)
}

#[test]
fn products_are_those_of_the_cpu() {
    let rates = [0, 0, 40];
    for (ring, rate) in RINGS.into_iter().zip(rates) {
        let stalls = Stalls { seed: 7, rate };
        let Some(mut trio) = trio((3, 70, 2), 11, stalls) else {
            return;
        };
        let done = trio.products(Start::Hosts, ring, [0, 1, 2], 1);
        assert_eq!(done, Ok(()), "{ring:?}");
        let [a, b] = [0, 1].map(|value| components(11, value, 70));
        let expected = product(ring, &sum(ring, &a), &sum(ring, &b));
        assert_eq!(opened(&mut trio, ring, 2), expected, "{ring:?}");
        for me in 0..3 {
            let message = cpu::message(ring, 11, me, [&a, &b], 0);
            let here = trio.component(me, 0, 2);
            assert_eq!(here, Ok(message), "{ring:?} at party {me}");
        }
    }
}

/// A sum of products is one element in a beat of zeros, masked once: that of the CPU device, and in the clear that of the products.
#[test]
fn sums_of_products_are_those_of_the_cpu() {
    for (ring, words, rate) in [
        (Ring::Z64, 4, 0),
        (Ring::Z128, 4, 40),
        (Ring::Z64, 64, 40),
        (Ring::Z128, 64, 0),
        (Ring::Z64, 1024, 0),
        (Ring::Z128, 1024, 40),
    ] {
        let stalls = Stalls { seed: 9, rate };
        let Some(mut trio) = trio((4, words, 4), 16, stalls) else {
            return;
        };
        let [a, b] = [0, 1].map(|value| components(16, value, words));
        let element = if ring == Ring::Z64 { 8 } else { 16 };
        let beat = 16 * LANES as usize;
        for me in 0..3 {
            let next = (me + 1) % 3;
            let at = |part, value| trio.column(part, value);
            let from = [at(0, 0), at(1, 0), at(0, 1), at(1, 1)];
            let from = from.map(|address| Segment::new(me, address, words));
            let to = [
                Segment::new(next, at(1, 3), LANES),
                Segment::new(me, at(0, 3), LANES),
            ];
            let call = Tuple {
                tag: DomainTag::SUM3,
                lane: 0,
                counter: 77,
                chunk: 0,
            };
            trio.nodes[usize::from(me)].submit(&Command {
                call: Some(call),
                ..Command::new(Op::Sum(ring), 5, words, from.to_vec(), to.to_vec())
            });
        }
        for node in &mut trio.nodes {
            node.finish("sums", &[5]).expect("they are computed");
        }
        let mut all = Vec::new();
        let before = components(16, 3, words);
        for me in 0..3 {
            let mut own = trio.component(me, 0, 3).expect("the memory is there");
            let there = trio.component((me + 1) % 3, 1, 3);
            assert_eq!(there.as_ref(), Ok(&own), "{ring:?}: component {me}");
            assert_eq!(own[element..beat], vec![0; beat - element], "{ring:?}");
            assert_eq!(own[beat..], before[usize::from(me)][beat..], "{ring:?}");
            own.truncate(element);
            let message = cpu::sum(ring, 16, me, [&a, &b], 77);
            assert_eq!(own, message, "{ring:?} of {words} words at party {me}");
            all.push(own);
        }
        let products = product(ring, &sum(ring, &a), &sum(ring, &b));
        let products: Vec<Vec<u8>> = products.chunks(element).map(<[u8]>::to_vec).collect();
        assert_eq!(sum(ring, &all), sum(ring, &products), "{ring:?}");
    }
}

/// No unit adds up bits.
#[test]
fn no_unit_knows_sums_of_bits() {
    let Some(mut trio) = trio((3, 4, 2), 16, Stalls::default()) else {
        return;
    };
    let from = [0, 1].map(|value| [0, 1].map(|part| trio.column(part, value)));
    let from = from.concat().into_iter();
    let from = from.map(|address| Segment::new(0, address, 4)).collect();
    let to = vec![Segment::new(0, trio.column(0, 2), 8)];
    trio.nodes[0].submit(&Command::new(Op::Sum(Ring::Bits), 5, 4, from, to));
    let ended = trio.nodes[0].next("a sum of bits").map(|of| of.result);
    assert_eq!(ended, Ok(Err(Failure::Unknown)));
}

#[test]
fn columns_that_no_sharer_keeps_are_cut() {
    let words = 1500;
    let Some(mut trio) = trio((3, words, 2), 12, Stalls::default()) else {
        return;
    };
    let done = trio.products(Start::Hosts, Ring::Bits, [0, 1, 2], 1);
    assert_eq!(done, Ok(()));
    let [a, b] = [0, 1].map(|value| components(12, value, words));
    for me in 0..3 {
        let message = cpu::message(Ring::Bits, 12, me, [&a, &b], 0);
        assert_eq!(trio.component(me, 0, 2), Ok(message), "party {me}");
    }
}

/// The AND of eight values in three layers, whose hosts at nodes 1 and 2 only arm.
#[test]
fn one_host_runs_a_circuit_at_all_nodes() {
    let words = 20;
    let Some(mut trio) = trio((15, words, 8), 13, Stalls { seed: 3, rate: 20 }) else {
        return;
    };
    let layers = [([0, 4, 8], 4), ([8, 10, 12], 2), ([12, 13, 14], 1)];
    let armed = trio.arm(Ring::Bits, &layers).expect("there are slots");
    let before = [1, 2].map(|k| trio.nodes[k].accesses());
    for layer in &armed {
        assert_eq!(trio.start(layer), Ok(()));
    }
    let after = [1, 2].map(|k| trio.nodes[k].accesses());
    assert_eq!(before, after, "no node asked the hosts of nodes 1 and 2");
    let all = (0..8).map(|value| sum(Ring::Bits, &components(13, value, words)));
    let expected = all.reduce(|a, b| product(Ring::Bits, &a, &b));
    assert_eq!(Some(opened(&mut trio, Ring::Bits, 14)), expected);
    for me in 1..3 {
        for _ in &layers {
            let completion = trio.nodes[me].poll().expect("a completion");
            let ended = completion.map(|of| (of.event, of.result));
            assert_eq!(ended, Some((Event::Invoked(0), Ok(()))), "node {me}");
        }
    }
    // What was armed is started once.
    let again = trio.start(&armed[0]);
    assert!(again.is_err(), "{again:?}");
}

#[test]
fn shares_of_random_values_are_those_of_the_keys() {
    let words = 36;
    let Some(mut trio) = trio((1, words, 0), 14, Stalls::default()) else {
        return;
    };
    let call = Tuple {
        tag: DomainTag::RAND3,
        lane: 5,
        counter: 1 << 40,
        chunk: 9,
    };
    for me in 0..3 {
        let to = [0, 1].map(|part| Segment::new(me, trio.column(part, 0), words));
        let node = &mut trio.nodes[usize::from(me)];
        node.submit(&Command {
            call: Some(call),
            ..Command::new(Op::Random, 77, words, vec![], to.to_vec())
        });
        node.finish("random values", &[77]).expect("they are drawn");
        let mut expected = vec![0; 16 * words as usize];
        let prf = Prf::new(&pair_key(14, me));
        prf.stream(call.tag, call.lane, call.counter, call.chunk, &mut expected);
        assert_eq!(trio.component(me, 0, 0), Ok(expected), "party {me}");
    }
    opened(&mut trio, Ring::Z128, 0);
}

/// Sharers have one core: each has the masks and the ring of its own command, whatever the others compute.
#[test]
fn commands_of_all_kinds_share_a_core() {
    let words = 600;
    let shape = (6, words, 2);
    let Some(mut trio) = trio(shape, 15, Stalls { seed: 8, rate: 20 }) else {
        return;
    };
    let call = Tuple {
        tag: DomainTag::RAND3,
        lane: 2,
        counter: 7,
        chunk: 1,
    };
    trio.submit(Ring::Bits, [0, 1, 2], 1);
    for me in 0..3 {
        let to = [0, 1].map(|part| Segment::new(me, trio.column(part, 5), words));
        trio.nodes[usize::from(me)].submit(&Command {
            call: Some(call),
            ..Command::new(Op::Random, 777, words, vec![], to.to_vec())
        });
    }
    trio.submit(Ring::Z64, [0, 1, 3], 1);
    trio.submit(Ring::Z128, [0, 1, 4], 1);
    // Of 256, 256 and 88 words for each ring.
    for node in &mut trio.nodes {
        for _ in 0..10 {
            let ended = node.next("a command").map(|of| (of.event, of.result));
            assert_eq!(ended, Ok((Event::Command, Ok(()))));
        }
    }
    let [a, b] = [0, 1].map(|value| components(15, value, words));
    for me in 0..3 {
        for ((ring, value), first) in RINGS.into_iter().zip(2..).zip([0, 600, 1200]) {
            let message = cpu::message(ring, 15, me, [&a, &b], first);
            let here = trio.component(me, 0, value);
            assert_eq!(here, Ok(message), "{ring:?} at party {me}");
        }
        let mut drawn = vec![0; 16 * words as usize];
        let prf = Prf::new(&pair_key(15, me));
        prf.stream(call.tag, call.lane, call.counter, call.chunk, &mut drawn);
        assert_eq!(trio.component(me, 0, 5), Ok(drawn), "party {me}");
    }
    for (ring, value) in RINGS.into_iter().zip(2..) {
        opened(&mut trio, ring, value);
    }
    opened(&mut trio, Ring::Z128, 5);
}

#[test]
fn cycles_do_not_depend_on_values() {
    let mut seen = Vec::new();
    for seed in [21, 22] {
        let stalls = Stalls { seed: 5, rate: 30 };
        let Some(mut trio) = trio((3, 40, 2), seed, stalls) else {
            return;
        };
        let done = trio.products(Start::Headless, Ring::Z64, [0, 1, 2], 1);
        assert_eq!(done, Ok(()));
        let last = trio.nodes[1].next("the invoked command");
        assert!(last.is_ok_and(|of| of.result.is_ok()));
        seen.push([0, 1].map(|node| trio.network.completed(node)));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn a_multiplication_has_its_costs() {
    let shape = Shape::new(3);
    let Some(one) = built(latency(shape, Ring::Z128)) else {
        return;
    };
    let one = one.expect("the nodes work");
    // A message and its answer cross the network.
    let wire = 2 * u64::from(shape.latency);
    assert!((wire..wire + 600).contains(&one), "{one} cycles");
    println!("latency {one} cycles");
    let mut before = 0.0;
    for words in [LANES, 16, 256, 4096, 16384] {
        let batch = built(throughput(shape, Ring::Bits, words)).expect("there is a model");
        let batch: Throughput = batch.expect("the nodes work");
        println!("{batch:?}, {:.2} Gb/s", batch.gigabits());
        let rate = batch.per_second(1.0);
        assert!(rate > before, "{batch:?}");
        before = rate;
        // A beat of shares comes from memory for each word that is multiplied, and a word leaves.
        assert!(batch.cycles >= u64::from(words), "{batch:?}");
    }
    // The wire has no rest but at the beginning and the end: 70 words leave for each 64 that are multiplied.
    assert!(before > 1e6 / 1.25, "{before} words in a million cycles");
    let hosts = built(accesses(shape, Start::Hosts, (3, 8))).expect("there is a model");
    let headless = built(accesses(shape, Start::Headless, (3, 8))).expect("there is a model");
    let [hosts, headless] = [hosts, headless].map(|of| of.expect("the nodes work"));
    println!("hosts {hosts:?}, headless {headless:?}");
    assert!(hosts.iter().all(|host| host.all() >= 6), "{hosts:?}");
    assert_eq!(headless[1].all() + headless[2].all(), 0, "{headless:?}");
}
