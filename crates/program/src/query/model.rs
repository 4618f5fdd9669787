//! Models that are fitted to the rows of a query: how a job file says them, and what is said of them.

use std::fmt::Write as _;

use toml::Spanned;
use veil_query::Model;
use veil_relation::{Expr, Family, Fit, Plan};

use super::Queries;
use crate::error::{Fault, JobProblem};
use crate::raw::RawFit;

/// Newton's steps of a model that does not say.
const STEPS: u32 = 8;
/// Those of least squares, whose first has all but the last places.
const LINEAR_STEPS: u32 = 4;
/// Decimal places of coefficients.
const PLACES: u32 = 6;
/// Decimal places of a penalty, at most.
const RIDGE_PLACES: u32 = 12;

fn word(field: &'static str, at: &Spanned<String>, reason: String) -> Fault {
    let value = at.get_ref().clone();
    let problem = JobProblem::Word {
        field,
        value,
        reason,
    };
    Fault::new(at.span(), problem)
}

fn number(field: &'static str, at: &Spanned<u32>, reason: String) -> Fault {
    let value = at.get_ref().to_string();
    let problem = JobProblem::Number {
        field,
        value,
        reason,
    };
    Fault::new(at.span(), problem)
}

/// A decimal number from 0 on, in digits alone.
fn ridge(at: &Spanned<String>) -> Result<(u64, u32), Fault> {
    let text = at.get_ref();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = part.trim_end_matches('0');
    let digits = format!("{whole}{part}");
    let plain = !whole.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    // A decimal has a place.
    let (digits, places) = match part.len() as u32 {
        0 => (format!("{digits}0"), 1),
        places => (digits, places),
    };
    let units = digits.parse().ok();
    let units = units.filter(|_| plain && places <= RIDGE_PLACES);
    let reason =
        || format!("write a number from 0 on with up to {RIDGE_PLACES} places, such as \"0.5\"");
    Ok((units.ok_or_else(|| word("ridge", at, reason()))?, places))
}

/// The model of a query.
pub(super) fn model(raw: &RawFit) -> Result<Model, Fault> {
    let family = Family::named(raw.family.get_ref()).ok_or_else(|| {
        let names: Vec<String> = Family::ALL
            .iter()
            .map(|of| format!("{:?}", of.name()))
            .collect();
        let reason = format!("write one of {}", names.join(", "));
        word("family", &raw.family, reason)
    })?;
    let iterations = match &raw.steps {
        Some(steps) => {
            let most = veil_relation::MOST_ITERATIONS;
            let reason = || format!("a model is fitted in 1 to {most} steps");
            let some = Some(*steps.get_ref()).filter(|steps| (1..=most).contains(steps));
            some.ok_or_else(|| number("steps", steps, reason()))?
        }
        None if family == Family::Linear => LINEAR_STEPS,
        None => STEPS,
    };
    let places = match &raw.places {
        Some(places) => {
            let some = Some(*places.get_ref()).filter(|places| (1..=18).contains(places));
            let reason = || "coefficients have 1 to 18 places".to_owned();
            some.ok_or_else(|| number("places", places, reason()))?
        }
        None => PLACES,
    };
    Ok(Model {
        family,
        target: raw.target.get_ref().clone(),
        ridge: raw.ridge.as_ref().map_or(Ok((0, 1)), ridge)?,
        iterations,
        places,
    })
}

impl Queries {
    /// What is said of each model: what is fitted to what, how, and what it may show.
    pub fn models(&self) -> Vec<String> {
        let steps = self.program().steps.iter();
        let mut said = Vec::new();
        for step in steps {
            let mut of = |model: &Fit, capacity: u64, cell: u32| {
                said.push(sentence(&self.title(&step.name), model, capacity, cell));
            };
            self.each_model(&step.plan, &mut of);
        }
        said
    }

    fn each_model(&self, plan: &Plan, seen: &mut dyn FnMut(&Fit, u64, u32)) {
        if let Plan::Fit { input, model } = plan
            && let Ok(shape) = self.program().shape(input)
            && let Ok(of) = model.regression(&shape.types(), shape.capacity)
        {
            seen(model, shape.capacity, of.cell_places());
        }
        for input in plan.inputs() {
            self.each_model(input, seen);
        }
    }
}

fn sentence(title: &str, model: &Fit, capacity: u64, cell: u32) -> String {
    let terms = model.terms();
    let features = terms[1..].join(", ");
    let mut text = format!(
        "{title}: a {} regression on {features}",
        model.family.name()
    );
    let (units, places) = model.ridge;
    if units > 0 {
        let ridge = Expr::Literal(veil_relation::Literal::Decimal {
            units: units.into(),
            places,
        });
        let _ = write!(text, ", penalised by {ridge}");
    }
    let _ = write!(
        text,
        ", in {} steps, of at least {} and at most {capacity} rows; features have {cell} binary places over half their range. \
         A model is a function of all rows: it may show single ones where they are few or unusual",
        model.iterations, model.min_rows
    );
    text
}
