//! What is not the same job has not the same plan hash: every variant of everything that a job says, in jobs of two, three and four parties.

use std::collections::HashMap;
use std::sync::Arc;

use veil_circuit::{Circuit, Clock, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_job::{
    Adversary, Audience, Block, ChunkRows, Delivery, Holder, JobSpec, Order, Ot, Rows, Schedule,
    Security, Tables, Word,
};
use veil_math::Ring;
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, PlanHash};

/// The product of two bits, one of each holder.
pub(crate) fn job(parties: usize, holders: [Holder; 2], audience: Audience) -> JobSpec {
    let port = |name: &str| InputPort {
        name: name.into(),
        width: 1,
        per: Per::Row,
        bits: false,
    };
    let circuit = Circuit {
        ring: Ring::Bits,
        inputs: vec![port("x"), port("y")],
        gates: vec![Gate::Mul(Wire(0), Wire(1))],
        outputs: vec![OutputPort {
            name: "z".into(),
            wires: vec![Wire(2)],
            reduce: Reduce::None,
        }],
        clock: Clock::default(),
    };
    let stored = holders.contains(&Holder::Stored);
    JobSpec {
        name: "job".into(),
        schema: String::new(),
        owners: ["ann", "bob"].map(String::from).into(),
        parties: (0..parties).map(|party| format!("p{party}")).collect(),
        recipients: ["eve", "joe"].map(String::from).into(),
        security: Security::among(parties),
        totals: None,
        circuit,
        blocks: vec![Block {
            name: "all".into(),
            rows: 1000,
            holders: holders.to_vec(),
            stored: stored.then(|| "old".into()),
            order: Order::Unsaid,
        }],
        audiences: vec![audience],
        opened: vec!["z".into()],
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    }
}

pub(crate) fn hash(job: JobSpec) -> Result<PlanHash, PlanError> {
    let options = Options {
        lanes: 1,
        chunk_rows: Some(64),
    };
    Plan::new(Arc::new(job), options).map(|plan| plan.hash)
}

/// Plans by their hashes, each with what it is.
#[derive(Default)]
struct Seen(HashMap<PlanHash, String>);

impl Seen {
    fn add(&mut self, what: String, job: JobSpec) {
        let hash = hash(job).unwrap_or_else(|error| panic!("{what}: {error}"));
        if let Some(other) = self.0.get(&hash) {
            panic!("one plan: {other}, and {what}");
        }
        self.0.insert(hash, what);
    }
}

fn ids(parties: usize) -> &'static [PartyId] {
    match parties {
        2 => &PartyId::TWO,
        3 => &PartyId::THREE,
        _ => &PartyId::FOUR,
    }
}

fn audiences(parties: usize) -> Vec<Audience> {
    let to = ids(parties).iter().copied().map(Audience::Party);
    let mut all = vec![
        Audience::Parties,
        Audience::Recipient(0),
        Audience::Recipient(1),
    ];
    all.extend(to);
    // Two parties keep no shares.
    all.extend((parties > 2).then_some(Audience::Stored));
    all
}

fn holders(parties: usize) -> Vec<Holder> {
    let from = ids(parties).iter().copied().map(Holder::Party);
    let mut all = vec![Holder::Owner(0), Holder::Owner(1)];
    all.extend(from);
    all.extend((parties > 2).then_some(Holder::Stored));
    all
}

#[test]
fn no_two_jobs_of_other_holders_and_audiences_have_one_hash() {
    let mut seen = Seen::default();
    for parties in 2..=4 {
        for audience in audiences(parties) {
            for x in holders(parties) {
                for y in holders(parties) {
                    seen.add(
                        format!("{parties} parties, {x:?} and {y:?} to {audience:?}"),
                        job(parties, [x, y], audience),
                    );
                }
            }
        }
    }
    assert_eq!(seen.0.len(), 5 * 16 + 7 * 36 + 8 * 49);
}

