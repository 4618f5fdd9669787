//! Sums of columns and pseudorandom elements: drawn, added and subtracted in registers, between one load of each source and one store.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use veil_math::Ring;

use super::Cpu;
use super::commands::stride;
use super::convert::columns;
use super::exec::columns::Columns;
use super::exec::{Mask, step};
use super::lift::{DRAWN, drawn, get, put};
use super::vector::{self, GROUP, Task, VECTOR, Vector};
use super::workspace::Memory;
use crate::Fault;
use crate::command::Command;

impl Cpu {
    /// The sum of the sources and the calls of a command, which was checked.
    pub(super) fn masked(
        &self,
        memory: &mut Memory,
        (ring, minus): (Ring, u32),
        command: &Command,
    ) -> Result<(), Fault> {
        let to = command.dst[0];
        let is_minus = |k: usize| minus >> k & 1 == 1;
        let mut masks = Vec::with_capacity(command.calls.len());
        for (k, call) in (command.src.len()..).zip(&command.calls) {
            masks.push((self.mask(*call, memory.frame)?, is_minus(k)));
        }
        let src = command.src.iter().enumerate();
        let sources: Vec<_> = src
            .map(|(k, span)| (columns(memory, *span), is_minus(k)))
            .collect();
        let stride = stride(memory, to.region);
        let bytes = memory.packed(to.region);
        // Columns without gaps are as good as one, if the blocks of a column follow those of the one before.
        let mut spans = command.src.iter().chain([&to]);
        let whole = stride * 16 == bytes as u64 && spans.all(|span| memory.is_whole(*span));
        let (count, times) = if whole { (1, to.count) } else { (to.count, 1) };
        let sum = Masked {
            ring,
            sources: &sources,
            masks: &masks,
            to: columns(memory, to),
            stride,
            columns: count as usize,
            bytes: bytes * times as usize,
        };
        // SAFETY: `with` checked the instruction set; spans were checked: all have as many columns of the same bytes, and the destination overlaps no
        // source but the first one, in place.
        unsafe { vector::run(self.isa, sum) }
        Ok(())
    }
}

/// A sum of columns and of elements that are drawn, each of which is added or taken away.
struct Masked<'a> {
    ring: Ring,
    sources: &'a [(Columns, bool)],
    masks: &'a [(Mask<'a>, bool)],
    to: Columns,
    /// Counters of a column.
    stride: u64,
    columns: usize,
    /// Of a column.
    bytes: usize,
}

impl Task for Masked<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: the caller's.
        unsafe {
            match self.ring {
                Ring::Bits => self.of::<V>(Ring::Bits),
                Ring::Z32 => self.of::<V>(Ring::Z32),
                Ring::Z64 => self.of::<V>(Ring::Z64),
                Ring::Z128 => self.of::<V>(Ring::Z128),
            }
        }
    }
}

impl Masked<'_> {
    #[inline(always)]
    unsafe fn of<V: Vector>(&self, ring: Ring) {
        let whole = self.bytes / DRAWN * DRAWN;
        for k in 0..self.columns {
            // SAFETY: the caller's: every column has `bytes` bytes.
            unsafe {
                for at in (0..whole).step_by(DRAWN) {
                    self.group::<V>(ring, (k, at), DRAWN);
                }
                if whole < self.bytes {
                    self.group::<V>(ring, (k, whole), self.bytes - whole);
                }
            }
        }
    }

    /// The sum of so many bytes from byte `first` of column `k` on: a group, or what is less than one.
    #[inline(always)]
    unsafe fn group<V: Vector>(&self, ring: Ring, (k, first): (usize, usize), bytes: usize) {
        // SAFETY: the caller's.
        unsafe {
            let mut sum = [V::splat(0); GROUP];
            for &(from, minus) in self.sources {
                let from = from.at(k).add(first);
                for g in 0..GROUP {
                    if g * VECTOR < bytes {
                        let x = get::<V>(from.add(g * VECTOR), bytes - g * VECTOR);
                        sum[g] = step(ring, minus, sum[g], x);
                    }
                }
            }
            for &(ref mask, minus) in self.masks {
                let counter = mask
                    .first
                    .wrapping_add(self.stride.wrapping_mul(k as u64))
                    .wrapping_add((first / 16) as u64);
                let drawn = drawn::<V>(mask, counter);
                for g in 0..GROUP {
                    sum[g] = step(ring, minus, sum[g], drawn[g]);
                }
            }
            let to = self.to.at(k).add(first);
            for g in 0..GROUP {
                if g * VECTOR < bytes {
                    put(sum[g], to.add(g * VECTOR), bytes - g * VECTOR);
                }
            }
        }
    }
}
