//! A job as planner and engine see it.

use veil_circuit::{Circuit, Per, Reduce};
use veil_session::{PartyId, Peer};

use crate::{
    Adversary, ChunkRows, Delivery, Ot, ProtocolKind, Rows, Schedule, Security, Statistical,
    Tables, canonical,
};

/// Who supplies the values of an input port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// A computing party.
    Party(PartyId),
    /// An outside owner, numbered as in [`JobSpec::owners`].
    Owner(u16),
    /// No participant of this run: every party loads its shares from its store ([`ShareSource`](crate::ShareSource)).
    Stored,
    /// No participant: a column of a relation, whose shares an earlier stage of the run has left with every party. Only in stages.
    Column,
}

/// To whom an output is opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Audience {
    /// All computing parties.
    Parties,
    /// One computing party.
    Party(PartyId),
    /// An outside recipient, numbered as in [`JobSpec::recipients`].
    Recipient(u16),
    /// No participant: the output is not opened, and every party keeps its shares ([`ShareSink`](crate::ShareSink)).
    Stored,
    /// No participant: a column of a relation, whose shares every party has for later stages of the run. Only in stages.
    Column,
}

impl Audience {
    /// Whether `peer` reads what is opened to this audience.
    pub fn includes(self, peer: Peer) -> bool {
        match self {
            Audience::Parties => peer.party().is_some(),
            Audience::Party(party) => peer == Peer::Party(party),
            Audience::Recipient(recipient) => peer == Peer::Recipient(recipient),
            Audience::Stored | Audience::Column => false,
        }
    }
}

impl Holder {
    /// The end of a link behind this holder; none for what parties have as shares.
    pub const fn peer(self) -> Option<Peer> {
        match self {
            Holder::Party(party) => Some(Peer::Party(party)),
            Holder::Owner(owner) => Some(Peer::Owner(owner)),
            Holder::Stored | Holder::Column => None,
        }
    }
}

/// Rows that have the same holders. Blocks are stacked: the rows of one follow those of the other.
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
    /// The holders compare it so, of rows of which a cycle takes several: the block has one row, whose cycles take these.
    InCycles {
        /// Rows that are compared.
        rows: u64,
        /// Rows per compared digest.
        every: u32,
        /// Whether several rows may have the same key.
        duplicates: bool,
    },
    /// They have no order in common: rows of two parties meet where their keys are equal, between parties that have as many keys as they say, at
    /// most. The circuit is [`equality`](crate::equality); what it gives in a row is, of that key of party `result`, whether some key of the other
    /// party is equal.
    Intersected {
        /// Keys of each party.
        keys: [u64; 2],
        /// The party whose rows these are.
        result: PartyId,
    },
}

impl Order {
    /// Rows per compared digest, if the order is compared.
    pub const fn every(self) -> Option<u32> {
        match self {
            Order::Compared { every, .. } | Order::InCycles { every, .. } => Some(every),
            Order::Unsaid | Order::Agreed | Order::Intersected { .. } => None,
        }
    }

    /// How many rows of a block are compared, if they are.
    pub const fn compared(self, block: u64) -> Option<u64> {
        match self {
            Order::Compared { .. } => Some(block),
            Order::InCycles { rows, .. } => Some(rows),
            Order::Unsaid | Order::Agreed | Order::Intersected { .. } => None,
        }
    }

    /// The same of so many rows of which a cycle takes several, if rows are compared.
    pub const fn in_cycles(self, rows: u64) -> Option<Self> {
        match self {
            Order::Compared { every, duplicates } => Some(Order::InCycles {
                rows,
                every,
                duplicates,
            }),
            Order::Unsaid | Order::Agreed | Order::InCycles { .. } | Order::Intersected { .. } => {
                None
            }
        }
    }
}

