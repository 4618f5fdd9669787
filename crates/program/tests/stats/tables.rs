//! Analyses over tables that are refused, each at its place and with the whole message; and what is opened of those that are not.

use crate::common::Case;

const JOB: &str = r#"version = 1
kind = "stats"
name = "stays"
owners = ["north", "south"]
parties = ["p0", "p1", "p2"]
recipients = ["ministry"]

[[table]]
name = "stays"
owner = "north"
rows = { up_to = 64 }
column = [
  { name = "patient", type = "key", bits = 80 },
  { name = "since", type = "date", min = "2020-01-01", max = "2025-12-31" },
  { name = "ward", type = "category", values = ["west", "north", "east"] },
  { name = "cost", type = "decimal", scale = 2, min = 0, max = "99.99", null = true },
  { name = "days", type = "integer", min = 1, max = 9 },
]

[[table]]
name = "people"
owner = "south"
rows = 36
unique = [["patient"]]
column = [
  { name = "patient", type = "key", bits = 80 },
  { name = "age", type = "integer", min = 0, max = 120 },
]

[derived]
share = "cost / days"
rounded = "round(cost / days, 2)"
year = "extract(year FROM since)"

[[analysis]]
name = "it"
from = "stays"
kind = "mean"
of = "cost"
to = "ministry"
"#;

/// An analysis that names all derived columns.
const NAMES: &str = r#"
[[analysis]]
name = "others"
from = "stays"
where = "share > 1 AND rounded > 1 AND year > 2020"
kind = "count"
to = "ministry"
"#;

/// The job with the analysis replaced by these lines.
fn with(analysis: &str) -> Case {
    let (before, _) = JOB.split_once("from = \"stays\"").unwrap();
    let text = format!("{before}{analysis}\nto = \"ministry\"\n{NAMES}");
    Case::new(&[("job.toml", &text)])
}

fn refused(analysis: &str) -> String {
    with(analysis).load().unwrap_err()
}

fn opened(analysis: &str) -> Vec<String> {
    let job = with(analysis).load().unwrap();
    let opens = job.queries().unwrap().opens().into_iter();
    let rows = opens.filter(|one| one.to.is_some());
    let all = rows.map(|one| one.what);
    all.filter(|what| what.starts_with("`it`")).collect()
}

#[test]
fn what_is_opened_is_what_the_analysis_needs() {
    for (analysis, what) in [
        (
            "from = \"stays\"\nkind = \"mean\"\nof = \"cost\"",
            "`it`: up to 1 row of count, sum of cost",
        ),
        (
            "from = \"stays\"\nkind = \"variance\"\nof = \"rounded\"\nby = [\"ward\", \"year\"]",
            "`it`: up to 18 rows of ward, year, count, sum of rounded, sum of rounded · rounded",
        ),
        (
            "from = \"stays\"\nkind = \"histogram\"\nof = \"cost\"\nby = \"ward\"\nbins = [10, 20]\nmin_count = 3",
            "`it`: up to 9 rows of ward, bin of cost, count, without groups of fewer than 3 rows",
        ),
        (
            "from = \"stays\"\nkind = \"quantiles\"\nof = \"days\"\nat = [0, \"0.5\", 1]",
            "`it`: up to 1 row of quantile 0 of days, quantile 0.5 of days, quantile 1 of days",
        ),
        (
            "from = \"stays\"\nkind = \"sum\"\nof = \"cost\"\nby = \"days\"\ntop = { groups = 2, by = \"count(*)\" }",
            "`it`: up to 2 rows of days, count, sum of cost",
        ),
        (
            "from = \"stays\"\nkind = \"regression\"\nof = \"cost\"\non = [\"ward\", \"days\"]",
            "`it`: up to 1 row of count, sum of ward = north, sum of ward = west, sum of days, sum of cost, \
             sum of ward = north · days, sum of ward = north · cost, sum of ward = west · days, sum of ward = west · cost, \
             sum of days · days, sum of days · cost, sum of cost · cost",
        ),
    ] {
        assert_eq!(opened(analysis), [what]);
    }
}

#[test]
fn what_cannot_be_is_refused_at_its_place() {
    for (analysis, what) in CASES {
        assert_eq!(refused(analysis), *what, "{analysis}");
    }
}

