//! The kernels: a tape over a bank, generic over the vector. No branch and no address here depends on a value.

#![expect(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use veil_math::Ring;

use super::bank::Memory;
use super::tape::{NO_ROW, NO_UNIFORM, Product, Tape, TapeOp};
use super::vector::{Domain, GROUP, RoundKeys, VECTOR, Vector};
use crate::command::Form;

/// A draw with its key at hand.
#[derive(Clone, Copy)]
pub(super) struct Mask<'a> {
    pub(super) key: &'a RoundKeys,
    pub(super) domain: Domain,
    pub(super) first: u64,
    pub(super) minus: bool,
}

/// Everything a run of a tape needs.
pub(super) struct Run<'a> {
    pub(super) tape: &'a Tape,
    pub(super) constants: u8,
    pub(super) form: Option<&'static Form>,
    /// The form is the one of replicated sharing, which takes two products instead of three.
    pub(super) replicated: bool,
    /// Masks of row products, of sums.
    pub(super) masks: [&'a [Mask<'a>]; 2],
    /// Offset of product 0 in the message of row products, of sums.
    pub(super) messages: [usize; 2],
    /// Counters per row product.
    pub(super) stride: u64,
}

/// Addresses of a bank's rows. All derived once, from a checked program and layout.
#[derive(Clone, Copy)]
struct Rows {
    base: *mut u8,
    slots: usize,
    /// Bytes of a slot: all parts.
    slot: usize,
    /// Bytes of a part, whole vectors.
    part: usize,
    parts: usize,
    /// Bytes of a part that count.
    packed: usize,
}

impl Rows {
    #[inline(always)]
    fn at(&self, row: u32) -> *mut u8 {
        self.base
            .wrapping_add(self.slots + row as usize * self.slot)
    }
}

