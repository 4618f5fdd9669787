//! Between rows of bits, as files and relations hold them, and columns of bits, as devices hold them.

use zeroize::Zeroize;

/// Rows that are turned together: eight squares of 64 × 64 bits. Word i of square s is row 64 s + i, or column i of its rows.
const TILE: usize = 512;

/// Word i of eight squares, side by side, for each i.
type Squares = [[u64; 8]; 64];

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
    bits_from_places((src, bytes), (rows, |row| row), these, dst);
}

/// The same of the words at other places: in row j of the word at place `at(j)`.
///
/// # Panics
/// As [`bits_from_words`], or if there is no such word.
pub fn bits_from_places(
    (src, bytes): (&[u8], usize),
    (rows, at): (usize, impl Fn(usize) -> usize),
    (first, count): (usize, usize),
    dst: &mut [u8],
) {
    let column = rows.div_ceil(8);
    assert!(first + count <= 8 * bytes && dst.len() >= count * column);
    if count == 0 {
        return;
    }
    let mut squares: Squares = [[0; 8]; 64];
    for tile in 0..rows.div_ceil(TILE) {
        let here = (rows - tile * TILE).min(TILE);
        for word in 0..count.div_ceil(64) {
            if here < TILE {
                squares.as_flattened_mut().fill(0);
            }
            let at = |row| at(tile * TILE + row);
            take((src, bytes), (here, at), first + 64 * word, &mut squares);
            turn(&mut squares);
            let columns = dst[64 * word * column..].chunks_mut(column);
            for (columns, of) in columns.zip(&squares).take(count - 64 * word) {
                let to = &mut columns[tile * (TILE / 8)..];
                let to = &mut to[..here.div_ceil(8)];
                let mut bytes = [0; TILE / 8];
                for (at, word) in of.iter().enumerate() {
                    bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
                }
                match <&mut [u8; TILE / 8]>::try_from(&mut *to) {
                    Ok(to) => *to = bytes,
                    Err(_) => to.copy_from_slice(&bytes[..to.len()]),
                }
            }
        }
    }
    squares.zeroize();
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
pub fn bits_to_words(src: &[u8], rows: usize, width: usize, (dst, bytes): (&mut [u8], usize)) {
    let column = rows.div_ceil(8);
    assert!(width <= 8 * bytes && dst.len() >= rows * bytes && src.len() >= width * column);
    if width == 0 {
        dst[..rows * bytes].fill(0);
        return;
    }
    let mut squares: Squares = [[0; 8]; 64];
    for (tile, dst) in dst[..rows * bytes].chunks_mut(TILE * bytes).enumerate() {
        for word in 0..bytes.div_ceil(8) {
            squares.as_flattened_mut().fill(0);
            let columns = src.chunks(column).skip(64 * word);
            let columns = columns.take(width.saturating_sub(64 * word));
            for (columns, to) in columns.zip(&mut squares) {
                let of = &columns[tile * (TILE / 8)..];
                let of = &of[..of.len().min(TILE / 8)];
                for (to, of) in to.iter_mut().zip(of.chunks(8)) {
                    let mut eight = [0; 8];
                    eight[..of.len()].copy_from_slice(of);
                    *to = u64::from_le_bytes(eight);
                }
            }
            turn(&mut squares);
            give(&squares, word, bytes, dst);
        }
    }
    squares.zeroize();
}

/// Does something with words of the bytes of a type, or of any others.
macro_rules! of_bytes {
    ($bytes:expr, $type:ident => $do:expr, $other:expr) => {
        match $bytes {
            1 => {
                type $type = u8;
                $do
            }
            2 => {
                type $type = u16;
                $do
            }
            4 => {
                type $type = u32;
                $do
            }
            8 => {
                type $type = u64;
                $do
            }
            16 => {
                type $type = u128;
                $do
            }
            _ => $other,
        }
    };
}

/// 64 bits of each word from bit `first` on, as far as there are any, as the rows of squares.
#[inline]
fn take(
    (src, bytes): (&[u8], usize),
    (rows, at): (usize, impl Fn(usize) -> usize),
    first: usize,
    squares: &mut Squares,
) {
    of_bytes!(
        bytes,
        Word => {
            let (words, _) = src.as_chunks::<{ size_of::<Word>() }>();
            for row in 0..rows {
                let word = Word::from_le_bytes(words[at(row)]) >> first;
                #[allow(clippy::unnecessary_cast, reason = "one of them is a u64")]
                { squares[row % 64][row / 64] = word as u64; }
            }
        },
        {
            let (from, shift) = (first / 8, first % 8);
            for row in 0..rows {
                let word = &src[at(row) * bytes..][..bytes];
                let mut nine = [0; 16];
                let there = &word[from..bytes.min(from + 9)];
                nine[..there.len()].copy_from_slice(there);
                squares[row % 64][row / 64] = (u128::from_le_bytes(nine) >> shift) as u64;
            }
        }
    );
}

/// The rows of squares, as 64 bits of each word from word `word` of it on.
fn give(squares: &Squares, word: usize, bytes: usize, dst: &mut [u8]) {
    let row = |row: usize| squares[row % 64][row / 64].to_le_bytes();
    if bytes == 8 {
        let (words, _) = dst.as_chunks_mut();
        words
            .iter_mut()
            .enumerate()
            .for_each(|(at, to)| *to = row(at));
        return;
    }
    for (at, to) in dst.chunks_exact_mut(bytes).enumerate() {
        let to = &mut to[8 * word..];
        let length = to.len().min(8);
        to[..length].copy_from_slice(&row(at)[..length]);
    }
}

/// Turns eight squares, in place: bit j of word i becomes bit i of word j.
fn turn(squares: &mut Squares) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions.
        unsafe { turn_avx2(squares) };
        return;
    }
    turn_all(squares);
}

