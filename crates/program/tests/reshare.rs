//! Jobs that give a dataset to other parties: what they say, and every mistake in them.

use crate::common::{Case, RESHARE};
use veil_circuit::Per;
use veil_job::{Audience, Holder};
use veil_math::Ring;
use veil_program::{Files, Job, Kind, Resharing};
use veil_session::PartyId;

fn job(text: &str) -> Job {
    Job::parse(text, "job.toml".as_ref(), Files::new()).unwrap()
}

fn resharing() -> Resharing {
    job(RESHARE).resharing().unwrap().clone()
}

#[test]
fn old_parties_supply_shares_and_new_ones_keep_them() {
    let job = job(RESHARE);
    assert!(matches!(job.kind(), Kind::Reshare(_)));
    let spec = job.spec();
    spec.circuit.validate().unwrap();
    assert_eq!(
        (spec.owners.as_slice(), spec.parties.as_slice()),
        (
            ["a", "c"].map(String::from).as_slice(),
            ["b", "d", "e"].map(String::from).as_slice()
        )
    );
    // Share 0 is with a and b, share 1 with b and c, share 2 with c and a; b computes, the others are owners 0 and 1.
    let b = Holder::Party(PartyId::THREE[0]);
    let [a, c] = [Holder::Owner(0), Holder::Owner(1)];
    for block in &spec.blocks {
        assert_eq!(block.holders, [a, b, b, c, c, a]);
    }
    assert_eq!(spec.rows(), 100);
    let kept: Vec<_> = (spec.keeps().into_iter())
        .map(|kept| (kept.name, kept.width, kept.per))
        .collect();
    assert_eq!(
        kept,
        [("region".into(), 2, Per::Row), ("pay".into(), 2, Per::Row)]
    );
    let keep = job.spec().keep.as_ref().unwrap();
    assert_eq!(keep.name, "pay of 2025");
    assert_eq!(keep.schema, resharing().schema);
    assert!(job.needs_stores());
    assert_eq!(spec.circuit.ring, Ring::Z128);
    // No owner brings files, and no recipient sees anything.
    assert!(job.data().is_empty() && job.holders().is_empty() && job.spec().datasets.is_empty());
    assert_eq!(spec.audiences[2..], [Audience::Parties; 2]);
    let error = job.source(c).err().unwrap().to_string();
    assert_eq!(
        error,
        "`c` supplies shares from its store to this job, and no file"
    );
}

#[test]
fn whatever_is_about_the_dataset_is_public_and_agreed_on() {
    let schema = |text: &str| job(text).spec().schema.clone();
    let before = schema(RESHARE);
    for (from, to) in [
        ("dataset = \"pay 2025\"", "dataset = \"pay 2024\""),
        ("0123456789abcdef", "1123456789abcdef"),
        ("missing \"refuse\"", "missing \"zero\""),
    ] {
        assert!(RESHARE.contains(from));
        assert_ne!(schema(&RESHARE.replacen(from, to, 1)), before, "{from}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    let mut of = resharing();
    let read = |of: &Resharing| job(&of.to_job("again", &["b", "d", "e"].map(String::from)));
    assert_eq!(*read(&of).resharing().unwrap(), of);
    assert_eq!(read(&of).spec().name, "again");
    of.dataset = "\"quoted\" \\ ü".into();
    of.ports[0].0 = "a ''' b".into();
    of.schema = "\"so\\\"uth\": '''x''' integer".into();
    of.ring = Ring::Z64;
    assert_eq!(*read(&of).resharing().unwrap(), of);
}

#[test]
fn mistakes_are_named_with_place_and_remedy() {
    let plan = "0123456789abcdef".repeat(4);
    for (from, to, message) in [
        (
            "owners = [\"a\", \"b\", \"c\"]",
            "owners = [\"a\", \"b\"]",
            "job.toml:4:16: the job names 2 owners; write the three or four parties that have the dataset, in their order",
        ),
        (
            "[\"b\", \"d\", \"e\"]",
            "[\"b\", \"c\", \"a\"]",
            "job.toml:5:11: a, b, c have `pay 2025` already, and a job that loads it names them in this order",
        ),
        (
            "as = \"pay of 2025\"",
            "as = \"pay 2025\"",
            "job.toml:9:6: `b` has `pay 2025` and gets it again, and keeps the old one until it is removed; write `as = \"…\"`",
        ),
        (
            "as = \"pay of 2025\"\n",
            "",
            "job.toml:8:11: `b` has `pay 2025` and gets it again",
        ),
        (
            plan.as_str(),
            "0123",
            "job.toml:10:8: `plan` is \"0123\": write all 64 digits",
        ),
        (
            "ring = 128",
            "ring = 32",
            "job.toml:11:8: `ring` is `32`: shares are kept with 64 or with 128 bits",
        ),
        (
            "{ name = \"region\", width = 2 }",
            "{ name = \"region\", width = 0 }",
            "job.toml:13:36: `width` is `0`: a port has at least 1 element in each row",
        ),
        (
            "{ name = \"region\", width = 2 }",
            "{ name = \"region\", width = 4000000000 }",
            "job.toml:13:36: the job has 4000000000 elements in each row, and the limit is 65536",
        ),
        (
            "{ name = \"region\", width = 2 }",
            "{ name = \"pay\", width = 2 }",
            "port `pay` is named twice; rename or remove one",
        ),
        (
            "rows = 70",
            "rows = 0",
            "job.toml:14:34: block `mill` has 0 rows; give it at least 1 or remove it",
        ),
        (
            "rows = 70",
            "rows = 9000000000000000000",
            "job.toml:14:34: the job has 9000000000000000000 rows, and the limit is 1099511627776",
        ),
        (
            "rows = 70 }",
            "rows = 70, holds = { a = [\"pay\"] } }",
            "unknown field `holds`",
        ),
        (
            "owners = ",
            "durable = true\nowners = ",
            "job.toml:2:8: a job that shares a dataset again has no use for `durable`; remove it",
        ),
        (
            "owners = ",
            "recipients = [\"x\"]\nowners = ",
            "job.toml:4:15: a job that shares a dataset again has no use for `recipients`; remove it",
        ),
        (
            "[reshare]",
            "keep = { as = \"x\" }\n[reshare]",
            "job.toml:7:8: a reshare job has no `[keep]`; remove it, or change `kind`",
        ),
        (
            "kind = \"reshare\"",
            "kind = \"circuit\"",
            "a circuit job has no `[reshare]`; remove it, or change `kind`",
        ),
    ] {
        assert_eq!(
            RESHARE.matches(from).count(),
            1,
            "`{from}` is not there once"
        );
        let case = Case::new(&[("job.toml", &RESHARE.replace(from, to))]);
        let found = case.load().expect_err("must be refused");
        assert!(found.contains(message), "{found}\n{message}");
    }
    let (head, _) = RESHARE.split_once("[reshare]").unwrap();
    let found = Case::new(&[("job.toml", head)]).load().unwrap_err();
    assert!(
        found.contains("the reshare job has no `[reshare]`; add at least one"),
        "{found}"
    );
    let (before, _) = RESHARE.split_once("schema = ").unwrap();
    let (_, after) = RESHARE.split_once("\nport = ").unwrap();
    for schema in ["\"\"", "\"pay\\n\""] {
        let text = format!("{before}schema = {schema}\nport = {after}");
        let found = Case::new(&[("job.toml", &text)]).load().unwrap_err();
        assert!(
            found.contains("job.toml:12:10: `schema` is") && found.contains("veil shares show"),
            "{found}"
        );
    }
}
