//! Circuits at three and at four nodes: lists as a model runs them, in every order that they allow, and as nodes do.

use veil_circuit::{Builder, Circuit, Per, make};
use veil_device_fpga::Stalls;
use veil_device_fpga::node::{
    Circuits, Draws, Event, Fault, JOINT, LANES, Limits, Network, Node, NodeError, Op, Parties,
    Plan, Quartet, Shape, Site, Start, Trio, Tuple, Unfit, received,
};
use veil_math::Ring;
use veil_prss::Use;

use super::model::{Model, WAYS, component};
use super::{TIMEOUT, built, random, sum};

/// What simulated units of three or four parties have.
pub(crate) fn limits(nodes: usize) -> Limits {
    let four = u32::from(nodes == 4);
    Limits {
        movers: 2,
        adders: 2,
        sharers: 4,
        locals: four,
        joins: four,
        longest: 1024,
        slots: 16,
        lanes: LANES,
    }
}

const BASE: u64 = 128;
const CHECKED: Parties = Parties::Four { checks: true };
const UNCHECKED: Parties = Parties::Four { checks: false };

/// What the first product draws.
pub(crate) fn draws(plan: &Plan, chunk: u32) -> Draws {
    let tag = match plan.parties() {
        Parties::Three => Use::AND3,
        Parties::Four { .. } => Use::joint4(0),
    };
    let masks = Tuple {
        tag,
        lane: 3,
        counter: 77,
        chunk,
    };
    Draws { masks, layer: 1000 }
}

/// A plan with inboxes behind all columns.
fn planned(parties: Parties, circuit: &Circuit, rows: u32) -> Plan {
    placed(parties, circuit, rows, None)
}

fn placed(parties: Parties, circuit: &Circuit, rows: u32, inboxes: Option<[u64; 4]>) -> Plan {
    let nodes = if parties == Parties::Three { 3 } else { 4 };
    let site = Site {
        inboxes,
        ..Site::new(parties, BASE)
    };
    Plan::new(circuit, rows, limits(nodes), site).expect("a circuit of bits")
}

/// Random components of each input wire, of whole columns.
fn shared<const N: usize>(circuit: &Circuit, plan: &Plan, seed: u64) -> Vec<[Vec<u8>; N]> {
    (0..u64::from(circuit.input_wires()))
        .map(|wire| {
            let bytes = 16 * plan.stride() as usize;
            let mut k = N as u64 * wire..;
            [0; N].map(|_| random(seed << 32 | k.next().expect("a component"), bytes))
        })
        .collect()
}

