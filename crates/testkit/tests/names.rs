//! Messages that come under a wrong name, at a wrong length, twice or not at all: for every message of the protocol (attack case A6).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{
    AT_ONCE, Found, SAME, assert_found, assert_parties_gave_up, is_consequence, ordered,
    second_stage, side_by_side, with,
};
use veil_engine::{Abort, bounds};
use veil_job::{Audience, Holder};
use veil_link::tap::Fate;
use veil_link::{LinkError, LinkFault};
use veil_math::Ring;
use veil_protocol::protocol;
use veil_session::{Channel, PartyId, Peer};
use veil_testkit::sample::{
    against_malicious, among_four, authenticated, between_two, cut, everything, intersection, peer,
    product, word,
};
use veil_testkit::{Kind, Message, Outcome, Seed, World};

fn world() -> World {
    World::in_chunks(everything(Ring::Z64, &[13, 9]), 8, 1).window(1)
}

/// One message of each kind, the last of its kind that an honest run sends, and that run.
fn one_of_each() -> Vec<(World, Message)> {
    let owners = [Holder::Owner(0), Holder::Owner(1)];
    let outside = product(Ring::Bits, 2, Audience::Recipient(0));
    let worlds = [
        world(),
        second_stage(&everything(Ring::Z64, &[13, 9]), Seed::any()),
        ordered(&owners, &[SAME, SAME], 1),
        World::in_chunks(among_four(everything(Ring::Z64, &[13, 9])), 8, 1),
        World::in_chunks(against_malicious(everything(Ring::Bits, &[13, 9])), 8, 1),
        World::in_chunks(against_malicious(everything(Ring::Z64, &[13, 9])), 8, 1),
        World::in_chunks(between_two(everything(Ring::Bits, &[13, 9])), 8, 1),
        World::in_chunks(cut("adder:9", 2), 1, 1),
        World::in_chunks(authenticated("adder:9", 2, Audience::Parties), 2, 1),
        World::in_chunks(against_malicious(between_two(outside)), 2, 1),
        World::in_chunks(word(22, Audience::Recipient(0)), 8, 1),
        World::in_chunks(intersection([3, 4], PartyId::TWO[1]), 1, 1),
    ];
    let mut kinds = BTreeMap::new();
    for world in worlds.map(|world| world.window(1)) {
        let mut sent = BTreeMap::new();
        for message in &world.run().assert_right().transcript {
            let kind = message.kind.expect("an honest message is in the plan");
            sent.insert(kind, (world.clone(), message.clone()));
        }
        // A participant that hears no acknowledgement, or another one, gives up alone: the cheats have them.
        sent.remove(&Kind::Written);
        for (kind, last) in sent {
            kinds.entry(kind).or_insert(last);
        }
    }
    // What says that a run ends, in a run that ends.
    let ends = [Kind::OrderHeard, Kind::Written];
    // Of longer lists, with millions of transfers, and of runs with a stock.
    let elsewhere = [
        Kind::SilentSums,
        Kind::SilentQuestion,
        Kind::SilentAnswer,
        Kind::StockMarks,
        Kind::StockCaughtUp,
        Kind::StockMarked,
        Kind::MaskedOffset,
        Kind::JobMaskedOffset,
    ];
    let all = Kind::ALL.iter();
    let all = all.filter(|kind| !ends.contains(kind) && !elsewhere.contains(kind));
    assert!(kinds.keys().eq(all), "{:?}", kinds.keys());
    kinds.into_values().collect()
}

#[track_caller]
fn assert_fault(outcome: &Outcome, victim: &Message, faults: &[LinkFault]) {
    let (seed, abort) = (outcome.seed, outcome.abort(victim.to));
    let (from, at) = (victim.from, victim.at);
    let exact = |fault: &LinkFault| match abort {
        Abort::Link(error) => {
            *error
                == LinkError {
                    peer: from,
                    at: Some(at),
                    fault: fault.clone(),
                }
        }
        _ => false,
    };
    assert!(
        faults.iter().any(exact),
        "{seed}: {victim:?} leads to {abort:?}"
    );
    for (who, abort) in outcome.aborts.iter().filter(|(who, _)| **who != victim.to) {
        assert!(is_consequence(abort), "{seed}: {who} says {abort:?}");
    }
    assert_parties_gave_up(outcome);
    assert!(
        outcome.elapsed < AT_ONCE,
        "{seed}: it took {:?}",
        outcome.elapsed
    );
    outcome.assert_sound(None);
}

