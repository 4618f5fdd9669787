//! The circuit of a pass in one row, over wires.

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Circuit, Gate, Reduce, Wire};
use veil_math::Ring;

use super::{fits, words};
use crate::PhysicalError;

/// A circuit that is computed in many rows: where the bits of its wires lie, and how many of each are read.
pub(crate) struct InRows<'a> {
    of: &'a Circuit,
    rings: Vec<Ring>,
    /// The first bit of each wire, and the end of the last one's.
    first: Vec<usize>,
    /// How many low bits of each wire something reads.
    read: Vec<u32>,
    aim: Aim,
}

impl<'a> InRows<'a> {
    /// Of a circuit of whose output ports, in their order, so many low bits are read: of one integer, or of a word whose bits are the wires.
    pub(crate) fn new(of: &'a Circuit, outputs: &[u32], aim: Aim) -> Self {
        let rings = of.rings();
        let mut first = Vec::with_capacity(rings.len() + 1);
        let mut end = 0;
        for ring in &rings {
            first.push(end);
            end += ring.bits() as usize;
        }
        first.push(end);
        let mut read = vec![0; rings.len()];
        for (port, bits) in of.outputs.iter().zip(outputs) {
            let mut left = *bits;
            for wire in &port.wires {
                let of_wire = &mut read[wire.0 as usize];
                *of_wire = (*of_wire).max(left);
                left = left.saturating_sub(rings[wire.0 as usize].bits());
            }
        }
        for (index, gate) in of.gates.iter().enumerate().rev() {
            let bits = read[of.gate_wire(index).0 as usize];
            if bits == 0 {
                continue;
            }
            let bits = match *gate {
                Gate::Add(..)
                | Gate::Sub(..)
                | Gate::Mul(..)
                | Gate::Plus(..)
                | Gate::Times(..) => bits,
                Gate::Bit(_, j) => j + 1,
                Gate::Lift(_) => 1,
                Gate::IsZero(_, bits) => bits,
                Gate::ShiftRight { by, bits: of, .. } | Gate::TruncatePr { by, bits: of, .. } => {
                    of.min(by.saturating_add(bits))
                }
                Gate::Append(a, b) => {
                    let of_integer = &mut read[a.0 as usize];
                    *of_integer = (*of_integer).max(bits - 1);
                    let of_bit = &mut read[b.0 as usize];
                    *of_bit = (*of_bit).max(1);
                    continue;
                }
                Gate::Constant(_) | Gate::ConstantBit(_) | Gate::Random(_) | Gate::RandomBit(_) => {
                    continue;
                }
            };
            for operand in gate.operands() {
                let of_operand = &mut read[operand.0 as usize];
                *of_operand = (*of_operand).max(bits);
            }
        }
        for (bits, ring) in read.iter_mut().zip(&rings) {
            *bits = (*bits).min(ring.bits());
        }
        InRows {
            of,
            rings,
            first,
            read,
            aim,
        }
    }

    /// How many low bits of each input port are read, at most: those of its wires, one behind the other.
    pub(crate) fn read_of_inputs(&self) -> Vec<u32> {
        let mut wires = 0;
        let ports = self.of.inputs.iter();
        ports
            .map(|port| {
                let first = wires;
                wires += port.width as usize;
                let last = (first..wires).rev().find(|wire| self.read[*wire] > 0);
                last.map_or(0, |wire| {
                    (self.first[wire] - self.first[first]) as u32 + self.read[wire]
                })
            })
            .collect()
    }

    /// Bits of an input port.
    pub(crate) fn input_bits(&self, port: usize) -> u32 {
        let input = &self.of.inputs[port];
        input.width * input.ring(self.of.ring).bits()
    }

    /// Bits of an output port, and whether it is of integers.
    pub(crate) fn output_bits(&self, port: usize) -> (u32, bool) {
        let output = &self.of.outputs[port];
        let ring = self.of.output_ring(output, &self.rings);
        (output.wires.len() as u32 * ring.bits(), ring != Ring::Bits)
    }

    /// Whether an output port is summed over rows.
    pub(crate) fn is_sum(&self, port: usize) -> bool {
        self.of.outputs[port].reduce == Reduce::Sum
    }

