//! Sums over groups, and orders, against groups and orders in the clear.

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Per};
use veil_math::Ring;
use veil_relation::{
    Aggregate, AggregateFunction, ColumnId, Domain, Expr, Kind, Named, Plan, Program, Range,
    SortKey, Step, Type, Value, clear,
};

use super::{Bench, Random, categories, decimals, integers, number, run, table};
use crate::exprs::divide::rounded;
use crate::exprs::{Form, Ratio, Sums, Word, deviation, sort_bits, variance};

fn evaluated(plan: Plan, types: &[Type], rows: &[Vec<Value>]) -> Vec<Vec<Value>> {
    let program = Program {
        tables: vec![table(types, rows.len())],
        steps: vec![Step {
            keep: None,
            at: veil_relation::At::default(),
            name: "s".to_owned(),
            plan: Plan::Open {
                input: Box::new(plan),
                to: "r".to_owned(),
            },
        }],
    };
    let numbered = rows.iter().enumerate().map(|(at, row)| {
        let mut row = row.clone();
        row.push(Value::Number(at as i128));
        row
    });
    let input = clear::Input {
        valid: vec![true; rows.len()],
        rows: numbered.collect(),
    };
    clear::evaluate(&program, &[input]).unwrap().remove(0).rows
}

fn scan(columns: u32) -> Box<Plan> {
    Box::new(Plan::Scan {
        table: "t".to_owned(),
        columns: (0..=columns).map(ColumnId).collect(),
    })
}

/// By group: mean and variance rounded to `to` places, and deviation to `root` places.
fn groups(types: &[Type], rows: &[Vec<Value>], to: u32, root: u32) -> (Vec<Type>, Plan) {
    let of = Expr::column(1);
    let named = |name: &str, function| Aggregate {
        name: name.to_owned(),
        function,
        filter: None,
    };
    let grouped = Plan::GroupBy {
        input: scan(2),
        keys: vec![Named {
            name: "g".to_owned(),
            expr: Expr::column(0),
        }],
        aggregates: vec![
            named("avg", AggregateFunction::Avg(of.clone())),
            named("var", AggregateFunction::VarSamp(of.clone())),
            named("dev", AggregateFunction::StddevSamp(of, root)),
        ],
        domain: Domain::Secret,
        min_rows: 0,
    };
    let program = Program {
        tables: vec![table(types, rows.len())],
        steps: Vec::new(),
    };
    let shape = program.shape(&grouped).unwrap();
    let column = |at: u32, expr| Named {
        name: format!("r{at}"),
        expr,
    };
    let round = |at| Expr::Round(Box::new(Expr::column(at)), to);
    let columns = vec![
        column(0, Expr::column(0)),
        column(1, round(1)),
        column(2, round(2)),
        column(3, Expr::column(3)),
    ];
    let input = Box::new(grouped);
    let mut types = shape.types();
    let plan = Plan::Project { input, columns };
    types.extend(program.shape(&plan).unwrap().types());
    (types, plan)
}

/// Groups of 0 to 9 values, some of them null.
fn grouped_rows(random: &mut Random, ty: &Type) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for group in 0..60 {
        for _ in 0..=random.below(9) {
            let other = Value::Number(0);
            rows.push(vec![Value::Number(group), random.cell(ty), other]);
        }
    }
    rows
}

/// Count, sum and sum of squares of each group, in the clear.
fn sums(rows: &[Vec<Value>]) -> Vec<[i128; 3]> {
    let of = |group| {
        let members = rows.iter().filter(|row| row[0] == Value::Number(group));
        let values = members.filter_map(|row| row[1].number());
        values.fold([0; 3], |[n, sum, squares], x| {
            [n + 1, sum + x, squares + x * x]
        })
    };
    (0..60).map(of).collect()
}

