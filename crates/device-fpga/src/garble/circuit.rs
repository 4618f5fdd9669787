//! The body of a sequential circuit: a netlist cycle, with registers renamed.
//!
//! A register is the value that its D had in the cycle before. Where D is a gate's result, through however many registers, a reader of the
//! register reads that result of so many cycles ago, and no label is copied. Where D is no gate's, the register's labels are known before the
//! run, and it becomes an input of every cycle. What remains is copied by a gate: registers that begin as something else than another one
//! with the same D, that go round in a ring, or that are older than a ring of slots reaches; and, so that fewer labels have to come in, one
//! of every few registers of a chain that is read in several places.

use std::collections::BTreeMap;

use veil_circuit::{Circuit, Gate, Initial, Per, Wire};
use veil_math::Ring;

use super::body::{Body, First, Of, Value};

/// Cycles that a value may be old when it is read: half of the largest ring, for what is read late lives longer.
const OLDEST: u32 = 64;

/// A chain that is read in more places than this is copied.
const FEW: usize = 2;

/// What an input of every repetition is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Each {
    /// In the first cycles: constants and inputs of the run.
    pub first: Vec<Value>,
    /// In those that follow: an input of the cycle, from that of cycle 0 on, or the same value in all of them.
    pub then: Value,
}

/// A circuit as a core garbles it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sequential {
    /// A netlist cycle.
    pub body: Body,
    /// What the inputs of every repetition are, in terms of the circuit's inputs of a cycle and of the run.
    pub each: Vec<Each>,
    /// Netlist cycles.
    pub cycles: u64,
    /// Bits of the output ports of a cycle: whose label, and whether it is inverted.
    pub outputs: Vec<Value>,
}

/// Why a core cannot garble a circuit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// It is not of bits.
    #[error("the circuit has integers, and only gates of bits have tables")]
    Integers,
}

impl Sequential {
    /// The circuit, renamed. Inputs of the run are the bits of ports with one value for all cycles, in the order of the ports, and so
    /// are those of each cycle.
    ///
    /// # Errors
    /// [`Unfit::Integers`] if the circuit is not of bits.
    pub fn of(circuit: &Circuit) -> Result<Self, Unfit> {
        if circuit.ring != Ring::Bits {
            return Err(Unfit::Integers);
        }
        let mut renaming = Renaming::new(circuit);
        renaming.anchor();
        renaming.gates();
        let wires = circuit.outputs.iter().flat_map(|port| &port.wires);
        let outputs: Vec<Value> = wires.map(|wire| renaming.value(*wire)).collect();
        renaming.copied();
        let Renaming {
            mut body,
            firsts,
            each,
            ..
        } = renaming;
        for output in &outputs {
            if matches!(output.of, Of::Gate { .. }) && !body.leaves.contains(&output.of) {
                body.leaves.push(output.of);
            }
        }
        let first = |((gate, back), value)| First { gate, back, value };
        body.firsts = firsts.into_iter().map(first).collect();
        body.of_each = each.len() as u32;
        Ok(Sequential {
            body,
            each,
            cycles: circuit.clock.cycles,
            outputs,
        })
    }
}

/// Where a register's values come from.
enum From {
    /// A gate of the circuit, so many cycles before.
    Gate(usize),
    /// An input or a constant.
    Known(Value),
    /// A register that is copied.
    Copy(usize),
    /// Registers alone.
    Ring,
}

struct Renaming<'a> {
    circuit: &'a Circuit,
    body: Body,
    /// What inputs are.
    inputs: Vec<Value>,
    /// The gate of the body that a gate of the circuit has, if it is an XOR or an AND.
    numbers: Vec<Option<u32>>,
    /// What registers are, as far as they were read.
    registers: Vec<Option<Value>>,
    /// Whether a register is to be copied.
    anchors: Vec<bool>,
    /// Registers that are copied.
    copies: Vec<usize>,
    firsts: BTreeMap<(u32, u32), Value>,
    each: Vec<Each>,
}

