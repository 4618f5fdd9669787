//! Statistics over tables: parties of this process give what DuckDB, SciPy and statsmodels give of the same rows, and what the clear evaluation gives.

use std::fmt::Write as _;

use veil_program::{Files, stats::Estimate};
use veil_session::Peer;
use veilworks::{Job, Local, StatsResult};

const HEAD: &str = r#"
version = 1
kind = "stats"
name = "stays"
owners = ["north", "south"]
parties = ["p0", "p1", "p2"]
recipients = ["ministry"]

[[table]]
name = "stays"
owner = "north"
rows = { up_to = 64 }
file = "stays.csv"
column = [
  { name = "patient", type = "key", bits = 80 },
  { name = "since", type = "date", min = "2020-01-01", max = "2025-12-31" },
  { name = "ward", type = "category", values = ["west", "north", "east"] },
  { name = "cost", type = "decimal", scale = 2, min = 0, max = "99.99", null = true },
  { name = "days", type = "integer", min = 0, max = 9 },
]

[[table]]
name = "people"
owner = "south"
rows = 36
unique = [["patient"]]
file = "people.csv"
column = [
  { name = "patient", type = "key", bits = 80 },
  { name = "age", type = "integer", min = 0, max = 120 },
  { name = "insured", type = "bool" },
]
"#;

/// Columns of columns, for the analyses that name them.
const DERIVED: [(&str, &str); 3] = [
    ("margin", "cost - 2 * days"),
    ("year", "extract(year FROM since)"),
    ("less", "4 - days"),
];

/// A folder with the tables, and a job with these analyses.
struct Case {
    folder: tempfile::TempDir,
    text: String,
}

impl Case {
    fn new(analyses: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut stays, mut people) = (
            String::from("patient,since,ward,cost,days\n"),
            String::from("patient,age,insured\n"),
        );
        let day = |days: u32| {
            let mut rest = days;
            let mut year = 2020;
            loop {
                let leap = year % 4 == 0;
                let months = [
                    31,
                    28 + u32::from(leap),
                    31,
                    30,
                    31,
                    30,
                    31,
                    31,
                    30,
                    31,
                    30,
                    31,
                ];
                for (month, length) in (1..).zip(months) {
                    if rest < length {
                        return format!("{year}-{month:02}-{:02}", rest + 1);
                    }
                    rest -= length;
                }
                year += 1;
            }
        };
        for i in 0..60_u32 {
            let cents = i * i * 13 % 5000;
            let cost = if i % 11 == 0 {
                String::new()
            } else {
                format!("{}.{:02}", cents / 100, cents % 100)
            };
            let ward = ["east", "west", "north"][i as usize % 3];
            let (patient, since, stay) = (i * 7 % 40, day(i * 37 % 1500), i * 5 % 9);
            writeln!(stays, "p{patient},{since},{ward},{cost},{stay}").unwrap();
        }
        for j in 0..36 {
            writeln!(people, "p{j},{},{}", 20 + j * 17 % 60, j % 4 == 0).unwrap();
        }
        std::fs::write(folder.path().join("stays.csv"), stays).unwrap();
        std::fs::write(folder.path().join("people.csv"), people).unwrap();
        let mut text = HEAD.to_owned();
        let named = DERIVED.iter().filter(|(name, _)| analyses.contains(name));
        for (at, (name, of)) in named.enumerate() {
            let head = if at == 0 { "\n[derived]\n" } else { "" };
            writeln!(text, "{head}{name} = \"{of}\"").unwrap();
        }
        text.push_str(analyses);
        Self { folder, text }
    }

    /// The result of the parties, which is that of the clear evaluation.
    fn result(&self) -> StatsResult {
        let job = Job::parse(&self.text, self.folder.path()).unwrap();
        let outcome = Local::of(&job).run().unwrap();
        let result = outcome.statistics("ministry").unwrap().clone();
        let file = self.folder.path().join("job.toml");
        let clear = veil_program::Job::parse(&self.text, &file, Files::new()).unwrap();
        let clear = clear.clear_statistics(Peer::Recipient(0)).unwrap().unwrap();
        assert_eq!(result.analyses, clear.analyses);
        assert_eq!(result.opened, clear.opened);
        result
    }
}

