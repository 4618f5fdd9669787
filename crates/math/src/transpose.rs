//! Between rows of bits, as files and relations hold them, and columns of bits, as devices hold them.

#[cfg(target_arch = "x86_64")]
mod avx2;

use std::ops::Range;

use zeroize::Zeroize;

/// Rows that are turned together.
const TILE: usize = 512;

/// 64 columns of [`TILE`] rows, row 0 in bit 0 of the first word.
type Columns = [[u64; TILE / 64]; 64];

/// Spreads `rows` packed rows of `width` bits over `width` packed columns.
///
/// `src` is `[row][⌈width/8⌉ bytes]`, bit 0 first in each row; `dst` is `[bit][⌈rows/8⌉ bytes]`, row 0 in bit 0.
///
/// # Panics
/// If a slice is shorter than its shape.
pub fn bits_from_rows(src: &[u8], rows: usize, width: usize, dst: &mut [u8]) {
    bits_from_words((src, width.div_ceil(8)), rows, (0, width), dst);
}

/// Spreads `count` bits from bit `first` on, of `rows` words of `bytes` bytes each, over `count` packed columns, as [`bits_from_rows`] does.
///
/// # Panics
/// If a slice is shorter than its shape, or words have fewer bits.
pub fn bits_from_words(
    (src, bytes): (&[u8], usize),
    rows: usize,
    these: (usize, usize),
    dst: &mut [u8],
) {
    spread(Turn::fastest(), (src, bytes), (rows, InOrder), these, dst);
}

/// The same of the words at other places: in row j of the word at place `at(j)`.
///
/// # Panics
/// As [`bits_from_words`], or if there is no such word.
pub fn bits_from_places(
    src: (&[u8], usize),
    (rows, at): (usize, impl Fn(usize) -> usize),
    these: (usize, usize),
    dst: &mut [u8],
) {
    spread(Turn::fastest(), src, (rows, At(at)), these, dst);
}

/// The inverse of [`bits_from_rows`]: columns to rows. Padding bits of each row are zero.
///
/// # Panics
/// If a slice is shorter than its shape.
pub fn bits_to_rows(src: &[u8], rows: usize, width: usize, dst: &mut [u8]) {
    bits_to_words(src, rows, width, (dst, width.div_ceil(8)));
}

/// The same to words of `bytes` bytes, whose other bits are zero.
///
/// # Panics
/// If a slice is shorter than its shape, or words have fewer bits.
pub fn bits_to_words(src: &[u8], rows: usize, width: usize, dst: (&mut [u8], usize)) {
    gather(Turn::fastest(), src, rows, width, dst);
}

/// How tiles are turned.
#[derive(Clone, Copy)]
enum Turn {
    /// By the instructions of every processor.
    Portable,
    /// The processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Turn {
    fn fastest() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return Turn::Avx2;
        }
        Turn::Portable
    }
}

/// Where the word of a row is.
trait Places {
    /// Whether words come in the order of rows, so that they are read as they are.
    const IN_ORDER: bool;

    /// The place of the word of row `row`.
    fn place(&self, row: usize) -> usize;
}

struct InOrder;

impl Places for InOrder {
    const IN_ORDER: bool = true;

    fn place(&self, row: usize) -> usize {
        row
    }
}

struct At<F>(F);

impl<F: Fn(usize) -> usize> Places for At<F> {
    const IN_ORDER: bool = false;

    #[inline]
    fn place(&self, row: usize) -> usize {
        self.0(row)
    }
}

/// [`bits_from_places`] in a given way.
fn spread(
    turn: Turn,
    (src, bytes): (&[u8], usize),
    (rows, places): (usize, impl Places),
    (first, count): (usize, usize),
    dst: &mut [u8],
) {
    let column = rows.div_ceil(8);
    assert!(first + count <= 8 * bytes && dst.len() >= count * column);
    if count == 0 {
        return;
    }
    let mut columns: Columns = [[0; TILE / 64]; 64];
    for tile in 0..rows.div_ceil(TILE) {
        let first_row = tile * TILE;
        let here = first_row..rows.min(first_row + TILE);
        let bytes_here = here.len().div_ceil(8);
        for window in 0..count.div_ceil(64) {
            let these = (first + 64 * window, (count - 64 * window).min(64));
            let here = (here.clone(), &places);
            match turn {
                Turn::Portable => take((src, bytes), here, these, &mut columns),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the processor has AVX2.
                Turn::Avx2 => unsafe { avx2::take((src, bytes), here, these, &mut columns) },
            }
            let into = dst[64 * window * column..].chunks_mut(column);
            for (into, of) in into.zip(&columns).take(these.1) {
                let to = &mut into[tile * (TILE / 8)..];
                let to = &mut to[..bytes_here];
                let (whole, rest) = to.as_chunks_mut();
                for (to, word) in whole.iter_mut().zip(of) {
                    *to = word.to_le_bytes();
                }
                if let Some(word) = of.get(whole.len()) {
                    rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
                }
            }
        }
    }
    columns.zeroize();
}

