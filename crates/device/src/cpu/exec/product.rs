//! Products of shares with their masks.

use std::marker::PhantomData;

use super::super::tape::Product;
use super::super::vector::{At, GROUP, Kernel, MOST_VECTORS, VECTOR, Vector};
use super::groups::Groups;
use super::ring::{RingOps, after};
use super::terms::{Shape, bilinear};
use super::{Mask, RowAddresses, Run, from};
use crate::Form;

/// Masks of a group of vectors of row products of three-party sharing, one for each value: the first call minus the second.
#[inline(always)]
unsafe fn masks_of<V: Vector, R: RingOps<V>>(
    run: &Run<'_>,
    counters: [u64; GROUP],
) -> [R::Value; GROUP] {
    let (a, b) = (run.calls[0][0], run.calls[0][1]);
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut masks = [R::zero(); GROUP];
        let same = a.domain.tag == b.domain.tag && a.first == b.first;
        if R::BITS && same {
            let drawn = V::prf_xor(a.key, b.key, a.domain, from(counters, a.first));
            for k in 0..GROUP / R::VECTORS {
                masks[k] = value::<V, R>(&drawn, k);
            }
            return masks;
        }
        let at = from(counters, a.first);
        let inputs = V::inputs(a.domain, at);
        let drawn = V::prf_of(a.key, a.domain, at, inputs);
        let minus = if same {
            V::prf_of(b.key, a.domain, at, inputs)
        } else {
            V::prf(b.key, b.domain, from(counters, b.first))
        };
        for k in 0..GROUP / R::VECTORS {
            masks[k] = R::sub(value::<V, R>(&drawn, k), value::<V, R>(&minus, k));
        }
        masks
    }
}

/// Value `k` of a group of vectors.
#[inline(always)]
unsafe fn value<V: Vector, R: RingOps<V>>(vectors: &[V; GROUP], k: usize) -> R::Value {
    let first = k * R::VECTORS;
    // SAFETY: the caller's instruction set.
    unsafe { R::of([vectors[first], vectors[first + R::VECTORS - 1]]) }
}

/// A row at the vectors of a value.
#[inline(always)]
pub(super) fn row(base: *mut u8, at: [usize; MOST_VECTORS]) -> At {
    [base.wrapping_add(at[0]), base.wrapping_add(at[1])]
}

/// The vectors of a value that begin at `at`, one after the other.
#[inline(always)]
pub(super) fn next_to(at: usize) -> [usize; MOST_VECTORS] {
    [at, at + VECTOR]
}

/// Stores a value of a product: whole in the slot, and the rows that count in the message, if that lies apart.
#[inline(always)]
unsafe fn store<V: Vector, R: RingOps<V>>(
    rows: RowAddresses,
    r: R::Value,
    slot: *mut u8,
    message: Option<*mut u8>,
    at: [usize; MOST_VECTORS],
) {
    // SAFETY: the caller's addresses, as in `products_of`.
    unsafe {
        R::store(r, row(slot, at));
        store_message::<V, R>(rows, r, message, at);
    }
}

/// Stores the rows that count of a value of a message that lies apart.
#[inline(always)]
unsafe fn store_message<V: Vector, R: RingOps<V>>(
    rows: RowAddresses,
    r: R::Value,
    message: Option<*mut u8>,
    at: [usize; MOST_VECTORS],
) {
    let Some(message) = message else { return };
    // SAFETY: the caller's addresses, as in `products_of`.
    unsafe {
        if at[R::VECTORS - 1] + VECTOR <= rows.packed {
            R::store(r, row(message, at));
            return;
        }
        let mut last = [0u8; MOST_VECTORS * VECTOR];
        R::store(r, row(last.as_mut_ptr(), next_to(0)));
        for k in 0..R::VECTORS {
            let len = rows.packed.saturating_sub(at[k]).min(VECTOR);
            let from = last.as_ptr().add(k * VECTOR);
            std::ptr::copy_nonoverlapping(from, message.wrapping_add(at[k]), len);
        }
    }
}

/// Kernels of a batch of products, each of one form over one ring.
macro_rules! kernels {
    ($($kernel:ident, $products:ident;)*) => {$(
        struct $kernel<V, R>(PhantomData<(V, R)>);

        impl<V: Vector, R: RingOps<V>> Kernel for $kernel<V, R> {
            type Args<'a> = (RowAddresses, &'a Run<'a>, &'a [Product]);

            #[inline(always)]
            unsafe fn run((rows, run, products): Self::Args<'_>) {
                // SAFETY: as `products_of`.
                unsafe { $products::<V, R>(rows, run, products) }
            }
        }
    )*};
}
kernels! {
    Replicated, replicated_products;
    Traced, traced_products;
    OfFour, fourfold_products;
    Any, any_products;
}

