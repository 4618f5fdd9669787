//! Commands on columns of elements without a program: sums, products, sums of products.

use veil_math::Ring;

use super::super::vector::{MOST_VECTORS, Task, VECTOR, Vector};
use super::product::{next_to, row};
use super::ring::{RingOps, Z32Ops, Z64Ops, Z128Ops, element, elements_of, step};

/// Most sources of a sum.
pub(in crate::cpu) const MOST_SOURCES: usize = 32;

/// Columns in the workspace: where the first one is, and how far behind it the next.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Columns {
    pub(in crate::cpu) first: *mut u8,
    pub(in crate::cpu) stride: usize,
}

impl Columns {
    pub(in crate::cpu) const NONE: Columns = Columns {
        first: std::ptr::null_mut(),
        stride: 0,
    };

    #[inline(always)]
    pub(in crate::cpu) fn at(self, k: usize) -> *mut u8 {
        self.first.wrapping_add(k * self.stride)
    }
}

/// Column `k` of each.
#[inline(always)]
fn pair(columns: [Columns; 2], k: usize) -> [*mut u8; 2] {
    [columns[0].at(k), columns[1].at(k)]
}

/// The sum of columns of sources, each of which is added or taken away. The destination is no source but the first one, in place.
pub(in crate::cpu) struct Sum<'a> {
    pub(in crate::cpu) ring: Ring,
    pub(in crate::cpu) sources: &'a [(Columns, bool)],
    pub(in crate::cpu) to: Columns,
    pub(in crate::cpu) columns: usize,
    /// Of a column.
    pub(in crate::cpu) bytes: usize,
    /// The bits of the last byte that hold rows.
    pub(in crate::cpu) keep: u8,
}

impl Task for Sum<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: the caller's.
        unsafe {
            match self.ring {
                Ring::Bits => self.of::<V>(Ring::Bits),
                Ring::Z32 => self.of::<V>(Ring::Z32),
                Ring::Z64 => self.of::<V>(Ring::Z64),
                Ring::Z128 => self.of::<V>(Ring::Z128),
            }
        }
    }
}

impl Sum<'_> {
    #[inline(always)]
    unsafe fn of<V: Vector>(&self, ring: Ring) {
        let whole = self.bytes / VECTOR * VECTOR;
        let rest = self.bytes - whole;
        for k in 0..self.columns {
            let to = self.to.at(k);
            // SAFETY: every column has `bytes` bytes (checked by the caller of `run`).
            unsafe {
                match *self.sources {
                    [] => to.write_bytes(0, self.bytes),
                    // In place, if at all.
                    [(from, false)] => std::ptr::copy(from.at(k), to, self.bytes),
                    [a, b] => {
                        for at in (0..whole).step_by(VECTOR) {
                            let sum = step(ring, a.1, V::splat(0), V::load(a.0.at(k).add(at)));
                            let sum = step(ring, b.1, sum, V::load(b.0.at(k).add(at)));
                            sum.store(to.add(at));
                        }
                        self.rest::<V>(ring, (k, whole, rest));
                    }
                    _ => {
                        for at in (0..whole).step_by(VECTOR) {
                            let mut sum = V::splat(0);
                            for &(from, minus) in self.sources {
                                sum = step(ring, minus, sum, V::load(from.at(k).add(at)));
                            }
                            sum.store(to.add(at));
                        }
                        self.rest::<V>(ring, (k, whole, rest));
                    }
                }
                if self.keep != 0xff && self.bytes > 0 {
                    *to.add(self.bytes - 1) &= self.keep;
                }
            }
        }
    }

    /// What is less than a vector, at the end of column `k`.
    #[inline(always)]
    unsafe fn rest<V: Vector>(&self, ring: Ring, (k, at, bytes): (usize, usize, usize)) {
        if bytes == 0 {
            return;
        }
        // SAFETY: as `of`.
        unsafe {
            let mut sum = V::splat(0);
            let mut part = [0u8; VECTOR];
            for &(from, minus) in self.sources {
                std::ptr::copy_nonoverlapping(from.at(k).add(at), part.as_mut_ptr(), bytes);
                sum = step(ring, minus, sum, V::load(part.as_ptr()));
            }
            sum.store(part.as_mut_ptr());
            std::ptr::copy_nonoverlapping(part.as_ptr(), self.to.at(k).add(at), bytes);
        }
    }
}

/// Products of the elements of two columns, in integers. The destination overlaps no source.
pub(in crate::cpu) struct Products {
    pub(in crate::cpu) ring: Ring,
    pub(in crate::cpu) from: [Columns; 2],
    pub(in crate::cpu) to: Columns,
    pub(in crate::cpu) columns: usize,
    /// Of a column.
    pub(in crate::cpu) bytes: usize,
}

