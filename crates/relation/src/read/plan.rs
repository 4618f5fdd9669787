//! Reads operators.

use super::{Result, column_id, expr, head, items, number, quoted, tagged, unexpected, word};
use crate::apply::Apply;
use crate::expr::{Expr, Literal};
use crate::fit::{CLUSTERS, COMPONENTS, Fit, FitKind};
use crate::fit_tree::TREE;
use crate::models::Trained;
use crate::plan::{
    Aggregate, AggregateFunction, Domain, Frame, JoinKind, Matches, Named, Overflow, Plan, SortKey,
    WindowFunction, Windowed,
};
use crate::sexp::Sexp;
use veil_learn::{Family, Network, Stepping};

fn named(item: &Sexp) -> Result<Named> {
    match items(item)? {
        [name, of] => Ok(Named {
            name: quoted(name)?,
            expr: expr(of)?,
        }),
        _ => Err(unexpected(item, "named expression")),
    }
}

fn sort_key(item: &Sexp) -> Result<SortKey> {
    let [direction, nulls, of] = items(item)? else {
        return Err(unexpected(item, "sort key"));
    };
    let one = |item, no, yes| match word(item)? {
        found if found == no => Ok(false),
        found if found == yes => Ok(true),
        _ => Err(unexpected(item, "direction")),
    };
    Ok(SortKey {
        expr: expr(of)?,
        descending: one(direction, "asc", "desc")?,
        nulls_first: one(nulls, "nulls-last", "nulls-first")?,
    })
}

