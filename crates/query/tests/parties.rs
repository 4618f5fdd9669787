//! Queries computed by parties: what is opened is what the query means.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_device::{Cpu, Device};
use veil_engine::local::{Conditions, run_program};
use veil_engine::{Data, Settings};
use veil_job::{Adversary, DataError, Security, ShareSource, Slice};
use veil_math::Ring;
use veil_operators::Participants;
use veil_physical::{Node, Opening, PhysicalPlan, ResultPort, TablePort, plan};
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_query::{Bound, SortedBytes, compile};
use veil_relation::{Column, Overflow, Program, Table, Type, Value, clear};
use veil_session::Peer;
use veil_testkit::{Seen, Shares, Values};

use crate::common::{self, job, listed};
use crate::{tpch, two};

pub(crate) fn participants(security: Security) -> Participants {
    let parties = 0..security.protocol.parties();
    Participants {
        name: "query".into(),
        owners: vec!["north".into(), "south".into()],
        parties: parties.map(|k| format!("p{k}")).collect(),
        recipients: vec!["r".into()],
        security,
    }
}

pub(crate) fn securities() -> [Security; 2] {
    let four = Security::among(4);
    let malicious = Security {
        adversary: Adversary::Malicious,
        ..four
    };
    [Security::among(3), malicious]
}

/// The same, and three parties of whom one may be malicious.
pub(crate) fn all_securities() -> [Security; 3] {
    let [three, four] = securities();
    [three, four, crate::three::security()]
}

/// The rows of each relation that a plan opens, in the order in which its recipient has them; or why the run ended.
pub(crate) type Opened = Result<Vec<Vec<Vec<Value>>>, String>;

/// Runs a physical plan.
pub(crate) fn run(physical: &PhysicalPlan, program: &Program, inputs: &[clear::Input]) -> Opened {
    run_with(physical, program, inputs, |_, _, _, value| value)
}

/// Parties open what the first query of a program means.
pub(crate) fn opens_what_it_means(
    (program, inputs): (&Program, &[clear::Input]),
    security: Security,
    what: &str,
) {
    let wanted = clear::evaluate(program, inputs).unwrap();
    let physical = plan(program, &participants(security)).unwrap();
    let found = run(&physical, program, inputs).unwrap();
    let (found, wanted) = (&found[0], &wanted[0].rows);
    assert!(
        found == wanted,
        "{what}, {security}: {found:?} for {wanted:?}"
    );
}

/// Runs a physical plan whose owners supply something else, by table, row, port and what their programs supply.
pub(crate) fn run_with(
    physical: &PhysicalPlan,
    program: &Program,
    inputs: &[clear::Input],
    other: impl Fn(&str, usize, TablePort, u128) -> u128,
) -> Opened {
    let stores = Stores::new();
    let ran = run_with_stores(
        (physical, program, inputs),
        other,
        (Options::default(), &stores),
    );
    ran.map(|(opened, _)| opened)
}

/// The rows of each result.
type Results = Vec<Vec<Vec<Value>>>;

/// Shares of datasets at all parties, by name.
pub(crate) type Stores = BTreeMap<String, Vec<Arc<Shares>>>;

/// A dataset, as the pass loads it that takes these of its ports.
struct Loaded {
    shares: Arc<Shares>,
    ports: Vec<(usize, usize)>,
}

impl ShareSource for Loaded {
    fn load(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        into: &mut [u8],
    ) -> Result<(), DataError> {
        let kept = self.ports.iter().find(|(taken, _)| *taken == port);
        self.shares.load(kept.unwrap().1, component, slice, into)
    }
}

/// The same, of parties that load datasets: what is opened, and what they keep.
pub(crate) fn run_with_stores(
    run: (&PhysicalPlan, &Program, &[clear::Input]),
    other: impl Fn(&str, usize, TablePort, u128) -> u128,
    with: (Options, &Stores),
) -> Result<(Results, Stores), String> {
    let ran = run_with_sizes(run, other, with);
    ran.map(|(opened, kept, _)| (opened, kept))
}

