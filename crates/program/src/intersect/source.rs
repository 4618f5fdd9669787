//! A party's keys as input of an intersection.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use zeroize::Zeroizing;

use veil_job::{DataError, Holder, KEY_BYTES, Slice, Source};

use super::Intersection;
use crate::table::{Chunk, Table, Watch};

/// A key: both halves of its digest.
pub(super) type Key = [u8; KEY_BYTES];

/// The key of a row, if it has one.
pub(super) fn key(chunk: &Chunk, row: usize) -> Option<Key> {
    let half = |half: usize| chunk.columns[half].key(row);
    let (low, high) = (half(0)?, half(1)?);
    let mut key = [0; KEY_BYTES];
    key[..16].copy_from_slice(&low.to_le_bytes());
    key[16..].copy_from_slice(&high.to_le_bytes());
    Some(key)
}

/// Hands out the key of each row that has one which no row before it has, with the number of the row.
pub(super) fn each_key(
    table: &Table,
    mut each: impl FnMut(u64, &Chunk, usize, Key) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut seen = HashSet::new();
    let mut at = 0;
    while at < table.rows() {
        let (chunk, first) = table.at(at)?;
        for row in first..chunk.rows {
            if let Some(key) = key(&chunk, row).filter(|key| seen.insert(*key)) {
                each(at + (row - first) as u64, &chunk, row, key)?;
            }
        }
        at += (chunk.rows - first) as u64;
    }
    Ok(())
}

/// All keys of a party, and behind them keys that no row has, as many as there may be.
pub(crate) struct KeySource {
    port: usize,
    keys: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySource of port {}", self.port)
    }
}

impl KeySource {
    /// The keys of `holder`, whose table is in a file.
    ///
    /// # Errors
    /// [`DataError`] with file, line and column if the table is not what the job declares, or if the operating system has no random bytes.
    pub(crate) fn read(
        of: &Intersection,
        holder: Holder,
        file: &Path,
        watch: Watch<'_>,
    ) -> Result<Self, DataError> {
        let own = of.of(holder);
        let (port, table) = own.ok_or_else(|| DataError::own("this party has no table"))?;
        let all = table.table.capacity as usize * KEY_BYTES;
        let mut keys = Zeroizing::new(Vec::with_capacity(all));
        let table = Intersection::open(table, file, false, watch)?;
        each_key(&table, |_, _, _, key| {
            keys.extend_from_slice(&key);
            Ok(())
        })?;
        let known = keys.len();
        keys.resize(all, 0);
        getrandom::fill(&mut keys[known..]).map_err(DataError::own)?;
        Ok(Self { port, keys })
    }
}

impl Source for KeySource {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        if port != self.port || (slice.block, slice.first) != (0, 0) {
            return Err(beyond());
        }
        if into.len() != self.keys.len() {
            return Err(beyond());
        }
        into.copy_from_slice(&self.keys);
        Ok(())
    }
}
