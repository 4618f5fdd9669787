//! Reading of the columns of a table.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use veil_relation::{Column, Consent, Kind, Operation, Reveal, Type, Values};

use super::Written;
use crate::date;
use crate::error::{Fault, JobProblem};
use crate::number::MOST_DIGITS;
use crate::raw::{RawKind, RawNumber, RawTableColumn};
use crate::roles::{check_name, distinct};
use crate::stats::{bound, day, marks};

/// A column of a job file: what it is, and how its file writes it. A key that does not say its bits has these.
pub(super) fn column(
    raw: &RawTableColumn,
    span: Range<usize>,
    bits: Option<u16>,
) -> Result<(Column, Written), Fault> {
    check_name("column", &raw.name)?;
    uses(raw, &span)?;
    let column = Column {
        name: raw.name.get_ref().clone(),
        ty: Type::of(kind(raw, &span, bits)?).or_null(raw.null),
        consent: consent(raw)?,
    };
    let format = raw.format.as_ref();
    if let Some(format) = format.filter(|format| !date::is_complete(format.get_ref())) {
        let reason = "it must say year, month and day, such as \"%d.%m.%Y\" or \"%Y%m%d\"";
        return Err(word(format, "format", reason.into()));
    }
    let written = Written {
        of: files(raw)?,
        marks: marks(raw.decimal.as_ref(), raw.thousands.as_ref())?,
        marked: raw.decimal.is_some() || raw.thousands.is_some(),
        format: format.map(|format| format.get_ref().clone()),
    };
    Ok((column, written))
}

fn word(text: &Spanned<String>, field: &'static str, reason: String) -> Fault {
    let value = text.get_ref().clone();
    let problem = JobProblem::Word {
        field,
        value,
        reason,
    };
    Fault::new(text.span(), problem)
}

/// A field, where it is given, and the types that have a use for it.
type Given<'a> = (&'static str, Option<Range<usize>>, &'a [RawKind]);

/// Refuses fields that the type has no use for.
fn uses(raw: &RawTableColumn, span: &Range<usize>) -> Result<(), Fault> {
    use RawKind::{Category, Date, Decimal, Integer, Key};
    let given: [Given<'_>; 8] = [
        ("scale", raw.scale.as_ref().map(Spanned::span), &[Decimal]),
        (
            "min",
            raw.min.as_ref().map(Spanned::span),
            &[Integer, Decimal, Date],
        ),
        (
            "max",
            raw.max.as_ref().map(Spanned::span),
            &[Integer, Decimal, Date],
        ),
        (
            "values",
            raw.values.as_ref().map(|_| span.clone()),
            &[Category],
        ),
        ("bits", raw.bits.as_ref().map(Spanned::span), &[Key]),
        (
            "decimal",
            raw.decimal.as_ref().map(Spanned::span),
            &[Integer, Decimal],
        ),
        (
            "thousands",
            raw.thousands.as_ref().map(Spanned::span),
            &[Integer, Decimal],
        ),
        ("format", raw.format.as_ref().map(Spanned::span), &[Date]),
    ];
    let what = || format!("column `{}`", raw.name.get_ref());
    for (field, at, of) in given {
        if let Some(at) = at.filter(|_| !of.contains(&raw.kind)) {
            let what = what();
            return Err(Fault::new(at, JobProblem::NoUse { what, field }));
        }
    }
    Ok(())
}

