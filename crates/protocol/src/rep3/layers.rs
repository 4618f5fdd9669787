//! Layers of products: one message per party, one round.
//!
//! P_i computes r_i, masked by α_i = ρ_i - ρ_{i-1}, and sends it to P_{i+1}; the new share is (r_i, r_{i-1}).

use veil_device::{Command, Form, Op, PrfCall, Span};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::{KEY_OWN, KEY_PREVIOUS, PREVIOUS, SCHEME, check};
use crate::plan::{LayerPlan, Plan};
use crate::replicated::regions::TRACE;
use crate::replicated::{Work, conversions, place, transfer};
use crate::round::{Cost, Round};

/// Layer `index` of the plan, those of the set-up after those of the rows.
pub(super) fn round(plan: &Plan, me: PartyId, index: usize, layer: &LayerPlan, _: bool) -> Round {
    of(plan, me, index, layer, None)
}

/// The same, and what a proof of its products of bits needs is kept: operands and masks in the trace, received messages where they are. Its
/// products with MACs are added to what is checked.
pub(super) fn traced_round(
    plan: &Plan,
    me: PartyId,
    index: usize,
    layer: &LayerPlan,
    _: bool,
) -> Round {
    let mut round = of(plan, me, index, layer, Some(layer.before.proved));
    round.finish.extend(check::weighted(plan, layer));
    round
}

/// `traced`: products of bits of the batch before this layer, if they are kept.
fn of(plan: &Plan, me: PartyId, index: usize, layer: &LayerPlan, traced: Option<u32>) -> Round {
    let mut round = Round {
        place: place::LAYERS + index as u32,
        local: conversions(&SCHEME, plan, me, layer),
        ..Round::default()
    };
    for (number, work) in (0..).zip(Work::of(plan, layer)) {
        let mut run = work.run(&SCHEME, me);
        if work.multiplies() {
            multiply(&mut round, &mut run, me, (number, &work), traced);
        }
        round.local.push(run);
    }
    round
}

/// Makes `run` a product, whose messages are numbers `2 number` and the next, of products and of sums.
fn multiply(
    round: &mut Round,
    run: &mut Command,
    me: PartyId,
    (number, work): (u16, &Work),
    traced: Option<u32>,
) {
    let tag = match work.ring {
        Ring::Bits => DomainTag::AND3,
        Ring::Z64 | Ring::Z128 => DomainTag::MUL3,
    };
    run.op = Op::Product(Form::replicated(work.ring));
    let call = |key, tag, first| PrfCall { key, tag, first };
    let [first, first_sum] = work.calls;
    run.calls = vec![
        call(KEY_OWN, tag, first),
        call(KEY_PREVIOUS, tag, first),
        call(KEY_OWN, DomainTag::SUM3, first_sum),
        call(KEY_PREVIOUS, DomainTag::SUM3, first_sum),
    ];
    run.dst = work.messages(work.send, 0).to_vec();
    let mut received = work.messages(work.receive, 0).to_vec();
    if let Some(before) = traced.filter(|_| work.ring == Ring::Bits) {
        received[0].first = before;
        run.dst.push(Span {
            region: TRACE,
            ..received[0]
        });
    }
    let next = Peer::Party(SCHEME.next(me));
    let previous = Peer::Party(SCHEME.previous(me));
    for (kind, count) in work.counts.into_iter().enumerate() {
        if count > 0 {
            let part = 2 * number + kind as u16;
            round.sends.push(transfer(run.dst[kind], next, part));
            round.recvs.push(transfer(received[kind], previous, part));
        }
    }
    let op = Op::Scatter {
        component: PREVIOUS,
        add: false,
    };
    let mut scatter = Command::new(op, received, vec![]);
    scatter.program = run.program;
    round.finish.push(scatter);
}

/// One message of products, whose elements have `element` bytes, one of sums, whose elements have `one`, and one of products of bits, which
/// have `bit`.
pub(super) fn cost(_: PartyId, layer: &LayerPlan, [element, one, bit]: [u64; 3], _: bool) -> Cost {
    let bits = layer.bits.as_ref().map_or(0, |bits| bits.products);
    let counts = [layer.products, layer.sums, bits];
    let messages = counts.iter().filter(|count| **count > 0).count() as u64;
    Cost {
        rounds: u64::from(messages > 0),
        messages,
        bytes: (counts.iter().zip([element, one, bit]))
            .fold(0, |sum, (count, bytes)| sum + u64::from(*count) * bytes),
    }
}
