//! A kept relation as a later job declares it: the text that a dataset has as its schema, and that a table's own declaration gives.

use std::fmt::Write;

use serde::Deserialize;
use toml::{Spanned, Value};
use veil_relation::{Column, ColumnId, Kind, Operation, Origin, Table};

use super::parse;
use crate::date;
use crate::number::Scaled;
use crate::raw::RawTable;

/// One line of a declaration.
fn line(text: &mut String, field: &str, value: impl Into<Value>) {
    raw(text, field, value.into());
}

/// The same of a number of any length, or of what is written as it is.
fn raw(text: &mut String, field: &str, value: impl std::fmt::Display) {
    // A string takes whatever is written.
    let _ = writeln!(text, "{field} = {value}");
}

fn names(table: &Table, columns: &[ColumnId]) -> Value {
    let names = columns.iter();
    let names = names.map(|column| Value::from(table.columns[column.index()].name.clone()));
    Value::Array(names.collect())
}

/// What a table is, whatever its name and wherever it comes from: rows, what is known of them, columns with their owners' words; and the salt of its keys, if
/// it has any; before it the opened size, if the first rows of a dataset are loaded that has one. Two tables with one text may be taken for each other. It is the part of a `[[table]]` that says the same.
pub(super) fn declared(table: &Table, salt: &str) -> String {
    let mut text = String::new();
    if let Origin::First(first) = &table.origin {
        raw(&mut text, "opened_size", first.opened);
    }
    let is_key = |column: &Column| matches!(column.ty.kind, Kind::Key { .. });
    if table.columns.iter().any(is_key) {
        line(&mut text, "salt", salt);
    }
    if table.padded {
        let most = format!("{{ up_to = {} }}", table.rows_kept());
        raw(&mut text, "rows", most);
    } else {
        line(&mut text, "rows", table.rows_kept());
    }
    if !table.sorted_by.is_empty() {
        line(&mut text, "sorted_by", names(table, &table.sorted_by));
    }
    if !table.unique.is_empty() {
        let sets = table.unique.iter().map(|set| names(table, set));
        line(&mut text, "unique", Value::Array(sets.collect()));
    }
    for of in &table.columns {
        text += "[[table.column]]\n";
        line(&mut text, "name", of.name.clone());
        column(&mut text, of);
    }
    text
}

fn column(text: &mut String, of: &Column) {
    let ends = |text: &mut String, min: String, max: String| {
        line(text, "min", min);
        line(text, "max", max);
    };
    match &of.ty.kind {
        Kind::Integer(range) => {
            line(text, "type", "integer");
            raw(text, "min", range.min());
            raw(text, "max", range.max());
        }
        Kind::Decimal { places, units }
        | Kind::Ratio {
            places,
            above: units,
            ..
        } => {
            line(text, "type", "decimal");
            raw(text, "scale", places);
            let show = |value: i128| {
                let scale = u8::try_from(*places).unwrap_or(u8::MAX);
                Scaled { value, scale }.to_string()
            };
            ends(text, show(units.min()), show(units.max()));
        }
        Kind::Date(days) => {
            line(text, "type", "date");
            let show = |day: i128| date::show(i64::try_from(day).unwrap_or(i64::MAX));
            ends(text, show(days.min()), show(days.max()));
        }
        Kind::Category(values) => {
            line(text, "type", "category");
            let values = values.texts().iter().map(|text| Value::from(text.as_str()));
            line(text, "values", Value::Array(values.collect()));
        }
        Kind::Bool => line(text, "type", "bool"),
        Kind::Key { bits } => {
            line(text, "type", "key");
            raw(text, "bits", bits);
        }
    }
    if of.ty.nullable {
        line(text, "null", true);
    }
    if let Some(consent) = &of.consent {
        let all = Operation::ALL.into_iter();
        let may = all.filter(|operation| consent.may.contains(operation));
        let may = may.map(|operation| Value::from(operation.word()));
        line(text, "may", Value::Array(may.collect()));
        line(text, "reveal", consent.reveal.word());
    }
}

/// What a later job reads of a declaration.
#[derive(Deserialize)]
struct Read {
    table: Vec<Spanned<RawTable>>,
}

/// Whether a later job can declare a table with this text, and says the same by it; or why not.
pub(super) fn is_declared(table: &Table, salt: &str) -> Result<(), String> {
    let text = declared(table, salt);
    let salted = text
        .lines()
        .next()
        .is_some_and(|line| line.starts_with("salt"));
    let rest: String = text
        .split_inclusive('\n')
        .skip(usize::from(salted))
        .collect();
    let whole = format!(
        "[[table]]\nname = \"{}\"\nstored = \"kept\"\n{rest}",
        table.name
    );
    let read: Read = toml::from_str(&whole).map_err(|error| error.message().to_owned())?;
    let [raw] = &read.table[..] else {
        return Err("it is no table".into());
    };
    let read = parse::stored(raw).map_err(|fault| fault.problem.to_string())?;
    (declared(&read, salt) == text)
        .then_some(())
        .ok_or_else(|| "it would be read as another".into())
}
