//! Shadow runs of a job's queries.

use veil_job::DataError;
use veil_relation::clear::{self, Input};

use super::{Job, Kind};
use crate::{Shadow, Watch};

impl Job {
    /// A shadow run: the queries of the job in the clear on sample rows, which are where the job says or were given; what each column that they read and
    /// each that they make uses of its range. A table may have fewer rows than the job says. Nothing for jobs without queries over tables.
    ///
    /// # Errors
    /// The [`DataError`] of each table that is not as the job declares it, as [`Job::check_data`] gives them: they quote cells, so that they stay where the
    /// sample is; that of a table that no participant has; of rows that break a promise on which the queries rest.
    pub fn shadow(&self, watch: Watch<'_>) -> Result<Option<Shadow>, Vec<DataError>> {
        let Kind::Query(queries) = &self.kind else {
            return Ok(None);
        };
        queries.without_stored().map_err(|error| vec![error])?;
        let sample = queries.of_sample();
        let mut inputs = vec![Input::default(); queries.tables.len()];
        let mut problems = Vec::new();
        for at in (0..queries.tables.len()).filter(|at| queries.is_taken(*at)) {
            let read = self.open_table(&sample, at, watch).and_then(|table| {
                let rows = (0..table.rows()).map(|row| table.row(row));
                rows.collect::<Result<Vec<_>, _>>()
            });
            match read {
                Ok(rows) => {
                    inputs[at].valid = vec![true; rows.len()];
                    inputs[at].rows = rows;
                }
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let observed = clear::observe(queries.program(), &inputs);
        let observed = observed.map_err(|error| vec![DataError::own(error)])?;
        Ok(Some(queries.shadow(&self.spec.name, &observed)))
    }
}
