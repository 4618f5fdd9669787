//! One table as other programs write it: CSV of Python's `csv`, Parquet and Arrow of pyarrow (`vectors/model/tables.py`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{fs, path::Path};

use common::Case;
use serde::Deserialize;
use veil_program::{Slice, Source};

const JOB: &str = r#"
version = 1
kind = "stats"
name = "study"
owners = ["a"]
parties = ["p", "q", "r"]
recipients = ["press"]
column = [
    { name = "pay", type = "decimal", scale = 2, min = "-1000.00", max = "1000.00" DECIMAL },
    { name = "age", type = "integer", min = -500, max = 500, missing = "drop-pair" },
    { name = "kind", type = "category", values = ["x", "y, z"], missing = "drop-row" },
    { name = "since", type = "date", min = "1900-01-01", max = "2100-01-01", missing = "drop-pair" },
    { name = "bonus", type = "integer", min = 0, max = 9, missing = "zero" },
]
block = [{ name = "all", rows = ROWS, holds = { a = ["pay", "age", "kind", "since", "bonus"] }, files = { a = "FILE" } DELIMITER }]
analysis = [
    { name = "pay", kind = "mean", of = "pay", by = "kind", to = "press" },
    { name = "age", kind = "sum", of = "age", to = "press" },
    { name = "since", kind = "mean", of = "since", to = "press" },
    { name = "bonus", kind = "sum", of = "bonus", to = "press" },
]
"#;

/// What the model says of its files. Of a row: cents, years, the category, days since 1970, a small number.
#[derive(Deserialize)]
struct Model {
    files: Vec<Written>,
    rows: Vec<[Option<i64>; 5]>,
}

#[derive(Deserialize)]
struct Written {
    file: String,
    delimiter: Option<String>,
    decimal: Option<String>,
}

/// What a job computes on: a value and whether it is there, or a bit for each category.
fn ports(rows: &[[Option<i64>; 5]]) -> Vec<[Vec<i64>; 2]> {
    let number = |column: usize| {
        [
            rows.iter().map(|row| row[column].unwrap_or(0)).collect(),
            rows.iter()
                .map(|row| row[column].is_some().into())
                .collect(),
        ]
    };
    let kind = |kind| {
        rows.iter()
            .map(|row| (row[2] == Some(kind)).into())
            .collect()
    };
    let mut bonus = number(4);
    // A missing one counts as zero.
    bonus[1] = vec![1; rows.len()];
    vec![number(0), number(1), [kind(0), kind(1)], number(3), bonus]
}

/// The file as the job reads it, in slices of so many rows, wire by wire.
fn read(case: &Case, rows: usize, step: usize) -> Result<Vec<[Vec<i64>; 2]>, String> {
    let job = case.load()?;
    let source = case.sources(&job)?.remove(0).1;
    let source: &dyn Source = source.as_ref();
    let mut ports = vec![[vec![], vec![]]; job.lowered().circuit.inputs.len()];
    for (port, wires) in ports.iter_mut().enumerate() {
        for first in (0..rows).step_by(step) {
            let count = step.min(rows - first);
            let slice = Slice {
                block: 0,
                first: first as u64,
                rows: count as u32,
            };
            let mut into = vec![0; 2 * 8 * count];
            source.fill(port, slice, &mut into).unwrap();
            for (wire, column) in wires.iter_mut().zip(into.chunks(8 * count)) {
                let elements = column.chunks(8);
                wire.extend(elements.map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())));
            }
        }
    }
    Ok(ports)
}

#[test]
fn files_of_other_programs_have_the_values_that_they_wrote() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/tables");
    let model = fs::read(folder.join("tables.json")).unwrap();
    let model: Model = serde_json::from_slice(&model).unwrap();
    let rows = model.rows.len();
    let want = ports(&model.rows);
    for Written {
        file,
        delimiter,
        decimal,
    } in &model.files
    {
        let field = |name: &str, value: &Option<String>| {
            let value = value.as_ref();
            value.map_or(String::new(), |value| format!(", {name} = {value:?}"))
        };
        let job = JOB
            .replace("ROWS", &rows.to_string())
            .replace("FILE", file)
            .replace("DECIMAL", &field("decimal", decimal))
            .replace("DELIMITER", &field("delimiter", delimiter));
        let case = Case::new(&[("job.toml", &job)]);
        case.write(file, &fs::read(folder.join(file)).unwrap());
        for step in [rows, 7, 1] {
            let found = read(&case, rows, step);
            assert_eq!(found.as_ref(), Ok(&want), "{file}, {step} rows at a time");
        }
    }
}
