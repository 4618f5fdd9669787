//! Trees of silent transfers, a level at a time: left children in the place of their parents, right ones behind all of them.

use super::super::garble::blocks::{Blocks, Fixed, LANES};
use crate::silent::mask_of;

/// Bytes of a block.
const BLOCK: usize = 16;

/// A tree.
pub(super) struct Tree {
    /// Where its leaves go.
    pub(super) nodes: *mut u8,
    pub(super) height: u32,
    /// The start point of the hash.
    pub(super) start: u128,
    /// The correlations of its levels, one behind the other.
    pub(super) base: *const u8,
    /// The sums of its levels, which are sent.
    pub(super) sums: *mut u8,
}

impl Tree {
    unsafe fn own(&self, level: u32) -> u128 {
        // SAFETY: the caller's: there is a correlation for each level.
        unsafe { read(self.base.add(BLOCK * level as usize)) }
    }
}

pub(super) unsafe fn read(from: *const u8) -> u128 {
    // SAFETY: the caller's: there is a block.
    u128::from_le_bytes(unsafe { from.cast::<[u8; BLOCK]>().read_unaligned() })
}

unsafe fn write(to: *mut u8, block: u128) {
    // SAFETY: the caller's: there is a block.
    unsafe {
        to.cast::<[u8; BLOCK]>()
            .write_unaligned(block.to_le_bytes());
    }
}

/// All leaves of a tree, and the sums. `G` vectors are hashed side by side where a level has that many.
///
/// # Safety
/// `B`'s instruction set is enabled in the caller, and the tree is at least three levels high; its places can be read, and written.
#[inline(always)]
pub(super) unsafe fn grow<B: Blocks, const G: usize>(tree: &Tree, root: u128, offset: u128) {
    // SAFETY: the caller's; every node is below 2^height.
    unsafe {
        let hash = Fixed::<B>::new(tree.start);
        write(tree.nodes, root);
        write(tree.nodes.add(BLOCK), root ^ offset);
        write(tree.sums, tree.own(0) ^ root);
        for level in 1..tree.height {
            let m = 1usize << level;
            let many = m >= G * LANES;
            let left = match (level + 1 == tree.height, many) {
                (false, false) => children::<B, 1, false>(&hash, tree.nodes, m),
                (false, true) => children::<B, G, false>(&hash, tree.nodes, m),
                (true, false) => children::<B, 1, true>(&hash, tree.nodes, m),
                (true, true) => children::<B, G, true>(&hash, tree.nodes, m),
            };
            let to = tree.sums.add(BLOCK * level as usize);
            write(to, tree.own(level) ^ left);
        }
    }
}

/// The children of `m` nodes, and the sum of the left ones. Those of the last level lose bit 0.
#[inline(always)]
unsafe fn children<B: Blocks, const N: usize, const LAST: bool>(
    hash: &Fixed<B>,
    nodes: *mut u8,
    m: usize,
) -> u128 {
    // SAFETY: the caller's.
    unsafe {
        let (lanes, one) = (m.min(LANES), B::splat(1));
        let mut sum = B::splat(0);
        for at in (0..m).step_by(N * LANES) {
            let mut x = [sum; N];
            for n in 0..N {
                x[n] = load(nodes.add(BLOCK * (at + n * LANES)), lanes);
            }
            let left = hash.hash(x);
            for n in 0..N {
                sum = sum.xor(left[n]);
                let mut both = [left[n], left[n].xor(x[n])];
                if LAST {
                    both = [
                        both[0].xor_where(both[0].colour(), one),
                        both[1].xor_where(both[1].colour(), one),
                    ];
                }
                let to = nodes.add(BLOCK * (at + n * LANES));
                store(both[0], to, lanes);
                store(both[1], to.add(BLOCK * m), lanes);
            }
        }
        total(sum, lanes)
    }
}

/// The node that is still to be corrected, and the one that lacks.
pub(super) struct Path<B> {
    /// Number of the node off the path that was last found, and the correction of it.
    at: u64,
    missing: B,
    /// Number of the node that lacks, which is zero.
    number: u64,
}

impl<B: Blocks> Path<B> {
    /// Whether each of four nodes, `group` fours from the first, is a node of this number.
    #[inline(always)]
    pub(super) unsafe fn is(number: u64, group: usize) -> B::Bits {
        let same = mask_of(number / LANES as u64, group as u64) as u8;
        // SAFETY: the caller's instruction set.
        unsafe { B::bits(1 << (number % LANES as u64) & same) }
    }
}

