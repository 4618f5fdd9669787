//! Squares of 64 × 64 bits, turned eight at once: one in each word of a vector, or one in eight vectors.
//!
//! Bit j of word i becomes bit i of word j in six steps, which exchange halves of ever smaller blocks (see `veil_math::transpose64`).

use super::Vector;

/// Words of 64 bits, side by side.
///
/// # Safety
/// As of [`Vector`].
pub(super) trait Words: Copy {
    /// The upper half of the columns of `a`, shifted down by `HALF`, with the lower half of those of `b`, which `low` selects.
    unsafe fn exchange<const HALF: u32>(a: Self, b: Self, low: u64) -> (Self, Self);
}

impl<V: Vector> Words for V {
    #[inline(always)]
    unsafe fn exchange<const HALF: u32>(a: Self, b: Self, low: u64) -> (Self, Self) {
        // SAFETY: the caller's instruction set.
        unsafe {
            let change = a.shift_right::<HALF>().xor(b).and(V::splat(low));
            (a.xor(change.shift_left::<HALF>()), b.xor(change))
        }
    }
}

/// The steps between words 32, 16 and 8 apart: vector k holds words 8 k to 8 k + 7 of one square, or word 8 k + c of eight.
#[inline(always)]
pub(super) unsafe fn far<W: Words>(x: &mut [W; 8]) {
    // SAFETY: the caller's instruction set.
    unsafe {
        for k in 0..4 {
            exchange::<W, 32>(x, k, k + 4, 0x0000_0000_ffff_ffff);
        }
        for k in [0, 1, 4, 5] {
            exchange::<W, 16>(x, k, k + 2, 0x0000_ffff_0000_ffff);
        }
        for k in [0, 2, 4, 6] {
            exchange::<W, 8>(x, k, k + 1, 0x00ff_00ff_00ff_00ff);
        }
    }
}

/// The steps between words 4, 2 and 1 apart: vector k holds word 8 c + k of eight squares.
#[inline(always)]
pub(super) unsafe fn near<W: Words>(x: &mut [W; 8]) {
    // SAFETY: the caller's instruction set.
    unsafe {
        for k in 0..4 {
            exchange::<W, 4>(x, k, k + 4, 0x0f0f_0f0f_0f0f_0f0f);
        }
        for k in [0, 1, 4, 5] {
            exchange::<W, 2>(x, k, k + 2, 0x3333_3333_3333_3333);
        }
        for k in [0, 2, 4, 6] {
            exchange::<W, 1>(x, k, k + 1, 0x5555_5555_5555_5555);
        }
    }
}

#[inline(always)]
unsafe fn exchange<W: Words, const HALF: u32>(x: &mut [W; 8], a: usize, b: usize, low: u64) {
    // SAFETY: the caller's instruction set.
    unsafe { (x[a], x[b]) = W::exchange::<HALF>(x[a], x[b], low) }
}
