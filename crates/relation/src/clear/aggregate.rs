//! Aggregates of the rows of a group or of a window's frame.

use std::collections::BTreeSet;

use num_bigint::BigUint;

use super::cell::Row;
use crate::expr::Expr;
use crate::kind::Value;
use crate::plan::{Aggregate, AggregateFunction};

/// Why sums here do not overflow.
const FITS: &str = "the type of the aggregate proves that its sums fit";

/// The value of an aggregate over the rows of a group.
pub(super) fn of_group(aggregate: &Aggregate, rows: &[Row<'_>]) -> Value {
    let filter = aggregate.filter.as_ref();
    let chosen = rows
        .iter()
        .filter(|row| filter.is_none_or(|filter| row.is_true(filter)));
    let chosen: Vec<Row<'_>> = chosen.copied().collect();
    let Some(argument) = aggregate.function.argument() else {
        return Value::Number(chosen.len() as i128);
    };
    let values = || present(&chosen, argument);
    let numbers = || {
        values()
            .into_iter()
            .filter_map(Value::number)
            .collect::<Vec<_>>()
    };
    match &aggregate.function {
        AggregateFunction::CountRows | AggregateFunction::Count(_) => {
            Value::Number(values().len() as i128)
        }
        AggregateFunction::CountDistinct(_) => {
            let distinct: BTreeSet<Value> = values().into_iter().collect();
            Value::Number(distinct.len() as i128)
        }
        AggregateFunction::Sum(_) => sum(&numbers()),
        AggregateFunction::Avg(_) => average(&numbers()),
        AggregateFunction::Min(_) | AggregateFunction::BoolAnd(_) => {
            values().into_iter().min().unwrap_or(Value::Null)
        }
        AggregateFunction::Max(_) | AggregateFunction::BoolOr(_) => {
            values().into_iter().max().unwrap_or(Value::Null)
        }
        AggregateFunction::VarSamp(_) => match variance(&numbers()) {
            Some((above, below)) => Value::Ratio(above, below),
            None => Value::Null,
        },
        AggregateFunction::StddevSamp(of, to) => {
            let places = chosen.first().map_or(0, |row| row.cell(of).places);
            let places = chosen
                .iter()
                .map(|row| row.cell(of).places)
                .fold(places, u32::max);
            match variance(&numbers()) {
                Some((above, below)) => root(above, below, 2 * (to - places)),
                None => Value::Null,
            }
        }
        AggregateFunction::PercentileDisc { above, below, .. } => {
            let mut values = values();
            values.sort_unstable();
            let wanted = u64::from(*above) * values.len() as u64;
            let place = wanted.div_ceil(u64::from(*below)).max(1) as usize - 1;
            values.get(place).copied().unwrap_or(Value::Null)
        }
    }
}

/// The values that are not null.
pub(super) fn present(rows: &[Row<'_>], argument: &Expr) -> Vec<Value> {
    let values = rows.iter().map(|row| row.value(argument));
    values.filter(|value| *value != Value::Null).collect()
}

/// The sum; null of none.
pub(super) fn sum(numbers: &[i128]) -> Value {
    if numbers.is_empty() {
        return Value::Null;
    }
    Value::Number(total(numbers.iter().copied()))
}

/// The exact quotient of sum and count; null of none.
pub(super) fn average(numbers: &[i128]) -> Value {
    match sum(numbers) {
        Value::Number(sum) => Value::Ratio(sum, numbers.len() as i128),
        _ => Value::Null,
    }
}

fn total(numbers: impl Iterator<Item = i128>) -> i128 {
    numbers.fold(0_i128, |sum, number| sum.checked_add(number).expect(FITS))
}

/// `n·Σx² − (Σx)²` and `n·(n − 1)`; `None` for fewer than two values.
fn variance(numbers: &[i128]) -> Option<(i128, i128)> {
    let n = numbers.len() as i128;
    if n < 2 {
        return None;
    }
    let sum = total(numbers.iter().copied());
    let squares = total(numbers.iter().map(|x| x.checked_mul(*x).expect(FITS)));
    let above = n.checked_mul(squares).expect(FITS) - sum.checked_mul(sum).expect(FITS);
    Some((above, n * (n - 1)))
}

/// `√(above/below · 10^shift)` to the nearest integer, halves up: with `r = ⌊√(4x)⌋`, the nearest integer to √x is `⌊(r + 1)/2⌋`.
fn root(above: i128, below: i128, shift: u32) -> Value {
    let four = BigUint::from(above.unsigned_abs()) * 4_u32 * BigUint::from(10_u32).pow(shift);
    let twice = (four / below.unsigned_abs()).sqrt();
    let nearest = u128::try_from((twice + 1_u32) / 2_u32).expect(FITS);
    Value::Number(i128::try_from(nearest).expect(FITS))
}
