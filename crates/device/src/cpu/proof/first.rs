//! The first level: words of gates times keys.

use zeroize::Zeroizing;

use super::gates::Gates;
use super::multiply::{Multiply, Sums, and, element, xor};
use super::{LANES, Register, pairs};
use crate::proof::{PIECES, Side};

const ALL: usize = PIECES as usize;

/// Registers of each piece that are multiplied while they are near.
const NEAR: usize = 4;

/// The claims of all pieces.
#[inline(always)]
pub(super) fn claims<M: Multiply>(gates: &Gates<'_>, side: Side, claims: &mut [u64; ALL]) {
    let mut sums = Zeroizing::new([[0; LANES]; ALL]);
    for first in (0..gates.words()).step_by(LANES) {
        let keys = gates.keys(first);
        for (piece, sum) in sums.iter_mut().enumerate() {
            let addends = gates.addends(side, &gates.place(piece, first));
            *sum = xor(*sum, M::products(addends, keys).join());
        }
    }
    for (claim, sum) in claims.iter_mut().zip(sums.iter()) {
        *claim = element(sum);
    }
}

/// The bits of a piece in some registers: a, b, c, d.
type Near = [[Register; NEAR]; 4];

/// Sums of pairs of pieces.
#[inline(always)]
pub(super) fn sums<M: Multiply>(gates: &Gates<'_>, out: &mut [u64; pairs(ALL)]) {
    let mut sums = Zeroizing::new(vec![[0; LANES]; pairs(ALL)]);
    let mut near: Zeroizing<Vec<Near>> = Zeroizing::new(vec![[[[0; LANES]; NEAR]; 4]; ALL]);
    for begin in (0..gates.words()).step_by(NEAR * LANES) {
        let mut keys = [[0; LANES]; NEAR];
        for (k, keys) in keys.iter_mut().enumerate() {
            let first = begin + k * LANES;
            if first >= gates.words() {
                // Zero keys: it does not matter what their words are.
                continue;
            }
            *keys = gates.keys(first);
            for (piece, near) in near.iter_mut().enumerate() {
                let place = gates.place(piece, first);
                let [a, c] = gates.factors(Side::OwnNext, &place);
                let [b, d] = gates.factors(Side::OwnPrevious, &place);
                for (near, register) in near.iter_mut().zip([a, b, c, d]) {
                    near[k] = register;
                }
            }
        }
        let mut sums = sums.iter_mut();
        for (i, left) in near.iter().enumerate() {
            for (j, right) in near.iter().enumerate().skip(i) {
                let mut sum = Sums::ZERO;
                for k in 0..NEAR {
                    let product =
                        |x: &Near, y: &Near| xor(and(x[0][k], y[1][k]), and(x[2][k], y[3][k]));
                    let bits = if i == j {
                        product(left, right)
                    } else {
                        xor(product(left, right), product(right, left))
                    };
                    sum.add(M::products(bits, keys[k]));
                }
                let all = sums.next().expect("a sum of each pair");
                *all = xor(*all, sum.join());
            }
        }
    }
    for (out, sum) in out.iter_mut().zip(sums.iter()) {
        *out = element(sum);
    }
}
