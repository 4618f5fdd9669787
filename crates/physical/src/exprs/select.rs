//! Choices between values by conditions: the first that is true decides.

use veil_circuit::Wire;
use veil_relation::{Expr, Kind};

use super::compare::masked;
use super::word::aligned;
use super::{Cell, Data, ExprError, Exprs, Shown, Word};

impl Exprs {
    /// The value of the first branch whose condition is true, else the last.
    pub(super) fn case(
        &mut self,
        expr: &Expr,
        branches: &[(Expr, Expr)],
        otherwise: &Expr,
    ) -> Result<Cell, ExprError> {
        let mut conditions = Vec::with_capacity(branches.len());
        let mut cells = Vec::with_capacity(branches.len() + 1);
        for (when, then) in branches {
            conditions.push(self.truth(when)?);
            cells.push(self.cell(then)?);
        }
        cells.push(self.cell(otherwise)?);
        self.chosen(expr, &conditions, &cells)
    }

    /// The first value that is not null, else the last.
    pub(super) fn coalesce(&mut self, expr: &Expr, parts: &[Expr]) -> Result<Cell, ExprError> {
        let mut conditions = Vec::new();
        let mut cells = Vec::with_capacity(parts.len());
        for part in parts {
            let mut cell = self.cell(part)?;
            if cells.len() + 1 < parts.len() {
                // Where it is chosen it is not null.
                let there = match cell.null.take() {
                    Some(null) => self.b.not(null),
                    None => self.b.constant_bit(true),
                };
                conditions.push(there);
            }
            cells.push(cell);
        }
        self.chosen(expr, &conditions, &cells)
    }

    /// Which condition is the first that is true, for each of them, and whether none is: an AND for each but the first.
    pub(super) fn firsts(&mut self, conditions: &[Wire]) -> Vec<Wire> {
        let mut none = self.b.constant_bit(true);
        let mut firsts = Vec::with_capacity(conditions.len() + 1);
        for &condition in conditions {
            let first = self.b.and(none, condition);
            none = self.b.xor(none, first);
            firsts.push(first);
        }
        firsts.push(none);
        firsts
    }

    fn chosen(
        &mut self,
        expr: &Expr,
        conditions: &[Wire],
        cells: &[Cell],
    ) -> Result<Cell, ExprError> {
        let ty = self.ty(expr)?;
        let firsts = self.firsts(conditions);
        let one = self.b.constant_bit(true);
        let zero = self.b.constant_bit(false);
        let (offset, words) = self.aligned_cells(expr, &ty.kind, cells)?;
        let given = cells.iter().zip(words);
        // A null that is public stands on any value.
        let given = given.map(|(cell, bits)| (cell.null != Some(one)).then_some(bits));
        let given: Vec<_> = given.collect();
        let bits = self.mixed(&firsts, &given, ty.kind.bits().unwrap_or(0) as usize);
        let null = ty.nullable.then(|| {
            let nulls = cells.iter();
            let nulls: Vec<_> = nulls.map(|c| Some(vec![c.null.unwrap_or(zero)])).collect();
            self.mixed(&firsts, &nulls, 1)[0]
        });
        let value = match (&ty.kind, ty.kind.range()) {
            (_, Some(range)) => Data::Word(Word {
                offset,
                bits,
                range,
            }),
            _ => Data::Key(bits),
        };
        Ok(Cell::of(value, null, &ty.kind))
    }

    /// The values of cells as words of one offset and length.
    fn aligned_cells(
        &mut self,
        expr: &Expr,
        kind: &Kind,
        cells: &[Cell],
    ) -> Result<(i128, Vec<Vec<Wire>>), ExprError> {
        let Some(range) = kind.range() else {
            let key = |cell: &Cell| match &cell.value {
                Data::Key(bits) => Some(bits.clone()),
                Data::Word(_) | Data::Ratio(_) => None,
            };
            let keys: Option<_> = cells.iter().map(key).collect();
            return match keys {
                Some(keys) => Ok((0, keys)),
                None => Err(ExprError::Quotient {
                    expr: Shown::of(expr),
                }),
            };
        };
        let words = cells.iter().filter_map(|cell| match &cell.value {
            Data::Word(word) => Some(word),
            Data::Key(_) | Data::Ratio(_) => None,
        });
        let words: Vec<&Word> = words.collect();
        Ok(aligned(&mut self.b, &words, range, self.aim))
    }

    /// The bits of the value whose selector is 1, of which exactly one is; nothing stands for any value. Public values cost nothing beyond their
    /// selectors, others an AND a bit; one less if none is public.
    fn mixed(&mut self, selectors: &[Wire], values: &[Option<Vec<Wire>>], len: usize) -> Vec<Wire> {
        let (zero, one) = (self.b.constant_bit(false), self.b.constant_bit(true));
        let known = |bits: &&Vec<Wire>| bits.iter().all(|&bit| bit == zero || bit == one);
        let given = || values.iter().flatten();
        let Some(base) = given().find(known).or_else(|| given().next_back()) else {
            return vec![zero; len];
        };
        let mut result = base.clone();
        for (&selector, value) in selectors.iter().zip(values) {
            let Some(value) = value else { continue };
            let change: Vec<Wire> = value
                .iter()
                .zip(base)
                .map(|(&bit, &of)| self.b.xor(bit, of))
                .collect();
            let change = masked(&mut self.b, &change, selector);
            for (bit, change) in result.iter_mut().zip(change) {
                *bit = self.b.xor(*bit, change);
            }
        }
        result
    }
}
