//! Columns to labels.

use zeroize::Zeroize;

use super::super::vector::{VECTOR, Vector};
use crate::ot::COLUMNS;

/// Labels that are made at once.
pub(super) const LABELS: usize = 8 * VECTOR;

/// Bits of 128 columns, which become as many labels.
pub(super) struct Tile {
    /// A vector of each column; then words of labels.
    words: [[u64; 8]; COLUMNS as usize],
    labels: [[u64; 2]; LABELS],
}

impl Tile {
    pub(super) fn new() -> Self {
        Tile {
            words: [[0; 8]; COLUMNS as usize],
            labels: [[0; 2]; LABELS],
        }
    }

    /// At most 64 bytes of a column; what lacks is zero.
    pub(super) fn column(&mut self, c: usize, bytes: &[u8]) {
        let mut padded = [0; VECTOR];
        padded[..bytes.len()].copy_from_slice(bytes);
        for (word, bytes) in self.words[c].iter_mut().zip(padded.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
    }

    /// The two words of label `k`, low one first, after [`Tile::turn`].
    pub(super) fn labels(&self) -> &[[u64; 2]; LABELS] {
        &self.labels
    }

    /// Bit j of column c becomes bit c of label j.
    ///
    /// # Safety
    /// `V`'s instruction set is enabled in the caller.
    #[inline(always)]
    pub(super) unsafe fn turn<V: Vector>(&mut self) {
        // SAFETY: the caller's instruction set.
        unsafe {
            for half in self.words.as_chunks_mut::<64>().0 {
                turn64::<V>(half);
            }
            let (low, high) = self.words.split_at(64);
            for j in (0..64).step_by(4) {
                let mut x = [[V::splat(0); 4]; 2];
                for i in 0..4 {
                    x[0][i] = V::load(low[j + i].as_ptr().cast());
                    x[1][i] = V::load(high[j + i].as_ptr().cast());
                }
                let out = V::interleave(x);
                for l in 0..8 {
                    let to = &mut self.labels[64 * l + j..][..4];
                    out[l].store(to.as_mut_ptr().cast());
                }
            }
        }
    }
}

impl Drop for Tile {
    fn drop(&mut self) {
        self.words.as_flattened_mut().zeroize();
        self.labels.as_flattened_mut().zeroize();
    }
}

/// Transposes eight squares of 64 × 64 bits at once (see `veil_math::transpose64`), three steps in registers at a time.
#[inline(always)]
unsafe fn turn64<V: Vector>(squares: &mut [[u64; 8]; 64]) {
    // SAFETY: the caller's instruction set.
    unsafe {
        for i in 0..8 {
            let mut x = [V::splat(0); 8];
            for k in 0..8 {
                x[k] = V::load(squares[i + 8 * k].as_ptr().cast());
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
                x[k].store(squares[i + 8 * k].as_mut_ptr().cast());
            }
        }
        for i in (0..64).step_by(8) {
            let mut x = [V::splat(0); 8];
            for k in 0..8 {
                x[k] = V::load(squares[i + k].as_ptr().cast());
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
            for k in 0..8 {
                x[k].store(squares[i + k].as_mut_ptr().cast());
            }
        }
    }
}

/// The upper half of the columns of `a` with the lower half of those of `b`.
#[inline(always)]
unsafe fn exchange<V: Vector, const HALF: u32>(x: &mut [V; 8], a: usize, b: usize, low: u64) {
    // SAFETY: the caller's instruction set.
    unsafe {
        let change = x[a].shift_right::<HALF>().xor(x[b]).and(V::splat(low));
        x[a] = x[a].xor(change.shift_left::<HALF>());
        x[b] = x[b].xor(change);
    }
}
