//! From exact sums to statistics.
//!
//! Everything up to the last division or root is exact; only then a number is rounded, once.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};

use super::{
    Analysis, AnalysisResult, Column, End, Estimate, Figure, Group, Interval, Statistic, Stats,
    inference,
    moments::{Moments, Variable},
};
use crate::number::Scaled;

pub(super) const NO_ROWS: &str = "no rows";
const NO_DIVISOR: &str = "the sum that divides is 0";
const ONE_ROW: &str = "only one row";
pub(super) const CONSTANT: &str = "a column is constant";
pub(super) const SUPPRESSED: &str = "fewer rows than `min_count`";
pub(super) const NO_ERROR: &str = "the rows leave no error to test against";
const NO_TEST: &str = "a test takes three rows, an interval four";
const NO_INTERVAL: &str = "an interval takes four rows";

/// The answer to an analysis, from the moments of its groups in order.
pub(super) fn derive(stats: &Stats, analysis: &Analysis, moments: &[Moments]) -> AnalysisResult {
    let counted = counts_rows(stats, analysis);
    let context = Context::new(&stats.columns, analysis, counted);
    let used = if counted {
        moments.iter().map(|moments| moments.at(0, 0)).sum()
    } else {
        i128::from(stats.rows())
    };
    let groups = (stats.groups(analysis).iter().zip(moments))
        .map(|(group, moments)| Group {
            values: stats.values(analysis, group),
            figures: context.shown(moments),
        })
        .collect();
    AnalysisResult {
        name: analysis.name.clone(),
        statistic: analysis.statistic.name(),
        about: context.about(),
        by: stats.names(&analysis.by),
        incomplete: None,
        min_count: analysis.min_count,
        rows_used: u64::try_from(used).ok(),
        groups,
    }
}

/// Whether the number of rows of every group is among the moments.
fn counts_rows(stats: &Stats, analysis: &Analysis) -> bool {
    analysis
        .needs(
            analysis.variables(&stats.columns).len(),
            stats.may_drop(analysis),
        )
        .contains(&(0, 0))
}

/// An analysis over columns.
pub(super) struct Context<'a> {
    pub(super) columns: &'a [Column],
    analysis: &'a Analysis,
    pub(super) variables: Vec<Variable>,
    /// Whether the number of rows of every group is among the moments.
    counted: bool,
}

impl<'a> Context<'a> {
    pub(super) fn new(columns: &'a [Column], analysis: &'a Analysis, counted: bool) -> Self {
        Self {
            columns,
            analysis,
            variables: analysis.variables(columns),
            counted,
        }
    }

    /// What the analysis is about, in words.
    pub(super) fn about(&self) -> String {
        let name = |column: usize| self.columns[column].name.as_str();
        match &self.analysis.statistic {
            Statistic::Count(None) => "number of rows".into(),
            Statistic::Count(Some(of)) => format!("rows with {}", name(*of)),
            Statistic::Covariance(a, b) | Statistic::Correlation(a, b) => {
                format!(
                    "{} of {} and {}",
                    self.analysis.statistic.name(),
                    name(*a),
                    name(*b)
                )
            }
            Statistic::Ratio(a, b) => format!("sum of {} over sum of {}", name(*a), name(*b)),
            Statistic::Extreme(End::Smallest, of) => format!("smallest {}", name(*of)),
            Statistic::Extreme(End::Largest, of) => format!("largest {}", name(*of)),
            Statistic::MeanOnly { of, .. } => format!("mean of {}", name(*of)),
            Statistic::Regression { of, on } => {
                let on: Vec<&str> = on.iter().map(|&column| name(column)).collect();
                format!("least squares of {} on {}", name(*of), on.join(", "))
            }
            other => {
                let of: Vec<&str> = other.columns().into_iter().map(name).collect();
                format!("{} of {}", other.name(), of.join(", "))
            }
        }
    }

    pub(super) fn scale(&self, variable: usize) -> u8 {
        self.variables[variable].scale(self.columns)
    }

    pub(super) fn unit(&self, variable: usize) -> Option<String> {
        match self.variables[variable] {
            Variable::Value(column) => self.columns[column].unit().map(str::to_owned),
            Variable::Cell(..) => None,
        }
    }

    /// The figures of a group, unless it is suppressed: then all that was opened of it is zero.
    pub(super) fn shown(&self, moments: &Moments) -> Vec<Figure> {
        let mut figures = self.figures(moments);
        if self.analysis.min_count.is_some() && moments.at(0, 0) == 0 {
            for figure in &mut figures {
                figure.estimate = Estimate::Undefined(SUPPRESSED);
                (figure.standard_error, figure.untested) = (None, None);
                (figure.test, figure.interval) = (None, None);
            }
        }
        figures
    }

