//! From numbers to a circuit.

use veil_math::Ring;

use super::netlist::{Kind, Operand};
use super::tokens::{Spot, Tokens};
use crate::bristol::{ParseError, ParseErrorKind};
use crate::{
    Circuit, Clock, Gate, Initial, InputPort, Limits, OutputPort, Per, Reduce, Register, Wire,
};

const NOTHING: i64 = -1;
const ZERO: i64 = -2;
const ONE: i64 = -3;

/// Reads a circuit of `cycles` cycles, whose outputs count in every cycle or, with [`Reduce::None`], in the last.
///
/// Sizes are checked against `limits` before anything is allocated. A gate becomes a product or a sum, and negations of what it reads and
/// drives, as its type needs.
///
/// # Errors
/// [`ParseError`] with line and column: a header that no netlist has ([`ParseErrorKind::Header`]), a number, wire or gate type
/// that does not exist, a netlist whose end depends on a wire ([`ParseErrorKind::Terminates`]), gates that read each other
/// ([`ParseErrorKind::Cyclic`]), a file that ends early or goes on. [`ParseErrorKind::TooLarge`] if a count exceeds `limits`;
/// [`ParseErrorKind::Circuit`] if [`Circuit::validate_within`] refuses the circuit.
pub fn read(
    text: &[u8],
    cycles: u64,
    outputs: Reduce,
    limits: &Limits,
) -> Result<Circuit, ParseError> {
    let file = File::read(text, limits)?;
    let (header, top) = (&file.header, file.top);
    let mut body = Body::new(header, limits.gates);
    for index in order(header, &file.gates, top)? {
        body.gate(index, file.gates[index])?;
    }
    let mut wires = |list: &[(i64, Spot)]| {
        let wire = |&(number, spot): &(i64, Spot)| {
            let from = header.wire(number, spot)?;
            body.wire(from, spot)
        };
        list.iter().map(wire).collect::<Result<Vec<_>, _>>()
    };
    let put_out = wires(&file.outputs)?;
    let next = wires(&file.next)?;
    let registers = next.into_iter().zip(&file.initial);
    let registers = registers.map(|(next, &(number, spot))| {
        // What is another value in every cycle, or no input, is refused with the whole circuit.
        let initial = match header.wire(number, spot)? {
            Operand::Wire(wire) => Initial::Wire(Wire(wire)),
            Operand::Constant(bit) => Initial::Constant(bit),
        };
        Ok(Register { initial, next })
    });
    let circuit = Circuit {
        ring: Ring::Bits,
        inputs: header.ports(),
        outputs: vec![OutputPort {
            name: "output".into(),
            wires: put_out,
            reduce: outputs,
        }],
        clock: Clock {
            registers: registers.collect::<Result<_, _>>()?,
            cycles,
        },
        gates: body.gates,
    };
    let circuit = circuit
        .validate_within(limits)
        .map(|()| circuit)
        .map_err(|error| top.error(error.into()))?;
    Ok(circuit)
}

/// What a file says, number by number.
pub(super) struct File {
    pub(super) header: Header,
    /// Where it begins.
    pub(super) top: Spot,
    pub(super) gates: Vec<Netted>,
    pub(super) outputs: Vec<(i64, Spot)>,
    pub(super) next: Vec<(i64, Spot)>,
    pub(super) initial: Vec<(i64, Spot)>,
}

impl File {
    pub(super) fn read(text: &[u8], limits: &Limits) -> Result<Self, ParseError> {
        let mut tokens = Tokens::new(text);
        let top = tokens.spot();
        let header = Header::read(&mut tokens, limits)?;
        let mut some = |count, what| list(&mut tokens, count, what);
        let first = some(header.gates, "the first operand of a gate")?;
        let second = some(header.gates, "the second operand of a gate")?;
        let kinds = some(header.gates, "the type of a gate")?;
        let outputs = some(header.outputs, "an output")?;
        let next = some(header.registers, "the next value of a flip-flop")?;
        let initial = some(header.registers, "the first value of a flip-flop")?;
        if let Some((word, spot)) = tokens.word() {
            let found: String = String::from_utf8_lossy(word).chars().take(24).collect();
            let found = found.replace(char::is_control, "\u{fffd}");
            let gates = header.gates;
            return Err(spot.error(ParseErrorKind::FileGoesOn { found, gates }));
        }
        let gates = first.into_iter().zip(second).zip(kinds);
        let gates = gates.map(|((a, b), kind)| header.gate(a, b, kind));
        Ok(File {
            gates: gates.collect::<Result<_, _>>()?,
            header,
            top,
            outputs,
            next,
            initial,
        })
    }
}

