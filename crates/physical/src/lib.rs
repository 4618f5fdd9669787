//! Physical plans of queries: programs of the algebra as passes over shared columns.
//!
//! For what runs queries and what explains them. A [`PhysicalPlan`] has the passes that parties run, what owners supply to which pass, what recipients are
//! given by which, and everything that is opened.
//!
//! ```
//! use veil_job::Security;
//! use veil_operators::Participants;
//! use veil_physical::{Opening, plan};
//! use veil_relation::Program;
//!
//! let program = Program::read(
//!     "(program
//!   (table \"stays\" (owner \"north\") (rows 300) (column \"days\" (integer 0 90)) (column \"ward\" (category \"a\" \"b\")))
//!   (step
//!     \"mean\"
//!     (open
//!       \"ministry\"
//!       (group-by
//!         (public 2)
//!         (min-rows 10)
//!         (keys (\"ward\" #1))
//!         (aggregates (\"days\" (sum #0)))
//!         (scan \"stays\" #0 #1)))))",
//! )?;
//! let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect::<Vec<_>>();
//! let plan = plan(&program, &Participants {
//!     name: "stays".into(),
//!     owners: names(&["north"]),
//!     parties: names(&["p0", "p1", "p2"]),
//!     recipients: names(&["ministry"]),
//!     security: Security::among(3),
//! })?;
//! // Groups of a public domain take no sort: nothing is opened but two rows, to one recipient.
//! let [Opening::Rows { rows: 2, min_rows: 10, .. }] = &plan.opens[..] else {
//!     panic!("{:?}", plan.opens);
//! };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Two parties move no rows: for them the passes become one circuit of bits in one row ([`Wires`]), in which each row of each table has wires of its own.
//!
//! Three parties of whom one may be malicious move words of bits alone: for them each pass over integers becomes passes over words, and sums are added up by circuits. What multiplies matrices
//! is refused.
//!
//! # Promises
//!
//! - A plan follows from the program and the participants alone: no length, no number of passes and no choice depends on a value.
//! - Everything that passes open is in [`PhysicalPlan::opens`].
//! - What parties open is what [`veil_relation::clear`] says that the program means, or the run ends where a claim is false, or a cell that is supplied as bits
//!   is beyond its declared range.
//!
//! # Limits
//!
//! - A relation is not kept where a bound that flags may have left out rows of it.
//! - Integers of semi-honest owners are not looked at.

mod bits;
mod exprs;
mod lowered;
mod opening;
mod plan;
mod ports;
mod wires;

use std::ops::Range;

use veil_job::passes::ProgramSpec;

pub use bits::MOST_GATES;
pub use exprs::{ExprError, Shown, ands};
pub use opening::{Opening, To};
pub use plan::{PhysicalError, Refusal, plan};
pub use ports::{
    KeepPorts, ResultPort, ResultPorts, SizePort, TablePort, TablePorts, stored_ports,
};
pub use wires::Wires;

/// The physical plan of a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhysicalPlan {
    /// The passes.
    pub passes: ProgramSpec,
    /// What owners supply and parties load, in the order of passes.
    pub tables: Vec<TablePorts>,
    /// What recipients are given, in the order of passes.
    pub results: Vec<ResultPorts>,
    /// What parties keep, in the order of passes: the last ones.
    pub keeps: Vec<KeepPorts>,
    /// Everything that is opened.
    pub opens: Vec<Opening>,
    /// How each step is made, in their order.
    pub tree: Vec<Node>,
    /// Between two parties, how the passes above are one circuit of bits, which is then the only pass; what [`tree`](Self::tree) and [`opens`](Self::opens) say of passes is of those that it was
    /// made of.
    pub wires: Option<Wires>,
}

/// An operator of a physical plan, as people look at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// What it does, in one line.
    pub text: String,
    /// Rows that it gives.
    pub rows: u32,
    /// Its own passes, without those of its inputs.
    pub passes: Vec<Range<usize>>,
    /// Its inputs.
    pub inputs: Vec<Node>,
}
