//! How often plans sort: joins and groups by one key are sorted once.

use veil_job::passes::PassSpec;
use veil_physical::{Node, Opening, PhysicalPlan, plan};
use veil_query::{SortedBytes, compile};
use veil_relation::clear;

use crate::common::{self, job, listed};
use crate::parties::{participants, run, securities};
use crate::tpch;

/// The rows of each sort by keys of more than a few bits.
fn sorts(of: &PhysicalPlan) -> Vec<u32> {
    let passes = of.passes.passes.iter();
    let sorted = passes.filter_map(|pass| match pass {
        PassSpec::Compare {
            rows,
            positions: Some(_),
            ..
        } => Some(*rows),
        _ => None,
    });
    sorted.collect()
}

fn texts(of: &PhysicalPlan) -> Vec<String> {
    let mut nodes: Vec<&Node> = of.tree.iter().collect();
    let mut all = Vec::new();
    while let Some(node) = nodes.pop() {
        all.push(node.text.clone());
        nodes.extend(&node.inputs);
    }
    all
}

/// Of the queries of the oracle those that say so are sorted once for groups and join, and no others.
#[test]
fn joins_and_groups_by_one_key_are_sorted_once() {
    let tables = common::tables(40, 70);
    for query in listed() {
        let early = query.name.starts_with("early");
        let groups = query.name.starts_with("looked_up_groups");
        if !early && !groups && !query.name.starts_with("not_early") {
            continue;
        }
        let program = compile(&job(tables.clone(), &query.sql), &SortedBytes).unwrap();
        for security in securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            let texts = texts(&physical);
            let has = |words: &str| texts.iter().any(|text| text.contains(words));
            assert_eq!(has("(one sort)"), early, "{}: {texts:?}", query.name);
            assert_eq!(has("sorted once with the groups"), groups, "{}: {texts:?}", query.name);
        }
    }
}

/// Tables of one row, of few, and of none that count.
#[test]
fn one_sort_serves_few_rows() {
    for (people, visits, seed) in [(1, 1, 20), (2, 1, 21), (3, 9, 22)] {
        let tables = common::tables(people, visits);
        let mut inputs = common::rows(&tables, seed);
        for none in [false, true] {
            if none {
                inputs[1].valid.fill(false);
            }
            for query in listed().iter().filter(|of| {
                of.name.starts_with("early") || of.name.starts_with("looked_up_groups")
            }) {
                let program = compile(&job(tables.clone(), &query.sql), &SortedBytes).unwrap();
                let wanted = clear::evaluate(&program, &inputs).unwrap();
                for security in securities() {
                    let physical = plan(&program, &participants(security)).unwrap();
                    let found = run(&physical, &program, &inputs).unwrap();
                    assert!(
                        found[0] == wanted[0].rows,
                        "{}, {security}: {:?} for {:?}",
                        query.name,
                        found[0],
                        wanted[0].rows
                    );
                }
            }
        }
    }
}

/// Groups of fewer rows are left out where each is a row of one side, and the result says so.
#[test]
fn groups_of_rows_have_a_minimal_count() {
    let tables = common::tables(40, 70);
    let inputs = common::rows(&tables, 23);
    let sql = "SELECT p.id, sum(v.cost) AS c FROM visits v JOIN people p ON v.person = p.id GROUP BY p.id";
    let mut job = job(tables, sql);
    job.queries[0].min_count = 2;
    let program = compile(&job, &SortedBytes).unwrap();
    let wanted = clear::evaluate(&program, &inputs).unwrap();
    assert!(!wanted[0].rows.is_empty());
    for security in securities() {
        let physical = plan(&program, &participants(security)).unwrap();
        assert!(texts(&physical).iter().any(|text| text.contains("(one sort)")));
        let says = |of: &Opening| matches!(of, Opening::Rows { min_rows: 2, .. });
        assert!(physical.opens.iter().any(says));
        let found = run(&physical, &program, &inputs).unwrap();
        assert!(found[0] == wanted[0].rows);
    }
}

/// A key that is claimed to be there once is looked at where its rows are groups, too.
#[test]
fn a_false_claim_ends_a_run_of_one_sort() {
    let tables = common::tables(40, 70);
    for sql in [
        "SELECT p.id, sum(v.cost) AS c FROM visits v JOIN people p ON v.person = p.id GROUP BY p.id",
        "SELECT p.id, count(v.person) AS c FROM people p LEFT JOIN visits v ON v.person = p.id GROUP BY p.id",
    ] {
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        let mut inputs = common::rows(&tables, 24);
        (inputs[0].valid[3], inputs[0].valid[7]) = (true, true);
        for twice in [false, true] {
            if twice {
                inputs[0].rows[7][0] = inputs[0].rows[3][0];
            }
            for security in securities() {
                let physical = plan(&program, &participants(security)).unwrap();
                let looks = |of: &Opening| matches!(of, Opening::Duplicates { .. });
                assert!(physical.opens.iter().any(looks), "{sql}");
                match (run(&physical, &program, &inputs), clear::evaluate(&program, &inputs)) {
                    (Ok(found), Ok(wanted)) => {
                        assert!(!twice && found[0] == wanted[0].rows, "{sql}, {security}");
                    }
                    (Err(said), Err(_)) => {
                        let is = "a key of `people` is there once: that is false, and the run is over";
                        assert!(twice && said.contains(is), "{said}");
                    }
                    (found, wanted) => panic!("{sql}: {found:?} for {wanted:?}"),
                }
            }
        }
    }
}

/// Where groups are few, they are found before they are looked up.
#[test]
fn few_groups_are_found_first() {
    let tables = common::tables(300, 2000);
    let sql = "SELECT p.id FROM people p JOIN (SELECT day, sum(cost) AS c FROM visits GROUP BY day) g ON g.day = p.born";
    let program = compile(&job(tables, sql), &SortedBytes).unwrap();
    let [security, _] = securities();
    let physical = plan(&program, &participants(security)).unwrap();
    assert!(!texts(&physical).iter().any(|text| text.contains("sorted once")));
}

/// The sorts of questions of TPC-H at scale 0.01: one for each join, with the groups over it, and one for the order.
#[test]
fn questions_of_tpch_sort_as_often_as_they_join() {
    let (tables, _) = tpch::tables();
    let mut found = Vec::new();
    for (name, sql) in tpch::QUERIES {
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        let [security, _] = securities();
        let physical = plan(&program, &participants(security)).unwrap();
        println!("{name}: {:?}", sorts(&physical));
        found.push((name, sorts(&physical)));
    }
    let of = |wanted: &str| {
        let (_, sorts) = found.iter().find(|(name, _)| *name == wanted).unwrap();
        sorts.clone()
    };
    assert_eq!(of("q03").len(), 3);
    assert_eq!(of("q13").len(), 2);
}
