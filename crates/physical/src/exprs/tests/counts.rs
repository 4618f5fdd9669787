//! What circuits of expressions cost, and what has none.

use veil_circuit::Circuit;
use veil_circuit::generate::Aim;
use veil_math::Ring;
use veil_relation::{
    Arithmetic, ColumnId, Comparison, DatePart, Expr, Kind, Literal, Type, Value, calendar,
};

use super::{Bench, Random, categories, check, check_bits, decimals, integers};
use crate::exprs::{ExprError, Form, Want, needs};

fn x() -> Expr {
    Expr::column(0)
}

/// Rows of random cells.
fn rows(types: &[Type]) -> Vec<Vec<Value>> {
    let mut random = Random(9);
    let row = |_| types.iter().map(|ty| random.cell(ty)).collect();
    (0..64).map(row).collect()
}

/// A circuit of one expression, which gives what it must.
fn checked(types: &[Type], expr: Expr) -> Circuit {
    check_bits(types, &rows(types), &[expr], Aim::Size)
}

pub(super) fn ands(types: &[Type], expr: Expr) -> u64 {
    checked(types, expr).stats().muls
}

/// A circuit of which a truth is asked alone.
fn ands_of_truth(types: &[Type], condition: &Expr) -> u64 {
    let forms: Vec<_> = (0..types.len() as u32)
        .map(|at| (ColumnId(at), Form::Bits))
        .collect();
    let mut bench = Bench::new(Ring::Bits, types, &forms, Aim::Size);
    let wire = bench.exprs.truth(condition).unwrap();
    bench.output("t".to_owned(), &[wire]);
    bench.finish().0.stats().muls
}

#[test]
fn comparisons_with_literals_take_an_and_less_than_bits() {
    let mut random = Random(2);
    for bits in [1, 2, 3, 5, 8, 13, 20, 31, 32, 47, 63] {
        for least in [0, -7, 1 << 40] {
            let most = least + (1 << bits) - 1;
            let ty = [integers(least, most)];
            for _ in 0..4 {
                let literal = Expr::integer(least + i128::from(random.next() >> (64 - bits)));
                for sign in Comparison::ALL {
                    let expr = Expr::compare(sign, x(), literal.clone());
                    assert!(ands(&ty, expr) < bits, "{sign:?} {literal} of {bits} bits");
                }
                let inside = vec![
                    Expr::compare(Comparison::Ge, x(), Expr::integer(least + 1)),
                    Expr::compare(Comparison::Le, x(), literal.clone()),
                ];
                assert!(ands(&ty, Expr::And(inside)) < 2 * bits);
            }
            // What ranges decide costs nothing.
            for sign in Comparison::ALL {
                for literal in [least - 1, most + 1] {
                    let expr = Expr::compare(sign, x(), Expr::integer(literal));
                    assert_eq!(ands(&ty, expr), 0);
                }
            }
        }
    }
    // A null of the column is taken in once.
    let ty = [integers(0, 255).or_null(true)];
    let between = Expr::And(vec![
        Expr::compare(Comparison::Ge, x(), Expr::integer(17)),
        Expr::compare(Comparison::Le, x(), Expr::integer(200)),
    ]);
    assert!(ands_of_truth(&ty, &between) <= 7 + 7 + 2);
}

