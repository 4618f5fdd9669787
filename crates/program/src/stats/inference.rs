//! Tests and confidence intervals, from estimates and their standard errors.
//!
//! Everything here is computed by the recipient, from numbers that are opened anyway. Degrees of freedom are whole numbers; where there are too few of them,
//! nothing is computed, and a reason says so.

use std::fmt;

use serde::{Serialize, Serializer};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

use super::Estimate;
use crate::number::Scaled;

/// Digits after the point of a confidence level.
pub(super) const LEVEL_SCALE: u8 = 4;

/// The probability with which an interval contains what is estimated: at least one half and below 1, in units of 1/10000.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Confidence(u16);

impl Confidence {
    /// 95 %, which holds where a job says nothing.
    pub const USUAL: Self = Self(9500);

    /// The level in units of 1/10000, if it is one.
    pub fn new(units: i64) -> Option<Self> {
        let level = u16::try_from(units).ok()?;
        (5000..10_000).contains(&level).then_some(Self(level))
    }

    /// As a number below 1.
    pub fn level(self) -> f64 {
        f64::from(self.0) / 1e4
    }

    /// The quantile that leaves as much above an interval as below it.
    fn upper(self) -> f64 {
        f64::midpoint(1.0, self.level())
    }
}

impl fmt::Display for Confidence {
    /// In per cent, without needless digits: `95 %`, `99.5 %`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.0) / 1e2)
    }
}

impl Serialize for Confidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let level = Scaled {
            value: self.0.into(),
            scale: LEVEL_SCALE,
        };
        serializer.collect_str(&level)
    }
}

/// A test of the hypothesis that what is estimated is 0: a coefficient, a correlation, or all coefficients but the intercept.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Test {
    /// The statistic: `t` or `F`.
    pub statistic: &'static str,
    /// Its value.
    pub value: f64,
    /// Its degrees of freedom: one number for `t`, that of the numerator and that of the denominator for `F`.
    pub degrees_of_freedom: Vec<u64>,
    /// The probability of a value at least as extreme where the hypothesis holds: on both sides for `t`.
    pub p_value: f64,
}

/// An interval that contains what is estimated with a stated probability, where errors are normal.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// That probability.
    pub confidence: Confidence,
    /// Its lower end.
    pub low: Estimate,
    /// Its upper end.
    pub high: Estimate,
}

impl Interval {
    /// Both ends as floating-point numbers; nothing if one of them is not defined.
    pub fn ends(&self) -> Option<(f64, f64)> {
        Some((self.low.value()?, self.high.value()?))
    }
}

/// The test of an estimate with this standard error, by Student's distribution; nothing if the error is 0, since then the estimate is no random variable.
pub(super) fn t_test(estimate: f64, error: f64, freedom: u64) -> Option<Test> {
    let value = estimate / error;
    let student = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    (error > 0.0 && value.is_finite()).then(|| Test {
        statistic: "t",
        value,
        degrees_of_freedom: vec![freedom],
        p_value: (2.0 * student.cdf(-value.abs())).min(1.0),
    })
}

/// The ends of the interval about an estimate with this standard error, by Student's distribution.
pub(super) fn t_interval(
    estimate: f64,
    error: f64,
    freedom: u64,
    confidence: Confidence,
) -> Option<(f64, f64)> {
    let student = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    let half = student.inverse_cdf(confidence.upper()) * error;
    half.is_finite()
        .then_some((estimate - half, estimate + half))
}

/// The test of `F` with these degrees of freedom.
pub(super) fn f_test(value: f64, above: u64, below: u64) -> Option<Test> {
    let fisher = FisherSnedecor::new(above as f64, below as f64).ok()?;
    (value.is_finite() && value >= 0.0).then(|| Test {
        statistic: "F",
        value,
        degrees_of_freedom: vec![above, below],
        p_value: fisher.sf(value),
    })
}

/// The interval about a correlation of so many rows: the inverse hyperbolic tangent of it is normal, with variance `1 / (n - 3)`. Fisher, *On the "Probable Error"
/// of a Coefficient of Correlation Deduced from a Small Sample*, Metron 1, 1921. Nothing for fewer than four rows.
pub(super) fn correlation_interval(
    correlation: f64,
    rows: u64,
    confidence: Confidence,
) -> Option<(f64, f64)> {
    let freedom = rows.checked_sub(3).filter(|freedom| *freedom > 0)?;
    let half = Normal::standard().inverse_cdf(confidence.upper()) / (freedom as f64).sqrt();
    let middle = correlation.atanh();
    middle
        .is_finite()
        .then(|| ((middle - half).tanh(), (middle + half).tanh()))
}
