//! The first level: words of gates times keys.

use std::sync::OnceLock;

use veil_math::Gf64;
use zeroize::Zeroizing;

use super::expand::put;
use super::gates::Gates;
use super::lanes::{LANES, Lanes, Register, element};
use crate::proof::{self, PIECES, Side, pairs};

const ALL: usize = PIECES as usize;

/// Registers of each piece that are multiplied while they are near.
const NEAR: usize = 4;

/// The claims of all pieces.
#[inline(always)]
pub(super) fn claims<L: Lanes>(gates: &Gates<'_>, side: Side, claims: &mut [u64; ALL]) {
    let mut sums = Zeroizing::new([Register::ZERO; ALL]);
    let mut first = 0;
    while first < gates.words() {
        let keys: L = gates.keys(first);
        for piece in 0..ALL {
            let addends: L = gates.addends(side, &gates.place(piece, first));
            let sum = &mut sums[piece].0;
            L::load(sum).add_products(addends, keys).store(sum);
        }
        first += LANES;
    }
    for piece in 0..ALL {
        claims[piece] = element(&sums[piece]);
    }
}

/// The bits of a piece in some registers: a, b, c, d.
type Near = [[Register; 4]; NEAR];

/// The registers of one piece.
#[inline(always)]
fn registers<L: Lanes>(near: &[Register; 4]) -> [L; 4] {
    [
        L::load(&near[0].0),
        L::load(&near[1].0),
        L::load(&near[2].0),
        L::load(&near[3].0),
    ]
}

/// a b + c d of two pieces.
#[inline(always)]
fn product<L: Lanes>(x: &[L; 4], y: &[L; 4]) -> L {
    x[0].and(y[1]).xor(x[2].and(y[3]))
}

/// Sums of pairs of pieces.
#[inline(always)]
pub(super) fn sums<L: Lanes>(gates: &Gates<'_>, out: &mut [u64; pairs(ALL)]) {
    let mut sums = Zeroizing::new(vec![Register::ZERO; pairs(ALL)]);
    let mut near: Zeroizing<Vec<Near>> = Zeroizing::new(vec![[[Register::ZERO; 4]; NEAR]; ALL]);
    let mut begin = 0;
    while begin < gates.words() {
        let mut keys = [L::zero(); NEAR];
        for k in 0..NEAR {
            let first = begin + k * LANES;
            if first >= gates.words() {
                // Keys are zero: it does not matter what their words are.
                continue;
            }
            keys[k] = gates.keys(first);
            for piece in 0..ALL {
                let place = gates.place(piece, first);
                // a, b, c, d.
                let ([a, c], [b, d]) = (Side::OwnNext.parts(), Side::OwnPrevious.parts());
                let near = &mut near[piece][k];
                gates.trace::<L>(a, &place).store(&mut near[0].0);
                gates.trace::<L>(b, &place).store(&mut near[1].0);
                gates.trace::<L>(c, &place).store(&mut near[2].0);
                gates.trace::<L>(d, &place).store(&mut near[3].0);
            }
        }
        let mut at = 0;
        for i in 0..ALL {
            let mut left = [[L::zero(); 4]; NEAR];
            for k in 0..NEAR {
                left[k] = registers(&near[i][k]);
            }
            let sum = &mut sums[at].0;
            let mut all = L::load(sum);
            for k in 0..NEAR {
                all = all.add_products(product(&left[k], &left[k]), keys[k]);
            }
            all.store(sum);
            at += 1;
            for j in i + 1..ALL {
                let sum = &mut sums[at].0;
                let mut all = L::load(sum);
                for k in 0..NEAR {
                    let right = registers(&near[j][k]);
                    let bits = product(&left[k], &right).xor(product(&right, &left[k]));
                    all = all.add_products(bits, keys[k]);
                }
                all.store(sum);
                at += 1;
            }
        }
        begin += NEAR * LANES;
    }
    for k in 0..pairs(ALL) {
        out[k] = element(&sums[k]);
    }
}

/// Registers of the values that are shared.
const VALUES: usize = (ALL - 1).div_ceil(LANES);

/// What a pair of pieces is multiplied with in the values at 32, …, 62: numbers of the field alone.
fn factors() -> &'static [[Register; VALUES]] {
    static FACTORS: OnceLock<Vec<[Register; VALUES]>> = OnceLock::new();
    FACTORS.get_or_init(|| {
        let mut factors = vec![[Register::ZERO; VALUES]; pairs(ALL)];
        for value in 0..ALL - 1 {
            let basis = Gf64::basis(PIECES, (ALL + value) as u64);
            for i in 0..ALL {
                for j in i..ALL {
                    let factor = &mut factors[proof::pair_of(ALL, i, j)][value / LANES];
                    factor.0[value % LANES] = Gf64::mul(basis[i], basis[j]);
                }
            }
        }
        factors
    })
}

/// As [`proof::share_of`] of the first level.
#[inline(always)]
pub(super) fn values<L: Lanes>(sums: &[u64; pairs(ALL)], values: &mut [u64]) {
    let factors = factors();
    let mut all = [[L::zero(); 2]; VALUES];
    for pair in 0..pairs(ALL) {
        let sum = L::splat(sums[pair]);
        for k in 0..VALUES {
            let [even, odd] = sum.products(L::load(&factors[pair][k].0));
            all[k] = [all[k][0].xor(even), all[k][1].xor(odd)];
        }
    }
    for k in 0..VALUES {
        let end = values.len().min((k + 1) * LANES);
        put(L::reduce(all[k]), &mut values[k * LANES..end]);
    }
}
