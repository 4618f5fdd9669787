//! Layers of products: one message per party, one round.
//!
//! P_i computes r_i, masked by α_i = ρ_i - ρ_{i-1}, and sends it to P_{i+1}; the new share is (r_i, r_{i-1}).

use veil_device::{Command, Draw, Form, Op, ProgramId, Span};
use veil_math::Ring;
use veil_prss::Use;
use veil_session::{PartyId, Peer};

use super::regions::{RECEIVE, RECEIVE_SUMS, SEND, SEND_SUMS};
use super::{BITS, KEY_OWN, KEY_PREVIOUS, PREVIOUS, Z64, Z128, place, transfer};
use crate::plan::{Gives, LayerPlan, Plan, SLOTS, UNIFORMS};
use crate::round::Round;

pub(super) fn rounds(plan: &Plan, me: Peer) -> Vec<Round> {
    let Peer::Party(me) = me else {
        return Vec::new();
    };
    let rounds = plan.layers.iter().enumerate();
    let mut rounds: Vec<Round> = rounds.map(|(k, layer)| round(plan, me, k, layer)).collect();
    let last = rounds
        .last_mut()
        .expect("the last layer computes what is linear");
    last.finish.extend(super::opening::keep(plan, Gives::Row));
    rounds
}

/// The layers of the set-up: on one row, from values that all rows share to others that they all share.
pub(super) fn job_rounds(plan: &Plan, me: Peer) -> Vec<Round> {
    let (Peer::Party(me), Some(job)) = (me, &plan.job_plan) else {
        return Vec::new();
    };
    let before = plan.layers.len();
    let mut rounds: Vec<Round> = job
        .layers
        .iter()
        .enumerate()
        .map(|(k, layer)| round(plan, me, before + k, layer))
        .collect();
    let copy = |from: (u16, u32), to: (u16, u32), count, part| {
        let span = |(region, first)| Span {
            region,
            part,
            first,
            count,
        };
        super::combine(plan.ring, vec![span(from)], 0, span(to))
    };
    for part in [super::OWN, PREVIOUS] {
        for &(uniform, slot, width) in &job.inputs {
            // Before everything else of the first layer.
            rounds[0]
                .local
                .insert(0, copy((UNIFORMS, uniform), (SLOTS, slot), width, part));
        }
        let last = rounds
            .last_mut()
            .expect("the last layer computes what is linear");
        last.finish.push(copy(
            (SLOTS, job.slot),
            (UNIFORMS, job.uniform),
            job.width,
            part,
        ));
    }
    rounds
}

fn round(plan: &Plan, me: PartyId, index: usize, layer: &LayerPlan) -> Round {
    let message = |region, count| Span {
        region,
        part: 0,
        first: 0,
        count,
    };
    let mut round = Round {
        place: place::LAYERS + index as u32,
        ..Round::default()
    };
    let mut run = Command::new(
        Op::Linear,
        vec![],
        vec![
            message(SEND, layer.products),
            message(SEND_SUMS, layer.sums),
        ],
    );
    run.program = Some(ProgramId(layer.program as u32));
    run.constants = constants(plan.ring, me);
    if layer.products + layer.sums > 0 {
        let (form, tag): (&'static Form, Use) = match plan.ring {
            Ring::Bits => (&BITS, Use::AND3),
            Ring::Z64 => (&Z64, Use::MUL3),
            Ring::Z128 => (&Z128, Use::MUL3),
        };
        run.op = Op::Product(form);
        let draw = |key, tag, first, minus| Draw {
            key,
            tag,
            first,
            minus,
        };
        run.draws = vec![
            draw(KEY_OWN, tag, layer.first_draw, false),
            draw(KEY_PREVIOUS, tag, layer.first_draw, true),
            draw(KEY_OWN, Use::SUM3, layer.first_sum_draw, false),
            draw(KEY_PREVIOUS, Use::SUM3, layer.first_sum_draw, true),
        ];
        let received = vec![
            message(RECEIVE, layer.products),
            message(RECEIVE_SUMS, layer.sums),
        ];
        let (next, previous) = (Peer::Party(me.next()), Peer::Party(me.previous()));
        for (part, count) in [(0, layer.products), (1, layer.sums)] {
            if count > 0 {
                round.sends.push(transfer(run.dst[part], next, part as u16));
                round
                    .recvs
                    .push(transfer(received[part], previous, part as u16));
            }
        }
        let mut scatter = Command::new(Op::Scatter { part: PREVIOUS }, received, vec![]);
        scatter.program = run.program;
        round.finish.push(scatter);
    }
    round.local.push(run);
    round
}

/// Which components public constants act on: of bits all three u_i (an odd number of flips is one), of rings u_0 only, which party
/// 0 holds as its own and party 1 as its previous.
fn constants(ring: Ring, me: PartyId) -> u8 {
    match (ring, me.index()) {
        (Ring::Bits, _) => 0b11,
        (Ring::Z64 | Ring::Z128, 0) => 0b01,
        (Ring::Z64 | Ring::Z128, 1) => 0b10,
        (Ring::Z64 | Ring::Z128, _) => 0b00,
    }
}
