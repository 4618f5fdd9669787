//! Tables as text: CSV.

use std::{io, path::Path, sync::Arc};

use memchr::memchr;

use super::{
    Format, Mark, Notes, Rows, Spec,
    cells::Chunk,
    input::Input,
    problems::{Place, shorten},
    split::{Fields, Split},
};
use crate::InputError;
use crate::table::{CellFault, DataError};

/// Longest record. A quote that is never closed would otherwise read the whole file as one cell.
const LONGEST_RECORD: usize = 1 << 20;
/// Bytes read at a time: few calls, and it stays in the second cache.
const WINDOW: usize = 1 << 18;
/// Marks between cells that other programs write.
const DELIMITERS: [(u8, &str); 4] = [(b',', ","), (b';', ";"), (b'\t', "\\t"), (b'|', "|")];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A CSV file whose header was read.
#[derive(Debug)]
pub(super) struct CsvFile {
    shared: Arc<Shared>,
    first: Mark,
}

#[derive(Debug)]
struct Shared {
    spec: Arc<Spec>,
    input: Input,
    /// Cells of the header, and so of every record.
    cells: usize,
    /// Where in a record each wanted column is, or its parts are.
    places: Vec<Vec<usize>>,
    /// Where the key is whose order is compared.
    key: Option<usize>,
}

impl CsvFile {
    /// Reads the header. The file may have other columns than the wanted ones, in any order; they are ignored.
    pub(super) fn open(spec: &Arc<Spec>, input: Input) -> Result<Self, DataError> {
        let mut window = Window::new(input.clone(), 0);
        window.more(&spec.file, 1)?;
        encoding(&spec.file, window.rest())?;
        if window.rest().starts_with(BYTE_ORDER_MARK) {
            window.at += BYTE_ORDER_MARK.len();
        }
        let mut fields = Fields::default();
        let (next, lines) = window.record(&mut fields, spec.delimiter, &spec.file, 1)?;
        let line = &window.bytes[window.at..next];
        if line.iter().all(u8::is_ascii_whitespace) {
            return Err(InputError::NoHeader(spec.file.clone()).into());
        }
        let header = Header::new(&fields, &window.bytes, line, spec)?;
        let places = (spec.readers.iter())
            .map(|reader| reader.parts.iter().map(|part| header.find(part)).collect())
            .collect::<Result<_, _>>()?;
        let key = spec.key.as_deref().map(|name| header.find(name));
        let first = Mark {
            row: 0,
            offset: window.offset + next as u64,
            line: 1 + lines,
        };
        let shared = Arc::new(Shared {
            spec: Arc::clone(spec),
            input,
            cells: fields.len(),
            places,
            key: key.transpose()?,
        });
        Ok(Self { shared, first })
    }
}

impl Format for CsvFile {
    fn name(&self) -> &'static str {
        "CSV"
    }

    fn rows(&self) -> Result<Box<dyn Rows>, DataError> {
        Ok(Box::new(CsvRows {
            shared: Arc::clone(&self.shared),
            window: Window::new(self.shared.input.clone(), self.first.offset),
            fields: Fields::default(),
            mark: self.first,
            blank: 0,
        }))
    }
}

/// Reads records in order.
#[derive(Debug)]
struct CsvRows {
    shared: Arc<Shared>,
    window: Window,
    fields: Fields,
    mark: Mark,
    /// Empty lines that were left out before the last record.
    blank: u64,
}

impl Rows for CsvRows {
    fn read(
        &mut self,
        most: usize,
        into: &mut Chunk,
        notes: &mut Notes,
    ) -> Result<usize, DataError> {
        let shared = Arc::clone(&self.shared);
        let spec = &*shared.spec;
        let mut blank = 0;
        for done in 0..most {
            let next = loop {
                if self.window.is_at_end(&spec.file, self.mark.line)? {
                    return Ok(done);
                }
                let (next, lines) = self.window.record(
                    &mut self.fields,
                    spec.delimiter,
                    &spec.file,
                    self.mark.line,
                )?;
                let line = self.mark.line;
                self.mark.line += lines;
                let empty = self.fields.len() == 1
                    && matches!(
                        &self.window.bytes[self.window.at..next],
                        b"\n" | b"\r\n" | b"\r"
                    );
                if !empty {
                    break (next, line);
                }
                blank += 1;
                self.window.at = next;
            };
            let (next, line) = next;
            notes.blank_lines += std::mem::take(&mut blank);
            self.mark.row += 1;
            let place = Place {
                line: Some(line),
                row: self.mark.row,
            };
            self.record(&shared, place, into, notes);
            self.window.at = next;
            self.mark.offset = self.window.offset + next as u64;
        }
        Ok(most)
    }

