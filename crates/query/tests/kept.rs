//! Relations that parties keep in one job, and have as tables in another.

use std::collections::BTreeSet;

use veil_job::Security;
use veil_physical::{KeepPorts, Opening, PhysicalPlan, plan};
use veil_protocol::Options;
use veil_query::{Job, Query, SortedBytes, compile};
use veil_relation::{Column, Consent, Operation, Program, Reveal, Table, clear};

use crate::common::{self, query};
use crate::parties::{Stores, all_securities, participants, run_with_stores, securities};

/// A query whose relation is kept under its own name, and not opened.
fn keeping(name: &str, sql: &str) -> Query {
    Query {
        name: name.into(),
        sql: sql.into(),
        to: None,
        keep: Some(name.into()),
        min_count: 0,
        fit: None,
        apply: None,
    }
}

fn compiled(tables: &[Table], queries: Vec<Query>) -> Program {
    let job = Job {
        tables: tables.to_vec(),
        queries,
        bounds: vec![],
        models: vec![],
        functions: vec![],
    };
    compile(&job, &SortedBytes).unwrap()
}

fn planned(program: &Program, security: Security) -> PhysicalPlan {
    plan(program, &participants(security)).unwrap()
}

const fn options(lanes: u16) -> Options {
    Options {
        lanes,
        chunk_rows: Some(512),
    }
}

/// A kept relation as a table.
fn table(of: &KeepPorts) -> Table {
    Table {
        name: of.dataset.clone(),
        ..of.table.clone()
    }
}

fn names(of: &Table, set: &[veil_relation::ColumnId]) -> Vec<String> {
    let names = set
        .iter()
        .map(|column| of.columns[column.index()].name.clone());
    names.collect()
}

/// What is kept, and questions of it and of the other tables.
const KEPT: [(&str, &str, &[&str]); 5] = [
    (
        "joined",
        "SELECT p.id, p.city, p.born, p.income, p.active, p.tag, v.cost, v.ward, v.cost * 2 AS twice \
         FROM visits v JOIN people p ON v.person = p.id WHERE p.age > 20",
        &[
            "SELECT ward, count(*) AS n, sum(cost) AS s, avg(income) AS m, max(twice) AS t FROM joined WHERE active GROUP BY ward ORDER BY ward",
            "SELECT id, city, born, income, cost, active FROM joined WHERE cost > 20",
            "SELECT j.id, w.floor FROM joined j JOIN wards w ON j.ward = w.ward",
            "SELECT city, count(*) AS n FROM joined GROUP BY city",
        ],
    ),
    (
        "grouped",
        "SELECT person, ward, count(*) AS n, sum(cost) AS s, avg(cost) AS m FROM visits GROUP BY person, ward",
        &[
            "SELECT ward, person, n, s, m FROM grouped ORDER BY person, ward",
            "SELECT sum(n) AS n, sum(s) AS s, max(n) AS m FROM grouped",
            "SELECT ward, sum(n) AS n FROM grouped GROUP BY ward HAVING sum(n) > 3",
        ],
    ),
    (
        "ordered",
        "SELECT id, age, income FROM people WHERE age > 30 ORDER BY income, id",
        &[
            "SELECT id, age FROM ordered ORDER BY income, id LIMIT 5",
            "SELECT count(*) AS n, sum(income) AS s FROM ordered",
        ],
    ),
    (
        "tagged",
        "SELECT tag, max(income) AS income FROM people GROUP BY tag",
        &["SELECT v.ward, v.cost, t.income FROM visits v JOIN tagged t ON v.tag = t.tag"],
    ),
    (
        "one",
        "SELECT count(*) AS n, min(born) AS first FROM people WHERE active",
        &["SELECT n, first FROM one"],
    ),
];

#[test]
fn a_kept_relation_is_the_relation_of_its_query() {
    kept_is_asked(70, &securities(), |_| true);
}

/// Several chunks, on other lanes than they were kept on.
#[test]
fn a_kept_relation_of_several_chunks_is_the_relation_of_its_query() {
    let [three, _] = securities();
    kept_is_asked(1100, &[three], |name| ["joined", "grouped"].contains(&name));
}

fn kept_is_asked(visits: u32, securities: &[Security], asked: impl Fn(&str) -> bool) {
    let tables = common::tables(40, visits);
    let inputs = common::rows(&tables, 3);
    for security in securities.iter().copied() {
        for (name, sql, questions) in KEPT.into_iter().filter(|(name, ..)| asked(name)) {
            let program = compiled(&tables, vec![keeping(name, sql)]);
            let physical = planned(&program, security);
            let run = (&physical, &program, &inputs[..]);
            let none = Stores::new();
            let (opened, kept) =
                run_with_stores(run, |_, _, _, value| value, (options(2), &none)).unwrap();
            assert!(opened.is_empty());
            for question in questions {
                // In one job, and in the clear.
                let inner = Query {
                    keep: None,
                    ..keeping(name, sql.split(" ORDER BY").next().unwrap())
                };
                let whole = compiled(&tables, vec![inner, query(question)]);
                let wanted = clear::evaluate(&whole, &inputs).unwrap();
                let mut later = tables.clone();
                later.push(table(&physical.keeps[0]));
                let program = compiled(&later, vec![query(question)]);
                let physical = planned(&program, security);
                let mut with = inputs.clone();
                with.push(clear::Input::default());
                let run = (&physical, &program, &with[..]);
                let (found, _) =
                    run_with_stores(run, |_, _, _, value| value, (options(3), &kept)).unwrap();
                assert_eq!(found[0], wanted[0].rows, "{security}: {question}");
            }
        }
    }
}

