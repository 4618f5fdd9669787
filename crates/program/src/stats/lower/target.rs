//! The opened value of a port: its audience, its analysis, and the condition without which it is empty.

use veil_math::Ring;

use super::{Guard, division::Division};
use crate::{
    number::Scaled,
    stats::{Column, End, monomial::Monomial},
};
use veil_job::Audience;

/// An opened port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::stats) struct Shown {
    pub(crate) audience: Audience,
    pub(crate) target: Target,
    pub(crate) guard: Option<Guard>,
}

/// What is opened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::stats) enum Target {
    /// A sum over the rows, as it is.
    Sum(Monomial),
    /// A sum divided by the number of its rows.
    Mean {
        /// The column.
        of: usize,
        /// Digits of the mean after the point.
        decimals: u8,
        /// Its sum over the rows.
        sum: Monomial,
        /// Their number.
        count: Monomial,
    },
    /// The largest or the smallest value.
    Extreme {
        /// Which.
        end: End,
        /// The column.
        of: usize,
        /// Columns that make the groups.
        by: Vec<usize>,
        /// The group, as they number it.
        group: Vec<u8>,
        /// The column in the rows that count.
        values: Monomial,
    },
}

/// What an opened element stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// This number.
    Number(Scaled),
    /// A number that the declared range of the column excludes: an owner has supplied what it must not.
    Beyond(Scaled),
    /// There are no rows, or fewer than the group needs.
    Nothing,
}

impl Shown {
    /// What is summed over the rows for it: the sum, and whatever counts its rows.
    pub(super) fn sums(&self) -> Vec<&Monomial> {
        let guard = self.guard.as_ref().map(|guard| &guard.count);
        match &self.target {
            // A sum's rows are counted in a port of their own.
            Target::Sum(sum) => vec![sum],
            Target::Mean { sum, count, .. } => {
                let count = Some(count).filter(|count| **count != Monomial::ONE);
                std::iter::once(sum).chain(count).collect()
            }
            Target::Extreme { .. } => guard.into_iter().collect(),
        }
    }

    /// What is opened, in words.
    pub(super) fn sentence(&self, columns: &[Column]) -> String {
        let name = |of: &usize| columns[*of].name.as_str();
        let (what, none) = match &self.target {
            Target::Sum(sum) => (sum.sentence(columns), "0"),
            Target::Mean {
                of, decimals, sum, ..
            } => {
                let precision = match decimals {
                    _ if columns[*of].is_date() => "as the day that it is in".to_owned(),
                    0 => "to an integer".to_owned(),
                    1 => "to 1 decimal".to_owned(),
                    more => format!("to {more} decimals"),
                };
                let rows = sum.rows(columns);
                (
                    format!("mean of {}{rows}, {precision}", name(of)),
                    "nothing",
                )
            }
            Target::Extreme {
                end, of, values, ..
            } => {
                let (which, rows) = (end.adjective(), values.rows(columns));
                (format!("{which} {}{rows}", name(of)), "nothing")
            }
        };
        match (&self.guard, &self.target) {
            (Some(guard), _) => guard.sentence(&what, none),
            (None, Target::Sum(_)) => what,
            (None, _) if self.always_has_rows() => what,
            (None, _) => format!("{what}, or nothing if there are no such rows"),
        }
    }

    /// Whether some row certainly counts: then the division has no zero to fear, and an extreme is there.
    pub(super) fn always_has_rows(&self) -> bool {
        match &self.target {
            Target::Sum(_) => true,
            Target::Mean { count, .. } => *count == Monomial::ONE,
            Target::Extreme { values, .. } => values.cells.is_empty() && values.valid.is_empty(),
        }
    }

    /// What an opened element of the ring, read as a signed number, stands for. `rows` are those of the job.
    pub(crate) fn read(&self, columns: &[Column], rows: u64, ring: Ring, value: i128) -> Meaning {
        let (first, last, scale) = match &self.target {
            Target::Sum(sum) => {
                let scale = sum.scale(columns);
                return Meaning::Number(Scaled { value, scale });
            }
            Target::Mean { of, decimals, .. } => {
                let column = &columns[*of];
                let division = Division::new(column, *decimals, rows);
                let division = division.expect("it was divided like this");
                (division.first(), division.last(), *decimals)
            }
            Target::Extreme { end, of, .. } => {
                let column = &columns[*of];
                let (first, last) = end.range(column);
                (first, last, column.scale())
            }
        };
        // Counted from 1, so that 0 is free; down if the smallest is sought.
        let Some(steps) = ring.reduce(value as u128).checked_sub(1) else {
            return Meaning::Nothing;
        };
        let steps = i128::try_from(steps).unwrap_or(i128::MAX);
        let value = if first > last {
            first.saturating_sub(steps)
        } else {
            first.saturating_add(steps)
        };
        let number = Scaled { value, scale };
        if (first.min(last)..=first.max(last)).contains(&value) {
            Meaning::Number(number)
        } else {
            Meaning::Beyond(number)
        }
    }
}
