//! Products of shares with their masks, and the scattering of what came back.

use veil_math::Ring;

use super::super::bank::Memory;
use super::super::tape::{Product, Tape};
use super::super::vector::{GROUP, VECTOR, Vector};
use super::ring::{RingOps, Z64Ops, accumulate, element};
use super::{Rows, Run, from};
use crate::Form;

/// Forms that have kernels of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cpu) enum Shape {
    /// Three-party replicated sharing: one cross term, for which two products do instead of three.
    Replicated,
    /// Four-party replicated sharing: three cross terms of two products each. If `swapped`, the last one goes to component 2 and its draw to
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

/// acc + the form of replicated sharing at one vector: bits u0 w1 + u1 (w0 + w1), rings u0 (w0 + w1) + u1 w0.
#[inline(always)]
unsafe fn replicated<V: Vector, R: RingOps<V>>(
    part: usize,
    a: *const u8,
    b: *const u8,
    acc: V,
) -> V {
    // SAFETY: the caller's addresses, as in `products_of`.
    unsafe {
        let (u0, u1) = (V::load(a), V::load(a.add(part)));
        let (w0, w1) = (V::load(b), V::load(b.add(part)));
        let w = R::add(w0, w1);
        if R::BITS {
            R::mul_add(R::mul_add(acc, u0, w1), u1, w)
        } else {
            R::mul_add(R::mul_add(acc, u0, w), u1, w0)
        }
    }
}

/// acc + the three cross terms of four-party sharing at one vector.
#[inline(always)]
unsafe fn fourfold<V: Vector, R: RingOps<V>>(
    part: usize,
    a: *const u8,
    b: *const u8,
    acc: [V; 3],
) -> [V; 3] {
    // SAFETY: the caller's addresses, as in `products_of`.
    unsafe {
        let (u0, u1, u2) = (V::load(a), V::load(a.add(part)), V::load(a.add(2 * part)));
        let (w0, w1, w2) = (V::load(b), V::load(b.add(part)), V::load(b.add(2 * part)));
        [
            R::mul_add(R::mul_add(acc[0], u1, R::add(w1, w2)), u2, w1),
            R::mul_add(R::mul_add(acc[1], u0, R::add(w0, w1)), u1, w0),
            R::mul_add(R::mul_add(acc[2], u0, w2), u2, w0),
        ]
    }
}

/// acc + the terms of a cross term at one vector.
#[inline(always)]
unsafe fn bilinear<V: Vector, R: RingOps<V>>(
    part: usize,
    terms: &[(u8, u8)],
    a: *const u8,
    b: *const u8,
    mut acc: V,
) -> V {
    // SAFETY: the caller's addresses, as in `products_of`.
    unsafe {
        for &(i, j) in terms {
            let x = V::load(a.add(i as usize * part));
            let y = V::load(b.add(j as usize * part));
            acc = R::mul_add(acc, x, y);
        }
        acc
    }
}

/// Masks of a group of vectors of row products of three-party sharing: the first draw minus the second.
#[inline(always)]
unsafe fn masks_of<V: Vector, R: RingOps<V>>(run: &Run<'_>, counters: [u64; GROUP]) -> [V; GROUP] {
    let (a, b) = (run.draws[0][0], run.draws[0][1]);
    // SAFETY: the caller's instruction set.
    unsafe {
        if R::BITS && a.domain.tag == b.domain.tag && a.first == b.first {
            return V::prf_xor(a.key, b.key, a.domain, from(counters, a.first));
        }
        let mut masks = V::prf(a.key, a.domain, from(counters, a.first));
        let minus = V::prf(b.key, b.domain, from(counters, b.first));
        for k in 0..GROUP {
            masks[k] = R::sub(masks[k], minus[k]);
        }
        masks
    }
}

/// Stores a vector of a product: whole in the slot, and the rows that count in the message.
#[inline(always)]
unsafe fn store<V: Vector>(rows: Rows, r: V, slot: *mut u8, message: *mut u8, at: usize) {
    // SAFETY: the caller's addresses, as in `products_of`.
    unsafe {
        r.store(slot.add(at));
        store_message(rows, r, message, at);
    }
}

/// Stores the rows that count of a vector of a message.
#[inline(always)]
unsafe fn store_message<V: Vector>(rows: Rows, r: V, message: *mut u8, at: usize) {
    // SAFETY: the caller's addresses, as in `products_of`.
    unsafe {
        if at + VECTOR <= rows.packed {
            r.store(message.add(at));
        } else if at < rows.packed {
            let mut last = [0u8; VECTOR];
            r.store(last.as_mut_ptr());
            std::ptr::copy_nonoverlapping(last.as_ptr(), message.add(at), rows.packed - at);
        }
    }
}

