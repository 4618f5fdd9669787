//! An owner's tables: checked completely in a first reading, parsed in parts where they are needed in a second one.
//!
//! The first reading keeps a place in the file for every few thousand rows, with 64 bits of what their values are. The
//! second one begins at such a place. So memory does not depend on the length of a file, and a file that changed
//! between the two readings is noticed.

mod cache;
mod cell;
mod cells;
#[cfg(feature = "columnar")]
mod columnar;
mod csv;
mod error;
mod fuzz;
mod input;
#[cfg(feature = "columnar")]
mod ipc;
mod keys;
#[cfg(feature = "columnar")]
mod memory;
mod notation;
mod order;
#[cfg(feature = "columnar")]
mod parquet;
mod problems;
pub(crate) mod scan;
mod split;
mod text;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

pub use cell::{CellFault, CellProblem};
pub(crate) use cells::{Cells, Chunk};
pub use error::InputError;
#[doc(hidden)]
pub use fuzz::fuzz_table;
pub(crate) use keys::Keys;
#[cfg(feature = "columnar")]
pub use memory::MemoryTable;
pub(crate) use notation::Notation;
pub use order::{AlignKey, AlignKeyError};
pub(crate) use problems::{Place, Problems};
pub(crate) use text::{Digest, PLACEHOLDERS, Reader, THOUSANDS};

use self::{cache::Cache, csv::CsvFile, input::Input, order::Chain};
use veil_job::DataError;

/// Rows of a part of a table, if it is narrow: enough that a place in the file for each costs nothing.
const MOST_PART: usize = 4096;
/// Fewest rows of a part, and so what any two parts have in common: their sizes are multiples of it.
pub(crate) const LEAST_PART: usize = 256;
/// Bytes of a part in memory: several of them fit the second cache.
const PART_BYTES: usize = 1 << 18;

/// What is wanted of a file.
pub(crate) struct Wanted<'a> {
    /// How its columns are read.
    pub(crate) readers: Vec<Reader>,
    /// What the job calls it: a block or a table.
    pub(crate) kind: &'static str,
    /// The name of the block or table.
    pub(crate) name: &'a str,
    /// Rows that the job declares.
    pub(crate) rows: Count,
    /// Whether the table has the most rows, whatever the file has: behind its last row no cell has a value.
    pub(crate) padded: bool,
    /// Whether all columns of the block are one owner's.
    pub(crate) alone: bool,
    /// Between the cells of a CSV file.
    pub(crate) delimiter: u8,
    /// The key column whose order the owners compare.
    pub(crate) order: Option<Order<'a>>,
}

/// Rows that a job declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Count {
    /// So many.
    Exact(u64),
    /// So many at least and at most.
    Between(u64, u64),
}

impl Count {
    /// The most rows.
    pub(crate) const fn most(self) -> u64 {
        match self {
            Self::Exact(rows) | Self::Between(_, rows) => rows,
        }
    }

    /// The fewest rows.
    pub(crate) const fn least(self) -> u64 {
        match self {
            Self::Exact(rows) | Self::Between(rows, _) => rows,
        }
    }

    /// Of a sample of so many rows: fewer, and of a table each of whose rows is valid at least one.
    pub(crate) const fn of_sample(self) -> Self {
        match self {
            Self::Exact(0) | Self::Between(..) => Self::Between(0, self.most()),
            Self::Exact(rows) => Self::Between(1, rows),
        }
    }

    /// Looks whether there are as many as there must be.
    fn check(
        self,
        file: &Path,
        wanted: &Wanted<'_>,
        found: u64,
        note: String,
    ) -> Result<(), InputError> {
        let what = format!("{} `{}`", wanted.kind, wanted.name);
        let file = || file.to_owned();
        match self {
            Self::Exact(declared) if found != declared => Err(InputError::Rows {
                file: file(),
                what,
                found,
                declared,
                alone: wanted.alone,
                note,
            }),
            Self::Between(least, most) if !(least..=most).contains(&found) => {
                Err(InputError::Capacity {
                    file: file(),
                    what,
                    found,
                    least,
                    most,
                    note,
                })
            }
            Self::Exact(_) | Self::Between(..) => Ok(()),
        }
    }
}

/// A key column whose order is compared.
pub(crate) struct Order<'a> {
    /// Its name.
    pub(crate) column: &'a str,
    /// Rows per compared digest.
    pub(crate) every: u32,
    /// Whether several rows may have the same key.
    pub(crate) duplicates: bool,
    /// Known to the owners of the block alone.
    pub(crate) key: &'a AlignKey,
}