fn aggregate(item: &Sexp) -> Result<Aggregate> {
    let wrong = || unexpected(item, "aggregate");
    let (name, call, filter) = match items(item)? {
        [name, call] => (name, call, None),
        [name, call, filter] => match tagged(filter, "where")? {
            [of] => (name, call, Some(expr(of)?)),
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    let parts = items(call)?.get(1..).ok_or_else(wrong)?;
    let function = match (head(call).ok_or_else(wrong)?, parts) {
        ("count-rows", []) => AggregateFunction::CountRows,
        ("count", [of]) => AggregateFunction::Count(expr(of)?),
        ("count-distinct", [of]) => AggregateFunction::CountDistinct(expr(of)?),
        ("sum", [of]) => AggregateFunction::Sum(expr(of)?),
        ("avg", [of]) => AggregateFunction::Avg(expr(of)?),
        ("min", [of]) => AggregateFunction::Min(expr(of)?),
        ("max", [of]) => AggregateFunction::Max(expr(of)?),
        ("bool_or", [of]) => AggregateFunction::BoolOr(expr(of)?),
        ("bool_and", [of]) => AggregateFunction::BoolAnd(expr(of)?),
        ("var_samp", [of]) => AggregateFunction::VarSamp(expr(of)?),
        ("stddev_samp", [of, places]) => AggregateFunction::StddevSamp(expr(of)?, number(places)?),
        ("percentile_disc", [of, above, below]) => AggregateFunction::PercentileDisc {
            of: expr(of)?,
            above: number(above)?,
            below: number(below)?,
        },
        _ => return Err(wrong()),
    };
    Ok(Aggregate {
        name: quoted(name)?,
        function,
        filter,
    })
}

fn windowed(item: &Sexp) -> Result<Windowed> {
    let wrong = || unexpected(item, "window function");
    let [name, call] = items(item)? else {
        return Err(wrong());
    };
    let frame = |item: &Sexp| match item {
        Sexp::Word(word) if word == "whole" => Ok(Frame::Whole),
        Sexp::Word(word) if word == "running" => Ok(Frame::Running),
        _ => match tagged(item, "moving")? {
            [rows] => Ok(Frame::Moving(number(rows)?)),
            _ => Err(wrong()),
        },
    };
    let parts = items(call)?.get(1..).ok_or_else(wrong)?;
    let function = match (head(call).ok_or_else(wrong)?, parts) {
        ("row_number", []) => WindowFunction::RowNumber,
        ("rank", []) => WindowFunction::Rank,
        ("lag", [of, rows]) => WindowFunction::Lag(expr(of)?, number(rows)?),
        ("lead", [of, rows]) => WindowFunction::Lead(expr(of)?, number(rows)?),
        ("count-rows", [over]) => WindowFunction::CountRows(frame(over)?),
        ("count", [of, over]) => WindowFunction::Count(expr(of)?, frame(over)?),
        ("sum", [of, over]) => WindowFunction::Sum(expr(of)?, frame(over)?),
        ("avg", [of, over]) => WindowFunction::Avg(expr(of)?, frame(over)?),
        ("min", [of, over]) => WindowFunction::Min(expr(of)?, frame(over)?),
        ("max", [of, over]) => WindowFunction::Max(expr(of)?, frame(over)?),
        _ => return Err(wrong()),
    };
    Ok(Windowed {
        name: quoted(name)?,
        function,
    })
}

/// What follows the head of a list, each element read.
pub(crate) fn all<T>(
    item: &Sexp,
    tag: &'static str,
    by: impl Fn(&Sexp) -> Result<T>,
) -> Result<Vec<T>> {
    tagged(item, tag)?.iter().map(by).collect()
}

fn input(item: &Sexp) -> Result<Box<Plan>> {
    plan(item).map(Box::new)
}

/// Reads an operator with its inputs.
pub(super) fn plan(item: &Sexp) -> Result<Plan> {
    let wrong = || unexpected(item, "operator");
    let rest = items(item)?.get(1..).ok_or_else(wrong)?;
    Ok(match (head(item).ok_or_else(wrong)?, rest) {
        ("scan", [table, columns @ ..]) => Plan::Scan {
            table: quoted(table)?,
            columns: columns.iter().map(column_id).collect::<Result<_>>()?,
        },
        ("read", [name]) => Plan::Step {
            name: quoted(name)?,
        },
        ("filter", [predicate, of]) => Plan::Filter {
            input: input(of)?,
            predicate: expr(predicate)?,
        },
        ("project", [columns, of]) => Plan::Project {
            input: input(of)?,
            columns: all(columns, "columns", named)?,
        },
        ("union-all", inputs) => Plan::UnionAll {
            inputs: inputs.iter().map(plan).collect::<Result<_>>()?,
        },
        ("join", [kind, matches, on, rest @ ..]) => join(item, [kind, matches, on], rest)?,
        ("group-by", [domain, least, keys, aggregates, of]) => Plan::GroupBy {
            input: input(of)?,
            keys: all(keys, "keys", named)?,
            aggregates: all(aggregates, "aggregates", aggregate)?,
            domain: match domain {
                Sexp::Word(word) if word == "secret" => Domain::Secret,
                _ => match tagged(domain, "public")? {
                    [groups] => Domain::Public(number(groups)?),
                    _ => return Err(wrong()),
                },
            },
            min_rows: match tagged(least, "min-rows")? {
                [rows] => number(rows)?,
                _ => return Err(wrong()),
            },
        },
        ("distinct", [of]) => Plan::Distinct { input: input(of)? },
        ("sort", [keys, of]) => Plan::Sort {
            input: input(of)?,
            keys: all(keys, "keys", sort_key)?,
        },
        ("top", [rows, keys, of]) => Plan::TopK {
            input: input(of)?,
            keys: all(keys, "keys", sort_key)?,
            rows: number(rows)?,
        },
        ("window", [partition, order, functions, of]) => Plan::Window {
            input: input(of)?,
            partition: all(partition, "partition", expr)?,
            order: all(order, "keys", sort_key)?,
            functions: all(functions, "functions", windowed)?,
        },
        ("trim", [rows, overflow, of]) => Plan::Trim {
            input: input(of)?,
            rows: number(rows)?,
            overflow: match word(overflow)? {
                "refuse" => Overflow::Refuse,
                "flag" => Overflow::Flag,
                "drop" => Overflow::Drop,
                _ => return Err(wrong()),
            },
        },
        ("fit", [parts @ .., of]) => Plan::Fit {
            input: input(of)?,
            model: Box::new(fit(item, parts)?),
        },
        ("apply", [Sexp::Model(Trained::Network(network)), parts @ .., of]) => Plan::Apply {
            input: input(of)?,
            model: Box::new(apply(item, network, parts)?),
            weights: match parts {
                [_, _, _, weights] => match tagged(weights, "weights")? {
                    [of] => Some(input(of)?),
                    _ => return Err(wrong()),
                },
                _ => None,
            },
        },
        ("open", [to, of]) => Plan::Open {
            input: input(of)?,
            to: quoted(to)?,
        },
        _ => return Err(wrong()),
    })
}

fn fit(item: &Sexp, parts: &[Sexp]) -> Result<Fit> {
    let wrong = || unexpected(item, "model");
    let [name, steps, places, least, features, rest @ ..] = parts else {
        return Err(wrong());
    };
    let of = |item: &Sexp, tag: &'static str| match tagged(item, tag)? {
        [of] => Ok(of.clone()),
        _ => Err(wrong()),
    };
    let decimal = |item: &Sexp, tag| match expr(&of(item, tag)?)? {
        Expr::Literal(Literal::Decimal { units, places }) => {
            Ok((u64::try_from(units).map_err(|_| wrong())?, places))
        }
        _ => Err(wrong()),
    };
    let kind = match (word(name)?, rest) {
        (COMPONENTS, [count]) => FitKind::Components {
            count: number(&of(count, "components")?)?,
        },
        (CLUSTERS, start) => FitKind::Clusters {
            start: start
                .iter()
                .map(|centre| all(centre, "start", number))
                .collect::<Result<_>>()?,
        },
        (TREE, [target, cuts @ ..]) => FitKind::Tree {
            target: expr(&of(target, "target")?)?,
            cuts: cuts
                .iter()
                .map(|of| all(of, "cuts", number))
                .collect::<Result<_>>()?,
        },
        (family, [target, ridge, errors, stepping @ ..]) => FitKind::Regression {
            family: Family::named(family).ok_or_else(wrong)?,
            target: expr(&of(target, "target")?)?,
            ridge: decimal(ridge, "ridge")?,
            errors: match word(&of(errors, "errors")?)? {
                "true" => true,
                "false" => false,
                _ => return Err(wrong()),
            },
            stepping: match stepping {
                [] => None,
                [gradient] => match tagged(gradient, "gradient")? {
                    [rate, momentum, limit, batch @ ..] if batch.len() < 2 => Some(Stepping {
                        rate: decimal(rate, "rate")?,
                        momentum: decimal(momentum, "momentum")?,
                        limit: number(&of(limit, "limit")?)?,
                        batch: match batch {
                            [batch] => Some(number(&of(batch, "batch")?)?),
                            _ => None,
                        },
                    }),
                    _ => return Err(wrong()),
                },
                _ => return Err(wrong()),
            },
        },
        _ => return Err(wrong()),
    };
    Ok(Fit {
        kind,
        iterations: number(&of(steps, "steps")?)?,
        places: number(&of(places, "places")?)?,
        min_rows: number(&of(least, "min-rows")?)?,
        features: all(features, "features", named)?,
    })
}

fn apply(item: &Sexp, network: &Network, parts: &[Sexp]) -> Result<Apply> {
    let wrong = || unexpected(item, "network that is applied");
    let ([places, scores, features] | [places, scores, features, _]) = parts else {
        return Err(wrong());
    };
    Ok(Apply {
        network: network.clone(),
        features: all(features, "features", expr)?,
        places: match tagged(places, "places")? {
            [places] => number(places)?,
            _ => return Err(wrong()),
        },
        scores: match tagged(scores, "scores")? {
            [scores] => number(scores)?,
            _ => return Err(wrong()),
        },
    })
}

fn join(item: &Sexp, [kind, matches, on]: [&Sexp; 3], rest: &[Sexp]) -> Result<Plan> {
    let wrong = || unexpected(item, "join");
    let (condition, left, right) = match rest {
        [left, right] => (None, left, right),
        [condition, left, right] => match tagged(condition, "where")? {
            [of] => (Some(expr(of)?), left, right),
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    let kind = match word(kind)? {
        "inner" => JoinKind::Inner,
        "left" => JoinKind::Left,
        "semi" => JoinKind::Semi,
        "anti" => JoinKind::Anti,
        _ => return Err(wrong()),
    };
    let matches = match matches {
        Sexp::Word(word) if word == "unique-right" => Matches::UniqueRight,
        Sexp::Word(word) if word == "unique-left" => Matches::UniqueLeft,
        Sexp::Word(word) if word == "any" => Matches::Any,
        _ => match tagged(matches, "at-most")? {
            [rows] => Matches::AtMost(number(rows)?),
            _ => return Err(wrong()),
        },
    };
    let pair = |item: &Sexp| match items(item)? {
        [a, b] => Ok((expr(a)?, expr(b)?)),
        _ => Err(wrong()),
    };
    Ok(Plan::Join {
        kind,
        left: input(left)?,
        right: input(right)?,
        on: all(on, "on", pair)?,
        condition,
        matches,
    })
}
