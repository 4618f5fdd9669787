//! Row by row: bits as integers, integers in another ring, and without their lowest bits.
//!
//! The compiler turns these loops into those of the instruction set that they are compiled for; what they do has no words in `Vector`.

use veil_math::Ring;
use zeroize::Zeroize;

use super::super::vector::{Task, VECTOR, Vector};
use super::super::workspace::Memory;
use super::{ring, shared};
use crate::layout::Span;

/// Bits as the integers 0 and 1.
pub(super) struct Lift<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) from: Span,
    pub(super) to: Span,
}

impl Task for Lift<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let ring = ring(self.memory, self.to);
        for k in 0..self.to.count {
            let (bits, into) = self.memory.column_to_column((self.from, k), (self.to, k));
            match ring {
                Ring::Z128 => spread::<V, 2>(bits, into),
                Ring::Z32 => spread_narrow(bits, into),
                Ring::Bits | Ring::Z64 => spread::<V, 1>(bits, into),
            }
        }
    }
}

/// Elements of `WORDS` words from packed bits.
#[inline(always)]
fn spread<V: Vector, const WORDS: usize>(bits: &[u8], into: &mut [u8]) {
    let mut vectors = into.chunks_exact_mut(WORDS * VECTOR);
    let mut whole = 0;
    for (byte, eight) in bits.iter().zip(&mut vectors) {
        let words = eight_of(*byte);
        for (k, to) in eight.chunks_exact_mut(VECTOR).enumerate() {
            let mut part = [0; 8];
            for r in 0..8 / WORDS {
                part[WORDS * r] = words[8 / WORDS * k + r];
            }
            // SAFETY: both are as long as a vector; the instruction set is the caller's.
            unsafe { V::load(part.as_ptr().cast()).store(to.as_mut_ptr()) }
        }
        whole += 1;
    }
    if let Some(byte) = bits.get(whole) {
        let rest = vectors.into_remainder().as_chunks_mut::<8>().0;
        for (element, word) in rest.chunks_exact_mut(WORDS).zip(eight_of(*byte)) {
            element[WORDS - 1] = [0; 8];
            element[0] = word.to_ne_bytes();
        }
    }
}

/// Elements of 32 bits from packed bits.
#[inline(always)]
fn spread_narrow(bits: &[u8], into: &mut [u8]) {
    let elements = into.as_chunks_mut::<4>().0;
    for (byte, eight) in bits.iter().zip(elements.chunks_mut(8)) {
        for (r, element) in (0..).zip(eight) {
            *element = (u32::from(*byte) >> r & 1).to_le_bytes();
        }
    }
}

/// Bits as words, little-endian in memory.
#[inline(always)]
fn eight_of(byte: u8) -> [u64; 8] {
    let mut words = [0; 8];
    for r in 0..8 {
        words[r] = (u64::from(byte) >> r & 1).to_le();
    }
    words
}

/// Integers in another ring.
pub(super) struct Resize<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) from: Span,
    pub(super) to: Span,
}

impl Task for Resize<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let rings = [self.from, self.to].map(|span| ring(self.memory, span));
        let shared = shared(self.memory, self.from);
        for k in 0..self.to.count {
            let (from, into) = self.memory.column_to_column((self.from, k), (self.to, k));
            if shared {
                let mut value = [0; 16];
                let common = rings[0].bytes(1).min(rings[1].bytes(1)) as usize;
                value[..common].copy_from_slice(&from[..common]);
                fill(&value, rings[1], into);
                value.zeroize();
                continue;
            }
            match rings {
                [Ring::Z128, Ring::Z64] => {
                    let (from, into) = (from.as_chunks::<16>().0, into.as_chunks_mut::<8>().0);
                    for (x, to) in from.iter().zip(into) {
                        *to = *x.first_chunk().expect("8 of 16 bytes");
                    }
                }
                [Ring::Z64, Ring::Z128] => {
                    let (from, into) = (from.as_chunks::<8>().0, into.as_chunks_mut::<16>().0);
                    for (x, to) in from.iter().zip(into) {
                        *to = u128::from(u64::from_le_bytes(*x)).to_le_bytes();
                    }
                }
                [Ring::Z32, Ring::Z64] => extend::<4, 8>(from, into),
                [Ring::Z32, Ring::Z128] => extend::<4, 16>(from, into),
                [Ring::Z64, Ring::Z32] => cut::<8, 4>(from, into),
                [Ring::Z128, Ring::Z32] => cut::<16, 4>(from, into),
                _ => into.copy_from_slice(from),
            }
        }
    }
}

