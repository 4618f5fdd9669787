//! Four nodes: layers of products against the CPU device, and in the clear; started by their hosts or by one; and what becomes of lies.

use veil_device_fpga::Stalls;
use veil_device_fpga::node::{
    COUNTED, Command, Event, JOINT, LANES, List, Products, Quartet, Segment, Shape, Start,
    received, throughput_of_four,
};
use veil_math::Ring;

use super::{RINGS, TIMEOUT, built, cpu, product, random, sum};

/// Four nodes with room for values, of which the first `shared` are random ones.
pub(crate) fn quartet(
    (values, words, shared): (u32, u32, u32),
    seed: u64,
    stalls: Stalls,
) -> Option<Quartet> {
    let shape = Shape {
        stalls,
        ..Shape::new(4)
    };
    let made = built(Quartet::new(shape, (values, words), seed, TIMEOUT))?;
    let mut quartet = made.unwrap_or_else(|error| panic!("{error}"));
    for value in 0..shared {
        let components = components(seed, value, words);
        let components = components.each_ref().map(Vec::as_slice);
        quartet
            .share(value, components)
            .expect("the memory is there");
    }
    Some(quartet)
}

/// The components of a random value.
pub(crate) fn components(seed: u64, value: u32, words: u32) -> [Vec<u8>; 4] {
    [0, 1, 2, 3].map(|k| random(seed << 16 | u64::from(4 * value + k), 16 * words as usize))
}

/// The value that the nodes hold, and that they hold the same components.
pub(crate) fn opened(quartet: &mut Quartet, ring: Ring, value: u32) -> Vec<u8> {
    let mut all = Vec::new();
    for component in 0..4 {
        let [first, others @ ..] = [1, 2, 3].map(|step| {
            let me = (component + step) % 4;
            let here = quartet.component(me, component, value);
            here.expect("the memory is there")
        });
        for other in others {
            assert_eq!(other, first, "component {component}");
        }
        all.push(first);
    }
    sum(ring, &all)
}

/// What lies at some address of a node.
fn load(quartet: &mut Quartet, node: u8, address: u64, words: u32) -> Vec<u8> {
    let mut bytes = vec![0; 16 * words as usize];
    let loaded = quartet.nodes[usize::from(node)].load(address, &mut bytes);
    assert_eq!(loaded, Ok(()));
    bytes
}

/// A layer of one product, of values 0 and 1, is in messages, MACs and shares that of the CPU device.
fn is_right(quartet: &mut Quartet, seed: u64, of: &Products, (counter, layer): (u64, u64)) {
    let words = quartet.words();
    let [a, b] = [0, 1].map(|value| components(seed, of.values[value], words));
    let expected = product(of.ring, &sum(of.ring, &a), &sum(of.ring, &b));
    assert_eq!(
        opened(quartet, of.ring, of.values[2]),
        expected,
        "{of:?} in the clear"
    );
    let parties = cpu::four(of.ring, seed, [&a, &b], (counter, layer, of.chunk));
    for me in 0..4 {
        for (place, k) in (0..).zip(received(me)) {
            let joint = JOINT[usize::from(k)];
            let (sender, voucher) = (joint.sender(of.chunk), joint.voucher(of.chunk));
            let at = quartet.message(sender, place);
            let message = load(quartet, me, at, words);
            assert_eq!(
                message,
                parties[usize::from(sender)].messages[&k],
                "{of:?}: message {k}"
            );
            let at = quartet.mac(voucher, place, 0);
            let mac = load(quartet, me, at, 1);
            let made = &parties[usize::from(voucher)].macs[&k];
            assert_eq!(mac == *made, of.checks, "{of:?}: code {k}");
        }
        for component in (0..4).filter(|component| *component != me) {
            let here = quartet.component(me, component, of.values[2]);
            let there = &parties[usize::from(me)].shares[&component];
            assert_eq!(here.as_ref(), Ok(there), "{of:?}: party {me}");
        }
    }
}

/// Both stages from lists, which wait for all messages and MACs between them: the hosts of nodes 1 to 3 only arm, and that of node 0
/// invokes once.
#[test]
fn lists_run_both_stages_where_no_host_waits() {
    let words = 72;
    let stalls = Stalls { seed: 18, rate: 20 };
    let Some(mut quartet) = quartet((5, words, 2), 18, stalls) else {
        return;
    };
    // Where the last value would be, there lies a node's list.
    let at = quartet.column(0, 4);
    for (out, chunk) in [(2, 0), (3, 1)] {
        let of = Products {
            ring: Ring::Z64,
            values: [0, 1, out],
            count: 1,
            chunk,
            checks: true,
        };
        let mut plan = quartet.stages(&of);
        let mut told = [[0; 4]; 4];
        for (me, [locals, _]) in (0u8..).zip(&mut plan) {
            let to = locals.iter_mut().flat_map(|command| &mut command.to);
            for segment in to.filter(|segment| segment.node != me) {
                segment.tell = Some(COUNTED);
                told[usize::from(segment.node)][usize::from(me)] += 1;
            }
        }
        for (me, [locals, joins]) in (0u8..).zip(&plan) {
            let mut list = List::new();
            let tells = (0u8..).zip(told[usize::from(me)]);
            let tells: Vec<(u8, u16)> = tells.filter(|(_, count)| *count > 0).collect();
            for command in locals {
                list.push(command, false);
            }
            list.push(&Command::awaits(300, &tells), false);
            for command in joins {
                list.push(command, true);
            }
            let node = &mut quartet.nodes[usize::from(me)];
            node.store(at, &list.bytes(LANES))
                .expect("the memory is there");
            assert!(list.words(LANES) <= words);
            let from = vec![Segment::new(me, at, list.words(LANES))];
            let command = Command::list(301, from);
            if me == 0 {
                node.submit(&command);
            } else {
                node.arm(0, &command);
            }
        }
        quartet.nodes[0].invoke(302, &[(1, 0), (2, 0), (3, 0)]);
        let ended = quartet.nodes[0].finish("lists", &[301, 302]);
        assert_eq!(ended, Ok(()), "{of:?}");
        for node in &mut quartet.nodes[1..] {
            let ended = node.next("a list").map(|of| (of.event, of.result));
            assert_eq!(ended, Ok((Event::Invoked(0), Ok(()))), "{of:?}");
            assert_eq!(node.poll(), Ok(None));
        }
        let place = (u64::from(chunk) * u64::from(quartet.stride()), chunk.into());
        is_right(&mut quartet, 18, &of, place);
    }
}

