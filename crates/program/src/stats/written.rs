//! Tables of a result for a terminal.

use super::{AnalysisResult, Estimate, Figure, derive::SUPPRESSED, result::day_of};
use crate::query::LACKS;

/// A title and a table: a row for each group, or for each coefficient of a regression.
pub(super) fn table(analysis: &AnalysisResult, rows: Option<u64>) -> String {
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
        header.extend(ends_of(level.as_deref()));
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
    let untested = untested.iter().fold(String::new(), |text, why| {
        text + "without a test or an interval: " + why + "\n"
    });
    let lacks = if analysis.is_incomplete() {
        format!("incomplete: {LACKS}\n")
    } else {
        String::new()
    };
    let labels = analysis.by.len() + usize::from(analysis.statistic == "regression");
    lines.insert(0, header);
    format!(
        "{title}\n{}\n{}{lacks}{small}{untested}{used}",
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
        titles.extend(ends_of(level(analysis).as_deref()));
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
fn ends_of(level: Option<&str>) -> Vec<String> {
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
pub(super) fn align(rows: &[Vec<String>], head: usize, left: &[usize]) -> String {
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