#[test]
fn arithmetic_of_columns() {
    let add = |sign| Expr::arithmetic(sign, x(), Expr::column(1));
    let types = [integers(0, 1023), integers(-300, 700)];
    assert_eq!(ands(&types, add(Arithmetic::Add)), 10);
    let alike = [integers(0, 1023), integers(-300, 723)];
    assert_eq!(ands(&alike, add(Arithmetic::Sub)), 10);
    let alike = [integers(7, 1030), integers(7, 1030)];
    let less = Expr::compare(Comparison::Lt, x(), Expr::column(1));
    assert_eq!(ands(&alike, less), 10);
    assert_eq!(ands(&alike, Expr::compare(Comparison::Lt, x(), x())), 0);
    // Factors of one digit move bits; each digit more is an addition.
    for (factor, most) in [(1, 0), (8, 0), (-4, 0), (10, 10), (100, 22), (7, 20)] {
        let expr = Expr::arithmetic(Arithmetic::Mul, x(), Expr::integer(factor));
        let found = ands(&types, expr);
        assert!(found <= most, "by {factor}: {found}");
    }
    let square = Expr::arithmetic(Arithmetic::Mul, x(), x());
    let product = Expr::arithmetic(Arithmetic::Mul, x(), Expr::column(1));
    let (square, product) = (ands(&types, square), ands(&types, product));
    // Of a factor below 0 the highest bit counts negatively, and what is put out is less the least product.
    assert!(product <= 2 * 10 * 11 + 20, "{product}");
    assert!(square <= product * 6 / 10, "{square} of {product}");
    // Offsets are public: nothing is added.
    let ty = [integers(1_000_000, 1_000_255)];
    let expr = Expr::arithmetic(Arithmetic::Sub, x(), Expr::integer(999_999));
    assert_eq!(ands(&ty, expr), 0);
    let expr = Expr::Rescale(Box::new(x()), 2);
    assert!(ands(&ty, expr) <= 2 * 14);
}

#[test]
fn choices_between_literals_cost_their_conditions() {
    let types = [integers(0, 255), Type::of(Kind::Bool), Type::of(Kind::Bool)];
    let case = |branches: Vec<(Expr, Expr)>, otherwise: Expr| Expr::Case {
        branches,
        otherwise: Box::new(otherwise),
    };
    let (p, q) = (Expr::column(1), Expr::column(2));
    let one = case(vec![(p.clone(), Expr::integer(77))], Expr::integer(3));
    assert_eq!(ands(&types, one), 0);
    let two = vec![
        (p.clone(), Expr::integer(77)),
        (q.clone(), Expr::integer(200)),
    ];
    assert_eq!(ands(&types, case(two, Expr::integer(3))), 1);
    // A column is masked: an AND a bit.
    let two = vec![(p.clone(), x()), (q.clone(), Expr::integer(200))];
    assert_eq!(ands(&types, case(two, Expr::integer(0))), 8 + 1);
    let or_null = case(
        vec![(p.clone(), x())],
        Expr::Literal(Literal::Null(integers(0, 255).kind)),
    );
    // To zero what is null, and nothing to choose.
    assert_eq!(ands(&types, or_null), 8);
    let logic = Expr::And(vec![p.clone(), q.clone(), Expr::bool(true), p]);
    assert_eq!(ands(&types, logic), 1);
    assert_eq!(ands(&types, Expr::Or(vec![Expr::bool(true), q])), 0);
}

#[test]
fn tables_of_categories() {
    let lookup = |count: usize, kind: Kind, table: Vec<Value>| {
        assert_eq!(table.len(), count);
        let of = Box::new(x());
        Expr::Lookup {
            of,
            first: 0,
            kind,
            table,
        }
    };
    for count in [3, 25, 150, 1000] {
        let ty = [Type::of(categories(count))];
        let bits = u64::from(ty[0].kind.bits().unwrap());
        let bools = |set: &dyn Fn(usize) -> bool| {
            let table = (0..count).map(|at| Value::Bool(set(at))).collect();
            ands(&ty, lookup(count, Kind::Bool, table))
        };
        assert!(bools(&|at| at == 1) < bits, "one of {count}");
        assert!(
            bools(&|at| at >= count / 3) < bits,
            "from one on of {count}"
        );
        assert!(bools(&|at| at == 1 || at == count / 2) < 2 * bits);
        assert_eq!(bools(&|_| true), 0);
    }
    // The 25 nations of 5 regions, of no order: results share what they can.
    let ty = [Type::of(categories(25))];
    let mut random = Random(4);
    let regions = Type::of(categories(5));
    let table = (0..25).map(|_| random.cell(&regions)).collect();
    let found = ands(&ty, lookup(25, regions.kind, table));
    assert!(found <= 25, "{found}");
    // The worst that may be: any table of 256 numbers of 16 bits.
    let ty = [Type::of(categories(256))];
    let odd = (0..256).map(|at| Value::Bool(at % 2 == 1)).collect();
    assert_eq!(ands(&ty, lookup(256, Kind::Bool, odd)), 0);
    let wide = integers(0, 65_535);
    let table = (0..256).map(|_| random.cell(&wide)).collect();
    let found = ands(&ty, lookup(256, wide.kind, table));
    assert!(found <= 256, "{found}");
}

