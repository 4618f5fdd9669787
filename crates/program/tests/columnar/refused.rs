//! Files that cannot be used: other types, other names, damage.

use std::{fs::File, path::Path, sync::Arc};

use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use veil_job::Slice;
use veil_testkit::Seed;

use crate::columnar::{Row, batch, case, csv, read, sample, write_arrow, write_parquet};

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
         declare `scale = 3`, or have numbers rounded: `round = true` in `written`"
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
         store the column as decimal with scale 2, or as integer, or have it rounded: `round = true` in `written`"
    );
    assert_eq!(
        with_column("pay", &column(Float64Array::from(vec![f64::NAN, 1.0]))).unwrap_err(),
        "a.file: row 1, column `pay`: `NaN` is not a value; leave the cell empty where a value is missing, or list it in `missing` of `written`"
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
        said.starts_with("a.arrow has 2 rows, but the job declares 3"),
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
