//! Decision trees: parties open the nodes that the clear has, to the last bit.

use std::collections::BTreeMap;

use veil_physical::plan;
use veil_query::{Cuts, Model, ModelKind, Query, QueryError, SortedBytes, compile, families};
use veil_relation::{Kind, Plan, Program, Table, Value, clear};

use crate::common::{self, job};
use crate::parties::{opens_what_it_means, participants, run, securities};

fn tree(target: &str, depth: u32, cuts: &[(&str, Cuts)]) -> Model {
    let cuts = cuts
        .iter()
        .map(|(name, of)| ((*name).to_owned(), of.clone()));
    Model {
        kind: ModelKind::Tree {
            target: target.into(),
            cuts: cuts.collect(),
        },
        iterations: depth,
        places: 4,
    }
}

fn fitted(
    tables: &[Table],
    sql: &str,
    model: Model,
    min_count: u32,
) -> Result<Program, QueryError> {
    let mut job = job(tables.to_vec(), sql);
    job.queries[0].fit = Some(model);
    job.queries[0].min_count = min_count;
    compile(&job, &SortedBytes)
}

fn some_cuts() -> Vec<(&'static str, Cuts)> {
    vec![
        ("age", Cuts::At(vec![(20, 0), (50, 0), (80, 0)])),
        ("income", Cuts::Even(4)),
    ]
}

/// The features that all columns may be, nulls left out; classes and numbers; nodes of few rows.
#[test]
fn parties_grow_what_the_clear_has() {
    let tables = common::tables(90, 10);
    let inputs = common::rows(&tables, 11);
    let cases = [
        ("SELECT age, income, city, active AS y FROM people", 2, 3),
        ("SELECT age, income, active, city AS y FROM people", 3, 1),
        (
            "SELECT age, income, city, active, age * 3 - greatest(income, 0) AS y FROM people",
            2,
            2,
        ),
        (
            "SELECT age, income, active, 3 AS other, 4 AS that, 5 AS whose, 6 AS zero, active AS y FROM people",
            1,
            2,
        ),
        (
            "SELECT age, income, income AS y FROM people WHERE age > 30",
            1,
            2,
        ),
    ];
    for (sql, depth, min_count) in cases {
        let program = fitted(&tables, sql, tree("y", depth, &some_cuts()), min_count).unwrap();
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        let nodes = wanted[0].rows.len();
        assert!((3..2 << depth).contains(&nodes), "{sql}: {wanted:?}");
        for security in securities() {
            opens_what_it_means((&program, &inputs), security, sql);
        }
    }
}

/// No rows, rows of one class, fewer rows than a node has, ties, and a column that says what the target is.
#[test]
fn rows_that_cannot_be_split() {
    let tables = common::tables(40, 10);
    let inputs = common::rows(&tables, 5);
    for (sql, min_count, nodes) in [
        ("SELECT age, active AS y FROM people WHERE age > 200", 1, 0),
        (
            "SELECT age, income, active AND NOT active AS y FROM people",
            1,
            1,
        ),
        ("SELECT age, active AS y FROM people", 40, 0),
        ("SELECT age, active AS y FROM people", 20, 1),
        (
            "SELECT active, active AS same, NOT active AS other, active AS y FROM people",
            2,
            3,
        ),
    ] {
        let program = fitted(&tables, sql, tree("y", 2, &[]), min_count).unwrap();
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        assert_eq!(wanted[0].rows.len(), nodes, "{sql}: {wanted:?}");
        for security in securities() {
            opens_what_it_means((&program, &inputs), security, sql);
        }
    }
    // The first of three that are equal splits the root.
    let sql = "SELECT active AS a, active AS b, NOT active AS c, active AS y FROM people";
    let program = fitted(&tables, sql, tree("y", 2, &[]), 1).unwrap();
    let root = &clear::evaluate(&program, &inputs).unwrap()[0].rows[0];
    assert_eq!(
        root[..3],
        [Value::Number(1), Value::Number(0), Value::Number(0)]
    );
}

/// A later query reads a tree as any relation, and what it does not read is not opened.
#[test]
fn a_later_query_reads_the_nodes() {
    let tables = common::tables(60, 10);
    let inputs = common::rows(&tables, 7);
    let mut job = job(tables, "SELECT age, income, city, active AS y FROM people");
    job.queries[0].fit = Some(tree("y", 2, &some_cuts()));
    job.queries[0].min_count = 2;
    job.queries[0].to = None;
    let first = job.queries[0].name.clone();
    job.queries.push(Query {
        name: "splits".into(),
        sql: format!("SELECT node, cut, share FROM {first} WHERE feature IS NOT NULL AND rows > 5"),
        to: Some("r".into()),
        fit: None,
        min_count: 0,
        ..job.queries[0].clone()
    });
    let program = compile(&job, &SortedBytes).unwrap();
    let wanted = clear::evaluate(&program, &inputs).unwrap();
    let wanted = &wanted.last().unwrap().rows;
    assert!(!wanted.is_empty());
    for security in securities() {
        let physical = plan(&program, &participants(security)).unwrap();
        assert_eq!(&run(&physical, &program, &inputs).unwrap()[0], wanted);
    }
}

fn cuts_of(program: &Program) -> Vec<Vec<i128>> {
    let mut plan = &program.steps[0].plan;
    loop {
        match plan {
            Plan::Fit { model, .. } => match &model.kind {
                veil_relation::FitKind::Tree { cuts, .. } => return cuts.clone(),
                other => panic!("{other:?}"),
            },
            other => plan = other.inputs()[0],
        }
    }
}

