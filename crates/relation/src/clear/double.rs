//! Expressions over one row in IEEE doubles, beside their exact values.

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
            Expr::Real(function, a, _) => Some(function.of_double(self.value(a)?)),
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
