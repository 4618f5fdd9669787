//! The same statistics from the plain tables of all owners, by counting and adding.
//!
//! This is what the result of a job is checked against where someone may see all data: in tests, and in the
//! demonstration. It shares no code with the lowering: it walks over rows and decides which of them count.

use veil_session::Peer;

use super::{
    Analysis, Stats, StatsResult, StatsSource,
    derive::derive,
    moments::{Moments, Variable},
    table::Cells,
};
use crate::{Holder, Roles};

impl Stats {
    /// The result that `peer` should get, without the list of opened numbers. `sources` are those of all holders.
    ///
    /// # Panics
    /// If a column of a block has no source.
    pub(crate) fn clear(
        &self,
        job: &str,
        roles: &Roles,
        peer: Peer,
        sources: &[(Holder, &StatsSource)],
    ) -> StatsResult {
        let wanted = self
            .analyses
            .iter()
            .filter(|analysis| analysis.to.includes(peer));
        let analyses = wanted
            .map(|analysis| {
                let moments = self.clear_moments(analysis, sources);
                derive(self, analysis, &moments)
            })
            .collect();
        let recipient = roles.peer_name(peer);
        StatsResult {
            job: job.to_owned(),
            recipient,
            rows: self.rows(),
            analyses,
            opened: Vec::new(),
        }
    }

    /// The moments of every group of an analysis.
    fn clear_moments(
        &self,
        analysis: &Analysis,
        sources: &[(Holder, &StatsSource)],
    ) -> Vec<Moments> {
        let variables = analysis.variables(&self.columns);
        let needs = analysis.needs(variables.len());
        let groups = self.groups(analysis);
        let mut moments = vec![Moments::zero(variables.len()); groups.len()];
        for (index, block) in self.blocks.iter().enumerate() {
            let cells: Vec<Option<&Cells>> = (block.holders.iter().enumerate())
                .map(|(column, holder)| {
                    let source = sources.iter().find(|source| source.0 == *holder)?.1;
                    source.tables[index].as_ref()?.columns[column].as_ref()
                })
                .collect();
            let at = |column: usize| {
                cells[column].expect("every column that an analysis uses has a source")
            };
            let columns = analysis.statistic.columns();
            for row in 0..block.rows as usize {
                let complete = columns.iter().all(|&column| match cells[column] {
                    Some(cells) => cells.is_present(row),
                    // Only a column that refuses missing values can be left out of the circuit.
                    None => !self.columns[column].may_be_missing(),
                });
                let group: Option<Vec<u8>> = analysis
                    .by
                    .iter()
                    .map(|&column| at(column).category(row))
                    .collect();
                let Some(group) = group.filter(|_| complete) else {
                    continue;
                };
                let group = groups
                    .iter()
                    .position(|other| *other == group)
                    .expect("groups are all combinations");
                let value = |index: usize| -> i128 {
                    match index.checked_sub(1).map(|index| variables[index]) {
                        None => 1,
                        Some(Variable::Value(column)) => {
                            at(column).number(row).expect("complete").into()
                        }
                        Some(Variable::Cell(column, value)) => {
                            (at(column).category(row) == Some(value)).into()
                        }
                    }
                };
                for &(i, j) in &needs {
                    let sum = moments[group].at(i, j) + value(i) * value(j);
                    moments[group].set(i, j, sum);
                }
            }
        }
        moments
    }
}
