//! Sums of blocks, of which some are chosen by bits, and bits of sums of blocks: four at a time.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use crate::ag::BLOCK;
use crate::cpu::Isa;
use crate::cpu::garble::blocks::{Blocks, LANES};
use crate::cpu::garble::{aesni::Xmm, vaes::Ymm, x86::Zmm};

/// Most arrays of a sum, and most that are chosen.
pub(super) const MOST: usize = 16;

/// Blocks where bits are 1.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    /// Packed bits.
    pub(super) bits: *const u8,
    /// An array, or nothing where the same block is chosen everywhere.
    pub(super) from: Option<*const u8>,
    /// That block.
    pub(super) block: u128,
}

/// A sum of `count` blocks: of arrays, and of chosen ones.
pub(super) struct Sum {
    pub(super) count: usize,
    pub(super) arrays: [*const u8; MOST],
    pub(super) of: usize,
    pub(super) chosen: [Option<Chosen>; 3],
}

impl Sum {
    pub(super) fn new(count: usize, arrays: &[*const u8], chosen: &[Chosen]) -> Self {
        let mut sum = Sum {
            count,
            arrays: [std::ptr::null(); MOST],
            of: arrays.len(),
            chosen: [None; 3],
        };
        sum.arrays[..arrays.len()].copy_from_slice(arrays);
        for (to, from) in sum.chosen.iter_mut().zip(chosen) {
            *to = Some(*from);
        }
        sum
    }

    /// `N` times four blocks from number `at` on, of which `lanes` of the last four exist.
    ///
    /// # Safety
    /// As [`put`].
    #[inline(always)]
    unsafe fn at<B: Blocks, const N: usize>(&self, at: usize, lanes: usize) -> [B; N] {
        // SAFETY: the caller's.
        unsafe {
            let mut sums = [B::splat(0); N];
            for k in 0..self.of {
                let from = self.arrays[k].wrapping_add(BLOCK * at);
                for n in 0..N {
                    let from = from.wrapping_add(n * LANES * BLOCK);
                    sums[n] = sums[n].xor(load::<B, N>(from, lanes));
                }
            }
            for k in 0..self.chosen.len() {
                let Some(chosen) = self.chosen[k] else {
                    continue;
                };
                let same = B::splat(chosen.block);
                for n in 0..N {
                    let at = at + n * LANES;
                    let bits = chosen.bits.wrapping_add(at / 8).read() >> (at % 8) & 0xf;
                    let block = match chosen.from {
                        Some(from) => load::<B, N>(from.wrapping_add(BLOCK * at), lanes),
                        None => same,
                    };
                    sums[n] = sums[n].xor_where(B::bits(bits), block);
                }
            }
            sums
        }
    }
}

impl Drop for Sum {
    fn drop(&mut self) {
        for chosen in self.chosen.iter_mut().flatten() {
            zeroize::Zeroize::zeroize(&mut chosen.block);
        }
    }
}

/// Vectors that are added up side by side.
const WIDE: usize = 4;

/// # Safety
/// `lanes` blocks can be read, at most four, or four where there are several vectors.
#[inline(always)]
unsafe fn load<B: Blocks, const N: usize>(from: *const u8, lanes: usize) -> B {
    // SAFETY: the caller's.
    unsafe {
        if N > 1 || lanes == LANES {
            B::load(from)
        } else {
            B::load_part(from, lanes)
        }
    }
}

#[inline(always)]
unsafe fn blocks<B: Blocks>(sum: &Sum, to: *mut u8) {
    let mut at = 0;
    // SAFETY: the caller's.
    unsafe {
        while sum.count - at >= WIDE * LANES {
            let blocks = sum.at::<B, WIDE>(at, LANES);
            for n in 0..WIDE {
                blocks[n].store(to.wrapping_add(BLOCK * (at + n * LANES)));
            }
            at += WIDE * LANES;
        }
        while at < sum.count {
            let lanes = (sum.count - at).min(LANES);
            let [block] = sum.at::<B, 1>(at, lanes);
            block.store_part(to.wrapping_add(BLOCK * at), lanes);
            at += LANES;
        }
    }
}

#[inline(always)]
unsafe fn nibble<B: Blocks>(block: B, second: bool) -> u8 {
    // SAFETY: the caller's instruction set.
    unsafe {
        B::number(if second {
            block.second()
        } else {
            block.colour()
        })
    }
}

#[inline(always)]
unsafe fn bits<B: Blocks>(sum: &Sum, second: bool, to: *mut u8) {
    let mut at = 0;
    // SAFETY: the caller's.
    unsafe {
        while sum.count - at >= WIDE * LANES {
            let blocks = sum.at::<B, WIDE>(at, LANES);
            for n in 0..WIDE / 2 {
                let low = nibble(blocks[2 * n], second);
                let high = nibble(blocks[2 * n + 1], second);
                to.wrapping_add(at / 8 + n).write(low | high << LANES);
            }
            at += WIDE * LANES;
        }
        while at < sum.count {
            let lanes = (sum.count - at).min(LANES);
            let [block] = sum.at::<B, 1>(at, lanes);
            let bits = nibble(block, second) & ((1 << lanes) - 1);
            let to = to.wrapping_add(at / 8);
            if at.is_multiple_of(8) {
                to.write(bits);
            } else {
                to.write(to.read() | bits << LANES);
            }
            at += LANES;
        }
    }
}

/// The kernels once per instruction set.
macro_rules! kernels {
    ($blocks:ty, $features:literal, $sum:ident, $bits:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $sum(sum: &Sum, to: *mut u8) {
            // SAFETY: the caller's.
            unsafe { blocks::<$blocks>(sum, to) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $bits(sum: &Sum, second: bool, to: *mut u8) {
            // SAFETY: the caller's.
            unsafe { bits::<$blocks>(sum, second, to) }
        }
    };
}
kernels!(
    Zmm,
    "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx",
    sum_avx512,
    bits_avx512
);
kernels!(Ymm, "avx2,aes,vaes,bmi2", sum_avx2_vaes, bits_avx2_vaes);
kernels!(Xmm, "avx2,aes", sum_avx2, bits_avx2);

/// Writes a sum.
///
/// # Safety
/// `isa` is there and not [`Isa::Portable`]; arrays and `to` have `count` blocks, and bits a bit for each. `to` may be one of the arrays.
pub(super) unsafe fn put(isa: Isa, sum: &Sum, to: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        match isa {
            Isa::Avx512 => sum_avx512(sum, to),
            Isa::Avx2Vaes => sum_avx2_vaes(sum, to),
            _ => sum_avx2(sum, to),
        }
    }
}

/// Writes bit 0, or bit 1, of a sum: whole bytes, whose bits behind the last block are 0.
///
/// # Safety
/// As [`put`].
pub(super) unsafe fn put_bits(isa: Isa, sum: &Sum, second: bool, to: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        match isa {
            Isa::Avx512 => bits_avx512(sum, second, to),
            Isa::Avx2Vaes => bits_avx2_vaes(sum, second, to),
            _ => bits_avx2(sum, second, to),
        }
    }
}
