//! A table that is much larger than the memory that reading it may take.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
};

use crate::common::Case;
use veil_job::{Slice, Source};
use veil_testkit::peak_memory;

const ROWS: u64 = 3_000_000;
/// Of the whole process, test harness included.
const BUDGET: u64 = 40 << 20;

const JOB: &str = r#"
version = 1
kind = "stats"
name = "study"
owners = ["a"]
parties = ["p", "q", "r"]
recipients = ["press"]
column = [{ name = "x", type = "integer", min = 0, max = 3000000 },
          { name = "y", type = "integer", min = 0, max = 9, missing = "drop-pair" }]
block = [{ name = "all", rows = 3000000, holds = { a = ["x", "y"] }, files = { a = "a.csv" } }]
analysis = [{ name = "x", kind = "sum", of = "x", to = "press" },
            { name = "y", kind = "sum", of = "y", to = "press" }]
"#;

#[test]
fn a_long_table_takes_no_more_memory_than_a_short_one() {
    let case = Case::new(&[("job.toml", JOB)]);
    let mut table = BufWriter::new(File::create(case.path("a.csv")).unwrap());
    writeln!(table, "note,x,y").unwrap();
    for row in 0..ROWS {
        writeln!(table, "a remark that no reader needs,{row},{}", row % 10).unwrap();
    }
    drop(table);
    let bytes = fs::metadata(case.path("a.csv")).unwrap().len();
    assert!(bytes > 2 * BUDGET, "{bytes} bytes prove nothing");

    let sources = case.sources(&case.load().unwrap()).unwrap();
    let source: &dyn Source = sources[0].1.as_ref();
    let rows = 16_000;
    let mut into = vec![0; 2 * 8 * rows as usize];
    let mut sum = 0;
    for first in (0..ROWS - ROWS % rows).step_by(rows as usize) {
        for port in 0..2 {
            let slice = Slice {
                block: 0,
                first,
                rows: rows as u32,
            };
            source.fill(port, slice, &mut into).unwrap();
        }
        sum += u64::from(into[0]);
    }
    assert_eq!(sum, 0, "every slice begins with a multiple of ten");
    let peak = peak_memory();
    assert!(
        peak < BUDGET,
        "{peak} bytes of memory for a table of {bytes}"
    );
}
