//! How fast this machine hashes labels when it does nothing else: the limit of garbling.

use std::time::{Duration, Instant};

use super::super::{Cpu, Isa};
#[cfg(target_arch = "x86_64")]
use super::blocks::{Blocks, Constants, each, hashes};
use crate::garble::{Garbling, hash};

/// Gates of one round.
const GATES: u64 = 1 << 14;

/// Gates per CPU-second of one core if hashes are all that is computed: every label under the key of its tweak, with the schedule of the
/// key, and no wire or table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HashRate {
    /// Of the garbler: both labels under each key.
    pub garble: f64,
    /// Of the evaluator: one label under each key.
    pub evaluate: f64,
}

impl Cpu {
    /// The rates that bound garbling by `scheme` on this device. Measured for about `budget`.
    pub fn hash_rate(&self, scheme: Garbling, budget: Duration) -> HashRate {
        let rate = |labels: u64| best(budget / 2, |round| self.hash_round(scheme, labels, round));
        HashRate {
            garble: rate(2),
            evaluate: rate(1),
        }
    }

    /// Hashes `labels` labels under every key of [`GATES`] gates.
    fn hash_round(&self, scheme: Garbling, labels: u64, round: u64) -> u8 {
        // SAFETY: `with` checked the instruction set.
        unsafe {
            match (self.isa, scheme.tweaks(), labels) {
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512, 2, 1) => super::rate_zmm::<2, 1>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512, 2, 2) => super::rate_zmm::<2, 2>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512, 3, 1) => super::rate_zmm::<3, 1>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512, 3, 2) => super::rate_zmm::<3, 2>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2Vaes, 2, 1) => super::rate_ymm::<2, 1>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2Vaes, 2, 2) => super::rate_ymm::<2, 2>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2Vaes, 3, 1) => super::rate_ymm::<3, 1>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2Vaes, 3, 2) => super::rate_ymm::<3, 2>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, 2, 1) => super::rate_xmm::<2, 1>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, 2, 2) => super::rate_xmm::<2, 2>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, 3, 1) => super::rate_xmm::<3, 1>(round),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, 3, 2) => super::rate_xmm::<3, 2>(round),
                _ => {
                    let hashes = (0..GATES * scheme.tweaks()).flat_map(|tweak| {
                        (0..labels).map(move |x| hash(1 << 7, tweak, u128::from(round + x)))
                    });
                    hashes.fold(0, |sum, hash| sum ^ hash as u8)
                }
            }
        }
    }
}

/// Gates per second of the best round of many: the others were interrupted.
fn best(budget: Duration, mut one: impl FnMut(u64) -> u8) -> f64 {
    let (start, mut best, mut sink, mut round) = (Instant::now(), 0f64, 0, 0);
    while start.elapsed() < budget || round == 0 {
        let began = Instant::now();
        sink ^= one(round);
        best = best.max(GATES as f64 / began.elapsed().as_secs_f64());
        round += 1;
    }
    std::hint::black_box(sink);
    best
}

/// One round, `N` times four gates side by side, with `K` keys for each and `X` labels under each key.
#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set"
)]
#[inline(always)]
pub(super) unsafe fn round<B: Blocks, const N: usize, const K: usize, const X: usize>(
    round: u64,
) -> u8 {
    // SAFETY: the caller's instruction set.
    unsafe {
        let constants = Constants::<B>::new();
        let (start, offset) = (
            B::splat(u128::from(round) << 64 | 0x4d),
            B::splat(u128::MAX / 7),
        );
        let mut sum = [[[start; X]; K]; N];
        for group in 0..GATES / (4 * N as u64) {
            let (mut keys, mut labels) = ([[start; K]; N], [[start; K]; N]);
            each!(n < N, {
                for k in 0..K {
                    let tweak = (group * N as u64 + n as u64) * 4 * K as u64 + k as u64;
                    let key = start.xor(B::tweak(tweak));
                    keys[n][k] = key;
                    labels[n][k] = key.xor(offset);
                }
            });
            let hashes = hashes::<B, N, K, X>(keys, labels, [offset; N], &constants);
            each!(n < N, {
                for k in 0..K {
                    for x in 0..X {
                        sum[n][k][x] = sum[n][k][x].xor(hashes[n][k][x]);
                    }
                }
            });
        }
        let mut all = start;
        for labels in sum.as_flattened().as_flattened() {
            all = all.xor(*labels);
        }
        let mut bytes = [0u8; 64];
        all.store(bytes.as_mut_ptr());
        // Of all of them: the compiler leaves out labels that no byte of the result depends on.
        bytes.into_iter().fold(0, |sum, byte| sum ^ byte)
    }
}