/// Two relations of one job, of which one is opened too, and read by a query of the same job; then one job loads both.
#[test]
fn a_relation_may_be_kept_and_opened() {
    let tables = common::tables(40, 70);
    let inputs = common::rows(&tables, 5);
    let opened = Query {
        name: "grouped".into(),
        sql: "SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY ward".into(),
        to: Some("r".into()),
        keep: Some("by ward".into()),
        min_count: 2,
        fit: None,
        apply: None,
    };
    let adults = keeping("adults", "SELECT id, age FROM people WHERE age > 17");
    let mut read = query("SELECT count(*) AS n FROM adults");
    read.name = "how_many".into();
    let program = compiled(&tables, vec![opened, adults, read]);
    let wanted = clear::evaluate(&program, &inputs).unwrap();
    for security in all_securities() {
        let physical = planned(&program, security);
        let run = (&physical, &program, &inputs[..]);
        let none = Stores::new();
        let (found, kept) =
            run_with_stores(run, |_, _, _, value| value, (options(1), &none)).unwrap();
        assert_eq!(found[0], wanted[0].rows);
        assert_eq!(found[1], wanted[1].rows);
        let mut loaded: Vec<Table> = physical.keeps.iter().map(table).collect();
        loaded[0].name = "by_ward".into();
        let sql = "SELECT ward, n FROM by_ward ORDER BY ward";
        let mut again = query("SELECT count(*) AS n FROM adults");
        again.name = "how_many".into();
        let later = compiled(&loaded, vec![query(sql), again]);
        let physical = planned(&later, security);
        let none = [clear::Input::default(), clear::Input::default()];
        let run = (&physical, &later, &none[..]);
        let (again, _) = run_with_stores(run, |_, _, _, value| value, (options(1), &kept)).unwrap();
        assert_eq!(again, found, "{security}");
    }
}

/// What a plan proves of a relation is known where it is a table: no sort, no bit that is opened.
#[test]
fn what_is_proved_of_a_relation_is_kept_with_it() {
    let tables = common::tables(40, 70);
    let [security, _] = securities();
    let kept = |name: &str| {
        let (name, sql, _) = KEPT.into_iter().find(|of| of.0 == name).unwrap();
        let program = compiled(&tables, vec![keeping(name, sql)]);
        let physical = planned(&program, security);
        assert!(physical.opens.iter().all(|of| matches!(
            of,
            Opening::Permutations { .. } | Opening::Claims { .. } | Opening::Duplicates { .. }
        )));
        table(&physical.keeps[0])
    };
    let later = |of: &Table, sql: &str| {
        let mut all = tables.clone();
        all.push(of.clone());
        let program = compiled(&all, vec![query(sql)]);
        planned(&program, security)
    };
    let is_sorted = |plan: &PhysicalPlan| {
        let opens = |of: &Opening| matches!(of, Opening::Permutations { .. });
        plan.opens.iter().any(opens)
    };
    let grouped = kept("grouped");
    assert!(grouped.padded);
    assert_eq!(names(&grouped, &grouped.sorted_by), ["person", "ward"]);
    assert_eq!(names(&grouped, &grouped.unique[0]), ["person", "ward"]);
    let sql = "SELECT ward, person, n, s, m FROM grouped ORDER BY person, ward";
    assert!(!is_sorted(&later(&grouped, sql)));
    let unsorted = Table {
        sorted_by: vec![],
        ..grouped
    };
    assert!(is_sorted(&later(&unsorted, sql)));

    let ordered = kept("ordered");
    assert_eq!(names(&ordered, &ordered.sorted_by), ["income", "id", "age"]);
    assert_eq!(names(&ordered, &ordered.unique[0]), ["id", "income"]);
    let sql = "SELECT id, age FROM ordered ORDER BY income, id LIMIT 5";
    assert!(!is_sorted(&later(&ordered, sql)));

    // A key that is there once needs no bit that says so.
    let tagged = kept("tagged");
    assert_eq!(names(&tagged, &tagged.unique[0]), ["tag"]);
    let sql = "SELECT v.ward, t.income FROM visits v JOIN tagged t ON v.tag = t.tag";
    let plan = later(&tagged, sql);
    assert!(
        !plan
            .opens
            .iter()
            .any(|of| matches!(of, Opening::Duplicates { .. }))
    );

    // Rows that a condition leaves out are where they were: then no order is known, and each row may be none.
    let program = compiled(
        &tables,
        vec![keeping(
            "some",
            "SELECT person, n FROM (SELECT person, count(*) AS n FROM visits GROUP BY person) g WHERE n > 1",
        )],
    );
    let some = table(&planned(&program, security).keeps[0]);
    assert_eq!(some.sorted_by, []);
    assert_eq!(names(&some, &some.unique[0]), ["person"]);
    let one = kept("one");
    assert!(!one.padded);
    assert_eq!(one.capacity, 1);
}

