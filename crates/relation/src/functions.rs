//! Types of aggregates and window functions, and what operators ask of their arguments.

use crate::expr::Expr;
use crate::kind::{Kind, MOST_PLACES, Type};
use crate::plan::{AggregateFunction, Frame, SortKey, WindowFunction};
use crate::plan_error::PlanError;
use crate::range_error::over_rows;
use veil_numeric::{Range, Wide};

pub(crate) fn aggregate_type(
    function: &AggregateFunction,
    maybe_none: bool,
    types: &[Type],
    rows: u64,
) -> Result<Type, PlanError> {
    let name = function.name();
    // A group has a row; what is counted of it may be none if rows are left out or the argument is null.
    let count = |least: i128| {
        let most = i128::from(rows).max(least);
        Type::of(Kind::Integer(
            Range::new(least, most).unwrap_or(Range::point(least)),
        ))
    };
    let of_group = i128::from(!maybe_none);
    let Some(argument_of) = function.argument() else {
        return Ok(count(of_group));
    };
    let ty = typed(name, argument_of, types)?;
    let wrong = || argument(name, &ty.kind);
    let nullable = ty.nullable || maybe_none;
    if matches!(ty.kind, Kind::Ratio { .. }) {
        return Err(wrong());
    }
    // What is wrong with a variance, or a deviation with so many places more.
    let wide = |units: Range, more: u32| {
        let fits = |kind: &Kind, rows| {
            let number = kind.number();
            number.is_some_and(|(places, units)| {
                variance(places, units, rows).is_some() && deviation(units, more).is_some()
            })
        };
        let squares = Wide::from(units).magnitude();
        let needed = squares.times(&squares).sum(rows).sum(rows).bits();
        let argument = (&ty, argument_of.written());
        PlanError::Range(over_rows((name, needed), argument, rows, &fits))
    };
    let kind = match function {
        AggregateFunction::CountRows
        | AggregateFunction::Count(_)
        | AggregateFunction::CountDistinct(_) => {
            return Ok(count(if ty.nullable { 0 } else { of_group }));
        }
        AggregateFunction::Sum(_) | AggregateFunction::Avg(_) => {
            let (places, units) = ty.kind.number().ok_or_else(wrong)?;
            let sum = units.sum(rows).ok_or_else(|| {
                let needed = Wide::from(units).sum(rows).bits();
                let fits = |kind: &Kind, rows| {
                    let number = kind.number();
                    number.is_some_and(|(_, units)| units.sum(rows).is_some())
                };
                let argument = (&ty, argument_of.written());
                PlanError::Range(over_rows((name, needed), argument, rows, &fits))
            })?;
            match (function, &ty.kind) {
                (AggregateFunction::Avg(_), _) => average(places, sum, rows),
                (_, Kind::Integer(_)) => Kind::Integer(sum),
                _ => Kind::Decimal { places, units: sum },
            }
        }
        AggregateFunction::Min(_)
        | AggregateFunction::Max(_)
        | AggregateFunction::PercentileDisc { .. } => {
            if matches!(ty.kind, Kind::Key { .. } | Kind::Bool) {
                return Err(wrong());
            }
            if let AggregateFunction::PercentileDisc { above, below, .. } = function
                && (*below == 0 || above > below)
            {
                return Err(form("percentile", "a fraction between 0 and 1"));
            }
            ty.kind.clone()
        }
        AggregateFunction::BoolOr(_) | AggregateFunction::BoolAnd(_) => match ty.kind {
            Kind::Bool => Kind::Bool,
            _ => return Err(wrong()),
        },
        AggregateFunction::VarSamp(_) => {
            let (places, units) = ty.kind.number().ok_or_else(wrong)?;
            variance(places, units, rows).ok_or_else(|| wide(units, 0))?
        }
        AggregateFunction::StddevSamp(_, to) => {
            let (places, units) = ty.kind.number().ok_or_else(wrong)?;
            variance(places, units, rows).ok_or_else(|| wide(units, 0))?;
            if *to < places || *to > MOST_PLACES {
                return Err(form(
                    "stddev_samp",
                    "as many decimal places as its argument, and at most 30",
                ));
            }
            Kind::Decimal {
                places: *to,
                units: deviation(units, *to - places).ok_or_else(|| wide(units, *to - places))?,
            }
        }
    };
    let alone = matches!(
        function,
        AggregateFunction::VarSamp(_) | AggregateFunction::StddevSamp(..)
    );
    Ok(Type::of(kind).or_null(nullable || alone))
}

