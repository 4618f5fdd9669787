//! Positions of rows by a digit: one walk over its indicators for how many rows have each digit, and one for the positions.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use veil_session::Wiped;

use super::Cpu;
use super::vector::{self, Task, Vector};
use super::workspace::Memory;
use crate::command::Command;
use crate::rank;
use crate::{Fault, Form};

/// Rows that are in the first cache together, with all that is made of them.
const TILE: usize = 512;

/// Integers of a tile.
type Rows = [u32; TILE];

/// Rows whose sums are added up side by side, not one after the other.
const SIDE_BY_SIDE: usize = 8;

impl Cpu {
    /// The positions of a command, which was checked.
    pub(super) fn rank(
        &self,
        memory: &mut Memory,
        form: &Form,
        command: &Command,
    ) -> Result<(), Fault> {
        let mut masks = Vec::with_capacity(command.calls.len());
        for call in &command.calls {
            masks.push(self.mask(*call, memory.frame)?);
        }
        let rows = memory.frame.rows;
        let from: Vec<*const u8> = (command.src.iter())
            .map(|span| memory.first(*span).cast_const())
            .collect();
        let to: Vec<*mut u8> = (command.dst.iter())
            .map(|span| memory.first(*span))
            .collect();
        let mut walk = Walk::new(form, command.constants, (from, to), rows);
        // SAFETY: `with` checked the instruction set; spans were checked: all columns have four bytes in every row, and none that is written overlaps
        // another.
        unsafe { vector::run(self.isa, Totals(&mut walk)) }
        walk.begin(rows);
        for row in (0..rows as usize).step_by(TILE) {
            walk.tile = (row, (rows as usize - row).min(TILE));
            for (mask, drawn) in masks.iter().zip(walk.drawn.iter_mut()) {
                let bytes = bytes_mut(&mut drawn[..walk.tile.1]);
                self.random(*mask, mask.first + row as u64 / 4, bytes);
            }
            // SAFETY: as above.
            unsafe { vector::run(self.isa, Positions(&mut walk)) }
        }
        Ok(())
    }
}

/// Integers as bytes.
fn bytes_mut(integers: &mut [u32]) -> &mut [u8] {
    // SAFETY: four initialised bytes each, and bytes have no alignment.
    unsafe { std::slice::from_raw_parts_mut(integers.as_mut_ptr().cast(), size_of_val(integers)) }
}

/// Where a walk over the rows is.
struct Walk<'a> {
    form: &'a Form,
    constants: u8,
    parts: usize,
    /// Indicators, `[digit][part]`, and what is written.
    from: Vec<*const u8>,
    to: Vec<*mut u8>,
    rows: usize,
    /// Of each indicator, the sum of all rows; then that of the rows before the tile.
    sums: Wiped<u32>,
    /// S_t - S_0 of each indicator, but for what rows before add to it.
    base: Wiped<u32>,
    /// The first row of the tile, and how many it has.
    tile: (usize, usize),
    /// Indicators of the tile, and S_t - S_0 of each.
    own: Wiped<Tile>,
    behind: Wiped<Tile>,
    /// S_0 of each part.
    zero: Wiped<Tile>,
    drawn: Wiped<Tile>,
    terms: Wiped<Tile>,
}

/// Rows of a tile, all zero at first.
#[derive(Clone, Copy)]
struct Tile(Rows);

impl Default for Tile {
    fn default() -> Self {
        Tile([0; TILE])
    }
}

impl std::ops::Deref for Tile {
    type Target = Rows;

    #[inline(always)]
    fn deref(&self) -> &Rows {
        &self.0
    }
}

impl std::ops::DerefMut for Tile {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Rows {
        &mut self.0
    }
}

