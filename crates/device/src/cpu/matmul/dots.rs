//! Transposed products of elements of Z_2^64, by registers of 512 bits: each element is an inner product of a column of either matrix, and both lie in memory as
//! they are read. Nothing is turned, and packing is an addition of vectors.
//!
//! Columns are packed in groups of sixteen terms: the elements, then the lowest and the highest bits of terms k and k + 8 in a word, whose cross products one instruction adds
//! as it does for [`Wide512`](super::kernel::Wide512).

#![allow(
    clippy::cast_ptr_alignment,
    reason = "elements are added to by `Word::grow`, which takes places that are not aligned"
)]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_dpwssd_epi32, _mm512_loadu_si512,
    _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_maskz_loadu_epi64, _mm512_or_si512,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_slli_epi64,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

use veil_session::Wiped;

use super::kernel::Word;
use super::{Columns, DEPTH};
use crate::matmul::OfSums;

/// Columns of either matrix in a block: the second cache has both blocks.
const BLOCK: usize = 64;
/// Columns of the left and of the right matrix that are multiplied at once: three sums of each pair are in registers.
const LEFT: usize = 2;
const RIGHT: usize = 4;
/// Terms of a group, and words.
const TERMS: usize = 16;
const WORDS: usize = TERMS / 2 * 3;

/// Which matrix.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

impl Columns {
    /// Adds products of sums of components where they belong, as [`Columns::panels`] does, of a transposed left matrix.
    ///
    /// # Safety
    /// The processor has registers of 512 bits, IFMA and VNNI, and columns have so many elements of Z_2^64.
    pub(super) unsafe fn dots(&mut self, all: &[OfSums]) {
        let stride = self.inner.min(DEPTH).div_ceil(TERMS) * WORDS;
        let columns = |count: usize, at_once| count.min(BLOCK).next_multiple_of(at_once);
        let (high, broad) = (columns(self.rows, LEFT), columns(self.width, RIGHT));
        let mut left = Wiped::<u64>::zeros(high * stride);
        let mut right = Wiped::<u64>::zeros(broad * stride);
        // Of each product a block of the result.
        let each = high * broad;
        let mut sums = Wiped::<u64>::zeros(all.len() * each);
        for j in (0..self.width).step_by(BLOCK) {
            for i in (0..self.rows).step_by(BLOCK) {
                let height = BLOCK.min(self.rows - i);
                let width = BLOCK.min(self.width - j);
                sums.fill(0);
                for first in (0..self.inner).step_by(DEPTH) {
                    let terms = (first, DEPTH.min(self.inner - first));
                    let groups = terms.1.div_ceil(TERMS);
                    for (of, sums) in all.iter().zip(sums.chunks_exact_mut(each)) {
                        // SAFETY: the caller's, and the blocks are within the matrices.
                        unsafe {
                            self.pack(Side::Left, &of.left, (i, height), terms, &mut left);
                            self.pack(Side::Right, &of.right, (j, width), terms, &mut right);
                            block((&left, height), (&right, width), groups, (sums, high));
                        }
                    }
                }
                for (of, sums) in all.iter().zip(sums.chunks_exact(each)) {
                    // SAFETY: the caller's.
                    unsafe { self.grow((i, height), (j, width), of, (sums, high)) };
                }
            }
        }
    }

    /// Adds a block of a product where it belongs: sums column by column, `high` rows each.
    ///
    /// # Safety
    /// That of [`Columns::dots`], and the block is within the product.
    unsafe fn grow(
        &mut self,
        (first_row, height): (usize, usize),
        (first_column, width): (usize, usize),
        of: &OfSums,
        (sums, high): (&[u64], usize),
    ) {
        for (target, minus) in &of.into {
            for (c, sums) in sums.chunks(high).take(width).enumerate() {
                let to = self.column(*target, first_column + c).0.cast::<u64>();
                for (r, sum) in sums[..height].iter().enumerate() {
                    // SAFETY: the caller's.
                    unsafe { sum.grow(to.add(first_row + r), *minus) };
                }
            }
        }
    }

    /// Packs terms of columns: the sum of these components.
    ///
    /// # Safety
    /// That of [`Columns::dots`]; these are columns and terms of the matrix, and `into` has room for them.
    unsafe fn pack(
        &self,
        side: Side,
        components: &[u8],
        (first, count): (usize, usize),
        (term, terms): (usize, usize),
        into: &mut [u64],
    ) {
        let columns = into.chunks_exact_mut(terms.div_ceil(TERMS) * WORDS);
        for (column, into) in (first..first + count).zip(columns) {
            let at = |component: &u8| {
                let column = match side {
                    Side::Left => self.left_at::<u64>(column, *component),
                    Side::Right => self.right_at::<u64>(column, *component),
                };
                column.wrapping_add(term)
            };
            // SAFETY: the caller's.
            unsafe {
                match components {
                    [a] => pack_column([a].map(at), terms, side, into),
                    [a, b] => pack_column([a, b].map(at), terms, side, into),
                    [a, b, c] => pack_column([a, b, c].map(at), terms, side, into),
                    _ => unreachable!("an element has up to three components, and a sum one"),
                }
            }
        }
    }
}

