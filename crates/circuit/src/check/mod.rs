//! Which circuits are well formed.

mod error;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use veil_math::Ring;

pub use error::CircuitError;

use crate::{Circuit, Gate, Initial, Per, Reduce, Register, Wire};

/// The largest circuit that a reader accepts. Checked before anything of that size is allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Gates in all.
    pub gates: u64,
    /// Wires in all, inputs and registers included.
    pub wires: u64,
    /// Input ports, and output ports.
    pub ports: u64,
    /// Output wires over all ports: these may repeat, so `wires` does not bound them.
    pub output_wires: u64,
    /// Cycles of a sequential circuit.
    pub cycles: u64,
    /// Bits of a value, over all cycles if it has some in each.
    pub value_bits: u64,
}

impl Default for Limits {
    /// Sixteen million gates: a hundred SHA-256 compressions, in half a gigabyte of memory.
    fn default() -> Self {
        Self {
            gates: 1 << 24,
            wires: 1 << 25,
            // A number that statistics open is an output port.
            ports: 1 << 14,
            output_wires: 1 << 24,
            cycles: 1 << 32,
            value_bits: 1 << 31,
        }
    }
}

impl Circuit {
    /// Checks everything that later stages rely on, against the default [`Limits`].
    ///
    /// Operands come before the gates that read them and are of one ring, constants are elements of it, outputs exist and are of
    /// the circuit's ring, ports have wires and distinct printable names, sums are over rings of integers, and sizes are within
    /// the limits. Sequential circuits are of bits, draw nothing at random, and have a cycle; a register's next value exists, and
    /// its first one is a constant or one of an input with the same value in all cycles.
    /// Every other method of a circuit may panic if this one fails.
    ///
    /// # Errors
    /// [`CircuitError`] for the first of these rules that the circuit breaks; [`CircuitError::TooLarge`] if it exceeds the
    /// limits.
    pub fn validate(&self) -> Result<(), CircuitError> {
        self.validate_within(&Limits::default())
    }

    /// [`Circuit::validate`] with limits of the caller's choice.
    ///
    /// # Errors
    /// [`CircuitError`] as of [`Circuit::validate`]; [`CircuitError::TooLarge`] if the circuit exceeds `limits`.
    pub fn validate_within(&self, limits: &Limits) -> Result<(), CircuitError> {
        // u64 sums of at most 2^64 / 2^32 ports: no overflow for anything that fits memory.
        let inputs: u64 = self.inputs.iter().map(|port| u64::from(port.width)).sum();
        let registers = self.clock.registers.len() as u64;
        let wires = inputs + registers + self.gates.len() as u64;
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
        within("cycles", self.clock.cycles, limits.cycles)?;
        let cycles = self.clock.cycles;
        let of_inputs = self.inputs.iter().map(|port| port.value_width(cycles));
        let of_outputs = self.outputs.iter().map(|port| port.value_width(cycles));
        let widest = of_inputs.chain(of_outputs).max().unwrap_or(0);
        within(
            "bits of a value over all cycles",
            widest,
            limits.value_bits.max(limits.wires),
        )?;

        check_names("input", self.inputs.iter().map(|port| port.name.as_str()))?;
        check_names("output", self.outputs.iter().map(|port| port.name.as_str()))?;
        if let Some(port) = self.inputs.iter().find(|port| port.width == 0) {
            return Err(CircuitError::EmptyPort {
                port: port.name.clone(),
            });
        }
        let misplaced = |port: &&crate::InputPort| {
            port.bits && (self.ring == Ring::Bits || port.per != Per::Row)
        };
        if let Some(port) = self.inputs.iter().find(misplaced) {
            return Err(CircuitError::BitPort {
                port: port.name.clone(),
            });
        }
        let rings = self.validate_gates((inputs + registers) as u32)?;
        self.validate_outputs(&rings)?;
        if self.is_sequential() {
            self.validate_clock(inputs as u32, wires as u32)?;
        }
        Ok(())
    }

    fn validate_clock(&self, inputs: u32, wires: u32) -> Result<(), CircuitError> {
        if self.ring != Ring::Bits {
            return Err(CircuitError::SequentialIntegers { ring: self.ring });
        }
        if self.clock.cycles == 0 {
            return Err(CircuitError::NoCycles);
        }
        if let Some(gate) = self.gates.iter().position(Gate::is_random) {
            return Err(CircuitError::SequentialRandom { gate });
        }
        let varies: Vec<bool> = (self.inputs.iter())
            .flat_map(|port| std::iter::repeat_n(port.per == Per::Cycle, port.width as usize))
            .collect();
        for (register, &Register { initial, next }) in self.clock.registers.iter().enumerate() {
            if next.0 >= wires {
                let wire = next.0;
                return Err(CircuitError::NextMissing {
                    register,
                    wire,
                    wires,
                });
            }
            if let Initial::Wire(Wire(wire)) = initial
                && varies.get(wire as usize).is_none_or(|varies| *varies)
            {
                return Err(CircuitError::BadInitial {
                    register,
                    wire,
                    inputs,
                });
            }
        }
        Ok(())
    }

    /// The ring of every wire.
    fn validate_gates(&self, sources: u32) -> Result<Vec<Ring>, CircuitError> {
        let mut rings = self.source_rings();
        for (gate, (own, kind)) in (sources..).zip(&self.gates).enumerate() {
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
            Gate::Bit(_, bit) | Gate::ShiftRight { by: bit, .. } if bit >= self.ring.bits() => {
                let ring = self.ring;
                return Err(CircuitError::NoSuchBit { gate, bit, ring });
            }
            // All bits of an integer may be none.
            Gate::IsZero(_, bits) | Gate::ShiftRight { bits, .. }
                if bits == 0 || bits > self.ring.bits() =>
            {
                let ring = self.ring;
                return Err(CircuitError::NoSuchBit {
                    gate,
                    bit: bits,
                    ring,
                });
            }
            // It reads the bit above those of the integer.
            Gate::TruncatePr { by, bits, .. } if bits >= self.ring.bits() || by >= bits => {
                let ring = self.ring;
                return Err(CircuitError::Truncates {
                    gate,
                    by,
                    bits,
                    ring,
                });
            }
            Gate::Bit(..)
            | Gate::IsZero(..)
            | Gate::ShiftRight { .. }
            | Gate::TruncatePr { .. } => [self.ring; 2],
            Gate::Lift(_) => [Ring::Bits; 2],
            Gate::Append(..) => [self.ring, Ring::Bits],
            _ => [kind.operands().next().map_or(self.ring, &of); 2],
        };
        let mut operands = kind.operands().zip(needed);
        match operands.find(|(wire, needed)| of(*wire) != *needed) {
            Some((wire, _)) => Err(CircuitError::OtherRing {
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
            // Bits beside integers are a port of their own, with a value in every row.
            let expected = match port.reduce {
                Reduce::None => self.output_ring(port, rings),
                Reduce::Sum | Reduce::EveryCycle => self.ring,
            };
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
                    Some(ring) if *ring != expected => {
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
