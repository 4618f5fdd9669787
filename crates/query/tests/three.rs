//! Queries among three parties of whom one may be malicious: passes of words alone give what the query means.

use veil_job::passes::{ColumnForm, MoveKind, PassSpec};
use veil_job::{Adversary, Security};
use veil_math::Ring;
use veil_physical::{Node, PhysicalError, PhysicalPlan, plan};
use veil_protocol::Options;
use veil_protocol::passes::{ColumnKind, PassProgram};
use veil_query::{Bound, SortedBytes, compile};
use veil_relation::{Family, Overflow, Program, clear};

use crate::common::{self, job, listed};
use crate::models::{FEATURES, fitted, model};
use crate::parties::{Opened, participants, run};
use crate::tpch;

pub(crate) fn security() -> Security {
    Security::among(3).against(Adversary::Malicious)
}

/// The plan of a program for three parties of whom one may be malicious.
fn planned(program: &Program) -> Result<PhysicalPlan, PhysicalError> {
    plan(program, &participants(security()))
}

/// What parties open of the tables.
fn opened(program: &Program, inputs: &[clear::Input]) -> Opened {
    run(&planned(program).unwrap(), program, inputs)
}

/// That a node is of passes that there are.
fn within(node: &Node, all: usize) {
    assert!(
        node.passes
            .iter()
            .all(|of| of.start < of.end && of.end <= all)
    );
    node.inputs.iter().for_each(|input| within(input, all));
}

/// That no pass has an integer, and nothing is moved by what is made of some.
fn is_of_bits(physical: &PhysicalPlan) {
    for pass in &physical.passes.passes {
        match pass {
            PassSpec::Rows { job, .. } | PassSpec::Compare { job, .. } => {
                assert_eq!(job.circuit.ring, Ring::Bits);
            }
            PassSpec::Move { kind, takes, .. } => {
                assert!(!matches!(kind, MoveKind::Open | MoveKind::Rank));
                let words = |form: &ColumnForm| matches!(form, ColumnForm::Words(_));
                assert!(takes.iter().all(|(_, form)| words(form)));
            }
            PassSpec::Product { .. } => panic!("a product of matrices"),
        }
    }
    let planned = PassProgram::new(&physical.passes, Options::default());
    for column in planned.unwrap().columns() {
        let words = matches!(column.form, ColumnForm::Words(_));
        assert!(words || column.kind != ColumnKind::Shared, "{column:?}");
    }
    let all = physical.passes.passes.len();
    physical.tree.iter().for_each(|node| within(node, all));
}

/// Rows of both tables: one, none to add up, and several passes of sums.
const ROWS: [(u32, u32); 6] = [(12, 16), (1, 1), (2, 3), (3, 2), (5, 9), (17, 40)];

