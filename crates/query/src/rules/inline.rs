//! A step of a query that one plan reads once stands in its place.

use std::collections::BTreeMap;

use veil_relation::{Plan, Program};

/// Puts common table expressions that are read once where they are read, and removes those that are not read. Queries that the job names stay.
///
/// Right, since the relation of a step is that of its plan.
pub fn inline(program: &mut Program) {
    // Names with a point are those of common table expressions: a query's name has none.
    let is_own = |name: &str| name.contains('.');
    let mut at = program.steps.len();
    while at > 0 {
        at -= 1;
        let name = program.steps[at].name.clone();
        let mut reads = BTreeMap::new();
        for step in &program.steps {
            count(&step.plan, &mut reads);
        }
        match reads.get(&name) {
            _ if !is_own(&name) => {}
            None => {
                program.steps.remove(at);
            }
            Some(1) => {
                let step = program.steps.remove(at);
                for other in &mut program.steps[at..] {
                    replace(&mut other.plan, &name, &step.plan);
                }
            }
            Some(_) => {}
        }
    }
}

fn count(plan: &Plan, reads: &mut BTreeMap<String, usize>) {
    if let Plan::Step { name } = plan {
        *reads.entry(name.clone()).or_default() += 1;
    }
    for input in plan.inputs() {
        count(input, reads);
    }
}

fn replace(plan: &mut Plan, wanted: &str, by: &Plan) {
    match plan {
        Plan::Step { name } if name == wanted => *plan = by.clone(),
        _ => {
            for input in plan.inputs_mut() {
                replace(input, wanted, by);
            }
        }
    }
}
