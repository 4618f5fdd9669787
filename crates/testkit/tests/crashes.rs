//! Attack case G1: a participant that is killed or stands still, at any of its messages: all others end within the time-out with an
//! error that says so, or have everything, and right.

use std::time::Duration;

use crate::common::{is_consequence, side_by_side};
use veil_engine::{Abort, participants};
use veil_job::Audience;
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{among_four, authenticated, between_two, cut, everything};
use veil_testkit::{Crash, Outcome, World};

/// Long enough for an honest participant on a busy machine, short enough to be waited for a few hundred times.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A participant that is killed is noticed by its connections and not by a silence. One that a peer has told first looks for evidence for
/// a quarter of the time-out, which must be long on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A participant may notice only after two time-outs: its first lane waits for the others. The rest is for a machine with other work.
const END: Duration = Duration::from_secs(60);

fn world(lanes: u16) -> World {
    World::in_chunks(everything(Ring::Z64, &[9, 5]), 8, lanes).timeout(TIMEOUT)
}

/// The same among four parties.
fn four() -> World {
    World::in_chunks(among_four(everything(Ring::Z64, &[9])), 8, 1).timeout(TIMEOUT)
}

/// Garbled circuits between two, with owners and recipients outside.
fn two() -> World {
    World::in_chunks(between_two(everything(Ring::Bits, &[9, 5])), 8, 1).timeout(TIMEOUT)
}

/// Many circuits between two, of which some are opened.
fn cut_and_chosen() -> World {
    World::in_chunks(cut("adder:9", 2), 1, 1).timeout(TIMEOUT)
}

/// Authenticated garbling: one batch.
fn checked() -> World {
    let job = authenticated("adder:2", 1, Audience::Parties);
    World::in_chunks(job, 1, 1).timeout(TIMEOUT)
}

/// Runs `check` for every participant and every number of messages that it may have posted before.
fn at_every_message(world: &World, check: impl Fn(&World, Peer, u64) + Sync) {
    let honest = world.run();
    honest.assert_right();
    let posted = |who: Peer| honest.transcript.iter().filter(|m| m.from == who).count() as u64;
    let cases: Vec<(Peer, u64)> = participants(world.plan())
        .into_iter()
        .flat_map(|who| (0..posted(who)).map(move |after| (who, after)))
        .collect();
    side_by_side(&cases, |(who, after)| check(world, *who, *after));
}

#[track_caller]
fn assert_ended(outcome: &Outcome, crashed: Peer, after: u64) {
    let seed = outcome.seed;
    let case = format!("{seed}: {crashed} fell after {after} messages");
    outcome.assert_sound(Some(crashed));
    assert!(outcome.elapsed < END, "{case}: {:?}", outcome.elapsed);
    let others = || outcome.aborts.iter().filter(|(who, _)| **who != crashed);
    for (who, abort) in others() {
        let clear = match abort {
            Abort::Stalled { waits, after } => {
                *after >= TIMEOUT && (!waits.is_empty() || who.party().is_some())
            }
            other => is_consequence(other),
        };
        assert!(clear, "{case}: {who} says {abort:?}");
    }
    // Every message is for a receiver that cannot go on without it.
    assert!(others().count() > 0, "{case}: no participant noticed");
    // A participant that waited for the fallen one names it, even if another gave up first, and so tells the operator where to look.
    let names = |abort: &Abort| match abort {
        Abort::Stalled { waits, .. } | Abort::Told { waits, .. } => {
            waits.iter().any(|w| w.peer == crashed)
        }
        Abort::Link(error) => error.peer == crashed,
        _ => false,
    };
    assert!(
        others().any(|(_, abort)| names(abort)),
        "{case}: {:?}",
        outcome.aborts
    );
}

/// A participant that has a connection with the killed one names it, and no peer that noticed a moment before and said so.
#[track_caller]
fn assert_named_by_all(outcome: &Outcome, crashed: Peer, after: u64) {
    let seed = outcome.seed;
    let linked = |who: &Peer| crashed.party().is_some() || who.party().is_some();
    for (who, abort) in &outcome.aborts {
        let names = matches!(abort, Abort::Link(error) if error.peer == crashed);
        assert!(
            names || *who == crashed || !linked(who),
            "{seed}: {crashed} fell after {after} messages: {who} says {abort:?}"
        );
    }
}

#[test]
fn a_killed_participant_is_named_in_one_process() {
    for world in [world(1), world(2), two()] {
        at_every_message(&world, |world, who, after| {
            let outcome = world.clone().crash(who, Crash::Killed, after).run();
            assert!(
                outcome.seen.values().all(|seen| !seen.finished()),
                "{}: a sink was finished",
                outcome.seed
            );
            assert_ended(&outcome, who, after);
        });
    }
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn a_killed_participant_is_named_by_each() {
    for world in [
        world(1),
        world(2),
        four(),
        two(),
        cut_and_chosen(),
        checked(),
    ] {
        let world = world.timeout(PATIENCE);
        at_every_message(&world, |world, who, after| {
            let outcome = world.clone().crash(who, Crash::Killed, after).run_apart();
            assert_ended(&outcome, who, after);
            assert_named_by_all(&outcome, who, after);
        });
    }
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn a_paused_participant_is_named_in_one_process() {
    for world in [world(1), four(), two(), checked()] {
        at_every_message(&world, |world, who, after| {
            let outcome = world.clone().crash(who, Crash::Paused, after).run();
            assert!(
                outcome.seen.values().all(|seen| !seen.finished()),
                "{}: a sink was finished",
                outcome.seed
            );
            assert_ended(&outcome, who, after);
        });
    }
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn a_paused_participant_is_named_by_each() {
    for world in [world(2), two(), cut_and_chosen(), checked()] {
        at_every_message(&world, |world, who, after| {
            assert_ended(
                &world.clone().crash(who, Crash::Paused, after).run_apart(),
                who,
                after,
            );
        });
    }
}
