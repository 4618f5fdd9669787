//! Runs the steps of a program on a core: columns of a workspace as words, and results back to where they go.

use std::ops::Range;

use veil_device::{Command, Fault, Op, Shares, Span};
use zeroize::Zeroizing;

use super::columns::{Bytes, Column, beats_of, column_of};
use super::command::{Closes, CoreCommand, Kind, LONGEST, WORD};
use super::core::{Batch, Core, MESSAGES};
use super::loaded::Loaded;
use super::steps::{Destination, Step, Value};
use crate::device::failed;

/// Bytes of operands that go to a core at once, unless a single step has more.
const AT_ONCE: usize = 1 << 20;

impl Loaded {
    /// Runs a command, whose keys the core has. `closes`: what the last of its products ends, and the last of its sums.
    pub(super) fn run(
        &self,
        core: &mut dyn Core,
        shares: &mut Shares<'_>,
        command: &Command,
        closes: [Closes; 2],
    ) -> Result<(), Fault> {
        let mut running = Running::of(self, shares, command, closes);
        if running.packed.div_ceil(WORD * core.words()) > LONGEST {
            let bytes = running.packed as u64;
            return Err(Fault::TooLarge { bytes });
        }
        let mut from = 0;
        for until in &self.steps.waves {
            running.wave(core, from as usize..*until as usize)?;
            from = *until;
        }
        running.finish();
        Ok(())
    }
}

/// What came of a step.
struct Made {
    column: Column,
    /// Of a product its messages, those that leave.
    messages: [Option<Vec<u8>>; MESSAGES],
    /// Operands and masks of a product whose trace is kept.
    trace: Column,
}

pub(super) struct Running<'a, 'b> {
    loaded: &'a Loaded,
    command: &'a Command,
    closes: [Closes; 2],
    shares: &'a mut Shares<'b>,
    /// Bytes of a component of a column.
    pub(super) packed: usize,
    /// Where operands and masks of products go, if they are kept.
    trace: Option<Span>,
    results: Vec<Option<Made>>,
    /// How often results are still read.
    reads: Vec<u32>,
}

impl<'a, 'b> Running<'a, 'b> {
    /// A command of which nothing has run.
    pub(super) fn of(
        loaded: &'a Loaded,
        shares: &'a mut Shares<'b>,
        command: &'a Command,
        closes: [Closes; 2],
    ) -> Self {
        Running {
            loaded,
            command,
            closes,
            packed: loaded.ring.bytes(shares.frame().rows.into()) as usize,
            trace: command.dst.get(2).copied().filter(|_| loaded.parts == 2),
            results: loaded.steps.all.iter().map(|_| None).collect(),
            reads: loaded.steps.all.iter().map(|step| step.reads).collect(),
            shares,
        }
    }
}

