//! Queries between two parties: one circuit of bits gives what the query means, and nothing where a claim is false.

use std::sync::Arc;

use veil_job::passes::PassSpec;
use veil_job::{Adversary, Audience, JobSpec, ProtocolKind, Security};
use veil_math::Ring;
use veil_physical::{
    MOST_GATES, Opening, PhysicalPlan, ResultPorts, TablePort, TablePorts, Wires, plan,
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
    let tables = common::tables(16, 24);
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
