//! Which circuits are well formed.

use std::collections::HashSet;

use veil_math::Ring;

use crate::{Circuit, Gate, Reduce, Wire};

/// The largest circuit that a reader accepts. Checked before anything of that size is allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Gates in all.
    pub gates: u64,
    /// Wires in all, inputs included.
    pub wires: u64,
    /// Input ports, and output ports.
    pub ports: u64,
    /// Output wires over all ports: these may repeat, so `wires` does not bound them.
    pub output_wires: u64,
}

impl Default for Limits {
    /// Sixteen million gates: a hundred SHA-256 compressions, in half a gigabyte of memory.
    fn default() -> Self {
        Self {
            gates: 1 << 24,
            wires: 1 << 25,
            ports: 1 << 10,
            output_wires: 1 << 24,
        }
    }
}

/// Why a circuit is not well formed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CircuitError {
    /// Larger than the limits.
    #[error(
        "the circuit has {found} {what}, and the limit is {limit}; split it, or raise the limit at every party"
    )]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// A gate reads a wire that no earlier gate drives.
    #[error(
        "gate {gate} drives wire {own} and reads wire {operand}; a gate may only read wires of smaller number"
    )]
    ForwardReference {
        /// Index of the gate.
        gate: usize,
        /// The wire that it drives.
        own: u32,
        /// The wire that it reads.
        operand: u32,
    },
    /// A constant is not an element of the ring.
    #[error("gate {gate} has the constant {value}, which is not an element of {}; reduce it first", ring.name())]
    ConstantOutsideRing {
        /// Index of the gate.
        gate: usize,
        /// The constant.
        value: u128,
        /// The ring of the circuit.
        ring: Ring,
    },
    /// Operands of one gate are an integer and a bit.
    #[error(
        "gate {gate} reads wire {operand}, which is {}; {}",
        if *bit { "a bit" } else { "an integer" },
        if *bit { "lift it first" } else { "take one of its bits" }
    )]
    OtherRing {
        /// Index of the gate.
        gate: usize,
        /// The wire that it reads.
        operand: u32,
        /// Whether that is a bit where an integer is needed, or the other way round.
        bit: bool,
    },
    /// A bit beyond the ring.
    #[error("gate {gate} reads bit {bit} of an integer, and bits of {} are 0 to {}", ring.name(), ring.bits() - 1)]
    NoSuchBit {
        /// Index of the gate.
        gate: usize,
        /// The bit.
        bit: u32,
        /// The ring of the circuit.
        ring: Ring,
    },
    /// A conversion in a circuit that has no integers.
    #[error(
        "gate {gate} converts between integers and bits; this is a circuit of bits, where nothing is to be converted"
    )]
    NoIntegers {
        /// Index of the gate.
        gate: usize,
    },
    /// Outputs are integers.
    #[error(
        "output `{port}` names wire {wire}, which is a bit, and this circuit puts out integers; lift the bit first"
    )]
    OutputOfBits {
        /// Name of the port.
        port: String,
        /// The wire that it names.
        wire: u32,
    },
    /// An output names a wire that does not exist.
    #[error("output `{port}` names wire {wire}, but the circuit has {wires} wires")]
    OutputMissing {
        /// Name of the port.
        port: String,
        /// The wire that it names.
        wire: u32,
        /// Wires in the circuit.
        wires: u64,
    },
    /// Nothing would be computed.
    #[error("the circuit has no outputs; name at least one")]
    NoOutputs,
    /// A port without wires.
    #[error("port `{port}` has no wires; give it a width, or leave it out")]
    EmptyPort {
        /// Name of the port.
        port: String,
    },
    /// A port without a name, or with one that files and reports cannot show.
    #[error(
        "port name {name:?} is empty, longer than 255 bytes or has control characters; rename the port"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// Two input ports or two output ports have one name.
    #[error("two {direction} ports are called `{name}`; rename one")]
    DuplicateName {
        /// `input` or `output`.
        direction: &'static str,
        /// The name.
        name: String,
    },
    /// Summing bits modulo 2 is hardly ever meant.
    #[error(
        "output `{port}` is summed over the rows, which needs a ring of integers; this is a circuit of bits"
    )]
    SumOfBits {
        /// Name of the port.
        port: String,
    },
}

