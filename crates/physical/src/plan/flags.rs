//! Bounds that say in a result whether they have left out rows.
//!
//! A step has the flags of all bounds that its rows have gone through, in the steps that it reads too. The recipient of its rows learns whether any of them is
//! raised, and no more.

use std::collections::HashMap;

use veil_operators::Shared;
use veil_relation::{At, Expr, Kind, Step, Type};

use super::rel::{Base, Field, Rel};
use super::{PhysicalError, Planner};

/// A bound that flags.
#[derive(Clone, Debug)]
pub(super) struct Flag {
    /// The relation, in words.
    pub(super) of: String,
    /// The bound.
    pub(super) rows: u32,
    /// One bit, in one row: whether the relation has more rows.
    pub(super) exceeded: Shared,
}

/// The flags of steps.
#[derive(Debug, Default)]
pub(super) struct Flags {
    /// Of the step that is being planned.
    present: Vec<Flag>,
    /// Of those before it.
    steps: HashMap<String, Vec<Flag>>,
}

impl Flags {
    /// Notes a bound that rows of the step go through.
    pub(super) fn raised(&mut self, flag: Flag) {
        let mut known = self.present.iter();
        // A step that is read twice has each of its bounds once.
        if !known.any(|of| of.exceeded.column() == flag.exceeded.column()) {
            self.present.push(flag);
        }
    }

    /// Notes those of an earlier step that is read.
    pub(super) fn read(&mut self, step: &str) {
        for flag in self.steps.get(step).cloned().unwrap_or_default() {
            self.raised(flag);
        }
    }

    /// Those of the step so far.
    pub(super) fn raised_so_far(&self) -> &[Flag] {
        &self.present
    }

    /// Ends the step; whether it has any.
    pub(super) fn end(&mut self, step: &str) -> bool {
        let flags = std::mem::take(&mut self.present);
        let some = !flags.is_empty();
        self.steps.insert(step.to_owned(), flags);
        some
    }
}

impl Planner<'_> {
    /// Whether any bound of the step has left out rows, as a column of the base that has it in the first row and 0 in all others; nothing where no bound says so.
    pub(super) fn incomplete(&mut self, rel: &mut Rel) -> Option<Expr> {
        let flags = self.flags.raised_so_far().to_vec();
        let mut bits: Vec<Expr> = Vec::new();
        for Flag { exceeded, .. } in flags {
            let take = exceeded.rows_from(0);
            let first = self.b.make(take, rel.rows, exceeded.sharing());
            let field = Field::new(first, 0, 1);
            bits.push(rel.push(Base::of_bits(Type::of(Kind::Bool), Some(field), None)));
        }
        match bits.len() {
            0 | 1 => bits.pop(),
            _ => Some(Expr::Or(bits)),
        }
    }
}

/// A relation that cannot be kept because later jobs could not tell that rows of it are missing.
pub(super) fn unkept(step: &Step) -> PhysicalError {
    PhysicalError::Step {
        step: step.name.clone(),
        at: step.at,
        error: Box::new(PhysicalError::NotYet {
            what: "relations that are kept and say whether a bound has left out rows",
            instead: "use overflow = \"refuse\", or \"drop\"",
            at: At(None),
        }),
    }
}
