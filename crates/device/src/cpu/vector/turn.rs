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

/// Three steps, between words `A`, `B` and `C` apart, each half of the one before: of 32, 16 and 8 where vector k holds words 8 k to 8 k + 7 of
/// one square, or word 8 k + c of eight; of 4, 2 and 1 where it holds word 8 c + k of eight squares.
#[inline(always)]
pub(super) unsafe fn turn<W: Words, const A: u32, const B: u32, const C: u32>(x: &mut [W; 8]) {
    // SAFETY: the caller's instruction set.
    unsafe {
        for k in 0..4 {
            exchange::<W, A>(x, k, k + 4);
        }
        for k in [0, 1, 4, 5] {
            exchange::<W, B>(x, k, k + 2);
        }
        for k in [0, 2, 4, 6] {
            exchange::<W, C>(x, k, k + 1);
        }
    }
}

#[inline(always)]
unsafe fn exchange<W: Words, const HALF: u32>(x: &mut [W; 8], a: usize, b: usize) {
    // The lower half of every 2 HALF bits.
    let low = u64::MAX / ((1 << HALF) + 1);
    // SAFETY: the caller's instruction set.
    unsafe { (x[a], x[b]) = W::exchange::<HALF>(x[a], x[b], low) }
}
