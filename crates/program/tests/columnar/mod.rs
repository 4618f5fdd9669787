//! Parquet and Arrow files against the values that were written, and against the same table as CSV.

mod others;
mod refused;

use std::{fmt::Write, fs::File, path::Path, sync::Arc};

use crate::common::Case;
use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, DictionaryArray, Int32Array, RecordBatch, StringArray,
    UInt8Array, types::Int8Type,
};
use arrow_ipc::{
    CompressionType,
    writer::{FileWriter, IpcWriteOptions},
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties},
};
use proptest::prelude::*;
use veil_job::{Slice, Source};

const JOB: &str = r#"
version = 1
kind = "stats"
name = "study"
owners = ["a"]
parties = ["p", "q", "r"]
recipients = ["press"]
column = [
    { name = "pay", type = "decimal", scale = 2, min = "-1000.00", max = "1000.00" },
    { name = "age", type = "integer", min = -500, max = 500, missing = "drop-pair" },
    { name = "kind", type = "category", values = ["x", "y, z"], missing = "drop-row" },
    { name = "since", type = "date", min = "1900-01-01", max = "2100-01-01", missing = "drop-pair" },
    { name = "bonus", type = "integer", min = 0, max = 9, missing = "zero" },
]
block = [{ name = "all", rows = ROWS, holds = { a = ["pay", "age", "kind", "since", "bonus"] }, files = { a = "FILE" } }]
analysis = [
    { name = "pay", kind = "mean", of = "pay", by = "kind", to = "press" },
    { name = "age", kind = "sum", of = "age", to = "press" },
    { name = "since", kind = "mean", of = "since", to = "press" },
    { name = "bonus", kind = "sum", of = "bonus", to = "press" },
]
"#;

#[derive(Clone, Copy, Debug)]
struct Row {
    pay: i64,
    age: Option<i32>,
    kind: Option<bool>,
    since: Option<i32>,
    bonus: Option<u8>,
}

fn row() -> impl Strategy<Value = Row> {
    (
        -100_000i64..=100_000,
        prop::option::of(-500i32..=500),
        prop::option::of(any::<bool>()),
        prop::option::of(-20_000i32..=40_000),
        prop::option::of(0u8..=9),
    )
        .prop_map(|(pay, age, kind, since, bonus)| Row {
            pay,
            age,
            kind,
            since,
            bonus,
        })
}

