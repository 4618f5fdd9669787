//! The steps of a proof that go through the whole batch, gate by gate and value by value.

use veil_math::{P61, Ring};
use zeroize::Zeroizing;

use super::{Memory, Reference};
use crate::command::Command;
use crate::layout::{ColumnType, Span};
use crate::proof::{self, BASE, Elements, Proof, Side, Table, factor, length};
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

/// The trace of a batch and what was received of it.
struct Gates<'a> {
    memory: &'a Memory,
    trace: Span,
    received: Span,
}

impl Gates<'_> {
    fn products(&self) -> u32 {
        self.trace.count
    }

    /// Products of a quarter; the last one may have fewer.
    fn quarter(&self) -> u32 {
        self.products().div_ceil(BASE as u32)
    }

    /// Three bits of a gate.
    fn half(&self, side: Side, product: u32, row: u32) -> [u64; 3] {
        let bit = |span: Span, part| {
            let first = span.first + product;
            let item = Span {
                component: part,
                first,
                ..span
            };
            self.memory.get(item, Ring::Bits, row as usize) as u64
        };
        let [u, u1, w, w1, mask, mask1] = [0, 1, 2, 3, 4, 5].map(|part| bit(self.trace, part));
        match side {
            Side::OwnNext => [u, w, (u & w1) ^ (w & u1) ^ mask1 ^ (u1 & w1)],
            Side::OwnPrevious => [w1, u1, mask1 ^ (u1 & w1)],
            Side::Previous => [u1, w1, bit(self.received, self.received.component) ^ mask1],
            Side::Next => [w, u, mask ^ (u & w)],
        }
    }

    /// [`Proof::Counts`].
    fn counts(&self) -> Zeroizing<Vec<u64>> {
        let mut sums = Zeroizing::new(vec![0i64; proof::COUNTS as usize]);
        let numbers = |[x, y, _]: [u64; 3]| [x & y, y, x, 1];
        for at in 0..self.quarter() {
            let of = |quarter: usize| quarter as u32 * self.quarter() + at;
            for row in 0..self.memory.frame.rows {
                for pair in 0..BASE * BASE {
                    let (i, j) = (of(pair / BASE), of(pair % BASE));
                    if i.max(j) >= self.products() {
                        continue;
                    }
                    let left = self.half(Side::OwnNext, i, row);
                    let right = self.half(Side::OwnPrevious, j, row);
                    let sign = 1 - 2 * (left[2] ^ right[2]) as i64;
                    let (n, m) = (numbers(left), numbers(right));
                    for kl in 0..BASE * BASE {
                        let product = (n[kl / BASE] & m[kl % BASE]) as i64;
                        sums[pair * BASE * BASE + kl] += sign * product;
                    }
                }
            }
        }
        Zeroizing::new(sums.iter().map(|sum| P61::signed(*sum)).collect())
    }

    /// [`Proof::Expand`].
    fn expand(&self, side: Side, challenges: [u64; 2]) -> Zeroizing<Vec<u64>> {
        let table = Table::new::<61>(side.is_left(), challenges);
        let rows = self.memory.frame.rows;
        let width = rows.div_ceil(8) * 8;
        let mut vector = Zeroizing::new(vec![0; length(self.products(), rows, 3) as usize]);
        for at in 0..self.quarter() {
            for row in 0..rows {
                let value = &mut vector[(at * width + row) as usize];
                for quarter in 0..BASE {
                    let product = quarter as u32 * self.quarter() + at;
                    if product < self.products() {
                        let half = self.half(side, product, row);
                        *value = P61::add(*value, table.value::<61>(quarter, half));
                    }
                }
            }
        }
        vector
    }
}

impl Reference {
    pub(super) fn proof(
        &mut self,
        memory: &mut Memory,
        step: Proof,
        command: &Command,
    ) -> Result<bool, Fault> {
        let mut blocks = |memory: &Memory, call: usize, count| {
            let item = ColumnType::Bytes(mac::BLOCK as u32);
            let bytes = self.pseudorandom(memory, command.calls[call], item, count)?;
            Ok(Zeroizing::new(bytes))
        };
        if let Some(fits) = proof::step(step, memory, command, &mut blocks)? {
            return Ok(fits);
        }
        let (src, dst) = (&command.src, &command.dst);
        let gates = |memory| Gates {
            memory,
            trace: src[0],
            received: src[1],
        };
        let vector = |memory: &Memory, span, products, level| {
            let length = length(products, memory.frame.rows, level);
            memory.elements(span, length as usize)
        };
        match step {
            Proof::Counts => {
                let counts = gates(memory).counts();
                memory.put(dst[0], &counts);
            }
            Proof::Expand { side } => {
                let challenges = [src[2], src[3]].map(|span| memory.element(span));
                let vector = gates(memory).expand(side, challenges);
                memory.put(dst[0], &vector);
            }
            Proof::Fold { level, products } => {
                let mut folded = vector(memory, src[0], products, level);
                let basis = proof::basis_of(factor(level) as usize, memory.element(src[1]));
                proof::fold(&mut folded, &basis);
                let left = folded.len().div_ceil(basis.len());
                memory.put(dst[0], &folded[..left]);
            }
            Proof::Share {
                level, products, ..
            } => {
                let places = factor(level) as usize;
                let [a, b] = [src[0], src[1]].map(|span| vector(memory, span, products, level));
                let gram = proof::gram(&a, &b, places);
                let masks = blocks(memory, 0, 2 * places as u32 - 1)?;
                proof::put_share(memory, dst[0], &gram, places, &masks);
            }
            // Those that every device does alike.
            _ => return Err(Fault::Program("a step of a proof that no party does")),
        }
        Ok(true)
    }
}
