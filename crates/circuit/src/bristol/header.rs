//! The first lines of a file: how much there is of everything.

use veil_math::Ring;

use super::declared::{self, Named, RawRegister};
use super::scan::{Line, Lines, Word};
use super::{Flavour, ParseError, ParseErrorKind};
use crate::{InputPort, Limits, Per, Reduce};

/// What follows the numbers of gates and wires in a file with integers.
pub(super) const INTEGERS: &str = "integers";
/// What follows them in a file of a sequential circuit.
pub(super) const SEQUENTIAL: &str = "sequential";

/// What the header declares, within the limits.
pub(super) struct Header {
    /// Of inputs and outputs.
    pub(super) ring: Ring,
    /// Where the number of wires stands.
    pub(super) first_line: u64,
    pub(super) wires_column: u64,
    pub(super) gates: u64,
    pub(super) wires: u64,
    pub(super) inputs: Vec<InputPort>,
    pub(super) outputs: Vec<Named>,
    pub(super) registers: Vec<RawRegister>,
    pub(super) cycles: u64,
}

impl Header {
    /// Reads the header, and checks it against `limits`.
    pub(super) fn read(
        lines: &mut Lines<'_>,
        flavour: Flavour,
        limits: &Limits,
    ) -> Result<Self, ParseError> {
        let mut line = lines
            .next()
            .ok_or_else(|| lines.file_ends("the numbers of gates and wires"))?;
        let (gates, word) = line.number("the number of gates")?;
        at_most(&line, word, "gates", gates, limits.gates)?;
        let (wires, word) = line.number("the number of wires")?;
        // Wires are numbered by u32.
        at_most(
            &line,
            word,
            "wires",
            wires,
            limits.wires.min(u64::from(u32::MAX)),
        )?;
        let (first_line, wires_column) = (line.number, word.column);
        let (mut ring, mut cycles) = (Ring::Bits, 1);
        match flavour {
            Flavour::Integers => ring = self::ring(&mut line)?,
            Flavour::Sequential => {
                line.choice(&[SEQUENTIAL], SEQUENTIAL)?;
                let (found, word) = line.number("the number of cycles")?;
                at_most(&line, word, "cycles", found, limits.cycles)?;
                cycles = found;
            }
            Flavour::Fashion | Flavour::Old => {}
        }
        line.end("numbers of gates and wires")?;
        if flavour == Flavour::Sequential {
            let (inputs, outputs, registers) = declared::read(lines, wires, limits)?;
            return Ok(Self {
                ring,
                first_line,
                wires_column,
                gates,
                wires,
                inputs,
                outputs,
                registers,
                cycles,
            });
        }

        let mut line = lines
            .next()
            .ok_or_else(|| lines.file_ends("the widths of the inputs"))?;
        let (inputs, outputs) = match flavour {
            Flavour::Fashion | Flavour::Integers => {
                let inputs = values(&mut line, "inputs", wires, limits)?;
                let mut line = lines
                    .next()
                    .ok_or_else(|| lines.file_ends("the widths of the outputs"))?;
                (inputs, values(&mut line, "outputs", wires, limits)?)
            }
            Flavour::Old => {
                let inputs = widths(&mut line, 2, true, "inputs", wires)?;
                let outputs = widths(&mut line, 1, false, "outputs", wires)?;
                line.end("widths of two inputs and an output")?;
                (inputs, outputs)
            }
            Flavour::Sequential => unreachable!("it has no lines of widths"),
        };
        let numbered = |(number, width): (usize, u32)| InputPort {
            name: format!("in{number}"),
            width,
            per: Per::Row,
            bits: false,
        };
        let inputs = inputs.into_iter().enumerate().map(numbered).collect();
        let numbered = |(number, width): (usize, u32)| Named {
            name: format!("out{number}"),
            width,
            reduce: Reduce::None,
        };
        let outputs = outputs.into_iter().enumerate().map(numbered).collect();
        Ok(Self {
            ring,
            first_line,
            wires_column,
            gates,
            wires,
            inputs,
            outputs,
            registers: Vec::new(),
            cycles,
        })
    }
}

/// The words `integers 64`: how many bits they have.
fn ring(line: &mut Line<'_>) -> Result<Ring, ParseError> {
    line.word(INTEGERS)?;
    let (found, word) = line.number("the bits of an integer, 64 or 128")?;
    match found {
        64 => Ok(Ring::Z64),
        128 => Ok(Ring::Z128),
        _ => Err(line.error(word, ParseErrorKind::NoRing { found })),
    }
}

/// A line `count { width }*count` of Bristol Fashion.
fn values(
    line: &mut Line<'_>,
    what: &'static str,
    wires: u64,
    limits: &Limits,
) -> Result<Vec<u32>, ParseError> {
    let (count, word) = line.number("a number of values")?;
    at_most(line, word, what, count, limits.ports)?;
    let widths = widths(line, count, false, what, wires)?;
    line.end("widths of the values")?;
    Ok(widths)
}

fn widths(
    line: &mut Line<'_>,
    count: u64,
    skip_empty: bool,
    what: &'static str,
    wires: u64,
) -> Result<Vec<u32>, ParseError> {
    let mut widths = Vec::new();
    let mut found: u64 = 0;
    for _ in 0..count {
        let (width, word) = line.number("the width of a value")?;
        found = found.saturating_add(width);
        if found > wires {
            return Err(line.error(word, ParseErrorKind::Widths { what, found, wires }));
        }
        if width > 0 {
            widths.push(width as u32);
        } else if !skip_empty {
            return Err(line.error(word, ParseErrorKind::EmptyValue));
        }
    }
    Ok(widths)
}

/// Refuses a number that is more than its limit.
pub(super) fn at_most(
    line: &Line<'_>,
    word: Word<'_>,
    what: &'static str,
    found: u64,
    limit: u64,
) -> Result<(), ParseError> {
    if found > limit {
        Err(line.error(word, ParseErrorKind::TooLarge { what, found, limit }))
    } else {
        Ok(())
    }
}
