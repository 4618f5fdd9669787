//! What a shadow run reports, as a table of Arrow.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use pyo3::prelude::*;
use veilworks::{Shadow, ShadowColumn};

use crate::batches::{Batches, wrong};

/// A row for each column.
pub(crate) fn table(shadow: &Shadow) -> PyResult<Batches> {
    let all = || shadow.columns.iter();
    let texts = |of: fn(&ShadowColumn) -> Option<&String>| -> ArrayRef {
        Arc::new(all().map(of).collect::<StringArray>())
    };
    let numbers = |of: fn(&ShadowColumn) -> Option<u64>| -> ArrayRef {
        let number = |one| of(one).and_then(|number| i64::try_from(number).ok());
        Arc::new(all().map(number).collect::<Int64Array>())
    };
    let derived: BooleanArray = all().map(|one| Some(one.derived)).collect();
    let errors: Float64Array = all().map(|one| one.max_error).collect();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("relation", texts(|one| Some(&one.relation)), false),
        ("derived", Arc::new(derived), false),
        ("column", texts(|one| Some(&one.column)), false),
        ("type", texts(|one| Some(&one.r#type)), false),
        ("rows", numbers(|one| Some(one.rows)), false),
        ("nulls", numbers(|one| Some(one.nulls)), false),
        (
            "proved_min",
            texts(|one| one.proved.as_ref().map(|ends| &ends[0])),
            true,
        ),
        (
            "proved_max",
            texts(|one| one.proved.as_ref().map(|ends| &ends[1])),
            true,
        ),
        (
            "observed_min",
            texts(|one| one.observed.as_ref().map(|ends| &ends[0])),
            true,
        ),
        (
            "observed_max",
            texts(|one| one.observed.as_ref().map(|ends| &ends[1])),
            true,
        ),
        ("bits", numbers(|one| one.bits.map(u64::from)), true),
        (
            "used_bits",
            numbers(|one| one.used_bits.map(u64::from)),
            true,
        ),
        (
            "at_min",
            numbers(|one| one.at_ends.map(|ends| ends[0])),
            true,
        ),
        (
            "at_max",
            numbers(|one| one.at_ends.map(|ends| ends[1])),
            true,
        ),
        ("max_error", Arc::new(errors), true),
    ]);
    Batches::of_batch(batch.map_err(wrong)?)
}
