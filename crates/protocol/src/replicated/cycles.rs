//! The layers of a sequential circuit, cycle by cycle.
//!
//! The rounds of a cycle are the rounds of the plan's layers, with the number of the cycle in the names of their messages, and with all
//! counters advanced past the earlier cycles. Inputs of a window of cycles are shared before the first of them; registers are copied before
//! every cycle; outputs of every cycle are copied after it, to slots that are opened at the end. Products of bits of several cycles are
//! proved together, as long as their batch takes no more memory than one of a single cycle may.

use std::ops::Range;
use std::sync::Arc;

use veil_device::{Command, Op, ProgramId, Span};
use veil_session::{PartyId, Peer};

use super::regions::{RECEIVE, TRACE};
use super::sharing::Inputs;
use super::{
    Batch, CHECK_PLACES, Frame, Scheme, ahead, batches, combine, layers, place, with_proofs,
};
use crate::plan::{Plan, SLOTS};
use crate::round::Round;

/// Places of the inputs of cycles, and of what is compared of them: behind all others.
pub(super) fn places(scheme: &Scheme, plan: &Plan) -> (u32, u32) {
    let checks = CHECK_PLACES * Frame::ALL.len() as u32;
    let checks = if plan.has_macs() { checks } else { 0 };
    let first = super::place_of_checks(scheme, plan) + checks;
    (first, first + 1)
}

/// What one participant does in a cycle.
#[derive(Debug)]
pub(super) struct Cycles {
    scheme: &'static Scheme,
    plan: Arc<Plan>,
    /// At a party.
    me: Option<PartyId>,
    /// Rounds of the inputs of a window, by block.
    inputs: Vec<Vec<Round>>,
    /// Layers in even and in odd chunks; with their proofs, if every cycle has its own.
    layers: [Vec<Round>; 2],
    /// The batch that several cycles are.
    batch: Option<Batch>,
    /// Proofs of a cycle, by counters of their number.
    proofs: u64,
    /// Places of their rounds.
    proving: Range<u32>,
}

impl Cycles {
    /// The cycles of a plan, if it has any.
    pub(super) fn of(scheme: &'static Scheme, plan: &Arc<Plan>, me: Peer) -> Option<Self> {
        plan.cycles.as_ref()?;
        let batches = batches(scheme, plan);
        let together = |b: &&Batch| b.cycles > 1 && b.layers.start < plan.layers.len();
        let batch = batches.iter().find(together).cloned();
        let of_layers = |odd| {
            let Some(me) = me.party() else {
                return Vec::new();
            };
            let layers = layers(scheme, plan, me, 0..plan.layers.len(), odd).collect();
            match batch {
                Some(_) => layers,
                None => with_proofs(scheme, plan, me, 0, layers),
            }
        };
        let inputs = Inputs { scheme, plan, me };
        let blocks = 0..plan.job.blocks.len();
        Some(Cycles {
            scheme,
            me: me.party(),
            inputs: blocks.map(|block| inputs.cycles(block)).collect(),
            layers: [false, true].map(of_layers),
            proofs: batches.len() as u64,
            proving: {
                let behind = place::LAYERS + plan.all_layers().count() as u32;
                behind..super::place_of_checks(scheme, plan)
            },
            batch,
            plan: Arc::clone(plan),
        })
    }

    /// Whether it has nothing to do in a block.
    pub(super) fn rests(&self, block: usize) -> bool {
        self.me.is_none() && self.inputs[block].is_empty()
    }

