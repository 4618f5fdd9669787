//! A party's table as an intersection reads it: once for both ends of the party.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use zeroize::Zeroizing;

use veil_job::{DataError, Holder, KEY_BYTES};

use super::Intersection;
use crate::query::OwnerTable;
use crate::table::{Chunk, Digest, Reader, Table, TableReport, Wanted, Watch};

/// A key: both halves of its digest.
pub(super) type Key = [u8; KEY_BYTES];

/// Prefixes of what is hashed for each half of a key.
const HALVES: [&str; 2] = ["intersection, first half", "intersection, second half"];

/// A table that was read and checked, with its keys. What is read of its file afterwards is the same, or an error.
pub(super) struct Reading {
    table: Table,
    /// The keys of rows that have one which no row before has.
    keys: Zeroizing<Vec<u8>>,
    /// Cells of a row before the texts of its key.
    values: usize,
}

/// The readings that ends of the same party have in common, by table.
///
/// A file that changes while a run uses it would give keys of one state and texts of another, if each end read it for itself.
#[derive(Clone, Default)]
pub(super) struct Readings(Arc<[Mutex<Weak<Reading>>; 2]>);

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reading of {} keys", self.count())
    }
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Readings")
    }
}

/// Two jobs are the same whatever was read of their files.
impl PartialEq for Readings {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Readings {}

impl Intersection {
    /// The table of a holder, by its number, as it was read by an end that still uses it, else as it is now.
    ///
    /// # Errors
    /// [`DataError`] with file, line and column if the table is not what the job declares.
    pub(super) fn reading(
        &self,
        holder: Holder,
        file: &Path,
        watch: Watch<'_>,
    ) -> Result<(usize, Arc<Reading>), DataError> {
        let own = self.of(holder);
        let (at, table) = own.ok_or_else(|| DataError::own("this party has no table"))?;
        let known = self.readings.0[at].lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if let Some(reading) = known.upgrade() {
            return Ok((at, reading));
        }
        let table = self.open(table, file, watch)?;
        let reading = Arc::new(Reading::of(table, self.values(at).len())?);
        *known = Arc::downgrade(&reading);
        Ok((at, reading))
    }

    /// Opens the table of a party in a file: both halves of its keys, the values that count, and the texts of its keys.
    fn open(&self, table: &OwnerTable, file: &Path, watch: Watch<'_>) -> Result<Table, DataError> {
        let (at, _) = self
            .of(table.holder)
            .ok_or_else(|| DataError::own("this party has no table"))?;
        let key = self.keys_at[at];
        let (column, written) = (&table.table.columns[key], &table.columns[key]);
        let halves = HALVES.iter().enumerate().map(|(half, prefix)| {
            let digest = Digest::new(prefix, 128);
            let (ty, of, marks) = (&column.ty, &written.of, written.marks);
            Reader::of_query(half, ty, of, marks, None, Some(digest))
        });
        let values = self.values(at).iter().enumerate();
        let values = values.map(|(place, cell)| {
            let index = HALVES.len() + place;
            table.reader(index, cell.column, "")
        });
        let first = HALVES.len() + self.values(at).len();
        let texts = written.of.iter().filter(|_| self.shows_texts(at));
        let texts = texts.enumerate().map(|(place, part)| {
            Some(Reader::of_text(first + place, part).written(&table.notation))
        });
        let halves = halves.map(|half| Some(half?.written(&table.notation)));
        let readers: Option<Vec<Reader>> = halves.chain(values).chain(texts).collect();
        let wanted = Wanted {
            padded: false,
            readers: readers.ok_or_else(|| DataError::own("a column is no kind of a file"))?,
            kind: "table",
            name: &table.table.name,
            rows: table.rows,
            alone: true,
            delimiter: table.delimiter,
            order: None,
        };
        Table::open(file, &wanted, watch)
    }
}

impl Reading {
    fn of(table: Table, values: usize) -> Result<Self, DataError> {
        let mut reading = Self {
            table,
            keys: Zeroizing::new(Vec::new()),
            values,
        };
        let mut keys = Zeroizing::new(Vec::with_capacity(
            reading.table.rows() as usize * KEY_BYTES,
        ));
        let (mut first, mut seen) = (None, HashSet::new());
        reading.each_row(|row, _, _, key| {
            if seen.insert(key) {
                keys.extend_from_slice(&key);
            } else {
                first.get_or_insert(row);
            }
            Ok(())
        })?;
        if let Some(row) = first.filter(|_| values > 0) {
            let file = reading.table.report().file.display().to_string();
            return Err(DataError::own(format!(
                "{file}: row {}: a row before it has the same key, and values of one row are opened or added up for a key; keep one row of each key",
                row + 1
            )));
        }
        reading.keys = keys;
        Ok(reading)
    }

    /// How many keys it has.
    pub(super) fn count(&self) -> usize {
        self.keys.len() / KEY_BYTES
    }

    /// What is known of the file.
    pub(super) fn report(&self) -> &TableReport {
        self.table.report()
    }

    /// The keys, one behind the other.
    pub(super) fn keys(&self) -> &[u8] {
        &self.keys
    }

    /// Hands out each row that has a key, with its number.
    fn each_row(
        &self,
        mut each: impl FnMut(u64, &Chunk, usize, Key) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut at = 0;
        while at < self.table.rows() {
            let (chunk, first) = self.table.at(at)?;
            for row in first..chunk.rows {
                if let Some(key) = key(&chunk, row) {
                    each(at + (row - first) as u64, &chunk, row, key)?;
                }
            }
            at += (chunk.rows - first) as u64;
        }
        Ok(())
    }

    /// Hands out the rows of [`Reading::keys`], in their order.
    ///
    /// # Errors
    /// [`DataError::Own`] if the file is not the one that was read.
    pub(super) fn each(
        &self,
        mut each: impl FnMut(&Chunk, usize) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut seen = HashSet::with_capacity(self.count());
        self.each_row(|_, chunk, row, key| {
            if seen.insert(key) {
                each(chunk, row)?;
            }
            Ok(())
        })
    }

    /// The number that a row has in a column of values, by the column's place among those that count.
    pub(super) fn value(chunk: &Chunk, place: usize, row: usize) -> Option<i64> {
        let cells = &chunk.columns[HALVES.len() + place];
        let category = || cells.category(row).map(i64::from);
        cells.number(row).or_else(category)
    }

    /// The texts of the key of a row.
    pub(super) fn texts<'a>(
        &self,
        chunk: &'a Chunk,
        row: usize,
    ) -> impl Iterator<Item = String> + use<'a> {
        let texts = chunk.columns[HALVES.len() + self.values..].iter();
        texts.map(move |cells| cells.text(row).unwrap_or_default().to_owned())
    }
}

/// The key of a row, if it has one.
fn key(chunk: &Chunk, row: usize) -> Option<Key> {
    let half = |half: usize| chunk.columns[half].key(row);
    let (low, high) = (half(0)?, half(1)?);
    let mut key = [0; KEY_BYTES];
    key[..16].copy_from_slice(&low.to_le_bytes());
    key[16..].copy_from_slice(&high.to_le_bytes());
    Some(key)
}
