//! Whole circuits at three and at four nodes, whose hosts do nothing meanwhile.

use veil_circuit::{Circuit, make};
use veil_device_fpga::Stalls;
use veil_device_fpga::node::{
    Circuits, Event, Fault, LANES, Network, Node, NodeError, Plan, Quartet, Shape, Start, Trio,
};
use veil_math::Ring;

use super::circuit::{in_the_clear, shared};
use super::model::component;
use super::{TIMEOUT, built, sum};

/// Three or four nodes.
trait Nodes<const N: usize>: Circuits + Sized {
    /// With so many bytes of columns.
    fn open(bytes: u64, seed: u64, stalls: Stalls) -> Option<Self>;
    fn plan_of(&mut self, circuit: &Circuit, rows: u32, checks: bool) -> Plan;
    fn nodes(&mut self) -> &mut [Node; N];
    fn network(&self) -> &Network;
    fn tell_of(&mut self, me: u8);
    fn end(&mut self);
    fn again(self, seed: u64) -> Self;
}

/// Cycles in which each of these circuits ends: locals of four parties take six for each word.
fn patience(nodes: u8) -> u32 {
    if nodes == 4 { 4 * TIMEOUT } else { TIMEOUT }
}

fn shape(nodes: u8, bytes: u64, stalls: Stalls) -> (Shape, u32) {
    let shape = Shape {
        stalls,
        bytes,
        patience: 1 << 24,
        ..Shape::new(nodes)
    };
    // The invocation of a list is answered at its end.
    let timeout = if bytes > 1 << 22 {
        1 << 23
    } else {
        patience(nodes)
    };
    (shape, timeout)
}

impl Nodes<3> for Trio {
    fn open(bytes: u64, seed: u64, stalls: Stalls) -> Option<Self> {
        let (shape, timeout) = shape(3, bytes, stalls);
        let trio = built(Trio::new(shape, (0, LANES), seed, timeout))?;
        Some(trio.expect("the nodes work"))
    }

    fn plan_of(&mut self, circuit: &Circuit, rows: u32, _: bool) -> Plan {
        let plan = self.plan(circuit, rows).expect("a circuit of bits");
        plan.expect("the nodes work")
    }

    fn nodes(&mut self) -> &mut [Node; 3] {
        &mut self.nodes
    }

    fn network(&self) -> &Network {
        &self.network
    }

    fn tell_of(&mut self, me: u8) {
        self.tell(me).expect("commands end");
    }

    fn end(&mut self) {
        self.abort().expect("the nodes work");
    }

    fn again(self, seed: u64) -> Self {
        self.renewed(seed, patience(3)).expect("the nodes work")
    }
}

impl Nodes<4> for Quartet {
    fn open(bytes: u64, seed: u64, stalls: Stalls) -> Option<Self> {
        let (shape, timeout) = shape(4, bytes, stalls);
        let quartet = built(Quartet::new(shape, (0, LANES), seed, timeout))?;
        Some(quartet.expect("the nodes work"))
    }

    fn plan_of(&mut self, circuit: &Circuit, rows: u32, checks: bool) -> Plan {
        let plan = self.plan(circuit, rows, checks).expect("a circuit of bits");
        plan.expect("the nodes work")
    }

    fn nodes(&mut self) -> &mut [Node; 4] {
        &mut self.nodes
    }

    fn network(&self) -> &Network {
        &self.network
    }

    fn tell_of(&mut self, me: u8) {
        self.tell(me).expect("commands end");
    }

    fn end(&mut self) {
        self.abort().expect("the nodes work");
    }

    fn again(self, seed: u64) -> Self {
        self.renewed(seed, patience(4)).expect("the nodes work")
    }
}

/// A circuit at nodes, checked, and its inputs.
fn prepared<const N: usize>(
    nodes: &mut impl Nodes<N>,
    circuit: &Circuit,
    rows: u32,
    seed: u64,
) -> (Plan, Vec<[Vec<u8>; N]>) {
    let plan = nodes.plan_of(circuit, rows, true);
    let inputs = shared(circuit, &plan, seed);
    put_in(nodes, &plan, &inputs);
    (plan, inputs)
}

fn put_in<const N: usize>(nodes: &mut impl Nodes<N>, plan: &Plan, inputs: &[[Vec<u8>; N]]) {
    for (at, of) in plan.inputs().iter().zip(inputs) {
        let put = nodes.put_in(at, &of.each_ref().map(Vec::as_slice));
        assert_eq!(put, Ok(()), "the memory is there");
    }
}

