//! Three-valued logic.

use veil_circuit::Wire;
use veil_relation::{Comparison, Expr};

use super::compare::{all, any, equal, less};
use super::{Cell, Data, ExprError, Exprs, Word};

impl Exprs {
    /// Whether a condition is `want` and not null.
    pub(super) fn definitely(&mut self, condition: &Expr, want: bool) -> Result<Wire, ExprError> {
        let mut factors = Vec::new();
        self.factors(condition, want, &mut factors)?;
        Ok(all(&mut self.b, factors))
    }

    /// Appends bits that are all 1 exactly where a condition is `want` and not null.
    fn factors(
        &mut self,
        condition: &Expr,
        want: bool,
        into: &mut Vec<Wire>,
    ) -> Result<(), ExprError> {
        match (condition, want) {
            (Expr::Not(of), _) => self.factors(of, !want, into),
            (Expr::And(parts), true) | (Expr::Or(parts), false) => {
                let mut each = parts.iter();
                each.try_for_each(|part| self.factors(part, want, into))
            }
            (Expr::And(parts), false) | (Expr::Or(parts), true) => {
                let mut one = Vec::with_capacity(parts.len());
                for part in parts {
                    one.push(self.definitely(part, want)?);
                }
                into.push(any(&mut self.b, one));
                Ok(())
            }
            _ => {
                let (value, null) = self.condition(condition)?;
                into.push(if want { value } else { self.b.not(value) });
                into.extend(null.map(|null| self.b.not(null)));
                Ok(())
            }
        }
    }

    /// The value of a condition and whether it is null.
    pub(super) fn condition(&mut self, of: &Expr) -> Result<(Wire, Option<Wire>), ExprError> {
        let cell = self.cell(of)?;
        // A condition has one bit: its type says so.
        let bit = match &cell.value {
            Data::Word(word) => word.bits.first().copied(),
            Data::Key(_) | Data::Ratio(_) => None,
        };
        let bit = bit.unwrap_or_else(|| self.b.constant_bit(false));
        Ok((bit, cell.null))
    }

    /// All of some conditions, or one of them.
    pub(super) fn decided(&mut self, parts: &[Expr], decisive: bool) -> Result<Cell, ExprError> {
        let (mut certain, mut nullable) = (Vec::new(), Vec::new());
        for part in parts {
            match self.condition(part)? {
                (value, None) => certain.push(if decisive { self.b.not(value) } else { value }),
                (value, Some(null)) => {
                    // Whether it is the opposite of what decides, and whether it is not what decides.
                    let there = self.b.not(null);
                    let opposite = if decisive { self.b.not(value) } else { value };
                    let opposite = self.b.and(opposite, there);
                    nullable.push((opposite, self.b.xor(opposite, null)));
                }
            }
        }
        let certain = all(&mut self.b, certain);
        let (mut opposites, mut undecided) = (vec![certain], vec![certain]);
        for (opposite, not) in &nullable {
            opposites.push(*opposite);
            undecided.push(*not);
        }
        let opposite = all(&mut self.b, opposites);
        let value = if decisive {
            self.b.not(opposite)
        } else {
            opposite
        };
        let null = (!nullable.is_empty()).then(|| {
            let undecided = all(&mut self.b, undecided);
            self.b.xor(undecided, opposite)
        });
        Ok(Cell::truth(value, null))
    }

    /// A comparison, and whether it is null.
    pub(super) fn compared(
        &mut self,
        sign: Comparison,
        a: &Expr,
        b: &Expr,
    ) -> Result<(Wire, Option<Wire>), ExprError> {
        let (x, y) = (self.cell(a)?, self.cell(b)?);
        let (left, right) = self.crossed(&x, &y)?;
        let null = self.either_null(x.null, y.null);
        Ok((self.ordered(sign, &left, &right), null))
    }

    fn ordered(&mut self, sign: Comparison, x: &Word, y: &Word) -> Wire {
        let (b, aim) = (&mut self.b, self.aim);
        match sign {
            Comparison::Eq => equal(b, x, y),
            Comparison::Lt => less(b, x, y, aim),
            Comparison::Gt => less(b, y, x, aim),
            Comparison::Ne | Comparison::Ge | Comparison::Le => {
                let opposite = self.ordered(sign.opposite(), x, y);
                self.b.not(opposite)
            }
        }
    }

    /// Whether one of two is null.
    pub(super) fn either_null(&mut self, a: Option<Wire>, b: Option<Wire>) -> Option<Wire> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.b.or(a, b)),
            (one, other) => one.or(other),
        }
    }
}
