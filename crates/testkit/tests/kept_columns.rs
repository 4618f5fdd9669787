//! Columns that passes keep at rest, and passes of later programs load: beside passes that move rows, and those that owners supply.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_circuit::{Builder as Gates, Circuit, Per};
use veil_engine::local::{Conditions, Failure, run_program};
use veil_engine::{Abort, Data, Report, Settings};
use veil_job::passes::{PassSpec, ProgramSpec};
use veil_job::{Audience, Holder, Security};
use veil_math::Ring;
use veil_operators::{Key, Sharing};
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_session::Peer;
use veil_testkit::sample::peer;
use veil_testkit::{Seen, Shares, Values};

use crate::common::programs::{builder, parties, random, securities};

const ROWS: u32 = 700;
const BITS: u32 = 11;

/// Datasets of all parties, by name.
type Datasets = BTreeMap<String, Vec<Arc<Shares>>>;

/// A circuit that puts out what it takes.
fn passing(bits: u32) -> Circuit {
    let mut b = Gates::new(Ring::Bits);
    let x = b.input("x", bits, Per::Row);
    b.output("z", &x);
    b.finish().unwrap()
}

fn words() -> ((String, String), usize) {
    (("x".into(), "bits".into()), 0)
}

/// Two columns that an owner supplies; one is kept as it is, the other in the order of the first, and then as it is, too.
fn keeping(security: Security) -> ProgramSpec {
    let mut b = builder(security, parties(security));
    let owner = Holder::Owner(0);
    let x = b.input(owner, "x", ROWS, Sharing::Bits(BITS));
    let y = b.input(owner, "y", ROWS, Sharing::Bits(BITS));
    b.keep(
        "early",
        passing(BITS),
        ROWS,
        (vec![x.take()], vec!["x".into()]),
    );
    let order = b.sort(&Key::of(&[x]));
    let sorted = b.apply(&order, &[y])[0];
    b.open(&[sorted], Audience::Recipient(0), "y, sorted");
    b.keep(
        "sorted",
        passing(BITS),
        ROWS,
        (vec![sorted.take()], vec!["y".into()]),
    );
    b.keep(
        "late",
        passing(BITS),
        ROWS,
        (vec![y.take()], vec!["y".into()]),
    );
    b.finish()
}

/// Three datasets, of which two are loaded by passes that are not the first; rows move by what was loaded.
fn loading(security: Security) -> ProgramSpec {
    let mut b = builder(security, parties(security));
    let early = b.loaded(("early", ROWS), passing(BITS), ROWS, &[words()])[0];
    let order = b.sort(&Key::of(&[early]));
    let late = b.loaded(("late", ROWS), passing(BITS), ROWS, &[words()])[0];
    let sorted = b.loaded(("sorted", ROWS), passing(BITS), ROWS, &[words()])[0];
    let again = b.apply(&order, &[late])[0];
    b.open(&[again, sorted, early], Audience::Recipient(0), "columns");
    b.finish()
}

fn of(peer: Peer) -> Option<usize> {
    peer.party().map(veil_session::PartyId::index)
}

/// What the passes of a program keep, what a recipient got of each, and what participants report.
type Ran = (Datasets, Vec<Vec<u128>>, BTreeMap<Peer, Report>);

