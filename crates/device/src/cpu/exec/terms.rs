//! Cross terms of a product at one value, and which forms have formulas of their own for them.

use super::super::vector::{At, Vector};
use super::ring::{RingOps, after};
use crate::Form;

/// Forms that have kernels of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cpu) enum Shape {
    /// Three-party replicated sharing: one cross term, for which two products do instead of three.
    Replicated,
    /// Four-party replicated sharing: three cross terms of two products each. If `swapped`, the last one goes to component 2 and its call to
    /// component 0, else the other way round.
    Fourfold {
        /// Whether they are.
        swapped: bool,
    },
    /// Any other, by the formula.
    Any,
}

/// Which kernel computes the form.
pub(in crate::cpu) fn shape_of(form: &Form) -> Shape {
    if form == Form::replicated(form.ring) {
        return Shape::Replicated;
    }
    for swapped in [false, true] {
        if [false, true]
            .iter()
            .any(|five| form == Form::fourfold(form.ring, swapped, *five))
        {
            return Shape::Fourfold { swapped };
        }
    }
    Shape::Any
}

/// acc + the terms of a cross term at one value.
#[inline(always)]
pub(super) unsafe fn bilinear<V: Vector, R: RingOps<V>>(
    component: usize,
    terms: &[(u8, u8)],
    a: At,
    b: At,
    mut acc: R::Value,
) -> R::Value {
    // SAFETY: the caller's addresses, as in `product::products_of`.
    unsafe {
        for &(i, j) in terms {
            let x = R::load(after(a, i as usize * component));
            let y = R::load(after(b, j as usize * component));
            acc = R::dot(acc, [(x, y)]);
        }
        acc
    }
}
