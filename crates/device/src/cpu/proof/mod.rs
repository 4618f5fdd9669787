//! The steps of a proof that go through the whole batch, register by register.

#![allow(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set"
)]

mod portable;

use veil_math::P61;
use zeroize::Zeroizing;

use super::Cpu;
use super::bank::Memory;
use super::vector::VECTOR;
use crate::command::Command;
use crate::layout::Span;
use crate::proof::{self, BASE, COUNTS, Elements, Proof, Side, Table, factor, length};
use crate::{Fault, mac};

impl Elements for Memory {
    fn bytes_of(&self, span: Span) -> &[u8] {
        self.bytes(span)
    }

    fn bytes_of_mut(&mut self, span: Span) -> &mut [u8] {
        self.bytes_mut(span)
    }

    fn rows(&self) -> u32 {
        self.frame.rows
    }
}

/// 512 rows of bits.
type Register = [u64; VECTOR / 8];

/// The trace of a batch and what was received of it.
pub(super) struct Gates<'a> {
    memory: &'a Memory,
    trace: Span,
    received: Span,
}

/// Of 512 gates, three bits each: x, y, s. Rows that do not exist are zero.
type Half = [Register; 3];

impl Gates<'_> {
    fn products(&self) -> u32 {
        self.trace.count
    }

    fn quarter(&self) -> u32 {
        self.products().div_ceil(BASE as u32)
    }

    fn rows(&self) -> usize {
        self.memory.frame.rows as usize
    }

    /// Bytes of a product's rows.
    fn bytes(&self) -> usize {
        self.rows().div_ceil(8)
    }

    fn registers(&self) -> usize {
        self.bytes().div_ceil(VECTOR)
    }

    /// Ones in the rows that exist of a register.
    #[inline(always)]
    fn present(&self, register: usize) -> Register {
        let left = self.rows() - register * VECTOR * 8;
        let mut present = [0; VECTOR / 8];
        for (k, word) in present.iter_mut().enumerate() {
            *word = match left.saturating_sub(k * 64) {
                0 => 0,
                left if left < 64 => (1 << left) - 1,
                _ => u64::MAX,
            };
        }
        present
    }

    #[inline(always)]
    fn load(&self, span: Span, part: u8, product: u32, register: usize) -> Register {
        let bytes = self.memory.item_bytes(Span { part, ..span }, product);
        let bytes = &bytes[register * VECTOR..];
        let mut all = [0; VECTOR];
        match bytes.first_chunk::<VECTOR>() {
            Some(whole) => all = *whole,
            None => all[..bytes.len()].copy_from_slice(bytes),
        }
        let mut words = [0; VECTOR / 8];
        for (word, bytes) in words.iter_mut().zip(all.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }

    /// One half of 512 gates. `present` is what [`Self::present`] says of the register.
    #[inline(always)]
    fn half(&self, side: Side, product: u32, register: usize, present: &Register) -> Half {
        let trace = |part| self.load(self.trace, part, product, register);
        let (u, u1, w, w1) = (trace(0), trace(1), trace(2), trace(3));
        let mut half = match side {
            Side::OwnNext | Side::Next => [u, w, trace(if side == Side::Next { 4 } else { 5 })],
            Side::OwnPrevious => [w1, u1, trace(5)],
            Side::Previous => [u1, w1, trace(5)],
        };
        if side == Side::Next {
            half = [w, u, half[2]];
        }
        let received = match side {
            Side::Previous => self.load(self.received, self.received.part, product, register),
            _ => [0; VECTOR / 8],
        };
        for k in 0..VECTOR / 8 {
            half[2][k] ^= match side {
                Side::OwnNext => (u[k] & w1[k]) ^ (w[k] & u1[k]) ^ (u1[k] & w1[k]),
                Side::OwnPrevious => u1[k] & w1[k],
                Side::Previous => received[k],
                Side::Next => u[k] & w[k],
            };
            for bits in &mut half {
                bits[k] &= present[k];
            }
        }
        half
    }
}

impl Cpu {
    pub(super) fn proof(
        &self,
        memory: &mut Memory,
        step: Proof,
        command: &Command,
    ) -> Result<bool, Fault> {
        let blocks = |memory: &Memory, draw: usize, count: u32| {
            let draw = command.draws[draw];
            let mask = self.mask(draw, memory.frame)?;
            let mut bytes = Zeroizing::new(vec![0; mac::BLOCK * count as usize]);
            self.random(mask, draw.first, &mut bytes);
            Ok(bytes)
        };
        if let Some(fits) = proof::step(step, memory, command, blocks)? {
            return Ok(fits);
        }
        let (src, dst) = (&command.src, &command.dst);
        let rows = memory.frame.rows;
        match step {
            Proof::Counts => {
                let mut counts = Zeroizing::new([0i64; COUNTS as usize]);
                portable::counts(&gates(memory, src), &mut counts);
                let counts = counts.iter().map(|count| P61::signed(*count));
                let counts = Zeroizing::new(counts.collect::<Vec<u64>>());
                memory.put(dst[0], &counts);
            }
            Proof::Expand { side } => {
                let challenges = [src[2], src[3]].map(|span| memory.element(span));
                let table = Table::new::<61>(side.is_left(), challenges);
                let (at, _) = memory.item(dst[0], 0);
                let length = length(src[0].count, rows, 3) as usize;
                let mut vector = Zeroizing::new(vec![0; length]);
                portable::expand(&gates(memory, src), side, &table, &mut vector);
                debug_assert_eq!(at % 8, 0);
                memory.put(dst[0], &vector);
            }
            Proof::Fold { level, products } => {
                let length = length(products, rows, level) as usize;
                let r = memory.element(src[1]);
                let mut vector = memory.elements(src[0], length);
                proof::fold(&mut vector, factor(level) as usize, r);
                memory.put(dst[0], &vector);
            }
            Proof::Share {
                level, products, ..
            } => {
                let length = length(products, rows, level) as usize;
                let places = factor(level) as usize;
                let [a, b] = [src[0], src[1]].map(|span| memory.elements(span, length));
                let gram = proof::gram(&a, &b, places);
                let masks = blocks(memory, 0, 2 * places as u32 - 1)?;
                proof::put_share(memory, dst[0], &gram, places, &masks);
            }
            // Those that every device does alike.
            _ => return Err(Fault::Program("a step of a proof that nobody does")),
        }
        Ok(true)
    }
}

fn gates<'a>(memory: &'a Memory, src: &[Span]) -> Gates<'a> {
    Gates {
        memory,
        trace: src[0],
        received: src[1],
    }
}
