//! Results that are read again: from the JSON that a run has written.

use serde::Deserialize;
use serde_json::Value as Json;
use veil_job::DataError;
use veil_relation::{Field, Kind, Value, calendar};

use super::{Answered, Queries};

/// A relation as [`Answered::json`] writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    query: String,
    min_count: u32,
    incomplete: Option<bool>,
    columns: Vec<Column>,
    rows: Vec<Vec<Json>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    r#type: String,
}

/// All relations as a run prints them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct All {
    queries: Vec<Written>,
}

fn wrong(what: impl std::fmt::Display) -> DataError {
    DataError::own(format!("the result is not one of this job: {what}"))
}

/// Units of a decimal with exactly so many places.
fn units(text: &str, places: u32) -> Option<i128> {
    let (minus, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, part) = match places {
        0 => (digits, ""),
        _ => digits.split_once('.')?,
    };
    let all = [whole, part].concat();
    let good = part.len() == places as usize
        && !whole.is_empty()
        && all.bytes().all(|byte| byte.is_ascii_digit());
    let number: i128 = all.parse().ok().filter(|_| good)?;
    Some(if minus { -number } else { number })
}

/// A quotient, of which a file has the rounded decimal, or both parts.
fn ratio(text: &str, places: u32) -> Option<Value> {
    if let Some((above, below)) = text.split_once('/') {
        let below: i128 = below.parse().ok().filter(|below| *below > 0)?;
        return Some(Value::Ratio(above.parse().ok()?, below));
    }
    let shown = u32::try_from(text.split_once('.')?.1.len()).ok()?;
    let below = 10_i128.checked_pow(shown)?;
    let above = units(text, shown)?.checked_mul(10_i128.checked_pow(places)?)?;
    Some(Value::Ratio(above, below))
}

fn cell(kind: &Kind, cell: &Json) -> Option<Value> {
    let text = || cell.as_str();
    let number = |number: i128| {
        let within = kind
            .range()
            .is_none_or(|range| (range.min()..=range.max()).contains(&number));
        within.then_some(Value::Number(number))
    };
    match (kind, cell) {
        (_, Json::Null) => Some(Value::Null),
        (Kind::Bool, Json::Bool(value)) => Some(Value::Bool(*value)),
        (Kind::Integer(_), Json::Number(written)) => number(written.as_i64()?.into()),
        (Kind::Integer(_), _) => number(units(text()?, 0)?),
        (Kind::Decimal { places, .. }, _) => number(units(text()?, *places)?),
        (Kind::Date(_), _) => number(calendar::parse(text()?)?.into()),
        (Kind::Category(values), _) => {
            let text = text()?;
            let at = values.texts().iter().position(|value| value == text)?;
            Some(Value::Number(at as i128))
        }
        (Kind::Ratio { places, .. }, _) => ratio(text()?, *places),
        (Kind::Bool | Kind::Key { .. }, _) => None,
    }
}

impl Written {
    fn read(self, fields: &[Field]) -> Result<Answered, DataError> {
        let same = |(field, column): (&Field, &Column)| {
            field.name == column.name && field.ty.kind.to_string() == column.r#type
        };
        if fields.len() != self.columns.len() || !fields.iter().zip(&self.columns).all(same) {
            return Err(wrong(format!("`{}` has other columns", self.query)));
        }
        let row = |(at, cells): (usize, &Vec<Json>)| {
            if cells.len() != fields.len() {
                return Err(wrong(format!(
                    "row {} of `{}` has {} cells",
                    at + 1,
                    self.query,
                    cells.len()
                )));
            }
            let read = |(field, one): (&Field, &Json)| {
                cell(&field.ty.kind, one).ok_or_else(|| {
                    let (row, query) = (at + 1, &self.query);
                    wrong(format!(
                        "row {row} of `{query}` has a cell that `{}` cannot have",
                        field.name
                    ))
                })
            };
            fields.iter().zip(cells).map(read).collect()
        };
        let rows = self.rows.iter().enumerate().map(row);
        Ok(Answered {
            rows: rows.collect::<Result<_, _>>()?,
            query: self.query,
            fields: fields.to_vec(),
            min_count: self.min_count,
            incomplete: self.incomplete,
        })
    }
}

impl Queries {
    /// What was opened to the recipient of this name, from JSON: the object of one relation, as its file has it, or that of all, as a run prints it.
    /// A quotient is the decimal that was written, rounded.
    ///
    /// # Errors
    /// [`DataError::Own`] if it is no result of this job.
    pub fn answered(&self, recipient: &str, json: &str) -> Result<Vec<Answered>, DataError> {
        let value: Json = serde_json::from_str(json).map_err(wrong)?;
        let all: Vec<Written> = if value.get("queries").is_some() {
            serde_json::from_value::<All>(value).map_err(wrong)?.queries
        } else {
            vec![serde_json::from_value(value).map_err(wrong)?]
        };
        let read = |written: Written| {
            let mut results = self.physical().results.iter();
            let ports = results.find(|ports| ports.to == recipient && ports.step == written.query);
            let ports = ports.ok_or_else(|| {
                wrong(format!(
                    "nothing of `{}` is for `{recipient}`",
                    written.query
                ))
            })?;
            written.read(&ports.fields)
        };
        all.into_iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_their_places() {
        assert_eq!(units("12.34", 2), Some(1234));
        assert_eq!(units("-0.05", 2), Some(-5));
        assert_eq!(units("-7", 0), Some(-7));
        for (text, places) in [
            ("12.3", 2),
            ("12.345", 2),
            ("12", 2),
            (".50", 2),
            ("1e3", 0),
            ("", 0),
            ("+5", 0),
            ("1.-5", 2),
        ] {
            assert_eq!(units(text, places), None, "{text}");
        }
    }

    #[test]
    fn quotients_are_what_was_written() {
        assert_eq!(ratio("0.333333", 0), Some(Value::Ratio(333_333, 1_000_000)));
        assert_eq!(ratio("12.50", 2), Some(Value::Ratio(125_000, 100)));
        assert_eq!(ratio("-7/3", 0), Some(Value::Ratio(-7, 3)));
        for text in ["7", "1/0", "1/-3", "x.5", "1/2/3"] {
            assert_eq!(ratio(text, 0), None, "{text}");
        }
    }
}
