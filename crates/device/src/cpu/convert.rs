//! Between integers and bits: columns are turned 64 rows at a time.

use veil_math::{Ring, transpose64};
use zeroize::Zeroize;

use super::workspace::Memory;
use crate::layout::{ColumnType, Span};

/// Rows that are turned together.
const ROWS: usize = 64;

/// Item k of `to` = bit `first + k` of the one item of `from`, in every row. It was checked that they fit.
pub(super) fn split(memory: &mut Memory, first: u32, from: Span, to: Span) {
    let rows = memory.frame.rows as usize;
    let (at, len) = memory.column(from, 0);
    let item = memory.layout.regions[from.region as usize].column;
    if let ColumnType::One(_) = item {
        let mut value = [0; 16];
        value[..len].copy_from_slice(memory.column_bytes(from, 0));
        for k in 0..to.count {
            let bit = (first + k) as usize;
            let every = 0u8.wrapping_sub(value[bit / 8] >> (bit % 8) & 1);
            memory.column_bytes_mut(to, k).fill(every);
            memory.clear_padding(to, k);
        }
        value.zeroize();
        return;
    }
    let size = if item == ColumnType::Rows(Ring::Z128) {
        16
    } else {
        8
    };
    let columns: Vec<usize> = (0..to.count).map(|k| memory.column(to, k).0).collect();
    // Each 64 bits of the elements are a square of bits of their own.
    for half in 0..size / 8 {
        let bits =
            (first as usize).max(64 * half)..(first as usize + columns.len()).min(64 * half + 64);
        if bits.is_empty() {
            continue;
        }
        let wanted = &columns[bits.start - first as usize..bits.end - first as usize];
        let square_bits = bits.start - 64 * half..bits.end - 64 * half;
        let bytes = memory.all_mut();
        let mut square = [0u64; ROWS];
        for block in 0..rows.div_ceil(ROWS) {
            let here = (rows - block * ROWS).min(ROWS);
            for (r, word) in square.iter_mut().enumerate() {
                *word = if r < here {
                    let at = at + (block * ROWS + r) * size + 8 * half;
                    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
                } else {
                    0
                };
            }
            transpose64(&mut square);
            let count = here.div_ceil(8);
            for (column, word) in wanted.iter().zip(&square[square_bits.clone()]) {
                let to = column + 8 * block;
                bytes[to..to + count].copy_from_slice(&word.to_le_bytes()[..count]);
            }
        }
        square.zeroize();
    }
}

/// Every item of `to` = the same of `from`, as integers. It was checked that they fit.
pub(super) fn lift(memory: &mut Memory, from: Span, to: Span) {
    let item = memory.layout.regions[to.region as usize].column;
    for k in 0..to.count {
        let ((bits, _), (into, len)) = (memory.column(from, k), memory.column(to, k));
        // Both lie in one block of memory, and in different regions of it.
        let bytes = memory.all_mut();
        let (bits, into) = if bits < into {
            let (low, high) = bytes.split_at_mut(into);
            (&low[bits..], &mut high[..len])
        } else {
            let (low, high) = bytes.split_at_mut(bits);
            (&high[..], &mut low[into..into + len])
        };
        match item {
            ColumnType::Rows(Ring::Z128) => spread::<16>(bits, into),
            _ => spread::<8>(bits, into),
        }
    }
}

/// Every item of `to` = the same of `from`, in another ring. It was checked that they fit.
pub(super) fn resize(memory: &mut Memory, from: Span, to: Span) {
    let shared = matches!(
        memory.layout.regions[from.region as usize].column,
        ColumnType::One(_)
    );
    let size = |span: Span| match memory.layout.regions[span.region as usize].column {
        ColumnType::Rows(Ring::Z128) | ColumnType::One(Ring::Z128) => 16,
        _ => 8,
    };
    let (from_size, to_size) = (size(from), size(to));
    for k in 0..to.count {
        let ((at, _), (into, len)) = (memory.column(from, k), memory.column(to, k));
        let bytes = memory.all_mut();
        let common = from_size.min(to_size);
        for row in 0..len / to_size {
            let read = if shared { at } else { at + row * from_size };
            let mut value = [0; 16];
            value[..common].copy_from_slice(&bytes[read..read + common]);
            let write = into + row * to_size;
            bytes[write..write + to_size].copy_from_slice(&value[..to_size]);
        }
    }
}

/// The one item of `to` = that of `from` without its lowest bits. It was checked that they fit.
pub(super) fn shift(memory: &mut Memory, by: u32, from: Span, to: Span) {
    let shared = matches!(
        memory.layout.regions[from.region as usize].column,
        ColumnType::One(_)
    );
    let wide = memory.layout.regions[to.region as usize].column == ColumnType::Rows(Ring::Z128);
    let size = if wide { 16 } else { 8 };
    let ((at, _), (into, len)) = (memory.column(from, 0), memory.column(to, 0));
    let bytes = memory.all_mut();
    for start in (0..len).step_by(size) {
        let read = if shared { at } else { at + start };
        let mut value = [0; 16];
        value[..size].copy_from_slice(&bytes[read..read + size]);
        let shifted = u128::from_le_bytes(value) >> by;
        bytes[into + start..into + start + size].copy_from_slice(&shifted.to_le_bytes()[..size]);
    }
}

/// Every item of `to` = the product of those of two others. It was checked that they fit.
pub(super) fn scale(memory: &mut Memory, from: [Span; 2], to: Span) {
    let wide = memory.layout.regions[to.region as usize].column == ColumnType::Rows(Ring::Z128);
    for k in 0..to.count {
        let [a, b] = from.map(|span| memory.column(span, k).0);
        let (into, len) = memory.column(to, k);
        let bytes = memory.all_mut();
        if wide {
            multiply::<16>(bytes, [a, b], into, len, |x, y| {
                let [x, y] = [x, y].map(u128::from_le_bytes);
                x.wrapping_mul(y).to_le_bytes()
            });
        } else {
            multiply::<8>(bytes, [a, b], into, len, |x, y| {
                let [x, y] = [x, y].map(u64::from_le_bytes);
                x.wrapping_mul(y).to_le_bytes()
            });
        }
    }
}

/// The elements at `into`, of `SIZE` bytes each and `len` in all, = those at both places of `from`, combined.
fn multiply<const SIZE: usize>(
    bytes: &mut [u8],
    from: [usize; 2],
    into: usize,
    len: usize,
    combine: impl Fn([u8; SIZE], [u8; SIZE]) -> [u8; SIZE],
) {
    for at in (0..len).step_by(SIZE) {
        let [x, y] = from.map(|start| {
            let mut element = [0; SIZE];
            element.copy_from_slice(&bytes[start + at..start + at + SIZE]);
            element
        });
        bytes[into + at..into + at + SIZE].copy_from_slice(&combine(x, y));
    }
}

/// Elements of `SIZE` bytes from packed bits.
fn spread<const SIZE: usize>(bits: &[u8], into: &mut [u8]) {
    for (byte, elements) in bits.iter().zip(into.chunks_mut(8 * SIZE)) {
        for (r, element) in elements.chunks_exact_mut(SIZE).enumerate() {
            let mut value = [0; SIZE];
            value[0] = byte >> r & 1;
            element.copy_from_slice(&value);
        }
    }
}
