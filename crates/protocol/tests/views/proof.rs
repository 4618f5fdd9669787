//! What is said in the proof of products, and what can be known of it: every element is either masked by something that its receiver
//! cannot draw, to the element and whatever else is drawn, or follows from what it knows itself.

use std::collections::BTreeMap;

use proptest::prelude::*;
use veil_device::{Command, Span};
use veil_job::Adversary;
use veil_math::{Gf64, Ring};
use veil_protocol::rep3::{ProofMessage, proof_message};
use veil_protocol::{Options, Plan, Task};
use veil_prss::{DomainTag, Prf};
use veil_session::{PartyId, Peer, Secret};

use super::{Scheme, Seeded, alike, and_plan, bits, net};
use crate::common::job::pack;
use crate::common::{Keyring, Kind, Message, Net};

static SCHEME: Scheme = Scheme {
    parties: &PartyId::THREE,
    adversary: Adversary::Malicious,
    parts: &[0, 2],
    seeded: 1,
};

/// Levels of the proof of one product in so many rows or fewer, and what the last one folds.
const LEVELS: usize = 4;
const FEW: u32 = 24;
const LAST: u32 = 8;

/// All that was said in the rounds of one product and its proof: by sender, receiver and place, then kind.
type Said = BTreeMap<(usize, usize, ProofMessage), Vec<Vec<u64>>>;

/// What was sent, and what each party had of both operands in the first row.
struct Run {
    log: Vec<Message>,
    said: Said,
    shares: Vec<Vec<u8>>,
}

fn plan(rows: u32) -> Plan {
    let mut job = (*and_plan(&SCHEME, Ring::Bits).job).clone();
    job.blocks[0].rows = rows.into();
    let options = Options {
        lanes: 1,
        chunk_rows: Some(rows),
    };
    Plan::new(job.into(), options).expect("a job that can be planned")
}

fn elements(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    let word = |word: &[u8]| u64::from_le_bytes(word.try_into().expect("8 bytes"));
    words.map(word).collect()
}

/// Runs the real rounds with these operands in every row; draws of `moved` come from other counters, at all that draw them.
fn run(seed: u64, rows: u32, [x, y]: [u128; 2], moved: Option<DomainTag>) -> Run {
    let kind = *Kind::all().last().expect("there is a device");
    let mut net: Net = net(&SCHEME, plan(rows), seed, kind);
    let frame = net.plan.chunk(0).expect("a chunk").frame;
    net.open(frame);
    let owner = net.nodes.iter_mut().find(|n| n.me == Peer::Owner(0));
    let owner = owner.expect("the owner takes part");
    let spans = owner.protocol.spans().inputs.clone();
    for ((_, span), value) in spans.into_iter().zip([x, y]) {
        owner.write(span, &pack(Ring::Bits, &vec![value; rows as usize]));
    }
    net.run(|_| Task::Inputs { block: 0 })
        .expect("consistent shares");
    let before = net.log.len();
    let (slots, ports) = (net.plan.programs[0].slots, net.plan.inputs.clone());
    let operands = ports.iter().flat_map(|port| {
        [0, 1].map(|part| Span {
            region: slots,
            component: part,
            first: port.first,
            count: 1,
        })
    });
    let operands: Vec<Span> = operands.collect();
    let parties = net.nodes[..3].iter_mut();
    let shares = parties.map(|node| operands.iter().map(|of| node.peek(*of)[0] & 1).collect());
    let shares = shares.collect();
    let change = |command: &mut Command| {
        for call in command.calls.iter_mut().filter(|d| Some(d.tag) == moved) {
            call.first += MOVED;
        }
    };
    net.run_changed(|_| Task::Layers, change)
        .expect("honest parties");
    let log = net.log.split_off(before);
    let mut kinds = BTreeMap::new();
    for node in &net.nodes[..3] {
        let flow = node.protocol.flow(Task::Layers, frame);
        for round in flow.rounds() {
            for send in &round.sends {
                if let Some(kind) = proof_message(send) {
                    kinds.insert((node.me, send.peer, round.place, send.part), kind);
                }
            }
        }
    }
    let index = |peer: Peer| peer.party().expect("parties prove").index();
    let mut said = Said::new();
    for message in &log {
        let name = (message.from, message.to, message.place, message.part);
        if let Some(kind) = kinds.get(&name) {
            let at = (index(message.from), index(message.to), *kind);
            said.entry(at).or_default().push(elements(&message.bytes));
        }
    }
    Run { log, said, shares }
}

/// By so much draws are moved: batches are far apart.
const MOVED: u64 = 1 << 40;

/// An element that two parties draw, from a place on.
fn drawn(seed: u64, [a, b]: [usize; 2], tag: DomainTag, counter: u64, from: u32) -> u64 {
    let [a, b] = [a, b].map(|party| PartyId::THREE[party]);
    let prf = Prf::new(&Secret::new(Seeded(seed).pair(a, b)));
    let frame = plan(1).chunk(0).expect("a chunk").frame;
    let block = prf.block(tag, frame.lane, counter, frame.chunk);
    Gf64::from_place(u128::from_le_bytes(block), from)
}