    fn figures(&self, moments: &Moments) -> Vec<Figure> {
        let count = figure(
            "count",
            Estimate::Exact(Scaled {
                value: moments.at(0, 0),
                scale: 0,
            }),
        );
        match self.analysis.statistic {
            Statistic::Count(_) | Statistic::Histogram { .. } => vec![count],
            Statistic::Sum(_) => {
                let sum = Scaled {
                    value: moments.at(0, 1),
                    scale: self.scale(0),
                };
                let sum = Figure {
                    unit: self.unit(0),
                    ..figure("sum", Estimate::Exact(sum))
                };
                if self.counted {
                    vec![count, sum]
                } else {
                    vec![sum]
                }
            }
            Statistic::Mean(_) => vec![count, self.mean("mean", moments, 0)],
            Statistic::Ratio(..) if self.counted => vec![count, self.ratio(moments)],
            Statistic::Ratio(..) => vec![self.ratio(moments)],
            Statistic::Variance(_) => {
                let variance = self.covariance(moments, 0, 0);
                let deviation = root(&variance);
                let mut mean = self.mean("mean", moments, 0);
                mean.standard_error = deviation
                    .value()
                    .map(|value| value / (moments.at(0, 0) as f64).sqrt());
                match moments.at(0, 0) {
                    0 => {}
                    1 => mean.untested = Some(ONE_ROW),
                    rows => self.about_it(&mut mean, rows - 1),
                }
                let unit = self.unit(0);
                let square = unit.as_ref().map(|unit| format!("{unit}²"));
                vec![
                    count,
                    mean,
                    Figure {
                        unit: square,
                        ..figure("variance", variance)
                    },
                    Figure {
                        unit,
                        ..figure("standard deviation", deviation)
                    },
                ]
            }
            Statistic::Covariance(..) => {
                let unit = match (self.unit(0), self.unit(1)) {
                    (Some(a), Some(b)) => Some(format!("{a}·{b}")),
                    (a, b) => a.or(b),
                };
                let covariance = self.covariance(moments, 0, 1);
                vec![
                    count,
                    Figure {
                        unit,
                        ..figure("covariance", covariance)
                    },
                ]
            }
            Statistic::Correlation(..) => vec![count, self.correlation(moments)],
            Statistic::Regression { .. } => self.regression(count, moments),
            // Their answers are opened, not derived.
            Statistic::MeanOnly { .. } | Statistic::Extreme(..) | Statistic::Quantiles { .. } => {
                Vec::new()
            }
        }
    }

    fn mean(&self, name: &str, moments: &Moments, variable: usize) -> Figure {
        let estimate = match moments.at(0, 0) {
            0 => Estimate::Undefined(NO_ROWS),
            rows => rounded(&self.unscaled(&ratio(moments.at(0, variable + 1), rows), &[variable])),
        };
        match (self.variables[variable], estimate) {
            (Variable::Value(column), Estimate::Rounded(day)) if self.columns[column].is_date() => {
                figure(name, Estimate::Date(day))
            }
            (_, estimate) => Figure {
                unit: self.unit(variable),
                ..figure(name, estimate)
            },
        }
    }

    /// A sum over another.
    fn ratio(&self, moments: &Moments) -> Figure {
        let estimate = match moments.at(0, 2) {
            0 => Estimate::Undefined(NO_DIVISOR),
            below => {
                let value = ratio(moments.at(0, 1), below) / power_of_ten(self.scale(0));
                rounded(&(value * power_of_ten(self.scale(1))))
            }
        };
        let unit = match (self.unit(0), self.unit(1)) {
            (Some(a), Some(b)) => Some(format!("{a}/{b}")),
            (a, None) => a,
            (None, _) => None,
        };
        Figure {
            unit,
            ..figure("ratio", estimate)
        }
    }

    /// Gives an estimate with a standard error its interval.
    pub(super) fn about_it(&self, figure: &mut Figure, freedom: i128) {
        let (Some(value), Some(error)) = (figure.estimate.value(), figure.standard_error) else {
            return;
        };
        let freedom = u64::try_from(freedom).unwrap_or(u64::MAX);
        let ends = inference::t_interval(value, error, freedom, self.analysis.confidence);
        let date = matches!(figure.estimate, Estimate::Date(_));
        figure.interval = ends.map(|ends| self.interval(ends, date));
    }

