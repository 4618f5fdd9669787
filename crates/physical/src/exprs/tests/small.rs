//! Every case of operations on few values.

use veil_circuit::generate::{Aim, quotient_and_rest};
use veil_circuit::{Builder, Per, Wire};
use veil_math::Ring;
use veil_relation::{
    Arithmetic, ColumnId, Comparison, DatePart, Expr, Kind, Literal, Type, Value, calendar,
};

use super::{Form, Random, categories, check, check_bits, decimals, integers, number};
use crate::exprs::divide::root;

const AIMS: [Aim; 2] = [Aim::Size, Aim::Depth];

/// Ranges of at most 16 values: from 0, two's complement, of no form, of one sign, of one value.
const RANGES: [(i128, i128); 9] = [
    (0, 15),
    (-8, 7),
    (-5, 6),
    (3, 12),
    (-14, -2),
    (-1, 0),
    (0, 0),
    (-7, -7),
    (0, 8),
];

/// All pairs of values of two types, null where they may be.
fn pairs(one: &Type, other: &Type) -> Vec<Vec<Value>> {
    let values = |ty: &Type| {
        let range = ty.kind.range().unwrap();
        let mut all: Vec<Value> = (range.min()..=range.max()).map(Value::Number).collect();
        all.extend(ty.nullable.then_some(Value::Null));
        all
    };
    let both = |x: Value| values(other).into_iter().map(move |y| vec![x, y]);
    values(one).into_iter().flat_map(both).collect()
}

fn columns() -> (Box<Expr>, Box<Expr>) {
    (Box::new(Expr::column(0)), Box::new(Expr::column(1)))
}

/// All operations of two numbers.
fn operations() -> Vec<Expr> {
    let (a, b) = columns();
    let mut all: Vec<Expr> = Comparison::ALL
        .map(|sign| Expr::Compare(sign, a.clone(), b.clone()))
        .to_vec();
    for sign in [Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul] {
        all.push(Expr::Arithmetic(sign, a.clone(), b.clone()));
        all.push(Expr::Arithmetic(sign, a.clone(), a.clone()));
    }
    let zero = Box::new(Expr::integer(0));
    let quotient = Expr::Divide(a.clone(), Box::new(Expr::NullIf(b.clone(), zero)));
    for places in 0..3 {
        all.push(Expr::Round(Box::new(quotient.clone()), places));
    }
    for sign in Comparison::ALL {
        let half = Literal::Decimal {
            units: -5,
            places: 1,
        };
        let half = Expr::Literal(half);
        all.push(Expr::compare(sign, quotient.clone(), half));
        all.push(Expr::compare(sign, (*a).clone(), quotient.clone()));
    }
    all.push(Expr::NullIf(a.clone(), b.clone()));
    all.push(Expr::NullIf(Box::new(quotient), a.clone()));
    let last = all.len() - 1;
    all[last] = Expr::IsNull(Box::new(all[last].clone()));
    all.push(Expr::Coalesce(vec![(*a).clone(), (*b).clone()]));
    all.push(Expr::Coalesce(vec![(*a).clone(), Expr::integer(4)]));
    for sign in [Comparison::Lt, Comparison::Gt] {
        let branches = vec![(
            Expr::compare(sign, (*a).clone(), (*b).clone()),
            (*a).clone(),
        )];
        let otherwise = b.clone();
        all.push(Expr::Case {
            branches,
            otherwise,
        });
    }
    for by in 1..18 {
        all.push(Expr::Modulo(a.clone(), by));
    }
    all
}

#[test]
fn all_pairs_of_small_numbers() {
    for (at, one) in RANGES.iter().enumerate() {
        for (place, other) in RANGES.iter().enumerate() {
            let types = [
                integers(one.0, one.1).or_null(at % 2 == 1),
                integers(other.0, other.1).or_null(place % 2 == 0),
            ];
            let rows = pairs(&types[0], &types[1]);
            for aim in AIMS {
                check_bits(&types, &rows, &operations(), aim);
            }
        }
    }
}

#[test]
fn all_pairs_of_small_integers_of_a_ring() {
    for (one, other) in [(1, 3), (4, 2), (0, 1), (5, 6)] {
        let (one, other) = (RANGES[one], RANGES[other]);
        let types = [
            integers(one.0, one.1).or_null(true),
            integers(other.0, other.1).or_null(one.0 == 0),
        ];
        let rows = pairs(&types[0], &types[1]);
        for forms in [
            [(ColumnId(0), Form::Integer), (ColumnId(1), Form::Integer)],
            [(ColumnId(0), Form::Integer), (ColumnId(1), Form::Bits)],
            [(ColumnId(0), Form::Bits), (ColumnId(1), Form::Bits)],
        ] {
            for ring in [Ring::Z32, Ring::Z64] {
                check(ring, &types, &forms, &rows, &operations(), Aim::Size);
            }
        }
    }
}

