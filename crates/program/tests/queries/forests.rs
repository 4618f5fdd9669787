//! Models of trees that a job names: read from their files, explained, sent along, and refused.

use veil_program::{Files, Job, Sent};

use super::{JOB, NORTH};
use crate::common::Case;

pub(super) const RISK: &str = r#"{
  "version": 1,
  "kind": "trees",
  "source": "by hand",
  "places": 2,
  "features": [{ "name": "pay" }, { "name": "ward", "values": ["a", "b", "c", "d"] }, { "name": "ok" }],
  "base": ["1"],
  "trees": [
    { "root": { "if": ["pay", "<=", "41.5"], "yes": "-2.5", "no": { "if": ["ward", "in", ["c", "a"]], "yes": "10", "no": "0.30" } } },
    { "root": { "if": ["ok", "<", "0.5"], "yes": "0", "no": "0.07" } }
  ]
}"#;

fn text() -> String {
    let asked = "SELECT ward, predict('risk', pay, ward, ok) AS risk FROM stays";
    let job = JOB.replace("SELECT since, ward, pay, ok, beds FROM stays", asked);
    job.replace("[query]", "[model.risk]\nfile = \"risk.json\"\n\n[query]")
}

fn case(risk: &str) -> Case {
    Case::new(&[
        ("job.toml", &text()),
        ("north.csv", NORTH),
        ("risk.json", risk),
    ])
}

fn plan(job: &Job) -> veil_job::passes::ProgramSpec {
    job.passes().unwrap().clone()
}

#[test]
fn a_model_is_read_and_explained() {
    let job = case(RISK).load().unwrap();
    let queries = job.queries().unwrap();
    let said = queries.forests();
    assert_eq!(
        said[0],
        "`risk`: 2 trees of up to 2 levels, 3 splits, 5 leaves, of 3 features; it gives a number from -1.50 to 11.07, of leaves that have been rounded to 2 decimal places once, and it is null where a feature is; from: by hand; every participant has it, with all thresholds and leaves"
    );
    assert!(
        said[1].starts_with("the value of `risk` in `all_stays`: ")
            && said[1].ends_with(" ANDs a row, by itself"),
        "{said:?}"
    );
    assert_eq!(said.len(), 2);
    // The text of the plan has every leaf.
    let program = queries.program().to_string();
    assert!(
        program.contains("(tree (if (<= #0 41.5) -2.50 (if (in #1 0 2) 10.00 0.30)))"),
        "{program}"
    );
}

#[test]
fn one_leaf_is_another_plan() {
    let spec = |risk: &str| plan(&case(risk).load().unwrap());
    assert_eq!(spec(RISK), spec(RISK));
    assert_ne!(spec(RISK), spec(&RISK.replace("0.30", "0.31")));
    assert_ne!(spec(RISK), spec(&RISK.replace("41.5", "41.51")));
    assert_ne!(spec(RISK), spec(&RISK.replace("by hand", "by head")));
    // The form of the file is none of it.
    let spaced = RISK
        .replace("[\"c\", \"a\"]", "[ \"a\",\"c\" ]")
        .replace("0.30", "0.3");
    assert_eq!(spec(RISK), spec(&spaced));
}

#[test]
fn a_model_goes_with_the_job() {
    assert_eq!(Job::named_files(&text()), ["risk.json"]);
    let files = Sent::from([("risk.json".to_owned(), RISK.into())]);
    let sent = Job::sent(&text(), &files).unwrap();
    assert_eq!(plan(&sent), plan(&case(RISK).load().unwrap()));
    assert_eq!(
        plan(&Job::kept(&text(), &files, Files::new()).unwrap()),
        plan(&sent)
    );
    let with = Job::parse_with(&text(), "nowhere/job.toml".as_ref(), &files).unwrap();
    assert_eq!(plan(&with), plan(&sent));
    let refused = |text: &str, files: &Sent| Job::sent(text, files).unwrap_err().for_sender();
    assert_eq!(
        refused(&text(), &Sent::new()),
        "the job file:24:8: the file `risk.json` was not sent along with the job; propose both with `veil submit`"
    );
    for path in ["../risk.json", "/etc/passwd", "a/risk.json", "./risk.json"] {
        assert_eq!(
            refused(&text().replace("risk.json", path), &files),
            "the job file:24:8: `file` under [model.risk] is no plain name: it is sent along, so move it beside the job file"
        );
    }
    let more = Sent::from([
        ("risk.json".to_owned(), RISK.into()),
        ("more".to_owned(), vec![]),
    ]);
    assert_eq!(
        refused(&text(), &more),
        "the job file:3:8: the file `more` was sent along, and the job does not name it; leave it out"
    );
}

