//! Conditions go down to the tables whose columns they have, and so do semi and anti joins.

use veil_relation::{ColumnId, Expr, JoinKind, Named, Plan, PlanError, Program, Shapes};

use super::each_step;

/// Pushes filters below projections, unions, joins, groupings by keys, distinct, sorts and networks; semi and anti joins below joins.
///
/// Right, since a condition on columns that an operator hands on row by row chooses the same rows before it as after. It is never pushed to
/// the right side of a left join, whose nulls it would not see, nor below what counts rows: first rows, bounds, windows over other rows.
///
/// # Errors
/// [`PlanError`], if the program is none.
pub fn push(program: &mut Program) -> Result<(), PlanError> {
    each_step(program, &mut |plan, shapes| down(plan, Vec::new(), shapes))
}

fn width(plan: &Plan, shapes: Shapes<'_>) -> Result<u32, PlanError> {
    Ok(shapes.of(plan)?.fields.len() as u32)
}

/// The plan with conditions on its rows.
fn filtered(input: Plan, conditions: Vec<Expr>) -> Plan {
    if conditions.is_empty() {
        return input;
    }
    Plan::Filter {
        input: Box::new(input),
        predicate: Expr::all(conditions),
    }
}

fn all_columns(of: &Expr, fit: impl Fn(ColumnId) -> bool) -> bool {
    let mut fitting = true;
    of.columns(&mut |id| fitting &= fit(id));
    fitting
}

fn moved(of: Expr, left: u32) -> Expr {
    of.substitute(&|id| Expr::column(id.0 - left))
}

fn substituted(of: Expr, columns: &[Named]) -> Expr {
    of.substitute(&|id| columns[id.index()].expr.clone())
}

fn down(plan: Plan, mut conditions: Vec<Expr>, shapes: Shapes<'_>) -> Result<Plan, PlanError> {
    Ok(match plan {
        Plan::Filter { input, predicate } => {
            predicate.conjuncts(&mut conditions);
            down(*input, conditions, shapes)?
        }
        Plan::Project { input, columns } => {
            let below = conditions
                .into_iter()
                .map(|of| substituted(of, &columns))
                .collect();
            let input = Box::new(down(*input, below, shapes)?);
            Plan::Project { input, columns }
        }
        Plan::UnionAll { inputs } => {
            let inputs = inputs
                .into_iter()
                .map(|input| down(input, conditions.clone(), shapes));
            Plan::UnionAll {
                inputs: inputs.collect::<Result<_, _>>()?,
            }
        }
        Plan::Join {
            kind,
            left,
            right,
            on,
            condition,
            matches,
        } => {
            let lefts = width(&left, shapes)?;
            let (mut of_left, mut of_right, mut above) = (Vec::new(), Vec::new(), Vec::new());
            for of in conditions {
                if all_columns(&of, |id| id.0 < lefts) {
                    of_left.push(of);
                } else if kind == JoinKind::Inner && all_columns(&of, |id| id.0 >= lefts) {
                    of_right.push(moved(of, lefts));
                } else {
                    above.push(of);
                }
            }
            let left = down(*left, of_left, shapes)?;
            let right = down(*right, of_right, shapes)?;
            let join = Plan::Join {
                kind,
                left: Box::new(left),
                right: Box::new(right),
                on,
                condition,
                matches,
            };
            filtered(sunk(join, shapes)?, above)
        }
        Plan::GroupBy {
            input,
            keys,
            aggregates,
            domain,
            min_rows,
        } => {
            let of_keys =
                |of: &Expr| !keys.is_empty() && all_columns(of, |id| id.index() < keys.len());
            let (below, above): (Vec<_>, Vec<_>) = conditions.into_iter().partition(of_keys);
            let below = below.into_iter().map(|of| substituted(of, &keys)).collect();
            let input = Box::new(down(*input, below, shapes)?);
            let group = Plan::GroupBy {
                input,
                keys,
                aggregates,
                domain,
                min_rows,
            };
            filtered(group, above)
        }
        Plan::Distinct { input } => Plan::Distinct {
            input: Box::new(down(*input, conditions, shapes)?),
        },
        Plan::Sort { input, keys } => Plan::Sort {
            input: Box::new(down(*input, conditions, shapes)?),
            keys,
        },
        Plan::Window {
            input,
            partition,
            order,
            functions,
        } => {
            // Whole partitions are chosen or left out.
            let of_partition =
                |of: &Expr| all_columns(of, |id| partition.contains(&Expr::column(id.0)));
            let (below, above): (Vec<_>, Vec<_>) = conditions.into_iter().partition(of_partition);
            let input = Box::new(down(*input, below, shapes)?);
            let window = Plan::Window {
                input,
                partition,
                order,
                functions,
            };
            filtered(window, above)
        }
        Plan::Apply {
            input,
            model,
            weights,
        } => {
            let rows = width(&input, shapes)?;
            let of_rows = |of: &Expr| all_columns(of, |id| id.0 < rows);
            let (below, above): (Vec<_>, Vec<_>) = conditions.into_iter().partition(of_rows);
            let input = Box::new(down(*input, below, shapes)?);
            let applied = Plan::Apply {
                input,
                model,
                weights,
            };
            filtered(applied, above)
        }
        mut other => {
            for input in other.inputs_mut() {
                let owned = std::mem::replace(input, Plan::UnionAll { inputs: Vec::new() });
                *input = down(owned, Vec::new(), shapes)?;
            }
            filtered(other, conditions)
        }
    })
}

/// A semi or anti join whose keys are of one side of the join below it, on that side alone.
fn sunk(plan: Plan, shapes: Shapes<'_>) -> Result<Plan, PlanError> {
    let (kind, left, right, on, matches) = match plan {
        Plan::Join {
            kind: kind @ (JoinKind::Semi | JoinKind::Anti),
            left,
            right,
            on,
            condition: None,
            matches,
        } => (kind, left, right, on, matches),
        other => return Ok(other),
    };
    let semi = |left: Plan, right: Box<Plan>, on: Vec<(Expr, Expr)>| Plan::Join {
        kind,
        left: Box::new(left),
        right,
        on,
        condition: None,
        matches,
    };
    let keys_fit = |fit: &dyn Fn(ColumnId) -> bool| on.iter().all(|(key, _)| all_columns(key, fit));
    match *left {
        Plan::Filter { input, predicate } if matches!(*input, Plan::Join { .. }) => {
            let input = Box::new(sunk(semi(*input, right, on), shapes)?);
            Ok(Plan::Filter { input, predicate })
        }
        Plan::Join {
            kind: below,
            left: first,
            right: second,
            on: keys,
            condition,
            matches: pairs,
        } => {
            let lefts = width(&first, shapes)?;
            let (first, second) = if keys_fit(&|id| id.0 < lefts) {
                (Box::new(sunk(semi(*first, right, on), shapes)?), second)
            } else if below == JoinKind::Inner && keys_fit(&|id| id.0 >= lefts) {
                let on = on
                    .into_iter()
                    .map(|(key, other)| (moved(key, lefts), other))
                    .collect();
                (first, Box::new(sunk(semi(*second, right, on), shapes)?))
            } else {
                let join = Plan::Join {
                    kind: below,
                    left: first,
                    right: second,
                    on: keys,
                    condition,
                    matches: pairs,
                };
                return Ok(semi(join, right, on));
            };
            Ok(Plan::Join {
                kind: below,
                left: first,
                right: second,
                on: keys,
                condition,
                matches: pairs,
            })
        }
        other => Ok(semi(other, right, on)),
    }
}
