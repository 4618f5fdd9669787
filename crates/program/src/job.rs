//! What a job means to planner and engine.

use veil_circuit::Circuit;
use veil_session::PartyId;

/// Who supplies the values of an input port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Holder {
    /// A computing party.
    Party(PartyId),
    /// An outside owner, numbered as in [`Lowered::owners`].
    Owner(u16),
}

/// To whom an output is opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Audience {
    /// All three computing parties.
    Parties,
    /// One computing party.
    Party(PartyId),
    /// An outside recipient, numbered as in [`Lowered::recipients`].
    Recipient(u16),
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
}

/// A job as planner and engine see it. All of it is public, and all of it is under the plan hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lowered {
    /// Name of the job.
    pub name: String,
    /// Outside owners: those that are not computing parties.
    pub owners: Vec<String>,
    /// The computing parties.
    pub parties: [String; 3],
    /// Outside recipients: those that are not computing parties.
    pub recipients: Vec<String>,
    /// What is computed in every row, or summed over the rows.
    pub circuit: Circuit,
    /// The rows: at least one block.
    pub blocks: Vec<Block>,
    /// To whom each of the circuit's output ports is opened, in order.
    pub audiences: Vec<Audience>,
    /// One plain sentence for each output port: what is opened.
    pub opened: Vec<String>,
}

impl Lowered {
    /// Rows of all blocks together.
    pub fn rows(&self) -> u64 {
        self.blocks.iter().map(|block| block.rows).sum()
    }
}
