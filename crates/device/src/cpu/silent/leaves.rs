//! Leaves over blocks go through a second hash; the receiver finds the one that it lacks.

use super::super::garble::blocks::{Blocks, Fixed, LANES};
use super::trees::{Path, total};

/// Bytes of a block.
const BLOCK: usize = 16;

/// The leaves of a tree.
pub(super) struct Leaves {
    pub(super) at: *mut u8,
    /// How many they are: a multiple of eight.
    pub(super) count: usize,
    /// The start point of the hash.
    pub(super) start: u128,
}

/// What the receiver has for the leaf that it lacks.
pub(super) struct Lack {
    /// The number of the leaf.
    pub(super) number: u64,
    /// d ⊕ a.
    pub(super) sum: u128,
    /// c.
    pub(super) noise: u128,
    /// Where the noise of the tree goes.
    pub(super) to: *mut u8,
}

/// The hashes of all leaves, and their sum.
///
/// # Safety
/// `B`'s instruction set is enabled in the caller, and leaves can be read, and written.
#[inline(always)]
pub(super) unsafe fn give<B: Blocks, const G: usize>(leaves: &Leaves) -> u128 {
    // SAFETY: the caller's.
    unsafe {
        if leaves.count >= G * LANES {
            hashed::<B, G, false>(leaves, 0)
        } else {
            hashed::<B, 1, false>(leaves, 0)
        }
    }
}

/// The hashes of all leaves but one, that one, and the noise.
///
/// # Safety
/// As [`give`]; there is room for as much noise as leaves.
#[inline(always)]
pub(super) unsafe fn fill<B: Blocks, const G: usize>(leaves: &Leaves, lack: &Lack) {
    // SAFETY: the caller's.
    unsafe {
        let others = if leaves.count >= G * LANES {
            hashed::<B, G, true>(leaves, lack.number)
        } else {
            hashed::<B, 1, true>(leaves, lack.number)
        };
        let (last, noise) = (B::splat(others ^ lack.sum), B::splat(lack.noise));
        let zero = B::splat(0);
        for group in 0..leaves.count / LANES {
            let at = BLOCK * LANES * group;
            let lacks = Path::<B>::is(lack.number, group);
            let leaf = B::load(leaves.at.add(at));
            leaf.xor_where(lacks, last).store(leaves.at.add(at));
            zero.xor_where(lacks, noise).store(lack.to.add(at));
        }
    }
}

/// The hashes of leaves, and their sum. If one `LACKS` it becomes zero.
#[inline(always)]
unsafe fn hashed<B: Blocks, const N: usize, const LACKS: bool>(
    leaves: &Leaves,
    number: u64,
) -> u128 {
    // SAFETY: the caller's.
    unsafe {
        let hash = Fixed::<B>::new(leaves.start);
        let mut sum = B::splat(0);
        for at in (0..leaves.count).step_by(N * LANES) {
            let mut x = [sum; N];
            for n in 0..N {
                x[n] = B::load(leaves.at.add(BLOCK * (at + n * LANES)));
            }
            let mut hashes = hash.hash(x);
            for n in 0..N {
                if LACKS {
                    let lacks = Path::<B>::is(number, at / LANES + n);
                    hashes[n] = hashes[n].xor_where(lacks, hashes[n]);
                }
                sum = sum.xor(hashes[n]);
                hashes[n].store(leaves.at.add(BLOCK * (at + n * LANES)));
            }
        }
        total(sum, LANES)
    }
}
