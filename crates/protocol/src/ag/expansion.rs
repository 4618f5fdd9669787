//! Silent transfers of batches: correlations under the parties' own offsets are authenticated bits as they are.
//!
//! A lane has one stream of correlations in each direction. The first full chunk of a lane makes a base by the extension, and rounds of silent transfers follow where
//! their outputs are due, each of which leaves the base of the next one. A batch takes the next ones of the stream, wherever a round ends. So which correlations a batch
//! takes, and which rounds it has, follow from the plan and the number of the chunk. Bases and outputs stay in the workspace, which one chunk of the lane has after the other.
//!
//! Chunks of fewer rows, inputs and what hides outputs take transfers of the extension.

use std::ops::Range;

use veil_device::ot::Choices;
use veil_device::{Command, Layout, Lpn, Silent, Span};
use veil_session::Frame;

use super::steps::Party;
use super::{BACK_LEAVES, LEAVES, OFFSET, Shape, TREES};
use crate::ot::extension::{At, Challenge};
use crate::ot::silent::{self, Base, Receiver, Sender};
use crate::plan::{Plan, Stock};
use crate::round::{Cost, Round};
use crate::yao::{COMMON, PRIVATE};

/// Sets of parameters that a plan chooses from.
const SETS: [Lpn; 2] = [Lpn::C11, Lpn::C12];

/// Both ends of the silent transfers of a party, in the workspace of a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    sender: Sender,
    receiver: Receiver,
}

impl Ends {
    pub(super) fn new(layout: &mut Layout, me: Party, set: Lpn) -> Self {
        let base = |leaves, back| Base {
            trees: TREES,
            challenge: Challenge::Coin(PRIVATE),
            leaves,
            common: COMMON,
            private: PRIVATE,
            back,
        };
        let (some, all) = if me.garbles() {
            (base(LEAVES, false), base(BACK_LEAVES, true))
        } else {
            (base(BACK_LEAVES, true), base(LEAVES, false))
        };
        Ends {
            sender: Sender::new(layout, me.peer(), set, some, OFFSET),
            receiver: Receiver::new(layout, me.peer(), set, all),
        }
    }

    /// What the next chunk of the lane finds as it is.
    pub(super) fn kept(&self) -> Vec<Span> {
        [self.sender.kept(), self.receiver.kept()].concat()
    }

    pub(super) fn base(&self, at: At) -> [Vec<Round>; 2] {
        [self.receiver.base(at), self.sender.base(at)]
    }

    pub(super) fn round(&self, place: u32, number: u64) -> [Vec<Round>; 2] {
        [
            self.receiver.round(place, number, true).into(),
            self.sender.round(place, number, true).into(),
        ]
    }

    /// Outputs become MACs and keys.
    pub(super) fn take(&self, from: &Range<u64>, at: u64, to: [Span; 2]) -> [Command; 2] {
        let outputs = [self.receiver.outputs(true), self.sender.outputs(true)];
        let (first, count) = (from.start, from.end - from.start);
        let step = Silent::Take { first, at, count };
        [0, 1].map(|k| silent::step(step, vec![outputs[k]], vec![to[k]]))
    }
}

/// What a batch does to have its correlations, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    /// The base of the stream.
    Base,
    /// Round `number` of the stream, which is round `nth` of the batch.
    Round { number: u64, nth: u32 },
    /// Outputs of the last round, to the batch's correlations from number `at` on.
    Take { from: Range<u64>, at: u64 },
}

/// The stream of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stream {
    pub(super) set: Lpn,
    /// Correlations of a batch.
    batch: u64,
    /// Batches of a chunk.
    batches: u64,
}

impl Stream {
    /// Correlations of a round that are for use.
    pub(super) fn usable(&self) -> u64 {
        u64::from(silent::outputs(self.set, true)) * u64::from(self.set.leaves())
    }

    /// Rounds of a batch, at most.
    pub(super) fn most_rounds(&self) -> u32 {
        self.batch.div_ceil(self.usable()) as u32
    }

