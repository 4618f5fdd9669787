//! Queries that read each other's columns several times, again and again, as turns of a loop do: what is computed first, so that nothing doubles.

use std::fmt::Write as _;

use veil_job::passes::PassSpec;
use veil_physical::plan;
use veil_query::{Job, Query, SortedBytes, compile};
use veil_relation::Program;

use crate::common::{self, query};
use crate::parties::{opens_what_it_means, participants, securities};

/// A turn reads its number five times.
const TURN: &str = "least(greatest(CASE WHEN x > 50 THEN x - 50 WHEN x > 20 THEN x + 7 ELSE x * 2 + 1 END, 0), 100)";

fn program(rows: u32, turns: usize, last: &str) -> Program {
    let inner = |name: String, sql: String| Query {
        name,
        to: None,
        ..query(&sql)
    };
    let mut queries = vec![inner(
        "t0".into(),
        "SELECT id, city, born, active, income / nullif(income, 0) AS part, age AS x FROM people WHERE age > 3".into(),
    )];
    for turn in 1..=turns {
        let mut sql = String::from("SELECT id, city, born, active, part, ");
        let _ = write!(sql, "{TURN} AS x FROM t{}", turn - 1);
        queries.push(inner(format!("t{turn}"), sql));
    }
    queries.push(query(&last.replace("LAST", &format!("t{turns}"))));
    let job = Job {
        tables: common::tables(rows, 4),
        queries,
        bounds: vec![],
        models: vec![],
        functions: vec![],
    };
    compile(&job, &SortedBytes).unwrap()
}

const LAST: [&str; 3] = [
    "SELECT id, city, born, x, round(part, 2) AS part FROM LAST WHERE active OR x > 30 ORDER BY id",
    "SELECT city, count(*) AS n, sum(x) AS s, max(x) AS m FROM LAST WHERE x < 90 GROUP BY city ORDER BY city",
    "SELECT count(*) AS n, sum(l.x) AS s FROM LAST l JOIN visits v ON v.person = l.id",
];

#[test]
fn turns_compute_what_they_mean() {
    for (turns, last) in [
        (0, LAST[0]),
        (1, LAST[0]),
        (9, LAST[0]),
        (9, LAST[1]),
        (6, LAST[2]),
    ] {
        let program = program(11, turns, last);
        let inputs = common::rows(&program.tables, turns as u64 + 3);
        for security in securities() {
            let what = format!("{turns} turns, {last}");
            opens_what_it_means((&program, &inputs), security, &what);
        }
    }
}

/// Work grows with turns, and not with powers of them.
#[test]
fn turns_cost_what_each_costs() {
    let products = |turns| {
        let program = program(40, turns, LAST[0]);
        let planned = plan(&program, &participants(securities()[0])).unwrap();
        let passes = planned.passes.passes.iter();
        let of = passes.map(|pass| match pass {
            PassSpec::Rows { job, .. } => job.circuit.stats().total_muls() * job.rows(),
            _ => 0,
        });
        of.sum::<u64>()
    };
    let (few, many) = (products(10), products(40));
    assert!(few < many && many < 6 * few, "{few} and {many}");
}
