//! A result as text, CSV and JSON.

use std::fmt;

use super::{
    Estimate, StatsResult,
    result::day_of,
    written::{align, table},
};
use crate::query::LACKS;

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
                    let why = match &figure.estimate {
                        Estimate::Undefined(why) => Some(*why),
                        _ => figure.untested,
                    };
                    let lacks = analysis.is_incomplete().then_some(LACKS);
                    let notes: Vec<&str> = why.into_iter().chain(lacks).collect();
                    let note = notes.join("; ");
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
                        &note,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        number::Scaled,
        stats::{AnalysisResult, Figure, Group, Opened, derive::SUPPRESSED},
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
                incomplete: None,
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
}
