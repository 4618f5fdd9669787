//! SQL: a dialect with PostgreSQL's meaning, bound to the logical algebra of relations.
//!
//! For what loads jobs with queries. [`compile`] takes a [`Job`], tables of owners with queries, and gives a [`Program`](veil_relation::Program)
//! of `veil-relation`, which says what is computed and nothing of how. The parser's syntax tree does not leave this crate.
//!
//! ```text
//!   text ──► tokens, tree ──► bind ─────────────────► rules ──► Program
//!            (sqlparser)      names, types, ranges,   inline, fold,
//!                             joins ordered by cost,  push, prune,
//!                             subqueries as joins     public domains
//! ```
//!
//! ```
//! use veil_query::{Job, Query, SortedBytes, compile};
//! use veil_relation::{Column, Kind, Origin, Range, Table, Type};
//!
//! let column = |name: &str, max| Column {
//!     name: name.into(),
//!     ty: Type::of(Kind::Integer(Range::new(0, max).unwrap())),
//!     consent: None,
//! };
//! let stays = Table {
//!     name: "stays".into(),
//!     origin: Origin::Owner("north".into()),
//!     capacity: 1000,
//!     padded: true,
//!     columns: vec![column("ward", 9), column("days", 90)],
//!     sorted_by: vec![],
//!     unique: vec![],
//! };
//! let query = |sql: &str| Query { name: "q".into(), sql: sql.into(), to: Some("ministry".into()), keep: None, min_count: 10, fit: None, apply: None };
//! let job = |sql| Job { tables: vec![stays.clone()], queries: vec![query(sql)], bounds: vec![], models: vec![], functions: vec![] };
//!
//! let program = compile(&job("SELECT ward, avg(days) AS days FROM stays GROUP BY ward"), &SortedBytes)?;
//! assert!(program.to_string().contains("(aggregates (\"aggregate1\" (avg #1)))"));
//!
//! let error = compile(&job("SELECT ward FROM stays\nORDER BY ward OFFSET 3"), &SortedBytes).unwrap_err();
//! assert_eq!(error.to_string(), "\
//! query `q`, line 2, column 15: OFFSET, paging through rows, is not in the dialect
//!   ORDER BY ward OFFSET 3
//!                 ^");
//! # Ok::<(), veil_query::QueryError>(())
//! ```
//!
//! # Promises
//!
//! - A query has PostgreSQL's meaning or is refused, at a line and column, with the way to say it where there is one. No syntax is accepted
//!   and ignored: each node of the syntax tree is taken apart field by field.
//! - Programs follow from the job alone: costs are exact integers of public capacities, and what costs the same is decided by its text.
//! - No text makes the crate panic, or takes more than seconds: length, nesting and numbers of tables are limited.
//! - Each rule gives a program with the same results.
//!
//! # Limits
//!
//! - Quotients, averages and variances are exact until they are opened, rounded, ordered or made distinct: then, without `round(…, places)`, to six places or
//!   those of their operands. PostgreSQL has about 16 digits there. A standard deviation has six places, or those of its argument.
//! - `median` is `percentile_disc(0.5)`; texts are ordered by their bytes; rows that tie in ORDER BY are ordered by all their
//!   columns; where it names columns that are unique, none tie.
//! - A date plus an interval is a date, and not a time stamp.
//! - Claims of owners that keys are unique are taken at their word here; what executes the program checks them.

mod apply;
mod arithmetic;
mod bind;
mod categories;
mod cuts;
mod error;
mod family;
mod from;
mod functions;
mod group;
mod grouping;
mod job;
mod joins;
mod models;
mod order;
mod ordering;
mod real;
mod rel;
pub mod rules;
mod scalar;
mod select;
mod source;
mod subquery;
mod term;
mod union;
mod walk;
mod windows;

pub use apply::{Application, ApplyError};
pub use cuts::{Cuts, EVEN_CUTS};
pub use error::{Place, Problem, QueryError, SqlError};
pub use family::families;
pub use functions::{Arguments, TableFunction};
pub use job::{Bound, Job, Model, ModelKind, Query, ROWS_A_TERM, bind, compile, fields};
pub use order::{JoinCost, JoinFacts, SortedBytes};
pub use source::{Part, check_part, range_at, refused_at};