/// A batch of products, `GROUP` vectors at a time.
#[inline(always)]
pub(super) unsafe fn products_of<V: Vector, R: RingOps<V>>(
    rows: RowAddresses,
    run: &Run<'_>,
    products: &[Product],
) {
    let batch = (rows, run, products);
    // SAFETY: the caller's instruction set; rows of the products exist; messages have room (checked by the caller of `run`).
    unsafe {
        match run.shape {
            // Bits alone have a trace; this was checked.
            Shape::Replicated if R::BITS && run.trace.is_some() => {
                V::outlined::<Traced<V, R>>(batch);
            }
            Shape::Replicated => V::outlined::<Replicated<V, R>>(batch),
            Shape::Fourfold { .. } => V::outlined::<OfFour<V, R>>(batch),
            Shape::Any => V::outlined::<Any<V, R>>(batch),
        }
    }
}

#[inline(always)]
unsafe fn replicated_products<V: Vector, R: RingOps<V>>(
    rows: RowAddresses,
    run: &Run<'_>,
    products: &[Product],
) {
    let vectors = rows.column / VECTOR;
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
                    for k in 0..GROUP / R::VECTORS {
                        let at = next_to((v + k * R::VECTORS) * VECTOR);
                        r[k] = R::replicated(rows.component, row(a, at), row(b, at), r[k]);
                    }
                    for &(a, b) in &pairs[1..] {
                        let (a, b) = (rows.at(a), rows.at(b));
                        for k in 0..GROUP / R::VECTORS {
                            let at = next_to((v + k * R::VECTORS) * VECTOR);
                            r[k] = R::replicated(rows.component, row(a, at), row(b, at), r[k]);
                        }
                    }
                    for k in 0..GROUP / R::VECTORS {
                        let at = next_to((v + k * R::VECTORS) * VECTOR);
                        store::<V, R>(rows, r[k], out, message, at);
                    }
                }
            }
            return;
        }
        let single = products.iter().all(|p| p.len == 1);
        let (products, rest) = match vectors {
            1 if single && R::VECTORS == 1 => products.split_at(products.len() / 4 * 4),
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
        let mut groups = Groups::new::<V, R>(rest, vectors);
        while let Some(group) = groups.next(run.stride) {
            let masks = masks_of::<V, R>(run, group.counters);
            for k in 0..group.len {
                let (product, at) = group.which[k];
                let mut r = masks[k];
                for &(a, b) in &run.tape.pairs[product.start as usize..][..product.len as usize] {
                    let (a, b) = (row(rows.at(a), at), row(rows.at(b), at));
                    r = R::replicated(rows.component, a, b, r);
                }
                let message = rows.message(run, 0, product);
                store::<V, R>(rows, r, rows.at(product.out), message, at);
            }
        }
    }
}

/// Products of three-party sharing whose operands and masks are kept.
#[inline(always)]
unsafe fn traced_products<V: Vector, R: RingOps<V>>(
    rows: RowAddresses,
    run: &Run<'_>,
    products: &[Product],
) {
    let Some(trace) = run.trace else { return };
    let mut groups = Groups::new::<V, R>(products, rows.column / VECTOR);
    while let Some(group) = groups.next(run.stride) {
        // SAFETY: as `products_of`; the trace has a column for every product (checked by the caller of `run`), whose parts are padded to
        // vectors as those of slots are.
        unsafe {
            let calls = calls_of::<V, R>(run, &group.counters);
            for k in 0..group.len {
                let (product, at) = group.which[k];
                let (a, b) = run.tape.pairs[product.start as usize];
                let (a, b) = (row(rows.at(a), at), row(rows.at(b), at));
                let to = trace.offset + product.index as usize * trace.column;
                let to = row(rows.base.wrapping_add(to), at);
                R::store(R::load(a), to);
                R::store(
                    R::load(after(a, rows.component)),
                    after(to, trace.component),
                );
                R::store(R::load(b), after(to, 2 * trace.component));
                R::store(
                    R::load(after(b, rows.component)),
                    after(to, 3 * trace.component),
                );
                R::store(calls[0][k], after(to, 4 * trace.component));
                R::store(calls[1][k], after(to, 5 * trace.component));
                let mask = R::add(calls[0][k], calls[1][k]);
                let r = R::replicated(rows.component, a, b, mask);
                // After the trace: the slot may be one of the operands.
                let message = rows.message(run, 0, product);
                store::<V, R>(rows, r, rows.at(product.out), message, at);
            }
        }
    }
}

