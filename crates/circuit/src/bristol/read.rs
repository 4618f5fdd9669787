//! From text to circuit.

use veil_math::Ring;

use super::declared::RawInitial;
use super::gates;
use super::header::{Header, INTEGERS, SEQUENTIAL, at_most};
use super::scan::{Line, Lines, Word};
use super::{Flavour, ParseError, ParseErrorKind};
use crate::{Circuit, CircuitError, Clock, Gate, Initial, Limits, OutputPort, Register, Wire};

/// Which format `text` is in: one with integers or registers if it says so, the old one if its third line is a gate already.
pub fn detect(text: &[u8]) -> Flavour {
    let mut lines = Lines::new(text);
    let third = lines.next().and_then(|mut line| {
        line.next()?;
        line.next()?;
        line.next()
    });
    if third.is_some_and(|word| word.is(INTEGERS)) {
        return Flavour::Integers;
    }
    if third.is_some_and(|word| word.is(SEQUENTIAL)) {
        return Flavour::Sequential;
    }
    let (second, third) = (lines.next(), lines.next());
    let old = match (second, third) {
        (_, Some(third)) => third.last().is_some_and(|word| word.number().is_none()),
        // No gates, so no output of its own that Bristol Fashion would have declared in a third line.
        (Some(mut second), None) => std::iter::from_fn(|| second.next()).count() == 3,
        (None, None) => false,
    };
    if old { Flavour::Old } else { Flavour::Fashion }
}

/// Reads a circuit in any of the formats. If the format has no names, its ports are called `in0`, `in1`, …, `out0`, `out1`, …, and every
/// input has a value per row.
///
/// Copies (`EQW`) become no gates, and wires are numbered anew in the order of the gate lines; the order of the gates
/// and of the output bits is that of the file. Sizes are checked against `limits` before anything is allocated.
///
/// # Errors
/// [`ParseError`] with line and column of the first word that does not fit, and [`ParseErrorKind`] says why: a line or the file
/// ends early or goes on, a number, gate, ring or wire does not exist, a wire is read before it is driven or driven twice, the
/// header's counts do not fit the gates. [`ParseErrorKind::TooLarge`] if a count exceeds `limits`; [`ParseErrorKind::Circuit`],
/// at the header's number of wires, if [`Circuit::validate_within`] refuses the circuit.
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
    let (line, column) = (header.first_line, header.wires_column);
    let circuit = body.finish(header)?;
    circuit
        .validate_within(limits)
        .and_then(|()| outputs_are_of_the_ring(&circuit))
        .map_err(|error| ParseError {
            line,
            column,
            kind: error.into(),
        })?;
    Ok(circuit)
}

/// Ports of a file have one ring, which its first line says.
pub(super) fn outputs_are_of_the_ring(circuit: &Circuit) -> Result<(), CircuitError> {
    let rings = circuit.rings();
    let mut outputs = circuit.outputs.iter();
    match outputs.find(|port| circuit.output_ring(port, &rings) != circuit.ring) {
        Some(port) => Err(CircuitError::OutputOfBits {
            port: port.name.clone(),
            wire: port.wires.first().map_or(0, |wire| wire.0),
        }),
        None => Ok(()),
    }
}

const UNDRIVEN: Wire = Wire(u32::MAX);

pub(super) struct Body {
    flavour: Flavour,
    /// Of inputs and outputs.
    pub(super) ring: Ring,
    /// Of the wire of every gate.
    rings: Vec<Ring>,
    /// Wires that no gate drives.
    sources: u32,
    wires: u64,
    limit: u64,
    gates: Vec<Gate>,
    /// Our wire for each of the file's wires after its inputs.
    driven: Vec<Wire>,
    operands: Vec<Wire>,
}

