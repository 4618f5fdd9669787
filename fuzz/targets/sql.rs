//! A query of two tables, from any text: `crates/query/tests/limits.rs` damages queries without libFuzzer.

#![no_main]

use veil_query::{Job, Query, SortedBytes, compile};
use veil_relation::Program;

/// Two tables that share a key, with a column of each kind.
const TABLES: &str = r#"(program
  (table
    "a"
    (owner "north")
    (rows 10)
    (column "id" (integer 0 99))
    (column "x" (nullable (decimal 2 -100 100)))
    (column "d" (nullable (date 2000-01-01 2001-12-31)))
    (column "c" (nullable (category "one" "two")))
    (column "f" (nullable bool))
    (column "k" (nullable (key 64)))
    (unique #0))
  (table
    "b"
    (owner "south")
    (rows 20)
    (column "id" (integer 0 99))
    (column "y" (integer -9 9))
    (column "k" (key 64))))"#;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let tables = Program::read(TABLES)
        .expect("the tables are in the canonical form")
        .tables;
    let query = Query {
        name: "q".into(),
        sql: text.into(),
        to: Some("r".into()),
        keep: None,
        min_count: 0,
        fit: None,
        apply: None,
    };
    let job = Job {
        tables,
        queries: vec![query],
        bounds: Vec::new(),
        models: Vec::new(),
        functions: vec![],
    };
    if let Ok(program) = compile(&job, &SortedBytes) {
        let text = program.to_string();
        assert_eq!(Program::read(&text).as_ref(), Ok(&program));
    }
});