#[inline(always)]
unsafe fn fourfold_products<V: Vector, R: RingOps<V>>(
    rows: RowAddresses,
    run: &Run<'_>,
    products: &[Product],
) {
    // SAFETY: the caller's.
    unsafe {
        if let Ok(four) = <&[Mask<'_>; 4]>::try_from(run.calls[0]) {
            fourfold_of::<V, R, 4>((rows, run, products), four);
        } else if let Ok(five) = <&[Mask<'_>; 5]>::try_from(run.calls[0]) {
            fourfold_of::<V, R, 5>((rows, run, products), five);
        }
    }
}

/// The same with so many calls: four, or five.
#[inline(always)]
unsafe fn fourfold_of<V: Vector, R: RingOps<V>, const CALLS: usize>(
    (rows, run, products): (RowAddresses, &Run<'_>, &[Product]),
    calls: &[Mask<'_>; CALLS],
) {
    let swapped = run.shape == Shape::Fourfold { swapped: true };
    let vectors = rows.column / VECTOR;
    // SAFETY: as `products_of`.
    unsafe {
        let draws = Draws::<V, CALLS>::new(calls);
        if R::LANES && vectors.is_multiple_of(GROUP) {
            // Whole groups of one product each.
            for product in products {
                let of = Fourfold { rows, run, product };
                let first = u64::from(product.index) * run.stride;
                for v in (0..vectors).step_by(GROUP) {
                    let counter = first + (v * VECTOR / 16) as u64;
                    let drawn = draws.of(&from([0, 4, 8, 12], counter));
                    for k in 0..GROUP / R::VECTORS {
                        let at = next_to((v + k * R::VECTORS) * VECTOR);
                        of.compute::<V, R, CALLS>(&drawn, k, at, swapped);
                    }
                }
            }
            return;
        }
        let mut groups = Groups::new::<V, R>(products, vectors);
        while let Some(group) = groups.next(run.stride) {
            let drawn = draws.of(&group.counters);
            for k in 0..group.len {
                let (product, at) = group.which[k];
                let of = Fourfold { rows, run, product };
                of.compute::<V, R, CALLS>(&drawn, k, at, swapped);
            }
        }
    }
}

/// A product of four-party sharing.
#[derive(Clone, Copy)]
struct Fourfold<'a> {
    rows: RowAddresses,
    run: &'a Run<'a>,
    product: &'a Product,
}

impl Fourfold<'_> {
    /// Value `k` of a group, at these vectors of the rows.
    #[inline(always)]
    unsafe fn compute<V: Vector, R: RingOps<V>, const CALLS: usize>(
        &self,
        drawn: &[[V; GROUP]; CALLS],
        k: usize,
        at: [usize; MOST_VECTORS],
        swapped: bool,
    ) {
        let Fourfold { rows, run, product } = *self;
        // SAFETY: as `products_of`.
        unsafe {
            let mut d = [R::zero(); CALLS];
            for c in 0..CALLS {
                d[c] = value::<V, R>(&drawn[c], k);
            }
            let mut m = [R::zero(); 3];
            for c in 0..3 {
                m[c] = R::sub(m[c], d[c]);
            }
            for &(a, b) in &run.tape.pairs[product.start as usize..][..product.len as usize] {
                let (a, b) = (row(rows.at(a), at), row(rows.at(b), at));
                m = R::fourfold(rows.component, a, b, m);
            }
            let mut r = [R::add(m[1], d[3]), R::add(m[0], d[1]), d[0]];
            if CALLS == 5 {
                r[1] = R::add(r[1], d[4]);
            }
            let (to, kept) = if swapped { (2, 0) } else { (0, 2) };
            r[to] = R::add(r[to], m[2]);
            r[kept] = R::add(r[kept], d[2]);
            let out = rows.at(product.out);
            for c in 0..3 {
                R::store(r[c], row(out.add(c * rows.component), at));
                store_message::<V, R>(rows, m[c], rows.message(run, c, product), at);
            }
        }
    }
}

/// Calls whose inputs differ in the domain alone: the first one's are made, and the others' are a constant beside.
struct Draws<'a, V, const CALLS: usize> {
    calls: &'a [Mask<'a>; CALLS],
    /// Whether all begin at one counter.
    alike: bool,
    /// What the domain of each changes in an input of the first.
    change: [V; CALLS],
}

