//! Physical plans of queries: programs of the algebra as passes over shared columns.
//!
//! For what runs queries and what explains them. A [`PhysicalPlan`] has the passes that parties run, what owners supply to which pass, what recipients are
//! given by which, and everything that is opened.

#[allow(dead_code, unused_imports, reason = "tests use the rest")]
mod exprs;
mod opening;
mod plan;
mod ports;

use std::ops::Range;

use veil_job::passes::ProgramSpec;

pub use exprs::ExprError;
pub use opening::{Opening, To};
pub use plan::{PhysicalError, plan};
pub use ports::{ResultPort, ResultPorts, TablePort, TablePorts};

/// The physical plan of a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhysicalPlan {
    /// The passes.
    pub passes: ProgramSpec,
    /// What owners supply, in the order of passes.
    pub tables: Vec<TablePorts>,
    /// What recipients are given, in the order of passes.
    pub results: Vec<ResultPorts>,
    /// Everything that is opened.
    pub opens: Vec<Opening>,
    /// How each step is made, in their order.
    pub tree: Vec<Node>,
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
