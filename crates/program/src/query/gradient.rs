//! Gradient descent as a job file says it.

use toml::Spanned;
use veil_relation::{FitError, MOST_DESCENTS, Stepping};

use super::model::{decimal, number, word};
use crate::error::{Fault, JobProblem};
use crate::raw::RawFit;

/// The methods of regressions.
const NEWTON: &str = "newton";
const GRADIENT: &str = "gradient";

/// What coefficients are kept within, over half of their columns' ranges, where it is not said.
const LIMIT: u32 = 32;

/// How a regression is fitted by gradient descent, and in how many epochs; nothing if it is not.
pub(super) fn stepping(at: &Spanned<RawFit>) -> Result<Option<(Stepping, u32)>, Fault> {
    let raw = at.get_ref();
    let family = raw.family.get_ref();
    let by_gradient = match &raw.method {
        None => false,
        Some(method) => match method.get_ref().as_str() {
            NEWTON => false,
            GRADIENT => true,
            _ => {
                let reason = format!("write one of {NEWTON:?}, {GRADIENT:?}");
                return Err(word("method", method, reason));
            }
        },
    };
    if !by_gradient {
        let what = format!("a model `{family}` by Newton's method");
        return unused(raw, &what).map(|()| None);
    }
    let what = format!("a model `{family}` by gradient descent");
    if let Some(steps) = &raw.steps {
        let field = "steps";
        return Err(Fault::new(steps.span(), JobProblem::NoUse { what, field }));
    }
    let lacks = |field| {
        let what = what.clone();
        Fault::new(at.span(), JobProblem::NoField { what, field })
    };
    let epochs = raw.epochs.as_ref().ok_or_else(|| lacks("epochs"))?;
    if !(1..=MOST_DESCENTS).contains(epochs.get_ref()) {
        let reason = format!("there are 1 to {MOST_DESCENTS} epochs");
        return Err(number("epochs", epochs, reason));
    }
    if let Some(batch) = raw.batch.as_ref().filter(|batch| *batch.get_ref() == 0) {
        let reason = "a batch has 1 row or more".to_owned();
        return Err(number("batch", batch, reason));
    }
    let rate = raw.rate.as_ref().ok_or_else(|| lacks("rate"))?;
    let exact = |field, at: &Spanned<String>, why: FitError| {
        decimal(at.get_ref()).ok_or_else(|| word(field, at, why.to_string()))
    };
    let momentum = raw.momentum.as_ref();
    let of_momentum = momentum.map(|at| exact("momentum", at, FitError::Momentum));
    let of = Stepping {
        batch: raw.batch.as_ref().map(|batch| *batch.get_ref()),
        rate: exact("rate", rate, FitError::Rate)?,
        momentum: of_momentum.transpose()?.unwrap_or((0, 1)),
        limit: raw.limit.as_ref().map_or(LIMIT, |limit| *limit.get_ref()),
    };
    of.check()
        .map_err(|why| match (&why, momentum, &raw.limit) {
            (FitError::Momentum, Some(at), _) => word("momentum", at, why.to_string()),
            (FitError::Limit(_), _, Some(at)) => number("limit", at, why.to_string()),
            _ => word("rate", rate, why.to_string()),
        })?;
    Ok(Some((of, *epochs.get_ref())))
}

/// Refuses what is of gradient descent alone.
pub(super) fn unused(raw: &RawFit, what: &str) -> Result<(), Fault> {
    let numbers = [
        (&raw.batch, "batch"),
        (&raw.epochs, "epochs"),
        (&raw.limit, "limit"),
    ];
    let words = [(&raw.rate, "rate"), (&raw.momentum, "momentum")];
    let numbers = numbers.iter().filter_map(|(at, field)| {
        let at = at.as_ref()?;
        Some((at.span(), *field))
    });
    let words = words.iter().filter_map(|(at, field)| {
        let at = at.as_ref()?;
        Some((at.span(), *field))
    });
    match numbers.chain(words).next() {
        None => Ok(()),
        Some((span, field)) => {
            let what = what.to_owned();
            Err(Fault::new(span, JobProblem::NoUse { what, field }))
        }
    }
}
