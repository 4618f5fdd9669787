//! Why a plan is not one.

use crate::apply::MOST_SCORE_PLACES;
use crate::range_error::RangeError;
use crate::schema::{MOST_ROWS, SchemaError};
use crate::typing::TypeError;

/// Why a plan is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// An expression without a type.
    #[error("in {operator}: {source}")]
    Type {
        /// The operator.
        operator: &'static str,
        /// What is wrong.
        source: TypeError,
    },
    /// A table that the program does not have.
    #[error("there is no table `{0}`")]
    NoTable(String),
    /// A step that is not before this one, or that opens its relation.
    #[error("there is no earlier step `{0}` whose relation may be read")]
    NoStep(String),
    /// Two tables or steps have one name.
    #[error("two tables or queries have the name `{0}`; rename one")]
    TwoNames(String),
    /// A table that is not one.
    #[error("{0}")]
    Table(String),
    /// Relations of a union whose columns differ.
    #[error("the relations of a union differ in column {column}: {left} and {right}")]
    Union {
        /// The first column that differs, from 1.
        column: usize,
        /// The kind in the first relation.
        left: String,
        /// The kind in the other relation.
        right: String,
    },
    /// Keys of a join of two kinds.
    #[error("a join compares {left} with {right}")]
    JoinKeys {
        /// The kind of the left key.
        left: String,
        /// The kind of the right key.
        right: String,
    },
    /// An aggregate, window or key of a kind that it does not take.
    #[error("{function} does not take a {kind}")]
    Argument {
        /// The function or operator.
        function: &'static str,
        /// The kind of its argument.
        kind: String,
    },
    /// An aggregate or window that is refused for the range of its argument.
    #[error("{0}")]
    Range(Box<RangeError>),
    /// More rows than positions.
    #[error("a relation of {rows} rows is too large: {MOST_ROWS} are the most; bound it")]
    TooLong {
        /// Its capacity.
        rows: u64,
    },
    /// A model that cannot be fitted.
    #[error(transparent)]
    Fit(#[from] veil_learn::FitError),
    /// A model of more rows than there are.
    #[error(
        "a model of at least {needed} rows is fitted to at most {rows}; lower `min_count`, or fit fewer features"
    )]
    FewRows {
        /// Rows, at most.
        rows: u64,
        /// The fewest.
        needed: u32,
    },
    /// A step of gradient descent that is of fewer rows than a model is to have.
    #[error(
        "a step of this model is of as few as {rows} rows, those of a batch, and a model is of at least {needed}: choose larger batches, or lower `min_count`"
    )]
    SmallBatch {
        /// Places for rows of the smallest batch.
        rows: u32,
        /// The fewest rows of the model.
        needed: u32,
    },
    /// Fewer or more features than those of a network.
    #[error("network `{network}` has {features} features, and is applied to {found}")]
    Features {
        /// The network.
        network: String,
        /// Those of the network.
        features: usize,
        /// Those that it is applied to.
        found: usize,
    },
    /// A feature of a network that is no number.
    #[error(
        "feature `{feature}` of network `{network}` is a number or a condition, and not {kind}"
    )]
    Feature {
        /// The network.
        network: String,
        /// The feature.
        feature: String,
        /// The kind of the expression in its place.
        kind: String,
    },
    /// More decimal places than a network gives.
    #[error("what a network gives has up to {MOST_SCORE_PLACES} decimal places, and not {0}")]
    ScorePlaces(u32),
    /// An output of a network that is no name of a column.
    #[error(
        "`{name}`, which network `{network}` gives, is no name of a column: lower-case letters, digits and `_`, a letter first"
    )]
    OutputName {
        /// The network.
        network: String,
        /// The output.
        name: String,
    },
    /// An output of a network that has the name of a column.
    #[error(
        "network `{network}` gives a column `{name}`, and its rows have one of this name; rename that one"
    )]
    OutputTaken {
        /// The network.
        network: String,
        /// The name.
        name: String,
    },
    /// Weights that are not those of a network.
    #[error("weights of network `{network}`: {what}")]
    Weights {
        /// The network.
        network: String,
        /// What is wrong.
        what: String,
    },
    /// A network whose name is none.
    #[error("`{0}` is no name of a model: lower-case letters, digits and `_`, a letter first")]
    ModelName(String),
    /// A part of an operator that is not formed as it must be.
    #[error("{operator}: {what}")]
    Form {
        /// The operator.
        operator: &'static str,
        /// What is wrong.
        what: &'static str,
    },
}

impl From<SchemaError> for PlanError {
    fn from(error: SchemaError) -> Self {
        Self::Table(error.to_string())
    }
}

impl PlanError {
    /// The refusal of a range that it is, if it is one.
    #[must_use]
    pub fn range(&self) -> Option<&RangeError> {
        match self {
            Self::Range(error)
            | Self::Type {
                source: TypeError::Range(error),
                ..
            } => Some(error),
            _ => None,
        }
    }
}
