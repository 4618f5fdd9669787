//! What owners say of their tables, looked at on shares: orders that plans rest on, and ranges.

use veil_job::passes::{MoveKind, PassSpec};
use veil_physical::{Opening, PhysicalPlan, TablePort, plan};
use veil_query::{SortedBytes, compile};
use veil_relation::{ColumnId, Kind, Program, Table, Value, clear};

use crate::common::{self, job, range};
use crate::parties::{Opened, all_securities, participants, run, run_with, securities};

/// Visits of 1 to 70 rows in the order of day, ward and cost, with nulls in the tag; padded, or all rows valid.
fn visits(rows: u32, padded: bool, seed: u64) -> (Vec<Table>, Vec<clear::Input>) {
    let mut tables = common::tables(8, rows);
    let mut inputs = common::rows(&tables, seed);
    let by = [1, 3, 2].map(ColumnId);
    let key = |row: &Vec<Value>| by.map(|column| row[column.index()]);
    inputs[1].rows.sort_by_key(key);
    if padded {
        // The padding is behind the rows.
        inputs[1].valid.sort_unstable_by_key(|valid| !valid);
    } else {
        inputs[1].valid.fill(true);
    }
    tables[1].padded = padded;
    tables[1].sorted_by = by.to_vec();
    (tables, inputs)
}

fn planned(tables: &[Table], sql: &str, security: veil_job::Security) -> (Program, PhysicalPlan) {
    let program = compile(&job(tables.to_vec(), sql), &SortedBytes).unwrap();
    let physical = plan(&program, &participants(security)).unwrap();
    (program, physical)
}

/// Why a run ended, without the participant who says it.
fn ended(opened: Opened) -> String {
    let said = opened.unwrap_err();
    said.split_once(": ").unwrap().1.to_owned()
}

fn moves(of: &PhysicalPlan) -> usize {
    let opens = |pass: &&PassSpec| match pass {
        PassSpec::Move { kind, .. } => *kind == MoveKind::Open,
        PassSpec::Compare { positions, .. } => positions.is_some(),
        PassSpec::Rows { .. } | PassSpec::Product { .. } => false,
    };
    of.passes.passes.iter().filter(opens).count()
}

/// What is looked at, by owner.
fn looked_at(of: &PhysicalPlan) -> Vec<(String, String)> {
    let claims = of.opens.iter().filter_map(|opening| match opening {
        Opening::Claims { owner, of, .. } => Some((owner.clone(), of.join("; "))),
        _ => None,
    });
    claims.collect()
}

/// Queries that rest on the order, and whether nothing moves where all rows are valid.
const ORDERED: [(&str, bool); 9] = [
    (
        "SELECT day, ward, cost FROM visits ORDER BY day, ward, cost",
        true,
    ),
    ("SELECT day, ward FROM visits ORDER BY day, ward", true),
    (
        "SELECT day, ward, cost FROM visits ORDER BY day, ward LIMIT 5",
        true,
    ),
    ("SELECT day FROM visits WHERE cost > 10 ORDER BY day", false),
    (
        "SELECT day, ward, cost FROM visits WHERE person < 20 ORDER BY day, ward, cost LIMIT 7",
        false,
    ),
    (
        "SELECT day, count(*) AS n, max(cost) AS most FROM visits GROUP BY day",
        false,
    ),
    (
        "SELECT ward, day, sum(cost) AS cost FROM visits WHERE cost > 0 GROUP BY ward, day",
        false,
    ),
    ("SELECT DISTINCT day, ward FROM visits", false),
    (
        "SELECT day, ward, cost, sum(cost) OVER (PARTITION BY ward, day ORDER BY cost ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running FROM visits WHERE person < 30",
        false,
    ),
];

