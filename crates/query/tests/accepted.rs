//! What queries are bound to, in the canonical text.

use std::fmt::Write;

use veil_query::{SortedBytes, compile};

use crate::common::{job, tables};

/// The file has a query on one line after `> `, then the plan of its step.
#[test]
fn the_table_of_plans() {
    let table = include_str!("accepted.txt");
    let mut found = String::new();
    for sql in table.lines().filter_map(|line| line.strip_prefix("> ")) {
        let program = compile(&job(tables(100, 500), sql), &SortedBytes)
            .unwrap_or_else(|error| panic!("{error}"));
        writeln!(found, "> {sql}").unwrap();
        for step in &program.steps {
            writeln!(found, "{}", step.plan).unwrap();
        }
        found.push('\n');
    }
    assert!(
        found == table,
        "print these lines anew if they are right:\n{found}"
    );
}
