//! What two parties said in one session does not count in another, of the same job between the same two (attack case A6; D1 for base
//! transfers): an adversary that has recorded a garbler, or an evaluator, gets nothing out of the other one with it.

use std::collections::HashMap;

use crate::common::{Found, assert_found};
use veil_engine::participants;
use veil_job::Audience;
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{authenticated, between_two, everything, peer};
use veil_testkit::{Kind, Message, Outcome, Seed, World};

const NONCES: &str = "was told other nonces by another party";
const SESSION: &str = "sent a message of oblivious transfer that was not made for this session";

type Make = fn() -> World;

fn garbled() -> World {
    World::in_chunks(between_two(everything(Ring::Bits, &[13, 9])), 8, 1)
}

fn checked() -> World {
    World::in_chunks(authenticated("adder:9", 13, Audience::Parties), 8, 1)
}

/// Two seeds that nothing has in common.
fn seeds() -> [Seed; 2] {
    let seed = Seed::any();
    [seed, Seed(!seed.0)]
}

/// A run in which what `from` says to the other party is, where it is `said`, what it said in an earlier one under the same name.
fn replay(
    make: Make,
    from: Peer,
    said: impl Fn(&Message) -> bool + Send + Sync + 'static,
) -> [Outcome; 2] {
    let world = |seed| make().window(1).seed(seed);
    let [before, now] = seeds();
    let to = peer(u8::from(from == peer(0)));
    let earlier = world(before).run();
    let mut old = HashMap::new();
    for m in &earlier.assert_right().transcript {
        if (m.from, m.to) == (from, to) {
            old.insert(m.at, m.bytes.clone());
        }
    }
    let cheat = move |m: &Message| {
        if (m.from, m.to) != (from, to) || !said(m) {
            return Fate::Pass;
        }
        let old = old.get(&m.at).expect("both runs say the same things");
        assert_ne!(*old, m.bytes, "{:?} says nothing of its session", m.kind);
        Fate::Replace(old.clone())
    };
    let world = world(now).cheat(cheat);
    [world.run(), world.run_apart()]
}

#[test]
fn a_message_of_an_earlier_session_is_refused() {
    let [garbler, evaluator] = [0, 1].map(peer);
    let corrections = "corrections of oblivious transfer";
    for (kind, from, chunk) in [
        (Kind::Proof, garbler, 0),
        (Kind::Proof, evaluator, 0),
        (Kind::Points, garbler, 0),
        (Kind::Points, evaluator, 0),
        (Kind::Trees, evaluator, 0),
        (Kind::JobCorrection, evaluator, 0),
        (Kind::Correction, evaluator, 1),
    ] {
        let by = if from == garbler { evaluator } else { garbler };
        let set_up = |what| Found::SetUp {
            by,
            peer: from,
            what,
        };
        let found = match kind {
            Kind::Proof => set_up(NONCES),
            Kind::Points | Kind::Trees => set_up(SESSION),
            _ => Found::Check {
                by,
                round: kind,
                suspects: vec![from],
                what: corrections,
            },
        };
        for outcome in replay(garbled, from, move |m| m.kind == Some(kind)) {
            println!("{kind:?} of {from}: {:?}", outcome.aborts);
            assert_found(&outcome, chunk, std::slice::from_ref(&found), from);
            no_recipient_was_given_anything(&outcome);
        }
    }
}

/// Messages of every step of authenticated garbling, whose checks are of this session's masks and offsets.
#[test]
fn a_message_of_an_earlier_session_of_authenticated_garbling_is_refused() {
    let [garbler, evaluator] = [0, 1].map(peer);
    let corrections = "corrections of oblivious transfer";
    let products = "leaky products of authenticated bits";
    let labels = "labels of results";
    for (kind, from, by, round, what) in [
        (
            Kind::Correction,
            garbler,
            evaluator,
            Kind::TransferFolds,
            corrections,
        ),
        (
            Kind::Correction,
            evaluator,
            garbler,
            Kind::TransferFolds,
            corrections,
        ),
        (
            Kind::InputParts,
            garbler,
            evaluator,
            Kind::InputFold,
            "parts of masks of inputs",
        ),
        (
            Kind::LeakyOffer,
            garbler,
            garbler,
            Kind::LeakyDigest,
            products,
        ),
        (
            Kind::LeakyOffer,
            evaluator,
            garbler,
            Kind::LeakyDigest,
            products,
        ),
        (
            Kind::LeakyCommitment,
            garbler,
            evaluator,
            Kind::LeakyDigest,
            "what the other party committed to",
        ),
        (
            Kind::OpenedBits,
            evaluator,
            garbler,
            Kind::BitFolds,
            "bits that are opened of a batch",
        ),
        (Kind::Table, garbler, garbler, Kind::LabelFold, labels),
        (
            Kind::MaskedResults,
            evaluator,
            garbler,
            Kind::LabelFold,
            labels,
        ),
        (
            Kind::GateFold,
            garbler,
            evaluator,
            Kind::GateFold,
            "masks of gates",
        ),
        (
            Kind::OutputParts,
            evaluator,
            garbler,
            Kind::OutputFolds,
            "parts of masks of outputs",
        ),
    ] {
        let suspect = if by == garbler { evaluator } else { garbler };
        let found = Found::Check {
            by,
            round,
            suspects: vec![suspect],
            what,
        };
        for outcome in replay(checked, from, move |m| m.kind == Some(kind)) {
            println!("{kind:?} of {from}: {:?}", outcome.aborts);
            assert_found(&outcome, 1, std::slice::from_ref(&found), from);
        }
    }
}

/// An adversary has everything that a party said, and stands in its place: the nonce of the other one is new, so that nothing else fits. The
/// participants that hear both parties may be the first to say so.
#[test]
fn a_whole_session_cannot_be_said_again() {
    for (make, from) in [
        (garbled as Make, peer(0)),
        (garbled, peer(1)),
        (checked, peer(0)),
        (checked, peer(1)),
    ] {
        for outcome in replay(make, from, |_| true) {
            println!("{from}: {:?}", outcome.aborts);
            let everybody = participants(&outcome.plan);
            let pairs = everybody.iter().flat_map(|by| {
                let told = [0, 1].map(peer).into_iter().filter(move |peer| peer != by);
                told.map(move |peer| Found::SetUp {
                    by: *by,
                    peer,
                    what: NONCES,
                })
            });
            let found: Vec<Found> = pairs.collect();
            assert_found(&outcome, 0, &found, from);
            let sent = |kind: Kind| outcome.of(kind).count();
            assert_eq!(sent(Kind::Table) + sent(Kind::JobTable), 0, "a table left");
            no_recipient_was_given_anything(&outcome);
        }
    }
}

fn no_recipient_was_given_anything(outcome: &Outcome) {
    let given = outcome.seen.values().any(|seen| !seen.slices().is_empty());
    assert!(!given, "{}: a recipient was given a value", outcome.seed);
}
