//! Eight words, or elements, at a time: the few operations that the kernels of proofs are written in, and the instruction sets that provide
//! them.

#[cfg(target_arch = "x86_64")]
#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

use veil_math::Gf64;
use zeroize::DefaultIsZeroes;

/// Words, or elements, of a register.
pub(super) const LANES: usize = 8;

/// Eight words of gates, or eight elements, in memory.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(super) struct Register(pub(super) [u64; LANES]);

impl DefaultIsZeroes for Register {}

impl Register {
    pub(super) const ZERO: Register = Register([0; LANES]);
}

/// A register of an instruction set. Methods may be called only where that is present, and are always inlined into a function that enables it:
/// no closure is on the way, which would not be.
pub(super) trait Lanes: Copy {
    fn load(from: &[u64; LANES]) -> Self;
    fn bytes(from: &[u8; 8 * LANES]) -> Self;
    /// Says that what is there will be read soon; it may be anywhere.
    fn prefetch(_from: *const u8) {}
    fn store(self, to: &mut [u64; LANES]);
    fn splat(word: u64) -> Self;
    fn xor(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    /// Every lane by `N` bits to the left.
    fn left<const N: u32>(self) -> Self;
    /// Every lane by `N` bits to the right.
    fn right<const N: u32>(self) -> Self;
    /// x times each lane.
    fn times_x(self) -> Self;
    /// The products of the even lanes as polynomials, two words each, and those of the odd ones.
    fn products(self, other: Self) -> [Self; 2];
    /// Sums of such products as elements.
    fn reduce(products: [Self; 2]) -> Self;

    /// No bits.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0)
    }

    /// The products of lanes as elements.
    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        Self::reduce(self.products(other))
    }

    /// Adds the products of all lanes, of even ones and of odd ones together.
    #[inline(always)]
    fn add_products(self, a: Self, b: Self) -> Self {
        let [even, odd] = a.products(b);
        self.xor(even).xor(odd)
    }
}

/// The sum of the products that [`Lanes::add_products`] has added, as an element.
pub(super) fn element(sum: &Register) -> u64 {
    let (products, _) = sum.0.as_chunks::<2>();
    let sum = products.iter().fold(0, |sum, [low, high]| {
        sum ^ u128::from(*low) ^ u128::from(*high) << 64
    });
    Gf64::reduce(sum)
}

/// Numbers of 64 bits.
#[derive(Clone, Copy)]
pub(super) struct Portable([u64; LANES]);

impl Lanes for Portable {
    #[inline(always)]
    fn load(from: &[u64; LANES]) -> Self {
        Portable(*from)
    }
    #[inline(always)]
    fn bytes(from: &[u8; 8 * LANES]) -> Self {
        let mut out = [0; LANES];
        for lane in 0..LANES {
            let word = from[8 * lane..].first_chunk().expect("eight bytes");
            out[lane] = u64::from_le_bytes(*word);
        }
        Portable(out)
    }
    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        *to = self.0;
    }
    #[inline(always)]
    fn splat(word: u64) -> Self {
        Portable([word; LANES])
    }
    #[inline(always)]
    fn xor(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self.0[lane] ^= other.0[lane];
        }
        self
    }
    #[inline(always)]
    fn and(mut self, other: Self) -> Self {
        for lane in 0..LANES {
            self.0[lane] &= other.0[lane];
        }
        self
    }
    #[inline(always)]
    fn left<const N: u32>(mut self) -> Self {
        for lane in 0..LANES {
            self.0[lane] <<= N;
        }
        self
    }
    #[inline(always)]
    fn right<const N: u32>(mut self) -> Self {
        for lane in 0..LANES {
            self.0[lane] >>= N;
        }
        self
    }
    #[inline(always)]
    fn times_x(mut self) -> Self {
        for lane in 0..LANES {
            self.0[lane] = Gf64::times_x(self.0[lane]);
        }
        self
    }
    #[inline(always)]
    fn products(self, other: Self) -> [Self; 2] {
        let mut out = [[0; LANES]; 2];
        for lane in 0..LANES {
            let product = Gf64::product(self.0[lane], other.0[lane]);
            let at = lane & !1;
            out[lane & 1][at] = product as u64;
            out[lane & 1][at + 1] = (product >> 64) as u64;
        }
        [Portable(out[0]), Portable(out[1])]
    }
    #[inline(always)]
    fn reduce(products: [Self; 2]) -> Self {
        let mut out = [0; LANES];
        for lane in 0..LANES {
            let (of, at) = (&products[lane & 1].0, lane & !1);
            out[lane] = Gf64::reduce(u128::from(of[at]) | u128::from(of[at + 1]) << 64);
        }
        Portable(out)
    }
}

