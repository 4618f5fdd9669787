//! Queries between two parties: one circuit of bits gives what the query means, and nothing where a claim is false.

use std::sync::Arc;

use veil_job::passes::PassSpec;
use veil_job::{Adversary, Audience, JobSpec, ProtocolKind, Security};
use veil_math::Ring;
use veil_physical::{
    MOST_GATES, Opening, PhysicalError, PhysicalPlan, ResultPorts, TablePort, TablePorts, Wires,
    plan,
};
use veil_query::{Bound, SortedBytes, compile};
use veil_relation::{ColumnId, Overflow, Program, Value, clear};
use veil_testkit::{Seen, Values};

use crate::common::{self, job, listed};
use crate::parties::{participants, run, run_with_flags};
use crate::tpch;

pub(crate) fn securities() -> [Security; 2] {
    let two = Security::of(ProtocolKind::Yao);
    [two, two.against(Adversary::Malicious)]
}

/// The one pass of a plan, and how it was made.
fn pass(physical: &PhysicalPlan) -> (&Arc<JobSpec>, &Wires) {
    let [PassSpec::Rows { job, .. }] = &physical.passes.passes[..] else {
        panic!("two parties have one pass");
    };
    (job, physical.wires.as_ref().unwrap())
}

/// The ports of a table that a port is one of, and which.
fn owned(tables: &[TablePorts], port: usize) -> (&TablePorts, TablePort) {
    let found = tables.iter().find_map(|of| {
        let own = of.ports.get(port.checked_sub(of.first)?)?;
        Some((of, *own))
    });
    found.unwrap()
}

/// What owners supply.
pub(crate) fn supplied(
    physical: &PhysicalPlan,
    program: &Program,
    inputs: &[clear::Input],
    other: impl Fn(&str, usize, TablePort, u128) -> u128,
) -> Values {
    let (job, _) = pass(physical);
    Values::new(job, |_, _, port, wire| {
        let (of, own) = owned(&physical.tables, port);
        let (table, input) = (&program.tables[of.table], &inputs[of.table]);
        let bits = job.circuit.inputs[port].width as usize / table.capacity as usize;
        let row = wire / bits;
        let value = own.value(table, input.valid[row], &input.rows[row]);
        other(&table.name, row, own, value) >> (wire % bits) & 1
    })
}

/// The bits of each port of a result in each of its rows.
pub(crate) fn opened(of: &ResultPorts, bits: impl Fn(usize) -> Vec<u128>) -> Vec<Vec<Vec<u128>>> {
    let ports = of.first..of.first + of.ports.len();
    ports
        .map(|port| {
            let bits = bits(port);
            let width = bits.len() / of.rows as usize;
            bits.chunks(width).map(<[u128]>::to_vec).collect()
        })
        .collect()
}

/// What a recipient has seen of a port.
pub(crate) fn seen(seen: &Seen, port: usize) -> Vec<u128> {
    seen.rows(Ring::Bits, port).unwrap().swap_remove(0)
}

/// Rows of a result, and whether a bound has left out some.
type Result = (Vec<Vec<Value>>, Option<bool>);

