//! Statistics through the circuit equal those by counting and adding, and those of textbooks.

mod alone;
mod inference;
mod known;
mod padded;
mod tables;
mod two;

use crate::common::Case;
use proptest::prelude::*;
use veil_job::{Sink, Slice};
use veil_program::stats::{Estimate, Figure, StatsResult};
use veil_session::Peer;

const HEAD: &str = r#"
version = 1
kind = "stats"
name = "study"
owners = ["a", "b", "c"]
parties = ["p", "q", "c"]
recipients = ["press"]
"#;

/// A job in which `a` holds `x` and `y`, and `b` (in the second block `c`) holds `g` and `h`.
fn job(rows: [usize; 2], missing: &str, bound: i64, analyses: &str) -> String {
    format!(
        r#"{HEAD}
        column = [
            {{ name = "x", type = "decimal", scale = 1, min = -{bound}, max = {bound}, missing = "{missing}" }},
            {{ name = "y", type = "integer", min = -{bound}, max = {bound}, missing = "{missing}" }},
            {{ name = "g", type = "category", values = ["u", "v"], missing = "{missing}" }},
            {{ name = "h", type = "category", values = ["k", "l", "m"], missing = "{missing}" }},
        ]
        [[block]]
        name = "first"
        rows = {}
        holds = {{ a = ["x", "y"], b = ["g", "h"] }}
        order = "agreed"
        files = {{ a = "a1.csv", b = "b1.csv" }}
        [[block]]
        name = "second"
        rows = {}
        holds = {{ a = ["y", "x"], c = ["h", "g"] }}
        order = "agreed"
        files = {{ a = "a2.csv", c = "c2.csv" }}
        {analyses}
        "#,
        rows[0], rows[1]
    )
}

const EVERYTHING: &str = r#"
    [[analysis]]
    name = "rows"
    kind = "count"
    by = ["g", "h"]
    to = "press"
    [[analysis]]
    name = "rows with x"
    kind = "count"
    of = "x"
    to = "press"
    [[analysis]]
    name = "rows with h"
    kind = "count"
    of = "h"
    by = "g"
    to = "press"
    [[analysis]]
    name = "sum"
    kind = "sum"
    of = "x"
    by = "h"
    to = "press"
    [[analysis]]
    name = "mean"
    kind = "mean"
    of = "y"
    to = "press"
    [[analysis]]
    name = "ratio"
    kind = "ratio"
    of = ["x", "y"]
    by = "g"
    to = "press"
    [[analysis]]
    name = "variance"
    kind = "variance"
    of = "x"
    by = ["h", "g"]
    to = "press"
    [[analysis]]
    name = "covariance"
    kind = "covariance"
    of = ["x", "y"]
    by = "g"
    to = "press"
    [[analysis]]
    name = "correlation"
    kind = "correlation"
    of = ["y", "x"]
    to = "press"
    [[analysis]]
    name = "regression"
    kind = "regression"
    of = "x"
    on = ["y", "h"]
    by = "g"
    to = "press"
    [[analysis]]
    name = "not for the press"
    kind = "sum"
    of = "y"
    by = "g"
    to = "p"
"#;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against counting over the rows, which `Case::statistics` does, and against the rule of each policy.
    #[test]
    fn rows_count_as_their_policy_says(rows in prop::collection::vec(row(true, 9), 2..30), split in 1..1000usize) {
        let split = 1 + split % (rows.len() - 1);
        let complete = |row: &Row| row.0.is_some() && row.1.is_some() && row.2.is_some() && row.3.is_some();
        let sum = |result: &StatsResult| {
            let count = value(figures(result, "sum", &["l"]), "count").value().unwrap();
            (count, value(figures(result, "sum", &["l"]), "sum").value().unwrap())
        };
        let want = |counts: &dyn Fn(&Row) -> bool| {
            let rows: Vec<_> = rows.iter().filter(|row| row.3 == Some(1) && counts(row)).collect();
            let tenths: i64 = rows.iter().map(|row| row.0.unwrap_or(0)).sum();
            (rows.len() as f64, tenths as f64 / 10.0)
        };
        let result = case(&rows, split, "drop-row", 9, EVERYTHING).statistics();
        let (count, total) = want(&complete);
        let found = sum(&result);
        prop_assert!((found.0 - count).abs() < 0.5 && (found.1 - total).abs() < 1e-9, "{found:?} {count} {total}");

        let result = case(&rows, split, "drop-pair", 9, EVERYTHING).statistics();
        let (count, total) = want(&|row| row.0.is_some());
        let found = sum(&result);
        prop_assert!((found.0 - count).abs() < 0.5 && (found.1 - total).abs() < 1e-9, "{found:?} {count} {total}");
    }
}

