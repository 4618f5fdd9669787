//! What is refused, with the whole message.

use veil_physical::plan;
use veil_query::{Bound, Job, SortedBytes, compile, refused_at};
use veil_relation::{Kept, Overflow};

use crate::common::{job, query, tables};
use crate::parties::{participants, securities};

/// The message without its first words and the text of the query: problem, column, and the way to say it.
fn refusal(sql: &str) -> String {
    let error = match compile(&job(tables(10, 20), sql), &SortedBytes) {
        Ok(program) => panic!("accepted: {sql}\n{program}"),
        Err(error) => error.to_string(),
    };
    let mut lines = error.lines();
    let (place, problem) = lines.next().unwrap().split_once(": ").unwrap();
    let column = place.rsplit_once(' ').unwrap().1;
    let (excerpt, caret) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(sql.contains(excerpt.trim()), "{error}");
    assert_eq!(
        caret.chars().position(|c| c == '^').unwrap(),
        column.parse::<usize>().unwrap() + 1,
        "{error}"
    );
    let instead: Vec<&str> = lines.map(str::trim).collect();
    format!("{column}: {problem} | {}", instead.join(" "))
}

const REFUSED: &[(&str, &str)] = &[
    // Text.
    ("SELECT", "1: a query reads a table | add FROM"),
    (
        "SELECT id FROM people WHERE",
        "23: Expected: an expression, found: EOF | ",
    ),
    ("SELECT 'x FROM people", "8: Unterminated string literal | "),
    (
        "SELECT ln(income) FROM people",
        "8: `ln(x)` has no value for 0 and below; x is -1000.00 to 1000.00 | write greatest(x, 0.01) in the place of x, or declare narrower ranges",
    ),
    (
        "SELECT exp(income) FROM people",
        "8: `exp(x)` may take more than the 128 bits that there are; x is -1000.00 to 1000.00 | write least(x, 27) in the place of x, or declare narrower ranges",
    ),
    (
        "SELECT ln(age, 2) FROM people",
        "8: ln takes other arguments | ",
    ),
    (
        "SELECT power(age, 0.5) FROM people",
        "8: power takes a public whole number from 1 to 16 as its second argument | write sqrt(x), or exp(y * ln(x))",
    ),
    (
        "SELECT round(exp(age / 100.0), 13) FROM people",
        "8: round takes 12 places at most, of a function that has no exact values | ",
    ),
    (
        "DELETE FROM people",
        "1: only queries are in the dialect | begin with SELECT or WITH",
    ),
    (
        "SELECT id FROM people; SELECT id FROM people",
        "1: a query is one statement | give each query its own name",
    ),
    // Clauses.
    (
        "SELECT * FROM people",
        "8: SELECT * is not opened | name the columns: owners consent to each",
    ),
    (
        "SELECT p.* FROM people p",
        "8: SELECT * is not opened | name the columns: owners consent to each",
    ),
    (
        "SELECT tag FROM people",
        "1: `tag` is a key, which is never opened | ",
    ),
    (
        "SELECT id FROM people ORDER BY id LIMIT 3 OFFSET 2",
        "43: OFFSET, paging through rows, is not in the dialect | ",
    ),
    (
        "SELECT id FROM people LIMIT 3",
        "23: LIMIT without ORDER BY does not say which rows | add ORDER BY",
    ),
    (
        "SELECT id FROM people ORDER BY id LIMIT age",
        "41: LIMIT takes a public number of rows | ",
    ),
    (
        "SELECT id FROM people ORDER BY id FETCH FIRST 3 ROWS ONLY",
        "35: FETCH is not in the dialect | write LIMIT",
    ),
    (
        "SELECT id FROM people FOR UPDATE",
        "23: a clause after the query is not in the dialect | ",
    ),
    (
        "WITH RECURSIVE t AS (SELECT id FROM people) SELECT id FROM t",
        "6: WITH RECURSIVE is not in the dialect | ",
    ),
    (
        "WITH t AS MATERIALIZED (SELECT id FROM people) SELECT id FROM t",
        "6: MATERIALIZED and FROM of WITH are not in the dialect | leave it out",
    ),
    (
        "SELECT DISTINCT ON (age) id FROM people",
        "17: DISTINCT ON is not in the dialect | take row_number() in a subquery of FROM and filter by it",
    ),
    (
        "SELECT id INTO t FROM people",
        "11: INTO is not in the dialect here | ",
    ),
    (
        "SELECT id FROM people ORDER BY id USING <",
        "32: ORDER BY … USING is not in the dialect | ",
    ),
    (
        "SELECT age, grouping(id) AS g, count(*) FROM people GROUP BY ROLLUP (age)",
        "13: an argument of grouping is a key of GROUP BY | ",
    ),
    (
        "SELECT age, count(*) FROM people GROUP BY CUBE (id, city, born, income, age, active, tag)",
        "49: a query has at most 64 sets of keys of groups | ",
    ),
    (
        "SELECT age, rank() OVER (ORDER BY age) AS r FROM people GROUP BY CUBE (age)",
        "13: a window is over no sets of groups | group in a subquery of FROM",
    ),
    (
        "SELECT corr(age, income) AS c FROM people",
        "8: corr is not in the dialect | open count(*), sum(x), sum(y), sum(x * y), sum(x * x) and sum(y * y) of rows that have both, of which it is made exactly",
    ),
    (
        "SELECT grouping(age) AS g FROM people",
        "8: grouping stands in SELECT, HAVING and ORDER BY of a query with GROUP BY only | ",
    ),
    (
        "SELECT age, count(*) FROM people GROUP BY GROUPING SETS ((ROLLUP (age)), ())",
        "59: there is no function `rollup` in the dialect | ",
    ),
    (
        "SELECT age, count(*) FROM people GROUP BY ALL",
        "34: this GROUP BY is not in the dialect | name the keys; or write ROLLUP (…), CUBE (…) or GROUPING SETS (…)",
    ),
    (
        "SELECT id FROM people EXCEPT SELECT person FROM visits",
        "23: EXCEPT is not in the dialect | write a SEMI JOIN or ANTI JOIN, or IN or NOT EXISTS of a subquery",
    ),
    (
        "SELECT id FROM people UNION SELECT person, cost FROM visits",
        "1: the parts of a union have different numbers of columns | ",
    ),
    (
        "SELECT city FROM people UNION SELECT person FROM visits",
        "1: values of one kind stand here, and not category of 5 values and integer | ",
    ),
    ("VALUES (1)", "1: VALUES is not in the dialect | "),
    (
        "SELECT rank() OVER w AS r FROM people WINDOW w AS (ORDER BY id)",
        "39: WINDOW is not in the dialect here | write the window after OVER",
    ),
    (
        "SELECT id FROM people QUALIFY id = 1",
        "23: QUALIFY is not in the dialect here | filter in a query over a subquery of FROM",
    ),
    // Names.
    ("SELECT x FROM people", "8: there is no column `x` | "),
    (
        "SELECT q.id FROM people p",
        "8: there is no column `q.id` | ",
    ),
    (
        "SELECT id FROM persons",
        "16: there is no table `persons` | ",
    ),
    ("SELECT \"ID\" FROM people", "8: there is no column `ID` | "),
    (
        "SELECT tag FROM people p JOIN visits v ON p.id = v.person",
        "8: `tag` is the name of several columns; write the table before it | ",
    ),
    (
        "SELECT age, id FROM people GROUP BY age",
        "13: column `id` is neither in GROUP BY nor in an aggregate | ",
    ),
    (
        "SELECT id FROM people HAVING age > 3",
        "30: column `age` is neither in GROUP BY nor in an aggregate | ",
    ),
    (
        "SELECT id AS a, age AS a FROM people ORDER BY a",
        "47: `a` is the name of several columns; write the table before it | ",
    ),
    (
        "SELECT id FROM people ORDER BY 2",
        "32: there is no such column in SELECT | ",
    ),
    (
        "SELECT length(city) AS n FROM people",
        "8: there is no function `length` in the dialect | ",
    ),
    // Expressions.
    (
        "SELECT id FROM people WHERE age = 1e3",
        "35: 1e3 is no exact number | write a decimal number, such as 0.05",
    ),
    (
        "SELECT id FROM people WHERE age = '30'",
        "29: a integer is not compared with a text | write numbers without quotes",
    ),
    (
        "SELECT id FROM people WHERE born = '1990-02-30'",
        "29: '1990-02-30' is no date | write it as 2025-03-14",
    ),
    (
        "SELECT id FROM people WHERE age",
        "29: a condition stands here, and no integer | ",
    ),
    (
        "SELECT id FROM people WHERE tag = tag",
        "29: a key is compared by joins only | join tables ON an equality of keys, or use IN or EXISTS with a subquery",
    ),
    (
        "SELECT id FROM people WHERE city ILIKE 'o%'",
        "29: ILIKE is not in the dialect | write LIKE, or IN with the values",
    ),
    (
        "SELECT id FROM people WHERE city LIKE 'o%' ESCAPE '!'",
        "29: LIKE with ANY or ESCAPE is not in the dialect | ",
    ),
    (
        "SELECT id FROM people WHERE city LIKE 'o\\'",
        "29: the pattern of LIKE ends with an escape | ",
    ),
    (
        "SELECT id FROM people WHERE age LIKE '3%'",
        "29: LIKE stands on a category, and not on a integer | owners prepare texts as categories with a public list",
    ),
    (
        "SELECT age / 2 AS h FROM people",
        "8: a quotient of integers would be cut to an integer | write CAST(… AS decimal(18, 0)) / … for the exact quotient",
    ),
    (
        "SELECT income / age AS h FROM people",
        "8: `x / y` has no value where y is 0; x is -1000.00 to 1000.00, y is 0 to 99 | write nullif(y, 0), or greatest(y, 1) in the place of y, or declare narrower ranges",
    ),
    (
        "SELECT age % id AS h FROM people",
        "14: % takes a public integer from 1 on | ",
    ),
    (
        "SELECT age ^ 2 AS h FROM people",
        "8: the operator ^ is not in the dialect | ",
    ),
    (
        "SELECT city || 'x' AS h FROM people",
        "8: the operator || is not in the dialect | ",
    ),
    (
        "SELECT born + INTERVAL '1' MONTH AS d FROM people",
        "8: months and years are added to public dates only | write a number of days: INTERVAL '90' DAY",
    ),
    (
        "SELECT DATE '2000-01-01' - INTERVAL '-2147483648' MONTH AS d FROM people",
        "37: this interval is not in the dialect | write INTERVAL '30' DAY, MONTH or YEAR",
    ),
    (
        "SELECT born + INTERVAL '1' HOUR AS d FROM people",
        "24: this interval is not in the dialect | write INTERVAL '30' DAY, MONTH or YEAR",
    ),
    (
        "SELECT EXTRACT(DAY FROM born) AS d FROM people",
        "25: EXTRACT(DAY …) is not in the dialect | YEAR and MONTH are",
    ),
    (
        "SELECT CAST(income AS integer) AS i FROM people",
        "13: a cast of a decimal with 2 places to INTEGER is not in the dialect | casts that may lose are not in the dialect; round(…, places) is",
    ),
    (
        "SELECT CAST(income AS decimal(4, 2)) AS i FROM people",
        "13: this number may not fit DECIMAL(4,2) | casts that may lose are not in the dialect; round(…, places) is",
    ),
    (
        "SELECT now() AS n FROM people",
        "8: now has another value at each call | write the date: DATE '2025-03-14'",
    ),
    (
        "SELECT round(age, id) AS n FROM people",
        "8: round takes a public number of places from 0 on | ",
    ),
    (
        "SELECT CASE WHEN active THEN 1 ELSE 'x' END AS c FROM people",
        "8: values of one kind stand here, and not integer and category of 1 values | ",
    ),
    (
        "SELECT coalesce(avg(age), 0) AS a FROM people",
        "8: a quotient does not stand here | round it first: round(…, 2)",
    ),
    (
        "SELECT NULL AS n FROM people",
        "8: NULL has no type here | give it one by CASE or COALESCE with a typed value",
    ),
    (
        "SELECT income * income * income * income * income * income * income * income * income AS x FROM people",
        "8: `x * y` may take 134 bits, and there are 128; x is -1000000000000000000000.00000000000000 to 1000000000000000000000.00000000000000, y is -1000.00 to 1000.00 | write round(x, 12), or least(greatest(x, -17000000000000000000), 17000000000000000000) in the place of x, or write round(y, 0), or least(greatest(y, -17), 17) in the place of y, or declare narrower ranges",
    ),
    (
        "SELECT id FROM people WHERE (id, age) IN (SELECT person, 1 FROM visits)",
        "30: a row of several values is not in the dialect | write one condition for each value, joined by AND",
    ),
    (
        "SELECT id FROM people WHERE age = ANY (SELECT person FROM visits)",
        "29: ANY is not in the dialect | write IN",
    ),
    // Aggregates and windows.
    (
        "SELECT id FROM people WHERE sum(age) > 3",
        "29: an aggregate stands in SELECT, HAVING and ORDER BY only | ",
    ),
    (
        "SELECT sum(avg(age)) AS s FROM people",
        "12: an aggregate stands in no other aggregate | aggregate in a subquery of FROM first",
    ),
    (
        "SELECT sum(DISTINCT age) AS s FROM people",
        "8: sum of DISTINCT values is not in the dialect | take DISTINCT in a subquery of FROM, then aggregate",
    ),
    (
        "SELECT sum(city) AS s FROM people",
        "8: sum does not take a category of 5 values | ",
    ),
    (
        "SELECT count(age, id) AS s FROM people",
        "8: count takes one argument | ",
    ),
    (
        "SELECT percentile_disc(age) WITHIN GROUP (ORDER BY id) AS m FROM people",
        "24: the fraction is a decimal literal from 0 to 1 | ",
    ),
    (
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id DESC) AS m FROM people",
        "52: percentile_disc orders ascending | ",
    ),
    (
        "SELECT id FROM people WHERE rank() OVER (ORDER BY id) = 1",
        "29: a window function stands in SELECT and ORDER BY only | filter by it in a query over a subquery of FROM",
    ),
    (
        "SELECT rank() OVER () AS r FROM people",
        "8: rank needs an order | write ORDER BY in its window",
    ),
    (
        "SELECT sum(age) OVER (ORDER BY id) AS s FROM people",
        "8: the default frame of a window with an order, which goes to the last row that ties, is not in the dialect | write ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    ),
    (
        "SELECT sum(age) OVER (ORDER BY id RANGE UNBOUNDED PRECEDING) AS s FROM people",
        "8: this frame is not in the dialect | write ROWS BETWEEN UNBOUNDED PRECEDING (or n PRECEDING) AND CURRENT ROW, with an ORDER BY",
    ),
    (
        "SELECT max(age) OVER (ORDER BY id ROWS 3 PRECEDING) AS s FROM people",
        "8: max of a moving frame is not in the dialect | UNBOUNDED PRECEDING is",
    ),
    (
        "SELECT lag(age, 1, 0) OVER (ORDER BY id) AS s FROM people",
        "8: lag takes no default | write COALESCE around it",
    ),
    (
        "SELECT ntile(4) OVER (ORDER BY id) AS s FROM people",
        "8: ntile is no window function of the dialect | row_number, rank, lag, lead, count, sum, avg, min and max are",
    ),
    (
        "SELECT lag(age) IGNORE NULLS OVER (ORDER BY id) AS s FROM people",
        "8: IGNORE NULLS and RESPECT NULLS is not in the dialect | ",
    ),
    // Joins.
    (
        "SELECT p.id FROM people p, visits v",
        "1: these tables are not joined by keys that are unique in one of them | add equalities with keys that are unique in one table, or claim that they are, or bound the result by the job",
    ),
    (
        "SELECT p.id FROM people p JOIN visits v ON p.age = v.person",
        "1: these tables are not joined by keys that are unique in one of them | add equalities with keys that are unique in one table, or claim that they are, or bound the result by the job",
    ),
    (
        "SELECT p.id FROM people p NATURAL JOIN visits v",
        "40: NATURAL JOIN is not in the dialect | name the columns: USING (…)",
    ),
    (
        "SELECT p.id FROM people p RIGHT JOIN visits v ON p.id = v.person",
        "38: RIGHT JOIN is not in the dialect | exchange the tables and write LEFT JOIN",
    ),
    (
        "SELECT p.id FROM people p FULL JOIN visits v ON p.id = v.person",
        "37: FULL JOIN is not in the dialect | write a LEFT JOIN and, by UNION ALL, the ANTI JOIN of the other side",
    ),
    (
        "SELECT p.id FROM people p LEFT JOIN visits v ON p.age = v.person",
        "37: the keys of this join are unique in neither table | claim that they are in one, aggregate one table first, or bound the result by the job",
    ),
    (
        "SELECT p.id FROM people p LEFT JOIN visits v ON p.id = v.person AND v.cost > p.income",
        "37: a further condition on both tables needs keys that are unique on the right | claim that they are unique, or aggregate the right table first",
    ),
    (
        "SELECT p.id FROM people p LEFT JOIN visits v ON v.cost > 3",
        "37: a join has an equality between its tables | write ON a.x = b.y",
    ),
    (
        "SELECT v.day FROM visits v JOIN people p ON p.id = v.person, LATERAL (SELECT id FROM people) x",
        "71: LATERAL is not in the dialect | write a scalar subquery, or a join",
    ),
    (
        "SELECT x FROM (SELECT id AS x FROM people ORDER BY id) t",
        "52: the order of a relation that is read by a query says nothing | leave ORDER BY out, or say how many rows by LIMIT",
    ),
    // Subqueries.
    (
        "SELECT id FROM people WHERE age NOT IN (SELECT person FROM visits)",
        "29: NOT IN is null for all rows as soon as one value is null | write NOT EXISTS with an equality, or leave nulls out by a NOT NULL column",
    ),
    (
        "SELECT id FROM people WHERE id IN (SELECT person FROM visits) OR active",
        "29: IN and EXISTS of a subquery are conditions of their own | join them by AND in WHERE or HAVING; say OR as UNION of two queries, or as a LEFT JOIN",
    ),
    (
        "SELECT id FROM people WHERE EXISTS (SELECT 1 FROM visits)",
        "37: EXISTS of a subquery without an equality with the outer query is not in the dialect | write an equality with a column of the outer query in its WHERE, or compare (SELECT count(*) …) with 0",
    ),
    (
        "SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person < p.id)",
        "68: this correlated condition is not in the dialect | a condition with columns of the outer query is an equality: inner = outer",
    ),
    (
        "SELECT id FROM people WHERE age > (SELECT cost FROM visits)",
        "36: a scalar subquery has one row: an aggregate without GROUP BY | ",
    ),
    (
        "SELECT id FROM people WHERE age > (SELECT max(cost), min(cost) FROM visits)",
        "36: a scalar subquery has one column | ",
    ),
    (
        "SELECT id, (SELECT 1 + count(*) FROM visits v WHERE v.person = p.id) AS n FROM people p",
        "20: a correlated count stands alone in its subquery | compute with it outside of the subquery",
    ),
];

