//! Sums of blocks, of which some are chosen by bits, and bits of sums of blocks: four at a time.

#![allow(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use crate::ag::BLOCK;
use crate::cpu::Isa;
use crate::cpu::garble::blocks::{Blocks, LANES};
use crate::cpu::garble::{aesni::Xmm, vaes::Ymm, x86::Zmm};

/// Most arrays of a sum, and most that are chosen.
const MOST: usize = 16;

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

    /// Blocks from number `at` on, of which `lanes` exist.
    ///
    /// # Safety
    /// As [`blocks`].
    #[inline(always)]
    unsafe fn at<B: Blocks>(&self, at: usize, lanes: usize) -> B {
        // SAFETY: the caller's.
        unsafe {
            let mut sum = B::splat(0);
            for k in 0..self.of {
                sum = sum.xor(load(self.arrays[k].wrapping_add(BLOCK * at), lanes));
            }
            for k in 0..self.chosen.len() {
                if let Some(chosen) = self.chosen[k] {
                    let bits = chosen.bits.wrapping_add(at / 8).read() >> (at % 8) & 0xf;
                    let block: B = match chosen.from {
                        Some(from) => load(from.wrapping_add(BLOCK * at), lanes),
                        None => B::splat(chosen.block),
                    };
                    sum = sum.xor_where(B::bits(bits), block);
                }
            }
            sum
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

/// # Safety
/// `lanes` blocks can be read, at most four.
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
unsafe fn blocks<B: Blocks>(sum: &Sum, to: *mut u8) {
    for at in (0..sum.count).step_by(LANES) {
        let lanes = (sum.count - at).min(LANES);
        // SAFETY: the caller's.
        unsafe {
            let block: B = sum.at(at, lanes);
            let to = to.wrapping_add(BLOCK * at);
            if lanes == LANES {
                block.store(to);
            } else {
                block.store_part(to, lanes);
            }
        }
    }
}

#[inline(always)]
unsafe fn bits<B: Blocks>(sum: &Sum, second: bool, to: *mut u8) {
    for at in (0..sum.count).step_by(LANES) {
        let lanes = (sum.count - at).min(LANES);
        // SAFETY: the caller's.
        unsafe {
            let block: B = sum.at(at, lanes);
            let bits = if second {
                block.second()
            } else {
                block.colour()
            };
            let bits = B::number(bits) & ((1 << lanes) - 1);
            let to = to.wrapping_add(at / 8);
            if at.is_multiple_of(8) {
                to.write(bits);
            } else {
                to.write(to.read() | bits << LANES);
            }
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
