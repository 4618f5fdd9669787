//! Jobs: several queries, bounds, minimal counts, consent.

use veil_query::{Bound, Job, Query, SortedBytes, compile};
use veil_relation::{Consent, Operation, Overflow, Reveal, Value, clear};

use crate::common::{query, rows, tables};

fn job(sql: &str) -> Job {
    Job {
        tables: tables(40, 90),
        queries: vec![query(sql)],
        bounds: Vec::new(),
        models: vec![],
        functions: vec![],
    }
}

fn run(job: &Job) -> Result<Vec<clear::Opened>, String> {
    let program = compile(job, &SortedBytes).map_err(|error| error.to_string())?;
    clear::evaluate(&program, &rows(&job.tables, 5)).map_err(|error| error.to_string())
}

#[test]
fn later_queries_read_earlier_ones() {
    let direct = run(&job("SELECT ward, sum(s) AS t FROM (SELECT person, ward, sum(cost) AS s FROM visits GROUP BY person, ward) x GROUP BY ward")).unwrap();
    let mut two = job("SELECT ward, sum(s) AS t FROM sums GROUP BY ward");
    let sums = "SELECT person, ward, sum(cost) AS s FROM visits GROUP BY person, ward";
    two.queries.insert(
        0,
        Query {
            keep: None,
            name: "sums".into(),
            sql: sums.into(),
            to: None,
            min_count: 0,
            fit: None,
            apply: None,
        },
    );
    assert_eq!(run(&two).unwrap()[0].rows, direct[0].rows);
    two.queries[0].to = Some("r".into());
    let error = run(&two).unwrap_err();
    assert!(
        error.contains("query `sums` opens its relation, and is not read by another"),
        "{error}"
    );
    two.queries.swap(0, 1);
    assert!(run(&two).unwrap_err().contains("there is no table `sums`"));
}

#[test]
fn small_groups_are_left_out() {
    let sql = "SELECT city, count(*) AS n FROM people GROUP BY city ORDER BY n";
    let all = run(&job(sql)).unwrap().remove(0).rows;
    let mut least = job(sql);
    least.queries[0].min_count = 6;
    let kept = run(&least).unwrap().remove(0).rows;
    let large = |row: &&Vec<Value>| row[1] >= Value::Number(6);
    assert_eq!(kept, all.iter().filter(large).cloned().collect::<Vec<_>>());
    assert!(!kept.is_empty() && kept.len() < all.len());
    // Rows of persons are no groups, whatever is joined to them.
    let mut persons = job(
        "SELECT v.day, g.n FROM visits v JOIN (SELECT id, count(*) AS n FROM people GROUP BY id) g ON g.id = v.person",
    );
    persons.queries[0].min_count = 6;
    assert_eq!(
        run(&persons).unwrap_err(),
        "q: a minimal count is of groups, and this query has none"
    );
    // Also of the whole: fewer rows than that are no row.
    let mut whole = job("SELECT count(*) AS n FROM people WHERE age > 98");
    whole.queries[0].min_count = 30;
    assert!(run(&whole).unwrap()[0].rows.is_empty());
}

#[test]
fn bounds_bound() {
    let bound = |of: &str, rows, overflow| {
        vec![Bound {
            of: of.into(),
            rows,
            overflow,
        }]
    };
    let mut many = job(
        "WITH pairs AS (SELECT a.person AS p, b.person AS q FROM visits a JOIN visits b ON a.day = b.day AND a.cost < b.cost) SELECT count(*) AS n FROM pairs",
    );
    many.bounds = bound("pairs", 100_000, Overflow::Refuse);
    let program = compile(&many, &SortedBytes).unwrap();
    assert!(
        program.to_string().contains("(at-most 100000)"),
        "{program}"
    );
    assert!(run(&many).unwrap()[0].rows[0][0] > Value::Number(90));
    many.bounds = bound("pairs", 5, Overflow::Refuse);
    assert_eq!(run(&many).unwrap_err(), "a relation has more than 5 rows");
    // A bound that leaves out rows is no bound of pairs.
    many.bounds = bound("pairs", 100_000, Overflow::Drop);
    assert!(
        run(&many)
            .unwrap_err()
            .contains("bound the result by the job")
    );
    let mut flagged = job("SELECT person FROM visits");
    flagged.bounds = bound("q", 3, Overflow::Flag);
    let opened = run(&flagged).unwrap().remove(0);
    assert_eq!((opened.rows.len(), opened.incomplete), (3, true));
}

