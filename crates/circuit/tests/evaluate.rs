//! The batch evaluator against the evaluator of one row, and that against arithmetic.

use crate::common::{circuits, rings, sequential, unrolled};
use proptest::prelude::*;
use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire, make};
use veil_math::Ring;

/// Column storage: `[wire][ring.bytes(rows)]`.
fn element(ring: Ring, column: &[u8], row: usize) -> u128 {
    match ring {
        Ring::Bits => u128::from(column[row / 8] >> (row % 8) & 1),
        Ring::Z32 | Ring::Z64 | Ring::Z128 => {
            let bytes = ring.bytes(1) as usize;
            let element = &column[row * bytes..(row + 1) * bytes];
            element
                .iter()
                .rev()
                .fold(0, |value, &byte| value << 8 | u128::from(byte))
        }
    }
}

/// Random columns for every port; padding bits are random too.
fn columns(circuit: &Circuit, rows: u64, seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed;
    let mut byte = move || {
        // Knuth's 64-bit linear congruential generator.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let bytes = |port: &InputPort| {
        port.value_width(circuit.clock.cycles)
            * circuit
                .ring
                .bytes(if port.per == Per::Job { 1 } else { rows })
    };
    circuit
        .inputs
        .iter()
        .map(|port| (0..bytes(port)).map(|_| byte()).collect())
        .collect()
}

