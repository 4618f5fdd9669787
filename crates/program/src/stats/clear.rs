//! The same statistics from the plain tables of all owners, by counting and adding.
//!
//! This is what the result of a job is checked against where someone may see all data: in tests, and in the
//! demonstration. It shares no code with the lowering: it walks over rows and decides which of them count.

use std::sync::Arc;

use veil_session::Peer;

use super::{
    Analysis, Stats, StatsResult, StatsSource,
    derive::derive,
    moments::{Moments, Variable},
};
use crate::{
    DataError, Holder, Roles,
    table::{Cells, Chunk, LEAST_PART, Table},
};

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
    ) -> Result<StatsResult, DataError> {
        let wanted = self
            .analyses
            .iter()
            .filter(|analysis| analysis.to.includes(peer));
        let analyses = wanted
            .map(|analysis| {
                let mut moments = self.clear_moments(analysis, sources)?;
                for moments in &mut moments {
                    let few = |least: u64| moments.at(0, 0) < i128::from(least);
                    if analysis.min_count.is_some_and(few) {
                        *moments = Moments::zero(moments.variables());
                    }
                }
                Ok(derive(self, analysis, &moments))
            })
            .collect::<Result<_, DataError>>()?;
        let recipient = roles.peer_name(peer);
        Ok(StatsResult {
            job: job.to_owned(),
            recipient,
            rows: self.rows(),
            analyses,
            opened: Vec::new(),
        })
    }

    /// The moments of every group of an analysis.
    fn clear_moments(
        &self,
        analysis: &Analysis,
        sources: &[(Holder, &StatsSource)],
    ) -> Result<Vec<Moments>, DataError> {
        let variables = analysis.variables(&self.columns);
        let needs = analysis.needs(variables.len(), self.may_drop(analysis));
        let needed = self.needed(analysis);
        let groups = self.groups(analysis);
        let mut moments = vec![Moments::zero(variables.len()); groups.len()];
        for (index, block) in self.blocks.iter().enumerate() {
            // A few rows at a time: tables may be larger than memory.
            for first in (0..block.rows).step_by(LEAST_PART) {
                let columns: Vec<Option<Cell>> = (block.holders.iter().enumerate())
                    .map(|(column, holder)| {
                        let source = sources.iter().find(|source| source.0 == *holder);
                        Ok(match source.and_then(|source| source.1.table(index)) {
                            Some(table) => Cell::find(table, column, first)?,
                            None => None,
                        })
                    })
                    .collect::<Result<_, DataError>>()?;
                let at = |column: usize| {
                    columns[column]
                        .as_ref()
                        .expect("every column that an analysis uses has a source")
                };
                let rows = (block.rows - first).min(LEAST_PART as u64) as usize;
                for row in 0..rows {
                    let complete = needed.iter().all(|&column| match &columns[column] {
                        Some(cell) => cell.cells().is_present(cell.first + row),
                        // Only a column that has a value everywhere can be left out of the circuit.
                        None => !self.columns[column].may_be_missing(),
                    });
                    let category =
                        |column: usize| at(column).cells().category(at(column).first + row);
                    let group: Option<Vec<u8>> =
                        analysis.by.iter().map(|&column| category(column)).collect();
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
                                let cell = at(column);
                                let number = cell.cells().number(cell.first + row);
                                number.expect("complete").into()
                            }
                            Some(Variable::Cell(column, value)) => {
                                (category(column) == Some(value)).into()
                            }
                        }
                    };
                    for &(i, j) in &needs {
                        let sum = moments[group].at(i, j) + value(i) * value(j);
                        moments[group].set(i, j, sum);
                    }
                }
            }
        }
        Ok(moments)
    }
}

/// A few rows of a column.
struct Cell {
    chunk: Arc<Chunk>,
    place: usize,
    /// Of these rows in the chunk.
    first: usize,
}

impl Cell {
    fn find(table: &Table, column: usize, row: u64) -> Result<Option<Self>, DataError> {
        let Some(place) = table.place(column) else {
            return Ok(None);
        };
        let (chunk, first) = table.at(row)?;
        Ok(Some(Self {
            chunk,
            place,
            first,
        }))
    }

    fn cells(&self) -> &Cells {
        &self.chunk.columns[self.place]
    }
}