/// Packs so many elements that lie side by side: the sum of those at these places. Behind the last there are zeros.
#[target_feature(enable = "avx512f")]
unsafe fn pack_column<const N: usize>(
    from: [*const u64; N],
    terms: usize,
    side: Side,
    into: &mut [u64],
) {
    for (group, into) in into.chunks_exact_mut(WORDS).enumerate() {
        let [mut words, mut bits] = [[_mm512_setzero_si512(); 2]; 2];
        for half in 0..2 {
            let first = group * TERMS + half * 8;
            let there = ((1u16 << terms.saturating_sub(first).min(8)) - 1) as u8;
            for part in from {
                // SAFETY: the caller's: what is not there is not read.
                let part =
                    unsafe { _mm512_maskz_loadu_epi64(there, part.wrapping_add(first).cast()) };
                words[half] = _mm512_add_epi64(words[half], part);
            }
            let lowest = _mm512_and_si512(words[half], _mm512_set1_epi64(0xffff));
            let highest = _mm512_srli_epi64::<52>(words[half]);
            // What the lowest bits of the other matrix meet are the highest ones.
            let [low, high] = match side {
                Side::Left => [lowest, highest],
                Side::Right => [highest, lowest],
            };
            bits[half] = _mm512_or_si512(low, _mm512_slli_epi64::<16>(high));
        }
        let ends = _mm512_or_si512(bits[0], _mm512_slli_epi64::<32>(bits[1]));
        for (vector, to) in [words[0], words[1], ends]
            .into_iter()
            .zip(into.chunks_exact_mut(8))
        {
            // SAFETY: there are eight words.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) };
        }
    }
}

/// Adds the inner products of packed columns, of so many groups each, to sums: column by column, `high` rows each.
///
/// # Safety
/// The processor has the instructions; there is room for whole tiles.
#[target_feature(enable = "avx512f,avx512ifma,avx512vnni")]
unsafe fn block(
    (left, height): (&[u64], usize),
    (right, width): (&[u64], usize),
    groups: usize,
    (sums, high): (&mut [u64], usize),
) {
    for j in (0..width).step_by(RIGHT) {
        let right = &right[j * groups * WORDS..][..RIGHT * groups * WORDS];
        for i in (0..height).step_by(LEFT) {
            let left = &left[i * groups * WORDS..][..LEFT * groups * WORDS];
            let mut tile = [0u64; LEFT * RIGHT];
            // SAFETY: panels have that many words.
            unsafe {
                let sums = inner_products(left.as_ptr(), right.as_ptr(), groups);
                _mm512_storeu_si512(tile.as_mut_ptr().cast(), sums);
            }
            for (c, tile) in tile.chunks_exact(LEFT).enumerate() {
                let to = &mut sums[(j + c) * high + i..][..LEFT];
                for (to, sum) in to.iter_mut().zip(tile) {
                    *to = to.wrapping_add(*sum);
                }
            }
        }
    }
}

/// The inner products of [`LEFT`] packed columns and [`RIGHT`] ones, those of a right column side by side.
///
/// # Safety
/// Columns have so many groups.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vnni")]
unsafe fn inner_products(left: *const u64, right: *const u64, groups: usize) -> __m512i {
    let [mut low, mut high, mut cross] = [[[_mm512_setzero_si512(); LEFT]; RIGHT]; 3];
    let column = groups * WORDS;
    for group in 0..groups {
        let (left, right) = (
            left.wrapping_add(group * WORDS),
            right.wrapping_add(group * WORDS),
        );
        // SAFETY: the caller's.
        unsafe {
            for at in [0, 8] {
                let mut a = [_mm512_setzero_si512(); LEFT];
                for i in 0..LEFT {
                    a[i] = _mm512_loadu_si512(left.add(i * column + at).cast());
                }
                for j in 0..RIGHT {
                    let b = _mm512_loadu_si512(right.add(j * column + at).cast());
                    for i in 0..LEFT {
                        low[j][i] = _mm512_madd52lo_epu64(low[j][i], a[i], b);
                        high[j][i] = _mm512_madd52hi_epu64(high[j][i], a[i], b);
                    }
                }
            }
            let mut a = [_mm512_setzero_si512(); LEFT];
            for i in 0..LEFT {
                a[i] = _mm512_loadu_si512(left.add(i * column + TERMS).cast());
            }
            for j in 0..RIGHT {
                let b = _mm512_loadu_si512(right.add(j * column + TERMS).cast());
                for i in 0..LEFT {
                    cross[j][i] = _mm512_dpwssd_epi32(cross[j][i], a[i], b);
                }
            }
        }
    }
    let mut sums = [_mm512_setzero_si512(); LEFT * RIGHT];
    for j in 0..RIGHT {
        for i in 0..LEFT {
            let both = _mm512_add_epi64(cross[j][i], _mm512_srli_epi64::<32>(cross[j][i]));
            let above = _mm512_slli_epi64::<52>(_mm512_add_epi64(high[j][i], both));
            sums[j * LEFT + i] = _mm512_add_epi64(low[j][i], above);
        }
    }
    added_up(&sums)
}

/// Of each vector the sum of its words.
#[inline]
#[target_feature(enable = "avx512f")]
fn added_up(of: &[__m512i; LEFT * RIGHT]) -> __m512i {
    let [a, b, c, d, e, f, g, h] = *of;
    pairs(
        pairs(words(a, b), words(c, d)),
        pairs(words(e, f), words(g, h)),
    )
}

/// Of each two words the sum, of either vector in turns.
#[inline]
#[target_feature(enable = "avx512f")]
fn words(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
}

/// The sums of two pairs of words each of one vector, then of the other.
#[inline]
#[target_feature(enable = "avx512f")]
fn pairs(a: __m512i, b: __m512i) -> __m512i {
    let even = _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b);
    _mm512_add_epi64(even, _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b))
}
