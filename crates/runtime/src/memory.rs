//! How much memory a run of passes takes at one participant, at most.

use std::collections::BTreeSet;
use std::sync::Arc;

use veil_engine::{Acts, Memory, columns_of_a_pass};
use veil_link::LinkKind;
use veil_protocol::WorkspaceOf;
use veil_protocol::passes::{ColumnPlan, Pass, Search};
use veil_session::Peer;

use crate::passes::Passes;

/// What a participant has room for is less than a run takes, wherever columns wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the run takes {} MiB of memory here{}, and there is room for {} MiB", .needs.div_ceil(1 << 20), Spilled(*.spills), .room >> 20)]
pub struct TooSmall {
    /// Bytes that it takes.
    pub needs: u64,
    /// Bytes that there are.
    pub room: u64,
    /// Whether columns may wait on the disk.
    pub spills: bool,
}

struct Spilled(bool);

impl std::fmt::Display for Spilled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0 {
            " with all columns on the disk that a pass does not take"
        } else {
            ""
        })
    }
}

/// What a run takes at a participant.
struct Needs {
    /// All but columns and the workspaces of moves.
    beside: Memory,
    /// The workspace of the largest move.
    moved: u64,
    /// All columns that are there at once, at a party of a program with several passes.
    columns: Option<u64>,
}

impl Needs {
    /// With all columns in memory.
    fn memory(&self) -> Memory {
        let workspaces = self.beside.workspaces.max(self.moved) + self.columns.unwrap_or(0);
        Memory {
            workspaces,
            ..self.beside
        }
    }
}

impl Passes {
    /// The memory that a run allocates at a participant: that of the pass which takes most, and the columns that are there at once.
    pub fn memory(&self, me: Peer, window: usize, link: LinkKind) -> Memory {
        self.needs(me, window, link).memory()
    }

    /// The same with all columns on the disk that a pass does not take: of a party of a program with several passes, where that is less.
    pub fn least_memory(&self, me: Peer, window: usize, link: LinkKind) -> Option<u64> {
        self.least(me, &self.needs(me, window, link))
    }

    fn least(&self, me: Peer, needs: &Needs) -> Option<u64> {
        needs.columns?;
        let least = columns_of_a_pass(&Acts::new(Arc::clone(self.program()), me));
        let least = needs.beside.total() + least;
        (least < needs.memory().total()).then_some(least)
    }

    /// The room for columns at a participant that has so many bytes for a run in all: nothing if all columns have room, or there are none.
    ///
    /// # Errors
    /// [`TooSmall`] if it is not enough: without a disk (`spills`) for all columns at once, with it for those of one pass.
    pub fn room(
        &self,
        me: Peer,
        (window, link): (usize, LinkKind),
        (bytes, spills): (u64, bool),
    ) -> Result<Option<u64>, TooSmall> {
        let needs = self.needs(me, window, link);
        let all = needs.memory().total();
        if all <= bytes {
            return Ok(None);
        }
        let too_small = |needs| TooSmall {
            needs,
            room: bytes,
            spills,
        };
        let least = spills.then(|| self.least(me, &needs)).flatten();
        let least = least.ok_or_else(|| too_small(all))?;
        if bytes < least {
            return Err(too_small(least));
        }
        Ok(Some(bytes - needs.beside.total()))
    }

    fn needs(&self, me: Peer, window: usize, link: LinkKind) -> Needs {
        let passes = self.program().passes();
        let mut seen = BTreeSet::new();
        let mut plans = Vec::new();
        let mut most_moved = 0;
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
                Pass::Product { plan, .. } => (Arc::as_ptr(plan) as usize, None),
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
                most_moved = most_moved.max(moved);
                most.frames = most.frames.max(moved);
            }
        }
        // All plans are there for the whole run; what any run takes is in each, and is the most of what the smallest takes.
        let least = plans.iter().copied().min().unwrap_or(0);
        most.plan = least + plans.iter().map(|plan| plan - least).sum::<u64>();
        let has_columns = me.party().is_some() && passes.len() > 1;
        Needs {
            beside: most,
            moved: most_moved,
            columns: has_columns.then(|| self.columns()),
        }
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

/// Bytes of the workspace of a move, or of a product of matrices.
fn moved(pass: &Pass, me: Peer) -> u64 {
    let Some(chunk) = pass.whole() else {
        return 0;
    };
    let protocol = pass.protocol(me);
    let regions = protocol.layout(WorkspaceOf::Rows).regions.iter();
    let bytes = regions.map(|region| {
        region.column.bytes(chunk.frame.rows)
            * u64::from(region.components)
            * u64::from(region.count)
    });
    bytes.sum()
}