/// Less than the distance of the ends, with so many places more: var ≤ distance²/2 for two values and more.
fn deviation(units: Range, more: u32) -> Option<Range> {
    let distance = units.max().checked_sub(units.min())?;
    Range::new(0, distance)?.shifted(more)
}

fn average(places: u32, sum: Range, rows: u64) -> Kind {
    Kind::Ratio {
        places,
        above: sum,
        below: Range::new(1, i128::from(rows.max(1))).unwrap_or(Range::point(1)),
    }
}

/// `n·Σx² − (Σx)²` is at most `n²·(max − min)²/4`; it must fit, and so must its two terms.
fn variance(places: u32, units: Range, rows: u64) -> Option<Kind> {
    let squares = Range::new(0, units.magnitude()?)?;
    squares.times(squares)?.sum(rows)?.sum(rows)?;
    let distance = Range::new(0, units.max().checked_sub(units.min())?)?;
    let above = distance.times(distance)?.sum(rows)?.sum(rows)?;
    let pairs = i128::from(rows) * (i128::from(rows) - 1);
    Some(Kind::Ratio {
        places: 2 * places,
        above,
        below: Range::new(1, pairs.max(1))?,
    })
}

pub(crate) fn window_type(
    function: &WindowFunction,
    ordered: bool,
    types: &[Type],
    rows: u64,
) -> Result<Type, PlanError> {
    let name = function.name();
    let moving = |frame: &Frame| matches!(frame, Frame::Moving(_));
    let frame = match function {
        WindowFunction::RowNumber
        | WindowFunction::Rank
        | WindowFunction::Lag(..)
        | WindowFunction::Lead(..) => None,
        WindowFunction::CountRows(frame)
        | WindowFunction::Count(_, frame)
        | WindowFunction::Sum(_, frame)
        | WindowFunction::Avg(_, frame)
        | WindowFunction::Min(_, frame)
        | WindowFunction::Max(_, frame) => Some(frame),
    };
    if !ordered && frame != Some(&Frame::Whole) {
        return Err(form(
            "window",
            "a window without an order is over whole partitions",
        ));
    }
    let place = |low| {
        Type::of(Kind::Integer(
            Range::new(low, i128::from(rows).max(low)).unwrap_or(Range::point(low)),
        ))
    };
    let Some(argument_of) = function.argument() else {
        return Ok(place(1));
    };
    let ty = typed(name, argument_of, types)?;
    if matches!(ty.kind, Kind::Ratio { .. }) {
        return Err(argument(name, &ty.kind));
    }
    let as_aggregate = match function {
        WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::CountRows(_) => {
            return Ok(place(1));
        }
        WindowFunction::Lag(..) | WindowFunction::Lead(..) => return Ok(ty.or_null(true)),
        WindowFunction::Count(..) => return Ok(place(0)),
        WindowFunction::Min(_, frame) | WindowFunction::Max(_, frame) if moving(frame) => {
            return Err(form(
                "window",
                "the smallest and largest value of a moving frame are not offered",
            ));
        }
        WindowFunction::Sum(of, _) => AggregateFunction::Sum(of.clone()),
        WindowFunction::Avg(of, _) => AggregateFunction::Avg(of.clone()),
        WindowFunction::Min(of, _) => AggregateFunction::Min(of.clone()),
        WindowFunction::Max(of, _) => AggregateFunction::Max(of.clone()),
    };
    aggregate_type(&as_aggregate, false, types, rows)
}

pub(crate) fn typed(
    operator: &'static str,
    expr: &Expr,
    types: &[Type],
) -> Result<Type, PlanError> {
    expr.ty(types)
        .map_err(|source| PlanError::Type { operator, source })
}

pub(crate) fn condition(
    operator: &'static str,
    expr: &Expr,
    types: &[Type],
) -> Result<(), PlanError> {
    match typed(operator, expr, types)?.kind {
        Kind::Bool => Ok(()),
        other => Err(argument(operator, &other)),
    }
}

pub(crate) fn sort_keys(
    operator: &'static str,
    keys: &[SortKey],
    types: &[Type],
) -> Result<(), PlanError> {
    for key in keys {
        let ty = typed(operator, &key.expr, types)?;
        if matches!(ty.kind, Kind::Ratio { .. } | Kind::Key { .. }) {
            return Err(argument(operator, &ty.kind));
        }
    }
    Ok(())
}

pub(crate) fn argument(function: &'static str, kind: &Kind) -> PlanError {
    let kind = kind.to_string();
    PlanError::Argument { function, kind }
}

pub(crate) const fn form(operator: &'static str, what: &'static str) -> PlanError {
    PlanError::Form { operator, what }
}