const CASES: &[(&str, &str)] = &[
    (
        "from = \"stays\"\nkind = \"count\"\nhaving = \"count(*) > 3\"",
        "job.toml:39:10: analysis `it`, which has no `by`, has no use for `having`; remove it",
    ),
    (
        "kind = \"count\"",
        "job.toml:35:1: analysis `it` of a job with several tables needs `from = \"table\"`; add it",
    ),
    (
        "from = \"visits\"\nkind = \"count\"",
        "job.toml:37:8: `from` of analysis `it`: there is no table `visits`\n  visits\n  ^",
    ),
    (
        "from = \"stays, people\"\nkind = \"count\"",
        "job.toml:37:8: `from` of analysis `it`: `,` stands behind tables and their joins\n  stays, people\n       ^",
    ),
    (
        "from = [\"stays\", \"visits\"]\nkind = \"count\"",
        "job.toml:37:8: table `visits` is not defined; there are `stays`, `people`",
    ),
    (
        "from = []\nkind = \"count\"",
        "job.toml:37:8: an analysis needs `from = [\"table\"]`; add it",
    ),
    (
        "from = \"stays\"\nwhere = \"cost > 1) OR (cost < 2\"\nkind = \"count\"",
        "job.toml:38:9: `where` of analysis `it`: `)` stands behind an expression\n  cost > 1) OR (cost < 2\n          ^",
    ),
    (
        "from = \"stays\"\nwhere = \"cost >\"\nkind = \"count\"",
        "job.toml:38:9: `where` of analysis `it`: Expected: an expression, found: EOF\n  cost >\n       ^",
    ),
    (
        "from = \"stays\"\nwhere = \"cost > 1 AND\\n  colour = 'red'\"\nkind = \"count\"",
        "job.toml:38:9: `where` of analysis `it`: there is no column `colour`\n    colour = 'red'\n    ^",
    ),
    (
        "from = \"stays\"\nwhere = \"ln(days - 1) > 1\"\nkind = \"count\"",
        "job.toml:38:9: `where` of analysis `it`: `ln(x)` has no value for 0 and below; x is 0 to 8\n  ln(days - 1) > 1\n  ^\n  write nullif(x, 0), or greatest(x, 1) in the place of x, or declare narrower ranges",
    ),
    (
        "from = \"stays\"\nkind = \"mean\"\nof = \"share\"",
        "job.toml:39:6: analysis `it` uses `share`, a quotient in each row, and parties have exact numbers alone; round it, as in `round(a / b, 4)`, or let `kind = \"ratio\"` divide sums",
    ),
    (
        "from = \"stays\"\nkind = \"mean\"\nof = \"patient\"",
        "job.toml:39:6: analysis `it` uses `patient`, a key, of which parties have a digest that is never opened",
    ),
    (
        "from = \"stays JOIN people ON stays.patient = people.patient\"\nkind = \"count\"\nof = \"patient\"",
        "job.toml:39:6: analysis `it` uses `patient`, a name of several columns of its tables; give one of them a name in `[derived]`",
    ),
    (
        "from = \"stays\"\nkind = \"mean\"\nof = \"colour\"",
        "job.toml:39:6: column `colour` is not defined; there are `patient`, `since`, `ward`, `cost`, `days`",
    ),
    (
        "from = \"stays\"\nkind = \"mean\"\nof = \"ward\"",
        "job.toml:39:6: column `ward` is a category, but mean `it` needs a number",
    ),
    (
        "from = \"stays\"\nkind = \"ratio\"\nof = [\"cost\", \"since\"]",
        "job.toml:39:6: column `since` is a date, but ratio `it` needs a number; a mean of dates has a meaning, a sum has none",
    ),
    (
        "from = \"stays\"\nkind = \"ratio\"\nof = \"cost\"",
        "job.toml:35:1: ratio `it` needs `of = [\"column\", \"column\"]`; add it",
    ),
    (
        "from = \"stays\"\nkind = \"quantiles\"\nof = \"cost\"",
        "job.toml:35:1: quantiles `it` needs `at = [\"0.25\", \"0.75\"]`; add it",
    ),
    (
        "from = \"stays\"\nkind = \"quantiles\"\nof = \"cost\"\nat = [2]",
        "job.toml:40:7: `at` is `2.0000`: a fraction is from 0 to 1, and none stands twice",
    ),
    (
        "from = \"stays\"\nkind = \"quantiles\"\nof = \"cost\"\nat = [\"0.5\", \"0.50\"]",
        "job.toml:40:14: `at` is `0.5000`: a fraction is from 0 to 1, and none stands twice",
    ),
    (
        "from = \"stays\"\nkind = \"quantiles\"\nof = \"cost\"\nat = []",
        "job.toml:40:6: `at` is `0`: an analysis has 1 to 100 quantiles",
    ),
    (
        "from = \"stays\"\nkind = \"histogram\"\nof = \"cost\"",
        "job.toml:35:1: histogram `it` needs `bins = [\"10\", \"20\"]`; add it",
    ),
    (
        "from = \"stays\"\nkind = \"histogram\"\nof = \"cost\"\nbins = [10, 10]",
        "job.toml:40:13: `bins` is \"10.00\": each bin begins above the one before",
    ),
    (
        "from = \"stays\"\nkind = \"histogram\"\nof = \"cost\"\nbins = []",
        "job.toml:40:8: `bins` is `0`: a histogram has 1 to 63 places where a bin begins",
    ),
    (
        "from = \"stays\"\nkind = \"histogram\"\nof = \"cost\"\nbins = [\"1.005\"]",
        "job.toml:40:9: `bins` is `1.005`: has more than 2 digits after the point; round it, or raise the scale of the column",
    ),
    (
        "from = \"stays\"\nkind = \"histogram\"\nof = \"since\"\nbins = [5]",
        "job.toml:40:9: `bins` is \"5\": it must be a date in quotes, such as \"2025-03-14\"",
    ),
    (
        "from = \"stays\"\nkind = \"histogram\"\nof = \"cost\"\nby = [\"ward\", \"year\"]\nbins = [10]",
        "job.toml:40:6: histogram `it` is by 3 columns, and groups are made by one or by two; leave some out, or let an owner make one column of several",
    ),
    (
        "from = \"stays\"\nkind = \"count\"\nbins = [10]",
        "job.toml:39:8: count `it` has no use for `bins`; remove it",
    ),
    (
        "from = \"stays\"\nkind = \"median\"\nof = \"cost\"\nat = [\"0.5\"]",
        "job.toml:40:6: median `it` has no use for `at`; remove it",
    ),
    (
        "from = \"stays\"\nkind = \"count\"\ntop = { groups = 2, by = \"count(*)\" }",
        "job.toml:39:7: analysis `it`, which has no `by`, has no use for `top`; remove it",
    ),
    (
        "from = \"stays\"\nkind = \"histogram\"\nof = \"cost\"\nby = \"ward\"\nbins = [1]\ntop = { groups = 2, by = \"count(*)\" }",
        "job.toml:42:7: histogram `it` has no use for `top`; remove it",
    ),
    (
        "from = \"stays\"\nkind = \"count\"\nby = \"ward\"\ntop = { groups = 0, by = \"count(*)\" }",
        "job.toml:40:18: `groups` is `0`: the first groups are 1 to 10000",
    ),
    (
        "from = \"stays\"\nkind = \"count\"\nby = \"ward\"\ntop = { groups = 2, by = \"count(*)\", order = \"best\" }",
        "job.toml:40:46: `order` is \"best\": write \"largest\" or \"smallest\"",
    ),
    (
        "from = \"stays\"\nkind = \"count\"\nby = \"ward\"\ntop = { groups = 2, by = \"colour\" }",
        "job.toml:40:26: `top.by` of analysis `it`: there is no column `colour`\n  colour\n  ^",
    ),
    (
        "from = \"stays\"\nkind = \"count\"\nby = \"ward\"\nhaving = \"days > 3\"",
        "job.toml:40:10: `having` of analysis `it`: column `days` is neither in GROUP BY nor in an aggregate\n  days > 3\n  ^",
    ),
    (
        "from = \"stays\"\nkind = \"count\"\nby = [\"ward\", \"year\", \"days\"]",
        "job.toml:39:6: count `it` is by 3 columns, and groups are made by one or by two; leave some out, or let an owner make one column of several",
    ),
];

