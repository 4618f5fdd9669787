//! Models that are fitted to the rows of a query: how a job file says them, and what is said of them.

use std::collections::BTreeMap;

use toml::Spanned;
use veil_query::{Cuts, Model, ModelKind};
use veil_relation::{
    CLUSTERS, COMPONENTS, Expr, Family, Fit, FitKind, Fitting, MOST_CUTS, MOST_DEPTH, Plan, TREE,
};

use super::Queries;
use super::decimal::shortest;
use super::gradient;
use crate::error::{Fault, JobProblem};
use crate::raw::{RawCuts, RawFit, RawNumber};

/// Newton's steps of a model that does not say.
const STEPS: u32 = 8;
/// Those of least squares, whose first has all but the last places.
const LINEAR_STEPS: u32 = 4;
/// Lloyd's steps, and squarings of a matrix.
const CLUSTER_STEPS: u32 = 10;
/// Levels of splits of a tree.
const LEVELS: u32 = 3;
/// Decimal places of coefficients, centres, shares and means.
const PLACES: u32 = 6;
/// Decimal places of a penalty, at most.
const RIDGE_PLACES: u32 = 12;

pub(super) fn word(field: &'static str, at: &Spanned<String>, reason: String) -> Fault {
    let value = at.get_ref().clone();
    let problem = JobProblem::Word {
        field,
        value,
        reason,
    };
    Fault::new(at.span(), problem)
}

pub(super) fn number(field: &'static str, at: &Spanned<u32>, reason: String) -> Fault {
    let value = at.get_ref().to_string();
    let problem = JobProblem::Number {
        field,
        value,
        reason,
    };
    Fault::new(at.span(), problem)
}

/// A decimal from 0 on, with one place at least: as the canonical text of a plan has it.
pub(super) fn decimal(text: &str) -> Option<(u64, u32)> {
    let (units, places) = match shortest(text)? {
        (units, 0) => (units.checked_mul(10)?, 1),
        number => number,
    };
    Some((u64::try_from(units).ok()?, places))
}

/// A penalty.
fn ridge(at: &Spanned<String>) -> Result<(u64, u32), Fault> {
    let number = decimal(at.get_ref());
    let fits = number.filter(|(_, places)| *places <= RIDGE_PLACES);
    let reason =
        || format!("write a number from 0 on with up to {RIDGE_PLACES} places, such as \"0.5\"");
    fits.ok_or_else(|| word("ridge", at, reason()))
}

/// A number without rounding: units and decimal places.
fn exact(
    field: &'static str,
    span: std::ops::Range<usize>,
    number: &RawNumber,
) -> Result<(i128, u32), Fault> {
    let (text, found) = match number {
        RawNumber::Integer(value) => (value.to_string(), Some((i128::from(*value), 0))),
        RawNumber::Text(text) => (text.clone(), shortest(text)),
        RawNumber::Float(value) => (value.to_string(), None),
        RawNumber::Date => ("a date".into(), None),
    };
    let problem = || JobProblem::Word {
        field,
        value: text,
        reason: "write an integer, or a decimal in quotes such as \"12.50\"".into(),
    };
    found.ok_or_else(|| Fault::new(span, problem()))
}

/// What columns are compared with in a tree.
fn cuts(
    raw: &BTreeMap<Spanned<String>, Spanned<RawCuts>>,
) -> Result<BTreeMap<String, Cuts>, Fault> {
    let few = |count: usize| (1..=MOST_CUTS).contains(&count);
    let of = |(name, at): (&Spanned<String>, &Spanned<RawCuts>)| {
        let wrong = |value: String| {
            let problem = JobProblem::Number {
                field: "cuts",
                value,
                reason: format!("a column has 1 to {MOST_CUTS} of them"),
            };
            Fault::new(at.span(), problem)
        };
        let cuts = match at.get_ref() {
            RawCuts::Even(count) => {
                let even = u32::try_from(*count).ok();
                let even = even.filter(|count| few(*count as usize));
                Cuts::Even(even.ok_or_else(|| wrong(count.to_string()))?)
            }
            RawCuts::At(numbers) if !few(numbers.len()) => {
                return Err(wrong(format!("a list of {}", numbers.len())));
            }
            RawCuts::At(numbers) => {
                let numbers = numbers.iter().map(|of| exact("cuts", at.span(), of));
                Cuts::At(numbers.collect::<Result<_, _>>()?)
            }
        };
        Ok((name.get_ref().clone(), cuts))
    };
    raw.iter().map(of).collect()
}

