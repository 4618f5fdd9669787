//! Permutations, and rows that move by them.
//!
//! Most of the time is that of caches that miss. Positions are known long before they are reached, so that what is there is asked for ahead.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use veil_session::Wiped;
use zeroize::Zeroize;

use super::Cpu;
use super::convert::columns;
use super::exec::columns::Columns;
use super::vector::{self, Task, Vector};
use super::workspace::Memory;
use crate::Fault;
use crate::command::Command;
use crate::layout::Span;
use crate::moves::no_row;

/// Rows whose positions are looked at together: in the first cache, between the check that they are rows and the moves.
const TILE: usize = 1024;

/// Rows by which what is at a position is asked for ahead.
const AHEAD: usize = 16;

impl Cpu {
    /// The permutation that the call of a command draws.
    pub(super) fn permutation(&self, memory: &mut Memory, command: &Command) -> Result<(), Fault> {
        let mask = self.mask(command.calls[0], memory.frame)?;
        let order = entries_mut(memory.column_bytes_mut(command.dst[0], 0));
        veil_prss::permutation_by(order, |counter, blocks| {
            self.random(mask, mask.first + counter, blocks.as_flattened_mut());
        });
        for entry in order {
            *entry = entry.to_le();
        }
        Ok(())
    }

    /// Moves rows, as command `index` of the batch says.
    pub(super) fn permute(
        &self,
        memory: &mut Memory,
        index: usize,
        back: bool,
        command: &Command,
    ) -> Result<(), Fault> {
        let (from, to) = (command.src[0], command.dst[0]);
        let mut by = |k: usize| {
            let span = command.src.get(k);
            span.map(|span| columns(memory, *span).at(0).cast_const().cast())
        };
        let (Some(first), second) = (by(1), by(2)) else {
            unreachable!("it was checked")
        };
        let column = memory.layout.regions[to.region as usize].column;
        let mut fits = true;
        let permute = Permute {
            size: column.bytes(1) as usize,
            rows: memory.frame.rows,
            by: (first, second),
            back,
            from: columns(memory, from),
            to: columns(memory, to),
            columns: to.count as usize,
            fits: &mut fits,
        };
        // SAFETY: `with` checked the instruction set; spans were checked: rows and permutations are of as many rows, and the destination overlaps none of
        // them.
        unsafe { vector::run(self.isa, permute) }
        if fits { Ok(()) } else { Err(no_row(index)) }
    }

    /// Whether a column is a permutation.
    pub(super) fn is_permutation(&self, memory: &mut Memory, from: Span) -> bool {
        let rows = memory.frame.rows;
        let mut fits = true;
        let look = Look {
            rows,
            from: columns(memory, from).at(0).cast_const().cast(),
            seen: &mut Wiped::zeros((rows as usize).div_ceil(64)),
            fits: &mut fits,
        };
        // SAFETY: as above.
        unsafe { vector::run(self.isa, look) }
        fits
    }

    /// Writes the inverse of a permutation; says whether it is one.
    pub(super) fn invert(&self, memory: &mut Memory, from: Span, to: Span) -> bool {
        let mut fits = true;
        let invert = Invert {
            rows: memory.frame.rows,
            from: columns(memory, from).at(0).cast_const().cast(),
            to: columns(memory, to).at(0).cast(),
            fits: &mut fits,
        };
        // SAFETY: as above.
        unsafe { vector::run(self.isa, invert) }
        if !fits {
            memory.column_bytes_mut(to, 0).fill(0);
        }
        fits
    }
}

/// A column of integers modulo 2^32 as words, little-endian.
fn entries_mut(bytes: &mut [u8]) -> &mut [u32] {
    // SAFETY: any four bytes are a `u32`.
    let (before, entries, after) = unsafe { bytes.align_to_mut() };
    assert!(
        before.is_empty() && after.is_empty(),
        "columns of integers are aligned as integers"
    );
    entries
}

/// Asks for the line of the first cache that has an address, which need not exist.
#[inline(always)]
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has it, and it is no access.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Whether all of `count` entries are below `rows`.
///
/// # Safety
/// They are there.
#[inline(always)]
unsafe fn are_rows(entries: *const u32, count: usize, rows: u32) -> bool {
    let mut beyond = 0;
    for k in 0..count {
        // SAFETY: the caller's.
        let entry = u32::from_le(unsafe { entries.add(k).read() });
        beyond |= u32::from(entry >= rows);
    }
    beyond == 0
}

/// [`Op::Permute`](crate::Op::Permute).
struct Permute<'a> {
    /// Bytes of an element.
    size: usize,
    rows: u32,
    /// Permutations, of which there may be one.
    by: (*const u32, Option<*const u32>),
    back: bool,
    from: Columns,
    to: Columns,
    columns: usize,
    /// Whether all entries are rows.
    fits: &'a mut bool,
}

impl Task for Permute<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: the caller's.
        unsafe {
            match (self.size, self.back) {
                (1, false) => self.of::<u8, false>(),
                (1, true) => self.of::<u8, true>(),
                (2, false) => self.of::<u16, false>(),
                (2, true) => self.of::<u16, true>(),
                (4, false) => self.of::<u32, false>(),
                (4, true) => self.of::<u32, true>(),
                (8, false) => self.of::<u64, false>(),
                (8, true) => self.of::<u64, true>(),
                (16, false) => self.of::<u128, false>(),
                (16, true) => self.of::<u128, true>(),
                _ => unreachable!("it was checked"),
            }
        }
    }
}

