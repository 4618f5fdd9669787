//! Parquet and Arrow files against the values that were written, and against the same table as CSV.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{fmt::Write, fs::File, path::Path, sync::Arc};

use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array,
    Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt8Array, types::Int8Type,
};
use arrow_ipc::{
    CompressionType,
    writer::{FileWriter, IpcWriteOptions, StreamWriter},
};
use arrow_schema::{DataType, Field, Schema};
use common::Case;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties},
};
use proptest::prelude::*;
use veil_program::{Slice, Source};
use veil_testkit::Seed;

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

fn column(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

/// Writes one table with another column in the place of `name`, as Parquet, and says what is wrong with it.
fn with_column(name: &str, array: &ArrayRef) -> Result<(), String> {
    let good = batch(&sample(array.len()));
    let schema = good.schema();
    let columns = schema
        .fields()
        .iter()
        .zip(good.columns())
        .map(|(field, old)| {
            let new = if field.name() == name { array } else { old };
            (field.name().clone(), Arc::clone(new), true)
        });
    let table = RecordBatch::try_from_iter_with_nullable(columns.collect::<Vec<_>>()).unwrap();
    let said: Vec<_> = ["a.parquet", "a.arrow"]
        .map(|file| {
            let case = case(array.len(), file);
            match file {
                "a.parquet" => write_parquet(&case.path(file), &table, 2, 2, false),
                _ => write_arrow(&case.path(file), &table, 2, false),
            }
            read(&case)
                .map(drop)
                .map_err(|said| said.replace(file, "a.file"))
        })
        .into();
    assert_eq!(said[0], said[1]);
    said[0].clone()
}

#[test]
fn types_fit_or_are_refused_with_advice() {
    let decimals = |scale| {
        let values = Decimal128Array::from(vec![100, 200]);
        column(values.with_precision_and_scale(10, scale).unwrap())
    };
    assert_eq!(with_column("pay", &decimals(1)), Ok(()));
    assert_eq!(
        with_column("pay", &decimals(3)).unwrap_err(),
        "a.file: column `pay` has type Decimal128(10, 3), and the job declares a decimal of scale 2; \
         declare `scale = 3`, or round the numbers of the file"
    );
    assert_eq!(
        with_column("pay", &column(Int64Array::from(vec![5, -5]))),
        Ok(())
    );
    assert_eq!(
        with_column("pay", &column(Float64Array::from(vec![12.25, -3.0]))),
        Ok(())
    );
    assert_eq!(
        with_column("pay", &column(Float64Array::from(vec![12.25, 12.34]))).unwrap_err(),
        "a.file: row 2, column `pay`: `12.34` is a binary fraction, and not exactly a number of 2 digits after the point; \
         store the column as decimal with scale 2, or as integer"
    );
    assert_eq!(
        with_column("pay", &column(Float64Array::from(vec![f64::NAN, 1.0]))).unwrap_err(),
        "a.file: row 1, column `pay`: `NaN` is not a value; leave the cell empty where a value is missing"
    );
    assert_eq!(
        with_column("pay", &column(Int64Array::from(vec![Some(5), None]))).unwrap_err(),
        "a.file: row 2, column `pay`: `` is empty; give a value, or declare what a missing one means: \
         missing = \"drop-pair\", \"drop-row\" or \"zero\""
    );
    assert_eq!(
        with_column("age", &column(Int64Array::from(vec![i64::MAX, 501]))).unwrap_err(),
        "a.file: row 1, column `age`: `9223372036854775807` is outside the declared range -500 to 500; correct it, or \
         declare a wider range in the job\n\
         a.file: row 2, column `age`: `501` is outside the declared range -500 to 500; correct it, or declare a wider \
         range in the job"
    );
    assert_eq!(
        with_column("age", &column(Date32Array::from(vec![1, 2]))).unwrap_err(),
        "a.file: column `age` has type Date32, and the job declares an integer; store it as integers, decimals or text"
    );
    assert_eq!(
        with_column("age", &column(StringArray::from(vec!["7", ""]))),
        Ok(())
    );
    assert_eq!(
        with_column("kind", &column(StringArray::from(vec!["x", "X"]))).unwrap_err(),
        "a.file: row 2, column `kind`: `X` is not one of the declared values `x`, `y, z`"
    );
    let midnight = 86_400_000_000;
    assert_eq!(
        with_column(
            "since",
            &column(TimestampMicrosecondArray::from(vec![0, -midnight]))
        ),
        Ok(())
    );
    assert_eq!(
        with_column(
            "since",
            &column(TimestampMicrosecondArray::from(vec![
                0,
                midnight + 3_723_000_000
            ]))
        )
        .unwrap_err(),
        "a.file: row 2, column `since`: `1970-01-02 01:02:03` is not midnight; the column is declared as a date: \
         store dates, or cut the times off"
    );
    assert_eq!(
        with_column(
            "since",
            &column(TimestampMicrosecondArray::from(vec![0, 0]).with_timezone("+02:00"))
        )
        .unwrap_err(),
        "a.file: column `since` has type Timestamp(µs, \"+02:00\"), and the job declares a date; \
         which day a moment is on depends on the zone: store dates"
    );
}

#[test]
fn files_are_what_their_name_says() {
    let rows = sample(10);
    let bytes = |write: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path);
        std::fs::read(path).unwrap()
    };
    let parquet = bytes(&|path| write_parquet(path, &batch(&rows), 5, 5, false));
    let arrow = bytes(&|path| write_arrow(path, &batch(&rows), 5, false));
    let stream = bytes(&|path| {
        let mut writer =
            StreamWriter::try_new(File::create(path).unwrap(), &batch(&rows).schema()).unwrap();
        writer.write(&batch(&rows)).unwrap();
        writer.finish().unwrap();
    });
    for (file, bytes, want) in [
        (
            "a.arrow",
            &parquet[..],
            "a.arrow: this is a Parquet file, and not an Arrow file; rename it to end with .parquet",
        ),
        (
            "a.parquet",
            &arrow,
            "a.parquet: this is an Arrow file, and not Parquet; rename it to end with .arrow",
        ),
        (
            "a.csv",
            &arrow,
            "a.csv: this is an Arrow file, and not CSV in UTF-8; save it as CSV in UTF-8",
        ),
        (
            "a.csv",
            &parquet,
            "a.csv: this is a Parquet file, and not CSV in UTF-8; save it as CSV in UTF-8",
        ),
        (
            "a.feather",
            &stream,
            "a.feather: this is an Arrow stream, and not an Arrow file; write it as an Arrow file, which can be read from any place",
        ),
        (
            "a.feather",
            b"FEA1....",
            "a.feather: this is Feather of version 1, and not an Arrow file; write it again as version 2, which is an Arrow file",
        ),
        (
            "a.parquet",
            b"",
            "a.parquet: this is something else, and not Parquet; write it as Parquet, or give it the ending of what it is",
        ),
        (
            "a.xlsx",
            b"PK",
            "a.xlsx: tables are CSV (.csv, .txt, .tsv), Parquet (.parquet) or Arrow IPC files (.arrow, .feather), and are read as their name says; rename the file",
        ),
    ] {
        let case = case(10, file);
        case.write(file, bytes);
        assert_eq!(read(&case).map(drop).unwrap_err(), want);
    }
}