/// The order that an owner claims of rows that stay where they are goes with them, once parties have looked at it.
#[test]
fn a_claim_that_is_kept_is_looked_at() {
    let mut tables = common::tables(40, 70);
    tables[0].sorted_by = vec![veil_relation::ColumnId(0)];
    let sql = "SELECT id, age, income FROM people";
    for security in all_securities() {
        let program = compiled(&tables, vec![keeping("people_kept", sql)]);
        let physical = planned(&program, security);
        let claimed = |of: &Opening| {
            matches!(of, Opening::Claims { of, .. }
                if of.iter().any(|what| what == "rows of `people` are sorted by id, in which no two are equal"))
        };
        assert!(physical.opens.iter().any(claimed), "{:?}", physical.opens);
        let kept = table(&physical.keeps[0]);
        assert_eq!(names(&kept, &kept.sorted_by), ["id"]);
        assert_eq!(names(&kept, &kept.unique[0]), ["id"]);
    }
}

/// A column's words go with it, and with what is made of it; an aggregate that may be opened is free.
#[test]
fn words_of_owners_go_with_what_is_kept() {
    let mut tables = common::tables(40, 70);
    let words = |may: &[Operation], reveal| Consent {
        may: may.iter().copied().collect(),
        reveal,
    };
    let set = |columns: &mut Vec<Column>, name: &str, of: Consent| {
        let column = columns.iter_mut().find(|column| column.name == name);
        column.unwrap().consent = Some(of);
    };
    let people = &mut tables[0].columns;
    set(
        people,
        "age",
        words(&[Operation::Filter, Operation::GroupBy], Reveal::Aggregates),
    );
    set(
        people,
        "income",
        words(&[Operation::Filter, Operation::Sort], Reveal::Rows),
    );
    set(people, "born", words(&[], Reveal::Never));
    let sql = "SELECT age, income, born, income + age AS both, city FROM people";
    let rows = compiled(&tables, vec![keeping("people_kept", sql)]);
    let all = rows.kept_words("people_kept").unwrap();
    let filter = |reveal| Some(words(&[Operation::Filter], reveal));
    assert_eq!(all[0], tables[0].columns[4].consent);
    assert_eq!(all[1], tables[0].columns[3].consent);
    assert_eq!(all[2], tables[0].columns[2].consent);
    assert_eq!(all[3], filter(Reveal::Aggregates));
    assert_eq!(all[4], None);
    let sql = "SELECT age, avg(income) AS mean, count(born) AS n FROM people GROUP BY age";
    let groups = compiled(&tables, vec![keeping("groups", sql)]);
    let all = groups.kept_words("groups").unwrap();
    assert_eq!(all[..2], [None, None]);
    let never = Consent {
        may: BTreeSet::new(),
        reveal: Reveal::Never,
    };
    assert_eq!(all[2], Some(never));

    // They hold in the job that loads it.
    let [security, _] = securities();
    let kept = table(&planned(&rows, security).keeps[0]);
    let later = |sql: &str| {
        let job = Job {
            tables: vec![kept.clone()],
            queries: vec![query(sql)],
            bounds: vec![],
            models: vec![],
            functions: vec![],
        };
        compile(&job, &SortedBytes)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        later("SELECT sum(age) AS s, count(*) AS n FROM people_kept WHERE age > 3"),
        Ok(())
    );
    for (sql, what) in [
        (
            "SELECT age FROM people_kept",
            "`dataset people_kept` does not allow that values of rows of column `age` of `people_kept` are opened",
        ),
        (
            "SELECT count(*) AS n FROM people_kept WHERE born IS NULL",
            "`dataset people_kept` does not allow filter on column `born` of `people_kept`",
        ),
    ] {
        assert!(later(sql).unwrap_err().contains(what), "{:?}", later(sql));
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let tables = common::tables(40, 70);
    let [security, _] = securities();
    let refused = |queries: Vec<Query>| {
        let job = Job {
            tables: tables.clone(),
            queries,
            bounds: vec![],
            models: vec![],
            functions: vec![],
        };
        match compile(&job, &SortedBytes) {
            Err(error) => error.to_string(),
            Ok(program) => plan(&program, &participants(security))
                .unwrap_err()
                .to_string(),
        }
    };
    let twice = vec![
        keeping("a", "SELECT id FROM people"),
        Query {
            keep: Some("a".into()),
            ..keeping("b", "SELECT age FROM people")
        },
    ];
    for (queries, what) in [
        (twice, "a dataset is kept by one query"),
        (
            vec![keeping("a", "SELECT id, age AS id FROM people")],
            "`a` cannot be kept: table `a` has two columns `id`; rename one",
        ),
    ] {
        let said = refused(queries);
        assert!(said.contains(what), "{said}");
    }
}
