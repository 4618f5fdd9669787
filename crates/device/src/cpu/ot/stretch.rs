//! Stretching the leaves of a tree, and their sums.

use super::super::vector::{Domain, GROUP, RoundKeys, VECTOR, Vector};
use crate::ot::BLOCK;

/// Blocks that are made of a leaf at once.
pub(super) const TILE: usize = GROUP * VECTOR / BLOCK;

/// Bytes of them.
pub(super) const TILE_BYTES: usize = TILE * BLOCK;

/// A tree to be stretched.
pub(super) struct Tree<'a> {
    /// All leaves; or all but leaf 0.
    pub(super) leaves: &'a [&'a RoundKeys],
    pub(super) domain: Domain,
    /// Counter of the first block.
    pub(super) first: u64,
}

/// What is done beside the columns.
pub(super) enum LeafSum<'a> {
    /// The sum of all leaves is written, in whole tiles.
    Sum(&'a mut [u8]),
    /// These bytes, whole tiles, are added to columns whose mask is all ones.
    Add(&'a [u8], &'a [u64]),
}

/// How `N` vectors of each of four leaves are made.
trait Make<V, const N: usize> {
    unsafe fn make(&self, keys: [&RoundKeys; 4]) -> [[V; N]; 4];
}

/// A tile of each leaf.
struct Whole<V> {
    domain: Domain,
    counters: [u64; GROUP],
    inputs: [V; GROUP],
}

impl<V: Vector> Make<V, GROUP> for Whole<V> {
    #[inline(always)]
    unsafe fn make(&self, keys: [&RoundKeys; 4]) -> [[V; GROUP]; 4] {
        let mut made = [self.inputs; 4];
        for k in 0..4 {
            // SAFETY: the caller's instruction set.
            made[k] = unsafe { V::prf_of(keys[k], self.domain, self.counters, self.inputs) };
        }
        made
    }
}

/// A vector of each leaf: what is left at the end, and all there is of a few transfers.
struct Tail<V> {
    domain: Domain,
    counter: u64,
    input: V,
}

impl<V: Vector> Make<V, 1> for Tail<V> {
    #[inline(always)]
    unsafe fn make(&self, keys: [&RoundKeys; 4]) -> [[V; 1]; 4] {
        // SAFETY: the caller's instruction set.
        let made = unsafe { V::prf_keys(keys, self.domain, self.counter, self.input) };
        [[made[0]], [made[1]], [made[2]], [made[3]]]
    }
}

/// Writes columns ⊕ L_x over the leaves x whose bit p is 1, for p = 0, …, K − 1.
///
/// # Safety
/// `V`'s instruction set is enabled in the caller.
#[inline(always)]
pub(super) unsafe fn stretch<V: Vector, const K: usize>(
    tree: &Tree<'_>,
    columns: &mut [&mut [u8]],
    leaf_sum: &mut LeafSum<'_>,
) {
    let (bytes, domain) = (columns[0].len(), tree.domain);
    let tiles = bytes / TILE_BYTES * TILE_BYTES;
    // SAFETY: the caller's instruction set.
    unsafe {
        for at in (0..tiles).step_by(TILE_BYTES) {
            let ctr = tree.first + (at / BLOCK) as u64;
            let counters = [ctr, ctr + 4, ctr + 8, ctr + 12];
            let whole = Whole {
                domain,
                counters,
                inputs: V::inputs(domain, counters),
            };
            let (sum, sums) = leaves::<V, K, GROUP>(tree, &whole);
            put::<V, K, GROUP>(at, columns, leaf_sum, sum, sums);
        }
        for at in (tiles..bytes).step_by(VECTOR) {
            let counter = tree.first + (at / BLOCK) as u64;
            let part = Tail {
                domain,
                counter,
                input: V::inputs(domain, [counter; GROUP])[0],
            };
            let (sum, sums) = leaves::<V, K, 1>(tree, &part);
            put::<V, K, 1>(at, columns, leaf_sum, sum, sums);
        }
    }
}

/// Puts `N` vectors of sums where they belong, `at` bytes behind the beginning.
#[inline(always)]
unsafe fn put<V: Vector, const K: usize, const N: usize>(
    at: usize,
    columns: &mut [&mut [u8]],
    leaf_sum: &mut LeafSum<'_>,
    sum: [V; N],
    mut sums: [[V; N]; K],
) {
    // SAFETY: the caller's instruction set; what is beside has whole vectors, and columns are cut.
    unsafe {
        match leaf_sum {
            LeafSum::Sum(to) => {
                let to = &mut to[at..at + N * VECTOR];
                for g in 0..N {
                    sum[g].store(to.as_mut_ptr().add(g * VECTOR));
                }
            }
            LeafSum::Add(from, masks) => {
                let from = &from[at..at + N * VECTOR];
                for g in 0..N {
                    let add = V::load(from.as_ptr().add(g * VECTOR));
                    for p in 0..K {
                        sums[p][g] = sums[p][g].xor_and(add, V::splat(masks[p]));
                    }
                }
            }
        }
        for p in 0..K {
            let to = &mut columns[p][at..];
            if to.len() >= N * VECTOR {
                for g in 0..N {
                    sums[p][g].store(to.as_mut_ptr().add(g * VECTOR));
                }
            } else {
                // Less than a tile is put vector by vector.
                let mut last = [0; VECTOR];
                sums[p][0].store(last.as_mut_ptr());
                let length = to.len();
                to.copy_from_slice(&last[..length]);
            }
        }
    }
}

/// `N` vectors of all leaves: their sum, and the sum of the leaves whose bit p is 1.
#[inline(always)]
unsafe fn leaves<V: Vector, const K: usize, const N: usize>(
    tree: &Tree<'_>,
    make: &impl Make<V, N>,
) -> ([V; N], [[V; N]; K]) {
    // SAFETY: the caller's instruction set.
    unsafe {
        let zero = [V::splat(0); N];
        let (mut sum, mut sums) = (zero, [zero; K]);
        let lacking = (1 << K) - tree.leaves.len();
        // Leaf 0, if it lacks, is made of another and not used.
        let leaf = |x: usize| tree.leaves[x.max(lacking) - lacking];
        for x in (0..1 << K).step_by(4) {
            let keys = if K == 1 {
                [leaf(0), leaf(1), leaf(1), leaf(1)]
            } else {
                [leaf(x), leaf(x + 1), leaf(x + 2), leaf(x + 3)]
            };
            let [mut a, b, c, d] = make.make(keys);
            if x < lacking {
                a = zero;
            }
            for g in 0..N {
                if K == 1 {
                    sum[g] = a[g].xor(b[g]);
                    sums[0][g] = b[g];
                    continue;
                }
                sums[0][g] = sums[0][g].xor3(b[g], d[g]);
                let upper = c[g].xor(d[g]);
                sums[1][g] = sums[1][g].xor(upper);
                let all = upper.xor3(a[g], b[g]);
                sum[g] = sum[g].xor(all);
                for p in 2..K {
                    let mask = V::splat(((x >> p & 1) as u64).wrapping_neg());
                    sums[p][g] = sums[p][g].xor_and(all, mask);
                }
            }
        }
        (sum, sums)
    }
}
