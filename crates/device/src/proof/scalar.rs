//! The arithmetic of a proof, over the field of any Mersenne prime: products use 2^61 - 1, tests a small one.

use veil_math::Mersenne;
use zeroize::Zeroizing;

/// Numbers of a half of a gate.
pub(crate) const BASE: usize = 4;

/// What the numbers of one half are multiplied by: -2, 1, 1, -1/2.
const fn scales<const BITS: u32>(left: bool) -> [u64; BASE] {
    let p = Mersenne::<BITS>::P;
    if left {
        [p - 2, 1, 1, p - Mersenne::<BITS>::HALF]
    } else {
        [1; BASE]
    }
}

/// [`Mersenne::basis`] of as many places as a level or its share has.
pub(crate) fn basis<const BITS: u32>(places: usize, x: u64) -> Zeroizing<Vec<u64>> {
    Zeroizing::new(match places {
        4 => Mersenne::<BITS>::basis::<4>(x).to_vec(),
        7 => Mersenne::<BITS>::basis::<7>(x).to_vec(),
        8 => Mersenne::<BITS>::basis::<8>(x).to_vec(),
        15 => Mersenne::<BITS>::basis::<15>(x).to_vec(),
        _ => unreachable!("levels fold 4 or 8 values"),
    })
}

/// The polynomial with these values at 0, 1, 2, …, at `x`.
pub(crate) fn at<const BITS: u32>(values: &[u64], x: u64) -> u64 {
    Mersenne::<BITS>::dot(&basis::<BITS>(values.len(), x), values)
}

/// The values at 0, …, 2L - 2 of Σ p q, where `gram[i L + j]` is Σ p(i) q(j).
pub(crate) fn gram_values<const BITS: u32>(gram: &[u64], places: usize) -> Zeroizing<Vec<u64>> {
    type F<const B: u32> = Mersenne<B>;
    let value = |x: usize| {
        if x < places {
            return gram[x * places + x];
        }
        let basis = basis::<BITS>(places, x as u64);
        let row = |i: usize| F::<BITS>::dot(&gram[i * places..][..places], &basis);
        (0..places).fold(0, |sum, i| {
            F::<BITS>::add(sum, F::<BITS>::mul(basis[i], row(i)))
        })
    };
    Zeroizing::new((0..2 * places - 1).map(value).collect())
}

/// Σ p(i) q(j) over the gates, of the four numbers of each, from the counts.
pub(crate) fn first_gram<const BITS: u32>(counts: &[u64]) -> Zeroizing<Vec<u64>> {
    type F<const B: u32> = Mersenne<B>;
    let scale = scales::<BITS>(true);
    let entry = |at: usize| {
        let sum = (0..BASE).fold(0, |sum, quarter| {
            F::<BITS>::add(sum, counts[(quarter * BASE + quarter) * BASE * BASE + at])
        });
        F::<BITS>::mul(scale[at / BASE], sum)
    };
    Zeroizing::new((0..BASE * BASE).map(entry).collect())
}

/// The same of gates of four quarters, folded at `r`.
pub(crate) fn second_gram<const BITS: u32>(counts: &[u64], r: u64) -> Zeroizing<Vec<u64>> {
    type F<const B: u32> = Mersenne<B>;
    let (left, right) = (folded::<BITS>(true, r), folded::<BITS>(false, r));
    let entry = |pair: usize| {
        let counts = &counts[pair * BASE * BASE..][..BASE * BASE];
        (0..BASE).fold(0, |sum, k| {
            let row = F::<BITS>::dot(&counts[k * BASE..][..BASE], &right);
            F::<BITS>::add(sum, F::<BITS>::mul(left[k], row))
        })
    };
    Zeroizing::new((0..BASE * BASE).map(entry).collect())
}

/// The coefficients of a gate's four numbers in its value after the first level.
fn folded<const BITS: u32>(left: bool, r: u64) -> Zeroizing<Vec<u64>> {
    let (basis, scales) = (basis::<BITS>(BASE, r), scales::<BITS>(left));
    let scaled = basis.iter().zip(scales);
    Zeroizing::new(scaled.map(|(b, s)| Mersenne::<BITS>::mul(*b, s)).collect())
}

/// What a gate of each quarter adds to a value after the first two levels.
///
/// `quarters[i]` are coefficients of x y, y, x and 1, all to be negated if s is set.
pub(crate) struct Table {
    pub(crate) quarters: Zeroizing<[[u64; BASE]; BASE]>,
}

