//! Runs that begin with oblivious transfers of the run before: that they do, when they may not, and ends that lie about what they have.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use veil_engine::{Abort, Limits, OtCache, TransfersFrom};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{between_two, everything, peer};
use veil_testkit::{Kind, Message, Outcome, World, flipped};

/// Bytes of the messages of a set-up: points, the point of their sender, trees, a turn.
const POINTS: usize = 8224;
const POINT: usize = 64;
const TREES: usize = 5184;
const TURN: usize = 6176;
/// Where in a proof is what an end says of what it has kept.
const WORD: usize = 64;

/// The garbler, who sends, and the evaluator, each with its store.
struct Pair([Arc<OtCache>; 2]);

impl Pair {
    fn new(limits: Limits) -> Self {
        Pair([(); 2].map(|()| Arc::new(OtCache::within(limits))))
    }

    fn counts(&self) -> [usize; 2] {
        [0, 1].map(|end: usize| self.0[end].count())
    }

    fn world(&self) -> World {
        let job = between_two(everything(Ring::Bits, &[13, 9]));
        let world = World::in_chunks(job, 8, 1);
        (world.with_ot_cache(peer(0), &self.0[0])).with_ot_cache(peer(1), &self.0[1])
    }

    fn run(&self) -> Outcome {
        self.world().run()
    }

    /// An honest run, and where its transfers came from.
    #[track_caller]
    fn right(&self, from: TransfersFrom) -> Outcome {
        let outcome = self.run();
        outcome.assert_right();
        for end in [0, 1].map(peer) {
            assert_eq!(outcome.reports[&end].transfers, Some(from));
        }
        let lengths = match from {
            TransfersFrom::Curves => [vec![POINTS], vec![POINT]],
            TransfersFrom::Cache => [vec![TURN], vec![]],
        };
        assert_eq!(
            [0, 1].map(|end| lengths_of(&outcome, Kind::Points, peer(end))),
            lengths
        );
        let trees = lengths_of(&outcome, Kind::Trees, peer(1));
        assert_eq!(trees, [TREES + TURN]);
        outcome
    }

    /// A run that `cheat` meddles with, after which nothing is kept.
    #[track_caller]
    fn lies(&self, cheat: impl Fn(&Message) -> Fate + Send + Sync + Clone + 'static) -> Outcome {
        let outcome = self.world().cheat(cheat).run();
        assert_eq!(self.counts(), [0, 0], "{:?}", outcome.aborts);
        outcome
    }
}

fn lengths_of(outcome: &Outcome, kind: Kind, from: Peer) -> Vec<usize> {
    let of = outcome.of(kind).filter(|message| message.from == from);
    of.map(|message| message.bytes.len()).collect()
}

fn pair() -> Pair {
    Pair::new(Limits::default())
}

#[test]
fn the_second_run_has_no_curves() {
    let pair = pair();
    let mut runs = vec![pair.right(TransfersFrom::Curves)];
    for _ in 0..4 {
        assert_eq!(pair.counts(), [1, 1]);
        runs.push(pair.right(TransfersFrom::Cache));
    }
    // Nothing that has any secret in it is sent twice.
    let secret = [
        Kind::Points,
        Kind::Trees,
        Kind::Correction,
        Kind::JobCorrection,
        Kind::Table,
    ];
    let mut seen = BTreeSet::new();
    for outcome in &runs {
        for message in secret.iter().flat_map(|kind| outcome.of(*kind)) {
            for block in message.bytes.chunks_exact(16) {
                assert!(seen.insert(block.to_vec()), "{:?}", message.kind);
            }
        }
        let words = outcome.of(Kind::Proof).filter(|m| m.bytes.len() > WORD);
        let words: Vec<_> = words.map(|m| m.bytes[WORD..].to_vec()).collect();
        assert_eq!(words.len(), 2);
        assert!(words[0] != words[1] || words[0][0] == 1);
        assert!(words[0][0] == 1 || words.into_iter().all(|word| seen.insert(word)));
    }
}

#[test]
fn ends_apart_keep_the_same() {
    let pair = pair();
    for from in [
        TransfersFrom::Curves,
        TransfersFrom::Cache,
        TransfersFrom::Cache,
    ] {
        let outcome = pair.world().run_apart();
        outcome.assert_right();
        assert_eq!(outcome.reports[&peer(0)].transfers, Some(from));
    }
}

/// An end that begins anew has nothing: both do without, and have the same again.
#[test]
fn an_end_that_has_lost_it_has_curves() {
    for end in [0, 1] {
        let mut pair = pair();
        pair.right(TransfersFrom::Curves);
        pair.right(TransfersFrom::Cache);
        pair.0[end] = Arc::default();
        pair.right(TransfersFrom::Curves);
        pair.right(TransfersFrom::Cache);
    }
}

/// Each end has transfers, and not the other's.
#[test]
fn ends_with_other_transfers_have_curves() {
    let (mut one, other) = (pair(), pair());
    one.right(TransfersFrom::Curves);
    other.right(TransfersFrom::Curves);
    one.0[1] = Arc::clone(&other.0[1]);
    one.right(TransfersFrom::Curves);
    one.right(TransfersFrom::Cache);
}

