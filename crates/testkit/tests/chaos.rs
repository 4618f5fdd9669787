//! A participant that does anything at all to its messages: no participant panics or hangs, and none is given a wrong value.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::side_by_side;
use veil_engine::participants;
use veil_job::JobSpec;
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_session::{Channel, Frame, Peer, StepId};
use veil_testkit::sample::{among_four, between_two, everything};
use veil_testkit::{Kind, Message, Numbers, Seed, World};

/// Whose contents three parties do not check before they are used: see `unchecked.rs`.
const UNCHECKED: [Kind; 5] = [
    Kind::PartyInput,
    Kind::PartyJobInput,
    Kind::JobProduct,
    Kind::Product,
    Kind::SumProduct,
];

/// The same between two parties: what is garbled, shares of outputs, and what an owner shares among the two, which is its own to choose.
const UNCHECKED_BETWEEN_TWO: [Kind; 6] = [
    Kind::Table,
    Kind::JobTable,
    Kind::Opened,
    Kind::Seeds,
    Kind::OwnerInput,
    Kind::OwnerJobInput,
];

/// A name that is nearly right.
fn misnamed(at: Channel, numbers: &mut Numbers) -> Channel {
    let Channel { frame, step, part } = at;
    let any = numbers.next_u128();
    match numbers.below(7) {
        0 => Channel {
            frame: Frame {
                chunk: numbers.below(6) as u32,
                ..frame
            },
            ..at
        },
        1 => Channel {
            frame: Frame {
                rows: any as u32,
                ..frame
            },
            ..at
        },
        2 => Channel {
            frame: Frame {
                lane: any as u16,
                ..frame
            },
            ..at
        },
        3 => Channel {
            frame: Frame { epoch: 1, ..frame },
            ..at
        },
        4 => Channel {
            step: StepId {
                place: numbers.below(20) as u32,
                ..step
            },
            ..at
        },
        5 => Channel {
            step: StepId {
                cycle: any as u64,
                ..step
            },
            ..at
        },
        _ => Channel {
            part: part ^ 1 << numbers.below(16),
            ..at
        },
    }
}

/// What becomes of a message: of one in eight something else than it should.
fn any_fate(m: &Message, seed: Seed, peers: &[Peer], unchecked: &[Kind]) -> Fate {
    let mut numbers = seed.numbers(&format!("{} {} {:?}", m.from, m.to, m.at));
    let mut bytes = m.bytes.clone();
    let unchecked = m.kind.is_some_and(|kind| unchecked.contains(&kind));
    match numbers.below(64) {
        // Under the name of another that is not checked it is that one, changed: what must become of it is in `names.rs`.
        4..=7 if unchecked => Fate::Pass,
        0 => Fate::Drop,
        1 => Fate::Twice,
        2 => Fate::Delay(Duration::from_millis(numbers.below(20))),
        3 => {
            bytes.resize(numbers.below(300) as usize, 0);
            // Of the right length it would be right.
            if bytes.len() == m.bytes.len() {
                Fate::Pass
            } else {
                Fate::Replace(bytes)
            }
        }
        4 => Fate::Instead(vec![(m.to, misnamed(m.at, &mut numbers), bytes)]),
        5 => Fate::Instead(vec![
            (m.to, m.at, bytes.clone()),
            (m.to, misnamed(m.at, &mut numbers), bytes),
        ]),
        6 => Fate::Instead(vec![(
            peers[numbers.below(peers.len() as u64) as usize],
            m.at,
            bytes,
        )]),
        7 => {
            let at = numbers.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << numbers.below(8);
            Fate::Replace(bytes)
        }
        _ => Fate::Pass,
    }
}

/// Every participant deviates in its turn, under so many seeds; nothing that is `unchecked` is changed.
fn each_participant_cheats(job: JobSpec, seeds: u64, unchecked: &[Kind]) {
    let seed = Seed::any();
    let world = World::in_chunks(job, 8, 2).timeout(Duration::from_secs(1));
    let peers = participants(world.plan());
    let cases: Vec<(Seed, Peer)> = (0..seeds)
        .flat_map(|k| {
            peers
                .iter()
                .map(move |peer| (Seed(seed.0.wrapping_add(k)), *peer))
        })
        .collect();
    let (right, given_up) = (AtomicUsize::new(0), AtomicUsize::new(0));
    side_by_side(&cases, |&(seed, corrupt)| {
        let linked: Vec<Peer> = peers
            .iter()
            .copied()
            .filter(|peer| {
                *peer != corrupt && (peer.party().is_some() || corrupt.party().is_some())
            })
            .collect();
        let unchecked = unchecked.to_vec();
        let cheat = move |m: &Message| {
            if m.from == corrupt {
                any_fate(m, seed, &linked, &unchecked)
            } else {
                Fate::Pass
            }
        };
        let world = world.clone().seed(seed).cheat(cheat);
        for outcome in [world.run(), world.run_apart()] {
            outcome.assert_sound(Some(corrupt));
            let count = if outcome.aborts.is_empty() {
                &right
            } else {
                &given_up
            };
            count.fetch_add(1, Ordering::Relaxed);
            assert!(
                outcome.elapsed < Duration::from_secs(60),
                "{}: {corrupt}: {:?}",
                outcome.seed,
                outcome.elapsed
            );
        }
    });
    let counts = [right.into_inner(), given_up.into_inner()];
    assert!(
        counts.iter().all(|count| *count > cases.len() / 8),
        "{seed}: the cheats are too mild or too wild: {counts:?}"
    );
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn whatever_one_participant_sends_the_others_end_and_get_nothing_wrong() {
    each_participant_cheats(everything(Ring::Z64, &[13, 9]), 100, &UNCHECKED);
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn whatever_one_of_four_parties_changes_the_others_get_nothing_wrong() {
    each_participant_cheats(among_four(everything(Ring::Z64, &[13, 9])), 50, &[]);
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn whatever_one_of_two_parties_changes_of_what_is_checked_the_others_get_nothing_wrong() {
    let job = between_two(everything(Ring::Bits, &[13, 9]));
    each_participant_cheats(job, 100, &UNCHECKED_BETWEEN_TWO);
}