/// Elements with zeros behind them.
#[inline(always)]
fn extend<const FROM: usize, const TO: usize>(from: &[u8], into: &mut [u8]) {
    let (from, into) = (from.as_chunks::<FROM>().0, into.as_chunks_mut::<TO>().0);
    for (x, to) in from.iter().zip(into) {
        *to = [0; TO];
        to[..FROM].copy_from_slice(x);
    }
}

/// Elements without their highest bytes.
#[inline(always)]
fn cut<const FROM: usize, const TO: usize>(from: &[u8], into: &mut [u8]) {
    let (from, into) = (from.as_chunks::<FROM>().0, into.as_chunks_mut::<TO>().0);
    for (x, to) in from.iter().zip(into) {
        to.copy_from_slice(&x[..TO]);
    }
}

/// One element of a ring in all rows.
#[inline(always)]
fn fill(value: &[u8; 16], ring: Ring, into: &mut [u8]) {
    if ring == Ring::Z128 {
        into.as_chunks_mut::<16>().0.fill(*value);
    } else if ring == Ring::Z32 {
        let low = value.first_chunk::<4>().expect("4 of 16 bytes");
        into.as_chunks_mut::<4>().0.fill(*low);
    } else {
        let low = value.first_chunk::<8>().expect("8 of 16 bytes");
        into.as_chunks_mut::<8>().0.fill(*low);
    }
}

/// Integers without their lowest bits.
pub(super) struct Shift<'a> {
    pub(super) memory: &'a mut Memory,
    pub(super) by: u32,
    pub(super) from: Span,
    pub(super) to: Span,
}

impl Task for Shift<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let ring = ring(self.memory, self.to);
        let shared = shared(self.memory, self.from);
        let (from, into) = self.memory.column_to_column((self.from, 0), (self.to, 0));
        if shared {
            let mut value = [0; 16];
            value[..from.len()].copy_from_slice(from);
            value = (u128::from_le_bytes(value) >> self.by).to_le_bytes();
            fill(&value, ring, into);
            value.zeroize();
            return;
        }
        if ring == Ring::Z32 {
            let (elements, to) = (from.as_chunks::<4>().0, into.as_chunks_mut::<4>().0);
            for (x, to) in elements.iter().zip(to) {
                *to = (u32::from_le_bytes(*x) >> self.by).to_le_bytes();
            }
            return;
        }
        let (words, to) = (from.as_chunks::<8>().0, into.as_chunks_mut::<8>().0);
        if ring == Ring::Z64 {
            for (x, to) in words.iter().zip(to) {
                *to = (u64::from_le_bytes(*x) >> self.by).to_le_bytes();
            }
            return;
        }
        let (words, to) = (words.as_chunks::<2>().0, to.as_chunks_mut::<2>().0);
        let by = self.by % 64;
        if self.by < 64 {
            for (x, to) in words.iter().zip(to) {
                let (low, high) = (u64::from_le_bytes(x[0]), u64::from_le_bytes(x[1]));
                // In two steps, of which neither is by 64.
                let from_high = high << 1 << (63 - by);
                *to = [
                    (low >> by | from_high).to_le_bytes(),
                    (high >> by).to_le_bytes(),
                ];
            }
        } else {
            for (x, to) in words.iter().zip(to) {
                *to = [(u64::from_le_bytes(x[1]) >> by).to_le_bytes(), [0; 8]];
            }
        }
    }
}