/// `x` in tenths, `y`, `g`, `h`.
type Row = (Option<i64>, Option<i64>, Option<usize>, Option<usize>);

fn case(rows: &[Row], split: usize, missing: &str, bound: i64, analyses: &str) -> Case {
    let (mut numbers, mut kinds) = (Vec::new(), Vec::new());
    for (x, y, g, h) in rows {
        let tenths = |x: i64| {
            format!(
                "{}{}.{}",
                if x < 0 { "-" } else { "" },
                x.abs() / 10,
                x.abs() % 10
            )
        };
        // Quotes, so that a line without any value is not a blank one.
        let cell = |text: Option<String>| format!("\"{}\"", text.unwrap_or_default());
        numbers.push(format!(
            "{},{}\n",
            cell(x.map(tenths)),
            cell(y.map(|y| y.to_string()))
        ));
        let name =
            |names: &[&str], value: Option<usize>| cell(value.map(|value| names[value].to_owned()));
        kinds.push(format!(
            "{},{}\n",
            name(&["u", "v"], *g),
            name(&["k", "l", "m"], *h)
        ));
    }
    let table = |header: &str, lines: &[String]| format!("{header}\n{}", lines.concat());
    Case::new(&[
        (
            "job.toml",
            &job([split, rows.len() - split], missing, bound, analyses),
        ),
        ("a1.csv", &table("x,y", &numbers[..split])),
        ("b1.csv", &table("g,h", &kinds[..split])),
        ("a2.csv", &table("x,y", &numbers[split..])),
        ("c2.csv", &table("g,h", &kinds[split..])),
    ])
}

fn row(missing: bool, bound: i64) -> impl Strategy<Value = Row> {
    let some = move |present: bool| present || !missing;
    let chance = || prop::bool::weighted(0.8);
    (
        (chance(), -bound * 10..=bound * 10),
        (chance(), -bound..=bound),
        (chance(), 0..2usize),
        (chance(), 0..3usize),
    )
        .prop_map(move |(x, y, g, h)| {
            (
                some(x.0).then_some(x.1),
                some(y.0).then_some(y.1),
                some(g.0).then_some(g.1),
                some(h.0).then_some(h.1),
            )
        })
}

fn figures<'a>(result: &'a StatsResult, analysis: &str, group: &[&str]) -> &'a [Figure] {
    let analysis = result
        .analyses
        .iter()
        .find(|other| other.name == analysis)
        .unwrap();
    &analysis
        .groups
        .iter()
        .find(|other| other.values == group)
        .unwrap()
        .figures
}

fn value(figures: &[Figure], name: &str) -> Estimate {
    figures
        .iter()
        .find(|figure| figure.name == name)
        .unwrap()
        .estimate
        .clone()
}

