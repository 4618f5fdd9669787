//! Problems of a table, collected while it is read.

use std::path::Path;

use crate::InputError;
use crate::table::{CellFault, CellProblem, DataError};

/// Cells reported in one error: enough to see a pattern.
const SHOWN: usize = 20;

/// Gathers the first problems of a file and counts the others.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    shown: Vec<CellProblem>,
    all: u64,
}

/// A place in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// From 1; nothing in files without lines.
    pub(crate) line: Option<u64>,
    /// From 1.
    pub(crate) row: u64,
}

impl Problems {
    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.all
    }

    /// A cell at fault. Text is shortened.
    #[cold]
    pub(crate) fn cell(&mut self, place: Place, column: &str, text: &[u8], fault: CellFault) {
        self.all += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(CellProblem {
                line: place.line,
                row: place.row,
                column: Some(column.to_owned()),
                value: shorten(text),
                fault,
            });
        }
    }

    /// A record at fault as a whole.
    #[cold]
    pub(crate) fn record(&mut self, place: Place, fault: CellFault) {
        self.all += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(CellProblem {
                line: place.line,
                row: place.row,
                column: None,
                value: String::new(),
                fault,
            });
        }
    }

    /// Nothing, or everything that was found.
    pub(crate) fn none(self, file: &Path) -> Result<(), DataError> {
        if self.all == 0 {
            return Ok(());
        }
        let more = self.all - self.shown.len() as u64;
        Err(InputError::Cells {
            file: file.to_owned(),
            problems: self.shown,
            more,
        }
        .into())
    }
}

/// A cell for a message: printable and short.
pub(crate) fn shorten(bytes: &[u8]) -> String {
    const LONGEST: usize = 40;
    // A character has at most four bytes; a long cell is not converted whole.
    let head = &bytes[..bytes.len().min(4 * LONGEST + 4)];
    let text = String::from_utf8_lossy(head);
    let mut short: String = text
        .chars()
        .take(LONGEST)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}
