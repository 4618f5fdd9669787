//! What a recipient makes of opened values: all of it, in order, or nothing.

use std::fs;
use std::fs::File;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use veil_job::passes::PassSpec;
use veil_job::{DataError, Sink, Slice};
use veil_math::Ring;
use veil_physical::{ResultPort, ResultPorts};
use veil_program::Job;
use veil_session::Peer;

use super::{JOB, NORTH, case};
use crate::common::Case;

const SELECT: &str = "SELECT since, ward, pay, ok, beds FROM stays";

/// A result of four columns, one of which has nulls.
const QUERY: &str = "SELECT ward, since, pay, ok FROM stays";

/// Opened rows: a valid bit, then the cells as they are to be; `None` for a null.
type Row = (bool, [Option<i128>; 4]);

const ROWS: [Row; 10] = [
    (true, [Some(1), Some(19_782), Some(725), Some(1)]),
    (false, [Some(0), Some(18_262), None, Some(0)]),
    (true, [Some(0), Some(19_782), None, Some(0)]),
    (true, [Some(0), Some(19_782), Some(-1000), Some(1)]),
    (false, [Some(0), Some(18_262), None, Some(0)]),
    (false, [Some(0), Some(18_262), None, Some(0)]),
    (true, [Some(2), Some(18_262), Some(999_999), Some(0)]),
    (false, [Some(0), Some(18_262), None, Some(0)]),
    (false, [Some(0), Some(18_262), None, Some(0)]),
    (true, [Some(0), Some(18_262), Some(5), Some(0)]),
];

/// Worked out by hand: by ward, then by all columns, nulls last.
const CSV: &str = "ward,since,pay,ok
a,2020-01-01,0.05,false
a,2024-02-29,-10.00,true
a,2024-02-29,,false
b,2024-02-29,7.25,true
c,2020-01-01,9999.99,false
";

/// The value of a port in a row.
fn value(port: ResultPort, (valid, cells): &Row) -> u128 {
    const LEAST: [i128; 4] = [0, 18_262, -1000, 0];
    match port {
        _ if !valid => 0,
        ResultPort::Incomplete => 0,
        ResultPort::Valid => 1,
        ResultPort::Null(field) => cells[field].is_none().into(),
        ResultPort::Bits(field) => cells[field].map_or(0, |cell| (cell - LEAST[field]) as u128),
    }
}