impl Permute<'_> {
    #[inline(always)]
    unsafe fn of<T: Copy, const BACK: bool>(self) {
        let (first, second) = self.by;
        let mut both = [0u32; TILE];
        for row in (0..self.rows as usize).step_by(TILE) {
            let count = (self.rows as usize - row).min(TILE);
            // SAFETY: the caller's: permutations and columns have so many rows; positions are below it, as is looked at before they are reached.
            unsafe {
                let mut positions = first.add(row);
                if !are_rows(positions, count, self.rows) {
                    *self.fits = false;
                    break;
                }
                if let Some(second) = second {
                    compose((positions, second), &mut both[..count]);
                    positions = both.as_ptr();
                    if !are_rows(positions, count, self.rows) {
                        *self.fits = false;
                        break;
                    }
                }
                for k in 0..self.columns {
                    let (from, to) = (self.from.at(k).cast::<T>(), self.to.at(k).cast::<T>());
                    if BACK {
                        gather(positions, count, from.cast_const(), to.add(row));
                    } else {
                        scatter(positions, count, from.add(row).cast_const(), to);
                    }
                }
            }
        }
        both.zeroize();
    }
}

/// What a loop over a tile does with each of its rows, after it has asked ahead for what is at the position.
macro_rules! ahead {
    ($positions:ident, $count:ident, $at:ident, |$k:ident, $position:ident| $what:expr) => {
        for k in 0..AHEAD.min($count) {
            prefetch($at.wrapping_add(position($positions, k)));
        }
        for $k in 0..$count.saturating_sub(AHEAD) {
            prefetch($at.wrapping_add(position($positions, $k + AHEAD)));
            let $position = position($positions, $k);
            $what;
        }
        for $k in $count.saturating_sub(AHEAD)..$count {
            let $position = position($positions, $k);
            $what;
        }
    };
}

#[inline(always)]
unsafe fn position(positions: *const u32, k: usize) -> usize {
    // SAFETY: the caller's.
    u32::from_le(unsafe { positions.add(k).read() }) as usize
}

/// Positions after the second permutation, as they lie in memory, of those after the first.
#[inline(always)]
unsafe fn compose((first, second): (*const u32, *const u32), both: &mut [u32]) {
    let count = both.len();
    // SAFETY: the caller's, here and below: positions are there, and so are columns at each of them.
    unsafe {
        ahead!(first, count, second, |k, at| both[k] =
            second.add(at).read());
    }
}

#[inline(always)]
unsafe fn gather<T: Copy>(positions: *const u32, count: usize, from: *const T, to: *mut T) {
    unsafe {
        ahead!(positions, count, from, |k, at| to
            .add(k)
            .write_unaligned(from.add(at).read_unaligned()));
    }
}

#[inline(always)]
unsafe fn scatter<T: Copy>(positions: *const u32, count: usize, from: *const T, to: *mut T) {
    unsafe {
        ahead!(positions, count, to, |k, at| to
            .add(at)
            .write_unaligned(from.add(k).read_unaligned()));
    }
}

/// [`Op::Invert`](crate::Op::Invert).
struct Invert<'a> {
    rows: u32,
    from: *const u32,
    to: *mut u32,
    /// Whether it is a permutation.
    fits: &'a mut bool,
}

/// What is no row: there are fewer than 2^32 - 1 before the last one.
const NONE: u32 = u32::MAX;

impl Task for Invert<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let (rows, to) = (self.rows as usize, self.to);
        // SAFETY: the caller's: both columns have so many rows; positions are below it, as is looked at before they are reached.
        unsafe {
            to.write_bytes(0xff, rows);
            for row in (0..rows).step_by(TILE) {
                let count = (rows - row).min(TILE);
                let positions = self.from.add(row);
                if !are_rows(positions, count, self.rows) {
                    *self.fits = false;
                    return;
                }
                ahead!(positions, count, to, |k, at| to
                    .add(at)
                    .write(((row + k) as u32).to_le()));
            }
            // As many entries as rows: one is there twice if and only if a row has none.
            let mut missing = 0;
            for row in 0..rows {
                missing |= u32::from(to.add(row).read() == NONE);
            }
            *self.fits = missing == 0;
        }
    }
}

/// [`Op::Invert`](crate::Op::Invert) without a destination: a bit for each row, which the second cache has room for.
struct Look<'a> {
    rows: u32,
    from: *const u32,
    /// Rows that an entry was, 64 to a word.
    seen: &'a mut [u64],
    /// Whether it is a permutation.
    fits: &'a mut bool,
}

impl Task for Look<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let rows = self.rows as usize;
        for row in (0..rows).step_by(TILE) {
            let count = (rows - row).min(TILE);
            // SAFETY: the caller's: the column has so many rows; words are there for all rows, and entries are rows, as is looked at before.
            unsafe {
                let positions = self.from.add(row);
                if !are_rows(positions, count, self.rows) {
                    *self.fits = false;
                    return;
                }
                for k in 0..count {
                    let at = position(positions, k);
                    *self.seen.get_unchecked_mut(at / 64) |= 1 << (at % 64);
                }
            }
        }
        // As many entries as rows: one is there twice if and only if a row has none.
        let mut missing = 0;
        for (word, seen) in self.seen.iter().enumerate() {
            missing |= !seen & (u64::MAX >> (64 - (rows - 64 * word).min(64)));
        }
        *self.fits = missing == 0;
    }
}
