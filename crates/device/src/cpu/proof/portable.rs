//! The kernels of a proof in words of 64 bits.

use veil_math::P61;

use super::{BASE, Gates, Half, Register, Side, Table};
use crate::cpu::vector::VECTOR;

/// The numbers of a half: x y, y, x, 1.
#[inline(always)]
fn numbers(half: &Half, present: &Register) -> [Register; BASE] {
    let [x, y, _] = half;
    let mut both = *x;
    for (both, y) in both.iter_mut().zip(y) {
        *both &= y;
    }
    [both, *y, *x, *present]
}

/// Adds up the counts of all gates, from zero.
pub(super) fn counts(gates: &Gates<'_>, counts: &mut [i64; super::COUNTS as usize]) {
    for register in 0..gates.registers() {
        let present = gates.present(register);
        for at in 0..gates.quarter() {
            let halves = |side, quarter: usize| {
                let product = quarter as u32 * gates.quarter() + at;
                let there = product < gates.products();
                let half = there.then(|| gates.half(side, product, register, &present))?;
                Some((numbers(&half, &present), half[2]))
            };
            let left = [0, 1, 2, 3].map(|quarter| halves(Side::OwnNext, quarter));
            let right = [0, 1, 2, 3].map(|quarter| halves(Side::OwnPrevious, quarter));
            for (i, left) in left.iter().enumerate() {
                for (j, right) in right.iter().enumerate() {
                    let (Some((n, s)), Some((m, t))) = (left, right) else {
                        continue;
                    };
                    let pair = &mut counts[(i * BASE + j) * BASE * BASE..][..BASE * BASE];
                    for (kl, count) in pair.iter_mut().enumerate() {
                        let (n, m) = (&n[kl / BASE], &m[kl % BASE]);
                        for word in 0..VECTOR / 8 {
                            let both = n[word] & m[word];
                            let negative = both & (s[word] ^ t[word]);
                            *count += i64::from(both.count_ones());
                            *count -= 2 * i64::from(negative.count_ones());
                        }
                    }
                }
            }
        }
    }
}

/// The vector of a side after two levels.
pub(super) fn expand(gates: &Gates<'_>, side: Side, table: &Table, vector: &mut [u64]) {
    let width = gates.bytes() * 8;
    for register in 0..gates.registers() {
        let present = gates.present(register);
        let first = register * VECTOR * 8;
        let rows = (gates.rows() - first).min(VECTOR * 8);
        for at in 0..gates.quarter() {
            let to = &mut vector[at as usize * width..][first..width.min(first + VECTOR * 8)];
            to.fill(0);
            let to = &mut to[..rows];
            for quarter in 0..BASE {
                let product = quarter as u32 * gates.quarter() + at;
                if product >= gates.products() {
                    continue;
                }
                let half = gates.half(side, product, register, &present);
                for (row, value) in to.iter_mut().enumerate() {
                    let bits = half.map(|bits| bits[row / 64] >> (row % 64) & 1);
                    *value = P61::add(*value, table.value::<61>(quarter, bits));
                }
            }
        }
    }
}