#[test]
fn cuts_are_spread_over_ranges() {
    let tables = common::tables(90, 10);
    let sql = "SELECT age, income, city, active, active AS y FROM people";
    let of = |cuts: &[(&str, Cuts)]| cuts_of(&fitted(&tables, sql, tree("y", 2, cuts), 1).unwrap());
    let even: Vec<i128> = (1..=15).map(|at| 99 * at / 16).collect();
    let income: Vec<i128> = (1..=15).map(|at| -100_000 + 12_500 * at).collect();
    assert_eq!(of(&[]), [even, income, vec![], vec![]]);
    let some = of(&[
        ("age", Cuts::Even(3)),
        ("income", Cuts::At(vec![(-5, 1), (2, 0), (1_234, 2)])),
    ]);
    assert_eq!(some[..2], [vec![24, 49, 74], vec![-50, 200, 1_234]]);
    // A range of four numbers has three cuts.
    let narrow = "SELECT least(greatest(age, 7), 10) AS age, active AS y FROM people";
    let program = fitted(&tables, narrow, tree("y", 1, &[]), 1).unwrap();
    assert_eq!(cuts_of(&program), [vec![7, 8, 9]]);
}

#[test]
fn mistakes() {
    let tables = common::tables(90, 10);
    let sql = "SELECT age, income, city, active AS y FROM people";
    let refused = |sql: &str, model: Model| {
        let error = fitted(&tables, sql, model, 1).unwrap_err();
        error.to_string()
    };
    let of = |cuts: &[(&str, Cuts)]| refused(sql, tree("y", 2, cuts));
    for (found, wanted) in [
        (
            of(&[("y", Cuts::Even(1))]),
            "`cuts` are of columns of the query but the target",
        ),
        (
            of(&[("born", Cuts::Even(1))]),
            "`cuts` are of columns of the query but the target",
        ),
        (
            of(&[("city", Cuts::Even(1))]),
            "`cuts` are of numbers: a condition and each value of a category are one",
        ),
        (
            of(&[("age", Cuts::At(vec![(5, 1)]))]),
            "a number of `cuts` has no more decimal places than its column",
        ),
        (
            of(&[("income", Cuts::At(vec![(5, 0), (5, 0)]))]),
            "cuts of feature 2 of a tree are up to 63 numbers, ascending, from the least of its range on and below the greatest",
        ),
        (
            of(&[("age", Cuts::At(vec![(99, 0)]))]),
            "cuts of feature 1 of a tree are up to 63 numbers, ascending, from the least of its range on and below the greatest",
        ),
        (
            of(&[("age", Cuts::Even(64))]),
            "cuts of feature 1 of a tree are up to 63 numbers",
        ),
        (
            refused(sql, tree("z", 2, &[])),
            "the target of a model is a column of its query",
        ),
        (
            refused(sql, tree("y", 7, &[])),
            "a tree has 1 to 6 levels of splits, and this says 7",
        ),
        (
            refused("SELECT active AS y FROM people", tree("y", 2, &[])),
            "a model has 1 to 63 features, and this has 0",
        ),
        (
            refused("SELECT 3 AS a, active AS y FROM people", tree("y", 2, &[])),
            "a tree has 1 to 1023 candidates for its splits, and this has 0",
        ),
        (
            refused("SELECT born, active AS y FROM people", tree("y", 2, &[])),
            "fit does not take a date",
        ),
        (
            refused("SELECT age, born AS y FROM people", tree("y", 2, &[])),
            "fit does not take a date",
        ),
        (
            refused(
                "SELECT age, age, active AS y FROM people",
                tree("y", 2, &[]),
            ),
            "two features have one name",
        ),
    ] {
        assert!(found.contains(wanted), "{found} for {wanted}");
    }
}

/// A family says nothing of cuts, levels and fewest rows, but of what is asked of what.
#[test]
fn families_are_of_features() {
    let of = |sql: &str, model: Model, min_count: u32| {
        let mut job = job(common::tables(400, 10), sql);
        job.queries[0].fit = Some(model);
        job.queries[0].min_count = min_count;
        families(&job, &SortedBytes).unwrap()
    };
    let sql = "SELECT age, city, active AS y FROM people";
    let plain = of(sql, tree("y", 2, &[]), 0);
    assert_eq!(plain, of(sql, tree("y", 4, &some_cuts()[..1]), 7));
    assert_ne!(plain, of(sql, tree("age", 2, &[]), 0));
    assert_ne!(
        plain,
        of("SELECT age, active AS y FROM people", tree("y", 2, &[]), 0)
    );
}

/// The columns of the result say what the target is.
#[test]
fn values_are_of_the_target() {
    let tables = common::tables(90, 10);
    let names = |target: &str| {
        let sql = format!("SELECT age AS x, {target} AS y FROM people");
        let program = fitted(&tables, &sql, tree("y", 2, &[]), 1).unwrap();
        let shapes = program.check().unwrap();
        let fields: BTreeMap<_, _> = shapes[0].fields[4..]
            .iter()
            .map(|field| (field.name.clone(), field.ty.kind.clone()))
            .collect();
        fields
    };
    let decimal = |min, max| Kind::Decimal {
        places: 4,
        units: common::range(min, max),
    };
    assert_eq!(
        names("active"),
        [("share".to_owned(), decimal(0, 10_000))].into()
    );
    let shares = (0..5).map(|at| (format!("share_{at}"), decimal(0, 10_000)));
    assert_eq!(names("city"), shares.collect());
    assert_eq!(
        names("income"),
        [("mean".to_owned(), decimal(-10_000_000, 10_000_000))].into()
    );
}
