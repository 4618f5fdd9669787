//! Statistics over tables of several owners: what is asked, and on which columns.

mod chart;
mod clear;
mod derive;
mod fuzz;
mod lower;
mod moments;
mod monomial;
mod parse;
mod products;
mod read;
mod report;
mod result;
mod sink;
mod solve;
mod source;
mod table;

use std::path::PathBuf;

#[doc(hidden)]
pub use fuzz::fuzz_table;
pub use result::{AnalysisResult, Estimate, Figure, Group, Opened, StatsResult};
pub use sink::StatsSink;
pub use source::StatsSource;

use crate::{Audience, Holder};
pub(crate) use lower::Opening;

/// What to do with an empty cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Missing {
    /// It is an error at the owner: every cell must have a value.
    Refuse,
    /// The row counts nowhere where this column is used.
    Skip,
}

/// What the cells of a column are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Numbers in units of `10^-scale`.
    Number {
        /// Digits after the point.
        scale: u8,
        /// Smallest value, in those units.
        min: i64,
        /// Largest value.
        max: i64,
        /// Unit to show, such as `EUR`.
        unit: Option<String>,
    },
    /// One of these values.
    Category(Vec<String>),
}

/// A column, the same in all blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Name, also in the header of the files.
    pub name: String,
    /// Numbers or categories.
    pub kind: ColumnKind,
    /// What an empty cell means.
    pub missing: Missing,
}

impl Column {
    /// The values of a category column; none for numbers.
    pub fn categories(&self) -> &[String] {
        match &self.kind {
            ColumnKind::Category(values) => values,
            ColumnKind::Number { .. } => &[],
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self.kind, ColumnKind::Number { .. })
    }

    pub(crate) fn scale(&self) -> u8 {
        match self.kind {
            ColumnKind::Number { scale, .. } => scale,
            ColumnKind::Category(_) => 0,
        }
    }

    pub(crate) fn unit(&self) -> Option<&str> {
        match &self.kind {
            ColumnKind::Number { unit, .. } => unit.as_deref(),
            ColumnKind::Category(_) => None,
        }
    }

    pub(crate) fn may_be_missing(&self) -> bool {
        self.missing == Missing::Skip
    }
}

/// Rows of the same people, machines or days, whose columns may lie with several owners, in the same order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatsBlock {
    /// Name in the job.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Who holds each column of the job, in order.
    pub holders: Vec<Holder>,
    /// Where the owners' files are, if the job says so.
    pub files: Vec<(Holder, PathBuf)>,
}

/// What is computed of a group of rows. Columns are numbered as in the job.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Statistic {
    /// Rows, or rows where a column has a value.
    Count(Option<usize>),
    /// Sum of a column.
    Sum(usize),
    /// Mean of a column.
    Mean(usize),
    /// Mean, sample variance and standard deviation of a column.
    Variance(usize),
    /// Sample covariance of two columns.
    Covariance(usize, usize),
    /// Correlation of two columns (Pearson).
    Correlation(usize, usize),
    /// Least squares with an intercept. A category column stands for an indicator of each of its values but the first.
    Regression {
        /// What is explained.
        of: usize,
        /// By what.
        on: Vec<usize>,
    },
}

impl Statistic {
    /// The word in job files.
    pub const fn name(&self) -> &'static str {
        match self {
            Statistic::Count(_) => "count",
            Statistic::Sum(_) => "sum",
            Statistic::Mean(_) => "mean",
            Statistic::Variance(_) => "variance",
            Statistic::Covariance(..) => "covariance",
            Statistic::Correlation(..) => "correlation",
            Statistic::Regression { .. } => "regression",
        }
    }

    /// The columns that must have a value in a row, or the row is left out.
    pub fn columns(&self) -> Vec<usize> {
        match self {
            Statistic::Count(of) => of.iter().copied().collect(),
            Statistic::Sum(of) | Statistic::Mean(of) | Statistic::Variance(of) => vec![*of],
            Statistic::Covariance(a, b) | Statistic::Correlation(a, b) => vec![*a, *b],
            Statistic::Regression { of, on } => on.iter().chain([of]).copied().collect(),
        }
    }
}

/// One question, and who gets the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Analysis {
    /// Name in reports.
    pub name: String,
    /// What is computed.
    pub statistic: Statistic,
    /// Category columns whose values make the groups; none for one group of all rows.
    pub by: Vec<usize>,
    /// To whom the sums are opened.
    pub to: Audience,
}

/// A statistics job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Columns, as the job lists them.
    pub columns: Vec<Column>,
    /// Blocks, stacked.
    pub blocks: Vec<StatsBlock>,
    /// Questions.
    pub analyses: Vec<Analysis>,
}

impl Stats {
    /// Rows of all blocks.
    pub fn rows(&self) -> u64 {
        self.blocks.iter().map(|block| block.rows).sum()
    }

    /// The groups of an analysis: a value for each column of `by`, numbered as in the column.
    pub(crate) fn groups(&self, analysis: &Analysis) -> Vec<Vec<u8>> {
        analysis
            .by
            .iter()
            .fold(vec![Vec::new()], |groups, &column| {
                let values = self.columns[column].categories().len() as u8;
                let extend = |group: Vec<u8>| {
                    (0..values).map(move |value| [group.as_slice(), &[value]].concat())
                };
                groups.into_iter().flat_map(extend).collect()
            })
    }
}
