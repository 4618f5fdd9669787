//! A party's store in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use veil_job::{DataError, ShareSink, ShareSource, Slice};
use veil_math::Ring;

use crate::values::{element, pack};

/// Port, component, block, row.
type Name = (usize, u8, u32, u64);

/// One party's kept shares: the elements of every row, so that they can be loaded in other slices than they came in.
#[derive(Debug)]
pub struct Shares {
    ring: Ring,
    rows: Mutex<BTreeMap<Name, Vec<u128>>>,
    finished: AtomicBool,
}

impl Shares {
    /// An empty store of elements of `ring`.
    pub fn new(ring: Ring) -> Self {
        Shares {
            ring,
            rows: Mutex::default(),
            finished: AtomicBool::new(false),
        }
    }

    /// Whether the run told this party that everything is verified and complete.
    pub fn finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Which component of a value part `part` of party `party` is, of so many parties.
    pub fn component_of(parties: usize, party: usize, part: u8) -> usize {
        match parties {
            3 => (party + 3 - usize::from(part)) % 3,
            _ => (party + 1 + usize::from(part)) % parties,
        }
    }

    /// The values of port `port` in all rows, from the shares of all parties: the sum of the components, of which all holders must have the
    /// same.
    ///
    /// # Panics
    /// If they have not.
    #[track_caller]
    pub fn join(all: &[Arc<Shares>], port: usize) -> Vec<Vec<u128>> {
        let mut components: Vec<Option<Vec<Vec<u128>>>> = vec![None; all.len()];
        for (party, shares) in all.iter().enumerate() {
            for part in 0..all.len() as u8 - 1 {
                let component = Self::component_of(all.len(), party, part);
                let own = shares.component(port, part);
                let before = components[component].get_or_insert_with(|| own.clone());
                assert_eq!(*before, own, "component {component} at party {party}");
            }
        }
        let ring = all[0].ring;
        let add =
            |a: Vec<u128>, b: Vec<u128>| a.iter().zip(b).map(|(a, b)| ring.add(*a, b)).collect();
        let sum = components.into_iter().flatten().reduce(|a, b| {
            let rows = a.into_iter().zip(b);
            rows.map(|(a, b)| add(a, b)).collect()
        });
        sum.expect("there are parties")
    }

    /// Component `component` of port `port` in all rows, block after block.
    pub fn component(&self, port: usize, component: u8) -> Vec<Vec<u128>> {
        let rows = self.lock();
        let rows = rows
            .iter()
            .filter(|(name, _)| (name.0, name.1) == (port, component));
        rows.map(|(_, row)| row.clone()).collect()
    }

    /// The same store with one bit of one element changed: what a damaged or swapped file is.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn damaged(&self, port: usize, component: u8, block: u32, row: u64) -> Self {
        let mut rows = self.lock().clone();
        let row = rows.get_mut(&(port, component, block, row));
        row.expect("the row is kept")[0] ^= 1;
        Shares {
            ring: self.ring,
            rows: Mutex::new(rows),
            finished: AtomicBool::new(self.finished()),
        }
    }

    /// The same store, in which block `from` is also block `to`.
    #[must_use]
    pub fn also_as(&self, from: u32, to: u32) -> Self {
        let mut rows = self.lock().clone();
        let copied = rows.clone().into_iter().filter(|(name, _)| name.2 == from);
        rows.extend(
            copied.map(|((port, component, _, row), value)| ((port, component, to, row), value)),
        );
        Shares {
            ring: self.ring,
            rows: Mutex::new(rows),
            finished: AtomicBool::new(self.finished()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Vec<u128>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShareSource for Shares {
    /// Bits beyond the last row are ones: no reader may rely on them.
    fn load(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        into: &mut [u8],
    ) -> Result<(), DataError> {
        let rows = self.lock();
        let all: Option<Vec<&Vec<u128>>> = (slice.first..slice.first + u64::from(slice.rows))
            .map(|row| rows.get(&(port, component, slice.block, row)))
            .collect();
        let all = all.ok_or_else(|| DataError::out_of_reach(port, slice))?;
        let column = self.ring.bytes(u64::from(slice.rows)) as usize;
        for (wire, column) in into.chunks_mut(column).enumerate() {
            pack(self.ring, all.iter().map(|row| row[wire]), column);
            if self.ring == Ring::Bits && !slice.rows.is_multiple_of(8) {
                column[slice.rows as usize / 8] |= 0xff << (slice.rows % 8);
            }
        }
        Ok(())
    }
}

impl ShareSink for Shares {
    fn keep(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        shares: &[u8],
    ) -> Result<(), DataError> {
        let column = self.ring.bytes(u64::from(slice.rows)) as usize;
        let mut rows = self.lock();
        for k in 0..slice.rows {
            let row = shares
                .chunks(column)
                .map(|column| element(self.ring, column, k as usize))
                .collect();
            let name = (port, component, slice.block, slice.first + u64::from(k));
            let before = rows.insert(name, row);
            assert!(before.is_none(), "{name:?} is kept twice");
        }
        if self.ring == Ring::Bits && !slice.rows.is_multiple_of(8) {
            let beyond = |column: &[u8]| column[slice.rows as usize / 8] >> (slice.rows % 8);
            assert!(
                shares.chunks(column).all(|column| beyond(column) == 0),
                "rows that do not exist are kept"
            );
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        self.finished.store(true, Ordering::Release);
        Ok(())
    }
}