impl Body {
    fn new(text: &[u8], flavour: Flavour, header: &Header, limits: &Limits) -> Self {
        let inputs = header.inputs.iter().map(|port| port.width).sum::<u32>();
        let sources = inputs + header.registers.len() as u32;
        // A driven wire takes two bytes of the file at least and a gate eight, whatever the header says.
        let driven = (header.wires - u64::from(sources)).min(text.len() as u64 / 2 + 1);
        Self {
            flavour,
            ring: header.ring,
            rings: Vec::new(),
            sources,
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
        let Some(gate) = gates::find(name, self.flavour) else {
            return Err(self.unknown(line, name));
        };
        if !gate.takes(inputs, outputs) {
            let kind = ParseErrorKind::Arity {
                gate: gate.name,
                shape: gate.shape,
                inputs,
                outputs,
            };
            return Err(line.error(word, kind));
        }
        match gate.name {
            "EQ" => {
                let (found, word) = line.number("the constant 0 or 1")?;
                if found > 1 {
                    return Err(line.error(word, ParseErrorKind::NotABit { found }));
                }
                let gate = match self.flavour {
                    Flavour::Integers => Gate::ConstantBit(found == 1),
                    _ => Gate::Constant(found.into()),
                };
                self.drive(&mut line, gate)?;
            }
            "EQW" => {
                let source = self.operand(&mut line, None)?;
                self.alias(&mut line, source)?;
            }
            "INV" => {
                let source = self.operand(&mut line, Some(Ring::Bits))?;
                self.drive(&mut line, Gate::Plus(source, 1))?;
            }
            "XOR" | "AND" => {
                let [a, b] = self.operands(&mut line, Ring::Bits)?;
                self.drive(
                    &mut line,
                    if gate.name == "XOR" {
                        Gate::Add(a, b)
                    } else {
                        Gate::Mul(a, b)
                    },
                )?;
            }
            "MAND" => self.many_ands(&mut line, word, outputs)?,
            integer => self.integer(&mut line, integer)?,
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

    /// What is wrong with a line whose gate the format does not have.
    fn unknown(&self, mut line: Line<'_>, name: Word<'_>) -> ParseError {
        if name.number().is_some() {
            // A number where the name should be: most likely the line was cut.
            while let Some(word) = line.next() {
                if word.number().is_none() {
                    let (expected, found) = ("a wire", word.shown());
                    return line.error(word, ParseErrorKind::NotANumber { expected, found });
                }
            }
            if let Err(error) = line.word("the name of the gate") {
                return error;
            }
        }
        let (found, known) = (name.shown(), gates::names(self.flavour));
        line.error(name, ParseErrorKind::UnknownGate { found, known })
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
            operands.push(self.operand(line, Some(Ring::Bits))?);
        }
        let (left, right) = operands.split_at(ands as usize);
        // All outputs after all inputs: no AND of the line may read another.
        for (&a, &b) in left.iter().zip(right) {
            self.drive(line, Gate::Mul(a, b))?;
        }
        self.operands = operands;
        Ok(())
    }

    /// A wire that is read; `of` says of which ring it has to be, where wires are of two.
    pub(super) fn operand(
        &self,
        line: &mut Line<'_>,
        of: Option<Ring>,
    ) -> Result<Wire, ParseError> {
        let (wire, word) = line.number("a wire")?;
        if wire >= self.wires {
            let last = self.wires.saturating_sub(1);
            return Err(line.error(word, ParseErrorKind::NoSuchWire { wire, last }));
        }
        let ours = match self.place(wire) {
            None => Wire(wire as u32),
            Some(place) => match self.driven.get(place) {
                Some(&ours) if ours != UNDRIVEN => ours,
                _ => return Err(line.error(word, ParseErrorKind::NotYetDriven { wire })),
            },
        };
        if of.is_some_and(|ring| ring != self.ring_of(ours)) {
            let bit = self.ring_of(ours) == Ring::Bits;
            return Err(line.error(word, ParseErrorKind::OtherRing { wire, bit }));
        }
        Ok(ours)
    }

    pub(super) fn operands(&self, line: &mut Line<'_>, of: Ring) -> Result<[Wire; 2], ParseError> {
        Ok([self.operand(line, Some(of))?, self.operand(line, Some(of))?])
    }

    /// The ring of one of our wires.
    fn ring_of(&self, wire: Wire) -> Ring {
        let gate = wire.0.checked_sub(self.sources);
        gate.map_or(self.ring, |gate| self.rings[gate as usize])
    }

    pub(super) fn drive(&mut self, line: &mut Line<'_>, gate: Gate) -> Result<(), ParseError> {
        let own = Wire(self.sources + self.gates.len() as u32);
        self.alias(line, own)?;
        self.rings
            .push(gate.ring(self.ring, |wire| self.ring_of(wire)));
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
        wire.checked_sub(self.sources.into())
            .map(|place| place as usize)
    }

    fn finish(self, header: Header) -> Result<Circuit, ParseError> {
        let at_wires = |kind| ParseError {
            line: header.first_line,
            column: header.wires_column,
            kind,
        };
        let inputs = u64::from(self.sources);
        let driven = self.driven.iter().filter(|&&wire| wire != UNDRIVEN).count() as u64;
        if inputs + driven != header.wires {
            let gap = self
                .driven
                .iter()
                .position(|&wire| wire == UNDRIVEN)
                .unwrap_or(self.driven.len());
            let (wire, driven) = (inputs + gap as u64, inputs + driven);
            return Err(at_wires(ParseErrorKind::NeverDriven {
                wire,
                driven,
                wires: header.wires,
            }));
        }
        let ours = |wire: u64| match wire.checked_sub(inputs) {
            None => Wire(wire as u32),
            Some(place) => self.driven[place as usize],
        };
        let output_wires: u64 = header.outputs.iter().map(|o| u64::from(o.width)).sum();
        let mut next = header.wires - output_wires;
        let outputs = header.outputs.into_iter().map(|output| {
            let wires = next..next + u64::from(output.width);
            next = wires.end;
            OutputPort {
                name: output.name,
                wires: wires.map(ours).collect(),
                reduce: output.reduce,
            }
        });
        let outputs = outputs.collect();
        let last = header.wires.saturating_sub(1);
        let registers = header.registers.iter().map(|register| {
            let (line, column) = register.place;
            let there = |wire| {
                let kind = ParseErrorKind::NoSuchWire { wire, last };
                let error = ParseError { line, column, kind };
                (wire <= last).then_some(wire).ok_or(error)
            };
            Ok(Register {
                next: ours(there(register.next)?),
                initial: match register.initial {
                    RawInitial::Constant(bit) => Initial::Constant(bit),
                    // That it is one of an input is checked with the whole circuit.
                    RawInitial::Wire(wire) => Initial::Wire(ours(there(wire)?)),
                },
            })
        });
        Ok(Circuit {
            ring: self.ring,
            clock: Clock {
                registers: registers.collect::<Result<_, _>>()?,
                cycles: header.cycles,
            },
            inputs: header.inputs,
            gates: self.gates,
            outputs,
        })
    }
}