/// The prover, and the verifiers after and before it.
fn all(prover: usize) -> [usize; 3] {
    [prover, (prover + 1) % 3, (prover + 2) % 3]
}

fn counter(level: usize) -> u64 {
    (level as u64) << 16
}

/// Messages that differ between two runs: who sent them to whom, and in which place among those.
fn changed(a: &Run, b: &Run) -> Vec<(usize, usize, ProofMessage, usize)> {
    let proofs = a.said.values().map(Vec::len).sum::<usize>();
    let same = a.log.iter().zip(&b.log).filter(|(a, b)| a == b).count();
    let mut list = Vec::new();
    for ((key, a), b) in a.said.iter().zip(b.said.values()) {
        for (k, (a, b)) in a.iter().zip(b).enumerate() {
            if a != b {
                list.push((key.0, key.1, key.2, k));
            }
        }
    }
    assert!(proofs > 0 && same + list.len() == a.log.len());
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// A share is the polynomial's values less what its receiver cannot draw, and nothing else that the receiver is told depends on these
    /// draws but what the other verifier found, which follows from what it found itself.
    #[test]
    fn shares_are_masked_under_a_key_that_their_receiver_lacks(
        seed in any::<u64>(), rows in 1..=FEW, x in 0..2u128, y in 0..2u128, prover in 0..3usize,
    ) {
        let [prover, next, previous] = all(prover);
        let tag = DomainTag::dzkp_share(prover as u8);
        let [a, b] = [None, Some(tag)].map(|moved| run(seed, rows, [x, y], moved));
        let shares = |run: &Run| run.said[&(prover, next, ProofMessage::Share)].clone();
        let (shares, others) = (shares(&a), shares(&b));
        prop_assert_eq!(shares.len(), LEVELS);
        for (level, (share, other)) in (1..).zip(shares.iter().zip(&others)) {
            for (k, (one, two)) in (0..).zip(share.iter().zip(other)) {
                let at = counter(level) + k;
                let [first, second] =
                    [at, at + MOVED].map(|at| drawn(seed, [previous, prover], tag, at, 0));
                prop_assert_eq!(one ^ first, two ^ second);
                prop_assert_ne!(one, two);
            }
        }
        let told = |k| (prover, next, ProofMessage::Share, k);
        let mut want: Vec<_> = (0..LEVELS).map(told).collect();
        want.extend([(next, previous), (previous, next)].map(|(a, b)| (a, b, ProofMessage::Findings, 0)));
        want.sort_unstable();
        prop_assert_eq!(changed(&a, &b), want);
    }

    /// The value of a vector at the last challenge, which is told to the verifier that lacks the vector, has a mask that it cannot draw
    /// times what is never zero; no other value that the verifier is told depends on the mask.
    #[test]
    fn values_are_masked_under_a_key_that_their_receiver_lacks(
        seed in any::<u64>(), rows in 1..=FEW, x in 0..2u128, y in 0..2u128, prover in 0..3usize,
        first in any::<bool>(),
    ) {
        let [prover, next, previous] = all(prover);
        let (tag, who, other) = if first {
            (DomainTag::dzkp_p_mask(prover as u8), next, previous)
        } else {
            (DomainTag::dzkp_q_mask(prover as u8), previous, next)
        };
        let [a, b] = [None, Some(tag)].map(|moved| run(seed, rows, [x, y], moved));
        // No party tells it.
        let challenge = DomainTag::dzkp_challenge(prover as u8);
        let r = drawn(seed, [next, previous], challenge, counter(LEVELS), LAST);
        prop_assert!(r >= LAST.into());
        let weight = *Gf64::basis(LAST, r).last().expect("places");
        prop_assert_ne!(weight, 0);
        // Of its two provers, the previous one comes first.
        let value = |run: &Run| {
            let findings = &run.said[&(who, other, ProofMessage::Findings)];
            findings[0][0]
        };
        let [m, n] = [0, MOVED].map(|at| drawn(seed, [prover, who], tag, at, 0));
        let difference = Gf64::mul(weight, n ^ m);
        prop_assert_ne!(difference, 0);
        prop_assert_eq!(value(&a) ^ difference, value(&b));
        // The share of the verifier before the prover is drawn: what it finds on it does not depend on the polynomial.
        let mut want = vec![
            (prover, next, ProofMessage::Share, LEVELS - 1),
            (next, previous, ProofMessage::Findings, 0),
        ];
        want.extend((!first).then_some((previous, next, ProofMessage::Findings, 0)));
        want.sort_unstable();
        prop_assert_eq!(changed(&a, &b), want);
    }

    /// A challenge is what both verifiers draw, and the prover cannot; the share that it is about was sent before it. So is the seed. Of what a
    /// verifier is told in the end one value follows from what it tells the other: both shares of the last claim are the product of both values.
    #[test]
    fn the_rest_follows_from_what_is_known(
        seed in any::<u64>(), rows in 1..=FEW, x in 0..2u128, y in 0..2u128, prover in 0..3usize,
    ) {
        let [prover, next, previous] = all(prover);
        let tag = DomainTag::dzkp_challenge(prover as u8);
        let [a, b] = [None, Some(tag)].map(|moved| run(seed, rows, [x, y], moved));
        let challenges = &a.said[&(next, prover, ProofMessage::Challenge)];
        prop_assert_eq!(challenges.len(), LEVELS - 1);
        for (level, challenge) in (1..).zip(challenges) {
            let places = [32, 4, LAST][level - 1];
            let want = drawn(seed, [next, previous], tag, counter(level), places);
            prop_assert_eq!(challenge, &[want]);
        }
        let weights = &a.said[&(next, prover, ProofMessage::Seed)];
        prop_assert_eq!(weights, &a.said[&(previous, next, ProofMessage::Ready)]);
        let tag = DomainTag::dzkp_seed(prover as u8);
        let want = [0, 1].map(|k| drawn(seed, [next, previous], tag, k, 0));
        prop_assert_eq!(weights, &[want]);
        let echoed = &a.said[&(prover, previous, ProofMessage::Echo)];
        prop_assert_eq!(echoed, challenges);
        prop_assert_eq!(&a.said[&(prover, previous, ProofMessage::SeedEcho)], weights);
        let first = |run: &Run| run.said[&(prover, next, ProofMessage::Share)][0].clone();
        prop_assert_eq!(first(&a), first(&b));
        let findings = |from, to| a.said[&(from, to, ProofMessage::Findings)][0].clone();
        let (one, other) = (findings(next, previous), findings(previous, next));
        prop_assert_eq!(Gf64::mul(one[0], other[0]), one[1] ^ other[1]);
    }
}