/// A value for one party of four, and for all four of them: owners agreed to the one, and all had the other.
#[test]
fn the_fourth_party_is_not_all_parties() {
    let owners = [Holder::Owner(0), Holder::Owner(1)];
    let to = |audience| hash(job(4, owners, audience)).unwrap();
    let fourth = to(Audience::Party(PartyId::FOUR[3]));
    assert_ne!(fourth, to(Audience::Parties));
}

#[test]
fn orders_and_securities_are_under_the_hash() {
    let mut seen = Seen::default();
    let owners = [Holder::Owner(0), Holder::Owner(1)];
    let orders = [
        Order::Unsaid,
        Order::Agreed,
        Order::Compared {
            every: 16,
            duplicates: false,
        },
        Order::Compared {
            every: 16,
            duplicates: true,
        },
        Order::Compared {
            every: 17,
            duplicates: false,
        },
        Order::InCycles {
            rows: 40,
            every: 17,
            duplicates: false,
        },
        Order::InCycles {
            rows: 41,
            every: 17,
            duplicates: false,
        },
    ];
    for parties in 2..=4 {
        for order in orders {
            let mut job = job(parties, owners, Audience::Recipient(0));
            job.blocks[0].order = order;
            seen.add(format!("{parties} parties, {order:?}"), job);
        }
    }
    let mut secured = |parties, security| {
        let mut job = job(parties, owners, Audience::Recipient(0));
        job.security = security;
        seen.add(format!("{parties} parties, {security:?}"), job);
    };
    let [garbled, three, four] = [2, 3, 4].map(Security::among);
    secured(3, three.against(Adversary::Malicious));
    secured(4, four.against(Adversary::SemiHonest));
    secured(
        4,
        Security {
            delivery: Delivery::Guaranteed,
            ..four
        },
    );
    for chunk_rows in [Some(ChunkRows::ALL[0]), Some(ChunkRows::ALL[1])] {
        secured(
            3,
            Security {
                chunk_rows,
                ..three
            },
        );
    }
    let authenticated = garbled.against(Adversary::Malicious);
    for ot in [Ot::Extension, Ot::Silent] {
        secured(
            2,
            Security {
                ot,
                ..authenticated
            },
        );
    }
    let tables = Tables::ThreeHalves;
    secured(2, Security { tables, ..garbled });
    for rows in [Rows::One, Rows::Two, Rows::Four] {
        let schedule = Schedule::List(rows);
        secured(
            2,
            Security {
                schedule,
                ..garbled
            },
        );
        secured(
            2,
            Security {
                schedule,
                tables,
                ..garbled
            },
        );
    }
}

/// Where a list or a text ends is under the hash, so that what follows cannot be taken for its end.
#[test]
fn lists_do_not_run_into_each_other() {
    type Change = fn(&mut JobSpec);
    let changes: [(&str, Change); 11] = [
        ("nothing", |_| ()),
        ("an owner more", |j| j.owners.push("eve".into())),
        ("a recipient that is an owner", |j| {
            let moved = j.recipients.remove(0);
            j.owners.push(moved);
        }),
        ("one name of two", |j| j.owners = vec!["annbob".into()]),
        ("an order of owners", |j| j.owners.swap(0, 1)),
        ("a schema", |j| j.schema = "z".into()),
        ("a sentence", |j| j.opened[0] = "zz".into()),
        ("a name", |j| j.name = "jobann".into()),
        ("a block's name", |j| j.blocks[0].name = "rows".into()),
        ("two blocks", |j| {
            j.blocks[0].rows = 500;
            j.blocks.push(j.blocks[0].clone());
        }),
        ("two other blocks", |j| {
            j.blocks[0].rows = 400;
            let rest = Block {
                rows: 600,
                ..j.blocks[0].clone()
            };
            j.blocks.push(rest);
        }),
    ];
    let mut seen = Seen::default();
    for parties in 2..=4 {
        for (what, change) in changes {
            let owners = [Holder::Owner(0), Holder::Owner(0)];
            let mut job = job(parties, owners, Audience::Parties);
            change(&mut job);
            seen.add(format!("{parties} parties, {what}"), job);
        }
    }
}
