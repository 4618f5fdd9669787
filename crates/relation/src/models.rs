//! Which models a program applies.

use crate::expr::Expr;
use crate::forest::Forest;
use crate::kind::Type;
use crate::plan::{Plan, Program};
use crate::plan_error::PlanError;
use crate::reals::expressions;
use crate::shape::Shapes;

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
        Plan::Scan { .. }
        | Plan::Step { .. }
        | Plan::UnionAll { .. }
        | Plan::Distinct { .. }
        | Plan::Trim { .. }
        | Plan::Open { .. } => Vec::new(),
    }
}

fn in_expr<'a>(of: &'a Expr, found: &mut Vec<&'a Forest>) {
    if let Expr::Predict { model, .. } = of
        && !found.contains(&model)
    {
        found.push(model);
    }
    for operand in of.operands() {
        in_expr(operand, found);
    }
}

fn in_plan<'a>(of: &'a Plan, found: &mut Vec<&'a Forest>) {
    for expr in of_operator(of) {
        in_expr(expr, found);
    }
    for input in of.inputs() {
        in_plan(input, found);
    }
}

/// A model that is applied in a step of a program.
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

impl Program {
    /// Where models are applied, each application of a step once.
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
    pub fn models(&self) -> Vec<&Forest> {
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
        let twice = models
            .windows(2)
            .find(|pair| pair[0].name() == pair[1].name());
        match twice {
            Some(pair) => Err(PlanError::TwoNames(pair[0].name().to_owned())),
            None => Ok(()),
        }
    }
}
