//! The tree in the clear: what parties open, computed by one who has all rows.

use veil_numeric::{Arithmetic, Clear};

use super::{Split, Tree, TreeTarget};
use crate::clear::{Value, value};
use crate::error::FitError;

/// A node that was grown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// Its number: 1 is the root, and the children of a node are twice its number and one more.
    pub number: u32,
    /// The candidate that splits it, if one does.
    pub split: Option<usize>,
    /// Its rows.
    pub rows: i128,
    /// The numerators of [`Tree::values`], over its rows.
    pub numerators: Vec<i128>,
}

impl Tree {
    /// What a row adds to the sums of its node.
    fn added(&self, a: &mut Arithmetic<'_, Clear>, target: i128) -> Result<Vec<i128>, FitError> {
        Ok(match self.spec.target {
            TreeTarget::Classes(count) => (0..count)
                .map(|class| i128::from(target == class.into()))
                .collect(),
            TreeTarget::Number(column) => {
                let y = self.response(a, &value(target, column.range))?;
                vec![1, y.int]
            }
        })
    }

    /// The nodes of these rows in the clear, by their numbers: features, in units of their columns, and the target. Those of too few rows are left out.
    ///
    /// # Errors
    /// [`FitError::TooWide`], which [`Tree::new`] has refused before.
    ///
    /// # Panics
    /// If there are more rows than the tree is made for.
    pub fn fit(&self, rows: &[(Vec<i128>, i128)]) -> Result<Vec<TreeNode>, FitError> {
        assert!(
            rows.len() <= self.spec.rows as usize,
            "a tree has as many rows as it is made for"
        );
        let mut clear = Clear;
        let mut a = Arithmetic(&mut clear);
        let mut added = Vec::new();
        for (_, target) in rows {
            added.push(self.added(&mut a, *target)?);
        }
        let mut of_row = vec![0_usize; rows.len()];
        let mut totals: Vec<Vec<Value>> = vec![self.totals(&added, |_| true)];
        let mut open = vec![true];
        let mut nodes = Vec::new();
        for level in 0..=self.spec.depth {
            let mut next = (Vec::new(), Vec::new());
            let mut chosen = Vec::new();
            for (at, (totals, open)) in totals.iter().zip(&open).enumerate() {
                let (left, split) = if level == self.spec.depth {
                    (self.totals(&added, |_| false), None)
                } else {
                    let rows = rows.iter().zip(&of_row).zip(&added);
                    let members = rows.filter(|((_, of), _)| **of == at);
                    let members = members.map(|(((features, _), _), added)| (features, added));
                    self.best(&mut a, &members.collect::<Vec<_>>(), totals, *open)?
                };
                let count = self.rows(&mut a, totals)?.int;
                if *open && count >= self.least() {
                    let numerators = self.numerators(&mut a, totals)?;
                    nodes.push(TreeNode {
                        number: (1 << level) + at as u32,
                        split,
                        rows: count,
                        numerators: numerators.into_iter().map(|of| of.int).collect(),
                    });
                }
                let right = self.rest(&mut a, totals, &left)?;
                next.0.extend([left, right]);
                next.1.extend([split.is_some(); 2]);
                chosen.push(split);
            }
            for ((features, _), of) in rows.iter().zip(&mut of_row) {
                let candidate = chosen[*of].map(|split| self.candidates[split]);
                let first = candidate.is_some_and(|of| of.test.holds(features[of.feature]));
                *of = 2 * *of + usize::from(!first);
            }
            (totals, open) = next;
        }
        Ok(nodes)
    }

    /// What some rows add up to.
    fn totals(&self, added: &[Vec<i128>], some: impl Fn(usize) -> bool) -> Vec<Value> {
        let mut sums = vec![0; self.measures.len()];
        for (_, added) in added.iter().enumerate().filter(|(row, _)| some(*row)) {
            sums.iter_mut()
                .zip(added)
                .for_each(|(sum, more)| *sum += more);
        }
        self.sums(sums)
    }

    /// The first of the best splits of a node with these rows: what its first child's rows add up to, and the candidate, if one is better than none.
    fn best(
        &self,
        a: &mut Arithmetic<'_, Clear>,
        rows: &[(&Vec<i128>, &Vec<i128>)],
        totals: &[Value],
        open: bool,
    ) -> Result<(Vec<Value>, Option<usize>), FitError> {
        let none = self.totals(&[], |_| false);
        let mut best: Split<i128> = self.split(a, (totals, &none), &open)?;
        let mut found = None;
        for (at, candidate) in self.candidates.iter().enumerate() {
            let mut sums = vec![0; self.measures.len()];
            for (features, added) in rows {
                if candidate.test.holds(features[candidate.feature]) {
                    sums.iter_mut()
                        .zip(added.iter())
                        .for_each(|(sum, more)| *sum += more);
                }
            }
            let split = self.split(a, (totals, &self.sums(sums)), &open)?;
            if self.is_better(a, &best, &split)? {
                (best, found) = (split, Some(at));
            }
        }
        Ok((best.left, found))
    }
}
