//! The vector on x86-64 with AVX2, and either VAES or AES-NI: [`Ymm`] is generic over how it encrypts.

use super::x86::SHUFFLE;
use super::{Domain, GROUP, Kernel, RoundKeys, Scalars, Vector, frame_of, turn};
#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// AVX2, and AES as `E` has it.
#[derive(Clone, Copy)]
pub(crate) struct Ymm<E>([__m256i; 2], PhantomData<E>);

/// AVX2 with AES-NI.
pub(crate) type Avx2 = Ymm<AesNi>;

/// AVX2 with VAES.
pub(crate) type Avx2Vaes = Ymm<Vaes>;

impl<E> Ymm<E> {
    #[inline(always)]
    fn of(halves: [__m256i; 2]) -> Self {
        Ymm(halves, PhantomData)
    }
}

/// AES on registers of 256 bits.
///
/// # Safety
/// As of [`Vector`].
pub(crate) trait Aes: Copy {
    /// As [`Vector::outlined`].
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>);
    /// Vector k under key k.
    unsafe fn encrypt(
        keys: [&RoundKeys; GROUP],
        vectors: [[__m256i; 2]; GROUP],
    ) -> [[__m256i; 2]; GROUP];
}

/// A block at a time.
#[derive(Clone, Copy)]
pub(crate) struct AesNi;

impl Aes for AesNi {
    #[target_feature(enable = "avx2,aes")]
    #[inline(never)]
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>) {
        // SAFETY: the caller's.
        unsafe { K::run(args) }
    }
    #[inline(always)]
    unsafe fn encrypt(
        keys: [&RoundKeys; GROUP],
        mut vectors: [[__m256i; 2]; GROUP],
    ) -> [[__m256i; 2]; GROUP] {
        // SAFETY: the caller's instruction set.
        unsafe {
            // Eight chains, four per vector.
            for k in (0..GROUP).step_by(2) {
                let mut x = [blocks_of(vectors[k]), blocks_of(vectors[k + 1])];
                for v in 0..2 {
                    let key = half_round_key(keys[k + v], 0);
                    for x in &mut x[v] {
                        *x = _mm_xor_si128(*x, key);
                    }
                }
                for r in 1..10 {
                    for v in 0..2 {
                        let key = half_round_key(keys[k + v], r);
                        for x in &mut x[v] {
                            *x = _mm_aesenc_si128(*x, key);
                        }
                    }
                }
                for v in 0..2 {
                    let key = half_round_key(keys[k + v], 10);
                    for x in &mut x[v] {
                        *x = _mm_aesenclast_si128(*x, key);
                    }
                    let [a, b, c, d] = x[v];
                    vectors[k + v] = [_mm256_set_m128i(b, a), _mm256_set_m128i(d, c)];
                }
            }
            vectors
        }
    }
}

/// Two blocks at a time.
#[derive(Clone, Copy)]
pub(crate) struct Vaes;

impl Aes for Vaes {
    #[target_feature(enable = "avx2,aes,vaes,bmi2")]
    #[inline(never)]
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>) {
        // SAFETY: the caller's.
        unsafe { K::run(args) }
    }
    #[inline(always)]
    unsafe fn encrypt(
        keys: [&RoundKeys; GROUP],
        mut vectors: [[__m256i; 2]; GROUP],
    ) -> [[__m256i; 2]; GROUP] {
        // SAFETY: the caller's instruction set.
        unsafe {
            // Eight chains, two per vector.
            for k in 0..GROUP {
                let key = whole_round_key(keys[k], 0);
                for x in &mut vectors[k] {
                    *x = _mm256_xor_si256(*x, key);
                }
            }
            for r in 1..10 {
                for k in 0..GROUP {
                    let key = whole_round_key(keys[k], r);
                    for x in &mut vectors[k] {
                        *x = _mm256_aesenc_epi128(*x, key);
                    }
                }
            }
            for k in 0..GROUP {
                let key = whole_round_key(keys[k], 10);
                for x in &mut vectors[k] {
                    *x = _mm256_aesenclast_epi128(*x, key);
                }
            }
            vectors
        }
    }
}

