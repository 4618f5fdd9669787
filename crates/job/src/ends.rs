//! Where values come from and where they go: the two ends that the engine meets.

use std::error::Error;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
    /// before the others. Where keys [meet](crate::Order::Intersected), it is all keys of the holder, [`KEY_BYTES`](crate::KEY_BYTES) for each.
    ///
    /// # Errors
    /// [`DataError`] if the values cannot be read: [`DataError::OutOfReach`] for a port or rows that the source does not have,
    /// [`DataError::Own`] if its file is not the one that was checked.
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
    /// says nothing to any other participant. Nothing for a block whose order is not compared.
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
    /// [`DataError::Own`] if the store cannot be read, or holds other shares than were written.
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
    /// [`DataError::Own`] if the store cannot be written, or has been given these shares before.
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
    /// [`DataError::Own`] if shares are missing or the store cannot be written.
    fn finish(&self) -> Result<(), DataError>;
}

/// Where a party's columns wait on its disk, between passes, while its memory is for others.
///
/// What comes back is what was put there, or an error: a party's disk is not trusted with shares, nor with their being the latest.
pub trait Spill: Send + Sync {
    /// Puts bytes away, and says at which place.
    ///
    /// # Errors
    /// [`DataError::Own`] or [`DataError::Io`] if the disk does not take them: it is full, or fails.
    fn put(&self, bytes: &[u8]) -> Result<u64, DataError>;

    /// Brings the bytes of a place back, all of them; the place has none then.
    ///
    /// # Errors
    /// [`DataError::Own`] if there are others than were put there, or none; [`DataError::Io`] if the disk fails.
    fn get(&self, place: u64, into: &mut [u8]) -> Result<(), DataError>;

    /// Lets go of the bytes of a place, unread.
    fn free(&self, place: u64);
}

/// Why values cannot be supplied or taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The caller asked for what is not there.
    #[error(
        "port {port} has no rows {first} to {} of block {block} here, or in another shape; this is a mistake of the program",
        first.saturating_add(*rows)
    )]
    OutOfReach {
        /// Index of the port.
        port: usize,
        /// Index of the block.
        block: u32,
        /// First row asked for.
        first: u64,
        /// Rows asked for.
        rows: u64,
    },
    /// A file that cannot be opened, read or written.
    #[error("cannot {doing} {}: {source}{}", file.display(), advice(source, doing))]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Not everything came.
    #[error("the result is incomplete: {got} of {want} values came; nothing was published")]
    Incomplete {
        /// Values that came.
        got: u64,
        /// Values that should have come.
        want: u64,
    },
    /// This participant's own data or its store: others learn nothing of it.
    #[error("{error}")]
    Own {
        /// What is wrong.
        error: Box<dyn Error + Send + Sync>,
        /// Whether the message may quote what is in a file.
        quotes: bool,
    },
    /// Two participants supply different values of what they have in common: all participants may read it.
    #[error(transparent)]
    Differ(Box<dyn Error + Send + Sync>),
}

impl DataError {
    /// Port `port` has no such rows here, or another shape than the caller believes.
    pub fn out_of_reach(port: usize, slice: Slice) -> Self {
        DataError::OutOfReach {
            port,
            block: slice.block,
            first: slice.first,
            rows: slice.rows.into(),
        }
    }

    /// The system refused to do something with a file: what, and with which.
    pub fn io(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            doing,
            file: file.to_owned(),
            source,
        }
    }

    /// Something of this participant's own that no message quotes.
    pub fn own(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        DataError::Own {
            error,
            quotes: false,
        }
    }

    /// Whether the error is about files of this participant, of which others learn nothing.
    pub const fn is_own(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Own { .. })
    }

    /// Whether the message may quote what is in a file: such a message goes to the owner of the file, and into no log.
    pub const fn quotes(&self) -> bool {
        matches!(self, Self::Own { quotes: true, .. })
    }
}

fn advice(error: &io::Error, doing: &str) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound if doing == "open" => {
            "; check the path in the job, it is relative to the job file"
        }
        io::ErrorKind::NotFound => "; create the folder first",
        io::ErrorKind::PermissionDenied => "; check the permissions of file and folder",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and run again, nothing was published"
        }
        _ => "",
    }
}
