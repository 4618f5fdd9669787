//! Functions that a job gives by their values: parties open what the clear has, and what is none is refused.

use veil_query::{Arguments, Job, SortedBytes, TableFunction, compile};
use veil_relation::Program;

use crate::common::{self, job};
use crate::parties::{all_securities, opens_what_it_means};

fn numbers(name: &str, first: i128, of: u32, places: u32, values: Vec<i128>) -> TableFunction {
    TableFunction {
        name: name.into(),
        of: Arguments::Numbers { first, places: of },
        places,
        values,
    }
}

fn functions() -> Vec<TableFunction> {
    let weight = TableFunction {
        name: "weight".into(),
        of: Arguments::Texts(
            ["rome", "oslo", "lima", "o'hare", "nairobi", "quito"]
                .map(String::from)
                .to_vec(),
        ),
        places: 1,
        values: vec![15, -20, 3, 0, 77, 1],
    };
    vec![
        // Of every age, and of some that none has.
        numbers(
            "score",
            -3,
            0,
            0,
            (0..130).map(|age| age * age % 17 - 5).collect(),
        ),
        numbers(
            "deflator",
            1950,
            0,
            4,
            (0..70).map(|year| 10_000 + 137 * year).collect(),
        ),
        numbers(
            "tax",
            0,
            1,
            3,
            (0..4096)
                .map(|tenths| [0, 140, 240, 420][tenths / 1100])
                .collect(),
        ),
        weight,
    ]
}

fn asks(sql: &str) -> Job {
    Job {
        functions: functions(),
        ..job(common::tables(40, 60), sql)
    }
}

const QUERIES: [&str; 6] = [
    "SELECT id, score(age) AS s, weight(city) AS w FROM people ORDER BY id",
    "SELECT id, income * deflator(extract(year FROM born)) AS real FROM people ORDER BY id",
    "SELECT id, tax(least(greatest(round(income / 5, 1), 0), 409.5)) AS rate, tax(age) AS of_years FROM people ORDER BY id",
    "SELECT score(age) AS s, count(*) AS n, sum(weight(city)) AS w FROM people WHERE score(age) > 0 OR weight(city) < 1.5 GROUP BY score(age) ORDER BY s",
    "SELECT v.ward, sum(v.cost * tax(p.age)) AS t FROM visits v JOIN people p ON p.id = v.person WHERE NOT weight(p.city) = 1.5 GROUP BY v.ward",
    // One of another, of what is public, and of a text.
    "SELECT id, tax(greatest(score(age), 0)) AS a, score(7) + deflator(1950) AS b, weight('oslo') AS c FROM people ORDER BY id",
];

#[test]
fn parties_open_what_the_clear_has() {
    for sql in QUERIES {
        let job = asks(sql);
        let inputs = common::rows(&job.tables, 5);
        let program = compile(&job, &SortedBytes).unwrap_or_else(|error| panic!("{error}"));
        let read = Program::read(&program.to_string());
        assert_eq!(read.as_ref(), Ok(&program), "{sql}");
        for security in all_securities() {
            opens_what_it_means((&program, &inputs), security, sql);
        }
    }
}

