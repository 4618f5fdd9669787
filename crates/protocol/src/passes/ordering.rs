//! What holds of rows that are put in order by comparisons.
//!
//! Comparisons are opened. What they say is a permutation, and uniform, if the rows have moved by one that no party knows and that opens nothing else
//! (rule R7), and if no two of them are equal: so there is one vector that each permutation opens, and every row has a number of its own.

use std::collections::{HashMap, HashSet};

use veil_circuit::generate::precedes;
use veil_job::passes::{comparisons_at_once, passes_of_comparisons};
use veil_job::{Audience, Holder};

use super::program::Compares;
use super::{ColumnForm, ColumnId, ColumnKind, ColumnPlan, MoveKind, MovePlan, Take};
use crate::plan::Plan;

/// Nothing, or the rule that a pass breaks.
pub(super) type Rule = Result<(), &'static str>;

/// What the passes of a program so far have moved and compared.
#[derive(Default)]
pub(super) struct Ordering {
    /// Columns that have moved by a permutation of which nothing was opened, with its factors.
    moved: HashMap<ColumnId, ColumnId>,
    /// Those of them that are numbered, and the bits of the number.
    numbered: HashMap<ColumnId, u32>,
    /// Factors of permutations by which something was opened, or is being.
    spent: HashSet<ColumnId>,
    /// Comparisons under way, and how many passes of them there were.
    now: Option<(Compares, u32)>,
}

impl Ordering {
    /// Whether positions are still to come.
    pub(super) const fn under_way(&self) -> bool {
        self.now.is_some()
    }

    /// That a pass which compares nothing may follow.
    pub(super) fn ends(&self) -> Rule {
        if self.under_way() {
            return Err("comparisons follow each other until there are positions");
        }
        Ok(())
    }

    /// That what is compared now is not taken.
    pub(super) fn leaves_alone(&self, columns: &[ColumnId]) -> Rule {
        let compared = self.now.as_ref().map_or(&[][..], |(now, _)| &now.of);
        if columns.iter().any(|column| compared.contains(column)) {
            return Err("rows that are being put in order are not taken");
        }
        Ok(())
    }

    /// Notes what a move leaves.
    pub(super) fn moved(
        &mut self,
        plan: &MovePlan,
        takes: &[Take],
        leaves: &[Option<ColumnId>],
        factors: Option<ColumnId>,
    ) {
        let Some(factors) = factors else { return };
        match plan.kind {
            MoveKind::Open => drop(self.spent.insert(factors)),
            MoveKind::There | MoveKind::Along if !plan.orders => {
                for (take, column) in takes.iter().zip(leaves) {
                    let Some(column) = column else { continue };
                    self.moved.insert(*column, factors);
                    if let Take::Numbered { bits, .. } = take {
                        self.numbered.insert(*column, *bits);
                    }
                }
            }
            _ => {}
        }
    }

    /// Checks a pass of comparisons.
    pub(super) fn compare(
        &mut self,
        plan: &Plan,
        takes: &[Option<Take>],
        of: &Compares,
        columns: &[Option<ColumnPlan>],
    ) -> Rule {
        let inputs = &plan.job.circuit.inputs;
        if inputs.len() != takes.len() || of.rows == 0 || of.of.is_empty() {
            return Err("rows are compared by their words");
        }
        let widths: Vec<u32> = inputs[..of.of.len()]
            .iter()
            .map(|port| port.width)
            .collect();
        let [block] = &plan.job.blocks[..] else {
            return Err("comparisons are of one block");
        };
        let known = plan.job.circuit == precedes(&widths)
            && plan.job.audiences == [Audience::Parties]
            && block.holders.iter().all(|holder| *holder == Holder::Column)
            && block.rows == u64::from(comparisons_at_once(of.rows));
        if !known {
            return Err(
                "comparisons open to the parties which row precedes the other, and nothing else",
            );
        }
        // What is opened lies in whole bytes of each chunk.
        if !plan.chunk_rows.is_multiple_of(8) {
            return Err("rows are compared in chunks of a multiple of eight");
        }
        for (column, width) in of.of.iter().zip(&widths) {
            let plan = columns.get(column.0 as usize).copied().flatten();
            let fits = plan.is_some_and(|plan| {
                plan.kind == ColumnKind::Shared
                    && plan.rows == of.rows
                    && ColumnForm::of_bits(*width) == Some(plan.form)
            });
            if !fits {
                return Err("what is compared are words of the rows");
            }
            if self.moved.get(column) != Some(&of.factors) {
                return Err("rows are compared that have moved by one permutation");
            }
        }
        if self
            .numbered
            .get(&of.of[0])
            .is_none_or(|bits| *bits > widths[0])
        {
            return Err("rows that are compared are numbered: no two are equal");
        }
        let before = match self.now.take() {
            None if self.spent.insert(of.factors) => 0,
            None => return Err("a permutation opens one vector"),
            Some((same, passes)) => {
                if (same.rows, &same.of, same.factors) != (of.rows, &of.of, of.factors) {
                    return Err("comparisons follow each other until there are positions");
                }
                passes
            }
        };
        let last = before + 1 == passes_of_comparisons(of.rows);
        if last != of.positions.is_some() {
            return Err("the last comparisons leave positions");
        }
        if !last {
            self.now = Some((of.clone(), before + 1));
        }
        Ok(())
    }
}
