//! Between rows of bits, as files hold them, and columns of bits, as devices hold them.

/// Spreads `rows` packed rows of `width` bits over `width` packed columns.
///
/// `src` is `[row][⌈width/8⌉ bytes]`, bit 0 first in each row; `dst` is `[bit][⌈rows/8⌉ bytes]`, row 0 in bit 0.
///
/// # Panics
/// If a slice is shorter than its shape.
pub fn bits_from_rows(src: &[u8], rows: usize, width: usize, dst: &mut [u8]) {
    let row_bytes = width.div_ceil(8);
    let col_bytes = rows.div_ceil(8);
    assert!(src.len() >= rows * row_bytes && dst.len() >= width * col_bytes);
    let mut first = 0;
    if row_bytes == 1 {
        let (whole, _) = src[..rows].as_chunks();
        first = whole.len();
        for (bit, column) in dst
            .chunks_exact_mut(col_bytes.max(1))
            .take(width)
            .enumerate()
        {
            for (byte, eight) in column.iter_mut().zip(whole) {
                *byte = gathered(u64::from_le_bytes(*eight) >> bit);
            }
        }
    }
    for block in first..col_bytes {
        let here = (rows - block * 8).min(8);
        for byte in 0..row_bytes {
            let mut square = 0u64;
            for r in 0..here {
                square |= u64::from(src[(block * 8 + r) * row_bytes + byte]) << (8 * r);
            }
            let turned = transpose8(square);
            for bit in 0..(width - byte * 8).min(8) {
                dst[(byte * 8 + bit) * col_bytes + block] = (turned >> (8 * bit)) as u8;
            }
        }
    }
}

/// Bit 0 of each of eight bytes: bit k of byte k stays where it is, and no two of what is added meet in a bit.
const fn gathered(bytes: u64) -> u8 {
    let bits = bytes & 0x0101_0101_0101_0101;
    (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// The inverse of [`bits_from_rows`]: columns to rows. Padding bits of each row are zero.
///
/// # Panics
/// If a slice is shorter than its shape.
pub fn bits_to_rows(src: &[u8], rows: usize, width: usize, dst: &mut [u8]) {
    let row_bytes = width.div_ceil(8);
    let col_bytes = rows.div_ceil(8);
    assert!(dst.len() >= rows * row_bytes && src.len() >= width * col_bytes);
    for block in 0..col_bytes {
        let here = (rows - block * 8).min(8);
        for byte in 0..row_bytes {
            let mut square = 0u64;
            for bit in 0..(width - byte * 8).min(8) {
                square |= u64::from(src[(byte * 8 + bit) * col_bytes + block]) << (8 * bit);
            }
            let turned = transpose8(square);
            for r in 0..here {
                dst[(block * 8 + r) * row_bytes + byte] = (turned >> (8 * r)) as u8;
            }
        }
    }
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

/// Transposes an 8 × 8 bit matrix, one row per byte (Warren, Hacker's Delight, 7-3).
const fn transpose8(x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    let x = x ^ t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    let x = x ^ t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
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
}
