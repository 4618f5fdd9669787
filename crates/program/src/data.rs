//! Where values come from and where they go: the two ends that the engine meets.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use crate::number::NumberError;

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

    /// The chained digests of the key column of block `block`: one for every [`Block::aligned`](crate::Block::aligned)
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
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError>;

    /// Everything is verified and complete: publishes it. Until then nothing is visible under its final name.
    fn finish(&self) -> Result<(), DataError>;
}

/// A party's stored shares. Many lanes call it at once, for any slice.
///
/// What it gives is not trusted: the two holders of every component compare digests of it before anything depends on it.
pub trait ShareSource: Send + Sync {
    /// Writes component `component` of input port `port` in the rows of `slice`, packed as in [`Source::fill`].
    ///
    /// Component 0 is the party's own, component 1 is the one that it has in common with the previous party. A port with
    /// one value per job is loaded as one row of block 0.
    fn load(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        into: &mut [u8],
    ) -> Result<(), DataError>;
}

/// Takes a party's shares of what is kept. Many lanes call it at once.
pub trait ShareSink: Send + Sync {
    /// Takes component `component` of output port `port` in the rows of `slice`, as [`ShareSource::load`] gives it back:
    /// bits beyond the last row are zero.
    fn keep(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        shares: &[u8],
    ) -> Result<(), DataError>;

    /// All parties have said that all their checks have passed: what was kept is complete, and becomes visible. Before
    /// that, nothing is.
    fn finish(&self) -> Result<(), DataError>;
}

/// Why values cannot be read or written. Such an error stays where the values are: it may quote them.
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
    /// Nothing says where the data are.
    #[error("no file is given for {what} of `{owner}`; name it in the job, or on the command line")]
    NoFile {
        /// Whose data.
        owner: String,
        /// Which data.
        what: String,
    },
    /// A file name for data that the job does not have.
    #[error(
        "`{owner}` supplies no `{what}` in this job; it supplies {}",
        list(known)
    )]
    NoSuchData {
        /// Whose data.
        owner: String,
        /// Which data.
        what: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A table without a header.
    #[error("{}: the file is empty; its first line must name the columns", .0.display())]
    NoHeader(PathBuf),
    /// A column that the header does not name.
    #[error("{}: line 1: no column `{column}`; the header names {}", file.display(), list(found))]
    NoColumn {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// What the header names.
        found: Vec<String>,
    },
    /// A column that the header names twice.
    #[error("{}: line 1: column `{column}` is there twice; rename or remove one", file.display())]
    ColumnTwice {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
    },
    /// A line that cannot be understood as a whole.
    #[error("{}: line {line}: {reason}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Cells that cannot be used.
    #[error("{}", cells(file, problems, *more))]
    Cells {
        /// The file.
        file: PathBuf,
        /// The first of them.
        problems: Vec<CellProblem>,
        /// How many more there are.
        more: u64,
    },
    /// Another number of rows than the job says.
    #[error(
        "rows do not align: {} has {found} rows, but the job declares {declared} for {what}; \
         the rows of all owners must be the same ones in the same order",
        file.display()
    )]
    Rows {
        /// The file.
        file: PathBuf,
        /// What it is the data of.
        what: String,
        /// Rows found.
        found: u64,
        /// Rows declared.
        declared: u64,
    },
    /// A file of records that ends within one.
    #[error(
        "{}: {bytes} bytes are not a multiple of the record of {record} bytes; \
         cut or complete the last record, or set `pad = \"zero\"` or `pad = \"pkcs7\"`",
        file.display()
    )]
    PartialRecord {
        /// The file.
        file: PathBuf,
        /// Its length.
        bytes: u64,
        /// Bytes of a record.
        record: u64,
    },
    /// A file that changed between the check and the use of its values.
    #[error("{} changed while the job was running; nothing was published, run it again", .0.display())]
    Changed(PathBuf),
    /// Not everything came.
    #[error("the result is incomplete: {got} of {want} values came; nothing was published")]
    Incomplete {
        /// Values that came.
        got: u64,
        /// Values that should have come.
        want: u64,
    },
    /// The chart could not be drawn.
    #[error("cannot draw the chart: {0}")]
    Chart(String),
}

impl DataError {
    pub(crate) fn io(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            doing,
            file: file.to_owned(),
            source,
        }
    }
}

/// A cell that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellProblem {
    /// Line of the file, from 1.
    pub line: u64,
    /// Row of data, from 1.
    pub row: u64,
    /// Column.
    pub column: String,
    /// What the cell says, shortened.
    pub value: String,
    /// What is wrong with it.
    pub fault: CellFault,
}

/// What is wrong with a cell.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CellFault {
    /// Nothing there, in a column that needs a value.
    #[error("is empty; give a value, or declare the column with missing = \"skip\"")]
    Empty,
    /// A word for a missing value.
    #[error("is not a value; leave the cell empty where a value is missing")]
    Placeholder,
    /// Not a number.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// Outside the declared range.
    #[error(
        "is outside the declared range {min} to {max}; correct it, or declare a wider range in the job"
    )]
    Range {
        /// Smallest value.
        min: String,
        /// Largest value.
        max: String,
    },
    /// Not one of the declared values.
    #[error("is not one of the declared values {}", list(.0))]
    Category(Vec<String>),
    /// Not digits in base 16, or not as many as the port needs.
    #[error("is not {digits} hexadecimal digits")]
    Hex {
        /// Digits needed.
        digits: u64,
    },
    /// More bits than the port has.
    #[error("does not fit {width} bits")]
    Wide {
        /// Bits of the port.
        width: u32,
    },
}

impl fmt::Display for CellProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            row,
            column,
            value,
            fault,
        } = self;
        write!(
            f,
            "line {line} (row {row}), column `{column}`: `{value}` {fault}"
        )
    }
}

fn cells(file: &Path, problems: &[CellProblem], more: u64) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {problem}", file.display()))
        .collect();
    let rest = if more == 0 {
        String::new()
    } else {
        format!("\n… and {more} more cells of this file")
    };
    lines.join("\n") + &rest
}

/// Names for a message; a long list is cut.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 12;
    match names {
        [] => "nothing".into(),
        _ if names.len() > SHOWN => format!(
            "`{}`, … ({} in all)",
            names[..SHOWN].join("`, `"),
            names.len()
        ),
        _ => format!("`{}`", names.join("`, `")),
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
