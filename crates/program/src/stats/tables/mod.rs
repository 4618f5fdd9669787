//! Statistics over tables: analyses written as queries, so that rows are chosen, joined and grouped where queries are.
//!
//! An analysis is one query of the job, and what it opens are sums, quantiles or counts of groups. [`sql`] writes it, [`mod@parse`] reads the analysis and the columns
//! of its relation, [`answer`] makes statistics of what was opened, by the same rules as for rows that stay where they are.

mod answer;
mod parse;
mod sql;

use std::ops::Range;

use veil_query::SqlError;

use super::{Analysis, Column};
use crate::error::{Fault, JobProblem};
use crate::query::NamedQuery;

pub(crate) use answer::{Relation, result};
pub(crate) use parse::parse;
use sql::Sql;

/// An analysis of a job with tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableAnalysis {
    /// The name of its query.
    pub(crate) step: String,
    /// The question, over `columns`.
    pub(super) analysis: Analysis,
    /// The columns of its relation.
    pub(super) columns: Vec<Column>,
    /// To whom it is opened.
    pub(crate) to: String,
    /// Its query.
    sql: Sql,
    /// What the columns of its query are, behind those that make groups.
    outputs: Vec<Output>,
}

/// What a column that is opened is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Output {
    /// The sum of the product of two variables, counted from 1, where 0 stands for the constant 1.
    Moment(usize, usize),
    /// A figure of the answer, by its number.
    Answer(usize),
}

impl TableAnalysis {
    /// Its name in the job.
    pub fn name(&self) -> &str {
        &self.analysis.name
    }

    /// The query that it is.
    pub(crate) fn query(&self) -> NamedQuery {
        NamedQuery {
            name: self.step.clone(),
            sql: self.sql.text().to_owned(),
            to: Some(self.to.clone()),
            keep: None,
            fit: None,
            apply: None,
            min_count: self.least(),
            files: Vec::new(),
        }
    }

    /// The fewest rows of a group that is shown; 0 where all are.
    fn least(&self) -> u32 {
        let least = self.analysis.min_count.unwrap_or(0);
        u32::try_from(least).unwrap_or(u32::MAX)
    }

    /// What all participants agree on beside its query: what is made of it.
    pub(crate) fn canonical(&self) -> String {
        let Analysis {
            name,
            statistic,
            confidence,
            ..
        } = &self.analysis;
        format!(
            "analysis {:?} {name:?} {:?} {confidence}",
            self.step,
            statistic.name()
        )
    }
}

/// The part of the job that an error in the query of an analysis is about, and the error as one of this part.
pub(crate) fn place(analyses: &[TableAnalysis], error: &SqlError) -> Option<Fault> {
    let analysis = analyses.iter().find(|one| one.step == error.query)?;
    Some(analysis.sql.fault(&analysis.analysis.name, error))
}

/// A problem of a part that stands alone.
fn part(name: &str, field: &str, span: Range<usize>, error: SqlError) -> Fault {
    let what = format!("`{field}` of analysis `{name}`");
    let error = Box::new(error);
    Fault::new(span, JobProblem::Part { what, error })
}