    fn interval(&self, (low, high): (f64, f64), date: bool) -> Interval {
        let end = |value| {
            if date {
                Estimate::Date(value)
            } else {
                Estimate::Rounded(value)
            }
        };
        Interval {
            confidence: self.analysis.confidence,
            low: end(low),
            high: end(high),
        }
    }

    /// Pearson's correlation; `t = r sqrt((n - 2) / (1 - r²))` has `n - 2` degrees of freedom where the columns are normal and not correlated.
    fn correlation(&self, moments: &Moments) -> Figure {
        let mut figure = figure("correlation", correlation(moments));
        let (Some(value), Ok(rows)) = (figure.estimate.value(), u64::try_from(moments.at(0, 0)))
        else {
            return figure;
        };
        // Exactly 1 or -1 where one column is a linear function of the other, by the sums and not by their quotient.
        let (both, a, b) = spreads(moments);
        if &both * &both == a * b {
            figure.untested = Some(NO_ERROR);
            return figure;
        }
        let Some(freedom) = rows.checked_sub(2).filter(|freedom| *freedom > 0) else {
            figure.untested = Some(NO_TEST);
            return figure;
        };
        let error = ((1.0 - value * value) / freedom as f64).sqrt();
        figure.test = inference::t_test(value, error, freedom);
        match inference::correlation_interval(value, rows, self.analysis.confidence) {
            Some(ends) => figure.interval = Some(self.interval(ends, false)),
            None => figure.untested = Some(NO_INTERVAL),
        }
        figure
    }

    /// `(n S_ij - S_i S_j) / (n (n - 1))`, unbiased.
    fn covariance(&self, moments: &Moments, i: usize, j: usize) -> Estimate {
        let rows = BigInt::from(moments.at(0, 0));
        match moments.at(0, 0) {
            0 => Estimate::Undefined(NO_ROWS),
            1 => Estimate::Undefined(ONE_ROW),
            _ => {
                let below = &rows * (&rows - 1);
                rounded(&self.unscaled(&BigRational::new(spread(moments, i, j), below), &[i, j]))
            }
        }
    }

    /// Divides by the units of the given variables.
    fn unscaled(&self, value: &BigRational, variables: &[usize]) -> BigRational {
        variables.iter().fold(value.clone(), |value, &variable| {
            value / power_of_ten(self.scale(variable))
        })
    }
}

/// `n S_ij - S_i S_j`: covariance times `n^2`, or `n (n - 1)` for a sample.
pub(super) fn spread(moments: &Moments, i: usize, j: usize) -> BigInt {
    let of = |i: usize, j: usize| BigInt::from(moments.at(i, j));
    of(0, 0) * of(i + 1, j + 1) - of(0, i + 1) * of(0, j + 1)
}

/// Those of both columns of a correlation, and of each.
fn spreads(moments: &Moments) -> (BigInt, BigInt, BigInt) {
    (
        spread(moments, 0, 1),
        spread(moments, 0, 0),
        spread(moments, 1, 1),
    )
}

fn correlation(moments: &Moments) -> Estimate {
    match moments.at(0, 0) {
        0 => return Estimate::Undefined(NO_ROWS),
        1 => return Estimate::Undefined(ONE_ROW),
        _ => {}
    }
    let (both, a, b) = spreads(moments);
    if a.is_zero() || b.is_zero() {
        return Estimate::Undefined(CONSTANT);
    }
    let square = BigRational::new(&both * &both, a * b);
    match root(&rounded(&square)) {
        Estimate::Rounded(value) if both.sign() == num_bigint::Sign::Minus => {
            Estimate::Rounded(-value)
        }
        other => other,
    }
}

pub(super) fn figure(name: &str, estimate: Estimate) -> Figure {
    Figure {
        name: name.to_owned(),
        estimate,
        standard_error: None,
        test: None,
        interval: None,
        untested: None,
        unit: None,
    }
}

pub(super) fn ratio(above: i128, below: i128) -> BigRational {
    BigRational::new(above.into(), below.into())
}

pub(super) fn power_of_ten(scale: u8) -> BigRational {
    BigRational::from(BigInt::from(10).pow(u32::from(scale)))
}

pub(super) fn rounded(value: &BigRational) -> Estimate {
    match value.to_f64() {
        Some(value) if value.is_finite() => Estimate::Rounded(value),
        _ => Estimate::Undefined("beyond the range of floating-point numbers"),
    }
}

pub(super) fn root(value: &Estimate) -> Estimate {
    match value {
        // An exact variance is never negative.
        Estimate::Rounded(value) => Estimate::Rounded(value.max(0.0).sqrt()),
        other => other.clone(),
    }
}