/// A job as planner and engine see it. All of it is public, and all of it is under the plan hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobSpec {
    /// Name of the job.
    pub name: String,
    /// Outside owners: owners that are not computing parties.
    pub owners: Vec<String>,
    /// The computing parties: two, three or four.
    pub parties: Vec<String>,
    /// Outside recipients: recipients that are not computing parties.
    pub recipients: Vec<String>,
    /// The protocol, and what it holds against.
    pub security: Security,
    /// The meaning of the values, as all participants must read them: of statistics scales, ranges, categories, the treatment of missing
    /// values; of a dataset that is shared again where it comes from. Empty for a circuit, whose [`inputs`](Self::inputs) say it all.
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
    /// How each participant reads the values that it supplies: all inputs of all blocks.
    pub inputs: Vec<InputSpec>,
    /// The datasets at rest that blocks are loaded from.
    pub datasets: Vec<DatasetRef>,
    /// The dataset that the parties keep.
    pub keep: Option<Keep>,
}

/// An input of a job: who supplies it, from what, and how it is read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputSpec {
    /// Who supplies it.
    pub holder: Holder,
    /// Name of the block whose rows it has; nothing for an input that all blocks have.
    pub block: Option<String>,
    /// Name of the column that the holder reads it from, where it is one.
    pub column: Option<String>,
    /// Name of the port that it feeds, of a circuit or a dataset.
    pub port: Option<String>,
    /// How it is read: the type of the column, or the format of the file.
    pub format: String,
}

/// A dataset at rest that a block is loaded from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatasetRef {
    /// The dataset's name.
    pub name: String,
    /// Index of the block.
    pub block: u32,
    /// Input ports of the job, and the ports of the dataset that they load.
    pub ports: Vec<(usize, usize)>,
    /// What the columns of the dataset must be. It says nothing about the ring: shares over 128 bits can be loaded into a
    /// job over 64 bits by truncation, not the other way round.
    pub schema: String,
    /// Rows that the dataset must have, those of all its blocks together.
    pub rows: u64,
}

/// The dataset that the parties of a job keep: a port for each output port whose audience is [`Audience::Stored`], in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keep {
    /// The dataset's name.
    pub name: String,
    /// What the columns are.
    pub schema: String,
}

canonical! {
    struct JobSpec {
        name, owners, parties, recipients, security, schema, circuit, totals, blocks, audiences, opened, inputs, datasets, keep,
    }
    struct Block { name, rows, holders, stored, order }
    struct InputSpec { holder, block, column, port, format }
    struct DatasetRef { name, block, ports, schema, rows }
    struct Keep { name, schema }
    struct Security { protocol, adversary, delivery, tables, schedule, statistical, ot, chunk_rows }
    enum Holder { 0 = Party(party), 1 = Owner(owner), 2 = Stored, 3 = Column }
    enum Audience { 0 = Parties, 1 = Party(party), 2 = Recipient(recipient), 3 = Stored, 4 = Column }
    enum Order { 0 = Unsaid, 1 = Agreed, 2 = Compared { every, duplicates }, 3 = InCycles { rows, every, duplicates }, 4 = Intersected { keys, result } }
    enum ProtocolKind { 0 = Rep3, 1 = Rep4, 2 = Yao }
    enum Adversary { 0 = SemiHonest, 1 = Malicious, 2 = CutAndChoose }
    enum Delivery { 0 = Abort, 1 = Guaranteed }
    enum Tables { 0 = HalfGates, 1 = ThreeHalves }
    enum Ot { 0 = Extension, 1 = Silent }
    enum Schedule { 0 = Layers, 1 = List(rows) }
    enum Rows { 1 = One, 2 = Two, 4 = Four, 8 = Eight, 16 = Sixteen }
}

impl canonical::Canonical for Statistical {
    fn encode(&self, into: &mut dyn canonical::Encoder) {
        canonical::fields("Statistical", None, &[&self.bits()], into);
    }
}

impl canonical::Canonical for ChunkRows {
    fn encode(&self, into: &mut dyn canonical::Encoder) {
        canonical::fields("ChunkRows", None, &[&self.count()], into);
    }
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

impl JobSpec {
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
                per: self.persisted_per(port),
            })
            .collect()
    }

    /// How often output port `port` has a value when it is kept: once if it is summed over the rows, or if its wires are the wires of an
    /// input port with one value per job.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn persisted_per(&self, port: usize) -> Per {
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
