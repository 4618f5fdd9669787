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

/// Null where PostgreSQL has null: `abs` of null, but not `greatest` of null and a number.
#[test]
fn nulls_are_those_of_postgresql() {
    let tables = common::tables(60, 10);
    let inputs = common::rows(&tables, 5);
    let sql = "SELECT income IS NULL AS i, abs(income) IS NULL AS a, greatest(income, 0) IS NULL AS g, least(income, age) IS NULL AS l, age IS NULL AS b, \
               power(income, 2) IS NULL AS p, sigmoid(income / 100.0) IS NULL AS s FROM people";
    let program = compile(&job(tables, sql), &SortedBytes).unwrap();
    let opened = clear::evaluate(&program, &inputs).unwrap();
    let mut seen = false;
    for row in &opened[0].rows {
        let is = |at: usize| row[at] == Value::Bool(true);
        let (income, age) = (is(0), is(4));
        assert_eq!(
            (is(1), is(2), is(3), is(5), is(6)),
            (income, false, income && age, income, income)
        );
        seen |= income;
    }
    assert!(seen);
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
    // A choice that keeps a number within a range has that range, whatever places its ends are written with.
    for sql in [
        "ln(CASE WHEN income < 1 THEN 1 ELSE income END)",
        "exp(CASE WHEN (CASE WHEN income < -2 THEN -2 ELSE income END) > 3.5 THEN 3.5 ELSE (CASE WHEN income < -2 THEN -2 ELSE income END) END)",
        "sqrt(CASE WHEN 0 > income THEN 0.0 ELSE income END)",
    ] {
        assert!(numbers(&format!("SELECT income, {sql} AS y FROM people")).len() > 50);
    }
    for row in numbers(
        "SELECT age, abs(age - 40) AS a, power(age, 3) AS p, least(age, 30, 25) AS l FROM people",
    ) {
        let x = row[0];
        assert_eq!(row[1..], [(x - 40.0).abs(), x.powi(3), x.min(25.0)]);
    }
}
