//! Each rule gives a program with the same results, on all queries of the oracle and random rows.

use veil_query::{SortedBytes, bind, rules};
use veil_relation::{Plan, Program, clear};

use crate::common::{job, listed, rows, tables, texts};

type Rule = (&'static str, fn(&mut Program));

const RULES: [Rule; 6] = [
    ("inline", |program| rules::inline(program)),
    ("fold", |program| rules::fold(program).unwrap()),
    ("push", |program| rules::push(program).unwrap()),
    ("fold again", |program| rules::fold(program).unwrap()),
    ("prune", |program| rules::prune(program).unwrap()),
    ("domains", |program| rules::domains(program).unwrap()),
];

/// The names of columns, then the rows.
fn results(program: &Program, inputs: &[clear::Input]) -> Vec<Vec<Option<String>>> {
    let opened = clear::evaluate(program, inputs).unwrap().remove(0);
    let names = opened
        .fields
        .iter()
        .map(|field| Some(field.name.clone()))
        .collect();
    let mut all = vec![names];
    all.extend(texts(&opened.fields, &opened.rows));
    all
}

#[test]
fn rules_keep_results() {
    for (people, visits, seed) in [(0, 0, 1), (2, 3, 11), (40, 90, 12)] {
        let tables = tables(people, visits);
        let inputs = rows(&tables, seed);
        for of in listed() {
            let bound = bind(&job(tables.clone(), &of.sql), &SortedBytes).unwrap();
            let expected = results(&bound, &inputs);
            // Alone, and one after the other.
            let mut all = bound.clone();
            for (rule, apply) in RULES {
                let mut alone = bound.clone();
                apply(&mut alone);
                apply(&mut all);
                assert_eq!(
                    results(&alone, &inputs),
                    expected,
                    "{rule} alone: {}\n{bound}\n{alone}",
                    of.name
                );
                assert_eq!(
                    results(&all, &inputs),
                    expected,
                    "up to {rule}: {}\n{bound}\n{all}",
                    of.name
                );
                let again = all.clone();
                apply(&mut all);
                assert_eq!(all, again, "{rule} twice: {}", of.name);
                // What is rewritten is written and read as any program.
                assert_eq!(Program::read(&all.to_string()).unwrap(), all);
            }
        }
    }
}

#[test]
fn what_nothing_reads_is_not_shared() {
    fn each(plan: &Plan, into: &mut Vec<(String, Vec<u32>)>) {
        if let Plan::Scan { table, columns } = plan {
            into.push((table.clone(), columns.iter().map(|id| id.0).collect()));
        }
        for input in plan.inputs() {
            each(input, into);
        }
    }
    let tables = tables(10, 10);
    let sql = "WITH t AS (SELECT * FROM people) SELECT count(*) AS n FROM visits v JOIN t ON v.person = t.id WHERE t.active AND v.cost > 3";
    let program = veil_query::compile(&job(tables, sql), &SortedBytes).unwrap();
    let mut scans = Vec::new();
    each(&program.steps[0].plan, &mut scans);
    assert_eq!(
        scans,
        [
            ("visits".to_owned(), vec![0, 2]),
            ("people".to_owned(), vec![0, 5])
        ]
    );
}
