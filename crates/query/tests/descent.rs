//! Regressions by gradient descent: parties open what the clear has for the order that their shuffle made.

use std::collections::BTreeSet;

use veil_job::Security;
use veil_physical::plan;
use veil_query::{Model, ModelKind, Query, QueryError, SortedBytes, compile, families};
use veil_relation::{Descent, Family, Fitting, Kind, Plan, Program, Stepping, Table, Value, clear};

use crate::common::{self, job, range, table};
use crate::parties::{opens_what_it_means, participants, run, securities};

const FEATURES: &str = "SELECT age, income, city = 'rome' AS rome, ";

fn stepping(batch: Option<u32>) -> Stepping {
    Stepping {
        batch,
        rate: (5, 1),
        momentum: (0, 1),
        limit: 32,
    }
}

fn model(family: Family, epochs: u32, stepping: Stepping) -> Model {
    Model {
        kind: ModelKind::Regression {
            family,
            target: "y".into(),
            ridge: (0, 1),
            stepping: Some(stepping),
        },
        iterations: epochs,
        places: 6,
    }
}

fn penalised(mut of: Model, penalty: (u64, u32)) -> Model {
    if let ModelKind::Regression { ridge, .. } = &mut of.kind {
        *ridge = penalty;
    }
    of
}

fn fitted(tables: &[Table], sql: &str, model: Model) -> Result<Program, QueryError> {
    let mut job = job(tables.to_vec(), sql);
    job.queries[0].fit = Some(model);
    job.queries[0].min_count = 1;
    compile(&job, &SortedBytes)
}

fn all_securities() -> [Security; 3] {
    let [three, malicious] = securities();
    [three, Security::among(4), malicious]
}

/// Batches of all rows have one result, whatever the order of rows is.
#[test]
fn parties_descend_as_the_clear_does() {
    let tables = common::tables(90, 10);
    let inputs = common::rows(&tables, 11);
    let cases = [
        (Family::Linear, "age * 2 - income + 3 AS y FROM people"),
        (Family::Logistic, "active AS y FROM people"),
        (
            Family::Poisson,
            "greatest(age - 12, 0) AS y FROM people WHERE age > 12",
        ),
    ];
    for (family, rest) in cases {
        for (momentum, ridge, limit) in [((0, 1), (0, 1), 32), ((9, 1), (25, 1), 1)] {
            let stepping = Stepping {
                momentum,
                limit,
                ..stepping(None)
            };
            let model = penalised(model(family, 4, stepping), ridge);
            let sql = format!("{FEATURES}{rest}");
            let program = fitted(&tables, &sql, model).unwrap();
            let wanted = clear::evaluate(&program, &inputs).unwrap();
            assert_eq!(wanted[0].rows.len(), 4);
            assert!(wanted[0].rows.iter().all(|row| row.len() == 2));
            for security in all_securities() {
                opens_what_it_means((&program, &inputs), security, &sql);
            }
        }
    }
}

/// Rows of numbers, all of one owner, and which of them are valid.
fn numbered(rows: &[Option<[i128; 3]>]) -> (Vec<Table>, Vec<clear::Input>) {
    let integer = |max| Kind::Integer(range(0, max));
    let columns = vec![
        ("a", integer(100), false),
        ("b", integer(1000), false),
        ("y", integer(1), false),
    ];
    let table = table("numbers", rows.len() as u32, columns, &[]);
    let cells = |row: &Option<[i128; 3]>| row.unwrap_or_default().map(Value::Number).to_vec();
    let input = clear::Input {
        valid: rows.iter().map(Option::is_some).collect(),
        rows: rows.iter().map(cells).collect(),
    };
    (vec![table], vec![input])
}

/// Rows that are equal have one result in batches of any size, whatever their order is: batches of two sizes, epochs, momentum, and limits that are reached.
#[test]
fn batches_of_equal_rows_are_those_of_the_clear() {
    let (tables, inputs) = numbered(&[Some([70, 20, 1]); 17]);
    let sql = "SELECT a, b, y FROM numbers";
    for (family, batch, limit) in [
        (Family::Logistic, 4, 32),
        (Family::Linear, 5, 1),
        (Family::Poisson, 16, 32),
    ] {
        let stepping = Stepping {
            momentum: (7, 1),
            limit,
            ..stepping(Some(batch))
        };
        let model = penalised(model(family, 3, stepping), (1, 1));
        let program = fitted(&tables, sql, model).unwrap();
        for security in all_securities() {
            opens_what_it_means((&program, &inputs), security, sql);
        }
    }
}

fn arithmetic(program: &Program) -> Box<Descent> {
    let Plan::Open { input, .. } = &program.steps[0].plan else {
        panic!("it opens")
    };
    let Plan::Fit { input, model } = &**input else {
        panic!("it is a model")
    };
    let shape = program.shape(input).unwrap();
    match model.fitting(&shape.types(), shape.capacity).unwrap() {
        Fitting::Descent(of) => of,
        other => panic!("{other:?}"),
    }
}

/// All orders of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![]];
    }
    let mut all = vec![];
    for order in orders(count - 1) {
        for at in 0..count {
            let mut order = order.clone();
            order.insert(at, count - 1);
            all.push(order);
        }
    }
    all
}

