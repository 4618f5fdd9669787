//! The round: what a participant computes, sends, receives and computes then.

use veil_session::Peer;

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
}
