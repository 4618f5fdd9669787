//! Which functions without exact values a program takes, and how near they are.

use veil_numeric::Function;

use crate::expr::Expr;
use crate::fraction::real;
use crate::kind::Type;
use crate::plan::{Plan, Program};
use crate::plan_error::PlanError;
use crate::shape::Shapes;

/// A function that has no exact values, in a step of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct RealUse {
    /// The step.
    pub step: String,
    /// The function.
    pub function: Function,
    /// Decimal places of its values.
    pub places: u32,
    /// How far a value is from the function at most, in units of its last place, rounding included; rounded up to hundredths.
    pub error: f64,
}

impl Program {
    /// The functions without exact values, each once for a step, a number of places and an error.
    ///
    /// # Errors
    /// [`PlanError`] of a program that is none.
    pub fn reals(&self) -> Result<Vec<RealUse>, PlanError> {
        let shapes = self.check()?;
        let mut all: Vec<RealUse> = Vec::new();
        for step in &self.steps {
            let mut uses = |of: &Expr, types: &[Type]| {
                let Expr::Real(function, argument, places) = of else {
                    return;
                };
                let kind = argument.ty(types).map(|ty| ty.kind);
                let applied = kind
                    .ok()
                    .and_then(|kind| real(*function, argument, &kind, *places));
                let Some(Ok(applied)) = applied else { return };
                let hundredths = (applied.error(false).approximately() * 100.0).ceil();
                let found = RealUse {
                    step: step.name.clone(),
                    function: *function,
                    places: *places,
                    error: hundredths / 100.0,
                };
                if !all.contains(&found) {
                    all.push(found);
                }
            };
            expressions(&step.plan, Shapes::over(self, &shapes), &mut uses)?;
        }
        Ok(all)
    }
}

/// Calls `seen` with each expression of a plan and each operand, and the types of the columns that it is over.
pub(crate) fn expressions(
    plan: &Plan,
    shapes: Shapes<'_>,
    seen: &mut dyn FnMut(&Expr, &[Type]),
) -> Result<(), PlanError> {
    let mut types: Vec<Vec<Type>> = Vec::new();
    for input in plan.inputs() {
        expressions(input, shapes, seen)?;
        types.push(shapes.of(input)?.types());
    }
    let mut of_first: Vec<&Expr> = Vec::new();
    match plan {
        Plan::Filter { predicate, .. } => of_first.push(predicate),
        Plan::Project { columns, .. } => of_first.extend(columns.iter().map(|named| &named.expr)),
        Plan::GroupBy {
            keys, aggregates, ..
        } => {
            of_first.extend(keys.iter().map(|key| &key.expr));
            for aggregate in aggregates {
                of_first.extend(aggregate.function.argument());
                of_first.extend(&aggregate.filter);
            }
        }
        Plan::Sort { keys, .. } | Plan::TopK { keys, .. } => {
            of_first.extend(keys.iter().map(|key| &key.expr));
        }
        Plan::Window {
            partition,
            order,
            functions,
            ..
        } => {
            of_first.extend(partition);
            of_first.extend(order.iter().map(|key| &key.expr));
            of_first.extend(functions.iter().filter_map(|of| of.function.argument()));
        }
        Plan::Join { on, condition, .. } => {
            for (left, right) in on {
                walk(left, &types[0], seen);
                walk(right, &types[1], seen);
            }
            let both = types.concat();
            if let Some(condition) = condition {
                walk(condition, &both, seen);
            }
        }
        Plan::Fit { model, .. } => {
            of_first.extend(model.exprs());
        }
        Plan::Apply { model, .. } => of_first.extend(&model.features),
        Plan::Scan { .. }
        | Plan::Step { .. }
        | Plan::UnionAll { .. }
        | Plan::Distinct { .. }
        | Plan::Trim { .. }
        | Plan::Open { .. } => {}
    }
    for expr in of_first {
        walk(expr, &types[0], seen);
    }
    Ok(())
}

fn walk(of: &Expr, types: &[Type], seen: &mut dyn FnMut(&Expr, &[Type])) {
    seen(of, types);
    for operand in of.operands() {
        walk(operand, types, seen);
    }
}