fn close(estimate: &Estimate, want: f64) -> bool {
    estimate
        .value()
        .is_some_and(|value| (value - want).abs() <= 1e-9 * want.abs().max(1.0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// `Case::statistics` compares the circuit with counting and adding; this adds the plain formulas.
    #[test]
    fn the_circuit_computes_what_is_asked(
        (missing, bound, rows) in (any::<bool>(), prop::sample::select(vec![3i64, 1_000_000, 1 << 40]))
            .prop_flat_map(|(missing, bound)| {
                (Just(missing), Just(bound), prop::collection::vec(row(missing, bound), 2..40))
            }),
        split in 1..1000usize,
    ) {
        let split = 1 + split % (rows.len() - 1);
        let case = case(&rows, split, if missing { "drop-pair" } else { "refuse" }, bound, EVERYTHING);
        let result = case.statistics();

        let text = figures(&result, "sum", &["l"]);
        let sum: i64 = rows.iter().filter(|row| row.3 == Some(1)).filter_map(|row| row.0).sum();
        let Estimate::Exact(exact) = value(text, "sum") else { panic!("a sum is exact") };
        prop_assert_eq!((exact.value, exact.scale), (i128::from(sum), 1));

        let pairs = rows.iter().filter(|row| row.2 == Some(0));
        let pairs: Vec<(i64, i64)> = pairs.filter_map(|row| row.0.zip(row.1)).collect();
        let [above, below] = [pairs.iter().map(|pair| pair.0).sum::<i64>(), pairs.iter().map(|pair| pair.1).sum()];
        let found = value(figures(&result, "ratio", &["u"]), "ratio");
        if below == 0 {
            prop_assert_eq!(found, Estimate::Undefined("the sum that divides is 0"));
        } else {
            prop_assert!(close(&found, above as f64 / 10.0 / below as f64));
        }

        let xs: Vec<f64> = rows.iter()
            .filter(|row| row.3 == Some(2) && row.2 == Some(1))
            .filter_map(|row| row.0.map(|x| x as f64 / 10.0))
            .collect();
        let found = figures(&result, "variance", &["m", "v"]);
        prop_assert!(close(&value(found, "count"), xs.len() as f64));
        if xs.is_empty() {
            prop_assert_eq!(value(found, "mean"), Estimate::Undefined("no rows"));
        } else if xs.len() == 1 {
            prop_assert_eq!(value(found, "variance"), Estimate::Undefined("only one row"));
        } else {
            let mean = xs.iter().sum::<f64>() / xs.len() as f64;
            let variance = xs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (xs.len() - 1) as f64;
            prop_assert!(close(&value(found, "mean"), mean));
            let got = value(found, "variance").value().unwrap();
            prop_assert!((got - variance).abs() <= 1e-6 * variance.max(1e-3), "{got} {variance}");
        }
    }
}

#[test]
fn others_get_only_what_is_theirs() {
    let rows: Vec<Row> = (0..9)
        .map(|i| {
            (
                Some(i),
                Some(i - 4),
                Some(i as usize % 2),
                Some(i as usize % 3),
            )
        })
        .collect();
    let case = case(&rows, 4, "refuse", 10, EVERYTHING);
    let job = case.load().unwrap();
    let party = Peer::Party(veil_session::PartyId::THREE[0]);
    let result = case
        .evaluate(&job, party)
        .unwrap()
        .statistics()
        .unwrap()
        .clone();
    assert_eq!(result.recipient, "p");
    assert_eq!(result.analyses.len(), 1);
    let sentences: Vec<&str> = result
        .opened
        .iter()
        .map(|opened| opened.what.as_str())
        .collect();
    assert_eq!(
        sentences,
        [
            "sum of y over rows where g = u",
            "sum of y over rows where g = v"
        ]
    );
    assert_eq!(
        result.opened[0].value.unwrap().value,
        [-4, -2, 0, 2, 4].iter().sum::<i128>()
    );

    let sink = job.sink(party, &case.path("other")).unwrap();
    let one = Slice {
        block: 0,
        first: 0,
        rows: 1,
    };
    let error = sink.put(0, one, &[0; 8]).unwrap_err().to_string();
    assert!(error.contains("port 0"), "port 0 is for the press: {error}");
    let last = job.spec().opened.len() - 1;
    sink.put(last, one, &[0; 8]).unwrap();
    assert!(
        sink.put(last, one, &[0; 8]).is_err(),
        "the same number twice"
    );
    assert_eq!(
        sink.finish().unwrap_err().to_string(),
        "the result is incomplete: 1 of 2 values came; nothing was published"
    );
    let left = std::fs::read_dir(case.path("other"))
        .unwrap()
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with("result")
        });
    assert_eq!(left.count(), 0);
}

#[test]
fn one_row_is_enough_for_a_sum_and_too_little_for_a_variance() {
    let rows: [Row; 2] = [
        (Some(15), Some(2), Some(0), Some(0)),
        (None, None, None, None),
    ];
    let result = case(&rows, 1, "drop-pair", 10, EVERYTHING).statistics();
    assert_eq!(
        value(figures(&result, "sum", &["k"]), "sum").value(),
        Some(1.5)
    );
    assert_eq!(
        value(figures(&result, "mean", &[]), "mean"),
        Estimate::Rounded(2.0)
    );
    let of = |analysis, group: &[&str], name| value(figures(&result, analysis, group), name);
    assert_eq!(
        of("variance", &["k", "u"], "variance"),
        Estimate::Undefined("only one row")
    );
    assert_eq!(
        of("variance", &["k", "v"], "mean"),
        Estimate::Undefined("no rows")
    );
    assert_eq!(
        of("correlation", &[], "correlation"),
        Estimate::Undefined("only one row")
    );
    assert_eq!(
        of("covariance", &["v"], "covariance"),
        Estimate::Undefined("no rows")
    );
    assert!(
        matches!(of("regression", &["u"], "y"), Estimate::Undefined(why) if why.contains("linearly dependent"))
    );
    let text = result.to_string();
    assert!(
        text.contains("(only one row)") && text.contains("(no rows)"),
        "{text}"
    );
}
