//! Holders of a block compare the order of a key column before anything that depends on an input is sent.

use std::collections::BTreeSet;

use crate::common::{AT_ONCE, SAME, is_misaligned, ordered, sum};
use veil_engine::{Abort, participants};
use veil_job::Holder;
use veil_link::tap::Fate;
use veil_session::Peer;
use veil_testkit::sample::{party, peer};
use veil_testkit::{Kind, Message, Outcome, World};

/// What a judge answers if all digests agree.
const NO_DIFFERENCE: [u8; 4] = [0xff; 4];

/// No message depends on an input.
fn nothing_was_shared(outcome: &Outcome) {
    let handshake = [
        Kind::Hello,
        Kind::Proof,
        Kind::Seeds,
        Kind::Order,
        Kind::OrderAnswer,
        Kind::OrderHeard,
    ];
    let early = |m: &&Message| m.kind.is_some_and(|kind| handshake.contains(&kind));
    // A participant that holds nothing of the block may be at the list of inputs already, which says nothing of them.
    let later: BTreeSet<_> = outcome
        .transcript
        .iter()
        .filter(|m| !early(m))
        .map(|m| m.kind)
        .collect();
    let public = [Some(Kind::List), Some(Kind::SeedDigest)];
    assert!(later.iter().all(|kind| public.contains(kind)), "{later:?}");
}

/// Holders, and the parties that compare.
fn casts() -> [(Vec<Holder>, [u8; 2]); 5] {
    let [p0, p1, p2] = [0, 1, 2].map(|p| Holder::Party(party(p)));
    let (ann, bob) = (Holder::Owner(0), Holder::Owner(1));
    [
        (vec![ann, bob], [0, 1]),
        (vec![ann, p0], [1, 2]),
        (vec![p1, p0], [2, 0]),
        (vec![p0, p1, p2], [0, 1]),
        (vec![ann, p2, p0, bob, p1], [0, 1]),
    ]
}

#[test]
fn tables_in_the_same_order_are_computed_on() {
    for (holders, judges) in casts() {
        for lanes in [1, 2] {
            let world = ordered(&holders, &vec![SAME; holders.len()], lanes);
            assert_eq!(world.plan().orders[0].judges, judges.map(party));
            let outcome = world.run();
            outcome.assert_right();
            let sent: BTreeSet<(Peer, Peer)> =
                outcome.of(Kind::Order).map(|m| (m.from, m.to)).collect();
            let holders = holders.iter().filter_map(|h| h.peer());
            let expected: BTreeSet<(Peer, Peer)> = holders
                .flat_map(|holder| judges.map(|judge| (holder, peer(judge))))
                .filter(|(holder, judge)| holder != judge)
                .collect();
            assert_eq!(sent, expected);
            assert_eq!(outcome.of(Kind::Order).count(), expected.len());
            assert!(outcome.of(Kind::Order).all(|m| m.bytes.len() == 64));
            assert!(
                outcome
                    .of(Kind::OrderAnswer)
                    .all(|m| m.bytes == NO_DIFFERENCE)
            );
            assert_eq!(outcome.of(Kind::OrderHeard).count(), 0);
        }
    }
}

#[test]
fn every_holder_learns_which_rows_differ_and_none_shares_any() {
    for (holders, judges) in casts() {
        for odd in 0..holders.len() {
            for (from, first, rows) in [(0, 0, 4), (1, 4, 3)] {
                let mut chains = vec![SAME; holders.len()];
                chains[odd] = from;
                for lanes in [1, 3] {
                    let world = ordered(&holders, &chains, lanes);
                    for outcome in [world.run(), world.run_apart()] {
                        let knows = |who: Peer| {
                            judges.map(peer).contains(&who)
                                || holders.iter().any(|h| h.peer() == Some(who))
                        };
                        for who in participants(&outcome.plan) {
                            let abort = outcome.abort(who);
                            if knows(who) {
                                assert!(is_misaligned(abort, first, rows), "{who}: {abort}");
                            } else {
                                // A peer gave up, or was gone already.
                                let told = matches!(abort, Abort::Told { .. } | Abort::Link(_));
                                assert!(told, "{who}: {abort}");
                            }
                        }
                        nothing_was_shared(&outcome);
                    }
                }
            }
        }
    }
}

#[test]
fn the_message_says_which_rows_from_one() {
    let (holders, _) = &casts()[0];
    let outcome = ordered(holders, &[SAME, 1], 1).run();
    assert_eq!(
        outcome.abort(Peer::Owner(0)).to_string(),
        "the rows of block `block 1` are not the same ones in the same order at all of its holders: the first difference is \
         between rows 5 and 7; sort all tables of the block by the key column and run again; nothing was shared"
    );
}

