//! Matrices as panels that a kernel takes: elements of some rows, or columns, side by side, term by term. Sums of components are made on the way.

use std::ops::Range;

use super::Columns;
use super::kernel::{Kernel, Word};

/// Columns of a panel, at most.
const MOST_BROAD: usize = 4;

impl Columns {
    /// The elements of terms of columns of the right matrix, panel by panel: the sum of these components. Behind the last column there are zeros.
    ///
    /// # Safety
    /// These are columns and terms of the matrix, and `into` has room for them.
    pub(super) unsafe fn pack_right<K: Kernel>(
        &self,
        components: &[u8],
        columns: Range<usize>,
        terms: Range<usize>,
        into: &mut [K::Right],
    ) {
        // SAFETY: the caller's. What is known here is unrolled.
        unsafe {
            match *components {
                [a] => self.panels_of_right::<K, 1>([a], columns, terms, into),
                [a, b] => self.panels_of_right::<K, 2>([a, b], columns, terms, into),
                [a, b, c] => self.panels_of_right::<K, 3>([a, b, c], columns, terms, into),
                _ => unreachable!("an element has up to three components, and a sum one"),
            }
        }
    }

    /// # Safety
    /// That of [`Columns::pack_right`].
    unsafe fn panels_of_right<K: Kernel, const N: usize>(
        &self,
        components: [u8; N],
        columns: Range<usize>,
        terms: Range<usize>,
        into: &mut [K::Right],
    ) {
        const { assert!(K::COLUMNS <= MOST_BROAD) };
        let panels = columns.clone().step_by(K::COLUMNS);
        let depth = terms.len().next_multiple_of(K::TERMS);
        for (first, panel) in panels.zip(into.chunks_mut(K::RIGHT * depth)) {
            let (lines, behind) = panel.split_at_mut(K::COLUMNS * terms.len());
            behind.fill(K::Right::default());
            let parts = |column: usize| {
                components.map(|component| {
                    let part = self.right_at::<K::Word>(column, component);
                    part.wrapping_add(terms.start)
                })
            };
            let sum = |parts: &[*const K::Word; N], k: usize| {
                // SAFETY: the caller's.
                let get = |part: &*const K::Word| unsafe { K::Word::get(part.wrapping_add(k)) };
                let sum = parts[1..]
                    .iter()
                    .fold(get(&parts[0]), |sum, part| sum.add(get(part)));
                K::right(sum)
            };
            let count = columns.end - first;
            let lines = lines.chunks_exact_mut(K::COLUMNS).enumerate();
            if count >= K::COLUMNS {
                let from: [_; MOST_BROAD] =
                    std::array::from_fn(|c| parts(first + c.min(K::COLUMNS - 1)));
                for (k, line) in lines {
                    for (to, from) in line.iter_mut().zip(&from) {
                        *to = sum(from, k);
                    }
                }
            } else {
                for (k, line) in lines {
                    line.fill(K::Right::default());
                    for (to, column) in line[..count].iter_mut().zip(first..) {
                        *to = sum(&parts(column), k);
                    }
                }
            }
            K::finish_right(panel);
        }
    }

    /// The elements of terms of rows of the left matrix, panel by panel. Behind the last row there are zeros.
    ///
    /// # Safety
    /// These are rows and terms of the matrix, and `into` has room for them.
    pub(super) unsafe fn pack_left<K: Kernel>(
        &self,
        components: &[u8],
        rows: Range<usize>,
        terms: Range<usize>,
        into: &mut [K::Word],
    ) {
        let depth = terms.len().next_multiple_of(K::TERMS);
        let panels = rows.len().div_ceil(K::ROWS);
        let into = &mut into[..panels * K::LEFT * depth];
        if !rows.len().is_multiple_of(K::ROWS) || depth > terms.len() {
            into.fill(K::Word::default());
        }
        for (number, component) in components.iter().enumerate() {
            // SAFETY: the caller's.
            unsafe {
                match (self.transposed, number) {
                    (true, 0) => self.lines_of_left::<K, true>(*component, &rows, &terms, into),
                    (true, _) => self.lines_of_left::<K, false>(*component, &rows, &terms, into),
                    (false, 0) => self.columns_of_left::<K, true>(*component, &rows, &terms, into),
                    (false, _) => self.columns_of_left::<K, false>(*component, &rows, &terms, into),
                }
            }
        }
        for panel in into.chunks_mut(K::LEFT * depth) {
            K::finish_left(panel);
        }
    }

    /// A component of a transposed matrix, the first one or one that is added: some rows at a time, whose elements lie side by side.
    ///
    /// # Safety
    /// That of [`Columns::pack_left`].
    unsafe fn lines_of_left<K: Kernel, const FIRST: bool>(
        &self,
        component: u8,
        rows: &Range<usize>,
        terms: &Range<usize>,
        into: &mut [K::Word],
    ) {
        const GROUP: usize = 4;
        const { assert!(K::ROWS.is_multiple_of(GROUP)) };
        let depth = terms.len().next_multiple_of(K::TERMS);
        let row = |row: usize| {
            self.left_at::<K::Word>(row, component)
                .wrapping_add(terms.start)
        };
        for (line, first) in rows.clone().enumerate().step_by(GROUP) {
            let (panel, r) = (line / K::ROWS * K::LEFT * depth, line % K::ROWS);
            let lines = into[panel..][..K::ROWS * terms.len()].chunks_exact_mut(K::ROWS);
            let count = rows.end - first;
            if count >= GROUP {
                let from: [_; GROUP] = std::array::from_fn(|k| row(first + k));
                for (k, line) in lines.enumerate() {
                    for (to, from) in line[r..r + GROUP].iter_mut().zip(&from) {
                        // SAFETY: the caller's.
                        unsafe { put::<_, FIRST>(to, from.wrapping_add(k)) };
                    }
                }
            } else {
                for (k, line) in lines.enumerate() {
                    for (to, of) in line[r..r + count].iter_mut().zip(first..) {
                        // SAFETY: the caller's.
                        unsafe { put::<_, FIRST>(to, row(of).wrapping_add(k)) };
                    }
                }
            }
        }
    }

    /// The same of a matrix that is not transposed: a column is read at one go, and its rows go to panel after panel.
    ///
    /// # Safety
    /// That of [`Columns::pack_left`].
    unsafe fn columns_of_left<K: Kernel, const FIRST: bool>(
        &self,
        component: u8,
        rows: &Range<usize>,
        terms: &Range<usize>,
        into: &mut [K::Word],
    ) {
        let depth = terms.len().next_multiple_of(K::TERMS);
        for (at, k) in terms.clone().enumerate() {
            let column = self.left_at::<K::Word>(k, component);
            let panels = into.chunks_mut(K::LEFT * depth);
            for (first, panel) in rows.clone().step_by(K::ROWS).zip(panels) {
                let from = column.wrapping_add(first);
                let count = K::ROWS.min(rows.end - first);
                let to = &mut panel[at * K::ROWS..][..count];
                for (r, to) in to.iter_mut().enumerate() {
                    // SAFETY: the caller's.
                    unsafe { put::<_, FIRST>(to, from.wrapping_add(r)) };
                }
            }
        }
    }
}

/// Puts an element where it is the first one, or adds it.
///
/// # Safety
/// There is an element at `from`.
#[inline(always)]
unsafe fn put<W: Word, const FIRST: bool>(to: &mut W, from: *const W) {
    // SAFETY: the caller's.
    let word = unsafe { W::get(from) };
    *to = if FIRST { word } else { to.add(word) };
}
