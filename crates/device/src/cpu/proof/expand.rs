//! From bits to elements: the polynomials of all positions at the challenge of the first level, with weights.

use zeroize::{Zeroize, Zeroizing};

use super::gates::{Gates, Place};
use super::lanes::{LANES, Lanes, Register, element};
use crate::proof::{self, PIECES, Side, WORD, factor, pairs};

/// Bits of a word, and of an element.
const BITS: usize = WORD as usize;

/// Pieces that are looked up together.
const GROUP: usize = 4;
const GROUPS: usize = PIECES as usize / GROUP;

/// Quarters of a vector at the second level.
const QUARTERS: usize = 4;

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
        let expanded = || Box::new([[Register::ZERO; BITS]; 2]);
        Zeroizing::new(Scratch {
            groups: Box::new([[Register::ZERO; 1 << GROUP]; GROUPS]),
            left: expanded(),
            right: expanded(),
        })
    }
}

impl Zeroize for Scratch {
    fn zeroize(&mut self) {
        self.groups.zeroize();
        self.left.zeroize();
        self.right.zeroize();
    }
}

/// For each bit of an element, the pieces that are added up for it: of each group a bit for each piece. By the challenge alone, which is known to
/// the verifiers when they ask for it and to the prover.
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
fn elements<L: Lanes>(
    gates: &Gates<'_>,
    side: Side,
    choice: &Choice,
    first: usize,
    (groups, out): (&mut Sixteen, &mut Expanded),
) {
    let mut places = [Place::default(); PIECES as usize];
    for piece in 0..PIECES as usize {
        places[piece] = gates.place(piece, first);
    }
    for half in 0..2 {
        for group in 0..GROUPS {
            let sums = &mut groups[group];
            for k in 0..GROUP {
                let place = &places[GROUP * group + k];
                let word: L = gates.trace(side.parts()[half], place);
                word.store(&mut sums[1 << k].0);
                for before in 1..1 << k {
                    let sum = L::load(&sums[before].0).xor(word);
                    sum.store(&mut sums[1 << k | before].0);
                }
            }
        }
        let out = &mut out[half];
        // Bits of elements, and the first half of a turn: in each lane bit b of register i becomes bit i of register b.
        for first in 0..EIGHT {
            let mut registers = [L::zero(); EIGHT];
            for k in 0..EIGHT {
                let choice = &choice.0[first + EIGHT * k];
                let mut sum = L::zero();
                for group in 0..GROUPS {
                    // The first sum is zero, and stays it.
                    let which = usize::from(choice[group]) % (1 << GROUP);
                    sum = sum.xor(L::load(&groups[group][which].0));
                }
                registers[k] = sum;
            }
            swap::<L, 4, 32>(&mut registers, 0x0000_0000_ffff_ffff);
            swap::<L, 2, 16>(&mut registers, 0x0000_ffff_0000_ffff);
            swap::<L, 1, 8>(&mut registers, 0x00ff_00ff_00ff_00ff);
            for k in 0..EIGHT {
                registers[k].store(&mut out[first + EIGHT * k].0);
            }
        }
        for first in 0..EIGHT {
            let mut registers = [L::zero(); EIGHT];
            for k in 0..EIGHT {
                registers[k] = L::load(&out[EIGHT * first + k].0);
            }
            swap::<L, 4, 4>(&mut registers, 0x0f0f_0f0f_0f0f_0f0f);
            swap::<L, 2, 2>(&mut registers, 0x3333_3333_3333_3333);
            swap::<L, 1, 1>(&mut registers, 0x5555_5555_5555_5555);
            for k in 0..EIGHT {
                registers[k].store(&mut out[EIGHT * first + k].0);
            }
        }
    }
}

/// Registers that are turned together.
const EIGHT: usize = 8;

/// Exchanges bits of registers that are `DISTANCE` from each other, `SHIFT` to the left: all but those of `mask` of the first with those of `mask` of the
/// second.
#[inline(always)]
fn swap<L: Lanes, const DISTANCE: usize, const SHIFT: u32>(registers: &mut [L; EIGHT], mask: u64) {
    let (mask, rest) = (L::splat(mask), L::splat(!mask));
    let mut block = 0;
    while block < EIGHT {
        for k in block..block + DISTANCE {
            let (low, high) = (registers[k], registers[k + DISTANCE]);
            registers[k] = low.and(mask).xor(high.left::<SHIFT>().and(rest));
            registers[k + DISTANCE] = low.right::<SHIFT>().and(mask).xor(high.and(rest));
        }
        block += 2 * DISTANCE;
    }
}

