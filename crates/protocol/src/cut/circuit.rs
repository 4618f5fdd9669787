//! A circuit from its input labels on: the same commands where it is garbled, where it is garbled again to be checked, and where it is evaluated.

use veil_device::cut::By;
use veil_device::{Command, Cut, Garbling, Op, ProgramId, Span};
use veil_job::Holder;

use super::regions::{self, SLOTS, Shape, Work, holder, input, part, span};
use super::{ENCODING, label};
use crate::plan::Plan;
use crate::yao::{EVALUATOR, Group, combine, grouped, table};

/// A step.
pub(super) fn cut(step: Cut, src: &[Span], dst: &[Span]) -> Command {
    Command::new(Op::Cut(step), src.to_vec(), dst.to_vec())
}

/// One party's computation of circuits, and its labels.
#[derive(Clone, Copy)]
pub(super) struct Circuit<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shape: &'a Shape,
    /// Offsets, where circuits are garbled.
    pub(super) offsets: Option<Span>,
    pub(super) starts: Span,
    pub(super) numbers: Span,
    /// Labels of all input wires: for 0 where circuits are garbled, else active.
    pub(super) labels: Span,
    /// Whether tables are hashed: not where they were before.
    pub(super) hashes: bool,
}

/// Bytes of tables that a message has before another layer is put into the next.
const MESSAGE: u64 = 256 << 10;

/// Messages of consecutive layers.
pub(super) fn groups(plan: &Plan, half: u32) -> Vec<Group> {
    grouped(
        &plan.layers,
        MESSAGE / table(Garbling::HalfGates, half.into()),
    )
}

impl Circuit<'_> {
    fn work(&self) -> Work {
        self.shape.work()
    }

    /// Labels of the sums over the garbler's inputs, and of all input ports; the digest of no tables.
    pub(super) fn begin(&self, commands: &mut Vec<Command>) {
        let (shape, work) = (self.shape, self.work());
        let [own, others] = shape.inputs;
        let x = part(self.labels, 0, own);
        let hidden = part(self.labels, own, shape.check);
        let encoded = part(self.labels, shape.own(), shape.encoded);
        if shape.check > 0 {
            let key = regions::coins()[3];
            let step = Cut::Matrix { key: None };
            commands.push(cut(step, &[hidden, x, key], &[work.sums]));
        }
        if others > 0 {
            commands.push(decode(shape, encoded, work.decoded));
        }
        for (k, port) in self.plan.inputs.iter().enumerate() {
            let (_, first) = input(self.plan, k);
            let from = match holder(self.plan, k) {
                Holder::Party(EVALUATOR) => work.decoded,
                _ => x,
            };
            let slots = span(SLOTS, port.first, port.width);
            commands.push(combine(vec![part(from, first, port.width)], slots));
        }
        if self.hashes {
            let step = Cut::Digest {
                label: label::TABLES,
            };
            commands.push(cut(step, &[self.numbers, self.starts], &[work.chain[0]]));
        }
    }

    /// The layers of a message: garbled, or evaluated, and hashed. `number` is that of the message, `gate` that of its first gate.
    pub(super) fn group(
        &self,
        commands: &mut Vec<Command>,
        group: &Group,
        (number, gate): (usize, u64),
    ) {
        let mut at = 0;
        for layer in &self.plan.layers[group.layers.clone()] {
            let tables = regions::tables(at, layer.products);
            let first = gate + u64::from(at);
            let mut run = match self.offsets {
                Some(offsets) => {
                    let src = [offsets, self.starts];
                    cut(Cut::Garble { first }, &src, &[tables])
                }
                None => cut(Cut::Evaluate { first }, &[self.starts, tables], &[]),
            };
            run.program = Some(ProgramId(layer.program as u32));
            commands.push(run);
            at += layer.products;
        }
        if self.hashes {
            let [from, to] = self.chains(number);
            let step = Cut::Digest {
                label: label::TABLES,
            };
            commands.push(cut(step, &[from, regions::tables(0, at)], &[to]));
        }
    }

    /// The digest of the messages before message `number`, and that of all up to it.
    fn chains(&self, number: usize) -> [Span; 2] {
        let [a, b] = self.work().chain;
        if number.is_multiple_of(2) {
            [a, b]
        } else {
            [b, a]
        }
    }

    /// All messages.
    pub(super) fn whole(&self, commands: &mut Vec<Command>, groups: &[Group]) {
        let mut gate = 0;
        for (number, group) in groups.iter().enumerate() {
            self.group(commands, group, (number, gate));
            gate += u64::from(group.gates);
        }
    }

    /// The labels of outputs, one after the other.
    pub(super) fn outputs(&self, commands: &mut Vec<Command>) {
        let mut at = 0;
        for output in &self.plan.outputs {
            let from = span(SLOTS, output.first, output.width);
            let to = part(self.work().outputs, at, output.width);
            commands.push(combine(vec![from], to));
            at += output.width;
        }
    }

    /// The marks of outputs, and the colours of the sums: where circuits are garbled.
    pub(super) fn decoding(&self, commands: &mut Vec<Command>, marks: Span, colours: Span) {
        let (work, offsets) = (self.work(), self.offsets.expect("circuits are garbled"));
        let step = Cut::Marks {
            label: label::OUTPUT,
            by: By::Value,
        };
        commands.push(cut(step, &[work.outputs, offsets, self.numbers], &[marks]));
        commands.push(Command::new(Op::Colour, vec![work.sums], vec![colours]));
    }

    /// The digest of everything that was garbled of `messages` messages. `inputs` is the digest of the marks of inputs.
    pub(super) fn digest(
        &self,
        commands: &mut Vec<Command>,
        messages: usize,
        [inputs, marks, colours]: [Span; 3],
        to: Span,
    ) {
        let [tables, _] = self.chains(messages);
        let step = Cut::Digest {
            label: label::CIRCUIT,
        };
        let src = [self.numbers, self.starts, tables, inputs, marks, colours];
        commands.push(cut(step, &src, &[to]));
    }

    /// The marks of inputs, and their digest: where circuits are garbled.
    pub(super) fn inputs(&self, commands: &mut Vec<Command>, marks: Span, digest: Span) {
        let offsets = self.offsets.expect("circuits are garbled");
        let step = Cut::Marks {
            label: label::INPUT,
            by: By::Colour,
        };
        commands.push(cut(step, &[self.labels, offsets, self.numbers], &[marks]));
        commands.push(of_inputs([self.numbers, marks], digest));
    }
}

/// The digest of the marks of inputs.
pub(super) fn of_inputs(src: [Span; 2], to: Span) -> Command {
    cut(
        Cut::Digest {
            label: label::INPUTS,
        },
        &src,
        &[to],
    )
}

/// The digest that commits to a seed, or to the garbler's active labels.
pub(super) fn commit(label: u16, [number, nonce, value]: [Span; 3], to: Span) -> Command {
    cut(Cut::Digest { label }, &[number, nonce, value], &[to])
}

/// The evaluator's inputs out of their encoding: labels or bits.
pub(super) fn decode(shape: &Shape, encoded: Span, to: Span) -> Command {
    let own = shape.inputs[EVALUATOR.index()];
    let step = Cut::Matrix {
        key: Some(ENCODING),
    };
    let rest = part(encoded, own, shape.encoded - own);
    cut(step, &[part(encoded, 0, own), rest], &[to])
}
