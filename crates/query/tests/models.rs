//! Models that are fitted to rows: parties open what the clear has, to the last bit.

use veil_physical::plan;
use veil_query::{Model, ModelKind, Query, QueryError, SortedBytes, compile, families};
use veil_relation::{Family, Program, Table, clear};

use crate::common::{self, job};
use crate::parties::{participants, run, securities};

/// Age and income of people, of whom some say nothing; whether they are active.
pub(crate) const FEATURES: &str = "SELECT age, income, city = 'rome' AS rome, ";

pub(crate) fn model(family: Family, steps: u32) -> Model {
    Model {
        kind: ModelKind::Regression {
            family,
            target: "y".into(),
            ridge: (0, 1),
            stepping: None,
        },
        iterations: steps,
        places: 4,
    }
}

pub(crate) fn fitted(tables: &[Table], sql: &str, model: Model) -> Result<Program, QueryError> {
    let mut job = job(tables.to_vec(), sql);
    job.queries[0].fit = Some(model);
    job.queries[0].min_count = 1;
    compile(&job, &SortedBytes)
}

#[test]
fn parties_fit_what_the_clear_has() {
    let tables = common::tables(90, 10);
    let inputs = common::rows(&tables, 11);
    let cases = [
        (Family::Linear, "age * 2 - income + 3 AS y FROM people", 2),
        (Family::Logistic, "active AS y FROM people", 2),
        (
            Family::Poisson,
            "greatest(age - 12, 0) AS y FROM people WHERE age > 12",
            2,
        ),
    ];
    for (family, rest, steps) in cases {
        for penalty in [(0, 1), (5, 1)] {
            let mut model = model(family, steps);
            if let ModelKind::Regression { ridge, .. } = &mut model.kind {
                *ridge = penalty;
            }
            let sql = format!("{FEATURES}{rest}");
            let program = fitted(&tables, &sql, model).unwrap();
            let wanted = clear::evaluate(&program, &inputs).unwrap();
            assert_eq!(wanted[0].rows.len(), 4);
            for security in securities() {
                let physical = plan(&program, &participants(security)).unwrap();
                let found = run(&physical, &program, &inputs).unwrap();
                assert_eq!(found[0], wanted[0].rows, "{family:?}, {security}");
            }
        }
    }
}

#[test]
fn parties_cluster_as_the_clear_does() {
    let tables = common::tables(90, 10);
    let inputs = common::rows(&tables, 11);
    let start = |centres: &[[(i128, u32); 3]]| ModelKind::Clusters {
        start: centres.iter().map(|of| of.to_vec()).collect(),
    };
    let starts = [
        start(&[[(10, 0), (-5, 1), (0, 0)], [(80, 0), (100, 0), (1, 0)]]),
        start(&[
            [(10, 0), (0, 0), (0, 0)],
            [(10, 0), (0, 0), (0, 0)],
            [(99, 0), (1000, 0), (1, 0)],
            [(50, 0), (7, 0), (0, 0)],
            [(0, 0), (-1000, 0), (1, 0)],
        ]),
    ];
    for kind in starts {
        let model = Model {
            kind,
            iterations: 3,
            places: 3,
        };
        let sql = "SELECT age, income, city = 'rome' AS rome FROM people";
        let program = fitted(&tables, sql, model).unwrap();
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        assert!(wanted[0].rows.len() >= 2, "{wanted:?}");
        for security in securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            let found = run(&physical, &program, &inputs).unwrap();
            assert_eq!(found[0], wanted[0].rows, "{security}");
        }
    }
}

#[test]
fn parties_find_the_components_of_the_clear() {
    let tables = common::tables(90, 10);
    let inputs = common::rows(&tables, 11);
    for count in [1, 4] {
        let model = Model {
            kind: ModelKind::Components { count },
            iterations: 4,
            places: 5,
        };
        let sql =
            "SELECT age, income, city = 'rome' AS rome, age * 3 - income AS other FROM people";
        let program = fitted(&tables, sql, model).unwrap();
        let wanted = clear::evaluate(&program, &inputs).unwrap();
        assert_eq!(wanted[0].rows.len(), count as usize);
        for security in securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            let found = run(&physical, &program, &inputs).unwrap();
            assert_eq!(found[0], wanted[0].rows, "{security}");
        }
    }
}

/// A family says nothing of how many rows a model has at least, of its steps, places and penalty, but of what is fitted to what.
#[test]
fn families_are_of_features() {
    let of = |sql: &str, rows: u32, change: &dyn Fn(&mut Query)| {
        let mut job = job(common::tables(rows, 10), sql);
        job.queries[0].fit = Some(model(Family::Logistic, 8));
        change(&mut job.queries[0]);
        families(&job, &SortedBytes).unwrap()
    };
    let sql = "SELECT age, active AS y FROM people";
    let plain = of(sql, 4_000, &|_| {});
    assert_eq!(plain, of(sql, 1 << 20, &|query| query.min_count = 100_000));
    let other = Model {
        kind: ModelKind::Regression {
            family: Family::Logistic,
            target: "y".into(),
            ridge: (7, 2),
            stepping: None,
        },
        iterations: 3,
        places: 9,
    };
    assert_eq!(plain, of(sql, 50, &|query| query.fit = Some(other.clone())));
    assert_ne!(
        plain,
        of("SELECT income, active AS y FROM people", 400, &|_| {})
    );
    assert_ne!(
        plain,
        of(sql, 400, &|query| query.fit =
            Some(model(Family::Linear, 8)))
    );
    assert_ne!(
        plain,
        of(
            "SELECT age, active AS y FROM people WHERE age > 3",
            400,
            &|_| {}
        )
    );
}

/// Clusters of few rows are left out, and no model is shown of few.
#[test]
fn models_of_few_rows_are_left_out() {
    let tables = common::tables(60, 10);
    let inputs = common::rows(&tables, 3);
    let clusters = Model {
        kind: ModelKind::Clusters {
            start: vec![vec![(5, 0)], vec![(60, 0)]],
        },
        iterations: 2,
        places: 2,
    };
    for (model, sql, least) in [
        (
            model(Family::Linear, 1),
            "SELECT age, income AS y FROM people WHERE age < 50",
            30,
        ),
        (clusters, "SELECT age FROM people WHERE age > 20", 25),
    ] {
        let mut shown = vec![];
        for min_count in [1, least, 60] {
            let mut job = job(tables.clone(), sql);
            job.queries[0].fit = Some(model.clone());
            job.queries[0].min_count = min_count;
            let program = compile(&job, &SortedBytes).unwrap();
            let wanted = clear::evaluate(&program, &inputs).unwrap();
            for security in securities() {
                let physical = plan(&program, &participants(security)).unwrap();
                let found = run(&physical, &program, &inputs).unwrap();
                assert_eq!(found[0], wanted[0].rows, "{security}");
            }
            shown.push(wanted[0].rows.len());
        }
        assert!(shown[0] == 2 && shown[1] < 2 && shown[2] == 0, "{shown:?}");
    }
}
