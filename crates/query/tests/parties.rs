//! Queries computed by parties: what is opened is what the query means.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_device::{Cpu, Device};
use veil_engine::local::{Conditions, run_program};
use veil_engine::{Data, Settings};
use veil_job::{Adversary, Security};
use veil_math::Ring;
use veil_operators::Participants;
use veil_physical::{PhysicalPlan, plan};
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_query::{SortedBytes, compile};
use veil_relation::{Program, Value, clear};
use veil_session::Peer;
use veil_testkit::{Seen, Values};

use crate::common::{self, job, listed};
use crate::tpch;

fn participants(security: Security) -> Participants {
    let parties = 0..security.protocol.parties();
    Participants {
        name: "query".into(),
        owners: vec!["north".into()],
        parties: parties.map(|k| format!("p{k}")).collect(),
        recipients: vec!["r".into()],
        security,
    }
}

fn securities() -> [Security; 2] {
    let four = Security::among(4);
    let malicious = Security {
        adversary: Adversary::Malicious,
        ..four
    };
    [Security::among(3), malicious]
}

/// Runs a physical plan: the rows of each relation that it opens, in the order in which its recipient has them.
pub(crate) fn run(
    physical: &PhysicalPlan,
    program: &Program,
    inputs: &[clear::Input],
) -> Vec<Vec<Vec<Value>>> {
    let passes = PassProgram::new(&physical.passes, Options::default()).unwrap();
    let passes = Arc::new(passes);
    let mut sources: BTreeMap<usize, Arc<Values>> = BTreeMap::new();
    for ports in &physical.tables {
        let spec = passes.passes()[ports.pass].rows().unwrap();
        let (table, input) = (&program.tables[ports.table], &inputs[ports.table]);
        let values = Values::new(&spec.job, |_, row, port, wire| {
            let value = ports.ports[port].value(table, input.valid[row], &input.rows[row]);
            match spec.job.circuit.ring {
                Ring::Bits => value >> wire & 1,
                _ => value,
            }
        });
        sources.insert(ports.pass, Arc::new(values));
    }
    let results = physical.results.iter();
    let seen: BTreeMap<usize, Arc<Seen>> = results.map(|of| (of.pass, Arc::default())).collect();
    let data = |peer: Peer, pass: usize| match peer {
        Peer::Owner(_) => Data {
            source: sources.get(&pass).map(|values| Arc::clone(values) as _),
            ..Data::default()
        },
        Peer::Recipient(_) => Data {
            sink: seen.get(&pass).map(|seen| Arc::clone(seen) as _),
            ..Data::default()
        },
        Peer::Party(_) => Data::default(),
    };
    let settings = Settings {
        device: Arc::new(|| Ok(Box::new(Cpu::detect()) as Box<dyn Device>)),
        ..Settings::default()
    };
    let conditions = Conditions {
        settings: &|_| settings.clone(),
        wrap: &|_, _, link| Box::new(link),
        stop: None,
    };
    run_program(&passes, data, &|_| (), &conditions).unwrap_or_else(|error| panic!("{error}"));
    let opened = |of: &veil_physical::ResultPorts| {
        let seen = &seen[&of.pass];
        let ports: Vec<Vec<Vec<u128>>> = (0..of.ports.len())
            .map(|port| seen.rows(Ring::Bits, port).unwrap())
            .collect();
        let value = |wires: &Vec<u128>| (0..).zip(wires).map(|(k, bit)| bit << k).sum();
        let rows = (0..ports[0].len()).filter_map(|row| {
            let values: Vec<u128> = ports.iter().map(|port| value(&port[row])).collect();
            of.cells(&values)
        });
        let mut rows: Vec<Vec<Value>> = rows.collect();
        if of.order.is_some() {
            rows.sort_unstable();
        }
        rows
    };
    physical.results.iter().map(opened).collect()
}

#[test]
fn parties_open_what_queries_mean() {
    let tables = common::tables(40, 70);
    let inputs = common::rows(&tables, 3);
    let mut wrong = Vec::new();
    for query in listed() {
        let program = compile(&job(tables.clone(), &query.sql), &SortedBytes).unwrap();
        let Ok(wanted) = clear::evaluate(&program, &inputs) else {
            continue;
        };
        for security in securities() {
            let physical = match plan(&program, participants(security)) {
                Ok(physical) => physical,
                Err(error) => {
                    wrong.push(format!("{}: {error}", query.name));
                    break;
                }
            };
            let found = run(&physical, &program, &inputs);
            for (found, wanted) in found.iter().zip(&wanted) {
                if *found != wanted.rows {
                    wrong.push(format!(
                        "{} ({security}): {found:?} for {:?}",
                        query.name, wanted.rows
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn parties_answer_questions_of_tpch() {
    let (tables, inputs) = tpch::tables();
    for (name, sql) in tpch::QUERIES {
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        let [security, _] = securities();
        let physical = plan(&program, participants(security))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let began = std::time::Instant::now();
        let found = run(&physical, &program, &inputs);
        println!(
            "{name}: {} passes, {:?}",
            physical.passes.passes.len(),
            began.elapsed()
        );
        assert!(
            found[0] == wanted[0].rows,
            "{name}: {:?} for {:?}",
            found[0],
            wanted[0].rows
        );
    }
}
