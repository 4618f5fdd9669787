//! The two ends of a resharing: what an old party supplies, and what a new one sees.

use std::sync::Arc;

use veil_math::Ring;
use veil_session::PartyId;

use super::{Copies, Resharing};
use veil_job::{DataError, ShareSource, Sink, Slice, Source};

/// The supply of an old party: the components that it has of all ports, from its store.
pub struct OldShares {
    party: PartyId,
    copies: Copies,
    ring: Ring,
    widths: Vec<u32>,
    shares: Arc<dyn ShareSource>,
}

impl OldShares {
    /// Of party `party` of the old ones, whose store `shares` numbers ports and blocks as the dataset does.
    pub fn new(of: &Resharing, party: PartyId, shares: Arc<dyn ShareSource>) -> Self {
        OldShares {
            party,
            copies: of.copies(),
            ring: of.ring,
            widths: of.ports.iter().map(|port| port.1).collect(),
            shares,
        }
    }
}

impl Source for OldShares {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let wire = self.ring.bytes(slice.rows.into()) as usize;
        let wires: usize = self.widths.iter().map(|width| *width as usize).sum();
        let own = |copy: &_| self.copies.holder(*copy) == self.party && into.len() == wires * wire;
        let Some(copy) = self.copies.at(port).filter(own) else {
            return Err(DataError::out_of_reach(port, slice));
        };
        let component = self.copies.part(copy);
        let mut rest = into;
        for (own, width) in self.widths.iter().enumerate() {
            let (part, after) = rest.split_at_mut(*width as usize * wire);
            self.shares.load(own, component, slice, part)?;
            rest = after;
        }
        Ok(())
    }
}

/// A new party's end: refuses a run in which copies of an old share differ, and says who has them.
#[derive(Clone, Debug)]
pub struct Zeros {
    ring: Ring,
    /// The ports of the dataset, which are as many as are kept and come before the differences.
    ports: Vec<(String, u32)>,
    blocks: Vec<String>,
    old: Vec<String>,
    dataset: String,
}

/// Two old parties supply different ones of the share that both have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "in block `{block}`, rows {} to {} of `{column}`, the shares of `{}` and `{}` differ: the store of one of them was altered, \
     or it supplied something else; nothing was kept; `veil shares show {dataset:?} --verify` at both may tell which, restore it \
     there and run again",
    first + 1,
    first.saturating_add(*rows),
    holders[0],
    holders[1]
)]
pub struct SharesDiffer {
    /// The dataset.
    pub dataset: String,
    /// Name of the port.
    pub column: String,
    /// Name of the block.
    pub block: String,
    /// First row of the slice in which they differ.
    pub first: u64,
    /// Rows of the slice.
    pub rows: u64,
    /// Who has the share.
    pub holders: [String; 2],
}

impl Resharing {
    /// The end of a new party.
    pub fn zeros(&self) -> Zeros {
        Zeros {
            ring: self.ring,
            ports: self.ports.clone(),
            blocks: self.blocks.iter().map(|block| block.0.clone()).collect(),
            old: self.old.clone(),
            dataset: self.dataset.clone(),
        }
    }
}

impl Sink for Zeros {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let Some(at) = values.iter().position(|byte| *byte != 0) else {
            return Ok(());
        };
        let Slice { block, first, rows } = slice;
        let own = port.checked_sub(self.ports.len());
        let own = own.and_then(|own| self.ports.get(own));
        let block_name = self.blocks.get(block as usize);
        let both = own.zip(block_name);
        let ((name, width), block_name) =
            both.ok_or_else(|| DataError::out_of_reach(port, slice))?;
        let wire = at as u64 / self.ring.bytes(rows.into());
        let copies = Copies::of(self.old.len());
        let copy = copies.others().nth((wire / u64::from(*width)) as usize);
        let copy = copy.ok_or_else(|| DataError::out_of_reach(port, slice))?;
        let holders = [copy.first(), copy].map(|copy| copies.holder(copy));
        Err(DataError::Differ(Box::new(SharesDiffer {
            dataset: self.dataset.clone(),
            column: name.clone(),
            block: block_name.clone(),
            first,
            rows: rows.into(),
            holders: holders.map(|party| self.old[party.index()].clone()),
        })))
    }

    fn finish(&self) -> Result<(), DataError> {
        Ok(())
    }
}
