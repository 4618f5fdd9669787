//! Columns to labels.

use super::super::vector::{VECTOR, Vector};
use crate::ot::COLUMNS;

/// Labels that are made at once.
pub(super) const LABELS: usize = 8 * VECTOR;

/// A vector of each column.
pub(super) type Words = [[u64; 8]; COLUMNS as usize];

/// Where columns are.
#[derive(Clone, Copy)]
pub(super) struct From {
    /// What has bit 0.
    pub(super) lowest: *const u8,
    /// Column 0, of which nothing is read unless it is that.
    pub(super) columns: *const u8,
    /// Bytes from a column to the next one.
    pub(super) stride: usize,
}

/// Bit j of column c becomes bit c of label j, for 512 labels of 16 bytes; `words` are overwritten.
///
/// # Safety
/// `V`'s instruction set is enabled in the caller; a vector of each of 128 columns can be read, and all labels written.
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector>(words: &mut Words, from: From, to: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        // Eight squares of 64 × 64 bits at once, for each half of the columns: columns 8, 16 and 32 apart.
        for first in (0..8).chain(64..72) {
            let mut x = [V::splat(0); 8];
            for k in 0..8 {
                let c = first + 8 * k;
                x[k] = V::load(if c == 0 {
                    from.lowest
                } else {
                    from.columns.add(c * from.stride)
                });
            }
            V::turn::<32, 16, 8>(&mut x);
            for k in 0..8 {
                x[k].store(words[first + 8 * k].as_mut_ptr().cast());
            }
        }
        // Then 1, 2 and 4 apart; word l of vector j is bits of label 64 l + j, low half or high half.
        for j in (0..64).step_by(8) {
            let low = neighbours::<V>(words, j);
            let high = neighbours::<V>(words, 64 + j);
            for k in [0, 4] {
                let halves = [
                    [low[k], low[k + 1], low[k + 2], low[k + 3]],
                    [high[k], high[k + 1], high[k + 2], high[k + 3]],
                ];
                let out = V::interleave(halves);
                for l in 0..8 {
                    out[l].store(to.add(16 * (64 * l + j + k)));
                }
            }
        }
    }
}

/// The last three steps on eight vectors from `first` on.
#[inline(always)]
unsafe fn neighbours<V: Vector>(words: &Words, first: usize) -> [V; 8] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut x = [V::splat(0); 8];
        for k in 0..8 {
            x[k] = V::load(words[first + k].as_ptr().cast());
        }
        V::turn::<4, 2, 1>(&mut x);
        x
    }
}
