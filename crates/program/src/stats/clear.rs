//! The same statistics from the plain tables of all owners, by counting and adding.
//!
//! This is what the result of a job is checked against where someone may see all data: in tests, and in the
//! demonstration. It shares no code with the lowering: it walks over rows and decides which of them count.

use std::sync::Arc;

use num_bigint::BigInt;
use num_rational::BigRational;
use veil_session::Peer;

use super::{
    Analysis, End, Statistic, Stats, StatsResult, StatsSource, alone,
    derive::derive,
    lower::Meaning,
    moments::{Moments, Variable},
};
use crate::{
    Paired, Roles,
    number::Scaled,
    table::{Cells, Chunk, LEAST_PART, Table},
};
use veil_job::{DataError, Holder};

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
                if analysis.statistic.is_alone() {
                    let answers = self.clear_answers(analysis, sources)?;
                    return Ok(alone::derive(self, analysis, &answers));
                }
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
            rows: Some(self.rows()),
            analyses,
            opened: Vec::new(),
            paired: Paired::of(self),
            security: None,
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
        let mut moments = vec![Moments::zero(variables.len()); self.groups(analysis).len()];
        self.each_row(analysis, sources, |group, row| {
            let value = |index: usize| -> i128 {
                match index.checked_sub(1).map(|index| variables[index]) {
                    None => 1,
                    Some(Variable::Value(column)) => row.number(column),
                    Some(Variable::Cell(column, value)) => {
                        (row.category(column) == Some(value)).into()
                    }
                }
            };
            for &(i, j) in &needs {
                let sum = moments[group].at(i, j) + value(i) * value(j);
                moments[group].set(i, j, sum);
            }
        })?;
        Ok(moments)
    }

    /// What the parties should open of every group of an analysis that they answer themselves.
    fn clear_answers(
        &self,
        analysis: &Analysis,
        sources: &[(Holder, &StatsSource)],
    ) -> Result<Vec<Meaning>, DataError> {
        let of = analysis.statistic.columns()[0];
        let mut groups: Vec<Vec<i128>> = vec![Vec::new(); self.groups(analysis).len()];
        self.each_row(analysis, sources, |group, row| {
            groups[group].push(row.number(of));
        })?;
        let scale = self.columns[of].scale();
        let least = analysis.min_count.unwrap_or(1);
        let answer = |values: &Vec<i128>| {
            let (Some(smallest), Some(largest)) = (values.iter().min(), values.iter().max()) else {
                return Meaning::Nothing;
            };
            if (values.len() as u64) < least {
                return Meaning::Nothing;
            }
            Meaning::Number(match analysis.statistic {
                Statistic::Extreme(End::Smallest, _) => Scaled {
                    value: *smallest,
                    scale,
                },
                Statistic::MeanOnly { decimals, .. } => Scaled {
                    value: self.rounded(of, values, decimals),
                    scale: decimals,
                },
                _ => Scaled {
                    value: *largest,
                    scale,
                },
            })
        };
        Ok(groups.iter().map(answer).collect())
    }

    /// The mean of some values of a column, in units of 10^-decimals: to the nearest, halves up; of dates the day that it is in.
    fn rounded(&self, column: usize, values: &[i128], decimals: u8) -> i128 {
        let column = &self.columns[column];
        let sum: BigInt = values.iter().sum();
        let mean = BigRational::new(sum, values.len().into());
        let power = |digits: u8| BigRational::from(BigInt::from(10).pow(digits.into()));
        let mean = mean * power(decimals) / power(column.scale());
        let half = BigRational::new(i32::from(!column.is_date()).into(), 2.into());
        let rounded = (mean + half).floor().to_integer();
        rounded
            .try_into()
            .expect("a mean of values that are declared fits")
    }

    /// Gives every row that counts for an analysis, with the number of its group.
    fn each_row(
        &self,
        analysis: &Analysis,
        sources: &[(Holder, &StatsSource)],
        mut give: impl FnMut(usize, Row<'_>),
    ) -> Result<(), DataError> {
        let needed = self.needed(analysis);
        let groups = self.groups(analysis);
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
                let rows = (block.rows - first).min(LEAST_PART as u64) as usize;
                for row in 0..rows {
                    let row = Row {
                        columns: &columns,
                        row,
                    };
                    let complete = needed.iter().all(|&column| match &columns[column] {
                        Some(cell) => cell.cells().is_present(cell.first + row.row),
                        // Only a column that has a value everywhere can be left out of the circuit.
                        None => !self.columns[column].may_be_missing(),
                    });
                    let group: Option<Vec<u8>> = (analysis.by.iter())
                        .map(|&column| row.category(column))
                        .collect();
                    let Some(group) = group.filter(|_| complete) else {
                        continue;
                    };
                    let group = groups
                        .iter()
                        .position(|other| *other == group)
                        .expect("groups are all combinations");
                    give(group, row);
                }
            }
        }
        Ok(())
    }
}

/// A row of a block.
#[derive(Clone, Copy)]
struct Row<'a> {
    columns: &'a [Option<Cell>],
    /// Within them.
    row: usize,
}

impl Row<'_> {
    fn cell(&self, column: usize) -> (&Cells, usize) {
        let cell = self.columns[column].as_ref();
        let cell = cell.expect("every column that an analysis uses has a source");
        (cell.cells(), cell.first + self.row)
    }

    /// The number in a column, where it has one.
    fn number(&self, column: usize) -> i128 {
        let (cells, row) = self.cell(column);
        cells.number(row).expect("complete").into()
    }

    /// The value of a category column, if there is one.
    fn category(&self, column: usize) -> Option<u8> {
        let (cells, row) = self.cell(column);
        // A category of statistics has at most 255 values.
        u8::try_from(cells.category(row)?).ok()
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
