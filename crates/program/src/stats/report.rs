//! A result as text, CSV and JSON.

use std::fmt;

use super::{AnalysisResult, Estimate, Figure, StatsResult, derive::SUPPRESSED, result::day_of};

impl fmt::Display for StatsResult {
    /// Tables for a terminal, then every opened number, and what the run was worth.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tables())?;
        let title = format!(
            "opened to {}: {} in all, and nothing else",
            self.recipient,
            self.opened.len()
        );
        writeln!(f, "\n{title}\n{}", "─".repeat(title.chars().count()))?;
        let lines = self.opened.iter().map(|opened| {
            let value = opened.value.as_ref().map(ToString::to_string);
            vec![
                value.unwrap_or_else(|| "nothing".into()),
                opened.what.clone(),
            ]
        });
        write!(f, "{}", align(&lines.collect::<Vec<_>>(), 0, &[1]))?;
        if !self.paired.is_empty() {
            writeln!(f)?;
        }
        for paired in &self.paired {
            writeln!(f, "{paired}")?;
        }
        match &self.security {
            Some(security) => writeln!(f, "\nsecurity: {security}"),
            None => Ok(()),
        }
    }
}

impl StatsResult {
    /// The answers as tables for a terminal.
    pub fn tables(&self) -> String {
        let table = |analysis| table(analysis, self.rows);
        let tables: Vec<String> = self.analyses.iter().map(table).collect();
        tables.join("\n")
    }

    /// One line for each number of each group: `analysis, statistic, by_1, group_1, by_2, group_2, figure, value, standard_error,
    /// unit, p_value, confidence, low, high, note`. A column that makes groups has two cells, its name and the group's value of it; they are empty where there is none.
    pub fn to_csv(&self) -> String {
        let mut text = line(&[
            "analysis",
            "statistic",
            "by_1",
            "group_1",
            "by_2",
            "group_2",
            "figure",
            "value",
            "standard_error",
            "unit",
            "p_value",
            "confidence",
            "low",
            "high",
            "note",
        ]);
        for analysis in &self.analyses {
            for group in &analysis.groups {
                for figure in &group.figures {
                    let note = match &figure.estimate {
                        Estimate::Undefined(why) => *why,
                        _ => figure.untested.unwrap_or_default(),
                    };
                    let number = |value: Option<f64>| {
                        value.map(|value| value.to_string()).unwrap_or_default()
                    };
                    let interval = figure.interval.as_ref();
                    let [level, low, high] = match interval {
                        Some(interval) => [
                            interval.confidence.level().to_string(),
                            plain(&interval.low),
                            plain(&interval.high),
                        ],
                        None => Default::default(),
                    };
                    let error = number(figure.standard_error);
                    let p_value = number(figure.test.as_ref().map(|test| test.p_value));
                    let by = |at: usize| analysis.by.get(at).map_or("", String::as_str);
                    let of = |at: usize| group.values.get(at).map_or("", String::as_str);
                    text += &line(&[
                        &analysis.name,
                        analysis.statistic,
                        by(0),
                        of(0),
                        by(1),
                        of(1),
                        &figure.name,
                        &plain(&figure.estimate),
                        &error,
                        figure.unit.as_deref().unwrap_or_default(),
                        &p_value,
                        &level,
                        &low,
                        &high,
                        note,
                    ]);
                }
            }
        }
        text
    }

    /// Everything, the opened numbers included.
    pub fn to_json(&self) -> String {
        let text =
            serde_json::to_string_pretty(self).expect("a result has only text, numbers and lists");
        text + "\n"
    }
}

/// An estimate as a program reads it: in full; nothing where it is not defined.
fn plain(estimate: &Estimate) -> String {
    match estimate {
        Estimate::Exact(value) => value.to_string(),
        Estimate::Rounded(value) => value.to_string(),
        Estimate::Date(days) => day_of(*days),
        Estimate::Undefined(_) => String::new(),
    }
}

