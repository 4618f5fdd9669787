//! Both ends of a query: columns that are shared, and rows that are opened.

use std::sync::{Mutex, MutexGuard, PoisonError};

use veil_circuit::InputPort;
use veil_job::{DataError, JobSpec, Sink, Slice, Source};
use veil_math::Ring;
use veil_physical::{ResultPorts, TablePorts};
use veil_relation::Value;

use super::Owned;

/// The columns of a table as a pass takes them, packed for all rows.
pub(super) struct Columns {
    ring: Ring,
    rows: u64,
    /// `[port][wire]`, as of [`Source::fill`].
    ports: Vec<Vec<Vec<u8>>>,
}

impl Columns {
    /// Those of a pass with this job.
    pub(super) fn new(job: &JobSpec, ports: &TablePorts, of: &Owned) -> Self {
        let ring = job.circuit.ring;
        let rows = of.table.capacity.into();
        let mut cells = vec![Value::Null; of.cells.len()];
        let empty = |port: &InputPort| {
            let width = port.value_width(job.circuit.clock.cycles) as usize;
            vec![vec![0; ring.bytes(rows) as usize]; width]
        };
        let mut all: Vec<Vec<Vec<u8>>> = job.circuit.inputs.iter().map(empty).collect();
        for row in 0..rows as usize {
            for (cell, column) in cells.iter_mut().zip(&of.cells) {
                *cell = column[row];
            }
            for (port, wires) in ports.ports.iter().zip(&mut all) {
                put(ring, row, port.value(&of.table, true, &cells), wires);
            }
        }
        Columns {
            ring,
            rows,
            ports: all,
        }
    }
}

/// Writes the value of a row: its bits, each on a wire, or its element.
fn put(ring: Ring, row: usize, value: u128, wires: &mut [Vec<u8>]) {
    let size = ring.bytes(1) as usize;
    for (at, wire) in wires.iter_mut().enumerate() {
        match ring {
            Ring::Bits => wire[row / 8] |= ((value >> at & 1) as u8) << (row % 8),
            _ => wire[row * size..][..size].copy_from_slice(&value.to_le_bytes()[..size]),
        }
    }
}

/// Copies packed rows from `first` on. Bits beyond the last row are zero.
fn copy(ring: Ring, from: &[u8], first: u64, rows: u32, into: &mut [u8]) {
    let (whole, shift) = match ring {
        Ring::Bits => (first as usize / 8, first % 8),
        _ => (ring.bytes(first) as usize, 0),
    };
    let from = &from[whole..];
    if shift == 0 {
        into.copy_from_slice(&from[..into.len()]);
    } else {
        for (at, byte) in into.iter_mut().enumerate() {
            let next = from.get(at + 1).copied().unwrap_or(0);
            *byte = from[at] >> shift | next << (8 - shift);
        }
    }
    if let (Ring::Bits, rest @ 1..) = (ring, rows % 8)
        && let Some(last) = into.last_mut()
    {
        *last &= (1 << rest) - 1;
    }
}

impl Source for Columns {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let size = self.ring.bytes(slice.rows.into()) as usize;
        let end = slice.first.checked_add(slice.rows.into());
        let wires = self.ports.get(port).filter(|wires| {
            slice.block == 0
                && end.is_some_and(|end| end <= self.rows)
                && size > 0
                && into.len() == wires.len() * size
        });
        let wires = wires.ok_or_else(|| DataError::out_of_reach(port, slice))?;
        for (wire, into) in wires.iter().zip(into.chunks_exact_mut(size)) {
            copy(self.ring, wire, slice.first, slice.rows, into);
        }
        Ok(())
    }
}

/// What a port was given: the first row, how many, and their values.
type Given = (usize, u64, u32, Vec<u8>);

/// Rows that are opened, of one run after the other.
#[derive(Default)]
pub(super) struct Rows {
    given: Mutex<Vec<Given>>,
    done: Mutex<Vec<Vec<Given>>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink for Rows {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        lock(&self.given).push((port, slice.first, slice.rows, values.to_vec()));
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        let given = std::mem::take(&mut *lock(&self.given));
        lock(&self.done).push(given);
        Ok(())
    }
}

impl Rows {
    /// The valid rows of each run that was finished since the last call, in the order in which they were opened.
    pub(super) fn take(&self, ports: &ResultPorts, rows: u64) -> Vec<Vec<Vec<Value>>> {
        let runs = std::mem::take(&mut *lock(&self.done));
        runs.iter().map(|run| opened(run, ports, rows)).collect()
    }
}

/// The valid rows among those that were given. A value that did not come is zero.
fn opened(run: &[Given], ports: &ResultPorts, rows: u64) -> Vec<Vec<Value>> {
    let mut values = vec![vec![0u128; ports.ports.len()]; rows as usize];
    for (port, first, rows, bytes) in run {
        let wire = Ring::Bits.bytes((*rows).into()) as usize;
        for (at, wire) in bytes.chunks_exact(wire.max(1)).enumerate() {
            for row in 0..*rows as usize {
                let bit = u128::from(wire[row / 8] >> (row % 8) & 1);
                values[*first as usize + row][*port] |= bit << at;
            }
        }
    }
    values.iter().filter_map(|row| ports.cells(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of every alignment are those that were put, one by one.
    #[test]
    fn rows_are_copied_from_anywhere() {
        for (ring, mask) in [(Ring::Bits, 1), (Ring::Z32, 0xffff_ffff)] {
            let value = |row: usize| ((row as u128 * 0x9e37_79b9) >> 7) & mask;
            let mut whole = vec![vec![0; ring.bytes(50) as usize]];
            (0..50).for_each(|row| put(ring, row, value(row), &mut whole));
            for first in 0..50 {
                for rows in 1..=50 - first {
                    let mut found = vec![0xff; ring.bytes(rows as u64) as usize];
                    copy(ring, &whole[0], first as u64, rows as u32, &mut found);
                    let mut wanted = vec![vec![0; found.len()]];
                    (0..rows).for_each(|row| put(ring, row, value(first + row), &mut wanted));
                    assert_eq!(found, wanted[0], "{rows} rows from {first} on");
                }
            }
        }
    }
}