    fn mark(&self) -> Mark {
        self.mark
    }

    fn seek(&mut self, to: Mark) -> Result<(), DataError> {
        self.window.seek(to.offset);
        self.mark = to;
        self.blank = 0;
        Ok(())
    }

    fn done(&self) -> u64 {
        self.mark.offset
    }
}

impl CsvRows {
    /// Reads the cells of the record that was split last.
    #[inline]
    fn record(&mut self, shared: &Shared, place: Place, into: &mut Chunk, notes: &mut Notes) {
        let (fields, bytes) = (&self.fields, &self.window.bytes[..]);
        if notes.quiet {
            return;
        }
        if fields.len() != shared.cells || fields.stray.is_some() {
            let fault = match fields.stray {
                Some(cell) => CellFault::Stray { cell: cell + 1 },
                None => CellFault::Record {
                    found: fields.len(),
                    header: shared.cells,
                },
            };
            notes.problems.record(place, fault);
            into.columns.iter_mut().for_each(super::Cells::push_missing);
            return;
        }
        let targets = shared.places.iter().zip(&shared.spec.readers);
        for ((places, reader), cells) in targets.zip(&mut into.columns) {
            let text = |index: &usize| fields.get(bytes, *index);
            let (result, shown) = match &places[..] {
                [index] => (reader.push(cells, text(index)), text(index)),
                parts => {
                    let pushed = reader.push_parts(cells, parts.iter().map(text));
                    (pushed, parts.first().map_or(&b""[..], text))
                }
            };
            if let Err(fault) = result {
                notes.problems.cell(place, &reader.name, shown, fault);
                cells.push_missing();
            }
        }
        if let Some(index) = shared.key.filter(|_| notes.key.wanted()) {
            let text = fields.get(bytes, index);
            if text.is_empty() {
                let name = shared.spec.key.as_deref().unwrap_or_default();
                notes.problems.cell(place, name, text, CellFault::NoKey);
            }
            notes.key.push(place, text);
        }
    }
}

/// A part of the file that moves on with the reader.
#[derive(Debug)]
struct Window {
    input: Input,
    bytes: Vec<u8>,
    /// Of `bytes` within the file.
    offset: u64,
    /// Where the next record begins in `bytes`.
    at: usize,
    /// The file ends with `bytes`.
    last: bool,
}

impl Window {
    fn new(input: Input, offset: u64) -> Self {
        Self {
            input,
            bytes: Vec::new(),
            offset,
            at: 0,
            last: false,
        }
    }

    fn seek(&mut self, offset: u64) {
        match offset.checked_sub(self.offset) {
            Some(at) if at <= self.bytes.len() as u64 => self.at = at as usize,
            _ => {
                self.bytes.clear();
                (self.offset, self.at, self.last) = (offset, 0, false);
            }
        }
    }

    /// What is there of the next record and of those after it.
    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    fn is_at_end(&mut self, file: &Path, line: u64) -> Result<bool, DataError> {
        if self.rest().is_empty() && !self.last {
            self.more(file, line)?;
        }
        Ok(self.rest().is_empty())
    }

    /// Forgets what was read and reads on.
    fn more(&mut self, file: &Path, line: u64) -> Result<(), DataError> {
        self.bytes.drain(..self.at);
        self.offset += self.at as u64;
        self.at = 0;
        let held = self.bytes.len();
        if held >= LONGEST_RECORD {
            return Err(too_long(file, line));
        }
        let wanted = WINDOW.max(2 * held);
        self.bytes.resize(wanted, 0);
        let got = self
            .input
            .read_at(&mut self.bytes[held..], self.offset + held as u64)
            .map_err(DataError::io("read", file))?;
        self.last = got < wanted - held;
        self.bytes.truncate(held + got);
        Ok(())
    }

