//! Bits of integers: 512 rows are turned at once, or single bits are picked out of the rows.

use std::mem::MaybeUninit;
use std::ops::Range;

use veil_math::transpose64;
use zeroize::Zeroize;

use super::super::Isa;
use super::super::vector::{self, Task, VECTOR, Vector};
use super::super::workspace::Memory;
use super::{columns, ring, shared};
use crate::layout::Span;

/// Rows of a square of bits, which are turned together where a chunk has no more.
const SQUARE: usize = 64;

/// Rows that are turned together: eight squares.
const TILE: usize = 8 * SQUARE;

/// As many bits of a word are picked one by one, which costs less than turning all 64: with vectors, and on any machine.
const FEW: [usize; 2] = [8, 4];

/// Item k of `to` = bit `first + k` of the one item of `from`, in every row. It was checked that they fit.
pub(in crate::cpu) fn split(memory: &mut Memory, isa: Isa, first: u32, (from, to): (Span, Span)) {
    let rows = memory.frame.rows as usize;
    if rows == 0 || to.count == 0 {
        return;
    }
    if shared(memory, from) {
        every_row(memory, first, (from, to));
        return;
    }
    let size = ring(memory, from).bytes(1) as usize;
    let (first, count) = (first as usize, to.count as usize);
    let (at, _) = memory.column(from, 0);
    let base: *const u8 = memory.base();
    let to = columns(memory, to);
    // Each word of the elements is a square of bits of its own.
    for word in 0..size.div_ceil(8) {
        let bits = first.max(64 * word)..(first + count).min(64 * word + 64);
        if bits.is_empty() {
            continue;
        }
        let words = Words {
            from: base.wrapping_add(at),
            size,
            word,
            rows,
        };
        let to = (
            to.first.wrapping_add((bits.start - first) * to.stride),
            to.stride,
        );
        let bits = bits.start - 64 * word..bits.end - 64 * word;
        // SAFETY: the instruction set is the device's, which was checked. Every wanted bit has a column of a bit for every row, in another region
        // than the column of elements, each of which has the word.
        unsafe {
            if bits.len() <= FEW[usize::from(isa == Isa::Portable)] {
                for (k, bit) in bits.enumerate() {
                    pick(isa, words, bit as u32, to.0.wrapping_add(k * to.1));
                }
            } else {
                vector::run(isa, Turn { words, bits, to });
            }
        }
    }
}

/// The same of an element that all rows share.
fn every_row(memory: &mut Memory, first: u32, (from, to): (Span, Span)) {
    let keep = memory.layout.regions[to.region as usize]
        .column
        .padding(memory.frame.rows);
    let mut value = [0; 16];
    let bytes = memory.column_bytes(from, 0);
    value[..bytes.len()].copy_from_slice(bytes);
    for k in 0..to.count {
        let bit = (first + k) as usize;
        let every = 0u8.wrapping_sub(value[bit / 8] >> (bit % 8) & 1);
        if let Some((last, bytes)) = memory.column_bytes_mut(to, k).split_last_mut() {
            bytes.fill(every);
            *last = every & keep;
        }
    }
    value.zeroize();
}

/// A word of every element of a column; an element of 32 bits is a word without its upper half.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) from: *const u8,
    /// Bytes of an element.
    pub(super) size: usize,
    /// Which of its words.
    pub(super) word: usize,
    pub(super) rows: usize,
}

impl Words {
    /// The words of `count` rows from `first` on; those of rows that do not exist are 0.
    #[inline(always)]
    unsafe fn copy(self, first: usize, to: *mut u64, count: usize) {
        let there = count.min(self.rows - first);
        let mut from = self.from.wrapping_add(first * self.size + 8 * self.word);
        // SAFETY: the column has the rows, and there is room for `count` words.
        unsafe {
            if self.size == 4 {
                for r in 0..there {
                    let element = u32::from_le(from.cast::<u32>().read_unaligned());
                    to.add(r).write(u64::from(element).to_le());
                    from = from.wrapping_add(4);
                }
            } else {
                for r in 0..there {
                    to.add(r).write(from.cast::<u64>().read_unaligned());
                    from = from.wrapping_add(self.size);
                }
            }
            for r in there..count {
                to.add(r).write(0);
            }
        }
    }
}

/// Words of a tile, in any order. They are written before they are read, and wiped by who made them.
type Tile = MaybeUninit<[[u64; 8]; SQUARE]>;

/// Writes zeros, and as far as the compiler knows a reader sees them.
#[inline(always)]
unsafe fn wipe<V: Vector>(tile: &mut Tile) {
    let at = tile.as_mut_ptr().cast::<u8>();
    for k in 0..SQUARE {
        // SAFETY: the tile has as many vectors; the instruction set is the caller's.
        unsafe { V::splat(0).store(at.add(k * VECTOR)) }
    }
    std::hint::black_box(tile);
}

/// Some bits of words, to a column each: where the first is, and how far behind it the next.
struct Turn {
    words: Words,
    bits: Range<usize>,
    to: (*mut u8, usize),
}

impl Task for Turn {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let rows = self.words.rows;
        let whole = if rows % TILE > SQUARE {
            rows.next_multiple_of(TILE)
        } else {
            rows / TILE * TILE
        };
        // SAFETY: the caller's.
        unsafe {
            if whole > 0 && (whole > rows || self.words.size != 8) {
                self.tiles::<V, true>(whole);
            } else if whole > 0 {
                self.tiles::<V, false>(whole);
            }
            if whole < rows {
                self.square(whole);
            }
        }
    }
}

