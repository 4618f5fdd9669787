//! Later levels: vectors of elements.

use zeroize::Zeroizing;

use super::expand::{finish, pair_products, put};
use super::gates::load;
use super::lanes::{LANES, Lanes, Register};
use crate::proof::pairs;

/// Most values that are folded into one.
const MOST: usize = 8;

/// Values `at` to `at` + 7 of those at a place, which are `n`.
#[inline(always)]
fn piece<L: Lanes>(vector: &[u64], n: usize, place: usize, at: usize) -> L {
    let end = ((place + 1) * n).min(vector.len());
    load(&vector[(place * n + at).min(end)..end])
}

/// As [`crate::proof::pair_sums`].
#[inline(always)]
pub(super) fn pair_sums<L: Lanes>(a: &[u64], b: &[u64], places: usize, out: &mut [u64]) {
    let n = a.len().div_ceil(places);
    let mut sums = Zeroizing::new([Register::ZERO; pairs(MOST)]);
    let mut all = [L::zero(); pairs(MOST)];
    let mut at = 0;
    while at < n {
        let (mut left, mut right) = ([L::zero(); MOST], [L::zero(); MOST]);
        for place in 0..places {
            left[place] = piece(a, n, place, at);
            right[place] = piece(b, n, place, at);
        }
        pair_products(&left[..places], &right[..places], &mut all);
        at += LANES;
    }
    for k in 0..pairs(MOST) {
        all[k].store(&mut sums[k].0);
    }
    finish(&sums[..pairs(places)], places, out);
}

/// As [`crate::proof::fold`].
#[inline(always)]
pub(super) fn fold<L: Lanes>(vector: &mut [u64], basis: &[u64]) {
    let n = vector.len().div_ceil(basis.len());
    let mut at = 0;
    while at < n {
        let mut sum = [L::zero(); 2];
        for place in 0..basis.len() {
            let values: L = piece(vector, n, place, at);
            let [even, odd] = values.products(L::splat(basis[place]));
            sum = [sum[0].xor(even), sum[1].xor(odd)];
        }
        let count = (n - at).min(LANES);
        put(L::reduce(sum), &mut vector[at..][..count]);
        at += LANES;
    }
}
