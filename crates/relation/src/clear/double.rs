//! Expressions over one row in IEEE doubles, beside their exact values.

use std::f64::consts::{LN_10, PI};

use veil_numeric::Function;

use super::cell::{Cell, Row};
use crate::expr::{Arithmetic, Expr};
use crate::kind::Value;

/// A row with what doubles make of its cells: nothing for null, and for what is no number.
#[derive(Clone, Copy)]
pub(super) struct Doubles<'a> {
    pub(super) row: Row<'a>,
    pub(super) cells: &'a [Option<f64>],
}

/// The double that is nearest to a cell, or next to it.
pub(super) fn nearest(cell: Cell) -> Option<f64> {
    let power = 10_f64.powi(cell.places as i32);
    match cell.value {
        Value::Number(units) => Some(units as f64 / power),
        Value::Ratio(above, below) => Some(above as f64 / below as f64 / power),
        Value::Bool(_) | Value::Key(_) | Value::Null => None,
    }
}

impl Doubles<'_> {
    /// The value of an expression of numbers. Exact values decide conditions, so that both evaluations take the same branches; what a model of trees
    /// gives, parts of dates, remainders and looked-up values are the exact ones.
    pub(super) fn value(&self, expr: &Expr) -> Option<f64> {
        match expr {
            Expr::Column(id, _) => self.cells[id.index()],
            Expr::Arithmetic(sign, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                Some(match sign {
                    Arithmetic::Add => a + b,
                    Arithmetic::Sub => a - b,
                    Arithmetic::Mul => a * b,
                })
            }
            Expr::Divide(a, b) => Some(self.value(a)? / self.value(b)?),
            Expr::Round(a, places) => {
                let power = 10_f64.powi(*places as i32);
                Some((self.value(a)? * power).round() / power)
            }
            Expr::Real(function, a, _) => Some(applied(*function, self.value(a)?)),
            Expr::Rescale(a, _) => self.value(a),
            Expr::Case {
                branches,
                otherwise,
            } => {
                let taken = branches.iter().find(|(when, _)| self.row.is_true(when));
                self.value(taken.map_or(otherwise, |(_, then)| then))
            }
            Expr::Coalesce(all) => all.iter().find_map(|part| self.value(part)),
            Expr::NullIf(a, _) => match self.row.value(expr) {
                Value::Null => None,
                _ => self.value(a),
            },
            exact => nearest(self.row.cell(exact)),
        }
    }
}

/// A function of a double.
fn applied(function: Function, x: f64) -> f64 {
    match function {
        Function::Exp2 => x.exp2(),
        Function::Exp => x.exp(),
        Function::Exp10 => (x * LN_10).exp(),
        Function::Log2 => x.log2(),
        Function::Ln => x.ln(),
        Function::Log10 => x.log10(),
        Function::Reciprocal => x.recip(),
        Function::Root => x.sqrt(),
        Function::InverseRoot => x.sqrt().recip(),
        Function::Sigmoid => ((-x).exp() + 1.0).recip(),
        Function::Tanh => x.tanh(),
        Function::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        Function::Erf => erf(x),
    }
}

/// The error function: 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (1·3·…·(2n+1)), whose terms have one sign, so that no digits cancel.
fn erf(x: f64) -> f64 {
    // From here on 1 is the nearest double.
    if x.abs() >= 6.0 {
        return x.signum();
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > sum.abs() * f64::EPSILON / 4.0 {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use super::*;

    #[test]
    fn doubles_of_functions_are_those_of_tables() {
        // Abramowitz and Stegun, table 7.1; the others from their definitions.
        for (function, x, value) in [
            (Function::Erf, 0.0, 0.0),
            (Function::Erf, 0.5, 0.520_499_877_813_046_5),
            (Function::Erf, -1.0, -0.842_700_792_949_714_9),
            (Function::Erf, 2.0, 0.995_322_265_018_952_7),
            (Function::Erf, 5.5, 0.999_999_999_999_992_6),
            (Function::Erf, -7.0, -1.0),
            (Function::Sigmoid, 0.0, 0.5),
            (Function::Sigmoid, -800.0, 0.0),
            (Function::Softplus, 0.0, LN_2),
            (Function::Softplus, 800.0, 800.0),
            (Function::Exp10, 2.0, 100.0),
            (Function::InverseRoot, 16.0, 0.25),
        ] {
            let got = applied(function, x);
            let within = 4.0 * f64::EPSILON * value.abs().max(f64::EPSILON);
            assert!(
                (got - value).abs() <= within.max(1e-13 * value.abs()),
                "{function:?} of {x}: {got}"
            );
        }
    }
}
