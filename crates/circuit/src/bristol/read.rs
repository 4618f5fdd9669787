//! From text to circuit.

use veil_math::Ring;

use super::header::{Header, at_most};
use super::scan::{Line, Lines, Word};
use super::{Flavour, ParseError, ParseErrorKind};
use crate::{Circuit, Gate, InputPort, Limits, OutputPort, Per, Reduce, Wire};

const FASHION_GATES: &str = "Bristol Fashion has XOR, AND, INV, EQ, EQW and MAND";
const OLD_GATES: &str = "the old Bristol Format has XOR, AND and INV";

/// Which format `text` is in: the old one if its third line is a gate already.
pub fn detect(text: &[u8]) -> Flavour {
    let mut lines = Lines::new(text).skip(1);
    let (second, third) = (lines.next(), lines.next());
    let old = match (second, third) {
        (_, Some(third)) => third.last().is_some_and(|word| word.number().is_none()),
        // No gates, so no output of its own that Bristol Fashion would have declared in a third line.
        (Some(mut second), None) => std::iter::from_fn(|| second.next()).count() == 3,
        (None, None) => false,
    };
    if old { Flavour::Old } else { Flavour::Fashion }
}

/// Reads a circuit in either format. Its ports are called `in0`, `in1`, …, `out0`, `out1`, …; every input has a value
/// per row.
///
/// Copies (`EQW`) become no gates, and wires are numbered anew in the order of the gate lines; the order of the gates
/// and of the output bits is that of the file. Sizes are checked against `limits` before anything is allocated.
pub fn read(text: &[u8], limits: &Limits) -> Result<Circuit, ParseError> {
    let flavour = detect(text);
    let mut lines = Lines::new(text);
    let header = Header::read(&mut lines, flavour, limits)?;
    let mut body = Body::new(text, flavour, &header, limits);
    for read in 0..header.gates {
        let Some(line) = lines.next() else {
            return Err(lines.file_ends(format!("gate {} of {}", read + 1, header.gates)));
        };
        body.line(line)?;
    }
    if let Some(mut line) = lines.next() {
        let word = line.word("nothing")?;
        let kind = ParseErrorKind::FileGoesOn {
            found: word.shown(),
            gates: header.gates,
        };
        return Err(line.error(word, kind));
    }
    let at_wires = |kind| ParseError {
        line: header.first_line,
        column: header.wires_column,
        kind,
    };
    let circuit = body.finish(&header).map_err(at_wires)?;
    circuit
        .validate_within(limits)
        .map_err(|error| at_wires(error.into()))?;
    Ok(circuit)
}

const UNDRIVEN: Wire = Wire(u32::MAX);

struct Body {
    flavour: Flavour,
    input_wires: u32,
    wires: u64,
    limit: u64,
    gates: Vec<Gate>,
    /// Our wire for each of the file's wires after its inputs.
    driven: Vec<Wire>,
    operands: Vec<Wire>,
}

impl Body {
    fn new(text: &[u8], flavour: Flavour, header: &Header, limits: &Limits) -> Self {
        let input_wires = header.inputs.iter().sum::<u32>();
        // A driven wire takes two bytes of the file at least and a gate eight, whatever the header says.
        let driven = (header.wires - u64::from(input_wires)).min(text.len() as u64 / 2 + 1);
        Self {
            flavour,
            input_wires,
            wires: header.wires,
            limit: limits.gates,
            gates: Vec::with_capacity(header.gates.min(text.len() as u64 / 8) as usize),
            driven: vec![UNDRIVEN; driven as usize],
            operands: Vec::new(),
        }
    }

    fn line(&mut self, mut line: Line<'_>) -> Result<(), ParseError> {
        let (inputs, word) = line.number("the gate's number of inputs")?;
        let (outputs, _) = line.number("the gate's number of outputs")?;
        let name = line.last().unwrap_or(word);
        let fashion = self.flavour == Flavour::Fashion;
        let (gate, shape, right) = if name.is("XOR") {
            ("XOR", "2 inputs and 1 output", (inputs, outputs) == (2, 1))
        } else if name.is("AND") {
            ("AND", "2 inputs and 1 output", (inputs, outputs) == (2, 1))
        } else if name.is("INV") {
            ("INV", "1 input and 1 output", (inputs, outputs) == (1, 1))
        } else if name.is("EQ") && fashion {
            ("EQ", "1 input and 1 output", (inputs, outputs) == (1, 1))
        } else if name.is("EQW") && fashion {
            ("EQW", "1 input and 1 output", (inputs, outputs) == (1, 1))
        } else if name.is("MAND") && fashion {
            let right = outputs > 0 && outputs.checked_mul(2) == Some(inputs);
            ("MAND", "two inputs for each of its outputs", right)
        } else {
            if name.number().is_some() {
                // A number where the name should be: most likely the line was cut.
                while let Some(word) = line.next() {
                    if word.number().is_none() {
                        let found = word.shown();
                        return Err(line.error(
                            word,
                            ParseErrorKind::NotANumber {
                                expected: "a wire",
                                found,
                            },
                        ));
                    }
                }
                line.word("the name of the gate")?;
            }
            let known = if fashion { FASHION_GATES } else { OLD_GATES };
            return Err(line.error(
                name,
                ParseErrorKind::UnknownGate {
                    found: name.shown(),
                    known,
                },
            ));
        };
        if !right {
            return Err(line.error(
                word,
                ParseErrorKind::Arity {
                    gate,
                    shape,
                    inputs,
                    outputs,
                },
            ));
        }
        match gate {
            "EQ" => {
                let (found, word) = line.number("the constant 0 or 1")?;
                if found > 1 {
                    return Err(line.error(word, ParseErrorKind::NotABit { found }));
                }
                self.drive(&mut line, Gate::Constant(found.into()))?;
            }
            "EQW" => {
                let source = self.operand(&mut line)?;
                self.alias(&mut line, source)?;
            }
            "INV" => {
                let source = self.operand(&mut line)?;
                self.drive(&mut line, Gate::Plus(source, 1))?;
            }
            "XOR" | "AND" => {
                let (a, b) = (self.operand(&mut line)?, self.operand(&mut line)?);
                self.drive(
                    &mut line,
                    if gate == "XOR" {
                        Gate::Add(a, b)
                    } else {
                        Gate::Mul(a, b)
                    },
                )?;
            }
            _ => self.many_ands(&mut line, word, outputs)?,
        }
        match line.next() {
            Some(word) if word.column < name.column => {
                let found = word.shown();
                Err(line.error(
                    word,
                    ParseErrorKind::LineGoesOn {
                        found,
                        after: "wires of the gate",
                    },
                ))
            }
            _ => Ok(()),
        }
    }

