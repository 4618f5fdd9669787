//! Which vectors of which products are worked on side by side.

use super::super::tape::Product;
use super::super::vector::{GROUP, MOST_VECTORS, VECTOR, Vector};
use super::from;
use super::product::next_to;
use super::ring::RingOps;

/// Walks over products and rows alike, `GROUP` vectors at a time, so that the AES pipeline is full for few rows too. The vectors of a value
/// are of one product: where it has too few of them, its last one is taken twice.
pub(super) struct Groups<'a> {
    products: &'a [Product],
    vectors: usize,
    /// Vectors of a value.
    of_value: usize,
    /// Values that are left.
    left: usize,
    /// The next product, and its next vector.
    next: (usize, usize),
}

/// Values that are worked on side by side.
pub(super) struct Group<'a> {
    /// How many there are. What lies beyond repeats the last one, and is not stored.
    pub(super) len: usize,
    /// Product, and offsets of the value's vectors in its rows.
    pub(super) which: [(&'a Product, [usize; MOST_VECTORS]); GROUP],
    /// Counter of each vector, before the first of its call is added.
    pub(super) counters: [u64; GROUP],
}

impl<'a> Groups<'a> {
    #[inline(always)]
    pub(super) fn new<V: Vector, R: RingOps<V>>(products: &'a [Product], vectors: usize) -> Self {
        Groups {
            products,
            vectors,
            of_value: R::VECTORS,
            left: vectors.div_ceil(R::VECTORS) * products.len(),
            next: (0, 0),
        }
    }

    #[inline(always)]
    pub(super) fn next(&mut self, stride: u64) -> Option<Group<'a>> {
        if self.left == 0 {
            return None;
        }
        let values = GROUP / self.of_value;
        let len = self.left.min(values);
        self.left -= len;
        let mut group = Group {
            len,
            which: [(&self.products[0], [0; MOST_VECTORS]); GROUP],
            counters: [0; GROUP],
        };
        if self.vectors.is_multiple_of(GROUP) {
            // All of one product, side by side.
            let (p, first) = self.next;
            let product = &self.products[p];
            let counter = u64::from(product.index) * stride + (first * VECTOR / 16) as u64;
            group.counters = from([0, 4, 8, 12], counter);
            for k in 0..values {
                group.which[k] = (product, next_to((first + k * self.of_value) * VECTOR));
            }
            self.next = if first + GROUP == self.vectors {
                (p + 1, 0)
            } else {
                (p, first + GROUP)
            };
            return Some(group);
        }
        for k in 0..values {
            let (p, first) = self.next;
            let product = &self.products[p];
            let last = (first + self.of_value - 1).min(self.vectors - 1);
            group.which[k] = (product, [first * VECTOR, last * VECTOR]);
            for (c, v) in [first, last].into_iter().enumerate().take(self.of_value) {
                group.counters[k * self.of_value + c] =
                    u64::from(product.index) * stride + (v * VECTOR / 16) as u64;
            }
            if k + 1 < len || len == values {
                self.next = if last + 1 == self.vectors {
                    ((p + 1).min(self.products.len() - 1), 0)
                } else {
                    (p, last + 1)
                };
            }
        }
        Some(group)
    }
}