/// How far a reading is: bytes read of bytes in all.
pub type Watch<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// The report of a checked table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableReport {
    /// The block or table.
    pub block: String,
    /// The file.
    pub file: PathBuf,
    /// Its format: CSV, Parquet or Arrow.
    pub format: &'static str,
    /// Rows.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// How long reading and checking took.
    pub elapsed: Duration,
    /// Columns that the job needs, by index in the job, and how many of their cells are empty.
    pub columns: Vec<(usize, u64)>,
    /// The key column whose order is compared, if there is one.
    pub order: Option<String>,
}

/// What all readers of a file need to know.
#[derive(Debug)]
struct Spec {
    file: PathBuf,
    /// The block or table, for messages.
    what: String,
    delimiter: u8,
    readers: Vec<Reader>,
    key: Option<String>,
}

impl Spec {
    fn chunk(&self) -> Chunk {
        Chunk {
            columns: self.readers.iter().map(Reader::cells).collect(),
            rows: 0,
        }
    }
}

/// A file of one format whose header was read and found good.
trait Format: fmt::Debug + Send + Sync {
    /// Name of the format.
    fn name(&self) -> &'static str;

    /// A reader at the first row.
    fn rows(&self) -> Result<Box<dyn Rows>, DataError>;
}

/// Reads the wanted columns in the order of the rows.
trait Rows: fmt::Debug + Send {
    /// Reads up to `most` further rows; fewer only at the end. Every column of `into` grows by so many cells, those at
    /// fault are reported in `notes` and missing.
    fn read(
        &mut self,
        most: usize,
        into: &mut Chunk,
        notes: &mut Notes,
    ) -> Result<usize, DataError>;

    /// Where the next row is.
    fn mark(&self) -> Mark;

    /// Goes on at another row.
    fn seek(&mut self, to: Mark) -> Result<(), DataError>;

    /// Bytes of the file that are done, for a progress bar.
    fn done(&self) -> u64;
}

/// A place in a file: what is not needed for a format is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    row: u64,
    offset: u64,
    line: u64,
}

/// What is noted while rows are read.
#[derive(Debug, Default)]
struct Notes {
    problems: Problems,
    /// The purpose of the key column, in a first reading.
    key: KeyNotes,
    /// Rows are only counted.
    quiet: bool,
    /// Lines without a record.
    blank_lines: u64,
}

/// What the key column is read for.
#[derive(Debug, Default)]
struct KeyNotes {
    /// Its digests.
    chain: Option<Chain>,
    /// Whether a key is there twice.
    keys: Option<Keys>,
}

impl KeyNotes {
    /// Whether it is read at all.
    fn wanted(&self) -> bool {
        self.chain.is_some() || self.keys.is_some()
    }

    /// The cell of the next row.
    fn push(&mut self, place: Place, cell: &[u8]) {
        if let Some(chain) = &mut self.chain {
            chain.push(cell);
        }
        if let Some(keys) = &mut self.keys {
            keys.push(place, cell);
        }
    }
}

/// A checked table.
#[derive(Debug)]
pub(crate) struct Table {
    spec: Arc<Spec>,
    format: Box<dyn Format>,
    rows: u64,
    /// Rows of the file: those behind them have no values.
    found: u64,
    /// Rows of a part, a power of two; the last part may have fewer.
    part: usize,
    index: Vec<Entry>,
    digests: Vec<[u8; 32]>,
    /// Idle readers, wherever they are in the file.
    readers: Mutex<Vec<Box<dyn Rows>>>,
    cache: Cache,
    report: TableReport,
}

/// A part of a table in its file.
#[derive(Clone, Copy, Debug)]
struct Entry {
    mark: Mark,
    digest: u64,
}

impl Table {
    /// Reads and checks the wanted columns of a file.
    pub(crate) fn open(
        file: &Path,
        wanted: &Wanted<'_>,
        watch: Watch<'_>,
    ) -> Result<Self, DataError> {
        let input = Input::open(file)?;
        Self::read(file, input, wanted, watch)
    }

    /// [`Table::open`], of bytes that are there.
    fn read(
        file: &Path,
        input: Input,
        wanted: &Wanted<'_>,
        watch: Watch<'_>,
    ) -> Result<Self, DataError> {
        let bytes = input.length();
        Self::of_format(file, bytes, wanted, watch, |spec| open(spec, input))
    }