/// A line of CSV, quoted where it must be.
fn line(cells: &[&str]) -> String {
    let quote = |cell: &&str| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            (*cell).to_owned()
        }
    };
    cells.iter().map(quote).collect::<Vec<_>>().join(",") + "\n"
}

/// A title and a table: a row for each group, or for each coefficient of a regression.
fn table(analysis: &AnalysisResult, rows: Option<u64>) -> String {
    let title = if analysis.name == analysis.about {
        analysis.name.clone()
    } else {
        format!("{}: {}", analysis.name, analysis.about)
    };
    let mut lines = Vec::new();
    let mut header = analysis.by.clone();
    if analysis.statistic == "regression" {
        let level = level(analysis);
        header.extend(["", "estimate", "standard error", "t", "p-value"].map(str::to_owned));
        header.extend(ends_of(&level));
        for group in &analysis.groups {
            for figure in &group.figures {
                let mut row = group.values.clone();
                row.push(title_of(figure));
                row.extend([cell(&figure.estimate), error(figure), t(figure)]);
                row.push(p_value(figure));
                row.extend(ends(figure));
                lines.push(row);
            }
        }
    } else {
        let first = analysis.groups.first();
        for figure in first.map_or(&[][..], |group| &group.figures) {
            header.push(title_of(figure));
            header.extend(
                beside(analysis, figure)
                    .map(|beside| beside.titles(analysis))
                    .into_iter()
                    .flatten(),
            );
        }
        for group in &analysis.groups {
            let mut row = group.values.clone();
            for figure in &group.figures {
                row.push(cell(&figure.estimate));
                row.extend(
                    beside(analysis, figure)
                        .map(|beside| beside.cells(figure))
                        .into_iter()
                        .flatten(),
                );
            }
            lines.push(row);
        }
    }
    // Rows where something is missing are left out, and the reader should not have to guess how many.
    // Of rows that are not in what is shown, no recipient knows how many are in small groups.
    let of = rows.map_or_else(String::new, |rows| format!(" of {rows}"));
    let used = match (analysis.rows_used, analysis.min_count) {
        (Some(used), _) if Some(used) == rows => String::new(),
        (Some(used), None) if rows.is_some() => format!("{used}{of} rows used\n"),
        (Some(used), _) => format!("{used}{of} rows are in what is shown\n"),
        (None, _) => format!("how many{of} rows are used is not opened\n"),
    };
    let mut figures = analysis.groups.iter().flat_map(|group| &group.figures);
    let small = figures.any(|figure| figure.estimate == Estimate::Undefined(SUPPRESSED));
    let small = if small {
        format!("{SMALL}: {SUPPRESSED}\n")
    } else {
        String::new()
    };
    let mut untested: Vec<&str> = (analysis.groups.iter())
        .flat_map(|group| &group.figures)
        .filter_map(|figure| figure.untested)
        .collect();
    untested.dedup();
    let untested: String = (untested.iter())
        .map(|why| format!("without a test or an interval: {why}\n"))
        .collect();
    let labels = analysis.by.len() + usize::from(analysis.statistic == "regression");
    lines.insert(0, header);
    format!(
        "{title}\n{}\n{}{small}{untested}{used}",
        "─".repeat(title.chars().count()),
        align(&lines, 1, &(0..labels).collect::<Vec<_>>())
    )
}

/// What stands in a table in the place of a number of a small group; the reason stands below.
const SMALL: &str = "–";

/// A number in a table.
fn cell(estimate: &Estimate) -> String {
    match estimate {
        Estimate::Undefined(SUPPRESSED) => SMALL.into(),
        other => show(other),
    }
}

fn title_of(figure: &Figure) -> String {
    if let Some(test) = figure.test.as_ref().filter(|test| test.statistic == "F") {
        let degrees: Vec<String> = test.degrees_of_freedom.iter().map(u64::to_string).collect();
        return format!(
            "{} ({} degrees of freedom)",
            figure.name,
            degrees.join(" and ")
        );
    }
    match &figure.unit {
        Some(unit) => format!("{} [{unit}]", figure.name),
        None => figure.name.clone(),
    }
}