/// The blocks of a vector.
#[inline(always)]
unsafe fn blocks_of([a, b]: [__m256i; 2]) -> [__m128i; 4] {
    // SAFETY: the caller's instruction set.
    unsafe {
        [
            _mm256_castsi256_si128(a),
            _mm256_extracti128_si256::<1>(a),
            _mm256_castsi256_si128(b),
            _mm256_extracti128_si256::<1>(b),
        ]
    }
}

/// A round key.
#[inline(always)]
unsafe fn half_round_key(key: &RoundKeys, round: usize) -> __m128i {
    // SAFETY: the caller's instruction set; a round key is as long as what is loaded.
    unsafe { _mm_loadu_si128(key.rounds[round].as_ptr().cast()) }
}

/// A round key, twice over.
#[inline(always)]
unsafe fn whole_round_key(key: &RoundKeys, round: usize) -> __m256i {
    // SAFETY: the caller's instruction set.
    unsafe { _mm256_broadcastsi128_si256(half_round_key(key, round)) }
}

/// Half of a vector: what is done to eight of them stays in registers, which eight vectors fill.
#[derive(Clone, Copy)]
struct Half(__m256i);

impl turn::Words for Half {
    #[inline(always)]
    unsafe fn exchange<const HALF: u32>(a: Self, b: Self, low: u64) -> (Self, Self) {
        // SAFETY: the caller's instruction set.
        unsafe {
            // The count of an immediate is signed here.
            let count = _mm_cvtsi32_si128(HALF as i32);
            let change = _mm256_xor_si256(_mm256_srl_epi64(a.0, count), b.0);
            let change = _mm256_and_si256(change, _mm256_set1_epi64x(low as i64));
            let shifted = _mm256_sll_epi64(change, count);
            (
                Half(_mm256_xor_si256(a.0, shifted)),
                Half(_mm256_xor_si256(b.0, change)),
            )
        }
    }
}

/// One half of eight vectors.
#[inline(always)]
fn halves_of<E>(x: &[Ymm<E>; 8], half: usize) -> [Half; 8] {
    let mut of = [Half(x[0].0[half]); 8];
    for k in 1..8 {
        of[k].0 = x[k].0[half];
    }
    of
}

