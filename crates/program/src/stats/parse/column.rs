//! Reading of columns.

use std::ops::Range;

use toml::Spanned;

use super::limit;
use crate::{
    date,
    error::{Fault, JobProblem},
    number::{LARGEST, MOST_DIGITS, NumberError, Scaled, parse_scaled},
    raw::{RawColumn, RawMissing, RawNotation, RawNumber, RawType},
    roles::{check_name, distinct},
    stats::{Column, ColumnKind, Marks, Missing},
    table::{Notation, THOUSANDS},
};

/// A category value is a byte in memory, and one byte means that it is missing.
const MOST_VALUES: u64 = 255;

pub(super) fn column(raw: &RawColumn, span: Range<usize>) -> Result<Column, Fault> {
    let name = raw.name.get_ref().clone();
    let what = || format!("column `{name}`");
    let useless = |span: Option<Range<usize>>, field| match span {
        Some(span) => Err(Fault::new(
            span,
            JobProblem::NoUse {
                what: what(),
                field,
            },
        )),
        None => Ok(()),
    };
    let needed = |field| {
        Fault::new(
            span.clone(),
            JobProblem::NoField {
                what: what(),
                field,
            },
        )
    };
    let missing = match &raw.missing {
        None => Missing::Refuse,
        Some(word) => match word.get_ref() {
            RawMissing::Refuse => Missing::Refuse,
            RawMissing::DropRow => Missing::DropRow,
            RawMissing::DropPair => Missing::DropPair,
            RawMissing::Zero => Missing::Zero,
            RawMissing::Skip => {
                let problem = JobProblem::Renamed {
                    field: "missing",
                    was: "skip",
                    now: "drop-pair",
                };
                return Err(Fault::new(word.span(), problem));
            }
        },
    };
    let at_missing = || raw.missing.as_ref().map_or(span.clone(), Spanned::span);
    let zero_is_no_value = |reason: String| {
        let (field, value) = ("missing", "zero".into());
        Fault::new(
            at_missing(),
            JobProblem::Word {
                field,
                value,
                reason,
            },
        )
    };
    if !matches!(raw.kind, RawType::Integer | RawType::Decimal) {
        useless(raw.scale.as_ref().map(Spanned::span), "scale")?;
        useless(raw.unit.as_ref().map(Spanned::span), "unit")?;
        useless(raw.decimal.as_ref().map(Spanned::span), "decimal")?;
        useless(raw.thousands.as_ref().map(Spanned::span), "thousands")?;
        if missing == Missing::Zero {
            let reason = "only numbers have the value 0; write \"drop-pair\" or \"drop-row\"";
            return Err(zero_is_no_value(reason.into()));
        }
    }
    if raw.kind != RawType::Date {
        useless(raw.format.as_ref().map(Spanned::span), "format")?;
    }
    if raw.kind == RawType::Category {
        useless(raw.min.as_ref().map(Spanned::span), "min")?;
        useless(raw.max.as_ref().map(Spanned::span), "max")?;
        let values = raw.values.as_ref().filter(|values| !values.is_empty());
        let values = distinct("value", values.ok_or_else(|| needed("values"))?)?;
        limit(
            "values in one column",
            values.len() as u64,
            MOST_VALUES,
            || span.clone(),
        )?;
        return Ok(Column {
            kind: ColumnKind::Category(values),
            name,
            missing,
        });
    }
    useless(raw.values.as_ref().map(|_| span.clone()), "values")?;
    let bounds = || {
        let min = raw.min.as_ref().ok_or_else(|| needed("min"))?;
        Ok((min, raw.max.as_ref().ok_or_else(|| needed("max"))?))
    };
    if raw.kind == RawType::Date {
        let (min, max) = bounds()?;
        let (min, max) = (day("min", min)?, day("max", max)?);
        if min > max {
            return Err(Fault::new(span, JobProblem::EmptyRange(name)));
        }
        let format = raw.format.as_ref();
        if let Some(format) = format.filter(|format| !date::is_complete(format.get_ref())) {
            let (field, value) = ("format", format.get_ref().clone());
            let reason =
                "it must say year, month and day, such as \"%d.%m.%Y\" or \"%Y%m%d\"".into();
            return Err(Fault::new(
                format.span(),
                JobProblem::Word {
                    field,
                    value,
                    reason,
                },
            ));
        }
        let format = format.map(|format| format.get_ref().clone());
        return Ok(Column {
            kind: ColumnKind::Date { min, max, format },
            name,
            missing,
        });
    }
    if raw.kind == RawType::Integer {
        useless(raw.scale.as_ref().map(Spanned::span), "scale")?;
    }
    let scale = match (&raw.scale, raw.kind) {
        (_, RawType::Integer) => 0,
        (None, _) => return Err(needed("scale")),
        (Some(scale), _) if *scale.get_ref() > MOST_DIGITS => {
            let value = scale.get_ref().to_string();
            let reason = format!("at most {MOST_DIGITS} digits are kept");
            return Err(Fault::new(
                scale.span(),
                JobProblem::Number {
                    field: "scale",
                    value,
                    reason,
                },
            ));
        }
        (Some(scale), _) => *scale.get_ref(),
    };
    if let Some(unit) = &raw.unit {
        check_name("unit", unit)?;
    }
    let (min, max) = bounds()?;
    let (min, max) = (bound("min", min, scale)?, bound("max", max, scale)?);
    if min > max {
        return Err(Fault::new(span, JobProblem::EmptyRange(name)));
    }
    if missing == Missing::Zero && !(min..=max).contains(&0) {
        let reason = "0 is outside the range from `min` to `max`; widen it, or write \"drop-pair\"";
        return Err(zero_is_no_value(reason.into()));
    }
    let marks = marks(raw.decimal.as_ref(), raw.thousands.as_ref())?;
    let unit = raw.unit.as_ref().map(|unit| unit.get_ref().clone());
    Ok(Column {
        kind: ColumnKind::Number {
            scale,
            min,
            max,
            unit,
            marks,
        },
        name,
        missing,
    })
}

