//! Where values come from and where they go: the two ends that the engine meets.

mod cell;
mod error;

use std::ops::Range;

pub use cell::{CellFault, CellProblem};
pub use error::DataError;

/// Consecutive rows of one block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slice {
    /// Index of the block.
    pub block: u32,
    /// First row within the block.
    pub first: u64,
    /// Number of rows; 1 for a port that has one value for the whole job.
    pub rows: u32,
}

/// The values of one owner, validated before anything is shared. Many lanes call it at once, for any slice.
pub trait Source: Send + Sync {
    /// Writes the values of input port `port` in the rows of `slice`.
    ///
    /// `into` is `[wire][Ring::bytes(rows)]`: for each wire of the port its values in all rows, little-endian elements
    /// or packed bits with the first row in bit 0. The wires of a port with a value in every cycle are those of all cycles, the first one's
    /// before the others.
    ///
    /// # Errors
    /// [`DataError`] if the values cannot be read: [`DataError::OutOfReach`] for a port or rows that the source does not have,
    /// [`DataError::Changed`] if its file is not the one that was checked.
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError>;

    /// Writes the values that input port `port` has in these of so many cycles, as [`Source::fill`] does.
    ///
    /// This makes those of all cycles, and keeps these: a source of long values reads what it needs.
    ///
    /// # Errors
    /// [`DataError`] as of [`Source::fill`].
    fn fill_cycles(
        &self,
        port: usize,
        slice: Slice,
        (cycles, count): (Range<u64>, u64),
        into: &mut [u8],
    ) -> Result<(), DataError> {
        let asked = cycles.end.saturating_sub(cycles.start).max(1);
        let of_cycle = into.len() / asked as usize;
        let mut all = vec![0; of_cycle * count as usize];
        self.fill(port, slice, &mut all)?;
        let first = cycles.start as usize * of_cycle;
        into.copy_from_slice(&all[first..first + into.len()]);
        Ok(())
    }

    /// The chained digests of the key column of block `block`: one for every [`Block::order`](crate::Block::order)
    /// rows, the last one for what is left. Keyed with a key that only the holders of the block have, so that a digest
    /// says nothing to anybody else. Nothing for a block whose order is not compared.
    fn order(&self, block: u32) -> &[[u8; 32]] {
        let _ = block;
        &[]
    }
}

/// Takes the opened values of output ports.
pub trait Sink: Send + Sync {
    /// Takes the values of output port `port` in the rows of `slice`, packed as in [`Source::fill`].
    ///
    /// A port that is summed over the rows comes once, as one row of block 0.
    ///
    /// # Errors
    /// [`DataError`] if the values cannot be kept: [`DataError::OutOfReach`] for a port or rows that the sink does not have.
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError>;

    /// Everything is verified and complete: publishes it. Until then nothing is visible under its final name.
    ///
    /// # Errors
    /// [`DataError::Incomplete`] if values are missing, [`DataError::Io`] if the results cannot be written.
    fn finish(&self) -> Result<(), DataError>;
}

/// A party's stored shares. Many lanes call it at once, for any slice.
///
/// Its shares are not trusted: the two holders of every component compare digests of it before anything depends on it.
pub trait ShareSource: Send + Sync {
    /// Writes component `component` of input port `port` in the rows of `slice`, packed as in [`Source::fill`].
    ///
    /// Component 0 is the party's own, component 1 is the one that it has in common with the previous party. A port with
    /// one value per job is loaded as one row of block 0.
    ///
    /// # Errors
    /// [`DataError::Stored`] if the store cannot be read, or holds other shares than were written.
    fn load(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        into: &mut [u8],
    ) -> Result<(), DataError>;
}

/// Takes a party's shares of stored outputs. Many lanes call it at once.
pub trait ShareSink: Send + Sync {
    /// Takes component `component` of output port `port` in the rows of `slice`, as [`ShareSource::load`] gives it back:
    /// bits beyond the last row are zero.
    ///
    /// # Errors
    /// [`DataError::Stored`] if the store cannot be written, or has been given these shares before.
    fn keep(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        shares: &[u8],
    ) -> Result<(), DataError>;

    /// All parties have said that all their checks have passed: what was kept is complete, and becomes visible. Before
    /// that, nothing is.
    ///
    /// # Errors
    /// [`DataError::Stored`] if shares are missing or the store cannot be written.
    fn finish(&self) -> Result<(), DataError>;
}
