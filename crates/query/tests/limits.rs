//! No text makes the crate panic, overflow its stack or take long.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use veil_query::{Part, SortedBytes, check_part, compile};
use veil_relation::{Column, ColumnId, Kind, Table, Type};

use crate::common::{job, listed, range, tables};

fn message(sql: &str) -> String {
    match compile(&job(tables(3, 3), sql), &SortedBytes) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string().lines().next().unwrap().to_owned(),
    }
}

/// The stack of a thread of tests and of the library: what nests deeply is refused on it as well.
#[test]
fn what_nests_deeply_is_refused() {
    let repeated = |count: usize, [before, open, middle, close, after]: [&str; 5]| {
        format!(
            "{before}{}{middle}{}{after}",
            open.repeat(count),
            close.repeat(count)
        )
    };
    let forms = [
        ["SELECT id FROM people WHERE ", "(", "active", ")", ""],
        ["SELECT id FROM people WHERE ", "NOT ", "active", "", ""],
        ["SELECT ", "- ", "id", "", " AS x FROM people"],
        ["SELECT id", " + 1", "", "", " AS x FROM people"],
        [
            "SELECT id FROM people WHERE active",
            " AND active",
            "",
            "",
            "",
        ],
        [
            "SELECT id FROM people WHERE active",
            " OR NOT active AND active",
            "",
            "",
            "",
        ],
        ["SELECT id FROM people WHERE active", " IS TRUE", "", "", ""],
        ["SELECT id", "::integer", "", "", " AS x FROM people"],
        ["SELECT ", "coalesce(", "id", ")", " AS x FROM people"],
        [
            "SELECT ",
            "CASE WHEN active THEN ",
            "id",
            " END",
            " AS x FROM people",
        ],
        [
            "",
            "SELECT x FROM (",
            "SELECT id AS x FROM people",
            ") t",
            "",
        ],
        [
            "SELECT id FROM people",
            " UNION ALL SELECT id FROM people",
            "",
            "",
            "",
        ],
        [
            "SELECT id FROM people",
            " UNION SELECT id FROM people UNION ALL SELECT id FROM people",
            "",
            "",
            "",
        ],
        ["SELECT id FROM ", "(", "people", ")", ""],
        ["SELECT id FROM people WHERE id IN (1", ", 1", "", "", ")"],
        ["", "(", "SELECT id FROM people", ")", ""],
        [
            "SELECT id FROM people WHERE ",
            "id IN (SELECT id FROM people WHERE ",
            "active",
            ")",
            "",
        ],
        [
            "SELECT id FROM people WHERE age = ",
            "(SELECT max(age) FROM people WHERE age > ",
            "1",
            ")",
            "",
        ],
        [
            "WITH ",
            "t AS (SELECT id FROM people), ",
            "u AS (SELECT id FROM people)",
            "",
            " SELECT id FROM u",
        ],
        [
            "SELECT id FROM people",
            " JOIN people USING (id)",
            "",
            "",
            "",
        ],
    ];
    for form in forms {
        for count in [20, 450, 1900, 100_000] {
            let sql = repeated(count, form);
            let started = Instant::now();
            let message = message(&sql);
            if count == 100_000 {
                assert!(
                    message.contains("a query has at most"),
                    "{form:?} {message}"
                );
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "{form:?} {count}"
            );
        }
    }
    assert!(message(&"(".repeat(100_000)).contains("a query has at most 4000 words and signs"));
    assert!(message(&" ".repeat(1 << 20)).contains("a query has at most 262144 bytes"));
}

