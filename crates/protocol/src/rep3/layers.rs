//! Layers of products: one message per party, one round.
//!
//! P_i computes r_i, masked by α_i = ρ_i - ρ_{i-1}, and sends it to P_{i+1}; the new share is (r_i, r_{i-1}).

use veil_device::{Command, Form, Op, PrfCall, Span};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::{KEY_OWN, KEY_PREVIOUS, OWN, PREVIOUS, SCHEME, check, lifts, truncations};
use crate::plan::{LayerPlan, Plan};
use crate::replicated::regions::TRACE;
use crate::replicated::{Work, combine, conversions, in_pieces, place, says_products};
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
    let mut published = Vec::new();
    let first = round.local.len();
    for (number, work) in (0..).zip(Work::of(plan, layer)) {
        let mut run = work.run(&SCHEME, me);
        if work.multiplies() {
            multiply(plan, &mut round, &mut run, me, (number, &work), traced);
            published.extend(work.products(plan, OWN));
        }
        round.local.push(run);
    }
    // What a proof needs of products is no part of them, and lifts and truncations have messages of their own.
    let alone = layer.lifted() == 0 && !layer.truncates();
    if traced.is_none() && alone && !round.sends.is_empty() {
        let programs = first..round.local.len();
        says_products(&SCHEME, me, &mut round, programs, Default::default());
    }
    if !published.is_empty() {
        let publish = Command::new(Op::Publish, published, vec![]);
        round.local.push(publish);
    }
    lifts::add(plan, me, layer, &mut round);
    truncations::add(plan, me, layer, &mut round);
    round
}

/// Makes `run` a product, whose messages are numbers `2 number` and the next, of products and of sums.
fn multiply(
    plan: &Plan,
    round: &mut Round,
    run: &mut Command,
    me: PartyId,
    (number, work): (u16, &Work),
    traced: Option<u32>,
) {
    let tag = match work.ring {
        Ring::Bits => DomainTag::AND3,
        Ring::Z32 | Ring::Z64 | Ring::Z128 => DomainTag::MUL3,
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
    // A message of products is their own component, and lands in the previous one.
    let [mut none, sent_sums] = work.messages(work.send, 0);
    none.count = 0;
    run.dst = vec![none, sent_sums];
    let [mut kept, received_sums] = work.messages(work.receive, 0);
    let [sent, received] = [OWN, PREVIOUS].map(|part| work.products(plan, part));
    if let Some(before) = traced.filter(|_| work.ring == Ring::Bits) {
        // A proof reads what was received after its slots are used again.
        kept.first = before;
        run.dst.push(Span {
            region: TRACE,
            ..kept
        });
        let copies = received.iter().map(|piece| {
            let to = Span {
                count: piece.count,
                ..kept
            };
            kept.first += piece.count;
            combine(work.ring, vec![*piece], 0, to)
        });
        round.finish.extend(copies);
    }
    let next = Peer::Party(SCHEME.next(me));
    let previous = Peer::Party(SCHEME.previous(me));
    let messages = [(sent, received), (vec![sent_sums], vec![received_sums])];
    for (kind, (sent, received)) in messages.into_iter().enumerate() {
        if work.counts[kind] > 0 {
            let part = 2 * number + kind as u16;
            round.sends.push(in_pieces(&sent, next, part));
            round.recvs.push(in_pieces(&received, previous, part));
        }
    }
    let sums = work.copy_sums(plan, received_sums, PREVIOUS);
    round.finish.extend(sums);
}

/// One message of products, whose elements have `element` bytes, one of sums, whose elements have `one`, and one of products of bits, which
/// have `bit`; and those of lifts and truncations.
pub(super) fn cost(me: PartyId, layer: &LayerPlan, [element, one, bit]: [u64; 3], _: bool) -> Cost {
    let bits = layer.bits.as_ref().map_or(0, |bits| bits.products);
    let counts = [layer.products, layer.sums, bits];
    let messages = counts.iter().filter(|count| **count > 0).count() as u64;
    let lifts = lifts::cost(me, layer, element);
    let truncations = truncations::cost(me, layer, [element, bit]);
    Cost {
        rounds: lifts
            .rounds
            .max(truncations.rounds)
            .max(u64::from(messages > 0)),
        messages: messages + lifts.messages + truncations.messages,
        bytes: lifts.bytes
            + truncations.bytes
            + (counts.iter().zip([element, one, bit]))
                .fold(0, |sum, (count, bytes)| sum + u64::from(*count) * bytes),
    }
}