    /// Counters of leaves that the base takes.
    pub(super) fn leaves(&self, chunk_rows: u32) -> u64 {
        let (items, of) = silent::items(self.set);
        Choices::blocks(of, items, chunk_rows)
    }

    /// What batch `number` does of the chunk that is number `chunk` of its lane's.
    pub(super) fn pieces(&self, chunk: u64, number: u64) -> Vec<Piece> {
        let first = (chunk * self.batches + number) * self.batch;
        let usable = self.usable();
        let mut pieces = Vec::new();
        if first == 0 {
            pieces.push(Piece::Base);
        }
        let (mut at, mut nth) = (0, 0);
        while at < self.batch {
            let within = (first + at) % usable;
            if within == 0 {
                let number = (first + at) / usable;
                pieces.push(Piece::Round { number, nth });
                nth += 1;
            }
            let count = (usable - within).min(self.batch - at);
            let from = within..within + count;
            pieces.push(Piece::Take { from, at });
            at += count;
        }
        pieces
    }

    /// Rounds of a lane with so many full chunks.
    fn rounds(&self, chunks: u64) -> u64 {
        let all = chunks.saturating_mul(self.batches);
        all.saturating_mul(self.batch).div_ceil(self.usable())
    }

    /// Bytes of both parties in such a lane.
    fn bytes(&self, chunks: u64) -> u64 {
        let round: u64 = silent::cost(self.set).iter().map(|cost| cost.bytes).sum();
        let base = of_extension(self.set.base());
        let rounds = self.rounds(chunks).saturating_mul(2 * round);
        if chunks > 0 { base + rounds } else { 0 }
    }
}

/// Bytes of so many transfers of the extension, in both directions.
fn of_extension(transfers: u64) -> u64 {
    transfers.saturating_mul(2 * u64::from(TREES.count()) / 8)
}

/// What transfers of batches send in the full chunks of a plan, in bytes of both parties: silent ones, by the better set, and those of the extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferBytes {
    /// Transfers.
    pub transfers: u64,
    /// Bytes of silent ones.
    pub silent: u64,
    /// Bytes of those of the extension.
    pub extension: u64,
}

/// Full chunks of each lane: so many lanes have so many of them.
fn lanes(plan: &Plan) -> Vec<u64> {
    let mut lanes = vec![0; usize::from(plan.lanes)];
    let (each, full) = (u64::from(plan.lanes), u64::from(plan.longest_chunk()));
    let mut first = 0u64;
    for block in &plan.job.blocks {
        let (count, chunks) = (
            block.rows / full.max(1),
            block.rows.div_ceil(plan.chunk_rows.into()),
        );
        let count = count.min(chunks);
        for (lane, of) in (0..).zip(&mut lanes) {
            // Of the numbers from `first` on those that are the lane's.
            *of += numbers_of(first, count, (lane, each));
        }
        first += chunks;
    }
    lanes
}

/// How many of `count` numbers from `first` on are of a lane.
fn numbers_of(first: u64, count: u64, (lane, lanes): (u64, u64)) -> u64 {
    let below = |end: u64| (end + lanes - 1 - lane) / lanes;
    below(first + count) - below(first)
}

/// Full chunks of the frame's lane before it; nothing if the frame is no full chunk.
pub(crate) fn number_in_lane(plan: &Plan, frame: Frame) -> Option<u64> {
    let index = u64::from(frame.chunk.checked_sub(1)?);
    if frame.rows != plan.longest_chunk() {
        return None;
    }
    let (lanes, full) = (u64::from(plan.lanes), u64::from(plan.longest_chunk()));
    let (mut first, mut before) = (0, 0);
    for block in &plan.job.blocks {
        let chunks = block.rows.div_ceil(plan.chunk_rows.into());
        let here = (block.rows / full.max(1)).min(index.saturating_sub(first));
        before += numbers_of(first, here, (index % lanes, lanes));
        first += chunks;
        if first > index {
            break;
        }
    }
    Some(before)
}

