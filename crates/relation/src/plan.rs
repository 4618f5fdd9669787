//! Logical operators.
//!
//! Each takes relations and gives one: a bag of rows, of which those that are not valid never count. Only [`Plan::Sort`] and
//! [`Plan::TopK`] give an order, which projections keep and [`Plan::Open`] shows.

use crate::apply::Apply;
use crate::expr::Expr;
use crate::fit::Fit;
use crate::functions::aggregate_type;
use crate::kept::Kept;
use crate::kind::Type;
use crate::place::At;
use crate::plan_error::PlanError;
use crate::schema::{ColumnId, Table};

/// An expression with the name of the column that it makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Named {
    /// The column's name.
    pub name: String,
    /// Its values.
    pub expr: Expr,
}

/// A key of an order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortKey {
    /// The values that are ordered.
    pub expr: Expr,
    /// Largest first.
    pub descending: bool,
    /// Nulls before other values. SQL's default is: last where values ascend, first where they descend.
    pub nulls_first: bool,
}

impl SortKey {
    /// Ascending, nulls last.
    #[must_use]
    pub const fn ascending(expr: Expr) -> Self {
        Self {
            expr,
            descending: false,
            nulls_first: false,
        }
    }
}

/// An aggregate of the rows of a group. All but [`AggregateFunction::CountRows`] skip rows whose argument is null; over no rows, counts are 0
/// and the others null.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// Number of rows.
    CountRows,
    /// Number of rows whose argument is not null.
    Count(Expr),
    /// Number of different values that are not null.
    CountDistinct(Expr),
    /// The sum of numbers.
    Sum(Expr),
    /// The exact quotient of sum and count.
    Avg(Expr),
    /// The smallest value.
    Min(Expr),
    /// The largest value.
    Max(Expr),
    /// Whether one is true.
    BoolOr(Expr),
    /// Whether all are true.
    BoolAnd(Expr),
    /// The exact sample variance `(n·Σx² − (Σx)²) / (n·(n − 1))`; null for fewer than two values.
    VarSamp(Expr),
    /// The root of the sample variance, rounded to the nearest decimal of so many places, halves up; null for fewer than two values.
    StddevSamp(Expr, u32),
    /// The value whose row number in ascending order of the values that are not null is `max(1, ⌈above/below · count⌉)`. The median is that of
    /// 1/2.
    PercentileDisc {
        /// The values.
        of: Expr,
        /// Numerator of the fraction.
        above: u32,
        /// Denominator of the fraction, at least 1 and not less than the numerator.
        below: u32,
    },
}

impl AggregateFunction {
    /// The type of the aggregate over at most so many rows with columns of these types.
    ///
    /// # Errors
    /// [`PlanError`]: an argument of a kind that it does not take, or that may not fit.
    pub fn ty(&self, types: &[Type], rows: u64) -> Result<Type, PlanError> {
        aggregate_type(self, true, types, rows)
    }

