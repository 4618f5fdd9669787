//! One bit of every row, with AVX2: 32 rows at a time, whose bits come to the top of bytes.

#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

use super::split::Words;

/// Rows that are worked on at once: a byte each in a register.
const ROWS: usize = 32;

/// Bit `bit` of word `WORD` of every element, to a column. Elements have `SIZE` bytes.
///
/// # Safety
/// The machine has AVX2; the elements, and a bit for each at `to`, are there.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2<const SIZE: usize, const WORD: usize>(
    words: Words,
    bit: u32,
    to: *mut u8,
) {
    let whole = words.rows / ROWS * ROWS;
    // SAFETY: the caller's.
    unsafe {
        for first in (0..whole).step_by(ROWS) {
            let bits = pick::<SIZE, WORD>(words.from.add(first * SIZE), bit);
            to.add(first / 8)
                .cast::<u32>()
                .write_unaligned(bits.to_le());
        }
    }
    if whole < words.rows {
        let mut last = [0u8; 16 * ROWS];
        let rows = words.rows - whole;
        // SAFETY: the rows are there; the array has room for 32 elements; bytes for these rows are at `to`.
        unsafe {
            let from = words.from.add(whole * SIZE);
            std::ptr::copy_nonoverlapping(from, last.as_mut_ptr(), rows * SIZE);
            let bits = pick::<SIZE, WORD>(last.as_ptr(), bit).to_le_bytes();
            std::ptr::copy_nonoverlapping(bits.as_ptr(), to.add(whole / 8), rows.div_ceil(8));
        }
        last.fill(0);
        // The zeros are seen by a reader, as far as the compiler knows.
        std::hint::black_box(&last);
    }
}

/// Bit `bit` of every element of 32 bits, to a column.
///
/// # Safety
/// As of [`avx2`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn narrow(words: Words, bit: u32, to: *mut u8) {
    let whole = words.rows / ROWS * ROWS;
    // SAFETY: the caller's.
    unsafe {
        for first in (0..whole).step_by(ROWS) {
            let bits = pick_narrow(words.from.add(first * 4), bit);
            to.add(first / 8)
                .cast::<u32>()
                .write_unaligned(bits.to_le());
        }
    }
    if whole < words.rows {
        let mut last = [0u8; 4 * ROWS];
        let rows = words.rows - whole;
        // SAFETY: the rows are there; the array has room for 32 elements; bytes for these rows are at `to`.
        unsafe {
            let from = words.from.add(whole * 4);
            std::ptr::copy_nonoverlapping(from, last.as_mut_ptr(), rows * 4);
            let bits = pick_narrow(last.as_ptr(), bit).to_le_bytes();
            std::ptr::copy_nonoverlapping(bits.as_ptr(), to.add(whole / 8), rows.div_ceil(8));
        }
        last.fill(0);
        // The zeros are seen by a reader, as far as the compiler knows.
        std::hint::black_box(&last);
    }
}

/// Bit `bit` of 32 elements of 32 bits; bit k is of element k.
///
/// # Safety
/// The elements are there.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn pick_narrow(from: *const u8, bit: u32) -> u32 {
    let count = _mm_cvtsi32_si128(31 - bit as i32);
    let mut eight = [_mm256_setzero_si256(); 4];
    for k in 0..4 {
        // SAFETY: eight elements are there.
        let elements = unsafe { _mm256_loadu_si256(from.add(32 * k).cast()) };
        // Signs, which the packing keeps.
        eight[k] = _mm256_sll_epi32(elements, count);
    }
    let low = _mm256_packs_epi32(eight[0], eight[1]);
    let high = _mm256_packs_epi32(eight[2], eight[3]);
    let bytes = _mm256_packs_epi16(low, high);
    // Each lane has four rows of every eight.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_movemask_epi8(_mm256_permutevar8x32_epi32(bytes, order)) as u32
}

/// Bit `bit` of the words of 32 elements; bit k is of element k.
///
/// # Safety
/// The elements are there.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn pick<const SIZE: usize, const WORD: usize>(from: *const u8, bit: u32) -> u32 {
    let count = _mm_cvtsi32_si128(63 - bit as i32);
    let mut words = [_mm256_setzero_si256(); 8];
    for k in 0..8 {
        // SAFETY: four elements are there.
        let four = unsafe { four::<SIZE, WORD>(from.add(4 * k * SIZE)) };
        words[k] = _mm256_sll_epi64(four, count);
    }
    // The upper halves of the words, whose signs the packing keeps.
    let mut halves = [_mm256_setzero_si256(); 4];
    for k in 0..4 {
        let (a, b) = (words[2 * k], words[2 * k + 1]);
        let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
        halves[k] = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(a, b));
    }
    let low = _mm256_packs_epi32(halves[0], halves[1]);
    let high = _mm256_packs_epi32(halves[2], halves[3]);
    let bytes = _mm256_packs_epi16(low, high);
    // The lower lane has two rows of each four, and so has the upper one.
    let pairs = _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes);
    let order = if SIZE == 8 {
        // Rows 0 and 1 of four were in the lower lane.
        _mm256_setr_epi8(
            0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0, 1, 8, 9, 2, 3, 10, 11, 4, 5,
            12, 13, 6, 7, 14, 15,
        )
    } else {
        // Rows 0 and 2.
        _mm256_setr_epi8(
            0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12,
            5, 13, 6, 14, 7, 15,
        )
    };
    _mm256_movemask_epi8(_mm256_shuffle_epi8(pairs, order)) as u32
}

/// The words of four elements: in order, or those of elements 0 and 2 before 1 and 3.
///
/// # Safety
/// The elements are there.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn four<const SIZE: usize, const WORD: usize>(from: *const u8) -> __m256i {
    // SAFETY: the caller's.
    unsafe {
        let first = _mm256_loadu_si256(from.cast());
        if SIZE == 8 {
            return first;
        }
        let second = _mm256_loadu_si256(from.add(32).cast());
        if WORD == 0 {
            _mm256_unpacklo_epi64(first, second)
        } else {
            _mm256_unpackhi_epi64(first, second)
        }
    }
}