#[test]
fn parts_of_dates() {
    let part = |part| Expr::Extract(part, Box::new(x()));
    let day = |text| calendar::parse(text).unwrap();
    for (first, last, year, month) in [
        ("1992-01-01", "1998-12-31", 60, 220),
        ("2024-01-01", "2024-12-31", 0, 50),
        ("1950-01-01", "2010-12-31", 250, 330),
        ("0001-01-01", "9999-12-31", 420, 430),
    ] {
        let ty = [Type::of(Kind::date(day(first), day(last)).unwrap())];
        let found = [DatePart::Year, DatePart::Month].map(|of| ands(&ty, part(of)));
        assert!(
            found[0] <= year && found[1] <= month,
            "{first} to {last}: {found:?}"
        );
    }
}

#[test]
fn quotients_take_a_divisor_for_each_bit() {
    let types = [decimals(2, 0, 99_999), integers(1, 15)];
    let cents = Expr::Round(Box::new(x()), 0);
    // 10 bits and a half of 17 by 25, and what is rounded up.
    let found = ands(&types, cents);
    assert!(found <= 11 * 5 + 17, "{found}");
    let quotient = Expr::Divide(Box::new(x()), Box::new(Expr::column(1)));
    let found = ands(&types, Expr::Round(Box::new(quotient.clone()), 2));
    assert!(found <= 18 * 4 + 17 + 4, "{found}");
    // Comparison of a quotient is a product, not a division.
    let above = Expr::compare(Comparison::Gt, quotient, Expr::integer(50));
    let found = ands(&types, above);
    assert!(found <= 70, "{found}");
    let found = ands(&[integers(0, 1000)], Expr::Modulo(Box::new(x()), 8));
    assert_eq!(found, 0, "a remainder by a power of two is bits");
}

