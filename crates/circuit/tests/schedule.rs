//! Schedules keep what they promise on any graph, and reach the lower bound where it is known.

use std::collections::HashSet;

use proptest::prelude::*;
use veil_circuit::schedule::{
    Machine, NO_NUMBER, Node, Read, Schedule, ScheduleError, schedule, schedule_numbered,
};

#[expect(clippy::unnecessary_wraps, reason = "reads of a node may be none")]
fn read(node: u32, distance: u32) -> Option<Read> {
    Some(Read { node, distance })
}

fn node(product: bool, a: Option<Read>, b: Option<Read>) -> Node {
    Node {
        product,
        reads: [a, b],
    }
}

/// What a read of a random graph is: of this netlist cycle, of an earlier one, or of an input.
#[derive(Clone, Copy, Debug)]
enum From {
    Now(prop::sample::Index),
    Before(prop::sample::Index, u32),
    Input,
}

fn from() -> impl Strategy<Value = From> {
    prop_oneof![
        5 => any::<prop::sample::Index>().prop_map(From::Now),
        2 => (any::<prop::sample::Index>(), 1..5_u32).prop_map(|(node, d)| From::Before(node, d)),
        1 => Just(From::Input),
    ]
}

/// Random nodes of which values of the same netlist cycle are never read in a ring, in any order.
fn graphs(most: usize, before: bool) -> impl Strategy<Value = Vec<Node>> {
    let gate = (any::<bool>(), from(), from());
    prop::collection::vec(gate, 0..most)
        .prop_flat_map(|gates| {
            let names: Vec<u32> = (0..gates.len() as u32).collect();
            (Just(gates), Just(names).prop_shuffle())
        })
        .prop_map(move |(gates, names)| {
            let mut nodes = vec![node(false, None, None); gates.len()];
            for (k, &(product, a, b)) in gates.iter().enumerate() {
                let read = |from| match from {
                    From::Now(index) if k > 0 => read(names[index.index(k)], 0),
                    From::Before(index, distance) if before => {
                        read(names[index.index(names.len())], distance)
                    }
                    _ => None,
                };
                nodes[names[k] as usize] = node(product, read(a), read(b));
            }
            nodes
        })
}

fn machines() -> impl Strategy<Value = Machine> {
    let latencies = (0..3_u32, 0..13_u32, 0..13_u32);
    let buffer = prop_oneof![1..6_u32, Just(1024)];
    (1..9_u32, latencies, buffer, 1..20_u32, 0..9_u32).prop_map(
        |(engines, (xor, and, drain), lines, stages, least)| Machine {
            engines,
            xor,
            and,
            lines,
            drain,
            stages,
            least,
        },
    )
}

