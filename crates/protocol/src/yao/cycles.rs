//! The layers of a sequential circuit, cycle by cycle: labels of registers are carried from one to the next.
//!
//! No message and no hash goes into that: both parties copy the labels that they have, all at once (Songhori, Hussain, Sadeghi, Schneider,
//! Koushanfar, "TinyGarble: Highly Compressed and Scalable Sequential Garbled Circuits", 2015). A gate has a number of its own in every
//! cycle, after the numbers of earlier cycles. Cycles of few gates are a round together, with one message. Inputs of a window of cycles get
//! their labels before the first of them. Of outputs of every cycle the colours are kept until the end, which are shares of them.

use std::sync::Arc;

use veil_device::{Command, Op, PrfCall, ProgramId, Repeat, Span, Step};
use veil_prss::DomainTag;
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
    messages: Messages,
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
    /// Of keys of transfers from a stock: one for each item, in all rows.
    pub(super) transfers: u64,
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
            messages: messages.clone(),
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

    /// The rounds of a run of cycles, in chunks of a block.
    pub(super) fn rounds(&self, run: u64, block: usize) -> Arc<[Arc<Round>]> {
        let (cycle, count) = self.messages.run(&self.plan, run);
        let mut rounds = self.window(cycle, block);
        match &self.layers[..] {
            [] => {}
            [layers] if self.messages.cycles > 1 => {
                rounds.push(self.several(layers.clone(), cycle, count));
            }
            _ => rounds.extend(self.one(cycle)),
        }
        let named = rounds.into_iter().map(|round| Round { cycle, ..round });
        named.map(Arc::new).collect()
    }

    /// The inputs of a window of cycles, if it begins with this one.
    fn window(&self, cycle: u64, block: usize) -> Vec<Round> {
        let window = self.cycles().window;
        let (inputs, taken) = &self.inputs[block];
        if !cycle.is_multiple_of(window) {
            return Vec::new();
        }
        let mut rounds = inputs.clone();
        if let Some(first) = rounds.first_mut() {
            first.feeds = true;
        }
        for PrfCall { tag, first, .. } in calls(&mut rounds) {
            *first += match *tag {
                DomainTag::ACTIVE => cycle / window * taken.labels,
                DomainTag::OT_LEAF => cycle / window * taken.leaves,
                DomainTag::OT_KEYS => cycle / window * taken.transfers,
                _ => cycle / window * taken.shares,
            };
        }
        rounds
    }

    /// A cycle that has messages of its own.
    fn one(&self, cycle: u64) -> Vec<Round> {
        let mut rounds = self.layers.clone();
        for PrfCall { tag, first, .. } in calls(&mut rounds) {
            *first += cycle * self.taken(*tag);
        }
        let mut before = if cycle == 0 { self.begin() } else { Vec::new() };
        before.extend(self.before(cycle).into_iter().map(|step| step.command));
        if let Some(first) = rounds.first_mut() {
            self.commands(first).splice(0..0, before);
        }
        if let Some(last) = rounds.last_mut() {
            let after = self.after(cycle).into_iter().map(|step| step.command);
            last.finish.extend(after);
        }
        rounds
    }

    /// `count` cycles, whose tables are one message. `round` has the layers of one.
    fn several(&self, mut round: Round, cycle: u64, count: u32) -> Round {
        let layers = std::mem::take(self.commands(&mut round));
        let mut body = self.before(cycle);
        body.extend(layers.into_iter().map(|mut command| {
            for PrfCall { tag, first, .. } in &mut command.calls {
                *first += cycle * self.taken(*tag);
            }
            let taken = |call: &PrfCall| self.taken(call.tag);
            let tables = regions::tables(&self.plan, 0, self.garbles.gates as u32);
            let all: Vec<u32> = tables.iter().map(|span| span.count).collect();
            let moved = |spans: &[Span]| all[..spans.len()].to_vec();
            Step {
                src: moved(&command.src),
                dst: moved(&command.dst),
                calls: command.calls.iter().map(taken).collect(),
                command,
            }
        }));
        body.extend(self.after(cycle));
        let repeat = Op::Repeat(Arc::new(Repeat {
            count,
            body,
            live: self.live(),
        }));
        let mut commands = if cycle == 0 { self.begin() } else { Vec::new() };
        commands.push(Command::new(repeat, vec![], vec![]));
        *self.commands(&mut round) = commands;
        for transfer in round.sends.iter_mut().chain(&mut round.recvs) {
            transfer.span.count *= count;
        }
        round
    }

    /// Where a party computes in a round of layers: before what it sends, or behind what it receives.
    fn commands<'a>(&self, round: &'a mut Round) -> &'a mut Vec<Command> {
        match self.me {
            Peer::Party(GARBLER) => &mut round.local,
            _ => &mut round.finish,
        }
    }

    /// Counters that a cycle takes.
    fn taken(&self, tag: DomainTag) -> u64 {
        match tag {
            DomainTag::DICE => self.garbles.gates * self.garbles.dice,
            _ => self.garbles.gates,
        }
    }

    /// Puts the first values of registers where each cycle finds the values that the one before it has left.
    fn begin(&self) -> Vec<Command> {
        let plan = self.cycles();
        let (next, to, registers) = plan.registers;
        if registers == 0 {
            return Vec::new();
        }
        let mut first = layers::run(self.me, &self.garbles, vec![]);
        first.program = Some(ProgramId(plan.initial as u32));
        vec![first, copy(to, next, registers)]
    }

    /// Labels that are read after a cycle: what registers take next, and outputs that are opened as they are.
    fn live(&self) -> Vec<Span> {
        let (next, _, registers) = self.cycles().registers;
        let every: Vec<usize> = opening::of_every_cycle(&self.plan).collect();
        let outputs = self.plan.outputs.iter().enumerate();
        let last = outputs.filter(|(port, output)| !every.contains(port) && output.width > 0);
        let mut live: Vec<Span> = last.map(|(_, output)| regions::result(output)).collect();
        if registers > 0 {
            live.push(regions::span(SLOTS, next, registers));
        }
        live
    }

    /// What is copied before a cycle, and how that moves on with each.
    fn before(&self, cycle: u64) -> Vec<Step> {
        let plan = self.cycles();
        let place = (cycle % plan.window) as u32;
        let inputs = plan.inputs.iter().map(|&(all, to, width)| Step {
            src: vec![width],
            ..Step::still(copy(all + place * width, to, width))
        });
        let mut steps: Vec<Step> = inputs.collect();
        let (next, to, registers) = plan.registers;
        if registers > 0 {
            steps.push(Step::still(copy(next, to, registers)));
        }
        steps
    }

    /// What is kept of a cycle: shares of its outputs, where those of all cycles are opened.
    fn after(&self, cycle: u64) -> Vec<Step> {
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
            Step {
                dst: vec![width],
                ..Step::still(Command::new(Op::Colour, vec![labels], vec![to]))
            }
        });
        colours.collect()
    }
}

/// The draws of rounds.
fn calls(rounds: &mut [Round]) -> impl Iterator<Item = &mut PrfCall> {
    rounds.iter_mut().flat_map(|round| {
        let commands = round.local.iter_mut().chain(&mut round.finish);
        commands.flat_map(|command| &mut command.calls)
    })
}

/// Copies slots.
fn copy(from: u32, to: u32, count: u32) -> Command {
    let span = |first| regions::span(SLOTS, first, count);
    combine(vec![span(from)], span(to))
}
