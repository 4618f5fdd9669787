//! Means and extremes that the parties compute: against counting over the rows in integers.

use std::fmt::Write as _;

use proptest::prelude::*;
use veil_job::{DataError, Holder, Sink, Slice, Source, evaluate};
use veil_math::Ring;
use veil_program::{
    Scaled,
    stats::{Estimate, StatsResult},
};
use veil_session::Peer;

use crate::common::Case;
use crate::stats::{HEAD, figures, value};

/// `x` in units of its scale, and `g`.
type Row = (Option<i64>, Option<u8>);

const GROUPS: [&str; 3] = ["u", "v", "w"];

/// What a job computes on `x`, and on what column that is.
#[derive(Clone, Debug)]
struct Question {
    range: (i64, i64),
    scale: u8,
    decimals: u8,
    least: Option<u64>,
    missing: &'static str,
}

fn decimal(value: i64, scale: u8) -> String {
    let value = i128::from(value);
    Scaled { value, scale }.to_string()
}

/// Blocks of `a`, of `c`, and of `a` again, each of whom holds both columns of its rows.
fn case(question: &Question, rows: &[Row], split: [usize; 2]) -> Case {
    let Question {
        range,
        scale,
        decimals,
        least,
        missing,
    } = question;
    let least = least.map_or(String::new(), |least| format!("min_count = {least}"));
    let (min, max) = (decimal(range.0, *scale), decimal(range.1, *scale));
    let kind = match scale {
        0 => "type = \"integer\"".to_owned(),
        _ => format!("type = \"decimal\", scale = {scale}"),
    };
    // Only a number can count as 0.
    let present = if *missing == "zero" {
        "refuse"
    } else {
        missing
    };
    let mut job = format!(
        r#"{HEAD}
        column = [
            {{ name = "x", {kind}, min = "{min}", max = "{max}", missing = "{missing}" }},
            {{ name = "g", type = "category", values = ["u", "v", "w"], missing = "{present}" }},
        ]
        "#
    );
    for (by, word) in [("by = \"g\"", "group"), ("", "all")] {
        for kind in ["min", "max", "mean-only"] {
            let decimals = match kind {
                "mean-only" => format!("decimals = {decimals}"),
                _ => String::new(),
            };
            // A bound on all rows would be refused where it is known to fail.
            let least = if by.is_empty() { "" } else { &least };
            writeln!(
                job,
                "[[analysis]]\nname = \"{kind} of {word}\"\nkind = \"{kind}\"\nof = \"x\"\n{by}\n{least}\n{decimals}\nto = \"press\""
            )
            .unwrap();
        }
    }
    let mut files = Vec::new();
    let mut first = 0;
    for (block, (owner, end)) in [("a", split[0]), ("c", split[1]), ("a", rows.len())]
        .iter()
        .enumerate()
    {
        let file = format!("{block}.csv");
        let these = &rows[first..*end];
        first = *end;
        if these.is_empty() {
            continue;
        }
        writeln!(
            job,
            "[[block]]\nname = \"{block}\"\nrows = {}\nholds = {{ {owner} = [\"x\", \"g\"] }}\nfiles = {{ {owner} = \"{file}\" }}",
            these.len()
        )
        .unwrap();
        let line = |(x, g): &Row| {
            let x = x.map(|x| decimal(x, *scale)).unwrap_or_default();
            let g = g.map_or("", |g| GROUPS[usize::from(g)]);
            format!("\"{x}\",\"{g}\"\n")
        };
        let lines: String = these.iter().map(line).collect();
        files.push((file, format!("x,g\n{lines}")));
    }
    let case = Case::new(&[("job.toml", &job)]);
    for (name, text) in files {
        case.write(&name, text.as_bytes());
    }
    case
}

/// ⌊10^decimals · mean + 1/2⌋ in integers.
fn mean(values: &[i64], scale: u8, decimals: u8) -> i128 {
    let power = |digits: u8| 10i128.pow(digits.into());
    let sum: i128 = values.iter().map(|&value| i128::from(value)).sum();
    let below = power(scale) * values.len() as i128;
    (2 * sum * power(decimals) + below).div_euclid(2 * below)
}