fn error(figure: &Figure) -> String {
    figure.standard_error.map(short).unwrap_or_default()
}

/// What stands beside a figure that is an estimate, in a table with a column for each figure.
enum Beside {
    /// Standard error and interval.
    Error,
    /// The test, and the interval.
    Test,
}

fn beside(analysis: &AnalysisResult, figure: &Figure) -> Option<Beside> {
    match (analysis.statistic, figure.name.as_str()) {
        ("variance", "mean") => Some(Beside::Error),
        ("correlation", "correlation") => Some(Beside::Test),
        _ => None,
    }
}

impl Beside {
    fn titles(&self, analysis: &AnalysisResult) -> Vec<String> {
        let first = match self {
            Beside::Error => "standard error",
            Beside::Test => "p-value",
        };
        let mut titles = vec![first.to_owned()];
        titles.extend(ends_of(&level(analysis)));
        titles
    }

    fn cells(&self, figure: &Figure) -> Vec<String> {
        let first = match self {
            Beside::Error => error(figure),
            Beside::Test => p_value(figure),
        };
        let mut cells = vec![first];
        cells.extend(ends(figure));
        cells
    }
}

/// The confidence of the intervals of an analysis, if it has any.
fn level(analysis: &AnalysisResult) -> Option<String> {
    let mut figures = analysis.groups.iter().flat_map(|group| &group.figures);
    figures.find_map(|figure| Some(figure.interval.as_ref()?.confidence.to_string()))
}

/// The titles of both ends of intervals.
fn ends_of(level: &Option<String>) -> Vec<String> {
    let level = level.iter();
    let titles = level.flat_map(|level| [format!("{level} from"), format!("{level} to")]);
    titles.collect()
}

/// Both ends of an interval.
fn ends(figure: &Figure) -> Vec<String> {
    let interval = figure.interval.iter();
    interval
        .flat_map(|interval| [show(&interval.low), show(&interval.high)])
        .collect()
}

/// The estimate divided by its standard error, where that is a test.
fn t(figure: &Figure) -> String {
    match &figure.test {
        Some(test) if test.statistic == "t" => format!("{:.2}", test.value),
        _ => String::new(),
    }
}

fn p_value(figure: &Figure) -> String {
    let test = figure.test.as_ref();
    test.map(|test| short(test.p_value)).unwrap_or_default()
}

/// A number for people: exact ones in full, others with about six digits.
pub(super) fn show(estimate: &Estimate) -> String {
    match estimate {
        Estimate::Exact(value) => value.to_string(),
        Estimate::Rounded(value) => short(*value),
        Estimate::Date(days) => day_of(*days),
        Estimate::Undefined(why) => format!("({why})"),
    }
}

/// About six digits.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e12).contains(&size) {
        return format!("{value:.5e}");
    }
    let decimals = (5 - size.log10().floor() as i64).clamp(2, 9);
    format!("{value:.*}", decimals as usize)
}