#[test]
fn columns_that_lack_or_are_there_twice_are_named() {
    let ints = |names: &[&str]| {
        let fields: Vec<_> = names
            .iter()
            .map(|&name| Field::new(name, DataType::Int64, true))
            .collect();
        let columns = names
            .iter()
            .map(|_| Arc::new(Int64Array::from(vec![1])) as ArrayRef);
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.collect()).unwrap()
    };
    for (names, want) in [
        (
            &["pay", "age", "bonus", "kind"][..],
            "a.arrow: no column `since`; the header names `pay`, `age`, `bonus`, `kind`",
        ),
        (
            &["pay", "pay"],
            "a.arrow: column `pay` is there twice; rename or remove one",
        ),
    ] {
        let case = case(1, "a.arrow");
        write_arrow(&case.path("a.arrow"), &ints(names), 1, false);
        assert_eq!(read(&case).map(drop).unwrap_err(), want);
    }
    let case = case(3, "a.arrow");
    write_arrow(&case.path("a.arrow"), &batch(&sample(2)), 1, false);
    let said = read(&case).map(drop).unwrap_err();
    assert!(
        said.starts_with("rows do not align: a.arrow has 2 rows, but the job declares 3"),
        "{said}"
    );
}

#[test]
fn damaged_files_are_errors() {
    std::panic::set_hook(Box::new(|_| {}));
    let rows = sample(20);
    let mut numbers = Seed(5).numbers("damaged files");
    for file in ["a.parquet", "a.arrow"] {
        let case = case(rows.len(), file);
        let job = case.load().unwrap();
        let (mut refused, mut accepted) = (0, 0);
        for packed in [false, true] {
            match file {
                "a.parquet" => write_parquet(&case.path(file), &batch(&rows), 10, 5, packed),
                _ => write_arrow(&case.path(file), &batch(&rows), 10, packed),
            }
            let good = std::fs::read(case.path(file)).unwrap();
            for _ in 0..1000 {
                let mut bytes = good.clone();
                for _ in 0..=numbers.index(3) {
                    let at = numbers.index(bytes.len());
                    match numbers.index(8) {
                        0 => bytes.truncate(at.max(1)),
                        1 => bytes[at] = 0xff,
                        2 => bytes[at] = 0x7f,
                        _ => bytes[at] ^= 1 << numbers.index(8),
                    }
                }
                case.write(file, &bytes);
                match case.sources(&job) {
                    Ok(_) => accepted += 1,
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(
            refused > 100 && accepted > 0,
            "{file}: {refused} refused, {accepted} accepted"
        );
    }
}

#[test]
fn a_file_that_changes_is_noticed() {
    for file in ["a.csv", "a.parquet", "a.arrow"] {
        // More than what a reader has in memory.
        let mut rows = sample(40_000);
        let case = case(rows.len(), file);
        let write = |rows: &[Row]| match file {
            "a.csv" => case.write(file, csv(rows).as_bytes()),
            "a.parquet" => write_parquet(&case.path(file), &batch(rows), 3000, 500, false),
            _ => write_arrow(&case.path(file), &batch(rows), 1000, false),
        };
        write(&rows);
        let source = read(&case).unwrap();
        rows[100].pay += 1;
        write(&rows);
        let mut into = vec![0; 2 * 8 * 100];
        let slice = |first| Slice {
            block: 0,
            first,
            rows: 100,
        };
        let error = source.fill(0, slice(90), &mut into).unwrap_err();
        assert_eq!(
            case.shorten(&error.to_string()),
            format!(
                "{file} changed while the job was running; nothing was published, run it again"
            )
        );
    }
}
