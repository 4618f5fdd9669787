//! Results in the clear are those of DuckDB.

use std::process::Command;

use serde_json::{Value as Json, json};
use veil_query::{SortedBytes, compile};
use veil_relation::{Kind, Table, clear};

use crate::common::{self, job, listed, texts};

fn sql_type(kind: &Kind) -> String {
    match kind {
        Kind::Integer(_) => "BIGINT".to_owned(),
        Kind::Decimal { places, .. } => format!("DECIMAL(18, {places})"),
        Kind::Date(_) => "DATE".to_owned(),
        Kind::Category(_) => "VARCHAR".to_owned(),
        Kind::Bool => "BOOLEAN".to_owned(),
        Kind::Key { .. } => "UHUGEINT".to_owned(),
        Kind::Ratio { .. } => panic!("no table has quotients"),
    }
}

/// The valid rows of a table, for DuckDB.
pub(crate) fn table(of: &Table, input: &clear::Input) -> Json {
    let valid = input
        .rows
        .iter()
        .zip(&input.valid)
        .filter(|(_, valid)| **valid);
    let row = |row: &Vec<veil_relation::Value>| -> Vec<Option<String>> {
        let cells = row.iter().zip(&of.columns);
        cells
            .map(|(value, column)| common::shown(*value, &column.ty.kind))
            .collect()
    };
    let rows: Vec<_> = valid.map(|(cells, _)| row(cells)).collect();
    let columns: Vec<_> = of
        .columns
        .iter()
        .map(|column| (&column.name, sql_type(&column.ty.kind)))
        .collect();
    json!({ "name": of.name, "columns": columns, "rows": rows })
}

/// Asks DuckDB whether all results are its own; prints why not, if there is none.
pub(crate) fn ask(cases: &[Json]) {
    if let Some((agrees, text)) = answer(cases) {
        assert!(agrees, "{text}");
        println!("{text}");
    }
}

/// Whether DuckDB has the same results, and what it says.
fn answer(cases: &[Json]) -> Option<(bool, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cases.json");
    std::fs::write(&file, serde_json::to_vec(cases).unwrap()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/duckdb_oracle.py");
    let Ok(output) = Command::new("python3").arg(script).arg(&file).output() else {
        println!("skipped: python3 is not there");
        return None;
    };
    if output.status.code() == Some(77) {
        println!("skipped: the module duckdb of python3 is not there");
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), format!("{text}{errors}")))
}

#[test]
fn results_are_those_of_duckdb() {
    let mut cases = Vec::new();
    for (people, visits, seed) in [
        (0, 0, 1),
        (1, 2, 2),
        (2, 1, 3),
        (30, 60, 4),
        (45, 200, 5),
        (120, 40, 6),
    ] {
        let tables = common::tables(people, visits);
        let inputs = common::rows(&tables, seed);
        let mut queries = Vec::new();
        for of in listed() {
            let program = compile(&job(tables.clone(), &of.sql), &SortedBytes)
                .unwrap_or_else(|error| panic!("{}: {error}", of.name));
            let opened = clear::evaluate(&program, &inputs)
                .unwrap_or_else(|error| panic!("{}: {error}", of.name))
                .remove(0);
            let rows = texts(&opened.fields, &opened.rows);
            queries.push(
                json!({ "name": of.name, "sql": of.sql, "ordered": of.ordered, "rows": rows }),
            );
        }
        let tables: Vec<_> = tables
            .iter()
            .zip(&inputs)
            .map(|(of, input)| table(of, input))
            .collect();
        cases.push(json!({ "tables": tables, "queries": queries }));
    }
    ask(&cases);
}

/// The alarm rings: of a value, a null, a row too many and a wrong order.
#[test]
fn a_wrong_result_is_seen() {
    let case = |ordered: bool, rows: Json| {
        let tables = json!([{ "name": "t", "columns": [["x", "BIGINT"], ["y", "VARCHAR"]], "rows": [["1", "a"], ["2", null]] }]);
        let query = json!({ "name": "q", "sql": "SELECT x, y FROM t ORDER BY x", "ordered": ordered, "rows": rows });
        [json!({ "tables": tables, "queries": [query] })]
    };
    let right = json!([["1", "a"], ["2", null]]);
    for ordered in [false, true] {
        for wrong in [
            json!([["1", "a"], ["3", null]]),
            json!([["1", "a"], ["2", "b"]]),
            json!([["1", "a"]]),
            json!([["1", "a"], ["2", null], ["2", null]]),
        ] {
            let Some((agrees, _)) = answer(&case(ordered, wrong)) else {
                return;
            };
            assert!(!agrees);
        }
        assert!(answer(&case(ordered, right.clone())).unwrap().0);
    }
    let turned = json!([["2", null], ["1", "a"]]);
    assert!(answer(&case(false, turned.clone())).unwrap().0);
    assert!(!answer(&case(true, turned)).unwrap().0);
}
