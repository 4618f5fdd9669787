//! Rules that rewrite programs. Each gives a program with the same results; [`crate::compile`] applies them in this order.

mod domains;
mod fold;
mod inline;
mod prune;
mod push;

pub use domains::domains;
pub use fold::fold;
pub use inline::inline;
pub use prune::prune;
pub use push::push;

use veil_relation::{Plan, PlanError, Program, Shape, Shapes};

/// Rewrites the plan of each step in turn, below its opening; earlier steps are already rewritten.
fn each_step(
    program: &mut Program,
    by: &mut dyn FnMut(Plan, Shapes<'_>) -> Result<Plan, PlanError>,
) -> Result<(), PlanError> {
    let mut shapes: Vec<Shape> = Vec::new();
    for at in 0..program.steps.len() {
        let plan = program.steps[at].plan.clone();
        let (plan, to) = match plan {
            Plan::Open { input, to } => (*input, Some(to)),
            plan => (plan, None),
        };
        let plan = by(plan, Shapes::over(program, &shapes))?;
        let shape = Shapes::over(program, &shapes).of(&plan)?;
        shapes.push(shape);
        program.steps[at].plan = match to {
            Some(to) => Plan::Open {
                input: Box::new(plan),
                to,
            },
            None => plan,
        };
    }
    Ok(())
}
