//! `policy.toml`: what may run without asking a person again, and what may not run at all.
//!
//! Rules are tried in order, and the first that fits a job decides. A rule that allows fits if *everything* the job does is within it; a
//! rule that refuses fits if the job does *anything* that it lists. If none fits, a person decides. Properties that a rule cannot see count
//! against the job: a rule that lists columns allows no job that reads something else than columns with names, and refuses it if it
//! refuses.

mod facts;
mod judge;
mod read;
mod within;

use std::collections::BTreeSet;

use serde::Serialize;

pub use facts::{Facts, InputFact};
pub use judge::{Asked, Judgement, Runs};
pub use read::fuzz_policy;

/// The standing policy of a participant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Its rules, in order.
    pub rules: Vec<Rule>,
}

/// The effect of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The job may run.
    Allow,
    /// A person decides.
    Ask,
    /// The job may not run, even if a person approves it.
    Refuse,
}

/// One rule. A list or a limit that is absent says nothing; but a rule that allows does not fit jobs that use stored data
/// sets, or keep some, unless it says so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rule {
    /// Its name, for decisions and the log.
    pub name: String,
    /// Its effect.
    pub effect: Effect,
    /// Who asks: names of members, or `me`.
    pub asked_by: Option<BTreeSet<String>>,
    /// As what this participant takes part: `party`, `owner`, `recipient`.
    pub roles: Option<BTreeSet<String>>,
    /// Names of jobs; a `*` at the end stands for anything.
    pub jobs: Option<BTreeSet<String>>,
    /// Kinds of analyses, what queries do, `circuit`, or `reshare`.
    pub operations: Option<BTreeSet<String>>,
    /// Circuits: the name of one that `veil` makes, or `sha256:` and the hash.
    pub circuits: Option<BTreeSet<String>>,
    /// Columns that are read.
    pub columns: Option<BTreeSet<String>>,
    /// Columns that queries join on, as `table.column`.
    pub join_on: Option<BTreeSet<String>>,
    /// Columns that queries group by.
    pub group_by: Option<BTreeSet<String>>,
    /// Columns that decide which rows of a query count.
    pub filters_on: Option<BTreeSet<String>>,
    /// Stored data sets.
    pub datasets: Option<BTreeSet<String>>,
    /// Assumptions beyond those of every run.
    pub assumptions: Option<BTreeSet<String>>,
    /// To whom something is opened.
    pub to: Option<BTreeSet<String>>,
    /// Sets of computing parties.
    pub parties: Option<Vec<BTreeSet<String>>>,
    /// Whether jobs may keep shares.
    pub keep: bool,
    /// Rows that every block has at least.
    pub min_rows: Option<u64>,
    /// Rows per group that there are at least on average.
    pub min_rows_per_group: Option<u64>,
    /// Rows that every group needs to be shown, at least.
    pub min_count: Option<u64>,
    /// Rows that the job has at most.
    pub max_rows: Option<u64>,
    /// Rows that a query opens at most.
    pub max_result_rows: Option<u64>,
    /// Runs in 24 hours by this rule, at most.
    pub per_day: Option<u64>,
    /// Runs of jobs of one name by this rule, ever, at most.
    pub per_job: Option<u64>,
    /// Runs by this rule, ever, of jobs of one asker that have a query of one family, at most.
    pub per_family: Option<u64>,
    /// The adversary against which the protocol holds, at least.
    pub adversary: Option<String>,
    /// A cheat gets away with probability 2 to the minus this at most, where the protocol has such a parameter.
    pub statistical: Option<u64>,
    /// The least promise about the result.
    pub delivery: Option<String>,
}

/// What rules call the participant whose policy it is. No other participant may be called so.
pub(crate) const ME: &str = "me";

/// The words of a choice.
fn words<W: veil_job::Word>() -> Vec<&'static str> {
    W::ALL.iter().map(|choice| choice.word()).collect()
}

/// What a job may compute, as rules name it.
const OPERATIONS: [&str; 29] = [
    "count",
    "sum",
    "mean",
    "ratio",
    "mean-only",
    "min",
    "max",
    "variance",
    "covariance",
    "correlation",
    "regression",
    "clusters",
    "components",
    "tree",
    "network",
    "filter",
    "join",
    "group-by",
    "distinct",
    "sort",
    "top-k",
    "window",
    "quantile",
    "intersect",
    "select-rows",
    "open-size",
    "flag-overflow",
    "circuit",
    "reshare",
];
