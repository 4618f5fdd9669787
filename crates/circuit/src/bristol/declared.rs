//! The lines of ports and registers of a file of a sequential circuit.

use super::header::at_most;
use super::scan::{Line, Lines, Word};
use super::{ParseError, ParseErrorKind};
use crate::{InputPort, Limits, Per, Reduce};

const INPUT: &str = "input";
const OUTPUT: &str = "output";
const REGISTER: &str = "register";

/// How often an input has a value, in words.
pub(super) const PER: [(&str, Per); 3] =
    [("row", Per::Row), ("job", Per::Job), ("cycle", Per::Cycle)];
/// Of which cycles an output is.
pub(super) const OF: [(&str, Reduce); 2] = [("last", Reduce::None), ("cycle", Reduce::EveryCycle)];
/// What a register begins as, if not as a wire.
pub(super) const CONSTANTS: [(&str, bool); 2] = [("zero", false), ("one", true)];

/// A line of an output.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) width: u32,
    pub(super) reduce: Reduce,
}

/// A line of a register, with the file's numbers of wires.
pub(super) struct RawRegister {
    /// The line, and the column of the next wire.
    pub(super) place: (u64, u64),
    pub(super) next: u64,
    pub(super) initial: RawInitial,
}

pub(super) enum RawInitial {
    Constant(bool),
    Wire(u64),
}

type Declared = (Vec<InputPort>, Vec<Named>, Vec<RawRegister>);

/// Reads these lines, up to the first that is of something else.
pub(super) fn read(
    lines: &mut Lines<'_>,
    wires: u64,
    limits: &Limits,
) -> Result<Declared, ParseError> {
    let (mut inputs, mut outputs, mut registers) = (Vec::new(), Vec::new(), Vec::new());
    let mut total = [0; 2];
    while let Some(mut line) = lines.clone().next() {
        let Some(word) = line.next() else { break };
        if word.number().is_some() {
            break;
        }
        lines.next();
        let kind = [INPUT, OUTPUT, REGISTER].iter().position(|k| word.is(k));
        match kind {
            Some(0) => {
                let width = width(&mut line, "inputs", &mut total[0], wires)?;
                let per = line.choice(&PER.map(|(word, _)| word), "row, job or cycle")?;
                let name = line.name("the name of the input")?;
                let count = inputs.len() as u64 + 1;
                at_most(&line, word, "inputs", count, limits.ports)?;
                let per = PER[per].1;
                inputs.push(InputPort {
                    name,
                    width,
                    per,
                    bits: false,
                });
            }
            Some(1) => {
                let width = width(&mut line, "outputs", &mut total[1], wires)?;
                let of = line.choice(&OF.map(|(word, _)| word), "cycle or last")?;
                let name = line.name("the name of the output")?;
                let count = outputs.len() as u64 + 1;
                at_most(&line, word, "outputs", count, limits.ports)?;
                let reduce = OF[of].1;
                outputs.push(Named {
                    name,
                    width,
                    reduce,
                });
            }
            Some(_) => {
                registers.push(register(&mut line)?);
                take(
                    &line,
                    word,
                    ("inputs and registers", 1),
                    &mut total[0],
                    wires,
                )?;
            }
            None => {
                let (expected, found) = ("input, output, register or a gate", word.shown());
                return Err(line.error(word, ParseErrorKind::OtherWord { expected, found }));
            }
        }
    }
    Ok((inputs, outputs, registers))
}

/// Takes so many of the wires of a file.
fn take(
    line: &Line<'_>,
    word: Word<'_>,
    (what, count): (&'static str, u64),
    total: &mut u64,
    wires: u64,
) -> Result<(), ParseError> {
    *total = total.saturating_add(count);
    let found = *total;
    if found > wires {
        return Err(line.error(word, ParseErrorKind::Widths { what, found, wires }));
    }
    Ok(())
}

fn width(
    line: &mut Line<'_>,
    what: &'static str,
    total: &mut u64,
    wires: u64,
) -> Result<u32, ParseError> {
    let (width, word) = line.number("the width of a value")?;
    take(line, word, (what, width), total, wires)?;
    if width == 0 {
        return Err(line.error(word, ParseErrorKind::EmptyValue));
    }
    Ok(width as u32)
}

fn register(line: &mut Line<'_>) -> Result<RawRegister, ParseError> {
    let (next, word) = line.number("the wire that the register takes next")?;
    let place = (line.number, word.column);
    let word = line.word("what the register begins as: zero, one or a wire")?;
    let constant = CONSTANTS.iter().find(|(name, _)| word.is(name));
    let initial = match (constant, word.number()) {
        (Some((_, bit)), _) => RawInitial::Constant(*bit),
        (None, Some(wire)) => RawInitial::Wire(wire),
        (None, None) => {
            let (expected, found) = ("zero, one or a wire", word.shown());
            return Err(line.error(word, ParseErrorKind::OtherWord { expected, found }));
        }
    };
    line.end("line of a register")?;
    Ok(RawRegister {
        place,
        next,
        initial,
    })
}
