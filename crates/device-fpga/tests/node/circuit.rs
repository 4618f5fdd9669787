//! Circuits of three and of four parties: what their lists are, and what a model makes of them in every order that they allow.

use veil_circuit::{Builder, Circuit, Per, make};
use veil_device_fpga::node::{
    JOINT, LANES, Limits, Op, Parties, Plan, PrfCounters, Site, Tuple, Unfit, received,
};
use veil_math::Ring;
use veil_prss::DomainTag;

use super::model::{Model, WAYS};
use super::{random, sum};

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
pub(crate) fn counters(plan: &Plan, chunk: u32) -> PrfCounters {
    let tag = match plan.parties() {
        Parties::Three => DomainTag::AND3,
        Parties::Four { .. } => DomainTag::joint4(0),
    };
    let masks = Tuple {
        tag,
        lane: 3,
        counter: 77,
        chunk,
    };
    PrfCounters { masks, layer: 1000 }
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
pub(crate) fn shared<const N: usize>(
    circuit: &Circuit,
    plan: &Plan,
    seed: u64,
) -> Vec<[Vec<u8>; N]> {
    (0..u64::from(circuit.input_wires()))
        .map(|wire| {
            let bytes = 16 * plan.stride() as usize;
            let mut k = N as u64 * wire..;
            [0; N].map(|_| random(seed << 32 | k.next().expect("a component"), bytes))
        })
        .collect()
}

/// The output wires in the clear, of as many rows as inputs have.
pub(crate) fn in_the_clear<const N: usize>(
    circuit: &Circuit,
    inputs: &[[Vec<u8>; N]],
) -> Vec<Vec<u8>> {
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
        let first = counters(&plan, 5);
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
                    Op::Product(_) => assert_eq!(command.call, Some(masks)),
                    Op::Local(stage) => {
                        assert_eq!((command.call, stage.counter), (Some(masks), layer));
                        layer += 1;
                        locals.push((masks, command.words, stage.counter));
                    }
                    Op::Join(stage) => {
                        // The masks of MACs that its local's are made with at other parties.
                        let local = locals.remove(0);
                        let call = command.call.expect("masks");
                        assert_eq!((call, command.words, stage.counter), local);
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

/// Outputs that are inputs or constants, or the same value, and inputs that no gate reads.
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
        let counters = counters(&plan, chunk);
        for (number, (command, _)) in plan.commands(me, counters).iter().enumerate() {
            let Op::Join(stage) = command.op else {
                assert_eq!(plan.only(me, counters, number, 0), None);
                continue;
            };
            let came = received(me);
            for (message, k) in came.iter().enumerate() {
                let only = plan.only(me, counters, number, message).expect("a message");
                let Op::Join(one) = only.op else {
                    panic!("{:?}", only.op);
                };
                assert_eq!(one.to, [stage.to[message], None]);
                assert_eq!((one.counter, only.call), (stage.counter, command.call));
                let at = command.from[1 + message];
                let mac = command.from[1 + came.len() + message];
                assert_eq!(only.from, [command.from[0], at, mac]);
                let senders = (0..4).filter(|from| {
                    let window = plan.inbox(*from);
                    let end = window.address + 16 * u64::from(window.words);
                    (window.address..end).contains(&at.address)
                });
                let joint = JOINT[usize::from(*k)];
                assert_eq!(senders.collect::<Vec<_>>(), [joint.sender(chunk)]);
            }
            assert_eq!(plan.only(me, counters, number, came.len()), None);
        }
        assert_eq!(plan.only(me, counters, 1 << 20, 0), None);
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