/// Figures by name.
type Figures = Vec<(String, Estimate)>;

/// The figures of an analysis: of each group its values, and its figures by name.
fn shown(result: &StatsResult, analysis: &str) -> Vec<(Vec<String>, Figures)> {
    let mut all = result.analyses.iter();
    let found = all.find(|one| one.name == analysis).unwrap();
    let groups = found.groups.iter().map(|group| {
        let figures = group.figures.iter();
        let figures = figures.map(|figure| (figure.name.clone(), figure.estimate.clone()));
        (group.values.clone(), figures.collect())
    });
    groups.collect()
}

fn close(estimate: &Estimate, want: f64) {
    let got = estimate.value().unwrap();
    assert!(
        (got - want).abs() <= 1e-10 * want.abs(),
        "{got} is not {want}"
    );
}

/// One figure of all groups, with the groups.
fn column(result: &StatsResult, analysis: &str, figure: &str) -> Vec<(String, Estimate)> {
    let groups = shown(result, analysis).into_iter();
    let one = |(values, figures): (Vec<String>, Vec<(String, Estimate)>)| {
        let found = figures
            .into_iter()
            .find(|(name, _)| name == figure)
            .unwrap();
        (values.join(" / "), found.1)
    };
    groups.map(one).collect()
}

fn texts(column: &[(String, Estimate)]) -> Vec<(String, String)> {
    let text = |(group, estimate): &(String, Estimate)| {
        let text = match estimate {
            Estimate::Exact(value) => value.to_string(),
            other => format!("{other:?}"),
        };
        (group.clone(), text)
    };
    column.iter().map(text).collect()
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    all.iter().map(owned).collect()
}

/// Joins, conditions and groups: DuckDB 1, over the same rows.
#[test]
fn rows_are_joined_chosen_and_grouped() {
    let case = Case::new(
        r#"
[[analysis]]
name = "old"
from = "stays JOIN people ON stays.patient = people.patient"
where = "age >= 50"
kind = "mean"
of = "cost"
by = "ward"
to = "ministry"

[[analysis]]
name = "insured"
from = "stays JOIN people USING (patient)"
where = "ward = 'north'"
kind = "mean"
of = "insured"
to = "ministry"

[[analysis]]
name = "top"
from = "stays"
kind = "sum"
of = "cost"
by = "days"
top = { groups = 3, by = "sum(cost)" }
to = "ministry"

[[analysis]]
name = "least"
from = "stays"
kind = "sum"
of = "cost"
by = "days"
having = "count(*) > 5"
top = { groups = 2, by = "sum(cost)", order = "smallest" }
to = "ministry"

[[analysis]]
name = "ratio"
from = "stays"
kind = "ratio"
of = ["cost", "days"]
by = "ward"
having = "sum(days) > 70"
to = "ministry"
"#,
    );
    let result = case.result();
    let old = column(&result, "old", "mean");
    let means = [("east", 174.92 / 9.0), ("north", 13.977), ("west", 20.834)];
    assert_eq!(old.len(), 3);
    for ((group, mean), (name, want)) in old.iter().zip(means) {
        assert_eq!(group, name);
        close(mean, want);
    }
    assert_eq!(
        texts(&column(&result, "old", "count")),
        pairs(&[("east", "9"), ("north", "10"), ("west", "10")])
    );
    let [(_, insured)] = column(&result, "insured", "mean").try_into().unwrap();
    close(&insured, 5.0 / 18.0);
    assert_eq!(
        texts(&column(&result, "top", "sum")),
        pairs(&[("6", "163.84"), ("0", "158.23"), ("7", "126.68")])
    );
    assert_eq!(
        texts(&column(&result, "least", "sum")),
        pairs(&[("1", "94.42"), ("2", "106.43")])
    );
    let ratio = column(&result, "ratio", "ratio");
    let wards: Vec<&str> = ratio.iter().map(|(ward, _)| ward.as_str()).collect();
    assert_eq!(wards, ["north", "west"]);
    close(&ratio[0].1, 329.29 / 75.0);
    close(&ratio[1].1, 3.717);
    let opened = result.opened.iter().map(|one| one.what.as_str());
    let opened: Vec<&str> = opened.filter(|what| what.starts_with("`old`")).collect();
    assert_eq!(opened.len(), 6);
    assert_eq!(opened[1], "`old`: sum of cost over rows where ward = east");
}