/// The results, by the circuit in the clear; the words of the claim that the parties learn is false, and that each result is zero then.
fn evaluated(
    physical: &PhysicalPlan,
    program: &Program,
    inputs: &[clear::Input],
) -> std::result::Result<Vec<Result>, String> {
    let (job, wires) = pass(physical);
    let values = supplied(physical, program, inputs, |_, _, _, value| value);
    let found = values.expected(job);
    let is = |port: usize, bit: u128| found[port] == [[bit]];
    let claims = job.audiences.iter().enumerate();
    let claims = claims.filter(|(_, to)| **to == Audience::Parties);
    let broken: Vec<usize> = claims
        .map(|(port, _)| port)
        .filter(|port| is(*port, 1))
        .collect();
    let told = wires
        .ended
        .iter()
        .all(|(_, port)| is(*port, (!broken.is_empty()).into()));
    assert!(told, "recipients learn whether there is a result");
    if let [first] = broken[..] {
        for of in &physical.results {
            let ports = of.first..of.first + of.ports.len();
            let hidden = found[ports].iter().flatten().flatten().all(|bit| *bit == 0);
            assert!(hidden, "a false claim hides every result");
        }
        return Err(job.opened[first].clone());
    }
    assert!(broken.is_empty(), "the parties learn of one false claim");
    let result = |of: &ResultPorts| {
        let ports = opened(of, |port| found[port][0].clone());
        let value = |bits: &Vec<u128>| bits.iter().zip(0..).map(|(bit, at)| bit << at).sum();
        let row =
            |row: usize| -> Vec<u128> { ports.iter().map(|port| value(&port[row])).collect() };
        let rows = (0..of.rows as usize).filter_map(|at| of.cells(&row(at)));
        let mut rows: Vec<Vec<Value>> = rows.collect();
        if of.order.is_some() {
            // Places say nothing: rows come in the order of their bits.
            rows.sort_unstable();
        }
        (rows, of.incomplete(&row(0)))
    };
    Ok(physical.results.iter().map(result).collect())
}

fn ands(physical: &PhysicalPlan) -> u64 {
    let (job, wires) = pass(physical);
    let all = wires.ands.iter().sum();
    assert_eq!(job.circuit.stats().total_muls(), all);
    all
}

