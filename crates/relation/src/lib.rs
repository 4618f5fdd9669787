//! Relations and the logical algebra of queries: types with exact ranges, one canonical text, evaluation in the clear.
//!
//! For what makes queries (`veil-query` from SQL) and for what plans them. A [`Program`] has the [`Table`]s of owners and [`Step`]s, each a
//! tree of [`Plan`] operators with [`Expr`]essions. [`Program::check`] derives the [`Shape`] of each step: columns with proved ranges, public
//! capacity, unique keys. [`clear::evaluate`] says what a program means.
//!
//! ```text
//!   SQL ──► Program ──► canonical text ──► plan hash, explain
//!              │
//!              ├──► check ──► Shape: types, capacity, keys ──► physical plan
//!              └──► clear::evaluate ──► the rows that parties must open
//! ```
//!
//! ```
//! use veil_relation::{Program, Value, clear};
//!
//! let program = Program::read(
//!     "(program
//!   (table \"stays\" (owner \"north\") (rows 3) (column \"days\" (integer 0 90)) (column \"ward\" (category \"a\" \"b\")))
//!   (step
//!     \"mean\"
//!     (open
//!       \"ministry\"
//!       (group-by
//!         (public 2)
//!         (min-rows 0)
//!         (keys (\"ward\" #1))
//!         (aggregates (\"days\" (avg #0)))
//!         (scan \"stays\" #0 #1)))))",
//! )?;
//! let row = |days, ward| vec![Value::Number(days), Value::Number(ward)];
//! let stays = clear::Input { valid: vec![true, true, false], rows: vec![row(4, 1), row(5, 1), row(9, 0)] };
//! let opened = clear::evaluate(&program, &[stays])?;
//! assert_eq!(opened[0].rows, [[Value::Number(1), Value::Ratio(9, 2)]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! - The meaning of an operator is PostgreSQL's: three-valued logic, nulls equal in groups and never in joins, exact decimals.
//! - Whatever passes [`Program::check`] is evaluated without overflow: each range is derived by exact interval arithmetic, and what might not
//!   fit 128 bits is refused with its name.
//! - Two programs with one canonical text are equal; [`Program::read`] accepts no other text.
//! - Rows that are not valid change nothing, whatever their cells are.
//!
//! # Limits
//!
//! - Averages, variances and quotients are exact until [`Expr::Round`] gives them places, where PostgreSQL rounds them to about 16 digits at
//!   once. Rounding is that of its `numeric`: to nearest, halves away from zero.
//! - Functions that have no exact values ([`Expr::Real`]) are within the error that their proof states; PostgreSQL rounds them otherwise in the last place.
//! - The median and other quantiles are discrete: values of rows.
//! - Texts of categories are ordered by their bytes (collation "C").
//! - How parties compute, and at what cost, is not known here.

mod apply;
pub mod calendar;
pub mod clear;
mod consent;
mod expr;
mod fit;
mod fit_tree;
pub mod forest;
mod fraction;
mod functions;
mod kept;
mod kind;
mod models;
mod networks;
mod place;
mod plan;
mod plan_error;
mod range_error;
mod read;
mod reals;
mod remedy;
mod schema;
mod sexp;
mod shape;
mod text;
mod typing;
mod weights;

pub use apply::{Apply, CLASS, MOST_SCORE_PLACES};
pub use consent::{ColumnUse, ConsentError};
pub use expr::{Arithmetic, Comparison, DatePart, Expr, Literal, MOST_POINTS};
pub use fit::{CLUSTERS, COMPONENTS, Fit, FitKind, Fitting, INTERCEPT};
pub use fit_tree::{TREE, TreeFitting};
pub use forest::{Forest, ForestError};
pub use fraction::{real, round_ratio};
pub use kept::{Bucket, Kept, OpenSize};
pub use kind::{Kind, MOST_PLACES, MOST_VALUES, Type, Value, Values};
pub use models::{ModelUse, NetworkUse, Trained};
pub use place::{At, Place, first_written};
pub use plan::{
    Aggregate, AggregateFunction, Domain, Frame, JoinKind, Matches, Named, Overflow, Plan, Program,
    SortKey, Step, WindowFunction, Windowed,
};
pub use plan_error::PlanError;
pub use range_error::{Bounds, MOST_BITS, Operand, RangeError, Unfit};
pub use read::ReadError;
pub use reals::RealUse;
pub use remedy::{Bound, Change, Remedy};
pub use schema::{
    Column, ColumnId, Consent, First, MOST_ROWS, Operation, Origin, Reveal, SchemaError, Table,
    is_name,
};
pub use shape::{Field, Shape, Shapes, join as join_shape};
pub use typing::{MOST_REAL_PLACES, TypeError};
#[doc(no_inline)]
pub use veil_learn::network;
#[doc(no_inline)]
pub use veil_learn::{
    Clusters, Components, Descent, Design, Family, FitError, Fraction, Link, MOST_CUTS, MOST_DEPTH,
    MOST_DESCENTS, MOST_ITERATIONS, MOST_LIMIT, MOST_MOMENTUM, MOST_RATE, MOST_RATE_PLACES,
    Network, Regression, Split, Stepping, Test, Tree,
};
#[doc(no_inline)]
pub use veil_numeric::{Function, Range};
pub use weights::WeightsUse;
