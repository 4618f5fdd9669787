//! Commands, one by one.

use std::sync::Arc;

use subtle::ConstantTimeEq;
use veil_math::Ring;

use super::{Memory, Reference};
use crate::command::{Command, NO_PROGRAM, Op};
use crate::layout::{ColumnType, Span};
use crate::program::{Instr, Program};
use crate::{Fault, hash, mac};

impl Reference {
    /// Checks a command, does it, and says what a comparison found.
    pub(super) fn run(
        &mut self,
        memory: &mut Memory,
        index: usize,
        command: &Command,
    ) -> Result<bool, Fault> {
        let program = command
            .program
            .and_then(|id| self.programs.get(id.0 as usize));
        let workspace = (&memory.layout, memory.frame.rows);
        command.check(index, workspace, program.map(|(_, needs)| needs))?;
        let program = program.map(|(program, _)| Arc::clone(program));
        command.dst.iter().for_each(|to| memory.renew(*to));
        match &command.op {
            Op::Linear | Op::Product(_) => {
                let program = program.ok_or(NO_PROGRAM)?;
                self.program(memory, &program, command)?;
            }
            Op::AddReceived { component } => {
                let program = program.ok_or(NO_PROGRAM)?;
                memory.add_received(&program, command, *component);
            }
            // Its planes are packed.
            Op::Publish => {}
            Op::Random => {
                let (to, call) = (command.dst[0], command.calls[0]);
                let column = memory.layout.regions[to.region as usize].column;
                let bytes = self.pseudorandom(memory, call, column, to.count)?;
                memory.bytes_mut(to).copy_from_slice(&bytes);
            }
            Op::Combine { ring, minus } => self.combine(memory, command, *ring, *minus)?,
            Op::Hash { label } => {
                let head = hash::head(&self.session, *label, memory.frame, &command.calls);
                let digest = hash::digest(&head, command.src.iter().map(|s| memory.bytes(*s)));
                memory.bytes_mut(command.dst[0]).copy_from_slice(&digest);
            }
            Op::Mac => self.mac(memory, command)?,
            Op::Split { first } => memory.split(command.src[0], command.dst[0], *first),
            Op::Shift { by } => memory.shift(command.src[0], command.dst[0], *by),
            Op::Lift => memory.lift(command.src[0], command.dst[0]),
            Op::Scale => memory.scale([command.src[0], command.src[1]], command.dst[0]),
            Op::Resize => memory.resize(command.src[0], command.dst[0]),
            Op::Dot => memory.dot(&command.src, command.dst[0]),
            Op::CheckEqual => {
                let (a, b) = (command.src[0], command.src[1]);
                return Ok(bool::from(memory.bytes(a).ct_eq(memory.bytes(b))));
            }
            Op::Lifting(step) => self.lifting(memory, *step, command)?,
            Op::Truncation(step) => self.truncation(memory, *step, command)?,
            Op::Permutation => self.permutation(memory, command)?,
            Op::Permute { back } => memory.permute(index, command, *back)?,
            Op::Rank(form) => self.rank(memory, form, command)?,
            Op::MatMul(of) => self.matmul(memory, *of, command)?,
            Op::Invert => return Ok(memory.invert(command.src[0], command.dst.first())),
            Op::Proof(step) => return self.proof(memory, index, *step, command),
            Op::Ot(step) => return self.transfer(memory, *step, command),
            Op::Silent(step) => self.silent(memory, *step, command)?,
            Op::Psi(step) => return self.intersection(memory, index, *step, command),
            Op::Cut(step) => return self.cut(memory, *step, command),
            Op::Ag(step) => self.authenticated(memory, *step, command)?,
            Op::Garble { .. } | Op::Evaluate { .. } | Op::Encode { .. } | Op::Colour => {
                self.labels(memory, command)?;
            }
            Op::Repeat(repeat) => {
                for command in repeat.commands() {
                    self.run(memory, index, &command)?;
                }
                self.forget(memory, repeat);
            }
        }
        Ok(true)
    }

    fn mac(&mut self, memory: &mut Memory, command: &Command) -> Result<(), Fault> {
        let (to, call) = (command.dst[0], command.calls[0]);
        let mask = self.pseudorandom(memory, call, ColumnType::Bytes(mac::BLOCK as u32), 1)?;
        let prf = self.keys.get(&call.key);
        let prf = prf.ok_or(Fault::Unknown("the key of a draw"))?;
        let mut hash = mac::Hash::new(&mac::hash_key(prf));
        command
            .src
            .iter()
            .for_each(|s| hash.source(memory.bytes(*s)));
        let code = hash.finish();
        let to = memory.bytes_mut(to);
        for (k, byte) in to.iter_mut().enumerate() {
            *byte = code[k] ^ mask[k];
        }
        Ok(())
    }
}

