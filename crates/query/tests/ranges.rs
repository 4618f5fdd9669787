//! Refusals of ranges: the whole text of each kind, and that what each says to write instead is accepted.

use veil_query::{Job, QueryError, SortedBytes, compile};
use veil_relation::{Kind, Program, RangeError, Remedy};

use crate::common::{day, job, range, table};

/// A question with one or two operands, in whose places something else may be written.
struct Asked {
    sql: &'static str,
    operands: &'static [&'static str],
    refused: &'static str,
}

const ROWS: u32 = 1000;

fn asked(sql: &str, rows: u32) -> Job {
    let units = |places, min, max| Kind::Decimal {
        places,
        units: range(min, max),
    };
    let huge = 10_i128.pow(35);
    let numbers = table(
        "numbers",
        rows,
        vec![
            ("id", Kind::Integer(range(0, 1000)), false),
            ("pay", units(2, 0, 999_999), false),
            ("loss", units(2, -50_000, 999_999), false),
            ("debt", units(2, -50_000, -1_000), false),
            ("rate", units(16, 0, 10_i128.pow(17)), false),
            ("size", Kind::Integer(range(0, 10_i128.pow(20))), false),
            (
                "both",
                Kind::Integer(range(-(10_i128.pow(20)), 10_i128.pow(20))),
                true,
            ),
            ("huge", units(4, -huge, huge), true),
            (
                "since",
                Kind::date(day("2020-01-01"), day("2025-12-31")).unwrap(),
                false,
            ),
            ("days", Kind::Integer(range(-9, 9_000_000)), false),
        ],
        &[0],
    );
    job(vec![numbers], sql)
}

fn planned(sql: &str, rows: u32) -> Result<Program, QueryError> {
    compile(&asked(sql, rows), &SortedBytes)
}

fn put(asked: &Asked, at: usize, by: &str) -> String {
    let of = |k: usize| if k == at { by } else { asked.operands[k] };
    let sql = asked.sql.replace("{x}", of(0));
    match asked.operands.len() {
        1 => sql,
        _ => sql.replace("{y}", of(1)),
    }
}

