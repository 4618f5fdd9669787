//! A circuit as it is computed on shares.

use std::collections::HashMap;

use veil_circuit::{InputPort, OutputPort, Wire};
use veil_math::Ring;

use super::authenticate::Macs;

/// A gate on shares: of a circuit those that are local or products, then what there is on shares alone. Operands are wires of smaller number.
///
/// What was *opened*, by [`Gate::Open`], every party has in the place of every component. Such a wire is read by [`Gate::ShiftRight`], which
/// leaves it so, as the second operand of [`Gate::Scale`], and by [`Gate::Take`] and [`Gate::Lift`], which make it a shared value again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Gate {
    Add(Wire, Wire),
    Sub(Wire, Wire),
    Mul(Wire, Wire),
    Plus(Wire, u128),
    Times(Wire, u128),
    Constant(u128),
    ConstantBit(bool),
    /// A bit of one component of an integer, shared with zeros as all other components.
    Bit(Wire, u32),
    /// One component of a bit as an integer, with zeros as all others.
    Lift(Wire),
    /// A bit as an integer, by two rounds of messages of their own.
    Raise(Wire),
    /// Every component without its lowest bits.
    ShiftRight(Wire, u32),
    /// A uniform value: every component is made under the key of its holders.
    Random,
    /// Opened to all parties, when all of its group are known. A group opens the sum of a value and a mask drawn for this opening, on which
    /// no other opened value depends except through this one.
    Open {
        from: Wire,
        group: u32,
    },
    /// One component, with zeros as all others.
    Take(Wire),
    /// Every component of an integer times the opened value.
    Scale(Wire, Wire),
    /// ⌊x / 2^by⌋ of an integer x below 2^(k - 1), or one more, by three rounds of messages of their own among three parties: one of them learns c = x + r, where the
    /// two others draw r. It is one more where the lowest bits of c are less than those of r.
    Truncate {
        of: Wire,
        by: u32,
        /// Whether those bits are there as [`Gate::Digit`].
        digits: bool,
    },
    /// A bit of a truncation of so many bits: bit `at` of c, or bit `at - by` of r.
    Digit {
        of: Wire,
        at: u32,
    },
}

impl Gate {
    /// A circuit's gate, if shares are computed with it as it is.
    pub(super) fn of(gate: veil_circuit::Gate) -> Option<Self> {
        use veil_circuit::Gate as Of;
        Some(match gate {
            Of::Add(a, b) => Gate::Add(a, b),
            Of::Sub(a, b) => Gate::Sub(a, b),
            Of::Mul(a, b) => Gate::Mul(a, b),
            Of::Plus(a, c) => Gate::Plus(a, c),
            Of::Times(a, c) => Gate::Times(a, c),
            Of::Constant(c) => Gate::Constant(c),
            Of::ConstantBit(c) => Gate::ConstantBit(c),
            Of::Bit(..)
            | Of::Lift(_)
            | Of::IsZero(..)
            | Of::ShiftRight { .. }
            | Of::Random(_)
            | Of::RandomBit(_)
            | Of::TruncatePr { .. }
            | Of::Append(..) => return None,
        })
    }

    /// The wires that it reads, at most two.
    pub(super) fn operands(&self) -> impl Iterator<Item = Wire> + use<> {
        let (a, b) = match *self {
            Gate::Add(a, b) | Gate::Sub(a, b) | Gate::Mul(a, b) | Gate::Scale(a, b) => {
                (Some(a), Some(b))
            }
            Gate::Plus(a, _)
            | Gate::Times(a, _)
            | Gate::Bit(a, _)
            | Gate::Lift(a)
            | Gate::Raise(a)
            | Gate::ShiftRight(a, _)
            | Gate::Take(a)
            | Gate::Open { from: a, .. }
            | Gate::Truncate { of: a, .. }
            | Gate::Digit { of: a, .. } => (Some(a), None),
            Gate::Constant(_) | Gate::ConstantBit(_) | Gate::Random => (None, None),
        };
        a.into_iter().chain(b)
    }

    /// The same gate on other wires.
    pub(super) fn map_operands(self, mut map: impl FnMut(Wire) -> Wire) -> Self {
        match self {
            Gate::Add(a, b) => Gate::Add(map(a), map(b)),
            Gate::Sub(a, b) => Gate::Sub(map(a), map(b)),
            Gate::Mul(a, b) => Gate::Mul(map(a), map(b)),
            Gate::Scale(a, b) => Gate::Scale(map(a), map(b)),
            Gate::Plus(a, c) => Gate::Plus(map(a), c),
            Gate::Times(a, c) => Gate::Times(map(a), c),
            Gate::Bit(a, j) => Gate::Bit(map(a), j),
            Gate::Lift(a) => Gate::Lift(map(a)),
            Gate::Raise(a) => Gate::Raise(map(a)),
            Gate::ShiftRight(a, by) => Gate::ShiftRight(map(a), by),
            Gate::Take(a) => Gate::Take(map(a)),
            Gate::Open { from, group } => Gate::Open {
                from: map(from),
                group,
            },
            Gate::Truncate { of, by, digits } => Gate::Truncate {
                of: map(of),
                by,
                digits,
            },
            Gate::Digit { of, at } => Gate::Digit { of: map(of), at },
            Gate::Constant(_) | Gate::ConstantBit(_) | Gate::Random => self,
        }
    }

