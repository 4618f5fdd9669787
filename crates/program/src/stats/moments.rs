//! Sums from which every statistic follows: for which variables, and which of them are needed.

use super::{Analysis, Column, Statistic};

/// A variable of a statistic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Variable {
    /// The value of a number column.
    Value(usize),
    /// 1 in rows with this value of a category column, 0 in others.
    Cell(usize, u8),
}

impl Variable {
    pub(super) fn name(self, columns: &[Column]) -> String {
        match self {
            Variable::Value(column) => columns[column].name.clone(),
            Variable::Cell(column, value) => {
                format!(
                    "{} = {}",
                    columns[column].name,
                    columns[column].categories()[usize::from(value)]
                )
            }
        }
    }

    pub(super) fn scale(self, columns: &[Column]) -> u8 {
        match self {
            Variable::Value(column) => columns[column].scale(),
            Variable::Cell(..) => 0,
        }
    }
}

impl Analysis {
    /// The variables of the statistic, in the order of its moments; of a regression, what is explained comes last.
    pub(super) fn variables(&self, columns: &[Column]) -> Vec<Variable> {
        match &self.statistic {
            Statistic::Count(_) => Vec::new(),
            Statistic::Sum(of)
            | Statistic::Mean(of)
            | Statistic::MeanOnly { of, .. }
            | Statistic::Extreme(_, of)
            | Statistic::Quantiles { of, .. }
            | Statistic::Histogram { of, .. }
            | Statistic::Variance(of) => vec![Variable::Value(*of)],
            Statistic::Ratio(a, b) | Statistic::Covariance(a, b) | Statistic::Correlation(a, b) => {
                vec![Variable::Value(*a), Variable::Value(*b)]
            }
            Statistic::Regression { of, on } => {
                let mut variables = Vec::new();
                for &column in on {
                    if columns[column].is_number() {
                        variables.push(Variable::Value(column));
                    } else {
                        // The first value is what the others are compared with.
                        let others = 1..columns[column].categories().len() as u8;
                        variables.extend(others.map(|value| Variable::Cell(column, value)));
                    }
                }
                variables.push(Variable::Value(*of));
                variables
            }
        }
    }

    /// Which moments are needed: pairs `i <= j` of variables counted from 1, where 0 stands for the constant 1. Where
    /// rows can be left out, or a group must have some, every analysis says how many it used.
    pub(super) fn needs(&self, variables: usize, may_drop: bool) -> Vec<(usize, usize)> {
        match self.statistic {
            Statistic::MeanOnly { .. } | Statistic::Extreme(..) | Statistic::Quantiles { .. } => {
                Vec::new()
            }
            Statistic::Count(_) | Statistic::Histogram { .. } => vec![(0, 0)],
            Statistic::Ratio(..) if !may_drop && self.min_count.is_none() => vec![(0, 1), (0, 2)],
            Statistic::Ratio(..) => vec![(0, 0), (0, 1), (0, 2)],
            Statistic::Sum(_) if !may_drop && self.min_count.is_none() => vec![(0, 1)],
            Statistic::Sum(_) | Statistic::Mean(_) => vec![(0, 0), (0, 1)],
            Statistic::Covariance(..) => vec![(0, 0), (0, 1), (0, 2), (1, 2)],
            Statistic::Variance(_) | Statistic::Correlation(..) | Statistic::Regression { .. } => {
                (0..=variables)
                    .flat_map(|i| (i..=variables).map(move |j| (i, j)))
                    .collect()
            }
        }
    }
}

/// `sum of z_i z_j` over the rows of a group in which no variable is missing, with `z_0 = 1`. Symmetric; entries that
/// the statistic does not need are 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Moments {
    size: usize,
    entries: Vec<i128>,
}

impl Moments {
    /// All zero.
    pub(super) fn zero(variables: usize) -> Self {
        let size = variables + 1;
        Self {
            size,
            entries: vec![0; size * size],
        }
    }

    pub(super) fn set(&mut self, i: usize, j: usize, value: i128) {
        self.entries[i * self.size + j] = value;
        self.entries[j * self.size + i] = value;
    }

    pub(super) fn at(&self, i: usize, j: usize) -> i128 {
        self.entries[i * self.size + j]
    }

    /// Number of variables, without the constant.
    pub(super) fn variables(&self) -> usize {
        self.size - 1
    }
}
