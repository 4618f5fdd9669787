//! An owner that sends other rows than the job declares, under the plan that it does: more, fewer, in blocks of other lengths, in
//! another order (attack case A9).

use std::time::Duration;

use crate::common::{AT_ONCE, Found, assert_found, assert_parties_gave_up, is_consequence};
use veil_engine::Abort;
use veil_job::Audience;
use veil_link::tap::Fate;
use veil_link::{LinkError, LinkFault};
use veil_math::Ring;
use veil_session::{Channel, Peer};
use veil_testkit::sample::{everything, peer, product};
use veil_testkit::{Kind, Message, Outcome, World};

const OWNER: Peer = Peer::Owner(0);

/// Blocks of 13 and 9 rows in chunks of eight: 8, 5, 8 and 1.
fn world() -> World {
    World::in_chunks(everything(Ring::Z64, &[13, 9]), 8, 1)
        .window(1)
        .timeout(Duration::from_secs(1))
}

/// What the owner sends instead of each message with rows of its own.
fn with(instead: impl Fn(&Message) -> Fate + Send + Sync + 'static) -> Outcome {
    let outcome = world()
        .cheat(move |m| {
            if m.from == OWNER && m.kind == Some(Kind::OwnerInput) {
                instead(m)
            } else {
                Fate::Pass
            }
        })
        .run();
    assert!(outcome.elapsed < AT_ONCE, "{:?}", outcome.elapsed);
    outcome.assert_sound(Some(OWNER));
    outcome
}

/// The message as an owner sends it that has `rows` rows in that chunk.
fn of(rows: u32, m: &Message) -> (Peer, Channel, Vec<u8>) {
    let mut at = m.at;
    let row = m.bytes.len() / at.frame.rows as usize;
    at.frame.rows = rows;
    let mut bytes = m.bytes.clone();
    bytes.resize(row * rows as usize, 7);
    (m.to, at, bytes)
}

/// A party that holds what the owner sends says exactly this; the others the same, or that a peer gave up; and all parties do.
#[track_caller]
fn assert_refused(outcome: &Outcome, at: Channel, fault: &LinkFault) {
    let exact = |abort: &Abort| {
        let error = LinkError {
            peer: OWNER,
            at: Some(at),
            fault: fault.clone(),
        };
        matches!(abort, Abort::Link(found) if *found == error)
    };
    let holders = [0, 2].map(|party| outcome.abort(peer(party)));
    let seed = outcome.seed;
    assert!(
        holders.iter().any(|abort| exact(abort)),
        "{seed}: {holders:?}"
    );
    for (who, abort) in &outcome.aborts {
        assert!(
            exact(abort) || is_consequence(abort),
            "{seed}: {who}: {abort:?}"
        );
    }
    assert_parties_gave_up(outcome);
}

/// The name of the owner's message of a chunk of so many rows.
fn name(chunk: u32, rows: u32) -> Channel {
    let sent = world().run();
    let mut at = sent
        .of(Kind::OwnerInput)
        .find(|m| m.from == OWNER)
        .expect("the owner sends rows")
        .at;
    (at.frame.chunk, at.frame.rows) = (chunk, rows);
    at
}

fn left() -> LinkFault {
    LinkFault::Closed("it left while this side still needs it".into())
}

#[test]
fn rows_more_or_less_than_declared_are_messages_of_other_names() {
    for rows in [4, 6, 8] {
        let outcome = with(move |m| match m.at.frame.chunk {
            2 => Fate::Instead(vec![of(rows, m)]),
            _ => Fate::Pass,
        });
        assert_refused(&outcome, name(2, 5), &left());
    }
}

#[test]
fn rows_more_or_less_under_the_declared_name_are_messages_of_other_lengths() {
    // Two wires of eight bytes a row.
    for (rows, got) in [(4, 64), (6, 96), (0, 0)] {
        let outcome = with(move |m| match m.at.frame.chunk {
            2 => Fate::Replace(of(rows, m).2),
            _ => Fate::Pass,
        });
        assert_refused(&outcome, name(2, 5), &LinkFault::Length { got, want: 80 });
    }
}

#[test]
fn a_chunk_more_is_not_in_the_plan() {
    // That of the totals, where no rows are, and those behind it.
    for chunk in [5, 6, u32::MAX] {
        let outcome = with(move |m| {
            let (to, mut at, bytes) = of(8, m);
            at.frame.chunk = chunk;
            match m.at.frame.chunk {
                4 => Fate::Instead(vec![(to, m.at, m.bytes.clone()), (to, at, bytes)]),
                _ => Fate::Pass,
            }
        });
        assert_refused(&outcome, name(chunk, 8), &LinkFault::Unexpected);
    }
}

#[test]
fn a_chunk_less_is_missed_by_its_name() {
    for (chunk, rows) in [(1, 8), (2, 5), (4, 1)] {
        let outcome = with(move |m| {
            if m.at.frame.chunk == chunk {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        assert_refused(&outcome, name(chunk, rows), &left());
    }
}

/// As many rows in all: 12 and 10 where 13 and 9 are declared.
#[test]
fn blocks_of_other_lengths_are_noticed_at_the_first() {
    let outcome = with(|m| match m.at.frame.chunk {
        2 => Fate::Instead(vec![of(4, m)]),
        4 => Fate::Instead(vec![of(2, m)]),
        _ => Fate::Pass,
    });
    assert_refused(&outcome, name(2, 5), &left());
}

/// Every column of eight elements with the first two exchanged.
fn exchanged(bytes: &[u8]) -> Vec<u8> {
    let exchange = |column: &[u8]| [&column[8..16], &column[..8], &column[16..]].concat();
    bytes.chunks(64).flat_map(exchange).collect()
}

#[test]
fn rows_in_another_order_for_one_party_are_found_as_another_copy() {
    for to in [0, 2].map(peer) {
        let outcome = with(move |m| match m.at.frame.chunk {
            1 if m.to == to => Fate::Replace(exchanged(&m.bytes)),
            _ => Fate::Pass,
        });
        let [p0, p2] = [0, 2].map(peer);
        let found = [(p0, p2), (p2, p0)].map(|(by, other)| Found::Check {
            by,
            round: Kind::OwnerDigest,
            suspects: vec![OWNER, other],
            what: "an owner's shares",
        });
        assert_found(&outcome, 1, &found, OWNER);
    }
}

/// The same for all: an owner may say what it likes of its own rows, and this is no more than that. All get one result, of other rows.
#[test]
fn other_rows_for_all_parties_alike_are_an_input() {
    let job = product(Ring::Z64, 8, Audience::Parties);
    let outcome = World::in_chunks(job, 8, 1)
        .cheat(|m| match m.kind {
            Some(Kind::OwnerInput) if m.from == OWNER => Fate::Replace(exchanged(&m.bytes)),
            _ => Fate::Pass,
        })
        .run();
    assert!(outcome.aborts.is_empty(), "{:?}", outcome.aborts);
    let results = [0, 1, 2].map(|party| outcome.rows(peer(party), 0).unwrap());
    assert!(results.iter().all(|rows| *rows == results[0]));
    let expected = &outcome.values.expected(&outcome.plan.job)[0];
    assert_ne!(results[0][..2], expected[..2]);
    assert_eq!(results[0][2..], expected[2..]);
}