/// `sum(price · (1 − discount))` and a condition on a date.
#[test]
fn integers_are_used_as_they_are() {
    let types = [
        decimals(2, 0, 10_000_000),
        decimals(2, 0, 10),
        integers(0, 50).or_null(true),
        Type::of(Kind::Bool),
    ];
    let discounted = Expr::arithmetic(
        Arithmetic::Mul,
        x(),
        Expr::arithmetic(Arithmetic::Sub, Expr::integer(1), Expr::column(1)),
    );
    let forms = needs(&discounted, Want::Integer, &types);
    let forms: Vec<_> = forms.into_iter().collect();
    assert_eq!(
        forms,
        [(ColumnId(0), Form::Integer), (ColumnId(1), Form::Integer)]
    );
    let counts = |forms: &[(ColumnId, Form)], expr: &Expr| {
        let mut bench = Bench::new(Ring::Z64, &types, forms, Aim::Size);
        let (wire, null) = bench.exprs.integer(expr).unwrap();
        let null = null.map(|null| bench.exprs.b.lift(null));
        let wires: Vec<_> = null.into_iter().chain([wire]).collect();
        bench.exprs.b.output("o", &wires);
        let stats = bench.finish().0.stats();
        (stats.muls, stats.lifts, stats.bits)
    };
    assert_eq!(counts(&forms, &discounted), (1, 0, 0));
    // Where a condition chooses it, a lifted bit and a product more.
    let chosen = Expr::Case {
        branches: vec![(Expr::column(3), discounted.clone())],
        otherwise: Box::new(Expr::integer(0)),
    };
    let mut both = forms.clone();
    both.push((ColumnId(3), Form::Bits));
    assert_eq!(counts(&both, &chosen), (2, 1, 0));
    assert_eq!(
        needs(&chosen, Want::Integer, &types),
        both.iter().copied().collect()
    );
    // A choice between literals is one lifted bit.
    let flag = Expr::Case {
        branches: vec![(Expr::column(3), Expr::integer(1))],
        otherwise: Box::new(Expr::integer(0)),
    };
    assert_eq!(counts(&both, &flag), (0, 1, 0));
    // Whether a column is null needs no more than that.
    let null = Expr::IsNull(Box::new(Expr::arithmetic(
        Arithmetic::Add,
        Expr::column(2),
        Expr::integer(1),
    )));
    assert_eq!(
        needs(&null, Want::Bits, &types),
        [(ColumnId(2), Form::Null)].into()
    );
    // A product with what may be null is 0 there already: no mask.
    let nullable = Expr::arithmetic(Arithmetic::Mul, x(), Expr::column(2));
    let forms = [(ColumnId(0), Form::Integer), (ColumnId(2), Form::Integer)];
    assert_eq!(
        counts(&forms, &nullable),
        (1, 1, 0),
        "the lift is of the null"
    );
    // The comparison of arithmetic of integers takes the bits of the result alone.
    let dear = Expr::compare(Comparison::Gt, discounted, Expr::integer(1000));
    let forms = [(ColumnId(0), Form::Integer), (ColumnId(1), Form::Integer)];
    let rows = rows(&types);
    let circuit = check(Ring::Z64, &types, &forms, &rows, &[dear], Aim::Size);
    assert_eq!(circuit.stats().bits, 30, "10^7 · 100 units have 30 bits");
}

#[test]
fn depth_is_logarithmic_where_it_is_the_aim() {
    let types = [integers(0, (1 << 32) - 1), integers(5, (1 << 32) + 4)];
    let of = |expr: Expr, aim| check_bits(&types, &rows(&types), &[expr], aim).stats();
    for (expr, most, times) in [
        (Expr::compare(Comparison::Lt, x(), Expr::column(1)), 20, 6),
        (Expr::compare(Comparison::Eq, x(), Expr::column(1)), 8, 2),
        (
            Expr::compare(Comparison::Lt, x(), Expr::integer(0x1357_9bdf)),
            8,
            2,
        ),
        (
            Expr::arithmetic(Arithmetic::Add, x(), Expr::column(1)),
            8,
            7,
        ),
        (
            Expr::arithmetic(Arithmetic::Mul, x(), Expr::column(1)),
            40,
            2,
        ),
    ] {
        let (small, quick) = (of(expr.clone(), Aim::Size), of(expr.clone(), Aim::Depth));
        assert!(quick.depth <= most, "{expr}: {} rounds", quick.depth);
        assert!(
            quick.muls <= small.muls * times,
            "{expr}: {} and {} ANDs",
            small.muls,
            quick.muls
        );
    }
}

