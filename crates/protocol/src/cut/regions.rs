//! The regions of a party's workspace, and where the host reaches in.

use veil_device::cut::{DIGEST, MARKS};
use veil_device::{ColumnType, Layout, Region, Residency, Span};
use veil_job::Holder;
use veil_math::Ring;
use veil_session::Peer;

use super::bounds;
use crate::plan::{Plan, WorkspaceOf};
use crate::round::Spans;
use crate::yao::{EVALUATOR, GARBLER};

pub(super) use crate::plan::SLOTS;

/// Numbers of regions. Those of programs come first.
const TABLES: u16 = 3;
const INPUT: u16 = 4;
const OPENED: u16 = 5;
const LISTS: u16 = 6;
const COINS: u16 = 7;
pub(super) const HASHES: u16 = 8;
const ORDER: u16 = 9;
const BITS: u16 = 10;
const CHOICES: u16 = 11;
const SECRETS: u16 = 12;
const KEPT: u16 = 13;
const CIRCUITS: u16 = 14;
pub(super) const COMMITTED: u16 = 15;
pub(super) const MASKED: u16 = 16;
pub(super) const DIGESTS: u16 = 17;
pub(super) const SEEDS: u16 = 18;
pub(super) const SHOWN: u16 = 19;
const COLOURS: u16 = 20;
pub(super) const SHOWN_COLOURS: u16 = 21;
const WORK: u16 = 22;
const KEYS: u16 = 23;
const PICKED: u16 = 24;

/// Labels of a commitment to a circuit: digests of its seed, of the marks of its inputs, of the garbler's active labels.
pub(super) const COMMITMENT: u32 = 3 * DIGEST;

/// Part 0 of items of a region.
pub(super) fn span(region: u16, first: u32, count: u32) -> Span {
    Span {
        region,
        component: 0,
        first,
        count,
    }
}

/// Items of a span, from number `first` of it on.
pub(super) fn part(of: Span, first: u32, count: u32) -> Span {
    Span {
        first: of.first + first,
        count,
        ..of
    }
}

/// How large everything is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Circuits of a half: rows of the workspace.
    pub(super) half: u32,
    /// Bits of the garbler's inputs, and of the evaluator's.
    pub(super) inputs: [u32; 2],
    /// Bits of the sum over the garbler's inputs, and of what hides it.
    pub(super) check: u32,
    /// Bits that the evaluator's inputs are encoded in.
    pub(super) encoded: u32,
    /// Bits of the outputs.
    pub(super) outputs: u32,
    /// Gates of the longest message: 0 until messages are known.
    pub(super) gates: u32,
}

impl Shape {
    pub(super) fn of(plan: &Plan) -> Self {
        let s = plan.job.security.statistical.bits();
        let of = |party| {
            let ports = plan.inputs.iter().enumerate();
            let ports = ports.filter(|(k, _)| holder(plan, *k) == Holder::Party(party));
            ports.map(|(_, port)| port.width).sum()
        };
        let inputs: [u32; 2] = [of(GARBLER), of(EVALUATOR)];
        Shape {
            half: bounds::half(s),
            inputs,
            check: if inputs[0] > 0 { s.into() } else { 0 },
            encoded: bounds::encoding(inputs[1], s),
            outputs: plan.outputs.iter().map(|output| output.width).sum(),
            gates: 0,
        }
    }

    /// Wires whose labels come from the garbler: its inputs, and what hides their sum.
    pub(super) fn own(&self) -> u32 {
        self.inputs[0] + self.check
    }

    /// All input wires of a circuit: the garbler's, what hides their sum, the evaluator's encoded ones.
    pub(super) fn wires(&self) -> u32 {
        self.own() + self.encoded
    }

    /// Items of transfers: a bit for each row.
    pub(super) fn transfers(&self) -> u32 {
        self.encoded.div_ceil(self.half)
    }

    /// Labels of an evaluated circuit that are kept until it is known which are evaluated.
    fn kept(&self) -> u32 {
        2 + self.own() + MARKS * (self.wires() + self.outputs)
    }
}

/// Who holds a port. All blocks have the same holders.
pub(super) fn holder(plan: &Plan, port: usize) -> Holder {
    plan.job.blocks[0].holders[port]
}