/// A batch of products, `GROUP` vectors at a time.
#[inline(always)]
pub(super) unsafe fn products_of<V: Vector, R: RingOps<V>>(
    rows: Rows,
    run: &Run<'_>,
    form: &Form,
    products: &[Product],
) {
    // SAFETY: the caller's instruction set; rows of the products exist; messages have room (checked by the caller of `run`).
    unsafe {
        match run.shape {
            // Bits alone have a trace; this was checked.
            Shape::Replicated if R::BITS && run.trace.is_some() => {
                traced_products::<V, R>(rows, run, products);
            }
            Shape::Replicated => replicated_products::<V, R>(rows, run, products),
            Shape::Fourfold { swapped } => {
                fourfold_products::<V, R>(rows, run, swapped, products);
            }
            Shape::Any => any_products::<V, R>(rows, run, form, products),
        }
    }
}

#[inline(always)]
unsafe fn replicated_products<V: Vector, R: RingOps<V>>(
    rows: Rows,
    run: &Run<'_>,
    products: &[Product],
) {
    let vectors = rows.part / VECTOR;
    // SAFETY: as `products_of`.
    unsafe {
        if vectors.is_multiple_of(GROUP) {
            // Whole groups of one product each.
            for product in products {
                let (out, message) = (rows.at(product.out), rows.message(run, 0, product));
                let first = u64::from(product.index) * run.stride;
                let pairs = &run.tape.pairs[product.start as usize..][..product.len as usize];
                let (a, b) = pairs[0];
                let (a, b) = (rows.at(a), rows.at(b));
                for v in (0..vectors).step_by(GROUP) {
                    let mut r = masks_of::<V, R>(
                        run,
                        from([0, 4, 8, 12], first + (v * VECTOR / 16) as u64),
                    );
                    for k in 0..GROUP {
                        let at = (v + k) * VECTOR;
                        r[k] = replicated::<V, R>(rows.part, a.add(at), b.add(at), r[k]);
                    }
                    for &(a, b) in &pairs[1..] {
                        for k in 0..GROUP {
                            let at = (v + k) * VECTOR;
                            r[k] = replicated::<V, R>(
                                rows.part,
                                rows.at(a).add(at),
                                rows.at(b).add(at),
                                r[k],
                            );
                        }
                    }
                    for k in 0..GROUP {
                        store(rows, r[k], out, message, (v + k) * VECTOR);
                    }
                }
            }
            return;
        }
        let single = products.iter().all(|p| p.len == 1);
        let (products, rest) = match vectors {
            1 if single => products.split_at(products.len() / 4 * 4),
            2 if single => products.split_at(products.len() / 2 * 2),
            _ => products.split_at(0),
        };
        if vectors == 1 {
            for group in products.chunks_exact(4) {
                side_by_side::<V, R, 1>(rows, run, group);
            }
        } else {
            for group in products.chunks_exact(2) {
                side_by_side::<V, R, 2>(rows, run, group);
            }
        }
        let mut groups = Groups::new(rest, vectors);
        while let Some(group) = groups.next(run.stride) {
            let masks = masks_of::<V, R>(run, group.counters);
            for k in 0..group.len {
                let (product, at) = group.which[k];
                let mut r = masks[k];
                for &(a, b) in &run.tape.pairs[product.start as usize..][..product.len as usize] {
                    r = replicated::<V, R>(rows.part, rows.at(a).add(at), rows.at(b).add(at), r);
                }
                let message = rows.message(run, 0, product);
                store(rows, r, rows.at(product.out), message, at);
            }
        }
    }
}

/// Products of three-party sharing whose operands and masks are kept.
#[inline(always)]
unsafe fn traced_products<V: Vector, R: RingOps<V>>(
    rows: Rows,
    run: &Run<'_>,
    products: &[Product],
) {
    let Some(trace) = run.trace else { return };
    let mut groups = Groups::new(products, rows.part / VECTOR);
    while let Some(group) = groups.next(run.stride) {
        // SAFETY: as `products_of`; the trace has an item for every product (checked by the caller of `run`), whose parts are padded to
        // vectors as those of slots are.
        unsafe {
            let draws = draws_of::<V>(run, &group.counters);
            for k in 0..group.len {
                let (product, at) = group.which[k];
                let (a, b) = run.tape.pairs[product.start as usize];
                let (a, b) = (rows.at(a).add(at), rows.at(b).add(at));
                let mask = R::add(draws[0][k], draws[1][k]);
                let r = replicated::<V, R>(rows.part, a, b, mask);
                let message = rows.message(run, 0, product);
                store(rows, r, rows.at(product.out), message, at);
                let to = trace.offset + product.index as usize * trace.item + at;
                let to = rows.base.wrapping_add(to);
                V::load(a).store(to);
                V::load(a.add(rows.part)).store(to.add(trace.part));
                V::load(b).store(to.add(2 * trace.part));
                V::load(b.add(rows.part)).store(to.add(3 * trace.part));
                draws[0][k].store(to.add(4 * trace.part));
                draws[1][k].store(to.add(5 * trace.part));
            }
        }
    }
}

