//! Analyses: the statistic, its rows, and its audience.

use std::fmt;

use super::{Column, Confidence};
use veil_job::Audience;

/// An end of a range of values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// The smallest value.
    Smallest,
    /// The largest value.
    Largest,
}

impl End {
    /// The word in sentences.
    pub const fn adjective(self) -> &'static str {
        match self {
            End::Smallest => "smallest",
            End::Largest => "largest",
        }
    }

    /// The declared range of a column of numbers, from the value that is farthest from this end to the one that is this end.
    pub(super) fn range(self, column: &Column) -> (i128, i128) {
        let (least, most) = column.range().unwrap_or_default();
        let (least, most) = (least.into(), most.into());
        match self {
            End::Smallest => (most, least),
            End::Largest => (least, most),
        }
    }
}

/// A fraction from 0 to 1, in units of 1/10000.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fraction(pub(super) u16);

impl Fraction {
    /// Digits after the point.
    pub(super) const SCALE: u8 = 4;
    /// That of the median.
    pub const HALF: Self = Self(5000);

    /// The fraction of so many units, if it is one.
    pub fn new(units: i64) -> Option<Self> {
        let units = u16::try_from(units).ok()?;
        (units <= 10_000).then_some(Self(units))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1e4)
    }
}

/// A statistic of a group of rows. Columns are numbered as in the job.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Statistic {
    /// Rows, or rows where a column has a value.
    Count(Option<usize>),
    /// Sum of a column.
    Sum(usize),
    /// Mean of a column.
    Mean(usize),
    /// The sum of a column divided by that of another.
    Ratio(usize, usize),
    /// Mean of a column, divided by the parties and rounded to so many decimals: neither sum nor count is opened.
    MeanOnly {
        /// The column.
        of: usize,
        /// Digits after the point; 0 of dates.
        decimals: u8,
    },
    /// The smallest or the largest value of a column.
    Extreme(End, usize),
    /// For each fraction the smallest value of a column that so many of the values do not exceed: the median is that of one half.
    Quantiles {
        /// The column.
        of: usize,
        /// The fractions.
        at: Vec<Fraction>,
    },
    /// How many rows have a value in each bin.
    Histogram {
        /// The column.
        of: usize,
        /// Where each bin but the first begins, in units of the scale or in days, ascending.
        edges: Vec<i64>,
    },
    /// Mean, sample variance and standard deviation of a column.
    Variance(usize),
    /// Sample covariance of two columns.
    Covariance(usize, usize),
    /// Correlation of two columns (Pearson).
    Correlation(usize, usize),
    /// Least squares with an intercept. A category column stands for an indicator of each of its values but the first.
    Regression {
        /// The explained column.
        of: usize,
        /// By what.
        on: Vec<usize>,
    },
}

impl Statistic {
    /// The word in job files.
    pub fn name(&self) -> &'static str {
        match self {
            Statistic::Count(_) => "count",
            Statistic::Sum(_) => "sum",
            Statistic::Mean(_) => "mean",
            Statistic::Ratio(..) => "ratio",
            Statistic::MeanOnly { .. } => "mean-only",
            Statistic::Extreme(End::Smallest, _) => "min",
            Statistic::Extreme(End::Largest, _) => "max",
            Statistic::Quantiles { at, .. } if at.as_slice() == [Fraction::HALF] => "median",
            Statistic::Quantiles { .. } => "quantiles",
            Statistic::Histogram { .. } => "histogram",
            Statistic::Variance(_) => "variance",
            Statistic::Covariance(..) => "covariance",
            Statistic::Correlation(..) => "correlation",
            Statistic::Regression { .. } => "regression",
        }
    }

    /// The columns that it reads.
    pub fn columns(&self) -> Vec<usize> {
        match self {
            Statistic::Count(of) => of.iter().copied().collect(),
            Statistic::Sum(of)
            | Statistic::Mean(of)
            | Statistic::MeanOnly { of, .. }
            | Statistic::Extreme(_, of)
            | Statistic::Quantiles { of, .. }
            | Statistic::Histogram { of, .. }
            | Statistic::Variance(of) => vec![*of],
            Statistic::Ratio(a, b) | Statistic::Covariance(a, b) | Statistic::Correlation(a, b) => {
                vec![*a, *b]
            }
            Statistic::Regression { of, on } => on.iter().chain([of]).copied().collect(),
        }
    }

    /// Whether its answer has intervals: it is an estimate with a known error.
    pub const fn has_intervals(&self) -> bool {
        matches!(
            self,
            Statistic::Variance(_) | Statistic::Correlation(..) | Statistic::Regression { .. }
        )
    }

    /// Whether the parties compute the answer itself, and open nothing else of a group.
    pub const fn is_alone(&self) -> bool {
        matches!(
            self,
            Statistic::MeanOnly { .. } | Statistic::Extreme(..) | Statistic::Quantiles { .. }
        )
    }
}

/// One question, and who gets the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Analysis {
    /// Name in reports.
    pub name: String,
    /// The statistic.
    pub statistic: Statistic,
    /// Category columns whose values make the groups; none for one group of all rows.
    pub by: Vec<usize>,
    /// Rows that a group needs, or the parties open zeros in the place of all its numbers, its count among them.
    pub min_count: Option<u64>,
    /// How likely intervals contain what is estimated, of statistics that have some.
    pub confidence: Confidence,
    /// To whom the sums are opened.
    pub to: Audience,
}
