//! Products of matrices: blocks that fit the caches are packed as registers take them, and multiplied panel by panel.
//!
//! Sums of components are made as they are packed. Masks come first, and what is multiplied is added to them. Loops and memory follow from the shape alone.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "registers are numbered, and everything is inlined into the function that enables the instruction set"
)]

#[cfg(target_arch = "x86_64")]
mod dots;
mod kernel;
mod pack;
mod thin;

use std::ops::Range;

use veil_math::Ring;
use veil_session::Wiped;

use super::exec::Mask;
use super::workspace::Memory;
use super::{Cpu, Isa, commands};
use crate::command::Command;
use crate::form::Form;
use crate::layout::ColumnType;
use crate::matmul::{MatMul, Matrices, OfSums};
use crate::{Fault, rank};
use kernel::{Kernel, Portable, Word};

/// Terms of a block: its panels stay in the first cache together.
const DEPTH: usize = 256;
/// Panels of the left matrix in a block: the second cache has them all.
const PANELS: usize = 8;
/// Panels of the right matrix in a block, which follow one another through the first cache.
const STRIPES: usize = 96;
/// Elements of a panel of the product, at most.
const MOST_OF_PANEL: usize = 128;
/// Bytes of masks that are drawn at once.
const DRAWN: usize = 4096;

/// Where the columns of matrices are, of a checked command: none that is written overlaps another.
struct Columns {
    form: &'static Form,
    transposed: bool,
    parts: usize,
    /// Of the left matrix, `[column][component]`; of the right one as well.
    left: Vec<*const u8>,
    right: Vec<*const u8>,
    /// `[component or message][column]`.
    product: Vec<*mut u8>,
    /// The shape of the product, and terms of an element.
    rows: usize,
    width: usize,
    inner: usize,
}

impl Cpu {
    /// The product of a command, which was checked.
    pub(super) fn matmul(
        &self,
        memory: &mut Memory,
        of: MatMul,
        command: &Command,
    ) -> Result<(), Fault> {
        let mut masks = Vec::with_capacity(command.calls.len());
        for call in &command.calls {
            masks.push(self.mask(*call, memory.frame)?);
        }
        let to = command.dst[0].region;
        let drawn = Drawn {
            cpu: self,
            ring: of.form.ring,
            each: matches!(
                memory.layout.regions[to as usize].column,
                ColumnType::One(_)
            ),
            stride: commands::stride(memory, to),
            masks,
        };
        let mut columns = Columns::at(memory, of, command);
        let targets = targets(of.form);
        for (cross, target) in of.form.crosses.iter().zip(&targets) {
            columns.begin(*target, cross.masks, &drawn);
        }
        let mut all = of.of_sums();
        for (cross, _) in all.iter_mut().flat_map(|of_sums| &mut of_sums.into) {
            *cross = targets[*cross];
        }
        // SAFETY: `with` checked the instruction set, and spans were checked: columns have so many elements of the ring.
        unsafe {
            match (of.form.ring, self.isa) {
                (ring, isa) if columns.is_thin() => columns.thin(ring, isa, &all),
                #[cfg(target_arch = "x86_64")]
                (Ring::Z64, Isa::Avx512) if of.transposed => columns.dots(&all),
                (ring, isa) => columns.panels(ring, isa, &all),
            }
        }
        for (number, part) in rank::written(of.form).enumerate() {
            if targets.contains(&number) {
                continue;
            }
            let keeps = of.form.keeps.iter();
            let keeps = keeps.filter(|(_, to)| usize::from(*to) == part);
            let keeps: Vec<(u8, bool)> = keeps.map(|(call, _)| (*call, false)).collect();
            columns.begin(number, &keeps, &drawn);
            for (cross, target) in of.form.crosses.iter().zip(&targets) {
                if usize::from(cross.to) == part {
                    columns.add(*target, number);
                }
            }
        }
        Ok(())
    }
}

