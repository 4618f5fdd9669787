//! What semi-honest security does not find, and how far it goes (attack case A1).

use crate::common::{Found, assert_found};
use veil_circuit::{Builder, Per};
use veil_job::{Adversary, Audience, Holder, JobSpec};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{
    against, among_four, between_two, dot, everything, job, party, peer, product,
};
use veil_testkit::{Kind, Message, Values, World, flipped};

const RECIPIENT: Peer = Peer::Recipient(0);

/// One more than the first element.
fn one_more(bytes: &[u8]) -> Vec<u8> {
    let first = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")).wrapping_add(1);
    [&first.to_le_bytes(), &bytes[8..]].concat()
}

/// A1, the documented limit of semi-honest security: party 1 adds one to its part of a product, for party 2 and in its own share, which
/// it opens to the recipient. No participant notices, and the result is off by one. `malicious.rs` turns this around.
#[test]
fn a_changed_product_changes_the_result_unnoticed() {
    for (product, opened, job) in [
        (
            Kind::Product,
            Kind::Opened,
            product(Ring::Z64, 20, Audience::Recipient(0)),
        ),
        (
            Kind::SumProduct,
            Kind::Total,
            dot(Ring::Z64, 20, Audience::Recipient(0)),
        ),
    ] {
        let cheat = move |m: &Message| {
            let first = m.at.frame.chunk == 1 || (m.kind == Some(Kind::Total) && m.at.part < 6);
            let mine =
                m.from == peer(1) && first && [Some(product), Some(opened)].contains(&m.kind);
            if mine {
                Fate::Replace(one_more(&m.bytes))
            } else {
                Fate::Pass
            }
        };
        let outcome = World::in_chunks(job, 8, 1).cheat(cheat).run();
        assert!(
            outcome.aborts.is_empty(),
            "{}: {:?}",
            outcome.seed,
            outcome.aborts
        );
        let expected = &outcome.values.expected(&outcome.plan.job)[0];
        let got = outcome.rows(RECIPIENT, 0).expect("the recipient got rows");
        assert_eq!(
            got[0][0] as u64,
            (expected[0][0] as u64).wrapping_add(1),
            "{}",
            outcome.seed
        );
        assert_eq!(got[1..], expected[1..], "{}", outcome.seed);
    }
}

/// Against a malicious party the receiver of a joint message finds out in its round that it was changed; where all parties are taken to
/// follow the protocol none vouches, and it is found when the product is opened, after all that depends on it was sent, between two
/// honest parties.
#[test]
fn no_party_vouches_for_a_product_among_four_that_follow_the_protocol() {
    let [p0, p2, p3] = [0, 2, 3].map(peer);
    let cheat = move |m: &Message| {
        if m.from == p0 && m.at.frame.chunk == 1 && m.kind == Some(Kind::Product) {
            Fate::Replace(flipped(&m.bytes))
        } else {
            Fate::Pass
        }
    };
    let job = among_four(product(Ring::Z64, 20, Audience::Recipient(0)));
    for (adversary, by, round, suspects, what) in [
        (
            Adversary::Malicious,
            p2,
            Kind::Mac,
            vec![p0, p3],
            "a joint message of a product",
        ),
        (
            Adversary::SemiHonest,
            RECIPIENT,
            Kind::Opened,
            vec![p2, p3],
            "an opened component",
        ),
    ] {
        let world = World::in_chunks(against(job.clone(), adversary), 8, 1);
        let outcome = world.window(1).cheat(cheat).run();
        let found = Found::Check {
            by,
            round,
            suspects,
            what,
        };
        assert_found(&outcome, 1, &[found], p0);
    }
}

/// If it does not change its own share alike, the two copies of the component differ, and the opening shows it.
#[test]
fn a_product_whose_copies_differ_is_found_when_it_is_opened() {
    let [p1, p2] = [1, 2].map(peer);
    for (product, round, chunk, job) in [
        (
            Kind::Product,
            Kind::Opened,
            1,
            product(Ring::Z64, 20, Audience::Recipient(0)),
        ),
        (
            Kind::SumProduct,
            Kind::Total,
            4,
            dot(Ring::Z64, 20, Audience::Recipient(0)),
        ),
    ] {
        let cheat = move |m: &Message| {
            let mine = m.from == p1 && m.at.frame.chunk == 1 && m.kind == Some(product);
            if mine {
                Fate::Replace(flipped(&m.bytes))
            } else {
                Fate::Pass
            }
        };
        let outcome = World::in_chunks(job, 8, 1).window(1).cheat(cheat).run();
        let found = Found::Check {
            by: RECIPIENT,
            round,
            suspects: vec![p1, p2],
            what: "an opened component",
        };
        assert_found(&outcome, chunk, &[found], p1);
    }
}