    /// Its head in the canonical text, which is its name in SQL.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CountRows => "count-rows",
            Self::Count(_) => "count",
            Self::CountDistinct(_) => "count-distinct",
            Self::Sum(_) => "sum",
            Self::Avg(_) => "avg",
            Self::Min(_) => "min",
            Self::Max(_) => "max",
            Self::BoolOr(_) => "bool_or",
            Self::BoolAnd(_) => "bool_and",
            Self::VarSamp(_) => "var_samp",
            Self::StddevSamp(..) => "stddev_samp",
            Self::PercentileDisc { .. } => "percentile_disc",
        }
    }

    /// The argument, but of [`AggregateFunction::CountRows`], which has none.
    #[must_use]
    pub const fn argument(&self) -> Option<&Expr> {
        match self {
            Self::CountRows => None,
            Self::Count(of)
            | Self::CountDistinct(of)
            | Self::Sum(of)
            | Self::Avg(of)
            | Self::Min(of)
            | Self::Max(of)
            | Self::BoolOr(of)
            | Self::BoolAnd(of)
            | Self::VarSamp(of)
            | Self::StddevSamp(of, _)
            | Self::PercentileDisc { of, .. } => Some(of),
        }
    }

    /// The same aggregate of another argument.
    ///
    /// # Errors
    /// The error of `by`.
    pub fn try_map<E>(self, by: &mut dyn FnMut(Expr) -> Result<Expr, E>) -> Result<Self, E> {
        Ok(match self {
            Self::CountRows => Self::CountRows,
            Self::Count(of) => Self::Count(by(of)?),
            Self::CountDistinct(of) => Self::CountDistinct(by(of)?),
            Self::Sum(of) => Self::Sum(by(of)?),
            Self::Avg(of) => Self::Avg(by(of)?),
            Self::Min(of) => Self::Min(by(of)?),
            Self::Max(of) => Self::Max(by(of)?),
            Self::BoolOr(of) => Self::BoolOr(by(of)?),
            Self::BoolAnd(of) => Self::BoolAnd(by(of)?),
            Self::VarSamp(of) => Self::VarSamp(by(of)?),
            Self::StddevSamp(of, places) => Self::StddevSamp(by(of)?, places),
            Self::PercentileDisc { of, above, below } => Self::PercentileDisc {
                of: by(of)?,
                above,
                below,
            },
        })
    }
}

/// An aggregate with the name of the column that it makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// The column's name.
    pub name: String,
    /// What it computes.
    pub function: AggregateFunction,
    /// Only rows where this is true count.
    pub filter: Option<Expr>,
}

/// Which rows of a partition a window's aggregate is over, in the window's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// All rows of the partition.
    Whole,
    /// From the first row to this one (`ROWS UNBOUNDED PRECEDING`).
    Running,
    /// So many rows before this one, and this one (`ROWS n PRECEDING`).
    Moving(u32),
}

/// A value for each row from its partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WindowFunction {
    /// The place of the row in its partition, from 1.
    RowNumber,
    /// One more than the number of rows that come before all rows of equal keys.
    Rank,
    /// The value so many rows before; null where there is none.
    Lag(Expr, u32),
    /// The value so many rows after; null where there is none.
    Lead(Expr, u32),
    /// Number of rows of the frame.
    CountRows(Frame),
    /// Number of values of the frame that are not null.
    Count(Expr, Frame),
    /// Sum of the values of the frame; null if all are.
    Sum(Expr, Frame),
    /// Exact quotient of sum and count of the frame; null if all values are.
    Avg(Expr, Frame),
    /// Smallest value of the frame, which is no [`Frame::Moving`].
    Min(Expr, Frame),
    /// Largest value of the frame, which is no [`Frame::Moving`].
    Max(Expr, Frame),
}

impl WindowFunction {
    /// Its head in the canonical text.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RowNumber => "row_number",
            Self::Rank => "rank",
            Self::Lag(..) => "lag",
            Self::Lead(..) => "lead",
            Self::CountRows(_) => "count-rows",
            Self::Count(..) => "count",
            Self::Sum(..) => "sum",
            Self::Avg(..) => "avg",
            Self::Min(..) => "min",
            Self::Max(..) => "max",
        }
    }

    /// The argument, if it has one.
    #[must_use]
    pub const fn argument(&self) -> Option<&Expr> {
        match self {
            Self::RowNumber | Self::Rank | Self::CountRows(_) => None,
            Self::Lag(of, _)
            | Self::Lead(of, _)
            | Self::Count(of, _)
            | Self::Sum(of, _)
            | Self::Avg(of, _)
            | Self::Min(of, _)
            | Self::Max(of, _) => Some(of),
        }
    }

    /// The same function of another argument.
    ///
    /// # Errors
    /// The error of `by`.
    pub fn try_map<E>(self, by: &mut dyn FnMut(Expr) -> Result<Expr, E>) -> Result<Self, E> {
        Ok(match self {
            Self::RowNumber | Self::Rank | Self::CountRows(_) => self,
            Self::Lag(of, rows) => Self::Lag(by(of)?, rows),
            Self::Lead(of, rows) => Self::Lead(by(of)?, rows),
            Self::Count(of, frame) => Self::Count(by(of)?, frame),
            Self::Sum(of, frame) => Self::Sum(by(of)?, frame),
            Self::Avg(of, frame) => Self::Avg(by(of)?, frame),
            Self::Min(of, frame) => Self::Min(by(of)?, frame),
            Self::Max(of, frame) => Self::Max(by(of)?, frame),
        })
    }
}

