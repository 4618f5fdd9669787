//! A dataset goes from one set of parties to another.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_engine::local::Failure;
use veil_engine::{Data, Report, Settings, local};
use veil_job::{Audience, JobSpec};
use veil_math::Ring;
use veil_program::{OldShares, Resharing, Roles};
use veil_protocol::{Options, Plan};
use veil_session::{PartyId, Peer, PlanHash};
use veil_testkit::sample::{among_four, everything};
use veil_testkit::{Outcome, Shares, World};

const ROWS: [u64; 2] = [23, 9];

/// The old parties: these three, or all four.
const OLD: [&str; 4] = ["a", "b", "c", "z"];

/// Shares of the three row ports of a sample job, at its parties.
fn kept(ring: Ring, parties: usize) -> Outcome {
    let job = everything(ring, &ROWS);
    let job = if parties == 4 { among_four(job) } else { job };
    let mut input = job.stages().0;
    input.circuit.outputs.truncate(3);
    input.audiences.truncate(3);
    input.opened.truncate(3);
    let outcome = World::in_chunks(input, 8, 2).run();
    outcome.assert_right();
    outcome
}

fn resharing(ring: Ring, parties: usize) -> Resharing {
    Resharing {
        dataset: "pay".into(),
        made_by: PlanHash([7; 32]),
        name: "pay of others".into(),
        ring,
        ports: vec![("x".into(), 2), ("y".into(), 1), ("p".into(), 1)],
        blocks: vec![("one".into(), ROWS[0]), ("two".into(), ROWS[1])],
        schema: "x; y; p".into(),
        old: OLD[..parties]
            .iter()
            .map(|name| String::from(*name))
            .collect(),
    }
}

fn spec(of: &Resharing, new: &[&str]) -> JobSpec {
    let roles = Roles {
        owners: of.old.clone(),
        parties: new.iter().map(|name| String::from(*name)).collect(),
        recipients: Vec::new(),
    };
    of.spec("share again", &roles)
}

type Ended = Result<BTreeMap<Peer, Report>, Failure>;

/// The run, and what the new parties keep.
fn run(of: &Resharing, new: &[&str], old: &[Arc<Shares>]) -> (Ended, Vec<Arc<Shares>>) {
    let options = Options {
        lanes: 2,
        chunk_rows: Some(10),
    };
    let plan = Arc::new(Plan::new(Arc::new(spec(of, new)), options).unwrap());
    let kept = new.iter().map(|_| Arc::new(Shares::new(of.ring)));
    let kept: Vec<_> = kept.collect();
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

/// Old and new parties: all others, some the same at other places, all the same.
const SETS: [&[&str]; 4] = [
    &["d", "e", "f"],
    &["b", "d", "a"],
    &["c", "a", "b"],
    &["a", "b", "c"],
];

/// The same of four: also one more than before, and one less.
const FOUR: [&[&str]; 3] = [
    &["d", "e", "f", "g"],
    &["b", "d", "a", "z"],
    &["b", "z", "c", "a"],
];

/// All sets of new parties, for either number of old ones.
fn sets() -> impl Iterator<Item = (usize, &'static [&'static str])> {
    let sets = || SETS.into_iter().chain(FOUR);
    [3, 4]
        .into_iter()
        .flat_map(move |old| sets().map(move |new| (old, new)))
}

#[test]
fn the_new_parties_have_the_same_values_in_fresh_shares() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let kept = BTreeMap::from([3, 4].map(|parties| (parties, kept(ring, parties))));
        for (parties, new) in sets() {
            let old = &kept[&parties];
            let (ended, shares) = run(&resharing(ring, parties), new, &old.kept);
            ended.unwrap();
            for port in 0..3 {
                assert_eq!(Shares::join(&shares, port), old.joined(port), "{new:?}");
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
    for (parties, outside) in [(3, &["c"][..]), (4, &["c", "z"])] {
        let job = spec(&resharing(Ring::Z64, parties), SETS[1]);
        job.circuit.validate().unwrap();
        assert_eq!(job.owners, outside);
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
}

/// G6: whichever component one old party changed: the new parties see it, and nothing becomes visible.
#[test]
fn an_old_share_that_was_altered_is_found() {
    for (ring, parties) in [
        (Ring::Bits, 3),
        (Ring::Z128, 3),
        (Ring::Bits, 4),
        (Ring::Z64, 4),
    ] {
        let old = kept(ring, parties);
        for new in [SETS[0], SETS[1], FOUR[0], FOUR[1]] {
            for (at, part) in [(0, 0), (1, 1), (2, 0), (2, 1), (3, 2), (0, 2)] {
                if at < parties && usize::from(part) < parties - 1 {
                    is_found(&old, &resharing(ring, parties), new, (at, part));
                }
            }
        }
    }
}

fn is_found(old: &Outcome, of: &Resharing, new: &[&str], (at, part): (usize, u8)) {
    let mut stores = old.kept.clone();
    stores[at] = Arc::new(old.kept[at].damaged(1, part, 0, 12));
    let (ended, shares) = run(of, new, &stores);
    let failure = ended.expect_err("it is found");
    let (_, abort) = failure.first();
    // Compared with each other: the first holder of the component, and who differs from it first.
    let component = Shares::component_of(old.kept.len(), at, part);
    let mut holders: Vec<usize> = (0..old.kept.len()).collect();
    match old.kept.len() {
        3 => holders.retain(|holder| *holder != (component + 2) % 3),
        _ => holders.retain(|holder| *holder != component),
    }
    let from = holders.iter().position(|holder| *holder >= component);
    holders.rotate_left(from.unwrap_or(0));
    let other = if at == holders[0] { holders[1] } else { at };
    let [one, other] = [holders[0], other].map(|party| OLD[party]);
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
