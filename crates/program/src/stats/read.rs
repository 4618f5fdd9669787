//! An owner's CSV file: read completely and checked against the job before anything is shared.

use std::{
    cell::Cell,
    collections::HashSet,
    fs::File,
    io::{self, Read},
    path::Path,
    rc::Rc,
};

use csv::{ByteRecord, ErrorKind, ReaderBuilder, Trim};

use super::{
    Column, ColumnKind,
    table::{Cells, Table},
};
use crate::{
    data::{CellFault, CellProblem, DataError},
    number::{Scaled, parse_scaled},
};

/// Longest record. A quote that is never closed would otherwise read the whole file as one cell.
const LONGEST_RECORD: u64 = 1 << 20;
/// Cells reported in one error: enough to see a pattern.
const SHOWN: usize = 20;
/// Words that other programs write for a missing value.
const PLACEHOLDERS: [&str; 8] = ["NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"];

/// What is wanted of a file.
pub(super) struct Wanted<'a> {
    /// The columns of the job.
    pub(super) columns: &'a [Column],
    /// Which of them are in this file.
    pub(super) held: &'a [usize],
    /// The block, for messages.
    pub(super) block: &'a str,
    /// Rows that the job declares.
    pub(super) rows: u64,
}

/// Reads the wanted columns. The file may have others, in any order; they are ignored.
pub(super) fn read(file: &Path, wanted: &Wanted<'_>) -> Result<Table, DataError> {
    let handle = File::open(file).map_err(DataError::io("open", file))?;
    // A row takes at least a byte, so a declared number of rows cannot make us reserve more than the file justifies.
    let bytes = handle
        .metadata()
        .map_err(DataError::io("read", file))?
        .len();
    let capacity = usize::try_from(wanted.rows.min(bytes)).unwrap_or(0);
    read_from(handle, file, wanted, capacity)
}

/// [`read`] from any reader.
pub(super) fn read_from(
    input: impl Read,
    file: &Path,
    wanted: &Wanted<'_>,
    capacity: usize,
) -> Result<Table, DataError> {
    let allowance = Rc::new(Cell::new(0));
    let input = Bounded {
        input,
        allowance: Rc::clone(&allowance),
    };
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(false)
        .trim(Trim::All)
        .from_reader(input);
    let mut record = ByteRecord::new();
    let mut next = |record: &mut ByteRecord| {
        allowance.set(LONGEST_RECORD);
        reader
            .read_byte_record(record)
            .map_err(|error| explain(error, file))
    };

    if !next(&mut record)? {
        return Err(DataError::NoHeader(file.to_owned()));
    }
    let places = header(&record, file, wanted)?;
    let mut cells: Vec<Cells> = wanted
        .held
        .iter()
        .map(|&column| Cells::with_capacity(&wanted.columns[column], capacity))
        .collect();
    let mut problems = Problems {
        file,
        shown: Vec::new(),
        all: 0,
    };
    let mut found = 0u64;
    while next(&mut record)? {
        found += 1;
        if found > wanted.rows {
            continue; // Counted for the message, and checked for nothing else.
        }
        let line = record.position().map_or(0, csv::Position::line);
        for ((place, &column), cells) in places.iter().zip(wanted.held).zip(&mut cells) {
            let column = &wanted.columns[column];
            let bytes = record.get(*place).unwrap_or_default();
            if let Err(fault) = push(cells, column, bytes) {
                problems.add(line, found, column, bytes, fault);
                cells.push_missing();
            }
        }
    }
    problems.none()?;
    if found != wanted.rows {
        let what = format!("block `{}`", wanted.block);
        return Err(DataError::Rows {
            file: file.to_owned(),
            what,
            found,
            declared: wanted.rows,
        });
    }
    let mut columns = vec![None; wanted.columns.len()];
    for (&column, cells) in wanted.held.iter().zip(cells) {
        columns[column] = Some(cells);
    }
    Ok(Table { columns })
}