/// All queries that the oracle is asked, against their meaning.
#[test]
fn passes_of_words_give_what_queries_mean() {
    let mut wrong = Vec::new();
    for (number, query) in listed().into_iter().enumerate() {
        let (people, visits) = ROWS[number % ROWS.len()];
        let tables = common::tables(people, visits);
        let inputs = common::rows(&tables, 3 + number as u64);
        let program = compile(&job(tables, &query.sql), &SortedBytes).unwrap();
        let Ok(wanted) = clear::evaluate(&program, &inputs) else {
            continue;
        };
        let physical = match planned(&program) {
            Ok(physical) => physical,
            Err(error) => {
                wrong.push(format!("{}: {error}", query.name));
                continue;
            }
        };
        is_of_bits(&physical);
        let found = match run(&physical, &program, &inputs) {
            Ok(found) => found,
            Err(error) => {
                wrong.push(format!("{}: {error}", query.name));
                continue;
            }
        };
        for (found, wanted) in found.iter().zip(&wanted) {
            if *found != wanted.rows {
                let wanted = &wanted.rows;
                wrong.push(format!("{}: {found:?} for {wanted:?}", query.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Sums, running sums, groups and windows over more rows than one pass adds up.
const MANY: [&str; 6] = [
    "SELECT sum(income) AS s, count(age) AS n, avg(income) AS m, max(age) AS o FROM people WHERE active OR age < 50",
    "SELECT city, sum(income) AS s, count(*) AS n, min(age) AS a FROM people GROUP BY city ORDER BY city",
    "SELECT age, sum(income) AS s, count(*) AS n FROM people GROUP BY age",
    "SELECT p.id, count(*) AS n, sum(v.cost) AS c FROM people p JOIN visits v ON v.person = p.id GROUP BY p.id",
    "SELECT id, sum(income) OVER (PARTITION BY city ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s, row_number() OVER (PARTITION BY city ORDER BY age, id) AS n FROM people",
    "SELECT round(var_samp(age), 3) AS v, bool_or(active) AS o FROM people",
];

#[test]
fn many_rows_are_added_up() {
    for (people, visits, seed) in [(257, 300, 1), (64, 63, 2), (33, 17, 3)] {
        let tables = common::tables(people, visits);
        let inputs = common::rows(&tables, seed);
        for sql in MANY {
            let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
            let wanted = clear::evaluate(&program, &inputs).unwrap();
            let found = opened(&program, &inputs).unwrap();
            assert!(found[0] == wanted[0].rows, "{sql}: {people} rows");
        }
    }
}

/// Questions that take parties a second each, at most.
const SHORT: [&str; 5] = ["q06", "q13", "q14", "q16", "q22"];

#[test]
fn questions_of_tpch_are_answered() {
    answer_questions(|name| SHORT.contains(&name));
}

#[test]
#[ignore = "tier long: a minute of two processors"]
fn long_questions_of_tpch_are_answered() {
    answer_questions(|name| !SHORT.contains(&name));
}

fn answer_questions(asked: impl Fn(&str) -> bool) {
    let (tables, inputs) = tpch::tables();
    for (name, sql) in tpch::QUERIES.into_iter().filter(|(name, _)| asked(name)) {
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        let physical = planned(&program).unwrap_or_else(|error| panic!("{name}: {error}"));
        is_of_bits(&physical);
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        let found = run(&physical, &program, &inputs).unwrap();
        assert!(found[0] == wanted[0].rows, "{name}");
    }
}

/// Bounds that rows fit, and that they do not: the parties find a claim false, and open nothing.
#[test]
fn bounds_and_claims_are_kept() {
    let tables = common::tables(20, 30);
    let mut inputs = common::rows(&tables, 8);
    let sql = "WITH both AS (SELECT a.person, a.cost, b.cost AS other FROM visits a JOIN visits b ON a.ward = b.ward) SELECT person, cost, other FROM both";
    let bounded = |rows| {
        let mut job = job(tables.clone(), sql);
        job.bounds = vec![Bound {
            of: "both".into(),
            rows,
            overflow: Overflow::Refuse,
        }];
        compile(&job, &SortedBytes).unwrap()
    };
    let all = clear::evaluate(&bounded(1000), &inputs).unwrap()[0]
        .rows
        .len() as u32;
    assert!(all > 30);
    for rows in [all - 1, all, all + 7] {
        let program = bounded(rows);
        match (
            clear::evaluate(&program, &inputs),
            opened(&program, &inputs),
        ) {
            (Ok(wanted), Ok(found)) => assert!(rows >= all && found[0] == wanted[0].rows),
            (Err(_), Err(said)) => assert!(rows < all && said.contains("that is false"), "{said}"),
            (wanted, found) => panic!("{rows} rows of {all}: {found:?} for {wanted:?}"),
        }
    }
    let sql = "SELECT v.cost, p.age FROM visits v JOIN people p ON v.person = p.id";
    let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
    opened(&program, &inputs).unwrap();
    inputs[0].rows[7][0] = inputs[0].rows[3][0];
    inputs[0].valid[3] = true;
    inputs[0].valid[7] = true;
    let said = opened(&program, &inputs).unwrap_err();
    assert!(
        said.contains("a key of `people` is there once: that is false"),
        "{said}"
    );
}

/// The bits of ports with this name that leave columns of one row.
fn bits_of_sums(physical: &PhysicalPlan) -> Vec<usize> {
    let passes = physical.passes.passes.iter();
    let of = passes.filter_map(|pass| match pass {
        PassSpec::Rows { job, .. } if job.rows() == 1 => {
            let output = &job.circuit.outputs[0];
            (output.name == "sum").then_some(output.wires.len())
        }
        _ => None,
    });
    of.collect()
}

/// A number of rows has the bits of the number of all rows, a sum those of the largest one.
#[test]
fn words_have_the_bits_that_they_need() {
    let tables = common::tables(1000, 1000);
    let planned = |sql: &str| {
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        planned(&program).unwrap()
    };
    let count = planned("SELECT count(*) AS n FROM people WHERE active");
    assert_eq!(bits_of_sums(&count), [10]);
    // Of a thousand ages of seven bits.
    let sum = planned("SELECT sum(age) AS s FROM people");
    assert!(
        bits_of_sums(&sum).iter().all(|bits| *bits <= 17),
        "{:?}",
        bits_of_sums(&sum)
    );
    let groups = planned("SELECT age, count(*) AS n FROM people GROUP BY age");
    is_of_bits(&groups);
    let wide = PassProgram::new(&groups.passes, Options::default()).unwrap();
    let shared = wide
        .columns()
        .iter()
        .filter(|of| of.kind == ColumnKind::Shared);
    let bytes: Vec<u64> = shared.map(|of| of.form.bytes()).collect();
    // Ages with the number of the row below them are the widest: no number of rows is as wide.
    assert!(bytes.iter().all(|bytes| *bytes <= 4), "{bytes:?}");
    assert!(
        bytes.iter().filter(|bytes| **bytes == 4).count() <= 2,
        "{bytes:?}"
    );
}

/// What is fitted by products of matrices is refused, in words that say what to do instead.
#[test]
fn matrices_are_refused() {
    let tables = common::tables(40, 70);
    let sql = format!("{FEATURES}active AS y FROM people");
    let program = fitted(&tables, &sql, model(Family::Logistic, 2)).unwrap();
    let error = planned(&program).unwrap_err();
    assert_eq!(
        error.to_string(),
        "three parties of whom one may be malicious compute queries in bits alone, and do not multiply matrices in bits; name a fourth party, or write `adversary = \"semi-honest\"`"
    );
    assert!(matches!(error, PhysicalError::NotInBits { .. }));
}
