//! Openings in the middle of a computation: of values that a mask hides, with the messages of a layer's products, and checked in its round.
//!
//! Nothing that depends on an opened value leaves before the check (rule R1). No agreement comes before it (rule R2): the opened value is
//! uniformly random, whatever the masked value is and whatever was done to it, since its mask is drawn for this opening alone
//! (`docs/conversions.md`).

use veil_device::Span;
use veil_math::Ring;
use veil_session::PartyId;

use super::digests::Digests;
use super::opening::Exchange;
use super::regions::{MASKED, MASKED_BITS};
use super::scheme::Scheme;
use super::{combine, label};
use crate::plan::{BIT_SLOTS, LayerPlan, OpenedPlan, Plan, SLOTS};
use crate::round::{Cost, Round};

/// Numbers of messages from here on are of masked openings: three for each component.
const NUMBERS: u16 = 0x100;
const OPENINGS: u16 = 3 * 4;

/// Whether the message of this number, of a round of a layer, is one of an opening of masked values.
pub fn is_masked(number: u16) -> bool {
    (NUMBERS..NUMBERS + OPENINGS).contains(&number)
}

/// What a layer opens of one ring.
struct Masked {
    ring: Ring,
    /// Slots, and the message.
    regions: [u16; 2],
    plan: OpenedPlan,
}

impl Masked {
    fn of(plan: &Plan, layer: &LayerPlan) -> Vec<Masked> {
        let [integers, bits] = layer.opened;
        let all = [
            (plan.ring, [SLOTS, MASKED], integers),
            (Ring::Bits, [BIT_SLOTS, MASKED_BITS], bits),
        ];
        let there = all.into_iter().filter(|(_, _, opened)| opened.count > 0);
        there
            .map(|(ring, regions, plan)| Masked {
                ring,
                regions,
                plan,
            })
            .collect()
    }

    fn slots(&self, part: u8, first: u32) -> Span {
        Span {
            region: self.regions[0],
            component: part,
            first,
            count: self.plan.count,
        }
    }

    fn message(&self, part: u8) -> Span {
        Span {
            region: self.regions[1],
            component: part,
            first: 0,
            count: self.plan.count,
        }
    }
}

/// Adds what layer `index` opens to its round.
pub(super) fn open(scheme: &Scheme, plan: &Plan, me: PartyId, index: usize, round: &mut Round) {
    let Some(layer) = plan.all_layers().nth(index).filter(|layer| layer.opens()) else {
        return;
    };
    // What is opened has messages and checks of its own.
    round.products = None;
    let masked = Masked::of(plan, layer);
    for part in scheme.parts() {
        for of in &masked {
            let from = of.slots(part, of.plan.from);
            round
                .local
                .push(combine(of.ring, vec![from], 0, of.message(part)));
        }
    }
    let digests = Digests::of(scheme, plan);
    let exchange = Exchange {
        scheme,
        spans: &|part| masked.iter().map(|of| of.message(part)).collect(),
        number: &|component, k| NUMBERS + 3 * component.number() + k,
        digest: &|component, k| digests.masked(component, k),
        label: label::MASKED,
        what: "a masked value",
    };
    exchange.among(round, me, scheme.parties);
    // Behind all checks.
    let components = 0..scheme.parties.len() as u8;
    for part in scheme.parts() {
        for of in &masked {
            let all = components.clone().map(|c| of.message(c)).collect();
            let to = of.slots(part, of.plan.to);
            round.finish.push(combine(of.ring, all, 0, to));
        }
    }
}

/// One message of integers, whose elements have `element` bytes, one of bits, which have `bit`, and a digest.
pub(super) fn cost(layer: &LayerPlan, [element, _, bit]: [u64; 3]) -> Cost {
    if !layer.opens() {
        return Cost::default();
    }
    let [integers, bits] = layer.opened.map(|opened| u64::from(opened.count));
    Cost {
        rounds: 1,
        messages: u64::from(integers > 0) + u64::from(bits > 0) + 1,
        bytes: integers * element + bits * bit + super::cost::DIGEST,
    }
}