/// The same, with the number that is opened of each relation whose size is, in the order of what is kept.
pub(crate) fn run_with_sizes(
    run: (&PhysicalPlan, &Program, &[clear::Input]),
    other: impl Fn(&str, usize, TablePort, u128) -> u128,
    with: (Options, &Stores),
) -> Result<(Results, Stores, Vec<u32>), String> {
    let ran = run_whole(run, other, with);
    ran.map(|ran| (ran.opened, ran.kept, ran.sizes))
}

/// Rows, and whether some are missing.
type Flagged = (Vec<Vec<Value>>, Option<bool>);

/// The rows of each result, and whether a bound has left out some of them, where one says so.
pub(crate) fn run_with_flags(
    physical: &PhysicalPlan,
    program: &Program,
    inputs: &[clear::Input],
) -> Result<Vec<Flagged>, String> {
    let stores = Stores::new();
    let ran = run_whole(
        (physical, program, inputs),
        |_, _, _, value| value,
        (Options::default(), &stores),
    );
    ran.map(|ran| ran.opened.into_iter().zip(ran.incomplete).collect())
}

/// All that a run gives.
struct Ran {
    opened: Results,
    kept: Stores,
    sizes: Vec<u32>,
    incomplete: Vec<Option<bool>>,
}

fn run_whole(
    (physical, program, inputs): (&PhysicalPlan, &Program, &[clear::Input]),
    other: impl Fn(&str, usize, TablePort, u128) -> u128,
    (options, stores): (Options, &Stores),
) -> Result<Ran, String> {
    let passes = PassProgram::new(&physical.passes, options).unwrap();
    let passes = Arc::new(passes);
    let of_parties = passes.first().parties().len();
    let keeps = physical.keeps.iter().map(|kept| {
        let shares = || Arc::new(Shares::new(Ring::Bits));
        let all: Vec<Arc<Shares>> = (0..of_parties).map(|_| shares()).collect();
        (kept.pass, (kept.dataset.clone(), all))
    });
    let keeps: BTreeMap<usize, (String, Vec<Arc<Shares>>)> = keeps.collect();
    let loaded = |pass: usize, party: usize| {
        let job = &passes.passes()[pass].rows()?.job;
        let dataset = job.datasets.first()?;
        Some(Arc::new(Loaded {
            shares: Arc::clone(&stores[&dataset.name][party]),
            ports: dataset.ports.clone(),
        }) as Arc<dyn ShareSource>)
    };
    let mut sources: BTreeMap<usize, Arc<Values>> = BTreeMap::new();
    let of_owners = physical.tables.iter();
    if physical.wires.is_some() {
        let values = two::supplied(physical, program, inputs, &other);
        sources.insert(0, Arc::new(values));
    }
    let of_owners = of_owners.filter(|_| physical.wires.is_none());
    let of_owners = of_owners.filter(|ports| program.tables[ports.table].origin.owner().is_some());
    for ports in of_owners {
        let spec = passes.passes()[ports.pass].rows().unwrap();
        let (table, input) = (&program.tables[ports.table], &inputs[ports.table]);
        let values = Values::new(&spec.job, |_, row, port, wire| {
            let port = ports.ports[port];
            let value = port.value(table, input.valid[row], &input.rows[row]);
            let value = other(&table.name, row, port, value);
            match spec.job.circuit.ring {
                Ring::Bits => value >> wire & 1,
                _ => value,
            }
        });
        sources.insert(ports.pass, Arc::new(values));
    }
    let results = physical.results.iter();
    let seen: BTreeMap<usize, Arc<Seen>> = results.map(|of| (of.pass, Arc::default())).collect();
    let sized = physical.keeps.iter().filter_map(|kept| kept.size);
    let at_all = || (0..of_parties).map(|_| Arc::default()).collect();
    let sizes: BTreeMap<usize, Vec<Arc<Seen>>> = sized.map(|of| (of.pass, at_all())).collect();
    let data = |peer: Peer, pass: usize| match peer {
        Peer::Owner(_) => Data {
            source: sources.get(&pass).map(|values| Arc::clone(values) as _),
            ..Data::default()
        },
        Peer::Recipient(_) => Data {
            sink: seen.get(&pass).map(|seen| Arc::clone(seen) as _),
            ..Data::default()
        },
        Peer::Party(party) => Data {
            sink: sizes
                .get(&pass)
                .map(|all| Arc::clone(&all[party.index()]) as _),
            stored: loaded(pass, party.index()),
            keeps: keeps
                .get(&pass)
                .map(|(_, all)| Arc::clone(&all[party.index()]) as _),
            ..Data::default()
        },
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
    let ran = run_program(&passes, data, &|_| (), &conditions);
    ran.map_err(|failure| {
        let opened = seen.values().any(|seen| match &physical.wires {
            None => !seen.slices().is_empty(),
            // What hides results comes with them.
            Some(wires) => seen.slices().into_iter().any(|(port, _)| {
                let ended = wires.ended.iter().any(|(_, ended)| *ended == port);
                !ended && two::seen(seen, port).contains(&1)
            }),
        });
        assert!(!opened, "a run that ends early has opened nothing");
        failure.to_string()
    })?;
    let opened = |of: &veil_physical::ResultPorts| {
        let seen = &seen[&of.pass];
        let ports: Vec<Vec<Vec<u128>>> = match &physical.wires {
            Some(_) => two::opened(of, |port| two::seen(seen, port)),
            None => (0..of.ports.len())
                .map(|port| seen.rows(Ring::Bits, port).unwrap())
                .collect(),
        };
        let value = |wires: &Vec<u128>| (0..).zip(wires).map(|(k, bit)| bit << k).sum();
        let rows = (0..ports[0].len()).filter_map(|row| {
            let values: Vec<u128> = ports.iter().map(|port| value(&port[row])).collect();
            of.cells(&values)
        });
        let mut rows: Vec<Vec<Value>> = rows.collect();
        if of.order.is_some() {
            rows.sort_unstable();
        }
        let flags = ports.iter().zip(&of.ports);
        let mut flags = flags.filter(|(_, port)| **port == ResultPort::Incomplete);
        let mut further = flags.clone().flat_map(|(values, _)| &values[1..]);
        assert!(further.all(|bits| bits == &[0]), "one bit in the first row");
        assert!(flags.next().is_none() || flags.next().is_none(), "one flag");
        let first: Vec<u128> = ports.iter().map(|port| value(&port[0])).collect();
        (rows, of.incomplete(&first))
    };
    let complete = keeps.values().flat_map(|(_, all)| all);
    assert!(complete.into_iter().all(|shares| shares.finished()));
    let (opened, incomplete) = physical.results.iter().map(opened).unzip();
    let number = |of: veil_physical::SizePort| {
        let all = sizes[&of.pass].iter();
        let ring = passes.passes()[of.pass].rows().unwrap().job.circuit.ring;
        let all: Vec<_> = all.map(|seen| seen.rows(ring, 0).unwrap()).collect();
        assert!(all.iter().all(|one| *one == all[0]), "parties see one size");
        let wires = if ring == Ring::Bits { 32 } else { 1 };
        assert_eq!((all[0].len(), all[0][0].len()), (1, wires));
        let bits = all[0][0].iter().zip(0..);
        bits.map(|(bit, at)| (*bit as u32) << at).sum()
    };
    let sized = physical.keeps.iter().filter_map(|kept| kept.size);
    Ok(Ran {
        opened,
        kept: keeps.into_values().collect(),
        sizes: sized.map(number).collect(),
        incomplete,
    })
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
            let physical = match plan(&program, &participants(security)) {
                Ok(physical) => physical,
                Err(error) => {
                    wrong.push(format!("{}: {error}", query.name));
                    break;
                }
            };
            let found = run(&physical, &program, &inputs).unwrap();
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

/// Questions that take parties seconds each.
const LONG: [&str; 7] = ["q07", "q08", "q09", "q15", "q17", "q20", "q21"];

#[test]
fn parties_answer_questions_of_tpch() {
    answer_questions(|name| !LONG.contains(&name));
}

#[test]
#[ignore = "tier long: half a minute of two processors"]
fn parties_answer_long_questions_of_tpch() {
    answer_questions(|name| LONG.contains(&name));
}

fn answer_questions(asked: impl Fn(&str) -> bool) {
    let (tables, inputs) = tpch::tables();
    for (name, sql) in tpch::QUERIES.into_iter().filter(|(name, _)| asked(name)) {
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        let [security, _] = securities();
        let physical = plan(&program, &participants(security))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let began = std::time::Instant::now();
        let found = run(&physical, &program, &inputs).unwrap();
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

/// Bounds that rows fit, that they fill, and that they do not fit: refused at the parties by a claim, or dropped as the query means.
#[test]
fn bounds_are_kept() {
    let tables = common::tables(40, 70);
    let inputs = common::rows(&tables, 4);
    let sql = "WITH some AS (SELECT id, age FROM people WHERE age > 20) SELECT id, age FROM some";
    let unbounded = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
    let all = clear::evaluate(&unbounded, &inputs).unwrap()[0].rows.len() as u32;
    assert!(all > 5);
    for overflow in [Overflow::Refuse, Overflow::Drop] {
        for rows in [0, 1, all - 1, all, all + 1, 40, 50] {
            let mut job = job(tables.clone(), sql);
            job.bounds = vec![Bound {
                of: "some".into(),
                rows,
                overflow,
            }];
            let program = compile(&job, &SortedBytes).unwrap();
            for security in securities() {
                let physical = plan(&program, &participants(security)).unwrap();
                let found = run(&physical, &program, &inputs);
                match (clear::evaluate(&program, &inputs), found) {
                    (Ok(wanted), Ok(found)) => assert_eq!(found[0], wanted[0].rows, "{rows} rows"),
                    (Err(_), Err(said)) => assert!(
                        said.contains(&format!("has at most {rows} rows: that is false")),
                        "{said}"
                    ),
                    (wanted, found) => panic!("{rows} rows: {found:?} for {wanted:?}"),
                }
            }
        }
    }
}

/// Joins in which both sides may have a key more than once: at exactly their bound, and one beyond.
#[test]
fn joins_of_many_keep_their_bound() {
    let tables = common::tables(30, 40);
    let inputs = common::rows(&tables, 8);
    for (join, extra) in [("JOIN", 0), ("JOIN", 1)] {
        let condition = ["", "AND a.cost < b.cost"][extra];
        let sql = format!(
            "WITH both AS (SELECT a.person, a.cost, b.cost AS other, b.tag IS NULL AS none FROM visits a {join} visits b ON a.ward = b.ward {condition}) \
             SELECT person, cost, other, none FROM both"
        );
        let bounded = |rows| {
            let mut job = job(tables.clone(), &sql);
            job.bounds = vec![Bound {
                of: "both".into(),
                rows,
                overflow: Overflow::Refuse,
            }];
            compile(&job, &SortedBytes).unwrap()
        };
        let visits = inputs[1]
            .rows
            .iter()
            .zip(&inputs[1].valid)
            .filter(|(_, valid)| **valid);
        let mut of_ward = BTreeMap::new();
        visits.for_each(|(row, _)| *of_ward.entry(row[3]).or_insert(0u32) += 1);
        let pairs: u32 = of_ward.values().map(|rows| rows * rows).sum();
        for rows in [pairs, pairs - 1, pairs + 7] {
            let program = bounded(rows);
            for security in securities() {
                let physical = plan(&program, &participants(security)).unwrap();
                let found = run(&physical, &program, &inputs);
                match (clear::evaluate(&program, &inputs), found) {
                    (Ok(wanted), Ok(found)) => assert!(found[0] == wanted[0].rows, "{sql}: {rows}"),
                    (Err(_), Err(said)) => assert!(said.contains("that is false"), "{said}"),
                    (wanted, found) => {
                        panic!("{sql}, {rows} rows of {pairs}: {found:?} for {wanted:?}")
                    }
                }
            }
        }
    }
}

/// Left joins in which both sides may have a key more than once, and rows of the left none: at exactly their bound, and one beyond.
#[test]
fn left_joins_of_many_keep_their_bound() {
    let tables = common::tables(30, 40);
    let inputs = common::rows(&tables, 9);
    let sql = "WITH both AS (SELECT p.id, p.age, v.cost, v.tag IS NULL AS none FROM people p LEFT JOIN visits v ON p.age = v.person AND v.ward <> 'a') \
               SELECT id, age, cost, none FROM both";
    let bounded = |rows| {
        let mut job = job(tables.clone(), sql);
        job.bounds = vec![Bound {
            of: "both".into(),
            rows,
            overflow: Overflow::Refuse,
        }];
        compile(&job, &SortedBytes).unwrap()
    };
    let mut inputs = inputs;
    for row in 0..20 {
        inputs[0].rows[row][4] = inputs[1].rows[row][0];
    }
    let all = clear::evaluate(&bounded(1000), &inputs).unwrap()[0]
        .rows
        .clone();
    let total = all.len() as u32;
    let alone = all.iter().filter(|row| row[2] == Value::Null).count() as u32;
    assert!(alone > 0 && alone + 10 < total, "{alone} of {total}");
    for rows in [total - alone - 1, total - 1, total, total + 9] {
        let program = bounded(rows);
        for security in securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            let found = run(&physical, &program, &inputs);
            match (clear::evaluate(&program, &inputs), found) {
                (Ok(wanted), Ok(found)) => {
                    assert!(rows >= total && found[0] == wanted[0].rows, "{rows} rows");
                }
                (Err(_), Err(said)) => assert!(said.contains("that is false"), "{said}"),
                (wanted, found) => panic!("{rows} rows of {total}: {found:?} for {wanted:?}"),
            }
        }
    }
}

/// A claim that a key is unique is looked at: the parties open one bit, and nothing else, where it is false.
#[test]
fn a_false_claim_ends_the_run() {
    let tables = common::tables(40, 70);
    let sql = "SELECT v.cost, p.age FROM visits v JOIN people p ON v.person = p.id";
    let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
    for (seed, twice) in [(5, false), (6, true)] {
        let mut inputs = common::rows(&tables, seed);
        if twice {
            inputs[0].rows[7][0] = inputs[0].rows[3][0];
            inputs[0].valid[3] = true;
            inputs[0].valid[7] = true;
        }
        for security in securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            assert!(
                physical
                    .opens
                    .iter()
                    .any(|of| matches!(of, Opening::Duplicates { .. }))
            );
            match run(&physical, &program, &inputs) {
                Ok(_) => assert!(!twice, "{security}"),
                Err(said) => {
                    assert!(twice, "{said}");
                    assert!(
                        said.contains(
                            "a key of `people` is there once: that is false, and the run is over"
                        ),
                        "{said}"
                    );
                }
            }
        }
    }
}

/// What is planned follows from the query alone, in a time that nothing makes long.
#[test]
fn plans_are_the_same_every_time() {
    let (tables, _) = tpch::tables();
    for (name, sql) in tpch::QUERIES {
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        let [security, _] = securities();
        let began = std::time::Instant::now();
        let one = plan(&program, &participants(security)).unwrap();
        let took = began.elapsed();
        assert!(
            one == plan(&program, &participants(security)).unwrap(),
            "{name}"
        );
        assert!(took.as_secs_f64() < 1.0, "{name}: {took:?}");
        // Every pass is that of some operator, or an input.
        let passes = one.passes.passes.len();
        let mut of = vec![false; passes];
        let mut nodes: Vec<&Node> = one.tree.iter().collect();
        while let Some(node) = nodes.pop() {
            nodes.extend(&node.inputs);
            for pass in node.passes.iter().cloned().flatten() {
                assert!(
                    !std::mem::replace(&mut of[pass], true),
                    "{name}: pass {pass} twice"
                );
            }
        }
        assert!(of.iter().all(|of| *of), "{name}: a pass is of no operator");
    }
}

/// What a plan says it opens is what its passes open: a relation for each pass to a recipient, a bit for each claim, and permutations.
#[test]
fn what_is_opened_is_listed() {
    use veil_job::Audience;
    use veil_job::passes::{MoveKind, PassSpec};
    let tables = common::tables(40, 70);
    for query in listed() {
        let program = compile(&job(tables.clone(), &query.sql), &SortedBytes).unwrap();
        for security in securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            let (mut relations, mut claims, mut permutations) = (0, 0, 0);
            for pass in &physical.passes.passes {
                match pass {
                    PassSpec::Move { kind, .. } => {
                        permutations += u32::from(*kind == MoveKind::Open);
                    }
                    PassSpec::Compare { positions, .. } => {
                        permutations += u32::from(positions.is_some());
                    }
                    PassSpec::Product { .. } => {}
                    PassSpec::Rows { job, claim, .. } => {
                        let opens = job.audiences.iter().any(|of| *of != Audience::Column);
                        assert!(claim.is_none() || opens, "{}", query.name);
                        claims += usize::from(claim.is_some());
                        relations += usize::from(opens && claim.is_none());
                    }
                }
            }
            let count = |of: fn(&Opening) -> bool| physical.opens.iter().filter(|o| of(o)).count();
            assert_eq!(
                relations,
                count(|of| matches!(of, Opening::Rows { .. })),
                "{}",
                query.name
            );
            let bits = |of: &Opening| {
                matches!(
                    of,
                    Opening::Duplicates { .. } | Opening::Overflow { .. } | Opening::Claims { .. }
                )
            };
            assert_eq!(claims, count(bits), "{}", query.name);
            let listed = physical.opens.iter().find_map(|of| match of {
                Opening::Permutations { count } => Some(*count),
                _ => None,
            });
            assert_eq!(permutations, listed.unwrap_or(0), "{}", query.name);
        }
    }
}

/// Categories of one text take no bits, as many as there are of them; those that may be null tell groups apart by that alone.
#[test]
fn groups_have_many_keys_of_one_value() {
    let one = |at: u32, nullable: bool| Column {
        name: format!("c{at}"),
        ty: Type::of(common::category(&["only"])).or_null(nullable),
        consent: None,
    };
    for (keys, nullable) in [(1, 0), (65, 0), (130, 1), (200, 3)] {
        let table = Table {
            name: "t".into(),
            origin: veil_relation::Origin::Owner("north".into()),
            capacity: 20,
            padded: true,
            columns: (0..keys).map(|at| one(at, at < nullable)).collect(),
            sorted_by: vec![],
            unique: vec![],
        };
        let inputs = common::rows(std::slice::from_ref(&table), 17);
        let names: Vec<&str> = table.columns.iter().map(|of| of.name.as_str()).collect();
        let names = names.join(", ");
        let sql = format!("SELECT {names}, count(*) AS n FROM t GROUP BY {names}");
        let program = compile(&job(vec![table], &sql), &SortedBytes).unwrap();
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        for security in securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            let found = run(&physical, &program, &inputs).unwrap();
            assert!(found[0] == wanted[0].rows, "{keys} keys, {security}");
        }
    }
}
