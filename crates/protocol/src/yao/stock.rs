//! Transfers of a stock become those of inputs.
//!
//! Of the stock the evaluator has a label T with a random choice r in bit 0, the garbler Q with T = Q ⊕ r Δ', where Δ' is the offset of the generation. For a choice x of the run
//!
//! ```text
//! evaluator ─► garbler    d = x ⊕ r                          Q' = Q ⊕ d Δ', so that T = Q' ⊕ x Δ'
//! garbler ─► evaluator    c = H(Q') ⊕ H(Q' ⊕ Δ') ⊕ Δ         the label of 0 is H(Q'); the active one is H(T) ⊕ x c
//! ```
//!
//! with the run's own offset Δ, and H under the common key and the tweak of the transfer in its chunk: correlated transfers of random ones (Asharov, Lindell, Schneider, Zohner,
//! "More Efficient Oblivious Transfer and Extensions for Faster Secure Computation", 2013). Q' differs from transfer to transfer of the generation, and each is used once, so that no
//! hash of two runs has one input under one start point.

use veil_device::ot::Ot;
use veil_device::{ColumnType, Command, KeyId, Layout, Op, Region, Residency, Span};
use veil_job::StockKind;
use veil_math::Ring;
use veil_session::{Frame, Peer};

use super::inputs::Inputs;
use super::layers::Messages;
use super::{COMMON, EVALUATOR, GARBLER, OFFSET, Yao, combine, other, place, transfer};
use crate::ot::transfer::keys;
use crate::plan::{Plan, Stock};
use crate::round::{Put, Round, StockUse, Take};

/// The offset of the stock, at the garbler.
pub(super) const STOCKED: KeyId = KeyId(3);

/// Rounds of their own beside those of inputs: in rows, in the set-up, and of a window of cycles.
pub(super) const PLACES: u32 = 3;

/// Whether the garbler's masked offset is sent in the round at a place.
pub fn masks_offset(plan: &Plan, place: u32) -> bool {
    plan.stock == Stock::Used && place >= Messages::of(plan).places()
}

/// Parts of what a party needs for them in a workspace: each an item for each wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    garbles: bool,
    /// Labels of the stock.
    taken: Span,
    /// Choices of the stock, at the evaluator; bits that are 1, at the garbler.
    bits: Span,
    corrections: Span,
    /// Hashes: at the garbler also those of choice 1.
    keys: [Span; 2],
    message: Span,
}

/// Where the rounds are, and the number of the first transfer in the chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) place: u32,
    /// Place of the masked labels.
    pub(super) masked: u32,
    pub(super) first: u64,
}

impl End {
    /// Adds what transfers of so many wires at most need to the layout of a party.
    pub(super) fn new(layout: &mut Layout, garbles: bool, wires: u32) -> Self {
        let mut add = |residency, column, count| {
            let region = layout.add(Region {
                residency,
                column,
                components: 1,
                count,
            });
            layout.all(region, 0)
        };
        let (labels, bits) = (ColumnType::Labels, ColumnType::Rows(Ring::Bits));
        let (mapped, resident) = (Residency::Mapped, Residency::Resident);
        End {
            garbles,
            taken: add(mapped, labels, wires),
            bits: add(if garbles { mapped } else { resident }, bits, wires),
            corrections: add(mapped, bits, wires),
            keys: [
                add(resident, labels, wires),
                add(resident, labels, if garbles { wires } else { 0 }),
            ],
            message: add(mapped, labels, wires),
        }
    }

    /// The rounds of transfers of these bits, which become these labels.
    pub(super) fn rounds(&self, at: At, [bits, labels]: [Span; 2]) -> Vec<Round> {
        let of = self.of(labels.count);
        if of.garbles {
            of.give(at, labels)
        } else {
            of.take(at, bits, labels)
        }
    }

    /// Of so many wires.
    fn of(mut self, wires: u32) -> Self {
        let [zero, one] = &mut self.keys;
        for span in [
            &mut self.taken,
            &mut self.bits,
            &mut self.corrections,
            &mut self.message,
            zero,
            one,
        ] {
            span.count = span.count.min(wires);
        }
        self
    }

    fn take(&self, at: At, bits: Span, labels: Span) -> Vec<Round> {
        let peer = Peer::Party(GARBLER);
        let [own, _] = self.keys;
        let colours = Command::new(Op::Colour, vec![self.taken], vec![self.bits]);
        let corrects = combine(vec![self.bits, bits], self.corrections);
        let hash = keys(self.taken, &[own], None, (COMMON, at.first));
        let from = vec![own, self.message, bits];
        let choose = Command::new(Op::Ot(Ot::Choose), from, vec![labels]);
        vec![
            Round {
                place: at.place,
                feeds: true,
                local: vec![colours, corrects],
                sends: vec![transfer(self.corrections, peer, 0)],
                ..Round::default()
            },
            Round {
                place: at.masked,
                local: vec![hash],
                recvs: vec![transfer(self.message, peer, 0)],
                finish: vec![choose],
                ..Round::default()
            },
        ]
    }

