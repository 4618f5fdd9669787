//! A dataset goes from one set of parties to another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_engine::local::Failure;
use veil_engine::{Data, Report, Settings, local};
use veil_math::Ring;
use veil_program::{Audience, OldShares, Resharing, Zeros};
use veil_protocol::{Options, Plan};
use veil_session::{PartyId, Peer};
use veil_testkit::sample::everything;
use veil_testkit::{Outcome, Shares, World};

const ROWS: [u64; 2] = [23, 9];

/// Shares of the three row ports of a sample job, at its parties.
fn kept(ring: Ring) -> Outcome {
    let mut input = everything(ring, &ROWS).stages().0;
    input.circuit.outputs.truncate(3);
    input.audiences.truncate(3);
    input.opened.truncate(3);
    let outcome = World::in_chunks(input, 8, 2).run();
    outcome.assert_right();
    outcome
}

fn resharing(ring: Ring, new: [&str; 3]) -> Resharing {
    Resharing {
        dataset: "pay".into(),
        ring,
        ports: vec![("x".into(), 2), ("y".into(), 1), ("p".into(), 1)],
        blocks: vec![("one".into(), ROWS[0]), ("two".into(), ROWS[1])],
        old: ["a", "b", "c"].map(String::from),
        new: new.map(String::from),
    }
}

type Ended = Result<BTreeMap<Peer, Report>, Failure>;

/// The run, and what the new parties keep.
fn run(of: &Resharing, old: &[Arc<Shares>; 3]) -> (Ended, [Arc<Shares>; 3]) {
    let options = Options {
        lanes: 2,
        chunk_rows: Some(10),
    };
    let plan = Arc::new(Plan::new(Arc::new(of.lowered()), options).unwrap());
    let new = [(); 3].map(|()| Arc::new(Shares::new(of.ring)));
    let data = |peer: Peer| {
        let name = veil_engine::name_of(&plan, peer);
        let was = of.old.iter().position(|old| old == name);
        let source = was.map(|index| {
            let party = PartyId::new(index as u8).unwrap();
            Arc::new(OldShares::new(party, Arc::clone(&old[index]) as _)) as _
        });
        let keeps = peer.party().map(|p| Arc::clone(&new[p.index()]) as _);
        Data {
            source,
            sink: peer.party().map(|_| Arc::new(Zeros) as _),
            keeps,
            ..Data::default()
        }
    };
    let ended = local::run(&plan, &Settings::default(), data, &|_| ());
    (ended, new)
}

fn join(ring: Ring, shares: &[Arc<Shares>; 3], port: usize) -> Vec<Vec<u128>> {
    let [a, b, c] = [0, 1, 2].map(|party: usize| shares[party].component(port, 0));
    for party in 0..3 {
        assert_eq!(
            shares[party].component(port, 1),
            shares[(party + 2) % 3].component(port, 0)
        );
    }
    let rows = a.iter().zip(&b).zip(&c);
    rows.map(|((a, b), c)| {
        let wires = a.iter().zip(b).zip(c);
        wires
            .map(|((a, b), c)| ring.add(ring.add(*a, *b), *c))
            .collect()
    })
    .collect()
}

/// Old and new parties: all others, some the same at other places, all the same.
const SETS: [[&str; 3]; 4] = [
    ["d", "e", "f"],
    ["b", "d", "a"],
    ["c", "a", "b"],
    ["a", "b", "c"],
];

#[test]
fn the_new_parties_have_the_same_values_in_fresh_shares() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let old = kept(ring);
        for new in SETS {
            let (ended, shares) = run(&resharing(ring, new), &old.kept);
            ended.unwrap();
            for port in 0..3 {
                assert_eq!(join(ring, &shares, port), old.joined(port), "{new:?}");
                for party in &shares {
                    assert!(party.finished());
                    for before in &old.kept {
                        assert_ne!(party.component(port, 0), before.component(port, 0));
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_but_zeros_is_opened() {
    let job = resharing(Ring::Z64, SETS[1]).lowered();
    job.circuit.validate().unwrap();
    assert_eq!(job.owners, ["c"]);
    let opened = job.audiences.iter().zip(&job.opened);
    for (audience, what) in opened {
        match audience {
            Audience::Stored => assert!(what.ends_with("of every row, as `pay`"), "{what}"),
            audience => {
                assert_eq!(*audience, Audience::Parties);
                assert!(what.ends_with("in every row: zeros"), "{what}");
            }
        }
    }
}

/// Whichever component one old party changed: the new parties see it, and nothing becomes visible.
#[test]
fn an_old_share_that_was_altered_is_found() {
    for ring in [Ring::Bits, Ring::Z128] {
        let old = kept(ring);
        for new in [SETS[0], SETS[1]] {
            for (at, component) in [(0, 0), (1, 1), (2, 0), (2, 1)] {
                let mut stores = old.kept.clone();
                stores[at] = Arc::new(old.kept[at].damaged(1, component, 0, 12));
                let (ended, shares) = run(&resharing(ring, new), &stores);
                let failure = ended.expect_err("it is found");
                let (_, abort) = failure.first();
                assert_eq!(
                    abort.to_string(),
                    "the shares of rows 11 to 20 in block 0 differ between their two old holders: the store of one of them \
                     was altered; nothing was kept, restore it and run again"
                );
                assert!(shares.iter().all(|shares| !shares.finished()));
            }
        }
    }
}
