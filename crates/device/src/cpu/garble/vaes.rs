//! Labels on x86-64 with VAES on 256 bits: a register for two.

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
pub(crate) struct Ymm([__m256i; 2]);

/// One intrinsic on both registers.
macro_rules! both {
    ($intrinsic:expr, $($of:expr),+) => {
        Ymm([$intrinsic($($of.0[0]),+), $intrinsic($($of.0[1]),+)])
    };
}

impl Ymm {
    #[inline(always)]
    unsafe fn of(labels: [__m128i; LANES]) -> Self {
        let [a, b, c, d] = labels;
        // SAFETY: the caller's instruction set, here and below.
        unsafe { Ymm([_mm256_set_m128i(b, a), _mm256_set_m128i(d, c)]) }
    }

    #[inline(always)]
    unsafe fn labels(self) -> [__m128i; LANES] {
        let [a, b] = self.0;
        unsafe {
            [
                _mm256_castsi256_si128(a),
                _mm256_extracti128_si256::<1>(a),
                _mm256_castsi256_si128(b),
                _mm256_extracti128_si256::<1>(b),
            ]
        }
    }

    /// All bits of each half like its lowest one.
    #[inline(always)]
    unsafe fn spread(self) -> Self {
        unsafe {
            let mut out = self;
            for k in 0..2 {
                let bit = _mm256_and_si256(self.0[k], _mm256_set1_epi64x(1));
                out.0[k] = _mm256_sub_epi64(_mm256_setzero_si256(), bit);
            }
            out
        }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { both!(_mm256_and_si256, self, other) }
    }

    #[inline(always)]
    unsafe fn and_not(self, other: Self) -> Self {
        unsafe { both!(_mm256_andnot_si256, other, self) }
    }

    /// Ones in the high halves.
    #[inline(always)]
    unsafe fn high() -> Self {
        Ymm([unsafe { _mm256_set_epi64x(-1, 0, -1, 0) }; 2])
    }
}

impl Blocks for Ymm {
    /// All bits of a lane.
    type Bits = Self;

