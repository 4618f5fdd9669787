//! Rows of a plan: how long its chunks are, and which chunk of which block each row is in.

use veil_job::{ChunkRows, JobSpec};
use veil_math::Ring;
use veil_session::Frame;

use super::{PROVED_GATES, Plan, PlanError};

/// A chunk of the batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Names the chunk in messages and draws.
    pub frame: Frame,
    /// Block that its rows belong to.
    pub block: u32,
    /// First row, within the block.
    pub first: u64,
}

/// The contents of a workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkspaceOf {
    /// The rows of a chunk.
    Rows,
    /// The one row of the set-up, or of the totals.
    Job,
}

/// Counters that the draws of a column of a chunk take, at 16 bytes each.
pub(super) fn stride(ring: Ring, chunk_rows: u32) -> u64 {
    ring.bytes(chunk_rows.into()).div_ceil(16)
}

/// Bytes that the live slots of a chunk may take: a share of a 1 MiB level-2 cache, beside messages and the other workspaces of the core.
const CACHED_BYTES: u64 = 512 * 1024;

/// Bytes of the products of a layer of a chunk, on average, below which a message takes longer to pass on than to compute.
const THIN_BYTES: u64 = 8 * 1024;

/// Bytes that the live slots of a chunk with thin layers may take.
const THIN_CACHED_BYTES: u64 = 8 * 1024 * 1024;

/// The longest chunk that thin layers ask for.
const THIN_ROWS: u64 = 4096;

/// Bytes that they may take where a job or a device asks for longer chunks: of every chunk in flight, at every party.
const WISHED_BYTES: u64 = 256 * 1024 * 1024;

/// The same of labels and tables. Their messages are 256 times as long as those of bits, and longer ones leave the last cache of the host: on an H200 the
/// ANDs of AES-128 took twice as long in chunks of 16384 rows as in chunks of 2048.
const WISHED_GARBLED_BYTES: u64 = 32 * 1024 * 1024;

/// The shortest and the longest chunk chosen by itself. Shorter ones are all overhead; longer ones only add latency.
const CHUNK_ROWS: (u64, u64) = (512, 16 * 1024);

/// The same of garbled circuits, whose labels are 128 times as long as bits; a gate is garbled in a few rows at once.
const GARBLED_ROWS: (u64, u64) = (4, 1024);

/// Gates of a garbled layer, at most: a quarter of a megabyte of tables in each row.
pub(super) const WIDEST_GARBLED: u32 = 8192;

/// The shortest chunk of a plan that proves its products, however wide its layers are.
const FEWEST_PROVED_ROWS: u64 = 64;

impl Plan {
    /// Number of chunks that hold rows.
    pub fn chunks(&self) -> u32 {
        let of = |rows: u64| rows.div_ceil(u64::from(self.chunk_rows)) as u32;
        self.job.blocks.iter().map(|b| of(b.rows)).sum()
    }

    /// The frame of the set-up: chunk 0.
    pub fn set_up_frame(&self) -> Frame {
        Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: 1,
        }
    }

    /// The frame in which totals are opened: the chunk after the last.
    pub fn totals_frame(&self) -> Frame {
        Frame {
            epoch: 0,
            lane: 0,
            chunk: self.chunks() + 1,
            rows: 1,
        }
    }

    /// The contents of a frame's workspace.
    pub fn workspace_of(&self, frame: Frame) -> WorkspaceOf {
        let is_chunk = (1..=self.chunks()).contains(&frame.chunk);
        if is_chunk {
            WorkspaceOf::Rows
        } else {
            WorkspaceOf::Job
        }
    }

    /// Chunk `index`, from 0: it belongs to lane `index mod lanes`, and is number `index + 1` in frames. Nothing beyond the last.
    pub fn chunk(&self, index: u32) -> Option<Chunk> {
        let mut before = 0u32;
        for (block, b) in self.job.blocks.iter().enumerate() {
            let count = b.rows.div_ceil(u64::from(self.chunk_rows)) as u32;
            if index - before < count {
                let first = u64::from(index - before) * u64::from(self.chunk_rows);
                let rows = (b.rows - first).min(u64::from(self.chunk_rows)) as u32;
                let lane = (index % u32::from(self.lanes)) as u16;
                let frame = Frame {
                    epoch: 0,
                    lane,
                    chunk: 1 + index,
                    rows,
                };
                return Some(Chunk {
                    frame,
                    block: block as u32,
                    first,
                });
            }
            before += count;
        }
        None
    }

    /// The block that the rows of a frame belong to; the first one's for frames that are of no rows.
    pub fn block_of(&self, frame: Frame) -> u32 {
        let chunk = frame.chunk.checked_sub(1);
        chunk
            .and_then(|index| self.chunk(index))
            .map_or(0, |chunk| chunk.block)
    }

    /// Rows of the longest chunk.
    pub fn longest_chunk(&self) -> u32 {
        let longest = self.job.blocks.iter().map(|b| b.rows).max().unwrap_or(0);
        longest.min(u64::from(self.chunk_rows)) as u32
    }
}