    /// The rounds of a cycle, in chunks of a block that are odd or even.
    pub(super) fn rounds(&self, cycle: u64, block: usize, odd: bool) -> Arc<[Arc<Round>]> {
        let plan = self.plan.cycles.as_ref();
        let plan = plan.expect("these are the cycles of a plan that has them");
        let mut rounds = Vec::new();
        if cycle.is_multiple_of(plan.window) {
            rounds.extend(self.inputs[block].iter().cloned());
            if let Some(first) = rounds.first_mut() {
                first.feeds = true;
            }
        }
        let inputs = rounds.len();
        rounds.extend(self.layers[usize::from(odd)].iter().cloned());
        if self.me.is_some() {
            let before = self.before(cycle);
            rounds[inputs].begin_with(before);
            let last = rounds.len() - 1;
            rounds[last].finish.extend(self.after(cycle));
        }
        for round in &mut rounds {
            let each = if self.proving.contains(&round.place) {
                proof_counters(self.proofs)
            } else {
                plan.counters
            };
            advance(round, cycle * each);
        }
        if let Some(batch) = &self.batch {
            let done = cycle % batch.cycles;
            let one = u64::from(batch.products) / batch.cycles;
            let layers = &mut rounds[inputs..];
            for round in layers {
                trace(round, (done * one) as u32);
            }
            if done + 1 == batch.cycles || cycle + 1 == plan.count {
                rounds.extend(self.prove(&batch.of_cycles(done + 1), cycle / batch.cycles));
            }
        }
        let named = rounds.into_iter().map(|round| Round { cycle, ..round });
        named.map(Arc::new).collect()
    }

    /// The proof of the last cycles.
    fn prove(&self, batch: &Batch, number: u64) -> Vec<Round> {
        let proof = self.scheme.products.proof.as_ref();
        let mut rounds = match (proof, self.me) {
            (Some(proof), Some(me)) => (proof.rounds)(me, batch),
            _ => Vec::new(),
        };
        for round in &mut rounds {
            advance(round, number * proof_counters(self.proofs));
        }
        rounds
    }

    /// What is copied before a cycle.
    fn before(&self, cycle: u64) -> Vec<Command> {
        let plan = self.plan.cycles.as_ref();
        let plan = plan.expect("these are the cycles of a plan that has them");
        let place = (cycle % plan.window) as u32;
        let mut commands = Vec::new();
        for &(window, to, width) in &plan.inputs {
            commands.extend(self.copies(window + place * width, to, width));
        }
        let (next, to, registers) = plan.registers;
        if registers > 0 && cycle == 0 {
            let mut first = Command::new(Op::Linear, vec![], vec![]);
            first.program = Some(ProgramId(plan.initial as u32));
            let me = self.me.expect("a party computes");
            first.constants = (self.scheme.constants)(self.plan.ring, me);
            commands.push(first);
        } else if registers > 0 {
            commands.extend(self.copies(next, to, registers));
        }
        commands
    }

    /// What is copied after a cycle.
    fn after(&self, cycle: u64) -> Vec<Command> {
        let outputs = self.plan.cycles.iter().flat_map(|plan| &plan.outputs);
        let copies = outputs.flat_map(|&(from, all, width)| {
            let to = u64::from(all) + cycle * u64::from(width);
            self.copies(from, to as u32, width)
        });
        copies.collect()
    }

    /// Copies slots, all parts of them.
    fn copies(&self, from: u32, to: u32, count: u32) -> Vec<Command> {
        let span = |part, first| Span {
            region: SLOTS,
            component: part,
            first,
            count,
        };
        let copy = |part| combine(self.plan.ring, vec![span(part, from)], 0, span(part, to));
        self.scheme.parts().map(copy).collect()
    }
}

/// Counters between the proofs of one cycle and those of the next: the number of a batch has the upper half.
fn proof_counters(batches: u64) -> u64 {
    batches << 32
}

/// Advances all counters of a round.
fn advance(round: &mut Round, taken: u64) {
    let commands = round.local.iter_mut().chain(&mut round.finish);
    for call in commands.flat_map(|command| &mut command.calls) {
        call.first += taken;
    }
    ahead(round);
}

/// Moves what a proof needs of a cycle behind that of the cycles before.
fn trace(round: &mut Round, products: u32) {
    let commands = round.local.iter_mut().chain(&mut round.finish);
    let spans = commands.flat_map(|command| command.src.iter_mut().chain(&mut command.dst));
    let received = round.recvs.iter_mut().map(|recv| &mut recv.span);
    for span in spans.chain(received) {
        if [TRACE, RECEIVE].contains(&span.region) {
            span.first += products;
        }
    }
}
