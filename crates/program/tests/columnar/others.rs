//! The same table as other programs write it: CSV of Python's `csv`, Parquet and Arrow of pyarrow (`vectors/model/tables.py`).

use std::{fs, path::Path};

use serde::Deserialize;

use crate::columnar::{JOB, Row, case, compare, read};

/// What the model says of its files.
#[derive(Deserialize)]
struct Model {
    files: Vec<Written>,
    rows: Vec<Values>,
}

/// Of a row: cents, years, which of two categories, days since 1970, a small number.
type Values = (i64, Option<i32>, Option<u8>, Option<i32>, Option<u8>);

/// A file, and what a job must say of it.
#[derive(Deserialize)]
struct Written {
    file: String,
    delimiter: Option<String>,
    decimal: Option<String>,
}

#[test]
fn files_of_other_programs_have_the_values_that_they_wrote() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/tables");
    let model = fs::read(folder.join("tables.json")).unwrap();
    let model: Model = serde_json::from_slice(&model).unwrap();
    let row = |&(pay, age, kind, since, bonus): &Values| Row {
        pay,
        age,
        kind: kind.map(|kind| kind == 1),
        since,
        bonus,
    };
    let rows: Vec<Row> = model.rows.iter().map(row).collect();
    for written in &model.files {
        let file = &written.file;
        let mut job = JOB
            .replace("ROWS", &rows.len().to_string())
            .replace("FILE", file);
        if let Some(mark) = &written.decimal {
            job = job.replace("\"1000.00\"", &format!("\"1000.00\", decimal = {mark:?}"));
        }
        if let Some(delimiter) = &written.delimiter {
            job = job.replace("files =", &format!("delimiter = {delimiter:?}, files ="));
        }
        let case = case(rows.len(), file);
        case.write("job.toml", job.as_bytes());
        case.write(file, &fs::read(folder.join(file)).unwrap());
        let source = read(&case).unwrap_or_else(|error| panic!("{file}: {error}"));
        println!("{file}");
        for step in [rows.len(), 7, 1] {
            let slices = (0..rows.len()).step_by(step);
            let slices: Vec<_> = slices
                .map(|first| (first, step.min(rows.len() - first)))
                .collect();
            compare(source.as_ref(), &rows, &slices);
        }
    }
}
