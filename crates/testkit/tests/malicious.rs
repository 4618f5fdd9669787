//! Three parties of whom one may be malicious compute what the circuit says in the clear, and notice every wrong bit before anything is
//! opened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Found, assert_found, found_about, found_of_challenge, found_of_product};
use veil_circuit::{Builder, Per};
use veil_device::Cpu;
use veil_engine::Abort;
use veil_job::{Adversary, Audience, Holder};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_protocol::{Options, Plan, PlanError, Protocol, Replicated, Task};
use veil_session::Peer;
use veil_testkit::sample::{against_malicious, everything, job, party, peer, product};
use veil_testkit::{Kind, Message, Outcome, World, flipped};

fn world(blocks: &[u64], chunk_rows: u32, lanes: u16) -> World {
    World::in_chunks(
        against_malicious(everything(Ring::Bits, blocks)),
        chunk_rows,
        lanes,
    )
}

/// Layers of 64 products in 4096 rows: two of them are proved together, and a wrong bit in any is found.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn long_circuits_are_proved_in_several_batches() {
    let mut b = Builder::new(Ring::Bits);
    let mut x = b.input("x", 64, Per::Row);
    for layer in 0..5 {
        x = (0..64)
            .map(|k| b.mul(x[k], x[(k + 1 + layer) % 64]))
            .collect();
    }
    b.output("z", &x);
    let circuit = b.finish().expect("a valid circuit");
    let job = job(
        circuit,
        &[(4096, &[Holder::Party(party(0))])],
        &[Audience::Recipient(0)],
    );
    let honest =
        World::in_chunks(against_malicious(job), 4096, 1).devices(|_| Box::new(Cpu::detect()));
    let outcome = honest.run();
    outcome.assert_right();
    let said: Vec<&Message> = outcome.of(Kind::Findings).collect();
    assert_eq!(said.len(), 3 * 2 * 3, "three batches");
    let products: Vec<Message> = outcome.of(Kind::Product).cloned().collect();
    for message in &products {
        let name = (message.from, message.to, message.at);
        let cheat = move |m: &Message| {
            if (m.from, m.to, m.at) == name {
                Fate::Replace(flipped(&m.bytes))
            } else {
                Fate::Pass
            }
        };
        let outcome = honest.clone().cheat(cheat).run();
        assert!(
            outcome.reports.is_empty(),
            "{}: a party finished",
            outcome.seed
        );
        outcome.assert_sound(Some(message.from));
    }
}

/// A circuit whose sums of products would each be one product for a protocol that proves nothing.
#[test]
fn sums_of_products_are_proved_one_by_one() {
    let mut b = Builder::new(Ring::Bits);
    let x = b.input("x", 4, Per::Row);
    let (p, q) = (b.mul(x[0], x[1]), b.mul(x[2], x[3]));
    let sum = b.add(p, q);
    let z = b.mul(sum, x[0]);
    b.output("z", &[sum, z]);
    let circuit = b.finish().expect("a valid circuit");
    let job = job(
        circuit,
        &[(20, &[Holder::Party(party(0))])],
        &[Audience::Parties],
    );
    let products = |job| World::in_chunks(job, 8, 1).plan().products();
    assert_eq!(products(job.clone()), 2);
    assert_eq!(products(against_malicious(job.clone())), 3);
    World::in_chunks(against_malicious(job), 8, 1)
        .run()
        .assert_right();
}

#[test]
fn integers_modulo_2_128_are_refused() {
    let job = against_malicious(product(Ring::Z128, 20, Audience::Parties));
    let security = job.security;
    assert_eq!(security.adversary, Adversary::Malicious);
    let refused = Plan::new(Arc::new(job), Options::default()).map(|plan| plan.hash);
    assert_eq!(refused, Err(PlanError::TooWide(security)));
}

/// What becomes of a message.
type Change = fn(&[u8]) -> Vec<u8>;