/// Registers of 256 bits, and PCLMULQDQ of their halves.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2([__m256i; 2]);

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// The products of a lane of each half.
    #[inline(always)]
    unsafe fn times<const WHICH: i32>(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller enables the instructions, here and below.
        unsafe {
            let low =
                _mm_clmulepi64_si128::<WHICH>(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b));
            let high = _mm_clmulepi64_si128::<WHICH>(
                _mm256_extracti128_si256::<1>(a),
                _mm256_extracti128_si256::<1>(b),
            );
            _mm256_set_m128i(high, low)
        }
    }

    /// Products modulo the field's polynomial, in the lower halves.
    #[inline(always)]
    unsafe fn reduced(products: __m256i) -> __m256i {
        unsafe {
            let tail = _mm256_set1_epi64x(Gf64::TAIL as i64);
            let folded = Self::times::<0x01>(products, tail);
            let beyond = Self::times::<0x01>(folded, tail);
            _mm256_xor_si256(_mm256_xor_si256(products, folded), beyond)
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for Avx2 {
    #[inline(always)]
    fn prefetch(from: *const u8) {
        // SAFETY: no address is wrong for it; the caller enables the instructions.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) };
    }
    #[inline(always)]
    fn load(from: &[u64; LANES]) -> Self {
        // SAFETY: eight words are two registers; the caller enables the instructions, here and below.
        unsafe {
            let from = from.as_ptr();
            Avx2([
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(4).cast()),
            ])
        }
    }
    #[inline(always)]
    fn bytes(from: &[u8; 8 * LANES]) -> Self {
        unsafe {
            let from = from.as_ptr();
            Avx2([
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(32).cast()),
            ])
        }
    }
    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        unsafe {
            let to = to.as_mut_ptr();
            _mm256_storeu_si256(to.cast(), self.0[0]);
            _mm256_storeu_si256(to.add(4).cast(), self.0[1]);
        }
    }
    #[inline(always)]
    fn splat(word: u64) -> Self {
        unsafe { Avx2([_mm256_set1_epi64x(word as i64); 2]) }
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        unsafe {
            Avx2([
                _mm256_xor_si256(self.0[0], other.0[0]),
                _mm256_xor_si256(self.0[1], other.0[1]),
            ])
        }
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        unsafe {
            Avx2([
                _mm256_and_si256(self.0[0], other.0[0]),
                _mm256_and_si256(self.0[1], other.0[1]),
            ])
        }
    }
    #[inline(always)]
    fn left<const N: u32>(self) -> Self {
        unsafe {
            let by = _mm_cvtsi32_si128(N as i32);
            Avx2([
                _mm256_sll_epi64(self.0[0], by),
                _mm256_sll_epi64(self.0[1], by),
            ])
        }
    }
    #[inline(always)]
    fn right<const N: u32>(self) -> Self {
        unsafe {
            let by = _mm_cvtsi32_si128(N as i32);
            Avx2([
                _mm256_srl_epi64(self.0[0], by),
                _mm256_srl_epi64(self.0[1], by),
            ])
        }
    }
    #[inline(always)]
    fn times_x(self) -> Self {
        unsafe {
            let tail = _mm256_set1_epi64x(Gf64::TAIL as i64);
            let mut out = self.0;
            for half in 0..2 {
                let highest = _mm256_cmpgt_epi64(_mm256_setzero_si256(), out[half]);
                let doubled = _mm256_add_epi64(out[half], out[half]);
                out[half] = _mm256_xor_si256(doubled, _mm256_and_si256(highest, tail));
            }
            Avx2(out)
        }
    }
    #[inline(always)]
    fn products(self, other: Self) -> [Self; 2] {
        unsafe {
            let ([a, b], [c, d]) = (self.0, other.0);
            [
                Avx2([Self::times::<0x00>(a, c), Self::times::<0x00>(b, d)]),
                Avx2([Self::times::<0x11>(a, c), Self::times::<0x11>(b, d)]),
            ]
        }
    }
    #[inline(always)]
    fn reduce([even, odd]: [Self; 2]) -> Self {
        unsafe {
            let mut out = even.0;
            for half in 0..2 {
                let (even, odd) = (Self::reduced(even.0[half]), Self::reduced(odd.0[half]));
                out[half] = _mm256_unpacklo_epi64(even, odd);
            }
            Avx2(out)
        }
    }
}

