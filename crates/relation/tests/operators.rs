//! Operators: results are of their shapes, for all capacities and fills; laws that hold whatever the rows are.

use veil_relation::{
    Aggregate, AggregateFunction, ColumnId, Comparison, Domain, Expr, Frame, JoinKind, Kind,
    Matches, Named, Overflow, Plan, Program, SortKey, Step, Type, Value, WindowFunction, Windowed,
    clear,
};

use crate::common::{FILLS, Fill, Random, cell, range, rows, table, types};

const CAPACITIES: [u32; 5] = [0, 1, 2, 511, 513];

fn scan(table: &str) -> Plan {
    let columns = (0..12).map(ColumnId).collect();
    Plan::Scan {
        table: table.into(),
        columns,
    }
}

fn on(column: u32) -> Vec<(Expr, Expr)> {
    vec![(Expr::column(column), Expr::column(column))]
}

fn join(kind: JoinKind, left: Plan, right: Plan, on: Vec<(Expr, Expr)>, matches: Matches) -> Plan {
    let (left, right) = (Box::new(left), Box::new(right));
    Plan::Join {
        kind,
        left,
        right,
        on,
        condition: None,
        matches,
    }
}

fn project(input: Plan, columns: impl IntoIterator<Item = u32>) -> Plan {
    let columns = columns.into_iter().map(|at| Named {
        name: format!("p{at}"),
        expr: Expr::column(at),
    });
    Plan::Project {
        columns: columns.collect(),
        input: Box::new(input),
    }
}

fn group(input: Plan, keys: &[u32], functions: Vec<AggregateFunction>, min_rows: u32) -> Plan {
    let keys = keys.iter().map(|at| Named {
        name: format!("k{at}"),
        expr: Expr::column(*at),
    });
    let aggregate = |(at, function): (usize, AggregateFunction)| Aggregate {
        name: format!("a{at}"),
        function,
        filter: (at % 3 == 2)
            .then(|| Expr::compare(Comparison::Gt, Expr::column(1), Expr::integer(0))),
    };
    Plan::GroupBy {
        input: Box::new(input),
        keys: keys.collect(),
        aggregates: functions.into_iter().enumerate().map(aggregate).collect(),
        domain: Domain::Secret,
        min_rows,
    }
}

fn all_aggregates() -> Vec<AggregateFunction> {
    let (number, maybe) = (Expr::column(2), Expr::column(3));
    vec![
        AggregateFunction::CountRows,
        AggregateFunction::Count(maybe.clone()),
        AggregateFunction::CountDistinct(maybe.clone()),
        AggregateFunction::Sum(maybe.clone()),
        AggregateFunction::Avg(number.clone()),
        AggregateFunction::Min(Expr::column(7)),
        AggregateFunction::Max(Expr::column(5)),
        AggregateFunction::BoolOr(Expr::column(9)),
        AggregateFunction::BoolAnd(Expr::column(9)),
        AggregateFunction::VarSamp(maybe.clone()),
        AggregateFunction::StddevSamp(maybe, 4),
        AggregateFunction::PercentileDisc {
            of: number,
            above: 1,
            below: 3,
        },
    ]
}

fn order(columns: &[u32]) -> Vec<SortKey> {
    let key = |(at, column): (usize, &u32)| SortKey {
        expr: Expr::column(*column),
        descending: at % 2 == 1,
        nulls_first: at % 3 == 1,
    };
    columns.iter().enumerate().map(key).collect()
}

fn window(input: Plan, order: Vec<SortKey>) -> Plan {
    let of = Expr::column(3);
    let functions = vec![
        WindowFunction::RowNumber,
        WindowFunction::Rank,
        WindowFunction::Lag(of.clone(), 1),
        WindowFunction::Lead(of.clone(), 2),
        WindowFunction::CountRows(Frame::Moving(2)),
        WindowFunction::Count(of.clone(), Frame::Running),
        WindowFunction::Sum(of.clone(), Frame::Moving(3)),
        WindowFunction::Avg(of.clone(), Frame::Whole),
        WindowFunction::Min(of.clone(), Frame::Running),
        WindowFunction::Max(of, Frame::Whole),
    ];
    let windowed = |(at, function)| Windowed {
        name: format!("w{at}"),
        function,
    };
    Plan::Window {
        input: Box::new(input),
        partition: vec![Expr::column(7)],
        order,
        functions: functions.into_iter().enumerate().map(windowed).collect(),
    }
}