/// Where in a record each wanted column is.
fn header(record: &ByteRecord, file: &Path, wanted: &Wanted<'_>) -> Result<Vec<usize>, DataError> {
    let clean = |(index, bytes): (usize, &[u8])| {
        let text = String::from_utf8_lossy(bytes);
        // Spreadsheets begin a file with a byte order mark.
        let text = if index == 0 {
            text.trim_start_matches('\u{feff}')
        } else {
            &text
        };
        text.trim().trim_matches('"').to_owned()
    };
    let names: Vec<String> = record.iter().enumerate().map(clean).collect();
    let mut seen = HashSet::new();
    let held: HashSet<&str> = wanted
        .held
        .iter()
        .map(|&column| wanted.columns[column].name.as_str())
        .collect();
    for name in names.iter().filter(|name| held.contains(name.as_str())) {
        if !seen.insert(name) {
            return Err(DataError::ColumnTwice {
                file: file.to_owned(),
                column: name.clone(),
            });
        }
    }
    let place = |&column: &usize| {
        let column = &wanted.columns[column].name;
        names
            .iter()
            .position(|name| name == column)
            .ok_or_else(|| DataError::NoColumn {
                file: file.to_owned(),
                column: column.clone(),
                found: names.iter().map(|name| shorten(name.as_bytes())).collect(),
            })
    };
    wanted.held.iter().map(place).collect()
}

fn push(cells: &mut Cells, column: &Column, bytes: &[u8]) -> Result<(), CellFault> {
    let text = std::str::from_utf8(bytes).unwrap_or("\u{fffd}");
    let missing = |fault: CellFault| {
        if PLACEHOLDERS.contains(&text) {
            CellFault::Placeholder
        } else {
            fault
        }
    };
    if text.is_empty() {
        if !column.may_be_missing() {
            return Err(CellFault::Empty);
        }
        cells.push_missing();
        return Ok(());
    }
    match &column.kind {
        ColumnKind::Number {
            scale, min, max, ..
        } => {
            let value = parse_scaled(text, *scale).map_err(|error| missing(error.into()))?;
            if value < *min || value > *max {
                let show = |value: i64| {
                    Scaled {
                        value: value.into(),
                        scale: *scale,
                    }
                    .to_string()
                };
                return Err(CellFault::Range {
                    min: show(*min),
                    max: show(*max),
                });
            }
            cells.push_number(value);
        }
        ColumnKind::Category(values) => {
            let value = values.iter().position(|value| value == text);
            let value = value.ok_or_else(|| missing(CellFault::Category(values.clone())))?;
            cells.push_category(value as u8);
        }
    }
    Ok(())
}

struct Problems<'a> {
    file: &'a Path,
    shown: Vec<CellProblem>,
    all: u64,
}

impl Problems<'_> {
    fn add(&mut self, line: u64, row: u64, column: &Column, bytes: &[u8], fault: CellFault) {
        self.all += 1;
        if self.shown.len() < SHOWN {
            let (column, value) = (column.name.clone(), shorten(bytes));
            self.shown.push(CellProblem {
                line,
                row,
                column,
                value,
                fault,
            });
        }
    }

    fn none(self) -> Result<(), DataError> {
        if self.shown.is_empty() {
            return Ok(());
        }
        let more = self.all - self.shown.len() as u64;
        Err(DataError::Cells {
            file: self.file.to_owned(),
            problems: self.shown,
            more,
        })
    }
}

/// A cell for a message: printable and short.
fn shorten(bytes: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(bytes);
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

fn explain(error: csv::Error, file: &Path) -> DataError {
    let line = error.position().map_or(0, csv::Position::line);
    let reason = match error.into_kind() {
        ErrorKind::Io(source) if is_too_long(&source) => {
            return DataError::Line {
                file: file.to_owned(),
                line,
                reason: TooLong.to_string(),
            };
        }
        ErrorKind::Io(source) => {
            return DataError::Io {
                doing: "read",
                file: file.to_owned(),
                source,
            };
        }
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!(
            "{len} cells, but the header has {expected_len}; check for a missing or an extra comma or quote"
        ),
        other => format!("{other:?}"),
    };
    DataError::Line {
        file: file.to_owned(),
        line,
        reason,
    }
}

fn is_too_long(error: &io::Error) -> bool {
    error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<TooLong>())
        .is_some()
}

/// Ends a record that is longer than any sensible one.
struct Bounded<R> {
    input: R,
    allowance: Rc<Cell<u64>>,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the record that begins after the last good line is longer than {LONGEST_RECORD} bytes; look for a quote that is never closed"
)]
struct TooLong;

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.allowance.get();
        if left == 0 {
            return Err(io::Error::other(TooLong));
        }
        let count = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let got = self.input.read(&mut into[..count])?;
        self.allowance.set(left - got as u64);
        Ok(got)
    }
}