/// [`turn_all`], with the instructions that it names.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn turn_avx2(squares: &mut Squares) {
    turn_all(squares);
}

/// The steps of [`transpose64`], of eight squares side by side.
#[allow(
    clippy::inline_always,
    reason = "compiled once for each instruction set, that of its caller"
)]
#[inline(always)]
fn turn_all(squares: &mut Squares) {
    #[inline(always)]
    fn exchange<const HALF: usize>(squares: &mut Squares, low: u64) {
        // Counted loops, of which nothing is left but what they do.
        let mut word = 0;
        while word < 64 {
            let (mut a, mut b) = (squares[word], squares[word + HALF]);
            let mut square = 0;
            while square < 8 {
                let change = (a[square] >> HALF ^ b[square]) & low;
                a[square] ^= change << HALF;
                b[square] ^= change;
                square += 1;
            }
            (squares[word], squares[word + HALF]) = (a, b);
            word += 1;
            word += word & HALF;
        }
    }
    exchange::<32>(squares, 0x0000_0000_ffff_ffff);
    exchange::<16>(squares, 0x0000_ffff_0000_ffff);
    exchange::<8>(squares, 0x00ff_00ff_00ff_00ff);
    exchange::<4>(squares, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2>(squares, 0x3333_3333_3333_3333);
    exchange::<1>(squares, 0x5555_5555_5555_5555);
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
        for bytes in [1usize, 2, 3, 4, 7, 8, 9, 16, 20] {
            for rows in [1usize, 9, 511, 512, 513, 1100] {
                let mut seed = 1u32;
                let src: Vec<u8> = std::iter::repeat_with(|| {
                    seed = seed.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
                    (seed >> 24) as u8
                })
                .take(rows * bytes)
                .collect();
                let all = 8 * bytes;
                for (first, count) in [(0, all), (0, 1), (all - 1, 1), (all / 3, all / 2), (5, 0)] {
                    let column = rows.div_ceil(8);
                    let mut dst = vec![0xff; count * column];
                    bits_from_words((&src, bytes), rows, (first, count), &mut dst);
                    let mut back = vec![0xff; rows * bytes];
                    bits_to_words(&dst, rows, count, (&mut back, bytes));
                    for row in 0..rows {
                        let word = &src[row * bytes..][..bytes];
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