fn kind(raw: &RawTableColumn, span: &Range<usize>, bits: Option<u16>) -> Result<Kind, Fault> {
    let name = raw.name.get_ref();
    let needed = |field| {
        let what = format!("column `{name}`");
        Fault::new(span.clone(), JobProblem::NoField { what, field })
    };
    let ends = |read: fn(&'static str, &Spanned<RawNumber>, u8) -> Result<i64, Fault>, scale| {
        let min = raw.min.as_ref().ok_or_else(|| needed("min"))?;
        let max = raw.max.as_ref().ok_or_else(|| needed("max"))?;
        let ends = (read("min", min, scale)?, read("max", max, scale)?);
        let range = veil_relation::Range::new(ends.0.into(), ends.1.into());
        let empty = || Fault::new(span.clone(), JobProblem::EmptyRange(name.clone()));
        range.ok_or_else(empty)
    };
    Ok(match raw.kind {
        RawKind::Integer => Kind::Integer(ends(bound, 0)?),
        RawKind::Decimal => {
            let scale = raw.scale.as_ref().ok_or_else(|| needed("scale"))?;
            if *scale.get_ref() > MOST_DIGITS {
                let problem = JobProblem::Number {
                    field: "scale",
                    value: scale.get_ref().to_string(),
                    reason: format!("at most {MOST_DIGITS} digits are kept"),
                };
                return Err(Fault::new(scale.span(), problem));
            }
            Kind::Decimal {
                places: (*scale.get_ref()).into(),
                units: ends(bound, *scale.get_ref())?,
            }
        }
        RawKind::Date => Kind::Date(ends(|field, raw, _| day(field, raw), 0)?),
        RawKind::Category => {
            let values = raw.values.as_ref().filter(|values| !values.is_empty());
            let texts = distinct("value", values.ok_or_else(|| needed("values"))?)?;
            let found = texts.len() as u64;
            let too_many = || {
                let limit = veil_relation::MOST_VALUES as u64;
                let what = "values in one column";
                Fault::new(span.clone(), JobProblem::TooMany { what, found, limit })
            };
            Kind::Category(Values::new(texts).ok_or_else(too_many)?)
        }
        RawKind::Bool => Kind::Bool,
        RawKind::Key => {
            let Some(bits) = raw.bits.as_ref() else {
                let bits = bits.ok_or_else(|| needed("bits"))?;
                return Ok(Kind::Key { bits });
            };
            if !matches!(bits.get_ref(), 64 | 80 | 128) {
                let problem = JobProblem::Number {
                    field: "bits",
                    value: bits.get_ref().to_string(),
                    reason: "a key has 64, 80 or 128 bits".into(),
                };
                return Err(Fault::new(bits.span(), problem));
            }
            Kind::Key {
                bits: *bits.get_ref(),
            }
        }
    })
}

/// The columns of the file: several make one key.
fn files(raw: &RawTableColumn) -> Result<Vec<String>, Fault> {
    let Some(of) = &raw.of else {
        return Ok(vec![raw.name.get_ref().clone()]);
    };
    let names = of.get_ref().as_slice();
    let problem = |reason: &str| JobProblem::Word {
        field: "of",
        value: names.join(", "),
        reason: reason.into(),
    };
    let twice = (1..names.len()).any(|at| names[..at].contains(&names[at]));
    if names.is_empty() || twice {
        let problem = problem("it names columns of the file, at least one, and none twice");
        return Err(Fault::new(of.span(), problem));
    }
    if names.len() > 1 && raw.kind != RawKind::Key {
        let problem =
            problem("several columns of a file make a key, and this column is none; name one");
        return Err(Fault::new(of.span(), problem));
    }
    Ok(names.to_vec())
}

/// The owner's words: what is not said is not allowed, unless nothing is said.
fn consent(raw: &RawTableColumn) -> Result<Option<Consent>, Fault> {
    if raw.may.is_none() && raw.reveal.is_none() {
        return Ok(None);
    }
    let known = |words: &mut dyn Iterator<Item = &'static str>| {
        let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
        format!("write {}", words.join(", "))
    };
    let mut may = BTreeSet::new();
    for said in raw.may.iter().flatten() {
        let mut all = Operation::ALL.into_iter();
        let operation = all.find(|operation| operation.word() == said.get_ref());
        may.insert(operation.ok_or_else(|| {
            let words = known(&mut Operation::ALL.into_iter().map(Operation::word));
            word(said, "may", words)
        })?);
    }
    let reveal = match &raw.reveal {
        None => Reveal::Never,
        Some(said) => {
            let mut all = Reveal::ALL.into_iter();
            let reveal = all.find(|reveal| reveal.word() == said.get_ref());
            reveal.ok_or_else(|| {
                let words = known(&mut Reveal::ALL.into_iter().map(Reveal::word));
                word(said, "reveal", words)
            })?
        }
    };
    Ok(Some(Consent { may, reveal }))
}
