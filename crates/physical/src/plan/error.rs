//! Why a program has no physical plan, and where in the text of a query that is.

use veil_circuit::CircuitError;
use veil_relation::{At, Place, Plan, PlanError, RangeError, TypeError, first_written};

use crate::exprs::ExprError;

/// Why a program of the algebra has no physical plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PhysicalError {
    /// The program is none.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An expression has no circuit.
    #[error(transparent)]
    Expr(#[from] ExprError),
    /// An operator that parties do not compute.
    #[error("parties do not compute {what} yet; {instead}")]
    NotYet {
        /// The operator, in words.
        what: &'static str,
        /// What does nearly the same.
        instead: &'static str,
        /// Where it is written.
        at: At,
    },
    /// An owner or a recipient who takes no part.
    #[error("{what} `{name}` is no participant of the job")]
    Participant {
        /// The name.
        name: String,
        /// What they would be.
        what: &'static str,
    },
    /// A relation that cannot be kept.
    #[error("`{step}` cannot be kept: {why}")]
    Unkept {
        /// The step.
        step: String,
        /// What stands in the way.
        why: String,
    },
    /// A table without rows.
    #[error("table `{table}` has no rows; say how many it has at most")]
    Empty {
        /// The table.
        table: String,
    },
    /// What stands in the way of one query of several, or of a part of it that has a name.
    #[error("`{step}`: {error}")]
    Step {
        /// The query, or the named part.
        step: String,
        /// Where it is written.
        at: At,
        /// What stands in the way.
        error: Box<PhysicalError>,
    },
    /// Queries that are too large for one circuit of bits, as two parties compute them.
    #[error(
        "between two parties the queries are one circuit of bits, of at most {limit} gates, and they have more: {rows} rows of tables take some {ands} ANDs; ask of fewer rows or \
         columns, or name three parties, or four, who move rows instead"
    )]
    TooLarge {
        /// Rows of all tables.
        rows: u64,
        /// ANDs that there are so far, and that are known to come.
        ands: u64,
        /// Gates that a circuit may have.
        limit: u64,
    },
    /// What two parties do not compute.
    #[error("two parties do not {what}; name three parties, or four")]
    NotOfTwo {
        /// What it is.
        what: &'static str,
    },
    /// What parties do not compute whose columns are of bits alone.
    #[error(
        "three parties of whom one may be malicious compute queries in bits alone, and do not {what} in bits; name a fourth party, or write `adversary = \"semi-honest\"`"
    )]
    NotInBits {
        /// What it is.
        what: &'static str,
    },
    /// A defect of a planner.
    #[error("the query has no circuit: {0}; report this query")]
    Circuit(String),
}

impl From<TypeError> for PhysicalError {
    fn from(error: TypeError) -> Self {
        PhysicalError::Expr(error.into())
    }
}

impl From<CircuitError> for PhysicalError {
    fn from(error: CircuitError) -> Self {
        PhysicalError::Circuit(error.to_string())
    }
}

/// A refusal at a place in the text of a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The place.
    pub place: Place,
    /// What is wrong there.
    pub what: String,
    /// What to write instead, where there is a way.
    pub instead: Option<&'static str>,
    /// The refusal of a range, if it is one.
    pub range: Option<Box<RangeError>>,
}

impl PhysicalError {
    /// What is wrong at which place of a query's text; nothing for what no query says, and where places are not known.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refused(At(None))
    }

    /// The refusal of a range that it is, if it is one.
    pub fn range(&self) -> Option<&RangeError> {
        match self {
            PhysicalError::Step { error, .. } => error.range(),
            PhysicalError::Plan(error) => error.range(),
            PhysicalError::Expr(ExprError::Type(TypeError::Range(range))) => Some(range),
            _ => None,
        }
    }

    /// The same, at this place where a closer one is not known.
    fn refused(&self, within: At) -> Option<Refusal> {
        let (at, what, instead) = match self {
            PhysicalError::Step { at, error, .. } => return error.refused(at.or(within)),
            PhysicalError::NotYet { what, instead, at } => {
                let what = format!("parties do not compute {what} yet");
                (*at, what, Some(*instead))
            }
            PhysicalError::Expr(error) => {
                let (what, instead) = error.said();
                (error.at(), what, instead)
            }
            PhysicalError::Plan(error) => {
                let at = error.range().map_or(At(None), |range| range.at);
                (at, error.to_string(), None)
            }
            PhysicalError::Participant { .. }
            | PhysicalError::Unkept { .. }
            | PhysicalError::Empty { .. }
            | PhysicalError::TooLarge { .. }
            | PhysicalError::NotOfTwo { .. }
            | PhysicalError::NotInBits { .. }
            | PhysicalError::Circuit(_) => return None,
        };
        let At(place) = at.or(within);
        Some(Refusal {
            place: place?,
            what,
            instead,
            range: self.range().map(|range| Box::new(range.clone())),
        })
    }

    /// The same error of an operator that is written there, if no closer place is known.
    pub(super) fn or_at(mut self, of: At) -> Self {
        if let PhysicalError::NotYet { at, .. } = &mut self {
            *at = at.or(of);
        }
        self
    }
}

/// Where an operator is written: the first of its own expressions.
pub(super) fn written(plan: &Plan) -> At {
    match plan {
        Plan::Filter { predicate, .. } => predicate.written(),
        Plan::Project { columns, .. } => first_written(columns.iter().map(|of| &of.expr)),
        Plan::Join { on, condition, .. } => {
            let keys = on.iter().flat_map(|(left, right)| [left, right]);
            // Keys are there in most joins; what is refused is the condition.
            first_written(condition.iter().chain(keys))
        }
        Plan::GroupBy {
            keys, aggregates, ..
        } => {
            let of = aggregates.iter().filter_map(|of| of.function.argument());
            first_written(of.chain(keys.iter().map(|key| &key.expr)))
        }
        Plan::Sort { keys, .. } | Plan::TopK { keys, .. } => {
            first_written(keys.iter().map(|key| &key.expr))
        }
        Plan::Window {
            partition,
            order,
            functions,
            ..
        } => {
            let of = functions.iter().filter_map(|of| of.function.argument());
            let order = order.iter().map(|key| &key.expr);
            first_written(of.chain(order).chain(partition))
        }
        Plan::Fit { model, .. } => first_written(model.exprs()),
        Plan::Apply { model, .. } => first_written(&model.features),
        Plan::Scan { .. }
        | Plan::Step { .. }
        | Plan::UnionAll { .. }
        | Plan::Distinct { .. }
        | Plan::Trim { .. }
        | Plan::Open { .. } => At(None),
    }
}
