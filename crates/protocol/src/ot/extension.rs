//! Many transfers from the leaves of a set-up, as rounds: the choices of a chunk become labels T at the receiver and Q = T ⊕ x Δ at the
//! sender, and the sender has checked that the receiver sent corrections of one x (see `veil_device::ot`).
//!
//! The sender's labels must not be used before the last of these rounds has passed: they depend on values that it checks. No other message
//! leaves the sender before (rule R1), as the engine starts the next round only then.
//!
//! # The challenge
//!
//! Folds of columns are polynomials at the challenge χ, of degree B where there are B blocks: two different strings have the same fold
//! at B of 2^128 challenges at most.
//!
//! - [`Challenge::Coin`]: the sender draws χ when the corrections are here, and sends it. A Byzantine receiver passes with probability n (n
//!   − 1) / 2 · B / 2^128 for n trees, in addition to its guesses of bits of Δ. Three flights.
//! - [`Challenge::Hash`]: χ is the beginning of SHA-256 of session, chunk, first counter of the leaves and corrections (Fiat, Shamir, "How
//!   To Prove Yourself", 1986). One flight. A receiver can try corrections until it likes the challenge, each time with the probability
//!   above: for a chunk of 2^20 transfers, 2^13 blocks, it needs about 2^103 trials. Its guesses of Δ do not improve by that: Δ is not in
//!   the hash.
//!
//! Either way a receiver whose corrections differ in c trees has to guess k c bits of Δ (one less if the first tree is among them, whose
//! bit 0 is 1), and if it is caught everything ends: offset, leaves and base transfers are wiped, and a new session has others. A receiver
//! that has survived a guess knows those bits; so the sender's offset is worth 127 bits less them, with the probability that they were
//! guessed.

use veil_device::ot::{COLUMNS, Choices, Low, Ot, column_bytes};
use veil_device::{
    ColumnType, Command, KeyId, Layout, Op, PrfCall, Region, Residency, Span, Trees,
};
use veil_prss::DomainTag;
use veil_session::Peer;

use crate::round::{Check, Round, Transfer};

/// Where the challenge of the check comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Challenge {
    /// A hash of what the receiver sent: one round. The hash takes longer than all the rest where there are many transfers.
    Hash,
    /// Chosen by the sender afterwards: three rounds. The key is the sender's own, and unknown to the receiver.
    Coin(KeyId),
}

impl Challenge {
    /// Rounds, each of which has a place in the plan.
    pub const fn rounds(self) -> u32 {
        match self {
            Challenge::Hash => 1,
            Challenge::Coin(_) => 3,
        }
    }
}

/// A use of transfers in a plan. No two uses in a chunk have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// The place of the first round.
    pub place: u32,
    /// The first counter of the leaves. [`veil_device::ot::blocks`] are taken, of a full chunk.
    pub first: u64,
    /// Label of the hash that is the challenge.
    pub label: u16,
}

/// What both ends have.
#[derive(Clone, Copy, Debug)]
struct End {
    peer: Peer,
    trees: Trees,
    /// What an item of choices is.
    of: Choices,
    challenge: Challenge,
    /// The first leaf of the first tree.
    leaves: KeyId,
    corrections: Span,
    /// Corrections of the last block.
    last: Span,
    columns: Span,
    /// Folds of the own columns.
    folds: Span,
    /// The challenge.
    chosen: Span,
    /// Whether bit 0 of labels is the choice, or 0, and not that of column 0.
    pinned: bool,
}

/// What is checked, for the log of the sender.
const CHECKED: &str = "corrections of oblivious transfer";

/// Bytes of a line of a cache. Columns begin with one, and are an odd number of them: columns that are read side by side lie in different sets.
const LINE: u64 = 64;

impl End {
    fn new(
        layout: &mut Layout,
        (peer, trees, (items, of)): (Peer, Trees, (u32, Choices)),
        (challenge, leaves): (Challenge, KeyId),
        columns: u32,
    ) -> Self {
        let bytes = column_bytes(of, items, layout.chunk_rows).next_multiple_of(2 * LINE) + LINE;
        let column =
            ColumnType::Bytes(u32::try_from(bytes).expect("a workspace is smaller than 4 GiB"));
        let mut add = |residency, column, count| {
            let region = layout.add(Region {
                residency,
                column,
                components: 1,
                count,
            });
            layout.all(region, 0)
        };
        let (block, digest) = (ColumnType::Bytes(16), ColumnType::Bytes(32));
        End {
            peer,
            trees,
            of,
            challenge,
            leaves,
            corrections: add(Residency::Mapped, of.column(), items * trees.count()),
            last: add(Residency::Mapped, block, trees.count() - 1),
            columns: add(Residency::Resident, column, columns),
            folds: add(Residency::Mapped, block, columns),
            chosen: match challenge {
                Challenge::Hash => add(Residency::Resident, digest, 1),
                Challenge::Coin(_) => add(Residency::Mapped, block, 1),
            },
            pinned: false,
        }
    }

    fn items(&self) -> u32 {
        self.corrections.count / self.trees.count()
    }

    fn call(&self, at: At) -> PrfCall {
        PrfCall {
            key: self.leaves,
            tag: DomainTag::OT_LEAF,
            first: at.first,
        }
    }

    /// The hash that is the challenge, where it is one.
    fn hash(&self, at: At) -> Option<Command> {
        let op = Op::Hash { label: at.label };
        match self.challenge {
            Challenge::Hash => {
                let from = vec![self.corrections, self.last];
                let mut hash = Command::new(op, from, vec![self.chosen]);
                // No two uses in a chunk have the same.
                hash.calls = vec![self.call(at)];
                Some(hash)
            }
            Challenge::Coin(_) => None,
        }
    }

