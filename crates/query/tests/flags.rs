//! Bounds that flag: the run goes on, and the recipient of the query learns whether rows are missing.

use proptest::prelude::*;
use veil_job::Audience;
use veil_job::passes::PassSpec;
use veil_physical::{Opening, PhysicalPlan, ResultPort, To, plan};
use veil_query::{Bound, Job, Query, SortedBytes, compile};
use veil_relation::{Kept, Overflow, Program, clear};

use crate::common;
use crate::parties::{participants, run_with_flags, securities};

fn flag(of: &str, rows: u32) -> Bound {
    Bound {
        of: of.into(),
        rows,
        overflow: Overflow::Flag,
    }
}

fn job(sql: &str, bounds: Vec<Bound>) -> Job {
    Job {
        bounds,
        ..common::job(common::tables(30, 50), sql)
    }
}

fn program(sql: &str, bounds: Vec<Bound>) -> Program {
    compile(&job(sql, bounds), &SortedBytes).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Relations that are bounded.
const INNER: [&str; 5] = [
    "SELECT id, age FROM people WHERE age > 20",
    "SELECT person AS id, count(*) AS age FROM visits GROUP BY person",
    "SELECT v.person AS id, p.age FROM visits v JOIN people p ON v.person = p.id",
    "SELECT id, age FROM people WHERE active UNION ALL SELECT person, 3 FROM visits WHERE ward = 'a'",
    "SELECT DISTINCT age AS id, age FROM people",
];

/// What is asked of them.
const OUTER: [&str; 9] = [
    "SELECT id, age FROM some",
    "SELECT id FROM some WHERE age < 60",
    "SELECT count(*) AS n, sum(age) AS s FROM some",
    "SELECT age, count(*) AS n FROM some GROUP BY age",
    "SELECT s.age, p.income FROM some s JOIN people p ON s.id = p.id",
    "SELECT p.id FROM people p WHERE p.id IN (SELECT id FROM some)",
    "SELECT id, age FROM some ORDER BY age DESC, id LIMIT 3",
    "SELECT id, rank() OVER (ORDER BY age) AS r FROM some",
    "SELECT a.id FROM some a UNION ALL SELECT b.age FROM some b",
];

fn with(inner: &str, outer: &str) -> String {
    format!("WITH some AS ({inner}) {outer}")
}

/// How many rows the bounded relation has.
fn count(inner: &str, inputs: &[clear::Input]) -> u32 {
    let all = program(&with(inner, "SELECT id, age FROM some"), vec![]);
    clear::evaluate(&all, inputs).unwrap()[0].rows.len() as u32
}

/// Runs a program among parties, and looks whether they open what it means; gives whether rows are missing.
fn opens_what_it_means(program: &Program, inputs: &[clear::Input], security: usize) -> Vec<bool> {
    opens(program, inputs, security, true)
}

/// The same of a program that bounds a relation whose order the algebra does not say: it may lack other rows than the clear does, if it lacks any.
fn opens(program: &Program, inputs: &[clear::Input], security: usize, ordered: bool) -> Vec<bool> {
    let wanted = clear::evaluate(program, inputs).unwrap();
    let physical = plan(program, &participants(securities()[security])).unwrap();
    lists_what_it_opens(&physical);
    let found = run_with_flags(&physical, program, inputs).unwrap();
    assert_eq!(found.len(), wanted.len());
    for ((rows, incomplete), wanted) in found.iter().zip(&wanted) {
        if ordered || !wanted.incomplete {
            assert_eq!(*rows, wanted.rows, "{program}");
        }
        assert_eq!(rows.len(), wanted.rows.len(), "{program}");
        assert_eq!(incomplete.unwrap_or(false), wanted.incomplete, "{program}");
    }
    wanted.iter().map(|of| of.incomplete).collect()
}

/// A result has one port that says whether it lacks rows if the plan lists that it is opened, to the same recipient; and no bit is opened to the parties for it.
fn lists_what_it_opens(physical: &PhysicalPlan) {
    for result in &physical.results {
        let ports = result.ports.iter();
        let ports = ports.filter(|port| **port == ResultPort::Incomplete);
        let listed = physical.opens.iter().filter(|opening| {
            let of = matches!(opening, Opening::Incomplete { step, .. } if *step == result.step);
            of && opening.to() == To::Recipient(result.to.clone())
        });
        assert_eq!(ports.count(), listed.count());
        let PassSpec::Rows { job, claim, .. } = &physical.passes.passes[result.pass] else {
            panic!("rows are opened by a pass of rows");
        };
        assert!(claim.is_none());
        let recipient = |to: &Audience| *to == Audience::Recipient(0);
        assert!(job.audiences.iter().all(recipient), "{:?}", job.audiences);
    }
    let claims = physical.passes.passes.iter();
    let claims = claims.filter(|pass| matches!(pass, PassSpec::Rows { claim: Some(_), .. }));
    let bits = physical.opens.iter().filter(|opening| {
        matches!(
            opening,
            Opening::Duplicates { .. } | Opening::Overflow { .. } | Opening::Claims { .. }
        )
    });
    assert_eq!(claims.count(), bits.count());
}

/// Every bounded relation under every question, exactly at the bound and one beyond.
#[test]
fn rows_at_the_bound_are_all_and_one_beyond_is_missing() {
    let inputs = common::rows(&common::tables(30, 50), 11);
    for inner in INNER {
        let rows = count(inner, &inputs);
        assert!(rows > 3, "{inner}");
        for (at, outer) in OUTER.into_iter().enumerate() {
            let sql = with(inner, outer);
            for (bound, missing) in [(rows, false), (rows - 1, true)] {
                let program = program(&sql, vec![flag("some", bound)]);
                let found = opens_what_it_means(&program, &inputs, at % 2);
                assert_eq!(found, [missing], "{sql}: {bound} of {rows}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bounds below, at and above the number of rows, on a relation and on the result, over rows of all kinds.
    #[test]
    fn parties_say_what_the_clear_says(
        seed in any::<u64>(),
        inner in prop::sample::select(&INNER[..]),
        outer in prop::sample::select(&OUTER[..]),
        off in -4_i64..4,
        result in prop::option::of(0_u32..12),
        security in 0_usize..2,
    ) {
        let inputs = common::rows(&common::tables(30, 50), seed);
        let rows = (i64::from(count(inner, &inputs)) + off).max(0) as u32;
        let own = result.map(|rows| flag("q", rows));
        let bounds = [flag("some", rows)].into_iter().chain(own).collect();
        let program = program(&with(inner, outer), bounds);
        // Parties leave the rows of a window in its order.
        let ordered = result.is_none() || !outer.contains("OVER");
        opens(&program, &inputs, security, ordered);
    }
}

/// Two bounds of one query: one bit says that either has left out rows. A query that reads neither says nothing, and one that reads one says of that alone.
#[test]
fn flags_of_a_query_are_one() {
    let inputs = common::rows(&common::tables(30, 50), 12);
    let old = "SELECT id, age FROM people WHERE age > 20";
    let dear = "SELECT person AS id, cost FROM visits WHERE cost > 0";
    let rows = count(old, &inputs);
    let visits = count(&dear.replace("cost FROM", "7 AS age FROM"), &inputs);
    let query = |name: &str, sql: &str, to: bool| Query {
        name: name.into(),
        to: to.then(|| "r".into()),
        ..common::query(sql)
    };
    for (few, less) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut job = job("SELECT count(*) AS n FROM wards", vec![]);
        job.queries.extend([
            query("old", old, false),
            query("dear", dear, false),
            query("one", "SELECT count(*) AS n FROM old", true),
            query(
                "both",
                "SELECT d.cost FROM dear d WHERE d.id IN (SELECT id FROM old)",
                true,
            ),
        ]);
        job.bounds = vec![
            flag("old", rows - u32::from(few)),
            flag("dear", visits - u32::from(less)),
        ];
        let program = compile(&job, &SortedBytes).unwrap();
        for security in 0..2 {
            assert_eq!(
                opens_what_it_means(&program, &inputs, security),
                [false, few, few || less]
            );
        }
        let physical = plan(&program, &participants(securities()[0])).unwrap();
        let opened: Vec<(&str, usize)> = (physical.opens.iter())
            .filter_map(|opening| match opening {
                Opening::Incomplete { step, of, .. } => Some((step.as_str(), of.len())),
                _ => None,
            })
            .collect();
        assert_eq!(opened, [("one", 1), ("both", 2)]);
        let says: Vec<bool> = (physical.results.iter())
            .map(|of| of.ports.contains(&ResultPort::Incomplete))
            .collect();
        assert_eq!(says, [false, true, true]);
    }
}

/// A bound on an ordered result keeps its first rows, in their order.
#[test]
fn an_ordered_result_keeps_its_first_rows() {
    let inputs = common::rows(&common::tables(30, 50), 13);
    let sql = "SELECT id, age FROM people ORDER BY age DESC, id";
    let all = clear::evaluate(&program(sql, vec![]), &inputs).unwrap();
    for rows in [1, 4] {
        let program = program(sql, vec![flag("q", rows)]);
        for security in 0..2 {
            assert_eq!(opens_what_it_means(&program, &inputs, security), [true]);
        }
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        assert_eq!(wanted[0].rows, all[0].rows[..rows as usize]);
    }
}

/// The hash of what runs covers that it is opened: a plan that drops is another one than a plan that flags.
#[test]
fn a_plan_that_flags_is_another_plan() {
    let sql = with(INNER[0], OUTER[0]);
    let passes = |overflow| {
        let bound = Bound {
            overflow,
            ..flag("some", 5)
        };
        let program = program(&sql, vec![bound]);
        plan(&program, &participants(securities()[0]))
            .unwrap()
            .passes
    };
    assert!(passes(Overflow::Flag) != passes(Overflow::Drop));
    assert!(passes(Overflow::Flag) == passes(Overflow::Flag));
}

/// What is kept has no place for the flag: a later job would take it for all rows.
#[test]
fn what_is_kept_has_no_bound_that_flags() {
    let sql = with(INNER[0], OUTER[0]);
    let said = |overflow, to: Option<&str>| {
        let bound = Bound {
            overflow,
            ..flag("some", 5)
        };
        let mut job = job(&sql, vec![bound]);
        job.queries[0].to = to.map(str::to_owned);
        job.queries[0].keep = Some(Kept {
            dataset: "kept".into(),
            size: None,
        });
        let program = compile(&job, &SortedBytes).unwrap();
        let planned = plan(&program, &participants(securities()[0]));
        planned.map(drop).map_err(|error| error.to_string())
    };
    for to in [None, Some("r")] {
        assert_eq!(
            said(Overflow::Flag, to),
            Err("`q`: parties do not compute relations that are kept and say whether a bound has left out rows yet; use overflow = \"refuse\", or \"drop\"".into())
        );
        assert_eq!(said(Overflow::Drop, to), Ok(()));
    }
}
