//! Public tables of numbers, on wires.

use veil_circuit::generate::Aim;
use veil_math::Ring;
use veil_relation::{ColumnId, Expr, Kind, MOST_POINTS, Type, Value};

use super::counts::ands;
use super::{Random, check, check_bits, decimals, integers};
use crate::exprs::Form;

const AIMS: [Aim; 2] = [Aim::Size, Aim::Depth];

/// A table of column 0, whose first result is for `first`.
fn of(first: i128, kind: &Type, table: Vec<Value>) -> Expr {
    Expr::Lookup {
        of: Box::new(Expr::column(0)),
        first,
        kind: kind.kind.clone(),
        table,
    }
}

/// All numbers from one to another.
fn rows(min: i128, max: i128) -> Vec<Vec<Value>> {
    (min..=max).map(|x| vec![Value::Number(x)]).collect()
}

#[test]
fn wires_have_what_the_clear_has() {
    let mut random = Random(6);
    let (cents, codes) = (decimals(2, -999, 70_000), integers(5, 900));
    for (min, max) in [
        (0, 0),
        (0, 1),
        (-3, 3),
        (18, 99),
        (-200, -73),
        (100, 355),
        (0, 1000),
    ] {
        // The table is of more numbers than there are, on either side.
        let (before, behind) = (random.below(7) as i128, random.below(9) as i128);
        let count = before + max - min + 1 + behind;
        let mut table = |ty: &Type| (0..count).map(|_| random.cell(ty)).collect();
        let exprs = [
            of(min - before, &cents, table(&cents)),
            of(min - before, &codes, table(&codes.clone().or_null(true))),
            of(
                min - before,
                &Type::of(Kind::Bool),
                table(&Type::of(Kind::Bool)),
            ),
        ];
        let mut rows = rows(min, max);
        for aim in AIMS {
            check_bits(&[integers(min, max)], &rows, &exprs, aim);
            check_bits(&[decimals(1, min, max)], &rows, &exprs, aim);
        }
        // A column that is at hand as an integer alone, and one that may be null.
        let integer = [(ColumnId(0), Form::Integer)];
        check(
            Ring::Z64,
            &[integers(min, max)],
            &integer,
            &rows,
            &exprs,
            Aim::Size,
        );
        rows.push(vec![Value::Null]);
        check_bits(
            &[integers(min, max).or_null(true)],
            &rows,
            &exprs,
            Aim::Depth,
        );
    }
}

/// Fewer products than one for each number, which a number in unary takes: 2^q − q − 1 of q bits.
#[test]
fn tables_take_fewer_products_than_points() {
    let mut random = Random(3);
    let size = MOST_POINTS as i128;
    let ty = integers(0, (1 << 20) - 1);
    let any = (0..size).map(|_| random.cell(&ty)).collect();
    let found = ands(&[integers(0, size - 1)], of(0, &ty, any));
    assert!(found <= 578, "{found} of a table of any values");
    let brackets = |x: i128| {
        [0, 140, 240, 420, 450][[0, 300, 700, 2500].iter().filter(|from| x > **from).count()]
    };
    let rates = (0..size).map(|x| Value::Number(brackets(x))).collect();
    let found = ands(&[integers(0, size - 1)], of(0, &decimals(3, 0, 450), rates));
    assert!(found <= 50, "{found} of five brackets");
    let years = (0..30)
        .map(|_| random.cell(&integers(9000, 14_000)))
        .collect();
    let found = ands(
        &[integers(2000, 2029)],
        of(2000, &integers(9000, 14_000), years),
    );
    assert!(found <= 30, "{found} of thirty years");
}

#[test]
fn a_table_that_lacks_a_number_has_no_type() {
    let ty = integers(0, 9);
    let table = |first, count| {
        let of = of(first, &ty, vec![Value::Number(3); count]);
        of.ty(&[integers(10, 19)])
            .map_err(|error| error.to_string().len())
    };
    assert!(table(10, 10).is_ok() && table(3, 4096).is_ok());
    for (first, count) in [
        (11, 10),
        (10, 9),
        (9, 10),
        (10, 4097),
        (i128::MAX, 10),
        (10, 0),
    ] {
        assert!(table(first, count).is_err(), "{first}, {count}");
    }
    let wide = of(10, &ty, vec![Value::Number(10); 10]);
    assert_eq!(
        wide.ty(&[integers(10, 19)]).unwrap_err().to_string(),
        format!(
            "`{wide}` is not formed as it must be: a result for each number of the operand's range, of the kind that it says, and 4096 at most"
        )
    );
}