impl Cpu {
    /// Products of elements of Z_2^64, each added to a sum, that this device's instructions allow in a second on one core, if no memory is reached: what bounds
    /// its products of matrices. Nothing where it has no vectors for them. Measured for about `budget`.
    pub fn product_bound(&self, budget: std::time::Duration) -> Option<f64> {
        #[cfg(target_arch = "x86_64")]
        if self.isa != Isa::Portable {
            const ROUNDS: u64 = 1 << 16;
            let (start, mut best) = (std::time::Instant::now(), 0f64);
            while start.elapsed() < budget {
                let round = std::time::Instant::now();
                // SAFETY: `with` checked the instruction set.
                let products = unsafe {
                    if self.isa == Isa::Avx512 {
                        kernel::in_registers_512(ROUNDS)
                    } else {
                        kernel::in_registers(ROUNDS)
                    }
                };
                // The best round of many: the others were interrupted.
                best = best.max(products as f64 / round.elapsed().as_secs_f64());
            }
            return Some(best);
        }
        let _ = budget;
        None
    }
}

/// Where each cross term of a form is computed, among components that are written and messages: in the component that it is, or as a message.
fn targets(form: &Form) -> Vec<usize> {
    let written: Vec<usize> = rank::written(form).collect();
    let mut messages = written.len()..;
    let crosses = form.crosses.iter().enumerate();
    let target = crosses.map(|(number, cross)| {
        if form.is_component(number) {
            written
                .iter()
                .position(|part| *part == usize::from(cross.to))
        } else {
            messages.next()
        }
    });
    target
        .map(|target| target.expect("a cross term has a place"))
        .collect()
}

/// Adds elements to others, or takes them away.
fn add(ring: Ring, into: &mut [u8], from: &[u8], minus: bool) {
    macro_rules! add {
        ($word:ty) => {
            let into = into.as_chunks_mut().0.iter_mut();
            for (into, from) in into.zip(from.as_chunks().0) {
                let (a, b) = (<$word>::from_le_bytes(*into), <$word>::from_le_bytes(*from));
                let sum = if minus {
                    a.wrapping_sub(b)
                } else {
                    a.wrapping_add(b)
                };
                *into = sum.to_le_bytes();
            }
        };
    }
    match ring {
        Ring::Bits => unreachable!("it was checked"),
        Ring::Z32 => {
            add!(u32);
        }
        Ring::Z64 => {
            add!(u64);
        }
        Ring::Z128 => {
            add!(u128);
        }
    }
}

/// The draws of a command.
struct Drawn<'a> {
    cpu: &'a Cpu,
    ring: Ring,
    /// Whether each element begins with a block of its own.
    each: bool,
    /// Counters of a column of the product, or of an element.
    stride: u64,
    masks: Vec<Mask<'a>>,
}

impl Drawn<'_> {
    /// Adds what a call draws for column `column`, or takes it away.
    fn add(&self, (call, minus): (u8, bool), column: usize, into: &mut [u8]) {
        let mask = self.masks[usize::from(call)];
        let width = self.ring.bytes(1) as usize;
        let mut drawn = Wiped::<u8>::zeros(DRAWN);
        if self.each {
            let first = mask.first + (column * into.len() / width) as u64;
            let pieces = into.chunks_mut(DRAWN / 16 * width).enumerate();
            for (k, piece) in pieces {
                let blocks = &mut drawn[..piece.len() / width * 16];
                self.cpu
                    .random(mask, first + (k * DRAWN / 16) as u64, blocks);
                // What counts of each block, side by side.
                for element in 1..piece.len() / width {
                    drawn.copy_within(element * 16..element * 16 + width, element * width);
                }
                add(self.ring, piece, &drawn[..piece.len()], minus);
            }
            return;
        }
        let first = mask.first + column as u64 * self.stride;
        for (k, piece) in into.chunks_mut(DRAWN).enumerate() {
            let drawn = &mut drawn[..piece.len()];
            self.cpu
                .random(mask, first + (k * DRAWN / 16) as u64, drawn);
            add(self.ring, piece, drawn, minus);
        }
    }
}