impl Circuit {
    /// Checks everything that later stages rely on, against the default [`Limits`].
    ///
    /// Operands come before the gates that read them and are of one ring, constants are elements of it, outputs exist and are of
    /// the circuit's ring, ports have wires and distinct printable names, sums are over rings of integers, and sizes are within
    /// the limits.
    /// Every other method of a circuit may panic if this one fails.
    pub fn validate(&self) -> Result<(), CircuitError> {
        self.validate_within(&Limits::default())
    }

    /// [`Circuit::validate`] with limits of the caller's choice.
    pub fn validate_within(&self, limits: &Limits) -> Result<(), CircuitError> {
        // u64 sums of at most 2^64 / 2^32 ports: no overflow for anything that fits memory.
        let inputs: u64 = self.inputs.iter().map(|port| u64::from(port.width)).sum();
        let wires = inputs + self.gates.len() as u64;
        let output_wires: u64 = self
            .outputs
            .iter()
            .map(|port| port.wires.len() as u64)
            .sum();
        within("input ports", self.inputs.len() as u64, limits.ports)?;
        within("output ports", self.outputs.len() as u64, limits.ports)?;
        within("gates", self.gates.len() as u64, limits.gates)?;
        within("wires", wires, limits.wires.min(u64::from(u32::MAX)))?;
        within("output wires", output_wires, limits.output_wires)?;

        check_names("input", self.inputs.iter().map(|port| port.name.as_str()))?;
        check_names("output", self.outputs.iter().map(|port| port.name.as_str()))?;
        if let Some(port) = self.inputs.iter().find(|port| port.width == 0) {
            return Err(CircuitError::EmptyPort {
                port: port.name.clone(),
            });
        }
        let rings = self.validate_gates(inputs as u32)?;
        self.validate_outputs(&rings)
    }

    /// The ring of every wire.
    fn validate_gates(&self, inputs: u32) -> Result<Vec<Ring>, CircuitError> {
        let mut rings = vec![self.ring; inputs as usize];
        rings.reserve(self.gates.len());
        for (gate, (own, kind)) in (inputs..).zip(&self.gates).enumerate() {
            if let Some(Wire(operand)) = kind.operands().find(|operand| operand.0 >= own) {
                return Err(CircuitError::ForwardReference { gate, own, operand });
            }
            let of = |wire: Wire| rings[wire.0 as usize];
            let ring = kind.ring(self.ring, of);
            if let Gate::Plus(_, value) | Gate::Times(_, value) | Gate::Constant(value) = *kind
                && ring.reduce(value) != value
            {
                return Err(CircuitError::ConstantOutsideRing { gate, value, ring });
            }
            self.validate_rings(gate, kind, of)?;
            rings.push(ring);
        }
        Ok(rings)
    }

    /// What a gate reads is of the ring that it needs.
    fn validate_rings(
        &self,
        gate: usize,
        kind: &Gate,
        of: impl Fn(Wire) -> Ring,
    ) -> Result<(), CircuitError> {
        if kind.converts() && self.ring == Ring::Bits {
            return Err(CircuitError::NoIntegers { gate });
        }
        let needed = match *kind {
            Gate::Bit(_, bit) | Gate::ShiftRight(_, bit) if bit >= self.ring.bits() => {
                let ring = self.ring;
                return Err(CircuitError::NoSuchBit { gate, bit, ring });
            }
            // All bits of an integer may be none.
            Gate::IsZero(_, bits) if bits == 0 || bits > self.ring.bits() => {
                let ring = self.ring;
                return Err(CircuitError::NoSuchBit {
                    gate,
                    bit: bits,
                    ring,
                });
            }
            Gate::Bit(..) | Gate::IsZero(..) | Gate::ShiftRight(..) => Some(self.ring),
            Gate::Lift(_) => Some(Ring::Bits),
            _ => kind.operands().next().map(&of),
        };
        match kind.operands().find(|wire| Some(of(*wire)) != needed) {
            Some(wire) => Err(CircuitError::OtherRing {
                gate,
                operand: wire.0,
                bit: of(wire) == Ring::Bits,
            }),
            None => Ok(()),
        }
    }

