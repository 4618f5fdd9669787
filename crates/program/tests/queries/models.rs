//! Models that are fitted to the rows of a query: what a job file says, what is said of it, and what is refused.

use std::fmt::Write as _;

use super::{JOB, NORTH, case};

const FIT: &str = "sql = \"SELECT pay, ward = 'a' AS a, ok FROM stays\"\nfit = { family = \"logistic\", target = \"ok\" }\nmin_count = 3\n";

fn job() -> String {
    JOB.replace(
        "sql = \"SELECT since, ward, pay, ok, beds FROM stays\"\n",
        FIT,
    )
}

fn changed(from: &str, to: &str) -> String {
    let job = job();
    assert!(job.contains(from), "{from}");
    match case(&job.replacen(from, to, 1), NORTH).load() {
        Ok(_) => panic!("{to} is accepted"),
        Err(error) => error,
    }
}

#[test]
fn a_model_is_said() {
    let job = case(&job(), NORTH).load().unwrap();
    let queries = job.queries().unwrap();
    assert_eq!(
        queries.models(),
        [
            "all_stays: a logistic regression on pay, a, in 8 steps, of at least 3 and at most 10 rows; features have 19 binary places over half their range. \
         A model is a function of all rows: it may show single ones where they are few or unusual"
        ]
    );
    assert_eq!(
        queries.operations().into_iter().collect::<Vec<_>>(),
        ["regression"]
    );
    assert_eq!(queries.shows(), (3, 3));
    let uses: Vec<_> = queries
        .column_facts()
        .into_iter()
        .map(|of| (of.column, of.reveal))
        .collect();
    assert_eq!(
        uses,
        [
            ("ward".to_owned(), "aggregates"),
            ("pay".to_owned(), "aggregates"),
            ("ok".to_owned(), "aggregates")
        ]
    );
}

/// What is left out is a model, clusters or groups.
#[test]
fn what_few_rows_leave_out_is_named() {
    let said = |text: &str| {
        let job = case(text, NORTH).load().unwrap();
        job.queries().unwrap().queries()[0].left_out()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(said(&job()), some("a model of fewer than 3 rows"));
    let clusters = FIT
        .replace("SELECT pay, ward = 'a' AS a, ok", "SELECT pay")
        .replace(
            "family = \"logistic\", target = \"ok\"",
            "family = \"k-means\", start = [[1], [2]]",
        );
    let clusters = job().replace(FIT, &clusters);
    assert_eq!(said(&clusters), some("clusters of fewer than 3 rows"));
    assert_eq!(said(JOB), None);
}

/// Everything that is said of a model is under the plan hash.
#[test]
fn each_word_changes_the_plan() {
    let hash = |text: &str| {
        case(text, NORTH)
            .load()
            .unwrap()
            .passes()
            .map(|passes| format!("{passes:?}"))
            .unwrap()
    };
    let first = hash(&job());
    let fit = "target = \"ok\"";
    for other in ["steps = 7", "places = 5", "ridge = \"0.25\""] {
        assert_ne!(
            first,
            hash(&job().replace(fit, &format!("{fit}, {other}"))),
            "{other}"
        );
    }
    assert_ne!(
        first,
        hash(&job().replace("min_count = 3", "min_count = 4"))
    );
    assert_ne!(first, hash(&job().replace("logistic", "linear")));
    let same = format!("{fit}, steps = 8, places = 6, ridge = \"0\"");
    assert_eq!(first, hash(&job().replace(fit, &same)));
}

#[test]
fn mistakes() {
    let mut wrong = String::new();
    for (from, to, expected) in [
        (
            "\"logistic\"",
            "\"logit\"",
            "job.toml:26:18: `family` is \"logit\": write one of \"linear\", \"logistic\", \"poisson\", \"k-means\", \"pca\", \"tree\"",
        ),
        (
            "\"ok\" }",
            "\"okay\" }",
            "job.toml:24:8: all_stays: the target of a model is a column of its query",
        ),
        (
            "\"ok\" }",
            "\"pay\" }",
            "job.toml:25:7: query `all_stays`, line 1, column 1: the target of a logistic regression is a condition, or 0 and 1",
        ),
        (
            "\"ok\" }",
            "\"ok\", ridge = \"-1\" }",
            "job.toml:26:53: `ridge` is \"-1\": write a number from 0 on with up to 12 places, such as \"0.5\"",
        ),
        (
            "\"ok\" }",
            "\"ok\", ridge = \"1e3\" }",
            "job.toml:26:53: `ridge` is \"1e3\": write a number from 0 on with up to 12 places, such as \"0.5\"",
        ),
        (
            "\"ok\" }",
            "\"ok\", ridge = \"99999999999999999999\" }",
            "job.toml:26:53: `ridge` is \"99999999999999999999\": write a number from 0 on with up to 12 places, such as \"0.5\"",
        ),
        (
            "\"ok\" }",
            "\"ok\", steps = 0 }",
            "job.toml:26:53: `steps` is `0`: a model is fitted in 1 to 64 steps",
        ),
        (
            "\"ok\" }",
            "\"ok\", places = 19 }",
            "job.toml:26:54: `places` is `19`: coefficients and centres have 1 to 18 places, and so have shares and means",
        ),
        (
            "min_count = 3\n",
            "",
            "job.toml:25:7: query `all_stays`, line 1, column 1: a model of at least 60 rows is fitted to at most 10; lower `min_count`, or fit fewer features",
        ),
        (
            "pay, ward = 'a' AS a",
            "since, ward = 'a' AS a",
            "job.toml:25:7: query `all_stays`, line 1, column 1: fit does not take a date",
        ),
        (
            "pay, ward = 'a' AS a",
            "pay, pay + 1 AS pay",
            "job.toml:25:7: query `all_stays`, line 1, column 1: fit: two terms have one name; `intercept` is one",
        ),
        (
            "pay, ward = 'a' AS a",
            "pay AS intercept",
            "job.toml:25:7: query `all_stays`, line 1, column 1: fit: two terms have one name; `intercept` is one",
        ),
        (
            "SELECT pay, ward = 'a' AS a, ok",
            "SELECT ok",
            "job.toml:25:7: query `all_stays`, line 1, column 1: a model has 1 to 63 features, and this has 0",
        ),
    ] {
        let found = changed(from, to);
        if !found.contains(expected) {
            writeln!(wrong, "{to}\n  {found}\n  {expected}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
