//! How much memory a run takes at one participant, at most.

use std::collections::BTreeMap;

use veil_device::{ColumnType, Cpu, Instr, Region, Residency, Src};
use veil_job::ProtocolKind;
use veil_link::LinkKind;
use veil_protocol::{Plan, Protocol, WorkspaceOf};

use crate::{LARGEST_WINDOW, bounds};

/// Bytes per gate of a circuit that is read, planned when it is proposed and again when it runs, and kept by the job and each of its
/// plans. The allocator keeps what the planner gave back: a service that runs SHA-256 once takes about 500.
const GATE: u64 = 1024;

/// The same between two parties, whose jobs have one plan and no stages: to plan takes 226 at its peak, of circuits of millions of gates, code included.
const GATE_OF_TWO: u64 = 256;

/// Bytes of a round that is kept ready, beside its commands.
const ROUND: u64 = 1024;

/// What any run takes: threads, connections, and code of the program that no run has used before.
const RUN: u64 = 6 << 20;

/// Bytes of workspaces of a lane up to which chunks begin while those in flight wait for messages.
const AHEAD: u64 = 16 << 20;

/// A vector of the device: rows of a slot are padded to whole ones.
const VECTOR: u64 = 64;

/// The memory that a run allocates at one participant, in bytes: an upper bound, from the plan alone. Not in it are the program itself and
/// the participant's own tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Workspaces of the chunks in flight, over all lanes.
    pub workspaces: u64,
    /// Messages that may wait in connections, over all lanes: messages that peers send ahead, and messages that they do not take.
    pub frames: u64,
    /// The circuit, the plan and its rounds, and what any run takes.
    pub plan: u64,
}

impl Memory {
    /// Of the participant that runs `protocol` over `link`, with so many chunks in flight per lane.
    pub fn new(plan: &Plan, protocol: &dyn Protocol, window: usize, link: LinkKind) -> Self {
        let lanes = u64::from(plan.lanes);
        let chunks = in_flight(plan, protocol, window) as u64 * lanes;
        let chunks = chunks.min(u64::from(plan.chunks()));
        // The set-up is over before there are chunks, and the totals come after them: at most one workspace of these is beside theirs.
        let chunk = workspace_of_chunk(plan, protocol);
        let job = workspace(
            plan,
            protocol,
            WorkspaceOf::Job,
            protocol.rows(WorkspaceOf::Job, 1),
        );
        let bounds = bounds(plan, protocol);
        let peers = protocol.peers().len() as u64;
        let totals = plan.job.totals.as_ref();
        let gates = plan.job.circuit.gates.len() + totals.map_or(0, |totals| totals.gates.len());
        let gate = match plan.job.security.protocol {
            ProtocolKind::Yao => GATE_OF_TWO,
            ProtocolKind::Rep3 | ProtocolKind::Rep4 => GATE,
        };
        let code = plan.programs.iter().map(|program| {
            let (code, pairs) = (program.code.len(), program.pairs.len());
            code * size_of::<Instr>() + pairs * size_of::<(Src, Src)>()
        });
        let code = code.sum::<usize>() as u64;
        Memory {
            workspaces: chunk * chunks + job,
            frames: peers * lanes * bounds.held(link),
            plan: RUN
                + gate * gates as u64
                // As the plan has it, and as a device does, for all lanes.
                + code * 3
                + u64::from(protocol.places()) * ROUND,
        }
    }

    /// All of it.
    pub const fn total(&self) -> u64 {
        self.workspaces
            .saturating_add(self.frames)
            .saturating_add(self.plan)
    }
}

/// Chunks in flight of a lane, at most, at the participant that runs `protocol`, where [`Settings::window`](crate::Settings::window) is `window`.
pub fn in_flight(plan: &Plan, protocol: &dyn Protocol, window: usize) -> usize {
    let window = window.clamp(1, LARGEST_WINDOW);
    if window == 1 || !protocol.spans().kept.is_empty() {
        return 1;
    }
    let chunk = workspace_of_chunk(plan, protocol).max(1);
    let fits = (AHEAD / chunk).min(LARGEST_WINDOW as u64) as usize;
    fits.max(window)
}

fn workspace_of_chunk(plan: &Plan, protocol: &dyn Protocol) -> u64 {
    let rows = protocol.rows(WorkspaceOf::Rows, plan.longest_chunk());
    workspace(plan, protocol, WorkspaceOf::Rows, rows)
}

/// Bytes of a workspace of `rows` rows, with what programs keep behind their slots.
fn workspace(plan: &Plan, protocol: &dyn Protocol, holds: WorkspaceOf, rows: u32) -> u64 {
    let layout = protocol.layout(holds);
    let item = |item: ColumnType| match item {
        item if item.of_rows() => item.bytes(rows).next_multiple_of(VECTOR),
        item => item.bytes(rows),
    };
    // Behind the slots of each ring as many as its longest program needs.
    let mut scratch = BTreeMap::new();
    let programs = protocol
        .programs()
        .iter()
        .zip(plan.workspaces_of_programs());
    for (program, _) in programs.filter(|(_, of)| *of == holds) {
        let slots = &layout.regions[program.slots as usize];
        let temps = u64::from(Cpu::scratch(program, slots));
        let of = scratch.entry(program.slots).or_insert(0);
        *of = (u64::from(slots.components) * temps * item(slots.column)).max(*of);
    }
    let regions = layout.regions.iter();
    // A plane whose columns are padded has a packed copy.
    let copied = |r: &Region| match (r.residency, r.column.bytes(rows)) {
        (Residency::Plane, packed) if packed != item(r.column) => packed,
        _ => 0,
    };
    let regions = regions.map(|r| {
        let column = item(r.column) + copied(r);
        column * u64::from(r.components) * u64::from(r.count)
    });
    regions.chain(scratch.into_values()).sum()
}
