//! Circuits at three nodes: lists as a model runs them, in every order that they allow, and as nodes do.

use veil_circuit::{Builder, Circuit, Per, make};
use veil_device_fpga::Stalls;
use veil_device_fpga::node::{
    Event, Fault, LANES, Limits, Node, NodeError, Plan, Shape, Start, Trio, Tuple, Unfit,
};
use veil_math::Ring;
use veil_prss::Use;

use super::model::Model;
use super::{TIMEOUT, built, random, sum};

/// What simulated units have.
pub(crate) const LIMITS: Limits = Limits {
    movers: 2,
    adders: 2,
    sharers: 4,
    locals: 0,
    joins: 0,
    longest: 1024,
    slots: 16,
    lanes: LANES,
};
const BASE: u64 = 128;
/// What the first product draws.
pub(crate) const DRAW: Tuple = Tuple {
    tag: Use::AND3,
    lane: 3,
    counter: 77,
    chunk: 5,
};

/// Random components of each input wire, of whole columns.
fn shared(circuit: &Circuit, plan: &Plan, seed: u64) -> Vec<[Vec<u8>; 3]> {
    (0..u64::from(circuit.input_wires()))
        .map(|wire| {
            let bytes = 16 * plan.stride() as usize;
            [0, 1, 2].map(|k| random(seed << 32 | (3 * wire + k), bytes))
        })
        .collect()
}

/// The output wires in the clear, of as many rows as inputs have.
fn in_the_clear(circuit: &Circuit, inputs: &[[Vec<u8>; 3]]) -> Vec<Vec<u8>> {
    let mut circuit = circuit.clone();
    for port in &mut circuit.inputs {
        port.per = Per::Row;
    }
    let mut wires = inputs.iter().map(|of| sum(Ring::Bits, of));
    let ports: Vec<Vec<u8>> = (circuit.inputs.iter())
        .map(|port| wires.by_ref().take(port.width as usize).flatten().collect())
        .collect();
    let rows = 8 * inputs[0][0].len();
    let ports: Vec<&[u8]> = ports.iter().map(Vec::as_slice).collect();
    let outputs = circuit
        .evaluate_batch(rows as u64, &ports)
        .expect("right inputs");
    let columns = outputs.iter().flat_map(|of| of.chunks(rows / 8));
    columns.map(<[u8]>::to_vec).collect()
}

#[test]
fn lists_compute_circuits_in_every_order() {
    let circuits = [
        ("adder-fast:8", 700),
        ("mul:6", 128),
        ("lt:9", 3000),
        ("sub:12", 10),
    ];
    for (name, rows) in circuits {
        let circuit = make(name).expect("a circuit");
        let plan = Plan::new(&circuit, rows, LIMITS, BASE).expect("a circuit of bits");
        for seed in 0..16 {
            let inputs = shared(&circuit, &plan, seed);
            let expected = in_the_clear(&circuit, &inputs);
            let mut model = Model::new(&plan, &inputs);
            model.run(seed);
            assert_eq!(model.opened(&plan), expected, "{name}, order {seed}");
        }
    }
}

/// No two words of a circuit have one mask, nor have those of another run.
#[test]
fn a_tuple_is_drawn_from_once() {
    let circuit = make("mul:6").expect("a circuit");
    let plan = Plan::new(&circuit, 1000, LIMITS, BASE).expect("a circuit of bits");
    for me in 0..3 {
        let mut next = DRAW.counter;
        for (command, _) in plan.commands(me, DRAW) {
            if let Some(draw) = command.draw {
                let counter = next;
                assert_eq!(draw, Tuple { counter, ..DRAW });
                next += u64::from(command.words);
            }
        }
        let products = circuit.stats().muls;
        assert_eq!(next, DRAW.counter + products * u64::from(plan.stride()));
        assert_eq!(next, DRAW.counter + plan.words());
    }
}

/// Outputs that are inputs or constants, or the same value, and inputs that nobody reads.
#[test]
fn wires_are_whatever_they_are() {
    let mut builder = Builder::new(Ring::Bits);
    let x = builder.input("x", 4, Per::Row);
    let [one, zero] = [1, 0].map(|bit| builder.constant(bit));
    let not = builder.not(x[0]);
    let both = builder.and(x[0], x[1]);
    builder.output("out", &[x[2], one, both, zero, not, both]);
    let circuit = builder.finish().expect("a circuit");
    for rows in [1, 512, 1 << 18] {
        let plan = Plan::new(&circuit, rows, LIMITS, BASE).expect("a circuit of bits");
        let inputs = shared(&circuit, &plan, 1);
        let mut model = Model::new(&plan, &inputs);
        model.run(4);
        assert_eq!(model.opened(&plan), in_the_clear(&circuit, &inputs));
    }
}