#[test]
fn every_number_with_every_literal() {
    for (least, most) in RANGES {
        let ty = [integers(least, most).or_null(least < 0)];
        let rows = pairs(&ty[0], &integers(0, 0));
        let rows: Vec<Vec<Value>> = rows.into_iter().map(|row| row[..1].to_vec()).collect();
        let mut exprs = Vec::new();
        for literal in -17..18 {
            let (x, c) = (Expr::column(0), Expr::integer(literal));
            for sign in Comparison::ALL {
                exprs.push(Expr::compare(sign, x.clone(), c.clone()));
                exprs.push(Expr::compare(sign, c.clone(), x.clone()));
            }
            for sign in [Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul] {
                exprs.push(Expr::arithmetic(sign, x.clone(), c.clone()));
                exprs.push(Expr::arithmetic(sign, c.clone(), x.clone()));
            }
            if literal != 0 {
                let quotient = Expr::Divide(Box::new(x.clone()), Box::new(c.clone()));
                exprs.push(Expr::Round(Box::new(quotient), 1));
            }
            let inside = vec![
                Expr::compare(Comparison::Ge, x.clone(), c.clone()),
                Expr::compare(Comparison::Le, x.clone(), Expr::integer(literal + 4)),
            ];
            exprs.push(Expr::Not(Box::new(Expr::And(inside))));
            exprs.push(Expr::NullIf(Box::new(x), Box::new(c)));
        }
        for aim in AIMS {
            // A circuit has 1024 outputs at most.
            for exprs in exprs.chunks(500) {
                check_bits(&ty, &rows, exprs, aim);
            }
        }
    }
}

#[test]
fn three_valued_truth_tables() {
    let ty = Type::of(Kind::Bool).or_null(true);
    let certain = Type::of(Kind::Bool);
    let all = [Value::Bool(false), Value::Bool(true), Value::Null];
    let column = Expr::column;
    let not = |of: Expr| Expr::Not(Box::new(of));
    let (a, b, c) = (column(0), column(1), column(2));
    let inner = Expr::And(vec![a.clone(), not(b.clone())]);
    let mut exprs = vec![
        not(a.clone()),
        Expr::And(vec![]),
        Expr::Or(vec![]),
        Expr::Or(vec![inner.clone(), c.clone()]),
        not(Expr::Or(vec![inner.clone(), not(c.clone())])),
        Expr::And(vec![
            Expr::Or(vec![a.clone(), c.clone()]),
            b.clone(),
            not(inner),
        ]),
        Expr::And(vec![a.clone(), Expr::Literal(Literal::Null(Kind::Bool))]),
        Expr::Or(vec![a.clone(), Expr::bool(true), b.clone()]),
        Expr::IsNull(Box::new(Expr::Or(vec![a.clone(), b.clone()]))),
    ];
    for list in [vec![a.clone(), b.clone()], vec![a, b, c]] {
        exprs.extend([
            Expr::And(list.clone()),
            Expr::Or(list.clone()),
            Expr::Coalesce(list),
        ]);
    }
    for (types, count) in [
        ([ty.clone(), ty.clone(), ty.clone()], [3, 3, 3]),
        ([ty, certain.clone(), certain], [3, 2, 2]),
    ] {
        let mut rows = Vec::new();
        for x in &all[..count[0]] {
            for y in &all[..count[1]] {
                rows.extend(all[..count[2]].iter().map(|z| vec![*x, *y, *z]));
            }
        }
        for aim in AIMS {
            check_bits(&types, &rows, &exprs, aim);
        }
    }
}

#[test]
fn parts_of_all_days() {
    let part = |part| Expr::Extract(part, Box::new(Expr::column(0)));
    let exprs = [part(DatePart::Year), part(DatePart::Month)];
    // By tables and by arithmetic, across ends of centuries, and of one day.
    for (first, days) in [
        ("2023-01-01", 730),
        ("2019-12-31", 2557),
        ("1899-06-30", 730),
        ("1999-02-27", 6),
        ("1599-12-01", 12_000),
        ("1992-01-01", 16_000),
        ("2024-02-29", 0),
        ("2000-02-29", 1),
        ("1960-01-01", 24_000),
    ] {
        let first = calendar::parse(first).unwrap();
        let ty = Type::of(Kind::date(first, first + days).unwrap());
        let rows: Vec<Vec<Value>> = (first..=first + days)
            .map(|day| vec![Value::Number(day.into())])
            .collect();
        for aim in AIMS {
            check_bits(std::slice::from_ref(&ty), &rows, &exprs, aim);
        }
    }
}