/// [`bits_to_words`] in a given way.
fn gather(turn: Turn, src: &[u8], rows: usize, width: usize, (dst, bytes): (&mut [u8], usize)) {
    let column = rows.div_ceil(8);
    assert!(width <= 8 * bytes && dst.len() >= rows * bytes && src.len() >= width * column);
    if width == 0 {
        dst[..rows * bytes].fill(0);
        return;
    }
    let mut columns: Columns = [[0; TILE / 64]; 64];
    for (tile, dst) in dst[..rows * bytes].chunks_mut(TILE * bytes).enumerate() {
        for window in 0..bytes.div_ceil(8) {
            let count = width.saturating_sub(64 * window).min(64);
            let from = src.chunks(column).skip(64 * window);
            for (from, to) in from.zip(&mut columns).take(count) {
                let of = &from[tile * (TILE / 8)..];
                if let Some((of, [])) = of.first_chunk::<{ TILE / 8 }>().map(|of| of.as_chunks()) {
                    *to = std::array::from_fn(|at| u64::from_le_bytes(of[at]));
                    continue;
                }
                for (to, of) in to.iter_mut().zip(of.chunks(8)) {
                    let mut eight = [0; 8];
                    eight[..of.len()].copy_from_slice(of);
                    *to = u64::from_le_bytes(eight);
                }
            }
            match turn {
                Turn::Portable => give(&columns, count, (window, bytes), dst),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the processor has AVX2.
                Turn::Avx2 => unsafe { avx2::give(&columns, count, (window, bytes), dst) },
            }
        }
    }
    columns.zeroize();
}

/// `count` bits from bit `first` on, at most 64, of `bytes` bytes of a word.
#[inline]
fn bits_of(word: &[u8], (first, count): (usize, usize)) -> u64 {
    let (from, shift) = (first / 8, first % 8);
    let mut nine = [0; 16];
    let there = &word[from..word.len().min(from + 9)];
    nine[..there.len()].copy_from_slice(there);
    let bits = (u128::from_le_bytes(nine) >> shift) as u64;
    bits & u64::MAX >> (64 - count)
}

/// Bits of the words of rows, at most 64 of each of at most [`TILE`], as columns. Of the last 64 rows those that are not there are zero.
fn take(
    (src, bytes): (&[u8], usize),
    (rows, places): (Range<usize>, &impl Places),
    these: (usize, usize),
    columns: &mut Columns,
) {
    for (block, first) in rows.clone().step_by(64).enumerate() {
        let mut square = [0; 64];
        for (row, to) in (first..rows.end).zip(&mut square) {
            *to = bits_of(&src[places.place(row) * bytes..][..bytes], these);
        }
        transpose64(&mut square);
        for (column, word) in columns.iter_mut().zip(&square) {
            column[block] = *word;
        }
        square.zeroize();
    }
}

/// The rows of `count` columns, as the 64 bits of each word from bit 64 `window` on.
fn give(columns: &Columns, count: usize, (window, bytes): (usize, usize), dst: &mut [u8]) {
    for (block, dst) in dst.chunks_mut(64 * bytes).enumerate() {
        let mut square = [0; 64];
        for (word, column) in square.iter_mut().zip(columns).take(count) {
            *word = column[block];
        }
        transpose64(&mut square);
        for (to, word) in dst.chunks_exact_mut(bytes).zip(&square) {
            put(*word, (window, to));
        }
        square.zeroize();
    }
}

/// Writes the 64 bits of a word from bit 64 `window` on, as far as there are any.
#[inline]
fn put(bits: u64, (window, word): (usize, &mut [u8])) {
    let to = &mut word[8 * window..];
    let length = to.len().min(8);
    to[..length].copy_from_slice(&bits.to_le_bytes()[..length]);
}