impl<'a> Renaming<'a> {
    fn new(circuit: &'a Circuit) -> Self {
        let (mut of_run, mut of_cycle) = (0, 0);
        let mut inputs = Vec::new();
        for port in &circuit.inputs {
            for _ in 0..port.width {
                let (next, of): (_, fn(u32) -> Of) = match port.per {
                    Per::Cycle => (&mut of_cycle, |input| Of::Each { input, back: 0 }),
                    Per::Row | Per::Job => (&mut of_run, Of::Run),
                };
                inputs.push(Value::plain(of(*next)));
                *next += 1;
            }
        }
        let mut numbers = Vec::with_capacity(circuit.gates.len());
        let mut gates = 0;
        for gate in &circuit.gates {
            let is_one = matches!(gate, Gate::Add(..) | Gate::Sub(..) | Gate::Mul(..));
            numbers.push(is_one.then_some(gates));
            gates += u32::from(is_one);
        }
        let cycle_input = |input| Each {
            first: vec![],
            then: Value::plain(Of::Each { input, back: 0 }),
        };
        Renaming {
            body: Body {
                of_run,
                ..Body::default()
            },
            inputs,
            numbers,
            registers: vec![None; circuit.clock.registers.len()],
            anchors: vec![false; circuit.clock.registers.len()],
            copies: Vec::new(),
            firsts: BTreeMap::new(),
            each: (0..of_cycle).map(cycle_input).collect(),
            circuit,
        }
    }

    /// Says which registers of chains are copied.
    fn anchor(&mut self) {
        let registers = 0..self.registers.len();
        let read = self.read();
        // The chains of what no gate drives, by the register at their beginning: places that are read.
        let mut chains: BTreeMap<usize, usize> = BTreeMap::new();
        let of: Vec<_> = registers.map(|register| self.chain(register)).collect();
        for (chain, read) in of.iter().zip(&read) {
            if let (Some((first, _)), true) = (chain, read) {
                *chains.entry(*first).or_insert(0) += 1;
            }
        }
        for (anchor, chain) in self.anchors.iter_mut().zip(of) {
            *anchor = chain.is_some_and(|(first, place)| {
                chains.get(&first).is_some_and(|places| *places > FEW) && place % OLDEST == 0
            });
        }
    }

    /// Whether gates or outputs read a register.
    fn read(&self) -> Vec<bool> {
        let mut read = vec![false; self.registers.len()];
        let operands = self
            .circuit
            .gates
            .iter()
            .filter(|gate| matches!(gate, Gate::Add(..) | Gate::Sub(..) | Gate::Mul(..)));
        let operands = operands.flat_map(Gate::operands);
        let outputs = self
            .circuit
            .outputs
            .iter()
            .flat_map(|port| port.wires.iter().copied());
        for wire in operands.chain(outputs) {
            if let (End::Register(register), _) = self.end(wire) {
                read[register] = true;
            }
        }
        read
    }

    /// The register at the beginning of a chain that no gate drives, and how many come between.
    fn chain(&self, mut register: usize) -> Option<(usize, u32)> {
        for place in 0..=self.registers.len() as u32 {
            match self.end(self.circuit.clock.registers[register].next).0 {
                End::Register(next) if next != register => register = next,
                End::Register(_) | End::Input(_) => return Some((register, place)),
                End::Gate(_) => return None,
            }
        }
        None
    }

    /// Puts in the gates of the circuit.
    fn gates(&mut self) {
        // Gates of the body have the numbers that were given, whatever is copied meanwhile: copies come behind.
        for gate in &self.circuit.gates {
            let (is_and, operands) = match *gate {
                Gate::Add(a, b) | Gate::Sub(a, b) => (false, [a, b]),
                Gate::Mul(a, b) => (true, [a, b]),
                _ => continue,
            };
            let operands = operands.map(|wire| self.value(wire));
            self.body.push(is_and, operands);
        }
    }

    /// Puts in a gate for each register that is copied: the XOR with the constant 0.
    fn copied(&mut self) {
        let mut done = 0;
        // Copying one may need another.
        while let Some(&register) = self.copies.get(done) {
            let next = self.circuit.clock.registers[register].next;
            let value = self.value(next);
            let copy = self.body.push(false, [value, Value::constant(false)]);
            debug_assert_eq!(
                copy.of,
                self.copy(done),
                "copies come in the order in which they were asked for"
            );
            done += 1;
        }
    }

    /// The gate that copies the register that was the `k`-th to be copied.
    fn copy(&self, k: usize) -> Of {
        let gates = self.numbers.iter().flatten().count();
        let gate = (gates + k) as u32;
        Of::Gate { gate, back: 0 }
    }

    /// What a wire is.
    fn value(&mut self, wire: Wire) -> Value {
        let (end, not) = self.end(wire);
        match end {
            End::Input(value) => value.inverted(not),
            End::Register(register) => self.register(register).inverted(not),
            End::Gate(gate) => self.result(gate, 0).inverted(not),
        }
    }

    /// The result of a gate of the circuit.
    fn result(&self, gate: usize, back: u32) -> Value {
        let gate = self.numbers[gate].expect("an end is an XOR or an AND");
        Value::plain(Of::Gate { gate, back })
    }

