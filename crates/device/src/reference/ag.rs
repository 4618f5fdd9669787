//! Authenticated garbling: steps as they are defined, and programs over masks and over labels.

use zeroize::Zeroizing;

use super::garble::{Products, walk};
use super::{Memory, Reference};
use crate::Fault;
use crate::ag::gate::{Gate, all};
use crate::ag::{self, Ag, Known, One};
use crate::command::{Command, NO_PROGRAM, PrfCall};
use crate::garble::{Garbling, NO_OFFSET, ROW_BITS};
use crate::layout::Span;

impl Reference {
    /// Does a step, which was checked.
    pub(super) fn authenticated(
        &mut self,
        memory: &mut Memory,
        step: Ag,
        command: &Command,
    ) -> Result<(), Fault> {
        let id = command.program;
        let program = id.and_then(|id| self.programs.get(id.0 as usize));
        let program = program.map(|(program, _)| program.clone());
        let (src, dst) = (&command.src[..], &command.dst[..]);
        match step {
            Ag::Masks { part, at, one } => {
                let program = program.ok_or(NO_PROGRAM)?;
                let one = match one {
                    One::Nothing => 0,
                    One::Unit => 1,
                    One::Offset(key) => self.offset(key)? ^ 1,
                };
                let rows = memory.frame.rows as usize;
                let first = at as usize * rows;
                if at == 0 {
                    for to in dst {
                        ag::clear(memory, *to, 0);
                    }
                }
                let masks = Masks {
                    at: first,
                    one: Zeroizing::new(one),
                    rows,
                    results: src[0],
                    operands: [dst[0], dst[1]],
                };
                walk(memory, &program, part, masks)
            }
            Ag::Garble { at, offset } => {
                let program = program.ok_or(NO_PROGRAM)?;
                let offset = self.offset(offset)?;
                if offset & 3 != 3 {
                    return Err(NO_OFFSET);
                }
                let start = self.start(memory, command, program.products().0)?;
                let rows = memory.frame.rows as usize;
                let first = at as usize * rows;
                ag::clear_bits(memory, dst[1], first);
                if at == 0 {
                    ag::clear(memory, dst[2], 0);
                }
                let gates = Garbler {
                    at: first,
                    offset: Zeroizing::new(offset),
                    start,
                    rows,
                    src,
                    dst,
                };
                walk(memory, &program, 0, gates)
            }
            Ag::Evaluate { at } => {
                let program = program.ok_or(NO_PROGRAM)?;
                let start = self.start(memory, command, program.products().0)?;
                let rows = memory.frame.rows as usize;
                if at == 0 {
                    ag::clear(memory, dst[0], 0);
                }
                let at = at as usize * rows;
                for to in &dst[1..] {
                    ag::clear_bits(memory, *to, at);
                }
                let gates = Evaluator {
                    at,
                    start,
                    rows,
                    src,
                    dst,
                };
                walk(memory, &program, 0, gates)
            }
            _ => {
                let known = self.known(memory, step, command)?;
                ag::step(memory, &known, step, command);
                Ok(())
            }
        }
    }

    /// What a step without a program knows.
    fn known(&mut self, memory: &Memory, step: Ag, command: &Command) -> Result<Known, Fault> {
        let offset = match step.offset() {
            Some(key) => self.offset(key)?,
            None => 0,
        };
        let mut start = 0;
        if let (Ag::Offer { .. } | Ag::Take { .. }, Some(call)) = (step, command.calls.first()) {
            if let Ag::Offer { .. } = step {
                let blocks = memory.bytes(command.dst[0]).len() / ag::BLOCK;
                self.once(memory, *call, blocks as u64)?;
            }
            let frame = memory.frame;
            let prf = self.prf(call.key)?;
            start = u128::from_le_bytes(prf.block(call.tag, frame.lane, 0, frame.chunk));
        }
        Ok(Known {
            offset: Zeroizing::new(offset),
            start,
        })
    }

