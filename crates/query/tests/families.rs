//! Families of queries: those that differ in literals are one, and others are not.

use std::collections::BTreeSet;

use veil_query::{Bound, Job, SortedBytes, families};
use veil_relation::{ColumnId, Overflow, Table};

use crate::common;

fn job(tables: Vec<Table>, sql: &str) -> Job {
    Job {
        tables,
        queries: vec![common::query(sql)],
        bounds: vec![],
        models: vec![],
        functions: vec![],
    }
}

fn of(sql: &str) -> BTreeSet<String> {
    let found = families(&job(common::tables(40, 70), sql), &SortedBytes);
    found.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Queries of one family, a list for each.
const SAME: [&[&str]; 11] = [
    &[
        "SELECT count(*) AS n FROM people WHERE age > 20",
        "select COUNT(*) as N\nfrom PEOPLE  where Age > 73 -- again",
        "SELECT count(*) AS how_many FROM people p WHERE p.age > -3",
        "SELECT count(*) AS n FROM people WHERE age > 20.5",
        "SELECT count(*) AS n FROM people WHERE age > 2 * 11",
        "SELECT count(*) AS n FROM people WHERE age > 20 AND age > 21",
    ],
    &[
        "SELECT sum(income) AS s FROM people WHERE id IN (1, 2, 3)",
        "SELECT sum(income) AS s FROM people WHERE id IN (1)",
        "SELECT sum(income) AS s FROM people WHERE id IN (7, 8, 9, 10, 11, 12, 13)",
        "SELECT sum(income) AS s FROM people WHERE id = 4",
    ],
    &[
        "SELECT count(*) AS n FROM people WHERE id NOT IN (1, 2)",
        "SELECT count(*) AS n FROM people WHERE id NOT IN (5, 6, 7)",
    ],
    &[
        "SELECT count(*) AS n FROM people WHERE city IN ('oslo', 'rome')",
        "SELECT count(*) AS n FROM people WHERE city IN ('lima')",
        "SELECT count(*) AS n FROM people WHERE city LIKE 'o%'",
    ],
    &[
        "SELECT id, age FROM people ORDER BY age DESC, id LIMIT 3",
        "SELECT id, age FROM people ORDER BY age DESC, id LIMIT 39",
    ],
    &[
        "SELECT ward, count(*) AS n FROM visits WHERE day >= DATE '2020-01-05' GROUP BY ward",
        "SELECT ward, count(*) AS n FROM visits WHERE day >= DATE '2020-02-11' GROUP BY ward",
        "SELECT ward, count(*) AS n FROM visits WHERE day >= DATE '2020-01-05' + INTERVAL '3' DAY GROUP BY ward",
    ],
    &[
        "SELECT count(*) AS n FROM visits WHERE cost BETWEEN 1 AND 20",
        "SELECT count(*) AS n FROM visits WHERE cost BETWEEN 1.25 AND 7.5",
        "SELECT count(*) AS n FROM visits WHERE cost <= 3 AND cost >= 2",
    ],
    &[
        "SELECT ward, round(avg(cost), 1) AS m FROM visits GROUP BY ward HAVING count(*) > 3",
        "SELECT ward, round(avg(cost), 4) AS m FROM visits GROUP BY ward HAVING count(*) > 5",
    ],
    &[
        "SELECT sum(CASE WHEN age > 30 THEN 1 ELSE 0 END) AS n FROM people",
        "SELECT sum(CASE WHEN age > 31 THEN 2 ELSE 5 END) AS n FROM people",
    ],
    &[
        "WITH old AS (SELECT id FROM people WHERE age > 40) SELECT count(*) AS n FROM visits v JOIN old ON v.person = old.id",
        "WITH other AS (SELECT id FROM people WHERE age > 50) SELECT count(*) AS n FROM visits v JOIN other o ON v.person = o.id",
    ],
    &[
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY cost) AS m FROM visits",
        "SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY cost) AS m FROM visits",
    ],
];

#[test]
fn queries_that_differ_in_literals_are_one_family() {
    for queries in SAME {
        let first = of(queries[0]);
        assert_eq!(first.len(), 1);
        for query in queries {
            assert_eq!(of(query), first, "{query}");
        }
    }
}