#[test]
fn an_order_that_an_owner_says_takes_the_place_of_a_sort() {
    for (sql, still) in ORDERED {
        for (rows, padded) in [(1, true), (2, false), (37, true), (64, false)] {
            let (tables, inputs) = visits(rows, padded, 11);
            let mut unsaid = tables.clone();
            unsaid[1].sorted_by.clear();
            for security in securities() {
                let (program, physical) = planned(&tables, sql, security);
                let wanted = clear::evaluate(&program, &inputs).unwrap();
                let found = run(&physical, &program, &inputs).unwrap();
                assert!(found[0] == wanted[0].rows, "{sql}, {rows} rows, {security}");
                let (_, sorted) = planned(&unsaid, sql, security);
                let passes = |of: &PhysicalPlan| of.passes.passes.len();
                assert!(moves(&physical) <= moves(&sorted), "{sql}");
                assert!(rows == 1 || passes(&physical) < passes(&sorted), "{sql}");
                assert!(!still || moves(&physical) == 0, "{sql}");
                let (owner, what) = &looked_at(&physical)[0];
                assert_eq!(owner, "north");
                assert!(
                    what.starts_with("rows of `visits` are sorted by day"),
                    "{what}"
                );
            }
        }
    }
}

/// Orders that serve nothing are not looked at.
#[test]
fn an_order_of_other_rows_is_none() {
    let (tables, inputs) = visits(40, true, 12);
    for sql in [
        "SELECT ward, day FROM visits ORDER BY ward, day",
        "SELECT day FROM visits ORDER BY day DESC",
        "SELECT cost, count(*) AS n FROM visits GROUP BY cost",
        "SELECT d FROM (SELECT day AS d, ward FROM visits UNION ALL SELECT day, ward FROM visits) AS both_of ORDER BY d",
        "SELECT count(*) AS n FROM visits",
    ] {
        for security in all_securities() {
            let (program, physical) = planned(&tables, sql, security);
            let wanted = clear::evaluate(&program, &inputs).unwrap();
            assert!(
                run(&physical, &program, &inputs).unwrap()[0] == wanted[0].rows,
                "{sql}"
            );
            for (_, what) in looked_at(&physical) {
                assert!(!what.contains("sorted"), "{sql}: {what}");
            }
        }
    }
}

/// A key of which no two rows are equal decides alone.
#[test]
fn rows_that_differ_are_in_the_order_of_all_that_follows() {
    let mut tables = common::tables(30, 5);
    let mut inputs = common::rows(&tables, 13);
    inputs[0].valid.sort_unstable_by_key(|valid| !valid);
    tables[0].sorted_by = vec![ColumnId(0), ColumnId(4)];
    let sql = "SELECT id, age, city FROM people ORDER BY id";
    for security in all_securities() {
        let (program, physical) = planned(&tables, sql, security);
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        let opened = run(&physical, &program, &inputs).unwrap();
        assert!(opened[0] == wanted[0].rows);
        assert_eq!(moves(&physical), 0);
        // Rows that are equal in it end the run.
        let mut twice = inputs.clone();
        twice[0].rows[5][0] = twice[0].rows[4][0];
        assert!(twice[0].valid[5]);
        assert_eq!(
            ended(run(&physical, &program, &twice)),
            "what `north` says of its tables (rows of `people` are sorted by id, in which no two are equal; \
             cells of `people` are in the ranges of id, city, age): that is false, and the run is over; nothing else was opened"
        );
    }
}

