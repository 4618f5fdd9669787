//! The rounds of an intersection: the sender commits to a coin; both make a correlation; the receiver sends its encoding, the sender its coin and its tags.

use veil_device::{Command, Layout, Op, Psi, Span};
use veil_job::Intersection;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::regions::{self, Coin, coin};
use super::{TREES, encoding, label, place, shape};
use crate::ot::extension::{At, Challenge};
use crate::ot::silent::{Base, call};
use crate::ot::vole;
use crate::round::{Check, Round, Transfer};
use crate::yao::{COMMON, LEAVES, OFFSET, PRIVATE, other, random};

/// What checks compare, in errors.
mod what {
    pub(super) const COIN: &str = "what the sender committed to";
    pub(super) const TAGS: &str = "that no two tags are equal, and all are in order";
}

/// The rounds of party `me`, whose layout grows by what the correlation needs, and the number of places.
pub(super) fn of(of: Intersection, me: PartyId, layout: &mut Layout) -> (Vec<Round>, u32) {
    let shape = shape(of);
    let base = Base {
        trees: TREES,
        challenge: Challenge::Coin(PRIVATE),
        leaves: LEAVES,
        common: COMMON,
        private: PRIVATE,
        back: false,
    };
    let last = place::CORRELATIONS + shape.places(base.challenge);
    let at = At {
        place: place::CORRELATIONS,
        first: 0,
        label: 0,
    };
    let party = Party {
        of,
        peer: other(me),
    };
    let mut rounds;
    if me == of.result {
        let ends = vole::Receiver::new(layout, party.peer, shape, base);
        rounds = vec![party.hear_commitment()];
        rounds.extend(ends.rounds(at));
        let [a, c] = ends.entries();
        rounds.push(party.encode(last, me, c));
        rounds.push(party.compare(last + 1, me, a));
    } else {
        let ends = vole::Sender::new(layout, party.peer, shape, base, OFFSET);
        rounds = vec![party.commit()];
        rounds.extend(ends.rounds(at));
        rounds.push(party.hear(last, me));
        rounds.push(party.answer(last + 1, me, ends.entries()));
    }
    (rounds, last + 2)
}

/// What both parties do.
struct Party {
    of: Intersection,
    peer: Peer,
}

/// The digest of two spans, of the one use that its label has.
fn digest(label: u16, src: Vec<Span>, to: Span) -> Command {
    let mut command = Command::new(Op::Hash { label }, src, vec![to]);
    command.calls = vec![call(COMMON, DomainTag::PSI_SALT, 0)];
    command
}

fn psi(step: Psi, src: Vec<Span>, dst: Vec<Span>) -> Command {
    Command::new(Op::Psi(step), src, dst)
}

impl Party {
    fn send(&self, span: Span, part: u16) -> Transfer {
        Transfer::new(span, self.peer, part)
    }

    /// The keys of a party, hashed with what both have in common of this run.
    fn hash(&self, me: PartyId) -> Command {
        let [keys, digests] = regions::keys(self.of, me);
        let mut hash = psi(Psi::Hash, vec![keys], vec![digests]);
        hash.calls = vec![call(COMMON, DomainTag::PSI_SALT, 0)];
        hash
    }

    /// What follows from both coins.
    fn mix() -> Command {
        let coins = vec![coin(Coin::Sender), coin(Coin::Receiver)];
        digest(label::COINS, coins, regions::both_coins())
    }

    fn commit(&self) -> Round {
        let draw = |of, first| random(PRIVATE, DomainTag::PSI_COIN, first, coin(of));
        Round {
            place: place::COMMIT,
            local: vec![
                draw(Coin::Sender, 0),
                draw(Coin::Nonce, 2),
                digest(
                    label::COIN,
                    vec![coin(Coin::Nonce), coin(Coin::Sender)],
                    coin(Coin::Commitment),
                ),
            ],
            sends: vec![self.send(coin(Coin::Commitment), 0)],
            ..Round::default()
        }
    }

    fn hear_commitment(&self) -> Round {
        Round {
            place: place::COMMIT,
            recvs: vec![self.send(coin(Coin::Commitment), 0)],
            ..Round::default()
        }
    }

    /// The receiver's encoding, masked by what it has of the correlation.
    fn encode(&self, place: u32, me: PartyId, c: Span) -> Round {
        let [_, digests] = regions::keys(self.of, me);
        let okvs = encoding(self.of);
        let (seed, masked) = (regions::seed(), regions::masked(self.of));
        let mut encode = psi(Psi::Encode { okvs }, vec![digests, c], vec![seed, masked]);
        encode.calls = vec![call(PRIVATE, DomainTag::PSI_ENCODE, 0)];
        Round {
            place,
            local: vec![
                self.hash(me),
                encode,
                random(PRIVATE, DomainTag::PSI_COIN, 0, coin(Coin::Receiver)),
            ],
            sends: vec![
                self.send(seed, 0),
                self.send(masked, 1),
                self.send(coin(Coin::Receiver), 2),
            ],
            ..Round::default()
        }
    }

    fn hear(&self, place: u32, me: PartyId) -> Round {
        Round {
            place,
            local: vec![self.hash(me)],
            recvs: vec![
                self.send(regions::seed(), 0),
                self.send(regions::masked(self.of), 1),
                self.send(coin(Coin::Receiver), 2),
            ],
            ..Round::default()
        }
    }

    /// The sender's coin and tags.
    fn answer(&self, place: u32, me: PartyId, b: Span) -> Round {
        let [_, digests] = regions::keys(self.of, me);
        let step = Psi::Tags {
            okvs: encoding(self.of),
            offset: OFFSET,
        };
        let src = vec![
            digests,
            b,
            regions::masked(self.of),
            regions::seed(),
            regions::both_coins(),
        ];
        let tags = regions::tags(self.of);
        Round {
            place,
            local: vec![Self::mix(), psi(step, src, vec![tags])],
            sends: vec![self.send(regions::opened_coin(), 0), self.send(tags, 1)],
            ..Round::default()
        }
    }

    fn compare(&self, place: u32, me: PartyId, a: Span) -> Round {
        let [_, digests] = regions::keys(self.of, me);
        let tags = regions::tags(self.of);
        let src = vec![digests, a, regions::seed(), regions::both_coins(), tags];
        let okvs = encoding(self.of);
        let committed = [coin(Coin::Commitment), regions::own_commitment()];
        let check = |command, what| Check {
            command,
            suspects: vec![self.peer],
            what,
        };
        Round {
            place,
            recvs: vec![self.send(regions::opened_coin(), 0), self.send(tags, 1)],
            finish: vec![
                digest(
                    label::COIN,
                    vec![coin(Coin::Nonce), coin(Coin::Sender)],
                    regions::own_commitment(),
                ),
                Command::new(Op::CheckEqual, committed.to_vec(), vec![]),
                Self::mix(),
                psi(Psi::Match { okvs }, src, vec![regions::common()]),
            ],
            checks: vec![check(1, what::COIN), check(3, what::TAGS)],
            ..Round::default()
        }
    }
}
