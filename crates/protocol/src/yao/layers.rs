//! Layers: tables of one or more of them go to the evaluator in one message.
//!
//! The garbler waits for no answer, and is ahead by as much as its connection takes. Layers of few gates share a message, so that a deep
//! circuit of one row costs a message per few thousand gates instead of one per layer.

use std::ops::Range;

use veil_device::{Command, Garbling, Op, PrfCall, ProgramId, Span};
use veil_job::Schedule;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::regions::{self, JOB_WIDE, SLOTS};
use super::{COMMON, EVALUATOR, GARBLER, OFFSET, PRIVATE, combine, cost, place, transfer};
use crate::choose::garbling;
use crate::plan::{LayerPlan, Plan};
use crate::round::Round;

/// Bytes of tables that a message has before another layer is put into the next: long enough for its overhead not to count, short enough for the
/// evaluator to be at work while the garbler makes more.
const MESSAGE: u64 = 64 << 10;

/// The same of a message of several cycles, in an order for hardware: it overlaps the cycles of a message.
const OVERLAPPED: u64 = 256 << 10;

/// Layers that go in one message, and how many gates they have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    pub(crate) layers: Range<usize>,
    pub(crate) gates: u32,
}

/// Messages of consecutive layers, in frames of so many rows.
fn groups(plan: &Plan, layers: &[LayerPlan], rows: u32) -> Vec<Group> {
    let table = cost::table(garbling(plan.job.security.tables), u64::from(rows));
    grouped(layers, MESSAGE / table)
}

/// Messages of consecutive layers: another one is put into a message as long as it has no more than so many gates.
pub(crate) fn grouped(layers: &[LayerPlan], most: u64) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (k, layer) in layers.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if u64::from(group.gates) + u64::from(layer.products) <= most => {
                group.layers.end = k + 1;
                group.gates += layer.products;
            }
            // What is linear after the last tables needs none of its own.
            Some(group) if layer.products == 0 => group.layers.end = k + 1,
            _ => groups.push(Group {
                layers: k..k + 1,
                gates: layer.products,
            }),
        }
    }
    groups
}

/// Cycles of a plan, and of a window.
fn windows(plan: &Plan) -> (u64, u64) {
    let cycles = plan.cycles.as_ref();
    cycles.map_or((1, 1), |cycles| (cycles.count, cycles.window))
}

/// Cycles whose tables are one message: as many as have as many bytes, within a window. What has more messages than one in a cycle has one
/// message for each of these.
fn together(plan: &Plan, groups: &[Group]) -> u32 {
    let [group] = groups else { return 1 };
    let most = match plan.job.security.schedule {
        Schedule::Layers => MESSAGE,
        Schedule::List(_) => OVERLAPPED,
    };
    let table = cost::table(
        garbling(plan.job.security.tables),
        u64::from(plan.longest_chunk()),
    );
    let bytes = table.saturating_mul(group.gates.into()).max(1);
    (most / bytes).clamp(1, windows(plan).1) as u32
}

/// Cycles of a sequential circuit that are garbled together: under the plan hash.
pub(crate) fn cycles_together(plan: &Plan) -> u32 {
    together(plan, &groups(plan, &plan.layers, plan.longest_chunk()))
}

/// All messages of a plan.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    /// Those of the rows.
    pub(super) rows: Vec<Group>,
    /// Those of the set-up.
    pub(super) job: Vec<Group>,
    /// Cycles of a sequential circuit whose tables are one message: more than one only where each has one message at most.
    pub(super) cycles: u32,
}

impl Messages {
    pub(super) fn of(plan: &Plan) -> Self {
        let job = plan.job_plan.as_ref();
        let rows = groups(plan, &plan.layers, plan.longest_chunk());
        Messages {
            cycles: together(plan, &rows),
            rows,
            job: job.map_or(vec![], |job| groups(plan, &job.layers, 1)),
        }
    }

    /// Gates of the longest message of the rows.
    pub(super) fn gates(&self) -> u32 {
        let most = self.rows.iter().map(|group| group.gates).max();
        most.unwrap_or(0) * self.cycles
    }

    /// Runs of cycles that are garbled together. None goes beyond the end of a window.
    pub(super) fn runs(&self, plan: &Plan) -> u64 {
        let (count, window) = windows(plan);
        let of = |cycles: u64| cycles.div_ceil(self.cycles.into());
        count / window * of(window) + of(count % window)
    }

