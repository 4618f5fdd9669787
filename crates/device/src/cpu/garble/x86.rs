//! Labels on x86-64 with VAES on 512 bits: a register for four.

#![expect(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set"
)]

use super::super::vector::Kernel;
use super::blocks::{Blocks, LANES, LAST_WORD};
#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

/// Both words of a lane, from a bit for each lane.
#[inline(always)]
unsafe fn doubled(number: u8) -> u8 {
    // SAFETY: the caller's instruction set.
    unsafe { _pdep_u32(number.into(), 0x55) as u8 * 3 }
}

/// Lanes whose number is less than `lanes`, by words.
#[inline(always)]
fn first(lanes: usize) -> __mmask8 {
    ((1u32 << (2 * lanes)) - 1) as u8
}

/// VAES on 512 bits.
#[derive(Clone, Copy)]
pub(crate) struct Zmm(__m512i);

const HIGH: __mmask8 = 0xaa;
const LOW: __mmask8 = 0x55;

impl Blocks for Zmm {
    type Bits = __mmask8;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx")]
    #[inline(never)]
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>) {
        // SAFETY: the caller's.
        unsafe { K::run(args) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the trait's contract, here and below.
        Zmm(unsafe { _mm512_loadu_si512(from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, lanes: usize) -> Self {
        Zmm(unsafe { _mm512_maskz_loadu_epi64(first(lanes), from.cast()) })
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, lanes: usize) {
        unsafe { _mm512_mask_storeu_epi64(to.cast(), first(lanes), self.0) }
    }
    #[inline(always)]
    unsafe fn gather(from: [*const u8; LANES]) -> Self {
        unsafe {
            let x = _mm512_castsi128_si512(_mm_loadu_si128(from[0].cast()));
            let x = _mm512_inserti32x4::<1>(x, _mm_loadu_si128(from[1].cast()));
            let x = _mm512_inserti32x4::<2>(x, _mm_loadu_si128(from[2].cast()));
            Zmm(_mm512_inserti32x4::<3>(x, _mm_loadu_si128(from[3].cast())))
        }
    }
    #[inline(always)]
    unsafe fn scatter(self, to: [*mut u8; LANES], lanes: usize) {
        unsafe {
            let x = [
                _mm512_extracti32x4_epi32::<0>(self.0),
                _mm512_extracti32x4_epi32::<1>(self.0),
                _mm512_extracti32x4_epi32::<2>(self.0),
                _mm512_extracti32x4_epi32::<3>(self.0),
            ];
            for k in 0..lanes {
                _mm_storeu_si128(to[k].cast(), x[k]);
            }
        }
    }
    #[inline(always)]
    unsafe fn load_halves(from: *const u8, lanes: usize) -> Self {
        unsafe {
            let words = _mm512_maskz_loadu_epi64(((1u32 << lanes) - 1) as u8, from.cast());
            Zmm(_mm512_maskz_expand_epi64(LOW, words))
        }
    }
    #[inline(always)]
    unsafe fn store_halves(self, to: *mut u8, lanes: usize) {
        unsafe {
            let words = _mm512_maskz_compress_epi64(LOW, self.0);
            _mm512_mask_storeu_epi64(to.cast(), ((1u32 << lanes) - 1) as u8, words);
        }
    }
    #[inline(always)]
    unsafe fn splat(label: u128) -> Self {
        unsafe {
            let label = _mm_set_epi64x((label >> 64) as i64, label as i64);
            Zmm(_mm512_broadcast_i32x4(label))
        }
    }
    #[inline(always)]
    unsafe fn tweaks(n: [u64; LANES]) -> Self {
        let n = [n[0] as i64, n[1] as i64, n[2] as i64, n[3] as i64];
        Zmm(unsafe { _mm512_set_epi64(n[3], 0, n[2], 0, n[1], 0, n[0], 0) })
    }
    #[inline(always)]
    unsafe fn tweak(number: u64) -> Self {
        Zmm(unsafe { _mm512_maskz_set1_epi64(HIGH, number as i64) })
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Zmm(unsafe { _mm512_xor_si512(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        Zmm(unsafe { _mm512_ternarylogic_epi64::<0x96>(self.0, b.0, c.0) })
    }
    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        Zmm(unsafe { _mm512_aesenc_epi128(self.0, key.0) })
    }
    #[inline(always)]
    unsafe fn last_round(self, key: Self) -> Self {
        Zmm(unsafe { _mm512_aesenclast_epi128(self.0, key.0) })
    }
    #[inline(always)]
    unsafe fn next_key(self, constant: Self) -> Self {
        unsafe {
            // With equal columns ShiftRows does nothing: the last round is SubWord of each, and the constant.
            let word = _mm512_shuffle_epi8(self.0, _mm512_set1_epi64(LAST_WORD));
            let word = _mm512_aesenclast_epi128(word, constant.0);
            let sums = _mm512_xor_si512(self.0, _mm512_bslli_epi128::<4>(self.0));
            let far = _mm512_bslli_epi128::<8>(sums);
            Zmm(_mm512_ternarylogic_epi64::<0x96>(sums, far, word))
        }
    }
    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        unsafe {
            let swapped = _mm512_shuffle_epi32::<0x4e>(self.0);
            Zmm(_mm512_mask_xor_epi64(swapped, HIGH, swapped, self.0))
        }
    }
    #[inline(always)]
    unsafe fn swap(self) -> Self {
        Zmm(unsafe { _mm512_shuffle_epi32::<0x4e>(self.0) })
    }
    #[inline(always)]
    unsafe fn join(high: Self, low: Self) -> Self {
        Zmm(unsafe { _mm512_unpacklo_epi64(low.0, high.0) })
    }
    #[inline(always)]
    unsafe fn interleave(self, other: Self) -> [Self; 2] {
        unsafe {
            let first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
            let last = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
            [
                Zmm(_mm512_permutex2var_epi64(self.0, first, other.0)),
                Zmm(_mm512_permutex2var_epi64(self.0, last, other.0)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn apart(self, other: Self) -> [Self; 2] {
        unsafe {
            let even = _mm512_shuffle_i64x2::<0x88>(self.0, other.0);
            let odd = _mm512_shuffle_i64x2::<0xdd>(self.0, other.0);
            [Zmm(even), Zmm(odd)]
        }
    }
    #[inline(always)]
    unsafe fn blend(high: Self, low: Self) -> Self {
        Zmm(unsafe { _mm512_mask_blend_epi64(HIGH, low.0, high.0) })
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Zmm(unsafe { _mm512_add_epi64(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn colour(self) -> __mmask8 {
        unsafe {
            let low = _mm512_shuffle_epi32::<0x44>(self.0);
            _mm512_test_epi64_mask(low, _mm512_set1_epi64(1))
        }
    }
    #[inline(always)]
    unsafe fn second(self) -> __mmask8 {
        unsafe {
            let low = _mm512_shuffle_epi32::<0x44>(self.0);
            _mm512_test_epi64_mask(low, _mm512_set1_epi64(2))
        }
    }
    #[inline(always)]
    unsafe fn high_colour(self) -> __mmask8 {
        unsafe {
            let high = _mm512_shuffle_epi32::<0xee>(self.0);
            _mm512_test_epi64_mask(high, _mm512_set1_epi64(1))
        }
    }
    #[inline(always)]
    unsafe fn bits(number: u8) -> __mmask8 {
        unsafe { doubled(number) }
    }
    #[inline(always)]
    unsafe fn number(bits: __mmask8) -> u8 {
        unsafe { _pext_u32(bits.into(), LOW.into()) as u8 }
    }
    #[inline(always)]
    unsafe fn xor_bits(a: __mmask8, b: __mmask8) -> __mmask8 {
        a ^ b
    }
    #[inline(always)]
    unsafe fn and_bits(a: __mmask8, b: __mmask8) -> __mmask8 {
        a & b
    }
    #[inline(always)]
    unsafe fn not_bits(a: __mmask8) -> __mmask8 {
        !a
    }
    #[inline(always)]
    unsafe fn xor_where(self, bits: __mmask8, other: Self) -> Self {
        Zmm(unsafe { _mm512_mask_xor_epi64(self.0, bits, self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn xor_high_where(self, bits: __mmask8, other: Self) -> Self {
        Zmm(unsafe { _mm512_mask_xor_epi64(self.0, bits & HIGH, self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn xor_low_where(self, bits: __mmask8, other: Self) -> Self {
        Zmm(unsafe { _mm512_mask_xor_epi64(self.0, bits & LOW, self.0, other.0) })
    }
}
