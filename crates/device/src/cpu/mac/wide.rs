//! Products of polynomials in vectors.

#![expect(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set"
)]

#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

use super::{BLOCK, GROUP};
use crate::cpu::Isa;

/// Bytes of four blocks.
const FOUR: usize = 4 * BLOCK;

/// Whether an instruction set has them.
pub(super) fn is_there(isa: Isa) -> bool {
    matches!(isa, Isa::Avx512 | Isa::Avx2Vaes)
}

/// Four blocks side by side.
///
/// # Safety
/// Methods may be called only where the instruction set is present, and are always inlined into a function that enables it.
trait Blocks: Copy {
    unsafe fn load(blocks: &[u8; FOUR]) -> Self;
    /// At most 64 bytes, and zeros.
    unsafe fn part(bytes: &[u8]) -> Self;
    /// A block, and zeros.
    unsafe fn one(block: __m128i) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    /// The product of a half of each block with one of the block beside it: `WHICH` as of PCLMULQDQ.
    unsafe fn times<const WHICH: i32>(self, other: Self) -> Self;
    /// Every block eight bytes to the left.
    unsafe fn left(self) -> Self;
    /// Every block eight bytes to the right.
    unsafe fn right(self) -> Self;
    /// The sum of the blocks.
    unsafe fn sum(self) -> __m128i;
}

impl Blocks for __m512i {
    #[inline(always)]
    unsafe fn load(blocks: &[u8; FOUR]) -> Self {
        // SAFETY: a vector is 64 bytes; the caller's instruction set, here and below.
        unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn part(bytes: &[u8]) -> Self {
        let mask = u64::MAX >> (FOUR - bytes.len());
        // SAFETY: only the bytes that the mask has are read.
        unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
    }
    #[inline(always)]
    unsafe fn one(block: __m128i) -> Self {
        unsafe { _mm512_zextsi128_si512(block) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe { _mm512_xor_si512(self, other) }
    }
    #[inline(always)]
    unsafe fn times<const WHICH: i32>(self, other: Self) -> Self {
        unsafe { _mm512_clmulepi64_epi128::<WHICH>(self, other) }
    }
    #[inline(always)]
    unsafe fn left(self) -> Self {
        unsafe { _mm512_bslli_epi128::<8>(self) }
    }
    #[inline(always)]
    unsafe fn right(self) -> Self {
        unsafe { _mm512_bsrli_epi128::<8>(self) }
    }
    #[inline(always)]
    unsafe fn sum(self) -> __m128i {
        unsafe {
            let [a, b] = [
                _mm512_castsi512_si256(self),
                _mm512_extracti64x4_epi64::<1>(self),
            ];
            [a, b].sum()
        }
    }
}

impl Blocks for [__m256i; 2] {
    #[inline(always)]
    unsafe fn load(blocks: &[u8; FOUR]) -> Self {
        let from = blocks.as_ptr();
        unsafe {
            [
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(32).cast()),
            ]
        }
    }
    #[inline(always)]
    unsafe fn part(bytes: &[u8]) -> Self {
        let mut blocks = [0; FOUR];
        blocks[..bytes.len()].copy_from_slice(bytes);
        unsafe { Self::load(&blocks) }
    }
    #[inline(always)]
    unsafe fn one(block: __m128i) -> Self {
        unsafe { [_mm256_zextsi128_si256(block), _mm256_setzero_si256()] }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        unsafe {
            [
                _mm256_xor_si256(self[0], other[0]),
                _mm256_xor_si256(self[1], other[1]),
            ]
        }
    }
    #[inline(always)]
    unsafe fn times<const WHICH: i32>(self, other: Self) -> Self {
        unsafe {
            [
                _mm256_clmulepi64_epi128::<WHICH>(self[0], other[0]),
                _mm256_clmulepi64_epi128::<WHICH>(self[1], other[1]),
            ]
        }
    }
    #[inline(always)]
    unsafe fn left(self) -> Self {
        unsafe {
            [
                _mm256_bslli_epi128::<8>(self[0]),
                _mm256_bslli_epi128::<8>(self[1]),
            ]
        }
    }
    #[inline(always)]
    unsafe fn right(self) -> Self {
        unsafe {
            [
                _mm256_bsrli_epi128::<8>(self[0]),
                _mm256_bsrli_epi128::<8>(self[1]),
            ]
        }
    }
    #[inline(always)]
    unsafe fn sum(self) -> __m128i {
        unsafe {
            let both = _mm256_xor_si256(self[0], self[1]);
            _mm_xor_si128(
                _mm256_castsi256_si128(both),
                _mm256_extracti128_si256::<1>(both),
            )
        }
    }
}

/// x^127 + x^126 + x^121, all of the field's polynomial between x^0 and x^128, divided by x^64.
const FOLD: i64 = 0xc2_i64 << 56;

/// low + x^128 high, divided by x^128 modulo x^128 + x^127 + x^126 + x^121 + 1: twice, the lower half is added often enough to
/// vanish, and what is left is divided by x^64 (Gueron, Langley, Lindell, RFC 8452).
#[inline]
#[target_feature(enable = "sse2,pclmulqdq")]
pub(crate) fn reduce(low: __m128i, high: __m128i) -> __m128i {
    let fold = _mm_set_epi64x(0, FOLD);
    let mut low = low;
    for _ in 0..2 {
        let swapped = _mm_shuffle_epi32::<0x4e>(low);
        low = _mm_xor_si128(swapped, _mm_clmulepi64_si128::<0x00>(low, fold));
    }
    _mm_xor_si128(low, high)
}

/// The same of four at a time.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
pub(crate) fn reduce_lanes(low: __m512i, high: __m512i) -> __m512i {
    let fold = _mm512_set_epi64(0, FOLD, 0, FOLD, 0, FOLD, 0, FOLD);
    let mut low = low;
    for _ in 0..2 {
        let swapped = _mm512_shuffle_epi32::<0x4e>(low);
        low = _mm512_xor_si512(swapped, _mm512_clmulepi64_epi128::<0x00>(low, fold));
    }
    _mm512_xor_si512(low, high)
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(block: &[u8; BLOCK]) -> __m128i {
    // SAFETY: a block is 16 bytes.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn bytes(block: __m128i) -> [u8; BLOCK] {
    let mut out = [0; BLOCK];
    // SAFETY: a block is 16 bytes.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), block) };
    out
}

/// a · b · x^-128.
#[target_feature(enable = "sse2,pclmulqdq")]
pub(super) fn times(a: [u8; BLOCK], b: [u8; BLOCK]) -> [u8; BLOCK] {
    bytes(product(load(&a), load(&b)))
}

/// The same of registers.
#[inline]
#[target_feature(enable = "sse2,pclmulqdq")]
pub(in crate::cpu) fn product(a: __m128i, b: __m128i) -> __m128i {
    let middle = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x01>(a, b),
        _mm_clmulepi64_si128::<0x10>(a, b),
    );
    let low = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x00>(a, b),
        _mm_slli_si128::<8>(middle),
    );
    let high = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x11>(a, b),
        _mm_srli_si128::<8>(middle),
    );
    reduce(low, high)
}