/// The first centres of clusters.
fn start(raw: &[Spanned<Vec<Spanned<RawNumber>>>]) -> Result<Vec<Vec<(i128, u32)>>, Fault> {
    let number = |at: &Spanned<RawNumber>| exact("start", at.span(), at.get_ref());
    let centres = raw
        .iter()
        .map(|centre| centre.get_ref().iter().map(number).collect());
    centres.collect()
}

/// The model of a query.
pub(super) fn model(at: &Spanned<RawFit>) -> Result<Model, Fault> {
    let raw = at.get_ref();
    let no_use = |span, field| {
        let what = format!("a model `{}`", raw.family.get_ref());
        Err(Fault::new(span, JobProblem::NoUse { what, field }))
    };
    let lacks = |field| {
        let what = format!("a model `{}`", raw.family.get_ref());
        Fault::new(at.span(), JobProblem::NoField { what, field })
    };
    let family = raw.family.get_ref().as_str();
    if let (Some(components), true) = (&raw.components, family != COMPONENTS) {
        return no_use(components.span(), "components");
    }
    let first = raw.start.as_ref().and_then(|start| start.first());
    if let (Some(first), true) = (first, family != CLUSTERS) {
        return no_use(first.span(), "start");
    }
    if [TREE, CLUSTERS, COMPONENTS].contains(&family) {
        if let Some(method) = &raw.method {
            return no_use(method.span(), "method");
        }
        gradient::unused(raw, &format!("a model `{family}`"))?;
    }
    let mut epochs = None;
    if family == TREE {
        if let Some(ridge) = &raw.ridge {
            return no_use(ridge.span(), "ridge");
        }
        if let Some(steps) = &raw.steps {
            return no_use(steps.span(), "steps");
        }
    } else {
        if let Some(depth) = &raw.depth {
            return no_use(depth.span(), "depth");
        }
        if let Some(cuts) = &raw.cuts {
            return no_use(cuts.span(), "cuts");
        }
    }
    let kind = if family == TREE {
        let target = raw.target.as_ref().ok_or_else(|| lacks("target"))?;
        let said = raw.cuts.as_ref().map(|said| cuts(said.get_ref()));
        ModelKind::Tree {
            target: target.get_ref().clone(),
            cuts: said.transpose()?.unwrap_or_default(),
        }
    } else if family == CLUSTERS || family == COMPONENTS {
        if let Some(target) = &raw.target {
            return no_use(target.span(), "target");
        }
        if let Some(ridge) = &raw.ridge {
            return no_use(ridge.span(), "ridge");
        }
        if family == CLUSTERS {
            let centres = raw.start.as_ref().ok_or_else(|| lacks("start"))?;
            ModelKind::Clusters {
                start: start(centres)?,
            }
        } else {
            let count = raw.components.as_ref().ok_or_else(|| lacks("components"))?;
            ModelKind::Components {
                count: *count.get_ref(),
            }
        }
    } else {
        let family = Family::named(family).ok_or_else(|| {
            let names = Family::ALL
                .map(Family::name)
                .into_iter()
                .chain([CLUSTERS, COMPONENTS, TREE]);
            let names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
            let reason = format!("write one of {}", names.join(", "));
            word("family", &raw.family, reason)
        })?;
        let target = raw.target.as_ref().ok_or_else(|| lacks("target"))?;
        let stepping = gradient::stepping(at)?;
        epochs = stepping.as_ref().map(|(_, epochs)| *epochs);
        ModelKind::Regression {
            family,
            target: target.get_ref().clone(),
            ridge: raw.ridge.as_ref().map_or(Ok((0, 1)), ridge)?,
            stepping: stepping.map(|(of, _)| of),
        }
    };
    let iterations = match (&raw.depth, &raw.steps) {
        _ if epochs.is_some() => epochs.unwrap_or(0),
        (Some(depth), _) => {
            let reason = || format!("a tree has 1 to {MOST_DEPTH} levels of splits");
            let some = Some(*depth.get_ref()).filter(|depth| (1..=MOST_DEPTH).contains(depth));
            some.ok_or_else(|| number("depth", depth, reason()))?
        }
        (None, Some(steps)) => {
            let most = veil_relation::MOST_ITERATIONS;
            let reason = || format!("a model is fitted in 1 to {most} steps");
            let some = Some(*steps.get_ref()).filter(|steps| (1..=most).contains(steps));
            some.ok_or_else(|| number("steps", steps, reason()))?
        }
        (None, None) => match kind {
            ModelKind::Tree { .. } => LEVELS,
            ModelKind::Regression {
                family: Family::Linear,
                ..
            } => LINEAR_STEPS,
            ModelKind::Regression { .. } => STEPS,
            ModelKind::Clusters { .. } | ModelKind::Components { .. } => CLUSTER_STEPS,
        },
    };
    let places = match &raw.places {
        Some(places) => {
            let some = Some(*places.get_ref()).filter(|places| (1..=18).contains(places));
            let reason = || {
                "coefficients and centres have 1 to 18 places, and so have shares and means"
                    .to_owned()
            };
            some.ok_or_else(|| number("places", places, reason()))?
        }
        None => PLACES,
    };
    Ok(Model {
        kind,
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
            self.each_model(&step.plan, &mut |model, fitting, capacity| {
                said.push(sentence(self.title(&step.name), (model, fitting), capacity));
            });
        }
        said
    }

    fn each_model(&self, plan: &Plan, seen: &mut dyn FnMut(&Fit, &Fitting, u64)) {
        if let Plan::Fit { input, model } = plan
            && let Ok(shape) = self.program().shape(input)
            && let Ok(of) = model.fitting(&shape.types(), shape.capacity)
        {
            seen(model, &of, shape.capacity);
        }
        for input in plan.inputs() {
            self.each_model(input, seen);
        }
    }
}

