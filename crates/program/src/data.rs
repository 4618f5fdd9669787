//! Where values come from and where they go: the two ends that the engine meets.

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
    /// or packed bits with the first row in bit 0.
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError>;
}

/// Takes the opened values of output ports.
pub trait Sink: Send + Sync {
    /// Takes the values of output port `port` in the rows of `slice`, packed as in [`Source::fill`].
    ///
    /// A port that is summed over the rows comes once, as one row of block 0.
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError>;

    /// Everything is verified and complete: publishes it. Until then nothing is visible under its final name.
    fn finish(&self) -> Result<(), DataError>;
}

/// Why values cannot be read or written. Such an error stays where the values are: it may quote them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The caller asked for what is not there.
    #[error(
        "port {port} has no rows {first} to {last} in block {block} here; this is a mistake of the caller"
    )]
    OutOfReach {
        /// Index of the port.
        port: usize,
        /// Index of the block.
        block: u32,
        /// First row asked for.
        first: u64,
        /// Last row asked for.
        last: u64,
    },
}