/// A query has so many items at most.
#[test]
fn the_most_regressors_fit_a_query() {
    let job = |values: usize| {
        let values: Vec<String> = (0..values)
            .map(|value| format!("\"it's {value}\""))
            .collect();
        let listed = format!("values = [{}]", values.join(", "));
        let job = JOB.replace("values = [\"west\", \"north\", \"east\"]", &listed);
        let asked =
            "kind = \"regression\"\nof = \"cost\"\non = [\"ward\", \"days\"]\nby = \"year\"";
        let job = job.replace("kind = \"mean\"\nof = \"cost\"", asked);
        let job = format!("most_opened = 2048\n{job}{NAMES}");
        Case::new(&[("job.toml", &job)]).load()
    };
    let most = job(24).unwrap();
    // Of 23 indicators, days and cost with each other, less the products of two indicators; years from 2020 to 2025.
    assert_eq!(
        most.opened_numbers(),
        Some((6 * (1 + 1 + 25 + 2 * 23 + 3) + 1, 2048))
    );
    assert_eq!(
        job(25).unwrap_err(),
        "job.toml:36:1: the job has 25 regressors, and the limit is 24; split it into several jobs"
    );
}

/// What is wrong with the job around an analysis.
#[test]
fn jobs_that_cannot_be_are_refused_at_their_place() {
    for (from, to, what) in JOBS {
        assert_eq!(JOB.matches(from).count(), 1, "`{from}` is not there once");
        let case = Case::new(&[("job.toml", &(JOB.replace(from, to) + NAMES))]);
        assert_eq!(case.load().map(|_| ()).unwrap_err(), *what, "{to}");
    }
}