/// A decimal, as people write it.
fn literal((units, places): (u64, u32)) -> Expr {
    Expr::Literal(veil_relation::Literal::Decimal {
        units: units.into(),
        places,
    })
}

fn sentence(title: &str, (model, of): (&Fit, &Fitting), capacity: u64) -> String {
    let names = model.features.iter().map(|feature| feature.name.as_str());
    let names: Vec<&str> = names.collect();
    let names = names.join(", ");
    let (kind, steps, least) = (model.kind.name(), model.iterations, model.min_rows);
    let penalised = |ridge: (u64, u32)| match ridge {
        (0, _) => String::new(),
        ridge => format!(", penalised by {}", literal(ridge)),
    };
    let mut text = match (&model.kind, of) {
        (
            FitKind::Regression {
                ridge,
                stepping: Some(by),
                ..
            },
            Fitting::Descent(of),
        ) => {
            let batches = match of.batches().count() {
                1 => "of all rows".to_owned(),
                count => format!(
                    "of {count} batches of up to {} rows, in a secret order of rows; those of the last batches weigh most",
                    of.largest()
                ),
            };
            let momentum = match by.momentum {
                (0, _) => String::new(),
                momentum => format!(" with momentum {}", literal(momentum)),
            };
            let epochs = if steps == 1 { "epoch" } else { "epochs" };
            format!(
                "{title}: a {kind} regression on {names}{}, by gradient descent at rate {}{momentum} in {steps} {epochs} {batches}; coefficients over half their range are within {} of 0; of at \
                 least {least} and at most {capacity} rows; features have {} binary places over half their range",
                penalised(*ridge),
                literal(by.rate),
                by.limit,
                of.design().places()
            )
        }
        (FitKind::Regression { ridge, .. }, Fitting::Regression(of)) => {
            let penalised = penalised(*ridge);
            format!(
                "{title}: a {kind} regression on {names}{penalised}, in {steps} steps, of at least {least} and at most {capacity} rows; features have {} binary places \
                 over half their range",
                of.design().places()
            )
        }
        (FitKind::Components { count }, _) => format!(
            "{title}: {count} principal components of {names}, standardised, by the power 2^{steps} of their correlations, of at least {least} and at most {capacity} rows"
        ),
        (FitKind::Clusters { start }, _) => format!(
            "{title}: {} clusters by {kind} of {names}, in {steps} steps from public centres, of at most {capacity} rows; clusters of fewer than {least} rows are left out",
            start.len()
        ),
        (FitKind::Tree { .. }, Fitting::Tree(of)) => {
            let tree = of.tree();
            let target = match tree.target_places() {
                Some((places, false)) => {
                    format!("; the target has {places} binary places over half its range")
                }
                _ => String::new(),
            };
            format!(
                "{title}: a decision tree on {names}, of up to {steps} levels of splits by {} public candidates, of at most {capacity} rows{target}; each node shows how many rows it has, and \
                 none has fewer than {least}",
                tree.candidates().len()
            )
        }
        _ => String::new(),
    };
    text += ". A model is a function of all rows: it may show single ones where they are few or unusual";
    text
}