/// The values of some rows of a port, as parties open them.
fn packed(ring: Ring, width: u32, values: &[u128]) -> Vec<u8> {
    let wire = ring.bytes(values.len() as u64) as usize;
    let mut bytes = vec![0; wire * width as usize];
    for (row, value) in values.iter().enumerate() {
        if ring == Ring::Bits {
            for bit in 0..width as usize {
                bytes[bit * wire + row / 8] |= ((value >> bit & 1) as u8) << (row % 8);
            }
        } else {
            let size = ring.bytes(1) as usize;
            bytes[row * size..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    bytes
}

/// Opens rows first..end of a relation.
fn open(
    job: &Job,
    ports: &ResultPorts,
    sink: &dyn Sink,
    rows: (usize, usize),
) -> Result<(), DataError> {
    open_some((job, ports), sink, rows, false)
}

/// The same, where a bound may have left out others.
fn open_some(
    (job, ports): (&Job, &ResultPorts),
    sink: &dyn Sink,
    (first, end): (usize, usize),
    incomplete: bool,
) -> Result<(), DataError> {
    let PassSpec::Rows { job, .. } = &job.passes().unwrap().passes[ports.pass] else {
        panic!("a pass that opens is of rows");
    };
    for (at, port) in ports.ports.iter().enumerate() {
        let mut values: Vec<u128> = ROWS[first..end]
            .iter()
            .map(|row| value(*port, row))
            .collect();
        if *port == ResultPort::Incomplete && first == 0 {
            values[0] = incomplete.into();
        }
        let width = job.circuit.outputs[at].wires.len() as u32;
        let slice = Slice {
            block: 0,
            first: first as u64,
            rows: values.len() as u32,
        };
        sink.put(at, slice, &packed(job.circuit.ring, width, &values))?;
    }
    Ok(())
}

fn job(query: &str, more: &str) -> Case {
    let text = JOB
        .replace(SELECT, query)
        .replace("to = \"ministry\"", &format!("to = \"ministry\"\n{more}"));
    case(&text, NORTH)
}

fn names(case: &Case) -> Vec<String> {
    let entries = fs::read_dir(case.path("out")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

const MINISTRY: Peer = Peer::Recipient(0);

#[test]
fn rows_come_in_any_slices_and_are_published_in_order() {
    let case = job(QUERY, "");
    let job = case.load().unwrap();
    let output = std::sync::Arc::new(job.sink(MINISTRY, &case.path("out")).unwrap());
    let sinks = output.sinks();
    let results = &job.queries().unwrap().physical().results;
    assert_eq!(sinks.len(), results.len());
    for (ports, (pass, sink)) in results.iter().zip(&sinks) {
        assert_eq!(ports.pass, *pass);
        for slice in [(5, 10), (0, 3), (3, 5)] {
            open(&job, ports, &**sink, slice).unwrap();
        }
        // What has come does not come again, nor what there is not.
        assert!(open(&job, ports, &**sink, (3, 5)).is_err());
        assert!(open(&job, ports, &**sink, (4, 6)).is_err());
        let beyond = Slice {
            block: 0,
            first: 10,
            rows: 1,
        };
        assert!(matches!(
            sink.put(0, beyond, &[0]),
            Err(DataError::OutOfReach { .. })
        ));
        assert!(matches!(
            sink.put(99, beyond, &[0]),
            Err(DataError::OutOfReach { .. })
        ));
    }
    assert!(names(&case).is_empty());
    for (_, sink) in &sinks {
        sink.finish().unwrap();
    }
    assert_eq!(
        names(&case),
        ["all_stays.csv", "all_stays.json", "all_stays.txt"]
    );
    let read = |name: &str| fs::read_to_string(case.path(&format!("out/{name}"))).unwrap();
    assert_eq!(read("all_stays.csv"), CSV);
    let json: serde_json::Value = serde_json::from_str(&read("all_stays.json")).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 5);
    assert_eq!(
        json["rows"][2],
        serde_json::json!(["a", "2024-02-29", null, false])
    );
    assert_eq!(
        json["columns"][2],
        serde_json::json!({"name": "pay", "type": "decimal with 2 places"})
    );
    let text = read("all_stays.txt");
    assert!(
        text.starts_with("readmissions: all_stays, for ministry: 5 rows\n"),
        "{text}"
    );
    let answers = output.queries().unwrap().answers().unwrap();
    assert_eq!(answers[0].csv(), CSV);
}

#[test]
fn what_is_not_complete_is_not_published() {
    let case = job(QUERY, "");
    let job = case.load().unwrap();
    let output = std::sync::Arc::new(job.sink(MINISTRY, &case.path("out")).unwrap());
    let sinks = output.sinks();
    let ports = &job.queries().unwrap().physical().results[0];
    open(&job, ports, &*sinks[0].1, (0, 9)).unwrap();
    let error = sinks[0].1.finish().unwrap_err();
    assert!(matches!(error, DataError::Incomplete { .. }), "{error}");
    drop((sinks, output));
    assert!(fs::read_dir(case.path("out")).unwrap().next().is_none());
}

fn published(case: &Case) -> Job {
    let job = case.load().unwrap();
    let output = std::sync::Arc::new(job.sink(MINISTRY, &case.path("out")).unwrap());
    let results = &job.queries().unwrap().physical().results;
    for (ports, (_, sink)) in results.iter().zip(&output.sinks()) {
        open(&job, ports, &**sink, (0, 10)).unwrap();
    }
    for (_, sink) in output.sinks() {
        sink.finish().unwrap();
    }
    job
}

#[test]
fn columnar_files_have_types() {
    let case = job(QUERY, "file = [\"r.parquet\", \"r.arrow\"]");
    published(&case);
    assert_eq!(names(&case), ["r.arrow", "r.parquet"]);
    let parquet = File::open(case.path("out/r.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
    let parquet: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    let arrow = File::open(case.path("out/r.arrow")).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(arrow, None).unwrap();
    let arrow: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(parquet, arrow);
    let batch = &arrow[0];
    let ward = batch.column_by_name("ward").unwrap().as_string::<i32>();
    assert_eq!(
        ward.iter().flatten().collect::<Vec<_>>(),
        ["a", "a", "a", "b", "c"]
    );
    let since = batch
        .column_by_name("since")
        .unwrap()
        .as_primitive::<Date32Type>();
    assert_eq!(since.values()[..], [18_262, 19_782, 19_782, 19_782, 18_262]);
    let pay = batch
        .column_by_name("pay")
        .unwrap()
        .as_primitive::<Decimal128Type>();
    assert_eq!(
        pay.iter().collect::<Vec<_>>(),
        [Some(5), Some(-1000), None, Some(725), Some(999_999)]
    );
    assert_eq!(pay.scale(), 2);
    let ok = batch.column_by_name("ok").unwrap().as_boolean();
    assert_eq!(
        ok.iter().flatten().collect::<Vec<_>>(),
        [false, true, false, true, false]
    );
}

/// One column of categories or dates, and numbers, make a chart: a bar for each row and number.
#[test]
fn categories_and_numbers_make_a_chart() {
    let case = job("SELECT ward, pay FROM stays", "");
    let job = case.load().unwrap();
    let files = job.queries().unwrap().files("ministry");
    let names: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "all_stays.csv",
            "all_stays.json",
            "all_stays.txt",
            "all_stays.svg"
        ]
    );
    // With a bool, or two columns of categories, there is none.
    for query in [
        QUERY,
        "SELECT ward, since, pay FROM stays",
        "SELECT pay FROM stays",
        "SELECT ward FROM stays",
    ] {
        let case = self::job(query, "");
        let job = case.load().unwrap();
        assert_eq!(job.queries().unwrap().files("ministry").len(), 3, "{query}");
    }
}

/// A result with a bound that flags, of nine rows: whether rows are missing is said by every format that has a place for it.
#[test]
fn every_format_says_whether_rows_are_missing() {
    let flagged = |query: &str, files: &str, incomplete: Option<bool>| {
        let overflow = if incomplete.is_some() { "flag" } else { "drop" };
        let bound = format!("[[bound]]\nof = \"all_stays\"\nrows = 9\noverflow = \"{overflow}\"\n");
        let case = job(query, &format!("file = [{files}]\n{bound}"));
        let job = case.load().unwrap();
        let output = std::sync::Arc::new(job.sink(MINISTRY, &case.path("out")).unwrap());
        let ports = &job.queries().unwrap().physical().results[0];
        let sinks = output.sinks();
        let flag = incomplete == Some(true);
        // Slices come in any order; the flag is in the first row.
        open_some((&job, ports), &*sinks[0].1, (4, 9), flag).unwrap();
        open_some((&job, ports), &*sinks[0].1, (0, 4), flag).unwrap();
        sinks[0].1.finish().unwrap();
        let set = output.queries().unwrap();
        assert_eq!(set.answers().unwrap()[0].incomplete, incomplete);
        let warned: &[&str] = match incomplete {
            Some(true) => &[
                "the result of `all_stays` for ministry is incomplete: a bound of the job has left out rows",
            ],
            _ => &[],
        };
        assert_eq!(set.incomplete(), warned);
        (case, set.text().unwrap())
    };
    let all = "\"r.csv\", \"r.json\", \"r.txt\", \"r.arrow\", \"r.parquet\"";
    for incomplete in [None, Some(false), Some(true)] {
        let (case, text) = flagged(QUERY, all, incomplete);
        let read = |name: &str| fs::read_to_string(case.path(&format!("out/{name}"))).unwrap();
        let heading = match incomplete {
            Some(true) => {
                "readmissions: all_stays, for ministry: 4 rows; incomplete: a bound of the job has left out rows\n"
            }
            _ => "readmissions: all_stays, for ministry: 4 rows\n",
        };
        assert!(read("r.txt").starts_with(heading), "{}", read("r.txt"));
        assert!(text.starts_with(heading), "{text}");
        let json: serde_json::Value = serde_json::from_str(&read("r.json")).unwrap();
        let said = json.get("incomplete").map(|said| said.as_bool().unwrap());
        assert_eq!(said, incomplete);
        // CSV has no place for it.
        let without = CSV.replace("a,2020-01-01,0.05,false\n", "");
        assert_eq!(read("r.csv"), without);
        let parquet = File::open(case.path("out/r.parquet")).unwrap();
        let parquet = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
        let arrow = File::open(case.path("out/r.arrow")).unwrap();
        let arrow = arrow_ipc::reader::FileReader::try_new(arrow, None).unwrap();
        for schema in [parquet.schema().clone(), arrow.schema()] {
            let said = schema.metadata().get("veil.incomplete");
            let word = incomplete.map(|said| said.to_string());
            assert_eq!(said, word.as_ref());
        }
        let (case, _) = flagged("SELECT ward, pay FROM stays", "\"r.svg\"", incomplete);
        let chart = fs::read_to_string(case.path("out/r.svg")).unwrap();
        let note = "incomplete: a bound of the job has left out rows";
        assert_eq!(chart.contains(note), incomplete == Some(true), "{chart}");
    }
}

/// The flag is one port beside those of cells, and there where a bound flags alone.
#[test]
fn the_flag_is_no_part_of_a_row() {
    let bound = "[[bound]]\nof = \"all_stays\"\nrows = 9\noverflow = \"flag\"\n";
    let case = job(QUERY, bound);
    let job = case.load().unwrap();
    let ports = &job.queries().unwrap().physical().results[0];
    let at = ports
        .ports
        .iter()
        .position(|port| *port == ResultPort::Incomplete);
    let mut first = vec![0; ports.ports.len()];
    assert_eq!(ports.incomplete(&first), Some(false));
    first[at.unwrap()] = 1;
    assert_eq!(ports.incomplete(&first), Some(true));
    // It is no part of the row.
    let mut row = vec![0; ports.ports.len()];
    let valid = ports
        .ports
        .iter()
        .position(|port| *port == ResultPort::Valid);
    row[valid.unwrap()] = 1;
    let without = ports.cells(&row);
    row[at.unwrap()] = 1;
    assert_eq!(ports.cells(&row), without);
    let bare = self::job(QUERY, "").load().unwrap();
    let ports = &bare.queries().unwrap().physical().results[0];
    assert_eq!(ports.incomplete(&vec![1; ports.ports.len()]), None);
}
