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
    solve::invert,
};
use crate::number::Scaled;

pub(super) const NO_ROWS: &str = "no rows";
const NO_DIVISOR: &str = "the sum that divides is 0";
const ONE_ROW: &str = "only one row";
const CONSTANT: &str = "a column is constant";
const DEPENDENT: &str = "the regressors are linearly dependent in these rows";
pub(super) const SUPPRESSED: &str = "fewer rows than `min_count`";
const FEW_ROWS: &str = "not more rows than coefficients";
const NO_ERROR: &str = "the rows leave no error to test against";
const NO_TEST: &str = "a test takes three rows, an interval four";
const NO_INTERVAL: &str = "an interval takes four rows";
/// The figures of a regression that are of all its coefficients.
pub(super) const OF_A_FIT: [&str; 4] = [
    "R squared",
    "adjusted R squared",
    "residual standard error",
    "F",
];

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
    columns: &'a [Column],
    analysis: &'a Analysis,
    variables: Vec<Variable>,
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

    fn scale(&self, variable: usize) -> u8 {
        self.variables[variable].scale(self.columns)
    }

    fn unit(&self, variable: usize) -> Option<String> {
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
    fn about_it(&self, figure: &mut Figure, freedom: i128) {
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

    /// `beta = (X'X)^-1 X'y`, residual variance `(y'y - beta' X'y) / (n - p)`, standard errors from the diagonal of the
    /// inverse.
    fn regression(&self, count: Figure, moments: &Moments) -> Vec<Figure> {
        let last = moments.variables();
        let size = last; // the constant and every regressor
        let names = ["intercept".to_owned()].into_iter().chain(
            self.variables[..last - 1]
                .iter()
                .map(|variable| variable.name(self.columns)),
        );
        let undefined = |reason| {
            let fit = OF_A_FIT.map(str::to_owned);
            let all = fit.into_iter().chain(names.clone());
            let figures = all.map(|name| figure(&name, Estimate::Undefined(reason)));
            std::iter::once(count.clone()).chain(figures).collect()
        };
        let rows = moments.at(0, 0);
        if rows == 0 {
            return undefined(NO_ROWS);
        }
        let gram: Vec<Vec<BigInt>> = (0..size)
            .map(|i| (0..size).map(|j| moments.at(i, j).into()).collect())
            .collect();
        let Some((adjugate, determinant)) = invert(&gram) else {
            return undefined(DEPENDENT);
        };
        let right: Vec<BigInt> = (0..size).map(|i| moments.at(i, last).into()).collect();
        let dot = |row: &[BigInt]| row.iter().zip(&right).map(|(a, b)| a * b).sum::<BigInt>();
        let coefficients: Vec<BigRational> = adjugate
            .iter()
            .map(|row| BigRational::new(dot(row), determinant.clone()))
            .collect();
        let explained: BigRational = coefficients
            .iter()
            .zip(&right)
            .map(|(beta, right)| beta * right)
            .sum();
        let residual = BigRational::from(BigInt::from(moments.at(last, last))) - explained;

        // In units of the data: the target's scale, and each regressor's.
        let target = power_of_ten(self.scale(last - 1));
        let scale = |index: usize| match index {
            0 => power_of_ten(0),
            index => power_of_ten(self.scale(index - 1)),
        };
        let total = ratio(1, rows) * spread(moments, last - 1, last - 1);
        let freedom = rows - size as i128;
        let variance = (freedom > 0).then(|| &residual / BigInt::from(freedom));
        let deviation = match &variance {
            None => Estimate::Undefined(FEW_ROWS),
            Some(variance) => root(&rounded(&(variance / &target / &target))),
        };
        let unit = self.unit(last - 1);
        let [fit, adjusted, all] = fit(&total, &residual, rows, size);
        let mut figures = vec![
            count,
            fit,
            adjusted,
            Figure {
                unit: unit.clone(),
                ..figure("residual standard error", deviation)
            },
            all,
        ];
        for (index, (name, coefficient)) in names.zip(&coefficients).enumerate() {
            let standard_error = variance.as_ref().and_then(|variance| {
                let own = BigRational::new(adjugate[index][index].clone(), determinant.clone());
                let scaled = variance * own * scale(index) * scale(index) / &target / &target;
                root(&rounded(&scaled)).value()
            });
            let estimate = rounded(&(coefficient * scale(index) / &target));
            let per = match index.checked_sub(1).and_then(|index| self.unit(index)) {
                Some(own) => unit.as_ref().map(|unit| format!("{unit}/{own}")),
                None => unit.clone(),
            };
            let mut coefficient = Figure {
                standard_error,
                unit: per,
                ..figure(&name, estimate)
            };
            match u64::try_from(freedom) {
                Ok(free) if free > 0 && !residual.is_zero() => {
                    let value = coefficient.estimate.value().zip(standard_error);
                    coefficient.test =
                        value.and_then(|(value, error)| inference::t_test(value, error, free));
                    self.about_it(&mut coefficient, freedom);
                }
                Ok(free) if free > 0 => coefficient.untested = Some(NO_ERROR),
                _ => coefficient.untested = Some(FEW_ROWS),
            }
            figures.push(coefficient);
        }
        figures
    }
}

/// `n S_ij - S_i S_j`: covariance times `n^2`, or `n (n - 1)` for a sample.
fn spread(moments: &Moments, i: usize, j: usize) -> BigInt {
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

/// How well all regressors explain: R² `= 1 - RSS / TSS`, adjusted `1 - (RSS / (n - p)) / (TSS / (n - 1))`, and
/// `F = ((TSS - RSS) / (p - 1)) / (RSS / (n - p))`, with `p` coefficients of which one is the intercept.
fn fit(total: &BigRational, residual: &BigRational, rows: i128, size: usize) -> [Figure; 3] {
    let figure = |at: usize, estimate| figure(OF_A_FIT[at], estimate);
    let undefined = |reason| Estimate::Undefined(reason);
    if total.is_zero() {
        return [0, 1, 3].map(|at| figure(at, undefined(CONSTANT)));
    }
    let unexplained = residual / total;
    let first = figure(0, rounded(&(ratio(1, 1) - &unexplained)));
    let (above, below) = (size as i128 - 1, rows - size as i128);
    if below <= 0 {
        let [adjusted, all] = [1, 3].map(|at| figure(at, undefined(FEW_ROWS)));
        return [first, adjusted, all];
    }
    let adjusted = ratio(1, 1) - &unexplained * ratio(rows - 1, below);
    let adjusted = figure(1, rounded(&adjusted));
    if residual.is_zero() {
        return [first, adjusted, figure(3, undefined(NO_ERROR))];
    }
    let all = (total - residual) / residual * ratio(below, above);
    let mut all = figure(3, rounded(&all));
    let (above, below) = (above as u64, u64::try_from(below).unwrap_or(u64::MAX));
    let value = all.estimate.value();
    all.test = value.and_then(|value| inference::f_test(value, above, below));
    [first, adjusted, all]
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

fn ratio(above: i128, below: i128) -> BigRational {
    BigRational::new(above.into(), below.into())
}

fn power_of_ten(scale: u8) -> BigRational {
    BigRational::from(BigInt::from(10).pow(u32::from(scale)))
}

fn rounded(value: &BigRational) -> Estimate {
    match value.to_f64() {
        Some(value) if value.is_finite() => Estimate::Rounded(value),
        _ => Estimate::Undefined("beyond the range of floating-point numbers"),
    }
}

fn root(value: &Estimate) -> Estimate {
    match value {
        // An exact variance is never negative.
        Estimate::Rounded(value) => Estimate::Rounded(value.max(0.0).sqrt()),
        other => other.clone(),
    }
}
