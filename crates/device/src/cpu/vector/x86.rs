//! The vector on x86-64 with AVX-512 and VAES.

use super::{At, Domain, GROUP, Kernel, MOST_VECTORS, RoundKeys, Vector, Wide, frame_of};
#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

/// AVX-512 with VAES, IFMA and VBMI2.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512i);

/// Puts the counter, little-endian in the low half of each 128-bit lane, big-endian into bytes 4 to 12.
pub(super) const SHUFFLE: [i8; 16] = [-1, -1, -1, -1, 7, 6, 5, 4, 3, 2, 1, 0, -1, -1, -1, -1];

/// Counters in their place in the PRF's input: four blocks from each.
#[inline(always)]
unsafe fn counters(ctr: [u64; GROUP]) -> [__m512i; GROUP] {
    // SAFETY: the caller's instruction set; the constant is as long as what is loaded.
    unsafe {
        let shuffle = _mm512_broadcast_i32x4(_mm_loadu_si128(SHUFFLE.as_ptr().cast()));
        let steps = _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0);
        let mut x = [steps; GROUP];
        for k in 0..GROUP {
            let c = _mm512_add_epi64(_mm512_set1_epi64(ctr[k] as i64), steps);
            x[k] = _mm512_shuffle_epi8(c, shuffle);
        }
        x
    }
}

/// A round key, four times over.
#[inline(always)]
unsafe fn round_key(key: &RoundKeys, round: usize) -> __m512i {
    // SAFETY: the caller's instruction set; a round key is as long as what is loaded.
    unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(key.rounds[round].as_ptr().cast())) }
}

/// Tag, lane and chunk, XOR round key 0.
#[inline(always)]
unsafe fn whitened(key: &RoundKeys, domain: Domain) -> __m512i {
    // SAFETY: the caller's instruction set; both constants are as long as what is loaded.
    unsafe {
        let fixed = _mm512_broadcast_i32x4(_mm_loadu_si128(frame_of(domain).as_ptr().cast()));
        _mm512_xor_si512(fixed, round_key(key, 0))
    }
}