#[test]
fn eight_tables_are_ordered() {
    let names: Vec<String> = (0..8).map(|at| format!("t{at}")).collect();
    let column = |name: &str| Column {
        name: name.to_owned(),
        ty: Type::of(Kind::Integer(range(0, 1000))),
        consent: None,
    };
    let table = |(at, name): (usize, &String)| Table {
        name: name.clone(),
        origin: veil_relation::Origin::Owner("north".to_owned()),
        capacity: 1000 * (at as u32 * 5 % 8 + 1),
        padded: true,
        columns: vec![column("k"), column("other"), column("x")],
        sorted_by: Vec::new(),
        unique: vec![vec![ColumnId(0)]],
    };
    let tables: Vec<Table> = names.iter().enumerate().map(table).collect();
    // Each table is joined with each other one: the most pairs of sets.
    let pairs = (0..8).flat_map(|a| (a + 1..8).map(move |b| format!("t{a}.k = t{b}.k")));
    let all: Vec<String> = pairs.collect();
    let sql = format!(
        "SELECT sum(t0.x) AS s FROM {} WHERE {}",
        names.join(", "),
        all.join(" AND ")
    );
    let one = compile(&job(tables.clone(), &sql), &SortedBytes).unwrap();
    // Another order of tables and conditions is ordered as well.
    let (mut turned, mut conditions) = (names.clone(), all.clone());
    turned.rotate_left(3);
    conditions.reverse();
    let sql = format!(
        "SELECT sum(t0.x) AS s FROM {} WHERE {}",
        turned.join(", "),
        conditions.join(" AND ")
    );
    let other = compile(&job(tables.clone(), &sql), &SortedBytes).unwrap();
    let scans = |text: String| text.matches("(scan").count();
    assert_eq!((scans(one.to_string()), scans(other.to_string())), (8, 8));
    let sql = format!("SELECT sum(t0.x) AS s FROM {}, t0 AS t9", names.join(", "));
    let error = compile(&job(tables, &sql), &SortedBytes)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("9 tables in one FROM clause are too many: 8 are the most"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Queries with words exchanged, left out and repeated are refused or accepted, and nothing else.
    #[test]
    fn changed_queries_do_not_panic(which in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_u8..4), 1..6)) {
        let all = listed();
        let words: Vec<&str> = all.iter().flat_map(|of| of.sql.split_whitespace()).collect();
        let sql = &all[which.index(all.len())].sql;
        let mut changed: Vec<&str> = sql.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
        for (at, word, how) in changes {
            let at = at.index(changed.len());
            let word = words[word.index(words.len())];
            match how {
                0 => changed[at] = word,
                1 => changed.insert(at, word),
                2 if changed.len() > 1 => { changed.remove(at); }
                _ => { let other = (at + 1) % changed.len(); changed.swap(at, other); }
            }
        }
        message(&changed.concat());
        message(&changed.join(" "));
    }
}

/// A part of a query is no more than it says, whatever it is put into.
#[test]
fn parts_are_whole_and_alone() {
    let part = |text: &str, part: Part| match check_part("it", text, part) {
        Ok(()) => "accepted".to_owned(),
        Err(error) => error.to_string().lines().next().unwrap().to_owned(),
    };
    let expression = |text: &str| part(text, Part::Expression);
    assert_eq!(expression("a > 1 AND b IN (1, 2) -- and so on"), "accepted");
    for (text, what) in [
        ("", "line 1, column 1: Expected: an expression, found: EOF"),
        ("a, b", "line 1, column 2: `,` stands behind an expression"),
        (
            "a) OR (b",
            "line 1, column 2: `)` stands behind an expression",
        ),
        (
            "a\n; DROP TABLE b",
            "line 2, column 1: `;` stands behind an expression",
        ),
        (
            "a FROM b",
            "line 1, column 3: `FROM` stands behind an expression",
        ),
        ("'a", "line 1, column 1: Unterminated string literal"),
    ] {
        assert_eq!(expression(text), format!("query `it`, {what}"));
    }
    let from = |text: &str| part(text, Part::From);
    assert_eq!(
        from("a JOIN b ON a.x = b.x LEFT JOIN c USING (x)"),
        "accepted"
    );
    for (text, what) in [
        (
            "a WHERE x",
            "line 1, column 3: `WHERE` stands behind tables and their joins",
        ),
        (
            "a, b",
            "line 1, column 2: `,` stands behind tables and their joins",
        ),
        (
            "a JOIN",
            "line 1, column 3: Expected: identifier, found: EOF",
        ),
    ] {
        assert_eq!(from(text), format!("query `it`, {what}"));
    }
    for deep in ["(", "NOT ", "- ", "CASE WHEN a THEN "] {
        let text = deep.repeat(5000);
        assert_ne!(expression(&text), "accepted");
        assert_ne!(from(&text), "accepted");
    }
}
