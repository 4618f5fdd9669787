//! The work of a layer, and the places of its messages.

use veil_device::{Command, Instr, Op, ProgramId, Span};
use veil_math::Ring;
use veil_session::PartyId;

use super::{Scheme, regions};
use crate::plan::{BIT_SLOTS, BitsPlan, LayerPlan, Plan, SLOTS, SUMS};

/// A program of a layer, its products, and where their messages are: over the circuit's ring, or over bits beside it.
pub(crate) struct Work {
    pub(crate) ring: Ring,
    program: usize,
    /// Region of slots.
    slots: u16,
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
            slots: SLOTS,
            counts: [layer.products, layer.sums],
            calls: [layer.first_call, layer.first_sum_call],
            send: [regions::SEND, regions::SEND_SUMS],
            receive: [regions::RECEIVE, regions::RECEIVE_SUMS],
        };
        let of_bits = |bits: &BitsPlan| Work {
            ring: Ring::Bits,
            program: bits.program,
            slots: BIT_SLOTS,
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
        let products = plan.programs[self.program].code.iter();
        let places = products.filter_map(|instr| match *instr {
            Instr::Product { out, index, .. } => Some((index, out)),
            _ => None,
        });
        runs(places.collect())
            .into_iter()
            .map(|(first, _, count)| Span {
                region: self.slots,
                component: part,
                first,
                count,
            })
            .collect()
    }

    /// The sums of products in runs that lie side by side in the order of their message: the first item of each run, its first place in the
    /// message, and how many they are.
    pub(crate) fn sums(&self, plan: &Plan) -> Vec<(u32, u32, u32)> {
        let sums = plan.programs[self.program].code.iter();
        let places = sums.filter_map(|instr| match *instr {
            Instr::ProductSum { out, index, .. } => Some((index, out)),
            _ => None,
        });
        runs(places.collect())
    }

    /// Copies a message of sums of products to component `part` of these.
    pub(crate) fn copy_sums(&self, plan: &Plan, message: Span, part: u8) -> Vec<Command> {
        let copy = |(to, from, count)| {
            let span = |region, component, first| Span {
                region,
                component,
                first,
                count,
            };
            let to = span(SUMS, part, to);
            let from = span(message.region, message.component, message.first + from);
            super::combine(self.ring, vec![from], 0, to)
        };
        self.sums(plan).into_iter().map(copy).collect()
    }

    /// The command that runs the program, without products; its protocol makes a product of it if there are any.
    pub(crate) fn run(&self, scheme: &Scheme, me: PartyId) -> Command {
        let mut run = Command::new(Op::Linear, vec![], vec![]);
        run.program = Some(ProgramId(self.program as u32));
        run.constants = (scheme.constants)(self.ring, me);
        run
    }
}

/// Places in a message, and in slots or items, as runs: the first slot of each, its first place in the message, and how many they are.
fn runs(mut places: Vec<(u32, u32)>) -> Vec<(u32, u32, u32)> {
    places.sort_unstable();
    let follows = |a: &(u32, u32), b: &(u32, u32)| (a.0 + 1, a.1 + 1) == *b;
    let runs = places.chunk_by(follows);
    runs.map(|run| (run[0].1, run[0].0, run.len() as u32))
        .collect()
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