/// Columns of equal width, two blanks between; `left` lists those that begin at the left. Rules below `head` rows.
fn align(rows: &[Vec<String>], head: usize, left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let pad = |(column, cell): (usize, &String)| {
            let blanks = " ".repeat(widths[column] - cell.chars().count());
            if left.contains(&column) {
                format!("{cell}{blanks}")
            } else {
                format!("{blanks}{cell}")
            }
        };
        let cells: Vec<String> = row.iter().enumerate().map(pad).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
        if index + 1 == head {
            let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
            text += &rules.join("  ");
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        number::Scaled,
        stats::{Group, Opened},
    };
    use veil_job::{Guarantee, Security};

    fn result() -> StatsResult {
        let figure = |name: &str, estimate, standard_error| Figure {
            standard_error,
            unit: (name == "mean").then(|| "EUR".into()),
            ..super::super::derive::figure(name, estimate)
        };
        let group = |value: &str, count, mean, error| Group {
            values: vec![value.into()],
            figures: vec![
                figure(
                    "count",
                    Estimate::Exact(Scaled {
                        value: count,
                        scale: 0,
                    }),
                    None,
                ),
                figure("mean", mean, error),
            ],
        };
        StatsResult {
            paired: Vec::new(),
            job: "study".into(),
            recipient: "press".into(),
            rows: Some(12),
            analyses: vec![AnalysisResult {
                name: "pay".into(),
                statistic: "variance",
                about: "variance of pay".into(),
                by: vec!["kind".into()],
                min_count: None,
                rows_used: Some(12),
                groups: vec![
                    group("a, \"b\"", 12, Estimate::Rounded(1234.5), Some(0.25)),
                    group("c", 0, Estimate::Undefined("no rows"), None),
                ],
            }],
            opened: vec![Opened {
                what: "sum of pay".into(),
                value: Some(Scaled {
                    value: -1_481_400,
                    scale: 2,
                }),
            }],
            security: Some(Guarantee::of(Security::among(3))),
        }
    }

    #[test]
    fn the_table_is_aligned_and_complete() {
        let want = "\
pay: variance of pay
────────────────────
kind    count  mean [EUR]  standard error
──────  ─────  ──────────  ──────────────
a, \"b\"     12     1234.50        0.250000
c           0   (no rows)

opened to press: 1 in all, and nothing else
───────────────────────────────────────────
-14814.00  sum of pay

security: rep3, semi-honest, abort, 3 parties
";
        assert_eq!(result().to_string(), want);
    }

    #[test]
    fn csv_is_read_again_by_a_csv_reader() {
        let text = result().to_csv();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
        assert_eq!(rows.len(), 4);
        assert_eq!(
            &rows[1],
            [
                "pay", "variance", "kind", "a, \"b\"", "", "", "mean", "1234.5", "0.25", "EUR", "",
                "", "", "", ""
            ]
            .as_slice()
        );
        assert_eq!(&rows[3][14], "no rows");
        let mut result = result();
        result.analyses[0].by.push("sex".into());
        result.analyses[0].groups[0].values.push("f / m".into());
        let text = result.to_csv();
        let names = "analysis,statistic,by_1,group_1,by_2,group_2,figure,value,";
        assert!(text.starts_with(names), "{text}");
        let line = "pay,variance,kind,\"a, \"\"b\"\"\",sex,f / m,count,12,";
        assert!(text.contains(line), "{text}");
    }

    /// The reason is said once, and not in every cell.
    #[test]
    fn small_groups_do_not_make_a_table_wide() {
        let mut result = result();
        for figure in &mut result.analyses[0].groups[1].figures {
            figure.estimate = Estimate::Undefined(SUPPRESSED);
        }
        let want = "\
pay: variance of pay
────────────────────
kind    count  mean [EUR]  standard error
──────  ─────  ──────────  ──────────────
a, \"b\"     12     1234.50        0.250000
c           –           –
–: fewer rows than `min_count`
";
        assert_eq!(result.tables(), want);
        assert!(
            result.to_csv().contains(",,fewer rows than `min_count`")
                || result.to_csv().contains(",fewer rows than `min_count`")
        );
    }

    #[test]
    fn json_has_every_opened_number_in_full() {
        let value: serde_json::Value = serde_json::from_str(&result().to_json()).unwrap();
        assert_eq!(value["opened"][0]["value"], "-14814.00");
        assert_eq!(value["security"]["adversary"], "semi-honest");
        assert_eq!(value["security"]["parties"], 3);
        assert_eq!(
            value["analyses"][0]["groups"][0]["figures"][1]["rounded"],
            1234.5
        );
        assert_eq!(
            value["analyses"][0]["groups"][1]["figures"][1]["undefined"],
            "no rows"
        );
    }

    #[test]
    fn numbers_keep_about_six_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.500000"),
            (1.0 / 3.0, "0.333333"),
            (-12.345_678_9, "-12.3457"),
            (123_456_789.123, "123456789.12"),
            (1.5e-7, "1.50000e-7"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
