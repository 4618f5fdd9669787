//! A netlist as its file has it.

use super::read::{File, Netted, order, read};
use super::tokens::Spot;
use crate::bristol::ParseError;
use crate::{Limits, Per, Reduce};

/// A netlist: wires are numbered initial inputs, inputs of every cycle, flip-flops, gates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Netlist {
    /// Inputs with one value for all cycles.
    pub initial: u32,
    /// Inputs with a value in each cycle.
    pub cyclic: u32,
    /// Gates, each after the gates that it reads: in the order of the file, if that is such an order.
    pub gates: Vec<Gate>,
    /// Outputs of every cycle, in the order of the file.
    pub outputs: Vec<Operand>,
    /// Of each flip-flop the value that it takes after every cycle, and that of the first one.
    pub registers: Vec<(Operand, Operand)>,
}

/// A gate of a netlist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate {
    /// The first operand.
    pub a: Operand,
    /// The second: of a negation, the same as the first where the file names none.
    pub b: Operand,
    /// The function.
    pub kind: Kind,
}

/// An operand of a gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A public bit.
    Constant(bool),
    /// A wire.
    Wire(u32),
}

/// The function of a gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The negation of a.
    Not,
    /// a ⊕ b ⊕ c.
    Xor(bool),
    /// ((a ⊕ α) ∧ (b ⊕ β)) ⊕ γ.
    And([bool; 3]),
}

impl Netlist {
    /// The wire of the first flip-flop: all before it are inputs.
    pub fn inputs(&self) -> u32 {
        self.initial + self.cyclic
    }
}

impl Kind {
    /// What the number of a type stands for: a truth table, bit 2a + b the value for operands a and b; 12 is the negation of a.
    pub(super) fn of(number: i64) -> Option<Self> {
        let and = |[a, b, c]: [u8; 3]| Kind::And([a == 1, b == 1, c == 1]);
        Some(match number {
            12 => Kind::Not,
            6 => Kind::Xor(false),
            9 => Kind::Xor(true),
            8 => and([0, 0, 0]),
            4 => and([0, 1, 0]),
            2 => and([1, 0, 0]),
            1 => and([1, 1, 0]),
            7 => and([0, 0, 1]),
            11 => and([0, 1, 1]),
            13 => and([1, 0, 1]),
            14 => and([1, 1, 1]),
            _ => return None,
        })
    }
}

/// Reads a netlist as it stands: a gate of the file is one gate, whatever it negates. What [`read`](fn@super::read) refuses, for other reasons than the
/// cycles and outputs that it is told, this refuses too.
///
/// # Errors
/// [`ParseError`] as of [`read`](fn@super::read) for one cycle and outputs of the last cycle.
pub fn netlist(text: &[u8], limits: &Limits) -> Result<Netlist, ParseError> {
    // What is checked of a circuit holds for any number of cycles.
    read(text, 1, Reduce::None, limits)?;
    let file = File::read(text, limits)?;
    let header = &file.header;
    let order = order(header, &file.gates, file.top)?;
    let sources = header.sources() as u32;
    let mut places = vec![0; order.len()];
    for (place, index) in order.iter().enumerate() {
        places[*index] = sources + place as u32;
    }
    let placed = |operand: Operand| match operand {
        Operand::Wire(wire) if wire >= sources => Operand::Wire(places[(wire - sources) as usize]),
        operand => operand,
    };
    let wires = |list: &[(i64, Spot)]| {
        let wire = |&(number, spot): &(i64, Spot)| Ok(placed(header.wire(number, spot)?));
        list.iter().map(wire).collect::<Result<Vec<_>, _>>()
    };
    let of = |per: Per| {
        let ports = header.inputs.iter().filter(|port| port.2 == per);
        ports.map(|(_, width, _)| *width as u32).sum()
    };
    let gates = order.iter().map(|index| {
        let Netted { a, b, kind, .. } = file.gates[*index];
        let [a, b] = [a, b].map(placed);
        Gate { a, b, kind }
    });
    Ok(Netlist {
        initial: of(Per::Row),
        cyclic: of(Per::Cycle),
        gates: gates.collect(),
        outputs: wires(&file.outputs)?,
        registers: wires(&file.next)?
            .into_iter()
            .zip(wires(&file.initial)?)
            .collect(),
    })
}