impl Columns {
    fn at(memory: &mut Memory, of: MatMul, command: &Command) -> Self {
        let matrices = Matrices::of(of, command);
        let rows = memory.frame.rows;
        let (parts, columns) = (matrices.parts, matrices.columns);
        let outputs = rank::written(of.form).count() + rank::messages(of.form).count();
        let mut left = Vec::with_capacity(of.left as usize * parts);
        for k in 0..of.left as usize {
            left.extend((0..parts).map(|p| memory.first(matrices.left(k, p)).cast_const()));
        }
        let mut right = Vec::with_capacity(columns * parts);
        for j in 0..columns {
            right.extend((0..parts).map(|p| memory.first(matrices.right(j, p)).cast_const()));
        }
        let mut product = Vec::with_capacity(outputs * columns);
        for k in 0..outputs {
            product.extend((0..columns).map(|j| memory.first(matrices.product(k, j))));
        }
        Columns {
            form: of.form,
            transposed: of.transposed,
            parts,
            left,
            right,
            product,
            rows: matrices.rows(rows),
            width: columns,
            inner: matrices.inner(rows),
        }
    }

    /// A component of a column of the left matrix.
    #[inline(always)]
    fn left_at<W>(&self, column: usize, component: u8) -> *const W {
        self.left[column * self.parts + usize::from(component)].cast()
    }

    /// The same of the right matrix.
    #[inline(always)]
    fn right_at<W>(&self, column: usize, component: u8) -> *const W {
        self.right[column * self.parts + usize::from(component)].cast()
    }

    /// A column of the product, and its bytes.
    fn column(&self, target: usize, column: usize) -> (*mut u8, usize) {
        let bytes = self.rows * self.form.ring.bytes(1) as usize;
        (self.product[target * self.width + column], bytes)
    }

    /// Begins with draws alone.
    fn begin(&mut self, target: usize, calls: &[(u8, bool)], drawn: &Drawn<'_>) {
        for column in 0..self.width {
            let (into, bytes) = self.column(target, column);
            // SAFETY: the command was checked: the column has so many bytes, and they are no other column's.
            let into = unsafe { std::slice::from_raw_parts_mut(into, bytes) };
            into.fill(0);
            for call in calls {
                drawn.add(*call, column, into);
            }
        }
    }

    /// Adds a cross term to another component.
    fn add(&mut self, from: usize, to: usize) {
        for column in 0..self.width {
            let [from, to] = [from, to].map(|target| self.column(target, column));
            // SAFETY: the command was checked: both have so many bytes, and are different columns.
            let (from, into) = unsafe {
                (
                    std::slice::from_raw_parts(from.0.cast_const(), from.1),
                    std::slice::from_raw_parts_mut(to.0, to.1),
                )
            };
            add(self.form.ring, into, from, false);
        }
    }

    /// Adds products of sums of components where they belong: to components and messages by their numbers.
    ///
    /// # Safety
    /// The processor has the instructions of `isa`, and columns have so many elements of the ring.
    unsafe fn panels(&mut self, ring: Ring, isa: Isa, all: &[OfSums]) {
        for of in all {
            // SAFETY: the caller's.
            unsafe {
                match (ring, isa) {
                    #[cfg(target_arch = "x86_64")]
                    (Ring::Z64, Isa::Avx512) => self.multiply::<kernel::Wide512>(of),
                    #[cfg(target_arch = "x86_64")]
                    (Ring::Z32, Isa::Avx512) => self.multiply::<kernel::Narrow512>(of),
                    #[cfg(target_arch = "x86_64")]
                    (Ring::Z64, Isa::Avx2Vaes | Isa::Avx2) => self.multiply::<kernel::Wide>(of),
                    #[cfg(target_arch = "x86_64")]
                    (Ring::Z32, Isa::Avx2Vaes | Isa::Avx2) => self.multiply::<kernel::Narrow>(of),
                    (Ring::Z32, _) => self.multiply::<Portable<u32>>(of),
                    (Ring::Z64, _) => self.multiply::<Portable<u64>>(of),
                    (Ring::Z128, _) => self.multiply::<Portable<u128>>(of),
                    (Ring::Bits, _) => unreachable!("it was checked"),
                }
            }
        }
    }

