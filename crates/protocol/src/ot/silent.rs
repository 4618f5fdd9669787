//! Silent transfers as rounds: a base by [`extension`](super::extension), then rounds that make many correlations from it, each of which leaves the base of the next one.
//!
//! Correlations are `M = K ⊕ r Δ` with random choices r ([`veil_device::silent`] has the equations). A round is three flights: sums of levels of trees from the sender,
//! 16 bytes from the receiver, a digest from the sender. The receiver compares the digest before outputs exist at its end, and before their last part is
//! the base of anything. A transfer of a chosen bit costs one bit more, from the receiver ([`Receiver::choose`]).
//!
//! # What a round promises
//!
//! A sender that deviates is caught unless it has guessed bits of the places where the receiver's noise is: g bits with probability 2^−g, which it knows then. A
//! receiver says nothing that the sender has to check: its choices in a round are bits of correlations that it has, and in the base the
//! extension's own check covers them. That outputs look random rests on learning parity with regular noise for the parameters, which is an assumption about
//! these numbers and no theorem.
//!
//! The sender does not learn whether the receiver has accepted. It may use its outputs after the round: what it sends is worthless to a receiver that has
//! stopped, and a sender that was caught has no claim.

use veil_device::ot::Choices;
use veil_device::{
    ColumnType, Command, KeyId, Layout, Lpn, Op, PrfCall, Region, Residency, Silent, Span, Trees,
};
use veil_prss::DomainTag;
use veil_session::Peer;

use super::correlations;
use super::extension::{At, Challenge};
use crate::round::{Check, Cost, Round, Transfer};

/// Rounds that a round of silent transfers has in the plan, each of which has a place.
pub const ROUNDS: u32 = 3;

/// Uses of digests: the challenge of a check, and what the sender answers.
mod label {
    pub(super) const CHALLENGE: u16 = 30;
    pub(super) const ANSWER: u16 = 31;
}

/// The subject of the check, for the log of the receiver.
const CHECKED: &str = "trees of silent transfers";

/// Counters of the second direction, where a workspace has both.
const BACK: u64 = 1 << 62;

impl Base {
    /// A counter of this direction.
    pub(super) const fn counter(&self, at: u64) -> u64 {
        if self.back { BACK + at } else { at }
    }
}

/// Keys of a participant, and how its base comes about.
#[derive(Clone, Copy, Debug)]
pub struct Base {
    /// Trees of the extension that makes the base.
    pub trees: Trees,
    /// The challenge of its check.
    pub challenge: Challenge,
    /// The first leaf of these trees.
    pub leaves: KeyId,
    /// The key that both have: start points of hashes, and rows of the code. It is fixed when none of the two can choose it any more.
    pub common: KeyId,
    /// The participant's own key: roots of trees, or choices of the base.
    pub private: KeyId,
    /// Whether these are the transfers of the second of two directions.
    pub back: bool,
}

/// What both ends have.
#[derive(Clone, Copy, Debug)]
struct End {
    peer: Peer,
    set: Lpn,
    base: Base,
    /// In turns: what a round takes, and what it leaves.
    bases: [Span; 2],
    outputs: Span,
    sums: Span,
    challenge: Span,
    told: Span,
    kept: Span,
    /// The sender's digest; the receiver's own.
    digests: [Span; 2],
}

impl End {
    fn new(layout: &mut Layout, peer: Peer, set: Lpn, base: Base) -> Self {
        let (block, digest) = (ColumnType::Bytes(16), ColumnType::Bytes(32));
        let (resident, mapped) = (Residency::Resident, Residency::Mapped);
        let mut add = |residency, column, count| {
            let region = layout.add(Region {
                residency,
                column,
                components: 1,
                count,
            });
            layout.all(region, 0)
        };
        End {
            peer,
            set,
            base,
            bases: [(); 2].map(|()| add(resident, set.column(), set.base_columns())),
            outputs: add(resident, set.column(), set.trees),
            sums: add(mapped, block, set.levels()),
            challenge: add(resident, digest, 1),
            told: add(mapped, block, 1),
            kept: add(resident, block, 1),
            digests: [add(mapped, digest, 1), add(resident, digest, 1)],
        }
    }

    /// The first tree of a round among those of the chunk.
    fn tree(&self, number: u64) -> u64 {
        self.base.counter(number * u64::from(self.set.trees))
    }

    fn starts(&self, number: u64) -> PrfCall {
        call(self.base.common, DomainTag::OT_TREE, self.tree(number))
    }