/// What an owner forbids has a place in the query: where the column is used, or is computed that is opened.
#[test]
fn owners_words_are_kept_where_a_query_is_against_them() {
    let said = |sql: &str| {
        let mut job = job(sql);
        job.tables[0].columns[1].consent = Some(Consent {
            may: [Operation::GroupBy].into(),
            reveal: Reveal::Aggregates,
        });
        compile(&job, &SortedBytes).unwrap_err().to_string()
    };
    assert_eq!(
        said("SELECT count(*) AS n\nFROM people\nWHERE age > 3 AND city = 'oslo'"),
        "query `q`, line 3, column 19: `north` does not allow filter on column `city` of `people`
  WHERE age > 3 AND city = 'oslo'
                    ^"
    );
    assert_eq!(
        said("SELECT id, substring(city, 1, 1) AS c FROM people ORDER BY id"),
        "query `q`, line 1, column 22: `north` does not allow that values of rows of column `city` of `people` are opened
  SELECT id, substring(city, 1, 1) AS c FROM people ORDER BY id
                       ^"
    );
    assert_eq!(
        said("SELECT id,\n  city FROM people"),
        "query `q`, line 2, column 3: `north` does not allow that values of rows of column `city` of `people` are opened
    city FROM people
    ^"
    );
    assert_eq!(
        said("SELECT p.id FROM people p JOIN wards w ON w.ward = p.city"),
        "query `q`, line 1, column 52: `north` does not allow join on column `city` of `people`
  SELECT p.id FROM people p JOIN wards w ON w.ward = p.city
                                                     ^"
    );
}

#[test]
fn owners_words_are_kept() {
    let message = |sql: &str, may: &[Operation], reveal| {
        let mut job = job(sql);
        // Of `city`.
        job.tables[0].columns[1].consent = Some(Consent {
            may: may.iter().copied().collect(),
            reveal,
        });
        let said = run(&job).err().unwrap_or_default();
        let first = said.lines().next().unwrap_or_default();
        match first.strip_prefix("query `q`, line 1, column ") {
            Some(placed) => placed.split_once(": ").unwrap().1.to_owned(),
            None => first.to_owned(),
        }
    };
    let (filter, group) = ([Operation::Filter], [Operation::GroupBy]);
    let no = |operation: &str| {
        format!("`north` does not allow {operation} on column `city` of `people`")
    };
    let opens = |what: &str| {
        format!("`north` does not allow that {what} of column `city` of `people` are opened")
    };
    let counted = "SELECT count(*) AS n FROM people WHERE city = 'oslo'";
    assert_eq!(message(counted, &filter, Reveal::Never), "");
    assert_eq!(message(counted, &group, Reveal::Rows), no("filter"));
    let grouped = "SELECT city, count(*) AS n FROM people GROUP BY city";
    assert_eq!(message(grouped, &group, Reveal::Aggregates), "");
    assert_eq!(message(grouped, &group, Reveal::Never), opens("aggregates"));
    assert_eq!(message(grouped, &filter, Reveal::Rows), no("group-by"));
    assert_eq!(
        message("SELECT id, city FROM people", &filter, Reveal::Aggregates),
        opens("values of rows")
    );
    assert_eq!(
        message("SELECT id, city FROM people", &filter, Reveal::Rows),
        ""
    );
    assert_eq!(
        message("SELECT max(city) AS m FROM people", &[], Reveal::Aggregates),
        opens("values of rows")
    );
    assert_eq!(
        message(
            "SELECT count(DISTINCT city) AS m FROM people",
            &[],
            Reveal::Aggregates
        ),
        ""
    );
    // Through expressions, subqueries and conditions of CASE.
    let hidden = "SELECT x FROM (SELECT CASE WHEN city LIKE 'o%' THEN age END AS x FROM people) t WHERE x > 3";
    assert_eq!(message(hidden, &[], Reveal::Rows), no("filter"));
    assert_eq!(
        message(
            "SELECT id, coalesce(substring(city, 1, 1), '') AS c FROM people",
            &[],
            Reveal::Aggregates
        ),
        opens("values of rows")
    );
    assert_eq!(
        message(
            "SELECT id FROM people ORDER BY city",
            &filter,
            Reveal::Never
        ),
        no("sort")
    );
    assert_eq!(
        message(
            "SELECT id, rank() OVER (ORDER BY city) AS r FROM people",
            &filter,
            Reveal::Never
        ),
        no("window")
    );
    assert_eq!(
        message(
            "SELECT v.day FROM visits v WHERE v.ward IN (SELECT city FROM people)",
            &filter,
            Reveal::Never
        ),
        no("join")
    );
}