impl<'a> Walk<'a> {
    fn new(
        form: &'a Form,
        constants: u8,
        (from, to): (Vec<*const u8>, Vec<*mut u8>),
        rows: u32,
    ) -> Self {
        let (parts, columns) = (rank::parts(form), from.len());
        Walk {
            form,
            constants,
            parts,
            from,
            to,
            rows: rows as usize,
            sums: Wiped::zeros(columns),
            base: Wiped::zeros(columns),
            tile: (0, 0),
            own: Wiped::zeros(columns),
            behind: Wiped::zeros(columns),
            zero: Wiped::zeros(parts),
            drawn: Wiped::zeros(form.calls()),
            terms: Wiped::zeros(form.crosses.len()),
        }
    }

    /// The public 1 of a part: 1 where public constants act, else 0.
    fn one(&self, part: usize) -> u32 {
        u32::from(self.constants >> part & 1)
    }

    /// From sums of all rows to where each digit begins.
    fn begin(&mut self, rows: u32) {
        for part in 0..self.parts {
            let mut left = self.one(part).wrapping_mul(rows);
            // Rows with a smaller digit are all but those with this one and greater ones.
            for digit in (0..self.from.len() / self.parts).rev() {
                let at = digit * self.parts + part;
                left = left.wrapping_sub(self.sums[at]);
                self.base[at] = left;
            }
        }
        self.sums.fill(0);
    }
}

/// How many rows have each digit.
struct Totals<'w, 'a>(&'w mut Walk<'a>);

impl Task for Totals<'_, '_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let walk = self.0;
        for at in 0..walk.from.len() {
            let mut sums = [0u32; 4 * SIDE_BY_SIDE];
            let from = walk.from[at].cast::<[[u8; 4]; 4 * SIDE_BY_SIDE]>();
            let whole = walk.rows / sums.len();
            // SAFETY: the caller's: there are so many rows.
            unsafe {
                for block in 0..whole {
                    let block = from.add(block).read();
                    for k in 0..sums.len() {
                        sums[k] = sums[k].wrapping_add(u32::from_le_bytes(block[k]));
                    }
                }
                let mut sum = 0u32;
                for k in 0..sums.len() {
                    sum = sum.wrapping_add(sums[k]);
                }
                let from = walk.from[at].cast::<[u8; 4]>();
                for row in whole * sums.len()..walk.rows {
                    sum = sum.wrapping_add(u32::from_le_bytes(from.add(row).read()));
                }
                walk.sums[at] = sum;
            }
        }
    }
}

/// The positions of a tile.
struct Positions<'w, 'a>(&'w mut Walk<'a>);

impl Task for Positions<'_, '_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let walk = self.0;
        // SAFETY: the caller's.
        unsafe { load(walk) }
        for part in 0..walk.parts {
            begins(walk, part);
        }
        cross(walk);
        // SAFETY: the caller's.
        unsafe { store(walk) }
    }
}

/// Indicators of the tile, and the sums of the rows before each.
#[inline(always)]
unsafe fn load(walk: &mut Walk<'_>) {
    let (first, count) = walk.tile;
    for at in 0..walk.from.len() {
        let own = &mut walk.own[at];
        // SAFETY: the caller's: there are so many rows.
        unsafe {
            let from = walk.from[at].add(4 * first);
            std::ptr::copy_nonoverlapping(from, own.as_mut_ptr().cast::<u8>(), 4 * count);
        }
        for k in 0..TILE {
            own[k] = u32::from_le(own[k]);
        }
        for k in count..TILE {
            own[k] = 0;
        }
        before(&mut walk.sums[at], own, &mut walk.behind[at]);
    }
}