fn batch(rows: &[Row]) -> RecordBatch {
    let pay = Decimal128Array::from_iter_values(rows.iter().map(|row| i128::from(row.pay)));
    let kinds = rows
        .iter()
        .map(|row| row.kind.map(|y| if y { "y, z" } else { "x" }));
    let kinds: DictionaryArray<Int8Type> = kinds.collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "note",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|_| "…"))),
        ),
        (
            "since",
            Arc::new(rows.iter().map(|row| row.since).collect::<Date32Array>()),
        ),
        ("kind", Arc::new(kinds)),
        (
            "age",
            Arc::new(rows.iter().map(|row| row.age).collect::<Int32Array>()),
        ),
        (
            "pay",
            Arc::new(pay.with_precision_and_scale(20, 2).unwrap()),
        ),
        (
            "bonus",
            Arc::new(rows.iter().map(|row| row.bonus).collect::<UInt8Array>()),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

fn write_parquet(path: &Path, batch: &RecordBatch, group: usize, page: usize, packed: bool) {
    let compression = if packed {
        Compression::ZSTD(ZstdLevel::default())
    } else {
        Compression::UNCOMPRESSED
    };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_data_page_row_count_limit(page)
        .set_write_batch_size(page)
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn write_arrow(path: &Path, batch: &RecordBatch, rows: usize, packed: bool) {
    let packed = packed.then_some(CompressionType::LZ4_FRAME);
    let options = IpcWriteOptions::default()
        .try_with_compression(packed)
        .unwrap();
    let file = File::create(path).unwrap();
    let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
    let mut at = 0;
    while at < batch.num_rows() {
        let count = rows.min(batch.num_rows() - at);
        writer.write(&batch.slice(at, count)).unwrap();
        at += count;
    }
    writer.finish().unwrap();
}

fn day(days: i32) -> String {
    jiff::civil::Date::constant(1970, 1, 1)
        .checked_add(jiff::Span::new().days(days))
        .unwrap()
        .to_string()
}

fn csv(rows: &[Row]) -> String {
    let mut text = "since,kind,age,pay,bonus\n".to_owned();
    for Row {
        pay,
        age,
        kind,
        since,
        bonus,
    } in rows
    {
        let kind = kind.map_or("", |y| if y { "\"y, z\"" } else { "x" });
        let since = since.map(day).unwrap_or_default();
        let age = age.map(|age| age.to_string()).unwrap_or_default();
        let bonus = bonus.map(|bonus| bonus.to_string()).unwrap_or_default();
        let sign = if *pay < 0 { "-" } else { "" };
        let pay = pay.abs();
        let line = writeln!(
            text,
            "{since},{kind},{age},{sign}{}.{:02},{bonus}",
            pay / 100,
            pay % 100
        );
        line.unwrap();
    }
    text
}

/// The ports of the job as the rows say: value and validity, or a bit for each category.
fn expected(rows: &[Row], port: usize) -> Vec<Vec<i64>> {
    let number = |value: fn(&Row) -> Option<i64>| {
        vec![
            rows.iter().map(|row| value(row).unwrap_or(0)).collect(),
            rows.iter()
                .map(|row| i64::from(value(row).is_some()))
                .collect(),
        ]
    };
    match port {
        0 => number(|row| Some(row.pay)),
        1 => number(|row| row.age.map(Into::into)),
        2 => [false, true]
            .map(|y| {
                rows.iter()
                    .map(|row| i64::from(row.kind == Some(y)))
                    .collect()
            })
            .into(),
        3 => number(|row| row.since.map(Into::into)),
        _ => number(|row| Some(row.bonus.unwrap_or(0).into())),
    }
}

/// Reads slices of a source and compares them.
fn compare(source: &dyn Source, rows: &[Row], slices: &[(usize, usize)]) {
    for &(first, count) in slices {
        for port in 0..5 {
            let mut into = vec![0; 2 * 8 * count];
            let slice = Slice {
                block: 0,
                first: first as u64,
                rows: count as u32,
            };
            source.fill(port, slice, &mut into).unwrap();
            let want: Vec<u8> = expected(&rows[first..first + count], port)
                .concat()
                .iter()
                .flat_map(|value: &i64| value.to_le_bytes())
                .collect();
            assert!(
                into == want,
                "port {port}, rows {first} to {}",
                first + count
            );
        }
    }
}

fn case(rows: usize, file: &str) -> Case {
    let job = JOB.replace("ROWS", &rows.to_string()).replace("FILE", file);
    Case::new(&[("job.toml", &job)])
}

fn read(case: &Case) -> Result<Box<dyn Source>, String> {
    let job = case.load().unwrap();
    Ok(case.sources(&job)?.remove(0).1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_formats_have_the_values_that_were_written(
        pattern in prop::collection::vec(row(), 1..50),
        repeat in prop::sample::select(vec![1usize, 3, 400]),
        group in prop::sample::select(vec![100usize, 1_000, 5_000, 100_000]),
        packed in any::<bool>(),
        cuts in prop::collection::vec((0.0..1.0f64, 1usize..6000), 1..6),
    ) {
        let rows = pattern.repeat(repeat);
        let table = batch(&rows);
        let slices: Vec<_> = (cuts.iter())
            .map(|&(at, count)| {
                let first = (at * rows.len() as f64) as usize;
                (first, count.min(rows.len() - first))
            })
            .chain([(0, rows.len())])
            .collect();
        for file in ["a.csv", "a.parquet", "a.arrow"] {
            let case = case(rows.len(), file);
            match file {
                "a.csv" => case.write(file, csv(&rows).as_bytes()),
                "a.parquet" => write_parquet(&case.path(file), &table, group, group / 3, packed),
                _ => write_arrow(&case.path(file), &table, group, packed),
            }
            let source = read(&case).unwrap();
            compare(source.as_ref(), &rows, &slices);
        }
    }
}

fn sample(count: usize) -> Vec<Row> {
    (0..count)
        .map(|index| Row {
            pay: (index % 7) as i64,
            age: (index % 5 != 0).then_some(index as i32 % 100),
            kind: Some(index % 2 == 0),
            since: Some(index as i32 % 9000),
            bonus: None,
        })
        .collect()
}

#[test]
fn lanes_read_at_the_same_time() {
    let rows = sample(40_000);
    for file in ["a.csv", "a.parquet", "a.arrow"] {
        let case = case(rows.len(), file);
        match file {
            "a.csv" => case.write(file, csv(&rows).as_bytes()),
            "a.parquet" => write_parquet(&case.path(file), &batch(&rows), 15_000, 1000, true),
            _ => write_arrow(&case.path(file), &batch(&rows), 9_000, true),
        }
        let source = read(&case).unwrap();
        std::thread::scope(|scope| {
            for lane in 0..4 {
                let (source, rows) = (source.as_ref(), &rows);
                scope.spawn(move || {
                    let slices = (lane..40).step_by(4).map(|chunk| (chunk * 1000, 1000));
                    compare(source, rows, &slices.collect::<Vec<_>>());
                });
            }
        });
    }
}
