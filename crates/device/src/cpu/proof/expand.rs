//! From bits to elements: the polynomials of all positions at the challenge of the first level, with weights.

use zeroize::Zeroizing;

use super::gates::Gates;
use super::multiply::{Multiply, Sums, element, times_x, xor};
use super::{LANES, Register, pairs};
use crate::proof::{self, PIECES, Side, WORD, factor};

/// Bits of a word, and of an element.
const BITS: usize = WORD as usize;

/// Pieces that are looked up together.
const GROUP: usize = 4;
const GROUPS: usize = PIECES as usize / GROUP;

/// Eight words of a side as elements: those of bit b of the words, for a or b and for c or d.
type Expanded = [[Register; BITS]; 2];

/// What the bits of a group of pieces can add up to, 16 sums for each.
type Sixteen = [[Register; 1 << GROUP]; GROUPS];

/// What is needed on the way.
struct Scratch {
    groups: Box<Sixteen>,
    left: Box<Expanded>,
    right: Box<Expanded>,
}

impl Scratch {
    fn new() -> Zeroizing<Self> {
        let expanded = || Box::new([[[0; LANES]; BITS]; 2]);
        Zeroizing::new(Scratch {
            groups: Box::new([[[0; LANES]; 1 << GROUP]; GROUPS]),
            left: expanded(),
            right: expanded(),
        })
    }
}

impl zeroize::Zeroize for Scratch {
    fn zeroize(&mut self) {
        self.groups.zeroize();
        self.left.zeroize();
        self.right.zeroize();
    }
}

/// For each bit of an element, the pieces that are added up for it: of each group a bit for each piece. By the challenge alone.
struct Choice(Zeroizing<[[u8; GROUPS]; BITS]>);

impl Choice {
    fn new(r: u64) -> Self {
        let basis = proof::basis(PIECES, r);
        let mut choice = Zeroizing::new([[0; GROUPS]; BITS]);
        for (bit, groups) in choice.iter_mut().enumerate() {
            for (group, basis) in groups.iter_mut().zip(basis.chunks_exact(GROUP)) {
                for (k, basis) in basis.iter().enumerate() {
                    *group |= ((basis >> bit & 1) as u8) << k;
                }
            }
        }
        Choice(choice)
    }
}

/// Elements of words `first` to `first` + 7.
#[inline(always)]
fn elements(
    gates: &Gates<'_>,
    side: Side,
    choice: &Choice,
    first: usize,
    (groups, out): (&mut Sixteen, &mut Expanded),
) {
    let mut places = [gates.place(0, first); PIECES as usize];
    for (piece, place) in places.iter_mut().enumerate().skip(1) {
        *place = gates.place(piece, first);
    }
    for (half, out) in out.iter_mut().enumerate() {
        for (sums, places) in groups.iter_mut().zip(places.as_chunks::<GROUP>().0) {
            sums[0] = [0; LANES];
            for (k, place) in places.iter().enumerate() {
                let word = gates.factors(side, place)[half];
                for before in 0..1 << k {
                    sums[1 << k | before] = xor(sums[before], word);
                }
            }
        }
        for (out, choice) in out.iter_mut().zip(choice.0.iter()) {
            let mut sum = [0; LANES];
            for (sums, choice) in groups.iter().zip(choice) {
                sum = xor(sum, sums[usize::from(*choice) % (1 << GROUP)]);
            }
            *out = sum;
        }
        turn(out);
    }
}

/// In each lane, bit b of register i becomes bit i of register b.
#[inline(always)]
fn turn(square: &mut [Register; BITS]) {
    let mut mask = u64::MAX >> (BITS / 2);
    let mut distance = BITS / 2;
    while distance > 0 {
        for block in (0..BITS).step_by(2 * distance) {
            for k in block..block + distance {
                let (mut low, mut high) = (square[k], square[k + distance]);
                for lane in 0..LANES {
                    let (a, b) = (low[lane], high[lane]);
                    low[lane] = a & mask | (b & mask) << distance;
                    high[lane] = (a >> distance) & mask | b & !mask;
                }
                (square[k], square[k + distance]) = (low, high);
            }
        }
        distance /= 2;
        mask ^= mask << distance;
    }
}

/// Weights of the quarters of a vector that a side's elements are in, of bits 0 and 32 of eight words, times `by`.
struct Weights([Register; 4]);

