//! Costs of tasks, by formula: see "Cost" in the protocol's documentation.

use veil_device::Garbling;
use veil_job::Holder;
use veil_math::Ring;
use veil_session::{Frame, Peer};

use super::inputs::Inputs;
use super::layers::{Group, Messages};
use super::{EVALUATOR, GARBLER, opening, transfers};
use crate::choose::garbling;
use crate::plan::{Plan, Stock};
use crate::round::{Cost, Task};

/// Bytes of a digest.
const DIGEST: u64 = 32;

/// What `task` costs `me` in `frame`.
pub(super) fn of(plan: &Plan, messages: &Messages, me: Peer, task: Task, frame: Frame) -> Cost {
    let rows = u64::from(frame.rows);
    match task {
        Task::SetUp => {
            let layers = of_layers(plan, &messages.job, me, 1);
            list(me) + of_inputs(&Inputs::of_job(plan, me), me, 1) + layers
        }
        Task::Inputs { block } => of_inputs(&Inputs::of_rows(plan, me, block as usize), me, rows),
        Task::Layers => {
            let block = plan.block_of(frame) as usize;
            let inputs = of_inputs(&Inputs::of_cycles(plan, me, block), me, rows);
            let cycles = plan.cycles.as_ref();
            let windows = cycles.map_or(0, |cycles| cycles.count.div_ceil(cycles.window));
            let cycle = of_layers(plan, &messages.rows, me, rows);
            let runs = messages.runs(plan);
            let layers = Cost {
                bytes: (cycle * plan.cycle_count()).bytes,
                ..cycle * runs
            };
            // The tables of a window wait for its corrections; where there are none, nothing is waited for but the first tables.
            let waits = if inputs.rounds > 0 { windows } else { 1 };
            let layers = Cost {
                rounds: layers.rounds.min(waits),
                ..layers
            };
            inputs * windows + layers
        }
        Task::Open(_) => of_opening(plan, me, rows),
        Task::Agree | Task::Totals | Task::OpenTotals(_) => Cost::default(),
    }
}

/// Bytes of the tables of a gate in so many rows: two labels, or three halves and five bits.
pub(crate) fn table(garbling: Garbling, rows: u64) -> u64 {
    match garbling {
        Garbling::HalfGates => 32 * rows,
        Garbling::ThreeHalves => 24 * rows + 5 * Ring::Bits.bytes(rows),
    }
}

/// The digest of the list of accepted inputs, to the other party.
fn list(me: Peer) -> Cost {
    let digests = u64::from(me.party().is_some());
    Cost {
        rounds: digests,
        messages: digests,
        bytes: DIGEST * digests,
    }
}

fn of_inputs(inputs: &Inputs<'_>, me: Peer, rows: u64) -> Cost {
    let transferred = inputs.transferred();
    let bits = Ring::Bits.bytes(rows);
    if let (Peer::Party(party), Stock::Used) = (me, inputs.stock()) {
        // The garbler waits for corrections, and the evaluator for masked labels.
        return Cost {
            rounds: u64::from(transferred > 0),
            ..transfers::sent_of_stock(party == GARBLER, transferred, rows)
        };
    }
    match me {
        // The garbler waits for what the evaluator sends, and the evaluator for the garbler that waits: a round trip, with the tables.
        Peer::Party(EVALUATOR) => Cost {
            rounds: u64::from(transferred > 0),
            ..transfers::sent(transferred, rows)
        },
        Peer::Party(GARBLER) => Cost {
            rounds: u64::from(transferred > 0),
            ..Cost::default()
        },
        Peer::Owner(owner) => {
            let mine = inputs.holders().filter(|(_, h)| *h == Holder::Owner(owner));
            mine.fold(Cost::default(), |cost, (width, _)| Cost {
                rounds: 0,
                messages: cost.messages + u64::from(width > 0),
                bytes: cost.bytes + u64::from(width) * bits,
            })
        }
        Peer::Party(_) | Peer::Recipient(_) => Cost::default(),
    }
}

/// Tables: the garbler sends them as they are made, and the evaluator waits for the first ones only.
fn of_layers(plan: &Plan, groups: &[Group], me: Peer, rows: u64) -> Cost {
    let messages = groups.iter().filter(|group| group.gates > 0).count() as u64;
    let kinds = garbling(plan.job.security.tables).tables().len() as u64;
    match me {
        Peer::Party(GARBLER) => Cost {
            rounds: 0,
            messages: kinds * messages,
            bytes: groups
                .iter()
                .map(|group| {
                    u64::from(group.gates) * table(garbling(plan.job.security.tables), rows)
                })
                .sum(),
        },
        Peer::Party(_) => Cost {
            rounds: messages.min(1),
            ..Cost::default()
        },
        Peer::Owner(_) | Peer::Recipient(_) => Cost::default(),
    }
}

fn of_opening(plan: &Plan, me: Peer, rows: u64) -> Cost {
    let outputs = plan.outputs.iter().zip(&plan.job.audiences);
    outputs.fold(Cost::default(), |cost, (output, audience)| {
        let to = match me.party() {
            Some(_) => opening::receivers(*audience)
                .filter(|peer| *peer != me)
                .count() as u64,
            None => 0,
        };
        let share = u64::from(output.width) * Ring::Bits.bytes(rows);
        Cost {
            rounds: cost.rounds.max(u64::from(audience.includes(me))),
            messages: cost.messages + to * u64::from(output.width > 0),
            bytes: cost.bytes + to * share,
        }
    })
}