#[test]
fn halves_round_away_from_zero() {
    let ty = decimals(3, -2600, 2600);
    let rows: Vec<Vec<Value>> = (-2600..=2600).map(|x| vec![Value::Number(x)]).collect();
    let round = |places| Expr::Round(Box::new(Expr::column(0)), places);
    let by = |divisor: i128, places| {
        let divisor = Box::new(Expr::integer(divisor));
        Expr::Round(
            Box::new(Expr::Divide(Box::new(Expr::column(0)), divisor)),
            places,
        )
    };
    let exprs = [
        round(0),
        round(1),
        round(2),
        round(3),
        round(4),
        by(2, 3),
        by(-2, 3),
        by(8, 0),
        by(50, 2),
        by(-7, 4),
    ];
    for aim in AIMS {
        check_bits(std::slice::from_ref(&ty), &rows, &exprs, aim);
    }
}

#[test]
fn all_tables_of_eight_values_and_some_of_more() {
    let mut random = Random(7);
    let of = || Box::new(Expr::column(0));
    for count in [1, 2, 5, 8, 37, 128, 1000] {
        let ty = Type::of(categories(count)).or_null(count == 5);
        let mut rows: Vec<Vec<Value>> =
            (0..count as i128).map(|x| vec![Value::Number(x)]).collect();
        rows.extend(ty.nullable.then(|| vec![Value::Null]));
        let bools = |set: &dyn Fn(usize) -> bool| Expr::Lookup {
            of: of(),
            first: 0,
            kind: Kind::Bool,
            table: (0..count).map(|at| Value::Bool(set(at))).collect(),
        };
        let mut exprs = vec![
            bools(&|at| at == count / 3),
            bools(&|at| at >= count / 3),
            bools(&|at| at % 3 == 1),
        ];
        if count == 8 {
            exprs.extend((0..256).map(|table: usize| bools(&|at| table >> at & 1 == 1)));
        }
        for nullable in [false, true] {
            let kind = decimals(2, -300, 4000).or_null(nullable);
            let table = (0..count).map(|_| random.cell(&kind)).collect();
            let kind = kind.kind;
            exprs.push(Expr::Lookup {
                of: of(),
                first: 0,
                kind,
                table,
            });
        }
        for aim in AIMS {
            check_bits(std::slice::from_ref(&ty), &rows, &exprs, aim);
        }
    }
}

/// All rows of an input of so many bits, through a circuit.
fn evaluated(
    len: u32,
    aim: Aim,
    by: impl Fn(&mut Builder, &[Wire], Aim) -> Vec<Vec<Wire>>,
) -> Vec<Vec<u128>> {
    let mut b = Builder::new(Ring::Bits);
    let x = b.input("x", len, Per::Row);
    for (at, bits) in by(&mut b, &x, aim).iter().enumerate() {
        b.output(format!("o{at}"), bits);
    }
    let circuit = b.finish().unwrap();
    let row = |x: u128| {
        let bits = (0..len).map(|j| x >> j & 1).collect();
        let outputs = circuit.evaluate(&[bits]).unwrap();
        outputs.iter().map(|bits| number(bits)).collect()
    };
    (0..1 << len).map(row).collect()
}

#[test]
fn roots_and_quotients() {
    for aim in AIMS {
        for len in 1..12 {
            let found = evaluated(len, aim, |b, x, aim| vec![root(b, x, aim)]);
            for (x, found) in found.iter().enumerate() {
                assert_eq!(found[0], x.isqrt() as u128, "{x} of {len} bits");
            }
        }
        // 7 bits by 4.
        let found = evaluated(11, aim, |b, x, aim| {
            let (quotient, rest) = quotient_and_rest(b, &x[..7], &x[7..], 7, aim);
            vec![quotient, rest]
        });
        for (at, found) in found.iter().enumerate() {
            let (x, y) = (at as u128 & 127, at as u128 >> 7);
            if let (Some(quotient), Some(rest)) = (x.checked_div(y), x.checked_rem(y)) {
                assert_eq!(found, &[quotient, rest], "{x} by {y}");
            }
        }
    }
}