/// A window function with the name of the column that it makes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Windowed {
    /// The column's name.
    pub name: String,
    /// What it computes.
    pub function: WindowFunction,
}

/// Which rows a join gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JoinKind {
    /// Pairs of rows that match: columns of the left, then of the right.
    Inner,
    /// The pairs, and rows of the left without a match, with nulls on the right.
    Left,
    /// Rows of the left that have a match; their columns only.
    Semi,
    /// Rows of the left that have none; their columns only.
    Anti,
}

impl JoinKind {
    /// Its word in the canonical text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inner => "inner",
            Self::Left => "left",
            Self::Semi => "semi",
            Self::Anti => "anti",
        }
    }
}

/// How many matches a join may find: what bounds its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Matches {
    /// At most one row of the right for a row of the left. An evaluation ends with an error if there are two.
    UniqueRight,
    /// At most one row of the left for a row of the right. An evaluation ends with an error if there are two.
    UniqueLeft,
    /// At most so many pairs in all: a bound of the job. An evaluation ends with an error if there are more.
    AtMost(u32),
    /// Any number: of semi and anti joins, which repeat no row.
    Any,
}

impl Matches {
    /// Its word in the canonical text, without a bound.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UniqueRight => "unique-right",
            Self::UniqueLeft => "unique-left",
            Self::Any => "any",
            Self::AtMost(_) => "at-most",
        }
    }
}

/// What happens if a relation has more valid rows than a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Overflow {
    /// The job ends.
    Refuse,
    /// The result says so.
    Flag,
    /// The last rows are left out, and the result does not say whether there were any.
    Drop,
}

/// What a group by is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Keys whose values only the rows know.
    Secret,
    /// Keys of public lists: at most so many groups, all known beforehand.
    Public(u32),
}

impl Domain {
    /// Its word in the canonical text, without a number of groups.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Public(_) => "public",
        }
    }
}