    /// What a round makes: outputs, and the base of the next one, if there is one.
    fn leaves(&self, number: u64, lasts: bool) -> [Span; 2] {
        let next = self.bases[1 - (number % 2) as usize];
        let outputs = Span {
            count: outputs(self.set, lasts),
            ..self.outputs
        };
        let next = Span {
            count: self.set.trees - outputs.count,
            ..next
        };
        [outputs, next]
    }

    fn taken(&self, number: u64) -> Span {
        self.bases[(number % 2) as usize]
    }

    /// A digest of the round.
    fn digest(&self, label: u16, number: u64, from: Span, to: Span) -> Command {
        let mut hash = Command::new(Op::Hash { label }, vec![from], vec![to]);
        hash.calls = vec![self.starts(number)];
        hash
    }

    fn rows(&self, number: u64, lasts: bool) -> Command {
        let leaves = self.leaves(number, lasts).to_vec();
        let set = self.set;
        let mut rows = step(Silent::Rows { set }, vec![self.taken(number)], leaves);
        let first = self.base.counter(number * set.row_blocks());
        rows.calls = vec![call(self.base.common, DomainTag::OT_ROWS, first)];
        rows
    }

    /// What rounds of a later chunk find as it is, if the workspace serves several.
    fn kept(&self) -> Vec<Span> {
        let [a, b] = self.bases;
        vec![a, b, self.outputs]
    }

    fn transfer(&self, span: Span) -> Transfer {
        Transfer::new(span, self.peer, 0)
    }

    fn rounds(place: u32) -> [Round; 3] {
        let round = |k| Round {
            place: place + k,
            ..Round::default()
        };
        [round(0), round(1), round(2)]
    }
}

/// What the base is made of, as choices of the extension.
pub(crate) fn items(set: Lpn) -> correlations::Items {
    (set.base_columns(), Choices::Bytes(set.leaves() / 8))
}

pub(crate) fn call(key: KeyId, tag: DomainTag, first: u64) -> PrfCall {
    PrfCall { key, tag, first }
}

pub(crate) fn step(step: Silent, src: Vec<Span>, dst: Vec<Span>) -> Command {
    Command::new(Op::Silent(step), src, dst)
}

/// Trees whose leaves a round makes for use, [`Lpn::leaves`] each: all of them, or all that are not the base of the next round. Over bits a tree is a column.
///
/// # Panics
/// If a round that lasts would make fewer correlations than the next one takes.
pub fn outputs(set: Lpn, lasts: bool) -> u32 {
    let kept = if lasts { set.base_trees() } else { 0 };
    let left = set.trees.checked_sub(kept);
    left.expect("parameters whose rounds can follow each other")
}

/// What a round costs its sender and its receiver.
pub fn cost(set: Lpn) -> [Cost; 2] {
    let levels = u64::from(set.levels());
    [
        Cost {
            rounds: 1,
            messages: 2,
            bytes: 16 * levels + 32,
        },
        Cost {
            rounds: 2,
            messages: 1,
            bytes: 16,
        },
    ]
}

/// The receiver's end.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    end: End,
    first: correlations::Receiver,
}

impl Receiver {
    /// Adds to a layout what silent transfers need. `peer` is the sender.
    ///
    /// # Panics
    /// If a workspace would be larger than regions can be.
    pub fn new(layout: &mut Layout, peer: Peer, set: Lpn, base: Base) -> Self {
        let end = End::new(layout, peer, set, base);
        let (items, to) = (items(set), end.taken(0));
        let first = correlations::Receiver::new(layout, (peer, &base), items, to);
        Receiver { end, first }
    }

    /// What rounds of a later chunk find as it is, if the workspace serves several: bases and outputs.
    pub fn kept(&self) -> Vec<Span> {
        self.end.kept()
    }

    /// The rounds that make the base of round 0: [`Challenge::rounds`] of them.
    pub fn base(&self, at: At) -> Vec<Round> {
        self.first.rounds(at)
    }