fn check(circuit: &Circuit, rows: u64, seed: u64) {
    circuit.validate().expect("a valid circuit");
    let ring = circuit.ring;
    let inputs = columns(circuit, rows, seed);
    let slices: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let outputs = circuit
        .evaluate_batch(rows, &slices)
        .expect("inputs of the right size");
    let mut sums: Vec<Vec<u128>> = circuit
        .outputs
        .iter()
        .map(|port| vec![0; port.value_width(circuit.clock.cycles) as usize])
        .collect();
    for row in 0..rows as usize {
        let inputs: Vec<Vec<u128>> = circuit
            .inputs
            .iter()
            .zip(&inputs)
            .map(|(port, input)| {
                let (rows, row) = if port.per == Per::Job {
                    (1, 0)
                } else {
                    (rows, row)
                };
                let column = ring.bytes(rows) as usize;
                input
                    .chunks_exact(column)
                    .map(|column| element(ring, column, row))
                    .collect()
            })
            .collect();
        for (port, values) in circuit
            .evaluate(&inputs)
            .expect("inputs of the right size")
            .iter()
            .enumerate()
        {
            for (wire, &value) in values.iter().enumerate() {
                sums[port][wire] = ring.add(sums[port][wire], value);
                if circuit.outputs[port].reduce != Reduce::Sum {
                    let column = ring.bytes(rows) as usize;
                    let column = &outputs[port][wire * column..(wire + 1) * column];
                    assert_eq!(
                        element(ring, column, row),
                        value,
                        "row {row}, output {port}, wire {wire}"
                    );
                }
            }
        }
    }
    for ((port, output), sums) in circuit.outputs.iter().zip(&outputs).zip(&sums) {
        if port.reduce == Reduce::Sum {
            let column = ring.bytes(1) as usize;
            let got: Vec<u128> = output
                .chunks_exact(column)
                .map(|column| element(ring, column, 0))
                .collect();
            assert_eq!(&got, sums, "sum of {}", port.name);
        } else {
            assert_eq!(
                output.len() as u64,
                port.value_width(circuit.clock.cycles) * ring.bytes(rows)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_batch_is_its_rows(
        (circuit, seed) in rings().prop_flat_map(|ring| (circuits(ring, 40), any::<u64>())),
        rows in prop_oneof![0u64..20, 60u64..70, Just(511), Just(512), Just(513), 1000u64..1100],
    ) {
        check(&circuit, rows, seed);
    }

    #[test]
    fn a_batch_of_a_sequential_circuit_is_its_rows(
        circuit in sequential(30),
        seed in any::<u64>(),
        rows in prop_oneof![0u64..20, Just(512), Just(513)],
    ) {
        check(&circuit, rows, seed);
    }

    /// What cycles mean, by a circuit that has none.
    #[test]
    fn a_sequential_circuit_is_what_it_is_unrolled(circuit in sequential(30), pool in any::<u128>()) {
        let flat = unrolled(&circuit);
        prop_assert_eq!(circuit.validate(), Ok(()));
        prop_assert_eq!(flat.validate(), Ok(()));
        prop_assert!(!flat.is_sequential());
        let inputs = values(&circuit, pool);
        prop_assert_eq!(circuit.evaluate(&inputs), flat.evaluate(&inputs));
    }
}

/// Bits for all ports, over all cycles.
fn values(circuit: &Circuit, pool: u128) -> Vec<Vec<u128>> {
    let mut bits = (0..128).map(|k| pool >> k & 1).cycle();
    let ports = circuit.inputs.iter();
    let widths = ports.map(|port| port.value_width(circuit.clock.cycles));
    widths
        .map(|width| bits.by_ref().take(width as usize).collect())
        .collect()
}

#[test]
fn padding_is_zero() {
    let circuit = make("eq:3").expect("a name of the catalogue");
    for rows in 1..=17u64 {
        let same = vec![0xff; 3 * rows.div_ceil(8) as usize];
        let out = circuit
            .evaluate_batch(rows, &[&same, &same])
            .expect("inputs of the right size");
        let ones: u32 = out[0].iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(u64::from(ones), rows);
    }
}

#[test]
fn rings_wrap() {
    for (ring, modulus_less_1) in [(Ring::Z64, u128::from(u64::MAX)), (Ring::Z128, u128::MAX)] {
        let circuit = Circuit {
            ring,
            inputs: vec![InputPort {
                name: "x".into(),
                width: 2,
                per: Per::Row,
                bits: false,
            }],
            gates: vec![
                Gate::Add(Wire(0), Wire(1)),
                Gate::Sub(Wire(1), Wire(0)),
                Gate::Mul(Wire(0), Wire(0)),
                Gate::Plus(Wire(0), 2),
                Gate::Times(Wire(0), 3),
            ],
            outputs: vec![OutputPort {
                name: "z".into(),
                wires: (2..7).map(Wire).collect(),
                reduce: Reduce::None,
            }],
            clock: veil_circuit::Clock::default(),
        };
        let out = circuit
            .evaluate(&[vec![modulus_less_1, 1]])
            .expect("inputs of the right size");
        // -1 + 1, 1 - -1, (-1)², -1 + 2, 3 · -1.
        assert_eq!(out, [[0, 2, 1, 1, modulus_less_1 - 2]]);
    }
}

#[test]
fn wrong_inputs_are_refused() {
    let circuit = make("adder:4").expect("a name of the catalogue");
    let row = |inputs: &[Vec<u128>]| {
        circuit
            .evaluate(inputs)
            .expect_err("wrong inputs")
            .to_string()
    };
    let batch = |inputs: &[&[u8]]| {
        circuit
            .evaluate_batch(9, inputs)
            .expect_err("wrong inputs")
            .to_string()
    };
    let ports =
        "the circuit has 2 input ports, but 1 inputs were given; give one for each port, in order";
    assert_eq!(row(&[vec![0; 4]]), ports);
    assert_eq!(batch(&[&[0; 8]]), ports);
    assert_eq!(
        row(&[vec![0; 4], vec![0; 5]]),
        "input `y` needs 4 elements, but 5 were given"
    );
    assert_eq!(
        batch(&[&[0; 8], &[0; 7]]),
        "input `y` needs 8 bytes, but 7 were given"
    );
    assert_eq!(
        row(&[vec![0; 4], vec![0, 0, 2, 0]]),
        "element 2 of input `y` is 2, which is not an element of Z_2; reduce it first"
    );
}