    /// The first cycle of a run, and how many it has.
    pub(super) fn run(&self, plan: &Plan, run: u64) -> (u64, u32) {
        let (count, window) = windows(plan);
        let together = u64::from(self.cycles);
        let of_window = window.div_ceil(together);
        let at = run % of_window * together;
        let first = run / of_window * window + at;
        let cycles = together.min(window - at).min(count - first);
        (first, cycles as u32)
    }

    /// Rounds of the plan have places below this.
    pub(super) fn places(&self) -> u32 {
        place::LAYERS + (self.rows.len() + self.job.len()) as u32
    }
}

/// The layers of the rows, at a party.
pub(super) fn of_rows(plan: &Plan, messages: &Messages, me: Peer) -> Vec<Round> {
    me.party().map_or(vec![], |me| {
        rounds(plan, &plan.layers, &messages.rows, me, 0)
    })
}

/// The layers of the set-up: on one row, from job-wide values to others that they all share.
pub(super) fn of_job(plan: &Plan, messages: &Messages, me: Peer) -> Vec<Round> {
    let (Some(me), Some(job)) = (me.party(), &plan.job_plan) else {
        return Vec::new();
    };
    let before = messages.rows.len() as u32;
    let mut rounds = rounds(plan, &job.layers, &messages.job, me, before);
    let copy = |from: (u16, u32), to: (u16, u32), count| {
        let span = |(region, first)| regions::span(region, first, count);
        combine(vec![span(from)], span(to))
    };
    let first: Vec<Command> = (job.inputs.iter())
        .map(|&(job_value, slot, width)| copy((JOB_WIDE, job_value), (SLOTS, slot), width))
        .collect();
    if let Some(round) = rounds.first_mut() {
        // Before everything else of the first layer, at whichever end of the round that is.
        let commands = match me {
            GARBLER => &mut round.local,
            _ => &mut round.finish,
        };
        commands.splice(0..0, first);
    }
    if let Some(round) = rounds.last_mut() {
        round.finish.push(copy(
            (SLOTS, job.slot),
            (JOB_WIDE, job.job_value),
            job.width,
        ));
    }
    rounds
}

/// How gates are garbled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Garbles {
    scheme: Garbling,
    /// Counters of the dice of a gate.
    pub(super) dice: u64,
    /// Gates of all layers of the rows, in one cycle.
    pub(super) gates: u64,
}

impl Garbles {
    pub(super) fn of(plan: &Plan) -> Self {
        let scheme = garbling(plan.job.security.tables);
        Garbles {
            scheme,
            dice: scheme.dice(plan.chunk_rows),
            gates: plan.layers.iter().map(|l| u64::from(l.products)).sum(),
        }
    }
}

/// Garbles at the garbler, and evaluates at the evaluator.
pub(super) fn run(me: Peer, garbles: &Garbles, tables: Vec<Span>) -> Command {
    let scheme = garbles.scheme;
    match me {
        Peer::Party(GARBLER) => {
            let offset = OFFSET;
            Command::new(Op::Garble { scheme, offset }, vec![], tables)
        }
        _ => Command::new(Op::Evaluate { scheme }, tables, vec![]),
    }
}

/// A round per message, whose places begin with number `first`.
fn rounds(
    plan: &Plan,
    layers: &[LayerPlan],
    groups: &[Group],
    me: PartyId,
    first: u32,
) -> Vec<Round> {
    let garbles = Garbles::of(plan);
    let dice = garbles.dice;
    let mut gate = 0;
    let mut rounds = Vec::with_capacity(groups.len());
    for (number, group) in (place::LAYERS + first..).zip(groups) {
        let mut round = Round {
            place: number,
            ..Round::default()
        };
        let mut at = 0;
        for layer in &layers[group.layers.clone()] {
            let tables = regions::tables(plan, at, layer.products);
            let mut run = run(Peer::Party(me), &garbles, tables);
            run.program = Some(ProgramId(layer.program as u32));
            let call = |key, tag, first| PrfCall { key, tag, first };
            run.calls = vec![call(COMMON, DomainTag::GARBLE, gate)];
            if me == GARBLER && dice > 0 {
                run.calls.push(call(PRIVATE, DomainTag::DICE, gate * dice));
            }
            match me {
                GARBLER => round.local.push(run),
                _ => round.finish.push(run),
            }
            at += layer.products;
            gate += u64::from(layer.products);
        }
        for (part, message) in (0..).zip(regions::tables(plan, 0, group.gates)) {
            match me {
                _ if group.gates == 0 => {}
                GARBLER => round
                    .sends
                    .push(transfer(message, Peer::Party(EVALUATOR), part)),
                _ => round
                    .recvs
                    .push(transfer(message, Peer::Party(GARBLER), part)),
            }
        }
        rounds.push(round);
    }
    rounds
}
