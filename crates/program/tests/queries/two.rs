//! Queries between two parties: the ports of one circuit, from files and to results.

use std::fs;
use std::sync::Arc;

use veil_job::passes::PassSpec;
use veil_job::{Adversary, Audience, Holder, JobSpec, Sink, Slice, Source, evaluate};
use veil_program::{Answered, Job, Output, Words};
use veil_session::Peer;

use super::{JOB, NORTH};
use crate::common::Case;

const SOUTH: &str = "patient,dose\nanna,3\ncarl,9\nzoe,4\n";

/// The table of every kind of column, and one of another owner; two queries for one recipient.
fn case() -> Case {
    let job = JOB
        .replace("parties = [\"p0\", \"p1\", \"p2\"]", "parties = [\"p0\", \"p1\"]")
        .replace(
            "[query]",
            r#"[[table]]
name = "doses"
owner = "south"
rows = { up_to = 4 }
unique = [["patient"]]
file = "south.csv"
column = [
  { name = "patient", type = "key", bits = 64 },
  { name = "dose", type = "integer", min = 1, max = 9 },
]

[[query]]
name = "dosed"
sql = "SELECT s.ward, s.pay, d.dose FROM stays s JOIN doses d ON s.patient = d.patient ORDER BY d.dose DESC"
to = "ministry"

[[query]]"#,
        );
    Case::new(&[
        ("job.toml", &job),
        ("north.csv", NORTH),
        ("south.csv", SOUTH),
    ])
}

fn spec(job: &Job) -> &Arc<JobSpec> {
    let [PassSpec::Rows { job, .. }] = &job.passes().unwrap().passes[..] else {
        panic!("two parties have one pass");
    };
    job
}

/// What is opened to the recipient, by the circuit in the clear.
fn answers(case: &Case, job: &Job, out: &str) -> Result<Vec<Answered>, String> {
    let holders = job.holders().into_iter();
    let sources: Vec<(Holder, Arc<dyn Source>)> = holders
        .map(|holder| {
            let mut own = job.sources(holder).unwrap();
            assert_eq!(own.len(), 1, "one source for the one pass");
            (holder, own.remove(0).1)
        })
        .collect();
    let sources: Vec<(Holder, &dyn Source)> = sources
        .iter()
        .map(|(holder, source)| (*holder, source.as_ref()))
        .collect();
    let peer = Peer::Recipient(0);
    let output = Arc::new(job.sink(peer, &case.path(out)).unwrap());
    let sinks = output.sinks();
    let [(0, sink)] = &sinks[..] else {
        panic!("one sink for the one pass");
    };
    let sink: &dyn Sink = sink.as_ref();
    evaluate(spec(job), &sources, &[(peer, sink)]).map_err(|error| error.to_string())?;
    let Output::Query(sink) = &*output else {
        panic!("a job with queries");
    };
    Ok(sink.answers().unwrap().to_vec())
}

#[test]
fn one_circuit_reads_tables_and_gives_relations() {
    let case = case();
    let job = case.load().unwrap();
    let found = answers(&case, &job, "out").unwrap();
    let wanted: Vec<Answered> = job
        .clear_relations()
        .unwrap()
        .into_iter()
        .map(|(_, answer)| answer)
        .collect();
    assert_eq!(found, wanted);
    let csv = fs::read_to_string(case.path("out/dosed.csv")).unwrap();
    assert_eq!(csv, "ward,pay,dose\nc,,9\na,-9.50,3\n");
}

