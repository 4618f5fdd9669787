//! Sums of products over rows.

use veil_math::Ring;

use super::super::tape::{Product, Tape};
use super::super::vector::{VECTOR, Vector};
use super::product::{next_to, row};
use super::ring::{Z64Ops, element};
use super::terms::{Shape, bilinear, replicated};
use super::{RowAddresses, Run};

/// Σ over rows and pairs of a cross term, elements of Z_2^64.
#[inline(always)]
pub(super) unsafe fn dot64<V: Vector>(
    rows: RowAddresses,
    run: &Run<'_>,
    terms: &[(u8, u8)],
    product: &Product,
) -> u64 {
    // SAFETY: rows of the product exist.
    unsafe {
        let whole = rows.packed / VECTOR * VECTOR;
        let mut sum = 0u64;
        let mut acc = V::splat(0);
        for &(a, b) in &run.tape.pairs[product.start as usize..][..product.len as usize] {
            let (a, b) = (rows.at(a), rows.at(b));
            for at in (0..whole).step_by(VECTOR) {
                let (a, b) = (row(a, next_to(at)), row(b, next_to(at)));
                acc = match run.shape {
                    Shape::Replicated => replicated::<V, Z64Ops>(rows.component, a, b, acc),
                    _ => bilinear::<V, Z64Ops>(rows.component, terms, a, b, acc),
                };
            }
            for at in (whole..rows.packed).step_by(8) {
                for &(i, j) in terms {
                    let x = element(Ring::Z64, a.add(i as usize * rows.component + at)) as u64;
                    let y = element(Ring::Z64, b.add(j as usize * rows.component + at)) as u64;
                    sum = sum.wrapping_add(x.wrapping_mul(y));
                }
            }
        }
        let mut lanes = [0u64; 8];
        acc.store(lanes.as_mut_ptr().cast());
        lanes.iter().fold(sum, |s, l| s.wrapping_add(*l))
    }
}

/// Σ over rows and pairs of a cross term, elements of Z_2^128.
#[inline(always)]
pub(super) unsafe fn dot128(
    rows: RowAddresses,
    tape: &Tape,
    terms: &[(u8, u8)],
    product: &Product,
) -> u128 {
    let mut sum = 0u128;
    for &(a, b) in &tape.pairs[product.start as usize..][..product.len as usize] {
        let (a, b) = (rows.at(a), rows.at(b));
        for at in (0..rows.packed).step_by(16) {
            for &(i, j) in terms {
                // SAFETY: rows of the product exist.
                let (x, y) = unsafe {
                    (
                        element(Ring::Z128, a.add(i as usize * rows.component + at)),
                        element(Ring::Z128, b.add(j as usize * rows.component + at)),
                    )
                };
                sum = sum.wrapping_add(x.wrapping_mul(y));
            }
        }
    }
    sum
}
