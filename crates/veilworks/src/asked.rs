//! What programs ask of a job with queries, beside what `veil explain` prints: circuits in rows, types of results, results that were written.

use veil_job::Audience;
use veil_job::passes::PassSpec;
use veil_math::Ring;
use veil_program::Answered;

use crate::error::{Code, Error};
use crate::explain;
use crate::job::Job;

/// A circuit that queries are in rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowCircuit {
    /// Its rows.
    pub rows: u64,
    /// Its ring.
    pub ring: Ring,
    /// Gates in a row.
    pub gates: u64,
    /// Products in a row, which are ANDs in a circuit of bits.
    pub products: u64,
    /// How many of them follow each other.
    pub depth: u64,
    /// Payload that all parties send for it, in all rows.
    pub bytes: u64,
}

impl Job {
    /// The circuits that the queries are in rows, in their order: of passes that compute columns, but for those that look at what owners supply.
    pub fn circuits(&self) -> Vec<RowCircuit> {
        let Some(queries) = self.queries() else {
            return Vec::new();
        };
        let checks = queries.checks();
        let looks = |at: usize| checks.iter().any(|(_, passes)| passes.contains(&at));
        let costs = explain::estimate::Costs::of(self.passes());
        let passes = queries.physical().passes.passes.iter();
        let passes = passes.zip(&costs.passes).enumerate();
        let circuit = |(at, (pass, cost)): (usize, (&PassSpec, &explain::estimate::OfPass))| {
            let PassSpec::Rows {
                job, claim: None, ..
            } = pass
            else {
                return None;
            };
            let computes = job.audiences.iter().all(|to| *to == Audience::Column);
            if !computes || looks(at) {
                return None;
            }
            let stats = job.circuit.stats();
            Some(RowCircuit {
                rows: job.rows(),
                ring: stats.ring,
                gates: stats.gates,
                products: stats.total_muls(),
                depth: stats.depth,
                bytes: cost.each.iter().map(|does| does.sends.bytes).sum(),
            })
        };
        passes.filter_map(circuit).collect()
    }

    /// What a run of a job with queries has opened to the recipient of this name, from the JSON that the run has written.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Input`] if it is no result of this job, of [`Code::Usage`] if the job has no queries.
    pub fn answered(&self, recipient: &str, json: &str) -> Result<Vec<Answered>, Error> {
        let Some(queries) = self.queries() else {
            return Err(Error::new(Code::Usage, "the job has no queries"));
        };
        Ok(queries.answered(recipient, json)?)
    }

    /// Which columns of what a query opens may have values that the columns of another have not: where, and what each may have, in words.
    ///
    /// # Errors
    /// An [`Error`] of [`Code::Usage`] if one of them opens nothing, or they have not as many columns.
    pub fn outside(
        &self,
        given: &str,
        contract: &str,
    ) -> Result<Vec<(usize, String, String)>, Error> {
        let outside = self
            .queries()
            .and_then(|queries| queries.outside(given, contract));
        outside.ok_or_else(|| {
            let message = format!("`{given}` and `{contract}` are no results with as many columns");
            Error::new(Code::Usage, message)
        })
    }

    /// The words for the roles of the participant of this name, parties first; none, if it has no part.
    pub fn roles_of(&self, name: &str) -> Vec<&'static str> {
        let all = veil_engine::participants(self.plan()).into_iter();
        let mine = all.filter(|peer| veil_engine::name_of(self.plan(), *peer) == name);
        mine.map(explain::role).collect()
    }
}
