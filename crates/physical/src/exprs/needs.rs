//! Which columns an expression reads, and in which form.

use std::collections::BTreeSet;

use veil_relation::{Arithmetic, ColumnId, Expr, Kind, Type};

/// A form of the cells of a column. Bits and integers of a nullable column come with whether it is null.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Form {
    /// Whether it is null, and no more.
    Null,
    /// Bits; of a quotient those of numerator and denominator.
    Bits,
    /// An integer of the ring.
    Integer,
}

/// What is asked of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Want {
    /// Its bits, or whether it is true.
    Bits,
    /// An integer of the ring.
    Integer,
}

/// The columns that an expression reads, each in the form that takes the least: an integer where it is a term or a factor of an integer that is
/// asked for, bits where it is compared, chosen by, looked up or a key. A column may be needed in two forms; where one of them is not at hand,
/// [`super::Exprs`] makes it of the other, bits of an integer at a higher cost than an integer of bits.
///
/// The expression has a type over columns of these types; of one that has none the answer means nothing.
pub(crate) fn needs(expr: &Expr, want: Want, types: &[Type]) -> BTreeSet<(ColumnId, Form)> {
    let mut needs = Needs {
        types,
        found: BTreeSet::new(),
    };
    match want {
        Want::Bits => needs.bits(expr),
        Want::Integer => needs.integer(expr),
    }
    needs.found
}

/// Whether an expression is best computed in the ring if an integer is asked for, where columns are at hand as integers.
pub(super) fn favours_ring(
    expr: &Expr,
    types: &[Type],
    at_hand: &dyn Fn(ColumnId) -> bool,
) -> bool {
    favour(expr, types, at_hand) == Some(true)
}

/// As [`favours_ring`]; nothing for a quotient.
fn favour(expr: &Expr, types: &[Type], at_hand: &dyn Fn(ColumnId) -> bool) -> Option<bool> {
    let favour = |of: &Expr| favour(of, types, at_hand);
    match expr {
        Expr::Column(column, _) => match types.get(column.index())?.kind {
            Kind::Ratio { .. } => None,
            _ => Some(at_hand(*column)),
        },
        Expr::Literal(literal) => match literal.kind() {
            Kind::Ratio { .. } => None,
            kind => Some(kind.range().is_some()),
        },
        Expr::Arithmetic(Arithmetic::Mul, a, b) => favour(a).and(favour(b)).map(|_| true),
        Expr::Arithmetic(_, a, b) | Expr::AddDays(a, b) | Expr::DaysBetween(a, b) => {
            let (a, b) = (favour(a)?, favour(b)?);
            Some(a || b)
        }
        Expr::Divide(..) => None,
        Expr::Rescale(of, _) | Expr::NullIf(of, _) => favour(of),
        Expr::Case {
            branches,
            otherwise,
        } => {
            let mut values = branches.iter().map(|(_, then)| then);
            let all = values.all(|value| favour(value) == Some(true));
            Some(all && favour(otherwise) == Some(true))
        }
        Expr::Coalesce(parts) => Some(parts.iter().all(|part| favour(part) == Some(true))),
        _ => Some(false),
    }
}

struct Needs<'a> {
    types: &'a [Type],
    found: BTreeSet<(ColumnId, Form)>,
}

impl Needs<'_> {
    fn is_number(&self, column: ColumnId) -> bool {
        let kind = self.types.get(column.index()).map(|ty| &ty.kind);
        matches!(
            kind,
            Some(Kind::Integer(_) | Kind::Decimal { .. } | Kind::Date(_))
        )
    }

    fn integer(&mut self, expr: &Expr) {
        if !favours_ring(expr, self.types, &|column| self.is_number(column)) {
            return self.bits(expr);
        }
        match expr {
            Expr::Column(column, _) => {
                self.found.insert((*column, Form::Integer));
            }
            Expr::Case {
                branches,
                otherwise,
            } => {
                for (when, then) in branches {
                    self.bits(when);
                    self.integer(then);
                }
                self.integer(otherwise);
            }
            Expr::NullIf(a, b) => {
                self.bits(a);
                self.bits(b);
                self.integer(a);
            }
            other => {
                for operand in other.operands() {
                    self.integer(operand);
                }
            }
        }
    }

    fn bits(&mut self, expr: &Expr) {
        match expr {
            Expr::Column(column, _) => {
                self.found.insert((*column, Form::Bits));
            }
            Expr::IsNull(of) => self.null(of),
            other => other
                .operands()
                .into_iter()
                .for_each(|operand| self.bits(operand)),
        }
    }

    /// As [`super::Exprs`] finds out whether an expression is null.
    fn null(&mut self, expr: &Expr) {
        match expr {
            Expr::Column(column, _) => {
                self.found.insert((*column, Form::Null));
            }
            Expr::Not(_)
            | Expr::Modulo(..)
            | Expr::Round(..)
            | Expr::Real(..)
            | Expr::Rescale(..)
            | Expr::Extract(..)
            | Expr::Compare(..)
            | Expr::Arithmetic(..)
            | Expr::Divide(..)
            | Expr::AddDays(..)
            | Expr::DaysBetween(..) => expr
                .operands()
                .into_iter()
                .for_each(|operand| self.null(operand)),
            Expr::Predict { model, of, .. } if !model.tracks_nulls() => {
                for operand in of {
                    self.null(operand);
                }
            }
            Expr::Predict { .. } | Expr::IsNull(_) | Expr::Literal(_) => {}
            _ => self.bits(expr),
        }
    }
}
