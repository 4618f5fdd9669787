//! Sums with pseudorandom elements, and moves of rows, as they are defined.

use veil_math::Ring;
use veil_session::Frame;
use zeroize::Zeroizing;

use super::memory::element;
use super::{Memory, Reference};
use crate::Fault;
use crate::command::Command;
use crate::layout::{ColumnType, Span};
use crate::moves::no_row;

impl Reference {
    /// The sum of the sources and calls of a command.
    pub(super) fn combine(
        &mut self,
        memory: &mut Memory,
        command: &Command,
        ring: Ring,
        minus: u32,
    ) -> Result<(), Fault> {
        let to = command.dst[0];
        let column = memory.column(to);
        let mut drawn = Vec::with_capacity(command.calls.len());
        for call in &command.calls {
            drawn.push(self.pseudorandom(memory, *call, column, to.count)?);
        }
        if let ColumnType::Words(_) = column {
            memory.combine_words(command);
        } else {
            memory.combine(command, ring, minus);
        }
        for (k, drawn) in drawn.iter().enumerate() {
            let is_minus = minus >> (command.src.len() + k) & 1 == 1;
            if let ColumnType::Words(_) = column {
                xor(memory.bytes_mut(to), drawn);
                continue;
            }
            let rows = memory.cells(to.region);
            for at in 0..to.count as usize * rows {
                let (to, cell) = (to.column((at / rows) as u32), at % rows);
                let (x, mask) = (memory.get(to, ring, cell), element(ring, drawn, at));
                let sum = if is_minus {
                    ring.sub(x, mask)
                } else {
                    ring.add(x, mask)
                };
                memory.set(to, ring, cell, sum);
            }
        }
        Ok(())
    }

    pub(super) fn permutation(
        &mut self,
        memory: &mut Memory,
        command: &Command,
    ) -> Result<(), Fault> {
        let (to, call) = (command.dst[0], command.calls[0]);
        let Frame {
            lane, chunk, rows, ..
        } = memory.frame;
        let prf = self.keys.get(&call.key);
        let prf = prf.ok_or(Fault::Unknown("the key of a draw"))?;
        let count = veil_prss::permutation_counters(rows);
        self.ledger
            .record_call(call.key.0, call.tag, lane, chunk, call.first, count)?;
        let entries = prf.permutation(call.tag, lane, call.first, chunk, rows);
        for (row, position) in entries.iter().enumerate() {
            memory.set(to, Ring::Z32, row, u128::from(*position));
        }
        Ok(())
    }
}

impl Memory {
    fn combine_words(&mut self, command: &Command) {
        let to = command.dst[0];
        let mut sum = vec![0; self.bytes(to).len()];
        for from in &command.src {
            xor(&mut sum, self.bytes(*from));
        }
        self.bytes_mut(to).copy_from_slice(&sum);
    }

    /// Entries of a permutation, as indices.
    pub(super) fn entries(&self, of: Span) -> Zeroizing<Vec<usize>> {
        let rows = 0..self.frame.rows as usize;
        let entries = rows.map(|row| self.get(of, Ring::Z32, row) as usize);
        Zeroizing::new(entries.collect())
    }

    pub(super) fn permute(
        &mut self,
        index: usize,
        command: &Command,
        back: bool,
    ) -> Result<(), Fault> {
        let rows = self.frame.rows as usize;
        let (from, to) = (command.src[0], command.dst[0]);
        let mut positions = Zeroizing::new((0..rows).collect::<Vec<usize>>());
        for by in &command.src[1..] {
            let by = self.entries(*by);
            for at in positions.iter_mut() {
                *at = by[*at];
                if *at >= rows {
                    return Err(no_row(index));
                }
            }
        }
        let size = self.column(to).bytes(1) as usize;
        for k in 0..to.count {
            let all = Zeroizing::new(self.bytes(from.column(k)).to_vec().into_boxed_slice());
            let into = self.bytes_mut(to.column(k));
            for (row, moved) in positions.iter().copied().enumerate() {
                let (read, written) = if back { (moved, row) } else { (row, moved) };
                into[written * size..][..size].copy_from_slice(&all[read * size..][..size]);
            }
        }
        Ok(())
    }

    /// Whether the source is a permutation; its inverse, if there is a place for it.
    pub(super) fn invert(&mut self, from: Span, to: Option<&Span>) -> bool {
        let entries = self.entries(from);
        let mut inverse = Zeroizing::new(vec![None; entries.len()]);
        let mut is_permutation = true;
        for (row, entry) in entries.iter().enumerate() {
            let place = inverse.get_mut(*entry).filter(|place| place.is_none());
            match place {
                Some(place) => *place = Some(row),
                None => is_permutation = false,
            }
        }
        let Some(to) = to else {
            return is_permutation;
        };
        for (row, entry) in inverse.iter().enumerate() {
            let entry = entry.filter(|_| is_permutation).unwrap_or(0);
            self.set(*to, Ring::Z32, row, entry as u128);
        }
        is_permutation
    }
}

fn xor(into: &mut [u8], from: &[u8]) {
    into.iter_mut().zip(from).for_each(|(a, b)| *a ^= b);
}