const ASKED: &[Asked] = &[
    Asked {
        sql: "SELECT ln({x}) AS v FROM numbers",
        operands: &["pay"],
        refused: "8: `ln(x)` has no value for 0 and below; x is 0.00 to 9999.99 | write nullif(x, 0), or greatest(x, 0.01) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT ln({x}) AS v FROM numbers",
        operands: &["loss"],
        refused: "8: `ln(x)` has no value for 0 and below; x is -500.00 to 9999.99 | write greatest(x, 0.01) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT sqrt({x}) AS v FROM numbers",
        operands: &["loss"],
        refused: "8: `sqrt(x)` has no value for numbers below 0; x is -500.00 to 9999.99 | write greatest(x, 0) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT sqrt({x}) AS v FROM numbers",
        operands: &["debt"],
        refused: "8: `sqrt(x)` has no value for numbers below 0; x is -500.00 to -10.00 | declare narrower ranges",
    },
    Asked {
        sql: "SELECT reciprocal({x}) AS v FROM numbers",
        operands: &["loss"],
        refused: "8: `reciprocal(x)` has no value for 0; x is -500.00 to 9999.99 | write greatest(x, 0.01), or least(x, -0.01) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT id, ln({x}) AS v FROM numbers GROUP BY id",
        operands: &["avg(pay)"],
        refused: "12: `ln(x)` has no value for 0 and below; x is 0.000000000 to 9999990.000000000 | write nullif(round(x, 9), 0), or greatest(round(x, 9), 0.000000001) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT exp({x}) AS v FROM numbers",
        operands: &["loss"],
        refused: "8: `exp(x)` may take more than the 128 bits that there are; x is -500.00 to 9999.99 | write least(x, 27) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT {x} / {y} AS v FROM numbers",
        operands: &["pay", "loss"],
        refused: "8: `x / y` has no value where y is 0; x is 0.00 to 9999.99, y is -500.00 to 9999.99 | write nullif(y, 0), or greatest(y, 0.01), or least(y, -0.01) in the place of y, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT id, {x} / {y} AS v FROM numbers GROUP BY id",
        operands: &["avg(pay)", "avg(loss)"],
        refused: "12: `x / y` has no value where y is 0; x is a quotient from 0.000000 to 9999990.000000, y is a quotient from -500000.000000 to 9999990.000000 | write nullif(y, 0) in the place of y, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT {x} * {y} AS v FROM numbers",
        operands: &["rate", "(rate * 0.01)"],
        refused: "8: `x * y` has 34 decimal places, and 30 are the most; x is 0.0000000000000000 to 10.0000000000000000, y is 0.000000000000000000 to 0.100000000000000000 | write round(x, 12) in the place of x, or write round(y, 14) in the place of y, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT {x} * {y} AS v FROM numbers",
        operands: &["huge", "loss"],
        refused: "8: `x * y` may take 138 bits, and there are 128; x is -10000000000000000000000000000000.0000 to 10000000000000000000000000000000.0000, y is -500.00 to 9999.99 | write round(x, 1), or least(greatest(x, -17000000000000000000000000000), 17000000000000000000000000000) in the place of x, or write least(greatest(y, -17), 17) in the place of y, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT {x} * {x} AS v FROM numbers",
        operands: &["both"],
        refused: "8: `x * x` may take 134 bits, and there are 128; x is -100000000000000000000 to 100000000000000000000 | write least(greatest(x, -13000000000000000000), 13000000000000000000) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT {x} + {y} AS v FROM numbers",
        operands: &["huge", "rate"],
        refused: "8: `x + y` may take 158 bits, and there are 128; x is -10000000000000000000000000000000.0000 to 10000000000000000000000000000000.0000, y is 0.0000000000000000 to 10.0000000000000000 | write least(greatest(x, -17000000000000000000000), 17000000000000000000000) in the place of x, or write round(y, 7) in the place of y, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT id FROM numbers WHERE {x} < {y}",
        operands: &["huge", "rate"],
        refused: "30: `x < y` may take 158 bits, and there are 128; x is -10000000000000000000000000000000.0000 to 10000000000000000000000000000000.0000, y is 0.0000000000000000 to 10.0000000000000000 | write least(greatest(x, -17000000000000000000000), 17000000000000000000000) in the place of x, or write round(y, 7) in the place of y, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT round({x}, 20) AS v FROM numbers",
        operands: &["huge"],
        refused: "8: `round(x, 20)` may take 171 bits, and there are 128; x is -10000000000000000000000000000000.0000 to 10000000000000000000000000000000.0000 | write round(x, 7), or write least(greatest(x, -1700000000000000000), 1700000000000000000) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT {x} + {y} AS v FROM numbers",
        operands: &["since", "days"],
        refused: "8: `x + y days` may be before 0001-01-01 or after 9999-12-31; x is 2020-01-01 to 2025-12-31, y is -9 to 9000000 | write least(y, 2900000) in the place of y, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT id, sum({x}) AS v FROM numbers GROUP BY id",
        operands: &["huge * 10"],
        refused: "12: `sum(x) over 1000 rows` may take 131 bits, and there are 128; x is -100000000000000000000000000000000.0000 to 100000000000000000000000000000000.0000 | write round(x, 3), or least(greatest(x, -17000000000000000000000000000000), 17000000000000000000000000000000) in the place of x, or bound the rows to 170 in [[bound]], or declare narrower ranges",
    },
    Asked {
        sql: "SELECT id, round(avg({x}), 0) AS v FROM numbers GROUP BY id",
        operands: &["huge * 1000"],
        refused: "18: `avg(x) over 1000 rows` may take 138 bits, and there are 128; x is -10000000000000000000000000000000000.0000 to 10000000000000000000000000000000000.0000 | write round(x, 1), or least(greatest(x, -17000000000000000000000000000000), 17000000000000000000000000000000) in the place of x, or bound the rows to 1 in [[bound]], or declare narrower ranges",
    },
    Asked {
        sql: "SELECT id, {x} AS v FROM numbers GROUP BY id",
        operands: &["avg(huge)"],
        refused: "12: `round(x, 6)` may take 134 bits, and there are 128; x is a quotient from -10000000000000000000000000000000000.000000 to 10000000000000000000000000000000000.000000 | write round(x, 4), or declare narrower ranges",
    },
    Asked {
        sql: "SELECT id, round(var_samp({x}), 0) AS v FROM numbers GROUP BY id",
        operands: &["size"],
        refused: "18: `var_samp(x) over 1000 rows` may take 154 bits, and there are 128; x is 0 to 100000000000000000000 | write least(x, 13000000000000000) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT id, stddev_samp({x}) AS v FROM numbers GROUP BY id",
        operands: &["both"],
        refused: "12: `stddev_samp(x) over 1000 rows` may take 154 bits, and there are 128; x is -100000000000000000000 to 100000000000000000000 | write least(greatest(x, -6500000000000000), 6500000000000000) in the place of x, or declare narrower ranges",
    },
    Asked {
        sql: "SELECT id, sum({x}) OVER (PARTITION BY id) AS v FROM numbers",
        operands: &["huge * 1000"],
        refused: "16: `sum(x) over 1000 rows` may take 138 bits, and there are 128; x is -10000000000000000000000000000000000.0000 to 10000000000000000000000000000000000.0000 | write round(x, 1), or least(greatest(x, -17000000000000000000000000000000), 17000000000000000000000000000000) in the place of x, or bound the rows to 1 in [[bound]], or declare narrower ranges",
    },
];

