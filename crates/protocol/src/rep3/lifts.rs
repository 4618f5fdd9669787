//! Lifts of bits to integers: three elements, one from each party, in two rounds.
//!
//! Rotation r of a bit b: P_{r+1} knows s = b_r ⊕ b_{r+1}, and P_{r+2} and P_r know t = b_{r+2}. In the first round P_{r+1} sends s_r = s -
//! s_{r+1} to P_r, where s_{r+1} is a PRF output under κ_{r+1}, which it has in common with P_{r+2}. In the second, with ρ and ρ' under κ_{r+2},
//!
//! ```text
//! P_r → P_{r+1}: c_r = s_r (1 - 2t) + ρ,   P_{r+2} → P_{r+1}: c_{r+1} = s_{r+1} (1 - 2t) + ρ',   c_{r+2} = t - ρ - ρ'
//! ```
//!
//! so that the c add up to s + t - 2st. P_r sees s_r, masked under a key that it lacks, P_{r+1} two elements masked under a key that it lacks, and
//! P_{r+2} nothing: semi-honest.

use veil_device::{Command, Lifting, Op};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::{KEY_OWN, KEY_PREVIOUS, OWN, PREVIOUS, SCHEME};
use crate::plan::{LayerPlan, Plan};
use crate::replicated::lifts::{Lifts, step};
use crate::replicated::{combine, random, transfer};
use crate::round::{Cost, Round};

/// Numbers of messages: of the first round, and of the second to the next party and to the previous one.
const SHARED: u16 = 6;
const TO_NEXT: u16 = 7;
const TO_PREVIOUS: u16 = 8;

/// What a lift draws: a component of s, ρ and ρ'.
const HALF: DomainTag = DomainTag::lift3(0);
const MASKS: [DomainTag; 2] = [DomainTag::lift3(1), DomainTag::lift3(2)];

/// A party's rotations: those in which it is P_{r+1}, P_r and P_{r+2}.
fn rotations(me: PartyId) -> [usize; 3] {
    let me = me.index();
    [(me + 2) % 3, me, (me + 1) % 3]
}

/// Adds the lifts of a layer to its round.
pub(super) fn add(plan: &Plan, me: PartyId, layer: &LayerPlan, round: &mut Round) {
    if layer.lifted() == 0 {
        return;
    }
    let next = Peer::Party(SCHEME.next(me));
    let previous = Peer::Party(SCHEME.previous(me));
    let [first, second] = &layer.lifts;
    let of = |lifts, rotation| {
        let lifts = Lifts::of(plan, lifts, rotation);
        (lifts.count > 0).then_some(lifts)
    };
    let [knows_s, has_s, draws_s] = rotations(me);
    let mut sent = Vec::new();

    if let Some(lifts) = of(first, knows_s) {
        let [own, other] = [OWN, PREVIOUS].map(|part| lifts.bits(part));
        round
            .local
            .push(combine(Ring::Bits, vec![own, other], 0, own));
        let to = [OWN, PREVIOUS].map(|part| lifts.integers(part));
        let calls = [lifts.call(KEY_OWN, HALF)];
        round
            .local
            .push(step(Lifting::Share, vec![own], to.to_vec(), calls));
        sent.push((to[1], previous, SHARED));
    }
    if let Some(lifts) = of(first, has_s) {
        round
            .recvs
            .push(transfer(lifts.integers(OWN), next, SHARED));
    }
    if let Some(lifts) = of(first, draws_s) {
        let call = lifts.call(KEY_PREVIOUS, HALF);
        let to = lifts.integers(PREVIOUS);
        round.local.push(random(to, call.key, call.tag, call.first));
    }

    if let Some(lifts) = of(second, knows_s) {
        let from_both = [(PREVIOUS, previous, TO_NEXT), (OWN, next, TO_PREVIOUS)];
        for (part, from, number) in from_both {
            round
                .recvs
                .push(transfer(lifts.integers(part), from, number));
        }
    }
    let turns = [
        (has_s, OWN, KEY_PREVIOUS, MASKS, next, TO_NEXT),
        (
            draws_s,
            PREVIOUS,
            KEY_OWN,
            [MASKS[1], MASKS[0]],
            previous,
            TO_PREVIOUS,
        ),
    ];
    for (rotation, part, key, masks, to, number) in turns {
        let Some(lifts) = of(second, rotation) else {
            continue;
        };
        // The bit t is the other component.
        let other = OWN + PREVIOUS - part;
        let spans = [part, other].map(|part| lifts.integers(part));
        let calls = masks.map(|mask| lifts.call(key, mask));
        let bits = vec![lifts.bits(other)];
        round
            .local
            .push(step(Lifting::Turn, bits, spans.to_vec(), calls));
        sent.push((spans[0], to, number));
    }

    if !sent.is_empty() {
        let spans = sent.iter().map(|(span, ..)| *span).collect();
        round.local.push(Command::new(Op::Publish, spans, vec![]));
    }
    for (span, to, number) in sent {
        round.sends.push(transfer(span, to, number));
    }
}

/// Messages of lifts, whose elements have `element` bytes.
pub(super) fn cost(me: PartyId, layer: &LayerPlan, element: u64) -> Cost {
    let [knows_s, has_s, draws_s] = rotations(me);
    let [first, second] = layer.lifts.map(|lifts| lifts.counts);
    let sent = [first[knows_s], second[has_s], second[draws_s]];
    let received = first[has_s] + second[knows_s];
    Cost {
        rounds: u64::from(received > 0),
        messages: sent.iter().filter(|count| **count > 0).count() as u64,
        bytes: sent.iter().map(|count| u64::from(*count) * element).sum(),
    }
}
