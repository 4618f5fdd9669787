//! The name of a circuit that all parties compare.

use sha2::{Digest, Sha256};
use veil_math::Ring;

use crate::{Circuit, Clock, Gate, Initial, InputPort, OutputPort, Per, Reduce, Register};

// Changes whenever the encoding does, so that two versions never agree on a hash by accident.
const DOMAIN: &[u8] = b"veilworks circuit 1\0";

impl Circuit {
    /// SHA-256 over a canonical encoding of all that the circuit says; part of every plan hash.
    ///
    /// Two circuits have one hash exactly if they are equal, names and gate order included. The encoding: the domain `veilworks circuit
    /// 1\0`, the ring's bits (u8), then input ports, gates and output ports, each list preceded by its length (u64). Integers are
    /// little-endian. An input port is its name (length u64, bytes), width (u32) and `per` (u8: 0 row, 1 job, 2 cycle, 3 a bit in every row of a circuit over integers); a gate is a tag
    /// (u8: 0 add, 1 sub, 2 mul, 3 plus, 4 times, 5 constant, 6 bit, 7 lift, 8 constant bit, 9 is zero, 10 shift right, 11 random, 12
    /// random bit, 13 probabilistic truncation, 14 append), its operands (u32 each) and its constant, its number or the number of bits that
    /// it says (u128; of a truncation the bits that go, plus 2^32 times the bits of the operand); an output port is its name, wires (length
    /// u64, u32 each) and reduction (u8: 0 none, 1 sum, 2 every cycle). If the circuit is sequential, the number of its cycles (u64)
    /// follows, and the list of its registers: `next` (u32), a tag (u8: 0 and 1 these constants, 2 a wire) and that wire (u32).
    pub fn canonical_hash(&self) -> [u8; 32] {
        // Every field of everything, so that one that is added does not compile until it is hashed.
        let Circuit {
            ring,
            inputs,
            gates,
            outputs,
            clock,
        } = self;
        let mut hash = Sink(Sha256::new(), Vec::with_capacity(BUFFER + 64));
        hash.bytes(DOMAIN);
        hash.bytes(&[match ring {
            Ring::Bits => 1,
            Ring::Z32 => 32,
            Ring::Z64 => 64,
            Ring::Z128 => 128,
        }]);
        hash.length(inputs.len());
        for InputPort {
            name,
            width,
            per,
            bits,
        } in inputs
        {
            hash.text(name);
            hash.bytes(&width.to_le_bytes());
            hash.bytes(&[match (per, bits) {
                (Per::Row, false) => 0,
                (Per::Job, _) => 1,
                (Per::Cycle, _) => 2,
                (Per::Row, true) => 3,
            }]);
        }
        hash.length(gates.len());
        for gate in gates {
            hash.gate(gate);
        }
        hash.length(outputs.len());
        for OutputPort {
            name,
            wires,
            reduce,
        } in outputs
        {
            hash.text(name);
            hash.length(wires.len());
            for wire in wires {
                hash.bytes(&wire.0.to_le_bytes());
            }
            hash.bytes(&[match reduce {
                Reduce::None => 0,
                Reduce::Sum => 1,
                Reduce::EveryCycle => 2,
            }]);
        }
        if self.is_sequential() {
            let Clock { cycles, registers } = clock;
            hash.bytes(&cycles.to_le_bytes());
            hash.length(registers.len());
            for Register { next, initial } in registers {
                hash.bytes(&next.0.to_le_bytes());
                match initial {
                    Initial::Constant(bit) => hash.bytes(&[(*bit).into()]),
                    Initial::Wire(wire) => {
                        hash.bytes(&[2]);
                        hash.bytes(&wire.0.to_le_bytes());
                    }
                }
            }
        }
        hash.finish()
    }
}

// Feeding the hash a few bytes at a time costs more than hashing them.
const BUFFER: usize = 4096;

struct Sink(Sha256, Vec<u8>);

impl Sink {
    fn bytes(&mut self, bytes: &[u8]) {
        self.1.extend_from_slice(bytes);
        if self.1.len() >= BUFFER {
            self.0.update(&self.1);
            self.1.clear();
        }
    }

