//! A job as planner and engine see it.

use veil_circuit::{Circuit, Per, Reduce};
use veil_session::PartyId;

use crate::Security;

/// Who supplies the values of an input port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// A computing party.
    Party(PartyId),
    /// An outside owner, numbered as in [`Lowered::owners`].
    Owner(u16),
    /// No participant of this run: every party loads its shares from its store ([`ShareSource`](crate::ShareSource)).
    Stored,
}

/// To whom an output is opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Audience {
    /// All computing parties.
    Parties,
    /// One computing party.
    Party(PartyId),
    /// An outside recipient, numbered as in [`Lowered::recipients`].
    Recipient(u16),
    /// No participant: the output is not opened, and every party keeps its shares ([`ShareSink`](crate::ShareSink)).
    Stored,
}

/// Rows that have the same holders. Blocks are stacked: the rows of one follow the rows of the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Name in the job file.
    pub name: String,
    /// Rows, at least 1.
    pub rows: u64,
    /// Who supplies each of the circuit's input ports, in order. A port with one value per job has the same holder in
    /// every block.
    pub holders: Vec<Holder>,
    /// The dataset that the ports of [`Holder::Stored`] are loaded from, by its name, as all parties know it. Nothing in a block that loads
    /// nothing.
    pub stored: Option<String>,
    /// Why its rows are rows of the same people, if several holders supply them.
    pub order: Order,
}

/// Why the rows of several holders of a block belong together, in the order that they have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// Nothing is said: one holder supplies all that a row has, or it comes from the parties' stores.
    #[default]
    Unsaid,
    /// The holders have agreed on it, and it is not compared.
    Agreed,
    /// The holders compare it by a key column, before anything that depends on an input is sent.
    Compared {
        /// Rows per compared digest.
        every: u32,
        /// Whether several rows may have the same key.
        duplicates: bool,
    },
}

impl Order {
    /// Rows per compared digest, if the order is compared.
    pub const fn every(self) -> Option<u32> {
        match self {
            Order::Compared { every, .. } => Some(every),
            Order::Unsaid | Order::Agreed => None,
        }
    }
}

/// A job as planner and engine see it. All of it is public, and all of it is under the plan hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lowered {
    /// Name of the job.
    pub name: String,
    /// Outside owners: owners that are not computing parties.
    pub owners: Vec<String>,
    /// The computing parties: three or four.
    pub parties: Vec<String>,
    /// Outside recipients: recipients that are not computing parties.
    pub recipients: Vec<String>,
    /// The protocol, and what it holds against.
    pub security: Security,
    /// The meaning of the values, as all participants must read them: of statistics scales, ranges, categories, the treatment of missing
    /// values; of a circuit the columns or files that feed its ports. Empty where the circuit says it all.
    pub schema: String,
    /// The circuit that is computed in every row, whose outputs may be summed over the rows.
    pub circuit: Circuit,
    /// The circuit that is computed once on the sums over all rows, before they are opened: over the same ring, from one input port with an
    /// element for every wire of a summed output, in their order, to an output port in the place of each summed output, which is no wider.
    /// It may read the circuit's input ports with a value per job too: then a port for each of them follows, in their order. Without it,
    /// sums are opened as they are.
    pub totals: Option<Circuit>,
    /// The rows: at least one block.
    pub blocks: Vec<Block>,
    /// To whom each of the circuit's output ports is opened, in order.
    pub audiences: Vec<Audience>,
    /// One plain sentence for each output port that names the opened value.
    pub opened: Vec<String>,
}

/// A port whose shares are at rest between runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredPort {
    /// Index among the circuit's input ports (loaded values) or output ports (kept values).
    pub port: usize,
    /// The port's name.
    pub name: String,
    /// Elements in each row.
    pub width: u32,
    /// [`Per::Row`]: slices of every block. [`Per::Job`]: one value, in the slice of block 0 with one row.
    pub per: Per,
}

impl Lowered {
    /// Rows of all blocks together.
    pub fn rows(&self) -> u64 {
        self.blocks.iter().map(|block| block.rows).sum()
    }

    /// The input ports that some block loads from the parties' stores.
    pub fn loads(&self) -> Vec<StoredPort> {
        let stored = |port: usize| {
            self.blocks
                .iter()
                .any(|block| block.holders.get(port) == Some(&Holder::Stored))
        };
        let ports = self.circuit.inputs.iter().enumerate();
        ports
            .filter(|(port, _)| stored(*port))
            .map(|(port, input)| StoredPort {
                port,
                name: input.name.clone(),
                width: input.width,
                per: input.per,
            })
            .collect()
    }

    /// The output ports that the parties keep.
    pub fn keeps(&self) -> Vec<StoredPort> {
        let ports = self.circuit.outputs.iter().zip(&self.audiences).enumerate();
        ports
            .filter(|(_, (_, audience))| **audience == Audience::Stored)
            .map(|(port, (output, _))| StoredPort {
                port,
                name: output.name.clone(),
                width: output.wires.len() as u32,
                per: self.kept_per(port),
            })
            .collect()
    }

    /// How often output port `port` has a value when it is kept: once if it is summed over the rows, or if its wires are the wires of an
    /// input port with one value per job.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn kept_per(&self, port: usize) -> Per {
        match self.circuit.outputs[port].reduce {
            Reduce::Sum => Per::Job,
            Reduce::None if self.passes_through(port).is_some() => Per::Job,
            Reduce::None | Reduce::EveryCycle => Per::Row,
        }
    }

    /// The input port with one value per job whose wires, in order, are the wires of output port `port`.
    ///
    /// # Panics
    /// If there is no such output port.
    pub fn passes_through(&self, port: usize) -> Option<usize> {
        let wires = &self.circuit.outputs[port].wires;
        let mut first = 0;
        self.circuit.inputs.iter().position(|input| {
            let range = first..first + input.width;
            first = range.end;
            input.per == Per::Job && range.map(veil_circuit::Wire).eq(wires.iter().copied())
        })
    }
}
