//! Which models a program applies.

use veil_learn::Network;

use crate::apply::Apply;
use crate::expr::Expr;
use crate::forest::Forest;
use crate::kind::Type;
use crate::plan::{Plan, Program};
use crate::plan_error::PlanError;
use crate::reals::expressions;
use crate::schema::is_name;
use crate::shape::{Shape, Shapes};

/// The expressions of an operator itself.
fn of_operator(plan: &Plan) -> Vec<&Expr> {
    match plan {
        Plan::Filter { predicate, .. } => vec![predicate],
        Plan::Project { columns, .. } => columns.iter().map(|named| &named.expr).collect(),
        Plan::GroupBy {
            keys, aggregates, ..
        } => {
            let aggregated = aggregates.iter().flat_map(|of| {
                let argument = of.function.argument();
                argument.into_iter().chain(&of.filter)
            });
            let keys = keys.iter().map(|key| &key.expr);
            keys.chain(aggregated).collect()
        }
        Plan::Sort { keys, .. } | Plan::TopK { keys, .. } => {
            keys.iter().map(|key| &key.expr).collect()
        }
        Plan::Window {
            partition,
            order,
            functions,
            ..
        } => {
            let order = order.iter().map(|key| &key.expr);
            let arguments = functions.iter().filter_map(|of| of.function.argument());
            partition.iter().chain(order).chain(arguments).collect()
        }
        Plan::Join { on, condition, .. } => {
            let on = on.iter().flat_map(|(left, right)| [left, right]);
            on.chain(condition).collect()
        }
        Plan::Fit { model, .. } => model.exprs(),
        Plan::Apply { model, .. } => model.features.iter().collect(),
        Plan::Scan { .. }
        | Plan::Step { .. }
        | Plan::UnionAll { .. }
        | Plan::Distinct { .. }
        | Plan::Trim { .. }
        | Plan::Open { .. } => Vec::new(),
    }
}

/// A model that was trained elsewhere, and that queries apply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trained {
    /// Decision trees.
    Trees(Forest),
    /// Layers over numbers or images.
    Network(Network),
}

impl Trained {
    /// Its name in the job.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Trees(model) => model.name(),
            Self::Network(model) => model.name(),
        }
    }
}

impl From<Forest> for Trained {
    fn from(model: Forest) -> Self {
        Self::Trees(model)
    }
}

impl From<Network> for Trained {
    fn from(model: Network) -> Self {
        Self::Network(model)
    }
}

fn add(model: Trained, found: &mut Vec<Trained>) {
    if !found.contains(&model) {
        found.push(model);
    }
}

fn in_expr(of: &Expr, found: &mut Vec<Trained>) {
    if let Expr::Predict { model, .. } = of {
        add(model.clone().into(), found);
    }
    for operand in of.operands() {
        in_expr(operand, found);
    }
}

fn in_plan(of: &Plan, found: &mut Vec<Trained>) {
    if let Plan::Apply { model, .. } = of {
        add(model.network.clone().into(), found);
    }
    for expr in of_operator(of) {
        in_expr(expr, found);
    }
    for input in of.inputs() {
        in_plan(input, found);
    }
}

/// A model of trees that is applied in a step of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelUse {
    /// The step.
    pub step: String,
    /// The model.
    pub model: Forest,
    /// Its application, [`Expr::Predict`].
    pub expr: Expr,
    /// The types of the columns that it is over.
    pub columns: Vec<Type>,
}

/// A network that is applied in a step of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkUse {
    /// The step.
    pub step: String,
    /// The network, and what it is applied to.
    pub apply: Apply,
    /// The types of the columns that it is over.
    pub columns: Vec<Type>,
    /// The most rows.
    pub rows: u64,
}

fn applied(
    plan: &Plan,
    shapes: Shapes<'_>,
    seen: &mut dyn FnMut(&Apply, &Shape),
) -> Result<(), PlanError> {
    for input in plan.inputs() {
        applied(input, shapes, seen)?;
    }
    if let Plan::Apply { input, model, .. } = plan {
        seen(model, &shapes.of(input)?);
    }
    Ok(())
}

impl Program {
    /// Where networks are applied, in the order of steps.
    ///
    /// # Errors
    /// [`PlanError`] of a program that is none.
    pub fn network_uses(&self) -> Result<Vec<NetworkUse>, PlanError> {
        let shapes = self.check()?;
        let mut all = Vec::new();
        for step in &self.steps {
            let mut uses = |apply: &Apply, input: &Shape| {
                all.push(NetworkUse {
                    step: step.name.clone(),
                    apply: apply.clone(),
                    columns: input.types(),
                    rows: input.capacity,
                });
            };
            applied(&step.plan, Shapes::over(self, &shapes), &mut uses)?;
        }
        Ok(all)
    }

    /// Where models of trees are applied, each application of a step once.
    ///
    /// # Errors
    /// [`PlanError`] of a program that is none.
    pub fn model_uses(&self) -> Result<Vec<ModelUse>, PlanError> {
        let shapes = self.check()?;
        let mut all: Vec<ModelUse> = Vec::new();
        for step in &self.steps {
            let mut uses = |of: &Expr, types: &[Type]| {
                if let Expr::Predict { model, .. } = of
                    && !all
                        .iter()
                        .any(|one| one.step == step.name && one.expr == *of)
                {
                    all.push(ModelUse {
                        step: step.name.clone(),
                        model: model.clone(),
                        expr: of.clone(),
                        columns: types.to_vec(),
                    });
                }
            };
            expressions(&step.plan, Shapes::over(self, &shapes), &mut uses)?;
        }
        Ok(all)
    }

    /// The models that its steps apply, in the order of their names.
    #[must_use]
    pub fn models(&self) -> Vec<Trained> {
        let mut found = Vec::new();
        for step in &self.steps {
            in_plan(&step.plan, &mut found);
        }
        found.sort_by(|a, b| a.name().cmp(b.name()));
        found
    }

    /// Looks whether a name stands for one model.
    pub(crate) fn check_models(&self) -> Result<(), PlanError> {
        let models = self.models();
        let is_none = |model: &&Trained| !is_name(model.name());
        if let Some(model) = models.iter().find(is_none) {
            return Err(PlanError::ModelName(model.name().to_owned()));
        }
        let twice = models
            .windows(2)
            .find(|pair| pair[0].name() == pair[1].name());
        match twice {
            Some(pair) => Err(PlanError::TwoNames(pair[0].name().to_owned())),
            None => Ok(()),
        }
    }
}
