//! The arithmetic of a proof over elements, in order.

use veil_math::Gf64;
use veil_prss::{DomainTag, Prf};
use veil_session::{Frame, Secret};
use zeroize::Zeroizing;

use super::{PIECES, factor};

/// [`Gf64::basis`], wiped.
pub(crate) fn basis(places: u32, x: u64) -> Zeroizing<Vec<u64>> {
    Zeroizing::new(Gf64::basis(places, x))
}

/// The keys of word positions 0, …, n - 1: halves of blocks under the seed.
pub(crate) fn weights(seed: &Secret, frame: Frame, n: usize) -> Zeroizing<Vec<u64>> {
    draws(seed, DomainTag::DZKP_THETA, frame, n)
}

/// Elements 0, …, n - 1: halves of blocks under a seed.
pub(crate) fn draws(seed: &Secret, tag: DomainTag, frame: Frame, n: usize) -> Zeroizing<Vec<u64>> {
    let prf = Prf::new(seed);
    let mut keys = Zeroizing::new(Vec::with_capacity(n.next_multiple_of(2)));
    for counter in 0..n.div_ceil(2) as u64 {
        let block = Zeroizing::new(prf.block(tag, frame.lane, counter, frame.chunk));
        let (halves, _) = block.as_chunks::<8>();
        keys.extend(halves.iter().map(|half| u64::from_le_bytes(*half)));
    }
    keys.truncate(n);
    keys
}

/// Pairs of so many places, each of two or of one with itself.
pub(crate) const fn pairs(places: usize) -> usize {
    places * (places + 1) / 2
}

/// Where in [`pair_sums`] the pair of two places is, in either order.
pub(crate) const fn pair_of(places: usize, i: usize, j: usize) -> usize {
    let (i, j) = if i < j { (i, j) } else { (j, i) };
    // Rows of the upper triangle before: places, places - 1, …
    i * places - i * i.saturating_sub(1) / 2 - i + j
}

/// Σ p(i) q(j) + p(j) q(i) over the positions of two vectors, i < j, and Σ p(i) q(i): rows of the upper triangle, one after the other.
pub(crate) fn pair_sums(a: &[u64], b: &[u64], places: usize) -> Zeroizing<Vec<u64>> {
    let n = a.len().div_ceil(places);
    let value = |v: &[u64], i: usize, at: usize| v.get(i * n + at).copied().unwrap_or(0);
    let mut sums = Zeroizing::new(vec![0; pairs(places)]);
    for i in 0..places {
        for j in 0..places {
            let sum = &mut sums[pair_of(places, i, j)];
            for at in 0..n {
                *sum ^= Gf64::mul(value(a, i, at), value(b, j, at));
            }
        }
    }
    sums
}

/// The values of Σ p q that are shared at a level, of which [`pair_sums`] are given.
pub(crate) fn share_of(level: u32, sums: &[u64]) -> Zeroizing<Vec<u64>> {
    let places = factor(level);
    // Claims are the others.
    let from = if level == 1 { places } else { 1 };
    let value = |x: u32| {
        let basis = basis(places, x.into());
        let mut sums = sums;
        let mut sum = 0;
        for i in 0..basis.len() {
            let (row, rest) = sums.split_at(basis.len() - i);
            sums = rest;
            let row = Gf64::dot(row, &basis[i..]);
            sum ^= Gf64::product(basis[i], row);
        }
        Gf64::reduce(sum)
    };
    Zeroizing::new((from..=2 * places - 2).map(value).collect())
}

/// Every position's polynomial, of which `basis` says the place, at the beginning of the vector.
pub(crate) fn fold(vector: &mut [u64], basis: &[u64]) {
    let n = vector.len().div_ceil(basis.len());
    for j in 0..n {
        let values = basis.iter().enumerate();
        vector[j] = values.fold(0, |sum, (i, b)| {
            let value = vector.get(i * n + j).copied().unwrap_or(0);
            sum ^ Gf64::mul(*b, value)
        });
    }
}

/// The values of the last level: what is left, zeros, and a mask in the last place.
pub(crate) fn masked(vector: &[u64], places: usize, mask: u64) -> Zeroizing<Vec<u64>> {
    let mut values = Zeroizing::new(vec![0; places]);
    values[..vector.len()].copy_from_slice(vector);
    values[places - 1] = mask;
    values
}

/// The polynomial of a level at `r`, by what a verifier has of it: claims of all pieces, or one of the sum over the first places, and its
/// share of the other values. At the last level the last place is not of the sum.
pub(crate) fn verify(claims: &[u64], share: &[u64], r: u64, last: bool) -> u64 {
    let mut values = Zeroizing::new(Vec::with_capacity(2 * PIECES as usize));
    if let [claim] = claims {
        let summed = share.len() / 2 - usize::from(last);
        values.push(claim ^ Gf64::sum(&share[..summed]));
    } else {
        values.extend_from_slice(claims);
    }
    values.extend_from_slice(share);
    Gf64::dot(&basis(values.len() as u32, r), &values)
}

/// Whether both verifiers' findings fit. In constant time: their difference is not to be learned from how long it takes.
pub(crate) fn accepts(mine: &[u64], theirs: &[u64]) -> bool {
    Gf64::mul(mine[0], theirs[0]) ^ mine[1] ^ theirs[1] == 0
}