/// Keys that an owner says to be unique decide an order: no other column is a key of it, and parties look whether they are.
#[test]
fn unique_keys_decide_an_order() {
    let tables = common::tables(30, 40);
    let inputs = common::rows(&tables, 19);
    let twice = {
        let mut inputs = inputs.clone();
        let valid = (0..30).filter(|row| inputs[0].valid[*row]);
        let rows: Vec<usize> = valid.take(2).collect();
        for cell in 0..inputs[0].rows[0].len() {
            inputs[0].rows[rows[1]][cell] = inputs[0].rows[rows[0]][cell];
        }
        inputs[0].rows[rows[0]][4] = Value::Number(7);
        inputs[0].rows[rows[1]][4] = Value::Number(7);
        inputs
    };
    for (sql, line) in [
        (
            "SELECT id, age, city, born FROM people ORDER BY age DESC, id",
            "sort by 2 keys",
        ),
        (
            "SELECT id, age, city, born FROM people ORDER BY age, id LIMIT 1",
            "first 1 rows by 2 keys",
        ),
        (
            "SELECT id, age + 1 AS next FROM people WHERE age < 50 ORDER BY id DESC",
            "sort by 1 keys",
        ),
    ] {
        for security in all_securities() {
            let (program, physical) = planned(&tables, sql, security);
            let lines = format!("{:?}", physical.tree);
            assert!(lines.contains(line), "{lines}");
            let bits = physical.opens.iter();
            let bits = bits.filter(|of| matches!(of, Opening::Duplicates { .. }));
            assert_eq!(bits.count(), 1, "{sql}");
            let wanted = clear::evaluate(&program, &inputs).unwrap();
            let opened = run(&physical, &program, &inputs).unwrap();
            assert!(opened[0] == wanted[0].rows, "{sql}, {security}");
            assert_eq!(
                ended(run(&physical, &program, &twice)),
                "a key of `people` is there once: that is false, and the run is over; nothing else was opened",
                "{sql}"
            );
        }
    }
    // All columns are keys, or a set of them is unique by an operator: there is nothing to look at.
    for sql in [
        "SELECT id, age FROM people ORDER BY age, id",
        "SELECT age, count(*) AS n FROM people GROUP BY age ORDER BY age",
    ] {
        let (_, physical) = planned(&tables, sql, securities()[0]);
        let bit = |of: &Opening| matches!(of, Opening::Duplicates { .. });
        assert!(!physical.opens.iter().any(bit), "{sql}");
    }
}

/// A join that rests on keys that are there once has that from the order, if it says so.
#[test]
fn an_order_says_that_keys_are_there_once() {
    let mut tables = common::tables(30, 40);
    let mut inputs = common::rows(&tables, 18);
    inputs[0].valid.sort_unstable_by_key(|valid| !valid);
    tables[0].sorted_by = vec![ColumnId(0)];
    for sql in [
        "SELECT v.cost, p.age FROM visits v JOIN people p ON v.person = p.id WHERE p.age > 20",
        "SELECT v.cost, p.age FROM people p JOIN visits v ON v.person = p.id AND v.day > p.born",
        "SELECT p.id, v.cost FROM people p LEFT JOIN visits v ON v.person = p.id",
    ] {
        for security in all_securities() {
            let (program, physical) = planned(&tables, sql, security);
            let duplicates = |of: &Opening| matches!(of, Opening::Duplicates { .. });
            assert!(!physical.opens.iter().any(duplicates), "{sql}");
            let wanted = clear::evaluate(&program, &inputs).unwrap();
            let opened = run(&physical, &program, &inputs).unwrap();
            assert!(opened[0] == wanted[0].rows, "{sql}, {security}");
            let mut twice = inputs.clone();
            twice[0].rows[5][0] = twice[0].rows[4][0];
            let said = ended(run(&physical, &program, &twice));
            assert!(
                said.contains("rows of `people` are sorted by id, in which no two are equal"),
                "{said}"
            );
        }
    }
}

/// An order that is false ends the run before anything else is opened, by one bit, whose words name table and owner.
#[test]
fn an_order_that_is_false_ends_the_run() {
    let sql = "SELECT day, ward, cost FROM visits ORDER BY day, ward, cost";
    let said = "what `north` says of its tables (rows of `visits` are sorted by day, ward, cost; cells of `visits` are in the ranges of \
                day, cost): that is false, and the run is over; nothing else was opened";
    for padded in [true, false] {
        let (tables, inputs) = visits(40, padded, 14);
        for security in all_securities() {
            let (program, physical) = planned(&tables, sql, security);
            assert!(run(&physical, &program, &inputs).is_ok());
            let claim = physical
                .passes
                .passes
                .iter()
                .position(|pass| matches!(pass, PassSpec::Rows { claim: Some(_), .. }));
            let opens = physical.passes.passes.iter().position(|pass| match pass {
                PassSpec::Compare { .. } => true,
                PassSpec::Product { .. } => false,
                PassSpec::Move { kind, .. } => *kind == MoveKind::Open,
                PassSpec::Rows { job, .. } => job
                    .audiences
                    .iter()
                    .any(|of| *of != veil_job::Audience::Column),
            });
            assert_eq!(claim, opens, "the first that is opened");
            let last = inputs[1].valid.iter().filter(|valid| **valid).count() - 1;
            for (row, other) in [(0, last), (3, 30), (last - 1, 0)] {
                let mut inputs = inputs.clone();
                inputs[1].rows.swap(row, other);
                assert_eq!(ended(run(&physical, &program, &inputs)), said);
            }
            if padded {
                let mut inputs = inputs.clone();
                inputs[1].valid[4] = false;
                assert_eq!(ended(run(&physical, &program, &inputs)), said);
            }
        }
    }
}