    /// No gate and no candidate has a number that another one of the chunk has: their tweaks would be the same.
    fn once(&mut self, memory: &Memory, call: PrfCall, count: u64) -> Result<(), Fault> {
        let frame = memory.frame;
        self.ledger.record_call(
            call.key.0,
            call.tag,
            frame.lane,
            frame.chunk,
            call.first,
            count,
        )?;
        Ok(())
    }

    /// Where the hash of the gates of a command starts, and the number of product 0.
    fn start(
        &mut self,
        memory: &Memory,
        command: &Command,
        products: u32,
    ) -> Result<(u128, u64), Fault> {
        let call = command.calls[0];
        self.once(memory, call, products.into())?;
        let start = Garbling::HalfGates.start(self.prf(call.key)?, call.tag, memory.frame);
        Ok((start, call.first))
    }
}

/// The gate of a row of a product.
fn gate((start, first): (u128, u64), index: u32, row: usize) -> Gate {
    Gate {
        start,
        number: ((first + u64::from(index)) << ROW_BITS) + row as u64,
    }
}

/// Bit `at` of packed bits.
fn bit(memory: &Memory, span: Span, at: usize) -> u128 {
    (memory.bytes(span)[at / 8] >> (at % 8) & 1).into()
}

fn set_bit(memory: &mut Memory, span: Span, at: usize, bit: u128) {
    memory.bytes_mut(span)[at / 8] |= ((bit & 1) as u8) << (at % 8);
}

/// Products whose results are there already.
struct Masks {
    /// Block of row 0 of product 0.
    at: usize,
    one: Zeroizing<u128>,
    rows: usize,
    results: Span,
    operands: [Span; 2],
}

impl Products for Masks {
    fn one(&self, _: usize) -> u128 {
        *self.one
    }

    fn product(
        &mut self,
        memory: &mut Memory,
        index: u32,
        row: usize,
        operands: [u128; 2],
    ) -> u128 {
        let at = self.at + index as usize * self.rows + row;
        for (to, operand) in self.operands.iter().zip(operands) {
            memory.set_label(*to, at, operand);
        }
        memory.label(self.results, at)
    }
}

/// Gates at the garbler.
struct Garbler<'a> {
    /// Block of row 0 of product 0.
    at: usize,
    offset: Zeroizing<u128>,
    start: (u128, u64),
    rows: usize,
    src: &'a [Span],
    dst: &'a [Span],
}

impl Products for Garbler<'_> {
    fn one(&self, _: usize) -> u128 {
        0
    }

    fn product(&mut self, memory: &mut Memory, index: u32, row: usize, labels: [u128; 2]) -> u128 {
        let at = self.at + index as usize * self.rows + row;
        let masks = [0, 2, 4].map(|k: usize| {
            let of = [self.src[k], self.src[k + 1]];
            of.map(|span| memory.label(span, at))
        });
        let gate = gate(self.start, index, row);
        let (label, tables, z) = gate.garble(*self.offset, labels, masks);
        for (k, table) in (0..).zip(tables) {
            memory.set_label(self.dst[0].column(2 * index + k), row, table);
        }
        set_bit(memory, self.dst[1], at, z);
        memory.set_label(self.dst[2], at, label);
        label
    }
}

/// Gates at the evaluator.
struct Evaluator<'a> {
    /// Block of row 0 of product 0.
    at: usize,
    start: (u128, u64),
    rows: usize,
    src: &'a [Span],
    dst: &'a [Span],
}

impl Products for Evaluator<'_> {
    fn one(&self, _: usize) -> u128 {
        0
    }

    fn product(&mut self, memory: &mut Memory, index: u32, row: usize, labels: [u128; 2]) -> u128 {
        let at = self.at + index as usize * self.rows + row;
        let tables = [0, 1].map(|k| memory.label(self.src[0].column(2 * index + k), row));
        let masks = [2, 3, 4].map(|k: usize| memory.label(self.src[k], at));
        let z = bit(memory, self.src[1], at);
        let label = gate(self.start, index, row).evaluate(labels, tables, z, masks);
        memory.set_label(self.dst[0], at, label);
        for (to, of) in self.dst[1..].iter().zip([labels[0], labels[1], label]) {
            set_bit(memory, *to, at, all(of >> 1));
        }
        label
    }
}