/// Transposes a 64 × 64 bit matrix, one row per word, in place: bit j of word i becomes bit i of word j (Warren, Hacker's
/// Delight, 7-3).
pub fn transpose64(square: &mut [u64; 64]) {
    // Blocks of 32 × 32 off the diagonal change places, then those of 16 × 16 within each block, and so on.
    exchange::<32>(square, 0x0000_0000_ffff_ffff);
    exchange::<16>(square, 0x0000_ffff_0000_ffff);
    exchange::<8>(square, 0x00ff_00ff_00ff_00ff);
    exchange::<4>(square, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2>(square, 0x3333_3333_3333_3333);
    exchange::<1>(square, 0x5555_5555_5555_5555);
}

/// One step of [`transpose64`]: of every `2 HALF` words, the upper half of the columns of the first with the lower half of those of
/// the last.
fn exchange<const HALF: usize>(square: &mut [u64; 64], low: u64) {
    for block in (0..64).step_by(2 * HALF) {
        for a in block..block + HALF {
            let change = (square[a] >> HALF ^ square[a + HALF]) & low;
            square[a] ^= change << HALF;
            square[a + HALF] ^= change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way that this processor has.
    fn ways() -> Vec<Turn> {
        let mut ways = vec![Turn::Portable];
        if !matches!(Turn::fastest(), Turn::Portable) {
            ways.push(Turn::fastest());
        }
        ways
    }

    #[test]
    fn every_bit_of_a_square_lands_where_it_belongs() {
        for i in 0..64 {
            for j in 0..64 {
                let mut square = [0; 64];
                square[i] = 1 << j;
                transpose64(&mut square);
                let mut want = [0; 64];
                want[j] = 1 << i;
                assert_eq!(square, want, "row {i} column {j}");
            }
        }
    }

    #[test]
    fn bits_of_bytes_do_not_meet() {
        for (rows, width) in [(8usize, 1usize), (64, 2), (77, 5), (80, 8)] {
            let src: Vec<u8> = (0..rows).map(|row| (row * 167 + 0xb5) as u8).collect();
            let mut dst = vec![0; width * rows.div_ceil(8)];
            bits_from_rows(&src, rows, width, &mut dst);
            for (row, byte) in src.iter().enumerate() {
                for bit in 0..width {
                    let got = dst[bit * rows.div_ceil(8) + row / 8] >> (row % 8) & 1;
                    assert_eq!(got, byte >> bit & 1, "row {row} bit {bit}");
                }
            }
        }
    }

    #[test]
    fn every_bit_lands_where_it_belongs() {
        for (rows, width) in [
            (1usize, 1usize),
            (3, 9),
            (8, 8),
            (13, 128),
            (100, 7),
            (65, 64),
            (520, 3),
        ] {
            let row_bytes = width.div_ceil(8);
            let col_bytes = rows.div_ceil(8);
            for r in 0..rows {
                for w in 0..width {
                    let mut src = vec![0; rows * row_bytes];
                    src[r * row_bytes + w / 8] = 1 << (w % 8);
                    let mut dst = vec![0; width * col_bytes];
                    bits_from_rows(&src, rows, width, &mut dst);
                    let mut want = vec![0; width * col_bytes];
                    want[w * col_bytes + r / 8] = 1 << (r % 8);
                    assert_eq!(dst, want, "row {r} bit {w} of {rows} x {width}");
                    let mut back = vec![0xff; rows * row_bytes];
                    bits_to_rows(&dst, rows, width, &mut back);
                    assert_eq!(back, src);
                }
            }
        }
    }

    /// Any bits of words of any length, against the definition.
    #[test]
    fn bits_of_words_are_those_that_were_asked_for() {
        for turn in ways() {
            bits_are_those_that_were_asked_for(turn);
        }
    }

    fn bits_are_those_that_were_asked_for(turn: Turn) {
        for bytes in [1usize, 2, 3, 4, 7, 8, 9, 16, 20] {
            for rows in [1usize, 9, 31, 33, 511, 512, 513, 1100] {
                let mut seed = 1u32;
                let src: Vec<u8> = std::iter::repeat_with(|| {
                    seed = seed.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
                    (seed >> 24) as u8
                })
                .take(rows * bytes)
                .collect();
                let all = 8 * bytes;
                let halves = (all / 3, all / 2);
                for (first, count) in [(0, all), (0, 1), (all - 1, 1), halves, (1, 6), (5, 0)] {
                    let column = rows.div_ceil(8);
                    let mut dst = vec![0xff; count * column];
                    // The words from the last one on backwards.
                    let at = |row| rows - 1 - row;
                    let backwards = (rows, At(at));
                    spread(turn, (&src, bytes), backwards, (first, count), &mut dst);
                    let turned: Vec<u8> = (0..rows)
                        .flat_map(|row| &src[at(row) * bytes..][..bytes])
                        .copied()
                        .collect();
                    let mut same = vec![0xff; count * column];
                    let in_order = (rows, InOrder);
                    spread(turn, (&turned, bytes), in_order, (first, count), &mut same);
                    assert_eq!(same, dst);
                    let mut back = vec![0xff; rows * bytes];
                    gather(turn, &dst, rows, count, (&mut back, bytes));
                    for row in 0..rows {
                        let word = &src[at(row) * bytes..][..bytes];
                        let back = &back[row * bytes..][..bytes];
                        for bit in 0..all {
                            let want = bit < count
                                && word[(first + bit) / 8] >> ((first + bit) % 8) & 1 == 1;
                            assert_eq!(back[bit / 8] >> (bit % 8) & 1 == 1, want);
                            if bit < count {
                                let got = dst[bit * column + row / 8] >> (row % 8) & 1 == 1;
                                assert_eq!(got, want, "bit {bit} of row {row}");
                            }
                        }
                    }
                    if let (1.., rest @ 1..) = (count, rows % 8) {
                        let last = dst[column - 1];
                        assert_eq!(last >> rest, 0, "rows that are not there");
                    }
                }
            }
        }
    }
}
