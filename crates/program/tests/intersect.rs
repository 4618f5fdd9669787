//! Jobs in which keys of two parties meet: what they open, and every mistake in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use veil_job::{Adversary, Audience, Holder, KEY_BYTES, Order, Slice};
use veil_program::{CommonKeys, Job, Output};
use veil_session::{PartyId, Peer};

use crate::common::Case;

const JOB: &str = r#"version = 1
kind = "psi"
name = "both"
owners = ["a", "b"]
parties = ["a", "b"]

[[table]]
name = "left"
owner = "a"
rows = { up_to = 8 }
file = "a.csv"
column = [{ name = "id", type = "key", of = ["x", "y"], null = true }]

[[table]]
name = "right"
owner = "b"
rows = { up_to = 5 }
file = "b.csv"
column = [{ name = "id", type = "key", of = ["p", "q"] }]

[intersection]
to = "a"
"#;

/// Rows of one key, a row without one, texts that only together are equal.
const LEFT: &str = "x,y,z\n1,one,u\n2,two,v\n1,one,w\n3,,x\n\"a,b\",c,y\na,\"b,c\",z\n";
const RIGHT: &str = "p,q\n\"a,b\",c\n1,one\n9,nine\n";

const PARTIES: [Peer; 2] = [Peer::Party(PartyId::TWO[0]), Peer::Party(PartyId::TWO[1])];

fn case(job: &str) -> Case {
    Case::new(&[("job.toml", job), ("a.csv", LEFT), ("b.csv", RIGHT)])
}

fn common(output: &Output) -> CommonKeys {
    let Output::Intersection(sink) = output else {
        panic!("{output:?}");
    };
    sink.common().unwrap().clone()
}

fn texts(keys: &[[&str; 2]]) -> Vec<Vec<String>> {
    let texts = |key: &[&str; 2]| key.iter().map(|text| (*text).to_owned()).collect();
    keys.iter().map(texts).collect()
}

#[test]
fn the_recipient_gets_the_texts_of_its_own_keys() {
    let case = case(JOB);
    let job = case.load().unwrap();
    let output = case.evaluate(&job, PARTIES[0]).unwrap();
    let both = common(&output);
    assert_eq!(both.columns, ["x", "y"]);
    assert_eq!(both.keys, texts(&[["1", "one"], ["a,b", "c"]]));
    assert_eq!(both.of, 4);
    let written = std::fs::read_to_string(case.path("out/common.csv")).unwrap();
    assert_eq!(written, "x,y\n1,one\n\"a,b\",c\n");
}

/// The other party may be the recipient, in a file of another name.
#[test]
fn either_party_may_be_the_recipient() {
    let turned = JOB.replace("to = \"a\"", "to = \"b\"\nfile = \"ours.csv\"");
    let case = case(&turned);
    let job = case.load().unwrap();
    let output = case.evaluate(&job, PARTIES[1]).unwrap();
    let both = common(&output);
    assert_eq!((both.of, both.columns), (3, vec!["p".into(), "q".into()]));
    assert_eq!(both.keys, texts(&[["a,b", "c"], ["1", "one"]]));
    assert!(case.path("out/ours.csv").exists());
    assert_eq!(job.spec().audiences, [Audience::Party(PartyId::TWO[1])]);
    assert_eq!(job.spec().blocks[0].rows, 5);
}

#[test]
fn the_contract_says_what_is_opened_and_against_whom_it_holds() {
    let job = case(JOB).load().unwrap();
    let spec = job.spec();
    assert!(spec.is_intersection());
    assert_eq!(spec.security.adversary, Adversary::Malicious);
    let result = PartyId::TWO[0];
    let keys = [8, 5];
    assert_eq!(spec.blocks[0].order, Order::Intersected { keys, result });
    assert_eq!(
        spec.opened,
        [
            "which keys of `left` are in `right` of b, for up to 8 keys of a: one that lies can ask for up to 128 keys, and need have none of them; b learns \
             nothing, and can leave keys out"
        ]
    );
    assert_eq!(job.rows(), 13);
    let holders = job.holders();
    assert_eq!(holders, PartyId::TWO.map(Holder::Party));
}

/// Another capacity, another recipient or other columns are another contract.
#[test]
fn whatever_is_said_is_agreed_on() {
    let spec = |text: &str| case(text).load().unwrap().spec().clone();
    let before = spec(JOB);
    for (from, to) in [
        ("up_to = 8", "up_to = 9"),
        ("up_to = 5", "up_to = 6"),
        ("to = \"a\"", "to = \"b\""),
        ("\"x\", \"y\"", "\"x\""),
        ("\"p\", \"q\"", "\"q\", \"p\""),
    ] {
        assert!(JOB.contains(from));
        assert_ne!(spec(&JOB.replace(from, to)), before, "{from}");
    }
}