    /// Checks the wanted columns of a table in memory, which messages call `file`.
    #[cfg(feature = "columnar")]
    pub(crate) fn in_memory(
        file: &Path,
        table: &MemoryTable,
        wanted: &Wanted<'_>,
        watch: Watch<'_>,
    ) -> Result<Self, DataError> {
        let opened = |spec: &Arc<Spec>| table.format(spec);
        Self::of_format(file, table.bytes(), wanted, watch, opened)
    }

    /// Reads and checks what a format opens.
    fn of_format(
        file: &Path,
        bytes: u64,
        wanted: &Wanted<'_>,
        watch: Watch<'_>,
        open: impl FnOnce(&Arc<Spec>) -> Result<Box<dyn Format>, DataError>,
    ) -> Result<Self, DataError> {
        let start = Instant::now();
        let spec = Arc::new(Spec {
            file: file.to_owned(),
            what: format!("{} `{}`", wanted.kind, wanted.name),
            delimiter: wanted.delimiter,
            readers: wanted.readers.clone(),
            key: (wanted.order.as_ref()).map(|order| order.column.to_owned()),
        });
        let format = open(&spec)?;
        let part = part(wanted.readers.len());
        let mut first = Checked {
            rows: wanted.rows.most(),
            index: Vec::new(),
            missing: vec![0; wanted.readers.len()],
            found: 0,
        };
        let mut notes = Notes {
            key: KeyNotes {
                chain: (wanted.order.as_ref()).map(|order| Chain::new(order, wanted.name)),
                keys: (wanted.order.as_ref())
                    .filter(|order| !order.duplicates)
                    .map(|_| Keys::new(wanted.rows.most())),
            },
            ..Notes::default()
        };
        let mut rows = format.rows()?;
        first.read(&spec, rows.as_mut(), part, &mut notes, &|done| {
            watch(done, bytes);
        })?;
        watch(bytes, bytes);
        notes.problems.none(file)?;
        let lines = match notes.blank_lines {
            0 => String::new(),
            lines => format!(
                "; {lines} empty lines were not counted as rows: write \"\" there if a single cell is empty"
            ),
        };
        wanted.rows.check(file, wanted, first.found, lines)?;
        if let Some(keys) = notes.key.keys {
            distinct(&spec, &*format, part, keys)?;
        }
        let report = TableReport {
            block: wanted.name.to_owned(),
            file: file.to_owned(),
            format: format.name(),
            rows: first.found,
            bytes,
            elapsed: start.elapsed(),
            columns: (wanted.readers.iter().map(|reader| reader.index))
                .zip(first.missing)
                .collect(),
            order: spec.key.clone(),
        };
        Ok(Self {
            spec,
            format,
            rows: if wanted.padded {
                wanted.rows.most()
            } else {
                first.found
            },
            found: first.found,
            part,
            // One more, for rows behind the last of the file.
            cache: Cache::new(first.index.len() + 1),
            index: first.index,
            digests: notes.key.chain.map(Chain::finish).unwrap_or_default(),
            readers: Mutex::new(vec![rows]),
            report,
        })
    }

    /// Rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Digests of the key column, chained.
    pub(crate) fn order(&self) -> &[[u8; 32]] {
        &self.digests
    }

    /// What is known of the table.
    pub(crate) fn report(&self) -> &TableReport {
        &self.report
    }

    /// Which of the cells of a chunk are those of a column of the job.
    pub(crate) fn place(&self, column: usize) -> Option<usize> {
        (self.spec.readers.iter()).position(|reader| reader.index == column)
    }

    /// The part that a row is in, and where: parsed now, or a moment ago.
    pub(crate) fn at(&self, row: u64) -> Result<(Arc<Chunk>, usize), DataError> {
        let index = (row / self.part as u64) as usize;
        let chunk = self.cache.get(index, |into| self.parse(index, into))?;
        Ok((chunk, (row % self.part as u64) as usize))
    }

