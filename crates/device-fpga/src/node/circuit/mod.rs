//! Circuits of bits as lists: what each node does for all of a circuit, from its inputs to its outputs, without its host.
//!
//! Values are columns, one for each component that a party has. A list has sums and products in waves: what is in a wave needs nothing of it, and a
//! wave begins when the one before has ended and, after products, when what other parties send has come. Products of four parties have two commands,
//! and the second ones, which join what came, end the wave. Columns lie where no other node writes; but of products of three parties the previous ones
//! lie in the inbox of the party before. What is sent between four lies in the inboxes of its senders until it is joined.
//!
//! A column is used again after its last reader. A place of an inbox may be written by a party that is ahead, but not by more than this. Let x
//! give something to y, and let what y gives come to x by L parties: of three, y gives to z and z to x, which is 2. Then x begins the products of depth
//! m when it has what z gave of depth m-1, z began these when it had what y gave of depth m-2, and y began those when all of its waves before had ended.
//! So y reads nothing any more of waves before its products of depth m-L, and of depth m what was there in depth m-L-1 may be written over.

mod ahead;
mod columns;
mod commands;
mod graph;
mod layout;
mod pack;
mod run;
mod waves;

use veil_circuit::{Circuit, Reduce, simplify};
use veil_math::Ring;

pub use self::commands::PrfCounters;
pub(crate) use self::graph::{Graph, Value};
use self::layout::Layout;
use self::pack::Packed;
pub use self::run::Circuits;
use self::waves::waves;
use super::trio::previous;
use super::{Limits, Window};

/// Bytes of a word.
const WORD: u64 = 16;
/// Rows of bits in a word.
const ROWS: u32 = 128;
/// How far readers, and operands, of a gate are looked at for others like it. Which is best depends on the circuit: parts that are alike are no longer
/// so if more is looked at, and if less is, different places of them are.
const RADII: [(u32, u32); 10] = [
    (0, 0),
    (1, 1),
    (2, 0),
    (2, 1),
    (3, 0),
    (3, 1),
    (4, 0),
    (4, 1),
    (6, 0),
    (8, 0),
];
/// Addresses of a plan from here on are of the inbox of the party before, which lies elsewhere at each node.
const INBOX: u64 = 1 << 48;
/// From here on they are of components of public bits, of which each party has others.
const PUBLIC: u64 = 1 << 49;
/// From here on they are of operands that were brought together for a wave.
const BROUGHT: u64 = 1 << 50;

/// A circuit that no lists are made of.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Integers.
    #[error("lists are of circuits over bits: this one has integers or random values")]
    Integers,
    /// Cycles.
    #[error("lists are of circuits without cycles and registers")]
    Sequential,
    /// Too long columns.
    #[error("{rows} rows are more than addresses have room for")]
    Rows {
        /// Rows.
        rows: u32,
    },
}

/// Who runs a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parties {
    /// Three, each with two components of a value: its own and the previous one.
    Three,
    /// Four, each with three, in its order: that which the next party lacks first.
    Four {
        /// Whether messages have MACs. Without them a party that sends something else is not found.
        checks: bool,
    },
}

impl Parties {
    /// Components of a value that a party has.
    const fn parts(self) -> u32 {
        match self {
            Parties::Three => 2,
            Parties::Four { .. } => 3,
        }
    }

    /// Which component of all a party has at a place of its own.
    const fn component(self, me: u8, part: u8) -> u8 {
        match (self, part) {
            (Parties::Three, 0) => me,
            (Parties::Three, _) => previous(me),
            (Parties::Four { .. }, _) => (me + 1 + part) % 4,
        }
    }

    /// The components of a party that a public bit is added to: bit p for the one at place p.
    pub(crate) fn public_parts(self, me: u8) -> u8 {
        let parts = 0..self.parts() as u8;
        let public = parts.filter(|part| self.is_public(self.component(me, *part)));
        public.fold(0, |bits, part| bits | 1 << part)
    }

    /// Whether a public bit is added to a component. The sum of all three is an odd number of times it; of four, the first has it alone.
    const fn is_public(self, component: u8) -> bool {
        match self {
            Parties::Three => true,
            Parties::Four { .. } => component == 0,
        }
    }
}

/// What a plan is for, and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// Who runs it.
    pub parties: Parties,
    /// Where what no other node writes begins, at all nodes: with a beat.
    pub base: u64,
    /// Where the inbox of each sender begins, at all nodes that it sends to. Behind all columns, if nothing is said.
    pub inboxes: Option<[u64; 4]>,
}

impl Site {
    /// From an address on, with inboxes behind all columns.
    pub const fn new(parties: Parties, base: u64) -> Self {
        Site {
            parties,
            base,
            inboxes: None,
        }
    }
}

/// Where the components of a value lie, in the order of a party.
type Columns = Vec<u64>;

/// What is done at once.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Round {
    sums: Vec<Packed>,
    /// What brings operands together before products of four parties.
    moves: Vec<Packed>,
    /// Counters are first words.
    products: Vec<Packed>,
    /// Words of products before these.
    before: u64,
    /// Commands of products before these.
    commands: u64,
    /// Rounds with products before this one.
    depth: u32,
}