    /// Round `number` of the chunk, from 0 on; each follows the one before. One that lasts leaves the base of the next one.
    ///
    /// # Panics
    /// As [`outputs`].
    pub fn round(&self, place: u32, number: u64, lasts: bool) -> [Round; 3] {
        let end = &self.end;
        let set = end.set;
        let [a, b] = end.leaves(number, lasts);
        let taken = end.taken(number);
        let [mut first, mut second, mut third] = End::rounds(place);
        let puncture = Silent::Puncture { set };
        let mut puncture = step(puncture, vec![taken, end.sums], vec![a, b]);
        puncture.calls = vec![end.starts(number)];
        first.recvs = vec![end.transfer(end.sums)];
        first.finish = vec![
            puncture,
            end.digest(label::CHALLENGE, number, end.sums, end.challenge),
            step(
                Silent::Ask { set },
                vec![a, b, taken, end.challenge],
                vec![end.told, end.kept],
            ),
        ];
        second.sends = vec![end.transfer(end.told)];
        let [theirs, own] = end.digests;
        third.recvs = vec![end.transfer(theirs)];
        third.finish = vec![
            end.digest(label::ANSWER, number, end.kept, own),
            Command::new(Op::CheckEqual, vec![theirs, own], vec![]),
            end.rows(number, lasts),
        ];
        third.checks = vec![Check {
            command: 1,
            suspects: vec![end.peer],
            what: CHECKED,
        }];
        [first, second, third]
    }

    /// Outputs of the last round, [`Lpn::leaves`] in a column: M, whose bit 0 is the choice.
    ///
    /// # Panics
    /// As [`outputs`].
    pub fn outputs(&self, lasts: bool) -> Span {
        self.end.leaves(0, lasts)[0]
    }

    /// Transfers of `choices`, rows of bits, by outputs of the last round from number `first` on, whose labels go `to` a column for each. `message` is a mapped region of
    /// a column of bits for each.
    pub fn choose(&self, place: u32, first: u64, [choices, message]: [Span; 2], to: Span) -> Round {
        let end = &self.end;
        let src = vec![end.outputs, choices];
        Round {
            place,
            local: vec![step(Silent::Choose { first }, src, vec![message, to])],
            sends: vec![end.transfer(message)],
            ..Round::default()
        }
    }
}

/// The sender's end: it has the offset.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    end: End,
    first: correlations::Sender,
    offset: KeyId,
}

impl Sender {
    /// Adds to a layout what silent transfers need. `peer` is the receiver, and `offset` the key that is Δ, whose bit 0 is 1.
    ///
    /// # Panics
    /// If a workspace would be larger than regions can be.
    pub fn new(layout: &mut Layout, peer: Peer, set: Lpn, base: Base, offset: KeyId) -> Self {
        let end = End::new(layout, peer, set, base);
        let (items, to) = (items(set), end.taken(0));
        let first = correlations::Sender::new(layout, (peer, &base, offset), items, to);
        Sender { end, first, offset }
    }

    /// As [`Receiver::kept`].
    pub fn kept(&self) -> Vec<Span> {
        self.end.kept()
    }

    /// The rounds that make the base of round 0.
    pub fn base(&self, at: At) -> Vec<Round> {
        self.first.rounds(at)
    }

    /// The round of that number: see [`Receiver::round`].
    ///
    /// # Panics
    /// As [`outputs`].
    pub fn round(&self, place: u32, number: u64, lasts: bool) -> [Round; 3] {
        let (end, offset) = (&self.end, self.offset);
        let set = end.set;
        let [a, b] = end.leaves(number, lasts);
        let taken = end.taken(number);
        let [mut first, mut second, mut third] = End::rounds(place);
        let grow = Silent::Grow { set, offset };
        let mut grow = step(grow, vec![taken], vec![a, b, end.sums]);
        let roots = call(end.base.private, DomainTag::OT_ROOT, end.tree(number));
        grow.calls = vec![end.starts(number), roots];
        first.local = vec![
            grow,
            end.digest(label::CHALLENGE, number, end.sums, end.challenge),
        ];
        first.sends = vec![end.transfer(end.sums)];
        let src = vec![a, b, taken, end.challenge, end.told];
        let [digest, _] = end.digests;
        second.recvs = vec![end.transfer(end.told)];
        second.finish = vec![
            step(Silent::Answer { set, offset }, src, vec![end.kept]),
            end.digest(label::ANSWER, number, end.kept, digest),
        ];
        third.sends = vec![end.transfer(digest)];
        third.finish = vec![end.rows(number, lasts)];
        [first, second, third]
    }

    /// Outputs of the last round: K, whose bit 0 is 0.
    ///
    /// # Panics
    /// As [`outputs`].
    pub fn outputs(&self, lasts: bool) -> Span {
        self.end.leaves(0, lasts)[0]
    }

    /// The sender's round of [`Receiver::choose`]: labels Q go `to` a column for each item.
    pub fn turn(&self, place: u32, first: u64, message: Span, to: Span) -> Round {
        let (end, offset) = (&self.end, self.offset);
        let src = vec![end.outputs, message];
        Round {
            place,
            recvs: vec![end.transfer(message)],
            finish: vec![step(Silent::Turn { first, offset }, src, vec![to])],
            ..Round::default()
        }
    }
}
