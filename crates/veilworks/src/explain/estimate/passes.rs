//! What a program of passes takes, pass by pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_engine::Settings;
use veil_link::LinkKind;
use veil_protocol::passes::{Pass, PassProgram, Search};
use veil_protocol::{Cost, Protocol, Task};
use veil_runtime::Passes;
use veil_session::Peer;

use super::Run;
use super::costs::{chunks, ending, sent};
use crate::explain::rates::Work;

/// What a participant does in one pass.
#[derive(Clone, Copy, Default)]
pub struct Does {
    /// What it sends in all chunks.
    pub sends: Cost,
    work: Work,
}

/// What all participants do in one pass.
#[derive(Clone, Default)]
pub struct OfPass {
    /// By participant.
    pub each: Vec<Does>,
    /// How often all wait for messages, one time after the other.
    pub waits: u64,
}

/// What a participant does in the whole run.
pub struct Whole {
    pub peer: Peer,
    /// Payload.
    pub sends: Cost,
    /// Bytes with the headers of messages, the handshake and the last words.
    pub framed: u64,
    /// Bytes of memory, at most.
    pub memory: u64,
    /// The same with columns on the disk, where that is less.
    pub least_memory: Option<u64>,
}

/// What a program takes.
pub struct Costs {
    /// Pass by pass.
    pub passes: Vec<OfPass>,
    /// By participant.
    pub whole: Vec<Whole>,
    /// The times that are waited for, and the work of participants.
    pub run: Run,
}

impl Costs {
    /// Those of a program, for each participant.
    pub fn of(passes: &Passes) -> Self {
        let program = passes.program();
        let first = program.first();
        let peers = veil_engine::participants(first);
        let mut known: BTreeMap<usize, OfPass> = BTreeMap::new();
        let mut batch = Batch::default();
        let each = program.passes().iter().map(|pass| {
            let key = match pass {
                Pass::Rows { plan, .. } => Arc::as_ptr(plan) as usize,
                Pass::Move { plan, .. } => Arc::as_ptr(plan) as usize,
                Pass::Product { plan, .. } => Arc::as_ptr(plan) as usize,
            };
            let of = known.entry(key);
            let of = of.or_insert_with(|| of_pass(pass, &peers));
            batch.expected(pass, of.clone())
        });
        let each: Vec<OfPass> = each.collect();
        let start = super::protocols(first);
        let sends: Vec<_> = start.iter().map(|of| sent(first, &**of)).collect();
        let mut run = Run::new(first, &start, &sends);
        run.also = each.iter().skip(1).map(|pass| pass.waits).sum();
        let whole = peers.iter().enumerate().map(|(at, peer)| {
            let (mut all, mut framed) = (sends[at].all, sends[at].framed);
            for pass in each.iter().skip(1) {
                let Does { sends, work, .. } = pass.each[at];
                all = all + sends;
                framed += sends.bytes + veil_link::HEADER_BYTES * sends.messages;
                run.work[at] += work;
            }
            if let Some(last) = program.passes().iter().skip(1).last()
                && let Some(plan) = last.rows()
            {
                let sends = ending(plan, &*last.protocol(*peer));
                all = all + sends;
                framed += sends.bytes + veil_link::HEADER_BYTES * sends.messages;
            }
            Whole {
                peer: *peer,
                sends: all,
                framed,
                memory: passes
                    .memory(*peer, Settings::default().window, LinkKind::Tls)
                    .total(),
                least_memory: passes.least_memory(*peer, Settings::default().window, LinkKind::Tls),
            }
        });
        let whole: Vec<Whole> = whole.collect();
        run.busiest = whole.iter().map(|of| of.framed).max().unwrap_or(0);
        Costs {
            passes: each,
            whole,
            run,
        }
    }
}

/// How often all wait for messages in a run of a program, one time after the other, with the handshake and the set-up.
pub fn rounds(program: &PassProgram) -> u64 {
    let first = program.first();
    let peers = veil_engine::participants(first);
    let further = program.passes().iter().skip(1);
    let mut batch = Batch::default();
    let also = further.map(|pass| batch.expected(pass, of_pass(pass, &peers)).waits);
    let also = also.sum();
    Run {
        also,
        ..Run::of(first)
    }
    .rounds_of_all()
}

/// The number of a pass among those that put the same rows in order.
#[derive(Default)]
struct Batch(u32);

impl Batch {
    /// What is expected of a pass: how many rows are compared follows from permutations that are drawn.
    fn expected(&mut self, pass: &Pass, mut of: OfPass) -> OfPass {
        let Some(compares) = pass.compares() else {
            self.0 = 0;
            return of;
        };
        let [full, some] = Search::expected(compares.rows);
        if self.0 >= full {
            of.each.iter_mut().for_each(|does| *does = Does::default());
        }
        if self.0 >= some {
            of.waits = 0;
        }
        self.0 = if compares.positions.is_some() {
            0
        } else {
            self.0 + 1
        };
        of
    }
}

fn of_pass(pass: &Pass, peers: &[Peer]) -> OfPass {
    let protocols = peers.iter().map(|peer| pass.protocol(*peer));
    let protocols: Vec<Arc<dyn Protocol>> = protocols.collect();
    match pass {
        Pass::Rows { plan, .. } => {
            let each = protocols.iter().map(|protocol| {
                let chunks = chunks(plan, &**protocol);
                let does = Does {
                    sends: chunks.all,
                    work: Work::of_pass(plan, &**protocol),
                };
                (does, chunks.longest.rounds)
            });
            let each: Vec<(Does, u64)> = each.collect();
            let longest = each.iter().map(|(_, rounds)| *rounds).max().unwrap_or(0);
            let times =
                u64::from(plan.chunks()).div_ceil(super::in_flight(plan, &protocols).max(1));
            OfPass {
                waits: times.saturating_mul(longest),
                each: each.into_iter().map(|(does, _)| does).collect(),
            }
        }
        whole @ (Pass::Move { .. } | Pass::Product { .. }) => {
            let chunk = whole.whole().expect("a pass with one chunk");
            let frame = chunk.frame;
            let each = protocols.iter().map(|protocol| Does {
                sends: protocol.cost(Task::Layers, frame),
                work: Work::of_move(&**protocol, frame),
            });
            let each: Vec<Does> = each.collect();
            OfPass {
                waits: each.iter().map(|of| of.sends.rounds).max().unwrap_or(0),
                each,
            }
        }
    }
}

impl Run {
    /// Rounds of all passes that follow each other, with the handshake and the set-up.
    pub fn rounds_of_all(&self) -> u64 {
        self.rounds.in_a_row(1) + self.also
    }
}