/// Runs the tape.
///
/// # Safety
/// `V`'s instruction set is enabled in the caller; the tape was compiled from a program that was checked against the bank's
/// layout, the bank has `tape.scratch` scratch rows, and the messages lie in the bank with room for all products.
#[inline(always)]
pub(super) unsafe fn run<V: Vector>(memory: &mut Memory, run: &Run<'_>) {
    let tape = run.tape;
    let place = memory.places[tape.slots as usize];
    let parts = memory.layout.regions[tape.slots as usize].parts as usize;
    let rows = Rows {
        base: memory.base(),
        slots: place.offset,
        slot: place.item,
        part: place.part,
        parts,
        packed: place.packed,
    };
    let uniforms = memory.places[tape.uniforms as usize];
    let sums = memory.places[tape.sums_region as usize];
    for op in &tape.ops {
        // SAFETY: rows, uniforms and sums named by the tape exist (caller), and every access below stays within one of them.
        unsafe {
            match *op {
                TapeOp::Xors { start, len } => {
                    for x in &tape.xors[start as usize..][..len as usize] {
                        if x.c == NO_ROW {
                            xor2::<V>(rows, x.a, x.b, x.out);
                        } else {
                            xor3::<V>(rows, x.a, x.b, x.c, x.out);
                        }
                    }
                }
                TapeOp::Xor {
                    start,
                    len,
                    one,
                    uniform,
                    out,
                } => {
                    let srcs = &tape.srcs[start as usize..][..len as usize];
                    for part in 0..parts {
                        let mut constant =
                            u64::from(one && run.constants >> part & 1 == 1).wrapping_neg();
                        if uniform != NO_UNIFORM {
                            let from = uniforms.offset
                                + part * uniforms.part
                                + uniform as usize * uniforms.item;
                            constant ^= u64::from(rows.base.add(from).read() & 1).wrapping_neg();
                        }
                        xor::<V>(
                            rows,
                            srcs,
                            part * rows.part,
                            V::splat(constant),
                            rows.at(out),
                        );
                    }
                }
                TapeOp::Add { a, b, out } => zip::<V>(tape.ring, rows, a, b, out, false),
                TapeOp::Sub { a, b, out } => zip::<V>(tape.ring, rows, a, b, out, true),
                TapeOp::Plus { a, c, out } => {
                    for part in 0..parts {
                        let c = if run.constants >> part & 1 == 1 {
                            tape.constants[c as usize]
                        } else {
                            0
                        };
                        let (a, out) = (
                            rows.at(a).add(part * rows.part),
                            rows.at(out).add(part * rows.part),
                        );
                        plus::<V>(tape.ring, a, c, out, rows.part);
                    }
                }
                TapeOp::Times { a, c, out } => {
                    times::<V>(
                        tape.ring,
                        rows.at(a),
                        tape.constants[c as usize],
                        rows.at(out),
                        rows.slot,
                    );
                }
                TapeOp::Constant { c, out } => {
                    for part in 0..parts {
                        let c = if run.constants >> part & 1 == 1 {
                            tape.constants[c as usize]
                        } else {
                            0
                        };
                        fill::<V>(tape.ring, c, rows.at(out).add(part * rows.part), rows.part);
                    }
                }
                TapeOp::Spread { uniform, out } => {
                    for part in 0..parts {
                        let from = uniforms.offset
                            + part * uniforms.part
                            + uniform as usize * uniforms.item;
                        let value = element(tape.ring, rows.base.add(from));
                        fill::<V>(
                            tape.ring,
                            value,
                            rows.at(out).add(part * rows.part),
                            rows.part,
                        );
                    }
                }
                TapeOp::Sum { a, out } => {
                    for part in 0..parts {
                        let total =
                            total::<V>(tape.ring, rows.at(a).add(part * rows.part), rows.packed);
                        let to = sums.offset + part * sums.part + out as usize * sums.item;
                        set_element(tape.ring, rows.base.add(to), total);
                    }
                }
                TapeOp::Products { start, len } => {
                    let products = &tape.products[start as usize..][..len as usize];
                    let Some(form) = run.form else { continue };
                    match tape.ring {
                        Ring::Bits => products_of::<V, BitOps>(rows, run, form, products),
                        Ring::Z64 => products_of::<V, Z64Ops>(rows, run, form, products),
                        Ring::Z128 => products_of::<V, Z128Ops>(rows, run, form, products),
                    }
                }
                TapeOp::ProductSum { at } => {
                    let Some(form) = run.form else { continue };
                    let product = &tape.sums[at as usize];
                    let mut r = match tape.ring {
                        Ring::Z64 => u128::from(dot64::<V>(rows, run, form, product)),
                        Ring::Bits | Ring::Z128 => dot128(rows, run.tape, form, product),
                    };
                    for mask in run.masks[1] {
                        let mut bytes = [0; VECTOR];
                        let ctr = mask.first + u64::from(product.index);
                        V::prf(mask.key, mask.domain, [ctr; GROUP])[0].store(bytes.as_mut_ptr());
                        let m = element(tape.ring, bytes.as_ptr());
                        r = if mask.minus {
                            tape.ring.sub(r, m)
                        } else {
                            tape.ring.add(r, m)
                        };
                    }
                    let to = sums.offset
                        + form.own as usize * sums.part
                        + product.out as usize * sums.item;
                    set_element(tape.ring, rows.base.add(to), r);
                    let message = run.messages[1] + product.index as usize * sums.packed;
                    set_element(tape.ring, rows.base.add(message), r);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn element(ring: Ring, from: *const u8) -> u128 {
    // SAFETY: an element of the ring is readable at `from`.
    unsafe {
        match ring {
            Ring::Bits => u128::from(from.read() & 1),
            Ring::Z64 => u128::from(u64::from_le(from.cast::<u64>().read_unaligned())),
            Ring::Z128 => u128::from_le(from.cast::<u128>().read_unaligned()),
        }
    }
}

#[inline(always)]
unsafe fn set_element(ring: Ring, to: *mut u8, value: u128) {
    // SAFETY: an element of the ring is writable at `to`.
    unsafe {
        match ring {
            Ring::Bits => to.write(value as u8 & 1),
            Ring::Z64 => to.cast::<u64>().write_unaligned((value as u64).to_le()),
            Ring::Z128 => to.cast::<u128>().write_unaligned(value.to_le()),
        }
    }
}

/// A vector of copies of one element; a bit is spread without a branch.
#[inline(always)]
unsafe fn splat<V: Vector>(ring: Ring, value: u128) -> V {
    // SAFETY: the caller's instruction set; the array is 64 bytes.
    unsafe {
        match ring {
            Ring::Bits => V::splat((value as u64 & 1).wrapping_neg()),
            Ring::Z64 => V::splat(value as u64),
            Ring::Z128 => V::load([value.to_le(); 4].as_ptr().cast()),
        }
    }
}

#[inline(always)]
unsafe fn fill<V: Vector>(ring: Ring, value: u128, to: *mut u8, bytes: usize) {
    // SAFETY: `bytes` whole vectors are writable.
    unsafe {
        let v = splat::<V>(ring, value);
        for at in (0..bytes).step_by(VECTOR) {
            v.store(to.add(at));
        }
    }
}

/// out = a ^ b, whole slots, all parts at once.
#[inline(always)]
unsafe fn xor2<V: Vector>(rows: Rows, a: u32, b: u32, out: u32) {
    let (a, b, out) = (rows.at(a), rows.at(b), rows.at(out));
    // SAFETY: every row is `rows.slot` bytes, whole vectors.
    unsafe {
        let mut at = 0;
        // Four at a time: the loop itself costs more than a vector.
        while at + 4 * VECTOR <= rows.slot {
            let mut x = [V::splat(0); 4];
            for k in 0..4 {
                x[k] = V::load(a.add(at + k * VECTOR)).xor(V::load(b.add(at + k * VECTOR)));
            }
            for k in 0..4 {
                x[k].store(out.add(at + k * VECTOR));
            }
            at += 4 * VECTOR;
        }
        while at < rows.slot {
            V::load(a.add(at))
                .xor(V::load(b.add(at)))
                .store(out.add(at));
            at += VECTOR;
        }
    }
}

/// out = a ^ b ^ c, whole slots, all parts at once.
#[inline(always)]
unsafe fn xor3<V: Vector>(rows: Rows, a: u32, b: u32, c: u32, out: u32) {
    let (a, b, c, out) = (rows.at(a), rows.at(b), rows.at(c), rows.at(out));
    // SAFETY: every row is `rows.slot` bytes, whole vectors.
    unsafe {
        let mut at = 0;
        while at + 4 * VECTOR <= rows.slot {
            let mut x = [V::splat(0); 4];
            for k in 0..4 {
                let at = at + k * VECTOR;
                x[k] = V::load(a.add(at)).xor3(V::load(b.add(at)), V::load(c.add(at)));
            }
            for k in 0..4 {
                x[k].store(out.add(at + k * VECTOR));
            }
            at += 4 * VECTOR;
        }
        while at < rows.slot {
            V::load(a.add(at))
                .xor3(V::load(b.add(at)), V::load(c.add(at)))
                .store(out.add(at));
            at += VECTOR;
        }
    }
}

/// One part of out = XOR of any number of rows and a constant; the running value stays in a register.
#[inline(always)]
unsafe fn xor<V: Vector>(rows: Rows, srcs: &[u32], part: usize, constant: V, out: *mut u8) {
    // SAFETY: every row is `rows.slot` bytes, of which this part is `rows.part`; `out` is such a row.
    unsafe {
        let to = out.add(part);
        match srcs.len() {
            0 => xor_n::<V, 0>(rows, srcs, part, constant, to),
            1 => xor_n::<V, 1>(rows, srcs, part, constant, to),
            2 => xor_n::<V, 2>(rows, srcs, part, constant, to),
            3 => xor_n::<V, 3>(rows, srcs, part, constant, to),
            4 => xor_n::<V, 4>(rows, srcs, part, constant, to),
            5 => xor_n::<V, 5>(rows, srcs, part, constant, to),
            6 => xor_n::<V, 6>(rows, srcs, part, constant, to),
            _ => {
                for at in (part..part + rows.part).step_by(VECTOR) {
                    let mut x = constant;
                    for &s in srcs {
                        x = x.xor(V::load(rows.at(s).add(at)));
                    }
                    x.store(out.add(at));
                }
            }
        }
    }
}

/// As [`xor`] for `N` rows: addresses are computed once.
#[inline(always)]
unsafe fn xor_n<V: Vector, const N: usize>(
    rows: Rows,
    srcs: &[u32],
    part: usize,
    constant: V,
    to: *mut u8,
) {
    let mut from = [rows.base; N];
    for k in 0..N {
        from[k] = rows.at(srcs[k]).wrapping_add(part);
    }
    for at in (0..rows.part).step_by(VECTOR) {
        // SAFETY: as in `xor`.
        unsafe {
            let mut x = constant;
            let mut k = 0;
            while k + 2 <= N {
                x = x.xor3(V::load(from[k].add(at)), V::load(from[k + 1].add(at)));
                k += 2;
            }
            if k < N {
                x = x.xor(V::load(from[k].add(at)));
            }
            x.store(to.add(at));
        }
    }
}

/// What the product kernel needs of a ring.
trait RingOps<V: Vector> {
    unsafe fn add(a: V, b: V) -> V;
    unsafe fn sub(a: V, b: V) -> V;
    unsafe fn mul(a: V, b: V) -> V;
    /// acc + a · b.
    #[inline(always)]
    unsafe fn mul_add(acc: V, a: V, b: V) -> V {
        // SAFETY: the caller's.
        unsafe { Self::add(acc, Self::mul(a, b)) }
    }
    const BITS: bool = false;
}

struct BitOps;
impl<V: Vector> RingOps<V> for BitOps {
    #[inline(always)]
    unsafe fn add(a: V, b: V) -> V {
        unsafe { a.xor(b) }
    }
    #[inline(always)]
    unsafe fn sub(a: V, b: V) -> V {
        unsafe { a.xor(b) }
    }
    #[inline(always)]
    unsafe fn mul(a: V, b: V) -> V {
        unsafe { a.and(b) }
    }
    #[inline(always)]
    unsafe fn mul_add(acc: V, a: V, b: V) -> V {
        unsafe { acc.xor_and(a, b) }
    }
    const BITS: bool = true;
}

struct Z64Ops;
impl<V: Vector> RingOps<V> for Z64Ops {
    #[inline(always)]
    unsafe fn add(a: V, b: V) -> V {
        unsafe { a.add64(b) }
    }
    #[inline(always)]
    unsafe fn sub(a: V, b: V) -> V {
        unsafe { a.sub64(b) }
    }
    #[inline(always)]
    unsafe fn mul(a: V, b: V) -> V {
        unsafe { a.mul64(b) }
    }
}

/// Four 128-bit elements; no instruction set has them, so they go through memory, which the compiler keeps in registers.
struct Z128Ops;
impl Z128Ops {
    #[inline(always)]
    unsafe fn zip<V: Vector>(a: V, b: V, f: impl Fn(u128, u128) -> u128) -> V {
        let (mut x, mut y) = ([0u128; 4], [0u128; 4]);
        // SAFETY: the arrays are 64 bytes.
        unsafe {
            a.store(x.as_mut_ptr().cast());
            b.store(y.as_mut_ptr().cast());
            for k in 0..4 {
                x[k] = f(u128::from_le(x[k]), u128::from_le(y[k])).to_le();
            }
            V::load(x.as_ptr().cast())
        }
    }
}
impl<V: Vector> RingOps<V> for Z128Ops {
    #[inline(always)]
    unsafe fn add(a: V, b: V) -> V {
        unsafe { Z128Ops::zip(a, b, u128::wrapping_add) }
    }
    #[inline(always)]
    unsafe fn sub(a: V, b: V) -> V {
        unsafe { Z128Ops::zip(a, b, u128::wrapping_sub) }
    }
    #[inline(always)]
    unsafe fn mul(a: V, b: V) -> V {
        unsafe { Z128Ops::zip(a, b, u128::wrapping_mul) }
    }
}

#[inline(always)]
unsafe fn zip<V: Vector>(ring: Ring, rows: Rows, a: u32, b: u32, out: u32, minus: bool) {
    let (a, b, out) = (rows.at(a), rows.at(b), rows.at(out));
    for at in (0..rows.slot).step_by(VECTOR) {
        // SAFETY: every row is `rows.slot` bytes.
        unsafe {
            let (x, y) = (V::load(a.add(at)), V::load(b.add(at)));
            step(ring, minus, x, y).store(out.add(at));
        }
    }
}

/// x ± y.
#[inline(always)]
unsafe fn step<V: Vector>(ring: Ring, minus: bool, x: V, y: V) -> V {
    // SAFETY: the caller's instruction set.
    unsafe {
        match (ring, minus) {
            (Ring::Bits, _) => x.xor(y),
            (Ring::Z64, false) => x.add64(y),
            (Ring::Z64, true) => x.sub64(y),
            (Ring::Z128, false) => Z128Ops::add(x, y),
            (Ring::Z128, true) => Z128Ops::sub(x, y),
        }
    }
}

#[inline(always)]
unsafe fn plus<V: Vector>(ring: Ring, a: *const u8, c: u128, out: *mut u8, bytes: usize) {
    // SAFETY: both rows are `bytes` long.
    unsafe {
        let c = splat::<V>(ring, c);
        for at in (0..bytes).step_by(VECTOR) {
            let x = V::load(a.add(at));
            let z = match ring {
                Ring::Bits => x.xor(c),
                Ring::Z64 => x.add64(c),
                Ring::Z128 => Z128Ops::add(x, c),
            };
            z.store(out.add(at));
        }
    }
}

#[inline(always)]
unsafe fn times<V: Vector>(ring: Ring, a: *const u8, c: u128, out: *mut u8, bytes: usize) {
    // SAFETY: both rows are `bytes` long.
    unsafe {
        let c = splat::<V>(ring, c);
        for at in (0..bytes).step_by(VECTOR) {
            let x = V::load(a.add(at));
            let z = match ring {
                Ring::Bits => x.and(c),
                Ring::Z64 => x.mul64(c),
                Ring::Z128 => Z128Ops::mul(x, c),
            };
            z.store(out.add(at));
        }
    }
}

/// The sum of `bytes` of elements: whole vectors, then the elements that are left.
#[inline(always)]
unsafe fn total<V: Vector>(ring: Ring, row: *const u8, bytes: usize) -> u128 {
    // SAFETY: `bytes` are readable.
    unsafe {
        let mut sum = 0u128;
        if ring == Ring::Z128 {
            for at in (0..bytes).step_by(16) {
                sum = sum.wrapping_add(element(ring, row.add(at)));
            }
            return sum;
        }
        let whole = bytes / VECTOR * VECTOR;
        let mut acc = V::splat(0);
        for at in (0..whole).step_by(VECTOR) {
            acc = acc.add64(V::load(row.add(at)));
        }
        let mut lanes = [0u64; 8];
        acc.store(lanes.as_mut_ptr().cast());
        for lane in lanes {
            sum = ring.add(sum, u128::from(lane));
        }
        for at in (whole..bytes).step_by(8) {
            sum = ring.add(sum, element(ring, row.add(at)));
        }
        sum
    }
}

const RING_FORM: &[(u8, u8)] = &[(0, 0), (0, 1), (1, 0)];
const BIT_FORM: &[(u8, u8)] = &[(0, 1), (1, 0), (1, 1)];

/// Whether [`replicated`] computes the form.
pub(super) fn is_replicated(form: &Form) -> bool {
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
unsafe fn products_of<V: Vector, R: RingOps<V>>(
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
/// As [`run`]; `message` is the offset of product 0.
#[inline(always)]
pub(super) unsafe fn scatter<V: Vector>(
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
fn from(mut counters: [u64; GROUP], first: u64) -> [u64; GROUP] {
    for c in &mut counters {
        *c = c.wrapping_add(first);
    }
    counters
}

#[inline(always)]
unsafe fn dot64<V: Vector>(rows: Rows, run: &Run<'_>, form: &Form, product: &Product) -> u64 {
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
unsafe fn dot128(rows: Rows, tape: &Tape, form: &Form, product: &Product) -> u128 {
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
    let _ = rows.parts;
    sum
}

/// The stream of one item of a draw: `out` is filled from block `ctr` on.
#[inline(always)]
pub(super) unsafe fn random<V: Vector>(mask: Mask<'_>, ctr: u64, out: &mut [u8]) {
    let mut block = [0u8; VECTOR * GROUP];
    for (k, piece) in out.chunks_mut(VECTOR * GROUP).enumerate() {
        let at = ctr + (k * VECTOR * GROUP / 16) as u64;
        // SAFETY: the caller's instruction set; `block` has room for the group.
        unsafe {
            let vectors = V::prf(mask.key, mask.domain, from([0, 4, 8, 12], at));
            for (g, v) in vectors.into_iter().enumerate() {
                v.store(block.as_mut_ptr().add(g * VECTOR));
            }
        }
        piece.copy_from_slice(&block[..piece.len()]);
    }
}

/// to = to ± from, packed bytes of ring elements.
#[inline(always)]
pub(super) unsafe fn accumulate<V: Vector>(
    ring: Ring,
    minus: bool,
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) {
    let whole = bytes / VECTOR * VECTOR;
    // SAFETY: `bytes` are readable at `from` and writable at `to`; elements do not straddle vectors.
    unsafe {
        for at in (0..whole).step_by(VECTOR) {
            step(ring, minus, V::load(to.add(at)), V::load(from.add(at))).store(to.add(at));
        }
        if whole < bytes {
            let (mut x, mut y) = ([0u8; VECTOR], [0u8; VECTOR]);
            std::ptr::copy_nonoverlapping(to.add(whole), x.as_mut_ptr(), bytes - whole);
            std::ptr::copy_nonoverlapping(from.add(whole), y.as_mut_ptr(), bytes - whole);
            step::<V>(ring, minus, V::load(x.as_ptr()), V::load(y.as_ptr())).store(x.as_mut_ptr());
            std::ptr::copy_nonoverlapping(x.as_ptr(), to.add(whole), bytes - whole);
        }
    }
}

/// Blocks of one round of [`rate`].
pub(super) const RATE_BLOCKS: u64 = 1 << 18;

/// Makes `RATE_BLOCKS` blocks under two keys, as products do, and keeps nothing of them but a byte.
#[inline(always)]
pub(super) unsafe fn rate<V: Vector>(keys: &[RoundKeys; 2], domain: Domain, ctr: u64) -> u8 {
    let mut last = [0u8; VECTOR];
    // SAFETY: the caller's instruction set; `last` is a vector long.
    unsafe {
        let mut sum = V::splat(0);
        for g in 0..RATE_BLOCKS / (2 * 16) {
            for v in V::prf_xor(
                &keys[0],
                &keys[1],
                domain,
                from([0, 4, 8, 12], ctr + 16 * g),
            ) {
                sum = sum.xor(v);
            }
        }
        sum.store(last.as_mut_ptr());
    }
    last[0]
}
