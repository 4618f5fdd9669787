//! The circuit itself.

use veil_math::Ring;

use crate::Clock;

/// A wire: inputs first, in port order, then one per register, then one per gate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Wire(pub u32);

/// A gate. Operands are wires of smaller number than the gate's own.
///
/// In a circuit over integers modulo 2^k a wire holds an integer or a bit. Its gate says which: [`Gate::Bit`], [`Gate::ConstantBit`],
/// [`Gate::IsZero`] and [`Gate::RandomBit`] drive bits; [`Gate::Add`], [`Gate::Sub`], [`Gate::Mul`], [`Gate::Plus`] and [`Gate::Times`] are
/// over the ring of their operands, which agree; every other gate drives an integer.
///
/// A circuit with random gates is no function of its inputs alone, but also of values that are drawn afresh in every row, and that no party
/// knows ([`Gate::Random`], [`Gate::RandomBit`]) or every party ([`Gate::TruncatePr`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gate {
    /// `a + b` (XOR of bits).
    Add(Wire, Wire),
    /// `a - b` (XOR of bits; readers and builders of bit circuits use `Add`).
    Sub(Wire, Wire),
    /// `a · b` (AND of bits): the only gate that costs communication.
    Mul(Wire, Wire),
    /// `a + c` for a public constant (`NOT` where `c` is 1 and the ring is bits).
    Plus(Wire, u128),
    /// `a · c` for a public constant.
    Times(Wire, u128),
    /// The public constant `c`, an element of the circuit's ring.
    Constant(u128),
    /// Bit `j` of an integer: a bit. Only in circuits over integers, as all below but `Random`.
    Bit(Wire, u32),
    /// A bit as the integer 0 or 1.
    Lift(Wire),
    /// A public bit.
    ConstantBit(bool),
    /// Whether an integer is 0 modulo 2^bits: a bit. It costs less than the bits of the integer.
    IsZero(Wire, u32),
    /// ⌊x / 2^by⌋ of an integer x from 0 to 2^bits - 1: an integer. It costs less than the bits of it, and less where it has fewer bits than the ring.
    ShiftRight {
        /// The integer.
        of: Wire,
        /// Bits that go.
        by: u32,
        /// Bits that it has, at most those of the ring.
        bits: u32,
    },
    /// A uniform element of the circuit's ring in every row, which no party knows. Gates of one number drive one value.
    Random(u32),
    /// A uniform bit in every row, which no party knows. Gates of one number drive one value.
    RandomBit(u32),
    /// ⌊(x + R) / 2^by⌋ of an integer x from 0 to 2^bits - 1, where R is uniform from 0 to 2^by - 1 in every row and the parties learn it:
    /// ⌊x / 2^by⌋, or one more, with x / 2^by as its mean.
    TruncatePr {
        /// The integer.
        of: Wire,
        /// Bits that go.
        by: u32,
        /// Bits that it has, fewer than the ring.
        bits: u32,
    },
    /// 2x + b of an integer and a bit: an integer. The bits of a word, the highest first, each appended to the integer of the bits before
    /// it, cost about as much as one bit alone.
    Append(Wire, Wire),
}

/// How often an input has a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Per {
    /// A value in every row, which is the same in all cycles of a sequential circuit.
    Row,
    /// One value that all rows use, such as a key.
    Job,
    /// A value in every row and every cycle of a sequential circuit.
    Cycle,
}

/// Named input wires. Ports take the first wires of the circuit, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputPort {
    /// Name in job files and reports.
    pub name: String,
    /// Wires: bits of the value, bit 0 first, or ring elements; of one cycle, if there is a value in each.
    pub width: u32,
    /// How often there is a value.
    pub per: Per,
    /// Whether its wires are bits in a circuit over integers, with a value in every row. Never of a circuit over bits.
    pub bits: bool,
}

impl InputPort {
    /// The ring of its wires in a circuit over `ring`.
    pub const fn ring(&self, ring: Ring) -> Ring {
        if self.bits { Ring::Bits } else { ring }
    }
}

/// The reduction of an output over the rows of the batch, and over the cycles of a sequential circuit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduce {
    /// A value per row: that of the last cycle.
    None,
    /// The sum over all rows, in the ring: one value for the job. Rings only.
    Sum,
    /// A value per row of all cycles of a sequential circuit, cycle 0 first.
    EveryCycle,
}

/// Named output wires, in any order, repeats allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputPort {
    /// Name in job files and reports.
    pub name: String,
    /// The wires, bit 0 first.
    pub wires: Vec<Wire>,
    /// Per row, or summed, or of every cycle.
    pub reduce: Reduce,
}

/// A circuit over one ring, and over bits as well if it is a ring of integers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circuit {
    /// The ring of every wire that [`Circuit::rings`] does not say is a bit.
    pub ring: Ring,
    /// Input ports; their wires come first.
    pub inputs: Vec<InputPort>,
    /// Gates in topological order.
    pub gates: Vec<Gate>,
    /// Output ports.
    pub outputs: Vec<OutputPort>,
    /// Registers and cycles of a sequential circuit.
    pub clock: Clock,
}