/// Derived columns, quantiles and bins: DuckDB 1, over the same rows.
#[test]
fn columns_are_derived_and_values_ordered() {
    let case = Case::new(
        r#"
[[analysis]]
name = "margin"
from = "stays"
kind = "variance"
of = "margin"
confidence = "0.9"
to = "ministry"

[[analysis]]
name = "median"
from = "stays"
kind = "median"
of = "cost"
by = "year"
to = "ministry"

[[analysis]]
name = "quantiles"
from = "stays"
kind = "quantiles"
of = "days"
at = ["0.25", "0.9"]
to = "ministry"

[[analysis]]
name = "bins"
from = "stays"
kind = "histogram"
of = "cost"
bins = [10, "20.5", 30, 60]
to = "ministry"

[[analysis]]
name = "first"
from = "stays"
where = "ward = 'east'"
kind = "min"
of = "since"
to = "ministry"

[[analysis]]
name = "mean day"
from = "stays"
where = "ward = 'east'"
kind = "mean-only"
of = "since"
to = "ministry"

[[analysis]]
name = "half"
from = "stays"
kind = "mean-only"
of = "less"
decimals = 1
by = "ward"
to = "ministry"
"#,
    );
    let result = case.result();
    let [(_, margin)] = shown(&result, "margin").try_into().unwrap();
    let figure = |name: &str| &margin.iter().find(|(of, _)| of == name).unwrap().1;
    close(figure("mean"), 12.373_148_148_148_148);
    close(figure("variance"), 254.877_701_222_921_05);
    let mean = &result.analyses[0].groups[0].figures[1];
    let (low, high) = mean.interval.as_ref().unwrap().ends().unwrap();
    close(&Estimate::Rounded(low), 8.736_053_110_629_623);
    close(&Estimate::Rounded(high), 16.010_243_185_666_674);
    assert_eq!(
        texts(&column(&result, "median", "median")),
        pairs(&[
            ("2020", "10.53"),
            ("2021", "25.48"),
            ("2022", "18.77"),
            ("2023", "24.93"),
            ("2024", "8.00")
        ])
    );
    let [(_, quantiles)] = shown(&result, "quantiles").try_into().unwrap();
    assert_eq!(
        texts(&quantiles),
        pairs(&[("quantile 0.25", "2"), ("quantile 0.9", "7")])
    );
    assert_eq!(
        texts(&column(&result, "bins", "count")),
        pairs(&[
            ("below 10.00", "18"),
            ("10.00 to below 20.50", "10"),
            ("20.50 to below 30.00", "11"),
            ("30.00 to below 60.00", "15"),
            ("60.00 and above", "0")
        ])
    );
    let [(_, first)] = column(&result, "first", "min").try_into().unwrap();
    assert_eq!(first, Estimate::Date(18_262.0));
    let [(_, day)] = column(&result, "mean day", "mean").try_into().unwrap();
    assert_eq!(day, Estimate::Date(18_866.0));
    // The mean is -0.85: halves go up.
    let half = texts(&column(&result, "half", "mean"));
    assert_eq!(half[2], ("west".to_owned(), "-0.8".to_owned()));
    let text = result.to_string();
    for part in [
        "2020-01-01",
        "2021-08-27",
        "54 rows are in what is shown",
        "how many rows are used is not opened",
    ] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
}