    fn fold(&self) -> Command {
        let op = Op::Ot(Ot::Fold {
            items: self.items(),
            of: self.of,
        });
        Command::new(op, vec![self.columns, self.chosen], vec![self.folds])
    }

    /// Labels, whose bit 0, where it is pinned, is `low`.
    fn labels(&self, low: Low, to: Span) -> Command {
        let low = if self.pinned { low } else { Low::Column };
        let columns = Span {
            count: low.columns(),
            ..self.columns
        };
        Command::new(Op::Ot(Ot::Labels { low }), vec![columns], vec![to])
    }

    fn transfer(&self, span: Span, part: u16) -> Transfer {
        Transfer::new(span, self.peer, part)
    }

    /// The rounds, empty.
    fn rounds(&self, at: At) -> Vec<Round> {
        let round = |place| Round {
            place,
            ..Round::default()
        };
        let places = at.place..at.place + self.challenge.rounds();
        places.map(round).collect()
    }
}

/// The receiver's end: it has all leaves.
#[derive(Clone, Copy, Debug)]
pub struct Receiver(End);

impl Receiver {
    /// The same, whose labels are MACs of the choices: bit 0 of each is the choice.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.0.pinned = true;
        self
    }

    /// Adds to a layout what transfers of `items` items of choices need, each of its column type. `peer` is the sender, and `leaves` the key of leaf 0 of tree 0, which the
    /// others follow ([`Trees::index`]).
    ///
    /// # Panics
    /// If a column would be larger than 4 GiB.
    pub fn new(
        layout: &mut Layout,
        peer: Peer,
        (trees, items): (Trees, (u32, Choices)),
        challenge: Challenge,
        leaves: KeyId,
    ) -> Self {
        let end = End::new(
            layout,
            (peer, trees, items),
            (challenge, leaves),
            COLUMNS + 1,
        );
        Receiver(end)
    }

    /// The rounds of transfers of `choices`, whose labels go `to` as many items. They write over what the use before has left in
    /// the workspace.
    pub fn rounds(&self, at: At, choices: Span, to: Span) -> Vec<Round> {
        let end = &self.0;
        let mut rounds = end.rounds(at);
        let op = Op::Ot(Ot::Receive { trees: end.trees });
        let dst = vec![end.corrections, end.last, end.columns];
        let mut receive = Command::new(op, vec![choices], dst);
        receive.calls = vec![end.call(at)];
        rounds[0].local = vec![receive];
        rounds[0].sends = vec![end.transfer(end.corrections, 0), end.transfer(end.last, 1)];
        let told = end.transfer(end.folds, 2);
        if let Challenge::Coin(_) = end.challenge {
            rounds[1].recvs = vec![end.transfer(end.chosen, 0)];
        }
        let last = rounds.last_mut().expect("one round at least");
        last.local.extend(end.hash(at));
        last.local.push(end.fold());
        last.local.push(end.labels(Low::Choice, to));
        last.sends.push(told);
        rounds
    }
}

/// The sender's end: it has the offset, and all leaves but leaf 0 of each tree.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    end: End,
    offset: KeyId,
    /// Folds that the receiver sends.
    told: Span,
}

impl Sender {
    /// The same, whose labels are keys of MACs: bit 0 of each is 0.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.end.pinned = true;
        self
    }

    /// Adds to a layout what transfers of `items` items of choices need, each of its column type. `peer` is the receiver, `leaves` the key of leaf 0 of tree 0, though there is
    /// none, and `offset` the key that is Δ.
    ///
    /// # Panics
    /// If a column would be larger than 4 GiB.
    pub fn new(
        layout: &mut Layout,
        peer: Peer,
        (trees, items): (Trees, (u32, Choices)),
        challenge: Challenge,
        (leaves, offset): (KeyId, KeyId),
    ) -> Self {
        let end = End::new(layout, (peer, trees, items), (challenge, leaves), COLUMNS);
        let told = layout.add(Region {
            residency: Residency::Mapped,
            column: ColumnType::Bytes(16),
            components: 1,
            count: COLUMNS + 1,
        });
        let told = layout.all(told, 0);
        Sender { end, offset, told }
    }

    /// The rounds of transfers whose labels go `to` as many items as there are choices. When the last one has passed its check, they may be
    /// used.
    pub fn rounds(&self, at: At, to: Span) -> Vec<Round> {
        let end = &self.end;
        let mut rounds = end.rounds(at);
        rounds[0].recvs = vec![end.transfer(end.corrections, 0), end.transfer(end.last, 1)];
        if let Challenge::Coin(key) = end.challenge {
            let mut coin = Command::new(Op::Random, vec![], vec![end.chosen]);
            coin.calls = vec![PrfCall {
                key,
                tag: DomainTag::OT_COIN,
                first: at.first,
            }];
            rounds[1].local.push(coin);
            rounds[1].sends = vec![end.transfer(end.chosen, 0)];
        }
        let op = Op::Ot(Ot::Send {
            trees: end.trees,
            offset: self.offset,
        });
        let mut send = Command::new(op, vec![end.corrections, end.last], vec![end.columns]);
        send.calls = vec![end.call(at)];
        let compare = Op::Ot(Ot::Compare {
            offset: self.offset,
        });
        let last = rounds.last_mut().expect("one round at least");
        last.recvs.push(end.transfer(self.told, 2));
        last.finish.push(send);
        last.finish.extend(end.hash(at));
        last.finish.push(end.fold());
        last.checks.push(Check {
            command: last.finish.len(),
            suspects: vec![end.peer],
            what: CHECKED,
        });
        last.finish
            .push(Command::new(compare, vec![end.folds, self.told], vec![]));
        last.finish.push(end.labels(Low::Zero, to));
        rounds
    }
}