impl Memory {
    fn add_received(&mut self, program: &Program, command: &Command, component: u8) {
        let ring = program.ring;
        for instr in &program.code {
            let (message, to, index) = match *instr {
                Instr::Product { out, index, .. } => (0, (program.slots, out), index),
                Instr::ProductSum { out, index, .. } => (1, (program.sums, out), index),
                _ => continue,
            };
            let from = command.src[message].column(index);
            let to = Span {
                region: to.0,
                component,
                first: to.1,
                count: 1,
            };
            for cell in 0..self.cells(to.region) {
                let sum = ring.add(self.get(from, ring, cell), self.get(to, ring, cell));
                self.set(to, ring, cell, sum);
            }
        }
    }

    /// The sum of the sources of a command, without its calls.
    pub(super) fn combine(&mut self, command: &Command, ring: Ring, minus: u32) {
        let all = command.dst[0];
        if matches!(self.column(all), ColumnType::Labels | ColumnType::Label) {
            self.combine_labels(command);
            return;
        }
        let keep = self.column(all).padding(self.frame.rows);
        for k in 0..all.count {
            let to = all.column(k);
            for cell in 0..self.cells(to.region) {
                let mut sum = 0;
                for (source, from) in command.src.iter().enumerate() {
                    let x = self.get(from.column(k), ring, cell);
                    sum = if minus >> source & 1 == 1 {
                        ring.sub(sum, x)
                    } else {
                        ring.add(sum, x)
                    };
                }
                self.set(to, ring, cell, sum);
            }
            if let Some(last) = self.bytes_mut(to).last_mut() {
                *last &= keep;
            }
        }
    }

    fn split(&mut self, from: Span, to: Span, first: u32) {
        let (ColumnType::Rows(ring) | ColumnType::One(ring)) = self.column(from) else {
            unreachable!("it was checked")
        };
        let shared = matches!(self.column(from), ColumnType::One(_));
        for k in 0..to.count {
            for cell in 0..self.cells(to.region) {
                let row = cell < self.frame.rows as usize;
                let from_cell = if shared || !row { 0 } else { cell };
                let bit = self.get(from, ring, from_cell) >> (first + k) & 1;
                self.set(to.column(k), Ring::Bits, cell, if row { bit } else { 0 });
            }
        }
    }

    fn shift(&mut self, from: Span, to: Span, by: u32) {
        let ColumnType::Rows(ring) = self.column(to) else {
            unreachable!("it was checked")
        };
        let shared = matches!(self.column(from), ColumnType::One(_));
        for cell in 0..self.cells(to.region) {
            let value = self.get(from, ring, if shared { 0 } else { cell });
            self.set(to, ring, cell, value >> by);
        }
    }

    fn lift(&mut self, from: Span, to: Span) {
        let ColumnType::Rows(ring) = self.column(to) else {
            unreachable!("it was checked")
        };
        for k in 0..to.count {
            for cell in 0..self.cells(to.region) {
                let bit = self.get(from.column(k), Ring::Bits, cell);
                self.set(to.column(k), ring, cell, bit);
            }
        }
    }

    fn scale(&mut self, from: [Span; 2], to: Span) {
        let ColumnType::Rows(ring) = self.column(to) else {
            unreachable!("it was checked")
        };
        for k in 0..to.count {
            for cell in 0..self.cells(to.region) {
                let [x, y] = from.map(|span| self.get(span.column(k), ring, cell));
                self.set(to.column(k), ring, cell, ring.mul(x, y));
            }
        }
    }

    fn resize(&mut self, from: Span, to: Span) {
        let (a, b) = (self.ring(from), self.ring(to));
        let shared = matches!(self.column(from), ColumnType::One(_));
        for k in 0..to.count {
            for cell in 0..self.cells(to.region) {
                let value = self.get(from.column(k), a, if shared { 0 } else { cell });
                self.set(to.column(k), b, cell, b.reduce(value));
            }
        }
    }

    fn dot(&mut self, src: &[Span], to: Span) {
        let ring = self.ring(to);
        let mut sum = self.get(to, ring, 0);
        for k in 0..src[0].count {
            for cell in 0..self.cells(src[0].region) {
                let value = |s: usize| self.get(src[s].column(k), self.ring(src[s]), cell);
                let [a, b, c, d] = [0, 1, 2, 3].map(value);
                let own = ring.mul(a, ring.add(c, d));
                sum = ring.add(sum, ring.add(own, ring.mul(b, c)));
            }
        }
        self.set(to, ring, 0, sum);
    }

    /// The ring of a span of integers.
    fn ring(&self, span: Span) -> Ring {
        match self.column(span) {
            ColumnType::Rows(ring) | ColumnType::One(ring) => ring,
            _ => unreachable!("it was checked"),
        }
    }
}