    /// Follows inversions and constants to what they invert.
    fn end(&self, mut wire: Wire) -> (End, bool) {
        let mut not = false;
        let (inputs, sources) = (self.circuit.input_wires(), self.circuit.sources());
        loop {
            if wire.0 < inputs {
                return (End::Input(self.inputs[wire.0 as usize]), not);
            }
            if wire.0 < sources {
                return (End::Register((wire.0 - inputs) as usize), not);
            }
            let gate = (wire.0 - sources) as usize;
            match self.circuit.gates[gate] {
                Gate::Plus(a, c) => {
                    not ^= c & 1 == 1;
                    wire = a;
                }
                Gate::Times(a, c) if c & 1 == 1 => wire = a,
                Gate::Times(..) => return (End::Input(Value::constant(false)), not),
                Gate::Constant(c) => return (End::Input(Value::constant(c & 1 == 1)), not),
                _ => return (End::Gate(gate), not),
            }
        }
    }

    fn initial(&self, register: usize) -> Value {
        match self.circuit.clock.registers[register].initial {
            Initial::Constant(bit) => Value::constant(bit),
            Initial::Wire(wire) => self.inputs[wire.0 as usize],
        }
    }

    /// What a register is in a cycle.
    fn register(&mut self, register: usize) -> Value {
        if let Some(value) = self.registers[register] {
            return value;
        }
        let value = self.renamed(register).unwrap_or_else(|| {
            let copy = self.copy(self.copies.len());
            self.copies.push(register);
            let Of::Gate { gate, .. } = copy else {
                return Value::constant(false);
            };
            self.firsts.insert((gate, 1), self.initial(register));
            Value::plain(copy).earlier(1)
        });
        self.registers[register] = Some(value);
        value
    }

    /// What a register is, if that takes no gate.
    fn renamed(&mut self, register: usize) -> Option<Value> {
        if self.circuit.clock.cycles == 1 {
            return Some(self.initial(register));
        }
        if self.anchors[register] {
            return None;
        }
        let (from, not, first) = self.follow(register);
        match from {
            From::Ring => None,
            From::Copy(next) => {
                let Of::Gate { gate, .. } = self.register(next).of else {
                    return None;
                };
                // The copy is the register's value a cycle later.
                self.delayed(gate, first.len() as u32 + 1, not, &first)
            }
            From::Known(then) => {
                let then = then.inverted(not);
                let constant =
                    |value: &Value| *value == then && !matches!(then.of, Of::Each { .. });
                if first.iter().all(constant) {
                    return Some(then);
                }
                let each = Each { first, then };
                let at = self.each.iter().position(|other| *other == each);
                let input = at.unwrap_or_else(|| {
                    self.each.push(each);
                    self.each.len() - 1
                });
                let input = input as u32;
                Some(Value::plain(Of::Each { input, back: 0 }))
            }
            From::Gate(gate) => {
                let gate = self.numbers[gate].expect("an end is an XOR or an AND");
                self.delayed(gate, first.len() as u32, not, &first)
            }
        }
    }

    /// The result of a gate `back` cycles ago, and in the first cycles other values; if that can be.
    fn delayed(&mut self, gate: u32, back: u32, not: bool, first: &[Value]) -> Option<Value> {
        let places = (0..back).map(|cycle| (gate, back - cycle));
        let firsts: Vec<_> = places
            .zip(first.iter().map(|value| value.inverted(not)))
            .collect();
        let other = |(at, value): &((u32, u32), Value)| {
            self.firsts.get(at).is_some_and(|there| there != value)
        };
        if back > OLDEST || firsts.iter().any(other) {
            return None;
        }
        self.firsts.extend(firsts);
        Some(Value::plain(Of::Gate { gate, back }).inverted(not))
    }

    /// Follows a register to what drives it: that, whether it is inverted, and what the register is in the cycles before it comes.
    fn follow(&self, register: usize) -> (From, bool, Vec<Value>) {
        let mut not = false;
        let mut first = vec![self.initial(register)];
        let mut at = register;
        loop {
            let (end, inverted) = self.end(self.circuit.clock.registers[at].next);
            not ^= inverted;
            match end {
                // It holds what it begins as.
                End::Register(next) if next == at && !inverted => {
                    return (From::Known(self.initial(at)), not, first);
                }
                End::Gate(gate) => return (From::Gate(gate), not, first),
                End::Input(value) => return (From::Known(value), not, first),
                End::Register(next) if self.anchors[next] => return (From::Copy(next), not, first),
                End::Register(next) => {
                    if first.len() > self.registers.len() {
                        return (From::Ring, not, first);
                    }
                    first.push(self.initial(next).inverted(not));
                    at = next;
                }
            }
        }
    }
}

/// What drives a wire, inversions aside.
enum End {
    Input(Value),
    Register(usize),
    /// An XOR or an AND.
    Gate(usize),
}
