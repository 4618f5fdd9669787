//! Keys of transfers, four labels to a vector: a key schedule for each label, in step with the rounds.

use super::super::garble::blocks::{Blocks, Constants, LANES, hashes};

/// The labels of an item, and where their keys go.
pub(super) struct Labels {
    pub(super) from: *const u8,
    /// Keys of choice 0, or of the choice at the receiver; keys of choice 1.
    pub(super) to: [*mut u8; 2],
    pub(super) count: usize,
    /// The start point of the hash.
    pub(super) start: u128,
    /// The tweak of the first label.
    pub(super) tweak: u64,
    /// Δ, at the sender.
    pub(super) offset: u128,
}

/// Hashes all labels, `N` vectors side by side; `X` is 2 at the sender, 1 at the receiver.
///
/// # Safety
/// `B`'s instruction set is enabled in the caller; `count` labels can be read, and written to the first `X` places.
#[inline(always)]
pub(super) unsafe fn keys<B: Blocks, const N: usize, const X: usize>(labels: &Labels) {
    // SAFETY: the caller's; every access is below `count` labels.
    unsafe {
        let constants = Constants::<B>::new();
        let (start, offset) = (B::splat(labels.start), B::splat(labels.offset).sigma());
        for at in (0..labels.count).step_by(N * LANES) {
            let (mut keys, mut x) = ([[start]; N], [[start]; N]);
            for g in 0..N {
                let row = at + g * LANES;
                let first = labels.tweak.wrapping_add(row as u64);
                let numbers = [first, first + 1, first + 2, first + 3];
                keys[g][0] = start.xor(B::tweaks(numbers));
                let from = labels.from.wrapping_add(16 * row);
                let lanes = labels.count.saturating_sub(row).min(LANES);
                x[g][0] = if lanes == LANES {
                    B::load(from).sigma()
                } else {
                    B::load_part(from, lanes).sigma()
                };
            }
            let made = hashes::<B, N, 1, X>(keys, x, [offset; N], &constants);
            for g in 0..N {
                let row = at + g * LANES;
                let lanes = labels.count.saturating_sub(row).min(LANES);
                for k in 0..X {
                    let to = labels.to[k].wrapping_add(16 * row);
                    if lanes == LANES {
                        made[g][0][k].store(to);
                    } else {
                        made[g][0][k].store_part(to, lanes);
                    }
                }
            }
        }
    }
}
