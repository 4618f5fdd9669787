//! Random circuits.

use proptest::prelude::*;
use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_math::Ring;

/// Any ring.
pub(crate) fn rings() -> impl Strategy<Value = Ring> {
    prop_oneof![Just(Ring::Bits), Just(Ring::Z64), Just(Ring::Z128)]
}

/// Valid circuits of up to `size` gates of every kind, rich in repeats, constants and long paths.
pub(crate) fn circuits(ring: Ring, size: usize) -> impl Strategy<Value = Circuit> {
    let constant = prop_oneof![Just(0), Just(1), Just(u128::MAX), any::<u128>()];
    let gate = (0..8u8, any::<u32>(), any::<u32>(), constant);
    let inputs = prop::collection::vec((1..4u32, any::<bool>()), 1..4);
    let outputs = prop::collection::vec(
        (prop::collection::vec(any::<u32>(), 1..6), any::<bool>()),
        1..4,
    );
    (inputs, prop::collection::vec(gate, 0..size), outputs).prop_map(
        move |(inputs, gates, outputs)| {
            let inputs: Vec<_> = (0..)
                .zip(inputs)
                .map(|(number, (width, job)): (u32, _)| InputPort {
                    name: format!("in{number}"),
                    width,
                    per: if job { Per::Job } else { Per::Row },
                })
                .collect();
            let mut wires: u32 = inputs.iter().map(|port| port.width).sum();
            let gates = gates
                .into_iter()
                .map(|(kind, a, b, constant)| {
                    let earlier = wires;
                    wires += 1;
                    // Near wires make long paths, far ones make sharing.
                    let near = |number: u32| Wire(earlier - 1 - number % earlier.min(4));
                    let far = |number: u32| Wire(number % earlier);
                    let constant = ring.reduce(constant);
                    match kind {
                        0 => Gate::Add(near(a), far(b)),
                        1 => Gate::Sub(far(a), near(b)),
                        2 => Gate::Mul(near(a), far(b)),
                        3 => Gate::Mul(far(a), near(b)),
                        4 => Gate::Mul(near(a), near(b)),
                        5 => Gate::Plus(near(a), constant),
                        6 => Gate::Times(near(a), constant),
                        _ => Gate::Constant(constant),
                    }
                })
                .collect();
            let outputs = (0..)
                .zip(outputs)
                .map(|(number, (from, sum)): (u32, _)| OutputPort {
                    name: format!("out{number}"),
                    wires: from
                        .into_iter()
                        .map(|number| Wire(number % wires))
                        .collect(),
                    reduce: if sum && ring != Ring::Bits {
                        Reduce::Sum
                    } else {
                        Reduce::None
                    },
                })
                .collect();
            Circuit {
                ring,
                inputs,
                gates,
                outputs,
            }
        },
    )
}
