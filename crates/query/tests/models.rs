//! Models that are fitted to rows: parties open what the clear has, to the last bit.

use veil_physical::plan;
use veil_query::{Model, QueryError, SortedBytes, compile};
use veil_relation::{Family, Program, Table, clear};

use crate::common::{self, job};
use crate::parties::{participants, run, securities};

/// Age and income of people, of whom some say nothing; whether they are active.
const FEATURES: &str = "SELECT age, income, city = 'rome' AS rome, ";

fn model(family: Family, steps: u32) -> Model {
    Model {
        family,
        target: "y".into(),
        ridge: (0, 1),
        iterations: steps,
        places: 4,
    }
}

fn fitted(tables: &[Table], sql: &str, model: Model) -> Result<Program, QueryError> {
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
        for ridge in [(0, 1), (5, 1)] {
            let model = Model {
                ridge,
                ..model(family, steps)
            };
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