/// What the judge sees of a run is of no use for another: the digests are of the session.
#[test]
fn digests_of_another_session_are_a_difference() {
    let (holders, _) = &casts()[0];
    let chains = [SAME, SAME];
    let before = ordered(holders, &chains, 1).run();
    let from = |outcome: &Outcome, who| -> Vec<u8> {
        let mut sent = outcome.of(Kind::Order).filter(|m| m.from == who);
        sent.next().expect("it was sent").bytes.clone()
    };
    let old = from(&before, Peer::Owner(1));
    let replay = move |m: &Message| match m.kind {
        Some(Kind::Order) if m.from == Peer::Owner(1) => Fate::Replace(old.clone()),
        _ => Fate::Pass,
    };
    let outcome = ordered(holders, &chains, 1).cheat(replay).run();
    assert!(is_misaligned(outcome.abort(Peer::Owner(0)), 0, 4));
    assert_ne!(
        from(&before, Peer::Owner(0)),
        from(&outcome, Peer::Owner(0))
    );
    nothing_was_shared(&outcome);
}

#[test]
fn lists_of_another_length_are_errors_of_the_link() {
    let (holders, _) = &casts()[0];
    for (kind, from, to) in [
        (Kind::Order, Peer::Owner(0), peer(0)),
        (Kind::OrderAnswer, peer(0), Peer::Owner(0)),
    ] {
        for longer in [false, true] {
            let cheat = move |m: &Message| {
                if m.kind != Some(kind) || m.from != from || m.to != to {
                    return Fate::Pass;
                }
                let mut bytes = m.bytes.clone();
                if longer {
                    bytes.extend([0; 32]);
                } else {
                    bytes.pop();
                }
                Fate::Replace(bytes)
            };
            let outcome = ordered(holders, &[SAME, SAME], 1).cheat(cheat).run();
            let abort = outcome.abort(to);
            assert!(
                matches!(abort, Abort::Link(error) if error.peer == from),
                "{abort}"
            );
            nothing_was_shared(&outcome);
        }
    }
}

/// One judge that says what it likes, to one holder or to all: the other judge says otherwise, and the run ends at once, before anything is
/// shared.
#[test]
fn a_judge_that_lies_ends_the_run_and_hides_no_difference() {
    for (holders, judges) in casts() {
        let heard = holders.iter().filter_map(|h| h.peer());
        let heard: Vec<Peer> = heard.filter(|h| *h != peer(judges[0])).collect();
        for (say, from) in [
            (NO_DIFFERENCE, 0),
            (NO_DIFFERENCE, 1),
            ([0, 0, 0, 0], 1),
            ([0, 0, 0, 0], SAME),
            ([1, 0, 0, 0], SAME),
        ] {
            let mut chains = vec![SAME; holders.len()];
            chains[0] = from;
            for to in [&heard[..1], &heard[..]] {
                let told = to.to_vec();
                let cheat = move |m: &Message| match m.kind {
                    Some(Kind::OrderAnswer)
                        if m.from == peer(judges[0]) && told.contains(&m.to) =>
                    {
                        Fate::Replace(say.to_vec())
                    }
                    _ => Fate::Pass,
                };
                let outcome = ordered(&holders, &chains, 1).cheat(cheat).run();
                let found = |who: &Peer| {
                    let abort = outcome.abort(*who);
                    let what = "what two judges say of the order of rows";
                    is_misaligned(abort, 0, 4)
                        || is_misaligned(abort, 4, 3)
                        || matches!(abort, Abort::Cheated { suspects, what: w, .. }
                            if *w == what && suspects.contains(&peer(judges[0])))
                };
                assert!(to.iter().any(found), "{:?}", outcome.aborts);
                assert!(outcome.elapsed < AT_ONCE, "{:?}", outcome.elapsed);
                nothing_was_shared(&outcome);
            }
        }
    }
}

#[test]
fn a_holder_without_digests_does_not_start() {
    let (holders, _) = &casts()[0];
    for digests in [vec![], vec![vec![], vec![[0; 32]; 3]]] {
        let found = digests.get(1).map_or(0, Vec::len);
        let outcome = ordered(holders, &[SAME, SAME], 1)
            .order(Peer::Owner(1), digests)
            .run();
        assert_eq!(
            outcome.abort(Peer::Owner(1)).to_string(),
            format!(
                "the order of block `block 1` is compared by 2 digests of its key column, and this participant has {found}"
            )
        );
        assert!(outcome.transcript.is_empty());
    }
}

#[test]
fn a_block_of_one_holder_compares_nothing() {
    let (ann, stored) = (Holder::Owner(0), [Holder::Stored]);
    let mut alone = sum(&[ann, ann]);
    alone.blocks[0].order = veil_job::Order::Compared {
        every: 1,
        duplicates: true,
    };
    let world = World::in_chunks(alone, 8, 1);
    assert!(world.plan().orders.is_empty());
    world.run().assert_right();
    let mut loaded = sum(&stored);
    for block in &mut loaded.blocks {
        block.stored = Some("pay".into());
    }
    assert!(World::new(loaded).plan().orders.is_empty());
}
