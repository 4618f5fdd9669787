//! A first draft of a declaration from a table that is at hand: what each column may be, and the text of a job.
//!
//! A draft goes to all participants, and every end of a range, every value of a category and every number of rows says something of the data. So
//! ranges are rounded outwards, rows are rounded up, values that few rows have are told apart, and each guess says that it is one.

mod column;
mod write;

use std::path::Path;

use veil_job::DataError;

pub use column::{Guess, Guessed};
pub use write::{NewJob, NewTable};

use crate::table::scan::{self, Typed, Visit};
use column::Tally;

/// What the columns of a table may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// The columns, in the order of the file.
    pub columns: Vec<Guess>,
    /// A number of rows that is at least as large as that of the table: of one digit, and of two where that is much farther.
    pub rows: u64,
    /// What is between the cells of a CSV file, if it is not a comma.
    pub delimiter: Option<char>,
    /// Whether numbers have a decimal comma.
    pub comma: bool,
    /// Words that stand for a missing value.
    pub missing: Vec<String>,
}

impl Draft {
    /// Of a file.
    ///
    /// # Errors
    /// [`DataError`] if it cannot be read, or is no table.
    pub fn of_file(file: &Path) -> Result<Self, DataError> {
        let mut tallies = Tallies::default();
        scan::file(file, &mut tallies)?;
        Ok(tallies.end())
    }

    /// Of a table in memory. With `loose`, its texts are read as those of a CSV file are: as numbers and dates, where all of them are some.
    #[cfg(feature = "columnar")]
    pub fn of_memory(table: &crate::MemoryTable, loose: bool) -> Self {
        let mut tallies = Tallies {
            loose,
            ..Tallies::default()
        };
        scan::memory(table, &mut tallies);
        tallies.end()
    }
}

/// What is counted while a table is read.
#[derive(Default)]
struct Tallies {
    columns: Vec<Tally>,
    rows: u64,
    delimiter: Option<u8>,
    loose: bool,
}

impl Visit for Tallies {
    fn header(&mut self, columns: Vec<(String, Typed)>, delimiter: Option<u8>) {
        let loose = |typed| match typed {
            Typed::Text if self.loose => Typed::Any,
            typed => typed,
        };
        let columns = columns.into_iter();
        self.columns = columns
            .map(|(name, typed)| Tally::new(name, loose(typed)))
            .collect();
        self.delimiter = delimiter;
    }

    fn cell(&mut self, column: usize, text: Option<&str>) {
        self.columns[column].push(text);
    }

    fn row(&mut self) {
        self.rows += 1;
    }
}

impl Tallies {
    fn end(self) -> Draft {
        // One comma as a decimal mark says how the file writes numbers, unless a point says otherwise.
        let comma = self.columns.iter().any(Tally::needs_comma)
            && !self.columns.iter().any(Tally::needs_point);
        let mut missing: Vec<String> = Vec::new();
        for word in self.columns.iter().flat_map(Tally::placeholders) {
            if !missing.contains(word) {
                missing.push(word.clone());
            }
        }
        let columns = self.columns.into_iter();
        Draft {
            columns: columns.map(|tally| tally.end(comma)).collect(),
            rows: column::outwards_rows(self.rows),
            delimiter: self.delimiter.map(char::from).filter(|mark| *mark != ','),
            comma,
            missing,
        }
    }
}