#[test]
fn every_message_has_the_length_of_the_plan() {
    for (world, victim) in one_of_each() {
        let want = victim.bytes.len() as u64;
        let plan = world.plan();
        let sender = protocol(Arc::clone(plan), victim.from);
        // What is longer than any message of the plan does not leave.
        let longest = bounds(plan, &*sender).longest;
        for got in [want + 1, want - 1, 0]
            .into_iter()
            .filter(|got| *got <= longest)
        {
            let outcome = with(&world, &victim, move |m| {
                let mut bytes = m.bytes.clone();
                bytes.resize(got as usize, 0);
                Fate::Replace(bytes)
            });
            assert_fault(&outcome.run(), &victim, &[LinkFault::Length { got, want }]);
        }
    }
}

#[test]
fn a_message_that_the_plan_does_not_have_is_refused() {
    for (world, victim) in one_of_each() {
        for place in [9999, u32::MAX] {
            let mut other = victim.clone();
            other.at.step.place = place;
            let (to, at) = (other.to, other.at);
            let outcome = with(&world, &victim, move |m| {
                Fate::Instead(vec![(to, at, m.bytes.clone())])
            })
            .run();
            assert_fault(&outcome, &other, &[LinkFault::Unexpected]);
        }
        let mut other = victim.clone();
        other.at.frame.chunk = 77;
        let (to, at) = (other.to, other.at);
        let outcome = with(&world, &victim, move |m| {
            Fate::Instead(vec![(to, at, m.bytes.clone())])
        })
        .run();
        assert_fault(&outcome, &other, &[LinkFault::Unexpected]);
    }
}

#[test]
fn a_message_too_many_is_noticed_at_the_end_at_the_latest() {
    for (world, victim) in one_of_each() {
        let mut other = victim.clone();
        other.at.part = 999;
        // A message after the last one that its receiver waits for finds no receiver any more.
        let last = [
            Kind::Opened,
            Kind::OpenedDigest,
            Kind::Total,
            Kind::TotalDigest,
            Kind::OutputFolds,
        ]
        .map(Some);
        if last.contains(&other.kind) {
            continue;
        }
        let (to, at) = (other.to, other.at);
        let outcome = with(&world, &victim, move |m| {
            Fate::Instead(vec![(to, m.at, m.bytes.clone()), (to, at, vec![1; 8])])
        })
        .run();
        let fault = match victim.kind {
            // Before the session has a name, a message waits for it, and is refused under the name of the others.
            Some(Kind::Hello) => LinkFault::Session,
            _ => LinkFault::Unexpected,
        };
        let found = outcome.aborts.get(&victim.to);
        let exact = matches!(found, Some(Abort::Link(e)) if e.peer == victim.from && e.at == Some(at) && [LinkFault::Unexpected, fault.clone()].contains(&e.fault));
        assert!(exact, "{}: {victim:?} leads to {found:?}", outcome.seed);
        outcome.assert_sound(None);
    }
}

#[test]
fn the_same_message_twice_is_refused_or_comes_too_late_to_matter() {
    let mut refused = 0;
    for (world, victim) in one_of_each() {
        let outcome = with(&world, &victim, |_| Fate::Twice).run();
        if outcome.aborts.is_empty() {
            outcome.assert_right();
        } else {
            // A hello that comes again after the session has got its name is of another session.
            assert_fault(
                &outcome,
                &victim,
                &[LinkFault::Duplicate, LinkFault::Session],
            );
            refused += 1;
        }
    }
    assert!(
        refused > 8,
        "only {refused} kinds of repeated messages were refused"
    );
}

#[test]
fn a_message_of_an_earlier_chunk_is_refused() {
    let late = |(_, victim): &(World, Message)| victim.at.frame.chunk > 1;
    for (world, victim) in one_of_each().into_iter().filter(late) {
        // The same message again, instead of the one of a later chunk; chunks 1 and 3 have eight rows.
        let earlier = Channel {
            frame: veil_session::Frame {
                chunk: 1,
                rows: 8,
                ..victim.at.frame
            },
            ..victim.at
        };
        let kept: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
        let (from, to, at) = (victim.from, victim.to, victim.at);
        let outcome = world.clone().cheat(move |m| {
            let mut kept = kept.lock().unwrap();
            match kept.as_ref() {
                Some(bytes) if (m.from, m.to, m.at) == (from, to, at) => {
                    Fate::Instead(vec![(to, earlier, bytes.clone())])
                }
                _ => {
                    if (m.from, m.to, m.at) == (from, to, earlier) {
                        *kept = Some(m.bytes.clone());
                    }
                    Fate::Pass
                }
            }
        });
        let outcome = outcome.timeout(Duration::from_secs(1)).run();
        let replayed = Message {
            at: earlier,
            ..victim.clone()
        };
        if world
            .run()
            .transcript
            .iter()
            .any(|m| (m.from, m.to, m.at) == (from, to, earlier))
        {
            assert_fault(&outcome, &replayed, &[LinkFault::Duplicate]);
        } else {
            // Totals have no earlier chunk: nothing was changed.
            outcome.assert_right();
        }
    }
}