/// Another column, operator, aggregate, table or order, and what is asked beside it.
#[test]
fn other_queries_are_other_families() {
    let others = [
        "SELECT count(*) AS n FROM people WHERE id > 20",
        "SELECT count(*) AS n FROM people WHERE age >= 20",
        "SELECT count(*) AS n FROM people WHERE age < 20",
        "SELECT count(age) AS n FROM people WHERE age > 20",
        "SELECT sum(age) AS n FROM people WHERE age > 20",
        "SELECT count(*) AS n FROM people",
        "SELECT count(*) AS n FROM people WHERE age > 20 OR active",
        "SELECT count(*) AS n FROM people WHERE age > 20 AND active",
        "SELECT count(*) AS n FROM people WHERE age > id",
        "SELECT count(*) AS n FROM visits WHERE cost > 20",
        "SELECT count(*) AS n FROM people WHERE age IS NULL",
        "SELECT id, age FROM people ORDER BY age, id LIMIT 3",
        "SELECT id, age FROM people ORDER BY age DESC, id",
        "SELECT id, age FROM people ORDER BY age DESC NULLS LAST, id LIMIT 3",
        "SELECT ward, count(*) AS n FROM visits WHERE cost >= 3 GROUP BY ward",
    ];
    let mut all = BTreeSet::new();
    let firsts = SAME.iter().map(|queries| queries[0]);
    for sql in firsts.chain(others) {
        assert!(all.insert(of(sql)), "{sql} is of a family before");
    }
}

/// What the job says beside its queries: rows, bounds, ranges, a least count, in which order a table has its columns, and what else it declares.
#[test]
fn what_a_job_declares_makes_no_other_family() {
    let sql = "SELECT v.ward, count(*) AS n FROM visits v JOIN people p ON v.person = p.id WHERE p.age > 3 GROUP BY v.ward";
    let first = of(sql);
    for (people, visits) in [(1, 1), (900, 20), (20, 900)] {
        let found = families(&job(common::tables(people, visits), sql), &SortedBytes);
        assert_eq!(found.unwrap(), first, "{people}, {visits}");
    }
    let mut turned = common::tables(40, 70);
    for table in &mut turned {
        table.columns.reverse();
        let last = table.columns.len() as u32 - 1;
        for column in table.unique.iter_mut().flatten() {
            *column = ColumnId(last - column.0);
        }
    }
    let mut query = common::query(sql);
    query.min_count = 12;
    query.to = Some("another".into());
    let job = Job {
        tables: turned,
        queries: vec![query],
        bounds: vec![],
        models: vec![],
        functions: vec![],
    };
    assert_eq!(families(&job, &SortedBytes).unwrap(), first);
    let bounded = |rows| {
        let sql = "WITH some AS (SELECT id FROM people) SELECT count(*) AS n FROM some";
        let mut job = self::job(common::tables(40, 70), sql);
        job.bounds = vec![Bound {
            of: "some".into(),
            rows,
            overflow: Overflow::Drop,
        }];
        families(&job, &SortedBytes).unwrap()
    };
    assert_eq!(bounded(3), bounded(17));
    let mut owned = common::tables(40, 70);
    owned[0].origin = veil_relation::Origin::Owner("south".into());
    assert_ne!(
        families(&self::job(owned, sql), &SortedBytes).unwrap(),
        first
    );
}

/// Each query of a job that gives something counts for itself: another one beside it hides it not.
#[test]
fn a_job_has_the_families_of_its_queries() {
    let [asked, other] = [
        "SELECT count(*) AS n FROM people WHERE age > 20",
        "SELECT sum(cost) AS s FROM visits",
    ];
    let mut both = job(common::tables(40, 70), asked);
    let mut second = common::query(other);
    second.name = "second".into();
    both.queries.push(second);
    let mut inner = common::query("SELECT id FROM people");
    inner.name = "inner".into();
    inner.to = None;
    both.queries.push(inner);
    let found = families(&both, &SortedBytes).unwrap();
    assert_eq!(found, of(asked).union(&of(other)).cloned().collect());
}

/// Steps that are read again and again are written once: each reads the one before twice.
#[test]
fn a_family_of_many_steps_is_short() {
    let mut sql = "WITH s0 AS (SELECT id, age FROM people)".to_owned();
    for at in 1..20 {
        let before = at - 1;
        let inner = format!("SELECT b.id FROM s{before} b WHERE b.age > {at}");
        let step = format!("SELECT a.id, a.age FROM s{before} a WHERE a.id IN ({inner})");
        sql = format!("{sql}, s{at} AS ({step})");
    }
    sql += " SELECT count(*) AS n FROM s19";
    let found = of(&sql);
    assert!(found.iter().all(|text| text.len() < 5000), "{found:?}");
}
