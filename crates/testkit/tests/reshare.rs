//! A dataset goes from one set of parties to another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_engine::local::Failure;
use veil_engine::{Data, Report, Settings, local};
use veil_math::Ring;
use veil_program::{Audience, Lowered, OldShares, Resharing, Roles};
use veil_protocol::{Options, Plan};
use veil_session::{PartyId, Peer, PlanHash};
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

fn resharing(ring: Ring) -> Resharing {
    Resharing {
        dataset: "pay".into(),
        made_by: PlanHash([7; 32]),
        name: "pay of others".into(),
        ring,
        ports: vec![("x".into(), 2), ("y".into(), 1), ("p".into(), 1)],
        blocks: vec![("one".into(), ROWS[0]), ("two".into(), ROWS[1])],
        schema: "x; y; p".into(),
        old: ["a", "b", "c"].map(String::from),
    }
}

fn lowered(of: &Resharing, new: [&str; 3]) -> Lowered {
    let roles = Roles {
        owners: of.old.to_vec(),
        parties: new.map(String::from).into(),
        recipients: Vec::new(),
    };
    of.lowered("share again", &roles)
}

type Ended = Result<BTreeMap<Peer, Report>, Failure>;

/// The run, and what the new parties keep.
fn run(of: &Resharing, new: [&str; 3], old: &[Arc<Shares>; 3]) -> (Ended, [Arc<Shares>; 3]) {
    let options = Options {
        lanes: 2,
        chunk_rows: Some(10),
    };
    let plan = Arc::new(Plan::new(Arc::new(lowered(of, new)), options).unwrap());
    let kept = [(); 3].map(|()| Arc::new(Shares::new(of.ring)));
    let data = |peer: Peer| {
        let name = veil_engine::name_of(&plan, peer);
        let was = of.old.iter().position(|old| old == name);
        let source = was.map(|index| {
            let party = PartyId::new(index as u8).unwrap();
            Arc::new(OldShares::new(of, party, Arc::clone(&old[index]) as _)) as _
        });
        let keeps = peer.party().map(|p| Arc::clone(&kept[p.index()]) as _);
        Data {
            source,
            sink: peer.party().map(|_| Arc::new(of.zeros()) as _),
            keeps,
            ..Data::default()
        }
    };
    let ended = local::run(&plan, &Settings::default(), data, &|_| ());
    (ended, kept)
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
            let (ended, shares) = run(&resharing(ring), new, &old.kept);
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
    let job = lowered(&resharing(Ring::Z64), SETS[1]);
    job.circuit.validate().unwrap();
    assert_eq!(job.owners, ["c"]);
    let opened = job.audiences.iter().zip(&job.opened);
    for (audience, what) in opened {
        match audience {
            Audience::Stored => {
                assert!(what.ends_with("of every row, as `pay of others`"), "{what}");
            }
            audience => {
                assert_eq!(*audience, Audience::Parties);
                assert!(what.ends_with("in every row: zeros"), "{what}");
            }
        }
    }
}

/// G6: whichever component one old party changed: the new parties see it, and nothing becomes visible.
#[test]
fn an_old_share_that_was_altered_is_found() {
    for ring in [Ring::Bits, Ring::Z128] {
        let old = kept(ring);
        for new in [SETS[0], SETS[1]] {
            for (at, component) in [(0, 0), (1, 1), (2, 0), (2, 1)] {
                let mut stores = old.kept.clone();
                stores[at] = Arc::new(old.kept[at].damaged(1, component, 0, 12));
                let (ended, shares) = run(&resharing(ring), new, &stores);
                let failure = ended.expect_err("it is found");
                let (_, abort) = failure.first();
                // Component 1 of a party is component 0 of the one before it.
                let first = (at + 3 - component as usize) % 3;
                let [one, other] = [first, (first + 1) % 3].map(|party| ["a", "b", "c"][party]);
                assert_eq!(
                    abort.to_string(),
                    format!(
                        "in block `one`, rows 11 to 20 of `y`, the shares of `{one}` and `{other}` differ: the store of one of \
                         them was altered, or it supplied something else; nothing was kept; `veil shares show \"pay\" --verify` \
                         at both may tell which, restore it there and run again"
                    )
                );
                assert!(shares.iter().all(|shares| !shares.finished()));
            }
        }
    }
}