    fn many_ands(
        &mut self,
        line: &mut Line<'_>,
        word: Word<'_>,
        ands: u64,
    ) -> Result<(), ParseError> {
        at_most(
            line,
            word,
            "gates",
            ands.saturating_add(self.gates.len() as u64),
            self.limit,
        )?;
        let mut operands = std::mem::take(&mut self.operands);
        operands.clear();
        for _ in 0..2 * ands {
            operands.push(self.operand(line)?);
        }
        let (left, right) = operands.split_at(ands as usize);
        // All outputs after all inputs: no AND of the line may read another.
        for (&a, &b) in left.iter().zip(right) {
            self.drive(line, Gate::Mul(a, b))?;
        }
        self.operands = operands;
        Ok(())
    }

    fn operand(&self, line: &mut Line<'_>) -> Result<Wire, ParseError> {
        let (wire, word) = line.number("a wire")?;
        if wire >= self.wires {
            let last = self.wires.saturating_sub(1);
            return Err(line.error(word, ParseErrorKind::NoSuchWire { wire, last }));
        }
        match self.place(wire) {
            None => Ok(Wire(wire as u32)),
            Some(place) => match self.driven.get(place) {
                Some(&ours) if ours != UNDRIVEN => Ok(ours),
                _ => Err(line.error(word, ParseErrorKind::NotYetDriven { wire })),
            },
        }
    }

    fn drive(&mut self, line: &mut Line<'_>, gate: Gate) -> Result<(), ParseError> {
        let own = Wire(self.input_wires + self.gates.len() as u32);
        self.alias(line, own)?;
        self.gates.push(gate);
        Ok(())
    }

    fn alias(&mut self, line: &mut Line<'_>, ours: Wire) -> Result<(), ParseError> {
        let (wire, word) = line.number("the wire that the gate drives")?;
        if wire >= self.wires {
            let last = self.wires.saturating_sub(1);
            return Err(line.error(word, ParseErrorKind::NoSuchWire { wire, last }));
        }
        let Some(place) = self.place(wire) else {
            return Err(line.error(word, ParseErrorKind::DrivenTwice { wire }));
        };
        match self.driven.get_mut(place) {
            Some(slot) if *slot == UNDRIVEN => *slot = ours,
            Some(_) => return Err(line.error(word, ParseErrorKind::DrivenTwice { wire })),
            // The file is too short to drive all the wires that it declares, so `finish` refuses it.
            None => {}
        }
        Ok(())
    }

    /// Where in `driven` the file's wire is, unless it is an input.
    fn place(&self, wire: u64) -> Option<usize> {
        wire.checked_sub(self.input_wires.into())
            .map(|place| place as usize)
    }

    fn finish(self, header: &Header) -> Result<Circuit, ParseErrorKind> {
        let inputs = u64::from(self.input_wires);
        let driven = self.driven.iter().filter(|&&wire| wire != UNDRIVEN).count() as u64;
        if inputs + driven != header.wires {
            let gap = self
                .driven
                .iter()
                .position(|&wire| wire == UNDRIVEN)
                .unwrap_or(self.driven.len());
            let (wire, driven) = (inputs + gap as u64, inputs + driven);
            return Err(ParseErrorKind::NeverDriven {
                wire,
                driven,
                wires: header.wires,
            });
        }
        let ours = |wire: u64| match wire.checked_sub(inputs) {
            None => Wire(wire as u32),
            Some(place) => self.driven[place as usize],
        };
        let output_wires: u64 = header.outputs.iter().map(|&width| u64::from(width)).sum();
        let mut next = header.wires - output_wires;
        let outputs = (0..)
            .zip(&header.outputs)
            .map(|(number, &width): (u32, _)| {
                let wires = (next..next + u64::from(width)).map(ours).collect();
                next += u64::from(width);
                OutputPort {
                    name: format!("out{number}"),
                    wires,
                    reduce: Reduce::None,
                }
            })
            .collect();
        let inputs = (0..)
            .zip(&header.inputs)
            .map(|(number, &width): (u32, _)| InputPort {
                name: format!("in{number}"),
                width,
                per: Per::Row,
            })
            .collect();
        Ok(Circuit {
            ring: Ring::Bits,
            inputs,
            gates: self.gates,
            outputs,
        })
    }
}
