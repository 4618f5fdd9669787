//! Lifts of bits to integers: six joint messages, in two rounds.
//!
//! The six are those of a product, of other terms. Two pairs know s = b_0 ⊕ b_1 and t = b_2 ⊕ b_3; in the first round each shares what it knows
//! between its two components: component `receiver` is ρ, and component `outsider` is m = s - ρ, or t - ρ, which the receiver is sent. In the second
//! round the other four are of the terms -2 s_c t_d of s + t - 2st, one for each pair of components, added to s and t as a term of a
//! product is: component `receiver` grows by ρ, and component `outsider` by m = -2 s_c t_d - ρ.

use veil_device::{Command, Lifting, PrfCall, Span};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::PartyId;

use super::SCHEME;
use super::layers::{CROSSES, JOINT};
use crate::plan::{LayerPlan, Plan};
use crate::replicated::lifts::{Lifts, step};
use crate::replicated::regions::{LIFT_RECEIVE, LIFT_SEND};
use crate::replicated::{Component, Scheme, combine, random};

/// Joint messages of the first round.
const FIRST: [usize; 2] = [0, 2];

/// Lifts that have joint message `joint` in a layer; none where there are none.
fn lifts_of(layer: &LayerPlan, joint: usize) -> Lifts {
    let [first, second] = &layer.lifts;
    Lifts::all(if FIRST.contains(&joint) {
        first
    } else {
        second
    })
}

/// Where the message of cross term `k` of a party is, which is joint message `joint`.
pub(super) fn sent(layer: &LayerPlan, joint: usize, k: u8) -> Span {
    lifts_of(layer, joint).message(LIFT_SEND, k)
}

/// Where the `k`-th message that a party receives is, which is joint message `joint`.
pub(super) fn received(layer: &LayerPlan, joint: usize, k: u8) -> Span {
    lifts_of(layer, joint).message(LIFT_RECEIVE, k)
}

/// Where a party keeps the components of a joint message's receiver and of its outsider.
fn parts(me: PartyId, joint: usize) -> [Option<u8>; 2] {
    let of = &JOINT[joint];
    [of.receiver, of.outsider].map(|party| SCHEME.part_of(me, Component(party)))
}

fn call(me: PartyId, lifts: &Lifts, joint: usize) -> PrfCall {
    let key = parts(me, joint)[0].expect("all parties but the receiver hold the key");
    lifts.call(Scheme::key(key), DomainTag::lift4(joint as u8))
}

/// What a party computes before it sends.
pub(super) fn local(plan: &Plan, me: PartyId, layer: &LayerPlan) -> Vec<Command> {
    let mut commands = Vec::new();
    for joint in FIRST {
        let lifts = lifts_of(layer, joint);
        if lifts.count == 0 {
            continue;
        }
        let drawn = call_of(me, &lifts, joint);
        match parts(me, joint) {
            // One of the pair.
            [Some(receiver), Some(outsider)] => {
                let k = CROSSES[me.index()].iter().position(|j| *j == joint);
                let message = sent(layer, joint, k.expect("its pair computes it") as u8);
                let [a, b] = [receiver, outsider].map(|part| lifts.bits(part));
                commands.push(combine(Ring::Bits, vec![a, b], 0, a));
                let to = vec![lifts.integers(receiver), message];
                commands.push(step(Lifting::Share, vec![a], to, drawn));
                let own = lifts.integers(outsider);
                commands.push(combine(plan.words, vec![message], 0, own));
            }
            [Some(receiver), None] => {
                let to = lifts.integers(receiver);
                commands.extend(drawn.map(|of| random(to, of.key, of.tag, of.first)));
            }
            // It receives the other component, and lacks this one.
            [None, _] => {}
        }
    }
    let second = Lifts::all(&layer.lifts[1]);
    if second.count > 0 {
        commands.push(terms(me, layer, &second));
    }
    commands
}

fn call_of(me: PartyId, lifts: &Lifts, joint: usize) -> Option<PrfCall> {
    parts(me, joint)[0].map(|_| call(me, lifts, joint))
}

/// The second step: a party's two terms, and the masks of those that it neither computes nor receives.
fn terms(me: PartyId, layer: &LayerPlan, lifts: &Lifts) -> Command {
    let crosses = (0..).zip(CROSSES[me.index()]);
    let own: Vec<(u8, usize)> = crosses.filter(|(_, j)| !FIRST.contains(j)).collect();
    let outside =
        (0..JOINT.len()).filter(|j| !FIRST.contains(j) && JOINT[*j].outsider == me.index());
    let outside: Vec<usize> = outside.collect();
    let two = "two of the four terms are of components that a party holds";
    let own: [(u8, usize); 2] = own.try_into().expect(two);
    let pair = |joint| {
        let [receiver, outsider] = parts(me, joint);
        let holds = "the pair of a term holds both of its components";
        (receiver.expect(holds), outsider.expect(holds))
    };
    let keep = |k: usize| outside.get(k).and_then(|joint| parts(me, *joint)[0]);
    let how = Lifting::Terms {
        terms: own.map(|(_, joint)| pair(joint)),
        keeps: [keep(0), keep(1)],
    };
    let messages = own.map(|(k, joint)| sent(layer, joint, k));
    let integers = SCHEME.parts().map(|part| lifts.integers(part));
    let dst = messages.into_iter().chain(integers).collect();
    let joints = own.into_iter().map(|(_, joint)| joint).chain(outside);
    step(how, vec![], dst, joints.map(|joint| call(me, lifts, joint)))
}

/// What it does with the `k`-th message that it receives, once that is checked.
pub(super) fn finish(
    plan: &Plan,
    me: PartyId,
    layer: &LayerPlan,
    (joint, k): (usize, u8),
) -> Option<Command> {
    let lifts = lifts_of(layer, joint);
    let message = received(layer, joint, k);
    let part = parts(me, joint)[1].expect("a party lacks the component of its own number alone");
    let to = lifts.integers(part);
    let src = if FIRST.contains(&joint) {
        vec![message]
    } else {
        vec![to, message]
    };
    (lifts.count > 0).then(|| combine(plan.words, src, 0, to))
}