/// How many there are of everything.
pub(super) struct Header {
    /// Name, bits and whether there is a value in every cycle, in the order of the wires.
    pub(super) inputs: Vec<(&'static str, u64, Per)>,
    registers: u64,
    outputs: u64,
    gates: u64,
}

impl Header {
    fn read(tokens: &mut Tokens<'_>, limits: &Limits) -> Result<Self, ParseError> {
        let spot = tokens.spot();
        let count = tokens.on_line();
        let (long, ends) = match count {
            7 => (false, false),
            9 => (true, false),
            10 => (true, true),
            _ => return Err(spot.error(ParseErrorKind::Header { count })),
        };
        let mut next = |what: &'static str, limit: u64| {
            let (number, spot) = tokens.number(what)?;
            let found = u64::try_from(number).map_err(|_| {
                let found = number.to_string();
                let expected = what;
                spot.error(ParseErrorKind::NotANumber { expected, found })
            })?;
            if found > limit {
                return Err(spot.error(ParseErrorKind::TooLarge { what, found, limit }));
            }
            Ok((found, spot))
        };
        let most = limits.wires.min(u64::from(u32::MAX));
        let mut inputs = Vec::new();
        for (prefix, per) in [("init", Per::Row), ("input", Per::Cycle)] {
            for (name, who) in [
                (["p_init", "p_input"], 'p'),
                (["g_init", "g_input"], 'g'),
                (["e_init", "e_input"], 'e'),
            ] {
                if who != 'p' || long {
                    let name = name[usize::from(prefix == "input")];
                    let (width, _) = next("wires", most)?;
                    inputs.push((name, width, per));
                }
            }
        }
        let (registers, _) = next("wires", most)?;
        let (outputs, _) = next("output wires", limits.output_wires)?;
        if ends {
            let (terminate, spot) = next("wires", most)?;
            if terminate != 0 {
                return Err(spot.error(ParseErrorKind::Terminates { wire: terminate }));
            }
        }
        let (gates, spot) = next("gates", limits.gates)?;
        let header = Header {
            inputs,
            registers,
            outputs,
            gates,
        };
        let (what, found) = ("wires", header.wires());
        if found > most {
            let limit = most;
            return Err(spot.error(ParseErrorKind::TooLarge { what, found, limit }));
        }
        Ok(header)
    }

    /// Wires of ports and flip-flops: a few numbers of 32 bits.
    pub(super) fn sources(&self) -> u64 {
        self.inputs.iter().map(|(_, width, _)| width).sum::<u64>() + self.registers
    }

    fn wires(&self) -> u64 {
        self.sources() + self.gates
    }

    fn ports(&self) -> Vec<InputPort> {
        let ports = self.inputs.iter().filter(|(_, width, _)| *width > 0);
        ports
            .map(|&(name, width, per)| InputPort {
                name: name.into(),
                width: width as u32,
                per,
                bits: false,
            })
            .collect()
    }

    /// What a number stands for.
    pub(super) fn wire(&self, number: i64, spot: Spot) -> Result<Operand, ParseError> {
        match number {
            ZERO => return Ok(Operand::Constant(false)),
            ONE => return Ok(Operand::Constant(true)),
            _ => {}
        }
        let last = self.wires().saturating_sub(1);
        match u64::try_from(number) {
            Ok(wire) if wire < self.wires() => Ok(Operand::Wire(wire as u32)),
            Ok(wire) => Err(spot.error(ParseErrorKind::NoSuchWire { wire, last })),
            Err(_) => {
                let (expected, found) = ("a wire, -2 or -3", number.to_string());
                Err(spot.error(ParseErrorKind::NotANumber { expected, found }))
            }
        }
    }

    fn gate(
        &self,
        (a, at): (i64, Spot),
        (b, beside): (i64, Spot),
        (kind, of): (i64, Spot),
    ) -> Result<Netted, ParseError> {
        let kind = Kind::of(kind).ok_or_else(|| {
            let found = kind;
            of.error(ParseErrorKind::GateType { found })
        })?;
        let a = self.wire(a, at)?;
        let b = match (kind, b) {
            (Kind::Not, NOTHING) => a,
            _ => self.wire(b, beside)?,
        };
        Ok(Netted { a, b, kind, at })
    }
}

/// So many numbers.
fn list(
    tokens: &mut Tokens<'_>,
    count: u64,
    what: &'static str,
) -> Result<Vec<(i64, Spot)>, ParseError> {
    // A number takes two bytes, whatever the header says.
    let mut list = Vec::with_capacity(count.min(tokens.left() / 2 + 1) as usize);
    for _ in 0..count {
        list.push(tokens.number(what)?);
    }
    Ok(list)
}

