//! Where a bank keeps what: regions, their shapes, and spans of their items.

use veil_math::Ring;

/// Who may reach a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// Stays on the device.
    Resident,
    /// Source and target of transfers: the host moves its bytes, and looks at none of them.
    Mapped,
    /// The host may look: opened values.
    Public,
}

/// The type of an item of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Item {
    /// A wire of the batch: one element per row.
    Rows(Ring),
    /// One element for the whole chunk: a sum over rows, or a value that all rows share.
    One(Ring),
    /// Bytes: a digest.
    Bytes(u32),
    /// A wire of the batch as labels of a garbled circuit: 16 bytes per row, little-endian.
    Labels,
    /// One label: of a value that all rows share, which is [`Item::Labels`] in the place of [`Item::One`].
    Label,
    /// Half labels: 8 bytes per row, little-endian.
    Halves,
}

impl Item {
    /// Bytes of one part of one item, packed, in a chunk of `rows` rows.
    pub const fn bytes(self, rows: u32) -> u64 {
        match self {
            Item::Rows(ring) => ring.bytes(rows as u64),
            Item::One(ring) => ring.bytes(1),
            Item::Bytes(n) => n as u64,
            Item::Labels => 16 * rows as u64,
            Item::Label => 16,
            Item::Halves => 8 * rows as u64,
        }
    }

    /// Whether it holds something for each row.
    pub const fn of_rows(self) -> bool {
        matches!(self, Item::Rows(_) | Item::Labels | Item::Halves)
    }

    /// The bits of the last byte that hold rows, as a mask.
    pub const fn padding(self, rows: u32) -> u8 {
        match self {
            Item::Rows(Ring::Bits) if !rows.is_multiple_of(8) => (1 << (rows % 8)) - 1,
            Item::One(Ring::Bits) => 1,
            _ => 0xff,
        }
    }
}

/// A region: `count` items of `parts` components each.
///
/// Seen through [`Device::view`](crate::Device::view) it is packed bytes `[part][item][row]`; inside, a device stores it as
/// suits it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// Who may reach it.
    pub place: Place,
    /// Shape of an item.
    pub item: Item,
    /// Components per item: 2 for a replicated share, 1 for a message.
    pub parts: u8,
    /// Number of items.
    pub count: u32,
}

/// All regions of a bank. Made once per plan: the same for every chunk, and another one for computation on one row.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Layout {
    /// Rows of a full chunk; the last chunk of a block may have fewer. Counters advance by this number of rows.
    pub chunk_rows: u32,
    /// The regions; [`Span::region`] is an index into them.
    pub regions: Vec<Region>,
}

/// Consecutive items of one part of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// Index in [`Layout::regions`].
    pub region: u16,
    /// Component.
    pub part: u8,
    /// First item.
    pub first: u32,
    /// Number of items.
    pub count: u32,
}

impl Span {
    /// Whether two spans share an item.
    pub fn overlaps(self, other: Span) -> bool {
        (self.region, self.part) == (other.region, other.part)
            && self.first < other.first + other.count
            && other.first < self.first + self.count
    }

    /// Item `k` alone.
    pub(crate) fn item(self, k: u32) -> Span {
        Span {
            first: self.first + k,
            count: 1,
            ..self
        }
    }
}

impl Layout {
    /// Adds a region and says its index.
    ///
    /// # Panics
    /// If there are 65 536 regions already: plans have a few dozen.
    pub fn add(&mut self, region: Region) -> u16 {
        let index = u16::try_from(self.regions.len()).expect("a plan has a few dozen regions");
        self.regions.push(region);
        index
    }

    /// All items of part `part` of region `region`.
    pub fn all(&self, region: u16, part: u8) -> Span {
        Span {
            region,
            part,
            first: 0,
            count: self.regions[region as usize].count,
        }
    }

    /// Packed bytes of `span` in a chunk of `rows` rows.
    pub fn bytes(&self, span: Span, rows: u32) -> u64 {
        self.regions[span.region as usize].item.bytes(rows) * u64::from(span.count)
    }

    /// Whether `span` lies within the layout.
    pub fn contains(&self, span: Span) -> bool {
        self.regions.get(span.region as usize).is_some_and(|r| {
            span.part < r.parts
                && span
                    .first
                    .checked_add(span.count)
                    .is_some_and(|end| end <= r.count)
        })
    }
}