/// Runs for every input.
const RUNS: u64 = 1536;

/// What a party is told over all runs, by kind; and its shares of the operands together with low bits of the first share and of the value
/// that it is told about the previous party. If not `masked`, without the mask of the share.
#[derive(Default)]
struct Seen {
    told: BTreeMap<ProofMessage, Vec<u8>>,
    joint: [Vec<u8>; 2],
}

fn seen(input: [u128; 2], runs: std::ops::Range<u64>, masked: bool) -> Vec<Seen> {
    let mut all_seen: Vec<Seen> = (0..3).map(|_| Seen::default()).collect();
    for seed in runs {
        let run = run(seed, 1, input, None);
        for ((_, to, kind), messages) in &run.said {
            let told = all_seen[*to].told.entry(*kind).or_default();
            let elements = messages.iter().flatten();
            told.extend(elements.flat_map(|element| element.to_le_bytes()));
        }
        for prover in 0..3 {
            let [prover, next, previous] = all(prover);
            let share = run.said[&(prover, next, ProofMessage::Share)][0][0];
            let tag = DomainTag::dzkp_share(prover as u8);
            let mask = drawn(seed, [previous, prover], tag, counter(1), 0);
            let share = if masked { share } else { share ^ mask };
            let value = run.said[&(previous, next, ProofMessage::Findings)][0][0];
            let own = run.shares[next].iter().fold(0, |cell, bit| cell << 1 | bit);
            for (joint, element) in all_seen[next].joint.iter_mut().zip([share, value]) {
                joint.push(own << 2 | (element & 3) as u8);
            }
        }
    }
    all_seen
}

/// Cells of the joint histograms: four bits and two.
const CELLS: usize = 64;

#[test]
fn what_is_told_does_not_depend_on_the_inputs() {
    let zero = seen([0, 0], 0..RUNS, true);
    let ones = seen([1, 1], RUNS..2 * RUNS, true);
    for (party, (a, b)) in zero.iter().zip(&ones).enumerate() {
        for (kind, told) in &a.told {
            let other = &b.told[kind];
            assert!(alike(&bits(told), &bits(other), 2), "{kind:?} to {party}");
            assert!(alike(told, other, 256), "bytes of {kind:?} to {party}");
        }
        assert_eq!(a.told.len(), 7, "every kind");
        for (k, (a, b)) in a.joint.iter().zip(&b.joint).enumerate() {
            assert!(alike(a, b, CELLS), "element {k} with the shares of {party}");
        }
    }
}

/// The statistics have power: the polynomial itself tells the inputs apart.
#[test]
fn an_unmasked_share_is_noticed() {
    let zero = seen([0, 0], 0..RUNS, false);
    let ones = seen([1, 1], RUNS..2 * RUNS, false);
    for (party, (a, b)) in zero.iter().zip(&ones).enumerate() {
        assert!(!alike(&a.joint[0], &b.joint[0], CELLS), "party {party}");
    }
}