    fn give(&self, at: At, labels: Span) -> Vec<Round> {
        let peer = Peer::Party(EVALUATOR);
        let encode =
            |offset, from, bits| Command::new(Op::Encode { offset }, vec![from, bits], vec![from]);
        let [zero, one] = self.keys;
        let turn = encode(STOCKED, self.taken, self.corrections);
        let hash = keys(self.taken, &self.keys, Some(STOCKED), (COMMON, at.first));
        vec![
            Round {
                place: at.place,
                feeds: true,
                recvs: vec![transfer(self.corrections, peer, 0)],
                finish: vec![turn, hash, combine(vec![zero], labels)],
                ..Round::default()
            },
            Round {
                place: at.masked,
                local: vec![
                    combine(vec![zero, one], self.message),
                    encode(OFFSET, self.message, self.bits),
                ],
                sends: vec![transfer(self.message, peer, 0)],
                ..Round::default()
            },
        ]
    }

    /// What the host puts before the round: labels of the stock, and bits that are 1.
    fn put(&self, first: u64, (wires, rows): (u32, u32)) -> Option<Take> {
        let of = self.of(wires);
        let put = Put {
            field: 0,
            span: of.taken,
            at: 0,
        };
        (wires > 0).then(|| Take {
            first,
            cells: u64::from(wires) * u64::from(rows),
            into: vec![put],
            ones: of.garbles.then_some(of.bits),
        })
    }
}

/// Transfers of each kind of frame.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    of_job: u32,
    /// Of each block: wires of a row, wires of a window of cycles, and transfers of all blocks before.
    of_blocks: Vec<(u32, u32, u64)>,
    windows: u64,
    all: u64,
}

impl Counts {
    pub(super) fn of(plan: &Plan, me: Peer) -> Self {
        let of_job = Inputs::of_job(plan, me).transferred();
        let windows = plan.cycles.as_ref();
        let windows = windows.map_or(0, |cycles| cycles.count.div_ceil(cycles.window));
        let mut all = u64::from(of_job);
        let of_block = |(number, block): (usize, &veil_job::Block)| {
            let of_rows = Inputs::of_rows(plan, me, number).transferred();
            let of_window = match windows {
                0 => 0,
                _ => Inputs::of_cycles(plan, me, number).transferred(),
            };
            let before = all;
            let of_row = u64::from(of_rows) + windows * u64::from(of_window);
            all = all.saturating_add(of_row.saturating_mul(block.rows));
            (of_rows, of_window, before)
        };
        let of_blocks = plan.job.blocks.iter().enumerate().map(of_block).collect();
        Counts {
            of_job,
            of_blocks,
            windows,
            all,
        }
    }

    /// Those of the run.
    pub(super) const fn all(&self) -> u64 {
        self.all
    }

    /// Of a frame of rows: wires of a row and of a window, and transfers of the frames before.
    fn before(&self, plan: &Plan, frame: Frame) -> Option<(u32, u32, u64)> {
        let chunk = frame.chunk.checked_sub(1).and_then(|k| plan.chunk(k))?;
        let (of_rows, of_window, before) = self.of_blocks[chunk.block as usize];
        let of_row = u64::from(of_rows) + self.windows * u64::from(of_window);
        Some((of_rows, of_window, before + chunk.first * of_row))
    }
}

impl Yao {
    /// What the run takes from a stock, at a party.
    pub(super) fn stock_use(&self) -> Option<StockUse> {
        let me = self.me.party().filter(|_| self.plan.stock == Stock::Used)?;
        Some(StockUse {
            makes: false,
            kind: StockKind::Transfers,
            peer: other(me),
            cells: self.counts.all(),
            offset: (me == GARBLER).then_some(STOCKED),
        })
    }

    /// The transfers before a round that feeds.
    pub(super) fn transfers_of(&self, place: u32, cycle: u64, frame: Frame) -> Option<Take> {
        let [rows, job] = self.stocked?;
        let size = |wires| (wires, frame.rows);
        if place == place::JOB_INPUTS {
            return job.put(0, size(self.counts.of_job));
        }
        let (of_rows, of_window, before) = self.counts.before(&self.plan, frame)?;
        let each = |wires: u32| u64::from(wires) * u64::from(frame.rows);
        match (place, &self.plan.cycles) {
            (place::INPUTS, _) => rows.put(before, size(of_rows)),
            (place::CYCLE_INPUTS, Some(cycles)) => {
                let window = cycle / cycles.window;
                let first = before + each(of_rows) + window * each(of_window);
                rows.put(first, size(of_window))
            }
            _ => None,
        }
    }
}