#[test]
fn what_a_function_has_no_value_for_is_refused() {
    let cases = [
        (
            "SELECT tax(income) AS v FROM people",
            "`tax` takes numbers of at most 1 decimal places, and x has 2",
            "write round(x, places) in the place of x",
        ),
        (
            "SELECT tax(round(income, 1)) AS v FROM people",
            "`tax(x)` has values for 0.0 to 409.5; x is -1000.0 to 1000.0",
            "write least(greatest(x, 0.0), 409.5) in the place of x, or declare narrower ranges",
        ),
        (
            "SELECT deflator(age + 1990) AS v FROM people",
            "`deflator(x)` has values for 1950 to 2019; x is 1990 to 2089",
            "write least(x, 2019) in the place of x, or declare narrower ranges",
        ),
        (
            "SELECT tax(score(age)) AS v FROM people",
            "`tax(x)` has values for 0.0 to 409.5; x is -5.0 to 11.0",
            "write greatest(x, 0.0) in the place of x, or declare narrower ranges",
        ),
        (
            "SELECT score(avg(age)) AS v FROM people",
            "`score` takes a number, and x is a quotient",
            "write round(x, places) in the place of x",
        ),
        (
            "SELECT score(born) AS v FROM people",
            "`score` takes a number, and not a date",
            "",
        ),
        (
            "SELECT score(city) AS v FROM people",
            "`score` takes a number, and not a category of 5 values",
            "",
        ),
        (
            "SELECT weight(age) AS v FROM people",
            "`weight` takes a category, and not a integer",
            "",
        ),
        (
            "SELECT weight(ward) AS v FROM wards",
            "`weight` has no value for 'a', which x may be",
            "give it one, or write CASE for the others",
        ),
        (
            "SELECT score(age, 3) AS v FROM people",
            "`score` is a function of one argument, and not of 2",
            "",
        ),
        (
            "SELECT scor(age) AS v FROM people",
            "there is no function `scor` in the dialect",
            "",
        ),
    ];
    for (sql, what, instead) in cases {
        let found = compile(&asks(sql), &SortedBytes).unwrap_err().to_string();
        let caret = format!("  {sql}\n         ^");
        let mut wanted = format!("query `q`, line 1, column 8: {what}\n{caret}");
        if !instead.is_empty() {
            wanted = format!("{wanted}\n  {instead}");
        }
        assert_eq!(found, wanted);
    }
    // What the refusals say is accepted.
    for of in [
        "tax(least(greatest(round(income, 1), 0.0), 409.5))",
        "deflator(least(age + 1990, 2019))",
    ] {
        compile(
            &asks(&format!("SELECT {of} AS v FROM people")),
            &SortedBytes,
        )
        .unwrap();
    }
}

#[test]
fn what_is_no_function_is_refused() {
    let error = |function: TableFunction| {
        let job = Job {
            functions: vec![function],
            ..job(common::tables(4, 4), "SELECT id FROM people")
        };
        compile(&job, &SortedBytes)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let of = |name: &str| numbers(name, 0, 0, 0, vec![1]);
    let named = "SQL has a function or a word of this name; choose another one";
    for name in [
        "abs",
        "avg",
        "case",
        "cast",
        "ceil",
        "coalesce",
        "corr",
        "count",
        "exists",
        "extract",
        "greatest",
        "grouping",
        "lag",
        "ln",
        "log",
        "median",
        "not",
        "power",
        "predict",
        "rank",
        "round",
        "row_number",
        "select",
        "sigmoid",
        "stddev",
        "substring",
        "sum",
    ] {
        assert_eq!(error(of(name)), Err(format!("{name}: {named}")));
    }
    assert_eq!(
        error(of("Tax")),
        Err("Tax: the name of a function has lower-case letters, digits and `_`".into())
    );
    let large = 1_i128 << 62;
    let texts = |texts: &[&str], values: Vec<i128>| TableFunction {
        of: Arguments::Texts(texts.iter().map(|text| (*text).to_owned()).collect()),
        ..numbers("f", 0, 0, 0, values)
    };
    for (function, what) in [
        (
            numbers("f", 0, 0, 0, vec![]),
            "a function has 1 to 4096 values",
        ),
        (
            numbers("f", 0, 0, 0, vec![1; 4097]),
            "a function has 1 to 4096 values",
        ),
        (
            numbers("f", 0, 0, 0, vec![3, large + 1]),
            "a value of a function has at most 62 bits",
        ),
        (
            numbers("f", large, 0, 0, vec![3, 4]),
            "an argument of a function has at most 62 bits",
        ),
        (
            numbers("f", 0, 19, 0, vec![3]),
            "numbers of a function have at most 18 decimal places",
        ),
        (
            numbers("f", 0, 0, 19, vec![3]),
            "numbers of a function have at most 18 decimal places",
        ),
        (
            texts(&["a", "b"], vec![1]),
            "a function of texts has one value for each of them",
        ),
        (
            texts(&["a", "a"], vec![1, 2]),
            "a function of texts has each of them once",
        ),
    ] {
        assert_eq!(error(function), Err(format!("f: {what}")));
    }
    for most in [
        numbers("f", -large, 18, 18, vec![large; 4096]),
        numbers("tax_1", large, 0, 0, vec![-large]),
    ] {
        assert_eq!(error(most), Ok(()));
    }
    let twice = Job {
        functions: vec![of("f"), of("f")],
        ..job(common::tables(4, 4), "SELECT id FROM people")
    };
    let error = compile(&twice, &SortedBytes).unwrap_err();
    assert_eq!(error.to_string(), "f: two functions have this name");
}