    fn length(&mut self, length: usize) {
        self.bytes(&(length as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes(text.as_bytes());
    }

    fn gate(&mut self, gate: &Gate) {
        let (tag, constant) = match *gate {
            Gate::Add(..) => (0, None),
            Gate::Sub(..) => (1, None),
            Gate::Mul(..) => (2, None),
            Gate::Plus(_, c) => (3, Some(c)),
            Gate::Times(_, c) => (4, Some(c)),
            Gate::Constant(c) => (5, Some(c)),
            Gate::Bit(_, j) => (6, Some(j.into())),
            Gate::Lift(_) => (7, None),
            Gate::ConstantBit(c) => (8, Some(c.into())),
            Gate::IsZero(_, bits) => (9, Some(bits.into())),
            Gate::ShiftRight { by, bits, .. } => {
                (10, Some(u128::from(bits) << 32 | u128::from(by)))
            }
            Gate::Random(number) => (11, Some(number.into())),
            Gate::RandomBit(number) => (12, Some(number.into())),
            Gate::TruncatePr { by, bits, .. } => {
                (13, Some(u128::from(bits) << 32 | u128::from(by)))
            }
            Gate::Append(..) => (14, None),
        };
        self.bytes(&[tag]);
        for operand in gate.operands() {
            self.bytes(&operand.0.to_le_bytes());
        }
        if let Some(constant) = constant {
            self.bytes(&constant.to_le_bytes());
        }
    }

    fn finish(mut self) -> [u8; 32] {
        self.0.update(&self.1);
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wire;

    fn sample() -> Circuit {
        Circuit {
            ring: Ring::Z64,
            inputs: vec![
                InputPort {
                    name: "x".into(),
                    width: 2,
                    per: Per::Row,
                    bits: false,
                },
                InputPort {
                    name: "key".into(),
                    width: 1,
                    per: Per::Job,
                    bits: false,
                },
            ],
            gates: vec![
                Gate::Sub(Wire(0), Wire(2)),
                Gate::Times(Wire(3), 258),
                Gate::Constant(7),
            ],
            outputs: vec![OutputPort {
                name: "s".into(),
                wires: vec![Wire(5), Wire(4)],
                reduce: Reduce::Sum,
            }],
            clock: Clock::default(),
        }
    }

    #[test]
    fn the_encoding_is_as_documented() {
        let mut want = b"veilworks circuit 1\0\x40".to_vec();
        want.extend(b"\x02\0\0\0\0\0\0\0");
        want.extend(b"\x01\0\0\0\0\0\0\0x\x02\0\0\0\x00");
        want.extend(b"\x03\0\0\0\0\0\0\0key\x01\0\0\0\x01");
        want.extend(b"\x03\0\0\0\0\0\0\0");
        want.extend(b"\x01\0\0\0\0\x02\0\0\0");
        want.extend(b"\x04\x03\0\0\0\x02\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        want.extend(b"\x05\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        want.extend(b"\x01\0\0\0\0\0\0\0");
        want.extend(b"\x01\0\0\0\0\0\0\0s\x02\0\0\0\0\0\0\0\x05\0\0\0\x04\0\0\0\x01");
        let want: [u8; 32] = Sha256::digest(&want).into();
        assert_eq!(sample().canonical_hash(), want);
    }

    #[test]
    fn the_encoding_of_cycles_is_as_documented() {
        let mut circuit = sample();
        circuit.ring = Ring::Bits;
        circuit.gates = vec![];
        circuit.inputs.truncate(1);
        circuit.inputs[0].per = Per::Cycle;
        circuit.outputs[0].reduce = Reduce::EveryCycle;
        circuit.clock = Clock {
            registers: [Initial::Constant(true), Initial::Wire(Wire(1))]
                .map(|initial| Register {
                    initial,
                    next: Wire(3),
                })
                .to_vec(),
            cycles: 258,
        };
        let mut want = b"veilworks circuit 1\0\x01".to_vec();
        want.extend(b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0x\x02\0\0\0\x02");
        want.extend(b"\0\0\0\0\0\0\0\0");
        want.extend(
            b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0s\x02\0\0\0\0\0\0\0\x05\0\0\0\x04\0\0\0\x02",
        );
        want.extend(b"\x02\x01\0\0\0\0\0\0\x02\0\0\0\0\0\0\0");
        want.extend(b"\x03\0\0\0\x01\x03\0\0\0\x02\x01\0\0\0");
        let want: [u8; 32] = Sha256::digest(&want).into();
        assert_eq!(circuit.canonical_hash(), want);
    }

    #[test]
    fn every_part_counts() {
        let truncated = |by, bits| Gate::TruncatePr {
            of: Wire(0),
            by,
            bits,
        };
        let register = |bit, next| Register {
            initial: Initial::Constant(bit),
            next: Wire(next),
        };
        let held = Register {
            initial: Initial::Wire(Wire(0)),
            next: Wire(0),
        };
        let changes: [&dyn Fn(&mut Circuit); 29] = [
            &|c| c.clock.cycles = 2,
            &|c| c.clock.cycles = 3,
            &|c| c.clock.registers = vec![register(false, 0)],
            &|c| c.clock.registers = vec![register(true, 0)],
            &|c| c.clock.registers = vec![register(true, 1)],
            &|c| c.clock.registers = vec![held],
            &|c| c.inputs[0].per = Per::Cycle,
            &|c| c.outputs[0].reduce = Reduce::EveryCycle,
            &|c| c.ring = Ring::Z128,
            &|c| c.gates[0] = Gate::Bit(Wire(0), 1),
            &|c| c.gates[0] = Gate::Bit(Wire(0), 2),
            &|c| c.gates[0] = Gate::Lift(Wire(0)),
            &|c| c.gates[0] = Gate::IsZero(Wire(0), 1),
            &|c| {
                c.gates[0] = Gate::ShiftRight {
                    of: Wire(0),
                    by: 1,
                    bits: 64,
                }
            },
            &|c| c.gates[0] = truncated(1, 2),
            &|c| c.gates[0] = truncated(2, 1),
            &|c| c.gates[0] = Gate::Append(Wire(0), Wire(2)),
            &|c| c.gates[2] = Gate::Random(7),
            &|c| c.gates[2] = Gate::Random(8),
            &|c| c.gates[2] = Gate::RandomBit(7),
            &|c| c.gates[2] = Gate::ConstantBit(true),
            &|c| c.inputs[0].name = "y".into(),
            &|c| c.inputs[0].per = Per::Job,
            &|c| c.inputs.swap(0, 1),
            &|c| c.gates[0] = Gate::Add(Wire(0), Wire(2)),
            &|c| c.gates[1] = Gate::Times(Wire(3), 257),
            &|c| c.outputs[0].name = "t".into(),
            &|c| c.outputs[0].wires.swap(0, 1),
            &|c| c.outputs[0].reduce = Reduce::None,
        ];
        let mut seen = vec![sample().canonical_hash()];
        for change in changes {
            let mut circuit = sample();
            change(&mut circuit);
            let hash = circuit.canonical_hash();
            assert!(!seen.contains(&hash));
            seen.push(hash);
        }
    }
}
