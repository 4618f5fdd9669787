//! No two jobs have one encoding, and every field of a job is under the plan hash: any jobs, any change of one field.

use std::collections::HashMap;

use proptest::prelude::*;
use veil_circuit::{Circuit, Clock, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_job::canonical::Canonical;
use veil_job::{
    Adversary, Audience, Block, ChunkRows, DatasetRef, Delivery, Holder, InputSpec, JobSpec, Keep,
    Order, Ot, ProtocolKind, Rows, Schedule, Security, Statistical, Tables, Word,
};
use veil_math::Ring;
use veil_session::{PartyId, PlanHash};

use crate::hashes::{hash, job as product};

/// Texts that run into each other where a length is missing.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(""), Just("a"), Just("b"), Just("ab"), Just("ba")].prop_map(String::from)
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..3)
}

fn party() -> impl Strategy<Value = PartyId> {
    prop::sample::select(PartyId::FOUR.to_vec())
}

fn holder() -> impl Strategy<Value = Holder> {
    prop_oneof![
        party().prop_map(Holder::Party),
        (0..4u16).prop_map(Holder::Owner),
        Just(Holder::Stored),
    ]
}

fn audience() -> impl Strategy<Value = Audience> {
    prop_oneof![
        Just(Audience::Parties),
        party().prop_map(Audience::Party),
        (0..4u16).prop_map(Audience::Recipient),
        Just(Audience::Stored),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    let compared = (0..3u32, any::<bool>());
    prop_oneof![
        Just(Order::Unsaid),
        Just(Order::Agreed),
        compared.prop_map(|(every, duplicates)| Order::Compared { every, duplicates }),
        (0..3u64, 0..3u32, any::<bool>()).prop_map(|(rows, every, duplicates)| Order::InCycles {
            rows,
            every,
            duplicates
        }),
    ]
}

fn security() -> impl Strategy<Value = Security> {
    (
        prop::sample::select(ProtocolKind::ALL),
        prop::sample::select(Adversary::ALL),
        prop::sample::select(Delivery::ALL),
        prop::sample::select(Tables::ALL),
        prop::sample::select(Schedule::ALL),
        prop::sample::select(Statistical::ALL),
        prop::sample::select(Ot::ALL),
        prop::option::of(prop::sample::select(ChunkRows::ALL)),
    )
        .prop_map(
            |(protocol, adversary, delivery, tables, schedule, statistical, ot, chunk_rows)| {
                Security {
                    protocol,
                    adversary,
                    delivery,
                    tables,
                    schedule,
                    statistical,
                    ot,
                    chunk_rows,
                }
            },
        )
}

fn block() -> impl Strategy<Value = Block> {
    let holders = prop::collection::vec(holder(), 0..3);
    (text(), 0..3u64, holders, prop::option::of(text()), order()).prop_map(
        |(name, rows, holders, stored, order)| Block {
            name,
            rows,
            holders,
            stored,
            order,
        },
    )
}

fn input() -> impl Strategy<Value = InputSpec> {
    let name = || prop::option::of(text());
    (holder(), name(), name(), name(), text()).prop_map(|(holder, block, column, port, format)| {
        InputSpec {
            holder,
            block,
            column,
            port,
            format,
        }
    })
}

fn dataset() -> impl Strategy<Value = DatasetRef> {
    let ports = prop::collection::vec((0..3usize, 0..3usize), 0..3);
    (text(), 0..3u32, ports, text(), 0..3u64).prop_map(|(name, block, ports, schema, rows)| {
        DatasetRef {
            name,
            block,
            ports,
            schema,
            rows,
        }
    })
}

fn keep() -> impl Strategy<Value = Keep> {
    (text(), text()).prop_map(|(name, schema)| Keep { name, schema })
}

fn circuit() -> impl Strategy<Value = Circuit> {
    let per = prop::sample::select(vec![Per::Row, Per::Job]);
    (text(), 1..4u32, per, any::<bool>()).prop_map(|(name, width, per, sum)| Circuit {
        ring: Ring::Bits,
        inputs: vec![InputPort {
            name,
            width,
            per,
            bits: false,
        }],
        gates: Vec::new(),
        outputs: vec![OutputPort {
            name: "z".into(),
            wires: vec![Wire(0)],
            reduce: if sum { Reduce::Sum } else { Reduce::None },
        }],
        clock: Clock::default(),
    })
}

fn spec() -> impl Strategy<Value = JobSpec> {
    let names = (text(), texts(), texts(), texts(), text(), texts());
    let what = (security(), circuit(), prop::option::of(circuit()));
    let values = (
        prop::collection::vec(block(), 0..3),
        prop::collection::vec(audience(), 0..3),
        prop::collection::vec(input(), 0..3),
        prop::collection::vec(dataset(), 0..2),
        prop::option::of(keep()),
    );
    (names, what, values).prop_map(|(names, what, values)| {
        let (name, owners, parties, recipients, schema, opened) = names;
        let (security, circuit, totals) = what;
        let (blocks, audiences, inputs, datasets, keep) = values;
        JobSpec {
            name,
            owners,
            parties,
            recipients,
            security,
            schema,
            circuit,
            totals,
            blocks,
            audiences,
            opened,
            inputs,
            datasets,
            keep,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// A change of one field is one of its encoding, and the encoding of the other fields is what it was.
    #[test]
    fn every_field_is_encoded(one in spec(), other in spec()) {
        prop_assert_eq!(one.encoded() == other.encoded(), one == other);
        // Each field of the other in turn.
        let JobSpec { name, owners, parties, recipients, security, schema, circuit, totals, blocks, audiences, opened, inputs, datasets, keep } = other;
        let changed = [
            JobSpec { name, ..one.clone() },
            JobSpec { owners, ..one.clone() },
            JobSpec { parties, ..one.clone() },
            JobSpec { recipients, ..one.clone() },
            JobSpec { security, ..one.clone() },
            JobSpec { schema, ..one.clone() },
            JobSpec { circuit, ..one.clone() },
            JobSpec { totals, ..one.clone() },
            JobSpec { blocks, ..one.clone() },
            JobSpec { audiences, ..one.clone() },
            JobSpec { opened, ..one.clone() },
            JobSpec { inputs, ..one.clone() },
            JobSpec { datasets, ..one.clone() },
            JobSpec { keep, ..one.clone() },
        ];
        for (at, a) in changed.iter().enumerate() {
            prop_assert_eq!(a.encoded() == one.encoded(), *a == one);
            for b in &changed[..at] {
                prop_assert_eq!(a.encoded() == b.encoded(), a == b);
            }
        }
    }

    #[test]
    fn parts_of_a_contract_differ_as_their_encodings_do(
        blocks in [block(), block()],
        inputs in [input(), input()],
        datasets in [dataset(), dataset()],
        securities in [security(), security()],
    ) {
        fn same<T: Canonical + PartialEq>([a, b]: &[T; 2]) -> bool {
            (a.encoded() == b.encoded()) == (a == b)
        }
        prop_assert!(same(&blocks) && same(&inputs) && same(&datasets) && same(&securities));
    }
}

/// All variants among two, three and four parties, each by the numbers that it can have.
#[test]
fn variants_have_encodings_of_their_own() {
    let mut seen: HashMap<Vec<u8>, String> = HashMap::new();
    let mut add = |what: String, encoded: Vec<u8>| {
        if let Some(other) = seen.insert(encoded, what.clone()) {
            panic!("one encoding: {other}, and {what}");
        }
    };
    let numbers = [0, 1, 2, 3, u16::MAX];
    for party in PartyId::FOUR {
        add(format!("{party:?} holds"), Holder::Party(party).encoded());
        add(format!("{party:?} reads"), Audience::Party(party).encoded());
    }
    for number in numbers {
        add(format!("owner {number}"), Holder::Owner(number).encoded());
        add(
            format!("recipient {number}"),
            Audience::Recipient(number).encoded(),
        );
    }
    add("stored input".into(), Holder::Stored.encoded());
    add("stored output".into(), Audience::Stored.encoded());
    add("parties".into(), Audience::Parties.encoded());
    for protocol in ProtocolKind::ALL {
        add(format!("{protocol:?}"), protocol.encoded());
    }
    for adversary in Adversary::ALL {
        add(format!("{adversary:?}"), adversary.encoded());
    }
    for delivery in Delivery::ALL {
        add(format!("{delivery:?}"), delivery.encoded());
    }
    for tables in Tables::ALL {
        add(format!("{tables:?}"), tables.encoded());
    }
    for schedule in Schedule::ALL {
        add(format!("{schedule:?}"), schedule.encoded());
    }
    for rows in [Rows::One, Rows::Two, Rows::Four, Rows::Eight, Rows::Sixteen] {
        add(format!("{rows:?}"), rows.encoded());
    }
    for rows in ChunkRows::ALL {
        add(format!("{rows:?}"), rows.encoded());
    }
    for statistical in Statistical::ALL {
        add(format!("{statistical:?}"), statistical.encoded());
    }
    for ot in Ot::ALL {
        add(format!("{ot:?}"), ot.encoded());
    }
}

/// What a plan's hash is of: each field that can change while the job stays one that can be planned.
#[test]
fn the_plan_hash_has_every_field() {
    type Change = fn(&mut JobSpec);
    let input = |holder| InputSpec {
        holder,
        block: None,
        column: Some("pay".into()),
        port: Some("x".into()),
        format: "an integer".into(),
    };
    let owners = [Holder::Owner(0), Holder::Owner(1)];
    let job = |parties| JobSpec {
        inputs: owners.map(input).into(),
        ..product(parties, owners, Audience::Recipient(0))
    };
    let dataset = || DatasetRef {
        name: "old".into(),
        block: 0,
        ports: vec![(0, 1)],
        schema: "s".into(),
        rows: 100,
    };
    let changes: [(&str, Change); 20] = [
        ("name", |j| j.name.push('2')),
        ("owner", |j| j.owners[0].push('2')),
        ("party", |j| j.parties[0].push('2')),
        ("recipient", |j| j.recipients[0].push('2')),
        ("schema", |j| j.schema.push('2')),
        ("circuit", |j| {
            j.circuit.gates[0] = Gate::Add(Wire(0), Wire(1));
        }),
        ("port", |j| j.circuit.inputs[0].name.push('2')),
        ("block", |j| j.blocks[0].name.push('2')),
        ("rows", |j| j.blocks[0].rows += 1),
        ("holder", |j| j.blocks[0].holders[1] = Holder::Owner(0)),
        ("order", |j| {
            j.blocks[0].order = Order::Compared {
                every: 16,
                duplicates: false,
            }
        }),
        ("audience", |j| j.audiences[0] = Audience::Parties),
        ("opened", |j| j.opened[0].push('2')),
        ("holder of an input", |j| {
            j.inputs[0].holder = Holder::Owner(1);
        }),
        ("block of an input", |j| {
            j.inputs[0].block = Some("all".into());
        }),
        ("column", |j| j.inputs[0].column = Some("diagnosis".into())),
        ("port of an input", |j| j.inputs[0].port = Some("y".into())),
        ("format", |j| j.inputs[0].format = "hex".into()),
        ("an input more", |j| j.inputs.push(j.inputs[0].clone())),
        ("keep", |j| {
            j.keep = Some(Keep {
                name: "new".into(),
                schema: "s".into(),
            });
        }),
    ];
    let mut seen: HashMap<PlanHash, String> = HashMap::new();
    for parties in 2..=4 {
        let mut add = |what: &str, job: JobSpec| {
            let what = format!("{parties} parties, {what}");
            let hash = hash(job).unwrap();
            if let Some(other) = seen.insert(hash, what.clone()) {
                panic!("one plan: {other}, and {what}");
            }
        };
        add("nothing", job(parties));
        for (what, change) in changes {
            let mut job = job(parties);
            change(&mut job);
            add(what, job);
        }
        let with = |dataset| JobSpec {
            datasets: vec![dataset],
            ..job(parties)
        };
        add("a dataset", with(dataset()));
        add(
            "its name",
            with(DatasetRef {
                name: "new".into(),
                ..dataset()
            }),
        );
        add(
            "its block",
            with(DatasetRef {
                block: 1,
                ..dataset()
            }),
        );
        add(
            "its ports",
            with(DatasetRef {
                ports: vec![(1, 0)],
                ..dataset()
            }),
        );
        add(
            "its schema",
            with(DatasetRef {
                schema: "t".into(),
                ..dataset()
            }),
        );
        add(
            "its rows",
            with(DatasetRef {
                rows: 101,
                ..dataset()
            }),
        );
    }
}
