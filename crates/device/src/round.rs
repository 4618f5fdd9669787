//! The round: what a participant computes, sends, receives and computes then.

use std::ops::Range;
use std::sync::Arc;

use veil_session::{PartyId, Peer};

use crate::command::Command;
use crate::layout::{Layout, Span};

/// Bytes of spans that go to or come from a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Which bytes: of a region that the host may write.
    pub span: Span,
    /// Spans that follow, where the message is in pieces.
    pub more: Vec<Span>,
    /// The other end.
    pub peer: Peer,
    /// Which message of the round.
    pub part: u16,
}

impl Transfer {
    /// A message of one span.
    pub const fn new(span: Span, peer: Peer, part: u16) -> Self {
        Transfer {
            span,
            more: Vec::new(),
            peer,
            part,
        }
    }

    /// The spans of the message, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Span> + Clone {
        std::iter::once(self.span).chain(self.more.iter().copied())
    }

    /// Bytes of the message in a chunk of `rows` rows.
    pub fn bytes(&self, layout: &Layout, rows: u32) -> u64 {
        self.pieces().map(|span| layout.bytes(span, rows)).sum()
    }
}

impl Round {
    /// Gives back memory that its lists have room for and do not use: rounds of long circuits are many, and stay.
    pub fn shrink(&mut self) {
        for command in self.local.iter_mut().chain(&mut self.finish) {
            command.src.shrink_to_fit();
            command.dst.shrink_to_fit();
            command.calls.shrink_to_fit();
        }
        self.local.shrink_to_fit();
        self.sends.shrink_to_fit();
        self.recvs.shrink_to_fit();
        self.finish.shrink_to_fit();
        self.checks.shrink_to_fit();
    }
}

/// A check among the finishing commands: who is to blame if it fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Index in [`Round::finish`].
    pub command: usize,
    /// Who may have sent what does not match. More than one where two contradict each other.
    pub suspects: Vec<Peer>,
    /// The compared values, in words, for the log of this participant; peers never learn it.
    pub what: &'static str,
}

/// A round: compute, let the network move, finish.
///
/// Sends leave when all of `local` is done; `finish` runs when every receive has landed; the next round starts when every check in
/// `finish` has passed. So nothing that depends on an unchecked value leaves the participant (rule R1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Round {
    /// Its place in the plan, the same for all participants.
    pub place: u32,
    /// Netlist cycle of a sequential circuit, 0 if there is none.
    pub cycle: u64,
    /// Whether the host puts the inputs of this cycle and of later cycles that are shared with them into the workspace before anything else.
    pub feeds: bool,
    /// Commands before the transfers.
    pub local: Vec<Command>,
    /// Messages to peers.
    pub sends: Vec<Transfer>,
    /// Messages from peers.
    pub recvs: Vec<Transfer>,
    /// Commands after the transfers.
    pub finish: Vec<Command>,
    /// The checks among them.
    pub checks: Vec<Check>,
    /// What all of this is as one, where it is a layer of products.
    pub products: Option<Arc<Products>>,
}

/// A layer of products: programs over shares, the messages of their products, the MACs of these messages, and what adds them.
///
/// The protocol says so of a round, whose commands and transfers say the same one by one. A device whose cards exchange the messages of products
/// by themselves computes the layer from it; the form of a product, its keys, its counters and its places are those of its command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Products {
    /// This party.
    pub me: PartyId,
    /// Parties that compute.
    pub parties: u8,
    /// The local commands that run programs. What comes before them is of this party alone.
    pub programs: Range<usize>,
    /// Local commands that make MACs of messages, each with the party that gets the MAC.
    pub macs: Vec<(usize, PartyId)>,
    /// Commands of `finish` that make MACs of messages that came, each with the party that sent a MAC of the same; the command behind each
    /// compares both.
    pub vouched: Vec<(usize, PartyId)>,
    /// The commands of `finish` that belong to products: so many from the first.
    pub finish: usize,
    /// Counters for a device that computes this layer and those behind it as one circuit.
    pub ahead: Ahead,
}

/// Counters for circuits that devices make of several layers, with an order and a packing of products of their own: a range for each layer, apart
/// from those of its commands and from those of all other layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ahead {
    /// The first one of masks. For each block that the layers draw by their commands there are [`Ahead::OF_BLOCK`] here.
    pub masks: u64,
    /// The first one of MACs, of which there are [`Ahead::OF_LAYER`] for each layer.
    pub macs: u64,
}

impl Ahead {
    /// Counters for each block of masks: a device may pad a column to so many times its blocks.
    pub const OF_BLOCK: u64 = 1 << 6;
    /// Counters for the MACs of a layer.
    pub const OF_LAYER: u64 = 1 << 20;
    /// No command draws at a counter from here on.
    pub const FIRST: u64 = 1 << 62;
}

impl Round {
    /// Puts commands before all others.
    pub fn begin_with(&mut self, commands: Vec<Command>) {
        if let Some(products) = &mut self.products {
            let by = commands.len();
            let products = Arc::make_mut(products);
            products.programs.start += by;
            products.programs.end += by;
            for (command, _) in &mut products.macs {
                *command += by;
            }
        }
        self.local.splice(0..0, commands);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Op;

    /// What a round says of its commands by number holds when others come before them.
    #[test]
    fn commands_before_others_move_their_numbers() {
        let command = |op| Command::new(op, vec![], vec![]);
        let me = PartyId::FOUR[0];
        let mut round = Round {
            local: vec![command(Op::Linear), command(Op::Mac)],
            products: Some(Arc::new(Products {
                me,
                parties: 4,
                programs: 0..1,
                macs: vec![(1, me)],
                vouched: vec![(0, me)],
                finish: 2,
                ahead: Ahead::default(),
            })),
            ..Round::default()
        };
        let before = Arc::clone(round.products.as_ref().unwrap());
        round.begin_with(vec![command(Op::Publish), command(Op::Publish)]);
        let products = round.products.as_deref().unwrap();
        assert_eq!(products.programs, 2..3);
        assert_eq!((products.macs[0].0, products.vouched[0].0), (3, 0));
        assert!(matches!(round.local[2].op, Op::Linear) && matches!(round.local[3].op, Op::Mac));
        // Another round may have the same statement.
        assert_eq!(before.programs, 0..1);
    }
}
