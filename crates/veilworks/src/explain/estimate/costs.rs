//! What participants send, before anything is sent.

use veil_protocol::{Cleared, Cost, Plan, Protocol, Task};
use veil_session::Frame;

/// What a participant sends, by the formulas of its protocol.
#[derive(Clone, Copy, Default)]
pub struct Sent {
    /// In the set-up.
    pub set_up: Cost,
    /// In a full chunk.
    pub chunk: Cost,
    /// In the totals.
    pub totals: Cost,
    /// In all of these, of all chunks.
    pub all: Cost,
    /// In the handshake.
    pub handshake: Cost,
    /// In all, with the headers of messages.
    pub framed: u64,
}

/// What the participant that runs `protocol` sends.
pub fn sent(plan: &Plan, protocol: &dyn Protocol) -> Sent {
    let set_up = protocol.cost(Task::SetUp, plan.set_up_frame());
    let totals = totals(plan, protocol);
    let Chunks { all, longest } = chunks(plan, protocol);
    let all = set_up + totals + all + protocol.carried();
    let handshake = veil_engine::handshake_cost(plan, protocol);
    let framed = all + handshake + veil_engine::last_words_cost(plan, protocol);
    Sent {
        set_up,
        chunk: longest,
        totals,
        all,
        handshake,
        framed: framed.bytes + veil_link::HEADER_BYTES * framed.messages,
    }
}

/// What the participant that runs `protocol` sends at the end of a program whose last pass this is, after its chunks.
pub(super) fn ending(plan: &Plan, protocol: &dyn Protocol) -> Cost {
    totals(plan, protocol) + veil_engine::last_words_cost(plan, protocol)
}

/// The permission to open. The cost of an opening needs it; a flow of which nothing is sent gives one.
fn cleared(plan: &Plan, protocol: &dyn Protocol) -> Cleared {
    let mut agree = protocol.flow(Task::Agree, plan.set_up_frame());
    while agree.next().is_some() {}
    agree
        .cleared()
        .expect("an agreement that was pulled to its end clears")
}

fn totals(plan: &Plan, protocol: &dyn Protocol) -> Cost {
    if !plan.has_totals() {
        return Cost::default();
    }
    let cleared = cleared(plan, protocol);
    let frame = plan.totals_frame();
    let tasks = [Task::Totals, Task::Agree, Task::OpenTotals(cleared)];
    tasks.into_iter().fold(Cost::default(), |cost, task| {
        cost + protocol.cost(task, frame)
    })
}

/// What a participant sends in the chunks of a plan.
pub(super) struct Chunks {
    /// In all of them, without their rounds.
    pub(super) all: Cost,
    /// How often it waits in the longest.
    pub(super) longest: Cost,
}

/// What the participant that runs `protocol` sends in the chunks of a plan.
pub(super) fn chunks(plan: &Plan, protocol: &dyn Protocol) -> Chunks {
    let set_up_frame = plan.set_up_frame();
    let cleared = cleared(plan, protocol);
    let per_row = plan.opens_rows();
    let chunk = |block: u32, frame: Frame| {
        let computed =
            protocol.cost(Task::Inputs { block }, frame) + protocol.cost(Task::Layers, frame);
        if per_row {
            let agree = protocol.cost(Task::Agree, frame);
            computed + agree + protocol.cost(Task::Open(cleared), frame)
        } else {
            computed
        }
    };
    let mut all = Cost::default();
    let mut longest = Cost::default();
    // Set-up is chunk 0.
    let mut first = 1;
    for (index, block) in (0..).zip(&plan.job.blocks) {
        let full = block.rows / u64::from(plan.chunk_rows);
        let rest = (block.rows % u64::from(plan.chunk_rows)) as u32;
        let frame = |chunk, rows| Frame {
            chunk,
            rows,
            ..set_up_frame
        };
        // Roles may alternate from chunk to chunk: half of the full ones cost as the first does, half as the second.
        for (chunks, number) in [(full.div_ceil(2), first), (full / 2, first + 1)] {
            let one = chunk(index, frame(number, plan.chunk_rows));
            all = all
                + Cost {
                    rounds: 0,
                    messages: one.messages * chunks,
                    bytes: one.bytes * chunks,
                };
            longest.rounds = longest.rounds.max(one.rounds);
        }
        first += full as u32;
        if rest > 0 {
            let one = chunk(index, frame(first, rest));
            all = all + Cost { rounds: 0, ..one };
            longest.rounds = longest.rounds.max(one.rounds);
            first += 1;
        }
    }
    Chunks { all, longest }
}
