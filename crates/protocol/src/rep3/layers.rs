//! Layers of products: one message per party, one round.
//!
//! P_i computes r_i, masked by α_i = ρ_i - ρ_{i-1}, and sends it to P_{i+1}; the new share is (r_i, r_{i-1}).

use veil_device::{Command, Draw, Form, Op, Span};
use veil_math::Ring;
use veil_prss::Use;
use veil_session::{PartyId, Peer};

use super::{KEY_OWN, KEY_PREVIOUS, PREVIOUS, SCHEME};
use crate::plan::{LayerPlan, Plan};
use crate::replicated::regions::{RECEIVE, RECEIVE_SUMS, SEND, SEND_SUMS, TRACE};
use crate::replicated::{place, run, transfer};
use crate::round::{Cost, Round};

/// Layer `index` of the plan, those of the set-up after those of the rows.
pub(super) fn round(plan: &Plan, me: PartyId, index: usize, layer: &LayerPlan, _: bool) -> Round {
    of(plan, me, index, layer, None)
}

/// The same, and what a proof of its products needs is kept: operands and masks in the trace, received messages where they are.
pub(super) fn traced_round(
    plan: &Plan,
    me: PartyId,
    index: usize,
    layer: &LayerPlan,
    _: bool,
) -> Round {
    let first = if index < plan.layers.len() {
        0
    } else {
        plan.layers.len()
    };
    let before = plan.all_layers().take(index).skip(first);
    let before = before.map(|layer| layer.products).sum();
    of(plan, me, index, layer, Some(before))
}

/// `traced`: products of the batch before this layer, if they are kept.
fn of(plan: &Plan, me: PartyId, index: usize, layer: &LayerPlan, traced: Option<u32>) -> Round {
    let from = |region, first, count| Span {
        region,
        part: 0,
        first,
        count,
    };
    let message = |region, count| from(region, 0, count);
    let mut round = Round {
        place: place::LAYERS + index as u32,
        ..Round::default()
    };
    let mut run = run(&SCHEME, plan, me, layer);
    run.dst = vec![
        message(SEND, layer.products),
        message(SEND_SUMS, layer.sums),
    ];
    if layer.products + layer.sums > 0 {
        let tag = match plan.ring {
            Ring::Bits => Use::AND3,
            Ring::Z64 | Ring::Z128 => Use::MUL3,
        };
        run.op = Op::Product(Form::replicated(plan.ring));
        let kept = traced.unwrap_or(0);
        run.dst
            .extend(traced.map(|before| from(TRACE, before, layer.products)));
        let draw = |key, tag, first| Draw { key, tag, first };
        run.draws = vec![
            draw(KEY_OWN, tag, layer.first_draw),
            draw(KEY_PREVIOUS, tag, layer.first_draw),
            draw(KEY_OWN, Use::SUM3, layer.first_sum_draw),
            draw(KEY_PREVIOUS, Use::SUM3, layer.first_sum_draw),
        ];
        let received = vec![
            from(RECEIVE, kept, layer.products),
            message(RECEIVE_SUMS, layer.sums),
        ];
        let next = Peer::Party(SCHEME.next(me));
        let previous = Peer::Party(SCHEME.previous(me));
        for (part, count) in [(0, layer.products), (1, layer.sums)] {
            if count > 0 {
                round.sends.push(transfer(run.dst[part], next, part as u16));
                round
                    .recvs
                    .push(transfer(received[part], previous, part as u16));
            }
        }
        let op = Op::Scatter {
            part: PREVIOUS,
            add: false,
        };
        let mut scatter = Command::new(op, received, vec![]);
        scatter.program = run.program;
        round.finish.push(scatter);
    }
    round.local.push(run);
    round
}

/// One message of products, whose elements have `element` bytes, and one of sums, whose elements have `one`.
pub(super) fn cost(_: PartyId, layer: &LayerPlan, [element, one]: [u64; 2], _: bool) -> Cost {
    let messages = u64::from(layer.products > 0) + u64::from(layer.sums > 0);
    Cost {
        rounds: u64::from(messages > 0),
        messages,
        bytes: u64::from(layer.products) * element + u64::from(layer.sums) * one,
    }
}
