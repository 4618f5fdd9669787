//! Tiles turned by AVX2: words are split to their bytes, 32 words at a time, and the bits of 32 bytes are gathered by one instruction each.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi8, _mm256_and_si256,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_movemask_epi8, _mm256_packus_epi16,
    _mm256_permutevar8x32_epi32, _mm256_set_epi32, _mm256_set_m128i, _mm256_set1_epi16,
    _mm256_set1_epi64x, _mm256_setr_epi8, _mm256_setr_epi32, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_slli_epi64, _mm256_srli_epi16, _mm256_srli_epi64,
    _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi8, _mm256_unpacklo_epi16, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
    _mm256_xor_si256,
};

use std::ops::Range;

use zeroize::Zeroize;

use super::{Columns, Places, TILE, bits_of, put};

/// Words that are turned together.
const BLOCK: usize = 32;

/// Byte k of 32 words of up to eight bytes, for each k.
type Bytes = [__m256i; 8];

/// [`super::take`].
#[target_feature(enable = "avx2")]
pub(super) fn take(
    (src, bytes): (&[u8], usize),
    rows: (Range<usize>, &impl Places),
    these: (usize, usize),
    columns: &mut Columns,
) {
    let (rows, places) = rows;
    macro_rules! of_words {
        ($($bytes:literal $word:ty),*) => {
            match bytes {
                $($bytes => {
                    let (src, _) = src.as_chunks::<$bytes>();
                    if let Some(words) = in_order(places, src) {
                        take_words(&words[rows], these, columns);
                    } else {
                        let word = |row: usize| <$word>::from_le_bytes(src[places.place(row)]);
                        take_gathered::<$word, $bytes>(rows, word, these, columns);
                    }
                })*
                _ => take_long((src, bytes), (rows, places), these, columns),
            }
        };
    }
    of_words!(1 u8, 2 u16, 4 u32, 8 u64);
}

/// [`take`] of other words than those of 1, 2, 4 and 8 bytes.
#[target_feature(enable = "avx2")]
fn take_long(
    (src, bytes): (&[u8], usize),
    (rows, places): (Range<usize>, &impl Places),
    these: (usize, usize),
    columns: &mut Columns,
) {
    let rest = (0, these.1);
    if bytes != 16 {
        let word = |row: usize| bits_of(&src[places.place(row) * bytes..][..bytes], these);
        return take_gathered::<u64, 8>(rows, word, rest, columns);
    }
    let (src, _) = src.as_chunks::<8>();
    let half = |row: usize, half: usize| u64::from_le_bytes(src[2 * places.place(row) + half]);
    match these.0 {
        0 => take_gathered::<u64, 8>(rows, |row| half(row, 0), rest, columns),
        by @ 1..64 => {
            let word = |row| half(row, 0) >> by | half(row, 1) << (64 - by);
            take_gathered::<u64, 8>(rows, word, rest, columns);
        }
        by => take_gathered::<u64, 8>(rows, |row| half(row, 1) >> (by - 64), rest, columns),
    }
}

/// The words themselves, where they come in the order of rows.
fn in_order<'a, P: Places, W>(_: &P, words: &'a [W]) -> Option<&'a [W]> {
    P::IN_ORDER.then_some(words)
}

/// Bits of words that are gathered first: a loop that does nothing else has most of them on their way at once.
#[target_feature(enable = "avx2")]
fn take_gathered<Word: Copy + Default + Zeroize, const BYTES: usize>(
    rows: Range<usize>,
    word: impl Fn(usize) -> Word,
    these: (usize, usize),
    columns: &mut Columns,
) {
    const { assert!(size_of::<Word>() == BYTES) };
    let mut words = [Word::default(); TILE];
    let count = rows.len();
    for (to, row) in words.iter_mut().zip(rows) {
        *to = word(row);
    }
    // SAFETY: integers are as many bytes, lowest first on this processor, and bytes are of any alignment.
    let bytes = unsafe { &*(&raw const words).cast::<[[u8; BYTES]; TILE]>() };
    take_words(&bytes[..count], these, columns);
    words.zeroize();
}

/// Bits of words of 1, 2, 4 or 8 bytes.
#[target_feature(enable = "avx2")]
fn take_words<const BYTES: usize>(
    words: &[[u8; BYTES]],
    these: (usize, usize),
    columns: &mut Columns,
) {
    let (whole, rest) = words.as_chunks::<64>();
    for (at, words) in whole.iter().enumerate() {
        take_64(words, at, these, columns);
    }
    if !rest.is_empty() {
        let mut words = [[0; BYTES]; 64];
        words[..rest.len()].copy_from_slice(rest);
        take_64(&words, whole.len(), these, columns);
        words.zeroize();
    }
}

