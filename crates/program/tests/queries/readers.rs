//! The same table as CSV, Parquet and Arrow; keys of texts, numbers and several columns.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray,
};
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use veil_program::Job;

use super::{JOB, NORTH, case, sources, values};
use crate::common::Case;

/// The columns of `NORTH`, typed.
fn batch() -> RecordBatch {
    let pay = Decimal128Array::from(vec![Some(-950), Some(999_999), None]);
    let columns: [(&str, ArrayRef); 6] = [
        (
            "patient",
            Arc::new(StringArray::from(vec!["anna", "bert", "carl"])),
        ),
        (
            "since",
            Arc::new(Date32Array::from(vec![18_262, 20_453, 19_782])),
        ),
        ("ward", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
        (
            "pay",
            Arc::new(pay.with_precision_and_scale(10, 2).unwrap()),
        ),
        ("ok", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("beds", Arc::new(Int64Array::from(vec![3, 3, 3]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn write(path: &Path, batch: &RecordBatch) {
    let file = File::create(path).unwrap();
    if path.extension().unwrap() == "parquet" {
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
    } else {
        let mut writer = FileWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
    }
}

/// All values of all ports.
fn all(case: &Case, job: &Job) -> Vec<Vec<u128>> {
    let sources = sources(case, job).unwrap();
    let tables = &job.queries().unwrap().physical().tables;
    let ports = tables
        .iter()
        .zip(&sources)
        .flat_map(|(ports, (_, source))| {
            (0..ports.ports.len()).map(move |port| values(job, ports, port, &**source))
        });
    ports.collect()
}

#[test]
fn every_format_has_the_same_values() {
    let case = case(JOB, NORTH);
    let csv = all(&case, &case.load().unwrap());
    for name in ["north.parquet", "north.arrow"] {
        write(&case.path(name), &batch());
        case.write("job.toml", JOB.replace("north.csv", name).as_bytes());
        assert_eq!(all(&case, &case.load().unwrap()), csv, "{name}");
    }
}

#[test]
fn columns_of_other_types_are_refused() {
    let case = case(&JOB.replace("north.csv", "north.parquet"), NORTH);
    let other = |name: &str, array: ArrayRef| {
        let batch = batch();
        let columns = batch.schema().fields().clone();
        let columns = columns.iter().zip(batch.columns()).map(|(field, column)| {
            let column = if field.name() == name { &array } else { column };
            (field.name().clone(), Arc::clone(column), true)
        });
        write(
            &case.path("north.parquet"),
            &RecordBatch::try_from_iter_with_nullable(columns).unwrap(),
        );
        sources(&case, &case.load().unwrap()).err().unwrap()
    };
    assert_eq!(
        other("ok", Arc::new(Int64Array::from(vec![1, 0, 1]))),
        "north.parquet: column `ok` has type Int64, and the job declares a bool; store it as booleans or text"
    );
    assert_eq!(
        other(
            "patient",
            Arc::new(BooleanArray::from(vec![true, false, true]))
        ),
        "north.parquet: column `patient` has type Boolean, and the job declares a key; store it as text, integers or days"
    );
    assert_eq!(
        other(
            "since",
            Arc::new(BooleanArray::from(vec![true, false, true]))
        ),
        "north.parquet: column `since` has type Boolean, and the job declares a date; store it as dates or text"
    );
    assert_eq!(
        other(
            "patient",
            Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]))
        ),
        "north.parquet: row 2, column `patient`: `` is empty; give a value, or write `null = true` into the column, at all participants"
    );
}

/// Rows are counted in a table of which no column is read.
#[test]
fn rows_of_no_column_are_supplied() {
    let job = JOB
        .replace("unique = [[\"patient\"]]\n", "")
        .replace("SELECT since, ward, pay, ok, beds", "SELECT count(*) AS n");
    let case = case(&job, NORTH);
    for name in ["north.csv", "north.parquet", "north.arrow"] {
        if name != "north.csv" {
            write(&case.path(name), &batch());
        }
        case.write("job.toml", job.replace("north.csv", name).as_bytes());
        let valid = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(all(&case, &case.load().unwrap()), [valid], "{name}");
    }
}
