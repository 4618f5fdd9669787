//! Public expressions are computed, and conditions simplified.

use veil_relation::{
    Comparison, Expr, Kind, Literal, Named, Plan, PlanError, Program, Shapes, Type, Value, clear,
};

use super::each_step;

/// Folds expressions without columns to literals, exactly, and simplifies three-valued logic; a projection of a projection becomes one.
///
/// Right, since each rewriting of an expression keeps its value for all values of columns, null among them, and its kind but for ranges.
///
/// # Errors
/// [`PlanError`], if the program is none.
pub fn fold(program: &mut Program) -> Result<(), PlanError> {
    each_step(program, &mut plan)
}

fn plan(mut of: Plan, shapes: Shapes<'_>) -> Result<Plan, PlanError> {
    for input in of.inputs_mut() {
        let owned = std::mem::replace(input, Plan::UnionAll { inputs: Vec::new() });
        *input = plan(owned, shapes)?;
    }
    let mut types = Vec::new();
    for input in of.inputs() {
        types.push(shapes.of(input)?.types());
    }
    let only = types.first().cloned().unwrap_or_default();
    Ok(match of {
        Plan::Filter { input, predicate } => match expr(predicate, &only) {
            Expr::Literal(Literal::Bool(true)) => *input,
            predicate => Plan::Filter { input, predicate },
        },
        Plan::Project { input, mut columns } => {
            for column in &mut columns {
                fold_in(&mut column.expr, &only);
            }
            merged(*input, columns)
        }
        Plan::Join {
            kind,
            left,
            right,
            mut on,
            condition,
            matches,
        } => {
            for (one, other) in &mut on {
                fold_in(one, &types[0]);
                fold_in(other, &types[1]);
            }
            let both = types.concat();
            let condition = condition.map(|condition| expr(condition, &both));
            let condition = condition.filter(|condition| *condition != Expr::bool(true));
            Plan::Join {
                kind,
                left,
                right,
                on,
                condition,
                matches,
            }
        }
        Plan::GroupBy {
            input,
            mut keys,
            mut aggregates,
            domain: _,
            min_rows,
        } => {
            for key in &mut keys {
                fold_in(&mut key.expr, &only);
            }
            for aggregate in &mut aggregates {
                let function = aggregate.function.clone();
                let folded = function.try_map::<PlanError>(&mut |of| Ok(expr(of, &only)))?;
                aggregate.function = folded;
                let filter = aggregate.filter.take().map(|filter| expr(filter, &only));
                aggregate.filter = filter.filter(|filter| *filter != Expr::bool(true));
            }
            // Domains depend on what is folded; they are marked afterwards.
            let domain = veil_relation::Domain::Secret;
            Plan::GroupBy {
                input,
                keys,
                aggregates,
                domain,
                min_rows,
            }
        }
        mut other => {
            if let Plan::Sort { keys, .. }
            | Plan::TopK { keys, .. }
            | Plan::Window { order: keys, .. } = &mut other
            {
                for key in keys {
                    fold_in(&mut key.expr, &only);
                }
            }
            if let Plan::Fit { model, .. } = &mut other {
                for expr in model.exprs_mut() {
                    fold_in(expr, &only);
                }
            }
            if let Plan::Apply { model, .. } = &mut other {
                for feature in &mut model.features {
                    fold_in(feature, &only);
                }
            }
            if let Plan::Window { partition, .. } = &mut other {
                for key in partition {
                    fold_in(key, &only);
                }
            }
            other
        }
    })
}

/// A projection of a projection is one, unless expressions would be computed twice.
fn merged(input: Plan, columns: Vec<Named>) -> Plan {
    let copies = |columns: &[Named]| {
        columns
            .iter()
            .all(|column| matches!(column.expr, Expr::Column(..)))
    };
    match input {
        Plan::Project {
            input,
            columns: below,
        } if copies(&columns) || copies(&below) => {
            let place = |column: Named| Named {
                name: column.name,
                expr: column.expr.substitute(&|id| below[id.index()].expr.clone()),
            };
            let columns = columns.into_iter().map(place).collect();
            Plan::Project { input, columns }
        }
        other => Plan::Project {
            input: Box::new(other),
            columns,
        },
    }
}

fn fold_in(of: &mut Expr, types: &[Type]) {
    let owned = std::mem::replace(of, Expr::bool(true));
    *of = expr(owned, types);
}

/// The expression folded; one of another kind, or of none, is left as it was.
pub(crate) fn expr(of: Expr, types: &[Type]) -> Expr {
    let before = of.clone();
    let folded = rewritten(of, types);
    let kinds = (before.ty(types), folded.ty(types));
    match kinds {
        (Ok(one), Ok(other)) if same_kind(&one.kind, &other.kind) => folded,
        _ => before,
    }
}

fn same_kind(one: &Kind, other: &Kind) -> bool {
    let ratios = matches!((one, other), (Kind::Ratio { .. }, Kind::Ratio { .. }));
    ratios || one.hull(other).is_some()
}

