//! Functions that have no exact values: parties open what the clear has, and that is near real numbers.

use veil_query::{SortedBytes, compile};
use veil_relation::{Value, clear};

use crate::common::{self, job};
use crate::parties::{opens_what_it_means, securities};

const QUERIES: [&str; 6] = [
    "SELECT id, ln(greatest(income, 1)) AS a, round(sqrt(greatest(age, 0)), 2) AS b FROM people ORDER BY id",
    "SELECT sum(round(exp(age / 30.0), 3)) AS s, avg(sigmoid(income / 50.0)) AS m FROM people WHERE active",
    "SELECT city, round(sqrt(sum(power(greatest(age, 0), 2))), 4) AS norm, count(*) AS n FROM people GROUP BY city ORDER BY city",
    "SELECT id FROM people WHERE tanh(age / 40.0) > 0.5 OR erf(age / 100.0) < 0.25 ORDER BY id",
    "SELECT id, round(log(nullif(abs(income), 0)), 3) AS digits FROM people ORDER BY id",
    "SELECT ward, round(exp(least(greatest(round(avg(ln(greatest(cost, 0.01))), 6), -5), 5)), 2) AS geometric FROM visits GROUP BY ward ORDER BY ward",
];

#[test]
fn parties_open_what_the_clear_has() {
    let tables = common::tables(40, 60);
    let inputs = common::rows(&tables, 7);
    for sql in QUERIES {
        let program = compile(&job(tables.clone(), sql), &SortedBytes).unwrap();
        for security in securities() {
            opens_what_it_means((&program, &inputs), security, sql);
        }
    }
}

/// The columns of a query's only relation, as real numbers; nulls are left out with their rows.
fn numbers(sql: &str) -> Vec<Vec<f64>> {
    let tables = common::tables(200, 100);
    let inputs = common::rows(&tables, 3);
    let program = compile(&job(tables, sql), &SortedBytes).unwrap();
    let opened = clear::evaluate(&program, &inputs).unwrap();
    let places: Vec<u32> = (opened[0].fields.iter())
        .map(|field| field.ty.kind.number().unwrap().0)
        .collect();
    let number = |(value, places): (&Value, &u32)| {
        let units = value.number()? as f64;
        Some(units / 10_f64.powi(*places as i32))
    };
    let row = |row: &Vec<Value>| row.iter().zip(&places).map(number).collect();
    opened[0].rows.iter().filter_map(row).collect()
}

#[test]
fn results_are_near_real_numbers() {
    type Real = fn(f64) -> f64;
    let cases: [(&str, Real, f64); 9] = [
        ("ln(greatest(age, 1))", |x| x.max(1.0).ln(), 1e-6),
        ("log2(greatest(age, 1))", |x| x.max(1.0).log2(), 1e-6),
        ("log(greatest(age, 1))", |x| x.max(1.0).log10(), 1e-6),
        ("exp(age / 20.0)", |x| (x / 20.0).exp(), 3e-6),
        ("round(exp2(age / 20.0), 9)", |x| (x / 20.0).exp2(), 3e-7),
        ("sqrt(greatest(age, 0))", |x| x.max(0.0).sqrt(), 1e-6),
        (
            "round(rsqrt(greatest(age, 1)), 10)",
            |x| x.max(1.0).sqrt().recip(),
            1e-10,
        ),
        (
            "sigmoid(age / 16.0)",
            |x| 1.0 / (1.0 + (-x / 16.0).exp()),
            1e-6,
        ),
        ("tanh(age / 64.0)", |x| (x / 64.0).tanh(), 1e-6),
    ];
    for (sql, real, within) in cases {
        let rows = numbers(&format!("SELECT age, {sql} AS y FROM people ORDER BY age"));
        assert!(rows.len() > 50);
        for row in rows {
            let (x, y) = (row[0], row[1]);
            assert!((y - real(x)).abs() <= within, "{sql} of {x} is {y}");
        }
    }
    for row in numbers(
        "SELECT age, abs(age - 40) AS a, power(age, 3) AS p, least(age, 30, 25) AS l FROM people",
    ) {
        let x = row[0];
        assert_eq!(row[1..], [(x - 40.0).abs(), x.powi(3), x.min(25.0)]);
    }
}