#[test]
fn what_is_no_model_is_refused() {
    let refused = |from: &str, to: &str| {
        assert!(RISK.contains(from), "{from}");
        let case = case(&RISK.replace(from, to));
        let error = case.load().map(|_| ()).unwrap_err();
        let said = error.split_once("model `risk`, from `risk.json`: ");
        let said = said.unwrap_or_else(|| panic!("{error}")).1;
        // Where in the file: the reader's own affair.
        said.split_once(" at line ")
            .map_or_else(|| said.to_owned(), |(said, _)| format!("{said} at line"))
    };
    for (from, to, said) in [
        (
            "\"places\": 2",
            "\"places\": 1",
            "`0.30` has more than the 1 decimal places of the model; it is rounded where the file is written, and not here",
        ),
        (
            "\"version\": 1",
            "\"version\": 2",
            "it is no model of version 1 and of kind \"trees\" or \"network\"",
        ),
        (
            "\"trees\",",
            "\"tree\",",
            "it is no model of version 1 and of kind \"trees\" or \"network\"",
        ),
        (
            "\"places\": 2,",
            "\"places\": 2, \"more\": 1,",
            "unknown field `more`, expected one of `version`, `kind`, `source`, `places`, `features`, `classes`, `base`, `trees` at line",
        ),
        (
            "\"places\": 2,",
            "\"places\": 2, \"places\": 2,",
            "duplicate field `places` at line",
        ),
        (
            "\"no\": \"0.30\"",
            "\"no\": \"0.30\", \"no\": \"1\"",
            "duplicate field `no` at line",
        ),
        (
            "\"0.30\"",
            "0.30",
            "invalid type: floating point `0.3`, expected a node: a number in quotes, a list of them, or a split at line",
        ),
        (
            "\"0.30\"",
            "\"3e-1\"",
            "`3e-1` is no decimal number of at most 38 digits: write it as \"-41.5\"",
        ),
        (
            "\"0.30\"",
            "\"+1\"",
            "`+1` is no decimal number of at most 38 digits: write it as \"-41.5\"",
        ),
        (
            "\"0.30\"",
            "\"\"",
            "`` is no decimal number of at most 38 digits: write it as \"-41.5\"",
        ),
        (
            "\"0.30\"",
            "\"NaN\"",
            "`NaN` is no decimal number of at most 38 digits: write it as \"-41.5\"",
        ),
        (
            "\"0.30\"",
            "\"99999999999999999999999999999999999999\"",
            "`99999999999999999999999999999999999999` does not fit 128 bits",
        ),
        (
            "\"0.30\"",
            "[\"1\", \"2\"]",
            "a leaf, or the base, has 2 numbers, where the model has 1",
        ),
        (
            "41.5",
            "41.5000000000000000000000000000001",
            "the threshold `41.5000000000000000000000000000001` has more than 30 decimal places",
        ),
        (
            "[\"pay\", \"<=\"",
            "[\"day\", \"<=\"",
            "a split is by `day`, which is no feature",
        ),
        (
            "[\"c\", \"a\"]",
            "[\"c\", \"x\"]",
            "`x` is no value of `ward`",
        ),
        (
            "[\"c\", \"a\"]",
            "[\"c\", \"c\"]",
            "a split by `ward` compares it with a set of some of its values and not of all, in order",
        ),
        (
            "\"<\"",
            "\">\"",
            "a split is `\"if\": [\"ok\", \"<=\", \"41.5\"]`, or `<`, by a number, and `[\"ok\", \"in\", [\"a\", \"b\"]]` by a category",
        ),
        (
            "[\"a\", \"b\", \"c\", \"d\"]",
            "[\"a\", \"a\"]",
            "the values of `ward` are different texts, at least one",
        ),
        (
            "\"base\": [\"1\"]",
            "\"classes\": [\"x\", \"y\"]",
            "a leaf, or the base, has 1 numbers, where the model has 2",
        ),
        (
            "{ \"root\": { \"if\": [\"ok\"",
            "{ \"class\": \"x\", \"root\": { \"if\": [\"ok\"",
            "a tree adds to `x`, which is no class",
        ),
        (
            "\"yes\": \"0\"",
            "\"yes\": \"0\", \"null\": \"yes\"",
            "where a row goes whose feature is null is said by all splits of a model, or by none",
        ),
        (
            "\"yes\": \"0\"",
            "\"yes\": \"0\", \"null\": \"left\"",
            "unknown variant `left`, expected `yes` or `no` at line",
        ),
        (
            "by hand",
            "by\\nhand",
            "a name of a feature or class, or the source of a model, has at most 200 bytes and no control characters",
        ),
    ] {
        assert_eq!(refused(from, to), said, "{to}");
    }
    let deep = "{\"if\":[\"pay\",\"<=\",\"1\"],\"no\":\"0\",\"yes\":".repeat(200)
        + "\"0\""
        + &"}".repeat(200);
    assert!(refused("\"0.30\"", &deep).starts_with("recursion limit exceeded at line"));
    let deep = "{\"if\":[\"pay\",\"<=\",\"1\"],\"no\":\"0\",\"yes\":".repeat(33)
        + "\"0\""
        + &"}".repeat(33);
    assert_eq!(
        refused(
            "{ \"if\": [\"ok\", \"<\", \"0.5\"], \"yes\": \"0\", \"no\": \"0.07\" }",
            &deep
        ),
        "a model has at most 32 levels of splits"
    );
}

