//! The hash of `Op::Mac`, 64 blocks at a time where the CPU multiplies polynomials 512 bits at a time.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use veil_prss::Prf;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::Isa;
use crate::mac::{BLOCK, Hash, hash_key, length_block};

/// Blocks that are multiplied side by side, before one reduction: 16 vectors. With fewer, each reduction waits for the one before.
const GROUP: usize = 64;

/// A key of the hash, and its powers. Wiped on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct MacKey {
    key: [u8; BLOCK],
    /// key^64, key^63, …, key^1, as POLYVAL multiplies; of use to the wide kernel alone.
    powers: [[u8; BLOCK]; GROUP],
}

impl MacKey {
    pub(super) fn new(isa: Isa, prf: &Prf) -> Self {
        MacKey::of(isa, &hash_key(prf))
    }

    /// The key itself.
    pub(super) fn of(isa: Isa, key: &[u8; BLOCK]) -> Self {
        let key = *key;
        let mut powers = [key; GROUP];
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 {
            for k in (0..GROUP - 1).rev() {
                // SAFETY: a device with these vectors was asked for on a machine that has them.
                powers[k] = unsafe { wide::times(powers[k + 1], key) };
            }
        }
        MacKey { key, powers }
    }

    /// POLYVAL of whole blocks, without their number.
    pub(super) fn blocks(&self, isa: Isa, blocks: &[u8]) -> Zeroizing<[u8; BLOCK]> {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 {
            // SAFETY: as in `new`.
            return Zeroizing::new(unsafe { wide::update(&self.powers, [0; BLOCK], blocks) });
        }
        let mut state = Polyval::new(&self.key.into());
        state.update_padded(blocks);
        Zeroizing::new(state.finalize().into())
    }

