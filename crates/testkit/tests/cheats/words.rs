//! Acknowledgements: no participant drops what a repeated run needs before all have written what it is for (attack case G7).

use std::time::Duration;

use veil_engine::Abort;
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{everything, peer};
use veil_testkit::{Kind, Message, Outcome, Seed, World};

use super::{RECIPIENT, ROWS, in_eights};
use crate::common::second_stage;

const TIMEOUT: Duration = Duration::from_secs(1);

/// The stages of a job.
fn stages() -> (World, World) {
    let job = everything(Ring::Z64, ROWS);
    let compute = second_stage(&job, Seed(4));
    (in_eights(job.stages().0), compute)
}

/// The run in which `fate` befalls the last word from one to another.
fn cheated(world: &World, from: Peer, to: Peer, fate: fn(&Message) -> Fate) -> Outcome {
    let cheat = move |m: &Message| match m.kind {
        Some(Kind::Written) if (m.from, m.to) == (from, to) => fate(m),
        _ => Fate::Pass,
    };
    world.clone().timeout(TIMEOUT).cheat(cheat).run_apart()
}

fn waits_for_the_word(abort: &Abort, of: Peer, outcome: &Outcome) -> bool {
    let word = outcome.of(Kind::Written).next();
    let at = word.expect("a party says a last word").at;
    match abort {
        Abort::Stalled { waits, .. } => waits.iter().any(|w| w.peer == of && w.at == at),
        // It is done, and has left.
        Abort::Link(error) => error.peer == of && error.at == Some(at),
        _ => false,
    }
}

#[test]
fn parties_hear_from_recipients_and_owners_from_parties() {
    let (input, compute) = stages();
    let ends = |outcome: &Outcome| {
        let words = outcome.of(Kind::Written).map(|m| (m.from, m.to));
        let mut ends: Vec<_> = words.collect();
        ends.sort_unstable();
        ends
    };
    for outcome in [input.run(), input.run_apart()] {
        let to_owners = [0, 1, 2].map(peer).into_iter();
        let to_owners = to_owners.flat_map(|p| [0, 1].map(|o| (p, Peer::Owner(o))));
        assert_eq!(ends(outcome.assert_right()), to_owners.collect::<Vec<_>>());
    }
    for outcome in [compute.run(), compute.run_apart()] {
        let told = ends(outcome.assert_right());
        for to in [0, 1, 2].map(peer) {
            assert!(told.contains(&(RECIPIENT, to)), "{told:?}");
        }
        assert!(told.iter().all(|(_, to)| to.party().is_some()), "{told:?}");
    }
}

#[test]
fn a_word_that_does_not_come_ends_the_run_at_who_waits_for_it() {
    let (input, compute) = stages();
    for (world, from, to) in [
        (&compute, RECIPIENT, peer(1)),
        (&compute, RECIPIENT, peer(0)),
        (&input, peer(2), Peer::Owner(1)),
    ] {
        let outcome = cheated(world, from, to, |_| Fate::Drop);
        let abort = outcome.abort(to);
        assert!(waits_for_the_word(abort, from, &outcome), "{to}: {abort:?}");
        // What was written is there.
        assert!(from != RECIPIENT || outcome.seen[&from].finished());
        assert!(!outcome.aborts.contains_key(&from), "{:?}", outcome.aborts);
    }
}

#[test]
fn another_word_is_refused() {
    let (_, compute) = stages();
    let outcome = cheated(&compute, RECIPIENT, peer(1), |_| Fate::Replace(vec![2]));
    let abort = outcome.abort(peer(1));
    let found = matches!(abort, Abort::SetUp { peer, what: "says something else than that its results are written" } if *peer == RECIPIENT);
    assert!(found, "{abort:?}");
}