/// The first rows for each value of a column: unique in it.
fn firsts(table: &str, column: u32) -> Plan {
    group(
        scan(table),
        &[column],
        vec![AggregateFunction::Min(Expr::column(2))],
        0,
    )
}

/// One plan of each operator; results do not depend on the order of the rows of tables.
fn plans() -> Vec<(&'static str, Plan)> {
    let t = || scan("t");
    // Every column that is ordered: with all of them as keys, rows that tie are equal but for join keys.
    let total = [3, 1, 0, 2, 4, 5, 6, 7, 8, 9];
    let values = || project(t(), 0..10);
    let predicate = Expr::compare(Comparison::Lt, Expr::column(1), Expr::column(0));
    vec![
        ("scan", t()),
        (
            "filter",
            Plan::Filter {
                input: Box::new(t()),
                predicate,
            },
        ),
        (
            "union",
            Plan::UnionAll {
                inputs: vec![t(), scan("u"), t()],
            },
        ),
        (
            "inner",
            join(
                JoinKind::Inner,
                t(),
                firsts("u", 7),
                vec![(Expr::column(7), Expr::column(0))],
                Matches::UniqueRight,
            ),
        ),
        (
            "left",
            join(
                JoinKind::Left,
                t(),
                firsts("u", 1),
                vec![(Expr::column(1), Expr::column(0))],
                Matches::UniqueRight,
            ),
        ),
        (
            "left of many",
            join(
                JoinKind::Left,
                firsts("t", 1),
                scan("u"),
                vec![(Expr::column(0), Expr::column(1))],
                Matches::UniqueLeft,
            ),
        ),
        (
            "bounded",
            join(
                JoinKind::Inner,
                t(),
                scan("u"),
                on(5),
                Matches::AtMost(513 * 513),
            ),
        ),
        (
            "semi",
            join(JoinKind::Semi, t(), scan("u"), on(3), Matches::Any),
        ),
        (
            "anti",
            join(JoinKind::Anti, t(), scan("u"), on(3), Matches::Any),
        ),
        ("totals", group(t(), &[], all_aggregates(), 0)),
        ("groups", group(t(), &[7, 9], all_aggregates(), 0)),
        ("groups of dates", group(t(), &[5], all_aggregates(), 2)),
        (
            "distinct",
            Plan::Distinct {
                input: Box::new(project(t(), [1, 7, 9])),
            },
        ),
        (
            "sort",
            Plan::Sort {
                input: Box::new(values()),
                keys: order(&total),
            },
        ),
        (
            "top",
            Plan::TopK {
                input: Box::new(values()),
                keys: order(&total),
                rows: 7,
            },
        ),
        ("window", window(values(), order(&total))),
        (
            "trim",
            Plan::Trim {
                input: Box::new(t()),
                rows: 513,
                overflow: Overflow::Refuse,
            },
        ),
    ]
}

fn program(plan: Plan, capacity: u32) -> Program {
    let tables = ["t", "u"].map(|name| table(name, capacity)).to_vec();
    let plan = Plan::Open {
        input: Box::new(plan),
        to: "r".into(),
    };
    Program {
        tables,
        steps: vec![Step {
            keep: None,
            at: veil_relation::At::default(),
            name: "q".into(),
            plan,
        }],
    }
}

fn run(plan: Plan, capacity: u32, inputs: &[clear::Input]) -> Vec<Vec<Value>> {
    clear::evaluate(&program(plan, capacity), inputs)
        .unwrap()
        .remove(0)
        .rows
}

fn each(mut test: impl FnMut(u32, [clear::Input; 2], &mut Random)) {
    for capacity in CAPACITIES {
        for (seed, fill) in FILLS.into_iter().enumerate() {
            let input = |name, seed| rows(&table(name, capacity), fill, seed);
            test(
                capacity,
                [input("t", seed as u64), input("u", 99 + seed as u64)],
                &mut Random(7),
            );
        }
    }
}

#[test]
fn results_are_of_their_shapes() {
    each(|capacity, inputs, _| {
        for (name, plan) in plans() {
            let program = program(plan, capacity);
            let shape = program.check().unwrap().remove(0);
            let opened = clear::evaluate(&program, &inputs).unwrap().remove(0);
            assert!(
                opened.rows.len() as u64 <= shape.capacity,
                "{name}, {capacity}"
            );
            for row in &opened.rows {
                assert_eq!(row.len(), shape.fields.len(), "{name}");
                for (value, field) in row.iter().zip(&shape.fields) {
                    assert!(field.ty.holds(value), "{name}: {value:?} in {field:?}");
                }
            }
            for set in &shape.unique {
                let keys = opened
                    .rows
                    .iter()
                    .map(|row| set.iter().map(|id| row[id.index()]).collect::<Vec<_>>());
                let mut keys: Vec<_> = keys.filter(|key| !key.contains(&Value::Null)).collect();
                let before = keys.len();
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), before, "{name}: {set:?}");
            }
        }
    });
}