fn check(question: &Question, rows: &[Row], split: [usize; 2]) {
    let case = case(question, rows, split);
    let result = case.statistics();
    let zero = question.missing == "zero";
    let group = |name: Option<&str>| -> Vec<i64> {
        let rows = rows.iter().filter(|row| {
            // A row without a group is in none, and counts where all rows do, unless its absence drops the row.
            let own = row.1.map(|g| GROUPS[usize::from(g)]);
            name.is_none_or(|name| own == Some(name))
                && (question.missing != "drop-row" || own.is_some())
        });
        let value = |row: &Row| row.0.or(zero.then_some(0));
        rows.filter_map(value).collect()
    };
    for name in [None, Some("u"), Some("v"), Some("w")] {
        let values = group(name);
        let least = question.least.filter(|_| name.is_some());
        let (word, of): (_, Vec<&str>) = match name {
            None => ("all", vec![]),
            Some(name) => ("group", vec![name]),
        };
        let found = |kind: &str, figure: &str| {
            let figures = figures(&result, &format!("{kind} of {word}"), &of);
            assert_eq!(figures.len(), 1, "nothing else is known");
            value(figures, figure)
        };
        let of_kind = |kind| match kind {
            "min" => (i128::from(*values.iter().min().unwrap()), question.scale),
            "max" => (i128::from(*values.iter().max().unwrap()), question.scale),
            _ => (
                mean(&values, question.scale, question.decimals),
                question.decimals,
            ),
        };
        for (kind, figure) in [("min", "min"), ("max", "max"), ("mean-only", "mean")] {
            let want = if values.is_empty() && least.is_none() {
                Estimate::Undefined("no rows")
            } else if (values.len() as u64) < least.unwrap_or(1) {
                Estimate::Undefined("fewer rows than `min_count`")
            } else {
                let (value, scale) = of_kind(kind);
                Estimate::Exact(Scaled { value, scale })
            };
            assert_eq!(
                found(kind, figure),
                want,
                "{kind} of {name:?}: {question:?} {rows:?}"
            );
        }
    }
    assert!(
        result
            .analyses
            .iter()
            .all(|one| one.rows_used.is_none() || question.missing == "refuse" || zero)
    );
    opened_is_what_is_shown(&result);
}

/// No number is opened but those of the answers.
fn opened_is_what_is_shown(result: &StatsResult) {
    let shown: Vec<Option<Scaled>> = (result.analyses.iter())
        .flat_map(|one| one.groups.iter().flat_map(|group| &group.figures))
        .map(|figure| match figure.estimate {
            Estimate::Exact(number) => Some(number),
            _ => None,
        })
        .collect();
    let opened: Vec<Option<Scaled>> = result.opened.iter().map(|opened| opened.value).collect();
    assert_eq!(opened, shown);
}

fn question() -> impl Strategy<Value = Question> {
    let ranges = prop::sample::select(vec![
        ((-3, 2), 0),
        ((0, 1), 0),
        ((-7, -7), 1),
        ((-999, 12_345), 2),
        ((5, 1 << 40), 3),
        ((-(1 << 62), 1 << 62), 0),
        ((-(1 << 62), -(1 << 61)), 18),
        ((0, (1 << 31) - 1), 9),
    ]);
    let missing = prop::sample::select(vec!["refuse", "drop-row", "drop-pair", "zero"]);
    let least = prop::option::of(2..4u64);
    (ranges, missing, least, 0..=18u8).prop_map(|((range, scale), missing, least, decimals)| {
        // A missing value that counts as 0 needs it in the range.
        let holds_zero = range.0 <= 0 && range.1 >= 0;
        Question {
            range,
            scale,
            // Numbers of 62 bits leave no room for all decimals in a ring.
            decimals: if range.1.saturating_sub(range.0) > 1 << 50 || range.0 < -(1 << 50) {
                decimals.min(scale)
            } else {
                decimals
            },
            least,
            missing: if missing == "zero" && !holds_zero {
                "drop-pair"
            } else {
                missing
            },
        }
    })
}