/// A register of 512 bits, and VPCLMULQDQ.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512i);

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    #[inline(always)]
    unsafe fn reduced(products: __m512i) -> __m512i {
        // SAFETY: the caller enables the instructions, here and below.
        unsafe {
            let tail = _mm512_set1_epi64(Gf64::TAIL as i64);
            let folded = _mm512_clmulepi64_epi128::<0x01>(products, tail);
            let beyond = _mm512_clmulepi64_epi128::<0x01>(folded, tail);
            _mm512_xor_si512(_mm512_xor_si512(products, folded), beyond)
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for Avx512 {
    #[inline(always)]
    fn prefetch(from: *const u8) {
        // SAFETY: no address is wrong for it; the caller enables the instructions.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) };
    }
    #[inline(always)]
    fn load(from: &[u64; LANES]) -> Self {
        // SAFETY: eight words are a register; the caller enables the instructions, here and below.
        unsafe { Avx512(_mm512_loadu_si512(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn bytes(from: &[u8; 8 * LANES]) -> Self {
        unsafe { Avx512(_mm512_loadu_si512(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) };
    }
    #[inline(always)]
    fn splat(word: u64) -> Self {
        unsafe { Avx512(_mm512_set1_epi64(word as i64)) }
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        unsafe { Avx512(_mm512_xor_si512(self.0, other.0)) }
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        unsafe { Avx512(_mm512_and_si512(self.0, other.0)) }
    }
    #[inline(always)]
    fn left<const N: u32>(self) -> Self {
        unsafe { Avx512(_mm512_slli_epi64::<N>(self.0)) }
    }
    #[inline(always)]
    fn right<const N: u32>(self) -> Self {
        unsafe { Avx512(_mm512_srli_epi64::<N>(self.0)) }
    }
    #[inline(always)]
    fn times_x(self) -> Self {
        unsafe {
            let tail = _mm512_set1_epi64(Gf64::TAIL as i64);
            let highest = _mm512_srai_epi64::<63>(self.0);
            let doubled = _mm512_add_epi64(self.0, self.0);
            Avx512(_mm512_xor_si512(doubled, _mm512_and_si512(highest, tail)))
        }
    }
    #[inline(always)]
    fn products(self, other: Self) -> [Self; 2] {
        unsafe {
            [
                Avx512(_mm512_clmulepi64_epi128::<0x00>(self.0, other.0)),
                Avx512(_mm512_clmulepi64_epi128::<0x11>(self.0, other.0)),
            ]
        }
    }
    #[inline(always)]
    fn reduce([even, odd]: [Self; 2]) -> Self {
        unsafe {
            let (even, odd) = (Self::reduced(even.0), Self::reduced(odd.0));
            Avx512(_mm512_unpacklo_epi64(even, odd))
        }
    }
}