#[test]
fn refusals_name_what_is_refused() {
    let types = [integers(0, 255), Type::of(categories(3))];
    let of = |ring, forms: &[(ColumnId, Form)]| Bench::new(ring, &types, forms, Aim::Size).exprs;
    let mut none = of(Ring::Bits, &[]);
    assert_eq!(
        none.bits(&x()).unwrap_err().to_string(),
        "column #0 is not at hand as bits"
    );
    let all = [(ColumnId(0), Form::Bits), (ColumnId(1), Form::Bits)];
    let mut exprs = of(Ring::Bits, &all);
    let third = Expr::Divide(Box::new(x()), Box::new(Expr::integer(3)));
    assert_eq!(
        exprs.bits(&third).unwrap_err().to_string(),
        "`(/ #0 3)` is a quotient, which has no cell of its own; round it"
    );
    assert_eq!(
        exprs.integer(&x()).unwrap_err().to_string(),
        "`#0` is wanted as an integer in a circuit of bits"
    );
    assert!(matches!(
        exprs.truth(&Expr::column(7)),
        Err(ExprError::Type(_))
    ));
    let mixed = Expr::compare(Comparison::Lt, x(), Expr::column(1));
    assert!(matches!(exprs.truth(&mixed), Err(ExprError::Type(_))));
    // 2^40 does not fit a ring of 32 bits.
    let wide = [integers(0, 1 << 40)];
    let mut bench = Bench::new(Ring::Z32, &wide, &[(ColumnId(0), Form::Integer)], Aim::Size);
    assert_eq!(
        bench.exprs.bits(&x()).unwrap_err().to_string(),
        "`#0` may not fit 32 bits; declare narrower ranges, or round earlier"
    );
    // Products of wide quotients, again and again.
    let wide = [integers(1, i128::MAX), integers(1, i128::MAX)];
    let forms = [(ColumnId(0), Form::Bits), (ColumnId(1), Form::Bits)];
    let mut bench = Bench::new(Ring::Bits, &wide, &forms, Aim::Depth);
    let refused = (0..10_000).find_map(|by| {
        let quotient = Expr::Divide(
            Box::new(Expr::arithmetic(Arithmetic::Sub, x(), Expr::integer(by))),
            Box::new(Expr::column(1)),
        );
        bench.exprs.bits(&Expr::Round(Box::new(quotient), 0)).err()
    });
    assert!(matches!(refused, Some(ExprError::TooLarge { .. })));
}

/// Expressions as long as texts of queries may be, and a table as long as a list may be.
#[test]
fn long_expressions() {
    let types = [integers(0, 255), Type::of(Kind::Bool), integers(0, 255)];
    let mut sum = x();
    let mut case = Expr::integer(0);
    let mut logic = Expr::column(1);
    for at in 0..400_u32 {
        let literal = || Expr::integer(at.into());
        sum = Expr::arithmetic(Arithmetic::Add, sum, Expr::column(2 * (at % 2)));
        let branch = (
            Expr::compare(Comparison::Eq, x(), literal()),
            Expr::integer(i128::from(at * 7 % 91)),
        );
        case = Expr::Case {
            branches: vec![branch],
            otherwise: Box::new(case),
        };
        let less = Expr::compare(Comparison::Lt, x(), literal());
        logic = Expr::Not(Box::new(Expr::And(vec![logic, less])));
    }
    let forms = [0, 1, 2].map(|at| (ColumnId(at), Form::Bits));
    let both = [Form::Integer, Form::Bits, Form::Integer];
    let both = [0, 1, 2].map(|at| (ColumnId(at as u32), both[at]));
    let exprs = [sum.clone(), case, logic];
    for (ring, forms) in [(Ring::Bits, forms), (Ring::Z64, both)] {
        check(ring, &types, &forms, &rows(&types), &exprs, Aim::Size);
    }
    let integers_alone = [0, 2].map(|at| (ColumnId(at), Form::Integer));
    assert_eq!(
        needs(&sum, Want::Integer, &types),
        integers_alone.into_iter().collect()
    );
    let ty = [Type::of(categories(65_000))];
    let mut random = Random(1);
    let wide = integers(0, 255);
    let table = (0..65_000).map(|_| random.cell(&wide)).collect();
    let of = Box::new(x());
    let kind = wide.kind;
    // Any table of 16 bits to 8: products of either half of the index, and for each bit as many more as a half has values.
    let found = ands(
        &ty,
        Expr::Lookup {
            of,
            first: 0,
            kind,
            table,
        },
    );
    assert!(found <= 2 * 247 + 8 * 256, "{found}");
}
