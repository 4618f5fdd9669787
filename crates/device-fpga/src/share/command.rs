//! Commands of a core of shares.

use veil_math::Ring;

/// Bytes of a word.
pub(super) const WORD: usize = 16;
/// Beats and pairs of the longest command.
pub(super) const LONGEST: usize = u16::MAX as usize;

/// What a core does with columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// a + b.
    Add,
    /// a - b.
    Sub,
    /// a b, where b is public.
    Scale,
    /// Products of shares, added up over pairs and masked.
    Product,
    /// What is drawn, under the key of each component.
    Random,
}

/// Whether a column is the last that a MAC is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Closes {
    /// It is not.
    #[default]
    Nothing,
    /// It is the last of a message.
    Message,
    /// It is the last of all.
    All,
}

impl Closes {
    /// As cores take it.
    pub(super) const fn bits(self) -> u8 {
        match self {
            Closes::Nothing => 0,
            Closes::Message => 1,
            Closes::All => 3,
        }
    }
}

/// A command as a core takes it, `share_pkg::command_t`: from the highest bits to the lowest in the order of these fields, but for a tag,
/// which the host does not need where results come in the order of their commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CoreCommand {
    /// What it does.
    pub(super) kind: Kind,
    /// Ring.
    pub(super) ring: Ring,
    /// Whether the result is one element, the sum over rows.
    pub(super) sum: bool,
    /// Beats of a column.
    pub(super) beats: u16,
    /// Pairs of columns.
    pub(super) pairs: u16,
    /// Bytes of the last beat that hold rows.
    pub(super) tail: u16,
    /// Where MACs are made, what ends with the column.
    pub(super) closes: Closes,
    /// Use of masks.
    pub(super) used: u16,
    /// Lane.
    pub(super) lane: u16,
    /// First counter.
    pub(super) counter: u64,
    /// Chunk.
    pub(super) chunk: u32,
}

/// Bytes of a command: as many as the port of a model has.
pub(super) const COMMAND: usize = 28;

/// A ring as cores name it.
pub(super) const fn ring_bits(ring: Ring) -> u8 {
    match ring {
        Ring::Bits => 0,
        Ring::Z64 => 1,
        // No program over Z_2^32 is loaded.
        Ring::Z128 | Ring::Z32 => 2,
    }
}

impl CoreCommand {
    /// Its bits, the lowest first.
    pub(super) fn to_bytes(self) -> [u8; COMMAND] {
        let kind = match self.kind {
            Kind::Add => 0,
            Kind::Sub => 1,
            Kind::Scale => 2,
            Kind::Product => 3,
            Kind::Random => 4,
        };
        let fields: [(u64, u32); 12] = [
            (self.chunk.into(), 32),
            (self.counter, 64),
            (self.lane.into(), 16),
            (self.used.into(), 16),
            (self.closes.bits().into(), 2),
            (0, 16), // tag
            (self.tail.into(), 12),
            (self.pairs.into(), 16),
            (self.beats.into(), 16),
            (self.sum.into(), 1),
            (ring_bits(self.ring).into(), 2),
            (kind, 3),
        ];
        let mut bytes = [0; COMMAND];
        let mut at = 0;
        for (value, bits) in fields {
            for bit in 0..bits {
                bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
                at += 1;
            }
        }
        bytes
    }
}
