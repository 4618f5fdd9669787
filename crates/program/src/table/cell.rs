//! Why a cell of a table cannot be used.

use std::fmt;

use super::error::list;
use crate::number::NumberError;

/// A cell that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellProblem {
    /// Line of the file, from 1; nothing in a file without lines.
    pub line: Option<u64>,
    /// Row of data, from 1.
    pub row: u64,
    /// Column; nothing if the row is at fault as a whole.
    pub column: Option<String>,
    /// The text of the cell, shortened.
    pub value: String,
    /// The defect.
    pub fault: CellFault,
}

/// A defect of a cell.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CellFault {
    /// Nothing there, in a column that needs a value.
    #[error(
        "is empty; give a value, or declare what a missing one means: missing = \"drop-pair\", \"drop-row\" or \"zero\""
    )]
    Empty,
    /// Nothing there, in a column of a query that is never null.
    #[error("is empty; give a value, or write `null = true` into the column, at all participants")]
    Null,
    /// Not true or false.
    #[error("is neither true nor false: write `true` or `false`, `t` or `f`, 1 or 0")]
    Bool,
    /// What the job says is unique is not.
    #[error(
        "is in row {row} as well, and the job says that {claim} is unique; correct the table, or leave the claim out, at all participants"
    )]
    NotUnique {
        /// The first row that has it.
        row: u64,
        /// The columns.
        claim: String,
    },
    /// Rows that are not in the order that the job says.
    #[error(
        "comes after a row that is behind it, and the job says `sorted_by = [{claim}]`; sort the table, or leave the claim out, at all participants"
    )]
    NotSorted {
        /// The columns.
        claim: String,
    },
    /// A weight of a network that is beyond the bound of its layer.
    #[error(
        "is a {what} of layer {layer} of network `{network}`, and the job says that these are from -{most} to {most}; correct the table, or the bound, at all participants"
    )]
    Weight {
        /// A weight or a bias.
        what: &'static str,
        /// The layer, from 0 on.
        layer: usize,
        /// The network.
        network: String,
        /// The bound.
        most: String,
    },
    /// Nothing there, in the key column whose order is compared.
    #[error("is empty; every row needs a key where the order of rows is compared")]
    NoKey,
    /// The key of another row, in the key column whose order is compared.
    #[error(
        "is the key of row {row}{} as well; a key names one row: correct it, or write `duplicates = \"allowed\"` into `align`",
        line.map_or_else(String::new, |line| format!(" (line {line})"))
    )]
    SameKey {
        /// The first row that has it.
        row: u64,
        /// Its line.
        line: Option<u64>,
    },
    /// A word for a missing value.
    #[error(
        "is not a value; leave the cell empty where a value is missing, or list it in `missing` of `written`"
    )]
    Placeholder,
    /// Not a number.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// A number in marks that the column does not declare: every reading, and what declares it.
    #[error("looks like {}", readings(.0))]
    Marks(Vec<(String, String)>),
    /// Not a date in the format of the column.
    #[error(
        "is not a date of the form {format}; correct it, or put the `format` of the file into the column"
    )]
    Date {
        /// The format, as in `strftime`.
        format: String,
    },
    /// A point in time where a date is wanted.
    #[error("is not midnight; the column is declared as a date: store dates, or cut the times off")]
    TimeOfDay,
    /// A binary fraction that is not the decimal it stands for.
    #[error(
        "is a binary fraction, and not exactly a number of {scale} digits after the point; store the column as \
         decimal with scale {scale}, or as integer, or have it rounded: `round = true` in `written`"
    )]
    Inexact {
        /// Digits that the column keeps.
        scale: u8,
    },
    /// Bytes that are no text.
    #[error("is not UTF-8 from byte {at} on; save the file as UTF-8")]
    Utf8 {
        /// First bad byte of the cell, from 1.
        at: usize,
    },
    /// Zero bytes.
    #[error("has zero bytes; the file is damaged, or not UTF-8")]
    Nul,
    /// A record with too few or too many cells.
    #[error(
        "{found} cells, but the header has {header}; check for a missing or an extra comma or quote"
    )]
    Record {
        /// Cells found.
        found: usize,
        /// Cells of the header.
        header: usize,
    },
    /// Text after a closing quote.
    #[error(
        "cell {cell} goes on after its closing quote; write a quote within a quoted cell twice"
    )]
    Stray {
        /// The cell, from 1.
        cell: usize,
    },
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
        match line {
            Some(line) => write!(f, "line {line} (row {row})")?,
            None => write!(f, "row {row}")?,
        }
        match column {
            Some(column) => write!(f, ", column `{column}`: `{value}` {fault}"),
            None => write!(f, ": {fault}"),
        }
    }
}

/// What a number in other marks may be.
fn readings(readings: &[(String, String)]) -> String {
    match readings {
        [(number, write)] => {
            format!("{number}; put `{write}` into the column if that is meant")
        }
        several => {
            let each: Vec<String> = several
                .iter()
                .map(|(number, write)| format!("{number} (`{write}`)"))
                .collect();
            format!(
                "{}; put what is meant into the column",
                each.join(" or like ")
            )
        }
    }
}
