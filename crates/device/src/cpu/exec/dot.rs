//! Sums of products over rows.

use super::super::tape::Product;
use super::super::vector::{VECTOR, Vector};
use super::product::{next_to, row};
use super::ring::{RingOps, element, elements_of};
use super::terms::{Shape, bilinear};
use super::{RowAddresses, Run};

/// Σ over rows and pairs of a cross term, integers.
#[inline(always)]
pub(super) unsafe fn dot<V: Vector, R: RingOps<V>>(
    rows: RowAddresses,
    run: &Run<'_>,
    terms: &[(u8, u8)],
    product: &Product,
) -> u128 {
    let ring = run.tape.ring;
    // SAFETY: rows of the product exist.
    unsafe {
        let step = R::VECTORS * VECTOR;
        let whole = rows.packed / step * step;
        let mut sum = 0u128;
        let mut acc = R::zero();
        for &(a, b) in &run.tape.pairs[product.start as usize..][..product.len as usize] {
            let (a, b) = (rows.at(a), rows.at(b));
            for at in (0..whole).step_by(step) {
                let (a, b) = (row(a, next_to(at)), row(b, next_to(at)));
                acc = match run.shape {
                    Shape::Replicated => R::replicated(rows.component, a, b, acc),
                    _ => bilinear::<V, R>(rows.component, terms, a, b, acc),
                };
            }
            for at in (whole..rows.packed).step_by(ring.bytes(1) as usize) {
                for &(i, j) in terms {
                    let x = element(ring, a.add(i as usize * rows.component + at));
                    let y = element(ring, b.add(j as usize * rows.component + at));
                    sum = ring.add(sum, ring.mul(x, y));
                }
            }
        }
        ring.add(sum, elements_of::<V, R>(ring, acc))
    }
}