    /// Parses a part again.
    fn parse(&self, index: usize, into: Option<Chunk>) -> Result<Chunk, DataError> {
        let changed = || DataError::from(InputError::Changed(self.spec.file.clone()));
        let first = index as u64 * self.part as u64;
        let of_part = |rows: u64| rows.saturating_sub(first).min(self.part as u64) as usize;
        let (most, all) = (of_part(self.found), of_part(self.rows));
        let mut chunk = into.unwrap_or_else(|| self.spec.chunk());
        chunk.clear();
        if most == 0 && all > 0 {
            chunk.pad(all);
            return Ok(chunk);
        }
        let entry = *self.index.get(index).ok_or_else(changed)?;
        let mut rows = self.reader(entry.mark)?;
        let mut notes = Notes::default();
        let result = (rows.seek(entry.mark)).and_then(|()| rows.read(most, &mut chunk, &mut notes));
        let good = match result {
            Ok(got) => got == most && notes.problems.count() == 0 && chunk.digest() == entry.digest,
            Err(error) if csv::is_of_file(&error) => false,
            Err(error) => return Err(error),
        };
        if !good {
            return Err(changed());
        }
        chunk.pad(all);
        self.readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(rows);
        Ok(chunk)
    }

    /// A reader that is at `mark` if there is one, else any.
    fn reader(&self, mark: Mark) -> Result<Box<dyn Rows>, DataError> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let there = readers.iter().position(|rows| rows.mark() == mark);
        match there.or(readers.len().checked_sub(1)) {
            Some(place) => Ok(readers.swap_remove(place)),
            None => self.format.rows(),
        }
    }
}

/// Refuses a key column that names a row twice, after the first reading of it.
fn distinct(
    spec: &Spec,
    format: &dyn Format,
    part: usize,
    mut keys: Keys,
) -> Result<(), DataError> {
    let mut chunk = spec.chunk();
    while keys.again() {
        let mut notes = Notes {
            key: KeyNotes {
                chain: None,
                keys: Some(keys),
            },
            ..Notes::default()
        };
        let mut rows = format.rows()?;
        loop {
            chunk.clear();
            if rows.read(part, &mut chunk, &mut notes)? == 0 {
                break;
            }
        }
        let Some(read) = notes.key.keys else {
            return Ok(());
        };
        keys = read;
    }
    let column = spec.key.as_deref().unwrap_or_default();
    let same = |first: Place| CellFault::SameKey {
        row: first.row,
        line: first.line,
    };
    keys.problems(column, same).none(&spec.file)
}

/// The first reading.
struct Checked {
    /// Declared.
    rows: u64,
    index: Vec<Entry>,
    missing: Vec<u64>,
    found: u64,
}

impl Checked {
    fn read(
        &mut self,
        spec: &Spec,
        rows: &mut dyn Rows,
        part: usize,
        notes: &mut Notes,
        watch: &dyn Fn(u64),
    ) -> Result<(), DataError> {
        let mut chunk = spec.chunk();
        loop {
            let left = self.rows.saturating_sub(self.found);
            if left == 0 {
                // More than declared: counted for the message, and checked for nothing else.
                notes.quiet = true;
            }
            let most = if left == 0 {
                part
            } else {
                left.min(part as u64) as usize
            };
            let mark = rows.mark();
            chunk.clear();
            let got = rows.read(most, &mut chunk, notes)?;
            if got == 0 {
                return Ok(());
            }
            self.found += got as u64;
            if !notes.quiet {
                let digest = chunk.digest();
                self.index.push(Entry { mark, digest });
                for (all, missing) in self.missing.iter_mut().zip(chunk.missing()) {
                    *all += missing;
                }
            }
            watch(rows.done());
        }
    }
}

/// Rows of a part of so many columns.
fn part(columns: usize) -> usize {
    let rows = PART_BYTES / size_of::<i64>() / columns.max(1);
    let rows = rows.clamp(LEAST_PART, MOST_PART);
    1 << rows.ilog2()
}

/// Opens a file in the format that its name says.
fn open(spec: &Arc<Spec>, input: Input) -> Result<Box<dyn Format>, DataError> {
    let extension = spec
        .file
        .extension()
        .and_then(|extension| extension.to_str());
    Ok(match extension.map(str::to_ascii_lowercase).as_deref() {
        #[cfg(feature = "columnar")]
        Some("parquet") => Box::new(parquet::ParquetFile::open(spec, input)?),
        #[cfg(feature = "columnar")]
        Some("arrow" | "feather" | "ipc") => Box::new(ipc::ArrowFile::open(spec, input)?),
        #[cfg(not(feature = "columnar"))]
        Some("parquet" | "arrow" | "feather" | "ipc") => {
            return Err(InputError::CsvOnly(spec.file.clone()).into());
        }
        None | Some("csv" | "txt" | "tsv" | "tab" | "dat") => Box::new(CsvFile::open(spec, input)?),
        Some(_) => return Err(InputError::Format(spec.file.clone()).into()),
    })
}