/// Bits of 64 words, as word `at` of columns.
#[target_feature(enable = "avx2")]
fn take_64<const BYTES: usize>(
    words: &[[u8; BYTES]; 64],
    at: usize,
    (first, count): (usize, usize),
    columns: &mut Columns,
) {
    let halves = split(words, 0).into_iter().zip(split(words, 1));
    let bytes = first / 8..(first + count).div_ceil(8);
    for (byte, (mut a, mut b)) in halves.enumerate().take(bytes.end).skip(bytes.start) {
        // The highest bit of each byte, then the next one.
        let mut next = || {
            let [low, high] = [a, b].map(|of| _mm256_movemask_epi8(of).cast_unsigned());
            (a, b) = (_mm256_add_epi8(a, a), _mm256_add_epi8(b, b));
            u64::from(high) << 32 | u64::from(low)
        };
        let of_byte = (8 * byte).checked_sub(first);
        let of_byte = of_byte.and_then(|from| columns.get_mut(from..from + 8));
        if let Some(columns) = of_byte.filter(|_| 8 * byte + 8 <= first + count) {
            for column in columns.iter_mut().rev() {
                column[at] = next();
            }
        } else {
            for bit in (8 * byte..8 * byte + 8).rev() {
                let bits = next();
                if (first..first + count).contains(&bit) {
                    columns[bit - first][at] = bits;
                }
            }
        }
    }
}

/// [`super::give`].
#[target_feature(enable = "avx2")]
pub(super) fn give(
    columns: &Columns,
    count: usize,
    (window, bytes): (usize, usize),
    dst: &mut [u8],
) {
    match bytes {
        1 => give_words::<1>(columns, count, dst.as_chunks_mut().0),
        2 => give_words::<2>(columns, count, dst.as_chunks_mut().0),
        4 => give_words::<4>(columns, count, dst.as_chunks_mut().0),
        8 => give_words::<8>(columns, count, dst.as_chunks_mut().0),
        _ => {
            let mut words = [[0; 8]; TILE];
            let rows = dst.len() / bytes;
            give_words(columns, count, &mut words[..rows]);
            if bytes == 16 {
                for (word, to) in words.iter().zip(dst.as_chunks_mut::<16>().0) {
                    to[8 * window..][..8].copy_from_slice(word);
                }
            } else {
                for (word, to) in words.iter().zip(dst.chunks_exact_mut(bytes)) {
                    put(u64::from_le_bytes(*word), (window, to));
                }
            }
            words.zeroize();
        }
    }
}

/// The same to words of 1, 2, 4 or 8 bytes.
#[target_feature(enable = "avx2")]
fn give_words<const BYTES: usize>(columns: &Columns, count: usize, dst: &mut [[u8; BYTES]]) {
    for (block, dst) in dst.chunks_mut(BLOCK).enumerate() {
        let (word, shift) = (block / 2, 32 * (block % 2));
        let mut bytes = [_mm256_setzero_si256(); 8];
        for (byte, to) in bytes.iter_mut().enumerate().take(count.div_ceil(8)) {
            let of = |bit: usize| {
                let column = 8 * byte + bit;
                if column < count {
                    (columns[column][word] >> shift) as i32
                } else {
                    0
                }
            };
            *to = bytes_of_bits(_mm256_set_epi32(
                of(7),
                of(6),
                of(5),
                of(4),
                of(3),
                of(2),
                of(1),
                of(0),
            ));
        }
        if let Ok(dst) = dst.try_into() {
            join(&bytes, dst);
        } else {
            let mut words = [[0; BYTES]; BLOCK];
            join(&bytes, &mut words);
            dst.copy_from_slice(&words[..dst.len()]);
            words.zeroize();
        }
    }
}

/// 32 bytes of which bit j of byte i is bit i of element j.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes_of_bits(elements: __m256i) -> __m256i {
    // Byte i of eight elements, side by side, for each i.
    let of = _mm256_shuffle_epi8(elements, every(4));
    let pairs = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let mut of = _mm256_permutevar8x32_epi32(of, pairs);
    // Squares of 8 × 8 bits (Warren, Hacker's Delight, 7-3).
    macro_rules! exchange {
        ($by:literal, $low:literal) => {
            let change = _mm256_xor_si256(of, _mm256_srli_epi64::<$by>(of));
            let change = _mm256_and_si256(change, _mm256_set1_epi64x($low));
            let other = _mm256_slli_epi64::<$by>(change);
            of = _mm256_xor_si256(of, _mm256_xor_si256(change, other));
        };
    }
    exchange!(7, 0x00aa_00aa_00aa_00aa);
    exchange!(14, 0x0000_cccc_0000_cccc);
    exchange!(28, 0x0000_0000_f0f0_f0f0);
    of
}

/// In each half, byte 0 of words of `bytes` bytes, then byte 1 of them, and so on.
#[inline]
#[target_feature(enable = "avx2")]
fn every(bytes: usize) -> __m256i {
    match bytes {
        4 => _mm256_setr_epi8(
            0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, //
            0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
        ),
        _ => _mm256_setr_epi8(
            0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, //
            0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15,
        ),
    }
}

