//! Products of shares with their masks, and the scattering of what came back.

use veil_math::Ring;

use super::super::bank::Memory;
use super::super::tape::{Product, Tape};
use super::super::vector::{GROUP, VECTOR, Vector};
use super::ring::{RingOps, Z64Ops, element};
use super::{Rows, Run, from};
use crate::command::Form;

const RING_FORM: &[(u8, u8)] = &[(0, 0), (0, 1), (1, 0)];

const BIT_FORM: &[(u8, u8)] = &[(0, 1), (1, 0), (1, 1)];

/// Whether [`replicated`] computes the form.
pub(in crate::cpu) fn is_replicated(form: &Form) -> bool {
    form.own == 0
        && form.terms
            == if form.ring == Ring::Bits {
                BIT_FORM
            } else {
                RING_FORM
            }
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

/// acc + any bilinear form of two operands at one vector.
#[inline(always)]
unsafe fn bilinear<V: Vector, R: RingOps<V>>(
    rows: Rows,
    run: &Run<'_>,
    form: &Form,
    a: *const u8,
    b: *const u8,
    acc: V,
) -> V {
    // SAFETY: the caller's addresses, as in `products_of`.
    unsafe {
        if run.replicated {
            return replicated::<V, R>(rows.part, a, b, acc);
        }
        let mut acc = acc;
        for &(i, j) in form.terms {
            let x = V::load(a.add(i as usize * rows.part));
            let y = V::load(b.add(j as usize * rows.part));
            acc = R::mul_add(acc, x, y);
        }
        acc
    }
}

/// Masks of a group of vectors of row products.
#[inline(always)]
unsafe fn masks_of<V: Vector, R: RingOps<V>>(run: &Run<'_>, counters: [u64; GROUP]) -> [V; GROUP] {
    // SAFETY: the caller's instruction set.
    unsafe {
        match run.masks[0] {
            [a, b] if R::BITS && a.domain.tag == b.domain.tag && a.first == b.first => {
                V::prf_xor(a.key, b.key, a.domain, from(counters, a.first))
            }
            list => {
                let mut masks = [V::splat(0); GROUP];
                for mask in list {
                    let m = V::prf(mask.key, mask.domain, from(counters, mask.first));
                    for k in 0..GROUP {
                        masks[k] = if mask.minus {
                            R::sub(masks[k], m[k])
                        } else {
                            R::add(masks[k], m[k])
                        };
                    }
                }
                masks
            }
        }
    }
}

/// Stores a vector of a product: whole in the slot, and the rows that count in the message.
#[inline(always)]
unsafe fn store<V: Vector>(rows: Rows, r: V, slot: *mut u8, message: *mut u8, at: usize) {
    // SAFETY: the caller's addresses, as in `products_of`.
    unsafe {
        r.store(slot.add(at));
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
    let vectors = rows.part / VECTOR;
    let own = form.own as usize * rows.part;
    let message_of = |p: &Product| {
        rows.base
            .wrapping_add(run.messages[0] + p.index as usize * rows.packed)
    };
    // SAFETY: the caller's instruction set; rows of the products exist; messages have room (checked by the caller of `run`).
    unsafe {
        if vectors.is_multiple_of(GROUP) && run.replicated {
            // Whole groups of one product each.
            for product in products {
                let (out, message) = (rows.at(product.out).add(own), message_of(product));
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
            1 if run.replicated && single => products.split_at(products.len() / 4 * 4),
            2 if run.replicated && single => products.split_at(products.len() / 2 * 2),
            _ => products.split_at(0),
        };
        if vectors == 1 {
            for group in products.chunks_exact(4) {
                side_by_side::<V, R, 1>(rows, run, own, group);
            }
        } else {
            for group in products.chunks_exact(2) {
                side_by_side::<V, R, 2>(rows, run, own, group);
            }
        }
        let products = rest;
        // Groups run over products and rows alike, so that the AES pipeline is full for few rows too.
        let total = vectors * products.len();
        let (mut p, mut v) = (0, 0);
        let mut done = 0;
        while done < total {
            let here = (total - done).min(GROUP);
            // Product and vector of each lane; lanes beyond `here` repeat the last one and are not stored.
            let mut which = [(0usize, 0usize); GROUP];
            let mut counters = [0u64; GROUP];
            for k in 0..GROUP {
                which[k] = (p, v);
                counters[k] = u64::from(products[p].index) * run.stride + (v * VECTOR / 16) as u64;
                if k + 1 < here || here == GROUP {
                    v += 1;
                    if v == vectors {
                        (p, v) = ((p + 1).min(products.len() - 1), 0);
                    }
                }
            }
            let masks = masks_of::<V, R>(run, counters);
            for k in 0..here {
                let (p, v) = which[k];
                let (product, at) = (&products[p], v * VECTOR);
                let mut r = masks[k];
                for &(a, b) in &run.tape.pairs[product.start as usize..][..product.len as usize] {
                    r = bilinear::<V, R>(
                        rows,
                        run,
                        form,
                        rows.at(a).add(at),
                        rows.at(b).add(at),
                        r,
                    );
                }
                store(
                    rows,
                    r,
                    rows.at(product.out).add(own),
                    message_of(product),
                    at,
                );
            }
            done += here;
        }
    }
}

/// A group of `GROUP / N` products of `N` vectors each.
#[inline(always)]
unsafe fn side_by_side<V: Vector, R: RingOps<V>, const N: usize>(
    rows: Rows,
    run: &Run<'_>,
    own: usize,
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
            let message = rows
                .base
                .wrapping_add(run.messages[0] + product.index as usize * rows.packed);
            store(rows, r, rows.at(product.out).add(own), message, at);
        }
    }
}

/// Puts a received message of row products in its place.
///
/// # Safety
/// As [`super::run`]; `message` is the offset of product 0.
#[inline(always)]
pub(in crate::cpu) unsafe fn scatter<V: Vector>(
    memory: &mut Memory,
    tape: &Tape,
    part: u8,
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
            if place.packed.is_multiple_of(VECTOR) {
                for at in (0..place.packed).step_by(VECTOR) {
                    V::load(from.add(at)).store(to.add(at));
                }
            } else {
                std::ptr::copy_nonoverlapping(from, to, place.packed);
            }
        }
    }
}

#[inline(always)]
pub(super) unsafe fn dot64<V: Vector>(
    rows: Rows,
    run: &Run<'_>,
    form: &Form,
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
                acc = bilinear::<V, Z64Ops>(rows, run, form, a.add(at), b.add(at), acc);
            }
            for at in (whole..rows.packed).step_by(8) {
                for &(i, j) in form.terms {
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

#[inline(always)]
pub(super) unsafe fn dot128(rows: Rows, tape: &Tape, form: &Form, product: &Product) -> u128 {
    let mut sum = 0u128;
    for &(a, b) in &tape.pairs[product.start as usize..][..product.len as usize] {
        let (a, b) = (rows.at(a), rows.at(b));
        for at in (0..rows.packed).step_by(16) {
            for &(i, j) in form.terms {
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