impl Running<'_, '_> {
    fn step(&self, at: usize) -> &'_ Step {
        &self.loaded.steps.all[at]
    }

    /// Beats of a column of a step. Nothing adds up to zero, which has a mask like any other sum.
    fn beats(&self, step: &Step, core: &dyn Core) -> usize {
        let beats = self.packed.div_ceil(WORD * core.words());
        if step.sums() { beats.max(1) } else { beats }
    }

    /// Bytes of operands of a step.
    fn bytes(&self, step: &Step, core: &dyn Core) -> usize {
        let words = step.operands.len() * 2 * self.loaded.parts * core.words();
        words * WORD * self.beats(step, core)
    }

    fn traces(&self, step: &Step) -> bool {
        self.trace.is_some() && matches!(step.place, Destination::Product { .. })
    }

    /// Steps that need nothing of each other, as many at once as go to a core.
    pub(super) fn wave(&mut self, core: &mut dyn Core, steps: Range<usize>) -> Result<(), Fault> {
        let mut from = steps.start;
        while from < steps.end {
            let mut bytes = 0;
            let mut until = from;
            while until < steps.end {
                bytes += self.bytes(self.step(until), core);
                if bytes > AT_ONCE && until > from {
                    break;
                }
                until += 1;
            }
            self.some(core, from..until)?;
            from = until;
        }
        Ok(())
    }

    fn some(&mut self, core: &mut dyn Core, steps: Range<usize>) -> Result<(), Fault> {
        let (words, parts) = (core.words(), self.loaded.parts);
        let sends = core.sends();
        let bytes = steps.clone().map(|at| self.bytes(self.step(at), core));
        let mut batch = Batch::with_operands(bytes.sum());
        let (mut results, mut messages) = (0, 0);
        for at in steps.clone() {
            let step = self.step(at);
            let beats = self.beats(step, core);
            if beats == 0 {
                continue;
            }
            let command = self.command(at, beats, words);
            batch.commands.push(command);
            beats_of(&self.operands(step), beats, words, &mut batch.operands);
            let came = if step.sums() { 1 } else { beats };
            results += came;
            if step.kind == Kind::Product {
                messages += came;
            }
            if self.traces(step) {
                batch.commands.push(CoreCommand {
                    kind: Kind::Random,
                    pairs: 1,
                    ..command
                });
                results += beats;
            }
        }
        batch.room(
            results * words * parts * WORD,
            messages * words * WORD,
            sends,
        );
        if !batch.commands.is_empty() {
            core.run(&mut batch)
                .map_err(|error| failed(core.name(), &error))?;
        }
        let mut left = Left {
            results: &batch.results,
            messages: batch.messages.each_ref().map(|message| &message[..]),
            word: parts * WORD,
        };
        for at in steps {
            let made = self.made(at, core, sends, &mut left);
            self.results[at] = Some(made);
            let loaded = self.loaded;
            let read = loaded.steps.all[at].operands.iter();
            read.flat_map(|(a, b)| [a, b])
                .for_each(|value| self.read(*value));
        }
        Ok(())
    }

    /// What came of a step, from what is left.
    fn made(&self, at: usize, core: &dyn Core, sends: Option<u8>, left: &mut Left<'_>) -> Made {
        let (step, parts) = (self.step(at), self.loaded.parts);
        let (bytes, beats) = if step.sums() {
            (self.loaded.ring.bytes(1) as usize, 1)
        } else {
            (self.packed, self.beats(step, core))
        };
        let words = beats * core.words();
        let column = column_of(left.results(words), parts, bytes);
        let mut messages = [const { None }; MESSAGES];
        if step.kind == Kind::Product {
            match sends {
                None => messages[0] = Some(column[0].clone()),
                Some(sends) => {
                    for k in (0..MESSAGES).filter(|k| sends >> k & 1 == 1) {
                        messages[k] = Some(left.message(k, words)[..bytes].to_vec());
                    }
                }
            }
        }
        let mut trace = Column::default();
        if self.traces(step) {
            for components in self.operands(step) {
                trace.extend(components.iter().map(|of| of.packed(bytes)));
            }
            let mut masks = column_of(left.results(words), parts, bytes);
            trace.append(&mut masks);
        }
        Made {
            column,
            messages,
            trace,
        }
    }

    /// One reader less. After its last reader a value is wiped.
    fn read(&mut self, value: Value) {
        if let Value::Step(step) = value {
            let at = step as usize;
            self.reads[at] -= 1;
            if self.reads[at] == 0 && self.step(at).place == Destination::Value {
                self.results[at] = None;
            }
        }
    }

    fn command(&self, at: usize, beats: usize, words: usize) -> CoreCommand {
        let ring = self.loaded.ring;
        let step = self.step(at);
        let frame = self.shares.frame();
        let chunk = ring.bytes(self.shares.chunk_rows().into());
        let calls = match self.command.op {
            Op::Product(form) => form.calls(),
            _ => 0,
        };
        let (call, counter, closes) = match step.place {
            Destination::Product { index, .. } => {
                (0, u64::from(index) * chunk.div_ceil(16), self.closes[0])
            }
            // Draws of sums come after those of rows.
            Destination::ProductSum { index, .. } => (calls, u64::from(index), self.closes[1]),
            _ => (usize::MAX, 0, Closes::Nothing),
        };
        let call = self.command.calls.get(call);
        let next = self.loaded.steps.all.get(at + 1);
        let ends = next.is_none_or(|next| next.sums() != step.sums());
        let tail = self.packed.saturating_sub((beats - 1) * WORD * words);
        CoreCommand {
            kind: step.kind,
            ring,
            sum: step.sums(),
            beats: beats as u16,
            pairs: step.operands.len() as u16,
            tail: tail.max(1) as u16,
            closes: if ends { closes } else { Closes::Nothing },
            used: call.map_or(0, |call| call.tag.0 & core_use(self.loaded.parts)),
            lane: frame.lane,
            counter: call.map_or(0, |call| call.first + counter),
            chunk: frame.chunk,
        }
    }

    /// Components of the operands of a step. Where there are no rows, what all rows share is nothing.
    pub(super) fn operands(&self, step: &Step) -> Vec<Vec<Bytes<'_>>> {
        let component = |value: Value, part: u8| match self.packed {
            0 => Bytes::Column(&[]),
            _ => self.bytes_of(value, part),
        };
        let parts = 0..self.loaded.parts as u8;
        let operands = step.operands.iter().flat_map(|(a, b)| [*a, *b]);
        operands
            .map(|value| parts.clone().map(|part| component(value, part)).collect())
            .collect()
    }

    fn bytes_of(&self, value: Value, part: u8) -> Bytes<'_> {
        let ring = self.loaded.ring;
        let [slots, job_wide, _] = self.loaded.regions;
        match value {
            Value::Slot(slot) => Bytes::Column(self.shares.column(slots, part, slot)),
            Value::JobWide(item) => {
                let bytes = self.shares.column(job_wide, part, item);
                let mut element = [0; 16];
                element[..bytes.len()].copy_from_slice(bytes);
                Bytes::repeated(ring, u128::from_le_bytes(element))
            }
            Value::Public(_) if self.command.constants >> part & 1 == 0 => Bytes::repeated(ring, 0),
            Value::Public(c) | Value::Factor(c) => Bytes::repeated(ring, c),
            Value::Step(step) => {
                let made = self.results[step as usize].as_ref();
                Bytes::Column(
                    &made.expect("steps of waves before it are done").column[usize::from(part)],
                )
            }
        }
    }

    /// Everything goes where it goes, in the order of the program.
    pub(super) fn finish(mut self) {
        let [slots, _, sums] = self.loaded.regions;
        let parts = 0..self.loaded.parts as u8;
        // Read before anything is written: a slot may get what another one had.
        let values: Vec<(u32, Column)> = (self.loaded.steps.slots.iter())
            .map(|(slot, value)| {
                let parts = parts.clone();
                let packed = parts.map(|part| self.bytes_of(*value, part).packed(self.packed));
                (*slot, Zeroizing::new(packed.collect()))
            })
            .collect();
        for (slot, column) in &values {
            self.put((slots, *slot), column);
        }
        let mut order: Vec<usize> = (0..self.loaded.steps.all.len()).collect();
        order.sort_by_key(|at| self.step(*at).number);
        // Of three parties a product is one component, the other one arrives.
        let own = if self.loaded.parts == 2 {
            1
        } else {
            self.loaded.parts
        };
        for at in order {
            let Some(made) = self.results[at].take() else {
                continue;
            };
            match self.step(at).place {
                Destination::Value => {}
                Destination::Product { slot, index } => {
                    self.put((slots, slot), &made.column[..own]);
                    self.messages(&made, 0, index);
                    if let Some(trace) = self.trace {
                        self.put((trace.region, trace.first + index), &made.trace);
                    }
                }
                Destination::ProductSum { item, index } => {
                    self.put((sums, item), &made.column[..own]);
                    self.messages(&made, 1, index);
                }
                Destination::Sum { item } => self.put((sums, item), &made.column),
            }
        }
    }

    fn put(&mut self, (region, item): (u16, u32), components: &[Vec<u8>]) {
        for (part, bytes) in (0..).zip(components) {
            let to = self.shares.column_mut(region, part, item);
            to.copy_from_slice(bytes);
        }
    }

    /// The messages of a product of a kind: of rows, or of sums.
    fn messages(&mut self, made: &Made, kind: usize, index: u32) {
        let crosses = if self.loaded.parts == 2 { 1 } else { MESSAGES };
        for (k, message) in made.messages.iter().enumerate() {
            if let Some(message) = message {
                let span = self.command.dst[kind * crosses + k];
                if span.count == 0 {
                    // The component itself is the message.
                    continue;
                }
                let to = self
                    .shares
                    .column_mut(span.region, span.component, span.first + index);
                to.copy_from_slice(message);
            }
        }
    }
}

/// What of a batch's results no step has taken yet.
struct Left<'a> {
    results: &'a [u8],
    messages: [&'a [u8]; MESSAGES],
    /// Bytes of a word with all components.
    word: usize,
}

impl<'a> Left<'a> {
    fn results(&mut self, words: usize) -> &'a [u8] {
        let (taken, left) = self.results.split_at(words * self.word);
        self.results = left;
        taken
    }

    fn message(&mut self, k: usize, words: usize) -> &'a [u8] {
        let (taken, left) = self.messages[k].split_at(words * WORD);
        self.messages[k] = left;
        taken
    }
}

/// The bits of a use that a command has: among four parties each draw has its own lowest ones.
const fn core_use(parts: usize) -> u16 {
    if parts == 2 { u16::MAX } else { !SUB }
}

/// The lowest bits of a use, which tell draws of a product of four parties from each other.
pub(super) const SUB: u16 = 7;
