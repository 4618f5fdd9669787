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
pub(super) enum Beside<'a> {
    /// The sum of all leaves is written, in whole tiles.
    Sum(&'a mut [u8]),
    /// These bytes, whole tiles, are added to columns whose mask is all ones.
    Add(&'a [u8], &'a [u64]),
}

/// Writes columns ⊕ L_x over the leaves x whose bit p is 1, for p = 0, …, K − 1.
///
/// # Safety
/// `V`'s instruction set is enabled in the caller.
#[inline(always)]
pub(super) unsafe fn stretch<V: Vector, const K: usize>(
    tree: &Tree<'_>,
    columns: &mut [&mut [u8]],
    beside: &mut Beside<'_>,
) {
    let bytes = columns[0].len();
    for at in (0..bytes).step_by(TILE_BYTES) {
        let ctr = tree.first + (at / BLOCK) as u64;
        // SAFETY: the caller's instruction set; a tile fits what is written beside, and columns are cut below.
        unsafe {
            let (sum, mut sums) = leaves::<V, K>(tree, ctr);
            match beside {
                Beside::Sum(to) => {
                    let to = &mut to[at..at + TILE_BYTES];
                    for g in 0..GROUP {
                        sum[g].store(to.as_mut_ptr().add(g * VECTOR));
                    }
                }
                Beside::Add(from, masks) => {
                    let from = &from[at..at + TILE_BYTES];
                    for g in 0..GROUP {
                        let add = V::load(from.as_ptr().add(g * VECTOR));
                        for p in 0..K {
                            sums[p][g] = sums[p][g].xor_and(add, V::splat(masks[p]));
                        }
                    }
                }
            }
            for p in 0..K {
                let to = &mut columns[p][at..];
                if to.len() >= TILE_BYTES {
                    for g in 0..GROUP {
                        sums[p][g].store(to.as_mut_ptr().add(g * VECTOR));
                    }
                } else {
                    let mut tile = [0; TILE_BYTES];
                    for g in 0..GROUP {
                        sums[p][g].store(tile.as_mut_ptr().add(g * VECTOR));
                    }
                    let length = to.len();
                    to.copy_from_slice(&tile[..length]);
                }
            }
        }
    }
}

/// A tile of each leaf: their sum, and the sum of those whose bit p is 1.
#[inline(always)]
unsafe fn leaves<V: Vector, const K: usize>(
    tree: &Tree<'_>,
    ctr: u64,
) -> ([V; GROUP], [[V; GROUP]; K]) {
    // SAFETY: the caller's instruction set.
    unsafe {
        let zero = [V::splat(0); GROUP];
        let counters = [ctr, ctr + 4, ctr + 8, ctr + 12];
        let inputs = V::inputs(tree.domain, counters);
        let (mut sum, mut sums) = (zero, [zero; K]);
        let lacking = (1 << K) - tree.leaves.len();
        let leaf = |x: usize| tree.leaves[x - lacking];
        let make = |x: usize| V::prf_of(leaf(x), tree.domain, counters, inputs);
        if K == 1 {
            let b = make(1);
            let a = if lacking == 0 { make(0) } else { zero };
            for g in 0..GROUP {
                sum[g] = a[g].xor(b[g]);
            }
            sums[0] = b;
            return (sum, sums);
        }
        for x in (0..1 << K).step_by(4) {
            let a = if x < lacking { zero } else { make(x) };
            let (b, c, d) = (make(x + 1), make(x + 2), make(x + 3));
            for g in 0..GROUP {
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