    /// Whether it is computed when a layer begins, from slots to slots.
    pub(super) fn converts(&self) -> bool {
        match self {
            Gate::Bit(..)
            | Gate::Lift(_)
            | Gate::ShiftRight(..)
            | Gate::Random
            | Gate::Take(_)
            | Gate::Scale(..) => true,
            Gate::Add(..)
            | Gate::Sub(..)
            | Gate::Mul(..)
            | Gate::Plus(..)
            | Gate::Times(..)
            | Gate::Constant(_)
            | Gate::ConstantBit(_)
            | Gate::Raise(_)
            | Gate::Open { .. }
            | Gate::Truncate { .. }
            | Gate::Digit { .. } => false,
        }
    }

    /// Rounds of messages other than those of products after which it is known, if it comes with such: behind its operand, or with it.
    pub(super) fn rounds(&self) -> Option<u32> {
        match self {
            Gate::Digit { .. } => Some(0),
            Gate::Open { .. } => Some(1),
            Gate::Raise(_) => Some(2),
            Gate::Truncate { .. } => Some(3),
            _ => None,
        }
    }
}

/// Gates on shares, and the ports of the circuit that they compute.
pub(super) struct Circuit {
    /// The ring of inputs and outputs.
    pub(super) ring: Ring,
    pub(super) inputs: Vec<InputPort>,
    /// In topological order; the first drives the wire behind those of the inputs.
    pub(super) gates: Vec<Gate>,
    pub(super) outputs: Vec<OutputPort>,
}

impl Circuit {
    /// Number of input wires.
    pub(super) fn input_wires(&self) -> u32 {
        self.inputs.iter().map(|port| port.width).sum()
    }

    /// Number of wires in all.
    pub(super) fn wires(&self) -> u32 {
        self.input_wires() + self.gates.len() as u32
    }

    /// The wire that gate `index` drives.
    pub(super) fn gate_wire(&self, index: usize) -> Wire {
        Wire(self.input_wires() + index as u32)
    }

    /// Which wires some output needs.
    pub(super) fn reached(&self) -> Vec<bool> {
        let mut needed = vec![false; self.wires() as usize];
        for wire in self.outputs.iter().flat_map(|port| &port.wires) {
            needed[wire.0 as usize] = true;
        }
        let inputs = self.input_wires() as usize;
        for (index, gate) in self.gates.iter().enumerate().rev() {
            if needed[inputs + index] {
                gate.operands().for_each(|w| needed[w.0 as usize] = true);
            }
        }
        needed
    }
}

/// A circuit as it is computed on shares.
pub(super) struct Net {
    pub(super) circuit: Circuit,
    /// The component of each `Bit`, `Lift` and `Take` gate, by wire.
    pub(super) components: HashMap<u32, u8>,
    /// The ring of every wire.
    pub(super) rings: Vec<Ring>,
    /// MACs of its products, if they have any.
    pub(super) macs: Macs,
}

impl Net {
    /// A circuit whose gates are all computed as they are.
    pub(super) fn plain(circuit: &veil_circuit::Circuit) -> Option<Self> {
        let gates = circuit.gates.iter().map(|gate| Gate::of(*gate));
        Some(Net {
            circuit: Circuit {
                ring: circuit.ring,
                inputs: circuit.inputs.clone(),
                gates: gates.collect::<Option<_>>()?,
                outputs: circuit.outputs.clone(),
            },
            components: HashMap::new(),
            rings: circuit.rings(),
            macs: Macs::default(),
        })
    }

    /// Without the gates that no output needs.
    pub(super) fn pruned(mut self) -> Self {
        let needed = self.circuit.reached();
        let inputs = self.circuit.input_wires();
        let mut now: Vec<Wire> = (0..inputs).map(Wire).collect();
        let (mut gates, mut components) = (Vec::new(), HashMap::new());
        let mut rings = self.rings[..inputs as usize].to_vec();
        for (wire, gate) in (inputs..).zip(&self.circuit.gates) {
            let new = Wire(inputs + gates.len() as u32);
            now.push(new);
            if needed[wire as usize] {
                gates.push(gate.map_operands(|w| now[w.0 as usize]));
                rings.push(self.rings[wire as usize]);
                if let Some(component) = self.components.get(&wire) {
                    components.insert(new.0, *component);
                }
            }
        }
        self.circuit.gates = gates;
        let outputs = self.circuit.outputs.iter_mut();
        for wire in outputs.flat_map(|port| &mut port.wires) {
            *wire = now[wire.0 as usize];
        }
        Net {
            components,
            rings,
            ..self
        }
    }
}