/// The contents of a message of an earlier chunk, under the right name: what is checked does not accept it.
#[test]
fn what_was_said_of_an_earlier_chunk_does_not_count_again() {
    let [p0, p1, p2] = [0, 1, 2].map(peer);
    let shares = "an owner's shares";
    let check = |by, round, suspects: [Peer; 2], what| Found::Check {
        by,
        round,
        suspects: suspects.into(),
        what,
    };
    let owner = Peer::Owner(0);
    let agreement = Found::Check {
        by: p1,
        round: Kind::Agreement,
        suspects: vec![p0],
        what: "the agreement to open",
    };
    for (kind, from, to, found) in [
        (
            Kind::OwnerInput,
            owner,
            p0,
            vec![
                check(p0, Kind::OwnerDigest, [owner, p2], shares),
                check(p2, Kind::OwnerDigest, [owner, p0], shares),
            ],
        ),
        (
            Kind::OwnerDigest,
            p2,
            p0,
            vec![check(p0, Kind::OwnerDigest, [owner, p2], shares)],
        ),
        (Kind::Agreement, p0, p1, vec![agreement]),
        (
            Kind::Opened,
            p0,
            p1,
            vec![check(p1, Kind::Opened, [p0, p2], "an opened component")],
        ),
        (
            Kind::OpenedDigest,
            p2,
            p1,
            vec![check(p1, Kind::Opened, [p0, p2], "an opened component")],
        ),
    ] {
        let kept: Mutex<Option<Vec<u8>>> = Mutex::default();
        let cheat = move |m: &Message| {
            if m.kind != Some(kind) || (m.from, m.to) != (from, to) {
                return Fate::Pass;
            }
            match (m.at.frame.chunk, &mut *kept.lock().unwrap()) {
                (1, kept) => {
                    *kept = Some(m.bytes.clone());
                    Fate::Pass
                }
                (2, Some(bytes)) => Fate::Replace(bytes.clone()),
                _ => Fate::Pass,
            }
        };
        let job = product(Ring::Z64, 24, Audience::Parties);
        let outcome = World::in_chunks(job, 8, 1).window(1).cheat(cheat).run();
        assert_found(&outcome, 2, &found, from);
    }
}

#[test]
fn a_proof_of_an_earlier_session_does_not_count_again() {
    let world = world().seed(Seed(1));
    let earlier = world.run();
    let (p0, p1) = (peer(0), peer(1));
    let old = earlier
        .assert_right()
        .of(Kind::Proof)
        .find(|m| (m.from, m.to) == (p1, p0))
        .unwrap()
        .clone();
    let replay = move |m: &Message| match m.kind {
        Some(Kind::Proof) if (m.from, m.to) == (p1, p0) => Fate::Replace(old.bytes.clone()),
        _ => Fate::Pass,
    };
    let outcome = world.clone().seed(Seed(2)).cheat(replay).run();
    let found = Found::SetUp {
        by: p0,
        peer: p1,
        what: "was told other nonces by another party",
    };
    assert_found(&outcome, 0, &[found], p1);
}

#[test]
fn a_message_that_does_not_come_is_named() {
    side_by_side(&one_of_each(), |(world, victim)| {
        let outcome = with(world, victim, |_| Fate::Drop)
            .timeout(Duration::from_secs(1))
            .run();
        let awaited = |abort: &Abort| match abort {
            Abort::Stalled { waits, .. } | Abort::Told { waits, .. } => waits
                .iter()
                .any(|w| (w.peer, w.at, w.sending) == (victim.from, victim.at, false)),
            // The sender has nothing more to do, and left.
            Abort::Link(error) => error.peer == victim.from && error.at == Some(victim.at),
            _ => false,
        };
        let to = outcome.abort(victim.to);
        assert!(awaited(to), "{}: {victim:?}: {to:?}", outcome.seed);
        let clear = |abort: &Abort| matches!(abort, Abort::Stalled { .. }) || is_consequence(abort);
        assert!(
            outcome.aborts.values().all(clear),
            "{}: {victim:?}: {:?}",
            outcome.seed,
            outcome.aborts
        );
        assert!(
            outcome.elapsed < AT_ONCE,
            "{}: {:?}",
            outcome.seed,
            outcome.elapsed
        );
        outcome.assert_sound(None);
    });
}