/// One intrinsic on both halves.
macro_rules! halves {
    ($intrinsic:ident, $a:expr, $b:expr) => {
        Ymm::of([$intrinsic($a.0[0], $b.0[0]), $intrinsic($a.0[1], $b.0[1])])
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

/// -1 in high words whose low words have a less than b.
#[inline(always)]
unsafe fn carries(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller's instruction set.
    unsafe {
        let sign = _mm256_set1_epi64x(i64::MIN);
        let less = _mm256_cmpgt_epi64(_mm256_xor_si256(b, sign), _mm256_xor_si256(a, sign));
        _mm256_bslli_epi128::<8>(less)
    }
}

#[inline(always)]
unsafe fn add128_256(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller's instruction set.
    unsafe {
        let sum = _mm256_add_epi64(a, b);
        _mm256_sub_epi64(sum, carries(sum, a))
    }
}

#[inline(always)]
unsafe fn sub128_256(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller's instruction set.
    unsafe { _mm256_add_epi64(_mm256_sub_epi64(a, b), carries(a, b)) }
}

impl<E: Aes> Vector for Ymm<E> {
    type Wide = Scalars;

    #[inline(always)]
    unsafe fn outlined<K: Kernel>(args: K::Args<'_>) {
        // SAFETY: the caller's.
        unsafe { E::outlined::<K>(args) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: by the trait's contract, here and below.
        unsafe {
            Self::of([
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
        Self::of([unsafe { _mm256_set1_epi64x(value as i64) }; 2])
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
    unsafe fn add32(self, other: Self) -> Self {
        unsafe { halves!(_mm256_add_epi32, self, other) }
    }
    #[inline(always)]
    unsafe fn sub32(self, other: Self) -> Self {
        unsafe { halves!(_mm256_sub_epi32, self, other) }
    }
    #[inline(always)]
    unsafe fn mul32(self, other: Self) -> Self {
        unsafe { halves!(_mm256_mullo_epi32, self, other) }
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
    unsafe fn add128(self, other: Self) -> Self {
        unsafe { halves!(add128_256, self, other) }
    }
    #[inline(always)]
    unsafe fn sub128(self, other: Self) -> Self {
        unsafe { halves!(sub128_256, self, other) }
    }
    #[inline(always)]
    unsafe fn turn<const A: u32, const B: u32, const C: u32>(x: &mut [Self; 8]) {
        for half in 0..2 {
            let mut of = halves_of(x, half);
            unsafe { turn::turn::<_, A, B, C>(&mut of) }
            for k in 0..8 {
                x[k].0[half] = of[k].0;
            }
        }
    }
    #[inline(always)]
    unsafe fn inputs(domain: Domain, ctr: [u64; GROUP]) -> [Self; GROUP] {
        unsafe {
            let shuffle = _mm_loadu_si128(SHUFFLE.as_ptr().cast());
            let frame = _mm_loadu_si128(frame_of(domain).as_ptr().cast());
            let shuffle = _mm256_broadcastsi128_si256(shuffle);
            let frame = _mm256_broadcastsi128_si256(frame);
            let steps = [_mm256_set_epi64x(0, 1, 0, 0), _mm256_set_epi64x(0, 3, 0, 2)];
            let mut out = [Self::of([frame; 2]); GROUP];
            for g in 0..GROUP {
                let first = _mm256_set1_epi64x(ctr[g] as i64);
                for half in 0..2 {
                    // The shuffle leaves out what the upper words are.
                    let counters = _mm256_add_epi64(first, steps[half]);
                    let counters = _mm256_shuffle_epi8(counters, shuffle);
                    out[g].0[half] = _mm256_xor_si256(counters, frame);
                }
            }
            out
        }
    }
    #[inline(always)]
    unsafe fn prf_keys(
        keys: [&RoundKeys; GROUP],
        _domain: Domain,
        _ctr: u64,
        input: Self,
    ) -> [Self; GROUP] {
        let mut out = [input; GROUP];
        let made = unsafe { E::encrypt(keys, [input.0; GROUP]) };
        for k in 0..GROUP {
            out[k].0 = made[k];
        }
        out
    }
    #[inline(always)]
    unsafe fn shift_left<const N: u32>(self) -> Self {
        // The count of an immediate is signed here.
        let count = unsafe { _mm_cvtsi32_si128(N as i32) };
        let [a, b] = self.0;
        unsafe { Self::of([_mm256_sll_epi64(a, count), _mm256_sll_epi64(b, count)]) }
    }
    #[inline(always)]
    unsafe fn shift_right<const N: u32>(self) -> Self {
        let count = unsafe { _mm_cvtsi32_si128(N as i32) };
        let [a, b] = self.0;
        unsafe { Self::of([_mm256_srl_epi64(a, count), _mm256_srl_epi64(b, count)]) }
    }
    #[inline(always)]
    unsafe fn interleave(x: [[Self; 4]; 2]) -> [Self; 8] {
        unsafe {
            let mut out = [x[0][0]; 8];
            // Four words of four vectors at a time.
            for half in 0..2 {
                for to in 0..2 {
                    let [a, b] = [x[0][2 * to].0[half], x[1][2 * to].0[half]];
                    let [c, d] = [x[0][2 * to + 1].0[half], x[1][2 * to + 1].0[half]];
                    let [even, odd] = [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)];
                    let [even2, odd2] = [_mm256_unpacklo_epi64(c, d), _mm256_unpackhi_epi64(c, d)];
                    out[4 * half].0[to] = _mm256_permute2x128_si256::<0x20>(even, even2);
                    out[4 * half + 1].0[to] = _mm256_permute2x128_si256::<0x20>(odd, odd2);
                    out[4 * half + 2].0[to] = _mm256_permute2x128_si256::<0x31>(even, even2);
                    out[4 * half + 3].0[to] = _mm256_permute2x128_si256::<0x31>(odd, odd2);
                }
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
        let mut x = [inputs[0].0; GROUP];
        for g in 0..GROUP {
            x[g] = inputs[g].0;
        }
        let made = unsafe { E::encrypt([key; GROUP], x) };
        let mut out = inputs;
        for g in 0..GROUP {
            out[g].0 = made[g];
        }
        out
    }
}
