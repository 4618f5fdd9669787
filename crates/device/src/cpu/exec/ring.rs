//! Elements, vectors of elements, and what a kernel needs of a ring.

use veil_math::Ring;

use super::super::vector::{At, MOST_VECTORS, VECTOR, Vector, Wide};
use super::RowAddresses;
use super::product::{next_to, row};

#[inline(always)]
pub(super) unsafe fn element(ring: Ring, from: *const u8) -> u128 {
    // SAFETY: an element of the ring is readable at `from`.
    unsafe {
        match ring {
            Ring::Bits => u128::from(from.read() & 1),
            Ring::Z32 => u128::from(u32::from_le(from.cast::<u32>().read_unaligned())),
            Ring::Z64 => u128::from(u64::from_le(from.cast::<u64>().read_unaligned())),
            Ring::Z128 => u128::from_le(from.cast::<u128>().read_unaligned()),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn set_element(ring: Ring, to: *mut u8, value: u128) {
    // SAFETY: an element of the ring is writable at `to`.
    unsafe {
        match ring {
            Ring::Bits => to.write(value as u8 & 1),
            Ring::Z32 => to.cast::<u32>().write_unaligned((value as u32).to_le()),
            Ring::Z64 => to.cast::<u64>().write_unaligned((value as u64).to_le()),
            Ring::Z128 => to.cast::<u128>().write_unaligned(value.to_le()),
        }
    }
}

/// A vector of copies of one element; a bit is spread without a branch.
#[inline(always)]
pub(super) unsafe fn splat<V: Vector>(ring: Ring, value: u128) -> V {
    // SAFETY: the caller's instruction set; the array is 64 bytes.
    unsafe {
        match ring {
            Ring::Bits => V::splat((value as u64 & 1).wrapping_neg()),
            Ring::Z32 => V::splat(u64::from(value as u32) * 0x1_0000_0001),
            Ring::Z64 => V::splat(value as u64),
            Ring::Z128 => V::load([value.to_le(); 4].as_ptr().cast()),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn fill<V: Vector>(ring: Ring, value: u128, to: *mut u8, bytes: usize) {
    // SAFETY: `bytes` whole vectors are writable.
    unsafe {
        let v = splat::<V>(ring, value);
        for at in (0..bytes).step_by(VECTOR) {
            v.store(to.add(at));
        }
    }
}

/// Addresses moved by so many bytes.
#[inline(always)]
pub(super) fn after(at: At, bytes: usize) -> At {
    [at[0].wrapping_add(bytes), at[1].wrapping_add(bytes)]
}

/// What the product kernel needs of a ring.
pub(super) trait RingOps<V: Vector> {
    /// What it works on at once: the elements of so many vectors.
    type Value: Copy;
    const VECTORS: usize = 1;
    const BITS: bool = false;
    /// Whether elements are lanes of a vector, so that several values stay in registers.
    const LANES: bool = true;
    unsafe fn of(vectors: [V; MOST_VECTORS]) -> Self::Value;
    unsafe fn load(from: At) -> Self::Value;
    unsafe fn store(value: Self::Value, to: At);
    /// As many elements of Z_2^64, from 0 on, one after the other.
    #[inline(always)]
    unsafe fn load_narrow(from: *mut u8) -> Self::Value {
        // SAFETY: the caller's address.
        unsafe { Self::load([from; MOST_VECTORS]) }
    }
    unsafe fn add(a: Self::Value, b: Self::Value) -> Self::Value;
    unsafe fn sub(a: Self::Value, b: Self::Value) -> Self::Value;
    /// acc + Σ a · b.
    unsafe fn dot<const N: usize>(
        acc: Self::Value,
        pairs: [(Self::Value, Self::Value); N],
    ) -> Self::Value;
    /// acc + the form of replicated sharing: bits u0 w1 + u1 (w0 + w1), rings u0 (w0 + w1) + u1 w0.
    #[inline(always)]
    unsafe fn replicated(component: usize, a: At, b: At, acc: Self::Value) -> Self::Value {
        // SAFETY: the caller's addresses, as in `product::products_of`.
        unsafe {
            let (u0, u1) = (Self::load(a), Self::load(after(a, component)));
            let (w0, w1) = (Self::load(b), Self::load(after(b, component)));
            let w = Self::add(w0, w1);
            if Self::BITS {
                Self::dot(acc, [(u0, w1), (u1, w)])
            } else {
                Self::dot(acc, [(u0, w), (u1, w0)])
            }
        }
    }
    /// acc + the three cross terms of four-party sharing.
    #[inline(always)]
    unsafe fn fourfold(component: usize, a: At, b: At, acc: [Self::Value; 3]) -> [Self::Value; 3] {
        // SAFETY: the caller's addresses, as in `product::products_of`.
        unsafe {
            // No closure, which would not have the instruction set.
            let (u0, u1) = (Self::load(a), Self::load(after(a, component)));
            let (w0, w1) = (Self::load(b), Self::load(after(b, component)));
            let u2 = Self::load(after(a, 2 * component));
            let w2 = Self::load(after(b, 2 * component));
            [
                Self::dot(acc[0], [(u1, Self::add(w1, w2)), (u2, w1)]),
                Self::dot(acc[1], [(u0, Self::add(w0, w1)), (u1, w0)]),
                Self::dot(acc[2], [(u0, w2), (u2, w0)]),
            ]
        }
    }
    #[inline(always)]
    unsafe fn zero() -> Self::Value {
        // SAFETY: the caller's instruction set.
        unsafe { Self::of([V::splat(0); MOST_VECTORS]) }
    }
}

pub(super) struct BitOps;

impl<V: Vector> RingOps<V> for BitOps {
    type Value = V;
    const BITS: bool = true;
    #[inline(always)]
    unsafe fn of(vectors: [V; MOST_VECTORS]) -> V {
        vectors[0]
    }
    #[inline(always)]
    unsafe fn load(from: At) -> V {
        unsafe { V::load(from[0]) }
    }
    #[inline(always)]
    unsafe fn store(value: V, to: At) {
        unsafe { value.store(to[0]) }
    }
    #[inline(always)]
    unsafe fn add(a: V, b: V) -> V {
        unsafe { a.xor(b) }
    }
    #[inline(always)]
    unsafe fn sub(a: V, b: V) -> V {
        unsafe { a.xor(b) }
    }
    #[inline(always)]
    unsafe fn dot<const N: usize>(mut acc: V, pairs: [(V, V); N]) -> V {
        for (a, b) in pairs {
            acc = unsafe { acc.xor_and(a, b) };
        }
        acc
    }
}

/// Rings whose elements are lanes of a vector.
macro_rules! lanes {
    ($name:ident, $add:ident, $sub:ident, $mul:ident) => {
        pub(super) struct $name;

        impl<V: Vector> RingOps<V> for $name {
            type Value = V;
            #[inline(always)]
            unsafe fn of(vectors: [V; MOST_VECTORS]) -> V {
                vectors[0]
            }
            #[inline(always)]
            unsafe fn load(from: At) -> V {
                unsafe { V::load(from[0]) }
            }
            #[inline(always)]
            unsafe fn store(value: V, to: At) {
                unsafe { value.store(to[0]) }
            }
            #[inline(always)]
            unsafe fn add(a: V, b: V) -> V {
                unsafe { a.$add(b) }
            }
            #[inline(always)]
            unsafe fn sub(a: V, b: V) -> V {
                unsafe { a.$sub(b) }
            }
            #[inline(always)]
            unsafe fn dot<const N: usize>(mut acc: V, pairs: [(V, V); N]) -> V {
                for (a, b) in pairs {
                    acc = unsafe { acc.$add(a.$mul(b)) };
                }
                acc
            }
        }
    };
}

lanes!(Z32Ops, add32, sub32, mul32);
lanes!(Z64Ops, add64, sub64, mul64);

pub(super) struct Z128Ops;

impl<V: Vector> RingOps<V> for Z128Ops {
    type Value = V::Wide;
    const VECTORS: usize = V::Wide::VECTORS;
    const LANES: bool = false;
    #[inline(always)]
    unsafe fn zero() -> V::Wide {
        unsafe { V::Wide::zero() }
    }
    #[inline(always)]
    unsafe fn of(vectors: [V; MOST_VECTORS]) -> V::Wide {
        unsafe { V::Wide::of(vectors) }
    }
    #[inline(always)]
    unsafe fn load(from: At) -> V::Wide {
        unsafe { V::Wide::load(from) }
    }
    #[inline(always)]
    unsafe fn load_narrow(from: *mut u8) -> V::Wide {
        unsafe { V::Wide::load_narrow(from) }
    }
    #[inline(always)]
    unsafe fn store(value: V::Wide, to: At) {
        unsafe { value.store(to) }
    }
    #[inline(always)]
    unsafe fn add(a: V::Wide, b: V::Wide) -> V::Wide {
        unsafe { a.add(b) }
    }
    #[inline(always)]
    unsafe fn sub(a: V::Wide, b: V::Wide) -> V::Wide {
        unsafe { a.sub(b) }
    }
    #[inline(always)]
    unsafe fn dot<const N: usize>(acc: V::Wide, pairs: [(V::Wide, V::Wide); N]) -> V::Wide {
        unsafe { acc.dot(pairs) }
    }
    #[inline(always)]
    unsafe fn replicated(component: usize, a: At, b: At, acc: V::Wide) -> V::Wide {
        unsafe { acc.replicated(component, a, b) }
    }
    #[inline(always)]
    unsafe fn fourfold(component: usize, a: At, b: At, acc: [V::Wide; 3]) -> [V::Wide; 3] {
        unsafe { V::Wide::fourfold(acc, component, a, b) }
    }
}

#[inline(always)]
pub(super) unsafe fn zip<V: Vector>(
    ring: Ring,
    rows: RowAddresses,
    a: u32,
    b: u32,
    out: u32,
    minus: bool,
) {
    for component in 0..rows.components {
        // SAFETY: every component of a row is `rows.column` bytes.
        unsafe {
            let [a, b, out] = rows.component_of(component, [a, b, out]);
            for at in (0..rows.column).step_by(VECTOR) {
                let (x, y) = (V::load(a.add(at)), V::load(b.add(at)));
                step(ring, minus, x, y).store(out.add(at));
            }
        }
    }
}

/// x ± y.
#[inline(always)]
pub(in crate::cpu) unsafe fn step<V: Vector>(ring: Ring, minus: bool, x: V, y: V) -> V {
    // SAFETY: the caller's instruction set.
    unsafe {
        match (ring, minus) {
            (Ring::Bits, _) => x.xor(y),
            (Ring::Z32, false) => x.add32(y),
            (Ring::Z32, true) => x.sub32(y),
            (Ring::Z64, false) => x.add64(y),
            (Ring::Z64, true) => x.sub64(y),
            (Ring::Z128, false) => x.add128(y),
            (Ring::Z128, true) => x.sub128(y),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn plus<V: Vector>(
    ring: Ring,
    a: *const u8,
    c: u128,
    out: *mut u8,
    bytes: usize,
) {
    // SAFETY: both rows are `bytes` long.
    unsafe {
        let c = splat::<V>(ring, c);
        for at in (0..bytes).step_by(VECTOR) {
            step(ring, false, V::load(a.add(at)), c).store(out.add(at));
        }
    }
}

#[inline(always)]
pub(super) unsafe fn times<V: Vector>(
    ring: Ring,
    a: *const u8,
    c: u128,
    out: *mut u8,
    bytes: usize,
) {
    // SAFETY: both rows are `bytes` long.
    unsafe {
        if ring == Ring::Z128 {
            multiples::<V, Z128Ops>(a, [splat(ring, c); MOST_VECTORS], out, bytes);
            return;
        }
        let c = splat::<V>(ring, c);
        for at in (0..bytes).step_by(VECTOR) {
            let x = V::load(a.add(at));
            let z = match ring {
                Ring::Bits => x.and(c),
                Ring::Z32 => x.mul32(c),
                Ring::Z64 | Ring::Z128 => x.mul64(c),
            };
            z.store(out.add(at));
        }
    }
}

/// out = a · c, of whole vectors; c is spread over as many as a value takes.
#[inline(always)]
unsafe fn multiples<V: Vector, R: RingOps<V>>(
    a: *const u8,
    c: [V; MOST_VECTORS],
    out: *mut u8,
    bytes: usize,
) {
    // SAFETY: both rows are `bytes` long.
    unsafe {
        let mut factors = [0u8; MOST_VECTORS * VECTOR];
        for k in 0..MOST_VECTORS {
            c[k].store(factors.as_mut_ptr().add(k * VECTOR));
        }
        let c = R::load(row(factors.as_mut_ptr(), next_to(0)));
        for at in (0..bytes).step_by(R::VECTORS * VECTOR) {
            // The last vector may be alone; it is then worked on twice.
            let at = [at, (at + VECTOR).min(bytes - VECTOR)];
            let x = R::load(row(a.cast_mut(), at));
            R::store(R::dot(R::zero(), [(x, c)]), row(out, at));
        }
    }
}

/// The sum of `bytes` of elements: whole values, then the elements that are left.
#[inline(always)]
pub(super) unsafe fn total<V: Vector>(ring: Ring, row: *const u8, bytes: usize) -> u128 {
    // SAFETY: `bytes` are readable.
    unsafe {
        match ring {
            Ring::Z32 => total_of::<V, Z32Ops>(ring, row, bytes),
            Ring::Bits | Ring::Z64 => total_of::<V, Z64Ops>(ring, row, bytes),
            Ring::Z128 => total_of::<V, Z128Ops>(ring, row, bytes),
        }
    }
}

#[inline(always)]
unsafe fn total_of<V: Vector, R: RingOps<V>>(ring: Ring, from: *const u8, bytes: usize) -> u128 {
    // SAFETY: as `total`.
    unsafe {
        let step = R::VECTORS * VECTOR;
        let whole = bytes / step * step;
        let mut acc = R::zero();
        for at in (0..whole).step_by(step) {
            acc = R::add(acc, R::load(row(from.cast_mut(), next_to(at))));
        }
        let mut sum = elements_of::<V, R>(ring, acc);
        for at in (whole..bytes).step_by(ring.bytes(1) as usize) {
            sum = ring.add(sum, element(ring, from.add(at)));
        }
        sum
    }
}

/// The sum of the elements of a value.
#[inline(always)]
pub(super) unsafe fn elements_of<V: Vector, R: RingOps<V>>(ring: Ring, value: R::Value) -> u128 {
    let mut bytes = [0u8; MOST_VECTORS * VECTOR];
    let mut sum = 0;
    // SAFETY: the array has room for all vectors of a value.
    unsafe {
        R::store(value, row(bytes.as_mut_ptr(), next_to(0)));
        for at in (0..R::VECTORS * VECTOR).step_by(ring.bytes(1) as usize) {
            sum = ring.add(sum, element(ring, bytes.as_ptr().add(at)));
        }
    }
    sum
}
