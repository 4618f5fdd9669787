//! Groups that are shown only if they are large enough: decided on shares, so that a small count is opened to nobody.

use std::collections::HashMap;

use veil_circuit::{
    Builder, Circuit, Per, Wire,
    generate::{Integer, is_less},
};
use veil_math::Ring;

use super::Key;
use crate::{
    error::JobProblem,
    stats::{Analysis, Stats, monomial::Monomial},
};

/// A group must have so many rows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Guard {
    /// What counts them.
    count: Monomial,
    /// How many it takes.
    least: u64,
}

impl Guard {
    /// What is opened of a sum.
    pub(super) fn sentence(&self, sum: &str) -> String {
        format!("{sum}, or 0 if these are fewer than {} rows", self.least)
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

/// What is opened of the sums over all rows, where some are opened only if a group is large enough: each of them times a bit. Nothing if
/// all are opened as they are.
pub(super) fn circuit(ring: Ring, sums: &[Key], rows: u64) -> Option<Circuit> {
    if sums.iter().all(|(_, _, guard)| guard.is_none()) {
        return None;
    }
    let mut b = Builder::new(ring);
    let inputs = b.input("sums", sums.len() as u32, Per::Row);
    let counts: HashMap<&Monomial, Wire> = (sums.iter().map(|(_, sum, _)| sum))
        .zip(inputs.clone())
        .collect();
    let mut enough: HashMap<&Guard, Wire> = HashMap::new();
    for (index, ((_, _, guard), &sum)) in sums.iter().zip(&inputs).enumerate() {
        let opened = match guard {
            None => sum,
            Some(guard) => {
                let enough = *enough.entry(guard).or_insert_with(|| {
                    // Neither the count nor the bound has more bits.
                    let bits = u64::BITS - rows.max(guard.least).leading_zeros();
                    let least = b.constant(guard.least.into());
                    let count = counts[&guard.count];
                    let few = is_less(&mut b, count, least, Integer::unsigned(bits));
                    let enough = b.not(few);
                    b.lift(enough)
                });
                b.mul(sum, enough)
            }
        };
        b.output(format!("opened {index}"), &[opened]);
    }
    Some(
        b.finish()
            .expect("ports of other names, a few gates for each"),
    )
}