/// The outputs, of which the nodes hold the same components.
fn opened<const N: usize>(nodes: &mut impl Nodes<N>, plan: &Plan) -> Vec<Vec<u8>> {
    let mut outputs: Vec<[Option<Vec<u8>>; N]> = Vec::new();
    for (me, node) in nodes.nodes().iter_mut().enumerate() {
        for (wire, at) in plan.outputs(me as u8).iter().enumerate() {
            outputs.resize_with(outputs.len().max(wire + 1), || [const { None }; N]);
            for (part, at) in at.iter().enumerate() {
                let mut bytes = vec![0; 16 * plan.stride() as usize];
                assert_eq!(node.load(*at, &mut bytes), Ok(()), "the memory is there");
                let component = component(N, me, part);
                let known = outputs[wire][component].get_or_insert(bytes.clone());
                assert_eq!(*known, bytes, "component {component} of {wire} at {me}");
            }
        }
    }
    let all = outputs.into_iter();
    all.map(|of| sum(Ring::Bits, &of.map(|of| of.expect("a component"))))
        .collect()
}

/// What others have started at nodes without a host has ended well, and nothing else is there.
fn ended<const N: usize>(nodes: &mut impl Nodes<N>) {
    for node in &mut nodes.nodes()[1..] {
        let ended = node.next("the list").map(|of| (of.event, of.result));
        assert_eq!(ended, Ok((Event::Invoked(0), Ok(()))));
        assert_eq!(node.poll(), Ok(None), "nothing else");
    }
}

/// A circuit that node 0's host runs, then again, by all hosts, with masks that were not drawn before; of four, in the next chunk.
fn runs_headless<const N: usize, T: Nodes<N>>(name: &str, rows: u32, rate: u8, checks: bool) {
    let Some(mut nodes) = T::open(1 << 22, 90, Stalls { seed: 3, rate }) else {
        return;
    };
    let circuit = make(name).expect("a circuit");
    let plan = nodes.plan_of(&circuit, rows, checks);
    let inputs = shared(&circuit, &plan, 5);
    put_in(&mut nodes, &plan, &inputs);
    let expected = in_the_clear(&circuit, &inputs);
    let before = nodes.nodes().each_ref().map(Node::accesses);
    let armed = nodes.arm_circuit(&plan).expect("the memory is there");
    let between = nodes.nodes().each_ref().map(Node::accesses);
    let all = before.iter().zip(&between).skip(1);
    assert!(
        all.clone()
            .all(|(before, armed)| armed.commands == before.commands + 1)
    );
    assert_eq!(armed.start(&mut nodes.nodes()[0]), Ok(()), "{name}");
    let after = nodes.nodes().each_ref().map(Node::accesses);
    assert_eq!(between[1..], after[1..], "no node asked the other hosts");
    let [commands, completions] = [
        after[0].commands - between[0].commands,
        after[0].completions - between[0].completions,
    ];
    assert_eq!([commands, completions], [2, 2], "an invocation and a list");
    assert_eq!(opened(&mut nodes, &plan), expected, "{name}");
    ended(&mut nodes);
    put_in(&mut nodes, &plan, &inputs);
    assert_eq!(nodes.circuit(Start::Hosts, &plan), Ok(()), "{name}");
    assert_eq!(opened(&mut nodes, &plan), expected, "{name}");
}

#[test]
fn one_host_runs_a_whole_circuit() {
    runs_headless::<3, Trio>("lt-fast:16", 512, 20, true);
    runs_headless::<3, Trio>("adder-fast:16", 1000, 0, true);
    runs_headless::<3, Trio>("mul:5", 5000, 0, true);
}

#[test]
fn one_host_runs_a_whole_circuit_of_four() {
    runs_headless::<4, Quartet>("lt-fast:16", 512, 20, true);
    runs_headless::<4, Quartet>("adder-fast:8", 1000, 0, false);
    runs_headless::<4, Quartet>("mul:3", 3000, 0, true);
}

