//! Decision trees that are fitted to the rows of a query: what a job file says, what is said of them, and what is refused.

use std::fmt::Write as _;

use super::{JOB, NORTH, case};

const FIT: &str = "sql = \"SELECT pay, ward, ok FROM stays\"\nfit = { family = \"tree\", target = \"ok\", depth = 2, cuts = { pay = [10, \"12.5\"] } }\nmin_count = 3\n";

fn job() -> String {
    JOB.replace(
        "sql = \"SELECT since, ward, pay, ok, beds FROM stays\"\n",
        FIT,
    )
}

#[test]
fn a_tree_is_said() {
    let job = case(&job(), NORTH).load().unwrap();
    let queries = job.queries().unwrap();
    assert_eq!(
        queries.models(),
        [
            "all_stays: a decision tree on pay, ward, of up to 2 levels of splits by 5 public candidates, of at most 10 rows; each node shows how many rows it has, and none has fewer than 3. \
         A model is a function of all rows: it may show single ones where they are few or unusual"
        ]
    );
    assert_eq!(
        queries.operations().into_iter().collect::<Vec<_>>(),
        ["tree"]
    );
    assert_eq!(queries.shows(), (7, 3));
    let left_out = queries.queries()[0].left_out();
    assert_eq!(left_out.as_deref(), Some("nodes of fewer than 3 rows"));
    let uses: Vec<_> = queries
        .column_facts()
        .into_iter()
        .map(|of| (of.column, of.reveal))
        .collect();
    let aggregates = ["ward", "pay", "ok"].map(|column| (column.to_owned(), "aggregates"));
    assert_eq!(uses, aggregates);
}

/// Everything that is said of a tree is under the plan hash.
#[test]
fn each_word_changes_the_plan() {
    let hash = |text: &str| {
        let job = case(text, NORTH).load().unwrap();
        format!("{:?}", job.passes().unwrap())
    };
    let first = hash(&job());
    for (from, to) in [
        ("depth = 2", "depth = 3"),
        ("depth = 2", "depth = 2, places = 5"),
        ("[10, \"12.5\"]", "[10, \"12.6\"]"),
        ("[10, \"12.5\"]", "2"),
        ("min_count = 3", "min_count = 4"),
        ("SELECT pay, ward", "SELECT ward, pay"),
    ] {
        assert!(job().contains(from), "{from}");
        assert_ne!(first, hash(&job().replace(from, to)), "{to}");
    }
    let same = "depth = 2, places = 6, cuts = { pay = [\"10.00\", \"12.50\"] }";
    let said = "depth = 2, cuts = { pay = [10, \"12.5\"] }";
    assert_eq!(first, hash(&job().replace(said, same)));
}

#[test]
fn mistakes() {
    let mut wrong = String::new();
    for (from, to, expected) in [
        (
            "depth = 2",
            "depth = 0",
            "job.toml:26:49: `depth` is `0`: a tree has 1 to 6 levels of splits",
        ),
        (
            "depth = 2",
            "depth = 7",
            "job.toml:26:49: `depth` is `7`: a tree has 1 to 6 levels of splits",
        ),
        (
            "depth = 2",
            "steps = 2",
            "job.toml:26:49: a model `tree` has no use for `steps`; remove it",
        ),
        (
            "depth = 2",
            "ridge = \"2\"",
            "job.toml:26:49: a model `tree` has no use for `ridge`; remove it",
        ),
        (
            "target = \"ok\", ",
            "",
            "job.toml:26:7: a model `tree` needs `target`; add it",
        ),
        (
            "family = \"tree\"",
            "family = \"linear\"",
            "job.toml:26:51: a model `linear` has no use for `depth`; remove it",
        ),
        (
            "family = \"tree\", target = \"ok\", depth = 2",
            "family = \"k-means\", start = [[1], [2]]",
            "a model `k-means` has no use for `cuts`; remove it",
        ),
        (
            "[10, \"12.5\"]",
            "0",
            "job.toml:26:67: `cuts` is `0`: a column has 1 to 63 of them",
        ),
        (
            "[10, \"12.5\"]",
            "64",
            "job.toml:26:67: `cuts` is `64`: a column has 1 to 63 of them",
        ),
        (
            "[10, \"12.5\"]",
            "[]",
            "job.toml:26:67: `cuts` is `a list of 0`: a column has 1 to 63 of them",
        ),
        (
            "[10, \"12.5\"]",
            "[10, 12.5]",
            "job.toml:26:67: `cuts` is \"12.5\": write an integer, or a decimal in quotes such as \"12.50\"",
        ),
        (
            "[10, \"12.5\"]",
            "\"many\"",
            "job.toml:26:67: cuts are how many, or a list of numbers, of which decimals are in quotes",
        ),
        (
            "[10, \"12.5\"]",
            "[10, \"12.005\"]",
            "a number of `cuts` has no more decimal places than its column",
        ),
        (
            "[10, \"12.5\"]",
            "[12, 10]",
            "cuts of feature 1 of a tree are up to 63 numbers, ascending, from the least of its range on and below the greatest",
        ),
        (
            "cuts = { pay",
            "cuts = { ward",
            "`cuts` are of numbers: a condition and each value of a category are one",
        ),
        (
            "cuts = { pay",
            "cuts = { ok",
            "`cuts` are of columns of the query but the target",
        ),
        (
            "target = \"ok\"",
            "target = \"okay\"",
            "all_stays: the target of a model is a column of its query",
        ),
        (
            "min_count = 3\n",
            "",
            "a model of at least 20 rows is fitted to at most 10; lower `min_count`, or fit fewer features",
        ),
        (
            "SELECT pay, ward, ok",
            "SELECT pay, since, ok",
            "fit does not take a date",
        ),
    ] {
        assert!(job().contains(from), "{from}");
        let Err(found) = case(&job().replacen(from, to, 1), NORTH).load() else {
            panic!("{to} is accepted")
        };
        if !found.contains(expected) {
            writeln!(wrong, "{to}\n  {found}\n  {expected}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