fn rewritten(of: Expr, types: &[Type]) -> Expr {
    let mapped =
        of.try_map::<std::convert::Infallible>(&mut |operand| Ok(rewritten(operand, types)));
    let Ok(of) = mapped;
    if !matches!(of, Expr::Literal(_) | Expr::Column(..))
        && let Ok(ty) = of.ty(&[])
        && let Ok(value) = clear::constant(&of)
        && let Some(literal) = Literal::of(value, &ty.kind)
    {
        return Expr::Literal(literal);
    }
    match of {
        Expr::And(parts) => joined(parts, true),
        Expr::Or(parts) => joined(parts, false),
        Expr::Not(inner) => match *inner {
            Expr::Not(inner) => *inner,
            Expr::Compare(sign, a, b) => Expr::Compare(sign.opposite(), a, b),
            Expr::Lookup {
                of,
                first,
                kind: Kind::Bool,
                table,
            } => {
                let not = |value| match value {
                    Value::Bool(value) => Value::Bool(!value),
                    other => other,
                };
                let table = table.into_iter().map(not).collect();
                Expr::Lookup {
                    of,
                    first,
                    kind: Kind::Bool,
                    table,
                }
            }
            other => Expr::Not(Box::new(other)),
        },
        Expr::Lookup {
            of,
            first,
            kind,
            table,
        } => match *of {
            // What the inner one gives is within the outer one's table.
            Expr::Lookup {
                of,
                first: inner_first,
                kind: _,
                table: inner,
            } => {
                let outer = |value: Value| {
                    value
                        .number()
                        .map_or(Value::Null, |number| table[(number - first) as usize])
                };
                let table = inner.into_iter().map(outer).collect();
                Expr::Lookup {
                    of,
                    first: inner_first,
                    kind,
                    table,
                }
            }
            of => Expr::Lookup {
                of: Box::new(of),
                first,
                kind,
                table,
            },
        },
        Expr::IsNull(inner) => match inner.ty(types) {
            Ok(ty) if !ty.nullable => Expr::bool(false),
            _ => Expr::IsNull(inner),
        },
        Expr::Coalesce(parts) => coalesced(parts, types),
        Expr::Case {
            branches,
            otherwise,
        } => {
            let mut kept = Vec::new();
            let mut last = otherwise;
            for (when, then) in branches {
                match when {
                    Expr::Literal(Literal::Bool(false) | Literal::Null(_)) => {}
                    Expr::Literal(Literal::Bool(true)) => {
                        *last = then;
                        break;
                    }
                    when => kept.push((when, then)),
                }
            }
            if kept.is_empty() {
                *last
            } else {
                Expr::Case {
                    branches: kept,
                    otherwise: last,
                }
            }
        }
        Expr::Compare(sign, a, b)
            if matches!(*a, Expr::Literal(_)) && !matches!(*b, Expr::Literal(_)) =>
        {
            Expr::Compare(sign.mirrored(), b, a)
        }
        // A text is in the list or not: a public table.
        Expr::Compare(sign @ (Comparison::Eq | Comparison::Ne), a, b) => match (*a, *b) {
            (a, Expr::Literal(Literal::Category { index, values })) => {
                let table = (0..values.texts().len())
                    .map(|at| Value::Bool((at == usize::from(index)) == (sign == Comparison::Eq)));
                let table = table.collect();
                Expr::Lookup {
                    of: Box::new(a),
                    first: 0,
                    kind: Kind::Bool,
                    table,
                }
            }
            (a, b) => Expr::compare(sign, a, b),
        },
        other => other,
    }
}

/// A conjunction (`all`) or disjunction of conditions that are rewritten.
fn joined(parts: Vec<Expr>, all: bool) -> Expr {
    let mut flat: Vec<Expr> = Vec::new();
    for part in parts {
        match part {
            Expr::And(inner) if all => flat.extend(inner),
            Expr::Or(inner) if !all => flat.extend(inner),
            Expr::Literal(Literal::Bool(value)) if value == all => {}
            Expr::Literal(Literal::Bool(value)) => return Expr::bool(value),
            other => flat.push(other),
        }
    }
    let mut distinct: Vec<Expr> = Vec::new();
    for part in flat {
        if !distinct.contains(&part) {
            distinct.push(part);
        }
    }
    match (distinct.len(), all) {
        (1, _) => distinct.remove(0),
        (_, true) => Expr::And(distinct),
        (_, false) => Expr::Or(distinct),
    }
}

fn coalesced(parts: Vec<Expr>, types: &[Type]) -> Expr {
    let mut kept = Vec::new();
    for part in parts {
        if matches!(part, Expr::Literal(Literal::Null(_))) && !kept.is_empty() {
            continue;
        }
        let last = part.ty(types).is_ok_and(|ty| !ty.nullable);
        kept.push(part);
        if last {
            break;
        }
    }
    if kept.len() == 1 {
        kept.remove(0)
    } else {
        Expr::Coalesce(kept)
    }
}