#[test]
fn the_order_of_rows_and_the_cells_of_invalid_rows_change_nothing() {
    each(|capacity, inputs, random| {
        let changed = inputs.clone().map(|mut input| {
            for at in 0..input.rows.len() {
                if !input.valid[at] {
                    let garbage = types()
                        .into_iter()
                        .map(|ty| cell(&ty.or_null(true), Fill::Random, random));
                    input.rows[at] = garbage.collect();
                }
                let other = random.below(at as u64 + 1) as usize;
                input.rows.swap(at, other);
                input.valid.swap(at, other);
            }
            input
        });
        for (name, plan) in plans() {
            let (one, other) = (
                run(plan.clone(), capacity, &inputs),
                run(plan, capacity, &changed),
            );
            assert_eq!(one, other, "{name}, {capacity}");
        }
    });
}

#[test]
fn sorting_and_distinct_are_idempotent() {
    each(|capacity, inputs, _| {
        let sort = |input| Plan::Sort {
            input: Box::new(input),
            keys: order(&[7, 1, 3]),
        };
        let top = |input| Plan::TopK {
            input: Box::new(input),
            keys: order(&[7, 1, 3]),
            rows: 9,
        };
        let distinct = |input| Plan::Distinct {
            input: Box::new(input),
        };
        let once = run(sort(scan("t")), capacity, &inputs);
        assert_eq!(run(sort(sort(scan("t"))), capacity, &inputs), once);
        assert_eq!(
            run(top(scan("t")), capacity, &inputs),
            once[..once.len().min(9)]
        );
        let values = || project(scan("t"), [1, 7]);
        assert_eq!(
            run(distinct(distinct(values())), capacity, &inputs),
            run(distinct(values()), capacity, &inputs)
        );
    });
}

#[test]
fn joins_commute_and_split() {
    each(|capacity, inputs, _| {
        let at_most = Matches::AtMost(513 * 513);
        // Half of all pairs of 513 rows match in a column of two values: fewer columns suffice there.
        for column in if capacity > 2 {
            vec![3, 5]
        } else {
            vec![1, 3, 7, 9, 11]
        } {
            let one = join(JoinKind::Inner, scan("t"), scan("u"), on(column), at_most);
            let other = join(JoinKind::Inner, scan("u"), scan("t"), on(column), at_most);
            let swapped = project(other, (12..24).chain(0..12));
            let pairs = run(one.clone(), capacity, &inputs);
            assert_eq!(pairs, run(swapped, capacity, &inputs));
            // No key is null, and the keys are equal.
            let ok = |row: &Vec<Value>| {
                row[column as usize] != Value::Null
                    && row[column as usize] == row[column as usize + 12]
            };
            assert!(pairs.iter().all(ok));
            // Semi and anti join split the left rows; a left join is the pairs and the rows of the anti join.
            let semi = run(
                join(
                    JoinKind::Semi,
                    scan("t"),
                    scan("u"),
                    on(column),
                    Matches::Any,
                ),
                capacity,
                &inputs,
            );
            let anti = run(
                join(
                    JoinKind::Anti,
                    scan("t"),
                    scan("u"),
                    on(column),
                    Matches::Any,
                ),
                capacity,
                &inputs,
            );
            let mut both = [semi, anti.clone()].concat();
            both.sort_unstable();
            assert_eq!(both, run(scan("t"), capacity, &inputs));
            let mut left = pairs;
            left.extend(anti.into_iter().map(|mut row| {
                row.resize(24, Value::Null);
                row
            }));
            left.sort_unstable();
            assert_eq!(
                run(
                    join(JoinKind::Left, scan("t"), scan("u"), on(column), at_most),
                    capacity,
                    &inputs
                ),
                left
            );
        }
    });
}

