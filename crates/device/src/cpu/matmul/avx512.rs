//! Panels by registers of 512 bits: products of 52 bits (IFMA) and pairs of products of 16 bits (VNNI).
//!
//! An element of Z_2^64 is a_0 + 2^52 a_1. Of a_0 b_0 all bits count, of a_0 b_1 + a_1 b_0 the lower 12. One instruction adds the lower 52 bits of a_0 b_0, a second
//! one the bits above, and a third one adds four products of 16 bits, the cross products of two terms: five instructions for two terms.
//!
//! An element of Z_2^32 is a_0 + 2^16 a_1, with a_0 signed. One instruction adds a_0 b_1 + a_1 b_0, and one a_0 b_0 of two terms: three instructions for two terms.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_add_epi64, _mm512_dpwssd_epi32, _mm512_loadu_si512,
    _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_slli_epi32, _mm512_slli_epi64, _mm512_srli_epi64,
    _mm512_storeu_si512,
};

use super::Kernel;

/// Vectors of rows in a panel, and columns.
const VECTORS: usize = 2;
const COLUMNS: usize = 4;

/// Elements of Z_2^64.
pub(in super::super) struct Wide512;

/// The lowest and the highest bits of two terms, each as 16 bits.
const fn ends([first, second]: [u64; 2]) -> u64 {
    first & 0xffff | first >> 52 << 16 | (second & 0xffff | second >> 52 << 16) << 32
}

/// Behind the elements of a panel, puts `of_two` of each two terms of a line.
fn finish<W: Copy>(panel: &mut [W], lines: usize, of_two: impl Fn([W; 2]) -> W) {
    // Of two terms, three words of each line.
    let (elements, behind) = panel.split_at_mut(panel.len() / 3 * 2);
    for (pair, into) in elements
        .chunks_exact(2 * lines)
        .zip(behind.chunks_exact_mut(lines))
    {
        let (first, second) = pair.split_at(lines);
        for ((first, second), into) in first.iter().zip(second).zip(into) {
            *into = of_two([*first, *second]);
        }
    }
}

impl Kernel for Wide512 {
    type Word = u64;
    type Right = u64;
    const ROWS: usize = VECTORS * 8;
    const COLUMNS: usize = COLUMNS;
    const TERMS: usize = 2;
    const LEFT: usize = Self::ROWS / 2 * 3;
    const RIGHT: usize = COLUMNS / 2 * 3;

    fn right(word: u64) -> u64 {
        word
    }

    fn finish_left(panel: &mut [u64]) {
        finish(panel, Self::ROWS, ends);
    }

    fn finish_right(panel: &mut [u64]) {
        // What the lowest bits of the other matrix meet are the highest ones.
        let exchanged = |pair| {
            let ends = ends(pair);
            (ends & 0xffff_0000_ffff) << 16 | ends >> 16 & 0xffff_0000_ffff
        };
        finish(panel, COLUMNS, exchanged);
    }

    unsafe fn multiply(left: *const u64, right: *const u64, depth: usize, into: *mut u64) {
        // SAFETY: the caller's.
        unsafe { wide(left, right, depth, into) }
    }
}

/// A line of a panel of the left matrix.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn vectors<W>(line: *const W) -> [__m512i; VECTORS] {
    // SAFETY: the caller's.
    unsafe {
        [
            _mm512_loadu_si512(line.cast()),
            _mm512_loadu_si512(line.cast::<__m512i>().add(1)),
        ]
    }
}

/// Sums of a panel: of the lower 52 bits of products, of the bits above, and of cross products.
type Sums = [[[__m512i; VECTORS]; COLUMNS]; 3];

#[target_feature(enable = "avx512f,avx512ifma,avx512vnni")]
unsafe fn wide(left: *const u64, right: *const u64, depth: usize, into: *mut u64) {
    let [mut low, mut high, mut cross]: Sums = [[[_mm512_setzero_si512(); VECTORS]; COLUMNS]; 3];
    let (left_ends, right_ends) = (
        left.wrapping_add(Wide512::ROWS * depth),
        right.wrapping_add(COLUMNS * depth),
    );
    for pair in 0..depth / 2 {
        // SAFETY: the caller's: panels have that many words.
        unsafe {
            for term in [2 * pair, 2 * pair + 1] {
                let a = vectors(left.add(Wide512::ROWS * term));
                for j in 0..COLUMNS {
                    let b = _mm512_set1_epi64(right.add(COLUMNS * term + j).read().cast_signed());
                    for i in 0..VECTORS {
                        low[j][i] = _mm512_madd52lo_epu64(low[j][i], a[i], b);
                        high[j][i] = _mm512_madd52hi_epu64(high[j][i], a[i], b);
                    }
                }
            }
            let a = vectors(left_ends.add(Wide512::ROWS * pair));
            for j in 0..COLUMNS {
                let b = right_ends.add(COLUMNS * pair + j).read();
                let b = _mm512_set1_epi64(b.cast_signed());
                for i in 0..VECTORS {
                    cross[j][i] = _mm512_dpwssd_epi32(cross[j][i], a[i], b);
                }
            }
        }
    }
    for j in 0..COLUMNS {
        for i in 0..VECTORS {
            let both = _mm512_add_epi64(cross[j][i], _mm512_srli_epi64::<32>(cross[j][i]));
            let above = _mm512_slli_epi64::<52>(_mm512_add_epi64(high[j][i], both));
            // SAFETY: the caller's.
            unsafe {
                _mm512_storeu_si512(
                    into.add(Wide512::ROWS * j + 8 * i).cast(),
                    _mm512_add_epi64(low[j][i], above),
                );
            }
        }
    }
}

