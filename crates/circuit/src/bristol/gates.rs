//! The gates of files, over bits and over integers.

use veil_math::Ring;

use super::read::Body;
use super::scan::{Line, Word};
use super::{Flavour, ParseError, ParseErrorKind};
use crate::Gate;

/// A gate of a format.
pub(super) struct Known {
    pub(super) name: &'static str,
    /// What it should have, in words.
    pub(super) shape: &'static str,
    /// Inputs, constants among them; nothing if there are two for each output.
    inputs: Option<u64>,
    /// The simplest format that has it.
    since: Flavour,
}

const fn known(name: &'static str, inputs: u64, since: Flavour) -> Known {
    let shape = match inputs {
        1 => "1 input and 1 output",
        _ => "2 inputs and 1 output",
    };
    Known {
        name,
        shape,
        inputs: Some(inputs),
        since,
    }
}

const GATES: [Known; 18] = [
    known("XOR", 2, Flavour::Old),
    known("AND", 2, Flavour::Old),
    known("INV", 1, Flavour::Old),
    known("EQ", 1, Flavour::Fashion),
    known("EQW", 1, Flavour::Fashion),
    Known {
        name: "MAND",
        shape: "two inputs for each of its outputs",
        inputs: None,
        since: Flavour::Fashion,
    },
    known("ADD", 2, Flavour::Integers),
    known("SUB", 2, Flavour::Integers),
    known("MUL", 2, Flavour::Integers),
    known("PLUS", 2, Flavour::Integers),
    known("TIMES", 2, Flavour::Integers),
    known("CONST", 1, Flavour::Integers),
    known("BIT", 2, Flavour::Integers),
    known("LIFT", 1, Flavour::Integers),
    known("APPEND", 2, Flavour::Integers),
    known("ZERO", 2, Flavour::Integers),
    known("SHIFT", 2, Flavour::Integers),
    known("SHIFTN", 3, Flavour::Integers),
];

impl Known {
    /// Whether it may have so many inputs and outputs.
    pub(super) fn takes(&self, inputs: u64, outputs: u64) -> bool {
        match self.inputs {
            Some(own) => (inputs, outputs) == (own, 1),
            None => outputs > 0 && outputs.checked_mul(2) == Some(inputs),
        }
    }
}

/// The gate of this name, if the format has it.
pub(super) fn find(name: Word<'_>, flavour: Flavour) -> Option<&'static Known> {
    let simpler = |gate: &&Known| match gate.since {
        Flavour::Old => true,
        Flavour::Fashion => flavour != Flavour::Old,
        Flavour::Integers | Flavour::Sequential => flavour == gate.since,
    };
    GATES.iter().filter(simpler).find(|gate| name.is(gate.name))
}

/// The names that there are.
pub(super) fn names(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Old => "the old Bristol Format has XOR, AND and INV",
        Flavour::Fashion => "Bristol Fashion has XOR, AND, INV, EQ, EQW and MAND",
        Flavour::Sequential => "there are XOR, AND, INV, EQ, EQW and MAND, as in Bristol Fashion",
        Flavour::Integers => {
            "over bits there are XOR, AND, INV, EQ and MAND, over integers ADD, SUB, MUL, PLUS, TIMES, CONST, SHIFT and SHIFTN, between them BIT, \
             ZERO, LIFT and APPEND, and EQW over both"
        }
    }
}

impl Body {
    /// A gate that reads or drives an integer.
    pub(super) fn integer(
        &mut self,
        line: &mut Line<'_>,
        name: &'static str,
    ) -> Result<(), ParseError> {
        let (ring, bits) = (self.ring, u64::from(self.ring.bits()));
        let gate = match name {
            "ADD" | "SUB" | "MUL" => {
                let [a, b] = self.operands(line, ring)?;
                match name {
                    "ADD" => Gate::Add(a, b),
                    "SUB" => Gate::Sub(a, b),
                    _ => Gate::Mul(a, b),
                }
            }
            "APPEND" => {
                let high = self.operand(line, Some(ring))?;
                Gate::Append(high, self.operand(line, Some(Ring::Bits))?)
            }
            "CONST" => Gate::Constant(element(line, ring)?),
            "LIFT" => Gate::Lift(self.operand(line, Some(Ring::Bits))?),
            "PLUS" | "TIMES" => {
                let a = self.operand(line, Some(ring))?;
                let constant = element(line, ring)?;
                match name {
                    "PLUS" => Gate::Plus(a, constant),
                    _ => Gate::Times(a, constant),
                }
            }
            _ => {
                let a = self.operand(line, Some(ring))?;
                let mut number = |least, most| {
                    let (found, word) = line.number("a number of bits")?;
                    if (least..=most).contains(&found) {
                        return Ok(found as u32);
                    }
                    let kind = ParseErrorKind::NoSuchBit {
                        gate: name,
                        found,
                        least,
                        most,
                    };
                    Err(line.error(word, kind))
                };
                match name {
                    "BIT" => Gate::Bit(a, number(0, bits - 1)?),
                    "ZERO" => Gate::IsZero(a, number(1, bits)?),
                    "SHIFT" => Gate::ShiftRight {
                        of: a,
                        by: number(0, bits - 1)?,
                        bits: ring.bits(),
                    },
                    _ => Gate::ShiftRight {
                        of: a,
                        by: number(0, bits - 1)?,
                        bits: number(1, bits)?,
                    },
                }
            }
        };
        self.drive(line, gate)
    }
}

/// A public constant.
fn element(line: &mut Line<'_>, ring: Ring) -> Result<u128, ParseError> {
    let word = line.word("a constant")?;
    let number = word
        .wide_number()
        .filter(|number| ring.reduce(*number) == *number);
    number.ok_or_else(|| {
        let kind = ParseErrorKind::NoElement {
            found: word.shown(),
            bits: ring.bits(),
        };
        line.error(word, kind)
    })
}