/// The output wires in the clear, of as many rows as inputs have.
fn in_the_clear<const N: usize>(circuit: &Circuit, inputs: &[[Vec<u8>; N]]) -> Vec<Vec<u8>> {
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

/// A circuit in every order that its lists allow, in an even and in an odd chunk.
fn runs_in_every_order<const N: usize>(parties: Parties, name: &str, rows: u32) {
    let circuit = make(name).expect("a circuit");
    for seed in 0..2 * WAYS[N - 3] {
        // Half of the plans have their inboxes elsewhere.
        let elsewhere = [1, 2, 3, 4].map(|k| (1 << 30) + (k << 26));
        let plan = placed(parties, &circuit, rows, (seed % 4 > 1).then_some(elsewhere));
        let inputs = shared(&circuit, &plan, seed);
        let expected = in_the_clear(&circuit, &inputs);
        let mut model = Model::<N>::new(&plan, (seed / WAYS[N - 3]) as u32, &inputs);
        model.run(seed);
        assert_eq!(
            model.opened(),
            expected,
            "{parties:?}: {name}, order {seed}"
        );
    }
}

#[test]
fn lists_compute_circuits_in_every_order() {
    for (name, rows) in [
        ("adder-fast:8", 700),
        ("mul:6", 128),
        ("lt:9", 3000),
        ("sub:12", 10),
    ] {
        runs_in_every_order::<3>(Parties::Three, name, rows);
        runs_in_every_order::<4>(CHECKED, name, rows);
        runs_in_every_order::<4>(UNCHECKED, name, rows);
    }
}

/// No two words of a circuit have one mask, nor have those of another run.
#[test]
fn a_tuple_is_drawn_from_once() {
    let circuit = make("mul:6").expect("a circuit");
    for parties in [Parties::Three, CHECKED, UNCHECKED] {
        let plan = planned(parties, &circuit, 1000);
        let first = draws(&plan, 5);
        for me in 0..=plan.inputs()[0].len() as u8 {
            let (mut next, mut layer) = (first.masks.counter, first.layer);
            let mut locals = Vec::new();
            for (command, _) in plan.commands(me, first) {
                let counter = next;
                let masks = Tuple {
                    counter,
                    ..first.masks
                };
                match command.op {
                    Op::Product(_) => assert_eq!(command.draw, Some(masks)),
                    Op::Local(stage) => {
                        assert_eq!((command.draw, stage.counter), (Some(masks), layer));
                        layer += 1;
                        locals.push((masks, command.words, stage.counter));
                    }
                    Op::Join(stage) => {
                        // The masks of codes that its local's are made with at other parties.
                        let local = locals.remove(0);
                        let draw = command.draw.expect("masks");
                        assert_eq!((draw, command.words, stage.counter), local);
                        continue;
                    }
                    _ => continue,
                }
                next += u64::from(command.words);
            }
            assert!(locals.is_empty());
            let products = circuit.stats().muls;
            let counter = first.masks.counter;
            assert_eq!(next, counter + products * u64::from(plan.stride()));
            assert_eq!(next, counter + plan.words());
            let four = parties != Parties::Three;
            assert_eq!(layer - first.layer, if four { plan.layers() } else { 0 });
        }
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
        let plan = planned(Parties::Three, &circuit, rows);
        let inputs = shared(&circuit, &plan, 1);
        let mut model = Model::<3>::new(&plan, 0, &inputs);
        model.run(4);
        assert_eq!(model.opened(), in_the_clear(&circuit, &inputs));
        let plan = planned(CHECKED, &circuit, rows);
        let inputs = shared(&circuit, &plan, 2);
        let mut model = Model::<4>::new(&plan, 1, &inputs);
        model.run(5);
        assert_eq!(model.opened(), in_the_clear(&circuit, &inputs));
    }
}

/// A local goes on until its messages were answered: wherever operands lie, those of a depth are one, if a worker keeps as many words.
#[test]
fn products_of_a_depth_are_one_command_of_four() {
    for name in ["mul:6", "lt:9", "adder-fast:8"] {
        let circuit = make(name).expect("a circuit");
        let plan = planned(CHECKED, &circuit, 512);
        assert_eq!(plan.layers(), plan.waves()[0] as u64, "{name}");
        // Of longer columns as many as are needed.
        let plan = planned(CHECKED, &circuit, 1 << 17);
        assert_eq!(plan.layers(), circuit.stats().muls, "{name}");
    }
}

/// Each message of each join is asked for by its number, and nothing else is.
#[test]
fn joins_are_asked_for_single_messages() {
    let circuit = make("lt:9").expect("a circuit");
    let plan = planned(CHECKED, &circuit, 700);
    for (me, chunk) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
        let draws = draws(&plan, chunk);
        for (number, (command, _)) in plan.commands(me, draws).iter().enumerate() {
            let Op::Join(stage) = command.op else {
                assert_eq!(plan.only(me, draws, number, 0), None);
                continue;
            };
            let came = received(me);
            for (message, k) in came.iter().enumerate() {
                let only = plan.only(me, draws, number, message).expect("a message");
                let Op::Join(one) = only.op else {
                    panic!("{:?}", only.op);
                };
                assert_eq!(one.to, [stage.to[message], None]);
                assert_eq!((one.counter, only.draw), (stage.counter, command.draw));
                let at = command.from[1 + message];
                let code = command.from[1 + came.len() + message];
                assert_eq!(only.from, [command.from[0], at, code]);
                let senders = (0..4).filter(|from| {
                    let window = plan.inbox(*from);
                    let end = window.address + 16 * u64::from(window.words);
                    (window.address..end).contains(&at.address)
                });
                let joint = JOINT[usize::from(*k)];
                assert_eq!(senders.collect::<Vec<_>>(), [joint.sender(chunk)]);
            }
            assert_eq!(plan.only(me, draws, number, came.len()), None);
        }
        assert_eq!(plan.only(me, draws, 1 << 20, 0), None);
    }
}

#[test]
fn lists_are_of_bits_in_one_cycle() {
    let plan = |circuit: &Circuit, rows, parties| {
        let plan = Plan::new(circuit, rows, limits(4), Site::new(parties, BASE));
        plan.map(|_| ())
    };
    for parties in [Parties::Three, CHECKED] {
        let integers = make("int-min:64").expect("a circuit");
        assert_eq!(plan(&integers, 512, parties), Err(Unfit::Integers));
        let mut bits = make("adder:64").expect("a circuit");
        let rows = u32::MAX;
        assert_eq!(plan(&bits, rows, parties), Err(Unfit::Rows { rows }));
        bits.clock.cycles = 2;
        assert_eq!(plan(&bits, 512, parties), Err(Unfit::Sequential));
    }
}

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
    assert_eq!(between[1..], after[1..], "nobody asked the other hosts");
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
        "{N} parties: {name} {rows}: {cycles} cycles, {commands} commands, {layers} of them first ones of products, waves {waves:?}, {sent} words sent, columns of {} words",
        words_of(&plan)
    );
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