/// `state` after the blocks of a source, the last one padded with zeros.
///
/// # Safety
/// The machine has the instruction set, which is one that [`is_there`] names.
pub(super) unsafe fn update(
    isa: Isa,
    powers: &[[u8; BLOCK]; GROUP],
    state: [u8; BLOCK],
    source: &[u8],
) -> [u8; BLOCK] {
    // SAFETY: the caller's.
    unsafe {
        match isa {
            Isa::Avx512 => update_avx512(powers, state, source),
            _ => update_avx2(powers, state, source),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq,pclmulqdq")]
fn update_avx512(powers: &[[u8; BLOCK]; GROUP], state: [u8; BLOCK], source: &[u8]) -> [u8; BLOCK] {
    // SAFETY: the instruction set is enabled.
    unsafe { all::<__m512i>(powers, state, source) }
}

#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq")]
fn update_avx2(powers: &[[u8; BLOCK]; GROUP], state: [u8; BLOCK], source: &[u8]) -> [u8; BLOCK] {
    // SAFETY: the instruction set is enabled.
    unsafe { all::<[__m256i; 2]>(powers, state, source) }
}

#[inline(always)]
unsafe fn all<B: Blocks>(
    powers: &[[u8; BLOCK]; GROUP],
    state: [u8; BLOCK],
    source: &[u8],
) -> [u8; BLOCK] {
    // SAFETY: the caller's instruction set.
    unsafe {
        let mut state = load(&state);
        let (groups, rest) = source.as_chunks::<{ GROUP * BLOCK }>();
        for group in groups {
            state = blocks_of::<B>(powers, state, group);
        }
        if !rest.is_empty() {
            // The last blocks of a group: those before them would be zero.
            let blocks = rest.len().div_ceil(BLOCK);
            state = blocks_of::<B>(&powers[GROUP - blocks..], state, rest);
        }
        bytes(state)
    }
}

/// Σ block_k · powers_k over the blocks of the source, of which `powers` has as many; the state was added to the first block.
#[inline(always)]
unsafe fn blocks_of<B: Blocks>(powers: &[[u8; BLOCK]], state: __m128i, source: &[u8]) -> __m128i {
    // SAFETY: the caller's instruction set.
    unsafe {
        let powers = powers.as_flattened();
        let none = _mm_setzero_si128();
        let mut add = B::one(state);
        // Sums of products of polynomials, not reduced.
        let (mut low, mut middle, mut high) = (B::one(none), B::one(none), B::one(none));
        let (vectors, rest) = source.as_chunks::<FOUR>();
        let (factors, last) = powers.split_at(FOUR * vectors.len());
        let mut vectors = vectors.iter().zip(factors.as_chunks::<FOUR>().0);
        let mut last = (!rest.is_empty()).then_some((rest, last));
        loop {
            let (x, h) = if let Some((x, h)) = vectors.next() {
                (B::load(x), B::load(h))
            } else if let Some((x, h)) = last.take() {
                (B::part(x), B::part(h))
            } else {
                break;
            };
            let x = x.xor(add);
            add = B::one(none);
            low = low.xor(x.times::<0x00>(h));
            high = high.xor(x.times::<0x11>(h));
            middle = middle.xor(x.times::<0x01>(h).xor(x.times::<0x10>(h)));
        }
        let (low, high) = (low.xor(middle.left()), high.xor(middle.right()));
        reduce(low.sum(), high.sum())
    }
}
