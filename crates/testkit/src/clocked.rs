//! Random sequential circuits: what a protocol is tried on whose layers are repeated.

use veil_circuit::{
    Circuit, Clock, Gate, Initial, InputPort, OutputPort, Per, Reduce, Register, Wire,
};
use veil_math::Ring;

use crate::{Numbers, Seed};

/// A sequential circuit of bits with the input ports `x` and `y`, which have a value in every cycle, `start` with one per row and `key` with
/// one per job, and the output ports `each`, of every cycle, and `last`.
///
/// Registers begin as constants and as inputs. Some are rings and chains of registers, one holds its value, others take what gates compute;
/// some circuits have one, some have none, and some have no gates.
pub fn clocked(seed: Seed) -> Circuit {
    let mut draw = Draw(seed.numbers("clocked"));
    let port = |name: &str, width, per| InputPort {
        name: name.into(),
        width,
        per,
        bits: false,
    };
    let widths = [(); 4].map(|()| 1 + draw.below(4));
    let inputs = vec![
        port("x", widths[0], Per::Cycle),
        port("start", widths[1], Per::Row),
        port("y", widths[2], Per::Cycle),
        port("key", widths[3], Per::Job),
    ];
    let ports: u32 = widths.iter().sum();
    let steady: Vec<Wire> = (widths[0]..widths[0] + widths[1])
        .chain(ports - widths[3]..ports)
        .map(Wire)
        .collect();
    let registers = match draw.below(8) {
        0 => 0,
        1 => 1,
        _ => 2 + draw.below(12),
    };
    let count = if draw.below(8) == 0 {
        0
    } else {
        draw.below(60)
    };
    let sources = ports + registers;
    let gates: Vec<Gate> = (0..count)
        .map(|gate| {
            let earlier = sources + gate;
            // Near wires make long paths.
            let a = Wire(earlier - 1 - draw.below(earlier.min(6)));
            let b = Wire(draw.below(earlier));
            match draw.below(8) {
                0..3 => Gate::Mul(a, b),
                3..6 => Gate::Add(a, b),
                6 => Gate::Plus(a, 1),
                _ => Gate::Constant(u128::from(draw.below(2))),
            }
        })
        .collect();
    let wires = sources + count;
    let ring = |k: u32, by| Wire(ports + (k + by) % registers);
    let registers = (0..registers).map(|k| Register {
        initial: match draw.below(3) {
            0 => Initial::Wire(steady[draw.below(steady.len() as u32) as usize]),
            bit => Initial::Constant(bit == 1),
        },
        next: match draw.below(5) {
            // The one before it, or itself; any wire.
            0 => ring(k, registers - 1),
            1 => ring(k, draw.below(registers)),
            _ => Wire(draw.below(wires)),
        },
    });
    let registers = registers.collect();
    let mut output = |name: &str, reduce| OutputPort {
        name: name.into(),
        wires: (0..=draw.below(5))
            .map(|_| Wire(wires - 1 - draw.below(wires.min(20))))
            .collect(),
        reduce,
    };
    let outputs = vec![
        output("each", Reduce::EveryCycle),
        output("last", Reduce::None),
    ];
    Circuit {
        ring: Ring::Bits,
        inputs,
        gates,
        outputs,
        clock: Clock {
            registers,
            cycles: 1 + u64::from(draw.below(9)),
        },
    }
}

struct Draw(Numbers);

impl Draw {
    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: u32) -> u32 {
        (self.0.next_u128() % u128::from(bound)) as u32
    }
}
