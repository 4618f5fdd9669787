//! The work of a layer, and the places of its messages.

use veil_device::{Command, Instr, Op, ProgramId, Span};
use veil_math::Ring;
use veil_session::PartyId;

use super::{Scheme, regions};
use crate::plan::{BitsPlan, LayerPlan, Plan, SUMS};

/// A program of a layer, its products, and where their messages are: over the circuit's ring, or over bits beside it.
pub(crate) struct Work {
    pub(crate) ring: Ring,
    program: usize,
    /// Products with an element per row, and sums of products.
    pub(crate) counts: [u32; 2],
    /// First counters of their draws.
    pub(crate) calls: [u64; 2],
    /// Regions of messages that are sent, of products and of sums.
    pub(crate) send: [u16; 2],
    /// Regions of messages that are received.
    pub(crate) receive: [u16; 2],
}

impl Work {
    /// What a layer computes, over its circuit's ring first.
    pub(crate) fn of(plan: &Plan, layer: &LayerPlan) -> Vec<Work> {
        let own = Work {
            ring: plan.words,
            program: layer.program,
            counts: [layer.products, layer.sums],
            calls: [layer.first_call, layer.first_sum_call],
            send: [regions::SEND, regions::SEND_SUMS],
            receive: [regions::RECEIVE, regions::RECEIVE_SUMS],
        };
        let of_bits = |bits: &BitsPlan| Work {
            ring: Ring::Bits,
            program: bits.program,
            counts: [bits.products, 0],
            calls: [bits.first_call, 0],
            send: [regions::BIT_SEND, regions::SEND_SUMS],
            receive: [regions::BIT_RECEIVE, regions::RECEIVE_SUMS],
        };
        std::iter::once(own)
            .chain(layer.bits.as_ref().map(of_bits))
            .collect()
    }

    /// Whether it has products.
    pub(crate) fn multiplies(&self) -> bool {
        self.counts != [0, 0]
    }

    /// Messages of products and of sums in these regions.
    pub(crate) fn messages(&self, regions: [u16; 2], part: u8) -> [Span; 2] {
        [0, 1].map(|kind| Span {
            region: regions[kind],
            component: part,
            first: 0,
            count: self.counts[kind],
        })
    }

    /// A component of the products of rows, where they are, in the order of their message.
    pub(crate) fn products(&self, plan: &Plan, part: u8) -> Vec<Span> {
        plan.programs[self.program].products_in_slots(part)
    }

    /// Copies a message of sums of products to component `part` of these: a command for each run that lies side by side in the order of the message.
    pub(crate) fn copy_sums(&self, plan: &Plan, message: Span, part: u8) -> Vec<Command> {
        let sums = plan.programs[self.program].code.iter();
        let places = sums.filter_map(|instr| match *instr {
            Instr::ProductSum { out, index, .. } => Some((index, out)),
            _ => None,
        });
        let mut places: Vec<(u32, u32)> = places.collect();
        places.sort_unstable();
        let runs = places.chunk_by(|a, b| (a.0 + 1, a.1 + 1) == *b);
        runs.map(|run| {
            let ((from, to), count) = (run[0], run.len() as u32);
            let from = Span {
                first: message.first + from,
                count,
                ..message
            };
            let to = Span {
                region: SUMS,
                component: part,
                first: to,
                count,
            };
            super::combine(self.ring, vec![from], 0, to)
        })
        .collect()
    }

    /// The command that runs the program, without products; its protocol makes a product of it if there are any.
    pub(crate) fn run(&self, scheme: &Scheme, me: PartyId) -> Command {
        let mut run = Command::new(Op::Linear, vec![], vec![]);
        run.program = Some(ProgramId(self.program as u32));
        run.constants = (scheme.constants)(self.ring, me);
        run
    }
}

/// What lies within these pieces of a message, from element `first` on, `count` in all: in pieces again, each with the number of its first
/// element among these.
pub(crate) fn within(pieces: &[Span], first: u32, count: u32) -> Vec<(u32, Span)> {
    let (mut at, mut found) = (0, Vec::new());
    for piece in pieces {
        let from = first.max(at);
        let until = (first + count).min(at + piece.count);
        if from < until {
            let span = Span {
                first: piece.first + (from - at),
                count: until - from,
                ..*piece
            };
            found.push((from - first, span));
        }
        at += piece.count;
    }
    found
}