/// Weights of the quarters of a vector that a side's elements are in, of bits 0 and 32 of eight words, times `by`.
#[inline(always)]
fn weights<L: Lanes>(
    gates: &Gates<'_>,
    side: Side,
    first: usize,
    by: &[u64; QUARTERS],
) -> [L; QUARTERS] {
    let mut weights = [L::zero(); QUARTERS];
    for quarter in 0..QUARTERS {
        weights[quarter] = L::splat(by[quarter]);
        if side.is_left() {
            // x^32 of the upper half of the bits.
            let power = L::splat(1 << (BITS / 2 * (quarter % 2)));
            let key = gates.keys::<L>(first).multiply(power);
            weights[quarter] = weights[quarter].multiply(key);
        }
    }
    weights
}

/// Weights of the next bits.
#[inline(always)]
fn next<L: Lanes>(side: Side, weights: &mut [L; QUARTERS]) {
    if side.is_left() {
        for quarter in 0..QUARTERS {
            weights[quarter] = weights[quarter].times_x();
        }
    }
}

/// Elements of one position of each quarter.
#[inline(always)]
fn quarters<L: Lanes>(of: &Expanded, bit: usize) -> [L; QUARTERS] {
    [
        L::load(&of[0][bit].0),
        L::load(&of[0][bit + BITS / 2].0),
        L::load(&of[1][bit].0),
        L::load(&of[1][bit + BITS / 2].0),
    ]
}

/// Sums of pairs of quarters, at the second level: `r` is the challenge of the first.
#[inline(always)]
pub(super) fn sums<L: Lanes>(gates: &Gates<'_>, r: u64, out: &mut [u64; pairs(QUARTERS)]) {
    let choice = Choice::new(r);
    let mut scratch = Scratch::new();
    let Scratch {
        groups,
        left,
        right,
    } = &mut *scratch;
    let mut sums = Zeroizing::new([Register::ZERO; pairs(QUARTERS)]);
    let mut first = 0;
    while first < gates.words() {
        elements::<L>(gates, Side::OwnNext, &choice, first, (groups, left));
        elements::<L>(gates, Side::OwnPrevious, &choice, first, (groups, right));
        let mut of_bit: [L; QUARTERS] = weights(gates, Side::OwnNext, first, &[1; QUARTERS]);
        let mut all = [L::zero(); pairs(QUARTERS)];
        for bit in 0..BITS / 2 {
            let (mut a, b): ([L; QUARTERS], _) = (quarters(left, bit), quarters(right, bit));
            for quarter in 0..QUARTERS {
                a[quarter] = a[quarter].multiply(of_bit[quarter]);
            }
            pair_products(&a, &b, &mut all);
            next(Side::OwnNext, &mut of_bit);
        }
        for k in 0..pairs(QUARTERS) {
            let sum = &mut sums[k].0;
            L::load(sum).xor(all[k]).store(sum);
        }
        first += LANES;
    }
    finish(&*sums, QUARTERS, out);
}

/// Adds the products of each pair of places: those of both sums where there are two places.
#[inline(always)]
pub(super) fn pair_products<L: Lanes>(a: &[L], b: &[L], sums: &mut [L]) {
    let mut at = 0;
    for i in 0..a.len() {
        sums[at] = sums[at].add_products(a[i], b[i]);
        at += 1;
        for j in i + 1..a.len() {
            sums[at] = sums[at].add_products(a[i].xor(a[j]), b[i].xor(b[j]));
            at += 1;
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
pub(super) fn expand<L: Lanes>(
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
    let mut first = 0;
    while first < words {
        elements::<L>(gates, side, &choice, first, (groups, left));
        let mut of_bit: [L; QUARTERS] = weights(gates, side, first, &by);
        let count = (words - first).min(LANES);
        for bit in 0..BITS / 2 {
            let elements: [L; QUARTERS] = quarters(left, bit);
            let mut sum = elements[0].products(of_bit[0]);
            for quarter in 1..QUARTERS {
                let [even, odd] = elements[quarter].products(of_bit[quarter]);
                sum = [sum[0].xor(even), sum[1].xor(odd)];
            }
            put(L::reduce(sum), &mut vector[bit * words + first..][..count]);
            next(side, &mut of_bit);
        }
        first += LANES;
    }
}

/// Writes the first elements, as many as there is room for.
#[inline(always)]
pub(super) fn put<L: Lanes>(elements: L, to: &mut [u64]) {
    if let Some(whole) = to.first_chunk_mut() {
        elements.store(whole);
    } else {
        let mut all = [0; LANES];
        elements.store(&mut all);
        to.copy_from_slice(&all[..to.len()]);
    }
}
