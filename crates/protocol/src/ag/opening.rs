//! Openings: the party to which an output goes gets the other's part of its mask, with its MAC, and knows Λ and its own part. A recipient from
//! outside is told Λ and their parts by both ([`outside`]).

use veil_device::ag::Ag;
use veil_device::{Command, Span};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::outside::{self, Told};
use super::regions::{self, By, Part, Use, items, part};
use super::steps::{Party, Rounds, ag, compare, fold};
use super::{Ends, Shape, place, what};
use crate::ot::extension::At;
use crate::plan::Plan;
use crate::round::{Round, Transfer};
use crate::yao::{PRIVATE, combine, random};

/// Rounds of transfers of what hides outputs.
const TRANSFERS: u32 = 3;

/// Rounds in which recipients from outside are told outputs.
pub(super) const ROUNDS_OUTSIDE: u32 = TRANSFERS + outside::ROUNDS;

/// Λ of an output, as a party has it: the garbler in a component of its own, the evaluator in bit 1 of its labels.
fn public(plan: &Plan, me: Party, port: usize, to: Span) -> Command {
    let (component, bit) = if me.garbles() {
        (part::PUBLIC, 0)
    } else {
        (part::LABEL, 1)
    };
    let from = regions::result(&plan.outputs[port], component);
    ag(Ag::Bits { bit }, vec![from], vec![to])
}

/// Outputs of a recipient from outside, side by side, and what hides them.
struct Outputs {
    told: Told,
    /// Ports with the first items of them.
    ports: Vec<(usize, u32)>,
    /// Items of all of them, and of what hides them.
    all: Span,
    hiding: Span,
}

fn outputs(plan: &Plan, shape: &Shape) -> Vec<Outputs> {
    let hiding = shape.hiding_outputs();
    let all_of_them = regions::outside_wires(plan, shape);
    let mut at = 0;
    let recipients = (0..).zip(outside::recipients(plan));
    let all = recipients.map(|(number, (recipient, ports))| {
        let first = at;
        let ports = ports.into_iter().map(|port| {
            let before = at;
            at += plan.outputs[port].width;
            (port, before)
        });
        let ports = ports.collect();
        let behind = at;
        at += hiding;
        let of = |span: Span| items(span, first, at - first);
        Outputs {
            told: Told {
                number,
                to: Peer::Recipient(recipient),
                bits: [By::Me, By::Them].map(|by| of(regions::outside_said(all_of_them, by))),
                macs: of(regions::outside_staged(all_of_them, 0)),
                keys: of(regions::outside_staged(all_of_them, 1)),
            },
            ports,
            all: items(
                regions::outside_public(all_of_them, By::Me),
                first,
                behind - first,
            ),
            hiding: items(regions::outside_staged(all_of_them, 0), behind, hiding),
        }
    });
    all.collect()
}

/// What a party tells recipients from outside; `ends` are the transfers of what hides it, unless that comes from a stock.
pub(super) fn tell(plan: &Plan, shape: &Shape, me: Party, ends: Option<&Ends>) -> Vec<Round> {
    let first = shape.place_of_recipients();
    let mut rounds = Rounds::new(me, first);
    let hiding = shape.recipients * shape.hiding_outputs();
    let parts = regions::hiding_parts(hiding);
    let [mac, key] = [0, 1].map(|component| regions::hiding(hiding, component));
    if let Some(ends) = ends {
        let at = At {
            place: first,
            first: shape.leaves.batch(shape.batches()),
            label: 0,
        };
        rounds.both(ends.rounds(at, parts, [mac, key]));
        let first = shape.parts.batch(shape.batches());
        let draw = random(PRIVATE, DomainTag::AG_PARTS, first, parts);
        rounds.made[0].local.insert(0, draw);
    } else {
        rounds.next().feeds = true;
    }
    let outputs = outputs(plan, shape);
    let all = regions::outside_wires(plan, shape);
    for of in &outputs {
        for &(port, at) in &of.ports {
            let width = plan.outputs[port].width;
            for (k, component) in (0..).zip([part::MAC, part::KEY]) {
                let to = items(regions::outside_staged(all, k), at, width);
                let from = regions::result(&plan.outputs[port], component);
                rounds.finish(combine(vec![from], to));
            }
            let to = items(regions::outside_public(all, By::Me), at, width);
            rounds.finish(public(plan, me, port, to));
        }
        for (k, from) in (0..).zip([mac, key]) {
            let each = shape.hiding_outputs();
            let from = items(from, of.told.number * each, each);
            let to = Span {
                component: k,
                ..of.hiding
            };
            rounds.finish(combine(vec![from], to));
        }
    }
    let told: Vec<Told> = outputs.iter().map(|of| of.told).collect();
    rounds.go_on_at(first + TRANSFERS);
    let before = rounds.made.len();
    outside::tell(&mut rounds, &told, shape.challenge_of_outputs());
    let first = &mut rounds.made[before];
    let public = outputs
        .iter()
        .map(|of| Transfer::new(of.all, of.told.to, 1));
    first.sends.extend(public);
    rounds.made
}

