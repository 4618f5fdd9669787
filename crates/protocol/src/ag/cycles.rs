//! Batches of a chunk, one after the other, and the inputs of cycles that they need.
//!
//! In a sequential circuit, cycles of few gates are a batch together. Their masks, and so ε and δ, follow from those of inputs and registers, and need no
//! label: a batch of many cycles has as many rounds as one of many layers. Inputs of a window of cycles are taken before the batches of
//! these cycles. Nothing is opened before all batches are checked, whatever cycle it is of: a party that deviates in a later cycle chooses its deviation
//! without the outputs of earlier ones.

use std::sync::Arc;

use veil_session::{Frame, Peer};

use super::batch::{self, Batch, Source};
use super::expansion::{self, number_in_lane};
use super::inputs::{self, Taken};
use super::steps::{Party, Rounds};
use super::{Ends, Shape, place};
use crate::ot::extension::At;
use crate::plan::Plan;
use crate::round::{Cost, Flow, Round};

/// The batches of a party, and the inputs of a participant.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) plan: Arc<Plan>,
    pub(super) shape: Arc<Shape>,
    pub(super) me: Peer,
    /// The transfers of a batch, and of a window of cycles, at a party.
    pub(super) of_batches: Option<Ends>,
    /// The silent transfers of the batches of full chunks, if they are silent.
    pub(super) of_streams: Option<expansion::Ends>,
    pub(super) of_windows: Option<Ends>,
}

impl Runs {
    /// The rounds of all batches, made when they are due.
    pub(super) fn flow(self: Arc<Self>, frame: Frame) -> Flow {
        let chunk = number_in_lane(&self.plan, frame);
        let block = self.plan.block_of(frame) as usize;
        let batches = self.shape.groups.len() as u64;
        if self.plan.cycles.is_some() {
            let runs = self.shape.runs();
            Flow::cycles(
                runs,
                Arc::new(move |run| self.rounds(run, (block, self.source(chunk)))),
            )
        } else if batches > 0 {
            let rounds = move |number: u64| -> Arc<[Arc<Round>]> {
                let source = self.source(chunk);
                self.batch(number, (0, 1), source).map(Arc::new).collect()
            };
            Flow::pieces(batches, Arc::new(rounds))
        } else {
            Flow::of(vec![])
        }
    }

    /// A batch of the chunk, in some cycles: the first, and how many.
    fn batch(
        &self,
        number: u64,
        (cycle, cycles): (u64, u32),
        source: Option<Source<'_>>,
    ) -> impl Iterator<Item = Round> + use<> {
        let Peer::Party(me) = self.me else {
            return vec![].into_iter();
        };
        let groups = &self.shape.groups;
        let of_cycle = (number % groups.len() as u64) as u32;
        let batch = Batch {
            plan: &self.plan,
            shape: &self.shape,
            me: Party(me),
            number,
            place: place::BATCHES + batch::ROUNDS * of_cycle,
            group: &groups[of_cycle as usize],
            of_cycle,
            cycle,
            cycles,
        };
        batch.rounds(source).into_iter()
    }

    /// Where the batches of a chunk have their authenticated bits from; `chunk` is its number in its lane, if it is full.
    fn source(&self, chunk: Option<u64>) -> Option<Source<'_>> {
        let stream = self.shape.stream(&self.plan);
        if let (Some(stream), Some(ends), Some(chunk)) = (stream, &self.of_streams, chunk) {
            return Some(Source::Stream {
                stream,
                ends,
                chunk,
            });
        }
        self.of_batches.as_ref().map(Source::Extension)
    }

    /// The inputs of a window, if a run begins one, and the batches of the run.
    fn rounds(&self, run: u64, (block, source): (usize, Option<Source<'_>>)) -> Arc<[Arc<Round>]> {
        let (cycle, cycles) = self.shape.run(run);
        let mut rounds = Vec::new();
        if let Some(window) = self.shape.window(cycle) {
            let of = (&*self.plan, &*self.shape);
            let (taken, ends) = (Taken::Window(window), self.of_windows.as_ref());
            rounds = inputs::rounds(of, (self.me, block), taken, ends);
            if let Some(first) = rounds.first_mut() {
                first.feeds = true;
            }
        }
        let batches = self.shape.groups.len() as u64;
        for number in run * batches..(run + 1) * batches {
            rounds.extend(self.batch(number, (cycle, cycles), source));
        }
        let named = rounds.into_iter().map(|round| Round { cycle, ..round });
        named.map(Arc::new).collect()
    }

    /// What all batches cost, given what rounds do: runs that begin windows, the others, and the last one, which may be shorter. Without rounds of silent transfers, which are
    /// [`Runs::carried`].
    pub(super) fn cost(&self, frame: Frame, of: impl Fn(&[Arc<Round>]) -> Cost) -> Cost {
        let source = match self.source(number_in_lane(&self.plan, frame)) {
            Some(Source::Stream { .. }) => Some(Source::Counted),
            other => other,
        };
        if self.plan.cycles.is_none() {
            let batches = 0..self.shape.groups.len() as u64;
            let of_batch = |number| {
                let rounds = self.batch(number, (0, 1), source);
                of(&rounds.map(Arc::new).collect::<Vec<_>>())
            };
            return batches.map(of_batch).fold(Cost::default(), |a, b| a + b);
        }
        let block = self.plan.block_of(frame) as usize;
        let of_run = |run| of(&self.rounds(run, (block, source)));
        let last = self.shape.runs() - 1;
        let begin = last.div_ceil(self.shape.runs_of_window());
        let times = |times: u64, run| match times {
            0 => Cost::default(),
            _ => of_run(run) * times,
        };
        times(begin, 0) + times(last - begin, 1) + of_run(last)
    }

    /// What bases and rounds of silent transfers cost in all lanes.
    pub(super) fn carried(&self, of: impl Fn(Vec<Round>) -> Cost) -> Cost {
        let (Some(stream), Some(ends), Peer::Party(me)) =
            (self.shape.stream(&self.plan), &self.of_streams, self.me)
        else {
            return Cost::default();
        };
        let merged = |both| {
            let mut rounds = Rounds::new(Party(me), 0);
            rounds.both(both);
            of(rounds.made)
        };
        let at = At {
            place: 0,
            first: 0,
            label: 0,
        };
        let costs = [merged(ends.base(at)), merged(ends.round(0, 0))];
        stream.cost(&self.plan, costs)
    }
}
