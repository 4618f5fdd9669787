//! Blocks whose holders compare the order of a key column before anything that depends on an input is sent.

use veil_circuit::Per;
use veil_job::{Block, Holder, JobSpec};
use veil_session::{PartyId, Peer};

use super::PlanError;

/// Digests of a block that are compared at most: a message of half a mebibyte.
pub(super) const MOST: u64 = 1 << 14;

/// How the order of one block's rows is compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderPlan {
    /// Index of the block.
    pub block: u32,
    /// Rows per digest.
    pub every: u32,
    /// Digests that each holder has.
    pub digests: u32,
    /// Who holds columns of the block: two or more.
    pub holders: Vec<Peer>,
    /// Who compares, each for itself: the first two parties that hold no column of the block; where there are fewer, the first others.
    pub judges: [PartyId; 2],
}

impl OrderPlan {
    /// The rows behind digest `index` of the block: the first one, and how many.
    pub fn rows(&self, block: &Block, index: u32) -> (u64, u64) {
        let first = u64::from(index) * u64::from(self.every);
        let rows = block.order.compared(block.rows).unwrap_or(0);
        (first, u64::from(self.every).min(rows.saturating_sub(first)))
    }
}

pub(super) fn of(job: &JobSpec) -> Result<Vec<OrderPlan>, PlanError> {
    let mut orders = Vec::new();
    let parties = super::parties(job);
    for (index, block) in job.blocks.iter().enumerate() {
        let compared = block.order.compared(block.rows);
        let (Some(every), Some(rows)) = (block.order.every(), compared) else {
            continue;
        };
        if every == 0 || index > usize::from(u16::MAX) {
            return Err(PlanError::Job(
                "the order of a block is compared every so many rows, at least 1, in one of the first 65536 blocks",
            ));
        }
        let digests = rows.div_ceil(u64::from(every));
        if digests > MOST {
            return Err(PlanError::TooManyDigests {
                block: block.name.clone(),
                digests,
                every: rows.div_ceil(MOST),
            });
        }
        let holders = holders(job, block);
        // Nothing to compare with.
        if holders.len() < 2 {
            continue;
        }
        let holds = |p: &PartyId| holders.contains(&Peer::Party(*p));
        let mut judges = parties.to_vec();
        judges.sort_by_key(holds);
        orders.push(OrderPlan {
            block: index as u32,
            every,
            digests: digests as u32,
            judges: [judges[0], judges[1]],
            holders,
        });
    }
    Ok(orders)
}

/// Who supplies values per row of `block`, or per cycle, each once.
fn holders(job: &JobSpec, block: &Block) -> Vec<Peer> {
    let ports = job.circuit.inputs.iter().zip(&block.holders);
    let mut holders: Vec<Peer> = ports
        .filter(|(port, _)| port.per != Per::Job)
        .filter_map(|(_, holder): (_, &Holder)| holder.peer())
        .collect();
    holders.sort_unstable();
    holders.dedup();
    holders
}
