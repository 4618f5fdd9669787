//! What is computed of each candidate of each node.

use veil_numeric::{Arithmetic, Machine, Number, On, Range, Ranges, TooWide};

use super::Tree;
use crate::error::FitError;

/// A split of a node: what the rows of its first child add up to, and its score.
#[derive(Clone, Debug)]
pub struct Split<I> {
    /// The sums of the first child's rows; all are 0 where the node is not split.
    pub left: Vec<Number<I>>,
    /// The score's numerator.
    pub above: Number<I>,
    /// The score's denominator; 0 of a node without rows alone, whose numerators are 0 as well.
    pub below: Number<I>,
}

impl Tree {
    /// How many rows there are, of what they add up to.
    ///
    /// # Errors
    /// [`TooWide`], as all below, if a number does not fit the machine.
    pub fn rows<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        sums: &[On<M>],
    ) -> Result<On<M>, TooWide> {
        if self.summed.is_some() {
            return Ok(sums[0].clone());
        }
        let mut rows = sums[0].clone();
        for sum in &sums[1..] {
            rows = a.add(&rows, sum)?;
        }
        a.within(&rows, 0, self.spec.rows.into())
    }

    /// What the rows add up to that are in a node and not in its first child.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn rest<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        totals: &[On<M>],
        left: &[On<M>],
    ) -> Result<Vec<On<M>>, TooWide> {
        let both = totals.iter().zip(left).zip(&self.measures);
        let rest = both.map(|((total, left), range)| {
            let rest = a.sub(total, left)?;
            a.within(&rest, range.min(), range.max())
        });
        rest.collect()
    }

    /// The sum of the squares of what n rows add up to, which is at most n² times the square of the largest target.
    fn squares<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        sums: &[On<M>],
    ) -> Result<On<M>, TooWide> {
        let of = if self.summed.is_some() {
            &sums[1..]
        } else {
            sums
        };
        let mut all = a.multiply(&of[0], &of[0])?;
        for sum in &of[1..] {
            let square = a.multiply(sum, sum)?;
            all = a.add(&all, &square)?;
        }
        let most = self.measures[self.measures.len() - 1].max();
        a.within(&all, 0, most * most)
    }

    /// The split of a node whose rows add up to `totals` by a candidate whose rows add up to `left`. A node that is not `open`, or of whose children one would have too few rows, stays as it is:
    /// its score is that of one child with all rows, Σ T² / n.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn split<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        (totals, left): (&[On<M>], &[On<M>]),
        open: &M::Bit,
    ) -> Result<Split<M::Int>, TooWide> {
        let most = i128::from(self.spec.rows);
        let rows = self.rows(a, totals)?;
        let first = self.rows(a, left)?;
        let second = a.sub(&rows, &first)?;
        let second = a.within(&second, 0, most)?;
        let mut may = open.clone();
        for side in [&first, &second] {
            let more = a.plus(side, -self.least())?;
            let few = a.0.is_negative(&more.int, more.range);
            let enough = a.not(&few);
            may = a.0.and(&may, &enough);
        }
        let factor = a.lift(&may);
        let masked = left.iter().map(|sum| a.multiply(sum, &factor));
        let left = masked.collect::<Result<Vec<_>, _>>()?;
        let right = self.rest(a, totals, &left)?;
        let first = self.rows(a, &left)?;
        let second = a.sub(&rows, &first)?;
        let second = a.within(&second, 0, most)?;
        // Where there is no split its denominator is that of all rows: 1 · n.
        let none = a.not(&may);
        let none = a.lift(&none);
        let first = a.add(&first, &none)?;
        let first = a.within(&first, 1, most.max(1))?;
        let squares = [self.squares(a, &left)?, self.squares(a, &right)?];
        let above = [
            a.multiply(&squares[0], &second)?,
            a.multiply(&squares[1], &first)?,
        ];
        let above = a.add(&above[0], &above[1])?;
        let above = a.within(&above, self.above.min(), self.above.max())?;
        let below = a.multiply(&first, &second)?;
        let below = a.within(&below, self.below.min(), self.below.max())?;
        Ok(Split { left, above, below })
    }

    /// Whether the second of two splits of a node has a higher score than the first.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn is_better<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        first: &Split<M::Int>,
        second: &Split<M::Int>,
    ) -> Result<M::Bit, TooWide> {
        let of_first = a.multiply(&first.above, &second.below)?;
        let of_second = a.multiply(&second.above, &first.below)?;
        let less = a.sub(&of_first, &of_second)?;
        Ok(a.0.is_negative(&less.int, less.range))
    }

    /// What is shown of a node: the numerators of [`Tree::values`], over its rows.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn numerators<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        sums: &[On<M>],
    ) -> Result<Vec<On<M>>, TooWide> {
        let Some(summed) = &self.summed else {
            return Ok(sums.to_vec());
        };
        let centre = a.times(&sums[0], summed.of.centre)?;
        let around = a.times(&sums[1], 1 << summed.shift())?;
        let sum = a.add(&centre, &around)?;
        let range = self.values[0].above;
        Ok(vec![a.within(&sum, range.min(), range.max())?])
    }

    /// Ranges of sums, as a score has them.
    ///
    /// # Panics
    /// If there are not as many as [`Tree::measures`].
    pub(super) fn sums<I>(&self, of: impl IntoIterator<Item = I>) -> Vec<Number<I>> {
        let measures = self.measures.iter();
        let sums = measures
            .zip(of)
            .map(|(range, int)| Number { int, range: *range });
        let sums: Vec<Number<I>> = sums.collect();
        assert_eq!(sums.len(), self.measures.len(), "a sum for each measure");
        sums
    }

    /// The ranges of a score.
    #[must_use]
    pub const fn scores(&self) -> [Range; 2] {
        [self.above, self.below]
    }

    /// That all of it fits 128 bits.
    pub(super) fn derive(&self) -> Result<(), FitError> {
        let mut ranges = Ranges(128);
        let mut a = Arithmetic(&mut ranges);
        let sums = self.sums(self.measures.iter().map(|_| ()));
        let split = self.split(&mut a, (&sums, &sums), &())?;
        self.is_better(&mut a, &split, &split)?;
        self.numerators(&mut a, &sums)?;
        Ok(())
    }
}
