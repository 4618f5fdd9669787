//! What the parts of a job with queries cost by themselves: operators, and looking at what owners supply.

use serde::Serialize;
use veil_program::{Queries, Wires};
use veil_protocol::Cost;

use super::estimate::OfPass;

/// What it costs by itself to look at what an owner supplies, among all that is opened.
#[derive(Serialize, Debug)]
pub(super) struct CheckCost {
    pub(super) owner: String,
    #[serde(flatten)]
    pub(super) cost: PassCost,
}

/// What some passes cost.
#[derive(Serialize, Debug)]
pub(super) struct PassCost {
    pub(super) passes: usize,
    /// Payload that all participants send.
    pub(super) bytes: u64,
    pub(super) rounds: u64,
    /// Between two parties, for whom all passes are one circuit, the ANDs that these are of it: what is sent is of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ands: Option<u64>,
}

impl PassCost {
    /// Of these among all.
    fn of(these: impl Iterator<Item = usize>, all: &[OfPass], wires: Option<&Wires>) -> Self {
        if let Some(wires) = wires {
            let own = these.filter_map(|pass| wires.ands.get(pass));
            let own: Vec<u64> = own.copied().collect();
            return PassCost {
                passes: own.len(),
                bytes: 0,
                rounds: 0,
                ands: Some(own.iter().sum()),
            };
        }
        let own: Vec<&OfPass> = these.filter_map(|pass| all.get(pass)).collect();
        let sends = own.iter().flat_map(|pass| &pass.each);
        let sends = sends.fold(Cost::default(), |all, does| all + does.sends);
        PassCost {
            passes: own.len(),
            bytes: sends.bytes,
            rounds: own.iter().map(|pass| pass.waits).sum(),
            ands: None,
        }
    }
}

/// An operator of the plan, and what it costs by itself.
#[derive(Serialize, Debug)]
pub(super) struct OperatorCost {
    pub(super) depth: usize,
    pub(super) what: String,
    pub(super) rows: u32,
    #[serde(flatten)]
    pub(super) cost: PassCost,
}

/// What each operator costs by itself.
pub(super) fn operators(queries: &Queries, passes: &[OfPass]) -> Vec<OperatorCost> {
    let wires = queries.physical().wires.as_ref();
    let all = queries.operators().into_iter();
    let cost = |of: veil_program::Operator| OperatorCost {
        depth: of.depth,
        what: of.text,
        rows: of.rows,
        cost: PassCost::of(of.passes.into_iter().flatten(), passes, wires),
    };
    all.map(cost).collect()
}

/// What it costs to look at what each owner supplies.
pub(super) fn checks(queries: &Queries, passes: &[OfPass]) -> Vec<CheckCost> {
    let wires = queries.physical().wires.as_ref();
    let all = queries.checks().into_iter();
    let cost = |(owner, own): (String, std::ops::Range<usize>)| CheckCost {
        owner,
        cost: PassCost::of(own, passes, wires),
    };
    all.map(cost).collect()
}
