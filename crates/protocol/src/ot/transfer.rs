//! Transfers from labels T and Q = T ⊕ x Δ: random, correlated and chosen.
//!
//! The labels themselves are transfers whose two messages differ by Δ in all of them: what garbled circuits take as the labels of an
//! input. [`keys`] makes random transfers of them: two keys per transfer that have nothing to do with each other, of which the
//! receiver has the one it chose (the hash is correlation robust for tweaks that the receiver may choose: Guo, Katz, Wang, Weng, Yu,
//! "Better Concrete Security for Half-Gates Garbling", 2020). [`Correlated`] and [`Chosen`] send one and two labels per transfer on top.
//!
//! Nothing of this is to be sent before the labels have passed their check ([`extension`](super::extension)).

use veil_device::ot::Ot;
use veil_device::{Command, KeyId, Op, PrfCall, Span};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Peer;

use crate::round::{Round, Transfer};

/// Random transfers: the keys of `labels`. The receiver, without an offset, has one item of keys for each item of labels in `to`; the
/// sender two, the keys of choice 0 and of choice 1. `start` is a key that both have, and `first` the number of the first item: no two
/// items of labels in a chunk have the same.
pub fn keys(
    labels: Span,
    to: &[Span],
    offset: Option<KeyId>,
    (start, first): (KeyId, u64),
) -> Command {
    let mut command = Command::new(Op::Ot(Ot::Keys { offset }), vec![labels], to.to_vec());
    command.calls = vec![PrfCall {
        key: start,
        tag: DomainTag::OT_KEYS,
        first,
    }];
    command
}

/// dst = the XOR of labels.
fn xor(src: Vec<Span>, to: Span) -> Command {
    let op = Op::Combine {
        ring: Ring::Bits,
        minus: 0,
    };
    Command::new(op, src, vec![to])
}

/// dst = a ⊕ choice · b.
fn choose(a: Span, b: Span, choices: Span, to: Span) -> Command {
    Command::new(Op::Ot(Ot::Choose), vec![a, b, choices], vec![to])
}

/// Correlated transfers: the sender's messages are k_0, its key of choice 0, and k_0 ⊕ δ for labels δ that it chooses. It sends
/// k_0 ⊕ k_1 ⊕ δ, a label per transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Correlated {
    /// Place of the round.
    pub place: u32,
    /// The other end.
    pub peer: Peer,
    /// A mapped region of labels, at both ends.
    pub message: Span,
}

impl Correlated {
    /// The sender's round, from both its keys and δ.
    pub fn send(&self, [zero, one]: [Span; 2], difference: Span) -> Round {
        Round {
            place: self.place,
            local: vec![xor(vec![zero, one, difference], self.message)],
            sends: vec![transfer(self.message, self.peer, 0)],
            ..Round::default()
        }
    }

    /// The receiver's round: its chosen messages go `to` labels, from its keys and choices.
    pub fn receive(&self, keys: Span, choices: Span, to: Span) -> Round {
        Round {
            place: self.place,
            recvs: vec![transfer(self.message, self.peer, 0)],
            finish: vec![choose(keys, self.message, choices, to)],
            ..Round::default()
        }
    }
}

/// Chosen transfers: the sender's messages are any labels. It sends each under its key, two labels per transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// Place of the round.
    pub place: u32,
    /// The other end.
    pub peer: Peer,
    /// Mapped regions of labels, at both ends: messages of choice 0 and of choice 1.
    pub messages: [Span; 2],
}

impl Chosen {
    /// The sender's round, from both its keys and both messages.
    pub fn send(&self, keys: [Span; 2], messages: [Span; 2]) -> Round {
        let under = |j: usize| xor(vec![messages[j], keys[j]], self.messages[j]);
        Round {
            place: self.place,
            local: vec![under(0), under(1)],
            sends: vec![
                transfer(self.messages[0], self.peer, 0),
                transfer(self.messages[1], self.peer, 1),
            ],
            ..Round::default()
        }
    }

    /// The receiver's round: its chosen messages go `to` labels, from its keys and choices. `both` are as many labels that it uses.
    pub fn receive(&self, keys: Span, choices: Span, both: Span, to: Span) -> Round {
        let [zero, one] = self.messages;
        Round {
            place: self.place,
            recvs: vec![transfer(zero, self.peer, 0), transfer(one, self.peer, 1)],
            finish: vec![
                xor(vec![zero, one], both),
                xor(vec![keys, zero], to),
                choose(to, both, choices, to),
            ],
            ..Round::default()
        }
    }
}

fn transfer(span: Span, peer: Peer, part: u16) -> Transfer {
    Transfer::new(span, peer, part)
}