/// What a recipient from outside is told.
pub(super) fn hear(plan: &Plan, shape: &Shape, me: u16) -> Vec<Round> {
    let outputs = outputs(plan, shape).into_iter();
    let mut of_me = outputs.filter(|of| of.told.to == Peer::Recipient(me));
    let Some(of) = of_me.next() else {
        return vec![];
    };
    let place = shape.place_of_recipients() + TRANSFERS;
    let mut rounds = outside::hear(place, &of.told, shape.challenge_of_outputs());
    let public = [0, 1].map(|component| Span {
        component,
        ..of.all
    });
    let parties = PartyId::TWO.map(Peer::Party);
    let from_both = public.iter().zip(parties);
    let from_both = from_both.map(|(span, party)| Transfer::new(*span, party, 1));
    rounds[0].recvs.extend(from_both);
    compare(&mut rounds[0], public, (parties.into(), what::RESULTS));
    let [result, ..] = public;
    for (port, at) in of.ports {
        let width = plan.outputs[port].width;
        let told = of.told.bits.map(|bits| Span {
            first: at,
            count: width,
            ..bits
        });
        let result = Span {
            first: at,
            count: width,
            ..result
        };
        let from = [&[result], &told[..]].concat();
        let to = regions::opened(plan, port);
        rounds[2].finish.push(combine(from, to));
    }
    rounds
}

/// The opening of the outputs of a chunk to parties.
pub(super) fn rounds(plan: &Plan, shape: &Shape, me: Party) -> Vec<Round> {
    let mut rounds = Rounds::new(me, place::OPEN);
    let sees = |party: Party, port: usize| plan.job.audiences[port].includes(Peer::Party(party.0));
    let them = Party::of(me.role().opposite());
    let ports = 0..plan.outputs.len();
    let tells: Vec<usize> = ports.clone().filter(|port| sees(them, *port)).collect();
    let hears: Vec<usize> = ports.filter(|port| sees(me, *port)).collect();
    let told = |port, by| regions::output(plan, port, Part::Opened(by));
    let mac = |port: usize| regions::result(&plan.outputs[port], part::MAC);
    let key = |port: usize| regions::result(&plan.outputs[port], part::KEY);
    rounds.next();
    for &port in &tells {
        let to = told(port, By::Me);
        rounds.local(ag(Ag::Bits { bit: 0 }, vec![mac(port)], vec![to]));
        rounds.send(to, port as u16);
    }
    for &port in &hears {
        rounds.receive(told(port, By::Them), port as u16);
    }
    rounds.next();
    let first = shape.challenge_of_outputs();
    if !hears.is_empty() {
        rounds.challenge(Use::Opening, first, 0);
    }
    if !tells.is_empty() {
        rounds.challenged(Use::Opening, 0);
    }
    rounds.next();
    for (k, &port) in (0..).zip(&tells) {
        let challenge = regions::challenge(By::Them, Use::Opening);
        let to = regions::folds(By::Me, k, 1);
        rounds.local(fold(challenge, None, &[mac(port)], to));
    }
    rounds.send(regions::folds(By::Me, 0, tells.len() as u32), 0);
    let count = hears.len() as u32;
    rounds.receive(regions::folds(By::Them, 0, count), 0);
    for (k, &port) in (0..).zip(&hears) {
        let challenge = regions::challenge(By::Me, Use::Opening);
        let bits = Some(told(port, By::Them));
        let to = regions::own_folds(k, 1);
        rounds.finish(fold(challenge, bits, &[key(port)], to));
    }
    if count > 0 {
        let compared = [
            regions::folds(By::Them, 0, count),
            regions::own_folds(0, count),
        ];
        rounds.compare(compared, what::OUTPUTS);
    }
    for &port in &hears {
        let [masked, own] = [Part::Public, Part::Own].map(|of| regions::output(plan, port, of));
        rounds.finish(public(plan, me, port, masked));
        rounds.finish(ag(Ag::Bits { bit: 0 }, vec![mac(port)], vec![own]));
        let sum = vec![masked, own, told(port, By::Them)];
        rounds.finish(combine(sum, regions::opened(plan, port)));
    }
    rounds.made
}