/// What participants know of the job is the same against whomever it is garbled, but for that; the circuit is not in it.
#[test]
fn the_adversary_changes_no_circuit() {
    let case = case();
    let job = case.load().unwrap();
    let mut other = job.clone();
    let malicious = Words {
        adversary: Some(Adversary::Malicious),
        ..Words::default()
    };
    other.choose(malicious).unwrap();
    assert_eq!(spec(&other).security, other.spec().security);
    assert_eq!(other.spec().security.adversary, Adversary::Malicious);
    assert_eq!(spec(&other).circuit, spec(&job).circuit);
    assert_eq!(
        job.spec().circuit.gates.len() + job.spec().circuit.inputs.len(),
        0
    );
    let blocks: Vec<u64> = job.spec().blocks.iter().map(|block| block.rows).collect();
    assert_eq!((blocks, job.rows()), (vec![10, 4], 14));
    let queries = job.queries().unwrap();
    let ands = spec(&job).circuit.stats().total_muls();
    assert_eq!(queries.ands(), Some(ands));
    for parties in [3, 4] {
        let (more, described) = queries
            .among_more(parties, job.spec(), job.roles())
            .unwrap();
        assert_eq!((more.ands(), described.parties.len()), (None, parties));
    }
    assert!(queries.among_more(2, job.spec(), job.roles()).is_none());
}

/// An owner whose keys are not unique hides all results, and each recipient is told so.
#[test]
fn a_false_claim_is_told_to_recipients() {
    let case = case();
    let job = case.load().unwrap();
    let spec = spec(&job);
    let told = spec
        .opened
        .iter()
        .position(|what| what.contains("without a result"));
    let told = told.unwrap();
    assert_eq!(spec.audiences[told], Audience::Recipient(0));
    assert!(spec.audiences.contains(&Audience::Parties));
    let output = Arc::new(job.sink(Peer::Recipient(0), &case.path("out")).unwrap());
    let sinks = output.sinks();
    let sink = &sinks[0].1;
    let one = Slice {
        block: 0,
        first: 0,
        rows: 1,
    };
    sink.put(told, one, &[0]).unwrap();
    let refused =
        |port: usize, slice, values: &[u8]| sink.put(port, slice, values).unwrap_err().to_string();
    assert_eq!(
        refused(told, one, &[1]),
        "what the job claims of its rows: that is false, and the run is over; nothing else was opened"
    );
    // Ports, places and lengths that are none.
    let wide = vec![0; spec.circuit.outputs[0].wires.len()];
    for said in [
        refused(spec.audiences.len(), one, &[0]),
        refused(0, Slice { first: 1, ..one }, &wide),
        refused(0, Slice { rows: 2, ..one }, &wide),
        refused(0, Slice { block: 1, ..one }, &wide),
        refused(0, one, &wide[1..]),
        refused(told, one, &[2]),
        refused(told, one, &[]),
    ] {
        assert!(said.contains("this is a mistake of the program"), "{said}");
    }
    sink.put(0, one, &wide).unwrap();
    assert!(refused(0, one, &wide).contains("this is a mistake"));
    // Nothing is published before all is there.
    assert!(sink.finish().is_err());
    assert!(!case.path("out/dosed.csv").exists());
}

/// A port is filled in its one row, and in no other.
#[test]
fn sources_have_one_row() {
    let case = case();
    let job = case.load().unwrap();
    let sources = job.sources(Holder::Owner(1)).unwrap();
    let own = spec(&job).blocks[0].holders.iter();
    let own = own.zip(&spec(&job).circuit.inputs).enumerate();
    let one = Slice {
        block: 0,
        first: 0,
        rows: 1,
    };
    for (port, (holder, input)) in own {
        let mut into = vec![0xff; input.width as usize];
        let filled = sources[0].1.fill(port, one, &mut into);
        if *holder != Holder::Owner(1) {
            assert!(filled.is_err(), "port {port} is of another owner");
            continue;
        }
        filled.unwrap();
        assert!(into.iter().all(|bit| *bit < 2), "a byte for each wire");
        for slice in [
            Slice { first: 1, ..one },
            Slice { rows: 2, ..one },
            Slice { block: 1, ..one },
        ] {
            assert!(sources[0].1.fill(port, slice, &mut into).is_err());
        }
        assert!(sources[0].1.fill(port, one, &mut into[1..]).is_err());
    }
}
