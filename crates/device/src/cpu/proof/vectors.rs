//! Later levels: vectors of elements.

use zeroize::Zeroizing;

use super::expand::{finish, pair_products};
use super::gates::load;
use super::multiply::{Multiply, Sums};
use super::{LANES, Register, pairs};

/// Most values that are folded into one.
const MOST: usize = 8;

/// Values `at` to `at` + 7 of those at a place, which are `n`.
#[inline(always)]
fn piece(vector: &[u64], n: usize, place: usize, at: usize) -> Register {
    let end = ((place + 1) * n).min(vector.len());
    load(&vector[(place * n + at).min(end)..end])
}

/// As [`crate::proof::pair_sums`].
#[inline(always)]
pub(super) fn pair_sums<M: Multiply>(a: &[u64], b: &[u64], places: usize, out: &mut [u64]) {
    let n = a.len().div_ceil(places);
    let mut sums = Zeroizing::new([[0; LANES]; pairs(MOST)]);
    for at in (0..n).step_by(LANES) {
        let (mut left, mut right) = ([[0; LANES]; MOST], [[0; LANES]; MOST]);
        for place in 0..places {
            left[place] = piece(a, n, place, at);
            right[place] = piece(b, n, place, at);
        }
        pair_products::<M>(&left[..places], &right[..places], &mut *sums);
    }
    finish(&sums[..pairs(places)], places, out);
}

/// As [`crate::proof::fold`].
#[inline(always)]
pub(super) fn fold<M: Multiply>(vector: &mut [u64], basis: &[u64]) {
    let n = vector.len().div_ceil(basis.len());
    for at in (0..n).step_by(LANES) {
        let mut sum = Sums::ZERO;
        for (place, basis) in basis.iter().enumerate() {
            let values = piece(vector, n, place, at);
            sum.add(M::products(values, [*basis; LANES]));
        }
        let folded = M::reduce(sum);
        let count = (n - at).min(LANES);
        vector[at..at + count].copy_from_slice(&folded[..count]);
    }
}