    fn validate_outputs(&self, rings: &[Ring]) -> Result<(), CircuitError> {
        if self.outputs.is_empty() {
            return Err(CircuitError::NoOutputs);
        }
        for port in &self.outputs {
            let name = || port.name.clone();
            if port.wires.is_empty() {
                return Err(CircuitError::EmptyPort { port: name() });
            }
            if port.reduce == Reduce::Sum && self.ring == Ring::Bits {
                return Err(CircuitError::SumOfBits { port: name() });
            }
            for &Wire(wire) in &port.wires {
                match rings.get(wire as usize) {
                    None => {
                        return Err(CircuitError::OutputMissing {
                            port: name(),
                            wire,
                            wires: rings.len() as u64,
                        });
                    }
                    Some(ring) if *ring != self.ring => {
                        return Err(CircuitError::OutputOfBits { port: name(), wire });
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}

fn within(what: &'static str, found: u64, limit: u64) -> Result<(), CircuitError> {
    if found > limit {
        Err(CircuitError::TooLarge { what, found, limit })
    } else {
        Ok(())
    }
}

fn check_names<'a>(
    direction: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), CircuitError> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
            return Err(CircuitError::BadName {
                name: name.to_owned(),
            });
        }
        if !seen.insert(name) {
            return Err(CircuitError::DuplicateName {
                direction,
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputPort, OutputPort, Per};

    fn and() -> Circuit {
        Circuit {
            ring: Ring::Bits,
            inputs: vec![InputPort {
                name: "a".into(),
                width: 2,
                per: Per::Row,
            }],
            gates: vec![Gate::Mul(Wire(0), Wire(1)), Gate::Plus(Wire(2), 1)],
            outputs: vec![OutputPort {
                name: "z".into(),
                wires: vec![Wire(3)],
                reduce: Reduce::None,
            }],
        }
    }

    type Change<'a> = &'a dyn Fn(&mut Circuit);

    fn refusal(change: impl Fn(&mut Circuit)) -> String {
        let mut circuit = and();
        circuit.validate().expect("the unchanged circuit is fine");
        change(&mut circuit);
        circuit
            .validate()
            .expect_err("the change must be noticed")
            .to_string()
    }

    #[test]
    fn each_broken_rule_is_named() {
        let cases: [(&str, Change); 13] = [
            (
                "gate 0 drives wire 2 and reads wire 2; a gate may only read wires of smaller number",
                &|c| {
                    c.gates[0] = Gate::Mul(Wire(0), Wire(2));
                },
            ),
            (
                "gate 1 drives wire 3 and reads wire 4294967295; a gate may only read wires of smaller number",
                &|c| {
                    c.gates[1] = Gate::Plus(Wire(u32::MAX), 1);
                },
            ),
            (
                "gate 1 has the constant 2, which is not an element of Z_2; reduce it first",
                &|c| {
                    c.gates[1] = Gate::Times(Wire(0), 2);
                },
            ),
            (
                "gate 1 has the constant 3, which is not an element of Z_2; reduce it first",
                &|c| {
                    c.gates[1] = Gate::Constant(3);
                },
            ),
            (
                "output `z` names wire 4, but the circuit has 4 wires",
                &|c| c.outputs[0].wires[0] = Wire(4),
            ),
            ("the circuit has no outputs; name at least one", &|c| {
                c.outputs.clear();
            }),
            (
                "port `z` has no wires; give it a width, or leave it out",
                &|c| c.outputs[0].wires.clear(),
            ),
            (
                "port `b` has no wires; give it a width, or leave it out",
                &|c| {
                    c.inputs.push(InputPort {
                        name: "b".into(),
                        width: 0,
                        per: Per::Job,
                    });
                },
            ),
            ("two input ports are called `a`; rename one", &|c| {
                let copy = c.inputs[0].clone();
                c.inputs.push(copy);
            }),
            ("two output ports are called `z`; rename one", &|c| {
                let copy = c.outputs[0].clone();
                c.outputs.push(copy);
            }),
            (
                "port name \"\\n\" is empty, longer than 255 bytes or has control characters; rename the port",
                &|c| {
                    c.inputs[0].name = "\n".into();
                },
            ),
            (
                "output `z` is summed over the rows, which needs a ring of integers; this is a circuit of bits",
                &|c| c.outputs[0].reduce = Reduce::Sum,
            ),
            (
                "the circuit has 4294967298 wires, and the limit is 33554432; split it, or raise the limit at every party",
                &|c| {
                    c.inputs[0].width = u32::MAX;
                    c.inputs.push(InputPort {
                        name: "b".into(),
                        width: 1,
                        per: Per::Row,
                    });
                },
            ),
        ];
        for (message, change) in cases {
            assert_eq!(refusal(change), message);
        }
    }

    #[test]
    fn integers_and_bits_are_kept_apart() {
        let good = Circuit {
            ring: Ring::Z64,
            inputs: vec![InputPort {
                name: "x".into(),
                width: 1,
                per: Per::Row,
            }],
            gates: vec![
                Gate::Bit(Wire(0), 63),        // 1
                Gate::ConstantBit(true),       // 2
                Gate::Mul(Wire(1), Wire(2)),   // 3
                Gate::Plus(Wire(3), 1),        // 4
                Gate::Lift(Wire(4)),           // 5
                Gate::Times(Wire(5), 1 << 63), // 6
            ],
            outputs: vec![OutputPort {
                name: "z".into(),
                wires: vec![Wire(6)],
                reduce: Reduce::Sum,
            }],
        };
        assert_eq!(good.validate(), Ok(()));
        assert!(good.is_mixed());
        let (bit, ring) = (Ring::Bits, Ring::Z64);
        assert_eq!(good.rings(), [ring, bit, bit, bit, bit, ring, ring]);
        let cases: [(&str, Change); 11] = [
            (
                "gate 0 reads bit 64 of an integer, and bits of Z_2^64 are 0 to 63",
                &|c| {
                    c.gates[0] = Gate::Bit(Wire(0), 64);
                },
            ),
            (
                "gate 0 reads bit 65 of an integer, and bits of Z_2^64 are 0 to 63",
                &|c| c.gates[0] = Gate::IsZero(Wire(0), 65),
            ),
            (
                "gate 0 reads bit 64 of an integer, and bits of Z_2^64 are 0 to 63",
                &|c| c.gates[0] = Gate::ShiftRight(Wire(0), 64),
            ),
            (
                "gate 2 reads wire 0, which is an integer; take one of its bits",
                &|c| {
                    c.gates[2] = Gate::Mul(Wire(1), Wire(0));
                },
            ),
            ("gate 2 reads wire 1, which is a bit; lift it first", &|c| {
                c.gates[2] = Gate::Add(Wire(0), Wire(1));
            }),
            (
                "gate 3 has the constant 2, which is not an element of Z_2; reduce it first",
                &|c| {
                    c.gates[3] = Gate::Plus(Wire(3), 2);
                },
            ),
            (
                "gate 4 reads wire 0, which is an integer; take one of its bits",
                &|c| {
                    c.gates[4] = Gate::Lift(Wire(0));
                },
            ),
            ("gate 3 reads wire 2, which is a bit; lift it first", &|c| {
                c.gates[3] = Gate::Bit(Wire(2), 0);
            }),
            (
                "output `z` names wire 4, which is a bit, and this circuit puts out integers; lift the bit first",
                &|c| c.outputs[0].wires[0] = Wire(4),
            ),
            (
                "gate 0 converts between integers and bits; this is a circuit of bits, where nothing is to be converted",
                &|c| {
                    c.ring = Ring::Bits;
                    c.gates[0] = Gate::Lift(Wire(0));
                },
            ),
            (
                "gate 0 converts between integers and bits; this is a circuit of bits, where nothing is to be converted",
                &|c| {
                    c.ring = Ring::Bits;
                    c.gates[0] = Gate::ConstantBit(false);
                },
            ),
        ];
        for (message, change) in cases {
            let mut circuit = good.clone();
            change(&mut circuit);
            let refused = circuit.validate().expect_err("it must be noticed");
            assert_eq!(refused.to_string(), message);
        }
    }

    #[test]
    fn limits_hold() {
        let small = |limits: Limits| {
            and()
                .validate_within(&limits)
                .map_err(|error| error.to_string())
        };
        let limits = Limits {
            gates: 2,
            wires: 4,
            ports: 1,
            output_wires: 1,
        };
        assert_eq!(small(limits), Ok(()));
        for (limits, what) in [
            (Limits { gates: 1, ..limits }, "2 gates, and the limit is 1"),
            (Limits { wires: 3, ..limits }, "4 wires, and the limit is 3"),
            (
                Limits { ports: 0, ..limits },
                "1 input ports, and the limit is 0",
            ),
            (
                Limits {
                    output_wires: 0,
                    ..limits
                },
                "1 output wires, and the limit is 0",
            ),
        ] {
            let message = small(limits).expect_err("over the limit");
            assert!(message.contains(what), "{message}");
        }
    }
}