    /// Splits the next record: where the one after it begins in `bytes`, and how many lines it has.
    #[inline]
    fn record(
        &mut self,
        fields: &mut Fields,
        delimiter: u8,
        file: &Path,
        line: u64,
    ) -> Result<(usize, u64), DataError> {
        loop {
            match fields.split(&self.bytes, self.at, self.last, delimiter) {
                Split::Record { next, lines } => return Ok((next, lines)),
                Split::More => self.more(file, line)?,
                Split::Open if self.rest().len() >= LONGEST_RECORD => {
                    return Err(too_long(file, line));
                }
                Split::Open => {
                    let reason = "a quote that is opened in this record is never closed; close it, or double it \
                                  if it belongs to the text";
                    return Err(line_at(file, line, reason));
                }
            }
        }
    }
}

fn too_long(file: &Path, line: u64) -> DataError {
    let reason = format!(
        "the record that begins here is longer than {LONGEST_RECORD} bytes; look for a quote that is never closed"
    );
    line_at(file, line, reason)
}

/// Refuses what is not text in UTF-8, by its first bytes.
fn encoding(file: &Path, head: &[u8]) -> Result<(), DataError> {
    let head = &head[..head.len().min(4096)];
    let zeros = |odd: usize| {
        let nul = |(_, byte): &(usize, &u8)| **byte == 0;
        head.iter()
            .enumerate()
            .skip(odd)
            .step_by(2)
            .filter(nul)
            .count()
    };
    let many = head.len() / 4;
    let looks = match head {
        [0xff, 0xfe, ..] => Some("UTF-16 (little-endian)"),
        [0xfe, 0xff, ..] => Some("UTF-16 (big-endian)"),
        [b'P', b'K', 3, 4, ..] => Some("a spreadsheet or ZIP archive"),
        [0x1f, 0x8b, ..] => Some("a gzip archive"),
        [b'P', b'A', b'R', b'1', ..] => Some("a Parquet file"),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some("an Arrow file"),
        _ if many > 0 && zeros(1) > many => Some("UTF-16 (little-endian)"),
        _ if many > 0 && zeros(0) > many => Some("UTF-16 (big-endian)"),
        _ => None,
    };
    match looks {
        Some(looks) => Err(InputError::Encoding {
            file: file.to_owned(),
            looks,
        }
        .into()),
        None => Ok(()),
    }
}

/// The names of the columns.
struct Header<'a> {
    names: Vec<String>,
    line: &'a [u8],
    spec: &'a Spec,
}

impl<'a> Header<'a> {
    fn new(
        fields: &Fields,
        bytes: &[u8],
        line: &'a [u8],
        spec: &'a Spec,
    ) -> Result<Self, DataError> {
        let file = &spec.file;
        if memchr(b'\r', line).is_some_and(|at| line.get(at + 1).is_some_and(|&next| next != b'\n'))
        {
            let reason = "lines end with a carriage return alone, as on old computers; save the file with line feeds";
            return Err(line_at(file, 1, reason));
        }
        if let [b'S' | b's', b'e', b'p', b'=', mark, ..] = *line {
            let reason = format!(
                "`sep=` is a hint for a spreadsheet program and no header; remove the line, and put `delimiter = \"{}\"` \
                 into {} of the job if it is not a comma",
                char::from(mark),
                spec.what
            );
            return Err(line_at(file, 1, reason));
        }
        let name = |index: usize| {
            let cell = fields.get(bytes, index);
            std::str::from_utf8(cell).map(str::to_owned).map_err(|_| {
                let reason = format!(
                    "name {} of the header, `{}`, is not UTF-8; save the file as UTF-8",
                    index + 1,
                    shorten(cell)
                );
                line_at(file, 1, reason)
            })
        };
        let names = (0..fields.len()).map(name).collect::<Result<_, _>>()?;
        Ok(Self { names, line, spec })
    }

