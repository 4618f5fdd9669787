//! Sums over all rows: among parties of whom one may be malicious the bits of many rows are added up before they are lifted.

use veil_job::Adversary;
use veil_job::passes::PassSpec;
use veil_physical::{PhysicalPlan, plan};
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_query::{SortedBytes, compile};

use crate::common::{self, job};
use crate::parties::{opens_what_it_means, participants, securities};

const SUMS: [&str; 6] = [
    // Numbers of both signs, nulls, and rows that a condition leaves out.
    "SELECT sum(income) AS s, sum(age) AS a, count(age) AS n, count(*) AS r, avg(income) AS m FROM people WHERE active OR age < 50",
    // One sum for each of six groups, one of them of nulls.
    "SELECT city, sum(income) AS s, count(*) AS n, avg(age) AS a FROM people GROUP BY city ORDER BY city",
    // Products, and what is taken in some rows alone.
    "SELECT sum(income * age) AS p, sum(income * (1 - age)) FILTER (WHERE active) AS q FROM people",
    // Squares, and truths.
    "SELECT round(var_samp(age), 3) AS v, bool_or(active) AS o, bool_and(active) AS a FROM people",
    // Categories beside a condition over days.
    "SELECT ward, sum(cost) AS s, sum(cost * cost) AS c FROM visits WHERE day < DATE '2020-02-01' GROUP BY ward ORDER BY ward",
    // All rows, whatever is in them.
    "SELECT sum(person) AS p, sum(7) AS s, count(*) AS n FROM visits",
];

/// Rows that eight or sixty-four divide, and one less and one more; fewer than are added up so.
#[test]
fn sums_of_bits_are_those_in_the_clear() {
    for (rows, seed) in [(255, 1), (256, 2), (257, 3), (511, 4), (2049, 5)] {
        let tables = common::tables(rows, rows + 6);
        let inputs = common::rows(&tables, seed);
        for sql in SUMS {
            let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
            for security in securities() {
                opens_what_it_means(
                    (&program, &inputs),
                    security,
                    &format!("{sql}: {rows} rows"),
                );
            }
        }
    }
}

/// Bits that a plan lifts, in all rows together.
fn lifts(plan: &PhysicalPlan) -> u64 {
    let passes = plan.passes.passes.iter();
    let of = passes.map(|pass| match pass {
        PassSpec::Rows { job, .. } => {
            let rows: u64 = job.blocks.iter().map(|block| block.rows).sum();
            job.circuit.stats().lifts * rows
        }
        _ => 0,
    });
    of.sum()
}

/// Sums of a row take the lift of a bit or two, however many groups and bits they have, where owners could supply one number as bits and another as an
/// integer.
#[test]
fn few_bits_are_lifted() {
    let tables = common::tables(20_000, 20_000);
    for sql in SUMS {
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        for security in securities() {
            let lifts = lifts(&plan(&program, &participants(security)).unwrap());
            let malicious = security.adversary == Adversary::Malicious;
            assert!(!malicious || lifts < 2 * 20_000, "{sql}: {lifts}");
        }
    }
}

/// Sums of many groups, of which fewer rows become one, are those in the clear, and are planned in a time that keeps no participant waiting.
#[test]
fn sums_of_many_groups() {
    let texts: Vec<String> = (0..170).map(|at| format!("v{at:03}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let tables = |rows| {
        let mut tables = common::tables(rows, 10);
        tables[0].columns[1].ty = veil_relation::Type::of(common::category(&texts));
        tables
    };
    let [_, four] = securities();
    for sql in [
        "SELECT city, sum(age) AS a, count(*) AS n FROM people GROUP BY city ORDER BY city",
        "SELECT city, sum(income * age) AS a, count(*) AS n FROM people GROUP BY city ORDER BY city",
    ] {
        let program = compile(&job(tables(20_000), sql), &SortedBytes).unwrap();
        let began = std::time::Instant::now();
        let physical = plan(&program, &participants(four)).unwrap();
        PassProgram::new(&physical.passes, Options::default()).unwrap();
        let took = began.elapsed();
        assert!(took.as_secs_f64() < 5.0, "{sql}: {took:?}");

        let tables = tables(600);
        let inputs = common::rows(&tables, 12);
        let program = compile(&job(tables, sql), &SortedBytes).unwrap();
        opens_what_it_means((&program, &inputs), four, sql);
    }
}