impl Table {
    pub(crate) fn new<const BITS: u32>(left: bool, challenges: [u64; 2]) -> Self {
        let inner = folded::<BITS>(left, challenges[0]);
        let outer = basis::<BITS>(BASE, challenges[1]);
        let mut quarters = Zeroizing::new([[0; BASE]; BASE]);
        for (quarter, outer) in quarters.iter_mut().zip(outer.iter()) {
            for (coefficient, inner) in quarter.iter_mut().zip(inner.iter()) {
                *coefficient = Mersenne::<BITS>::mul(*inner, *outer);
            }
        }
        Table { quarters }
    }

    /// The value of a gate of a quarter. No branch depends on its bits.
    pub(crate) fn value<const BITS: u32>(&self, quarter: usize, [x, y, s]: [u64; 3]) -> u64 {
        type F<const B: u32> = Mersenne<B>;
        let [xy, of_y, of_x, one] = self.quarters[quarter];
        let mut value = one;
        for (coefficient, bit) in [(xy, x & y), (of_y, y), (of_x, x)] {
            value = F::<BITS>::add(value, coefficient & bit.wrapping_neg());
        }
        let negated = F::<BITS>::sub(0, value);
        value ^ ((value ^ negated) & s.wrapping_neg())
    }
}

/// Σ p(i) q(j) over the pieces of two vectors.
pub(crate) fn gram_of<const BITS: u32>(a: &[u64], b: &[u64], places: usize) -> Zeroizing<Vec<u64>> {
    let n = a.len().div_ceil(places);
    let piece = |v: &[u64], i: usize| -> Zeroizing<Vec<u64>> {
        let value = |j: usize| v.get(i * n + j).copied().unwrap_or(0);
        Zeroizing::new((0..n).map(value).collect())
    };
    let entry = |at: usize| Mersenne::<BITS>::dot(&piece(a, at / places), &piece(b, at % places));
    Zeroizing::new((0..places * places).map(entry).collect())
}

/// Every piece's polynomial, of which `basis` says the place, at the beginning of the vector.
pub(crate) fn fold_at<const BITS: u32>(vector: &mut [u64], basis: &[u64]) {
    type F<const B: u32> = Mersenne<B>;
    let n = vector.len().div_ceil(basis.len());
    for j in 0..n {
        let piece = basis.iter().enumerate();
        vector[j] = piece.fold(0, |sum, (i, b)| {
            let value = vector.get(i * n + j).copied().unwrap_or(0);
            F::<BITS>::add(sum, F::<BITS>::mul(*b, value))
        });
    }
}

/// The piece of the last level: what is left, zeros, and a mask in the last place.
pub(crate) fn masked(vector: &[u64], places: usize, mask: u64) -> Zeroizing<Vec<u64>> {
    let mut piece = Zeroizing::new(vec![0; places]);
    piece[..vector.len()].copy_from_slice(vector);
    piece[places - 1] = mask;
    piece
}

/// What the sum of a share lacks to the claim, and the next claim.
pub(crate) fn verify<const BITS: u32>(claim: u64, share: &[u64], r: u64, last: bool) -> [u64; 2] {
    let places = share.len().div_ceil(2) - usize::from(last);
    let sum = Mersenne::<BITS>::sum(&share[..places]);
    [Mersenne::<BITS>::sub(claim, sum), at::<BITS>(share, r)]
}

/// Whether both verifiers' records fit. In constant time: their differences are not to be learned from how long it takes.
pub(crate) fn accepts<const BITS: u32>(mine: &[u64], theirs: &[u64]) -> bool {
    type F<const B: u32> = Mersenne<B>;
    let differences = mine.len() - 2;
    let sum = |k: usize| F::<BITS>::add(mine[k], theirs[k]);
    let wrong = (0..differences).fold(0, |wrong, k| wrong | sum(k));
    let product = F::<BITS>::mul(mine[differences], theirs[differences]);
    wrong | F::<BITS>::sub(product, sum(differences + 1)) == 0
}

/// [`gram_of`] the elements that proofs are over.
pub(crate) fn gram(a: &[u64], b: &[u64], places: usize) -> Zeroizing<Vec<u64>> {
    gram_of::<61>(a, b, places)
}

/// [`fold_at`] of the elements that proofs are over.
pub(crate) fn fold(vector: &mut [u64], basis: &[u64]) {
    fold_at::<61>(vector, basis);
}

/// [`basis`] of the elements that proofs are over.
pub(crate) fn basis_of(places: usize, x: u64) -> Zeroizing<Vec<u64>> {
    basis::<61>(places, x)
}
