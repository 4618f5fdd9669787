//! Blocks whose job says how many rows there are at most.

use std::fmt::Write as _;

use crate::common::Case;
use crate::stats::HEAD;

/// A job about a table of `a`: `pay`, `since`, `region`, with `rows` as the job says it, and as many rows as there are.
fn study(rows: &str, missing: &str, table: &str) -> Case {
    let job = format!(
        r#"{HEAD}
        column = [
            {{ name = "pay", type = "decimal", scale = 1, min = 10, max = 900, missing = "{missing}" }},
            {{ name = "since", type = "date", min = "2001-01-01", max = "2020-12-31" }},
            {{ name = "region", type = "category", values = ["north", "south"] }},
        ]
        [[block]]
        name = "mill"
        rows = {rows}
        holds = {{ a = ["pay", "since", "region"] }}
        files = {{ a = "mill.csv" }}
        [[analysis]]
        name = "rows"
        kind = "count"
        to = "press"
        [[analysis]]
        name = "pay"
        kind = "variance"
        of = "pay"
        by = ["region"]
        to = "press"
        [[analysis]]
        name = "first"
        kind = "min"
        of = "since"
        to = "press"
        [[analysis]]
        name = "most"
        kind = "max"
        of = "pay"
        by = ["region"]
        to = "press"
        [[analysis]]
        name = "often"
        kind = "mean-only"
        of = "pay"
        decimals = 2
        to = "press"
        "#
    );
    Case::new(&[("job.toml", &job), ("mill.csv", table)])
}

fn table(rows: usize) -> String {
    let mut text = String::from("pay,since,region\n");
    for row in 0..rows {
        let pay = match row % 7 {
            3 => String::new(),
            k => format!("{}.{}", 10 + (row * 37 + k) % 890, k),
        };
        let region = ["north", "south"][row * row % 3 % 2];
        writeln!(
            text,
            "{pay},20{:02}-03-{:02},{region}",
            1 + row % 19,
            1 + row % 28
        )
        .unwrap();
    }
    text
}

/// Bounds around the parts in which tables are read make no difference: what is opened is that of the rows that are there.
#[test]
fn rows_behind_the_last_count_nowhere() {
    for (rows, bounds) in [
        (5, [5, 6, 4096]),
        (255, [256, 300, 9000]),
        (4096, [4096, 4097, 8192]),
    ] {
        let exact = study(&rows.to_string(), "drop-row", &table(rows)).statistics();
        for bound in bounds {
            let bounded = format!("{{ up_to = {bound} }}");
            let found = study(&bounded, "drop-row", &table(rows)).statistics();
            assert_eq!(found.analyses, exact.analyses, "{rows} of {bound}");
        }
    }
}

#[test]
fn files_have_no_more_rows_than_the_bound() {
    let case = study("{ up_to = 3 }", "drop-row", &table(4));
    let said = case.sources(&case.load().unwrap()).err();
    let want = "mill.csv has 4 rows, and block `mill` of the job has 0 to 3; change `rows` there, at all participants";
    assert_eq!(said.as_deref(), Some(want));
}

/// A file without rows is a block that counts nowhere.
#[test]
fn a_bounded_block_may_have_no_rows() {
    let result = study("{ up_to = 300 }", "drop-row", &table(0)).statistics();
    let rows = result.analyses.iter().map(|analysis| analysis.rows_used);
    assert!(rows.flatten().all(|rows| rows == 0));
}

#[test]
fn bounds_are_refused_where_padding_would_count() {
    let refused = |rows: &str, missing: &str, change: (&str, &str)| {
        let case = study(rows, missing, &table(3));
        let text = std::fs::read_to_string(case.path("job.toml")).unwrap();
        assert!(text.contains(change.0));
        case.write("job.toml", text.replacen(change.0, change.1, 1).as_bytes());
        case.load().err().unwrap_or_default()
    };
    let none = ("[[block]]", "[[block]]");
    let two = (
        "holds = { a = [\"pay\", \"since\", \"region\"] }",
        "holds = { a = [\"pay\"], b = [\"since\", \"region\"] }\norder = \"agreed\"",
    );
    let stored = (
        "holds = { a = [\"pay\", \"since\", \"region\"] }\n        files = { a = \"mill.csv\" }",
        "stored = \"pay 2025\"",
    );
    for (rows, missing, change, want) in [
        (
            "{ up_to = 9 }",
            "drop-pair",
            none,
            "block `mill` cannot have `up_to`: rows behind the last have no values, and rows without one count; give a column that every row has `missing = \"drop-row\"`",
        ),
        (
            "{ up_to = 9 }",
            "drop-row",
            two,
            "block `mill` cannot have `up_to`: rows of several owners are paired, and all of them must have as many; write their number",
        ),
        (
            "{ up_to = 9 }",
            "drop-row",
            stored,
            "block `mill` cannot have `up_to`: a stored block has as many rows as its dataset; write their number",
        ),
        (
            "{ up_to = 16, bucket = \"pow2\" }",
            "drop-row",
            none,
            "block `mill` cannot have `up_to`: a bound of a block is no `bucket`; leave that out",
        ),
        (
            "{ up_to = 0 }",
            "drop-row",
            none,
            "block `mill` has 0 rows; give it at least 1 or remove it",
        ),
        ("{ up_to = -1 }", "drop-row", none, "it is 1 or more"),
        ("-1", "drop-row", none, "it is 1 or more"),
        (
            "\"3\"",
            "drop-row",
            none,
            "a number of rows, without quotes, or { up_to = … }, belongs here",
        ),
        (
            "{ up_to = 1099511627777 }",
            "drop-row",
            none,
            "1099511627776",
        ),
    ] {
        let said = refused(rows, missing, change);
        assert!(said.contains(want), "{rows} {missing}: {said}");
    }
}