/// A logical operator with its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Columns of a table; those that no scan names are not shared at all.
    Scan {
        /// The table's name.
        table: String,
        /// The columns that are wanted, in this order.
        columns: Vec<ColumnId>,
    },
    /// The relation of an earlier step.
    Step {
        /// The step's name.
        name: String,
    },
    /// Rows where a condition is true.
    Filter {
        /// The rows.
        input: Box<Plan>,
        /// The condition.
        predicate: Expr,
    },
    /// A row of expressions for each row.
    Project {
        /// The rows.
        input: Box<Plan>,
        /// The new columns.
        columns: Vec<Named>,
    },
    /// All rows of all inputs, whose columns have the same kinds but for ranges; the names are those of the first.
    UnionAll {
        /// At least one relation.
        inputs: Vec<Plan>,
    },
    /// Rows of two relations that match: all pairs of keys are equal, a null equals nothing, and the condition is true.
    Join {
        /// Which rows it gives.
        kind: JoinKind,
        /// The left relation.
        left: Box<Plan>,
        /// The right relation.
        right: Box<Plan>,
        /// Pairs of keys: an expression over the left, one over the right, of one kind but for ranges. With none, all rows match.
        on: Vec<(Expr, Expr)>,
        /// A further condition over the columns of the left, then of the right.
        condition: Option<Expr>,
        /// How many matches there may be.
        matches: Matches,
    },
    /// A row for each group of equal keys, nulls being equal: keys, then aggregates. Without keys, one row for all rows, also for none.
    GroupBy {
        /// The rows.
        input: Box<Plan>,
        /// The keys.
        keys: Vec<Named>,
        /// The aggregates.
        aggregates: Vec<Aggregate>,
        /// What the keys range over.
        domain: Domain,
        /// Groups of fewer rows are no rows of the result. 0 and 1 leave out nothing.
        min_rows: u32,
    },
    /// Each different row once, nulls being equal.
    Distinct {
        /// The rows.
        input: Box<Plan>,
    },
    /// The rows in an order; rows of equal keys keep the one that they had.
    Sort {
        /// The rows.
        input: Box<Plan>,
        /// The keys, the most significant first.
        keys: Vec<SortKey>,
    },
    /// The first rows of an order.
    TopK {
        /// The rows.
        input: Box<Plan>,
        /// The keys, the most significant first.
        keys: Vec<SortKey>,
        /// How many rows.
        rows: u32,
    },
    /// The rows, with a further column for each function.
    Window {
        /// The rows.
        input: Box<Plan>,
        /// The keys whose equal values make a partition, nulls being equal.
        partition: Vec<Expr>,
        /// The order within a partition; rows of equal keys in the order that they had.
        order: Vec<SortKey>,
        /// The functions.
        functions: Vec<Windowed>,
    },
    /// The valid rows in fewer places.
    Trim {
        /// The rows.
        input: Box<Plan>,
        /// The public bound.
        rows: u32,
        /// What happens if there are more.
        overflow: Overflow,
    },
    /// A row for each term of a model that is fitted to the rows.
    Fit {
        /// The rows.
        input: Box<Plan>,
        /// The model.
        model: Box<Fit>,
    },
    /// The rows, with further columns: what a network gives for each.
    Apply {
        /// The rows.
        input: Box<Plan>,
        /// The network, and what it is applied to.
        model: Box<Apply>,
        /// The weights that an owner brings, if the network has such: a column of a table.
        weights: Option<Box<Plan>>,
    },
    /// The rows, opened. At the root of a step only. Without a [`Plan::Sort`] or [`Plan::TopK`] below, be it below projections, networks and bounds, they are opened in
    /// ascending order of their columns, nulls last: the order of input rows is never opened.
    Open {
        /// The rows.
        input: Box<Plan>,
        /// The recipient's name.
        to: String,
    },
}

/// A relation with a name, which later steps may read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// How it is made.
    pub plan: Plan,
    /// How the parties keep it, with all its columns: its rows as they are, also where they are opened.
    pub keep: Option<Kept>,
    /// Where it is written.
    pub at: At,
}

/// The queries of a job: the tables, and the steps in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// The tables.
    pub tables: Vec<Table>,
    /// The steps; each reads tables and earlier steps.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The inputs, in order.
    #[must_use]
    pub fn inputs(&self) -> Vec<&Self> {
        match self {
            Self::Scan { .. } | Self::Step { .. } => Vec::new(),
            Self::UnionAll { inputs } => inputs.iter().collect(),
            Self::Join { left, right, .. } => vec![left, right],
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::GroupBy { input, .. }
            | Self::Distinct { input }
            | Self::Sort { input, .. }
            | Self::TopK { input, .. }
            | Self::Window { input, .. }
            | Self::Trim { input, .. }
            | Self::Fit { input, .. }
            | Self::Open { input, .. } => vec![input],
            Self::Apply { input, weights, .. } => std::iter::once(&**input)
                .chain(weights.as_deref())
                .collect(),
        }
    }

    /// The inputs, to be replaced in place.
    pub fn inputs_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::Scan { .. } | Self::Step { .. } => Vec::new(),
            Self::UnionAll { inputs } => inputs.iter_mut().collect(),
            Self::Join { left, right, .. } => vec![left, right],
            Self::Filter { input, .. }
            | Self::Project { input, .. }
            | Self::GroupBy { input, .. }
            | Self::Distinct { input }
            | Self::Sort { input, .. }
            | Self::TopK { input, .. }
            | Self::Window { input, .. }
            | Self::Trim { input, .. }
            | Self::Fit { input, .. }
            | Self::Open { input, .. } => vec![input],
            Self::Apply { input, weights, .. } => {
                let weights = weights.as_deref_mut();
                std::iter::once(&mut **input).chain(weights).collect()
            }
        }
    }
}