fn refusal(asked: &Asked) -> (String, RangeError) {
    let sql = put(asked, usize::MAX, "");
    let error = planned(&sql, ROWS).expect_err(&sql);
    let range = error.range().expect(&sql).clone();
    let text = error.to_string();
    let mut lines = text.lines();
    let (place, problem) = lines.next().unwrap().split_once(": ").unwrap();
    let column = place.rsplit_once(' ').unwrap().1;
    assert_eq!(lines.next().unwrap().trim(), sql, "{text}");
    let caret = lines.next().unwrap().chars().position(|sign| sign == '^');
    assert_eq!(caret, Some(column.parse::<usize>().unwrap() + 1), "{text}");
    let instead: Vec<&str> = lines.map(str::trim).collect();
    (
        format!("{column}: {problem} | {}", instead.join(" ")),
        range,
    )
}

#[test]
fn the_texts_of_refusals() {
    let wrong = ASKED.iter().filter_map(|asked| {
        let (found, _) = refusal(asked);
        let sql = put(asked, usize::MAX, "");
        (found != asked.refused).then(|| format!("{sql}\n    {found}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn what_is_said_to_be_written_instead_is_accepted() {
    let mut tried = 0;
    for asked in ASKED {
        let (text, range) = refusal(asked);
        for remedy in &range.remedies {
            let (sql, rows) = match remedy {
                Remedy::Change { operand, .. } => {
                    let name = ["x", "y"][*operand];
                    let written = remedy.sql(&range.operands);
                    let by = written.replacen(name, &format!("({})", asked.operands[*operand]), 1);
                    let by = if written.starts_with("greatest")
                        || !written.contains("least(greatest(")
                    {
                        by
                    } else {
                        let operand = format!("({})", asked.operands[*operand]);
                        written.replace(&format!("({name},"), &format!("({operand},"))
                    };
                    (put(asked, *operand, &by), ROWS)
                }
                Remedy::Fewer(places) => {
                    let by = format!("round({}, {places})", asked.operands[0]);
                    let sql = if asked.sql.contains("round({x}, 20)") {
                        asked.sql.replace("round({x}, 20)", &by)
                    } else {
                        put(asked, 0, &by)
                    };
                    (sql, ROWS)
                }
                Remedy::Rows(rows) => (put(asked, usize::MAX, ""), *rows as u32),
                _ => continue,
            };
            tried += 1;
            if let Err(error) = planned(&sql, rows) {
                panic!("{sql}, {rows} rows: {error}\n{text}");
            }
            if let Remedy::Rows(rows) = remedy {
                assert!(planned(&sql, *rows as u32 + 1).is_err(), "{text}");
            }
        }
    }
    assert!(tried > 30, "{tried}");
}
