//! The rules of a schedule.

use super::number::blocked;
use super::{Machine, NO_NUMBER, Node, Schedule};

/// Why a schedule is none of these nodes on this machine.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The interval is 0, or smaller than the machine's smallest; or more netlist cycles overlap than the machine knows.
    #[error("a netlist cycle every {interval} cycles for {span} cycles")]
    Interval {
        /// Cycles between netlist cycles.
        interval: u32,
        /// Cycles of one.
        span: u32,
    },
    /// A list has another length than the nodes.
    #[error("{found} {what} for {nodes} nodes")]
    Length {
        /// Which list.
        what: &'static str,
        /// How long it is.
        found: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A node starts before what it reads is there.
    #[error("node {node} starts before node {reads} of {distance} netlist cycles ago can be read")]
    Early {
        /// The reader.
        node: u32,
        /// The node that it reads.
        reads: u32,
        /// How many netlist cycles ago.
        distance: u32,
    },
    /// Two nodes of an engine start in one cycle, or there is no such engine.
    #[error(
        "engine {engine} starts node {node} when it starts another, or there is no such engine"
    )]
    Engine {
        /// The engine.
        engine: u32,
        /// The second of the two.
        node: u32,
    },
    /// The numbers do not number the products, each once and in its engine.
    #[error("node {node} has the number {number}")]
    Number {
        /// The node.
        node: u32,
        /// Its number.
        number: u32,
    },
    /// A product starts before its line has room.
    #[error("product {node} starts before the buffer has room for its table")]
    Lines {
        /// The product.
        node: u32,
    },
}

impl Schedule {
    /// Whether this is a schedule of `nodes` on `machine`: whatever netlist cycles there are, each value is there when it is read, an engine
    /// starts one node at a time, and no table waits for one that leaves after it.
    ///
    /// # Errors
    /// [`Violation`] for the first of these rules that the schedule breaks, in the order of the variants [`Violation::Length`],
    /// [`Violation::Interval`], [`Violation::Early`], [`Violation::Engine`], [`Violation::Number`], [`Violation::Lines`].
    pub fn check(&self, nodes: &[Node], machine: &Machine) -> Result<(), Violation> {
        let lists = [
            ("starts", &self.starts),
            ("engines", &self.engines),
            ("numbers", &self.numbers),
        ];
        for (what, list) in lists {
            if list.len() != nodes.len() {
                return Err(Violation::Length {
                    what,
                    found: list.len(),
                    nodes: nodes.len(),
                });
            }
        }
        let (interval, span) = (self.interval, self.span());
        let overlap = u64::from(machine.stages) * u64::from(interval);
        if interval < machine.least.max(1) || overlap < u64::from(span) {
            return Err(Violation::Interval { interval, span });
        }
        self.check_reads(nodes, machine)?;
        self.check_rows(machine)?;
        self.check_numbers(nodes, machine)?;
        match blocked(nodes, &self.starts, &self.numbers, interval, machine) {
            Some(blocked) => Err(Violation::Lines { node: blocked.node }),
            None => Ok(()),
        }
    }

    fn check_reads(&self, nodes: &[Node], machine: &Machine) -> Result<(), Violation> {
        for (node, reader) in nodes.iter().enumerate() {
            for read in reader.reads.iter().flatten() {
                let made = u64::from(self.starts[read.node as usize])
                    + u64::from(machine.latency(&nodes[read.node as usize]));
                let since = u64::from(self.interval) * u64::from(read.distance);
                if u64::from(self.starts[node]) + since < made {
                    return Err(Violation::Early {
                        node: node as u32,
                        reads: read.node,
                        distance: read.distance,
                    });
                }
            }
        }
        Ok(())
    }

    fn check_rows(&self, machine: &Machine) -> Result<(), Violation> {
        let mut places: Vec<(u32, u32, u32)> = (0..self.starts.len())
            .map(|node| {
                let cycle = self.starts[node] % self.interval;
                (cycle, self.engines[node], node as u32)
            })
            .collect();
        places.sort_unstable();
        let twice = places.windows(2).find(|two| {
            let [a, b] = [two[0], two[1]];
            (a.0, a.1) == (b.0, b.1)
        });
        let outside = places.iter().find(|place| place.1 >= machine.engines);
        match twice.map(|two| &two[1]).or(outside) {
            Some(&(_, engine, node)) => Err(Violation::Engine { engine, node }),
            None => Ok(()),
        }
    }

    fn check_numbers(&self, nodes: &[Node], machine: &Machine) -> Result<(), Violation> {
        let products = nodes.iter().filter(|node| node.product).count();
        let mut seen = vec![false; products];
        for (node, own) in nodes.iter().enumerate() {
            let number = self.numbers[node];
            let right = if own.product {
                let seen = seen.get_mut(number as usize);
                seen.is_some_and(|seen| !std::mem::replace(seen, true))
                    && number % machine.engines == self.engines[node]
            } else {
                number == NO_NUMBER
            };
            if !right {
                return Err(Violation::Number {
                    node: node as u32,
                    number,
                });
            }
        }
        Ok(())
    }
}