/// Four parties of which one may do anything, rows of two owners one behind the other, a query that opens nothing, and groups that are too small.
#[test]
fn four_parties_stack_tables_and_leave_out_small_groups() {
    let mut case = Case::new(
        r#"
[[table]]
name = "others"
owner = "south"
rows = 3
file = "others.csv"
column = [
  { name = "ward", type = "category", values = ["west", "north", "east"] },
  { name = "days", type = "integer", min = 0, max = 9 },
]

[[query]]
name = "long"
sql = "SELECT ward, days FROM stays WHERE days >= 8"

[[analysis]]
name = "all"
from = ["stays", "others"]
kind = "sum"
of = "days"
by = "ward"
min_count = 21
to = "ministry"

[[analysis]]
name = "few"
from = "long"
kind = "mean"
of = "days"
min_count = 10
to = "ministry"

[[analysis]]
name = "bins"
from = "others"
kind = "histogram"
of = "days"
bins = [3, 5]
min_count = 2
to = "p1"
"#,
    );
    case.text = case.text.replace("\"p2\"]", "\"p2\", \"p3\"]");
    let others = "ward,days\neast,1\neast,2\nwest,4\n";
    std::fs::write(case.folder.path().join("others.csv"), others).unwrap();
    let job = Job::parse(&case.text, case.folder.path()).unwrap();
    let opens = job.opens();
    assert_eq!(
        opens[0],
        (
            "`all`: up to 3 rows of ward, count, sum of days, without groups of fewer than 21 rows"
                .to_owned(),
            "ministry".to_owned()
        )
    );
    let result = case.result();
    // Of 60 rows 20 are of each ward; two come to the east, and one to the west.
    assert_eq!(
        texts(&column(&result, "all", "count")),
        pairs(&[("east", "22"), ("west", "21")])
    );
    let [(_, few)] = column(&result, "few", "mean").try_into().unwrap();
    assert_eq!(few, Estimate::Undefined("fewer rows than `min_count`"));
    let outcome = Local::of(&job).run().unwrap();
    let other = outcome.statistics("p1").unwrap();
    let bins = column(other, "bins", "count");
    assert_eq!(bins[0].0, "below 3");
    assert_eq!(bins[0].1.value(), Some(2.0));
    for bin in &bins[1..] {
        assert_eq!(bin.1, Estimate::Undefined("fewer rows than `min_count`"));
    }
    assert!(outcome.statistics("south").is_none());
}

/// `statsmodels.api.OLS` and `scipy.stats.pearsonr`, over the rows that DuckDB joins.
#[test]
fn regressions_and_correlations_are_of_joined_rows() {
    let case = Case::new(
        r#"
[[analysis]]
name = "cost"
from = "stays JOIN people USING (patient)"
kind = "regression"
of = "cost"
on = ["days", "ward", "insured"]
to = "ministry"

[[analysis]]
name = "age"
from = "stays JOIN people USING (patient)"
kind = "correlation"
of = ["age", "cost"]
to = "ministry"
"#,
    );
    let result = case.result();
    let [(_, cost)] = shown(&result, "cost").try_into().unwrap();
    let figures = &result.analyses[0].groups[0].figures;
    for (name, estimate, error, p) in [
        (
            "intercept",
            24.661_596_148_407_89,
            4.613_363_184_750_888,
            3.055_468_655_714_52e-6,
        ),
        (
            "days",
            0.237_256_339_196_488_9,
            0.823_259_905_186_351_4,
            0.774_553_549_113_488_5,
        ),
        (
            "ward = north",
            -7.425_205_408_819_253,
            5.243_608_753_229_088,
            0.163_801_733_851_053_73,
        ),
        (
            "ward = west",
            -3.898_777_114_793_652_3,
            5.439_040_906_000_578,
            0.477_277_217_493_151_83,
        ),
        (
            "insured",
            -4.535_960_663_989_582,
            4.915_192_447_267_362,
            0.361_121_086_527_915_97,
        ),
    ] {
        let figure = figures.iter().find(|figure| figure.name == name).unwrap();
        close(&figure.estimate, estimate);
        close(&Estimate::Rounded(figure.standard_error.unwrap()), error);
        close(&Estimate::Rounded(figure.test.as_ref().unwrap().p_value), p);
    }
    close(&cost[2].1, -0.025_129_550_326_289_163);
    close(&cost[4].1, 0.705_837_565_779_380_2);
    let [(_, age)] = column(&result, "age", "correlation").try_into().unwrap();
    close(&age, -0.207_973_458_998_936_04);
    let test = result.analyses[1].groups[0].figures[1].test.clone();
    close(
        &Estimate::Rounded(test.unwrap().p_value),
        0.151_582_232_577_003_35,
    );
}