/// Elements of Z_2^32.
pub(in super::super) struct Narrow512;

impl Narrow512 {
    /// An element as 2^16 a_1 + a_0, where a_0 has a sign: a_1 is one more where that is negative.
    const fn signed(word: u32) -> u32 {
        word.wrapping_add((word & 0x8000) << 1)
    }

    /// The lower halves of two terms.
    const fn halves([first, second]: [u32; 2]) -> u32 {
        first & 0xffff | second << 16
    }
}

impl Kernel for Narrow512 {
    type Word = u32;
    type Right = u32;
    const ROWS: usize = VECTORS * 16;
    const COLUMNS: usize = COLUMNS;
    const TERMS: usize = 2;
    const LEFT: usize = Self::ROWS / 2 * 3;
    const RIGHT: usize = COLUMNS / 2 * 3;

    fn right(word: u32) -> u32 {
        Self::signed(word)
    }

    fn finish_left(panel: &mut [u32]) {
        let elements = panel.len() / 3 * 2;
        for word in &mut panel[..elements] {
            *word = Self::signed(*word);
        }
        finish(panel, Self::ROWS, Self::halves);
    }

    fn finish_right(panel: &mut [u32]) {
        finish(panel, COLUMNS, Self::halves);
        let elements = panel.len() / 3 * 2;
        for word in &mut panel[..elements] {
            *word = word.rotate_left(16);
        }
    }

    unsafe fn multiply(left: *const u32, right: *const u32, depth: usize, into: *mut u32) {
        // SAFETY: the caller's.
        unsafe { narrow(left, right, depth, into) }
    }
}

#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn narrow(left: *const u32, right: *const u32, depth: usize, into: *mut u32) {
    let [mut low, mut cross] = [[[_mm512_setzero_si512(); VECTORS]; COLUMNS]; 2];
    let (left_halves, right_halves) = (
        left.wrapping_add(Narrow512::ROWS * depth),
        right.wrapping_add(COLUMNS * depth),
    );
    for pair in 0..depth / 2 {
        // SAFETY: the caller's: panels have that many words.
        unsafe {
            add_pairs(&mut cross, left, right, 2 * pair);
            add_pairs(&mut cross, left, right, 2 * pair + 1);
            add_pairs(&mut low, left_halves, right_halves, pair);
        }
    }
    for j in 0..COLUMNS {
        for i in 0..VECTORS {
            let sum = _mm512_add_epi32(low[j][i], _mm512_slli_epi32::<16>(cross[j][i]));
            // SAFETY: the caller's.
            unsafe { _mm512_storeu_si512(into.add(Narrow512::ROWS * j + 16 * i).cast(), sum) }
        }
    }
}

/// Adds two products of halves in each place, of line `at` of both panels.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn add_pairs(
    sums: &mut [[__m512i; VECTORS]; COLUMNS],
    left: *const u32,
    right: *const u32,
    at: usize,
) {
    // SAFETY: the caller's.
    let a = unsafe { vectors(left.add(Narrow512::ROWS * at)) };
    for j in 0..COLUMNS {
        // SAFETY: the caller's.
        let b = unsafe { right.add(COLUMNS * at + j).read() };
        for i in 0..VECTORS {
            sums[j][i] = _mm512_dpwssd_epi32(sums[j][i], a[i], _mm512_set1_epi32(b.cast_signed()));
        }
    }
}

/// What [`wide`] does with two terms, in registers alone: no memory is reached, and a round waits for the one before but by its sums. Returns the number of
/// products.
#[target_feature(enable = "avx512f,avx512ifma,avx512vnni")]
pub(in super::super) unsafe fn in_registers_512(rounds: u64) -> u64 {
    let mut sums: Sums = [[[_mm512_setzero_si512(); VECTORS]; COLUMNS]; 3];
    let (mut a, mut b) = (_mm512_set1_epi64(3), _mm512_set1_epi64(5));
    for _ in 0..rounds {
        // The compiler knows neither operand.
        (a, b) = std::hint::black_box((a, b));
        let [low, high, cross] = &mut sums;
        for term in 0..2 {
            for j in 0..COLUMNS {
                for i in 0..VECTORS {
                    low[j][i] = _mm512_madd52lo_epu64(low[j][i], a, b);
                    high[j][i] = _mm512_madd52hi_epu64(high[j][i], a, b);
                    if term == 1 {
                        cross[j][i] = _mm512_dpwssd_epi32(cross[j][i], a, b);
                    }
                }
            }
        }
    }
    std::hint::black_box(sums);
    rounds * (2 * Wide512::ROWS * COLUMNS) as u64
}