/// The regions of `me` in a workspace. Both parties have all of them, some empty: one numbering for both.
pub(super) fn layout(shape: &Shape, plan: &Plan, me: Peer, workspace: WorkspaceOf) -> Layout {
    let chunk = workspace == WorkspaceOf::Rows && me.party().is_some();
    let evaluator = me == Peer::Party(EVALUATOR);
    let mut layout = Layout {
        chunk_rows: shape.half,
        regions: Vec::new(),
    };
    let mut add = |index: u16, residency, column, count: u32| {
        let count = if chunk || index == LISTS { count } else { 0 };
        let at = layout.add(Region {
            residency,
            column,
            components: 1,
            count,
        });
        assert_eq!(at, index, "regions are added in the order of their numbers");
    };
    let (bits, bit, labels) = (
        ColumnType::Rows(Ring::Bits),
        ColumnType::One(Ring::Bits),
        ColumnType::Labels,
    );
    let (resident, mapped) = (Residency::Resident, Residency::Mapped);
    let (wires, outputs) = (shape.wires(), shape.outputs);
    let [of_garbler, of_evaluator] = [!evaluator, evaluator].map(u32::from);
    add(SLOTS, resident, labels, plan.slots);
    add(SLOTS + 1, mapped, ColumnType::Label, 0);
    add(SLOTS + 2, mapped, ColumnType::Label, 0);
    add(TABLES, mapped, labels, 2 * shape.gates);
    add(INPUT, mapped, bit, shape.inputs.iter().sum());
    add(OPENED, Residency::Public, bit, of_evaluator * outputs);
    add(
        LISTS,
        mapped,
        ColumnType::Bytes(32),
        2 * u32::from(me.party().is_some()),
    );
    add(COINS, mapped, ColumnType::Label, 4);
    add(HASHES, mapped, ColumnType::Bytes(32), 3);
    add(ORDER, resident, ColumnType::Bytes(8 * shape.half), 1);
    let own = of_garbler * shape.own() + of_evaluator * shape.encoded;
    add(BITS, resident, bit, own + of_evaluator * shape.inputs[1]);
    add(
        CHOICES,
        resident,
        bits,
        of_evaluator * shape.transfers() + 2 * shape.check,
    );
    add(SECRETS, resident, labels, of_garbler * 2 * SECRET);
    add(KEPT, resident, labels, of_garbler * 2 * shape.kept());
    // Offset, start point, number, labels of inputs.
    let halves = 1 + of_garbler;
    add(CIRCUITS, resident, labels, halves * (3 + wires));
    add(COMMITTED, mapped, labels, 2 * COMMITMENT);
    add(MASKED, mapped, labels, 4 * shape.encoded);
    add(DIGESTS, mapped, labels, 2 * DIGEST);
    add(SEEDS, mapped, labels, SECRET);
    add(SHOWN, mapped, labels, shape.kept());
    add(COLOURS, resident, bits, 2 * shape.check);
    add(SHOWN_COLOURS, mapped, bits, shape.check);
    let work = shape.work();
    add(
        WORK,
        resident,
        labels,
        if evaluator { work.all } else { work.common },
    );
    add(KEYS, resident, labels, 3 * shape.transfers());
    let picked = COMMITMENT + DIGEST + 2 * shape.encoded;
    add(PICKED, resident, labels, of_evaluator * picked);
    layout
}

/// A seed, and what hides the commitment to it.
const SECRET: u32 = 2;

/// A circuit's secrets: those of a half, or of all.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) start: Span,
    /// What hides the commitment to the active labels.
    pub(super) nonce: Span,
    pub(super) active: Span,
    pub(super) marks: Span,
    pub(super) output_marks: Span,
}

impl Shape {
    fn kept_at(&self, region: u16, first: u32) -> Kept {
        let at = |from: u32, count| span(region, first + from, count);
        let marks = MARKS * self.wires();
        Kept {
            start: at(0, 1),
            nonce: at(1, 1),
            active: at(2, self.own()),
            marks: at(2 + self.own(), marks),
            output_marks: at(2 + self.own() + marks, MARKS * self.outputs),
        }
    }