impl Gate {
    /// The wires this gate reads, at most two.
    pub fn operands(&self) -> impl Iterator<Item = Wire> + use<> {
        let (a, b) = match *self {
            Gate::Add(a, b) | Gate::Sub(a, b) | Gate::Mul(a, b) | Gate::Append(a, b) => {
                (Some(a), Some(b))
            }
            Gate::Plus(a, _)
            | Gate::Times(a, _)
            | Gate::Bit(a, _)
            | Gate::Lift(a)
            | Gate::IsZero(a, _)
            | Gate::ShiftRight { of: a, .. }
            | Gate::TruncatePr { of: a, .. } => (Some(a), None),
            Gate::Constant(_) | Gate::ConstantBit(_) | Gate::Random(_) | Gate::RandomBit(_) => {
                (None, None)
            }
        };
        a.into_iter().chain(b)
    }

    /// The same gate on other wires.
    #[must_use]
    pub fn map_operands(self, mut map: impl FnMut(Wire) -> Wire) -> Self {
        match self {
            Gate::Add(a, b) => Gate::Add(map(a), map(b)),
            Gate::Sub(a, b) => Gate::Sub(map(a), map(b)),
            Gate::Mul(a, b) => Gate::Mul(map(a), map(b)),
            Gate::Plus(a, c) => Gate::Plus(map(a), c),
            Gate::Times(a, c) => Gate::Times(map(a), c),
            Gate::Bit(a, j) => Gate::Bit(map(a), j),
            Gate::Lift(a) => Gate::Lift(map(a)),
            Gate::IsZero(a, bits) => Gate::IsZero(map(a), bits),
            Gate::ShiftRight { of, by, bits } => Gate::ShiftRight {
                of: map(of),
                by,
                bits,
            },
            Gate::TruncatePr { of, by, bits } => Gate::TruncatePr {
                of: map(of),
                by,
                bits,
            },
            Gate::Append(a, b) => Gate::Append(map(a), map(b)),
            Gate::Constant(_) | Gate::ConstantBit(_) | Gate::Random(_) | Gate::RandomBit(_) => self,
        }
    }

    /// Whether it is about bits in a circuit over integers, and so of no use in another.
    pub fn converts(&self) -> bool {
        match self {
            Gate::Bit(..)
            | Gate::Lift(_)
            | Gate::ConstantBit(_)
            | Gate::IsZero(..)
            | Gate::ShiftRight { .. }
            | Gate::RandomBit(_)
            | Gate::TruncatePr { .. }
            | Gate::Append(..) => true,
            Gate::Add(..)
            | Gate::Sub(..)
            | Gate::Mul(..)
            | Gate::Plus(..)
            | Gate::Times(..)
            | Gate::Constant(_)
            | Gate::Random(_) => false,
        }
    }

    /// Whether it has another value in every row and every run, whatever its operands are.
    pub fn is_random(&self) -> bool {
        matches!(
            self,
            Gate::Random(_) | Gate::RandomBit(_) | Gate::TruncatePr { .. }
        )
    }

    /// The ring of the gate's wire in a circuit over `ring`, if `of` knows that of its operands.
    pub(crate) fn ring(&self, ring: Ring, of: impl FnOnce(Wire) -> Ring) -> Ring {
        match *self {
            Gate::Bit(..) | Gate::ConstantBit(_) | Gate::IsZero(..) | Gate::RandomBit(_) => {
                Ring::Bits
            }
            Gate::Lift(_)
            | Gate::Constant(_)
            | Gate::ShiftRight { .. }
            | Gate::Random(_)
            | Gate::TruncatePr { .. }
            | Gate::Append(..) => ring,
            Gate::Add(a, _)
            | Gate::Sub(a, _)
            | Gate::Mul(a, _)
            | Gate::Plus(a, _)
            | Gate::Times(a, _) => of(a),
        }
    }
}

impl Circuit {
    /// Number of wires of input ports.
    pub fn input_wires(&self) -> u32 {
        self.inputs.iter().map(|p| p.width).sum()
    }

    /// Number of wires in all.
    pub fn wires(&self) -> u32 {
        self.sources() + self.gates.len() as u32
    }

    /// Whether it has both integers and bits.
    pub fn is_mixed(&self) -> bool {
        let takes_bits = self.inputs.iter().any(|port| port.bits);
        self.ring != Ring::Bits && (takes_bits || self.gates.iter().any(Gate::converts))
    }

    /// Whether it has random gates.
    pub fn is_random(&self) -> bool {
        self.gates.iter().any(Gate::is_random)
    }

    /// The ring of every wire of inputs and registers, with room for those of gates.
    pub(crate) fn source_rings(&self) -> Vec<Ring> {
        let sources = self.sources() as usize;
        let mut rings = Vec::with_capacity(sources + self.gates.len());
        for port in &self.inputs {
            let ring = port.ring(self.ring);
            rings.extend(std::iter::repeat_n(ring, port.width as usize));
        }
        rings.resize(sources, self.ring);
        rings
    }

    /// The ring of every wire.
    pub fn rings(&self) -> Vec<Ring> {
        let mut rings = self.source_rings();
        for gate in &self.gates {
            let ring = gate.ring(self.ring, |wire| rings[wire.0 as usize]);
            rings.push(ring);
        }
        rings
    }

    /// The ring of an output port, where `rings` are those of all wires: bits beside integers have ports of their own.
    pub fn output_ring(&self, port: &OutputPort, rings: &[Ring]) -> Ring {
        let first = port.wires.first();
        let ring = first.and_then(|wire| rings.get(wire.0 as usize));
        ring.copied().unwrap_or(self.ring)
    }

    /// The wire that gate `index` drives.
    pub fn gate_wire(&self, index: usize) -> Wire {
        Wire(self.sources() + index as u32)
    }
}