const JOBS: &[(&str, &str, &str)] = &[
    (
        "[derived]",
        "[derived]\nunused = \"days\"",
        "job.toml:31:1: `derived` is \"unused\": no analysis names this column; remove it",
    ),
    (
        "to = \"ministry\"",
        "to = \"parties\"",
        "job.toml:40:6: `to` is \"parties\": what is computed of tables is opened to one participant; name it",
    ),
    (
        "share =",
        "Share =",
        "job.toml:31:1: `derived` is \"Share\": a name has lower-case letters, digits and `_`",
    ),
    (
        "share =",
        "cost =",
        "job.toml:31:1: `derived` is \"cost\": a table has a column of this name; write another one",
    ),
    (
        "name = \"stays\"\nowners",
        "name = \"stays\"\nmost_opened = 1\nowners",
        "job.toml:4:15: the job opens up to 3 numbers, and its limit is 1; ask for fewer groups or figures, or write `most_opened = 3`",
    ),
    (
        "name = \"stays\"\nowners",
        "name = \"stays\"\nmost_opened = 0\nowners",
        "job.toml:4:15: `most_opened` is `0`: a job like this opens 1 to 16777216 numbers",
    ),
    (
        "name = \"stays\"\nowners",
        "name = \"stays\"\ndurable = true\nowners",
        "job.toml:2:8: a stats job over tables has no use for `durable`; remove it",
    ),
    (
        "[derived]",
        "[[query]]\nname = \"q\"\nsql = \"SELECT ward FROM stays\"\nto = \"ministry\"\n[derived]",
        "job.toml:31:8: query `q` of a job with analyses has no use for `to`; remove it",
    ),
    (
        "[derived]",
        "[keep]\nas = \"x\"\n[derived]",
        "job.toml:30:1: a stats (over tables) job has no `[keep]`; remove it, or change `kind`",
    ),
];

/// Rows that stay where they are answer no question for which they would have to move.
#[test]
fn blocks_are_no_tables() {
    for (line, kind) in [
        ("where = \"x > 1\"", "where"),
        ("having = \"count(*) > 1\"", "having"),
        ("from = \"first\"", "from"),
        ("top = { groups = 1, by = \"count(*)\" }", "top"),
    ] {
        let analyses = format!(
            "[[analysis]]\nname = \"it\"\nkind = \"mean\"\nof = \"x\"\nby = \"g\"\n{line}\nto = \"press\"\n"
        );
        blocks_refuse(&analyses, kind);
    }
    for kind in ["median", "quantiles", "histogram"] {
        let analyses =
            format!("[[analysis]]\nname = \"it\"\nkind = \"{kind}\"\nof = \"x\"\nto = \"press\"\n");
        blocks_refuse(&analyses, &format!("kind = \"{kind}\""));
    }
}

fn blocks_refuse(analyses: &str, what: &str) {
    let job = super::job([2, 2], "refuse", 10, analyses);
    let error = Case::new(&[("job.toml", &job)]).load().unwrap_err();
    let (_, problem) = error.split_once(": ").unwrap();
    assert_eq!(
        problem,
        format!(
            "analysis `it` has `{what}`, for which parties move rows; declare `[[table]]` in the place of `[[column]]` and `[[block]]`"
        )
    );
}