/// A list is as long as declared; what is behind its keys is another random key each time.
#[test]
fn a_short_list_is_filled_up_with_random_keys() {
    let case = case(JOB);
    let job = case.load().unwrap();
    let slice = Slice {
        block: 0,
        first: 0,
        rows: 8,
    };
    let [first, second] = [0, 1].map(|_| {
        let source = job.source(Holder::Party(PartyId::TWO[0])).unwrap();
        let mut keys = vec![0; 8 * KEY_BYTES];
        source.fill(0, slice, &mut keys).unwrap();
        let short = source.fill(0, slice, &mut keys[1..]).unwrap_err();
        assert!(short.to_string().contains("rows 0 to 8"), "{short}");
        assert!(source.fill(1, slice, &mut keys).is_err());
        keys
    });
    let known = 4 * KEY_BYTES;
    assert_eq!(first[..known], second[..known]);
    let (first, second) = (&first[known..], &second[known..]);
    let pairs = first
        .chunks(KEY_BYTES)
        .flat_map(|key| second.chunks(KEY_BYTES).map(move |other| (key, other)));
    for (key, other) in pairs {
        assert_ne!(key, other);
        assert_ne!(key, [0; KEY_BYTES]);
    }
}

fn refused(from: &str, to: &str) -> String {
    assert_eq!(JOB.matches(from).count(), 1, "`{from}` is not there once");
    case(&JOB.replace(from, to)).load().unwrap_err()
}

#[test]
fn what_is_no_intersection_is_refused() {
    let key = "{ name = \"id\", type = \"key\", of = [\"p\", \"q\"] }";
    for (from, to, says) in [
        (
            "parties = [\"a\", \"b\"]",
            "parties = [\"a\", \"b\", \"c\"]",
            "keys meet between two parties: name two",
        ),
        (
            "parties = [\"a\", \"b\"]",
            "parties = [\"a\", \"c\"]",
            "a psi job has two tables, one of each party",
        ),
        (
            "owner = \"b\"",
            "owner = \"a\"",
            "a psi job has two tables, one of each party",
        ),
        (
            "[intersection]\nto = \"a\"",
            "",
            "the psi job has no `[intersection]`",
        ),
        (
            "to = \"a\"",
            "to = \"parties\"",
            "one of the two parties learns which keys both have; for both, run two jobs",
        ),
        ("to = \"a\"", "to = \"c\"", "recipient `c` is not defined"),
        (
            "to = \"a\"",
            "to = \"a\"\nfile = \"../a.csv\"",
            "a result has a plain name that ends in `.csv`",
        ),
        (
            "to = \"a\"",
            "to = \"a\"\nfile = \"a.txt\"",
            "a result has a plain name that ends in `.csv`",
        ),
        (
            "to = \"a\"",
            "to = \"a\"\nopen = \"size\"",
            "unknown field `open`",
        ),
        (
            key,
            "{ name = \"id\", type = \"integer\", min = 0, max = 9 }",
            "a table of a psi job has one column of type \"key\"",
        ),
        (
            key,
            "{ name = \"id\", type = \"key\" }, { name = \"q\", type = \"key\" }",
            "a table of a psi job has one column of type \"key\"",
        ),
        (
            key,
            "{ name = \"id\", type = \"key\", bits = 80 }",
            "has no use for `bits`",
        ),
        (
            key,
            "{ name = \"id\", type = \"key\", may = [\"join\"] }",
            "has no use for `may`",
        ),
        (
            "name = \"right\"",
            "name = \"left\"",
            "table `left` is named twice",
        ),
        (
            "name = \"both\"",
            "name = \"both\"\nadversary = \"semi-honest\"",
            "withstands a malicious party, and costs little more than others; leave `adversary` and `technique` out",
        ),
        (
            "name = \"both\"",
            "name = \"both\"\ntechnique = \"cut-and-choose\"",
            "leave `adversary` and `technique` out",
        ),
        (
            "name = \"both\"",
            "name = \"both\"\ndurable = true",
            "has no use for `durable`",
        ),
        (
            "name = \"both\"",
            "name = \"both\"\nrecipients = [\"c\"]",
            "has no use for `recipients`",
        ),
        (
            "name = \"both\"",
            "name = \"both\"\nsalt = \"s\"",
            "a psi job has no `salt`",
        ),
        ("up_to = 5", "up_to = 0", "a table has 1 to"),
    ] {
        let refusal = refused(from, to);
        assert!(refusal.contains(says), "{to}: {refusal}");
    }
}

#[test]
fn what_the_data_lack_is_said_with_its_place() {
    let case = case(JOB);
    case.write("b.csv", b"p,q\n1,one\n,two\n");
    let job = case.load().unwrap();
    let error = case.evaluate(&job, PARTIES[0]).unwrap_err();
    assert!(error.starts_with("b.csv: line 3 (row 2)"), "{error}");
    case.write("b.csv", b"p,q\n1,1\n2,2\n3,3\n4,4\n5,5\n6,6\n");
    let error = case.evaluate(&job, PARTIES[0]).unwrap_err();
    assert!(error.contains("6 rows") && error.contains('5'), "{error}");
    std::fs::remove_file(case.path("a.csv")).unwrap();
    let error = case.evaluate(&job, PARTIES[0]).unwrap_err();
    assert!(error.contains("a.csv"), "{error}");
}

#[test]
fn the_example_finds_the_patients_that_both_have() {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/common-patients");
    let made = Command::new(example.join("prepare.sh"))
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(made.success());
    let case = Case { folder };
    let job = Job::load(&case.path("job.toml"), BTreeMap::new()).unwrap();
    let both = common(&case.evaluate(&job, PARTIES[0]).unwrap());
    let lines = |file: &str| {
        let text = std::fs::read_to_string(case.path(file)).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines("out/common.csv"), lines("expected.csv"));
    assert!(both.keys.len() > 300 && both.of == 1000);
}