/// All queries that the oracle is asked, against their meaning.
#[test]
fn one_circuit_gives_what_queries_mean() {
    let tables = common::tables(12, 16);
    let mut wrong = Vec::new();
    for (number, query) in listed().into_iter().enumerate() {
        let inputs = common::rows(&tables, 3 + number as u64);
        let program = compile(&job(tables.clone(), &query.sql), &SortedBytes).unwrap();
        let Ok(wanted) = clear::evaluate(&program, &inputs) else {
            continue;
        };
        let physical = match plan(&program, &participants(securities()[0])) {
            Ok(physical) => physical,
            Err(error) => {
                wrong.push(format!("{}: {error}", query.name));
                continue;
            }
        };
        println!("{}: {} ANDs", query.name, ands(&physical));
        let found = evaluated(&physical, &program, &inputs);
        let wanted: Vec<_> = wanted.iter().map(|of| &of.rows).collect();
        match found {
            Ok(found) => {
                for ((found, _), wanted) in found.iter().zip(wanted) {
                    if found != wanted {
                        wrong.push(format!("{}: {found:?} for {wanted:?}", query.name));
                    }
                }
            }
            Err(claim) => wrong.push(format!("{}: {claim}", query.name)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Queries that two parties run in tests, semi-honest and malicious: each operator once.
const RUN: [&str; 12] = [
    "conditional_sum",
    "distinct",
    "order_nulls",
    "limit",
    "union",
    "join",
    "left_join_filtered",
    "in_subquery",
    "rank_in_partitions",
    "running",
    "order_by_aggregate",
    "grouping_sets",
];

#[test]
fn two_parties_open_what_queries_mean() {
    let tables = common::tables(7, 9);
    let inputs = common::rows(&tables, 11);
    let mut ran = 0;
    for query in listed() {
        if !RUN.contains(&query.name.as_str()) {
            continue;
        }
        let program = compile(&job(tables.clone(), &query.sql), &SortedBytes).unwrap();
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        for security in securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            let found = run(&physical, &program, &inputs).unwrap();
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!(
                    *found == wanted.rows,
                    "{} ({security}): {found:?} for {:?}",
                    query.name,
                    wanted.rows
                );
            }
            ran += 1;
        }
    }
    assert_eq!(ran, 2 * RUN.len());
}

/// A key that is there twice, where the query rests on it that it is not: no result, in the circuit and in a run.
#[test]
fn a_false_claim_hides_all_results() {
    let tables = common::tables(8, 9);
    let sql = "SELECT v.cost, p.age FROM visits v JOIN people p ON v.person = p.id";
    let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
    let words = "a key of `people` is there once";
    for twice in [false, true] {
        let mut inputs = common::rows(&tables, 5);
        if twice {
            inputs[0].rows[7][0] = inputs[0].rows[3][0];
            (inputs[0].valid[3], inputs[0].valid[7]) = (true, true);
        }
        for security in securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            let listed = |of: fn(&Opening) -> bool| physical.opens.iter().any(of);
            assert!(listed(|of| matches!(of, Opening::Duplicates { .. })));
            assert!(listed(
                |of| matches!(of, Opening::Ended { to } if to == "r")
            ));
            assert!(!listed(|of| matches!(of, Opening::Permutations { .. })));
            let found = evaluated(&physical, &program, &inputs);
            assert_eq!(found.err(), twice.then(|| words.to_owned()));
            let ran = run(&physical, &program, &inputs).map(|_| ()).err();
            assert_eq!(ran.is_some(), twice, "{security}");
            if let Some(said) = ran {
                let ends = format!("{words}: that is false, and the run is over");
                assert!(said.contains(&ends), "{said}");
            }
        }
    }
}

/// Several claims of which some are false: the parties learn of the first that is, as if the passes came one after the other.
#[test]
fn parties_learn_of_the_first_false_claim() {
    let tables = common::tables(8, 9);
    let sql = "WITH some AS (SELECT id, age FROM people WHERE age >= 0) SELECT s.age, v.cost FROM visits v JOIN some s ON v.person = s.id";
    for (rows, twice) in [(8, false), (1, false), (8, true), (1, true)] {
        let mut job = job(tables.clone(), sql);
        job.bounds = vec![Bound {
            of: "some".into(),
            rows,
            overflow: Overflow::Refuse,
        }];
        let program = compile(&job, &SortedBytes).unwrap();
        let mut inputs = common::rows(&tables, 5);
        for row in 0..8 {
            inputs[0].valid[row] = true;
            inputs[0].rows[row][4] = Value::Number(row as i128);
        }
        if twice {
            inputs[0].rows[7][0] = inputs[0].rows[3][0];
        }
        let physical = plan(&program, &participants(securities()[0])).unwrap();
        let found = evaluated(&physical, &program, &inputs).map(|_| ());
        let beyond = "`people` has at most 1 row";
        match (rows, found) {
            (1, Err(said)) => assert!(said.contains(beyond), "{said}"),
            (8, Err(said)) => assert!(twice && said.contains("is there once"), "{said}"),
            (8, Ok(())) => assert!(!twice),
            (rows, found) => panic!("{rows} rows: {found:?}"),
        }
    }
}

/// Bounds that flag say in a bit of the result what is missing.
#[test]
fn bounds_flag_and_drop_rows() {
    let tables = common::tables(12, 9);
    let inputs = common::rows(&tables, 4);
    let sql = "WITH some AS (SELECT id, age FROM people WHERE age > 20) SELECT id, age FROM some ORDER BY id";
    for overflow in [Overflow::Drop, Overflow::Flag] {
        for rows in [0, 2, 12] {
            let mut job = job(tables.clone(), sql);
            job.bounds = vec![Bound {
                of: "some".into(),
                rows,
                overflow,
            }];
            let program = compile(&job, &SortedBytes).unwrap();
            let wanted = clear::evaluate(&program, &inputs).unwrap();
            let physical = plan(&program, &participants(securities()[0])).unwrap();
            let found = evaluated(&physical, &program, &inputs).unwrap();
            assert_eq!(found[0].0, wanted[0].rows, "{rows} rows");
            if let Some(incomplete) = found[0].1 {
                assert_eq!(incomplete, wanted[0].incomplete, "{rows} rows");
            }
            let ran = run_with_flags(&physical, &program, &inputs).unwrap();
            assert_eq!(ran, found, "{rows} rows");
        }
    }
}

/// Places of rows without an order say nothing: they come in the order of their own bits, and rows that do not count are zero.
#[test]
fn places_of_rows_say_nothing() {
    let tables = common::tables(12, 9);
    let sql = "SELECT age, city FROM people WHERE active";
    let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
    let physical = plan(&program, &participants(securities()[0])).unwrap();
    let (job, _) = pass(&physical);
    let found = |order: &[usize]| {
        let mut inputs = common::rows(&tables, 21);
        let rows = &mut inputs[0];
        rows.rows = order.iter().map(|row| rows.rows[*row].clone()).collect();
        rows.valid = order.iter().map(|row| rows.valid[*row]).collect();
        supplied(&physical, &program, &inputs, |_, _, _, value| value).expected(job)
    };
    let all: Vec<usize> = (0..12).collect();
    let turned: Vec<usize> = (0..12).rev().collect();
    let mixed: Vec<usize> = (0..12).map(|row| row * 5 % 12).collect();
    let one = found(&all);
    assert!(one.iter().flatten().flatten().any(|bit| *bit == 1));
    assert_eq!((found(&turned), found(&mixed)), (one.clone(), one));
}

/// Tables of many rows make circuits that are too large: that is said before they are made.
#[test]
fn what_is_too_large_is_refused_at_once() {
    let (tables, _) = tpch::tables();
    for (name, sql) in tpch::QUERIES {
        if !["q01", "q18", "q21"].contains(&name) {
            continue;
        }
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        let began = std::time::Instant::now();
        let error = plan(&program, &participants(securities()[0])).unwrap_err();
        let took = began.elapsed();
        let PhysicalError::TooLarge { rows, ands, limit } = error else {
            panic!("{name}: {error}");
        };
        assert!(
            rows > 60_000 && ands > 1 << 20,
            "{name}: {rows} rows, {ands}"
        );
        assert_eq!(limit, MOST_GATES);
        assert!(took.as_secs() < 20, "{name}: {took:?}");
        println!("{name}: {error}, {took:?}");
    }
}

/// What an owner supplies is looked at in the circuit: a cell beyond its range, and rows that are not in the order that the plan rests on.
#[test]
fn what_owners_supply_is_looked_at() {
    let mut tables = common::tables(6, 7);
    tables[0].sorted_by = vec![ColumnId(0)];
    let sql = "SELECT age, count(*) AS n FROM people GROUP BY age ORDER BY age";
    let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
    let mut inputs = common::rows(&tables, 8);
    for valid in &mut inputs[0].valid {
        *valid = true;
    }
    for security in securities() {
        let physical = plan(&program, &participants(security)).unwrap();
        let (job, _) = pass(&physical);
        let claims = |values: &Values| -> Vec<String> {
            let found = values.expected(job);
            let ports = job.audiences.iter().zip(&job.opened).enumerate();
            let broken =
                ports.filter(|(port, (to, _))| **to == Audience::Parties && found[*port] == [[1]]);
            broken.map(|(_, (_, what))| what.clone()).collect()
        };
        let honest = supplied(&physical, &program, &inputs, |_, _, _, value| value);
        assert!(claims(&honest).is_empty(), "{security}");
        let beyond = supplied(
            &physical,
            &program,
            &inputs,
            |_, row, port, value| match port {
                TablePort::Bits(column) if column.0 == 4 && row == 2 => 127,
                _ => value,
            },
        );
        let [said] = &claims(&beyond)[..] else {
            panic!("{security}: a number beyond its range is no claim");
        };
        assert!(said.contains("what `north` says of its tables"), "{said}");
        let ran =
            crate::parties::run_with(
                &physical,
                &program,
                &inputs,
                |_, row, port, value| match port {
                    TablePort::Bits(column) if column.0 == 4 && row == 2 => 127,
                    _ => value,
                },
            );
        let said = ran.unwrap_err();
        assert!(
            said.contains("that is false, and the run is over"),
            "{said}"
        );
    }
}
