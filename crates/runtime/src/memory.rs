//! How much memory a run of passes takes at one participant, at most.

use std::collections::BTreeSet;
use std::sync::Arc;

use veil_engine::Memory;
use veil_link::LinkKind;
use veil_protocol::WorkspaceOf;
use veil_protocol::passes::{ColumnPlan, Pass, Search};
use veil_session::Peer;

use crate::passes::Passes;

impl Passes {
    /// The memory that a run allocates at a participant: that of the pass which takes most, and the columns that are there at once.
    pub fn memory(&self, me: Peer, window: usize, link: LinkKind) -> Memory {
        let passes = self.program().passes();
        let mut seen = BTreeSet::new();
        let mut plans = Vec::new();
        let mut most = Memory {
            workspaces: 0,
            frames: 0,
            plan: 0,
        };
        for pass in passes {
            let (key, memory) = match pass {
                Pass::Rows { plan, .. } => {
                    let of = || Memory::new(plan, &*pass.protocol(me), window, link);
                    (Arc::as_ptr(plan) as usize, Some(of))
                }
                Pass::Move { plan, .. } => (Arc::as_ptr(plan) as usize, None),
            };
            if !seen.insert(key) {
                continue;
            }
            if let Some(of) = memory {
                let of = of();
                most.workspaces = most.workspaces.max(of.workspaces);
                most.frames = most.frames.max(of.frames);
                plans.push(of.plan);
            } else {
                let moved = moved(pass, me);
                most.workspaces = most.workspaces.max(moved);
                most.frames = most.frames.max(moved);
            }
        }
        // All plans are there for the whole run; what any run takes is in each, and is the most of what the smallest takes.
        let least = plans.iter().copied().min().unwrap_or(0);
        most.plan = least + plans.iter().map(|plan| plan - least).sum::<u64>();
        if me.party().is_some() && passes.len() > 1 {
            most.workspaces += self.columns();
        }
        most
    }

    /// Bytes of the columns that a party has at once, at most: components of shares, and the factors of permutations.
    fn columns(&self) -> u64 {
        let program = self.program();
        // Of three parties each lacks one component of three, of four one of four.
        let components = program.first().parties().len() as u64 - 1;
        let bytes = |of: &ColumnPlan| u64::from(of.rows) * of.form.bytes() * components;
        let (mut now, mut most) = (0, 0u64);
        for pass in 0..program.passes().len() {
            let made = program.made_before(pass).map(|made| made.column);
            let left = made.chain(program.left_by(pass));
            now += left
                .map(|column| bytes(&program.columns()[column.0 as usize]))
                .sum::<u64>();
            let compares = program.passes()[pass].compares();
            let ordering = compares.map_or(0, |of| u64::from(of.rows) * Search::BYTES);
            most = most.max(now + ordering);
            let ended = program.ending(pass);
            let ended = ended.map(|column| bytes(&program.columns()[column.0 as usize]));
            now = now.saturating_sub(ended.sum());
        }
        most
    }
}

/// Bytes of the workspace of a move.
fn moved(pass: &Pass, me: Peer) -> u64 {
    let Pass::Move { plan, .. } = pass else {
        return 0;
    };
    let protocol = pass.protocol(me);
    let regions = protocol.layout(WorkspaceOf::Rows).regions.iter();
    let bytes = regions.map(|region| {
        region.column.bytes(plan.rows) * u64::from(region.components) * u64::from(region.count)
    });
    bytes.sum()
}
