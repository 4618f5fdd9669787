//! The answer to a statistics job.

use serde::{Serialize, Serializer};

use super::{Interval, Test};
use crate::{Paired, date, number::Scaled};
use veil_job::Guarantee;

/// The result of one recipient.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StatsResult {
    /// Name of the job.
    pub job: String,
    /// Who it is for.
    pub recipient: String,
    /// Rows of all blocks; nothing of tables, whose rows are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Answers, as the job lists the questions.
    pub analyses: Vec<AnalysisResult>,
    /// Every number that was opened to this recipient: all that it learns.
    pub opened: Vec<Opened>,
    /// Why the rows of several owners are rows of the same people, for each block that has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paired: Vec<Paired>,
    /// The guarantee of the run; nothing, if it was computed in the clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<Guarantee>,
}

/// An opened number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Opened {
    /// The opened value, in words.
    pub what: String,
    /// The number, exactly; nothing where a mean or an extreme has no rows, or fewer than its group needs.
    #[serde(serialize_with = "exact_or_nothing")]
    pub value: Option<Scaled>,
}

/// The answer to one question.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AnalysisResult {
    /// Name in the job.
    pub name: String,
    /// The statistic: `mean`, `regression` …
    pub statistic: &'static str,
    /// The subject, in words.
    pub about: String,
    /// Columns that make the groups.
    pub by: Vec<String>,
    /// Rows that a group needs to be shown, if there is such a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_count: Option<u64>,
    /// Whether a bound on the rows of a query that it reads has left out rows; nothing where no bound says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<bool>,
    /// Rows that count in some group that is shown: rows in which no needed value is missing. Nothing if that is not opened.
    pub rows_used: Option<u64>,
    /// One answer for each group.
    pub groups: Vec<Group>,
}

impl AnalysisResult {
    /// Whether rows are missing.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete == Some(true)
    }
}

/// The answer for one group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Group {
    /// Values of the columns that make the groups, in order; empty for all rows.
    pub values: Vec<String>,
    /// The numbers.
    pub figures: Vec<Figure>,
}

/// One number of an answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// The figure's name: `count`, `mean`, a regressor …
    pub name: String,
    /// Its value.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Standard error, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// The test whether it is 0, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<Test>,
    /// The interval about it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Why there is neither a test nor an interval, or only one of them, where other rows would have both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untested: Option<&'static str>,
    /// Unit, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// A number, exact where it can be.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Estimate {
    /// An integer or a decimal, exactly as it was opened. A mean that the parties divided is rounded, by them.
    #[serde(serialize_with = "exact")]
    Exact(Scaled),
    /// Rounded to a floating-point number from exact sums.
    Rounded(f64),
    /// A mean of dates, in days since 1970-01-01 as they were averaged; shown as the day that it is in.
    #[serde(serialize_with = "date")]
    Date(f64),
    /// Not defined for these rows, and why.
    Undefined(&'static str),
}

impl Estimate {
    /// The nearest floating-point number, if it is defined.
    pub fn value(&self) -> Option<f64> {
        match self {
            Estimate::Exact(scaled) => scaled.to_string().parse().ok(),
            Estimate::Rounded(value) | Estimate::Date(value) => Some(*value),
            Estimate::Undefined(_) => None,
        }
    }
}

/// As text: numbers of JSON lose digits beyond 53 bits in many readers.
fn exact<S: Serializer>(value: &Scaled, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[expect(clippy::ref_option, reason = "serde's signature")]
fn exact_or_nothing<S: Serializer>(
    value: &Option<Scaled>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// The day that a mean of dates is in.
pub(super) fn day_of(days: f64) -> String {
    date::show(days.floor() as i64)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn date<S: Serializer>(days: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&day_of(*days))
}