/// A1: every message of products, of every party and layer, one bit wrong or all. The sender's own copy is opened alike: no recipient
/// sees that the copies differ.
#[test]
fn a_wrong_product_is_found_before_anything_is_opened() {
    let honest = world(&[13, 9], 8, 1).window(1);
    let inverted = |bytes: &[u8]| bytes.iter().map(|byte| !byte).collect();
    let changes: [Change; 2] = [flipped, inverted];
    let outcome = honest.run();
    let products = |m: &&Message| matches!(m.kind, Some(Kind::Product | Kind::JobProduct));
    let messages: Vec<Message> = (outcome.assert_right().transcript.iter())
        .filter(products)
        .cloned()
        .collect();
    assert!(messages.len() > 12, "of all parties, chunks and layers");
    for message in &messages {
        for change in changes {
            let name = (message.from, message.to, message.at);
            let cheat = move |m: &Message| {
                if (m.from, m.to, m.at) == name {
                    Fate::Replace(change(&m.bytes))
                } else {
                    Fate::Pass
                }
            };
            let outcome = honest.clone().cheat(cheat).run();
            let round = match message.kind {
                Some(Kind::Product) => Kind::Findings,
                _ => Kind::JobFindings,
            };
            let chunk = message.at.frame.chunk;
            assert_found(
                &outcome,
                chunk,
                &found_of_product(message.from, round),
                message.from,
            );
            for (who, seen) in &outcome.seen {
                assert!(
                    !seen.finished() || outcome.ports_of(*who).is_empty(),
                    "{}: {who} finished",
                    outcome.seed
                );
                let opened = seen.slices().into_iter().map(|(_, slice)| slice);
                let chunk = outcome
                    .plan
                    .chunk(chunk.saturating_sub(1))
                    .expect("a chunk");
                assert!(
                    opened
                        .clone()
                        .all(|s| (s.block, s.first) < (chunk.block, chunk.first)),
                    "{}: {who} was given rows that depend on it",
                    outcome.seed
                );
            }
        }
    }
}

/// A6: what a prover or verifier said of an earlier chunk is not accepted for a later one.
#[test]
fn what_was_said_of_an_earlier_chunk_does_not_count_again() {
    for kind in [
        Kind::Product,
        Kind::ProofReady,
        Kind::ProofSeed,
        Kind::ProofSeedEcho,
        Kind::ProofShare,
        Kind::Challenge,
        Kind::Echo,
        Kind::Findings,
    ] {
        let (from, to) = match kind {
            Kind::Echo | Kind::ProofSeedEcho => (peer(1), peer(0)),
            Kind::ProofReady | Kind::ProofSeed | Kind::Challenge => (peer(2), peer(1)),
            _ => (peer(1), peer(2)),
        };
        let kept: Mutex<BTreeMap<_, Vec<u8>>> = Mutex::default();
        let cheat = move |m: &Message| {
            if m.kind != Some(kind) || (m.from, m.to) != (from, to) {
                return Fate::Pass;
            }
            let mut kept = kept.lock().unwrap();
            let step = (m.at.step.place, m.at.part);
            match m.at.frame.chunk {
                1 => drop(kept.insert(step, m.bytes.clone())),
                2 => return Fate::Replace(kept[&step].clone()),
                _ => {}
            }
            Fate::Pass
        };
        let outcome = world(&[24], 8, 1).window(1).cheat(cheat).run();
        // Party 1 tells party 2 what it found about party 0.
        let prover = peer((kind != Kind::Findings).into());
        let found = match kind {
            Kind::Product => found_of_product(from, Kind::Findings),
            Kind::ProofReady => vec![Found::Check {
                by: to,
                round: Kind::ProofReady,
                suspects: vec![from],
                what: "the seed of a proof",
            }],
            Kind::ProofSeed | Kind::ProofSeedEcho => {
                found_of_challenge(prover, Kind::ProofSeedEcho)
            }
            Kind::Challenge | Kind::Echo => found_of_challenge(prover, Kind::Echo),
            _ => found_about(prover, Kind::Findings),
        };
        assert_found(&outcome, 2, &found, from);
    }
}

