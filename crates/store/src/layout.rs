//! Where everything is: chunks of rows, columns of a chunk, bytes of the file. Computed, never searched.

use veil_math::Ring;

use crate::describe::{Description, Port};
use crate::key::{CellIndex, TAG};

/// Bytes of all columns of a chunk below which chunks are not made shorter: a chunk's framing is about a kilobyte.
const SHORT_CHUNK: u64 = 1 << 16;

/// Rows below which chunks are only made shorter if their columns are long.
const FEW_ROWS: u32 = 1024;

/// Bytes of a column above which chunks are made shorter whatever their framing costs: a buffer of this size is held per lane.
const LONG_COLUMN: u64 = 1 << 20;

/// No column of a chunk is longer: Arrow counts its bytes in 31 bits.
const LONGEST_COLUMN: u64 = 1 << 30;

/// Chunks of one file: the footer takes 24 bytes for each, and its length is in 31 bits.
const MOST_CHUNKS: u64 = 1 << 26;

/// The chunks of a dataset. Every block starts a new one; the last of a block is padded to full length.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) ring: Ring,
    pub(crate) ports: Vec<Port>,
    pub(crate) chunk_rows: u32,
    /// Of each port.
    pub(crate) components: u8,
    blocks: Vec<Extent>,
    chunks: u64,
}

/// One block.
#[derive(Clone, Copy, Debug)]
struct Extent {
    rows: u64,
    /// Rows of the blocks before it.
    start: u64,
    /// Chunks of the blocks before it.
    before: u64,
}

/// Rows of one chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    /// Counted over the dataset.
    pub(crate) index: u64,
    pub(crate) block: u32,
    /// First row within the block.
    pub(crate) first: u64,
    /// Rows that count.
    pub(crate) rows: u32,
}

/// One port's one component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    pub(crate) port: usize,
    pub(crate) component: u8,
}