/// Rows such that the slots of a workspace, of the circuit's ring and of bits beside it, two components each, fit the budget, and the products of a
/// layer of `widest` that are proved fit one batch: a power of two, whole vectors but of very wide layers. Where the products of a layer have only `width` bits on average, the budget is larger.
///
/// With a wish the budget is that of memory, and the wish the most; a chunk is no shorter than without, unless the wish is.
pub(super) fn of_chunk(
    ring: Ring,
    [slots, bit_slots]: [u32; 2],
    (width, widest): (u64, u64),
    wish: Option<ChunkRows>,
) -> u32 {
    let bits = 2 * (u64::from(slots.max(1)) * u64::from(ring.bits()) + u64::from(bit_slots));
    let (budget, most) = limits(wish, CHUNK_ROWS.1, WISHED_BYTES);
    let thin = (THIN_BYTES * 8 / width.max(1)).min(THIN_ROWS);
    let thin = if width > 0 {
        thin.min(THIN_CACHED_BYTES * 8 / bits)
    } else {
        0
    };
    let fewest = CHUNK_ROWS.0.max(thin);
    let rows = (budget * 8 / bits).clamp(fewest.min(most), most);
    let most = (PROVED_GATES / widest.max(1)).max(FEWEST_PROVED_ROWS);
    1 << rows.min(most).ilog2()
}

/// Bytes that a chunk may take, and rows that it may have: `longest` without a wish, `wished` bytes with one.
fn limits(wish: Option<ChunkRows>, longest: u64, wished: u64) -> (u64, u64) {
    match wish {
        None => (CACHED_BYTES, longest),
        Some(wish) => (wished, wish.count().into()),
    }
}

/// Bytes of a label.
const LABEL: u64 = 16;

/// Bits that a kept output takes per row: the colours of both sides, and the value.
const KEPT: u64 = 3;

/// Rows such that the labels of a workspace, the outputs of every cycle that it keeps, and the tables of its widest layer, of `widest` gates, fit the
/// budget: a power of two.
pub(super) fn of_garbled_chunk(
    slots: u32,
    kept: u64,
    (widest, table): (u32, u64),
    wish: Option<ChunkRows>,
) -> u32 {
    let bytes = LABEL * u64::from(slots.max(1)) + KEPT * kept / 8 + table * u64::from(widest);
    let (budget, most) = limits(wish, GARBLED_ROWS.1, WISHED_GARBLED_BYTES);
    let most = most.min(MOST_GARBLED_ROWS.into());
    1 << (budget / bytes)
        .clamp(GARBLED_ROWS.0.min(most), most)
        .ilog2()
}

/// A row is the lower half of what a gate's number has beside the product's.
const MOST_GARBLED_ROWS: u32 = 1 << 16;

/// Refuses chunks whose rows have no numbers of their own in those of gates, or whose labels and kept outputs take too much memory.
pub(super) fn check_garbled(slots: u32, kept: u64, chunk_rows: u32) -> Result<(), PlanError> {
    const MOST_BYTES: u64 = 1 << 32;
    let rows = u64::from(chunk_rows);
    let bytes = LABEL * u64::from(slots) * rows + KEPT * kept * rows.div_ceil(8);
    if chunk_rows > MOST_GARBLED_ROWS || bytes > MOST_BYTES {
        return Err(PlanError::TooManyLabels { chunk_rows, bytes });
    }
    Ok(())
}

/// Chunks of so many rows that a job has.
pub(super) fn chunks(job: &JobSpec, chunk_rows: u32) -> Result<u64, PlanError> {
    let most = |rows: u64| rows.div_ceil(u64::from(chunk_rows.max(1)));
    let chunks: u64 = job
        .blocks
        .iter()
        .map(|b| most(b.rows))
        .fold(0, u64::saturating_add);
    // Set-up and totals are chunks too, and a frame's rows are 32 bits.
    if chunk_rows == 0 || chunks >= u64::from(u32::MAX) - 2 {
        return Err(PlanError::TooManyRows {
            rows: job.rows(),
            chunk_rows,
        });
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use veil_job::Word;

    use super::*;

    proptest! {
        /// A chunk is as long as its budgets allow, and no longer.
        #[test]
        fn a_chunk_is_the_longest_within_its_budgets(
            ring in prop::sample::select(vec![Ring::Bits, Ring::Z64, Ring::Z128]),
            slots in 0..1_000_000u32,
            bit_slots in 0..1_000_000u32,
            width in prop_oneof![Just(0), 1..100_000u64],
            widest in prop_oneof![Just(0), 1..(PROVED_GATES * 4)],
            wish in prop::option::of(prop::sample::select(ChunkRows::ALL)),
        ) {
            let rows = u64::from(of_chunk(ring, [slots, bit_slots], (width, widest), wish));
            let (budget, longest) = match wish {
                None => (CACHED_BYTES, CHUNK_ROWS.1),
                Some(wish) => (WISHED_BYTES, wish.count().into()),
            };
            let workspace = |rows: u64| {
                let of_row = u64::from(slots.max(1)) * u64::from(ring.bits()) + u64::from(bit_slots);
                let cached = 2 * of_row * rows <= budget * 8 || rows <= CHUNK_ROWS.0;
                let thin = width > 0 && width * rows <= THIN_BYTES * 8 && rows <= THIN_ROWS;
                cached || (thin && 2 * of_row * rows <= THIN_CACHED_BYTES * 8)
            };
            let batch = |rows: u64| widest * rows <= PROVED_GATES || rows <= FEWEST_PROVED_ROWS;
            prop_assert!(rows.is_power_of_two());
            prop_assert!(workspace(rows) && batch(rows) && rows <= longest);
            let next = 2 * rows;
            prop_assert!(!workspace(next) || !batch(next) || next > longest);
        }
    }
}
