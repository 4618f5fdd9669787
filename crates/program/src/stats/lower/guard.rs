//! Groups that are shown only if they are large enough: decided on shares, so that a small count is never opened.

use veil_circuit::{
    Builder, Wire,
    generate::{Integer, is_less},
};

use crate::{
    error::JobProblem,
    stats::{Analysis, Stats, monomial::Monomial},
};

/// A group must have so many rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Guard {
    /// What counts them.
    pub(super) count: Monomial,
    /// How many it takes.
    least: u64,
}

impl Guard {
    /// What is opened: `what`, or `none`.
    pub(super) fn sentence(&self, what: &str, none: &str) -> String {
        format!(
            "{what}, or {none} if these are fewer than {} rows",
            self.least
        )
    }

    /// What counts the rows.
    pub(super) const fn count(&self) -> &Monomial {
        &self.count
    }

    /// How many it takes.
    pub(super) const fn least(&self) -> u64 {
        self.least
    }

    /// Bits of a count of at most `rows` rows, and of the number that it takes.
    pub(super) fn bits(&self, rows: u64) -> u32 {
        u64::BITS - rows.max(self.least).leading_zeros()
    }

    /// Whether a group of so many of at most `rows` rows is shown: a bit.
    pub(super) fn holds(&self, b: &mut Builder, count: Wire, rows: u64) -> Wire {
        let bits = self.bits(rows);
        let least = b.constant(self.least.into());
        let few = is_less(b, count, least, Integer::unsigned(bits));
        b.not(few)
    }
}

impl Stats {
    /// What must hold for a group of an analysis to be shown; nothing if that is known beforehand.
    pub(super) fn guard(
        &self,
        analysis: &Analysis,
        group: &[u8],
    ) -> Result<Option<Guard>, JobProblem> {
        let Some(least) = analysis.min_count else {
            return Ok(None);
        };
        let variables = analysis.variables(&self.columns);
        match self.product(analysis, &variables, group, 0, 0) {
            Some(count) if count == Monomial::ONE && self.rows() < least => {
                Err(JobProblem::Number {
                    field: "min_count",
                    value: least.to_string(),
                    reason: format!("the job has {} rows, and all of them count", self.rows()),
                })
            }
            Some(count) if count == Monomial::ONE => Ok(None),
            count => Ok(count.map(|count| Guard { count, least })),
        }
    }
}