#[inline(always)]
unsafe fn fourfold_products<V: Vector, R: RingOps<V>>(
    rows: Rows,
    run: &Run<'_>,
    swapped: bool,
    products: &[Product],
) {
    let mut groups = Groups::new(products, rows.part / VECTOR);
    while let Some(group) = groups.next(run.stride) {
        // SAFETY: as `products_of`.
        unsafe {
            let draws = draws_of::<V>(run, &group.counters);
            for k in 0..group.len {
                let (product, at) = group.which[k];
                let mut m = [V::splat(0); 3];
                for c in 0..3 {
                    m[c] = R::sub(m[c], draws[c][k]);
                }
                for &(a, b) in &run.tape.pairs[product.start as usize..][..product.len as usize] {
                    m = fourfold::<V, R>(rows.part, rows.at(a).add(at), rows.at(b).add(at), m);
                }
                let mut r = [
                    R::add(m[1], draws[3][k]),
                    R::add(R::add(m[0], draws[1][k]), draws[4][k]),
                    draws[0][k],
                ];
                let (to, kept) = if swapped { (2, 0) } else { (0, 2) };
                r[to] = R::add(r[to], m[2]);
                r[kept] = R::add(r[kept], draws[2][k]);
                let out = rows.at(product.out);
                for c in 0..3 {
                    let slot = out.add(c * rows.part);
                    r[c].store(slot.add(at));
                    store_message(rows, m[c], rows.message(run, c, product), at);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn any_products<V: Vector, R: RingOps<V>>(
    rows: Rows,
    run: &Run<'_>,
    form: &Form,
    products: &[Product],
) {
    let mut groups = Groups::new(products, rows.part / VECTOR);
    while let Some(group) = groups.next(run.stride) {
        // SAFETY: as `products_of`.
        unsafe {
            let draws = draws_of::<V>(run, &group.counters);
            for k in 0..group.len {
                let (product, at) = group.which[k];
                let mut result = [V::splat(0); Form::MOST_PARTS];
                for (c, cross) in form.crosses.iter().enumerate() {
                    let mut m = V::splat(0);
                    for &(a, b) in &run.tape.pairs[product.start as usize..][..product.len as usize]
                    {
                        let (a, b) = (rows.at(a).add(at), rows.at(b).add(at));
                        m = bilinear::<V, R>(rows.part, cross.terms, a, b, m);
                    }
                    for &(d, minus) in cross.masks {
                        let mask = draws[d as usize][k];
                        m = if minus {
                            R::sub(m, mask)
                        } else {
                            R::add(m, mask)
                        };
                    }
                    store_message(rows, m, rows.message(run, c, product), at);
                    result[cross.to as usize] = R::add(result[cross.to as usize], m);
                }
                for &(d, to) in form.keeps {
                    result[to as usize] = R::add(result[to as usize], draws[d as usize][k]);
                }
                for part in 0..Form::MOST_PARTS {
                    if run.writes >> part & 1 == 1 {
                        let slot = rows.at(product.out).add(part * rows.part);
                        result[part].store(slot.add(at));
                    }
                }
            }
        }
    }
}

/// The draws of row products for a group of vectors; those that the form does not have are zero.
#[inline(always)]
unsafe fn draws_of<V: Vector>(
    run: &Run<'_>,
    counters: &[u64; GROUP],
) -> [[V; GROUP]; Form::MOST_DRAWS] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut draws = [[V::splat(0); GROUP]; Form::MOST_DRAWS];
        for (drawn, mask) in draws.iter_mut().zip(run.draws[0]) {
            *drawn = V::prf(mask.key, mask.domain, from(*counters, mask.first));
        }
        draws
    }
}

/// Walks over products and rows alike, `GROUP` vectors at a time, so that the AES pipeline is full for few rows too.
struct Groups<'a> {
    products: &'a [Product],
    vectors: usize,
    left: usize,
    /// The next product, and its next vector.
    next: (usize, usize),
}

/// Vectors that are worked on side by side.
struct Group<'a> {
    /// How many there are. What lies beyond repeats the last one, and is not stored.
    len: usize,
    /// Product, and offset of the vector in its rows.
    which: [(&'a Product, usize); GROUP],
    /// Counter of each, before the first of its draw is added.
    counters: [u64; GROUP],
}

impl<'a> Groups<'a> {
    #[inline(always)]
    fn new(products: &'a [Product], vectors: usize) -> Self {
        Groups {
            products,
            vectors,
            left: vectors * products.len(),
            next: (0, 0),
        }
    }

    #[inline(always)]
    fn next(&mut self, stride: u64) -> Option<Group<'a>> {
        if self.left == 0 {
            return None;
        }
        let len = self.left.min(GROUP);
        self.left -= len;
        let mut group = Group {
            len,
            which: [(&self.products[0], 0); GROUP],
            counters: [0; GROUP],
        };
        for k in 0..GROUP {
            let (p, v) = self.next;
            let product = &self.products[p];
            group.which[k] = (product, v * VECTOR);
            group.counters[k] = u64::from(product.index) * stride + (v * VECTOR / 16) as u64;
            if k + 1 < len || len == GROUP {
                self.next = if v + 1 == self.vectors {
                    ((p + 1).min(self.products.len() - 1), 0)
                } else {
                    (p, v + 1)
                };
            }
        }
        Some(group)
    }
}

/// A group of `GROUP / N` products of `N` vectors each.
#[inline(always)]
unsafe fn side_by_side<V: Vector, R: RingOps<V>, const N: usize>(
    rows: Rows,
    run: &Run<'_>,
    products: &[Product],
) {
    // SAFETY: as `products_of`.
    unsafe {
        let mut counters = [0u64; GROUP];
        for (k, c) in counters.iter_mut().enumerate() {
            *c = u64::from(products[k / N].index) * run.stride + (k % N * VECTOR / 16) as u64;
        }
        let r = masks_of::<V, R>(run, counters);
        for k in 0..GROUP {
            let product = &products[k / N];
            let (a, b) = run.tape.pairs[product.start as usize];
            let at = k % N * VECTOR;
            let r = replicated::<V, R>(rows.part, rows.at(a).add(at), rows.at(b).add(at), r[k]);
            let message = rows.message(run, 0, product);
            store(rows, r, rows.at(product.out), message, at);
        }
    }
}

/// Puts a received message of row products in its place, or adds it to what is there.
///
/// # Safety
/// As [`super::run`]; `message` is the offset of product 0.
#[inline(always)]
pub(in crate::cpu) unsafe fn scatter<V: Vector>(
    memory: &mut Memory,
    tape: &Tape,
    (part, add): (u8, bool),
    message: usize,
) {
    let place = memory.places[tape.slots as usize];
    let base = memory.base();
    for product in &tape.products {
        // SAFETY: slot and message of the product exist and do not overlap.
        unsafe {
            let to = base
                .add(place.offset + product.out as usize * place.item + part as usize * place.part);
            let from = base.add(message + product.index as usize * place.packed);
            if add {
                accumulate::<V>(tape.ring, false, from, to, place.packed);
            } else if place.packed.is_multiple_of(VECTOR) {
                for at in (0..place.packed).step_by(VECTOR) {
                    V::load(from.add(at)).store(to.add(at));
                }
            } else {
                std::ptr::copy_nonoverlapping(from, to, place.packed);
            }
        }
    }
}

/// Σ over rows and pairs of a cross term, elements of Z_2^64.
#[inline(always)]
pub(super) unsafe fn dot64<V: Vector>(
    rows: Rows,
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
                acc = match run.shape {
                    Shape::Replicated => {
                        replicated::<V, Z64Ops>(rows.part, a.add(at), b.add(at), acc)
                    }
                    _ => bilinear::<V, Z64Ops>(rows.part, terms, a.add(at), b.add(at), acc),
                };
            }
            for at in (whole..rows.packed).step_by(8) {
                for &(i, j) in terms {
                    let x = element(Ring::Z64, a.add(i as usize * rows.part + at)) as u64;
                    let y = element(Ring::Z64, b.add(j as usize * rows.part + at)) as u64;
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
    rows: Rows,
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
                        element(Ring::Z128, a.add(i as usize * rows.part + at)),
                        element(Ring::Z128, b.add(j as usize * rows.part + at)),
                    )
                };
                sum = sum.wrapping_add(x.wrapping_mul(y));
            }
        }
    }
    sum
}
