//! Where a workspace keeps what: regions, their shapes, and spans of their columns.

use std::sync::atomic::{AtomicU64, Ordering};

use veil_math::Ring;
use veil_session::Frame;

use crate::Fault;

/// Where a region stays, and who may reach it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Residency {
    /// Stays on the device.
    Resident,
    /// Stays on the device, as rows that programs compute on; the host moves runs of its columns, and looks at none of them. What it sends is
    /// what a batch has named as a message; what it receives is there for the next batch.
    Plane,
    /// Source and target of transfers: the host moves its bytes, and looks at none of them.
    Mapped,
    /// As [`Residency::Mapped`], of one column of rows that move, whose memory the host may exchange ([`Device::swap`](crate::Device::swap)) where it would
    /// copy bytes.
    Lent,
    /// The host may look: opened values.
    Public,
}

impl Residency {
    /// Whether the bytes of its columns lie packed, one behind the other, where the host reaches them.
    pub(crate) const fn is_packed(self) -> bool {
        matches!(
            self,
            Residency::Mapped | Residency::Lent | Residency::Public
        )
    }

    /// Whether the host may write into it.
    pub const fn is_mapped(self) -> bool {
        matches!(self, Residency::Mapped | Residency::Lent | Residency::Plane)
    }
}

/// The type of a column of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ColumnType {
    /// A wire of the batch: one element per row.
    Rows(Ring),
    /// One element for the whole chunk: a sum over rows, or a job-wide value.
    One(Ring),
    /// Bytes: a digest.
    Bytes(u32),
    /// A wire of the batch as labels of a garbled circuit: 16 bytes per row, little-endian.
    Labels,
    /// One label: of a job-wide value, which is [`ColumnType::Labels`] in the place of [`ColumnType::One`].
    Label,
    /// Half labels: 8 bytes per row, little-endian.
    Halves,
    /// A word of 1, 2, 4, 8 or 16 bytes in each row, little-endian, all of whose bits are values: words add up by XOR. In no
    /// [`Residency::Plane`].
    Words(u8),
}

impl ColumnType {
    /// Bytes of one component of one column, packed, in a chunk of `rows` rows.
    pub const fn bytes(self, rows: u32) -> u64 {
        match self {
            ColumnType::Rows(ring) => ring.bytes(rows as u64),
            ColumnType::One(ring) => ring.bytes(1),
            ColumnType::Bytes(n) => n as u64,
            ColumnType::Labels => 16 * rows as u64,
            ColumnType::Label => 16,
            ColumnType::Halves => 8 * rows as u64,
            ColumnType::Words(n) => n as u64 * rows as u64,
        }
    }

    /// Whether it holds something for each row.
    pub const fn of_rows(self) -> bool {
        matches!(
            self,
            ColumnType::Rows(_) | ColumnType::Labels | ColumnType::Halves | ColumnType::Words(_)
        )
    }

    /// Whether it is what there is: words of all sizes are not.
    pub(crate) const fn is_known(self) -> bool {
        !matches!(self, ColumnType::Words(n) if !matches!(n, 1 | 2 | 4 | 8 | 16))
    }

    /// The bits of the last byte that hold rows, as a mask.
    pub const fn padding(self, rows: u32) -> u8 {
        match self {
            ColumnType::Rows(Ring::Bits) if !rows.is_multiple_of(8) => (1 << (rows % 8)) - 1,
            ColumnType::One(Ring::Bits) => 1,
            _ => 0xff,
        }
    }
}

/// A region: `count` columns of `components` share components each.
///
/// Seen through [`Device::view`](crate::Device::view) it is packed bytes `[component][column][row]`; inside, a device stores it as
/// suits it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// Where it stays, and who may reach it.
    pub residency: Residency,
    /// Type of a column.
    pub column: ColumnType,
    /// Components per column: 2 for a replicated share, 1 for a message.
    pub components: u8,
    /// Number of columns.
    pub count: u32,
}

/// All regions of a workspace. Made once per plan: the same for every chunk, and another one for computation on one row.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Layout {
    /// Rows of a full chunk; the last chunk of a block may have fewer. Counters advance by this number of rows.
    pub chunk_rows: u32,
    /// The regions; [`Span::region`] is an index into them.
    pub regions: Vec<Region>,
}

/// Consecutive columns of one share component of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// Index in [`Layout::regions`].
    pub region: u16,
    /// Component.
    pub component: u8,
    /// First column.
    pub first: u32,
    /// Number of columns.
    pub count: u32,
}

impl Span {
    /// Whether two spans share a column.
    pub fn overlaps(self, other: Span) -> bool {
        (self.region, self.component) == (other.region, other.component)
            && self.first < other.first + other.count
            && other.first < self.first + self.count
    }

    /// Column `k` alone.
    pub(crate) fn column(self, k: u32) -> Span {
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

    /// All columns of component `part` of region `region`.
    pub fn all(&self, region: u16, component: u8) -> Span {
        Span {
            region,
            component,
            first: 0,
            count: self.regions[region as usize].count,
        }
    }

    /// Packed bytes of `span` in a chunk of `rows` rows.
    pub fn bytes(&self, span: Span, rows: u32) -> u64 {
        self.regions[span.region as usize].column.bytes(rows) * u64::from(span.count)
    }

    /// Whether `span` lies within the layout.
    pub fn contains(&self, span: Span) -> bool {
        self.regions.get(span.region as usize).is_some_and(|r| {
            span.component < r.components
                && span
                    .first
                    .checked_add(span.count)
                    .is_some_and(|end| end <= r.count)
        })
    }
}

/// Checks that a workspace may serve another chunk, with zeros in some columns and what is there in others, none of which are both.
///
/// # Errors
/// [`Fault::Shape`] if the chunk has other rows, or a column is both; [`Fault::NotReachable`] if a span is outside its region.
pub fn fits_reuse(
    layout: &Layout,
    last: Frame,
    (frame, zeros, kept): (Frame, &[Span], &[Span]),
) -> Result<(), Fault> {
    if frame.rows != last.rows {
        return Err(Fault::Shape {
            command: 0,
            what: "a workspace serves chunks of as many rows",
        });
    }
    let mut all = zeros.iter().chain(kept);
    if !all.all(|span| layout.contains(*span)) {
        return Err(Fault::NotReachable);
    }
    if zeros.iter().any(|a| kept.iter().any(|b| a.overlaps(*b))) {
        return Err(Fault::Shape {
            command: 0,
            what: "a column that is zero is not kept",
        });
    }
    Ok(())
}

/// Writes what no plan does, and never the same twice: what chunks leave may be anything.
pub(crate) fn junk(bytes: &mut [u8]) {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let mut state = WRITTEN.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    for piece in bytes.chunks_mut(8) {
        // Knuth's generator (The Art of Computer Programming 2, 3.3.4).
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        piece.copy_from_slice(&(state ^ state >> 29).to_le_bytes()[..piece.len()]);
    }
}
