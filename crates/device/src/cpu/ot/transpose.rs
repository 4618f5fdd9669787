//! Columns to labels.

use super::super::vector::{VECTOR, Vector};
use crate::ot::COLUMNS;

/// Labels that are made at once.
pub(super) const LABELS: usize = 8 * VECTOR;

/// A vector of each column.
pub(super) type Words = [[u64; 8]; COLUMNS as usize];

/// Bit j of column c becomes bit c of label j, for 512 labels of 16 bytes. `from` is where the first column is, and how many bytes the next one
/// is behind it; `words` are overwritten.
///
/// # Safety
/// `V`'s instruction set is enabled in the caller; a vector of each of 128 columns can be read, and all labels written.
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector>(
    words: &mut Words,
    from: (*const u8, usize),
    to: *mut u8,
) {
    // SAFETY: the caller's.
    unsafe {
        // Eight squares of 64 × 64 bits at once, for each half of the columns: columns 8, 16 and 32 apart.
        for first in (0..8).chain(64..72) {
            let mut x = [V::splat(0); 8];
            for k in 0..8 {
                x[k] = V::load(from.0.add((first + 8 * k) * from.1));
            }
            for k in 0..4 {
                exchange::<V, 32>(&mut x, k, k + 4, 0x0000_0000_ffff_ffff);
            }
            for k in [0, 1, 4, 5] {
                exchange::<V, 16>(&mut x, k, k + 2, 0x0000_ffff_0000_ffff);
            }
            for k in [0, 2, 4, 6] {
                exchange::<V, 8>(&mut x, k, k + 1, 0x00ff_00ff_00ff_00ff);
            }
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
        for k in 0..4 {
            exchange::<V, 4>(&mut x, k, k + 4, 0x0f0f_0f0f_0f0f_0f0f);
        }
        for k in [0, 1, 4, 5] {
            exchange::<V, 2>(&mut x, k, k + 2, 0x3333_3333_3333_3333);
        }
        for k in [0, 2, 4, 6] {
            exchange::<V, 1>(&mut x, k, k + 1, 0x5555_5555_5555_5555);
        }
        x
    }
}

/// A step of the transposition (see `veil_math::transpose64`): the upper half of the columns of `a` with the lower half of those of `b`.
#[inline(always)]
unsafe fn exchange<V: Vector, const HALF: u32>(x: &mut [V; 8], a: usize, b: usize, low: u64) {
    // SAFETY: the caller's instruction set.
    unsafe {
        let change = x[a].shift_right::<HALF>().xor(x[b]).and(V::splat(low));
        x[a] = x[a].xor(change.shift_left::<HALF>());
        x[b] = x[b].xor(change);
    }
}