/// Values beyond a range that fit its bits end the run, at the least of them and the largest; and not in the padding.
#[test]
fn cells_beyond_their_ranges_end_the_run() {
    let tables = common::tables(20, 10);
    let mut inputs = common::rows(&tables, 15);
    inputs[0].valid[7] = true;
    inputs[0].valid[8] = false;
    // 1001 ids, 5 cities, 100 ages; nulls are zero.
    for (column, values) in [(0, 1001), (1, 5), (4, 100)] {
        let sql = "SELECT count(*) AS n FROM people WHERE id > 3 AND city <> 'rome' AND age < 90";
        for security in all_securities() {
            let (program, physical) = planned(&tables, sql, security);
            let of = |row: usize, to: u128| {
                run_with(&physical, &program, &inputs, |table, at, port, value| {
                    let here = table == "people" && at == row;
                    match port {
                        TablePort::Bits(of) if here && of == ColumnId(column) => to,
                        TablePort::Null(of) if here && of == ColumnId(column) => 0,
                        _ => value,
                    }
                })
            };
            assert!(of(7, values - 1).is_ok());
            assert!(of(8, values).is_ok(), "padding counts nowhere");
            let most = values.next_power_of_two() - 1;
            for beyond in [values, most] {
                assert_eq!(
                    ended(of(7, beyond)),
                    "what `north` says of its tables (cells of `people` are in the ranges of id, city, age): that is false, and the run \
                     is over; nothing else was opened"
                );
            }
        }
    }
}

/// An owner has one bit for all its tables, and another owner one of its own; ranges that are all their bits have none.
#[test]
fn an_owner_has_one_bit() {
    let mut tables = common::tables(20, 10);
    let sql = "SELECT v.cost, p.age FROM visits v JOIN people p ON v.person = p.id WHERE v.day > date '2020-01-05'";
    let mut inputs = common::rows(&tables, 16);
    inputs[0].valid[3] = true;
    inputs[1].valid[3] = true;
    for south in [false, true] {
        if south {
            tables[0].origin = veil_relation::Origin::Owner("south".into());
        }
        for security in all_securities() {
            let (program, physical) = planned(&tables, sql, security);
            assert_eq!(looked_at(&physical).len(), 1 + usize::from(south));
            let beyond = |of: &'static str, column, to| {
                run_with(
                    &physical,
                    &program,
                    &inputs,
                    move |table, at, port, value| match port {
                        TablePort::Bits(ColumnId(of_port))
                            if (table, at, of_port) == (of, 3, column) =>
                        {
                            to
                        }
                        _ => value,
                    },
                )
            };
            let wrong = ended(beyond("people", 0, 1023));
            let owner = if south { "south" } else { "north" };
            assert!(
                wrong.starts_with(&format!("what `{owner}` says of its tables (")),
                "{wrong}"
            );
            assert!(
                wrong.contains("cells of `people` are in the ranges of id"),
                "{wrong}"
            );
            let wrong = ended(beyond("visits", 1, 63));
            assert!(
                wrong.starts_with("what `north` says of its tables ("),
                "{wrong}"
            );
        }
    }
    for table in &mut tables {
        for column in &mut table.columns {
            if matches!(column.ty.kind, Kind::Integer(_)) {
                column.ty.kind = Kind::Integer(range(-512, 511));
            }
        }
    }
    let whole = "SELECT person, count(*) AS n FROM visits WHERE ward = 'a' GROUP BY person";
    for security in all_securities() {
        assert_eq!(looked_at(&planned(&tables, whole, security).1), []);
    }
}