/// What comes of a program, if it runs well.
fn run(
    program: &Arc<PassProgram>,
    columns: &[Vec<u128>],
    stored: &Datasets,
) -> Result<Ran, Failure> {
    let parties = program.first().parties().len();
    let mut kept: BTreeMap<usize, Vec<Arc<Shares>>> = BTreeMap::new();
    let (mut seen, mut values): (BTreeMap<usize, Arc<Seen>>, BTreeMap<usize, Values>) =
        <_>::default();
    for (number, pass) in program.passes().iter().enumerate() {
        let Some(plan) = pass.rows() else { continue };
        if let Some(column) = columns.get(number) {
            let of = Values::new(&plan.job, |_, row, _, wire| column[row] >> wire & 1);
            values.insert(number, of);
        }
        if plan.keeps() {
            let new = || Arc::new(Shares::new(plan.ring));
            kept.insert(number, (0..parties).map(|_| new()).collect());
        } else if plan.opens_rows() && pass.compares().is_none() {
            seen.insert(number, Arc::default());
        }
    }
    let name = |pass: usize| {
        let job = &program.passes()[pass].rows().unwrap().job;
        job.datasets.first().map(|dataset| dataset.name.clone())
    };
    let data = |peer: Peer, pass: usize| match of(peer) {
        Some(party) => Data {
            stored: (program.passes()[pass].rows().and_then(|_| name(pass)))
                .and_then(|name| Some(Arc::clone(stored.get(&name)?.get(party)?) as _)),
            keeps: kept.get(&pass).map(|all| Arc::clone(&all[party]) as _),
            ..Data::default()
        },
        None => Data {
            source: (values.get(&pass).filter(|_| matches!(peer, Peer::Owner(_))))
                .map(|values| Arc::new(values.clone()) as _),
            sink: (seen
                .get(&pass)
                .filter(|_| matches!(peer, Peer::Recipient(_))))
            .map(|seen| Arc::clone(seen) as _),
            ..Data::default()
        },
    };
    let settings = Settings {
        timeout: std::time::Duration::from_secs(5),
        ..Settings::default()
    };
    let conditions = Conditions {
        settings: &|_| settings.clone(),
        wrap: &|_, _, link| Box::new(link),
        stop: None,
    };
    let ran = run_program(program, data, &|_| (), &conditions);
    let complete = kept
        .values()
        .flatten()
        .filter(|shares| shares.finished())
        .count();
    assert_eq!(complete, if ran.is_ok() { kept.len() * parties } else { 0 });
    let reports = ran?;
    let rows = seen.values().map(|seen| {
        assert!(seen.finished());
        let rows = seen.rows(Ring::Bits, 0).unwrap();
        rows.iter().map(|bits| number(bits)).collect()
    });
    let names = kept.into_iter().map(|(pass, shares)| {
        let job = &program.passes()[pass].rows().unwrap().job;
        (job.keep.as_ref().unwrap().name.clone(), shares)
    });
    Ok((names.collect(), rows.collect(), reports))
}

fn number(bits: &[u128]) -> u128 {
    (0..).zip(bits).map(|(k, bit)| bit << k).sum()
}

fn planned(spec: &ProgramSpec, lanes: u16) -> Arc<PassProgram> {
    let options = Options {
        lanes,
        chunk_rows: Some(64),
    };
    Arc::new(PassProgram::new(spec, options).unwrap())
}

fn columns() -> [Vec<u128>; 2] {
    [random(1, ROWS, BITS), random(2, ROWS, BITS)]
}

fn kept(security: Security) -> Datasets {
    run(
        &planned(&keeping(security), 1),
        &columns(),
        &Datasets::new(),
    )
    .unwrap()
    .0
}

/// y in the order of x, which is stable.
fn sorted() -> Vec<u128> {
    let [x, y] = columns();
    let mut rows: Vec<usize> = (0..ROWS as usize).collect();
    rows.sort_by_key(|row| x[*row]);
    rows.into_iter().map(|row| y[row]).collect()
}

#[test]
fn any_pass_keeps_columns_and_any_pass_loads_them() {
    let [x, y] = columns();
    for security in securities() {
        for lanes in [1, 3] {
            let keeping = planned(&keeping(security), lanes);
            let (datasets, opened, _) = run(&keeping, &columns(), &Datasets::new()).unwrap();
            assert_eq!(opened, [sorted()]);
            for (name, values) in [("early", &x), ("sorted", &sorted()), ("late", &y)] {
                let joined = Shares::join(&datasets[name], 0);
                assert_eq!(
                    &joined.iter().map(|row| number(row)).collect::<Vec<_>>(),
                    values
                );
            }
            // Chunks of other lanes than they were kept on.
            let loading = planned(&loading(security), 4 - lanes);
            let (_, opened, _) = run(&loading, &[], &datasets).unwrap();
            assert_eq!(opened, [sorted(), sorted(), x.clone()]);
        }
    }
}

