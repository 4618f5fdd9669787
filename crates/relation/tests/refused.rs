//! What is no program, with the message.

use veil_relation::{
    Aggregate, AggregateFunction, Arithmetic, ColumnId, Domain, Expr, JoinKind, Kind, Matches,
    Named, Plan, Program, Reveal, SortKey, Step, Type, Value,
};

use crate::common::{letters, range, table, types};

fn message(expr: &Expr) -> String {
    expr.ty(&types()).unwrap_err().to_string()
}

#[test]
fn expressions() {
    let column = Expr::column;
    let boxed = |at| Box::new(Expr::column(at));
    let square = |expr: Expr| Expr::arithmetic(Arithmetic::Mul, expr.clone(), expr);
    let wide = square(Expr::integer(1 << 70));
    let cases = [
        (column(12), "there is no column #12 among 12"),
        (
            Expr::Not(boxed(0)),
            "`(not #0)` takes conditions, and not integer",
        ),
        (
            wide,
            "`x * x` may take 142 bits, and there are 128; x is 1180591620717411303424",
        ),
        (
            Expr::Divide(boxed(2), boxed(0)),
            "`x / y` has no value where y is 0; x is -10000.00 to 9999.99, y is -3 to 5",
        ),
        (
            Expr::AddDays(boxed(4), Box::new(Expr::integer(3_000_000))),
            "`x + y days` may be before 0001-01-01 or after 9999-12-31; x is 1970-01-11 to 1972-06-19, y is 3000000",
        ),
        (
            Expr::Coalesce(vec![column(0), column(2)]),
            "`(coalesce #0 #2)` takes operands of one kind, and not integer and decimal with 2 places",
        ),
        (
            Expr::compare(veil_relation::Comparison::Eq, column(10), column(10)),
            "`(= #10 #10)` is not formed as it must be: a key is compared by joins only",
        ),
        (
            Expr::Round(boxed(2), 31),
            "`round(x, 31)` has 31 decimal places, and 30 are the most; x is -10000.00 to 9999.99",
        ),
        (
            Expr::Rescale(boxed(2), 1),
            "`(rescale #2 1)` is not formed as it must be: places only become more",
        ),
        (
            Expr::Modulo(boxed(0), 0),
            "`(% #0 0)` is not formed as it must be: the divisor of a remainder is at least 1",
        ),
        (
            Expr::Lookup {
                of: boxed(6),
                first: 0,
                kind: Kind::Bool,
                table: vec![Value::Null; letters().texts().len() - 1],
            },
            "`(lookup #6 bool (null null null))` is not formed as it must be: a result for each value of the category, of the kind that it says",
        ),
    ];
    for (expr, expected) in cases {
        assert_eq!(message(&expr), expected);
    }
}

#[test]
fn plans() {
    let scan = |columns: &[u32]| Plan::Scan {
        table: "t".into(),
        columns: columns.iter().copied().map(ColumnId).collect(),
    };
    let all = || Box::new(scan(&(0..12).collect::<Vec<_>>()));
    let join = |on, matches| Plan::Join {
        kind: JoinKind::Inner,
        left: all(),
        right: all(),
        on,
        condition: None,
        matches,
    };
    let pair = |a, b| vec![(Expr::column(a), Expr::column(b))];
    let sum = |of| {
        let function = AggregateFunction::Sum(of);
        let aggregates = vec![Aggregate {
            name: "s".into(),
            function,
            filter: None,
        }];
        Plan::GroupBy {
            input: all(),
            keys: Vec::new(),
            aggregates,
            domain: Domain::Secret,
            min_rows: 0,
        }
    };
    let keys = vec![Named {
        name: "k".into(),
        expr: Expr::column(6),
    }];
    let group = |groups| Plan::GroupBy {
        input: all(),
        keys: keys.clone(),
        aggregates: Vec::new(),
        domain: Domain::Public(groups),
        min_rows: 0,
    };
    let average = Plan::GroupBy {
        input: all(),
        keys: Vec::new(),
        aggregates: vec![Aggregate {
            name: "a".into(),
            function: AggregateFunction::Avg(Expr::column(0)),
            filter: None,
        }],
        domain: Domain::Secret,
        min_rows: 0,
    };
    let cases = [
        (
            Plan::Scan {
                table: "v".into(),
                columns: Vec::new(),
            },
            "there is no table `v`",
        ),
        (scan(&[12]), "scan: a column that the table does not have"),
        (scan(&[1, 1]), "scan: a column twice"),
        (
            Plan::Step { name: "q".into() },
            "there is no earlier step `q` whose relation may be read",
        ),
        (
            join(pair(0, 2), Matches::UniqueRight),
            "a join compares integer with decimal with 2 places",
        ),
        (
            join(pair(0, 0), Matches::Any),
            "join: a join that gives pairs says how many there may be",
        ),
        (
            join(pair(0, 0), Matches::AtMost(u32::MAX)),
            "a relation of 4294967295 rows is too large: 2147483648 are the most; bound it",
        ),
        (
            sum(Expr::column(6)),
            "sum does not take a category of 4 values",
        ),
        (
            sum(Expr::integer(i128::MAX)),
            "`sum(x) over 2 rows` may take 129 bits, and there are 128; x is 170141183460469231731687303715884105727",
        ),
        (
            group(5),
            "group by: a public domain is the product of those of its keys",
        ),
        (
            Plan::Sort {
                input: Box::new(average),
                keys: vec![SortKey::ascending(Expr::column(0))],
            },
            "sort does not take a quotient",
        ),
        (
            Plan::Filter {
                input: all(),
                predicate: Expr::column(0),
            },
            "filter does not take a integer",
        ),
        (
            Plan::UnionAll {
                inputs: vec![scan(&[0]), scan(&[2])],
            },
            "the relations of a union differ in column 1: integer and decimal with 2 places",
        ),
        (
            Plan::UnionAll { inputs: Vec::new() },
            "union: at least one relation",
        ),
    ];
    for (plan, expected) in cases {
        let program = Program {
            tables: vec![table("t", 2)],
            steps: vec![Step {
                keep: None,
                at: veil_relation::At::default(),
                name: "q".into(),
                plan,
            }],
        };
        assert_eq!(program.check().unwrap_err().to_string(), expected);
    }
}