/// What parties open is, to the last bit, what the clear has for one of the orders of the rows; and runs have different ones.
#[test]
fn batches_are_those_of_an_order_of_rows() {
    let rows = [
        Some([3, 900, 1]),
        Some([90, 10, 0]),
        None,
        Some([50, 400, 1]),
    ];
    let (tables, inputs) = numbered(&rows);
    let sql = "SELECT a, b, y FROM numbers";
    // A batch of an empty place moves coefficients as well, by the last step's part.
    let stepping = Stepping {
        momentum: (5, 1),
        ..stepping(Some(1))
    };
    let program = fitted(&tables, sql, model(Family::Logistic, 2, stepping)).unwrap();
    let of = arithmetic(&program);
    let mut all = BTreeSet::new();
    for order in orders(4) {
        let placed: Vec<_> = order
            .into_iter()
            .map(|at| rows[at].map(|[a, b, y]| (vec![a, b], y)))
            .collect();
        all.insert(of.fit(&placed).unwrap());
    }
    assert_eq!(all.len(), 24, "each order has a result of its own");
    let mut found = BTreeSet::new();
    for _ in 0..3 {
        for security in all_securities() {
            let physical = plan(&program, &participants(security)).unwrap();
            let opened = run(&physical, &program, &inputs).unwrap().remove(0);
            // Terms are in the order of their names: a, b, intercept.
            let number = |at: usize| match opened[at][1] {
                Value::Number(number) => number,
                other => panic!("{other:?}"),
            };
            let coefficients = vec![number(2), number(0), number(1)];
            assert!(all.contains(&coefficients), "{security}: {coefficients:?}");
            found.insert(coefficients);
        }
    }
    assert!(found.len() > 1, "nine runs have one order");
}

/// Relations of operators that move rows and change how many there are have as many rows as their batches.
#[test]
fn relations_of_all_operators_have_batches() {
    let tables = common::tables(24, 30);
    let inputs = common::rows(&tables, 5);
    for sql in [
        "SELECT person AS a, sum(cost) AS y FROM visits GROUP BY person",
        "SELECT age AS a, cost AS y FROM visits JOIN people ON person = id WHERE age > 20",
        "SELECT age AS a, income AS y FROM people ORDER BY age LIMIT 9",
        "SELECT age AS a, income AS y FROM people UNION ALL SELECT person, cost FROM visits",
        "SELECT DISTINCT age AS a, age * 2 AS y FROM people",
    ] {
        for batch in [None, Some(4)] {
            let program = fitted(&tables, sql, model(Family::Linear, 1, stepping(batch))).unwrap();
            for security in securities() {
                let physical = plan(&program, &participants(security)).unwrap();
                let found = run(&physical, &program, &inputs).unwrap();
                assert_eq!(found[0].len(), 2, "{sql}");
                if batch.is_none() {
                    let wanted = clear::evaluate(&program, &inputs).unwrap();
                    assert_eq!(found[0], wanted[0].rows, "{sql}, {security}");
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let tables = common::tables(90, 10);
    let refused = |least: u32, sql: &str, model: Model| {
        let mut job = job(tables.clone(), sql);
        job.queries[0].fit = Some(model);
        job.queries[0].min_count = least;
        let error = compile(&job, &SortedBytes).unwrap_err().to_string();
        error.lines().next().unwrap().to_owned()
    };
    let sql = "SELECT age, active AS y FROM people";
    let of = |batch| model(Family::Logistic, 3, stepping(Some(batch)));
    let at = "query `q`, line 1, column 1: ";
    for (least, model, said) in [
        (
            1,
            of(91),
            "a batch has 1 to 90 rows, as many as there are places for rows, and this has 91",
        ),
        (
            0,
            of(39),
            "a step of this model is of as few as 30 rows, those of a batch, and a model is of at least 40: choose larger batches, or lower `min_count`",
        ),
        (
            32,
            of(32),
            "a step of this model is of as few as 30 rows, those of a batch, and a model is of at least 32: choose larger batches, or lower `min_count`",
        ),
        (
            91,
            of(45),
            "a model of at least 91 rows is fitted to at most 90; lower `min_count`, or fit fewer features",
        ),
        (
            1,
            model(Family::Logistic, 23, stepping(Some(1))),
            "a model by gradient descent takes 1 to 2048 steps, and 23 epochs of 90 batches are 2070: choose larger batches, or other epochs",
        ),
    ] {
        assert_eq!(refused(least, sql, model), format!("{at}{said}"));
    }
    // A model that is read by a later query has no standard errors.
    let mut later = job(tables.clone(), sql);
    later.queries[0].name = "m".into();
    later.queries[0].to = None;
    later.queries[0].fit = Some(of(45));
    later.queries[0].min_count = 1;
    later.queries.push(Query {
        name: "r".into(),
        sql: "SELECT term, standard_error FROM m".into(),
        to: Some("r".into()),
        keep: None,
        min_count: 0,
        fit: None,
        apply: None,
    });
    let error = compile(&later, &SortedBytes).unwrap_err().to_string();
    assert_eq!(
        error.lines().next(),
        Some(
            "query `r`, line 1, column 14: there are no standard errors: coefficients that are penalised, or are fitted by gradient descent, have none"
        )
    );
}

/// A family by gradient descent is another one than by Newton's method, and says nothing of its steps.
#[test]
fn families_are_of_the_method() {
    let of = |model: Option<Model>| {
        let mut job = job(
            common::tables(90, 10),
            "SELECT age, active AS y FROM people",
        );
        job.queries[0].fit = model;
        families(&job, &SortedBytes).unwrap()
    };
    let one = of(Some(model(Family::Logistic, 3, stepping(None))));
    let other = Stepping {
        batch: Some(100),
        rate: (25, 2),
        momentum: (9, 1),
        limit: 5,
    };
    assert_eq!(one, of(Some(model(Family::Logistic, 7, other))));
    let mut newton = model(Family::Logistic, 3, stepping(None));
    if let ModelKind::Regression { stepping, .. } = &mut newton.kind {
        *stepping = None;
    }
    assert_ne!(one, of(Some(newton)));
}
