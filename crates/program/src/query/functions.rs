//! Functions of a job that are given by their values.

use toml::Spanned;
use veil_query::{Arguments, TableFunction};

use super::Queries;
use crate::error::{Fault, JobProblem};
use crate::number::MOST_DIGITS;
use crate::raw::{RawFunction, RawJob, RawNumber};
use crate::roles::distinct;
use crate::stats::bound;

fn number(field: &'static str, at: std::ops::Range<usize>, value: String, reason: &str) -> Fault {
    let reason = reason.to_owned();
    let problem = JobProblem::Number {
        field,
        value,
        reason,
    };
    Fault::new(at, problem)
}

/// Decimal places of arguments that are so far apart.
fn places(step: &Spanned<RawNumber>) -> Result<u8, Fault> {
    let shown = match step.get_ref() {
        RawNumber::Integer(1) => return Ok(0),
        RawNumber::Integer(value) => value.to_string(),
        RawNumber::Float(value) => value.to_string(),
        RawNumber::Date => "a date".to_owned(),
        RawNumber::Text(text) => {
            let zeros = text
                .strip_prefix("0.")
                .and_then(|rest| rest.strip_suffix('1'));
            let zeros = zeros.filter(|zeros| zeros.bytes().all(|byte| byte == b'0'));
            let places = zeros.and_then(|zeros| u8::try_from(zeros.len() + 1).ok());
            if let Some(places) = places.filter(|places| *places <= MOST_DIGITS) {
                return Ok(places);
            }
            text.clone()
        }
    };
    let reason = "arguments are 1, \"0.1\", \"0.01\", … apart";
    Err(number("step", step.span(), shown, reason))
}

fn function(name: &Spanned<String>, raw: &Spanned<RawFunction>) -> Result<TableFunction, Fault> {
    let (span, raw) = (raw.span(), raw.get_ref());
    let what = || format!("function `{}`", name.get_ref());
    let scale = match &raw.scale {
        None => 0,
        Some(scale) if *scale.get_ref() <= MOST_DIGITS => *scale.get_ref(),
        Some(scale) => {
            let reason = format!("at most {MOST_DIGITS} digits are kept");
            let value = scale.get_ref().to_string();
            return Err(number("scale", scale.span(), value, &reason));
        }
    };
    let of = match (&raw.of, &raw.first) {
        (Some(texts), None) => {
            if let Some(step) = &raw.step {
                let (what, field) = (format!("{} of texts", what()), "step");
                return Err(Fault::new(step.span(), JobProblem::NoUse { what, field }));
            }
            Arguments::Texts(distinct("text", texts)?)
        }
        (None, Some(first)) => {
            let places = raw.step.as_ref().map_or(Ok(0), places)?;
            Arguments::Numbers {
                first: bound("first", first, places)?.into(),
                places: places.into(),
            }
        }
        (Some(_), Some(first)) => {
            let (what, field) = (format!("{} of texts", what()), "first");
            return Err(Fault::new(first.span(), JobProblem::NoUse { what, field }));
        }
        (None, None) => {
            let (what, field) = (what(), "first");
            return Err(Fault::new(span, JobProblem::NoField { what, field }));
        }
    };
    let values = raw.values.iter();
    let values = values.map(|value| bound("values", value, scale).map(i128::from));
    let function = TableFunction {
        name: name.get_ref().clone(),
        of,
        places: scale.into(),
        values: values.collect::<Result<_, _>>()?,
    };
    let wrong = |reason: &str| {
        let (what, reason) = (what(), reason.to_owned());
        Fault::new(name.span(), JobProblem::Function { what, reason })
    };
    function.check().map_err(wrong)?;
    Ok(function)
}

/// The functions of a job.
pub(super) fn functions(raw: &RawJob) -> Result<Vec<TableFunction>, Fault> {
    let all = raw.function.iter();
    all.map(|(name, raw)| function(name, raw)).collect()
}

/// A function as all participants must read it.
pub(super) fn canonical(function: &TableFunction) -> String {
    let TableFunction {
        name,
        of,
        places,
        values,
    } = function;
    let of = match of {
        Arguments::Numbers { first, places } => format!("{first} {places}"),
        Arguments::Texts(texts) => format!("{texts:?}"),
    };
    format!("function {name:?} {of} {places} {values:?}")
}

impl Queries {
    /// The functions that the job gives by their values, in sentences: of what, and the least and the greatest value.
    pub fn functions(&self) -> Vec<String> {
        self.functions.iter().map(TableFunction::about).collect()
    }
}
