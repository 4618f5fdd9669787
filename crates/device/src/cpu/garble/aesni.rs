//! Labels on x86-64 with AES-NI: a register for each.

#![expect(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use super::super::vector::Kernel;
use super::blocks::{Blocks, LANES, LAST_WORD};
#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

/// Four labels.
#[derive(Clone, Copy)]
pub(crate) struct Xmm([__m128i; LANES]);

/// One intrinsic on each register.
macro_rules! each {
    ($intrinsic:expr, $($of:expr),+) => {{
        let mut out = Xmm([_mm_setzero_si128(); LANES]);
        for k in 0..LANES {
            out.0[k] = $intrinsic($($of.0[k]),+);
        }
        out
    }};
}

impl Xmm {
    /// All bits of each lane like one bit of it, which is the lowest of a half.
    #[inline(always)]
    unsafe fn spread(self) -> Self {
        // SAFETY: the caller's instruction set, here and below.
        unsafe {
            let mut out = self;
            for k in 0..LANES {
                let bit = _mm_and_si128(self.0[k], _mm_set1_epi64x(1));
                out.0[k] = _mm_sub_epi64(_mm_setzero_si128(), bit);
            }
            out
        }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { each!(_mm_and_si128, self, other) }
    }

    #[inline(always)]
    unsafe fn and_not(self, other: Self) -> Self {
        unsafe { each!(_mm_andnot_si128, other, self) }
    }

    /// Ones in the high halves.
    #[inline(always)]
    unsafe fn high() -> Self {
        Xmm([unsafe { _mm_set_epi64x(-1, 0) }; LANES])
    }
}

impl Blocks for Xmm {
    /// All bits of a lane.
    type Bits = Self;

    #[target_feature(enable = "avx2,aes")]
    #[inline(never)]
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>) {
        // SAFETY: the caller's.
        unsafe { K::run(args) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the trait's contract, here and below.
        unsafe { Self::load_part(from, LANES) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { self.store_part(to, LANES) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, lanes: usize) -> Self {
        unsafe {
            let mut out = Xmm([_mm_setzero_si128(); LANES]);
            for k in 0..lanes {
                out.0[k] = _mm_loadu_si128(from.add(16 * k).cast());
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, lanes: usize) {
        for k in 0..lanes {
            unsafe { _mm_storeu_si128(to.add(16 * k).cast(), self.0[k]) }
        }
    }
    #[inline(always)]
    unsafe fn gather(from: [*const u8; LANES]) -> Self {
        unsafe {
            let mut out = Xmm([_mm_setzero_si128(); LANES]);
            for k in 0..LANES {
                out.0[k] = _mm_loadu_si128(from[k].cast());
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn scatter(self, to: [*mut u8; LANES], lanes: usize) {
        for k in 0..lanes {
            unsafe { _mm_storeu_si128(to[k].cast(), self.0[k]) }
        }
    }
    #[inline(always)]
    unsafe fn load_halves(from: *const u8, lanes: usize) -> Self {
        unsafe {
            let mut out = Xmm([_mm_setzero_si128(); LANES]);
            for k in 0..lanes {
                out.0[k] = _mm_loadl_epi64(from.add(8 * k).cast());
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn store_halves(self, to: *mut u8, lanes: usize) {
        for k in 0..lanes {
            unsafe { _mm_storel_epi64(to.add(8 * k).cast(), self.0[k]) }
        }
    }
    #[inline(always)]
    unsafe fn splat(label: u128) -> Self {
        Xmm([unsafe { _mm_set_epi64x((label >> 64) as i64, label as i64) }; LANES])
    }
    #[inline(always)]
    unsafe fn tweaks(numbers: [u64; LANES]) -> Self {
        unsafe {
            let mut out = Xmm([_mm_setzero_si128(); LANES]);
            for k in 0..LANES {
                out.0[k] = _mm_set_epi64x(numbers[k] as i64, 0);
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn tweak(number: u64) -> Self {
        unsafe { Self::tweaks([number; LANES]) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { each!(_mm_xor_si128, self, other) }
    }
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        unsafe { self.xor(b).xor(c) }
    }
    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        unsafe { each!(_mm_aesenc_si128, self, key) }
    }
    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        unsafe { each!(_mm_aesenclast_si128, self, key) }
    }
    #[inline(always)]
    unsafe fn next_key(self, constant: Self) -> Self {
        unsafe {
            let mut out = self;
            for k in 0..LANES {
                // With equal columns ShiftRows does nothing: the last round is SubWord of each, and the constant.
                let word = _mm_shuffle_epi8(self.0[k], _mm_set1_epi64x(LAST_WORD));
                let word = _mm_aesenclast_si128(word, constant.0[k]);
                let sums = _mm_xor_si128(self.0[k], _mm_bslli_si128::<4>(self.0[k]));
                let sums = _mm_xor_si128(sums, _mm_bslli_si128::<8>(sums));
                out.0[k] = _mm_xor_si128(sums, word);
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        unsafe { self.swap().xor(self.and(Self::high())) }
    }
    #[inline(always)]
    unsafe fn swap(self) -> Self {
        unsafe { each!(_mm_shuffle_epi32::<0x4e>, self) }
    }
    #[inline(always)]
    unsafe fn join(high: Self, low: Self) -> Self {
        unsafe { each!(_mm_unpacklo_epi64, low, high) }
    }
    #[inline(always)]
    unsafe fn interleave(self, other: Self) -> [Self; 2] {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        [Xmm([a, e, b, f]), Xmm([c, g, d, h])]
    }
    #[inline(always)]
    unsafe fn apart(self, other: Self) -> [Self; 2] {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        [Xmm([a, c, e, g]), Xmm([b, d, f, h])]
    }
    #[inline(always)]
    unsafe fn blend(high: Self, low: Self) -> Self {
        unsafe { each!(_mm_blend_epi16::<0xf0>, low, high) }
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        unsafe { each!(_mm_add_epi64, self, other) }
    }
    #[inline(always)]
    unsafe fn colour(self) -> Self {
        unsafe { each!(_mm_shuffle_epi32::<0x44>, self).spread() }
    }
    #[inline(always)]
    unsafe fn second(self) -> Self {
        unsafe { each!(_mm_srli_epi64::<1>, self).colour() }
    }
    #[inline(always)]
    unsafe fn high_colour(self) -> Self {
        unsafe { each!(_mm_shuffle_epi32::<0xee>, self).spread() }
    }
    #[inline(always)]
    unsafe fn bits(number: u8) -> Self {
        unsafe {
            let mut out = Xmm([_mm_setzero_si128(); LANES]);
            for k in 0..LANES {
                let bit = i64::from(number >> k & 1);
                out.0[k] = _mm_set1_epi64x(bit.wrapping_neg());
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn number(bits: Self) -> u8 {
        let mut number = 0;
        for k in 0..LANES {
            number |= (unsafe { _mm_cvtsi128_si32(bits.0[k]) } as u8 & 1) << k;
        }
        number
    }
    super::blocks::bits_of_lanes!();
}