/// Copies of what only one party made are not compared before they are used: of its own input, which it may choose anyway, and of its
/// part of a product that is used further. What it gains is an additive error. All recipients are still given the same result.
#[test]
fn what_one_party_made_is_not_compared_before_it_is_used() {
    for (kind, job) in [
        (Kind::PartyInput, dot(Ring::Z64, 20, Audience::Parties)),
        (Kind::PartyJobInput, scaled()),
        (Kind::JobProduct, scaled()),
    ] {
        let picked = move |m: &Message| m.from == peer(1) && m.kind == Some(kind);
        let cheat = move |m: &Message| {
            if picked(m) {
                Fate::Replace(one_more(&m.bytes))
            } else {
                Fate::Pass
            }
        };
        let outcome = World::in_chunks(job, 8, 1).cheat(cheat).run();
        assert!(outcome.of(kind).count() > 0, "{}", outcome.seed);
        assert!(
            outcome.aborts.is_empty(),
            "{}: {:?}",
            outcome.seed,
            outcome.aborts
        );
        let results = [0, 1, 2].map(|p| outcome.rows(peer(p), 0).expect("all parties get it"));
        assert!(
            results.iter().all(|r| *r == results[0]),
            "{}: parties differ",
            outcome.seed
        );
        assert_ne!(
            results[0],
            outcome.values.expected(&outcome.plan.job)[0],
            "{}",
            outcome.seed
        );
    }
}

/// Σ k k x with k of party 1, one for the job.
fn scaled() -> JobSpec {
    let mut b = Builder::new(Ring::Z64);
    let (x, k) = (b.input("x", 1, Per::Row), b.input("k", 1, Per::Job));
    let squared = b.mul(k[0], k[0]);
    let z = b.mul(x[0], squared);
    b.output_sum("z", &[z]);
    job(
        b.finish().expect("a valid circuit"),
        &[(20, &[Holder::Owner(0), Holder::Party(party(1))])],
        &[Audience::Parties],
    )
}

/// What two parties take as it comes: each of these changes what is opened, to any recipient, and no participant notices. An owner
/// that shares something else among the two has chosen another input.
#[test]
fn what_two_parties_send_to_open_and_to_share_is_not_checked() {
    let [garbler, evaluator, owner] = [peer(0), peer(1), Peer::Owner(0)];
    for (kind, from) in [
        (Kind::Opened, garbler),
        (Kind::Opened, evaluator),
        (Kind::Seeds, owner),
        (Kind::OwnerInput, owner),
        (Kind::OwnerJobInput, owner),
    ] {
        let cheat = move |m: &Message| {
            if m.kind == Some(kind) && m.from == from {
                Fate::Replace(m.bytes.iter().map(|byte| !byte).collect())
            } else {
                Fate::Pass
            }
        };
        let job = between_two(everything(Ring::Bits, &[200]));
        let ones = Values::new(&job, |_, _, _, _| 1);
        let world = World::in_chunks(job, 64, 1).values(ones);
        let outcome = world.cheat(cheat).run();
        let seed = outcome.seed;
        assert!(outcome.of(kind).any(|m| m.from == from), "{seed}: {kind:?}");
        assert!(
            outcome.aborts.is_empty(),
            "{seed}: {kind:?}: {:?}",
            outcome.aborts
        );
        let expected = outcome.values.expected(&outcome.plan.job);
        let wrong = (0..expected.len()).any(|port| {
            let recipients = [0, 1].map(Peer::Recipient);
            let rows = recipients.map(|peer| outcome.rows(peer, port));
            rows.into_iter()
                .flatten()
                .any(|rows| rows != expected[port])
        });
        assert!(wrong, "{seed}: {kind:?} changes nothing");
    }
}

/// Tables are what the garbler says they are: other ones change what the evaluator computes, and no participant notices. Hence two parties
/// are secure only where both follow the protocol.
#[test]
fn other_tables_change_the_result_of_two_parties_unnoticed() {
    let cheat = |m: &Message| {
        if m.kind == Some(Kind::Table) {
            // The colours of all labels.
            let change = |(k, byte): (usize, &u8)| byte ^ u8::from(k % 16 == 0);
            Fate::Replace(m.bytes.iter().enumerate().map(change).collect())
        } else {
            Fate::Pass
        }
    };
    let job = between_two(product(Ring::Bits, 200, Audience::Recipient(0)));
    let outcome = World::in_chunks(job, 64, 1).cheat(cheat).run();
    let seed = outcome.seed;
    assert!(outcome.aborts.is_empty(), "{seed}: {:?}", outcome.aborts);
    let expected = &outcome.values.expected(&outcome.plan.job)[0];
    let got = outcome.rows(RECIPIENT, 0).expect("the recipient got rows");
    assert_ne!(&got, expected, "{seed}");
}
