//! How much memory a run takes at one participant, at most.

use std::collections::BTreeMap;

use veil_device::{Cpu, Instr, Src};
use veil_protocol::{Plan, Protocol};

use crate::{LARGEST_WINDOW, bounds};

/// Bytes per gate of a circuit that is read, planned when it is proposed and again when it runs, and kept by the job and each of its
/// plans. The allocator keeps what the planner gave back: a service that runs SHA-256 once takes about 500.
const GATE: u64 = 1024;

/// Bytes of a round that is kept ready, beside its commands.
const ROUND: u64 = 1024;

/// A vector of the device: rows of a slot are padded to whole ones.
const VECTOR: u64 = 64;

/// What a run allocates at one participant, in bytes: an upper bound, from the plan alone. Not in it are the program itself and
/// the participant's own tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Banks of the chunks in flight, over all lanes.
    pub banks: u64,
    /// What may wait in connections, over all lanes: what peers may send ahead, and what they do not take.
    pub frames: u64,
    /// The circuit, the plan and its rounds.
    pub plan: u64,
}

impl Memory {
    /// Of the participant that runs `protocol`, with so many chunks in flight per lane.
    pub fn new(plan: &Plan, protocol: &dyn Protocol, window: usize) -> Self {
        let lanes = u64::from(plan.lanes);
        let layout = protocol.layout();
        // Behind the slots of each ring as many as its longest program needs.
        let mut scratch = BTreeMap::new();
        for program in protocol.programs() {
            let slots = &layout.regions[program.slots as usize];
            let rows = slots.item.bytes(plan.chunk_rows).next_multiple_of(VECTOR);
            let temps = u64::from(Cpu::scratch(program, slots.count));
            let of = scratch.entry(program.slots).or_insert(0);
            *of = (u64::from(slots.parts) * temps * rows).max(*of);
        }
        let scratch: u64 = scratch.values().sum();
        let bank = layout.regions.iter().map(|region| {
            let item = match region.item {
                item if item.of_rows() => item.bytes(plan.chunk_rows).next_multiple_of(VECTOR),
                item => item.bytes(plan.chunk_rows),
            };
            item * u64::from(region.parts) * u64::from(region.count)
        });
        let bank: u64 = bank.sum::<u64>() + scratch;
        // The set-up and the totals have banks of one row, in the memory of the others.
        let banks = bank * window.clamp(1, LARGEST_WINDOW) as u64;
        let bounds = bounds(plan, protocol);
        let peers = protocol.peers().len() as u64;
        let gates = plan.job.circuit.gates.len() as u64;
        let code = plan.programs.iter().map(|program| {
            let (code, pairs) = (program.code.len(), program.pairs.len());
            code * size_of::<Instr>() + pairs * size_of::<(Src, Src)>()
        });
        let code = code.sum::<usize>() as u64;
        Memory {
            banks: banks * lanes,
            frames: peers * lanes * bounds.held(),
            plan: GATE * gates + code * (2 + lanes) + u64::from(protocol.places()) * ROUND,
        }
    }

    /// All of it.
    pub const fn total(&self) -> u64 {
        self.banks
            .saturating_add(self.frames)
            .saturating_add(self.plan)
    }
}