/// A11: a prover that holds its input to one verifier back hears no seed of the other, who has all of its products and would else tell it the
/// weights while it could still choose which products are wrong.
#[test]
fn no_seed_is_told_before_the_other_verifier_has_its_inputs() {
    let mut b = Builder::new(Ring::Bits);
    let [x, y] = ["x", "y"].map(|name| b.input(name, 1, Per::Row)[0]);
    let z = b.mul(x, y);
    b.output("z", &[z]);
    let circuit = b.finish().expect("a valid circuit");
    let holders = [0, 1].map(|owner| Holder::Party(party(owner)));
    let job = job(circuit, &[(64, &holders)], &[Audience::Recipient(0)]);
    let honest = World::in_chunks(against_malicious(job), 64, 1);
    let cheat = |m: &Message| {
        let held = m.kind == Some(Kind::PartyInput) && (m.from, m.to) == (peer(0), peer(2));
        if held { Fate::Drop } else { Fate::Pass }
    };
    let seeds = |outcome: &Outcome| {
        let told = outcome.of(Kind::ProofSeed);
        told.filter(|m| (m.from, m.to) == (peer(1), peer(0)))
            .count()
    };
    assert!(seeds(&honest.run()) > 0);
    let late = honest
        .timeout(Duration::from_secs(2))
        .cheat(cheat)
        .run_apart();
    let sent = |kind| {
        late.of(kind)
            .filter(|m| m.from == peer(0) && m.to == peer(1))
            .count()
    };
    assert!(
        sent(Kind::Product) > 0,
        "party 1 has all products of party 0"
    );
    assert_eq!(seeds(&late), 0, "{}", late.seed);
    for party in [1, 2].map(peer) {
        let found = late.abort(party);
        assert!(
            matches!(found, Abort::Stalled { .. } | Abort::Told { .. }),
            "{found:?}"
        );
    }
}

/// A verifier that tells the prover another challenge would learn from the other verifier's findings by how much the prover's
/// polynomial differs at both, which depends on secrets: so that one says nothing of it, whatever the level of the lie.
#[test]
fn a_wrong_challenge_is_found_before_a_party_says_what_follows_from_it() {
    let honest = world(&[24], 8, 1).window(1);
    let outcome = honest.run();
    outcome.assert_right();
    let told = |m: &Message| {
        matches!(m.kind, Some(Kind::ProofSeed | Kind::Challenge))
            && (m.from, m.to, m.at.frame.chunk) == (peer(2), peer(1), 2)
    };
    let levels = outcome.transcript.iter().filter(|m| told(m));
    let places: Vec<u32> = levels.map(|m| m.at.step.place).collect();
    assert!(
        places.len() >= 4,
        "a seed, and challenges of three levels at least"
    );
    for place in places {
        let cheat = move |m: &Message| {
            if told(m) && m.at.step.place == place {
                Fate::Replace(flipped(&m.bytes))
            } else {
                Fate::Pass
            }
        };
        for outcome in [
            honest.clone().cheat(cheat).run(),
            honest.clone().cheat(cheat).run_apart(),
        ] {
            let found = outcome.abort(peer(0));
            assert!(
                matches!(found, Abort::Cheated { at, suspects, what: "the challenge to a proof" }
                    if at.step.place == place + 1 && *suspects == [peer(1), peer(2)]),
                "{}: {found:?}",
                outcome.seed
            );
            let told = outcome.of(Kind::Findings);
            let told =
                told.filter(|m| (m.from, m.to) == (peer(0), peer(2)) && m.at.frame.chunk == 2);
            assert_eq!(told.count(), 0, "{}: findings left party 0", outcome.seed);
        }
    }
}

/// One bit per product and party, and the proof of a batch: a good kilobyte for 2^19 products.
#[test]
fn a_product_costs_one_bit_and_a_proof_of_its_batch() {
    let rows = 1 << 19;
    let semi_honest = product(Ring::Bits, rows, Audience::Recipient(0));
    let costs = [semi_honest.clone(), against_malicious(semi_honest)].map(|job| {
        let world = World::in_chunks(job, rows as u32, 1);
        let protocol = Replicated::new(Arc::clone(world.plan()), Peer::Party(party(1)));
        let frame = world.plan().chunk(0).expect("a chunk").frame;
        protocol.cost(Task::Layers, frame)
    });
    assert_eq!(costs[0].bytes, rows / 8);
    let proof = costs[1].bytes - costs[0].bytes;
    assert!((500..1500).contains(&proof), "{proof} bytes");
    assert!(costs[1].rounds <= 20, "{} rounds", costs[1].rounds);
}
