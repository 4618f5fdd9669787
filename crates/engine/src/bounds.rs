//! Bounds on the links of a plan, from the messages of its rounds.

use veil_link::Bounds;
use veil_protocol::passes::Pass;
use veil_protocol::{Plan, Protocol, Task, WorkspaceOf};
use veil_session::Frame;

use crate::{Acts, LARGEST_WINDOW, setup};

/// The bounds on the links of this plan.
pub fn bounds(plan: &Plan, protocol: &dyn Protocol) -> Bounds {
    let digests = plan.orders.iter().map(|o| 32 * u64::from(o.digests));
    let longest = longest(plan, protocol)
        .max(digests.max().unwrap_or(0))
        .max(setup::longest(protocol))
        .max(256);
    // A lane has no more chunks in flight than it has, which is one where keys meet or a job has one row.
    let chunks = plan.chunks().div_ceil(u32::from(plan.lanes).max(1));
    let window = u64::from(chunks).clamp(1, LARGEST_WINDOW as u64);
    Bounds {
        longest,
        // A correct neighbour is at most two rounds ahead in each chunk of its window, and an owner fills what it is given.
        early: 3 * window * (longest + 64) + (1 << 16),
        credit: 2 * longest + (1 << 18),
        places: protocol.places() + setup::places(protocol),
        chunks: plan.chunks() + 2,
        epochs: 1,
    }
}

/// The bounds on the links of a participant of a program: wide enough for each of its passes.
pub fn program_bounds(acts: &Acts) -> Bounds {
    let of = |number: usize| {
        let protocol = acts.protocol(number);
        match acts.pass(number) {
            Pass::Rows { plan, .. } => bounds(plan, &**protocol),
            Pass::Move { plan, .. } => of_whole(plan.chunk().frame, &**protocol),
            Pass::Product { plan, .. } => of_whole(plan.chunk().frame, &**protocol),
        }
    };
    let numbers = (0..acts.count()).filter(|number| acts.like_exactly(*number) == *number);
    let first = numbers.map(of).reduce(Bounds::wider);
    Bounds {
        epochs: acts.count() as u16,
        ..first.expect("a program has passes")
    }
}

/// Messages of a move, or of a product of matrices, are as long as a column; a neighbour that waits for none is ahead by those of the pass, and of what follows it.
fn of_whole(frame: Frame, protocol: &dyn Protocol) -> Bounds {
    let layout = protocol.layout(WorkspaceOf::Rows);
    let flow = protocol.flow(Task::Layers, frame);
    let (mut longest, mut all) = (256, 0);
    for round in flow.all() {
        for transfer in round.sends.iter().chain(&round.recvs) {
            let bytes = transfer.bytes(layout, frame.rows);
            longest = longest.max(bytes);
            all += bytes;
        }
    }
    Bounds {
        longest,
        early: 2 * all + (1 << 16),
        credit: 2 * longest + (1 << 18),
        places: protocol.places() + setup::places(protocol),
        chunks: 2,
        epochs: 1,
    }
}

/// Payload bytes of the longest message that a round sends or receives.
fn longest(plan: &Plan, protocol: &dyn Protocol) -> u64 {
    let set_up = plan.set_up_frame();
    let mut agree = protocol.flow(Task::Agree, set_up);
    while agree.next().is_some() {}
    // To look at the rounds of an opening takes the permission to open; a flow of which nothing is sent gives one.
    let cleared = agree
        .cleared()
        .expect("an agreement that was pulled to its end clears");
    let blocks = 0..plan.job.blocks.len() as u32;
    let of_chunk = blocks.map(|block| Task::Inputs { block });
    let of_chunk = of_chunk.chain([Task::Layers, Task::Agree, Task::Open(cleared)]);
    // Roles may alternate from chunk to chunk, and inputs of cycles are those of the block.
    let mut before = 0;
    let chunks = plan.job.blocks.iter().flat_map(|block| {
        let first = 1 + before;
        let count = block.rows.div_ceil(u64::from(plan.chunk_rows)) as u32;
        before += count;
        first..first + count.clamp(1, 2)
    });
    let chunks: Vec<u32> = chunks.collect();
    let of_chunks = of_chunk.flat_map(|task| {
        chunks.iter().map(move |&chunk| {
            let frame = Frame {
                chunk,
                rows: plan.longest_chunk(),
                ..set_up
            };
            (WorkspaceOf::Rows, task, frame)
        })
    });
    let totals = [Task::Totals, Task::Agree, Task::OpenTotals(cleared)];
    let totals = totals.map(|task| (WorkspaceOf::Job, task, plan.totals_frame()));
    let tasks = [(WorkspaceOf::Job, Task::SetUp, set_up)]
        .into_iter()
        .chain(of_chunks)
        .chain(totals);
    let longest = tasks.filter_map(|(of, task, frame)| {
        let (layout, flow) = (protocol.layout(of), protocol.flow(task, frame));
        let rows = protocol.rows(of, frame.rows);
        let of_round = flow.all().filter_map(|round| {
            let transfers = round.sends.iter().chain(&round.recvs);
            transfers.map(|transfer| transfer.bytes(layout, rows)).max()
        });
        of_round.max()
    });
    longest.max().unwrap_or(0)
}
