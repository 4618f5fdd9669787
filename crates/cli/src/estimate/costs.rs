//! What participants send, before anything is sent.

use veil_protocol::{Cost, Plan, Protocol, Task};
use veil_session::Frame;

/// What a participant sends, by the formulas of its protocol.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent {
    pub(crate) set_up: Cost,
    /// In a full chunk.
    pub(crate) chunk: Cost,
    pub(crate) totals: Cost,
    /// In all of these, of all chunks.
    pub(crate) all: Cost,
    /// In the handshake.
    pub(crate) handshake: Cost,
    /// In all, with the headers of messages.
    pub(crate) framed: u64,
}

/// What the participant that runs `protocol` sends.
pub(crate) fn sent(plan: &Plan, protocol: &dyn Protocol) -> Sent {
    let set_up_frame = plan.set_up_frame();
    let mut agree = protocol.flow(Task::Agree, set_up_frame);
    while agree.next().is_some() {}
    // The cost of an opening needs the permission to open; a flow of which nothing is sent gives one.
    let cleared = agree
        .cleared()
        .expect("an agreement that was pulled to its end clears");
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
    let set_up = protocol.cost(Task::SetUp, set_up_frame);
    let totals = if plan.has_totals() {
        let frame = plan.totals_frame();
        let tasks = [Task::Totals, Task::Agree, Task::OpenTotals(cleared)];
        tasks.into_iter().fold(Cost::default(), |cost, task| {
            cost + protocol.cost(task, frame)
        })
    } else {
        Cost::default()
    };
    let mut all = set_up + totals;
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
            all = all + chunk(index, frame(first, rest));
            first += 1;
        }
    }
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
