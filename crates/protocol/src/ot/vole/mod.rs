//! Vector oblivious linear evaluation: m entries, each a block B of the sender and blocks A and C of the receiver with `A = B ⊕ C Δ` for the sender's offset Δ and
//! random C. Products are those of POLYVAL, a · b · X^−128 ([`veil_device::silent`] has the equations).
//!
//! 128 correlations are an entry, without a message. So a [`Shape`] has one of three ways:
//!
//! - few entries are packed of transfers of the [extension](super::extension);
//! - more are packed of [`silent`] transfers;
//! - and more than a round over blocks takes as its base are made by such rounds: three flights each, as those of a silent round.
//!
//! # What a round promises
//!
//! A round over blocks is checked as a silent one is, before the receiver has outputs: a sender that deviates is caught unless it has guessed bits of the places where the
//! receiver's noise is, g bits with probability 2^−g. A receiver says nothing that the sender has to check. That outputs look random rests on learning parity with regular noise over
//! GF(2^128), for a sparse matrix with random coefficients and the parameters of the set: an assumption of its own, which adds to that of the silent transfers.

mod end;
mod shape;

use veil_device::{Command, KeyId, Layout, Op, PrfCall, Silent, Span};
use veil_prss::DomainTag;
use veil_session::Peer;

use super::correlations;
use super::extension::At;
use super::silent::{self, Base, step};
use crate::round::{Check, Round};
use end::End;
pub use shape::{Sets, Shape, Way};

/// Uses of digests: the challenge of a check, and what the sender answers.
mod label {
    pub(super) const CHALLENGE: u16 = 32;
    pub(super) const ANSWER: u16 = 33;
}

/// The subject of the check, for the log of the receiver.
const CHECKED: &str = "trees of a vector of products";

/// Where correlations come from.
#[derive(Clone, Copy, Debug)]
enum Source<E, S> {
    Extension(E),
    Silent(S),
}

/// The receiver's end.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    end: End<2>,
    source: Source<correlations::Receiver, silent::Receiver>,
}

impl Receiver {
    /// Adds to a layout what the entries need. `peer` is the sender.
    ///
    /// # Panics
    /// If a workspace would be larger than regions can be.
    pub fn new(layout: &mut Layout, peer: Peer, shape: Shape, base: Base) -> Self {
        let end = End::new(layout, peer, shape, base);
        let source = if shape.way == Way::Transfers {
            let with = (peer, &base);
            let first = correlations::Receiver::new(layout, with, shape.items(), end.transfers);
            Source::Extension(first)
        } else {
            let set = shape.sets.silent;
            Source::Silent(silent::Receiver::new(layout, peer, set, base))
        };
        Receiver { end, source }
    }

    /// All rounds: [`Shape::places`] of them.
    pub fn rounds(&self, at: At) -> Vec<Round> {
        let end = &self.end;
        match &self.source {
            Source::Extension(first) => {
                let mut rounds = first.rounds(at);
                let pack = end.pack(end.transfers, 0, end.shape.entries);
                let last = rounds.last_mut().expect("one round at least");
                last.local.push(pack);
                rounds
            }
            Source::Silent(silent) => end.rounds(
                (at.place, silent.base(at)),
                |lasts| silent.outputs(lasts),
                |place, number, lasts| silent.round(place, number, lasts),
                |place, number, levels| self.expansion(place, number, levels),
            ),
        }
    }

    /// A round over blocks.
    fn expansion(&self, place: u32, number: u32, levels: Span) -> [Round; 3] {
        let end = &self.end;
        let set = end.shape.sets.blocks;
        let [own, other] = end.arrays.map(|array| array.taken(number));
        let [[a, b], [c, d]] = end.leaves(number);
        let [sums, sealed] = end.parts();
        let [mut first, mut second, mut third] = End::<2>::empty(place);
        let puncture = Silent::Puncture { set };
        let mut puncture = step(puncture, vec![levels, sums], vec![a, b]);
        puncture.calls = vec![end.starts(DomainTag::VOLE_TREE, number)];
        let src = vec![levels, sealed, own, other];
        let mut fill = step(Silent::Fill { set }, src, vec![a, b, c, d]);
        fill.calls = vec![end.starts(DomainTag::VOLE_LEAF, number)];
        first.recvs = vec![end.transfer(end.message)];
        first.finish = vec![
            puncture,
            fill,
            end.digest(label::CHALLENGE, number, end.message, end.challenge),
            step(
                Silent::Ask { set },
                vec![a, b, c, d, own, other, end.challenge],
                vec![end.told, end.kept],
            ),
        ];
        second.sends = vec![end.transfer(end.told)];
        let [theirs, mine] = end.digests;
        third.recvs = vec![end.transfer(theirs)];
        third.finish = vec![
            end.digest(label::ANSWER, number, end.kept, mine),
            Command::new(Op::CheckEqual, vec![theirs, mine], vec![]),
            end.rows(number),
        ];
        third.checks = vec![Check {
            command: 1,
            suspects: vec![end.peer],
            what: CHECKED,
        }];
        [first, second, third]
    }