impl Task for Products {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for k in 0..self.columns {
            let ([a, b], to) = (pair(self.from, k), self.to.at(k));
            // SAFETY: every column has `bytes` bytes (checked by the caller of `run`).
            unsafe {
                match self.ring {
                    Ring::Z32 => products::<V, Z32Ops>([a, b], to, self.bytes),
                    Ring::Bits | Ring::Z64 => products::<V, Z64Ops>([a, b], to, self.bytes),
                    Ring::Z128 => products::<V, Z128Ops>([a, b], to, self.bytes),
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn products<V: Vector, R: RingOps<V>>([a, b]: [*mut u8; 2], to: *mut u8, bytes: usize) {
    let step = R::VECTORS * VECTOR;
    let whole = bytes / step * step;
    // SAFETY: `bytes` bytes are there at each address.
    unsafe {
        for at in (0..whole).step_by(step) {
            let at = next_to(at);
            let (x, y) = (R::load(row(a, at)), R::load(row(b, at)));
            R::store(R::dot(R::zero(), [(x, y)]), row(to, at));
        }
        if whole < bytes {
            let mut rest = [[0u8; MOST_VECTORS * VECTOR]; 2];
            let [x, y] = &mut rest;
            let (x, y) = (x.as_mut_ptr(), y.as_mut_ptr());
            std::ptr::copy_nonoverlapping(a.add(whole), x, bytes - whole);
            std::ptr::copy_nonoverlapping(b.add(whole), y, bytes - whole);
            let at = next_to(0);
            let product = R::dot(R::zero(), [(R::load(row(x, at)), R::load(row(y, at)))]);
            R::store(product, row(x, at));
            std::ptr::copy_nonoverlapping(x, to.add(whole), bytes - whole);
        }
    }
}

/// Σ a (c + d) + b c over columns of integers. The factors a and b are of the ring of the values c and d, or of Z_2^64.
pub(in crate::cpu) struct Dot<'a> {
    pub(in crate::cpu) narrow: bool,
    pub(in crate::cpu) ring: Ring,
    pub(in crate::cpu) factors: [Columns; 2],
    pub(in crate::cpu) values: [Columns; 2],
    pub(in crate::cpu) columns: usize,
    /// Of a column of values.
    pub(in crate::cpu) bytes: usize,
    pub(in crate::cpu) sum: &'a mut u128,
}

impl Task for Dot<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for k in 0..self.columns {
            let (from, values) = (pair(self.factors, k), pair(self.values, k));
            // SAFETY: every column of values has `bytes` bytes, and one of factors as many elements (checked by the caller of `run`).
            let of_column = unsafe {
                match (self.ring, self.narrow) {
                    (Ring::Z32, _) => dot::<V, Z32Ops, false>(Ring::Z32, from, values, self.bytes),
                    (Ring::Bits | Ring::Z64, _) => {
                        dot::<V, Z64Ops, false>(Ring::Z64, from, values, self.bytes)
                    }
                    (Ring::Z128, false) => {
                        dot::<V, Z128Ops, false>(Ring::Z128, from, values, self.bytes)
                    }
                    (Ring::Z128, true) => {
                        dot::<V, Z128Ops, true>(Ring::Z128, from, values, self.bytes)
                    }
                }
            };
            *self.sum = self.ring.add(*self.sum, of_column);
        }
    }
}

#[inline(always)]
unsafe fn dot<V: Vector, R: RingOps<V>, const NARROW: bool>(
    ring: Ring,
    [a, b]: [*mut u8; 2],
    [c, d]: [*mut u8; 2],
    bytes: usize,
) -> u128 {
    let step = R::VECTORS * VECTOR;
    // Where elements of Z_2^128 are in general registers, one at a time leaves room for the sum, and factors without upper words are known.
    let whole = if ring == Ring::Z128 && R::VECTORS == 1 {
        0
    } else {
        bytes / step * step
    };
    let (factors, each) = if NARROW { (Ring::Z64, 2) } else { (ring, 1) };
    // SAFETY: `bytes` bytes of values and as many factors are there.
    unsafe {
        let mut acc = R::zero();
        for at in (0..whole).step_by(step) {
            let (x, y) = if NARROW {
                (R::load_narrow(a.add(at / 2)), R::load_narrow(b.add(at / 2)))
            } else {
                (R::load(row(a, next_to(at))), R::load(row(b, next_to(at))))
            };
            let (z, w) = (R::load(row(c, next_to(at))), R::load(row(d, next_to(at))));
            acc = R::dot(acc, [(x, R::add(z, w)), (y, z)]);
        }
        let mut sum = elements_of::<V, R>(ring, acc);
        for at in (whole..bytes).step_by(ring.bytes(1) as usize) {
            let x = element(factors, a.add(at / each));
            let y = element(factors, b.add(at / each));
            let (z, w) = (element(ring, c.add(at)), element(ring, d.add(at)));
            let own = ring.add(ring.mul(x, ring.add(z, w)), ring.mul(y, z));
            sum = ring.add(sum, own);
        }
        sum
    }
}