#[test]
fn lists_are_of_bits_in_one_cycle() {
    let plan = |circuit: &Circuit| Plan::new(circuit, 512, LIMITS, BASE).map(|_| ());
    let integers = make("int-min:64").expect("a circuit");
    assert_eq!(plan(&integers), Err(Unfit::Integers));
    let mut bits = make("adder:64").expect("a circuit");
    let huge = Plan::new(&bits, u32::MAX, LIMITS, BASE).map(|_| ());
    assert_eq!(huge, Err(Unfit::Rows { rows: u32::MAX }));
    bits.clock.cycles = 2;
    assert_eq!(plan(&bits), Err(Unfit::Sequential));
}

/// Three nodes that may have so many bytes of columns.
fn nodes(bytes: u64, seed: u64, stalls: Stalls) -> Option<Trio> {
    let shape = Shape {
        stalls,
        bytes,
        patience: 1 << 24,
        ..Shape::new(3)
    };
    // The invocation of a list is answered at its end.
    let timeout = if bytes > 1 << 22 { 1 << 23 } else { TIMEOUT };
    let trio = built(Trio::new(shape, (0, LANES), seed, timeout))?;
    Some(trio.expect("the nodes work"))
}

/// A circuit at nodes, and its inputs.
fn prepared(trio: &mut Trio, circuit: &Circuit, rows: u32, seed: u64) -> (Plan, Vec<[Vec<u8>; 3]>) {
    let plan = trio.plan(circuit, rows).expect("a circuit of bits");
    let plan = plan.expect("the nodes work");
    let inputs = shared(circuit, &plan, seed);
    put_in(trio, &plan, &inputs);
    (plan, inputs)
}

fn put_in(trio: &mut Trio, plan: &Plan, inputs: &[[Vec<u8>; 3]]) {
    for (at, of) in plan.inputs().iter().zip(inputs) {
        let put = trio.put_in(*at, of.each_ref().map(Vec::as_slice));
        assert_eq!(put, Ok(()), "the memory is there");
    }
}

/// The outputs, of which the nodes hold the same components.
fn opened(trio: &mut Trio, plan: &Plan) -> Vec<Vec<u8>> {
    let mut load = |node: usize, at: u64| {
        let mut bytes = vec![0; 16 * plan.stride() as usize];
        let loaded = trio.nodes[node].load(at, &mut bytes);
        assert_eq!(loaded, Ok(()), "the memory is there");
        bytes
    };
    let mut wire = |at: &[u64; 2]| {
        let own = [0, 1, 2].map(|node| load(node, at[0]));
        for (node, own) in own.iter().enumerate() {
            assert_eq!(load((node + 1) % 3, at[1]), *own, "component {node}");
        }
        sum(Ring::Bits, &own)
    };
    plan.outputs(0).iter().map(&mut wire).collect()
}

#[test]
fn one_host_runs_a_whole_circuit() {
    for (name, rows, rate) in [
        ("lt-fast:16", 512, 20),
        ("adder-fast:16", 1000, 0),
        ("mul:5", 5000, 0),
    ] {
        let stalls = Stalls { seed: 3, rate };
        let Some(mut trio) = nodes(1 << 22, 90, stalls) else {
            return;
        };
        let circuit = make(name).expect("a circuit");
        let (plan, inputs) = prepared(&mut trio, &circuit, rows, 5);
        let expected = in_the_clear(&circuit, &inputs);
        let armed = trio.arm_circuit(&plan).expect("the memory is there");
        let before = trio.nodes.each_ref().map(Node::accesses);
        assert_eq!(trio.start(&armed), Ok(()), "{name}");
        let after = trio.nodes.each_ref().map(Node::accesses);
        assert_eq!(
            before[1..],
            after[1..],
            "nobody asked the hosts of nodes 1 and 2"
        );
        assert_eq!(
            after[0].commands - before[0].commands,
            2,
            "an invocation and a list"
        );
        assert_eq!(after[0].completions - before[0].completions, 2);
        assert_eq!(opened(&mut trio, &plan), expected, "{name}");
        for node in &mut trio.nodes[1..] {
            let ended = node.next("the list").map(|of| (of.event, of.result));
            assert_eq!(ended, Ok((Event::Invoked(0), Ok(()))));
            assert_eq!(node.poll(), Ok(None), "nothing else");
        }
        // Again, by all hosts, with masks that were not drawn before.
        put_in(&mut trio, &plan, &inputs);
        assert_eq!(trio.circuit(Start::Hosts, &plan), Ok(()), "{name}");
        assert_eq!(opened(&mut trio, &plan), expected, "{name}");
    }
}