#[test]
fn an_end_that_keeps_nothing_is_told_nothing() {
    for end in [0, 1u8] {
        let pair = pair();
        let job = between_two(everything(Ring::Bits, &[13, 9]));
        let alone = World::in_chunks(job, 8, 1).with_ot_cache(peer(end), &pair.0[usize::from(end)]);
        for _ in 0..2 {
            let outcome = alone.run();
            outcome.assert_right();
            assert_eq!(
                outcome.reports[&peer(0)].transfers,
                Some(TransfersFrom::Curves)
            );
            assert_eq!(lengths_of(&outcome, Kind::Trees, peer(1)), [TREES]);
            assert_eq!(pair.counts(), [0, 0]);
        }
    }
}

#[test]
fn kept_transfers_have_an_end() {
    let limited = |runs, age| {
        Pair::new(Limits {
            runs,
            age,
            ..Limits::default()
        })
    };
    let hour = Duration::from_secs(3600);
    for (pair, kept) in [
        (limited(3, hour), 3),
        (limited(0, hour), 0),
        (limited(9, Duration::ZERO), 0),
    ] {
        for _ in 0..2 {
            pair.right(TransfersFrom::Curves);
            for _ in 0..kept {
                pair.right(TransfersFrom::Cache);
            }
        }
    }
}

#[test]
fn who_is_forgotten_has_curves() {
    let pair = pair();
    pair.right(TransfersFrom::Curves);
    pair.0[0].forget(|key| *key == [1; 32]);
    assert_eq!(pair.counts(), [1, 1]);
    pair.0[0].forget(|key| *key == [0; 32]);
    assert_eq!(pair.counts(), [0, 1]);
    pair.right(TransfersFrom::Curves);
}

/// A claim of what an end has not, of another run, or another word: the honest end has curves, and an end that says otherwise fails; a true
/// claim that is withheld from its receiver is the same.
#[test]
fn false_claims_end_the_run() {
    for byzantine in [0, 1].map(peer) {
        let said = |what, claim| [&[what][..], &[claim; 32]].concat();
        let words = [said(2, 7), said(1, 0), said(0, 0)];
        for word in words {
            let pair = pair();
            pair.right(TransfersFrom::Curves);
            let outcome = pair.lies(move |m: &Message| match m.kind {
                Some(Kind::Proof) if m.from == byzantine && m.bytes.len() > WORD => {
                    Fate::Replace([&m.bytes[..WORD], &word].concat())
                }
                _ => Fate::Pass,
            });
            both_gave_up(&outcome);
            pair.right(TransfersFrom::Curves);
        }
    }
}

/// What an end said in the run before is no claim in this one.
#[test]
fn claims_cannot_be_replayed() {
    for byzantine in [0, 1].map(peer) {
        let pair = pair();
        pair.right(TransfersFrom::Curves);
        let before = pair.right(TransfersFrom::Cache);
        let mut proofs = before.of(Kind::Proof);
        let said = proofs.find(|m| m.from == byzantine && m.bytes.len() > WORD);
        let said = said.expect("both say something").bytes[WORD..].to_vec();
        assert_eq!(said[0], 2);
        let outcome = pair.lies(move |m: &Message| match m.kind {
            Some(Kind::Proof) if m.from == byzantine && m.bytes.len() > WORD => {
                Fate::Replace([&m.bytes[..WORD], &said[..]].concat())
            }
            _ => Fate::Pass,
        });
        both_gave_up(&outcome);
        pair.right(TransfersFrom::Curves);
    }
}

#[track_caller]
fn both_gave_up(outcome: &Outcome) {
    let gave_up = |end: &Peer| outcome.aborts.contains_key(end);
    assert!([0, 1].map(peer).iter().all(gave_up), "{:?}", outcome.aborts);
}

#[test]
fn words_that_no_party_says_are_refused() {
    for (byzantine, other) in [(0, 1), (1, 0)].map(|(a, b)| (peer(a), peer(b))) {
        for word in [
            [3; 33],
            [0xff; 33],
            [1; 33],
            [&[0; 32][..], &[1]].concat().try_into().unwrap(),
        ] {
            let pair = pair();
            let outcome = pair.lies(move |m: &Message| match m.kind {
                Some(Kind::Proof) if m.from == byzantine && m.bytes.len() > WORD => {
                    Fate::Replace([&m.bytes[..WORD], &word[..]].concat())
                }
                _ => Fate::Pass,
            });
            let Abort::SetUp { peer, what } = outcome.abort(other) else {
                panic!("{:?}", outcome.aborts);
            };
            assert_eq!(
                (*peer, *what),
                (byzantine, "says of kept transfers what no party says")
            );
        }
    }
}

/// Whatever fails in a run, what it began with and what it would have left is gone.
#[test]
fn a_run_that_fails_leaves_nothing() {
    let kinds = [
        (Kind::Hello, peer(1)),
        (Kind::Proof, peer(0)),
        (Kind::Points, peer(0)),
        (Kind::Trees, peer(1)),
        (Kind::Correction, peer(1)),
    ];
    for (kind, from) in kinds {
        let pair = pair();
        pair.right(TransfersFrom::Curves);
        pair.right(TransfersFrom::Cache);
        let outcome = pair.lies(move |m: &Message| {
            if m.kind == Some(kind) && m.from == from {
                Fate::Replace(flipped(&m.bytes))
            } else {
                Fate::Pass
            }
        });
        assert!(!outcome.aborts.is_empty(), "{kind:?}");
        pair.right(TransfersFrom::Curves);
        pair.right(TransfersFrom::Cache);
    }
}
