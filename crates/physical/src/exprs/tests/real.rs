//! Functions that have no exact values, on wires.

use veil_circuit::generate::Aim;
use veil_relation::{Expr, Function, Type, TypeError, Value};

use super::counts::ands;
use super::{check_bits, decimals, integers};

fn of(function: Function, places: u32) -> Expr {
    Expr::Real(function, Box::new(Expr::column(0)), places)
}

/// Arguments at both ends and all over a range.
fn rows(min: i128, max: i128, step: i128) -> Vec<Vec<Value>> {
    let all = (0..).map(|n| min + n * step).take_while(|x| *x < max);
    let mut rows: Vec<Vec<Value>> = all.map(|x| vec![Value::Number(x)]).collect();
    rows.push(vec![Value::Number(max)]);
    rows
}

#[test]
fn wires_have_what_the_clear_has() {
    for function in Function::ALL {
        let (min, max) = match function {
            Function::Exp2 | Function::Exp | Function::Exp10 => (-900, 400),
            Function::Root => (0, 9_999),
            Function::Sigmoid | Function::Tanh | Function::Softplus | Function::Erf => {
                (-2500, 2500)
            }
            _ => (1, 9_999),
        };
        let rows = rows(min, max, (max - min) / 150);
        let exprs = [of(function, 0), of(function, 3), of(function, 8)];
        for aim in [Aim::Size, Aim::Depth] {
            check_bits(&[decimals(2, min, max)], &rows, &exprs, aim);
        }
    }
}

#[test]
fn arguments_may_be_null_or_below_nothing() {
    let ty = decimals(1, -50, 80).or_null(true);
    let mut rows = rows(-50, 80, 3);
    rows.push(vec![Value::Null]);
    let exprs = [Function::Exp, Function::Sigmoid, Function::Erf].map(|f| of(f, 4));
    check_bits(&[ty], &rows, &exprs, Aim::Size);
    let ty = decimals(1, -80, -50);
    let rows = super::real::rows(-80, -50, 1);
    check_bits(&[ty], &rows, &[of(Function::Reciprocal, 4)], Aim::Depth);
    // Null instead of 0: then there is a logarithm.
    let ty = integers(0, 300);
    let rows = super::real::rows(0, 300, 1);
    let positive = Expr::NullIf(Box::new(Expr::column(0)), Box::new(Expr::integer(0)));
    let exprs = [Function::Ln, Function::InverseRoot]
        .map(|function| Expr::Real(function, Box::new(positive.clone()), 5));
    check_bits(&[ty], &rows, &exprs, Aim::Size);
}

#[test]
fn what_has_no_value_has_no_type() {
    let refused = |function, ty: Type, places| of(function, places).ty(&[ty]).unwrap_err();
    let error = refused(Function::Ln, integers(0, 9), 3);
    assert_eq!(
        error.to_string(),
        "`ln(x)` has no value for 0 and below; x is 0 to 9"
    );
    let error = refused(Function::Exp, integers(0, 90), 3);
    assert_eq!(
        error.to_string(),
        "`exp(x)` may take more than the 128 bits that there are; x is 0 to 90"
    );
    let error = refused(Function::Exp, integers(0, 9), 13);
    assert!(matches!(error, TypeError::Form { .. }), "{error}");
    let error = refused(Function::Exp, Type::of(veil_relation::Kind::Bool), 3);
    assert!(matches!(error, TypeError::Operand { .. }), "{error}");
}

/// Products of some thirty bits for each degree.
#[test]
fn functions_take_products_of_their_places() {
    let cost = |function, min, max, places| ands(&[decimals(2, min, max)], of(function, places));
    for (function, min, max, most) in MOST {
        let found = cost(function, min, max, 6);
        assert!(found <= most, "{}: {found}", function.name());
    }
}

/// ANDs of six places, of arguments with two.
const MOST: [(Function, i128, i128, u64); 6] = [
    (Function::Exp, -800, 400, 2900),
    (Function::Ln, 1, 100_000, 1400),
    (Function::Root, 0, 100_000, 2800),
    (Function::Reciprocal, 1, 100_000, 3400),
    (Function::Sigmoid, -1000, 1000, 2300),
    (Function::Erf, -400, 400, 2200),
];