/// Each party in turn has another share than it kept, of each dataset: the parties of that component find it, whichever pass loads it.
#[test]
fn altered_shares_are_found_in_every_pass_that_loads_them() {
    for security in securities() {
        let (datasets, loading) = (kept(security), planned(&loading(security), 1));
        for name in ["early", "late", "sorted"] {
            for party in 0..parties(security) {
                let mut altered = datasets.clone();
                let all = altered.get_mut(name).unwrap();
                let part = (party % 2) as u8;
                all[party] = Arc::new(all[party].damaged(0, part, 0, 333));
                let failed = run(&loading, &[], &altered).unwrap_err();
                let Abort::Cheated { suspects, what, .. } = failed.first().1 else {
                    panic!("{name}, {party}: {failed:?}");
                };
                assert_eq!(*what, "a stored share");
                assert!(
                    suspects.contains(&peer(party as u8)),
                    "{name}, {party}: {suspects:?}"
                );
                assert_eq!(suspects.len(), 2);
            }
        }
    }
}

/// One party has the whole of another dataset, which is as good as its own: one that was put back.
#[test]
fn a_dataset_that_one_party_put_back_is_found() {
    for security in securities() {
        let (now, before) = (kept(security), kept(security));
        let loading = planned(&loading(security), 2);
        for (party, old) in before["late"].iter().enumerate() {
            let mut stored = now.clone();
            stored.get_mut("late").unwrap()[party] = Arc::clone(old);
            let failed = run(&loading, &[], &stored).unwrap_err();
            let Abort::Cheated { suspects, what, .. } = failed.first().1 else {
                panic!("{party}: {failed:?}");
            };
            assert_eq!(*what, "a stored share");
            assert!(suspects.contains(&peer(party as u8)));
        }
        // All of them have: then it is the dataset.
        let mut stored = now.clone();
        stored.insert("late".into(), before["late"].clone());
        run(&loading, &[], &stored).unwrap();
    }
}

#[test]
fn a_party_without_a_dataset_of_a_later_pass_does_not_start() {
    let security = Security::among(3);
    let mut datasets = kept(security);
    datasets.get_mut("sorted").unwrap().pop();
    let failed = run(&planned(&loading(security), 1), &[], &datasets).unwrap_err();
    assert_eq!(
        failed.first().1.to_string(),
        "this party loads shares in the job, and has none in its store"
    );
}

#[test]
fn what_is_kept_is_agreed_on_at_the_end_of_a_program() {
    let security = Security::among(3);
    let refused = |spec: &ProgramSpec| {
        let options = Options {
            lanes: 1,
            chunk_rows: None,
        };
        PassProgram::new(spec, options).unwrap_err().to_string()
    };
    let mut b = builder(security, 3);
    let x = b.input(Holder::Owner(0), "x", ROWS, Sharing::Bits(BITS));
    b.keep("x", passing(BITS), ROWS, (vec![x.take()], vec!["x".into()]));
    b.open(&[x], Audience::Recipient(0), "x");
    let spec = b.finish();
    assert!(
        refused(&spec).contains("a program that keeps shares ends with a pass that keeps some"),
        "{}",
        refused(&spec)
    );
    // Nor are sums opened before it.
    let mut b = builder(security, 3);
    let x = b.input(Holder::Owner(0), "x", ROWS, Sharing::Ring(Ring::Z64));
    b.open(&[x], Audience::Recipient(0), "x");
    let mut spec = b.finish();
    let PassSpec::Rows { job, leaves, .. } = &mut spec.passes[0] else {
        unreachable!("a pass of rows");
    };
    let job = Arc::make_mut(job);
    job.circuit.outputs[0].reduce = veil_circuit::Reduce::Sum;
    job.audiences = vec![Audience::Recipient(0)];
    leaves[0] = None;
    assert!(refused(&spec).contains("sums that are no columns are those of the last pass"));
}