#[test]
fn aggregates_over_no_rows_are_null_but_counts() {
    let invalid = ["t", "u"].map(|name| rows(&table(name, 2), Fill::Invalid, 0));
    let totals = run(group(scan("t"), &[], all_aggregates(), 0), 2, &invalid);
    let zero = Value::Number(0);
    let nulls = [Value::Null; 9];
    assert_eq!(totals, [[[zero; 3].as_slice(), &nulls].concat()]);
    assert!(run(group(scan("t"), &[7], all_aggregates(), 0), 2, &invalid).is_empty());
    assert!(run(group(scan("t"), &[], all_aggregates(), 1), 2, &invalid).is_empty());
}

/// By hand: groups with nulls, ties, a variance, a discrete quantile.
#[test]
fn a_group_by_hand() {
    let [mut t, u] = ["t", "u"].map(|name| rows(&table(name, 5), Fill::Equal, 0));
    t.valid = vec![true, true, true, true, false];
    for (row, (category, number)) in
        t.rows
            .iter_mut()
            .zip([(0, 100), (0, 250), (0, -50), (1, 7), (1, 9)])
    {
        row[6] = Value::Number(category);
        row[2] = Value::Number(number);
        row[3] = if number == 250 {
            Value::Null
        } else {
            Value::Number(number)
        };
        row[1] = Value::Number(1);
    }
    let opened = run(group(scan("t"), &[6], all_aggregates(), 0), 5, &[t, u]);
    let number = Value::Number;
    // x = 1.00 and −0.50: variance 1.125, root 1.0607; the third of 1.00, 2.50, −0.50 in order is the first.
    let first = [
        number(0),
        number(3),
        number(2),
        number(2),
        number(50),
        Value::Ratio(300, 3),
        opened[0][6],
        opened[0][7],
        opened[0][8],
        opened[0][9],
        Value::Ratio(2 * (10_000 + 2_500) - 50 * 50, 2),
        number(10_607),
        number(-50),
    ];
    assert_eq!(opened[0], first);
    assert_eq!(opened[1][1], number(1));
    assert_eq!(opened[1][10], Value::Null);
}

#[test]
fn broken_promises_are_errors() {
    let inputs = ["t", "u"].map(|name| rows(&table(name, 9), Fill::Equal, 0));
    let fails = |plan| {
        clear::evaluate(&program(plan, 9), &inputs)
            .unwrap_err()
            .to_string()
    };
    let twice = "a key occurs twice where a join takes it to be unique";
    assert_eq!(
        fails(join(
            JoinKind::Inner,
            scan("t"),
            scan("u"),
            on(0),
            Matches::UniqueRight
        )),
        twice
    );
    assert_eq!(
        fails(join(
            JoinKind::Left,
            scan("t"),
            scan("u"),
            on(0),
            Matches::UniqueLeft
        )),
        twice
    );
    assert_eq!(
        fails(join(
            JoinKind::Inner,
            scan("t"),
            scan("u"),
            on(0),
            Matches::AtMost(3)
        )),
        "a relation has more than 3 rows"
    );
    let trim = |overflow| Plan::Trim {
        input: Box::new(scan("t")),
        rows: 1,
        overflow,
    };
    assert_eq!(
        fails(trim(Overflow::Refuse)),
        "a relation has more than 1 rows"
    );
    for overflow in [Overflow::Flag, Overflow::Drop] {
        let opened = clear::evaluate(&program(trim(overflow), 9), &inputs).unwrap();
        assert_eq!(
            (opened[0].rows.len(), opened[0].incomplete),
            (1, overflow == Overflow::Flag)
        );
    }
    let mut wrong = inputs.clone();
    (wrong[1].valid[2], wrong[1].rows[2][0]) = (true, Value::Number(6));
    let error = clear::evaluate(&program(scan("t"), 9), &wrong).unwrap_err();
    assert_eq!(
        error,
        clear::ClearError::Cell {
            table: 1,
            row: 2,
            column: 0
        }
    );
    wrong[0].rows.pop();
    assert!(clear::evaluate(&program(scan("t"), 9), &wrong).is_err());
}

#[test]
fn ranges_of_sums_are_those_of_the_capacity() {
    let shape = program(group(scan("t"), &[], all_aggregates(), 0), 513)
        .check()
        .unwrap()
        .remove(0);
    let kind = |at: usize| shape.fields[at].ty.kind.clone();
    assert_eq!(kind(0), Kind::Integer(range(0, 513)));
    assert_eq!(
        kind(3),
        Kind::Decimal {
            places: 2,
            units: range(-513_000_000, 513 * 999_999)
        }
    );
    assert_eq!(shape.fields[0].ty, Type::of(kind(0)));
    assert!(shape.fields[3].ty.nullable);
}