/// A gate of the file.
#[derive(Clone, Copy)]
pub(super) struct Netted {
    pub(super) a: Operand,
    pub(super) b: Operand,
    pub(super) kind: Kind,
    at: Spot,
}

/// The gates, each after those that it reads: as they are, if they are in such an order.
pub(super) fn order(
    header: &Header,
    gates: &[Netted],
    top: Spot,
) -> Result<Vec<usize>, ParseError> {
    let sources = header.sources();
    let driver = |from: Operand| match from {
        Operand::Wire(wire) => u64::from(wire).checked_sub(sources).map(|g| g as usize),
        Operand::Constant(_) => None,
    };
    let operands = |gate: &Netted| [driver(gate.a), driver(gate.b)].into_iter().flatten();
    let later = |(index, gate): (usize, &Netted)| operands(gate).any(|from| from >= index);
    if !gates.iter().enumerate().any(later) {
        return Ok((0..gates.len()).collect());
    }
    // Depth first, without recursion: a file may be one long chain.
    let mut state = vec![State::New; gates.len()];
    let mut order = Vec::with_capacity(gates.len());
    let mut stack = Vec::new();
    for root in 0..gates.len() {
        stack.push(root);
        while let Some(&index) = stack.last() {
            if state[index] != State::New {
                if state[index] == State::Open {
                    state[index] = State::Done;
                    order.push(index);
                }
                stack.pop();
                continue;
            }
            state[index] = State::Open;
            for from in operands(&gates[index]) {
                match state[from] {
                    State::New => stack.push(from),
                    State::Done => {}
                    State::Open => {
                        let wire = sources + from as u64;
                        let kind = ParseErrorKind::Cyclic { wire };
                        return Err(gates.get(index).map_or(top, |g| g.at).error(kind));
                    }
                }
            }
        }
    }
    Ok(order)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// What it reads is being put in order.
    Open,
    Done,
}

/// The gates so far.
struct Body {
    sources: u32,
    limit: u64,
    gates: Vec<Gate>,
    /// Our wire of each gate of the file, once it is there.
    driven: Vec<Wire>,
    constants: [Option<Wire>; 2],
}

impl Body {
    fn new(header: &Header, limit: u64) -> Self {
        Body {
            sources: header.sources() as u32,
            limit,
            gates: Vec::new(),
            driven: vec![Wire(0); header.gates as usize],
            constants: [None; 2],
        }
    }

    fn push(&mut self, gate: Gate, spot: Spot) -> Result<Wire, ParseError> {
        self.gates.push(gate);
        let (what, found) = ("gates", self.gates.len() as u64);
        if found > self.limit {
            let limit = self.limit;
            return Err(spot.error(ParseErrorKind::TooLarge { what, found, limit }));
        }
        Ok(Wire(self.sources + self.gates.len() as u32 - 1))
    }

    /// Our wire; the reader of a gate comes after it.
    fn wire(&mut self, from: Operand, spot: Spot) -> Result<Wire, ParseError> {
        match from {
            Operand::Wire(wire) => Ok(match wire.checked_sub(self.sources) {
                Some(gate) => self.driven[gate as usize],
                None => Wire(wire),
            }),
            Operand::Constant(bit) => {
                if let Some(wire) = self.constants[usize::from(bit)] {
                    return Ok(wire);
                }
                let wire = self.push(Gate::Constant(bit.into()), spot)?;
                self.constants[usize::from(bit)] = Some(wire);
                Ok(wire)
            }
        }
    }

    fn not(&mut self, wire: Wire, if_so: bool, spot: Spot) -> Result<Wire, ParseError> {
        if if_so {
            self.push(Gate::Plus(wire, 1), spot)
        } else {
            Ok(wire)
        }
    }

    fn gate(&mut self, index: usize, gate: Netted) -> Result<(), ParseError> {
        let Netted { a, b, kind, at } = gate;
        let (a, b) = (self.wire(a, at)?, self.wire(b, at)?);
        self.driven[index] = match kind {
            Kind::Not => self.not(a, true, at)?,
            Kind::Xor(not) => {
                let sum = self.push(Gate::Add(a, b), at)?;
                self.not(sum, not, at)?
            }
            Kind::And([of_a, of_b, of_result]) => {
                let (a, b) = (self.not(a, of_a, at)?, self.not(b, of_b, at)?);
                let product = self.push(Gate::Mul(a, b), at)?;
                self.not(product, of_result, at)?
            }
        };
        Ok(())
    }
}