/// The stream of a plan by a set.
pub(super) fn stream(plan: &Plan, shape: &Shape, set: Lpn) -> Stream {
    Stream {
        set,
        batch: u64::from(shape.arrays()) * u64::from(shape.candidates),
        batches: shape.batches(),
    }
    .checked(plan)
}

impl Stream {
    /// A plan without gates has no batches that take something.
    fn checked(self, plan: &Plan) -> Self {
        let takes = plan.stock == Stock::Made || plan.products() > 0;
        let batches = if takes { self.batches } else { 0 };
        Stream { batches, ..self }
    }

    /// What all lanes of a plan send by it.
    fn of_plan(&self, plan: &Plan) -> TransferBytes {
        let lanes = lanes(plan);
        let chunks: u64 = lanes.iter().sum();
        let transfers = chunks
            .saturating_mul(self.batches)
            .saturating_mul(self.batch);
        TransferBytes {
            transfers: transfers.saturating_mul(2),
            silent: lanes.iter().map(|chunks| self.bytes(*chunks)).sum(),
            extension: of_extension(transfers),
        }
    }

    /// PRF calls under the common key: rows, in both directions and all lanes.
    pub(crate) fn calls(&self, plan: &Plan) -> u64 {
        let rounds: u64 = lanes(plan).iter().map(|chunks| self.rounds(*chunks)).sum();
        rounds.saturating_mul(2 * self.set.row_blocks())
    }

    /// What a party sends for bases and rounds in all lanes: `base` and `round` are the costs of one.
    pub(super) fn cost(&self, plan: &Plan, [base, round]: [Cost; 2]) -> Cost {
        let of = |chunks: &u64| base * u64::from(*chunks > 0) + round * self.rounds(*chunks);
        lanes(plan)
            .iter()
            .map(of)
            .fold(Cost::default(), |a, b| a + b)
    }
}

/// The set by which a plan's transfers send the fewest bytes, with what they send; nothing without batches that take transfers.
pub(crate) fn best(plan: &Plan) -> Option<(Lpn, TransferBytes)> {
    if plan.stock == Stock::Used {
        return None;
    }
    let shape = Shape::of(plan);
    let all = SETS.map(|set| (set, stream(plan, &shape, set).of_plan(plan)));
    let all = all.into_iter().filter(|(_, bytes)| bytes.transfers > 0);
    all.min_by_key(|(_, bytes)| bytes.silent)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Batches of all chunks take every correlation of every round once, in order, each round follows the one before when its outputs are due, and a batch has no
        /// more rounds than it has places for.
        #[test]
        fn batches_take_every_correlation_once(
            batch in 1..20_000u64,
            batches in 1..5u64,
            chunks in 1..5u64,
            trees in 200..400u32,
        ) {
            let stream = Stream { set: Lpn::of(trees, 6, 4), batch, batches };
            let usable = stream.usable();
            let (mut next, mut rounds) = (0, 0);
            for (chunk, number) in (0..chunks).flat_map(|c| (0..batches).map(move |n| (c, n))) {
                let (mut at, mut of_batch) = (0, 0);
                for piece in stream.pieces(chunk, number) {
                    match piece {
                        Piece::Base => prop_assert_eq!((next, rounds), (0, 0)),
                        Piece::Round { number, nth } => {
                            prop_assert_eq!((number, nth, next), (rounds, of_batch, rounds * usable));
                            (rounds, of_batch) = (rounds + 1, of_batch + 1);
                        }
                        Piece::Take { from, at: to } => {
                            prop_assert_eq!((to, from.start + (rounds - 1) * usable), (at, next));
                            prop_assert!(from.end <= usable && !from.is_empty());
                            at += from.end - from.start;
                            next += from.end - from.start;
                        }
                    }
                }
                prop_assert_eq!(at, batch);
                prop_assert!(of_batch <= stream.most_rounds());
            }
            prop_assert_eq!(rounds, stream.rounds(chunks));
        }
    }
}