#[test]
fn tables() {
    let check = |change: fn(&mut veil_relation::Table)| {
        let mut of = table("t", 2);
        change(&mut of);
        of.check().unwrap_err().to_string()
    };
    assert_eq!(
        check(|t| t.columns[1].name = "c0".into()),
        "table `t` has two columns `c0`; rename one"
    );
    assert_eq!(
        check(|t| t.columns[1].name = "C".into()),
        "`C` of table `t` is no name: use lower-case letters, digits and `_`, a letter or `_` first"
    );
    assert_eq!(check(|t| t.columns.clear()), "table `t` has no columns");
    assert_eq!(
        check(|t| t.capacity = u32::MAX),
        "table `t` has 4294967295 rows; 2147483648 are the most"
    );
    assert_eq!(
        check(|t| t.unique.push(vec![ColumnId(12)])),
        "a claim about table `t` names no columns, a column twice, or one that the table does not have"
    );
    assert_eq!(
        check(|t| t.columns[0].ty.kind = Kind::Key { bits: 65 }),
        "column `c0` of table `t` is no kind of a table: key of 65 bits"
    );
    assert!(table("t", 2).check().is_ok());
    assert_eq!(Type::of(Kind::Integer(range(0, 1))).kind.bits(), Some(1));
}

/// Which columns decide what, and what is shown of them.
#[test]
fn uses_are_those_of_columns_of_tables() {
    let program = Program::read(
        "(program
  (table
    \"s\"
    (owner \"north\")
    (rows 3)
    (column \"id\" (key 64))
    (column \"day\" (integer 0 9))
    (column \"pay\" (integer 0 9))
    (column \"idle\" bool))
  (table \"p\" (owner \"south\") (rows 3) (column \"id\" (key 64)) (column \"ward\" (category \"a\" \"b\")) (unique #0))
  (step
    \"q\"
    (open
      \"eve\"
      (group-by
        (public 2)
        (min-rows 0)
        (keys (\"ward\" #4))
        (aggregates (\"pay\" (sum #2)))
        (join inner unique-right (on (#0 #0)) (filter (< #1 5) (scan \"s\" #0 #1 #2)) (scan \"p\" #0 #1))))))",
    )
    .unwrap();
    program.check().unwrap();
    let uses = program.uses().unwrap().into_iter().map(|of| {
        let words: Vec<&str> = of.operations.iter().map(|one| one.word()).collect();
        (of.table, of.column.0, words, of.opened.map(Reveal::word))
    });
    let expected = [
        (0, 0, vec!["join"], None),
        (0, 1, vec!["filter"], None),
        (0, 2, vec![], Some("aggregates")),
        (1, 0, vec!["join"], None),
        (1, 1, vec!["group-by"], Some("aggregates")),
    ];
    assert_eq!(uses.collect::<Vec<_>>(), expected);
}