impl<'a, V: Vector, const CALLS: usize> Draws<'a, V, CALLS> {
    #[inline(always)]
    unsafe fn new(calls: &'a [Mask<'a>; CALLS]) -> Self {
        let mut alike = true;
        // SAFETY: the caller's instruction set.
        unsafe {
            let mut change = [V::splat(0); CALLS];
            for c in 1..CALLS {
                alike &= calls[c].first == calls[0].first;
                change[c] = V::change(calls[0].domain, calls[c].domain);
            }
            Draws {
                calls,
                alike,
                change,
            }
        }
    }

    /// A group of vectors of each call.
    #[inline(always)]
    unsafe fn of(&self, counters: &[u64; GROUP]) -> [[V; GROUP]; CALLS] {
        // SAFETY: the caller's instruction set.
        unsafe {
            let first = &self.calls[0];
            let at = from(*counters, first.first);
            let inputs = V::inputs(first.domain, at);
            let mut drawn = [inputs; CALLS];
            drawn[0] = V::prf_of(first.key, first.domain, at, inputs);
            for c in 1..CALLS {
                let call = &self.calls[c];
                drawn[c] = if self.alike {
                    let mut inputs = inputs;
                    for g in 0..GROUP {
                        inputs[g] = inputs[g].xor(self.change[c]);
                    }
                    V::prf_of(call.key, call.domain, at, inputs)
                } else {
                    V::prf(call.key, call.domain, from(*counters, call.first))
                };
            }
            drawn
        }
    }
}

#[inline(always)]
unsafe fn any_products<V: Vector, R: RingOps<V>>(
    rows: RowAddresses,
    run: &Run<'_>,
    products: &[Product],
) {
    let Some(form) = run.form else { return };
    let mut groups = Groups::new::<V, R>(products, rows.column / VECTOR);
    while let Some(group) = groups.next(run.stride) {
        // SAFETY: as `products_of`.
        unsafe {
            let calls = calls_of::<V, R>(run, &group.counters);
            for k in 0..group.len {
                let (product, at) = group.which[k];
                let mut result = [R::zero(); Form::MOST_PARTS];
                for (c, cross) in form.crosses.iter().enumerate() {
                    let mut m = R::zero();
                    for &(a, b) in &run.tape.pairs[product.start as usize..][..product.len as usize]
                    {
                        let (a, b) = (row(rows.at(a), at), row(rows.at(b), at));
                        m = bilinear::<V, R>(rows.component, cross.terms, a, b, m);
                    }
                    for &(d, minus) in cross.masks {
                        let mask = calls[d as usize][k];
                        m = if minus {
                            R::sub(m, mask)
                        } else {
                            R::add(m, mask)
                        };
                    }
                    store_message::<V, R>(rows, m, rows.message(run, c, product), at);
                    result[cross.to as usize] = R::add(result[cross.to as usize], m);
                }
                for &(d, to) in form.keeps {
                    result[to as usize] = R::add(result[to as usize], calls[d as usize][k]);
                }
                for component in 0..Form::MOST_PARTS {
                    if run.writes >> component & 1 == 1 {
                        let slot = rows.at(product.out).add(component * rows.component);
                        R::store(result[component], row(slot, at));
                    }
                }
            }
        }
    }
}

/// The calls of row products for a group of vectors, by value; calls that the form does not have are zero.
#[inline(always)]
unsafe fn calls_of<V: Vector, R: RingOps<V>>(
    run: &Run<'_>,
    counters: &[u64; GROUP],
) -> [[R::Value; GROUP]; Form::MOST_PRF_CALLS] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut calls = [[R::zero(); GROUP]; Form::MOST_PRF_CALLS];
        for (values, mask) in calls.iter_mut().zip(run.calls[0]) {
            let drawn = V::prf(mask.key, mask.domain, from(*counters, mask.first));
            for k in 0..GROUP / R::VECTORS {
                values[k] = value::<V, R>(&drawn, k);
            }
        }
        calls
    }
}

/// A group of `GROUP / N` products of `N` vectors each, of which values are.
#[inline(always)]
unsafe fn side_by_side<V: Vector, R: RingOps<V>, const N: usize>(
    rows: RowAddresses,
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
        for k in 0..GROUP / R::VECTORS {
            let first = k * R::VECTORS;
            let product = &products[first / N];
            let (a, b) = run.tape.pairs[product.start as usize];
            let at = next_to(first % N * VECTOR);
            let (a, b) = (row(rows.at(a), at), row(rows.at(b), at));
            let r = R::replicated(rows.component, a, b, r[k]);
            let message = rows.message(run, 0, product);
            store::<V, R>(rows, r, rows.at(product.out), message, at);
        }
    }
}
