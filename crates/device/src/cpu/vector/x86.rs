//! The vector on x86-64: AVX-512 with VAES, and AVX2 with AES-NI.

use super::{Domain, GROUP, RoundKeys, Vector, frame_of};
#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

/// AVX-512 with VAES.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512i);

/// Puts the counter, little-endian in the low half of each 128-bit lane, big-endian into bytes 4 to 12.
const SHUFFLE: [i8; 16] = [-1, -1, -1, -1, 7, 6, 5, 4, 3, 2, 1, 0, -1, -1, -1, -1];

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

/// Tag, lane and chunk, XOR round key 0.
#[inline(always)]
unsafe fn whitened(key: &RoundKeys, domain: Domain) -> __m512i {
    // SAFETY: the caller's instruction set; both constants are as long as what is loaded.
    unsafe {
        let fixed = _mm512_broadcast_i32x4(_mm_loadu_si128(frame_of(domain).as_ptr().cast()));
        _mm512_xor_si512(fixed, _mm512_loadu_si512(key.rounds[0].as_ptr().cast()))
    }
}

impl Vector for Avx512 {
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
    unsafe fn prf(key: &RoundKeys, domain: Domain, ctr: [u64; GROUP]) -> [Self; GROUP] {
        unsafe {
            let mut x = counters(ctr);
            let fixed = whitened(key, domain);
            for x in &mut x {
                *x = _mm512_xor_si512(*x, fixed);
            }
            for r in 1..10 {
                let k = _mm512_loadu_si512(key.rounds[r].as_ptr().cast());
                for x in &mut x {
                    *x = _mm512_aesenc_epi128(*x, k);
                }
            }
            let k = _mm512_loadu_si512(key.rounds[10].as_ptr().cast());
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
                let k = _mm512_loadu_si512(a.rounds[r].as_ptr().cast());
                let l = _mm512_loadu_si512(b.rounds[r].as_ptr().cast());
                for i in 0..GROUP {
                    x[i] = _mm512_aesenc_epi128(x[i], k);
                    y[i] = _mm512_aesenc_epi128(y[i], l);
                }
            }
            // aesenclast(x, k) ^ aesenclast(y, l) = aesenclast(x, aesenclast(y, k ^ l)): no XOR per block.
            let k = _mm512_loadu_si512(a.rounds[10].as_ptr().cast());
            let l = _mm512_loadu_si512(b.rounds[10].as_ptr().cast());
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

/// AVX2 with AES-NI.
#[derive(Clone, Copy)]
pub(crate) struct Avx2([__m256i; 2]);

/// One intrinsic on both halves.
macro_rules! halves {
    ($intrinsic:ident, $a:expr, $b:expr) => {
        Avx2([$intrinsic($a.0[0], $b.0[0]), $intrinsic($a.0[1], $b.0[1])])
    };
}

/// Low 64 bits from three 32-bit products: a_lo b_lo + ((a_lo b_hi + a_hi b_lo) << 32).
#[inline(always)]
unsafe fn mul64_256(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller's instruction set.
    unsafe {
        let cross = _mm256_add_epi64(
            _mm256_mul_epu32(a, _mm256_srli_epi64::<32>(b)),
            _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), b),
        );
        _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64::<32>(cross))
    }
}

impl Vector for Avx2 {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the trait's contract, here and below.
        unsafe {
            Avx2([
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
    unsafe fn splat(value: u64) -> Self {
        Avx2([unsafe { _mm256_set1_epi64x(value as i64) }; 2])
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { halves!(_mm256_xor_si256, self, other) }
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        unsafe { halves!(_mm256_and_si256, self, other) }
    }
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        unsafe { self.xor(b).xor(c) }
    }
    #[inline(always)]
    unsafe fn xor_and(self, b: Self, c: Self) -> Self {
        unsafe { self.xor(b.and(c)) }
    }
    #[inline(always)]
    unsafe fn add64(self, other: Self) -> Self {
        unsafe { halves!(_mm256_add_epi64, self, other) }
    }
    #[inline(always)]
    unsafe fn sub64(self, other: Self) -> Self {
        unsafe { halves!(_mm256_sub_epi64, self, other) }
    }
    #[inline(always)]
    unsafe fn mul64(self, other: Self) -> Self {
        unsafe { halves!(mul64_256, self, other) }
    }
    #[inline(always)]
    unsafe fn prf(key: &RoundKeys, domain: Domain, ctr: [u64; GROUP]) -> [Self; GROUP] {
        unsafe {
            let shuffle = _mm_loadu_si128(SHUFFLE.as_ptr().cast());
            let fixed = _mm_loadu_si128(frame_of(domain).as_ptr().cast());
            let fixed = _mm_xor_si128(fixed, _mm_loadu_si128(key.rounds[0][0].as_ptr().cast()));
            let mut out = [Avx2([_mm256_setzero_si256(); 2]); GROUP];
            for g in 0..GROUP {
                let mut x = [fixed; 4];
                for (i, x) in x.iter_mut().enumerate() {
                    let counter = _mm_set_epi64x(0, ctr[g].wrapping_add(i as u64) as i64);
                    *x = _mm_xor_si128(_mm_shuffle_epi8(counter, shuffle), fixed);
                }
                for r in 1..10 {
                    let k = _mm_loadu_si128(key.rounds[r][0].as_ptr().cast());
                    for x in &mut x {
                        *x = _mm_aesenc_si128(*x, k);
                    }
                }
                let k = _mm_loadu_si128(key.rounds[10][0].as_ptr().cast());
                for x in &mut x {
                    *x = _mm_aesenclast_si128(*x, k);
                }
                out[g] = Avx2([_mm256_set_m128i(x[1], x[0]), _mm256_set_m128i(x[3], x[2])]);
            }
            out
        }
    }
}
