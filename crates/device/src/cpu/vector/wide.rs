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
    unsafe fn zero() -> Self;
    /// Vectors that were just drawn.
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
    /// self + u0 (w0 + w1) + u1 w0, of components u at `a` and w at `b`, each so many bytes behind the one before.
    #[inline(always)]
    unsafe fn replicated(self, component: usize, a: At, b: At) -> Self {
        // SAFETY: the caller's addresses.
        unsafe {
            let [u0, u1] = components(component, a);
            let [w0, w1]: [Self; 2] = components(component, b);
            self.dot([(u0, w0.add(w1)), (u1, w0)])
        }
    }
    /// The sums and u1 (w1 + w2) + u2 w1, u0 (w0 + w1) + u1 w0, u0 w2 + u2 w0.
    #[inline(always)]
    unsafe fn fourfold(sums: [Self; 3], component: usize, a: At, b: At) -> [Self; 3] {
        // SAFETY: the caller's addresses.
        unsafe {
            let [u0, u1, u2] = components(component, a);
            let [w0, w1, w2]: [Self; 3] = components(component, b);
            [
                sums[0].dot([(u1, w1.add(w2)), (u2, w1)]),
                sums[1].dot([(u0, w0.add(w1)), (u1, w0)]),
                sums[2].dot([(u0, w2), (u2, w0)]),
            ]
        }
    }
}

/// A value of each of `N` components.
#[inline(always)]
unsafe fn components<V, W: Wide<V>, const N: usize>(component: usize, at: At) -> [W; N] {
    // SAFETY: the caller's addresses.
    unsafe {
        let mut values = [W::load(at); N];
        for k in 1..N {
            let by = k * component;
            values[k] = W::load([at[0].wrapping_add(by), at[1].wrapping_add(by)]);
        }
        values
    }
}

/// The elements of one vector in general registers.
#[derive(Clone, Copy)]
pub(crate) struct Scalars([u128; VECTOR / 16]);

impl<V: Vector> Wide<V> for Scalars {
    const VECTORS: usize = 1;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Scalars([0; VECTOR / 16])
    }
    #[inline(always)]
    unsafe fn of(vectors: [V; MOST_VECTORS]) -> Self {
        let mut bytes = [0u8; VECTOR];
        // SAFETY: a vector is as long.
        unsafe {
            vectors[0].store(bytes.as_mut_ptr());
            // By way of memory: the compiler would take each word out of the vector, by two instructions for the only port that has them.
            let bytes = std::hint::black_box(bytes.as_mut_ptr());
            <Self as Wide<V>>::load([bytes; MOST_VECTORS])
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
    // One element after the other: those of a whole value do not fit the registers.
    #[inline(always)]
    unsafe fn replicated(mut self, component: usize, a: At, b: At) -> Self {
        for k in 0..self.0.len() {
            // SAFETY: the caller's addresses.
            unsafe {
                let [u0, u1] = numbers(component, a, k);
                let [w0, w1] = numbers(component, b, k);
                let sum = u0.wrapping_mul(w0.wrapping_add(w1));
                self.0[k] = self.0[k].wrapping_add(sum.wrapping_add(u1.wrapping_mul(w0)));
            }
        }
        self
    }
    #[inline(always)]
    unsafe fn fourfold(mut sums: [Self; 3], component: usize, a: At, b: At) -> [Self; 3] {
        for k in 0..VECTOR / 16 {
            // SAFETY: the caller's addresses.
            unsafe {
                let [u0, u1, u2] = numbers(component, a, k);
                let [w0, w1, w2] = numbers(component, b, k);
                let first = u1.wrapping_mul(w1.wrapping_add(w2));
                let second = u0.wrapping_mul(w0.wrapping_add(w1));
                let sums_of = [
                    first.wrapping_add(u2.wrapping_mul(w1)),
                    second.wrapping_add(u1.wrapping_mul(w0)),
                    u0.wrapping_mul(w2).wrapping_add(u2.wrapping_mul(w0)),
                ];
                for (c, of) in sums_of.into_iter().enumerate() {
                    sums[c].0[k] = sums[c].0[k].wrapping_add(of);
                }
            }
        }
        sums
    }
}

/// Element `k` of each of `N` components.
#[inline(always)]
unsafe fn numbers<const N: usize>(component: usize, at: At, k: usize) -> [u128; N] {
    let mut numbers = [0; N];
    for c in 0..N {
        let from = at[0].wrapping_add(c * component + 16 * k);
        // SAFETY: the caller's addresses.
        numbers[c] = u128::from_le(unsafe { from.cast::<u128>().read_unaligned() });
    }
    numbers
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
