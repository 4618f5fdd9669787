//! Cells and relations as text.

use std::fmt::Write as _;

use veil_relation::{Field, Kind, Value, calendar, round_ratio};

use crate::number::Scaled;

/// Digits of a quotient that is shown, beyond those of its parts.
const QUOTIENT: u32 = 6;

/// A cell as people and CSV files write it; nothing for null.
pub(crate) fn cell(kind: &Kind, value: Value) -> String {
    match (kind, value) {
        (_, Value::Null) => String::new(),
        (_, Value::Bool(value)) => value.to_string(),
        (_, Value::Key(key)) => {
            let digits = kind.bits().unwrap_or(128).div_ceil(4) as usize;
            format!("{key:0digits$x}")
        }
        (Kind::Ratio { places, .. }, Value::Ratio(above, below)) => {
            let to = (*places).max(QUOTIENT);
            match round_ratio(above, below, *places, to) {
                Some(units) => decimal(units, to),
                None => format!("{above}/{below}"),
            }
        }
        (_, Value::Ratio(above, below)) => format!("{above}/{below}"),
        (Kind::Decimal { places, .. }, Value::Number(units)) => decimal(units, *places),
        (Kind::Date(_), Value::Number(day)) => day_of(day),
        (Kind::Category(values), Value::Number(index)) => {
            let text = usize::try_from(index).ok();
            let text = text.and_then(|index| values.texts().get(index));
            text.cloned().unwrap_or_default()
        }
        (_, Value::Number(number)) => number.to_string(),
    }
}

/// Units of a decimal with its point.
pub(super) fn decimal(value: i128, places: u32) -> String {
    let scale = u8::try_from(places).unwrap_or(u8::MAX);
    Scaled { value, scale }.to_string()
}

/// A day, as it is written.
fn day_of(day: i128) -> String {
    let known = i32::try_from(day)
        .ok()
        .filter(|day| (calendar::FIRST_DAY..=calendar::LAST_DAY).contains(day));
    known.map_or_else(|| format!("day {day}"), calendar::show)
}

/// Whether cells of this kind stand at the right of their column.
const fn is_number(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Integer(_) | Kind::Decimal { .. } | Kind::Ratio { .. }
    )
}

/// Rows of a table on a terminal that are shown.
const SHOWN: usize = 40;

/// Characters of a cell that are shown.
const WIDEST: usize = 40;

/// A relation as a table with a header.
pub(super) fn table(fields: &[Field], rows: &[Vec<Value>], most: usize) -> String {
    let text = |field: &Field, value: Value| match value {
        Value::Null => "–".to_owned(),
        value => short(&cell(&field.ty.kind, value)),
    };
    let mut lines: Vec<Vec<String>> = vec![fields.iter().map(|field| short(&field.name)).collect()];
    for row in rows.iter().take(most) {
        let cells = fields.iter().zip(row);
        lines.push(cells.map(|(field, value)| text(field, *value)).collect());
    }
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..fields.len()).map(width).collect();
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        let mut all = String::from(" ");
        for ((cell, field), width) in line.iter().zip(fields).zip(&widths) {
            let pad = " ".repeat(width - cell.chars().count());
            if is_number(&field.ty.kind) {
                let _ = write!(all, " {pad}{cell} ");
            } else {
                let _ = write!(all, " {cell}{pad} ");
            }
        }
        out += all.trim_end();
        out.push('\n');
        if number == 0 {
            let rule: usize = widths.iter().map(|width| width + 2).sum();
            let _ = writeln!(out, "  {}", "─".repeat(rule.saturating_sub(2)));
        }
    }
    if rows.len() > most {
        let _ = writeln!(out, "  … and {} more rows", rows.len() - most);
    }
    out
}

/// A relation as a table with a header, cut after some rows.
pub(super) fn terminal(fields: &[Field], rows: &[Vec<Value>]) -> String {
    table(fields, rows, SHOWN)
}

/// Text on one line, cut: names and values of a job may be anything.
pub(super) fn short(text: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut short: String = text.chars().take(WIDEST).map(plain).collect();
    if text.chars().nth(WIDEST).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use veil_relation::{Range, Values};

    use super::*;

    #[test]
    fn cells_are_written_as_in_files() {
        let range = Range::new(-1000, 1000).unwrap();
        let decimal = Kind::Decimal {
            places: 2,
            units: range,
        };
        let values = Values::new(vec!["b".into(), "a".into()]).unwrap();
        let ratio = Kind::Ratio {
            places: 1,
            above: range,
            below: Range::new(1, 9).unwrap(),
        };
        for (kind, value, text) in [
            (&decimal, Value::Number(-5), "-0.05"),
            (&decimal, Value::Null, ""),
            (
                &Kind::date(0, 100).unwrap(),
                Value::Number(31),
                "1970-02-01",
            ),
            (&Kind::Category(values), Value::Number(0), "a"),
            (&Kind::Bool, Value::Bool(true), "true"),
            (
                &Kind::Key { bits: 64 },
                Value::Key(0xab),
                "00000000000000ab",
            ),
            // 10.0 / 3.
            (&ratio, Value::Ratio(100, 3), "3.333333"),
            (&Kind::Integer(range), Value::Number(7), "7"),
        ] {
            assert_eq!(cell(kind, value), text);
        }
    }
}
