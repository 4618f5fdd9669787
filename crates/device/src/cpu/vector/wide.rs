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
    /// As many elements of Z_2^64, from 0 on, one after the other.
    #[inline(always)]
    unsafe fn load_narrow(from: *const u8) -> Self {
        let mut elements = [0u128; MOST_VECTORS * VECTOR / 16];
        for k in 0..Self::VECTORS * VECTOR / 16 {
            // SAFETY: half as many bytes are readable as of elements.
            let word = unsafe { from.add(8 * k).cast::<u64>().read_unaligned() };
            elements[k] = u128::from(u64::from_le(word)).to_le();
        }
        let first = elements.as_mut_ptr().cast::<u8>();
        // SAFETY: the array has room for all vectors.
        unsafe { Self::load([first, first.wrapping_add(VECTOR)]) }
    }
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    /// self + Σ a · b.
    unsafe fn dot<const N: usize>(self, pairs: [(Self, Self); N]) -> Self;
}

/// The elements of one vector in general registers.
#[derive(Clone, Copy)]
pub(crate) struct Scalars([u128; VECTOR / 16]);

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
        let mut elements: [u128; VECTOR / 16] =
            unsafe { from[0].cast::<[u128; 4]>().read_unaligned() };
        for k in 0..elements.len() {
            elements[k] = u128::from_le(elements[k]);
        }
        Scalars(elements)
    }
    #[inline(always)]
    unsafe fn store(self, to: At) {
        let mut elements = self.0;
        for k in 0..elements.len() {
            elements[k] = elements[k].to_le();
        }
        // SAFETY: 64 bytes are writable, by the trait's contract.
        unsafe { to[0].cast::<[u128; 4]>().write_unaligned(elements) }
    }
    #[inline(always)]
    unsafe fn add(mut self, other: Self) -> Self {
        for k in 0..self.0.len() {
            self.0[k] = self.0[k].wrapping_add(other.0[k]);
        }
        self
    }
    #[inline(always)]
    unsafe fn sub(mut self, other: Self) -> Self {
        for k in 0..self.0.len() {
            self.0[k] = self.0[k].wrapping_sub(other.0[k]);
        }
        self
    }
    #[inline(always)]
    unsafe fn dot<const N: usize>(mut self, pairs: [(Self, Self); N]) -> Self {
        for k in 0..self.0.len() {
            for n in 0..N {
                let product = pairs[n].0.0[k].wrapping_mul(pairs[n].1.0[k]);
                self.0[k] = self.0[k].wrapping_add(product);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::Portable;
    use super::*;

    /// Instruction sets with elements in vectors alone use it.
    #[test]
    fn narrow_elements_have_no_upper_words() {
        let words: [u64; 4] = [0, 1, u64::MAX, 0x0123_4567_89ab_cdef];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // SAFETY: one vector of four elements, which any machine has.
        let elements = unsafe { <Scalars as Wide<Portable>>::load_narrow(bytes.as_ptr()) };
        assert_eq!(elements.0, words.map(u128::from));
    }
}