    /// What the garbler keeps of the circuits of a half.
    pub(super) fn kept_of(&self, half: u32) -> Kept {
        self.kept_at(KEPT, half * self.kept())
    }

    /// The same of all, to be picked from.
    pub(super) fn all_kept(&self) -> Span {
        span(KEPT, 0, 2 * self.kept())
    }

    /// What the evaluator is shown of those that it evaluates.
    pub(super) fn shown(&self) -> Kept {
        self.kept_at(SHOWN, 0)
    }

    pub(super) fn all_shown(&self) -> Span {
        span(SHOWN, 0, self.kept())
    }

    /// Offsets, start points, numbers, and labels for 0 of input wires, of circuits of a half.
    pub(super) fn circuits(&self, half: u32) -> [Span; 4] {
        let all = 3 + self.wires();
        let at = |first, count| of_half(CIRCUITS, half, first, all, count);
        [at(0, 1), at(1, 1), at(2, 1), at(3, self.wires())]
    }

    /// Both labels of the evaluator's encoded inputs, masked, of a half.
    pub(super) fn masked(&self, half: u32) -> Span {
        of_half(MASKED, half, 0, 2 * self.encoded, 2 * self.encoded)
    }

    pub(super) fn all_masked(&self) -> Span {
        span(MASKED, 0, 4 * self.encoded)
    }

    /// Colours of the labels for 0 of the sums over the garbler's inputs: of a half.
    pub(super) fn colours(&self, half: u32) -> Span {
        of_half(COLOURS, half, 0, self.check, self.check)
    }

    pub(super) fn all_colours(&self) -> Span {
        span(COLOURS, 0, 2 * self.check)
    }

    pub(super) fn shown_colours(&self) -> Span {
        span(SHOWN_COLOURS, 0, self.check)
    }

    /// At the garbler: bits of its inputs, and what hides their sum.
    pub(super) fn own_bits(&self) -> Span {
        span(BITS, 0, self.own())
    }

    /// At the evaluator: encoded inputs, and the inputs themselves.
    pub(super) fn choice_bits(&self) -> [Span; 2] {
        [
            span(BITS, 0, self.encoded),
            span(BITS, self.encoded, self.inputs[1]),
        ]
    }

    /// The encoded inputs as choices of transfers.
    pub(super) fn choices(&self) -> Span {
        span(CHOICES, 0, self.transfers())
    }

    /// Colours of the labels of sums at the evaluator, and the sums.
    pub(super) fn sums(&self) -> [Span; 2] {
        let first = self.transfers();
        [
            span(CHOICES, first, self.check),
            span(CHOICES, first + self.check, self.check),
        ]
    }

    /// Labels of transfers; their keys for 0, or those chosen; those for 1.
    pub(super) fn keys(&self) -> [Span; 3] {
        [0, 1, 2].map(|k| span(KEYS, k * self.transfers(), self.transfers()))
    }

    /// Commitments, digests and masked labels of picked circuits, at the evaluator.
    pub(super) fn picked(&self) -> [Span; 3] {
        [
            span(PICKED, 0, COMMITMENT),
            span(PICKED, COMMITMENT, DIGEST),
            span(PICKED, COMMITMENT + DIGEST, 2 * self.encoded),
        ]
    }

    /// Labels that a circuit is computed with.
    pub(super) fn work(&self) -> Work {
        let mut next = 0;
        let mut take = |count| {
            let at = span(WORK, next, count);
            next += count;
            at
        };
        let mut work = Work {
            sums: take(self.check),
            decoded: take(self.inputs[1]),
            outputs: take(self.outputs),
            chain: [take(DIGEST), take(DIGEST)],
            digest: take(DIGEST),
            secrets: take(SECRET),
            numbers: take(2),
            marks: take(MARKS * self.wires()),
            output_marks: take(MARKS * self.outputs),
            active: take(self.wires()),
            opened: take(self.encoded),
            common: 0,
            all: 0,
        };
        work.common = work.marks.first;
        work.all = work.opened.first + work.opened.count;
        work
    }
}