    /// Computes one row: bits of all input ports, one behind the other, give those of each output port. Bits that nothing reads are zero.
    pub(crate) fn row(
        &self,
        b: &mut Builder,
        inputs: Vec<Wire>,
    ) -> Result<Vec<Vec<Wire>>, PhysicalError> {
        let mut all = inputs;
        let sources = self.of.sources() as usize;
        if all.len() != self.first[sources] {
            return Err(PhysicalError::Circuit(
                "a pass takes other columns than its circuit".into(),
            ));
        }
        for (index, gate) in self.of.gates.iter().enumerate() {
            let own = sources + index;
            if let Some(bit) = self.bit(b, &all, own, *gate) {
                all.push(bit);
            } else {
                let out = self.gate(b, &all, own, *gate)?;
                all.extend(out);
            }
            fits(b)?;
        }
        let outputs = self.of.outputs.iter();
        let bits = |wire: &Wire| {
            let wire = wire.0 as usize;
            all[self.first[wire]..self.first[wire + 1]].to_vec()
        };
        Ok(outputs
            .map(|port| port.wires.iter().flat_map(bits).collect())
            .collect())
    }

    /// The wire of a gate over bits; nothing of others.
    fn bit(&self, b: &mut Builder, all: &[Wire], own: usize, gate: Gate) -> Option<Wire> {
        if self.rings[own] != Ring::Bits {
            return None;
        }
        let at = |wire: Wire| all[self.first[wire.0 as usize]];
        Some(match gate {
            _ if self.read[own] == 0 => b.constant_bit(false),
            Gate::Add(x, y) | Gate::Sub(x, y) => b.xor(at(x), at(y)),
            Gate::Mul(x, y) => b.and(at(x), at(y)),
            Gate::Plus(x, c) => b.plus(at(x), c),
            Gate::Times(x, c) => b.times(at(x), c),
            _ => return None,
        })
    }

    /// The bits of any other gate's wire.
    fn gate(
        &self,
        b: &mut Builder,
        all: &[Wire],
        own: usize,
        gate: Gate,
    ) -> Result<Vec<Wire>, PhysicalError> {
        let ring = self.rings[own];
        let (whole, read) = (ring.bits() as usize, self.read[own] as usize);
        if read == 0 {
            return Ok(words::zeros(b, whole));
        }
        let word = |wire: Wire, bits: usize| {
            let first = self.first[wire.0 as usize];
            &all[first..first + bits]
        };
        let bit = |wire: Wire, bit: u32| all[self.first[wire.0 as usize] + bit as usize];
        let out = match gate {
            Gate::Add(x, y) => words::plus(b, word(x, read), word(y, read), self.aim),
            Gate::Sub(x, y) => words::minus(b, word(x, read), word(y, read), self.aim),
            Gate::Mul(x, y) => words::times(b, word(x, read), word(y, read), self.aim),
            Gate::Plus(x, c) => words::plus_constant(b, word(x, read), c, self.aim),
            Gate::Times(x, c) => words::times_constant(b, word(x, read), c, self.aim),
            Gate::Constant(c) => veil_circuit::generate::constant_bits(b, c, read as u32),
            Gate::Bit(x, j) => vec![bit(x, j)],
            Gate::Lift(x) => vec![bit(x, 0)],
            Gate::ConstantBit(c) => vec![b.constant_bit(c)],
            Gate::IsZero(x, bits) => vec![words::is_zero(b, word(x, bits as usize))],
            // Rounding by chance is rounding down where nothing is drawn: both are right.
            Gate::ShiftRight { of, by, bits } | Gate::TruncatePr { of, by, bits } => {
                let end = (bits as usize).min(by as usize + read);
                word(of, end)[(by as usize).min(end)..].to_vec()
            }
            Gate::Append(x, low) => {
                let mut out = vec![bit(low, 0)];
                out.extend_from_slice(word(x, read - 1));
                out
            }
            Gate::Random(_) | Gate::RandomBit(_) => {
                return Err(PhysicalError::NotOfTwo {
                    what: "draw values that none of them knows",
                });
            }
        };
        Ok(words::extended(b, &out, whole))
    }
}