fn has_cycles<const N: usize, T: Nodes<N>>() {
    let mut seen = Vec::new();
    for seed in [92, 93] {
        let Some(mut nodes) = T::open(1 << 22, seed, Stalls { seed: 5, rate: 20 }) else {
            return;
        };
        let circuit = make("lt-fast:8").expect("a circuit");
        let (plan, _) = prepared(&mut nodes, &circuit, 512, seed);
        assert_eq!(nodes.circuit(Start::Headless, &plan), Ok(()));
        ended(&mut nodes);
        let completed = (0..N as u8).map(|node| nodes.network().completed(node));
        seen.push(completed.collect::<Vec<_>>());
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn cycles_of_a_circuit_do_not_depend_on_values() {
    has_cycles::<3, Trio>();
    has_cycles::<4, Quartet>();
}

/// Wherever a packet is lost, each host has a failure, nothing is left after the end of the run, and with new keys the circuit is right.
fn loses<const N: usize, T: Nodes<N>>(seed: u64, link: [u8; 2], skip: u64) {
    let circuit = make("lt-fast:8").expect("a circuit");
    let Some(mut nodes) = T::open(1 << 22, seed, Stalls::default()) else {
        return;
    };
    let (plan, _) = prepared(&mut nodes, &circuit, 512, seed);
    nodes.network().fault(link, Fault::Drop, skip, 1);
    let ended = nodes.circuit(Start::Headless, &plan);
    let failed = matches!(ended, Err(NodeError::Failed { .. }));
    assert!(failed, "{link:?} {skip}: {ended:?}");
    nodes.tell_of(0);
    for (me, node) in nodes.nodes().iter_mut().enumerate().skip(1) {
        let told = node.finish("to be told", &[u32::MAX]);
        let failed = matches!(told, Err(NodeError::Failed { .. }));
        assert!(failed, "{link:?} {skip}: node {me}: {told:?}");
    }
    nodes.end();
    for node in nodes.nodes() {
        let mut memory = vec![0; 16 * words_of(&plan)];
        assert_eq!(node.load(0, &mut memory), Ok(()));
        assert!(memory.iter().all(|byte| *byte == 0), "{link:?} {skip}");
    }
    // What was under way comes to nodes without keys, whose completions go with a second end.
    nodes.network().run(2000);
    nodes.end();
    let mut nodes = nodes.again(seed + 10);
    let (plan, inputs) = prepared(&mut nodes, &circuit, 512, seed);
    assert_eq!(nodes.circuit(Start::Headless, &plan), Ok(()));
    assert_eq!(opened(&mut nodes, &plan), in_the_clear(&circuit, &inputs));
}

#[test]
fn lost_packets_end_a_circuit_everywhere() {
    for (seed, link, skip) in [(94, [0, 1], 0), (95, [2, 0], 3), (96, [1, 2], 5)] {
        loses::<3, Trio>(seed, link, skip);
    }
    for (seed, link, skip) in [(94, [0, 3], 1), (95, [2, 0], 3)] {
        loses::<4, Quartet>(seed, link, skip);
    }
}

/// Words of a node up to the end of its columns.
fn words_of(plan: &Plan) -> usize {
    let windows = [0, 1, 2, 3].map(|from| plan.inbox(from));
    let all = windows
        .iter()
        .chain([&plan.own()])
        .copied()
        .collect::<Vec<_>>();
    let ends = all
        .iter()
        .map(|of| of.address as usize / 16 + of.words as usize);
    ends.max().expect("windows")
}

/// A circuit as it is, of some numbers of rows; half a minute each, or minutes, and of four parties more.
fn is_long<const N: usize, T: Nodes<N>>(name: &str, rows: u32) {
    let Some(mut nodes) = T::open(1 << 27, 97, Stalls::default()) else {
        return;
    };
    let circuit = make(name).expect("a circuit");
    let (plan, inputs) = prepared(&mut nodes, &circuit, rows, 97);
    let armed = nodes.arm_circuit(&plan).expect("the memory is there");
    let begin = nodes.network().cycle();
    assert_eq!(armed.start(&mut nodes.nodes()[0]), Ok(()), "{name}");
    let cycles = nodes.network().completed(0) - begin;
    let (commands, waves, layers) = (plan.work(), plan.waves(), plan.layers());
    let sent = nodes.network().sent(0);
    println!(
        "{N} parties: {name} {rows}: {cycles} cycles, {commands} commands, {layers} first ones of products, waves {waves:?}"
    );
    println!("{sent} words sent, columns of {} words", words_of(&plan));
    let expected = in_the_clear(&circuit, &inputs);
    assert_eq!(opened(&mut nodes, &plan), expected, "{name}");
}

/// `VEIL_NODE_CIRCUITS=aes128,sha256` runs circuits.
#[test]
fn long_circuits_are_right() {
    let Some(names) = std::env::var_os("VEIL_NODE_CIRCUITS") else {
        return;
    };
    for name in names.to_string_lossy().split(',') {
        is_long::<4, Quartet>(name, 512);
        for rows in [512, 4096] {
            is_long::<3, Trio>(name, rows);
        }
    }
}
