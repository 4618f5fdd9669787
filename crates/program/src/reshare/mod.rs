//! From one set of parties to another: a dataset at rest is shared again.
//!
//! The new parties compute; the old ones take part as owners, or as parties where they are in both sets. Of every old component both
//! holders supply what they have: the new parties add the first copies of the three, which is free, keep the result, and open the
//! differences of the two copies to themselves, which are zero. So whatever one old party changed in its store, or supplies wrongly, is
//! found before anything becomes visible; two of them together could change values, as they could read them. Nobody learns more than it knew:
//! an old party supplies what it has, as fresh shares, and a new party sees shares and zeros.

use std::sync::Arc;

use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_math::Ring;
use veil_session::PartyId;

use crate::{Audience, Block, DataError, Holder, Lowered, ShareSource, Sink, Slice, Source};

/// Copies of components that a column has: two of each of three.
const COPIES: usize = 6;

/// A dataset that is to be shared again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resharing {
    /// The dataset's name.
    pub dataset: String,
    /// Ring of its shares.
    pub ring: Ring,
    /// Names and widths of its ports. Each has a value in every row.
    pub ports: Vec<(String, u32)>,
    /// Names and rows of its blocks.
    pub blocks: Vec<(String, u64)>,
    /// The parties that have it, in their order.
    pub old: [String; 3],
    /// The parties that get it, in their order. They may be some of the old ones.
    pub new: [String; 3],
}

impl Resharing {
    /// The job of the new parties. Output port `k` is kept, and is port `k` of the new dataset.
    ///
    /// Old party `i` supplies [`OldShares`]; every new party needs a [`Zeros`] for the differences that it sees.
    pub fn lowered(&self) -> Lowered {
        let outside: Vec<String> = (self.old.iter())
            .filter(|old| !self.new.contains(old))
            .cloned()
            .collect();
        let holder = |party: PartyId| {
            let name = &self.old[party.index()];
            let mut outside = outside.iter();
            let inside = self.new.iter().position(|new| new == name);
            match inside.and_then(|index| PartyId::new(index as u8)) {
                Some(party) => Holder::Party(party),
                None => Holder::Owner(outside.position(|other| other == name).unwrap_or(0) as u16),
            }
        };
        let holders: Vec<Holder> = (0..self.ports.len() * COPIES)
            .map(|port| holder(supplier(port)))
            .collect();
        let block = |(name, rows): &(String, u64)| Block {
            name: name.clone(),
            rows: *rows,
            holders: holders.clone(),
            stored: None,
            aligned: None,
        };
        let kept =
            |(name, _): &(String, u32)| format!("`{name}` of every row, as `{}`", self.dataset);
        let compared = |(name, _): &(String, u32)| {
            format!(
                "differences of the two copies of each old share of `{name}` in every row: zeros"
            )
        };
        let count = self.ports.len();
        Lowered {
            name: format!("{}: share again", self.dataset),
            schema: String::new(),
            owners: outside.clone(),
            parties: self.new.clone(),
            recipients: Vec::new(),
            circuit: self.circuit(),
            blocks: self.blocks.iter().map(block).collect(),
            audiences: [
                vec![Audience::Stored; count],
                vec![Audience::Parties; count],
            ]
            .concat(),
            opened: self
                .ports
                .iter()
                .map(kept)
                .chain(self.ports.iter().map(compared))
                .collect(),
        }
    }

    /// Sums of first copies, then differences of first and second copies.
    fn circuit(&self) -> Circuit {
        let inputs: Vec<InputPort> = (self.ports.iter())
            .flat_map(|(name, width)| {
                (0..COPIES).map(move |copy| InputPort {
                    name: format!("share {} of {name}, copy {}", copy / 2, copy % 2),
                    width: *width,
                    per: Per::Row,
                })
            })
            .collect();
        let wires: u32 = inputs.iter().map(|input| input.width).sum();
        let mut gates = Vec::new();
        let mut gate = |gate| {
            gates.push(gate);
            Wire(wires + gates.len() as u32 - 1)
        };
        let (mut sums, mut differences) = (Vec::new(), Vec::new());
        let mut first = 0;
        for (name, width) in &self.ports {
            let at = |copy: u32, wire: u32| Wire(first + copy * width + wire);
            let sum = (0..*width)
                .map(|wire| {
                    let two = gate(Gate::Add(at(0, wire), at(2, wire)));
                    gate(Gate::Add(two, at(4, wire)))
                })
                .collect();
            let difference = (0..3 * width)
                .map(|k| {
                    let (copy, wire) = (2 * (k / width), k % width);
                    gate(Gate::Sub(at(copy, wire), at(copy + 1, wire)))
                })
                .collect();
            let port = |name, wires| OutputPort {
                name,
                wires,
                reduce: Reduce::None,
            };
            sums.push(port(name.clone(), sum));
            differences.push(port(format!("differences of {name}"), difference));
            first += COPIES as u32 * width;
        }
        Circuit {
            ring: self.ring,
            inputs,
            gates,
            outputs: [sums, differences].concat(),
        }
    }
}

/// The old party that supplies input port `port`: both copies of component c are one after the other, first that of party c, whose own it
/// is, then that of party c + 1.
fn supplier(port: usize) -> PartyId {
    let (component, copy) = (port % COPIES / 2, port % 2);
    let party = PartyId::ALL[component];
    if copy == 0 { party } else { party.next() }
}

/// What an old party supplies: both components of all ports, from its store.
pub struct OldShares {
    party: PartyId,
    shares: Arc<dyn ShareSource>,
}

impl OldShares {
    /// Of party `party` of the old ones, whose store `shares` numbers ports and blocks as the dataset does.
    pub fn new(party: PartyId, shares: Arc<dyn ShareSource>) -> Self {
        OldShares { party, shares }
    }
}

impl Source for OldShares {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        if supplier(port) != self.party {
            return Err(DataError::out_of_reach(port, slice));
        }
        let component = (port % 2) as u8;
        self.shares.load(port / COPIES, component, slice, into)
    }
}

/// A new party's end: refuses a run in which two copies of an old share differ.
#[derive(Clone, Copy, Default, Debug)]
pub struct Zeros;

impl Sink for Zeros {
    fn put(&self, _port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        if values.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(DataError::SharesDiffer {
            block: slice.block,
            first: slice.first,
            rows: slice.rows.into(),
        })
    }

    fn finish(&self) -> Result<(), DataError> {
        Ok(())
    }
}