    /// Where a column is.
    fn find(&self, column: &str) -> Result<usize, DataError> {
        let mut found = (self.names.iter().enumerate()).filter(|(_, name)| *name == column);
        let file = self.spec.file.clone();
        match (found.next(), found.next()) {
            (Some((place, _)), None) => Ok(place),
            (Some(_), Some(_)) => Err(InputError::ColumnTwice {
                file,
                column: column.to_owned(),
            }
            .into()),
            (None, _) => {
                let none = || InputError::NoColumn {
                    file,
                    column: column.to_owned(),
                    found: (self.names.iter())
                        .map(|name| shorten(name.as_bytes()))
                        .collect(),
                };
                Err(self.other_delimiter().unwrap_or_else(none).into())
            }
        }
    }

    /// The delimiter with which the header names everything that is wanted.
    fn other_delimiter(&self) -> Option<InputError> {
        let names: Vec<&str> = (self.spec.readers.iter())
            .map(|reader| reader.name.as_str())
            .chain(self.spec.key.as_deref())
            .collect();
        let fits = |delimiter: u8| {
            let mut fields = Fields::default();
            fields.split(self.line, 0, true, delimiter);
            let named = |name: &&str| {
                (0..fields.len()).any(|index| fields.get(self.line, index) == name.as_bytes())
            };
            names.iter().all(named)
        };
        let (_, written) = DELIMITERS
            .into_iter()
            .find(|&(delimiter, _)| delimiter != self.spec.delimiter && fits(delimiter))?;
        Some(InputError::Delimiter {
            file: self.spec.file.clone(),
            found: written,
            what: self.spec.what.clone(),
        })
    }
}

/// A line of a file at fault.
fn line_at(file: &Path, line: u64, reason: impl Into<String>) -> DataError {
    let reason = reason.into();
    let file = file.to_owned();
    InputError::Line { file, line, reason }.into()
}

/// Whether the file is at fault, and not the machine: on a second reading that means it has changed.
pub(super) fn is_of_file(error: &DataError) -> bool {
    !matches!(error, DataError::Io { source, .. } if source.kind() != io::ErrorKind::UnexpectedEof)
}

/// Shows every cell of a file; what is between its cells is what makes the most of its header.
pub(super) fn scan(
    file: &Path,
    input: Input,
    visit: &mut dyn super::scan::Visit,
) -> Result<(), DataError> {
    let mut window = Window::new(input, 0);
    window.more(file, 1)?;
    encoding(file, window.rest())?;
    if window.rest().starts_with(BYTE_ORDER_MARK) {
        window.at += BYTE_ORDER_MARK.len();
    }
    let mut fields = Fields::default();
    let mut best = (0, b',');
    for (delimiter, _) in DELIMITERS {
        window.record(&mut fields, delimiter, file, 1)?;
        if fields.len() > best.0 {
            best = (fields.len(), delimiter);
        }
    }
    let (cells, delimiter) = best;
    let (next, lines) = window.record(&mut fields, delimiter, file, 1)?;
    if window.bytes[window.at..next]
        .iter()
        .all(u8::is_ascii_whitespace)
    {
        return Err(InputError::NoHeader(file.to_owned()).into());
    }
    let text = |fields: &Fields, bytes: &[u8], at: usize| {
        String::from_utf8_lossy(fields.get(bytes, at)).into_owned()
    };
    let names = (0..cells).map(|at| text(&fields, &window.bytes, at));
    let columns = names.map(|name| (name, super::scan::Typed::Any));
    visit.header(columns.collect(), Some(delimiter));
    (window.at, fields) = (next, Fields::default());
    let mut line = 1 + lines;
    while !window.is_at_end(file, line)? {
        let (next, lines) = window.record(&mut fields, delimiter, file, line)?;
        let blank =
            fields.len() == 1 && matches!(&window.bytes[window.at..next], b"\n" | b"\r\n" | b"\r");
        if !blank {
            if fields.len() != cells {
                let reason = format!(
                    "the record has {} cells, and the header {cells}",
                    fields.len()
                );
                return Err(line_at(file, line, reason));
            }
            for at in 0..cells {
                let cell = text(&fields, &window.bytes, at);
                visit.cell(at, Some(cell.as_str()).filter(|cell| !cell.is_empty()));
            }
            visit.row();
        }
        line += lines;
        window.at = next;
    }
    Ok(())
}
