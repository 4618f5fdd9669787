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

/// acc + the form of replicated sharing at one value: bits u0 w1 + u1 (w0 + w1), rings u0 (w0 + w1) + u1 w0.
#[inline(always)]
pub(super) unsafe fn replicated<V: Vector, R: RingOps<V>>(
    component: usize,
    a: At,
    b: At,
    acc: R::Value,
) -> R::Value {
    // SAFETY: the caller's addresses, as in `product::products_of`.
    unsafe {
        let (u0, u1) = (R::load(a), R::load(after(a, component)));
        let (w0, w1) = (R::load(b), R::load(after(b, component)));
        let w = R::add(w0, w1);
        if R::BITS {
            R::dot(acc, [(u0, w1), (u1, w)])
        } else {
            R::dot(acc, [(u0, w), (u1, w0)])
        }
    }
}

/// acc + the three cross terms of four-party sharing at one value.
#[inline(always)]
pub(super) unsafe fn fourfold<V: Vector, R: RingOps<V>>(
    component: usize,
    a: At,
    b: At,
    acc: [R::Value; 3],
) -> [R::Value; 3] {
    // SAFETY: the caller's addresses, as in `product::products_of`.
    unsafe {
        let (u0, u1, u2) = (
            R::load(a),
            R::load(after(a, component)),
            R::load(after(a, 2 * component)),
        );
        let (w0, w1, w2) = (
            R::load(b),
            R::load(after(b, component)),
            R::load(after(b, 2 * component)),
        );
        [
            R::dot(acc[0], [(u1, R::add(w1, w2)), (u2, w1)]),
            R::dot(acc[1], [(u0, R::add(w0, w1)), (u1, w0)]),
            R::dot(acc[2], [(u0, w2), (u2, w0)]),
        ]
    }
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
