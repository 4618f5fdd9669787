//! Queries among three parties of whom one may be malicious: passes of words alone give what the query means.

use std::collections::HashMap;
use std::sync::Arc;

use veil_job::passes::{ColumnForm, MoveKind, PassSpec, Take};
use veil_job::{Adversary, JobSpec, Security};
use veil_math::Ring;
use veil_physical::{Node, Opening, PhysicalError, PhysicalPlan, plan};
use veil_protocol::Options;
use veil_protocol::passes::{ColumnKind, PassProgram};
use veil_query::{Bound, SortedBytes, compile};
use veil_relation::{Overflow, Program, clear};

use crate::common::{self, job, listed};
use crate::parties::{Opened, participants, run};
use crate::tpch;

pub(crate) fn security() -> Security {
    Security::among(3).against(Adversary::Malicious)
}

/// The plan of a program for three parties of whom one may be malicious.
fn planned(program: &Program) -> Result<PhysicalPlan, PhysicalError> {
    plan(program, &participants(security()))
}

/// The same passes for parties that follow the protocol. Passes that have one job go on having one.
fn semi_honest(mut physical: PhysicalPlan) -> PhysicalPlan {
    let mut jobs: HashMap<*const JobSpec, Arc<JobSpec>> = HashMap::new();
    for pass in &mut physical.passes.passes {
        let (PassSpec::Rows { job, .. } | PassSpec::Compare { job, .. }) = pass else {
            continue;
        };
        let other = jobs.entry(Arc::as_ptr(job)).or_insert_with(|| {
            let security = Security::among(3);
            Arc::new(JobSpec {
                security,
                ..JobSpec::clone(job)
            })
        });
        *job = Arc::clone(other);
    }
    physical
}

/// What parties open of the tables.
fn opened(program: &Program, inputs: &[clear::Input]) -> Opened {
    run(&semi_honest(planned(program).unwrap()), program, inputs)
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
    let planned = PassProgram::new(&semi_honest(physical.clone()).passes, Options::default());
    for column in planned.unwrap().columns() {
        let words = matches!(column.form, ColumnForm::Words(_));
        assert!(words || column.kind != ColumnKind::Shared, "{column:?}");
    }
    let all = physical.passes.passes.len();
    fn within(node: &Node, all: usize) {
        assert!(
            node.passes
                .iter()
                .all(|of| of.start < of.end && of.end <= all)
        );
        node.inputs.iter().for_each(|input| within(input, all));
    }
    physical.tree.iter().for_each(|node| within(node, all));
}

/// All queries that the oracle is asked, against their meaning.
#[test]
fn passes_of_words_give_what_queries_mean() {
    let tables = common::tables(12, 16);
    let mut wrong = Vec::new();
    for (number, query) in listed().into_iter().enumerate() {
        let inputs = common::rows(&tables, 3 + number as u64);
        let program = compile(&job(tables.clone(), &query.sql), &SortedBytes).unwrap();
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
        let found = match run(&semi_honest(physical), &program, &inputs) {
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