/// How a file writes its cells.
pub(crate) fn notation(raw: &RawNotation) -> Result<Notation, Fault> {
    let word = |text: &Spanned<String>, field, reason: &str| {
        let problem = JobProblem::Word {
            field,
            value: text.get_ref().clone(),
            reason: reason.into(),
        };
        Err(Fault::new(text.span(), problem))
    };
    if let Some(dates) = (raw.dates.as_ref()).filter(|dates| !date::is_complete(dates.get_ref())) {
        let reason = "it must say year, month and day, such as \"%d.%m.%Y\" or \"%Y%m%d\"";
        return word(dates, "dates", reason);
    }
    for text in &raw.missing {
        if text.get_ref().trim() != text.get_ref() || text.get_ref().is_empty() {
            let reason = "it must be a word without blanks around it; an empty cell is a missing value anyway";
            return word(text, "missing", reason);
        }
    }
    let marked = raw.decimal.is_some() || raw.thousands.is_some();
    let numbers = marks(raw.decimal.as_ref(), raw.thousands.as_ref())?;
    Ok(Notation {
        marks: marked.then_some(numbers),
        dates: raw.dates.as_ref().map(|dates| dates.get_ref().clone()),
        missing: raw
            .missing
            .iter()
            .map(|text| text.get_ref().clone())
            .collect(),
        round: raw.round,
    })
}

/// How text files write the numbers of a column.
pub(crate) fn marks(
    decimal: Option<&Spanned<String>>,
    thousands: Option<&Spanned<String>>,
) -> Result<Marks, Fault> {
    let one = |field: &'static str, text: &Spanned<String>, of: &[char], what: &str| {
        let mut characters = text.get_ref().chars();
        match (characters.next(), characters.next()) {
            (Some(mark), None) if of.contains(&mark) => Ok(mark),
            _ => Err(Fault::new(
                text.span(),
                JobProblem::Word {
                    field,
                    value: text.get_ref().clone(),
                    reason: format!("it must be {what}"),
                },
            )),
        }
    };
    let mut marks = Marks::default();
    if let Some(text) = decimal {
        marks.decimal = one("decimal", text, &['.', ','], "\".\" or \",\"")?;
    }
    if let Some(text) = thousands {
        let what = "a point, comma, apostrophe, blank, no-break blank or underscore";
        let mark = one("thousands", text, &THOUSANDS, what)?;
        if mark == marks.decimal {
            let value = text.get_ref().clone();
            let reason = format!("`decimal` is `{mark}`, too; set it to the other mark");
            let field = "thousands";
            return Err(Fault::new(
                text.span(),
                JobProblem::Word {
                    field,
                    value,
                    reason,
                },
            ));
        }
        marks.thousands = Some(mark);
    }
    Ok(marks)
}

/// A declared bound of dates.
pub(crate) fn day(field: &'static str, raw: &Spanned<RawNumber>) -> Result<i64, Fault> {
    let value = match raw.get_ref() {
        RawNumber::Text(text) => match date::iso(text.as_bytes()) {
            Some(day) => return Ok(day),
            None => text.clone(),
        },
        RawNumber::Integer(value) => value.to_string(),
        RawNumber::Float(value) => value.to_string(),
        RawNumber::Date => "a date".to_owned(),
    };
    let reason = "it must be a date in quotes, such as \"2025-03-14\"".into();
    Err(Fault::new(
        raw.span(),
        JobProblem::Word {
            field,
            value,
            reason,
        },
    ))
}

/// A declared bound, in units of the scale.
pub(crate) fn bound(
    field: &'static str,
    raw: &Spanned<RawNumber>,
    scale: u8,
) -> Result<i64, Fault> {
    let too_large = || {
        let most = Scaled {
            value: LARGEST.into(),
            scale,
        };
        format!("it is too large; a bound is at most {most}, or -{most}")
    };
    let fault = |value: String, reason: String| {
        Fault::new(
            raw.span(),
            JobProblem::Number {
                field,
                value,
                reason,
            },
        )
    };
    match raw.get_ref() {
        RawNumber::Text(text) => {
            parse_scaled(text, scale).map_err(|error| match error {
                NumberError::TooLarge => fault(text.clone(), too_large()),
                error => fault(text.clone(), error.to_string()),
            })
        }
        RawNumber::Integer(value) => {
            let scaled = 10i64.pow(u32::from(scale)).checked_mul(*value);
            let inside = scaled.filter(|scaled| scaled.unsigned_abs() <= LARGEST.unsigned_abs());
            inside.ok_or_else(|| fault(value.to_string(), too_large()))
        }
        // The reader of TOML has no other number for what is beyond 64 bits, and this one has lost digits.
        RawNumber::Float(value) if value.abs() >= 1e18 => {
            Err(fault(format!("{value:.1e}"), too_large()))
        }
        RawNumber::Date => Err(fault(
            "a date".into(),
            "this column has numbers; write one, or `type = \"date\"` and the date in quotes, such as \"2025-03-14\"".into(),
        )),
        RawNumber::Float(value) => Err(fault(
            value.to_string(),
            "write it in quotes, such as \"1.50\", so that no digit is lost".into(),
        )),
    }
}