/// The sums of the rows before each; `sum` is that of the rows before the tile, and then of those before the next.
#[inline(always)]
fn before(sum: &mut u32, of: &Rows, to: &mut Rows) {
    for block in 0..TILE / SIDE_BY_SIDE {
        let first = block * SIDE_BY_SIDE;
        let mut within = [0u32; SIDE_BY_SIDE];
        within.copy_from_slice(&of[first..first + SIDE_BY_SIDE]);
        for by in [1, 2, 4] {
            let less = within;
            for k in by..SIDE_BY_SIDE {
                within[k] = less[k].wrapping_add(less[k - by]);
            }
        }
        for k in 0..SIDE_BY_SIDE {
            to[first + k] = sum.wrapping_add(within[k]).wrapping_sub(of[first + k]);
        }
        *sum = sum.wrapping_add(within[SIDE_BY_SIDE - 1]);
    }
}

/// S_0 of a part, and S_t - S_0.
#[inline(always)]
fn begins(walk: &mut Walk<'_>, part: usize) {
    let one = walk.one(part);
    let zero = &mut walk.zero[part];
    for k in 0..TILE {
        zero[k] = one.wrapping_mul((walk.tile.0 + k) as u32);
    }
    for at in (part..walk.from.len()).step_by(walk.parts) {
        let behind = &walk.behind[at];
        for k in 0..TILE {
            zero[k] = zero[k].wrapping_sub(behind[k]);
        }
    }
    for at in (part..walk.from.len()).step_by(walk.parts) {
        let (base, behind) = (walk.base[at], &mut walk.behind[at]);
        for k in 0..TILE {
            behind[k] = behind[k].wrapping_add(base).wrapping_sub(zero[k]);
        }
    }
}

/// Masked cross terms.
#[inline(always)]
fn cross(walk: &mut Walk<'_>) {
    for (number, of) in walk.form.crosses.iter().enumerate() {
        let term = &mut walk.terms[number];
        term.fill(0);
        for digit in (0..walk.from.len()).step_by(walk.parts) {
            for &(a, b) in of.terms {
                let own = &walk.own[digit + usize::from(a)];
                let behind = &walk.behind[digit + usize::from(b)];
                for k in 0..TILE {
                    term[k] = term[k].wrapping_add(own[k].wrapping_mul(behind[k]));
                }
            }
        }
        for &(call, minus) in of.masks {
            let drawn = &walk.drawn[usize::from(call)];
            for k in 0..TILE {
                let mask = u32::from_le(drawn[k]);
                term[k] = if minus {
                    term[k].wrapping_sub(mask)
                } else {
                    term[k].wrapping_add(mask)
                };
            }
        }
    }
}

/// Writes components, and messages that are none.
#[inline(always)]
unsafe fn store(walk: &mut Walk<'_>) {
    let form = walk.form;
    let mut next = 0;
    for part in 0..walk.parts {
        if form.writes() >> part & 1 == 0 {
            continue;
        }
        let sum = &mut walk.zero[part];
        for (number, of) in form.crosses.iter().enumerate() {
            if usize::from(of.to) == part {
                let term = &walk.terms[number];
                for k in 0..TILE {
                    sum[k] = sum[k].wrapping_add(term[k]);
                }
            }
        }
        for &(call, to) in form.keeps {
            if usize::from(to) == part {
                let drawn = &walk.drawn[usize::from(call)];
                for k in 0..TILE {
                    sum[k] = sum[k].wrapping_add(u32::from_le(drawn[k]));
                }
            }
        }
        // SAFETY: the caller's.
        unsafe { write(walk.to[next], walk.tile, sum) }
        next += 1;
    }
    for number in 0..form.crosses.len() {
        if !form.is_component(number) {
            // SAFETY: the caller's.
            unsafe { write(walk.to[next], walk.tile, &mut walk.terms[number]) }
            next += 1;
        }
    }
}

/// Writes the rows of a tile.
#[inline(always)]
unsafe fn write(to: *mut u8, (first, count): (usize, usize), rows: &mut Rows) {
    for k in 0..TILE {
        rows[k] = rows[k].to_le();
    }
    // SAFETY: the caller's: there are so many rows.
    unsafe {
        std::ptr::copy_nonoverlapping(rows.as_ptr().cast::<u8>(), to.add(4 * first), 4 * count);
    }
}