/// Whether a schedule is one, by writing down when everything starts in as many netlist cycles as can touch each other.
fn holds(s: &Schedule, nodes: &[Node], machine: &Machine) -> bool {
    let span = s.span();
    if s.interval < machine.least.max(1) || machine.stages * s.interval < span {
        return false;
    }
    let products: Vec<usize> = (0..nodes.len()).filter(|&v| nodes[v].product).collect();
    let mut numbers: Vec<u32> = products.iter().map(|&v| s.numbers[v]).collect();
    numbers.sort_unstable();
    let named = (0..nodes.len()).all(|v| nodes[v].product || s.numbers[v] == NO_NUMBER)
        && products
            .iter()
            .all(|&v| s.numbers[v] % machine.engines == s.engines[v])
        && numbers.iter().copied().eq(0..products.len() as u32);
    if !named {
        return false;
    }
    let lines = (products.len() as u32).div_ceil(machine.engines).max(1);
    let cycles = span / s.interval + machine.lines.min(64) / lines + 8;
    let start = |v: usize, cycle: u32| cycle * s.interval + s.starts[v];
    let mut places = HashSet::new();
    for cycle in 0..cycles {
        for (v, node) in nodes.iter().enumerate() {
            if s.engines[v] >= machine.engines || !places.insert((start(v, cycle), s.engines[v])) {
                return false;
            }
            for read in node.reads.iter().flatten() {
                let Some(from) = cycle.checked_sub(read.distance) else {
                    continue;
                };
                let made =
                    start(read.node as usize, from) + machine.latency(&nodes[read.node as usize]);
                if made > start(v, cycle) {
                    return false;
                }
            }
        }
    }
    let table = |v: usize, cycle: u32| {
        (
            cycle * lines + s.numbers[v] / machine.engines,
            start(v, cycle),
        )
    };
    let mut tables: Vec<(u32, u32)> = (0..cycles)
        .flat_map(|cycle| products.iter().map(move |&v| table(v, cycle)))
        .collect();
    tables.sort_unstable();
    tables.iter().all(|&(line, start)| {
        tables
            .iter()
            .take_while(|&&(other, _)| other + machine.lines <= line)
            .all(|&(_, other)| other + machine.drain <= start)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_schedule_holds(nodes in graphs(40, true), machine in machines(), cycles in 1..400_u64) {
        let found = schedule(&nodes, &machine, cycles).unwrap();
        prop_assert_eq!(found.check(&nodes, &machine), Ok(()));
        prop_assert!(holds(&found, &nodes, &machine));
        prop_assert_eq!(schedule(&nodes, &machine, cycles).unwrap(), found);
    }

    #[test]
    fn numbers_that_are_given_are_kept(
        nodes in graphs(40, true), machine in machines(), cycles in 1..400_u64, other in machines(),
    ) {
        // In the order of starts on another machine, which is one in which they can be computed.
        let numbers = schedule(&nodes, &other, cycles).unwrap().numbers;
        // Where products take no time, one may have a smaller number than another one that it waits for.
        let orderly = other.engines == machine.engines && other.and > 0;
        match schedule_numbered(&nodes, &machine, cycles, &numbers) {
            Ok(found) => {
                prop_assert_eq!(&found.numbers, &numbers);
                prop_assert_eq!(found.check(&nodes, &machine), Ok(()));
                prop_assert!(holds(&found, &nodes, &machine));
            }
            Err(ScheduleError::Order { .. }) => prop_assert!(!orderly),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    #[test]
    fn any_numbers_do_in_a_buffer_that_holds_all(
        (nodes, numbers) in graphs(40, true).prop_flat_map(|nodes| {
            let products = nodes.iter().filter(|node| node.product).count() as u32;
            let numbers: Vec<u32> = (0..products).collect();
            (Just(nodes), Just(numbers).prop_shuffle())
        }),
        engines in 1..9_u32,
    ) {
        let mut next = numbers.iter();
        let numbers: Vec<u32> = nodes
            .iter()
            .map(|node| if node.product { *next.next().unwrap() } else { NO_NUMBER })
            .collect();
        let machine = Machine::garbler(engines);
        let found = schedule_numbered(&nodes, &machine, 50, &numbers).unwrap();
        prop_assert!(holds(&found, &nodes, &machine));
    }

    #[test]
    fn the_check_sees_what_was_changed(
        nodes in graphs(24, true), machine in machines(), cycles in 1..400_u64,
        at in any::<prop::sample::Index>(), other in any::<prop::sample::Index>(),
        by in 0..40_u32, what in 0..6,
    ) {
        prop_assume!(!nodes.is_empty());
        let mut changed = schedule(&nodes, &machine, cycles).unwrap();
        let (v, w) = (at.index(nodes.len()), other.index(nodes.len()));
        match what {
            0 => changed.starts[v] = changed.starts[v].saturating_sub(by),
            1 => changed.starts[v] += by,
            2 => changed.engines.swap(v, w),
            3 => changed.numbers.swap(v, w),
            4 => changed.interval = changed.interval.saturating_sub(by).max(1),
            _ => {
                changed.numbers.swap(v, w);
                changed.engines.swap(v, w);
            }
        }
        let holds = holds(&changed, &nodes, &machine);
        prop_assert_eq!(changed.check(&nodes, &machine).is_ok(), holds);
    }

    /// Without registers nothing keeps engines idle if there are many netlist cycles.
    #[test]
    fn rows_are_never_idle(nodes in graphs(60, false), engines in 1..9_u32) {
        let machine = Machine { stages: 1 << 20, lines: 1 << 20, ..Machine::garbler(engines) };
        let found = schedule(&nodes, &machine, 1 << 20).unwrap();
        prop_assert_eq!(found.interval, (nodes.len() as u32).div_ceil(engines).max(1));
    }

    /// One netlist cycle on as many engines as nodes takes the critical path.
    #[test]
    fn one_netlist_cycle_takes_the_critical_path(nodes in graphs(60, false)) {
        let machine = Machine::garbler(64);
        let mut starts = vec![None; nodes.len()];
        while starts.contains(&None) {
            for (v, node) in nodes.iter().enumerate() {
                let there = |read: &Read| {
                    let latency = machine.latency(&nodes[read.node as usize]);
                    starts[read.node as usize].map(|start: u32| start + latency)
                };
                let reads: Option<Vec<u32>> = node.reads.iter().flatten().map(there).collect();
                starts[v] = reads.map(|reads| reads.into_iter().max().unwrap_or(0));
            }
        }
        let span = starts.iter().flatten().max().map_or(0, |last| last + 1);
        prop_assert_eq!(schedule(&nodes, &machine, 1).unwrap().span(), span);
    }
}

/// Total of netlist cycles, and the interval.
fn of(nodes: &[Node], machine: &Machine, cycles: u64) -> (u64, u32) {
    let found = schedule(nodes, machine, cycles).expect("nodes that can be scheduled");
    assert!(holds(&found, nodes, machine), "{found:?}");
    (found.total(cycles), found.interval)
}

#[test]
fn a_chain() {
    let chain = [
        node(false, None, None),
        node(true, read(0, 0), None),
        node(false, read(1, 0), read(0, 0)),
        node(true, read(2, 0), read(2, 0)),
    ];
    // 0, 1, 11, 12. Every 4 cycles in one engine 12 is taken, modulo 4, and so is 13: the last starts at 14. Or every 2 in two engines.
    assert_eq!(of(&chain, &Machine::garbler(1), 1).0, 13);
    assert_eq!(of(&chain, &Machine::garbler(1), 100), (99 * 4 + 15, 4));
    assert_eq!(of(&chain, &Machine::garbler(2), 1).0, 13);
    assert_eq!(of(&chain, &Machine::garbler(2), 100).1, 2);
    // The results of a netlist cycle leave in 7.
    let machine = Machine {
        least: 7,
        ..Machine::garbler(2)
    };
    assert_eq!(of(&chain, &machine, 100), (99 * 7 + 13, 7));
    // At most two overlap.
    let machine = Machine {
        stages: 2,
        ..Machine::garbler(1)
    };
    assert_eq!(of(&chain, &machine, 100), (99 * 7 + 13, 7));
}

#[test]
fn a_register() {
    // q' = q + x, q' = q · x
    for (product, interval) in [(false, 1), (true, 10)] {
        let register = [node(product, read(0, 1), None)];
        let total = 999 * u64::from(interval) + 1;
        assert_eq!(of(&register, &Machine::garbler(1), 1000), (total, interval));
        assert_eq!(
            of(&register, &Machine::garbler(16), 1000),
            (total, interval)
        );
    }
    // What is read three netlist cycles later leaves time for three: 10 / 3, upwards.
    let late = [node(true, read(0, 3), None)];
    assert_eq!(of(&late, &Machine::garbler(1), 1000).1, 4);
}

#[test]
fn a_ring() {
    // Two products and a sum between one value of a register and the next: 10 + 1 + 10 cycles. A second ring takes 1.
    let ring = [
        node(true, read(2, 1), None),
        node(false, read(0, 0), None),
        node(true, read(1, 0), None),
        node(false, read(3, 1), read(2, 0)),
    ];
    assert_eq!(of(&ring, &Machine::garbler(4), 1000), (999 * 21 + 22, 21));
}

#[test]
fn no_nodes() {
    let found = schedule(&[], &Machine::garbler(2), 9).unwrap();
    assert_eq!((found.interval, found.span(), found.total(9)), (1, 0, 8));
}

/// Products that leave one line after the other wait for the slow one before them.
#[test]
fn a_small_buffer() {
    // One product waits for number 6 (5 if it is 6 itself), which finds room in a buffer of 4 lines when number 2 has left.
    let mut nodes = vec![node(true, None, None); 6];
    nodes.push(node(false, read(5, 0), None));
    nodes.push(node(true, read(6, 0), None));
    let machine = Machine {
        lines: 4,
        ..Machine::garbler(1)
    };
    let numbers = |slow: u32| {
        let mut numbers: Vec<u32> = (0..8).collect();
        numbers.remove(slow as usize);
        numbers.truncate(6);
        numbers.extend([NO_NUMBER, slow]);
        numbers
    };
    for slow in 3..=6 {
        let found = schedule_numbered(&nodes, &machine, 3, &numbers(slow)).unwrap();
        assert!(holds(&found, &nodes, &machine), "{slow}: {found:?}");
    }
    for slow in 0..3 {
        let error = schedule_numbered(&nodes, &machine, 3, &numbers(slow)).unwrap_err();
        assert_eq!(
            error,
            ScheduleError::Order {
                number: slow + 4,
                lines: 4
            }
        );
    }
}

#[test]
fn errors() {
    let machine = Machine::garbler(2);
    let of = |nodes: &[Node]| schedule(nodes, &machine, 1).unwrap_err();
    let ring = [
        node(false, read(1, 0), None),
        node(true, read(2, 0), read(3, 0)),
        node(true, read(1, 0), None),
        node(true, None, None),
    ];
    let error = of(&ring);
    assert!(
        matches!(error, ScheduleError::Ring { node: 1 | 2 }),
        "{error}"
    );
    let outside = [node(false, None, read(7, 1))];
    let error = ScheduleError::NoNode {
        node: 0,
        reads: 7,
        nodes: 1,
    };
    assert_eq!(of(&outside), error);
    let many = vec![node(false, None, None); (1 << 20) + 1];
    assert!(matches!(of(&many), ScheduleError::TooLarge { .. }));
    for numbers in [&[0, 0][..], &[0, 2], &[1]] {
        let error = schedule_numbered(&[node(true, None, None); 2], &machine, 1, numbers);
        assert!(
            matches!(error, Err(ScheduleError::Numbers { .. })),
            "{error:?}"
        );
    }
    let idle = Machine {
        engines: 0,
        ..machine
    };
    let error = schedule(&outside, &idle, 1).unwrap_err();
    assert!(
        matches!(
            error,
            ScheduleError::Machine {
                what: "engines",
                ..
            }
        ),
        "{error}"
    );
}

/// Ends soon for many nodes, whatever is read from where.
#[test]
fn many_nodes() {
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        ((state >> 33) as usize % bound) as u32
    };
    let nodes: Vec<Node> = (0..20_000_u32)
        .map(|v| {
            let mut any = |_| match below(8) {
                0 => None,
                1 => read(below(20_000), 1 + below(3)),
                _ => v.checked_sub(1 + below(40)).and_then(|from| read(from, 0)),
            };
            let reads = [any(0), any(1)];
            Node {
                product: below(3) == 0,
                reads,
            }
        })
        .collect();
    for engines in [2, 16] {
        let machine = Machine::garbler(engines);
        let found = schedule(&nodes, &machine, 100).unwrap();
        assert_eq!(found.check(&nodes, &machine), Ok(()));
        let numbered = schedule_numbered(&nodes, &machine, 100, &found.numbers).unwrap();
        assert_eq!(numbered.check(&nodes, &machine), Ok(()));
    }
}