#[test]
fn what_is_wrong_about_the_section_is_said() {
    let refused = |from: &str, to: &str| {
        let text = text();
        assert!(text.contains(from));
        let case = Case::new(&[
            ("job.toml", &text.replace(from, to)),
            ("north.csv", NORTH),
            ("risk.json", RISK),
        ]);
        case.load().map(|_| ()).unwrap_err()
    };
    assert_eq!(
        refused("\"risk.json\"", "\"rusk.json\""),
        "job.toml:24:8: model `risk`, from `rusk.json`: No such file or directory (os error 2)"
    );
    assert!(
        refused("[model.risk]", "[model.rusk]")
            .contains("the job has no model `risk`: it is declared as [model.risk]")
    );
    assert!(refused("[model.risk]", "[model.Risk]").contains("`Risk` is no name of a model"));
    assert!(
        refused(
            "file = \"risk.json\"",
            "file = \"risk.json\"\nsecret = true"
        )
        .contains("unknown field `secret`, expected `file`")
    );
}

/// Any file is a model or none: its reader neither ends the program nor takes long.
#[test]
fn changed_files_are_models_or_none() {
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let words: [&[u8]; 8] = [
        b"{",
        b"]",
        b"\"",
        b"-",
        b"9999999999",
        b".",
        b"null",
        b"\"if\":",
    ];
    let mut read = 0;
    for _ in 0..20_000 {
        let mut text = RISK.as_bytes().to_vec();
        for _ in 0..=below(3) {
            let at = below(text.len());
            match below(3) {
                0 => text[at] = below(256) as u8,
                1 => drop(text.splice(at..at, words[below(words.len())].iter().copied())),
                _ => drop(text.drain(at..(at + below(9)).min(text.len()))),
            }
        }
        read += u32::from(veil_program::read_model("m", &text).is_ok());
    }
    assert!((100..15_000).contains(&read), "{read}");
}
