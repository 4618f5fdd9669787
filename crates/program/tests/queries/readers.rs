//! The same table as CSV, Parquet and Arrow; keys of texts, numbers and several columns.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch,
    StringArray,
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

/// A file as another program writes it: other marks, other dates, words for missing values, and more digits than the job keeps.
#[test]
fn an_owner_says_how_its_file_is_written() {
    let case = case(JOB, NORTH);
    let csv = all(&case, &case.load().unwrap());
    let written = "written = { decimal = \",\", thousands = \".\", dates = \"%d.%m.%Y\", missing = [\"NA\", \"k. A.\"], round = true }\ndelimiter = \";\"\nfile = \"north.csv\"";
    case.write(
        "job.toml",
        JOB.replace("file = \"north.csv\"", written).as_bytes(),
    );
    for missing in ["NA", "k. A.", ""] {
        let rows = format!(
            "patient;since;ward;pay;ok;beds\nanna;01.01.2020;a;-9,4951;true;3\nbert;31.12.2025;b;9.999,98999;f;3,4\ncarl;29.02.2024;c;{missing};1;2,5\n"
        );
        case.write("north.csv", rows.as_bytes());
        assert_eq!(all(&case, &case.load().unwrap()), csv, "{missing}");
    }
    // Without its words the cell is refused, as is a number beyond the range after rounding.
    for (rows, wrong) in [
        (
            "anna;01.01.2020;a;n/a;true;3",
            "north.csv: line 2 (row 1), column `pay`: `n/a` is not a value; leave the cell empty where a value is missing, or list it in `missing` of `written`",
        ),
        (
            "anna;01.01.2020;a;9999,995;true;3",
            "north.csv: line 2 (row 1), column `pay`: `9999,995` is outside the declared range -10.00 to 9999.99; correct it, or declare a wider range in the job",
        ),
        (
            "anna;01.01.2020;a;1;NA;3",
            "north.csv: line 2 (row 1), column `ok`: `NA` is empty; give a value, or write `null = true` into the column, at all participants",
        ),
    ] {
        case.write(
            "north.csv",
            format!("patient;since;ward;pay;ok;beds\n{rows}\n").as_bytes(),
        );
        let found = sources(&case, &case.load().unwrap())
            .map(|_| ())
            .unwrap_err();
        assert_eq!(found, wrong);
    }
}

/// Binary fractions, as other programs store numbers, and decimals with more places.
#[test]
fn fractions_are_rounded_where_the_owner_says_so() {
    let case = case(&JOB.replace("north.csv", "north.parquet"), NORTH);
    let rounded = JOB.replace(
        "file = \"north.csv\"",
        "written = { missing = [\"NaN\"], round = true }\nfile = \"north.parquet\"",
    );
    let with = |pay: ArrayRef| {
        let batch = batch();
        let columns = batch.schema().fields().clone();
        let columns = columns.iter().zip(batch.columns()).map(|(field, column)| {
            let column = if field.name() == "pay" { &pay } else { column };
            (field.name().clone(), Arc::clone(column), true)
        });
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        write(&case.path("north.parquet"), &batch);
    };
    with(batch().column(3).clone());
    let exact = all(&case, &case.load().unwrap());
    let more = Decimal128Array::from(vec![Some(-95_001), Some(99_999_859), None]);
    let more: ArrayRef = Arc::new(more.with_precision_and_scale(12, 4).unwrap());
    for pay in [
        Arc::new(Float64Array::from(vec![
            Some(-9.499_999),
            Some(9999.99),
            Some(f64::NAN),
        ])) as ArrayRef,
        more,
    ] {
        with(Arc::clone(&pay));
        case.write("job.toml", rounded.as_bytes());
        assert_eq!(all(&case, &case.load().unwrap()), exact);
        case.write(
            "job.toml",
            JOB.replace("north.csv", "north.parquet").as_bytes(),
        );
        assert!(sources(&case, &case.load().unwrap()).is_err());
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