    /// A and C of all entries after the last round: a column of 16 bytes for each, one behind the other.
    pub fn entries(&self) -> [Span; 2] {
        [self.end.entries(0), self.end.entries(1)]
    }
}

/// The sender's end: it has the offset.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    end: End<1>,
    source: Source<correlations::Sender, silent::Sender>,
    offset: KeyId,
}

impl Sender {
    /// Adds to a layout what the entries need. `peer` is the receiver, and `offset` the key that is Δ, whose bit 0 is 1.
    ///
    /// # Panics
    /// If a workspace would be larger than regions can be.
    pub fn new(layout: &mut Layout, peer: Peer, shape: Shape, base: Base, offset: KeyId) -> Self {
        let end = End::new(layout, peer, shape, base);
        let source = if shape.way == Way::Transfers {
            let with = (peer, &base, offset);
            let first = correlations::Sender::new(layout, with, shape.items(), end.transfers);
            Source::Extension(first)
        } else {
            let set = shape.sets.silent;
            Source::Silent(silent::Sender::new(layout, peer, set, base, offset))
        };
        Sender {
            end,
            source,
            offset,
        }
    }

    /// All rounds: see [`Receiver::rounds`].
    pub fn rounds(&self, at: At) -> Vec<Round> {
        let end = &self.end;
        match &self.source {
            Source::Extension(first) => {
                let mut rounds = first.rounds(at);
                let pack = end.pack(end.transfers, 0, end.shape.entries);
                let last = rounds.last_mut().expect("one round at least");
                last.finish.push(pack);
                rounds
            }
            Source::Silent(silent) => end.rounds(
                (at.place, silent.base(at)),
                |lasts| silent.outputs(lasts),
                |place, number, lasts| silent.round(place, number, lasts),
                |place, number, levels| self.expansion(place, number, levels),
            ),
        }
    }

    /// A round over blocks.
    fn expansion(&self, place: u32, number: u32, levels: Span) -> [Round; 3] {
        let (end, offset) = (&self.end, self.offset);
        let set = end.shape.sets.blocks;
        let [base] = end.arrays.map(|array| array.taken(number));
        let [[a, b]] = end.leaves(number);
        let [sums, sealed] = end.parts();
        let [mut first, mut second, mut third] = End::<1>::empty(place);
        let grow = Silent::Grow { set, offset };
        let mut grow = step(grow, vec![levels], vec![a, b, sums]);
        let starts = end.starts(DomainTag::VOLE_TREE, number);
        let roots = PrfCall {
            key: end.base.private,
            tag: DomainTag::VOLE_ROOT,
            ..starts
        };
        grow.calls = vec![starts, roots];
        let mut give = step(Silent::Give { set }, vec![base], vec![a, b, sealed]);
        give.calls = vec![end.starts(DomainTag::VOLE_LEAF, number)];
        first.local = vec![
            grow,
            give,
            end.digest(label::CHALLENGE, number, end.message, end.challenge),
        ];
        first.sends = vec![end.transfer(end.message)];
        let src = vec![a, b, base, end.challenge, end.told];
        let [digest, _] = end.digests;
        second.recvs = vec![end.transfer(end.told)];
        second.finish = vec![
            step(Silent::Answer { set, offset }, src, vec![end.kept]),
            end.digest(label::ANSWER, number, end.kept, digest),
        ];
        third.sends = vec![end.transfer(digest)];
        third.finish = vec![end.rows(number)];
        [first, second, third]
    }

    /// B of all entries after the last round.
    pub fn entries(&self) -> Span {
        self.end.entries(0)
    }
}
