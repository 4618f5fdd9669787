//! Why an owner's tables and files cannot be used.

use std::path::{Path, PathBuf};

use veil_job::DataError;

use super::CellProblem;

/// Why an owner's tables and files cannot be used. Such an error stays where the values are: it may quote them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// Nothing says where the data are.
    #[error("no file is given for {what} of `{owner}`; name it in the job, or on the command line")]
    NoFile {
        /// Whose data.
        owner: String,
        /// Which data.
        what: String,
    },
    /// A table that no file has.
    #[error(
        "table `{table}` comes from dataset `{dataset}`, whose values no participant has: what queries mean over it in the clear, no program can tell"
    )]
    Stored {
        /// The table.
        table: String,
        /// The dataset.
        dataset: String,
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
        /// The names that there are.
        known: Vec<String>,
    },
    /// A table without a header.
    #[error("{}: the file is empty, or its first line is; the first line must name the columns", .0.display())]
    NoHeader(PathBuf),
    /// A pipe, a device or a folder.
    #[error(
        "{} is not a regular file, and tables are read twice: once to check them, once to share them; \
         write what comes out of a pipe to a file first",
        .0.display()
    )]
    NotAFile(PathBuf),
    /// A file whose name does not tell its format.
    #[error(
        "{}: tables are CSV (.csv, .txt, .tsv), Parquet (.parquet) or Arrow IPC files (.arrow, .feather), and are read \
         as their name says; rename the file",
        .0.display()
    )]
    Format(PathBuf),
    /// A columnar file, in a build that reads none.
    #[error(
        "{}: this build reads CSV files alone; write the table as CSV, or build with the feature `columnar`",
        .0.display()
    )]
    CsvOnly(PathBuf),
    /// Not what the name of the file says.
    #[error("{}: this is {looks}, and not {wanted}; {advice}", file.display())]
    Magic {
        /// The file.
        file: PathBuf,
        /// The format that it looks like.
        looks: &'static str,
        /// The format that it should have.
        wanted: &'static str,
        /// The remedy.
        advice: &'static str,
    },
    /// A file in one of the binary formats that cannot be read.
    #[error("{}: {reason}; the file is damaged or uses what this program does not read: write it again", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The reader's error.
        reason: String,
    },
    /// A column of a type that does not fit the declared one.
    #[error("{}: column `{column}` has type {found}, and the job declares {declared}; {advice}", file.display())]
    ColumnType {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// Its type in the file.
        found: String,
        /// Its type in the job.
        declared: String,
        /// The remedy.
        advice: String,
    },
    /// Text that is not UTF-8, or no text at all.
    #[error(
        "{}: this is {looks}, and not CSV in UTF-8; save it as CSV in UTF-8",
        file.display()
    )]
    Encoding {
        /// The file.
        file: PathBuf,
        /// The encoding that it looks like.
        looks: &'static str,
    },
    /// Another delimiter than the job says.
    #[error(
        "{}: line 1: the columns are delimited by `{found}`; put `delimiter = \"{found}\"` into {what} of the job",
        file.display()
    )]
    Delimiter {
        /// The file.
        file: PathBuf,
        /// The delimiter found, as the job writes it.
        found: &'static str,
        /// The block or table.
        what: String,
    },
    /// The order of a key column is compared, and there is no key.
    #[error(
        "block `{block}` compares the order of column `{column}`, and `{owner}` has no alignment key; make one with \
         `veil data key new FILE`, hand it to the other owners of the block, and give it with --align-key FILE, to `veil approve` where a service \
         brings the data"
    )]
    NoAlignKey {
        /// Who needs it.
        owner: String,
        /// The block.
        block: String,
        /// The key column.
        column: String,
    },
    /// A column that the header does not name.
    #[error("{}: no column `{column}`; the header names {}", file.display(), list(found))]
    NoColumn {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// The columns of the header.
        found: Vec<String>,
    },
    /// A column that the header names twice.
    #[error("{}: column `{column}` is there twice; rename or remove one", file.display())]
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
        /// The defect, and what to do about it.
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
        "{}{} has {found} rows, but the job declares {declared} for {what}; {}{note}",
        if *alone { "" } else { "rows do not align: " },
        file.display(),
        if *alone { "give the whole table, or change `rows`" } else { "the rows of all owners must be the same ones in the same order" }
    )]
    Rows {
        /// The file.
        file: PathBuf,
        /// The block or input of the data.
        what: String,
        /// Rows found.
        found: u64,
        /// Rows declared.
        declared: u64,
        /// Whether no other owner has columns of these rows.
        alone: bool,
        /// A possible reason, after a semicolon; empty if nothing is known.
        note: String,
    },
    /// More rows than a table has room for, or fewer than its bucket.
    #[error(
        "{} has {found} rows, and {what} of the job has {least} to {most}; change `rows` there, at all participants{note}",
        file.display()
    )]
    Capacity {
        /// The file.
        file: PathBuf,
        /// The table.
        what: String,
        /// Rows found.
        found: u64,
        /// Fewest rows.
        least: u64,
        /// Most rows.
        most: u64,
        /// A possible reason, after a semicolon; empty if nothing is known.
        note: String,
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
    /// A job of many passes, asked for the source of its only one.
    #[error("the job has many passes; this is a mistake of the program")]
    Passes,
    /// Shares that are in a store, and no file.
    #[error("`{0}` supplies shares from its store to this job, and no file")]
    FromStore(String),
}

impl InputError {
    /// Whether the message may quote what is in a file: such a one goes to the owner of the file, and into no log.
    fn quotes(&self) -> bool {
        matches!(
            self,
            Self::Cells { .. }
                | Self::Line { .. }
                | Self::NoColumn { .. }
                | Self::ColumnTwice { .. }
                | Self::Damaged { .. }
        )
    }
}

impl From<InputError> for DataError {
    fn from(error: InputError) -> Self {
        DataError::Own {
            quotes: error.quotes(),
            error: Box::new(error),
        }
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
pub(super) fn list(names: &[String]) -> String {
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