impl Layout {
    /// The layout that a file's header says. `None` if no file can have it.
    pub(crate) fn new(description: &Description) -> Result<Self, &'static str> {
        description.check()?;
        let (mut start, mut chunks) = (0, 0);
        let mut blocks = Vec::with_capacity(description.blocks.len());
        for block in &description.blocks {
            blocks.push(Extent {
                rows: block.rows,
                start,
                before: chunks,
            });
            // At most 2^16 blocks of less than 2^48 rows.
            start += block.rows;
            chunks += block.rows.div_ceil(description.chunk_rows.into());
        }
        if chunks > MOST_CHUNKS {
            return Err(
                "they are more than 2^26 chunks of rows; split the job into blocks that are kept apart",
            );
        }
        if description.ports.iter().all(|port| port.once) {
            chunks = 1;
        }
        let layout = Layout {
            ring: description.ring,
            ports: description.ports.clone(),
            chunk_rows: description.chunk_rows,
            components: description.components(),
            blocks,
            chunks,
        };
        let longest = layout.ports.iter().map(|port| layout.bytes(port)).max();
        if longest.is_some_and(|longest| longest > LONGEST_COLUMN) {
            return Err("a port is too wide: a chunk of it takes more than 1 GiB");
        }
        Ok(layout)
    }

    /// Rows of a chunk for shares that come in slices of `description.chunk_rows`: a part of it, long enough that framing costs
    /// little, and short enough that a job with shorter slices decrypts little in vain.
    pub(crate) fn choose(description: &Description) -> u32 {
        let ring = description.ring;
        let per_row = |port: &&Port| !port.once;
        let widths = || {
            description
                .ports
                .iter()
                .filter(per_row)
                .map(|port| u64::from(port.width))
        };
        let column = |rows: u32| widths().max().unwrap_or(0) * ring.bytes(rows.into());
        let components = u64::from(description.components());
        let all = |rows: u32| widths().sum::<u64>() * ring.bytes(rows.into()) * components;
        let longest = description.blocks.iter().map(|block| block.rows).max();
        let longest = longest.unwrap_or(0);
        let mut rows = description.chunk_rows;
        // Halves of whole bytes: slices start at multiples of the chunk, in bits too.
        while rows.is_multiple_of(16) {
            let half = rows / 2;
            let framing_is_small = half >= FEW_ROWS && all(half) >= SHORT_CHUNK;
            if !(framing_is_small || column(rows) > LONG_COLUMN || u64::from(half) >= longest) {
                break;
            }
            rows = half;
        }
        rows
    }

    /// Number of chunks.
    pub(crate) fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Number of encrypted columns in a chunk.
    pub(crate) fn columns(&self) -> usize {
        self.ports.len() * usize::from(self.components)
    }

    /// The number of a column among those of chunk 0.
    pub(crate) fn index(&self, column: Column) -> usize {
        column.port * usize::from(self.components) + usize::from(column.component)
    }

    /// Number of encrypted columns in all chunks together.
    pub(crate) fn parts(&self) -> u64 {
        let row_ports = self.ports.iter().filter(|port| !port.once).count() as u64;
        self.columns() as u64 + (self.chunks - 1) * row_ports * u64::from(self.components)
    }

    /// The number of a column among those that `chunk` has.
    pub(crate) fn slot(&self, column: Column, chunk: u64) -> usize {
        if chunk == 0 {
            return self.index(column);
        }
        let before = self.ports[..column.port].iter().filter(|port| !port.once);
        before.count() * usize::from(self.components) + usize::from(column.component)
    }

    /// The columns of a chunk, in order.
    pub(crate) fn each_column(&self) -> impl Iterator<Item = Column> + use<> {
        let components = self.components;
        (0..self.ports.len())
            .flat_map(move |port| (0..components).map(move |component| Column { port, component }))
    }

    /// Whether a port has a value for the whole dataset: such values are in chunk 0.
    pub(crate) fn has_once(&self) -> bool {
        self.ports.iter().any(|port| port.once)
    }

    /// Bytes of a port's one component in one chunk, before encryption.
    pub(crate) fn bytes(&self, port: &Port) -> u64 {
        let rows = if port.once { 1 } else { self.chunk_rows.into() };
        // Less than 2^32 wires of 2^32 rows of 16 bytes would overflow; a ring's element is at most 16 bytes.
        u64::from(port.width).saturating_mul(self.ring.bytes(rows))
    }

    /// Bytes of a column in the file: none of a port with one value, except in chunk 0.
    pub(crate) fn sealed(&self, column: Column, chunk: u64) -> usize {
        let port = &self.ports[column.port];
        if port.once && chunk != 0 {
            return 0;
        }
        self.bytes(port) as usize + TAG
    }

    /// The chunk of `first`, if there is such a row.
    pub(crate) fn chunk(&self, block: u32, first: u64) -> Option<Chunk> {
        let Extent { rows, before, .. } = *self.blocks.get(block as usize)?;
        if first >= rows {
            return None;
        }
        let within = first / u64::from(self.chunk_rows);
        let start = within * u64::from(self.chunk_rows);
        Some(Chunk {
            index: before + within,
            block,
            first: start,
            rows: (rows - start).min(self.chunk_rows.into()) as u32,
        })
    }

    /// The chunk of number `index`.
    pub(crate) fn chunk_at(&self, index: u64) -> Chunk {
        let after = self.blocks.partition_point(|extent| extent.before <= index);
        let block = after.saturating_sub(1);
        let first = (index - self.blocks[block].before) * u64::from(self.chunk_rows);
        self.chunk(block as u32, first)
            .expect("an index below the number of chunks")
    }

    /// Rows of a block.
    pub(crate) fn rows(&self, block: u32) -> Option<u64> {
        self.blocks.get(block as usize).map(|extent| extent.rows)
    }

    /// The block of a row that is counted over all blocks, the row's number in it, and how many rows follow there with it.
    pub(crate) fn find(&self, row: u64) -> Option<(u32, u64, u64)> {
        let after = self.blocks.partition_point(|extent| extent.start <= row);
        let block = after.checked_sub(1)?;
        let Extent { rows, start, .. } = self.blocks[block];
        let first = row - start;
        (first < rows).then(|| (block as u32, first, rows - first))
    }

    /// Where a column's encryption takes place.
    pub(crate) fn cell(&self, column: Column, chunk: Chunk) -> CellIndex {
        CellIndex {
            chunk: chunk.index,
            column: self.index(column) as u32,
            block: chunk.block,
            first: chunk.first,
            rows: chunk.rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use veil_session::{PartyId, PlanHash};

    use super::*;
    use crate::{BlockRows, Member};

    fn description(ring: Ring, widths: &[u32], rows: &[u64], chunk_rows: u32) -> Description {
        Description {
            name: "pay".into(),
            plan: PlanHash([1; 32]),
            ring,
            party: PartyId::THREE[0],
            parties: ["a", "b", "c"].map(Member::local).into(),
            ports: widths
                .iter()
                .map(|width| Port {
                    name: "x".into(),
                    width: *width,
                    once: false,
                })
                .collect(),
            blocks: rows
                .iter()
                .map(|rows| BlockRows {
                    name: "all".into(),
                    rows: *rows,
                })
                .collect(),
            schema: String::new(),
            chunk_rows,
        }
    }

    #[test]
    fn every_row_has_its_chunk() {
        let layout = Layout::new(&description(Ring::Z64, &[1], &[100, 1, 65], 64)).unwrap();
        assert_eq!(layout.chunks(), 2 + 1 + 2);
        let mut seen = 0;
        for index in 0..layout.chunks() {
            let chunk = layout.chunk_at(index);
            assert_eq!(chunk.index, index);
            for row in chunk.first..chunk.first + u64::from(chunk.rows) {
                assert_eq!(layout.chunk(chunk.block, row), Some(chunk));
                seen += 1;
            }
        }
        assert_eq!(seen, 166);
        assert_eq!(layout.find(99), Some((0, 99, 1)));
        assert_eq!(layout.find(100), Some((1, 0, 1)));
        assert_eq!(layout.find(102), Some((2, 1, 64)));
        assert_eq!(layout.find(166), None);
        assert_eq!(layout.chunk(1, 1), None);
        assert_eq!(layout.chunk(3, 0), None);
    }

    #[test]
    fn chunks_are_a_part_of_the_slice_and_neither_long_nor_tiny() {
        let choose = |ring, widths: &[u32], rows, chunk_rows| {
            Layout::choose(&description(ring, widths, &[rows], chunk_rows))
        };
        // Six elements of eight bytes, twice: 1024 rows are 98 kB.
        assert_eq!(choose(Ring::Z64, &[1; 6], 10_000_000, 16_384), 1024);
        assert_eq!(choose(Ring::Z64, &[1], 10_000_000, 16_384), 4096);
        assert_eq!(choose(Ring::Bits, &[1], 10_000_000, 16_384), 16_384);
        assert_eq!(choose(Ring::Bits, &[100_000], 10_000_000, 16_384), 64);
        assert_eq!(choose(Ring::Z64, &[1], 3, 16_384), 8);
        assert_eq!(choose(Ring::Z64, &[1], 1_000_000, 1000), 1000);
    }

    #[test]
    fn what_no_file_can_have_is_refused() {
        let bad = [
            description(Ring::Z64, &[], &[1], 8),
            description(Ring::Z64, &[0], &[1], 8),
            description(Ring::Z64, &[1], &[], 8),
            description(Ring::Z64, &[1], &[0], 8),
            description(Ring::Z64, &[1], &[u64::MAX], 8),
            description(Ring::Z64, &[1], &[1 << 40], 8),
            description(Ring::Z64, &[1], &[1], 0),
            description(Ring::Z128, &[u32::MAX], &[1], u32::MAX),
        ];
        for description in bad {
            assert!(Layout::new(&description).is_err());
        }
    }
}
