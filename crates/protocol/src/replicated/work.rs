//! The work of a layer, and the places of its messages.

use veil_device::{Command, Op, ProgramId, Span};
use veil_math::Ring;
use veil_session::PartyId;

use super::{Scheme, regions};
use crate::plan::{BitsPlan, LayerPlan, Plan};

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

    /// The command that runs the program, without products; its protocol makes a product of it if there are any.
    pub(crate) fn run(&self, scheme: &Scheme, me: PartyId) -> Command {
        let mut run = Command::new(Op::Linear, vec![], vec![]);
        run.program = Some(ProgramId(self.program as u32));
        run.constants = (scheme.constants)(self.ring, me);
        run
    }
}
