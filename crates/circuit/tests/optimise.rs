//! Optimised circuits compute what they computed before, with no more products and rounds.

use crate::common::{circuits, rings, sequential};
use proptest::prelude::*;
use veil_circuit::{
    Builder, Circuit, Gate, Initial, Per, Wire, balance, catalogue, make, optimise, schedule,
    simplify,
};
use veil_math::Ring;

fn values(circuit: &Circuit, pool: &[u128]) -> Vec<Vec<u128>> {
    let mut pool = pool.iter().cycle();
    let mut value = || circuit.ring.reduce(*pool.next().expect("an endless pool"));
    circuit
        .inputs
        .iter()
        .map(|port| {
            let width = port.value_width(circuit.clock.cycles);
            (0..width).map(|_| value()).collect()
        })
        .collect()
}

type Pass = fn(&Circuit) -> Circuit;
const PASSES: [(&str, Pass); 4] = [
    ("simplify", simplify),
    ("balance", balance),
    ("schedule", schedule),
    ("optimise", optimise),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_changes_but_the_cost(
        circuit in rings().prop_flat_map(|ring| circuits(ring, 60)),
        pools in prop::collection::vec(prop::collection::vec(any::<u128>(), 9), 4),
    ) {
        for (name, pass) in PASSES {
            let better = pass(&circuit);
            prop_assert_eq!(better.validate(), Ok(()), "{}", name);
            prop_assert_eq!(&better.inputs, &circuit.inputs, "{}", name);
            let (new, old) = (better.stats(), circuit.stats());
            prop_assert!(new.muls <= old.muls && new.depth <= old.depth, "{}: {} from {}", name, new, old);
            for pool in &pools {
                let inputs = values(&circuit, pool);
                prop_assert_eq!(better.evaluate(&inputs), circuit.evaluate(&inputs), "{}", name);
            }
        }
    }

    #[test]
    fn registers_stay_right(
        circuit in sequential(40),
        pools in prop::collection::vec(prop::collection::vec(any::<u128>(), 9), 4),
    ) {
        for (name, pass) in PASSES {
            let better = pass(&circuit);
            prop_assert_eq!(better.validate(), Ok(()), "{}", name);
            prop_assert_eq!(&better.inputs, &circuit.inputs, "{}", name);
            let (new, old) = (better.stats(), circuit.stats());
            prop_assert!(new.muls <= old.muls && new.depth <= old.depth, "{}: {} from {}", name, new, old);
            prop_assert!(new.registers <= old.registers);
            for pool in &pools {
                let inputs = values(&circuit, pool);
                prop_assert_eq!(better.evaluate(&inputs), circuit.evaluate(&inputs), "{}", name);
            }
        }
    }

    #[test]
    fn rounds_come_in_order(circuit in circuits(Ring::Bits, 60)) {
        let scheduled = schedule(&circuit);
        let depths = scheduled.depths();
        prop_assert!(depths.is_sorted());
    }
}

#[test]
fn a_chain_becomes_a_tree() {
    let mut b = Builder::new(Ring::Bits);
    let x = b.input("x", 16, Per::Row);
    let all = x.iter().skip(1).fold(x[0], |all, &x| b.and(all, x));
    b.output("all", &[all]);
    let chain = b.finish().expect("a good circuit");
    assert_eq!((chain.stats().muls, chain.stats().depth), (15, 15));
    let tree = optimise(&chain);
    assert_eq!((tree.stats().muls, tree.stats().depth), (15, 4));
}

#[test]
fn late_factors_come_last() {
    // d is known after three rounds; a · b · c · d takes one more, not two or three.
    let mut b = Builder::new(Ring::Z64);
    let x = b.input("x", 4, Per::Row);
    let mut late = x[0];
    for _ in 0..3 {
        late = b.mul(late, late);
    }
    let product = [x[1], x[2], x[3]]
        .into_iter()
        .fold(late, |product, x| b.mul(product, x));
    b.output("product", &[product]);
    let circuit = b.finish().expect("a good circuit");
    assert_eq!(circuit.stats().depth, 6);
    assert_eq!(optimise(&circuit).stats().depth, 4);
}

#[test]
fn what_others_read_stays_whole() {
    // The inner product is an output too: taking it apart would cost a product more.
    let mut b = Builder::new(Ring::Bits);
    let x = b.input("x", 4, Per::Row);
    let first = b.and(x[0], x[1]);
    let second = b.and(first, x[2]);
    let third = b.and(second, x[3]);
    b.output("z", &[second, third]);
    let circuit = b.finish().expect("a good circuit");
    assert_eq!(optimise(&circuit).stats().muls, 3);
}

#[test]
fn redundancy_goes() {
    let mut circuit = make("adder:8").expect("a name of the catalogue");
    circuit.gates = vec![
        Gate::Mul(Wire(0), Wire(8)),
        Gate::Mul(Wire(8), Wire(0)),
        Gate::Add(Wire(16), Wire(17)),
        Gate::Constant(1),
        Gate::Mul(Wire(19), Wire(1)),
        Gate::Add(Wire(18), Wire(20)),
        Gate::Mul(Wire(2), Wire(3)),
    ];
    circuit.outputs[0].wires = vec![Wire(21)];
    let simple = simplify(&circuit);
    assert_eq!(simple.gates, []);
    assert_eq!(simple.outputs[0].wires, [Wire(1)]);
}

#[test]
fn registers_that_never_change_are_constants() {
    let mut b = Builder::new(Ring::Bits);
    b.cycles(3);
    let x = b.input("x", 1, Per::Cycle)[0];
    // Each holds the other at 0, which makes a product vanish; the third is 0 in the first cycle alone.
    let q = [false, false, false].map(|bit| b.register(Initial::Constant(bit)));
    let (both, one) = (b.and(q[0], x), b.constant(1));
    b.set_next(q[0], q[1]);
    b.set_next(q[1], both);
    b.set_next(q[2], one);
    let (dead, live) = (b.and(q[1], x), b.and(q[2], x));
    let out = b.xor(dead, live);
    b.output_every_cycle("out", &[out]);
    let circuit = b.finish().expect("a good circuit");
    let better = simplify(&circuit);
    assert_eq!((circuit.stats().registers, circuit.stats().muls), (3, 3));
    assert_eq!((better.stats().registers, better.stats().muls), (1, 1));
    let out = better.evaluate(&[vec![1, 1, 1]]);
    assert_eq!(out, Ok(vec![vec![0, 1, 1]]));
}

#[test]
fn one_cycle_needs_no_registers() {
    let mut b = Builder::new(Ring::Bits);
    let x = b.input("x", 2, Per::Row);
    let q = b.register(Initial::Wire(x[0]));
    let next = b.and(q, x[1]);
    b.set_next(q, next);
    b.output("q", &[q]);
    let circuit = b.finish().expect("a good circuit");
    assert!(circuit.is_sequential() && circuit.stats().muls == 1);
    let better = optimise(&circuit);
    assert!(!better.is_sequential());
    assert_eq!(
        (better.stats().gates, &better.outputs[0].wires[..]),
        (0, &[Wire(0)][..])
    );
}

#[test]
fn generated_circuits_stay_as_small() {
    for entry in catalogue() {
        let circuit = make(&entry.example(24)).expect("a name of the catalogue");
        let (old, new) = (circuit.stats(), optimise(&circuit).stats());
        assert!(
            new.gates <= old.gates && new.muls <= old.muls && new.depth <= old.depth,
            "{}: {new}",
            entry.name
        );
    }
}
