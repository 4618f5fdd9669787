//! Openings: the party to which an output goes gets the other's part of its mask, with its MAC, and knows Λ and its own part.

use veil_device::ag::{Ag, Role};
use veil_session::Peer;

use super::regions::{self, By, Part, Use, part};
use super::steps::{Party, Rounds, ag, fold};
use super::{Shape, place, what};
use crate::plan::Plan;
use crate::round::Round;
use crate::yao::combine;

/// The opening of the outputs of a chunk.
pub(super) fn rounds(plan: &Plan, shape: &Shape, me: Party) -> Vec<Round> {
    let mut rounds = Rounds::new(me, place::OPEN);
    let sees = |party: Party, port: usize| plan.job.audiences[port].includes(Peer::Party(party.0));
    let them = Party::of(match me.role() {
        Role::Garbler => Role::Evaluator,
        Role::Evaluator => Role::Garbler,
    });
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
        let [public, own] = [Part::Public, Part::Own].map(|of| regions::output(plan, port, of));
        // The garbler keeps Λ in a component of its own, the evaluator in bit 1 of its labels.
        let (component, bit) = if me.garbles() {
            (part::PUBLIC, 0)
        } else {
            (part::LABEL, 1)
        };
        let from = regions::result(&plan.outputs[port], component);
        rounds.finish(ag(Ag::Bits { bit }, vec![from], vec![public]));
        rounds.finish(ag(Ag::Bits { bit: 0 }, vec![mac(port)], vec![own]));
        let sum = vec![public, own, told(port, By::Them)];
        rounds.finish(combine(sum, regions::opened(plan, port)));
    }
    rounds.made
}
