//! From circuit to text.

use std::io::{self, Write as _};

use veil_math::Ring;

use super::Flavour;
use super::declared::{CONSTANTS, OF, PER};
use super::header::{INTEGERS, SEQUENTIAL};
use crate::{Circuit, CircuitError, Gate, Initial, Reduce, Wire};

/// Why a circuit was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Bristol files hold bits only.
    #[error("the circuit is over {}, and Bristol files hold circuits of bits; write the format `integers`", .0.name())]
    NotBits(Ring),
    /// Files hold functions.
    #[error("the circuit has random gates, and files hold none; draw the values as inputs")]
    Random,
    /// The format with integers takes no circuit of bits alone.
    #[error("the circuit is over bits; write Bristol Fashion")]
    NotIntegers,
    /// Registers and cycles have no place in these files.
    #[error(
        "the circuit is sequential, and Bristol files hold circuits of one cycle and no registers; write the format `sequential`"
    )]
    Sequential,
    /// A name that would not be read again as it is.
    #[error("port name {0:?} begins or ends with a blank; rename the port")]
    Name(String),
    /// An output summed over the rows has no place in a file.
    #[error("output `{0}` is summed over the rows, which files cannot say")]
    Summed(String),
    /// The old format has one or two inputs.
    #[error(
        "the circuit has {0} input ports, and the old Bristol Format holds one or two; write Bristol Fashion"
    )]
    OldInputs(usize),
    /// The old format has one output.
    #[error(
        "the circuit has {0} output ports, and the old Bristol Format holds one; write Bristol Fashion"
    )]
    OldOutputs(usize),
    /// The circuit is not well formed.
    #[error(transparent)]
    Circuit(#[from] CircuitError),
    /// The file could not be written.
    #[error("cannot write the circuit: {0}")]
    Io(#[from] io::Error),
}

/// Writes a circuit: of bits in the Bristol formats, of integers and bits in that with integers. Port names and `per` are part of that with
/// registers alone; in the others they are lost.
///
/// Gates keep their order. Gates that compute nothing (`a + 0`, `a · 1`) are left out, and an output that is an input
/// or another output gets a copy: `EQW`, or in the old format a double `INV`. The old format has no constants either,
/// so there a constant is computed from wire 0.
///
/// # Errors
/// [`WriteError::NotBits`] and [`WriteError::NotIntegers`] if the format is not one of the circuit's ring; [`WriteError::Circuit`] if
/// [`Circuit::validate`] refuses the circuit. [`WriteError::Random`] and [`WriteError::Summed`] for random gates and outputs summed over
/// the rows, which no format has; [`WriteError::Sequential`] for registers or cycles in another format than [`Flavour::Sequential`];
/// [`WriteError::Name`] for a port name with white space at an end in [`Flavour::Sequential`]; [`WriteError::OldInputs`] and
/// [`WriteError::OldOutputs`] for ports that [`Flavour::Old`] has no room for. [`WriteError::Io`] if `to` cannot be written.
pub fn write(
    circuit: &Circuit,
    flavour: Flavour,
    to: &mut impl io::Write,
) -> Result<(), WriteError> {
    match (circuit.ring, flavour) {
        (Ring::Bits, Flavour::Integers) => return Err(WriteError::NotIntegers),
        (Ring::Bits, _) | (_, Flavour::Integers) => {}
        (ring, _) => return Err(WriteError::NotBits(ring)),
    }
    circuit.validate()?;
    super::read::outputs_are_of_the_ring(circuit)?;
    if circuit.is_random() {
        return Err(WriteError::Random);
    }
    if flavour == Flavour::Sequential {
        let names = circuit.inputs.iter().map(|port| &port.name);
        let mut names = names.chain(circuit.outputs.iter().map(|port| &port.name));
        if let Some(name) = names.find(|name| name.trim() != name.as_str()) {
            return Err(WriteError::Name(name.clone()));
        }
    } else if circuit.is_sequential() {
        return Err(WriteError::Sequential);
    }
    if let Some(port) = circuit
        .outputs
        .iter()
        .find(|port| port.reduce == Reduce::Sum)
    {
        return Err(WriteError::Summed(port.name.clone()));
    }
    if flavour == Flavour::Old {
        if !(1..=2).contains(&circuit.inputs.len()) {
            return Err(WriteError::OldInputs(circuit.inputs.len()));
        }
        if circuit.outputs.len() != 1 {
            return Err(WriteError::OldOutputs(circuit.outputs.len()));
        }
    }
    let mut body = Body::new(circuit, flavour);
    for gate in &circuit.gates {
        body.gate(*gate);
    }
    let numbers = body.number_outputs(circuit);

    let mut text = header(circuit, flavour, &body, &numbers).into_bytes();
    for (line, number) in body
        .lines
        .iter()
        .zip(&numbers[circuit.sources() as usize..])
    {
        let at = |file: u32| numbers[file as usize];
        match *line {
            Out::Xor(a, b) => writeln!(text, "2 1 {} {} {number} XOR", at(a), at(b))?,
            Out::And(a, b) => writeln!(text, "2 1 {} {} {number} AND", at(a), at(b))?,
            Out::Inv(a) => writeln!(text, "1 1 {} {number} INV", at(a))?,
            Out::Eq(bit) => writeln!(text, "1 1 {} {number} EQ", u8::from(bit))?,
            Out::Eqw(a) => writeln!(text, "1 1 {} {number} EQW", at(a))?,
            Out::Two(name, a, b) => writeln!(text, "2 1 {} {} {number} {name}", at(a), at(b))?,
            Out::With(name, a, c) => writeln!(text, "2 1 {} {c} {number} {name}", at(a))?,
            Out::Shift(a, by, bits) => {
                writeln!(text, "3 1 {} {by} {bits} {number} SHIFTN", at(a))?;
            }
            Out::Const(c) => writeln!(text, "1 1 {c} {number} CONST")?,
            Out::Lift(a) => writeln!(text, "1 1 {} {number} LIFT", at(a))?,
        }
        if text.len() >= BUFFER {
            to.write_all(&text)?;
            text.clear();
        }
    }
    to.write_all(&text)?;
    Ok(())
}

// Far more than a line, so that unbuffered files are written in few calls.
const BUFFER: usize = 1 << 16;

fn header(circuit: &Circuit, flavour: Flavour, body: &Body, numbers: &[u32]) -> String {
    let inputs: Vec<String> = circuit
        .inputs
        .iter()
        .map(|port| port.width.to_string())
        .collect();
    let outputs: Vec<String> = circuit
        .outputs
        .iter()
        .map(|port| port.wires.len().to_string())
        .collect();
    let gates = body.lines.len();
    let wires = circuit.sources() as usize + gates;
    match flavour {
        Flavour::Sequential => {
            let cycles = circuit.clock.cycles;
            let first = format!("{gates} {wires} {SEQUENTIAL} {cycles}\n");
            first + &declarations(circuit, body, numbers) + "\n"
        }
        Flavour::Fashion | Flavour::Integers => {
            let values = |widths: &[String]| {
                let count = widths.len().to_string();
                [&[count], widths].concat().join(" ")
            };
            let ring = match flavour {
                Flavour::Integers => format!(" {INTEGERS} {}", circuit.ring.bits()),
                _ => String::new(),
            };
            format!(
                "{gates} {wires}{ring}\n{}\n{}\n\n",
                values(&inputs),
                values(&outputs)
            )
        }
        Flavour::Old => {
            let second = inputs.get(1).map_or("0", String::as_str);
            format!("{gates} {wires}\n{} {second} {}\n\n", inputs[0], outputs[0])
        }
    }
}

/// The lines of ports and registers.
fn declarations(circuit: &Circuit, body: &Body, numbers: &[u32]) -> String {
    let inputs = circuit.inputs.iter().map(|port| {
        let per = PER.iter().find(|(_, per)| *per == port.per);
        let per = per.map_or("row", |(word, _)| *word);
        format!("input {} {per} {}\n", port.width, port.name)
    });
    let outputs = circuit.outputs.iter().map(|port| {
        let of = OF.iter().find(|(_, of)| *of == port.reduce);
        let of = of.map_or("last", |(word, _)| *word);
        format!("output {} {of} {}\n", port.wires.len(), port.name)
    });
    let number = |wire: Wire| numbers[body.place[wire.0 as usize] as usize];
    let registers = circuit.clock.registers.iter().map(|register| {
        let initial = match register.initial {
            Initial::Constant(bit) => CONSTANTS[usize::from(bit)].0.to_owned(),
            Initial::Wire(wire) => number(wire).to_string(),
        };
        format!("register {} {initial}\n", number(register.next))
    });
    inputs.chain(outputs).chain(registers).collect()
}

/// A gate line. Operands are wires as numbered before the outputs are moved to the end.
#[derive(Clone, Copy)]
enum Out {
    Xor(u32, u32),
    And(u32, u32),
    Inv(u32),
    Eq(bool),
    Eqw(u32),
    /// Over two integers.
    Two(&'static str, u32, u32),
    /// Over an integer and a number.
    With(&'static str, u32, u128),
    /// An integer, how many bits go, and how many it has.
    Shift(u32, u32, u32),
    /// A public integer.
    Const(u128),
    Lift(u32),
}

struct Body {
    flavour: Flavour,
    inputs: u32,
    /// Of every wire of the circuit.
    rings: Vec<Ring>,
    lines: Vec<Out>,
    /// The file's wire for each of the circuit's.
    place: Vec<u32>,
}

impl Body {
    fn new(circuit: &Circuit, flavour: Flavour) -> Self {
        let inputs = circuit.sources();
        Self {
            flavour,
            inputs,
            rings: circuit.rings(),
            lines: Vec::with_capacity(circuit.gates.len()),
            place: (0..inputs).collect(),
        }
    }

    fn push(&mut self, line: Out) -> u32 {
        self.lines.push(line);
        self.inputs + self.lines.len() as u32 - 1
    }

    fn gate(&mut self, gate: Gate) {
        let at = |wire: Wire| self.place[wire.0 as usize];
        // Gates have numbers in the order in which they come.
        let bits = self.rings[self.place.len()] == Ring::Bits;
        let place = match gate {
            Gate::Plus(a, 0) | Gate::Times(a, 1) => at(a),
            Gate::Bit(a, j) => self.push(Out::With("BIT", at(a), j.into())),
            Gate::IsZero(a, bits) => self.push(Out::With("ZERO", at(a), bits.into())),
            Gate::ShiftRight { of, by, bits } if bits == self.rings[of.0 as usize].bits() => {
                self.push(Out::With("SHIFT", at(of), by.into()))
            }
            Gate::ShiftRight { of, by, bits } => self.push(Out::Shift(at(of), by, bits)),
            Gate::Append(a, b) => self.push(Out::Two("APPEND", at(a), at(b))),
            Gate::Lift(a) => self.push(Out::Lift(at(a))),
            Gate::ConstantBit(bit) => self.constant(bit),
            Gate::Add(a, b) | Gate::Sub(a, b) if bits => self.push(Out::Xor(at(a), at(b))),
            Gate::Mul(a, b) if bits => self.push(Out::And(at(a), at(b))),
            Gate::Plus(a, _) if bits => self.push(Out::Inv(at(a))),
            Gate::Times(_, bit) | Gate::Constant(bit) if bits => self.constant(bit == 1),
            Gate::Add(a, b) => self.push(Out::Two("ADD", at(a), at(b))),
            Gate::Sub(a, b) => self.push(Out::Two("SUB", at(a), at(b))),
            Gate::Mul(a, b) => self.push(Out::Two("MUL", at(a), at(b))),
            Gate::Plus(a, c) => self.push(Out::With("PLUS", at(a), c)),
            Gate::Times(a, c) => self.push(Out::With("TIMES", at(a), c)),
            Gate::Constant(c) => self.push(Out::Const(c)),
            Gate::Random(_) | Gate::RandomBit(_) | Gate::TruncatePr { .. } => {
                unreachable!("random circuits were refused")
            }
        };
        self.place.push(place);
    }

    fn constant(&mut self, bit: bool) -> u32 {
        if self.flavour != Flavour::Old {
            return self.push(Out::Eq(bit));
        }
        let zero = self.push(Out::Xor(0, 0));
        if bit { self.push(Out::Inv(zero)) } else { zero }
    }

    fn copy(&mut self, of: u32) -> u32 {
        if self.flavour != Flavour::Old {
            return self.push(Out::Eqw(of));
        }
        let not = self.push(Out::Inv(of));
        self.push(Out::Inv(not))
    }

    /// Gives every output bit a gate of its own, and returns the final number of each wire: outputs last, in order.
    fn number_outputs(&mut self, circuit: &Circuit) -> Vec<u32> {
        let mut taken = vec![false; self.inputs as usize + self.lines.len()];
        taken[..self.inputs as usize].fill(true);
        let mut outputs = Vec::new();
        for wire in circuit.outputs.iter().flat_map(|port| &port.wires) {
            let place = self.place[wire.0 as usize];
            let own = if std::mem::replace(&mut taken[place as usize], true) {
                self.copy(place)
            } else {
                place
            };
            outputs.push(own);
        }
        let wires = self.inputs as usize + self.lines.len();
        let mut numbers = vec![u32::MAX; wires];
        for (number, &output) in (wires - outputs.len()..).zip(&outputs) {
            numbers[output as usize] = number as u32;
        }
        let mut next = 0..;
        for number in numbers.iter_mut().filter(|number| **number == u32::MAX) {
            *number = next.next().expect("an endless range");
        }
        numbers
    }
}
