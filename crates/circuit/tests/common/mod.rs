//! Random circuits.

pub(crate) mod numbers;

use proptest::prelude::*;
use veil_circuit::{
    Circuit, Clock, Gate, Initial, InputPort, OutputPort, Per, Reduce, Register, Wire,
};
use veil_math::Ring;

/// Any ring.
#[allow(dead_code, reason = "not every test is about all rings")]
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
                    bits: false,
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
                clock: Clock::default(),
            }
        },
    )
}

/// Valid sequential circuits of bits: up to `size` gates, registers that begin as constants and inputs, and rings, chains and stars of them.
pub(crate) fn sequential(size: usize) -> impl Strategy<Value = Circuit> {
    let register = (0..4u8, any::<u32>(), any::<u32>());
    let ports = prop::collection::vec((any::<bool>(), any::<bool>()), 4);
    (
        circuits(Ring::Bits, size),
        prop::collection::vec(register, 0..7),
        ports,
        1..7u64,
    )
        .prop_map(|(mut circuit, registers, each, cycles)| {
            let (inputs, count) = (circuit.input_wires(), registers.len() as u32);
            let behind = |Wire(wire)| Wire(if wire < inputs { wire } else { wire + count });
            // Wires of gates come behind those of registers; every fourth wire that gates read becomes one.
            let read = |Wire(wire)| match wire {
                _ if wire % 4 == 3 && count > 0 => Wire(inputs + wire / 4 % count),
                _ => behind(Wire(wire)),
            };
            for gate in &mut circuit.gates {
                *gate = gate.map_operands(read);
            }
            for wire in circuit.outputs.iter_mut().flat_map(|port| &mut port.wires) {
                *wire = read(*wire);
            }
            for (port, (each, _)) in circuit.inputs.iter_mut().zip(&each) {
                if *each {
                    port.per = Per::Cycle;
                }
            }
            for (port, (_, each)) in circuit.outputs.iter_mut().zip(&each) {
                if *each {
                    port.reduce = Reduce::EveryCycle;
                }
            }
            let steady: Vec<Wire> = (circuit.inputs.iter())
                .flat_map(|port| (0..port.width).map(move |_| port.per))
                .zip(0..)
                .filter(|(per, _)| *per != Per::Cycle)
                .map(|(_, wire)| Wire(wire))
                .collect();
            let wires = inputs + count + circuit.gates.len() as u32;
            let register = |(k, (kind, from, next)): (u32, (u8, u32, u32))| Register {
                initial: match kind {
                    2.. if !steady.is_empty() => {
                        Initial::Wire(steady[from as usize % steady.len()])
                    }
                    _ => Initial::Constant(kind % 2 == 1),
                },
                next: match from % 4 {
                    // The one before it, round the ring; any of them; any wire.
                    0 => Wire(inputs + (k + count - 1) % count),
                    1 => Wire(inputs + next % count),
                    _ => Wire(next % wires),
                },
            };
            circuit.clock = Clock {
                registers: (0..).zip(registers).map(register).collect(),
                cycles,
            };
            circuit
        })
}

/// The same function without a clock: its gates once for every cycle. A port with a value in every cycle has wires for all of them.
#[allow(dead_code, reason = "not every test that has these circuits needs it")]
pub(crate) fn unrolled(circuit: &Circuit) -> Circuit {
    let cycles = circuit.clock.cycles;
    let mut flat = Circuit {
        clock: Clock::default(),
        gates: vec![],
        ..circuit.clone()
    };
    let mut first = Vec::new();
    let mut next = 0;
    for (k, port) in flat.inputs.iter_mut().enumerate() {
        port.width = circuit.input_width(k) as u32;
        port.per = if port.per == Per::Job {
            Per::Job
        } else {
            Per::Row
        };
        first.push(next);
        next += port.width;
    }
    for port in &mut flat.outputs {
        port.wires.clear();
        port.reduce = Reduce::None;
    }
    let mut state: Vec<Wire> = Vec::new();
    for cycle in 0..cycles as u32 {
        let mut now = Vec::new();
        for (port, first) in circuit.inputs.iter().zip(&first) {
            let skip = if port.per == Per::Cycle {
                cycle * port.width
            } else {
                0
            };
            now.extend((0..port.width).map(|k| Wire(first + skip + k)));
        }
        for (k, register) in circuit.clock.registers.iter().enumerate() {
            let wire = match register.initial {
                _ if cycle > 0 => state[k],
                Initial::Wire(wire) => now[wire.0 as usize],
                Initial::Constant(bit) => {
                    flat.gates.push(Gate::Constant(bit.into()));
                    flat.gate_wire(flat.gates.len() - 1)
                }
            };
            now.push(wire);
        }
        for gate in &circuit.gates {
            flat.gates
                .push(gate.map_operands(|wire| now[wire.0 as usize]));
            now.push(flat.gate_wire(flat.gates.len() - 1));
        }
        let at = |wire: &Wire| now[wire.0 as usize];
        state = circuit
            .clock
            .registers
            .iter()
            .map(|r| at(&r.next))
            .collect();
        for (port, out) in circuit.outputs.iter().zip(&mut flat.outputs) {
            if port.reduce == Reduce::EveryCycle || u64::from(cycle) + 1 == cycles {
                out.wires.extend(port.wires.iter().map(at));
            }
        }
    }
    flat
}