    /// The hash of the sources, which `isa` has the instructions for.
    pub(super) fn hash<'a>(
        &self,
        isa: Isa,
        sources: impl Iterator<Item = &'a [u8]>,
    ) -> Zeroizing<[u8; BLOCK]> {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 {
            let (mut state, mut bytes) = ([0; BLOCK], 0);
            for source in sources {
                // SAFETY: as in `new`.
                state = unsafe { wide::update(&self.powers, state, source) };
                bytes += source.len() as u64;
            }
            // SAFETY: as in `new`.
            let last = unsafe { wide::update(&self.powers, state, &length_block(bytes)) };
            return Zeroizing::new(last);
        }
        let mut hash = Hash::new(&self.key);
        sources.for_each(|source| hash.source(source));
        Zeroizing::new(hash.finish())
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    #[allow(
        clippy::wildcard_imports,
        reason = "intrinsics carry their namespace in their names"
    )]
    use std::arch::x86_64::*;

    use super::{BLOCK, GROUP};

    /// x^127 + x^126 + x^121, all of the field's polynomial between x^0 and x^128, divided by x^64.
    const FOLD: i64 = 0xc2_i64 << 56;

    /// low + x^128 high, divided by x^128 modulo x^128 + x^127 + x^126 + x^121 + 1: twice, the lower half is added often enough to
    /// vanish, and what is left is divided by x^64 (Gueron, Langley, Lindell, RFC 8452).
    #[inline]
    #[target_feature(enable = "sse2,pclmulqdq")]
    fn reduce(low: __m128i, high: __m128i) -> __m128i {
        let fold = _mm_set_epi64x(0, FOLD);
        let mut low = low;
        for _ in 0..2 {
            let swapped = _mm_shuffle_epi32::<0x4e>(low);
            low = _mm_xor_si128(swapped, _mm_clmulepi64_si128::<0x00>(low, fold));
        }
        _mm_xor_si128(low, high)
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
        let (a, b) = (load(&a), load(&b));
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
        bytes(reduce(low, high))
    }

    /// `state` after the blocks of a source, the last one padded with zeros.
    #[target_feature(enable = "avx512f,avx512bw,vpclmulqdq,pclmulqdq")]
    pub(super) fn update(
        powers: &[[u8; BLOCK]; GROUP],
        state: [u8; BLOCK],
        source: &[u8],
    ) -> [u8; BLOCK] {
        let mut state = load(&state);
        let (groups, rest) = source.as_chunks::<{ GROUP * BLOCK }>();
        for group in groups {
            state = blocks_of(powers, state, group);
        }
        if !rest.is_empty() {
            // The last blocks of a group: those before them would be zero.
            let blocks = rest.len().div_ceil(BLOCK);
            state = blocks_of(&powers[GROUP - blocks..], state, rest);
        }
        bytes(state)
    }

    /// Σ block_k · powers_k over the blocks of the source, of which `powers` has as many; the state was added to the first block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,vpclmulqdq,pclmulqdq")]
    fn blocks_of(powers: &[[u8; BLOCK]], state: __m128i, source: &[u8]) -> __m128i {
        let powers = powers.as_flattened();
        let mut add = _mm512_zextsi128_si512(state);
        let mut sum = Products::none();
        let (vectors, rest) = source.as_chunks::<64>();
        let (factors, last) = powers.split_at(64 * vectors.len());
        for (x, h) in vectors.iter().zip(factors.as_chunks::<64>().0) {
            sum.add(_mm512_xor_si512(vector(x), add), vector(h));
            add = _mm512_setzero_si512();
        }
        if !rest.is_empty() {
            sum.add(_mm512_xor_si512(part(rest), add), part(last));
        }
        sum.reduced()
    }

    /// The sum of products of polynomials, not reduced.
    struct Products {
        low: __m512i,
        middle: __m512i,
        high: __m512i,
    }

    impl Products {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn none() -> Self {
            let zero = _mm512_setzero_si512();
            Products {
                low: zero,
                middle: zero,
                high: zero,
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f,vpclmulqdq")]
        fn add(&mut self, x: __m512i, h: __m512i) {
            self.low = _mm512_xor_si512(self.low, _mm512_clmulepi64_epi128::<0x00>(x, h));
            self.high = _mm512_xor_si512(self.high, _mm512_clmulepi64_epi128::<0x11>(x, h));
            self.middle = _mm512_ternarylogic_epi64::<0x96>(
                self.middle,
                _mm512_clmulepi64_epi128::<0x01>(x, h),
                _mm512_clmulepi64_epi128::<0x10>(x, h),
            );
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,pclmulqdq")]
        fn reduced(&self) -> __m128i {
            let low = _mm512_xor_si512(self.low, _mm512_bslli_epi128::<8>(self.middle));
            let high = _mm512_xor_si512(self.high, _mm512_bsrli_epi128::<8>(self.middle));
            reduce(sum(low), sum(high))
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn vector(bytes: &[u8; 64]) -> __m512i {
        // SAFETY: a vector is 64 bytes.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    /// At most 64 bytes, and zeros.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn part(bytes: &[u8]) -> __m512i {
        let mask = u64::MAX >> (64 - bytes.len());
        // SAFETY: only the bytes that the mask has are read.
        unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
    }

    /// The sum of the four blocks of a vector.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sum(x: __m512i) -> __m128i {
        let half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
        _mm_xor_si128(
            _mm256_castsi256_si128(half),
            _mm256_extracti128_si256::<1>(half),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veil_session::Secret;

    use super::*;

    /// RFC 8452, appendix A.
    #[test]
    fn standard_vector() {
        let bytes = |hex: u128| hex.to_be_bytes();
        let mut state =
            polyval::Polyval::new(&bytes(0x2562_9347_5892_4276_1d31_f826_ba4b_757b).into());
        state.update_padded(&bytes(0x4f4f_9566_8c83_dfb6_4017_62bb_2d01_a262));
        state.update_padded(&bytes(0xd1a2_4ddd_2721_d006_bbe4_5f20_d3c9_f362));
        let want = bytes(0xf7a3_b47b_8461_19fa_e5b7_866c_f5e5_b77e);
        assert_eq!(<[u8; 16]>::from(state.finalize()), want);
    }

    proptest! {
        #[test]
        fn every_instruction_set_hashes_alike(
            key: [u8; 16],
            sources in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2500), 0..5),
        ) {
            let prf = Prf::new(&Secret::new(key));
            let mut want = Hash::new(&hash_key(&prf));
            for source in &sources {
                want.source(source);
            }
            let want = want.finish();
            for isa in Isa::available() {
                let got = MacKey::new(isa, &prf).hash(isa, sources.iter().map(|s| &s[..]));
                prop_assert_eq!(*got, want, "{:?}", isa);
            }
        }
    }
}