#[test]
fn cycles_of_a_circuit_do_not_depend_on_values() {
    let mut seen = Vec::new();
    for seed in [92, 93] {
        let Some(mut trio) = nodes(1 << 22, seed, Stalls { seed: 5, rate: 20 }) else {
            return;
        };
        let circuit = make("lt-fast:8").expect("a circuit");
        let (plan, _) = prepared(&mut trio, &circuit, 512, seed);
        assert_eq!(trio.circuit(Start::Headless, &plan), Ok(()));
        for node in &mut trio.nodes[1..] {
            let ended = node.next("the list").map(|of| of.result);
            assert_eq!(ended, Ok(Ok(())));
        }
        seen.push([0, 1, 2].map(|node| trio.network.completed(node)));
    }
    assert_eq!(seen[0], seen[1]);
}

/// Wherever a packet is lost, each host has a failure, nothing is left after the end of the run, and with new keys the circuit is right.
#[test]
fn lost_packets_end_a_circuit_everywhere() {
    let circuit = make("lt-fast:8").expect("a circuit");
    for (seed, link, skip) in [(94, [0, 1], 0), (95, [2, 0], 3), (96, [1, 2], 5)] {
        let Some(mut trio) = nodes(1 << 22, seed, Stalls::default()) else {
            return;
        };
        let (plan, inputs) = prepared(&mut trio, &circuit, 512, seed);
        trio.network.fault(link, Fault::Drop, skip, 1);
        let ended = trio.circuit(Start::Headless, &plan);
        let failed = matches!(ended, Err(NodeError::Failed { .. }));
        assert!(failed, "{link:?} {skip}: {ended:?}");
        trio.tell(0).expect("commands end");
        for node in 1..3 {
            let told = trio.nodes[node].finish("to be told", &[u32::MAX]);
            let failed = matches!(told, Err(NodeError::Failed { .. }));
            assert!(failed, "{link:?} {skip}: node {node}: {told:?}");
        }
        trio.abort().expect("the nodes work");
        for node in &mut trio.nodes {
            let mut memory = vec![0; 16 * words_of(&plan)];
            assert_eq!(node.load(0, &mut memory), Ok(()));
            assert!(memory.iter().all(|byte| *byte == 0), "{link:?} {skip}");
        }
        // What was under way comes to nodes without keys, whose completions go with a second end.
        trio.network.run(2000);
        trio.abort().expect("the nodes work");
        let mut trio = trio.renewed(seed + 10, TIMEOUT).expect("the nodes work");
        let (plan, _) = prepared(&mut trio, &circuit, 512, seed);
        assert_eq!(trio.circuit(Start::Headless, &plan), Ok(()));
        assert_eq!(opened(&mut trio, &plan), in_the_clear(&circuit, &inputs));
    }
}

/// Words of a node up to the end of its columns.
fn words_of(plan: &Plan) -> usize {
    let inbox = plan.inbox(0);
    inbox.address as usize / 16 + inbox.words as usize
}

/// `VEIL_NODE_CIRCUITS=aes128,sha256` runs circuits as they are here, of some numbers of rows; half a minute each, or minutes.
#[test]
fn long_circuits_are_right() {
    let Some(names) = std::env::var_os("VEIL_NODE_CIRCUITS") else {
        return;
    };
    for name in names.to_string_lossy().split(',') {
        for rows in [512, 4096] {
            let Some(mut trio) = nodes(1 << 27, 97, Stalls::default()) else {
                return;
            };
            let circuit = make(name).expect("a circuit");
            let (plan, inputs) = prepared(&mut trio, &circuit, rows, 97);
            let armed = trio.arm_circuit(&plan).expect("the memory is there");
            let begin = trio.network.cycle();
            assert_eq!(trio.start(&armed), Ok(()), "{name}");
            let cycles = trio.network.completed(0) - begin;
            let (commands, waves) = (plan.work(), plan.waves());
            let sent = trio.network.sent(0);
            println!(
                "{name} {rows}: {cycles} cycles, {commands} commands, waves {waves:?}, {sent} words sent, columns of {} words",
                words_of(&plan)
            );
            let expected = in_the_clear(&circuit, &inputs);
            assert_eq!(opened(&mut trio, &plan), expected, "{name}");
        }
    }
}