impl Turn {
    /// Tiles of rows, of which the last may have fewer. Words that do not lie one after the other are copied.
    #[inline(always)]
    unsafe fn tiles<V: Vector, const COPIED: bool>(&self, end: usize) {
        let mut copied = Tile::uninit();
        let mut turned = Tile::uninit();
        for first in (0..end).step_by(TILE) {
            let here = (self.words.rows - first).min(TILE);
            // SAFETY: rows from `first` on exist, and the columns have bits for them.
            unsafe {
                let words = if COPIED {
                    self.words.copy(first, copied.as_mut_ptr().cast(), TILE);
                    copied.as_ptr().cast()
                } else {
                    self.words.from.add(first * self.words.size)
                };
                self.tile::<V>(words, &mut turned, (first / 8, here.div_ceil(8)));
            }
        }
        // SAFETY: the caller's instruction set.
        unsafe {
            if COPIED {
                wipe::<V>(&mut copied);
            }
            wipe::<V>(&mut turned);
        }
    }

    /// Bits of 512 words, to so many bytes of each column.
    #[inline(always)]
    unsafe fn tile<V: Vector>(
        &self,
        words: *const u8,
        turned: &mut Tile,
        (at, bytes): (usize, usize),
    ) {
        let turned = turned.as_mut_ptr().cast::<u8>();
        // SAFETY: 512 words are readable; the columns have `bytes` bytes at `at`; all of the tile is written first.
        unsafe {
            for square in 0..8 {
                let mut x = [V::splat(0); 8];
                for k in 0..8 {
                    x[k] = V::load(words.add((8 * square + k) * VECTOR));
                }
                V::turn::<32, 16, 8>(&mut x);
                for k in 0..8 {
                    x[k].store(turned.add((8 * k + square) * VECTOR));
                }
            }
            for byte in self.bits.start / 8..self.bits.end.div_ceil(8) {
                let mut squares = [[V::splat(0); 4]; 2];
                for square in 0..8 {
                    let from = turned.add((8 * byte + square) * VECTOR);
                    squares[square % 2][square / 2] = V::load(from);
                }
                let mut x = V::interleave(squares);
                V::turn::<4, 2, 1>(&mut x);
                for k in 0..8 {
                    let bit = 8 * byte + k;
                    if !self.bits.contains(&bit) {
                        continue;
                    }
                    let to = self.column(bit).add(at);
                    if bytes == VECTOR {
                        x[k].store(to);
                    } else {
                        // These words have been read.
                        let last = turned.add(8 * byte * VECTOR);
                        x[k].store(last);
                        std::ptr::copy_nonoverlapping(last, to, bytes);
                    }
                }
            }
        }
    }

    /// At most 64 rows from `first` on.
    #[inline(always)]
    unsafe fn square(&self, first: usize) {
        let mut square = [0; SQUARE];
        let bytes = (self.words.rows - first).div_ceil(8);
        // SAFETY: the columns have `bytes` bytes there.
        unsafe {
            self.words.copy(first, square.as_mut_ptr(), SQUARE);
            for word in &mut square {
                *word = u64::from_le(*word);
            }
            transpose64(&mut square);
            for bit in self.bits.clone() {
                let to = self.column(bit).add(first / 8);
                let word = square[bit].to_le_bytes();
                std::ptr::copy_nonoverlapping(word.as_ptr(), to, bytes);
            }
        }
        square.zeroize();
    }

    /// The column of a bit.
    #[inline(always)]
    fn column(&self, bit: usize) -> *mut u8 {
        self.to.0.wrapping_add((bit - self.bits.start) * self.to.1)
    }
}

/// One bit of words, to a column.
unsafe fn pick(isa: Isa, words: Words, bit: u32, to: *mut u8) {
    // SAFETY: the caller's; AVX-512 includes AVX2.
    unsafe {
        match (isa, words.size, words.word) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512 | Isa::Avx2Vaes | Isa::Avx2, 4, _) => super::pick::narrow(words, bit, to),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512 | Isa::Avx2Vaes | Isa::Avx2, 8, _) => {
                super::pick::avx2::<8, 0>(words, bit, to);
            }
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512 | Isa::Avx2Vaes | Isa::Avx2, _, 0) => {
                super::pick::avx2::<16, 0>(words, bit, to);
            }
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512 | Isa::Avx2Vaes | Isa::Avx2, _, _) => {
                super::pick::avx2::<16, 1>(words, bit, to);
            }
            (_, 4, _) => pick_any::<4>(words, bit, to),
            (_, 8, _) => pick_any::<8>(words, bit, to),
            _ => pick_any::<16>(words, bit, to),
        }
    }
}

/// The same on any machine, of elements of `SIZE` bytes.
unsafe fn pick_any<const SIZE: usize>(words: Words, bit: u32, to: *mut u8) {
    let from = words.from.wrapping_add(8 * words.word + bit as usize / 8);
    let whole = words.rows / 8 * 8;
    // SAFETY: the column has the rows, and that of bits a byte for every eight.
    unsafe {
        for first in (0..whole).step_by(8) {
            let mut bits = 0;
            for r in 0..8 {
                bits |= (from.add((first + r) * SIZE).read() >> (bit % 8) & 1) << r;
            }
            to.add(first / 8).write(bits);
        }
        if whole < words.rows {
            let mut bits = 0;
            for r in 0..words.rows - whole {
                bits |= (from.add((whole + r) * SIZE).read() >> (bit % 8) & 1) << r;
            }
            to.add(whole / 8).write(bits);
        }
    }
}
