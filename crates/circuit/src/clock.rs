//! Sequential circuits: registers, and how many cycles there are.
//!
//! A circuit with a [`Clock`] is run for a number of cycles. In each, its gates are computed as ever; then all registers take the values of
//! their `next` wires at once, so that a register may read another, or itself. The model is that of TinyGarble (Songhori, Hussain, Sadeghi,
//! Schneider, Koushanfar, "TinyGarble: Highly Compressed and Scalable Sequential Garbled Circuits", 2015): its `init` inputs are ports with a
//! value per row ([`Per::Row`]) or per job, its `input`s ports with a value per cycle ([`Per::Cycle`]).

use crate::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};

/// A flip-flop. Its own wire, which gates read, follows the wires of the input ports: see [`Circuit::register_wire`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Register {
    /// The value in the first cycle.
    pub initial: Initial,
    /// The wire whose value of a cycle it has in the next one: D. Any wire of the circuit.
    pub next: Wire,
}

/// The value of a register in the first cycle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Initial {
    /// A public bit.
    Constant(bool),
    /// A wire of an input port that has one value for all cycles.
    Wire(Wire),
}

/// Registers and the number of cycles, which make a circuit sequential. The default is a circuit that is not: one cycle, and no registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clock {
    /// Registers, whose wires come after the wires of the input ports.
    pub registers: Vec<Register>,
    /// How often the gates are computed: once at least.
    pub cycles: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Clock {
            registers: Vec::new(),
            cycles: 1,
        }
    }
}

impl InputPort {
    /// Bits or ring elements of a value over all cycles.
    pub fn value_width(&self, cycles: u64) -> u64 {
        match self.per {
            Per::Cycle => cycles.saturating_mul(self.width.into()),
            Per::Row | Per::Job => self.width.into(),
        }
    }
}

impl OutputPort {
    /// Bits or ring elements of a value over all cycles.
    pub fn value_width(&self, cycles: u64) -> u64 {
        let width = self.wires.len() as u64;
        match self.reduce {
            Reduce::EveryCycle => cycles.saturating_mul(width),
            Reduce::None | Reduce::Sum => width,
        }
    }
}

impl Circuit {
    /// Whether it says anything about cycles: it has several, or registers, or ports with a value in each.
    pub fn is_sequential(&self) -> bool {
        let clock = &self.clock;
        clock.cycles != 1
            || !clock.registers.is_empty()
            || self.inputs.iter().any(|port| port.per == Per::Cycle)
            || (self.outputs.iter()).any(|port| port.reduce == Reduce::EveryCycle)
    }

    /// The wire that a register drives.
    pub fn register_wire(&self, register: usize) -> Wire {
        Wire(self.input_wires() + register as u32)
    }

    /// Number of wires that no gate drives: wires of input ports, then of registers.
    pub fn sources(&self) -> u32 {
        self.input_wires() + self.clock.registers.len() as u32
    }

    /// Bits or ring elements of the value of an input port: of all cycles, cycle 0 first, if it has one in each.
    pub fn input_width(&self, port: usize) -> u64 {
        self.inputs[port].value_width(self.clock.cycles)
    }

    /// Bits or ring elements of the value of an output port: of all cycles, cycle 0 first, if it has one in each.
    pub fn output_width(&self, port: usize) -> u64 {
        self.outputs[port].value_width(self.clock.cycles)
    }
}

/// How often [`held`] gives up a guess before it believes in none: it takes so many passes over the gates at most.
const PASSES: usize = 64;

/// What registers are that have one public value in all cycles, or what they begin as if there is one cycle only.
///
/// At first every register that begins as a constant is taken to be that constant; those whose next value is then not known to be the same
/// are given up, until none has to be. What is left is right by induction over the cycles.
pub(crate) fn held(circuit: &Circuit) -> Vec<Option<Initial>> {
    let registers = &circuit.clock.registers;
    if circuit.clock.cycles == 1 {
        return registers.iter().map(|r| Some(r.initial)).collect();
    }
    let constant = |register: &Register| match register.initial {
        Initial::Constant(bit) => Some(bit),
        Initial::Wire(_) => None,
    };
    let mut held: Vec<Option<bool>> = registers.iter().map(constant).collect();
    for _ in 0..PASSES {
        if held.iter().all(Option::is_none) {
            return Vec::new();
        }
        let known = known(circuit, &held);
        let mut all = true;
        for (bit, register) in held.iter_mut().zip(registers) {
            if bit.is_some() && known[register.next.0 as usize] != *bit {
                (*bit, all) = (None, false);
            }
        }
        if all {
            return held
                .into_iter()
                .map(|bit| bit.map(Initial::Constant))
                .collect();
        }
    }
    Vec::new()
}

/// The bits that wires are known to be, if registers are these.
fn known(circuit: &Circuit, registers: &[Option<bool>]) -> Vec<Option<bool>> {
    let mut known = vec![None; circuit.input_wires() as usize];
    known.extend(registers);
    for gate in &circuit.gates {
        let at = |wire: Wire| known[wire.0 as usize];
        let bit = match *gate {
            Gate::Add(a, b) | Gate::Sub(a, b) => at(a).zip(at(b)).map(|(a, b)| a != b),
            Gate::Mul(a, b) => match (at(a), at(b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), other) | (other, Some(true)) => other,
                (None, None) => None,
            },
            Gate::Plus(a, c) => at(a).map(|a| a != (c == 1)),
            Gate::Times(_, 0) => Some(false),
            Gate::Times(a, _) => at(a),
            Gate::Constant(c) => Some(c == 1),
            // Sequential circuits are of bits.
            _ => None,
        };
        known.push(bit);
    }
    known
}
