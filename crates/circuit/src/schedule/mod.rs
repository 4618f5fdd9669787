//! When the gates of a netlist cycle start, on a machine that starts a few gates in each of its cycles.
//!
//! A *netlist cycle* is one pass through the gates of a sequential circuit; a *cycle* is one of the machine's clock. Values of registers
//! are values of earlier netlist cycles, so netlist cycles overlap: one starts every [`Schedule::interval`] cycles, and all are alike
//! (software pipelining). [`schedule`](schedule()) looks for the times at which all netlist cycles together are done first:
//!
//! * *iterative modulo scheduling* (B. R. Rau 1994, "Iterative Modulo Scheduling: An Algorithm For Software Pipelining Loops"): the next
//!   gate is the one with the longest path behind it; it starts as early as what it reads lets it and an engine is free, and drives out
//!   others where none is;
//! * list scheduling of one netlist cycle after the other by the critical path, which is better for few of them.
//!
//! No interval is smaller than gates per engine, nor than latency over distance on any ring of gates and registers.
//!
//! Tables of products leave the machine in the order of their *numbers*, a *line* of one table per engine at a time; engines take the numbers in
//! turn. A line waits for the last of its products, in a buffer of [`Machine::lines`].
//!
//! ```
//! use veil_circuit::schedule::{Machine, Node, Read, schedule};
//!
//! // A register that is multiplied with an input in each netlist cycle: each waits for the product before it.
//! let nodes = [Node { product: true, reads: [Some(Read { node: 0, distance: 1 }), None] }];
//! let machine = Machine::garbler(2);
//! let schedule = schedule(&nodes, &machine, 100)?;
//! assert_eq!(schedule.interval, machine.and);
//! assert_eq!(schedule.total(100), 99 * 10 + 1);
//! # Ok::<(), veil_circuit::schedule::ScheduleError>(())
//! ```
//!
//! It is pure and deterministic, and knows nothing of circuits: inputs, constants and negations, which cost nothing, are no nodes.

mod check;
mod choose;
mod graph;
mod list;
mod modulo;
mod number;

pub use check::Violation;
pub use choose::{schedule, schedule_numbered};

/// The number of a node that is no product.
pub const NO_NUMBER: u32 = u32::MAX;

/// The most engines of a machine.
const MOST_ENGINES: u32 = 1 << 8;
/// The longest latency of a gate, in cycles.
const LONGEST: u32 = 1 << 10;
/// The most nodes: one after the other they then take at most 2^30 cycles.
const MOST_NODES: usize = 1 << 20;

/// A value that a node reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read {
    /// The node that makes it.
    pub node: u32,
    /// In which netlist cycle: so many before the reader's own.
    pub distance: u32,
}

/// A gate that takes an engine for a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// Whether it has a table and a number.
    pub product: bool,
    /// The nodes that it waits for: `None` for inputs, constants, and a missing second operand.
    pub reads: [Option<Read>; 2],
}

/// The machine that starts the gates. Times are in cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Gates that start in one cycle, of either kind.
    pub engines: u32,
    /// From the start of a node that is no product to the start of one that reads it.
    pub xor: u32,
    /// The same of a product.
    pub and: u32,
    /// Lines of tables that have room.
    pub lines: u32,
    /// From the start of the last product of a line until the line has left.
    pub drain: u32,
    /// Netlist cycles that overlap at most.
    pub stages: u32,
    /// The smallest interval, whatever the nodes: one result leaves in a cycle, so it is the number of results of a netlist cycle.
    pub least: u32,
}

impl Machine {
    /// The garbling core of `rtl/garble` with its usual parameters and `engines` engines.
    pub fn garbler(engines: u32) -> Machine {
        Machine {
            engines,
            xor: 1,
            and: 10,
            lines: 1 << 10,
            drain: 12,
            stages: 120,
            least: 1,
        }
    }

    /// From the start of `node` until it can be read.
    pub fn latency(&self, node: &Node) -> u32 {
        if node.product { self.and } else { self.xor }
    }

    fn valid(&self) -> Result<(), ScheduleError> {
        let ranges = [
            ("engines", self.engines, 1, MOST_ENGINES),
            ("xor", self.xor, 0, LONGEST),
            ("and", self.and, 0, LONGEST),
            ("lines", self.lines, 1, 1 << 30),
            ("drain", self.drain, 0, LONGEST),
            ("stages", self.stages, 1, 1 << 30),
            ("least", self.least, 0, 1 << 30),
        ];
        for (what, found, least, most) in ranges {
            if !(least..=most).contains(&found) {
                return Err(ScheduleError::Machine {
                    what,
                    found,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

/// When and where the nodes of every netlist cycle start. All lists are by node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// Cycles between the starts of two netlist cycles, at least 1.
    pub interval: u32,
    /// When a node starts, in cycles from the first start of its netlist cycle.
    pub starts: Vec<u32>,
    /// The engine that it starts in.
    pub engines: Vec<u32>,
    /// Number of a product in its netlist cycle: its table leaves after the tables of smaller numbers. [`NO_NUMBER`] if it is none.
    pub numbers: Vec<u32>,
}

impl Schedule {
    /// Cycles in which nodes of one netlist cycle start: one more than the last start, 0 without nodes.
    pub fn span(&self) -> u32 {
        self.starts.iter().max().map_or(0, |last| last + 1)
    }

    /// Cycles in which nodes of `cycles` netlist cycles start.
    pub fn total(&self, cycles: u64) -> u64 {
        total(self.interval, self.span(), cycles)
    }
}

fn total(interval: u32, span: u32, cycles: u64) -> u64 {
    let before = cycles.saturating_sub(1);
    before
        .saturating_mul(u64::from(interval))
        .saturating_add(u64::from(span))
}

/// Why nodes cannot be scheduled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A figure of the machine is out of range.
    #[error("`{what}` of the machine is {found}, and must be {least} to {most}")]
    Machine {
        /// Which.
        what: &'static str,
        /// The figure.
        found: u32,
        /// The smallest.
        least: u32,
        /// The largest.
        most: u32,
    },
    /// More nodes than times have room for.
    #[error(
        "a netlist cycle has {found} nodes, and {most} at most are scheduled; use a sequential form with smaller cycles"
    )]
    TooLarge {
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// A node reads one that there is not.
    #[error("node {node} reads node {reads}, and there are {nodes}")]
    NoNode {
        /// The reader.
        node: u32,
        /// The node that it reads.
        reads: u32,
        /// How many there are.
        nodes: u32,
    },
    /// Nodes wait for each other within a netlist cycle.
    #[error("node {node} waits for itself within one netlist cycle; a register must stand between")]
    Ring {
        /// One of them.
        node: u32,
    },
    /// The given numbers do not number the products from 0, each once.
    #[error(
        "product {node} has the number {number}; {products} products have the numbers below that, each once"
    )]
    Numbers {
        /// The first that is out of range, a repetition, or without a number.
        node: u32,
        /// Its number.
        number: u32,
        /// How many products there are.
        products: u32,
    },
    /// A table waits for one that has to leave long after it.
    #[error(
        "product {number} can only start after one whose table leaves more than {lines} lines later; number products in an order in which they can be computed"
    )]
    Order {
        /// The first number that never starts.
        number: u32,
        /// Lines of the buffer.
        lines: u32,
    },
}