#[test]
fn products_of_four_are_those_of_the_cpu() {
    let cases = [(Ring::Bits, 0), (Ring::Z64, 30), (Ring::Z128, 0)];
    for (ring, rate) in cases {
        let stalls = Stalls { seed: 17, rate };
        let Some(mut quartet) = quartet((6, 72, 2), 15, stalls) else {
            return;
        };
        let mut counters = (0, 0);
        for (out, chunk, checks, start) in [
            (2, 0, true, Start::Hosts),
            (3, 1, true, Start::Headless),
            (4, 6, false, Start::Headless),
            (5, 9, false, Start::Hosts),
        ] {
            let of = Products {
                ring,
                values: [0, 1, out],
                count: 1,
                chunk,
                checks,
            };
            assert_eq!(quartet.products(start, &of), Ok(()), "{of:?}");
            is_right(&mut quartet, 15, &of, counters);
            counters = (counters.0 + 72, counters.1 + 1);
        }
    }
}

/// Columns that no worker keeps: each piece has MACs of its own.
#[test]
fn columns_of_four_are_cut() {
    let words = 1500;
    let Some(mut quartet) = quartet((3, words, 2), 16, Stalls::default()) else {
        return;
    };
    let of = Products {
        ring: Ring::Z64,
        values: [0, 1, 2],
        count: 1,
        chunk: 0,
        checks: true,
    };
    assert_eq!(quartet.products(Start::Headless, &of), Ok(()));
    let [a, b] = [0, 1].map(|value| sum(Ring::Z64, &components(16, value, words)));
    let expected = product(Ring::Z64, &a, &b);
    assert_eq!(opened(&mut quartet, Ring::Z64, 2), expected);
}

/// The AND of four values in two layers, whose hosts at nodes 1, 2 and 3 only arm.
#[test]
fn one_host_runs_a_circuit_at_four_nodes() {
    let words = 20;
    let Some(mut quartet) = quartet((7, words, 4), 17, Stalls { seed: 3, rate: 20 }) else {
        return;
    };
    let layer = |values, count, chunk| Products {
        ring: Ring::Bits,
        values,
        count,
        chunk,
        checks: true,
    };
    let armed = quartet.arm(&[layer([0, 2, 4], 2, 3), layer([4, 5, 6], 1, 3)]);
    let before = [1, 2, 3].map(|k| quartet.nodes[k].accesses());
    for layer in &armed {
        assert_eq!(quartet.start(layer), Ok(()));
    }
    let after = [1, 2, 3].map(|k| quartet.nodes[k].accesses());
    assert_eq!(before, after, "no node asked the other hosts");
    let all = (0..4).map(|value| sum(Ring::Bits, &components(17, value, words)));
    let expected = all.reduce(|a, b| product(Ring::Bits, &a, &b));
    assert_eq!(Some(opened(&mut quartet, Ring::Bits, 6)), expected);
    for me in 1..4 {
        for _ in 0..4 {
            let completion = quartet.nodes[me].poll().expect("a completion");
            let ended = completion.map(|of| (of.event, of.result));
            assert_eq!(ended, Some((Event::Invoked(0), Ok(()))), "node {me}");
        }
    }
}

#[test]
fn cycles_of_four_do_not_depend_on_values() {
    for ring in RINGS {
        let mut seen = Vec::new();
        for seed in [23, 24] {
            let stalls = Stalls { seed: 5, rate: 30 };
            let Some(mut quartet) = quartet((3, 20, 2), seed, stalls) else {
                return;
            };
            let of = Products {
                ring,
                values: [0, 1, 2],
                count: 1,
                chunk: 1,
                checks: true,
            };
            assert_eq!(quartet.products(Start::Headless, &of), Ok(()));
            seen.push(quartet.network.completed(0));
        }
        assert_eq!(seen[0], seen[1], "{ring:?}");
    }
}

#[test]
fn a_multiplication_of_four_has_its_costs() {
    let shape = Shape::new(4);
    for checks in [false, true] {
        let mut before = 0.0;
        for words in [LANES, 16, 256, 1024] {
            let Some(batch) = built(throughput_of_four(shape, (Ring::Bits, checks), words)) else {
                return;
            };
            let batch = batch.expect("the nodes work");
            println!("{checks} {batch:?}, {:.2} Gb/s", batch.gigabits());
            let rate = batch.per_second(1.0);
            assert!(rate > before, "{batch:?}");
            before = rate;
            // Invocations and messages cross the network, each there and back, in both stages but the messages.
            assert!(batch.cycles > 6 * u64::from(shape.latency), "{batch:?}");
            // One word starts in six cycles.
            assert!(batch.cycles > 6 * u64::from(words), "{batch:?}");
        }
    }
}
