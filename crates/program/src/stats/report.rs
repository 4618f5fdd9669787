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
    /// unit, note`. A column that makes groups has two cells, its name and the group's value of it; they are empty where there is none.
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
            "note",
        ]);
        for analysis in &self.analyses {
            for group in &analysis.groups {
                for figure in &group.figures {
                    let (value, note) = match &figure.estimate {
                        Estimate::Exact(value) => (value.to_string(), ""),
                        Estimate::Rounded(value) => (value.to_string(), ""),
                        Estimate::Date(days) => (day_of(*days), ""),
                        Estimate::Undefined(why) => (String::new(), *why),
                    };
                    let error = figure
                        .standard_error
                        .map(|error| error.to_string())
                        .unwrap_or_default();
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
                        &value,
                        &error,
                        figure.unit.as_deref().unwrap_or_default(),
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
fn table(analysis: &AnalysisResult, rows: u64) -> String {
    let title = if analysis.name == analysis.about {
        analysis.name.clone()
    } else {
        format!("{}: {}", analysis.name, analysis.about)
    };
    let mut lines = Vec::new();
    let mut header = analysis.by.clone();
    if analysis.statistic == "regression" {
        header.extend(["", "estimate", "standard error", "t"].map(str::to_owned));
        for group in &analysis.groups {
            for figure in &group.figures {
                let mut row = group.values.clone();
                row.push(title_of(figure));
                row.extend([cell(&figure.estimate), error(figure), ratio(figure)]);
                lines.push(row);
            }
        }
    } else {
        for figure in analysis
            .groups
            .first()
            .map_or(&[][..], |group| &group.figures)
        {
            header.push(title_of(figure));
            if figure.standard_error.is_some()
                || analysis.statistic == "variance" && figure.name == "mean"
            {
                header.push("standard error".into());
            }
        }
        for group in &analysis.groups {
            let mut row = group.values.clone();
            for figure in &group.figures {
                row.push(cell(&figure.estimate));
                if analysis.statistic == "variance" && figure.name == "mean" {
                    row.push(error(figure));
                }
            }
            lines.push(row);
        }
    }
    // Rows where something is missing are left out, and the reader should not have to guess how many.
    // Of rows that are not in what is shown, no recipient knows how many are in small groups.
    let used = match (analysis.rows_used, analysis.min_count) {
        (Some(used), _) if used == rows => String::new(),
        (Some(used), None) => format!("{used} of {rows} rows used\n"),
        (Some(used), Some(_)) => format!("{used} of {rows} rows are in what is shown\n"),
        (None, _) => format!("how many of {rows} rows are used is not opened\n"),
    };
    let mut figures = analysis.groups.iter().flat_map(|group| &group.figures);
    let small = figures.any(|figure| figure.estimate == Estimate::Undefined(SUPPRESSED));
    let small = if small {
        format!("{SMALL}: {SUPPRESSED}\n")
    } else {
        String::new()
    };
    let labels = analysis.by.len() + usize::from(analysis.statistic == "regression");
    lines.insert(0, header);
    format!(
        "{title}\n{}\n{}{small}{used}",
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
    match &figure.unit {
        Some(unit) => format!("{} [{unit}]", figure.name),
        None => figure.name.clone(),
    }
}

fn error(figure: &Figure) -> String {
    figure.standard_error.map(short).unwrap_or_default()
}

/// Estimate divided by its standard error.
fn ratio(figure: &Figure) -> String {
    match (figure.estimate.value(), figure.standard_error) {
        (Some(value), Some(error)) if error > 0.0 => format!("{:.2}", value / error),
        _ => String::new(),
    }
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
            name: name.into(),
            estimate,
            standard_error,
            unit: (name == "mean").then(|| "EUR".into()),
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
            rows: 12,
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
                "pay", "variance", "kind", "a, \"b\"", "", "", "mean", "1234.5", "0.25", "EUR", ""
            ]
            .as_slice()
        );
        assert_eq!(&rows[3][10], "no rows");
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