/// Writes 16 bytes of the first 16 words, and those in the same places of the others.
#[inline]
#[target_feature(enable = "avx2")]
fn store<const BYTES: usize>(of: __m256i, words: &mut [[u8; BYTES]; BLOCK], at: usize) {
    let (to, _) = words.as_flattened_mut().as_chunks_mut::<16>();
    let halves = [
        _mm256_castsi256_si128(of),
        _mm256_extracti128_si256::<1>(of),
    ];
    for (half, at) in halves.into_iter().zip([at, BYTES + at]) {
        // SAFETY: it points to 16 bytes, of any alignment.
        unsafe { _mm_storeu_si128((&raw mut to[at]).cast(), half) };
    }
}

/// The bytes of the first 32 of 64 words, or of the others.
#[inline]
#[target_feature(enable = "avx2")]
fn split<const BYTES: usize>(words: &[[u8; BYTES]; 64], half: usize) -> Bytes {
    let (of, _) = words.as_flattened().as_chunks::<16>();
    // 16 bytes of 16 words, and those in the same places of the 16 behind them.
    macro_rules! pieces {
        ($at:expr) => {{
            let at = 2 * BYTES * half + $at;
            let (low, high) = (&raw const of[at], &raw const of[at + BYTES]);
            // SAFETY: both point to 16 bytes, of any alignment.
            unsafe { _mm256_set_m128i(_mm_loadu_si128(high.cast()), _mm_loadu_si128(low.cast())) }
        }};
    }
    let mut all = [_mm256_setzero_si256(); 8];
    match BYTES {
        1 => all[0] = pieces!(0),
        2 => {
            let (a, b) = (pieces!(0), pieces!(1));
            let low = _mm256_set1_epi16(0xff);
            all[0] = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
            all[1] = _mm256_packus_epi16(_mm256_srli_epi16::<8>(a), _mm256_srli_epi16::<8>(b));
        }
        4 => {
            let order = every(4);
            let mut of = [_mm256_setzero_si256(); 4];
            for (at, of) in of.iter_mut().enumerate() {
                *of = _mm256_shuffle_epi8(pieces!(at), order);
            }
            let [a, b, c, d] = of;
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            all[0] = _mm256_unpacklo_epi64(ab, cd);
            all[1] = _mm256_unpackhi_epi64(ab, cd);
            let (ab, cd) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            all[2] = _mm256_unpacklo_epi64(ab, cd);
            all[3] = _mm256_unpackhi_epi64(ab, cd);
        }
        _ => {
            let order = every(8);
            let mut of = [_mm256_setzero_si256(); 8];
            for (at, of) in of.iter_mut().enumerate() {
                *of = _mm256_shuffle_epi8(pieces!(at), order);
            }
            // Two bytes k of each of four pieces, for k below 4 and from 4 on.
            macro_rules! four {
                ($at:literal) => {{
                    let (a, b, c, d) = (of[$at], of[$at + 1], of[$at + 2], of[$at + 3]);
                    let (ab, cd) = (_mm256_unpacklo_epi16(a, b), _mm256_unpacklo_epi16(c, d));
                    let low = [_mm256_unpacklo_epi32(ab, cd), _mm256_unpackhi_epi32(ab, cd)];
                    let (ab, cd) = (_mm256_unpackhi_epi16(a, b), _mm256_unpackhi_epi16(c, d));
                    let high = [_mm256_unpacklo_epi32(ab, cd), _mm256_unpackhi_epi32(ab, cd)];
                    [low[0], low[1], high[0], high[1]]
                }};
            }
            let (a, b) = (four!(0), four!(4));
            for at in 0..4 {
                all[2 * at] = _mm256_unpacklo_epi64(a[at], b[at]);
                all[2 * at + 1] = _mm256_unpackhi_epi64(a[at], b[at]);
            }
        }
    }
    all
}

/// The words of bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn join<const BYTES: usize>(all: &Bytes, words: &mut [[u8; BYTES]; BLOCK]) {
    let pairs = |at: usize| {
        let (a, b) = (all[2 * at], all[2 * at + 1]);
        [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]
    };
    let fours = |at: usize| {
        let ([a, b], [c, d]) = (pairs(2 * at), pairs(2 * at + 1));
        [
            _mm256_unpacklo_epi16(a, c),
            _mm256_unpackhi_epi16(a, c),
            _mm256_unpacklo_epi16(b, d),
            _mm256_unpackhi_epi16(b, d),
        ]
    };
    match BYTES {
        1 => store(all[0], words, 0),
        2 => {
            let [a, b] = pairs(0);
            store(a, words, 0);
            store(b, words, 1);
        }
        4 => {
            for (at, of) in fours(0).into_iter().enumerate() {
                store(of, words, at);
            }
        }
        _ => {
            for (at, (a, b)) in fours(0).into_iter().zip(fours(1)).enumerate() {
                store(_mm256_unpacklo_epi32(a, b), words, 2 * at);
                store(_mm256_unpackhi_epi32(a, b), words, 2 * at + 1);
            }
        }
    }
}