/// A circuit as what three or four nodes do, for so many rows.
#[derive(Clone, Debug)]
pub struct Plan {
    parties: Parties,
    rows: u32,
    stride: u32,
    inputs: Vec<Columns>,
    outputs: Vec<Columns>,
    rounds: Vec<Round>,
    /// Zeros, then as many ones.
    constants: Window,
    own: Window,
    /// Of four parties: where shares that are not complete begin.
    left: u64,
    /// Where operands are brought together.
    brought: u64,
    inboxes: [Window; 4],
    /// Of four parties: words of an inbox for one message of each product of a depth.
    most: u32,
    /// Where the list lies, of any party and chunk.
    list: Window,
    /// Words of a beat.
    lanes: u32,
    /// Words of products in all.
    words: u64,
    /// Commands of products in all; of four parties, of each stage.
    layers: u64,
}

impl Plan {
    /// Lists of a circuit for units that have `limits`.
    ///
    /// # Errors
    /// [`Unfit::Sequential`] if the circuit has cycles or outputs summed over the rows, [`Unfit::Integers`] if it is not of bits,
    /// [`Unfit::Rows`] if a column is too long for the units.
    pub fn new(circuit: &Circuit, rows: u32, limits: Limits, site: Site) -> Result<Self, Unfit> {
        if circuit.is_sequential()
            || circuit
                .outputs
                .iter()
                .any(|port| port.reduce != Reduce::None)
        {
            return Err(Unfit::Sequential);
        }
        if circuit.ring != Ring::Bits {
            return Err(Unfit::Integers);
        }
        Plan::of(&Graph::of(&simplify(circuit))?, rows, limits, site)
    }

    /// The same of a graph.
    pub(crate) fn of(graph: &Graph, rows: u32, limits: Limits, site: Site) -> Result<Self, Unfit> {
        // Inputs alone: a plan of too many rows is not made to be thrown away.
        let inputs = u64::from(site.parties.parts()) * u64::from(graph.inputs());
        if inputs * u64::from(rows.div_ceil(ROWS)) > u64::from(u32::MAX) {
            return Err(Unfit::Rows { rows });
        }
        let waves = waves(graph);
        let made = RADII.map(|(readers, operands)| {
            let mut layout = Layout::new(graph, &waves, rows, limits, site);
            layout.place(&graph.neighbourhoods(readers, operands));
            layout.done()
        });
        let [first, others @ ..] = made;
        let fewer = |a: Plan, b: Plan| if b.work() < a.work() { b } else { a };
        let mut plan = others.into_iter().fold(first, fewer);
        plan.list.words = plan.longest_list();
        if plan.end() > WORD * u64::from(u32::MAX) {
            return Err(Unfit::Rows { rows });
        }
        Ok(plan)
    }

    /// Commands of a list, without those that wait.
    pub fn work(&self) -> usize {
        let stages = match self.parties {
            Parties::Three => 1,
            Parties::Four { .. } => 2,
        };
        let rounds = self.rounds.iter();
        rounds
            .map(|of| of.moves.len() + of.sums.len() + stages * of.products.len())
            .sum()
    }

    /// Waves: with products, and of sums alone.
    pub fn waves(&self) -> [usize; 2] {
        let products = self.rounds.iter().filter(|of| !of.products.is_empty());
        let products = products.count();
        [products, self.rounds.len() - products]
    }

    /// Who runs it.
    pub fn parties(&self) -> Parties {
        self.parties
    }

    /// Words of products, each of which has a mask of its own.
    pub fn words(&self) -> u64 {
        self.words
    }

    /// Commands with products; of four parties each is a layer of its own, whose MACs have a number of their own.
    pub fn layers(&self) -> u64 {
        self.layers
    }

    /// Rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Words of a column: its rows, up to a whole beat.
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// Where the components of each input wire lie, in the order of a party.
    pub fn inputs(&self) -> &[Vec<u64>] {
        &self.inputs
    }

    /// And at a party those of each output wire, port by port.
    pub fn outputs(&self, me: u8) -> Vec<Vec<u64>> {
        let at = |address: &u64| self.at(me, *address);
        let outputs = self.outputs.iter();
        outputs.map(|of| of.iter().map(at).collect()).collect()
    }

    /// Zeros, then as many ones, which the host writes.
    pub fn constants(&self) -> Window {
        self.constants
    }

    /// All that no other node writes, but the list: constants, columns, shares that are not complete, and operands that were brought together.
    pub fn own(&self) -> Window {
        self.own
    }

    /// What a party writes at those that it sends to, from when the first of them begins with a list until all have ended.
    pub fn inbox(&self, from: u8) -> Window {
        self.inboxes[usize::from(from) % 4]
    }

    /// Where everything ends.
    fn end(&self) -> u64 {
        let all = self.inboxes.iter().chain([&self.own]);
        let ends = all.map(|of| of.address + WORD * u64::from(of.words));
        ends.max().unwrap_or(0)
    }

    /// An address of the plan as it is at a node.
    fn at(&self, me: u8, address: u64) -> u64 {
        if let Some(of) = address.checked_sub(BROUGHT) {
            self.brought + of
        } else if let Some(of) = address.checked_sub(PUBLIC) {
            let (bit, part) = (of & 1, (of >> 1) as u8);
            let component = self.parties.component(me, part);
            let one = bit == 1 && self.parties.is_public(component);
            self.constants.address
                + if one {
                    WORD * u64::from(self.constants.words / 2)
                } else {
                    0
                }
        } else if let Some(of) = address.checked_sub(INBOX) {
            self.inbox(previous(me)).address + of
        } else {
            address
        }
    }
}

/// Where the plan has a component of a public bit.
fn public(bit: bool, part: u32) -> u64 {
    PUBLIC | u64::from(part) << 1 | u64::from(bit)
}