impl Weights {
    #[inline(always)]
    fn new<M: Multiply>(gates: &Gates<'_>, side: Side, first: usize, by: [u64; 4]) -> Self {
        let mut weights = by.map(|by| [by; LANES]);
        if side.is_left() {
            let keys = gates.keys(first);
            for (quarter, weight) in weights.iter_mut().enumerate() {
                // x^32 of the upper half of the bits.
                let power = 1 << (BITS / 2 * (quarter % 2));
                let key = M::multiply(keys, [power; LANES]);
                *weight = M::multiply(*weight, key);
            }
        }
        Weights(weights)
    }

    /// Those of the next bits.
    #[inline(always)]
    fn next(&mut self, side: Side) {
        if side.is_left() {
            for weight in &mut self.0 {
                *weight = times_x(*weight);
            }
        }
    }
}

/// Elements of one position of each quarter.
#[inline(always)]
fn quarters(of: &Expanded, bit: usize) -> [Register; 4] {
    [
        of[0][bit],
        of[0][bit + BITS / 2],
        of[1][bit],
        of[1][bit + BITS / 2],
    ]
}

/// Sums of pairs of quarters, at the second level: `r` is the challenge of the first.
#[inline(always)]
pub(super) fn sums<M: Multiply>(gates: &Gates<'_>, r: u64, out: &mut [u64; pairs(4)]) {
    let choice = Choice::new(r);
    let mut scratch = Scratch::new();
    let Scratch {
        groups,
        left,
        right,
    } = &mut *scratch;
    let mut sums = Zeroizing::new([[0; LANES]; pairs(4)]);
    for first in (0..gates.words()).step_by(LANES) {
        elements(gates, Side::OwnNext, &choice, first, (groups, left));
        elements(gates, Side::OwnPrevious, &choice, first, (groups, right));
        let mut weights = Weights::new::<M>(gates, Side::OwnNext, first, [1; 4]);
        for bit in 0..BITS / 2 {
            let (mut a, b) = (quarters(left, bit), quarters(right, bit));
            for (a, weight) in a.iter_mut().zip(weights.0) {
                *a = M::multiply(*a, weight);
            }
            pair_products::<M>(&a, &b, &mut *sums);
            weights.next(Side::OwnNext);
        }
    }
    finish(&*sums, 4, out);
}

/// Adds the products of each pair of places: those of both sums where there are two places.
#[inline(always)]
pub(super) fn pair_products<M: Multiply>(a: &[Register], b: &[Register], sums: &mut [Register]) {
    let mut sums = sums.iter_mut();
    for i in 0..a.len() {
        for j in i..a.len() {
            let (p, q) = if i == j {
                (a[i], b[i])
            } else {
                (xor(a[i], a[j]), xor(b[i], b[j]))
            };
            let sum = sums.next().expect("a sum of each pair");
            *sum = xor(*sum, M::products(p, q).join());
        }
    }
}

/// Sums of pairs from those of [`pair_products`]: (a + a')(b + b') is a b' + a' b, and a b and a' b'.
pub(super) fn finish(sums: &[Register], places: usize, out: &mut [u64]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = element(sum);
    }
    for i in 0..places {
        for j in i + 1..places {
            let own = [i, j].map(|k| out[proof::pair_of(places, k, k)]);
            out[proof::pair_of(places, i, j)] ^= own[0] ^ own[1];
        }
    }
}

/// The vector of a side after both levels.
#[inline(always)]
pub(super) fn expand<M: Multiply>(
    gates: &Gates<'_>,
    side: Side,
    challenges: [u64; 2],
    vector: &mut [u64],
) {
    let choice = Choice::new(challenges[0]);
    let basis = proof::basis(factor(2), challenges[1]);
    let by = [basis[0], basis[1], basis[2], basis[3]];
    let mut scratch = Scratch::new();
    let Scratch { groups, left, .. } = &mut *scratch;
    let words = gates.words();
    for first in (0..words).step_by(LANES) {
        elements(gates, side, &choice, first, (groups, left));
        let mut weights = Weights::new::<M>(gates, side, first, by);
        let count = (words - first).min(LANES);
        for (bit, to) in vector.chunks_exact_mut(words).enumerate() {
            let mut sum = Sums::ZERO;
            for (element, weight) in quarters(left, bit).into_iter().zip(weights.0) {
                sum.add(M::products(element, weight));
            }
            let element = M::reduce(sum);
            match to[first..].first_chunk_mut::<LANES>() {
                Some(whole) => *whole = element,
                None => to[first..].copy_from_slice(&element[..count]),
            }
            weights.next(side);
        }
    }
}