    /// The same of one product.
    ///
    /// # Safety
    /// The processor has the instructions of the kernel.
    unsafe fn multiply<K: Kernel>(&mut self, of: &OfSums) {
        let mut left = Wiped::<K::Word>::zeros(PANELS * K::LEFT * DEPTH);
        let stripes = STRIPES.min(self.width.div_ceil(K::COLUMNS));
        let mut right = Wiped::<K::Right>::zeros(stripes * K::RIGHT * DEPTH);
        let (high, broad) = (PANELS * K::ROWS, STRIPES * K::COLUMNS);
        for j in (0..self.width).step_by(broad) {
            let columns = j..self.width.min(j + broad);
            for k in (0..self.inner).step_by(DEPTH) {
                let terms = k..self.inner.min(k + DEPTH);
                // SAFETY: the caller's, and blocks are within the matrices.
                unsafe {
                    self.pack_right::<K>(&of.right, columns.clone(), terms.clone(), &mut right);
                    for i in (0..self.rows).step_by(high) {
                        let rows = i..self.rows.min(i + high);
                        self.pack_left::<K>(&of.left, rows.clone(), terms.clone(), &mut left);
                        let shape = (rows, columns.clone(), terms.len());
                        self.block::<K>(shape, (&left, &right), &of.into);
                    }
                }
            }
        }
    }

    /// Adds the product of packed blocks.
    ///
    /// # Safety
    /// The processor has the instructions of the kernel, and these are rows and columns of the product.
    unsafe fn block<K: Kernel>(
        &mut self,
        (rows, columns, depth): (Range<usize>, Range<usize>, usize),
        (left, right): (&[K::Word], &[K::Right]),
        into: &[(usize, bool)],
    ) {
        let mut panel = [K::Word::default(); MOST_OF_PANEL];
        let depth = depth.next_multiple_of(K::TERMS);
        for (b, j) in columns.clone().step_by(K::COLUMNS).enumerate() {
            let right = right[b * K::RIGHT * depth..].as_ptr();
            for (a, i) in rows.clone().step_by(K::ROWS).enumerate() {
                let left = left[a * K::LEFT * depth..].as_ptr();
                let count = K::ROWS.min(rows.end - i);
                // What the panel is added to arrives while it is multiplied.
                for (target, _) in into {
                    for c in 0..K::COLUMNS.min(columns.end - j) {
                        let (to, _) = self.column(*target, j + c);
                        prefetch(to.cast::<K::Word>().wrapping_add(i), count);
                    }
                }
                // SAFETY: the caller's; panels are packed as the kernel takes them.
                unsafe { K::multiply(left, right, depth, panel.as_mut_ptr()) };
                for (target, minus) in into {
                    for c in 0..K::COLUMNS.min(columns.end - j) {
                        let (to, _) = self.column(*target, j + c);
                        let to = to.cast::<K::Word>().wrapping_add(i);
                        for (r, sum) in panel[c * K::ROWS..][..count].iter().enumerate() {
                            // SAFETY: the caller's.
                            unsafe { sum.grow(to.add(r), *minus) };
                        }
                    }
                }
            }
        }
        panel.fill(K::Word::default());
        std::hint::black_box(&panel);
    }
}

/// Asks for the cache lines of elements.
#[inline(always)]
fn prefetch<W>(first: *const W, count: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..count * size_of::<W>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.cast::<i8>().wrapping_add(line)) };
    }
}
