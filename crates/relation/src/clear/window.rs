//! Window functions over the partitions of a relation.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::aggregate::{average, present, sum};
use super::cell::Row;
use super::{compare_all, key_values};
use crate::expr::Expr;
use crate::kind::{Type, Value};
use crate::plan::{Frame, SortKey, WindowFunction, Windowed};

/// The rows in their order, each with a further value for each function.
pub(super) fn rows(
    mut rows: Vec<Vec<Value>>,
    types: &[Type],
    partition: &[Expr],
    order: &[SortKey],
    functions: &[Windowed],
) -> Vec<Vec<Value>> {
    let mut partitions: BTreeMap<Vec<Value>, Vec<(Vec<Value>, usize)>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let row = Row::new(row, types);
        let key = partition.iter().map(|key| row.value(key)).collect();
        let place = (key_values(order, &row), at);
        partitions.entry(key).or_default().push(place);
    }
    let mut added = vec![Vec::new(); rows.len()];
    for members in partitions.values_mut() {
        members.sort_by(|(one, _), (other, _)| compare_all(order, one, other));
        let ordered: Vec<Row<'_>> = members
            .iter()
            .map(|(_, at)| Row::new(&rows[*at], types))
            .collect();
        let equal = |a: usize, b: usize| {
            compare_all(order, &members[a].0, &members[b].0) == Ordering::Equal
        };
        for (place, (_, at)) in members.iter().enumerate() {
            let first = (0..=place)
                .find(|&other| equal(other, place))
                .unwrap_or(place);
            let values = functions
                .iter()
                .map(|of| value(&of.function, &ordered, place, first));
            added[*at] = values.collect();
        }
    }
    for (row, values) in rows.iter_mut().zip(added) {
        row.extend(values);
    }
    rows
}

/// The value at a place of an ordered partition; `first` is that of the first row with equal keys.
fn value(function: &WindowFunction, rows: &[Row<'_>], place: usize, first: usize) -> Value {
    let frame = |frame: &Frame| match frame {
        Frame::Whole => rows,
        Frame::Running => &rows[..=place],
        Frame::Moving(before) => &rows[place.saturating_sub(*before as usize)..=place],
    };
    let numbers = |of: &Expr, over: &Frame| {
        let values = present(frame(over), of).into_iter();
        values.filter_map(Value::number).collect::<Vec<_>>()
    };
    let at = |of: &Expr, place: Option<usize>| {
        let row = place.and_then(|place| rows.get(place));
        row.map_or(Value::Null, |row| row.value(of))
    };
    match function {
        WindowFunction::RowNumber => Value::Number(place as i128 + 1),
        WindowFunction::Rank => Value::Number(first as i128 + 1),
        WindowFunction::Lag(of, by) => at(of, place.checked_sub(*by as usize)),
        WindowFunction::Lead(of, by) => at(of, place.checked_add(*by as usize)),
        WindowFunction::CountRows(over) => Value::Number(frame(over).len() as i128),
        WindowFunction::Count(of, over) => Value::Number(present(frame(over), of).len() as i128),
        WindowFunction::Sum(of, over) => sum(&numbers(of, over)),
        WindowFunction::Avg(of, over) => average(&numbers(of, over)),
        WindowFunction::Min(of, over) => present(frame(over), of)
            .into_iter()
            .min()
            .unwrap_or(Value::Null),
        WindowFunction::Max(of, over) => present(frame(over), of)
            .into_iter()
            .max()
            .unwrap_or(Value::Null),
    }
}