    #[target_feature(enable = "avx2,aes,vaes,bmi2")]
    #[inline(never)]
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>) {
        // SAFETY: the caller's.
        unsafe { K::run(args) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the trait's contract, here and below.
        unsafe {
            Ymm([
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(32).cast()),
            ])
        }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe {
            _mm256_storeu_si256(to.cast(), self.0[0]);
            _mm256_storeu_si256(to.add(32).cast(), self.0[1]);
        }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, lanes: usize) -> Self {
        unsafe {
            let mut labels = [_mm_setzero_si128(); LANES];
            for k in 0..lanes {
                labels[k] = _mm_loadu_si128(from.add(16 * k).cast());
            }
            Self::of(labels)
        }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, lanes: usize) {
        unsafe {
            let labels = self.labels();
            for k in 0..lanes {
                _mm_storeu_si128(to.add(16 * k).cast(), labels[k]);
            }
        }
    }
    #[inline(always)]
    unsafe fn gather(from: [*const u8; LANES]) -> Self {
        unsafe {
            let mut labels = [_mm_setzero_si128(); LANES];
            for k in 0..LANES {
                labels[k] = _mm_loadu_si128(from[k].cast());
            }
            Self::of(labels)
        }
    }
    #[inline(always)]
    unsafe fn scatter(self, to: [*mut u8; LANES], lanes: usize) {
        unsafe {
            let labels = self.labels();
            for k in 0..lanes {
                _mm_storeu_si128(to[k].cast(), labels[k]);
            }
        }
    }
    #[inline(always)]
    unsafe fn load_halves(from: *const u8, lanes: usize) -> Self {
        unsafe {
            let mut labels = [_mm_setzero_si128(); LANES];
            for k in 0..lanes {
                labels[k] = _mm_loadl_epi64(from.add(8 * k).cast());
            }
            Self::of(labels)
        }
    }
    #[inline(always)]
    unsafe fn store_halves(self, to: *mut u8, lanes: usize) {
        unsafe {
            let labels = self.labels();
            for k in 0..lanes {
                _mm_storel_epi64(to.add(8 * k).cast(), labels[k]);
            }
        }
    }
    #[inline(always)]
    unsafe fn splat(label: u128) -> Self {
        unsafe {
            let label = _mm_set_epi64x((label >> 64) as i64, label as i64);
            Ymm([_mm256_broadcastsi128_si256(label); 2])
        }
    }
    #[inline(always)]
    unsafe fn tweaks(n: [u64; LANES]) -> Self {
        let n = [n[0] as i64, n[1] as i64, n[2] as i64, n[3] as i64];
        unsafe {
            Ymm([
                _mm256_set_epi64x(n[1], 0, n[0], 0),
                _mm256_set_epi64x(n[3], 0, n[2], 0),
            ])
        }
    }
    #[inline(always)]
    unsafe fn tweak(number: u64) -> Self {
        let n = number as i64;
        Ymm([unsafe { _mm256_set_epi64x(n, 0, n, 0) }; 2])
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { both!(_mm256_xor_si256, self, other) }
    }
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        unsafe { self.xor(b).xor(c) }
    }
    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        unsafe { both!(_mm256_aesenc_epi128, self, key) }
    }
    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        unsafe { both!(_mm256_aesenclast_epi128, self, key) }
    }
    #[inline(always)]
    unsafe fn next_key(self, constant: Self) -> Self {
        unsafe {
            let mut out = self;
            for k in 0..2 {
                // With equal columns ShiftRows does nothing: the last round is SubWord of each, and the constant.
                let word = _mm256_shuffle_epi8(self.0[k], _mm256_set1_epi64x(LAST_WORD));
                let word = _mm256_aesenclast_epi128(word, constant.0[k]);
                let sums = _mm256_xor_si256(self.0[k], _mm256_bslli_epi128::<4>(self.0[k]));
                let sums = _mm256_xor_si256(sums, _mm256_bslli_epi128::<8>(sums));
                out.0[k] = _mm256_xor_si256(sums, word);
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
        unsafe { both!(_mm256_shuffle_epi32::<0x4e>, self) }
    }
    #[inline(always)]
    unsafe fn join(high: Self, low: Self) -> Self {
        unsafe { both!(_mm256_unpacklo_epi64, low, high) }
    }
    #[inline(always)]
    unsafe fn interleave(self, other: Self) -> [Self; 2] {
        let mut out = [self, other];
        for k in 0..2 {
            let (a, b) = (self.0[k], other.0[k]);
            unsafe {
                out[k].0 = [
                    _mm256_permute2x128_si256::<0x20>(a, b),
                    _mm256_permute2x128_si256::<0x31>(a, b),
                ];
            }
        }
        out
    }
    #[inline(always)]
    unsafe fn apart(self, other: Self) -> [Self; 2] {
        let ([a, b], [c, d]) = (self.0, other.0);
        unsafe {
            [
                Ymm([
                    _mm256_permute2x128_si256::<0x20>(a, b),
                    _mm256_permute2x128_si256::<0x20>(c, d),
                ]),
                Ymm([
                    _mm256_permute2x128_si256::<0x31>(a, b),
                    _mm256_permute2x128_si256::<0x31>(c, d),
                ]),
            ]
        }
    }
    #[inline(always)]
    unsafe fn blend(high: Self, low: Self) -> Self {
        unsafe { both!(_mm256_blend_epi32::<0xcc>, low, high) }
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        unsafe { both!(_mm256_add_epi64, self, other) }
    }
    #[inline(always)]
    unsafe fn colour(self) -> Self {
        unsafe { both!(_mm256_shuffle_epi32::<0x44>, self).spread() }
    }
    #[inline(always)]
    unsafe fn second(self) -> Self {
        unsafe { both!(_mm256_srli_epi64::<1>, self).colour() }
    }
    #[inline(always)]
    unsafe fn high_colour(self) -> Self {
        unsafe { both!(_mm256_shuffle_epi32::<0xee>, self).spread() }
    }
    #[inline(always)]
    unsafe fn bits(number: u8) -> Self {
        unsafe {
            let number = _mm256_set1_epi64x(number.into());
            let lanes = Ymm([_mm256_set_epi64x(2, 2, 1, 1), _mm256_set_epi64x(8, 8, 4, 4)]);
            let mut out = lanes;
            for k in 0..2 {
                let bit = _mm256_and_si256(number, lanes.0[k]);
                out.0[k] = _mm256_cmpeq_epi64(bit, lanes.0[k]);
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn number(bits: Self) -> u8 {
        let mut number = 0;
        for k in 0..2 {
            // Two bits of each lane.
            let lanes = unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(bits.0[k])) } as u8;
            number |= (lanes & 1 | lanes >> 1 & 2) << (2 * k);
        }
        number
    }
    super::blocks::bits_of_lanes!();
}