#[test]
fn means_variances_and_deviations() {
    let mut random = Random(11);
    for (at, (places, least, most, to)) in [
        (0, 0, 1, 3),
        (0, -20, 35, 2),
        (2, -10_000, 10_000, 2),
        (2, 0, 999_999, 6),
        (1, 5, 5, 4),
        (0, -70_000, -30, 9),
        (3, -1, 2, 3),
    ]
    .into_iter()
    .enumerate()
    {
        let ty = decimals(places, least, most).or_null(true);
        let types = [integers(0, 60), ty.clone(), integers(0, 0)];
        let rows = grouped_rows(&mut random, &ty);
        let (shapes, plan) = groups(&types, &rows, to, to.max(places));
        let expected = evaluated(plan, &types, &rows);
        let count = rows.len() as i128;
        let units = ty.kind.range().unwrap();
        let ranges = [
            Range::new(0, count).unwrap(),
            units.sum(rows.len() as u64).unwrap(),
            Range::new(0, units.magnitude().unwrap().pow(2))
                .unwrap()
                .sum(rows.len() as u64)
                .unwrap(),
        ];
        let (Kind::Ratio { above, below, .. }, Some(root)) =
            (&shapes[2].kind, shapes[3].kind.range())
        else {
            panic!("a variance is a quotient");
        };
        let spread = shapes[6].kind.range().unwrap();
        for aim in [Aim::Size, Aim::Depth] {
            let mut b = Builder::new(Ring::Bits);
            let words: Vec<Word> = (0..3)
                .map(|at| {
                    let bits = match ranges[at].bits() {
                        0 => Vec::new(),
                        len => b.input(format!("x{at}"), len, Per::Row),
                    };
                    Word::of_bits(bits, ranges[at])
                })
                .collect();
            let of = Sums {
                count: &words[0],
                sum: &words[1],
                squares: &words[2],
            };
            let both = (*above, *below);
            let (Ratio { above, below }, few) = variance(&mut b, of, both, aim);
            let scales = (2 * places, to);
            let varied = rounded(&mut b, (&above, &below), scales, spread, aim);
            let scales = (places, to.max(places));
            let (deviated, too) = deviation(&mut b, of, both, scales, root, aim);
            for (name, word, null) in [("var", &varied, few), ("dev", &deviated, too)] {
                let bits = word.normal(&mut b, aim);
                b.output(name, &[&[null], bits.as_slice()].concat());
            }
            let circuit = b.finish().unwrap();
            for (group, sums) in sums(&rows).iter().enumerate() {
                let inputs = sums
                    .iter()
                    .zip(&ranges)
                    .filter(|(_, range)| range.bits() > 0);
                let bits = |(value, range): (&i128, &Range)| {
                    let value = value.wrapping_sub(range.min()) as u128;
                    (0..range.bits()).map(|j| value >> j & 1).collect()
                };
                let inputs: Vec<Vec<u128>> = inputs.map(bits).collect();
                let outputs = circuit.evaluate(&inputs).unwrap();
                let ranges = [spread, root];
                for ((output, range), value) in
                    outputs.iter().zip(ranges).zip(&expected[group][2..])
                {
                    let found = match output[0] {
                        1 => Value::Null,
                        _ => Value::Number(range.min().wrapping_add(number(&output[1..]) as i128)),
                    };
                    assert_eq!(
                        found, *value,
                        "case {at}, group {group} of {sums:?} ({aim:?})"
                    );
                }
            }
        }
    }
}

#[test]
fn words_of_keys_are_in_the_order_of_rows() {
    let mut random = Random(3);
    for case in 0..40 {
        let types = [
            integers(-3, 4).or_null(random.below(2) == 0),
            decimals(2, 7, 7 + i128::from(random.below(3))).or_null(random.below(2) == 0),
            Type::of(categories(3)).or_null(random.below(2) == 0),
            Type::of(Kind::Bool).or_null(true),
        ];
        let rows: Vec<Vec<Value>> = (0..80)
            .map(|_| types.iter().map(|ty| random.cell(ty)).collect())
            .collect();
        let keys: Vec<SortKey> = (0..=random.below(4))
            .map(|_| SortKey {
                expr: Expr::column(random.below(4) as u32),
                descending: random.below(2) == 0,
                nulls_first: random.below(2) == 0,
            })
            .collect();
        let plan = Plan::Sort {
            input: scan(4),
            keys: keys.clone(),
        };
        let order: Vec<usize> = evaluated(plan, &types, &rows)
            .iter()
            .map(|row| row[4].number().unwrap() as usize)
            .collect();
        let forms = [0, 1, 2, 3].map(|at| (ColumnId(at), Form::Bits));
        let mut bench = Bench::new(Ring::Bits, &types, &forms, Aim::Size);
        let mut word = sort_bits(&mut bench.exprs, &keys).unwrap();
        // Keys of one value have no bits, and an output has some.
        word.push(bench.exprs.b.constant_bit(false));
        bench.output("key".to_owned(), &word);
        let (circuit, ports) = bench.finish();
        let outputs = run(&circuit, &ports, &types, &rows);
        let words = &outputs[0];
        let cells = |at: usize| -> Vec<Value> {
            let cell = |key: &SortKey| match key.expr {
                Expr::Column(column, _) => rows[at][column.index()],
                _ => Value::Null,
            };
            keys.iter().map(cell).collect()
        };
        for pair in order.windows(2) {
            let (one, other) = (number(&words[pair[0]]), number(&words[pair[1]]));
            assert!(one <= other, "case {case}: {keys:?}");
            assert_eq!(
                one == other,
                cells(pair[0]) == cells(pair[1]),
                "case {case}"
            );
        }
    }
}
