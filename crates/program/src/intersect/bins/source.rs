//! A party's table as slots of bins.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use veil_job::{DataError, Holder, KEY_BYTES, Slice, Source};

use super::{Bins, Cell};
use crate::bits::write;
use crate::intersect::Intersection;
use crate::intersect::reading::Reading;
use crate::table::Watch;

/// The slots of a party, cycle by cycle.
pub(crate) struct BinSource {
    port: usize,
    bins: Bins,
    cells: Vec<Cell>,
    keys: InBins,
    /// The values of each key; 0 for those that are missing.
    values: Zeroizing<Vec<i64>>,
    /// Whether they are there.
    there: Vec<bool>,
    /// Kept, so that the party's other end has the same.
    _reading: Arc<Reading>,
}

/// Keys of a party in their bins.
pub(super) struct InBins {
    /// Of each key its number among those of the reading, by bin and then by tag.
    pub(super) order: Vec<u32>,
    /// Of each bin, where its keys end in that order.
    pub(super) ends: Vec<usize>,
    /// The tag of each key, by its number.
    tags: Zeroizing<Vec<u128>>,
}

impl fmt::Debug for BinSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BinSource of port {}", self.port)
    }
}

/// The bin and the tag of a key.
fn placed(bins: &Bins, key: &[u8]) -> (usize, u128) {
    let mut half = [0; 16];
    half.copy_from_slice(&key[..16]);
    let bits = u128::from_le_bytes(half);
    let below = |bits: u32| (1u128 << bits) - 1;
    let bin = bits & below(bins.log);
    (bin as usize, bits >> bins.log & below(bins.tag))
}

impl InBins {
    /// Of the keys of a table, one behind the other.
    ///
    /// # Errors
    /// [`DataError::Own`] if a bin has more keys than slots, or two keys have one tag.
    pub(super) fn of(bins: &Bins, at: usize, keys: &[u8]) -> Result<Self, DataError> {
        let all = keys.chunks_exact(KEY_BYTES).map(|key| placed(bins, key));
        let places: Zeroizing<Vec<(usize, u128)>> = Zeroizing::new(all.collect());
        let mut order: Vec<u32> = (0..places.len() as u32).collect();
        order.sort_unstable_by_key(|number| places[*number as usize]);
        let unlikely = "keys that were not chosen to have it so do not have it once in 2^40 tables";
        let twice = |pair: &[u32]| places[pair[0] as usize] == places[pair[1] as usize];
        if order.windows(2).any(twice) {
            return Err(DataError::own(format!(
                "two keys have one bin and one tag; {unlikely}"
            )));
        }
        let mut ends = Vec::with_capacity(1 << bins.log);
        let mut end = 0;
        for bin in 0..1usize << bins.log {
            let first = end;
            while order
                .get(end)
                .is_some_and(|number| places[*number as usize].0 == bin)
            {
                end += 1;
            }
            if end - first > bins.slots[at] as usize {
                return Err(DataError::own(format!(
                    "{} keys are in one bin, which has {} slots; {unlikely}",
                    end - first,
                    bins.slots[at]
                )));
            }
            ends.push(end);
        }
        let tags = Zeroizing::new(places.iter().map(|place| place.1).collect());
        Ok(Self { order, ends, tags })
    }
}

impl BinSource {
    /// Of `holder`, whose table is in a file.
    ///
    /// # Errors
    /// [`DataError`] with file, line and column if the table is not what the job declares; [`DataError::Own`] if its keys do not fit their bins.
    pub(crate) fn read(
        of: &Intersection,
        holder: Holder,
        file: &Path,
        watch: Watch<'_>,
    ) -> Result<Self, DataError> {
        let (port, reading) = of.reading(holder, file, watch)?;
        let bins = of.bins();
        let cells = of.values(port).to_vec();
        let keys = InBins::of(&bins, port, reading.keys())?;
        let (mut values, mut there) = (Zeroizing::new(Vec::new()), Vec::new());
        values.reserve_exact(reading.count() * cells.len());
        if !cells.is_empty() {
            reading.each(|chunk, row| {
                for place in 0..cells.len() {
                    let value = Reading::value(chunk, place, row);
                    values.push(value.unwrap_or(0));
                    there.push(value.is_some());
                }
                Ok(())
            })?;
        }
        Ok(Self {
            port,
            bins,
            cells,
            keys,
            values,
            there,
            _reading: reading,
        })
    }

    /// The keys of a bin, in order.
    fn of_bin(&self, bin: usize) -> &[u32] {
        let first = bin
            .checked_sub(1)
            .map_or(0, |before| self.keys.ends[before]);
        &self.keys.order[first..self.keys.ends[bin]]
    }

    /// Writes the slot of a key, a byte for each bit.
    fn write(&self, number: usize, slot: &mut [u8]) {
        let (tag, rest) = slot.split_at_mut(self.bins.tag as usize);
        write(self.keys.tags[number] as i128, tag);
        rest[0] = 0;
        let mut left = &mut rest[1..];
        let first = number * self.cells.len();
        for (place, cell) in self.cells.iter().enumerate() {
            let (value, more) = left.split_at_mut(cell.bits as usize);
            write(self.values[first + place].into(), value);
            if cell.flag {
                more[0] = self.there[first + place].into();
            }
            left = &mut more[usize::from(cell.flag)..];
        }
    }
}

impl Source for BinSource {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let cycles = self.bins.cycles();
        self.fill_cycles(port, slice, (0..cycles, cycles), into)
    }

    fn fill_cycles(
        &self,
        port: usize,
        slice: Slice,
        (cycles, count): (Range<u64>, u64),
        into: &mut [u8],
    ) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        let only = Slice {
            block: 0,
            first: 0,
            rows: 1,
        };
        let width = self.bins.width(self.port) as usize;
        let of_bin = width * self.bins.slots[self.port] as usize;
        let asked = cycles.end.saturating_sub(cycles.start) * self.bins.each;
        let fits = port == self.port
            && slice == only
            && count == self.bins.cycles()
            && cycles.end <= count
            && into.len() as u64 == asked * of_bin as u64;
        if !fits {
            return Err(beyond());
        }
        let first = cycles.start * self.bins.each;
        for (bin, into) in (first as usize..).zip(into.chunks_exact_mut(of_bin)) {
            let mut slots = into.chunks_exact_mut(width);
            for (number, slot) in self.of_bin(bin).iter().zip(slots.by_ref()) {
                self.write(*number as usize, slot);
            }
            for (number, slot) in slots.enumerate() {
                slot.fill(0);
                let (tag, rest) = slot.split_at_mut(self.bins.tag as usize);
                write(number as i128, tag);
                rest[0] = 1;
            }
        }
        Ok(())
    }
}
