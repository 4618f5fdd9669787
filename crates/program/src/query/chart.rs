//! A result as a chart: of one column of categories or dates, and numbers.

use veil_relation::{Field, Kind, Value};

use super::sink::LACKS;
use super::{Answered, show};
use crate::stats::chart::{Bar, Panel, page};

/// What a column is in a chart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Label,
    Number,
    Other,
}

const fn part(kind: &Kind) -> Part {
    match kind {
        Kind::Category(_) | Kind::Date(_) => Part::Label,
        Kind::Integer(_) | Kind::Decimal { .. } | Kind::Ratio { .. } => Part::Number,
        Kind::Bool | Kind::Key { .. } => Part::Other,
    }
}

/// The place of the column that names the bars.
fn label(fields: &[Field]) -> Option<usize> {
    let parts: Vec<Part> = fields.iter().map(|field| part(&field.ty.kind)).collect();
    let labels = parts.iter().filter(|part| **part == Part::Label).count();
    let plain = labels == 1 && parts.len() > 1 && !parts.contains(&Part::Other);
    let at = parts.iter().position(|part| *part == Part::Label);
    at.filter(|_| plain)
}

/// Whether a result with these columns has a chart.
pub(super) fn is_drawn(fields: &[Field]) -> bool {
    label(fields).is_some()
}

/// A number for a place on an axis: a chart is as exact as its pixels.
fn approximate(kind: &Kind, value: Value) -> Option<f64> {
    let places = match kind {
        Kind::Decimal { places, .. } | Kind::Ratio { places, .. } => *places,
        _ => 0,
    };
    let number = match value {
        Value::Number(number) => number as f64,
        Value::Ratio(above, below) => above as f64 / below as f64,
        Value::Bool(_) | Value::Key(_) | Value::Null => return None,
    };
    Some(number / 10_f64.powi(places as i32))
}

/// Draws the chart as SVG: a panel for each number.
pub(super) fn draw(answer: &Answered, job: &str) -> String {
    let Some(label) = label(&answer.fields) else {
        return page(job, &[], &answer.query);
    };
    let name = |row: &Vec<Value>| match row[label] {
        Value::Null => "null".to_owned(),
        value => show::cell(&answer.fields[label].ty.kind, value),
    };
    let numbers = answer
        .fields
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != label);
    let panels: Vec<Panel> = numbers
        .map(|(at, field)| {
            let bars = answer.rows.iter().map(|row| {
                let value = approximate(&field.ty.kind, row[at]);
                let shown =
                    value.map_or_else(|| "null".into(), |_| show::cell(&field.ty.kind, row[at]));
                Bar::plain(name(row), value, shown)
            });
            let by = format!("by {}", answer.fields[label].name);
            Panel::amounts(field.name.clone(), by, bars.collect())
        })
        .collect();
    let least = match answer.min_count {
        0 | 1 => String::new(),
        rows => format!(" · without groups of fewer than {rows} rows"),
    };
    let lacks = match answer.incomplete {
        Some(true) => format!(" · incomplete: {LACKS}"),
        Some(false) | None => String::new(),
    };
    let foot = format!("{job} · {}{least}{lacks}", answer.query);
    page(job, &panels, &foot)
}