/// All leaves of a tree but one, from the sums, and that one as the receiver has it.
///
/// # Safety
/// As [`grow`]; the sums are read.
#[inline(always)]
pub(super) unsafe fn puncture<B: Blocks, const G: usize>(tree: &Tree) {
    // SAFETY: the caller's; every node is below 2^height.
    unsafe {
        let hash = Fixed::<B>::new(tree.start);
        let zero = B::splat(0);
        zero.store_part(tree.nodes, 2);
        let own = tree.own(0);
        let at = (own & 1) as u64;
        let mut path = Path {
            at,
            missing: B::splat(own ^ read(tree.sums)),
            number: 1 - at,
        };
        let mut sum = 0;
        for level in 1..tree.height {
            let m = 1usize << level;
            let sums = if m >= G * LANES {
                others::<B, G>(&hash, tree.nodes, m, &path)
            } else {
                others::<B, 1>(&hash, tree.nodes, m, &path)
            };
            let own = tree.own(level);
            let told = own ^ read(tree.sums.add(BLOCK * level as usize));
            let right = (own & 1) as u64;
            let of_side = mask_of(right, 1) & (sums[0] ^ sums[1]) ^ sums[0];
            sum = told ^ of_side ^ sums[0] ^ sums[1];
            path = Path {
                at: path.number + right * m as u64,
                missing: B::splat(told ^ of_side),
                number: path.number + (1 - right) * m as u64,
            };
        }
        let (last, one) = (B::splat(sum | 1), B::splat(1));
        for group in 0..1usize << tree.height >> 2 {
            let at = tree.nodes.add(BLOCK * LANES * group);
            let x = B::load(at).xor_where(Path::<B>::is(path.at, group), path.missing);
            let x = x.xor_where(x.colour(), one);
            x.xor_where(Path::<B>::is(path.number, group), last)
                .store(at);
        }
    }
}

/// The children of `m` nodes but those of the one that lacks, which become zero; the sums of the left ones and of the right ones.
#[inline(always)]
unsafe fn others<B: Blocks, const N: usize>(
    hash: &Fixed<B>,
    nodes: *mut u8,
    m: usize,
    path: &Path<B>,
) -> [u128; 2] {
    // SAFETY: the caller's.
    unsafe {
        let lanes = m.min(LANES);
        let mut sums = [B::splat(0); 2];
        for at in (0..m).step_by(N * LANES) {
            let (mut x, first) = ([sums[0]; N], at / LANES);
            for n in 0..N {
                let node: B = load(nodes.add(BLOCK * (at + n * LANES)), lanes);
                x[n] = node.xor_where(Path::<B>::is(path.at, first + n), path.missing);
            }
            let left = hash.hash(x);
            for n in 0..N {
                let right = left[n].xor(x[n]);
                let lacks = Path::<B>::is(path.number, first + n);
                let both = [
                    left[n].xor_where(lacks, left[n]),
                    right.xor_where(lacks, right),
                ];
                let to = nodes.add(BLOCK * (at + n * LANES));
                store(both[0], to, lanes);
                store(both[1], to.add(BLOCK * m), lanes);
                sums = [sums[0].xor(both[0]), sums[1].xor(both[1])];
            }
        }
        [total(sums[0], lanes), total(sums[1], lanes)]
    }
}

#[inline(always)]
unsafe fn load<B: Blocks>(from: *const u8, lanes: usize) -> B {
    // SAFETY: the caller's.
    unsafe {
        if lanes == LANES {
            B::load(from)
        } else {
            B::load_part(from, lanes)
        }
    }
}

#[inline(always)]
unsafe fn store<B: Blocks>(blocks: B, to: *mut u8, lanes: usize) {
    // SAFETY: the caller's.
    unsafe {
        if lanes == LANES {
            blocks.store(to);
        } else {
            blocks.store_part(to, lanes);
        }
    }
}

/// The sum of the first lanes.
#[inline(always)]
pub(super) unsafe fn total<B: Blocks>(blocks: B, lanes: usize) -> u128 {
    let mut all = [[0; BLOCK]; LANES];
    // SAFETY: the caller's instruction set; there is room for all lanes.
    unsafe { blocks.store(all.as_mut_ptr().cast()) };
    let mut sum = 0;
    for k in 0..lanes {
        sum ^= u128::from_le_bytes(all[k]);
    }
    sum
}