impl Vector for Avx512 {
    type Wide = Limbs;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx")]
    #[inline(never)]
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>) {
        // SAFETY: the caller's.
        unsafe { K::run(args) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the trait's contract, here and below.
        Avx512(unsafe { _mm512_loadu_si512(from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn splat(value: u64) -> Self {
        Avx512(unsafe { _mm512_set1_epi64(value as i64) })
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_xor_si512(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_and_si512(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        Avx512(unsafe { _mm512_ternarylogic_epi64::<0x96>(self.0, b.0, c.0) })
    }
    #[inline(always)]
    unsafe fn xor_and(self, b: Self, c: Self) -> Self {
        // a ^ (b & c), index a·4 + b·2 + c.
        Avx512(unsafe { _mm512_ternarylogic_epi64::<0x78>(self.0, b.0, c.0) })
    }
    #[inline(always)]
    unsafe fn add32(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_add_epi32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn sub32(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_sub_epi32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul32(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_mullo_epi32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn add64(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_add_epi64(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn sub64(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_sub_epi64(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul64(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_mullo_epi64(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn add128(self, other: Self) -> Self {
        unsafe {
            let sum = _mm512_add_epi64(self.0, other.0);
            // What low words carry goes to the high words beside them.
            let carry = _mm512_cmplt_epu64_mask(sum, self.0) << 1 & HIGH_WORDS;
            Avx512(_mm512_mask_sub_epi64(
                sum,
                carry,
                sum,
                _mm512_set1_epi64(-1),
            ))
        }
    }
    #[inline(always)]
    unsafe fn sub128(self, other: Self) -> Self {
        unsafe {
            let difference = _mm512_sub_epi64(self.0, other.0);
            let borrow = _mm512_cmplt_epu64_mask(self.0, other.0) << 1 & HIGH_WORDS;
            let ones = _mm512_set1_epi64(-1);
            Avx512(_mm512_mask_add_epi64(difference, borrow, difference, ones))
        }
    }
    #[inline(always)]
    unsafe fn inputs(domain: Domain, ctr: [u64; GROUP]) -> [Self; GROUP] {
        unsafe {
            let frame = _mm_loadu_si128(frame_of(domain).as_ptr().cast());
            let (frame, counters) = (_mm512_broadcast_i32x4(frame), counters(ctr));
            let mut inputs = [Avx512(frame); GROUP];
            for g in 0..GROUP {
                inputs[g] = Avx512(_mm512_xor_si512(frame, counters[g]));
            }
            inputs
        }
    }
    #[inline(always)]
    unsafe fn prf_keys(
        keys: [&RoundKeys; GROUP],
        _domain: Domain,
        _ctr: u64,
        input: Self,
    ) -> [Self; GROUP] {
        unsafe {
            let mut x = [input.0; GROUP];
            for k in 0..GROUP {
                let first = round_key(keys[k], 0);
                x[k] = _mm512_xor_si512(input.0, first);
            }
            for r in 1..10 {
                for k in 0..GROUP {
                    let key = round_key(keys[k], r);
                    x[k] = _mm512_aesenc_epi128(x[k], key);
                }
            }
            let mut out = [input; GROUP];
            for k in 0..GROUP {
                let last = round_key(keys[k], 10);
                out[k] = Avx512(_mm512_aesenclast_epi128(x[k], last));
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn shift_left<const N: u32>(self) -> Self {
        Avx512(unsafe { _mm512_slli_epi64::<N>(self.0) })
    }
    #[inline(always)]
    unsafe fn shift_right<const N: u32>(self) -> Self {
        Avx512(unsafe { _mm512_srli_epi64::<N>(self.0) })
    }
    #[inline(always)]
    unsafe fn interleave(x: [[Self; 4]; 2]) -> [Self; 8] {
        unsafe {
            let mut out = [x[0][0]; 8];
            // Even words of a vector, then odd ones: pairs of words, of which lane k is that of words 2 k and 2 k + 1.
            for odd in 0..2 {
                let mut pairs = [x[0][0].0; 4];
                for i in 0..4 {
                    let (a, b) = (x[0][i].0, x[1][i].0);
                    pairs[i] = if odd == 0 {
                        _mm512_unpacklo_epi64(a, b)
                    } else {
                        _mm512_unpackhi_epi64(a, b)
                    };
                }
                // Lanes 0 and 1, lanes 2 and 3, of two vectors each.
                let low = _mm512_shuffle_i64x2::<0x44>(pairs[0], pairs[1]);
                let high = _mm512_shuffle_i64x2::<0xee>(pairs[0], pairs[1]);
                let low2 = _mm512_shuffle_i64x2::<0x44>(pairs[2], pairs[3]);
                let high2 = _mm512_shuffle_i64x2::<0xee>(pairs[2], pairs[3]);
                out[odd] = Avx512(_mm512_shuffle_i64x2::<0x88>(low, low2));
                out[odd + 2] = Avx512(_mm512_shuffle_i64x2::<0xdd>(low, low2));
                out[odd + 4] = Avx512(_mm512_shuffle_i64x2::<0x88>(high, high2));
                out[odd + 6] = Avx512(_mm512_shuffle_i64x2::<0xdd>(high, high2));
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn prf(key: &RoundKeys, domain: Domain, ctr: [u64; GROUP]) -> [Self; GROUP] {
        // SAFETY: the caller's.
        unsafe { Self::prf_of(key, domain, ctr, Self::inputs(domain, ctr)) }
    }
    #[inline(always)]
    unsafe fn prf_of(
        key: &RoundKeys,
        _domain: Domain,
        _ctr: [u64; GROUP],
        inputs: [Self; GROUP],
    ) -> [Self; GROUP] {
        unsafe {
            let first = round_key(key, 0);
            let mut x = [first; GROUP];
            for g in 0..GROUP {
                x[g] = _mm512_xor_si512(inputs[g].0, first);
            }
            for r in 1..10 {
                let k = round_key(key, r);
                for x in &mut x {
                    *x = _mm512_aesenc_epi128(*x, k);
                }
            }
            let k = round_key(key, 10);
            let mut out = [Avx512(k); GROUP];
            for i in 0..GROUP {
                out[i] = Avx512(_mm512_aesenclast_epi128(x[i], k));
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn prf_xor(
        a: &RoundKeys,
        b: &RoundKeys,
        domain: Domain,
        ctr: [u64; GROUP],
    ) -> [Self; GROUP] {
        unsafe {
            let mut x = counters(ctr);
            let mut y = x;
            let (fixed_x, fixed_y) = (whitened(a, domain), whitened(b, domain));
            for i in 0..GROUP {
                x[i] = _mm512_xor_si512(x[i], fixed_x);
                y[i] = _mm512_xor_si512(y[i], fixed_y);
            }
            for r in 1..10 {
                let k = round_key(a, r);
                let l = round_key(b, r);
                for i in 0..GROUP {
                    x[i] = _mm512_aesenc_epi128(x[i], k);
                    y[i] = _mm512_aesenc_epi128(y[i], l);
                }
            }
            // aesenclast(x, k) ^ aesenclast(y, l) = aesenclast(x, aesenclast(y, k ^ l)): no XOR per block.
            let k = round_key(a, 10);
            let l = round_key(b, 10);
            let both = _mm512_xor_si512(k, l);
            let mut out = [Avx512(both); GROUP];
            for i in 0..GROUP {
                out[i] = Avx512(_mm512_aesenclast_epi128(
                    x[i],
                    _mm512_aesenclast_epi128(y[i], both),
                ));
            }
            out
        }
    }
}

/// The odd words of a vector: high words of elements of Z_2^128.
const HIGH_WORDS: __mmask8 = 0xaa;

/// Eight elements of Z_2^128: low words in one register, high words in another. Products are of limbs of 52 bits: l_0 + 2^52 l_1 + 2^104
/// l_2, which the multiplier takes from the low bits of a word.
#[derive(Clone, Copy)]
pub(crate) struct Limbs {
    lo: __m512i,
    hi: __m512i,
}

/// Bits of a limb.
const LIMB: u32 = 52;

impl Limbs {
    /// Limbs 0, 1, 2, with anything above their 52 bits.
    #[inline(always)]
    unsafe fn split(self) -> [__m512i; 3] {
        // SAFETY: the caller's instruction set.
        unsafe {
            [
                self.lo,
                _mm512_shrdi_epi64::<{ LIMB as i32 }>(self.lo, self.hi),
                _mm512_srli_epi64::<{ 2 * LIMB - 64 }>(self.hi),
            ]
        }
    }
}

impl Wide<Avx512> for Limbs {
    const VECTORS: usize = 2;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's instruction set.
        unsafe {
            Limbs {
                lo: _mm512_setzero_si512(),
                hi: _mm512_setzero_si512(),
            }
        }
    }
    #[inline(always)]
    unsafe fn of([a, b]: [Avx512; MOST_VECTORS]) -> Self {
        // SAFETY: the caller's instruction set.
        unsafe {
            Limbs {
                lo: _mm512_unpacklo_epi64(a.0, b.0),
                hi: _mm512_unpackhi_epi64(a.0, b.0),
            }
        }
    }
    #[inline(always)]
    unsafe fn load(from: At) -> Self {
        // SAFETY: by the trait's contract, here and below.
        unsafe { Limbs::of([Avx512::load(from[0]), Avx512::load(from[1])]) }
    }
    #[inline(always)]
    unsafe fn store(self, to: At) {
        unsafe {
            Avx512(_mm512_unpacklo_epi64(self.lo, self.hi)).store(to[0]);
            Avx512(_mm512_unpackhi_epi64(self.lo, self.hi)).store(to[1]);
        }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe {
            let lo = _mm512_add_epi64(self.lo, other.lo);
            let carry = _mm512_cmplt_epu64_mask(lo, self.lo);
            let hi = _mm512_add_epi64(self.hi, other.hi);
            let hi = _mm512_mask_sub_epi64(hi, carry, hi, _mm512_set1_epi64(-1));
            Limbs { lo, hi }
        }
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        unsafe {
            let borrow = _mm512_cmplt_epu64_mask(self.lo, other.lo);
            let lo = _mm512_sub_epi64(self.lo, other.lo);
            let hi = _mm512_sub_epi64(self.hi, other.hi);
            let hi = _mm512_mask_add_epi64(hi, borrow, hi, _mm512_set1_epi64(-1));
            Limbs { lo, hi }
        }
    }
    #[inline(always)]
    unsafe fn dot<const N: usize>(self, pairs: [(Self, Self); N]) -> Self {
        // A word holds the sum of 2^12 halves of products; 3 N go into one.
        const { assert!(N <= 16) };
        unsafe {
            let mut sums = [_mm512_setzero_si512(); 3];
            for (a, b) in pairs {
                let (a, b) = (a.split(), b.split());
                for i in 0..3 {
                    for j in 0..3 - i {
                        sums[i + j] = _mm512_madd52lo_epu64(sums[i + j], a[i], b[j]);
                        if i + j < 2 {
                            sums[i + j + 1] = _mm512_madd52hi_epu64(sums[i + j + 1], a[i], b[j]);
                        }
                    }
                }
            }
            let [low, middle, high] = sums;
            let of_low = Limbs {
                lo: low,
                hi: _mm512_slli_epi64::<{ 2 * LIMB - 64 }>(high),
            };
            let of_middle = Limbs {
                lo: _mm512_slli_epi64::<LIMB>(middle),
                hi: _mm512_srli_epi64::<{ 64 - LIMB }>(middle),
            };
            self.add(of_low.add(of_middle))
        }
    }
}