fn rows(question: &Question) -> impl Strategy<Value = Vec<Row>> + use<> {
    let (min, max) = question.range;
    // The ends of the range come often, and values next to each other.
    let x = prop_oneof![
        Just(min),
        Just(max),
        min..=max,
        min..=min.saturating_add(2).min(max)
    ];
    let present = question.missing == "refuse";
    let chance = || prop::bool::weighted(if present { 1.0 } else { 0.8 });
    let row = (x, chance(), 0..3u8, chance())
        .prop_map(move |(x, is_x, g, is_g)| (is_x.then_some(x), is_g.then_some(g)));
    prop::collection::vec(row, 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_parties_find_what_counting_finds(
        (question, rows) in question().prop_flat_map(|question| {
            let rows = rows(&question);
            (Just(question), rows)
        }),
        cuts in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let rows: Vec<Row> = match question.missing {
            "zero" => rows.into_iter().map(|(x, g)| (x, Some(g.unwrap_or(0)))).collect(),
            _ => rows,
        };
        let (a, b) = (cuts.0.index(rows.len() + 1), cuts.1.index(rows.len() + 1));
        check(&question, &rows, [a.min(b), a.max(b)]);
    }
}

#[test]
fn halves_are_rounded_up() {
    let question = |decimals, scale| Question {
        range: (-50, 50),
        scale,
        decimals,
        least: None,
        missing: "refuse",
    };
    let of = |values: &[i64], decimals, scale| {
        let rows: Vec<Row> = values.iter().map(|x| (Some(*x), Some(0))).collect();
        let result = case(&question(decimals, scale), &rows, [1, 1]).statistics();
        match value(figures(&result, "mean-only of all", &[]), "mean") {
            Estimate::Exact(number) => number.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(of(&[1, 2], 0, 0), "2");
    assert_eq!(of(&[-1, -2], 0, 0), "-1");
    assert_eq!(of(&[-1, -2], 1, 0), "-1.5");
    assert_eq!(of(&[1, 1, 2], 3, 0), "1.333");
    assert_eq!(of(&[-5, -15], 0, 1), "-1");
    assert_eq!(of(&[15, 15], 0, 1), "2");
    assert_eq!(of(&[-50, -50], 0, 1), "-5");
    assert_eq!(of(&[1, 2, 2], 18, 0), "1.666666666666666667");
}

#[test]
fn days_are_those_of_the_rows() {
    let job = format!(
        r#"{HEAD}
        column = [{{ name = "since", type = "date", min = "1960-01-01", max = "2030-12-31" }}]
        block = [{{ name = "a", rows = 2, holds = {{ a = ["since"] }}, files = {{ a = "a.csv" }} }},
                 {{ name = "b", rows = 1, holds = {{ b = ["since"] }}, files = {{ b = "b.csv" }} }}]
        analysis = [{{ name = "first", kind = "min", of = "since", to = "press" }},
                    {{ name = "last", kind = "max", of = "since", to = "press" }},
                    {{ name = "mean", kind = "mean-only", of = "since", to = "press" }}]
        "#
    );
    let case = Case::new(&[
        ("job.toml", &job),
        ("a.csv", "since\n1969-12-31\n2004-02-29\n"),
        ("b.csv", "since\n1969-12-29\n"),
    ]);
    let result = case.statistics();
    let text = result.to_string();
    for line in ["1969-12-29", "2004-02-29", "1981-05-20"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    assert_eq!(
        json["analyses"][2]["groups"][0]["figures"][0]["date"],
        "1981-05-20"
    );
    assert_eq!(json["analyses"][2]["rows_used"], 3);
}

/// Extremes alone share no column, and an owner of several blocks supplies one number for each group.
#[test]
fn what_is_shared_is_one_number_of_each_owner() {
    let question = Question {
        range: (0, 9),
        scale: 0,
        decimals: 0,
        least: None,
        missing: "refuse",
    };
    let rows: Vec<Row> = (0..9).map(|k| (Some(k), Some(k as u8 % 3))).collect();
    let whole = case(&question, &rows, [3, 6]);
    let text = std::fs::read_to_string(whole.path("job.toml")).unwrap();
    let start = text.find("[[analysis]]").unwrap();
    let ends = text[start..].find("[[analysis]]\nname = \"mean").unwrap() + start;
    let blocks = text.find("[[block]]").unwrap();
    let job = format!("{}{}", &text[..ends], &text[blocks..]);
    whole.write("job.toml", job.as_bytes());
    let job = whole.load().unwrap();
    let circuit = &job.spec().circuit;
    let widths: Vec<u32> = circuit.inputs.iter().map(|port| port.width).collect();
    assert_eq!(widths, [3; 4], "two extremes of two owners");
    assert!(
        circuit
            .inputs
            .iter()
            .all(|port| port.per == veil_circuit::Per::Job)
    );
    assert_eq!(circuit.ring, Ring::Z64);
    assert_eq!(job.spec().opened.len(), 6);
    let data: Vec<(String, String)> = job
        .data()
        .into_iter()
        .map(|data| (data.owner, data.what))
        .collect();
    let pair = |owner: &str, what: &str| (owner.to_owned(), what.to_owned());
    assert_eq!(data, [pair("a", "0"), pair("c", "1"), pair("a", "2")]);
    whole.statistics();
}

/// An owner that brings something else as its largest value than it may.
struct Lies<'a>(&'a dyn Source, u64);

impl Source for Lies<'_> {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        self.0.fill(port, slice, into)?;
        for element in into.chunks_exact_mut(8) {
            element.copy_from_slice(&self.1.to_le_bytes());
        }
        Ok(())
    }
}

/// Whatever `a` brings is a number as long as the range is: what is opened is this or the true largest of `c`, and never something smaller
/// of `c` or a part of it. What is beyond the range is not shown as a value.
#[test]
fn owners_that_lie_see_no_more_than_the_largest() {
    let job = format!(
        r#"{HEAD}
        column = [{{ name = "x", type = "integer", min = -3, max = 8 }}]
        block = [{{ name = "a", rows = 1, holds = {{ a = ["x"] }}, files = {{ a = "a.csv" }} }},
                 {{ name = "b", rows = 1, holds = {{ b = ["x"] }}, files = {{ b = "b.csv" }} }},
                 {{ name = "c", rows = 1, holds = {{ c = ["x"] }}, files = {{ c = "c.csv" }} }}]
        analysis = [{{ name = "max", kind = "max", of = "x", to = "press" }}]
        "#
    );
    let files = [
        ("job.toml", &job[..]),
        ("a.csv", "x\n0\n"),
        ("b.csv", "x\n5\n"),
        ("c.csv", "x\n2\n"),
    ];
    let case = Case::new(&files);
    let job = case.load().unwrap();
    let peer = Peer::Recipient(0);
    let honest = case.sources(&job).unwrap();
    // Values are 1 to 12, four bits: 5 is 9.
    for lie in [
        0,
        1,
        9,
        10,
        12,
        13,
        15,
        16,
        25,
        26,
        1 << 63,
        u64::MAX,
        u64::MAX - 4,
        (1 << 63) + 7,
    ] {
        let liar = Lies(honest[0].1.as_ref(), lie);
        let mut sources: Vec<(Holder, &dyn Source)> = honest
            .iter()
            .map(|(holder, source)| (*holder, source.as_ref()))
            .collect();
        sources[0].1 = &liar;
        let sink = job.sink(peer, &case.path(&format!("out {lie}"))).unwrap();
        evaluate(job.spec(), &sources, &[(peer, &sink as &dyn Sink)]).unwrap();
        let result = sink.statistics().unwrap();
        let largest = (lie % 16).max(9);
        let shown = value(figures(result, "max", &[]), "max");
        if largest <= 12 {
            let value = i128::from(largest) - 4;
            assert_eq!(shown, Estimate::Exact(Scaled { value, scale: 0 }), "{lie}");
        } else {
            let Estimate::Undefined(why) = shown else {
                panic!("{shown:?}")
            };
            assert!(why.contains("beyond the declared range"), "{why}");
        }
    }
}
