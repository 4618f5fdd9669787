//! Elements of Z_2^128, which no instruction set has, as many at once as it likes to work on.

#![allow(
    clippy::cast_ptr_alignment,
    reason = "addresses are read and written without alignment"
)]

use super::{VECTOR, Vector};

/// Most vectors that are worked on at once.
pub(crate) const MOST_VECTORS: usize = 2;

/// Where these vectors are. Those beyond [`Wide::VECTORS`] are not looked at.
pub(crate) type At = [*mut u8; MOST_VECTORS];

/// The elements of [`Wide::VECTORS`] vectors.
///
/// # Safety
/// As of [`Vector`]; `load` and `store` touch the 64 bytes at each address that counts.
pub(crate) trait Wide<V>: Copy {
    /// Vectors that it takes the elements of: one or two.
    const VECTORS: usize;
    unsafe fn of(vectors: [V; MOST_VECTORS]) -> Self;
    unsafe fn load(from: At) -> Self;
    unsafe fn store(self, to: At);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    /// self + Σ a · b.
    unsafe fn dot<const N: usize>(self, pairs: [(Self, Self); N]) -> Self;
}

/// The elements of one vector in general registers.
#[derive(Clone, Copy)]
pub(crate) struct Scalars([u128; VECTOR / 16]);

impl Scalars {
    #[inline(always)]
    fn zip(mut self, other: Self, f: impl Fn(u128, u128) -> u128) -> Self {
        for k in 0..self.0.len() {
            self.0[k] = f(self.0[k], other.0[k]);
        }
        self
    }
}

impl<V: Vector> Wide<V> for Scalars {
    const VECTORS: usize = 1;

    #[inline(always)]
    unsafe fn of(vectors: [V; MOST_VECTORS]) -> Self {
        let mut bytes = [0u8; VECTOR];
        // SAFETY: a vector is as long.
        unsafe {
            vectors[0].store(bytes.as_mut_ptr());
            <Self as Wide<V>>::load([bytes.as_mut_ptr(); MOST_VECTORS])
        }
    }
    #[inline(always)]
    unsafe fn load(from: At) -> Self {
        // SAFETY: 64 bytes are readable, by the trait's contract; any bytes are an array of numbers.
        let elements: [u128; VECTOR / 16] = unsafe { from[0].cast::<[u128; 4]>().read_unaligned() };
        Scalars(elements.map(u128::from_le))
    }
    #[inline(always)]
    unsafe fn store(self, to: At) {
        let elements = self.0.map(u128::to_le);
        // SAFETY: 64 bytes are writable, by the trait's contract.
        unsafe { to[0].cast::<[u128; 4]>().write_unaligned(elements) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, u128::wrapping_add)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, u128::wrapping_sub)
    }
    #[inline(always)]
    unsafe fn dot<const N: usize>(mut self, pairs: [(Self, Self); N]) -> Self {
        for k in 0..self.0.len() {
            for (a, b) in &pairs {
                self.0[k] = self.0[k].wrapping_add(a.0[k].wrapping_mul(b.0[k]));
            }
        }
        self
    }
}
