//! The layers of a sequential circuit, cycle by cycle: labels of registers are carried from one to the next.
//!
//! No message and no hash goes into that: both parties copy the labels that they have, all at once (Songhori, Hussain, Sadeghi, Schneider,
//! Koushanfar, "TinyGarble: Highly Compressed and Scalable Sequential Garbled Circuits", 2015). A gate has a number of its own in every
//! cycle, behind those of the cycles before. Inputs of a window of cycles get their labels before the first of them. Of outputs of every
//! cycle the colours are kept until the end, which are shares of them.

use std::sync::Arc;

use veil_device::{Command, Draw, Op, ProgramId, Span};
use veil_prss::Use;
use veil_session::Peer;

use super::inputs::Inputs;
use super::layers::{self, Garbles, Messages};
use super::regions::{self, SLOTS};
use super::transfers::Ends;
use super::{GARBLER, combine, opening};
use crate::plan::{CyclesPlan, Plan};
use crate::round::Round;

/// What one participant does in a cycle.
#[derive(Debug)]
pub(super) struct Cycles {
    plan: Arc<Plan>,
    me: Peer,
    /// The round of the inputs of a window, by block, and the counters that each of its draws takes.
    inputs: Vec<(Vec<Round>, Taken)>,
    layers: Vec<Round>,
    garbles: Garbles,
}

/// Counters that the inputs of a window take.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Taken {
    /// Of active labels.
    pub(super) labels: u64,
    /// Of leaves.
    pub(super) leaves: u64,
    /// Of an owner's share.
    pub(super) shares: u64,
}

impl Cycles {
    /// The cycles of a plan, if it has any.
    pub(super) fn of(plan: &Arc<Plan>, messages: &Messages, me: Peer, ends: &Ends) -> Option<Self> {
        plan.cycles.as_ref()?;
        let blocks = 0..plan.job.blocks.len();
        let inputs = blocks.map(|block| {
            let inputs = Inputs::of_cycles(plan, me, block);
            (inputs.rounds(ends), inputs.taken())
        });
        Some(Cycles {
            inputs: inputs.collect(),
            layers: layers::of_rows(plan, messages, me),
            garbles: Garbles::of(plan),
            me,
            plan: Arc::clone(plan),
        })
    }

    fn cycles(&self) -> &CyclesPlan {
        let cycles = self.plan.cycles.as_ref();
        cycles.expect("these are the cycles of a plan that has them")
    }

    /// Whether it has nothing to do in a block.
    pub(super) fn rests(&self, block: usize) -> bool {
        self.layers.is_empty() && self.inputs[block].0.is_empty()
    }

    /// The rounds of a cycle, in chunks of a block.
    pub(super) fn rounds(&self, cycle: u64, block: usize) -> Arc<[Arc<Round>]> {
        let window = self.cycles().window;
        let (inputs, taken) = &self.inputs[block];
        let mut rounds = Vec::new();
        if cycle.is_multiple_of(window) {
            rounds.extend(inputs.iter().cloned());
            if let Some(first) = rounds.first_mut() {
                first.feeds = true;
            }
        }
        let before = rounds.len();
        rounds.extend(self.layers.iter().cloned());
        let last = rounds.len().wrapping_sub(1);
        if let Some(first) = rounds.get_mut(before) {
            let commands = match self.me {
                Peer::Party(GARBLER) => &mut first.local,
                _ => &mut first.finish,
            };
            commands.splice(0..0, self.before(cycle));
            rounds[last].finish.extend(self.after(cycle));
        }
        let draws = rounds.iter_mut().flat_map(|round| {
            let commands = round.local.iter_mut().chain(&mut round.finish);
            commands.flat_map(|command| &mut command.draws)
        });
        for Draw { tag, first, .. } in draws {
            *first += match *tag {
                Use::GARBLE => cycle * self.garbles.gates,
                Use::DICE => cycle * self.garbles.gates * self.garbles.dice,
                Use::ACTIVE => cycle / window * taken.labels,
                Use::OT_LEAF => cycle / window * taken.leaves,
                _ => cycle / window * taken.shares,
            };
        }
        let named = rounds.into_iter().map(|round| Round { cycle, ..round });
        named.map(Arc::new).collect()
    }

    /// What is copied before a cycle.
    fn before(&self, cycle: u64) -> Vec<Command> {
        let plan = self.cycles();
        let place = (cycle % plan.window) as u32;
        let inputs = plan.inputs.iter();
        let inputs = inputs.map(|&(all, to, width)| copy(all + place * width, to, width));
        let mut commands: Vec<Command> = inputs.collect();
        let (next, to, registers) = plan.registers;
        if registers > 0 && cycle == 0 {
            let mut first = layers::run(self.me, &self.garbles, vec![]);
            first.program = Some(ProgramId(plan.initial as u32));
            commands.push(first);
        } else if registers > 0 {
            commands.push(copy(next, to, registers));
        }
        commands
    }

    /// What is kept of a cycle: shares of its outputs, where those of all cycles are opened.
    fn after(&self, cycle: u64) -> Vec<Command> {
        let Some(me) = self.me.party() else {
            return Vec::new();
        };
        let outputs = self.cycles().outputs.iter();
        let colours = outputs.zip(opening::of_every_cycle(&self.plan));
        let colours = colours.map(|(&(from, _, width), port)| {
            let all = regions::share(&self.plan, port, me.index() as u8);
            let to = Span {
                first: all.first + (cycle * u64::from(width)) as u32,
                count: width,
                ..all
            };
            let labels = regions::span(SLOTS, from, width);
            Command::new(Op::Colour, vec![labels], vec![to])
        });
        colours.collect()
    }
}

/// Copies slots.
fn copy(from: u32, to: u32, count: u32) -> Command {
    let span = |first| regions::span(SLOTS, first, count);
    combine(vec![span(from)], span(to))
}
