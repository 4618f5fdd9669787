//! Why a query is refused, with its place in the text.

use std::fmt;

use veil_relation::{ConsentError, PlanError, RangeError, SchemaError, TypeError};

use crate::apply::ApplyError;

/// A place in the text of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
}

/// What is wrong at a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text is no SQL.
    #[error("{message}")]
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// The text is longer or nested deeper than a query may be.
    #[error("a query has at most {most} {of}")]
    TooLarge {
        /// The limit.
        most: usize,
        /// Of what.
        of: &'static str,
    },
    /// SQL that is not in the dialect, or not with this meaning.
    #[error("{what}")]
    Refused {
        /// What is refused, as a sentence.
        what: String,
        /// How to say it, where there is a way.
        instead: Option<&'static str>,
    },
    /// A name of no table, query or common table expression.
    #[error("there is no table `{name}`")]
    NoTable {
        /// The name.
        name: String,
    },
    /// A name of no column.
    #[error("there is no column `{name}`")]
    NoColumn {
        /// The name, with its table if it has one.
        name: String,
    },
    /// The standard errors of a model that has none.
    #[error(
        "there are no standard errors: coefficients that are penalised, or are fitted by gradient descent, have none"
    )]
    NoStandardErrors,
    /// A name of several columns.
    #[error("`{name}` is the name of several columns; write the table before it")]
    Ambiguous {
        /// The name.
        name: String,
    },
    /// A column that is neither grouped nor aggregated.
    #[error("column `{name}` is neither in GROUP BY nor in an aggregate")]
    NotGrouped {
        /// The name.
        name: String,
    },
    /// A name of no function of the dialect.
    #[error("there is no function `{name}` in the dialect")]
    NoFunction {
        /// The name.
        name: String,
    },
    /// A name of no model of the job.
    #[error("the job has no model `{name}`: it is declared as [model.{name}]")]
    NoModel {
        /// The name.
        name: String,
    },
    /// A function of the job, of what it may have no value for.
    #[error("`{name}(x)` has values for {known}; x is {found}")]
    NoValue {
        /// Its name.
        name: String,
        /// What it has values for.
        known: String,
        /// What the argument may be.
        found: String,
        /// How to say it.
        instead: String,
    },
    /// An expression without a type.
    #[error(transparent)]
    Type(TypeError),
    /// An operator that is not formed as it must be.
    #[error(transparent)]
    Plan(PlanError),
    /// An owner's words about a column forbid a use of it.
    #[error(transparent)]
    Consent(ConsentError),
}

impl Problem {
    /// The refusal of a range that it is, if it is one.
    #[must_use]
    pub fn range(&self) -> Option<&RangeError> {
        match self {
            Self::Type(TypeError::Range(error)) => Some(error),
            Self::Plan(error) => error.range(),
            _ => None,
        }
    }
}

/// Why a query is refused. Its text has the line with a caret under the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The query's name.
    pub query: String,
    /// Where.
    pub place: Place,
    /// The line.
    pub excerpt: String,
    /// What is wrong.
    pub problem: Box<Problem>,
}

impl std::error::Error for SqlError {}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        writeln!(
            f,
            "query `{}`, line {line}, column {column}: {}",
            self.query, self.problem
        )?;
        writeln!(f, "  {}", self.excerpt)?;
        // Tabs stay tabs, so that the caret stands under its character.
        let before = self.excerpt.chars().take(column as usize - 1);
        let indent: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        write!(f, "  {indent}^")?;
        match &*self.problem {
            Problem::Refused {
                instead: Some(instead),
                ..
            } => write!(f, "\n  {instead}"),
            Problem::NoValue { instead, .. } => write!(f, "\n  {instead}"),
            problem => match problem.range().map(RangeError::instead) {
                Some(instead) if !instead.is_empty() => write!(f, "\n  {instead}"),
                _ => Ok(()),
            },
        }
    }
}

/// Why a job's queries are no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A query is refused.
    #[error(transparent)]
    Sql(Box<SqlError>),
    /// A table is none.
    #[error(transparent)]
    Table(#[from] SchemaError),
    /// Names, bounds or minimal counts of the job that fit no query.
    #[error("{name}: {what}")]
    Job {
        /// The query or bound.
        name: String,
        /// What is wrong.
        what: &'static str,
    },
    /// No network is applied to the rows of a query.
    #[error("{name}: {why}")]
    Apply {
        /// The query.
        name: String,
        /// Why not.
        why: ApplyError,
    },
    /// An owner's words about a column forbid a use of it, whose place in a query is not known.
    #[error(transparent)]
    Consent(ConsentError),
    /// The program as a whole is none.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl From<SqlError> for QueryError {
    fn from(error: SqlError) -> Self {
        Self::Sql(Box::new(error))
    }
}

impl QueryError {
    /// The refusal of a range that it is, if it is one.
    #[must_use]
    pub fn range(&self) -> Option<&RangeError> {
        match self {
            Self::Sql(error) => error.problem.range(),
            Self::Plan(error) => error.range(),
            _ => None,
        }
    }
}
