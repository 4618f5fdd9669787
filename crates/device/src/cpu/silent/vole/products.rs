//! Sums of ten products of polynomials, which are reduced once.

#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

use super::super::super::mac::{reduce, reduce_lanes};
use super::{BLOCK, Terms, WEIGHT};

/// Vectors of four terms in two rows.
const VECTORS: usize = WEIGHT / 2;

/// As [`super::add`], two rows at a time: four terms are one vector, and the third vector has the last two terms of the first row and the first two of the second.
///
/// # Safety
/// The instruction set is present, the table has all places, and there is a block for each row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,vpclmulqdq,pclmulqdq")]
pub(super) unsafe fn add_avx512(
    terms: &Terms,
    rows: usize,
    places: u32,
    table: *const u8,
    to: *mut u8,
) {
    // SAFETY: the caller's.
    unsafe {
        let cleared = i64::from(places);
        let cleared = _mm512_set_epi64(0, cleared, 0, cleared, 0, cleared, 0, cleared);
        for row in (0..rows & !1).step_by(2) {
            let zero = _mm512_setzero_si512();
            let (mut low, mut middle, mut high) =
                ([zero; VECTORS], [zero; VECTORS], [zero; VECTORS]);
            for v in 0..VECTORS {
                let term = terms.as_ptr().add(BLOCK * (WEIGHT * row + 4 * v));
                let factor = _mm512_andnot_si512(cleared, _mm512_loadu_si512(term.cast()));
                let x = gathered(term, places, table);
                low[v] = _mm512_clmulepi64_epi128::<0x00>(factor, x);
                high[v] = _mm512_clmulepi64_epi128::<0x11>(factor, x);
                let one = _mm512_clmulepi64_epi128::<0x01>(factor, x);
                middle[v] = _mm512_xor_si512(one, _mm512_clmulepi64_epi128::<0x10>(factor, x));
            }
            let (low, middle, high) = (sums(&low), sums(&middle), sums(&high));
            let low = _mm512_xor_si512(low, _mm512_bslli_epi128::<8>(middle));
            let high = _mm512_xor_si512(high, _mm512_bsrli_epi128::<8>(middle));
            let both = reduce_lanes(low, high);
            let both = [
                _mm512_castsi512_si128(both),
                _mm512_extracti64x2_epi64::<2>(both),
            ];
            for k in 0..2 {
                let to = to.add(BLOCK * (row + k)).cast();
                _mm_storeu_si128(to, _mm_xor_si128(_mm_loadu_si128(to), both[k]));
            }
        }
        if !rows.is_multiple_of(2) {
            one_by_one(terms, rows - 1..rows, places, table, to);
        }
    }
}

/// The blocks of a table at the places of four terms.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn gathered(term: *const u8, places: u32, table: *const u8) -> __m512i {
    // SAFETY: the caller's: there are four terms, and the table has their places.
    unsafe {
        let mut blocks = [_mm_setzero_si128(); 4];
        for k in 0..4 {
            let place = term.add(BLOCK * k).cast::<u32>().read_unaligned() & places;
            blocks[k] = _mm_loadu_si128(table.add(BLOCK * place as usize).cast());
        }
        let x = _mm512_castsi128_si512(blocks[0]);
        let x = _mm512_inserti64x2::<1>(x, blocks[1]);
        let x = _mm512_inserti64x2::<2>(x, blocks[2]);
        _mm512_inserti64x2::<3>(x, blocks[3])
    }
}

/// Sums over the terms of two rows: of the first in lanes 0 and 1, of the second in lanes 2 and 3.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums(of: &[__m512i; VECTORS]) -> __m512i {
    let first = _mm512_xor_si512(of[0], of[1]);
    let second = _mm512_xor_si512(of[3], of[4]);
    let low = _mm512_shuffle_i64x2::<0x44>(first, second);
    let high = _mm512_shuffle_i64x2::<0xee>(first, second);
    let halves = _mm512_ternarylogic_epi64::<0x96>(low, high, of[2]);
    _mm512_xor_si512(halves, _mm512_shuffle_i64x2::<0xb1>(halves, halves))
}

/// As [`super::add`].
///
/// # Safety
/// As [`add_avx512`].
#[target_feature(enable = "avx2,pclmulqdq")]
pub(super) unsafe fn add_avx2(
    terms: &Terms,
    rows: usize,
    places: u32,
    table: *const u8,
    to: *mut u8,
) {
    // SAFETY: the caller's.
    unsafe { one_by_one(terms, 0..rows, places, table, to) }
}

#[inline(always)]
unsafe fn one_by_one(
    terms: &Terms,
    rows: std::ops::Range<usize>,
    places: u32,
    table: *const u8,
    to: *mut u8,
) {
    // SAFETY: the caller's.
    unsafe {
        let cleared = _mm_set_epi64x(0, places.into());
        for row in rows {
            let mut term = terms.as_ptr().add(BLOCK * WEIGHT * row);
            let none = _mm_setzero_si128();
            let (mut low, mut middle, mut high) = (none, none, none);
            for _ in 0..WEIGHT {
                let place = term.cast::<u32>().read_unaligned() & places;
                let factor = _mm_andnot_si128(cleared, _mm_loadu_si128(term.cast()));
                let x = _mm_loadu_si128(table.add(BLOCK * place as usize).cast());
                low = _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(factor, x));
                high = _mm_xor_si128(high, _mm_clmulepi64_si128::<0x11>(factor, x));
                let one = _mm_clmulepi64_si128::<0x01>(factor, x);
                let other = _mm_clmulepi64_si128::<0x10>(factor, x);
                middle = _mm_xor_si128(middle, _mm_xor_si128(one, other));
                term = term.add(BLOCK);
            }
            let low = _mm_xor_si128(low, _mm_slli_si128::<8>(middle));
            let high = _mm_xor_si128(high, _mm_srli_si128::<8>(middle));
            let to = to.add(BLOCK * row).cast();
            let sum = _mm_xor_si128(_mm_loadu_si128(to), reduce(low, high));
            _mm_storeu_si128(to, sum);
        }
    }
}