#[test]
fn the_table_of_refusals() {
    let wrong = REFUSED.iter().filter_map(|(sql, expected)| {
        let found = refusal(sql);
        (found != *expected).then(|| {
            format!(
                "    (\"{}\", \"{}\"),",
                sql.replace('\\', "\\\\").replace('"', "\\\""),
                found.replace('\\', "\\\\")
            )
        })
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_caret_stands_under_the_place() {
    let error = compile(
        &job(
            tables(1, 1),
            "SELECT id\nFROM people\n\tWHERE\tnot_there > 3",
        ),
        &SortedBytes,
    )
    .unwrap_err();
    let expected = "query `q`, line 3, column 8: there is no column `not_there`\n  \tWHERE\tnot_there > 3\n  \t     \t^";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_job_that_is_none() {
    let base = || Job {
        tables: tables(5, 5),
        queries: vec![query(
            "SELECT city, count(*) AS n FROM people GROUP BY city",
        )],
        bounds: Vec::new(),
        models: vec![],
        functions: vec![],
    };
    let message = |change: fn(&mut Job)| {
        let mut job = base();
        change(&mut job);
        compile(&job, &SortedBytes).unwrap_err().to_string()
    };
    assert_eq!(
        message(|job| job.queries[0].name = "people".into()),
        "people: two tables or queries have this name"
    );
    assert_eq!(
        message(|job| job.queries[0].name = "a.b".into()),
        "a.b: a name has lower-case letters, digits and `_`"
    );
    assert_eq!(
        message(|job| job.tables[0].capacity = u32::MAX),
        "table `people` has 4294967295 rows; 2147483648 are the most"
    );
    let least = |job: &mut Job| {
        job.queries[0].sql = "SELECT city FROM people".into();
        job.queries[0].min_count = 10;
    };
    assert_eq!(
        message(least),
        "q: a minimal count is of groups, and this query has none"
    );
    let twice = |job: &mut Job| {
        let bound = Bound {
            of: "q".into(),
            rows: 1,
            overflow: Overflow::Refuse,
        };
        job.bounds = vec![bound.clone(), bound];
    };
    assert_eq!(message(twice), "q: a relation has one bound");
    assert_eq!(
        message(|job| job.bounds = vec![Bound {
            of: "z".into(),
            rows: 1,
            overflow: Overflow::Refuse
        }]),
        "z: no query, common table expression or subquery of FROM has this name"
    );
}

/// What the planner of passes refuses has a place in the query, too: that of the part, or of the expression.
#[test]
fn what_parties_do_not_compute_is_refused_at_its_place() {
    let said = |sql: &str, bounds: Vec<Bound>, keep: Option<Kept>| {
        let mut job = job(tables(40, 70), sql);
        job.bounds = bounds;
        job.queries[0].keep = keep;
        let program = compile(&job, &SortedBytes).unwrap();
        // Places are no part of the plan: its text is the same without them.
        let read = veil_relation::Program::read(&program.to_string()).unwrap();
        assert!(read == program);
        let [security, _] = securities();
        let error = plan(&program, &participants(security)).unwrap_err();
        let bare = plan(&read, &participants(security)).unwrap_err();
        assert_eq!(bare.to_string(), error.to_string());
        assert_eq!(bare.refusal(), None);
        let refusal = error.refusal().unwrap();
        let query = &job.queries[refusal.place.query as usize];
        refused_at(query, refusal.place, refusal.what, refusal.instead).to_string()
    };
    let flagged = vec![Bound {
        of: "some".into(),
        rows: 3,
        overflow: Overflow::Flag,
    }];
    let kept = Kept {
        dataset: "some".into(),
        size: None,
    };
    assert_eq!(
        said(
            "WITH more AS (SELECT id FROM people),\n  some AS (SELECT id FROM more)\nSELECT id FROM some",
            flagged,
            Some(kept)
        ),
        "query `q`, line 3, column 1: parties do not compute relations that are kept and say whether a bound has left out rows yet
  SELECT id FROM some
  ^
  use overflow = \"refuse\", or \"drop\""
    );
    // Each quotient has some ten thousands of wires.
    let quotients =
        (1..100).map(|k| format!("round(x / (income + {}), 2) AS y{k}", 10_000_000 + k));
    let quotients: Vec<String> = quotients.collect();
    let large = format!(
        "WITH large AS (\n  SELECT income, income * income * income * income * income AS x FROM people)\nSELECT\n  {}\nFROM large",
        quotients.join(",\n  ")
    );
    let text = said(&large, vec![], None);
    let (place, rest) = text.split_once(": ").unwrap();
    let (_, line) = place.split_once("line ").unwrap();
    let (line, column) = line.split_once(", column ").unwrap();
    let line: usize = line.parse().unwrap();
    // Its first column that is of this query: `x` is computed elsewhere.
    assert_eq!(column, "14");
    let excerpt = large.lines().nth(line - 1).unwrap();
    assert!(
        line > 10 && excerpt.contains("round(x / (income + 100000"),
        "{text}"
    );
    assert_eq!(
        rest,
        format!(
            "the circuit of this has more than 2097152 wires\n  {excerpt}\n               ^\n  ask for less in one query"
        )
    );
}

/// Where operators are too deep, the place is that of the first one beyond the limit.
#[test]
fn nesting_is_refused_where_it_is_too_deep() {
    let sql = format!(
        "SELECT id FROM people\nWHERE age{} > 3",
        " + age".repeat(120)
    );
    let error = compile(&job(tables(10, 20), &sql), &SortedBytes).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(
            "query `q`, line 2, column 7: a query has at most 100 operators within each other\n  WHERE age + age"
        ),
        "{text}"
    );
}