/// Labels that a circuit is computed with. From `marks` on they are the evaluator's.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// Labels of the sums over the garbler's inputs.
    pub(super) sums: Span,
    /// Labels of the evaluator's inputs.
    pub(super) decoded: Span,
    pub(super) outputs: Span,
    /// Digests of the tables so far: one is made of the other.
    pub(super) chain: [Span; 2],
    pub(super) digest: Span,
    /// Secrets of the circuits that are evaluated, at the garbler.
    pub(super) secrets: Span,
    /// Numbers of the circuits of both halves.
    pub(super) numbers: Span,
    pub(super) marks: Span,
    pub(super) output_marks: Span,
    /// Active labels of all input wires.
    pub(super) active: Span,
    /// The evaluator's labels in circuits that are opened.
    pub(super) opened: Span,
    /// How many there are at the garbler, and at the evaluator.
    common: u32,
    all: u32,
}

/// The half of a span of two.
fn of_half(region: u16, half: u32, first: u32, all: u32, count: u32) -> Span {
    span(region, half * all + first, count)
}

/// Seeds of a half, and what hides the commitments to them.
pub(super) fn secrets(half: u32) -> [Span; 2] {
    [0, 1].map(|k| of_half(SECRETS, half, k, SECRET, 1))
}

pub(super) fn all_secrets() -> Span {
    span(SECRETS, 0, 2 * SECRET)
}

/// Seeds of the circuits that are opened, and what hid them.
pub(super) fn seeds() -> Span {
    span(SEEDS, 0, SECRET)
}

/// Commitments to the circuits of a half: digests of seeds, of marks, of active labels.
pub(super) fn commitments(half: u32) -> [Span; 3] {
    [0, 1, 2].map(|k| of_half(COMMITTED, half, k * DIGEST, COMMITMENT, DIGEST))
}

pub(super) fn all_commitments() -> Span {
    span(COMMITTED, 0, 2 * COMMITMENT)
}

/// Digests of the circuits of a half.
pub(super) fn digests(half: u32) -> Span {
    of_half(DIGESTS, half, 0, DIGEST, DIGEST)
}

pub(super) fn all_digests() -> Span {
    span(DIGESTS, 0, 2 * DIGEST)
}

/// Tables of gates of a message.
pub(super) fn tables(first: u32, gates: u32) -> Span {
    span(TABLES, 2 * first, 2 * gates)
}

/// The commitment to the evaluator's coin, the same again, and what the order follows from.
pub(super) fn hashes() -> [Span; 3] {
    [0, 1, 2].map(|k| span(HASHES, k, 1))
}

pub(super) fn order() -> Span {
    span(ORDER, 0, 1)
}

/// The evaluator's coin, what hides its commitment, the garbler's coin, the key of the sum over its inputs.
pub(super) fn coins() -> [Span; 4] {
    [0, 1, 2, 3].map(|k| span(COINS, k, 1))
}

/// Where a port's clear values are, and where they are among those of its holder.
pub(super) fn input(plan: &Plan, port: usize) -> (Span, u32) {
    let before = |k: &usize| holder(plan, *k) == holder(plan, port);
    let width = |k: usize| plan.inputs[k].width;
    let first = (0..port).map(width).sum();
    let of_holder = (0..port).filter(before).map(width).sum();
    (span(INPUT, first, width(port)), of_holder)
}

/// The opened values of an output.
pub(super) fn opened(plan: &Plan, port: usize) -> Span {
    let before = plan.outputs[..port].iter().map(|o| o.width).sum();
    span(OPENED, before, plan.outputs[port].width)
}

pub(super) fn all_opened(shape: &Shape) -> Span {
    span(OPENED, 0, shape.outputs)
}

/// The digest of the list of accepted inputs, of this party or of the other.
pub(super) fn list(mine: bool) -> Span {
    span(LISTS, u32::from(!mine), 1)
}

pub(super) fn spans(plan: &Plan, me: Peer) -> Spans {
    let ports = 0..plan.inputs.len();
    let mine = ports.filter(|k| holder(plan, *k).peer() == Some(me));
    let sees = |k: &usize| plan.job.audiences[*k].includes(me);
    Spans {
        inputs: mine.map(|k| (k, input(plan, k).0)).collect(),
        list: me.party().map(|_| list(true)),
        opened: (0..plan.outputs.len())
            .filter(sees)
            .map(|k| (k, opened(plan, k)))
            .collect(),
        ..Spans::default()
    }
}
