//! The proof that a batch's products of bits are right: every party proves it to the other two, level by level.
//!
//! Party i proves of each of its messages that a b + c d + e + f = 0 over bits, where a = u_i, c = w_i, e = r_i + ρ_i are known to the
//! next party as well, and b = w_(i-1), d = u_(i-1), f = ρ_(i-1) + u_(i-1) w_(i-1) to the previous one. For each level it shares the
//! values of a polynomial: the previous party draws its share, the next one is sent the rest, and only then tells the challenge, which
//! both of them draw under the key that the prover lacks. With the next share the prover tells the previous party which challenge it was
//! told: a wrong one would make it share another polynomial, whose difference is a secret. In the end both compare what they found.
//!
//! `docs/protocol-rep3.md` has the equations, and what a forged proof has to guess.

use veil_device::proof::{COUNTS, Side, factor, length, levels, values};
use veil_device::{Command, KeyId, Op, PrfCall, Proof, Span};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::{KEY_OWN, KEY_PREVIOUS, SCHEME};
use crate::replicated::regions::{PROOF, PROOF_COUNTS, TRACE, VECTORS};
use crate::replicated::{Batch, ProofOf, check, transfer};
use crate::round::{Check, Cost, Round, Transfer};

pub(super) const PROOF_OF: ProofOf = ProofOf { rounds, cost };

/// A message of a proof.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ProofMessage {
    /// A level's share, from prover to verifier.
    Share,
    /// The challenge of a level, from verifier to prover.
    Challenge,
    /// The challenge that the prover was told, to the other verifier.
    Echo,
    /// A verifier's findings, to the other one.
    Findings,
}

/// The kind of message that is sent from, or received to, a span.
pub fn proof_message(of: &Transfer) -> Option<ProofMessage> {
    let all = [
        ProofMessage::Share,
        ProofMessage::Challenge,
        ProofMessage::Echo,
        ProofMessage::Findings,
    ];
    let message = all.into_iter().find(|m| part(*m) == of.part);
    message.filter(|_| of.span.region == PROOF)
}

/// Number of a message in its round.
const fn part(message: ProofMessage) -> u16 {
    match message {
        ProofMessage::Share => 0,
        ProofMessage::Challenge => 1,
        ProofMessage::Findings => 2,
        ProofMessage::Echo => 3,
    }
}

/// Elements of a level: shares that are sent, received and drawn, 16 each, then single ones.
const LEVEL: u32 = 64;

/// Single elements of a level.
#[derive(Clone, Copy)]
enum One {
    /// The challenge to this party.
    Challenge,
    /// The challenges to the previous one, and to the next.
    Given([u32; 1]),
    /// Claims about the previous one, and the next.
    Claim([u32; 1]),
    /// The challenge that the next one was told.
    Echo,
}

fn element(first: u32, count: u32) -> Span {
    Span {
        region: PROOF,
        component: 0,
        first,
        count,
    }
}

/// Shares of a level: 0 sent, 1 received, 2 drawn.
fn share(level: u32, which: u32) -> Span {
    element(LEVEL * (level - 1) + 16 * which, values(level))
}

fn one(level: u32, which: One) -> Span {
    let at = match which {
        One::Challenge => 48,
        One::Given([of]) => 49 + of,
        One::Claim([of]) => 51 + of,
        One::Echo => 53,
    };
    element(LEVEL * (level - 1) + at, 1)
}

/// The two provers that a party verifies.
const PREVIOUS_PROVER: u32 = 0;
const NEXT_PROVER: u32 = 1;

/// Elements of the region [`PROOF`] that a batch takes.
pub(crate) fn elements(batch: &Batch) -> u32 {
    let levels = levels(batch.products, batch.rows);
    LEVEL * levels + 4 * findings(levels)
}

/// Elements of the vectors of a batch.
pub(crate) fn longest(batch: &Batch) -> u32 {
    let length = length(batch.products, batch.rows, 3);
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Elements that a verifier tells the other one: a difference of each level, a value, a share.
fn findings(levels: u32) -> u32 {
    levels + 2
}

/// What was found about a prover: by this party, or told by the other verifier.
fn found(levels: u32, prover: u32, told: bool) -> Span {
    let count = findings(levels);
    element(
        LEVEL * levels + count * (2 * prover + u32::from(told)),
        count,
    )
}

/// Element `k` of a span.
fn nth(span: Span, k: u32) -> Span {
    Span {
        first: span.first + k,
        count: 1,
        ..span
    }
}

fn vector(side: Side, batch: &Batch) -> Span {
    let part = Side::ALL.iter().position(|s| *s == side);
    Span {
        region: VECTORS,
        component: part.expect("all sides are listed") as u8,
        first: 0,
        count: longest(batch),
    }
}

fn step(proof: Proof, src: Vec<Span>, dst: Vec<Span>) -> Command {
    Command::new(Op::Proof(proof), src, dst)
}

fn with_calls(mut command: Command, calls: Vec<PrfCall>) -> Command {
    command.calls = calls;
    command
}

/// What one party does in the proofs of a batch.
struct Prover<'a> {
    batch: &'a Batch,
    me: PartyId,
    levels: u32,
}

fn rounds(me: PartyId, batch: &Batch) -> Vec<Round> {
    if batch.products == 0 {
        return Vec::new();
    }
    let prover = Prover {
        batch,
        me,
        levels: levels(batch.products, batch.rows),
    };
    let levels = (1..=prover.levels).flat_map(|level| [prover.prove(level), prover.verify(level)]);
    let mut rounds: Vec<Round> = levels.chain([prover.compare()]).collect();
    for (place, round) in (batch.place..).zip(&mut rounds) {
        round.place = place;
    }
    rounds
}

impl Prover<'_> {
    fn next(&self) -> PartyId {
        SCHEME.next(self.me)
    }

    fn previous(&self) -> PartyId {
        SCHEME.previous(self.me)
    }

    fn gates(&self) -> [Span; 2] {
        [TRACE, self.batch.received].map(|region| Span {
            region,
            component: 0,
            first: 0,
            count: self.batch.products,
        })
    }

    /// Elements of a level are drawn from this counter on: batch, level and element have fields of their own.
    fn call(&self, key: KeyId, tag: DomainTag, level: u32) -> PrfCall {
        let first = u64::from(self.batch.number) << 32 | u64::from(level) << 16;
        PrfCall { key, tag, first }
    }

    /// Makes the vectors of `sides` those after `level`, of which the challenges are those of `which`.
    fn fold(&self, level: u32, sides: &[(Side, One)]) -> Vec<Command> {
        let products = self.batch.products;
        let fold = |&(side, which): &(Side, One)| {
            let vector = vector(side, self.batch);
            if level == 2 {
                let challenges = [1, 2].map(|level| one(level, which));
                let src = self.gates().into_iter().chain(challenges).collect();
                step(Proof::Expand { side }, src, vec![vector])
            } else {
                let src = vec![vector, one(level, which)];
                step(Proof::Fold { level, products }, src, vec![vector])
            }
        };
        let folds = sides.iter().map(fold);
        if level < 2 { vec![] } else { folds.collect() }
    }

    /// The round in which this party shares a level of its proof with the next, and compares the challenge that the next was told with its own.
    fn prove(&self, level: u32) -> Round {
        let me = self.me.index() as u8;
        let products = self.batch.products;
        let last = level == self.levels;
        let counts = Span {
            region: PROOF_COUNTS,
            component: 0,
            first: 0,
            count: COUNTS,
        };
        let own = [Side::OwnNext, Side::OwnPrevious];
        let mut local = self.fold(level - 1, &own.map(|side| (side, One::Challenge)));
        let src = match level {
            1 => {
                let claim = one(1, One::Claim([PREVIOUS_PROVER]));
                local.push(step(Proof::Claim { products }, vec![], vec![claim]));
                local.push(step(Proof::Counts, self.gates().to_vec(), vec![counts]));
                vec![counts]
            }
            2 => vec![counts, one(1, One::Challenge)],
            _ => own.map(|side| vector(side, self.batch)).to_vec(),
        };
        let mut calls = vec![self.call(KEY_PREVIOUS, DomainTag::dzkp_share(me), level)];
        if last {
            calls.push(self.call(KEY_OWN, DomainTag::dzkp_p_mask(me), 0));
            calls.push(self.call(KEY_PREVIOUS, DomainTag::dzkp_q_mask(me), 0));
        }
        let step_of_level = Proof::Share {
            level,
            products,
            last,
        };
        local.push(with_calls(
            step(step_of_level, src, vec![share(level, 0)]),
            calls,
        ));
        let [previous, next] = [self.previous(), self.next()].map(Peer::Party);
        let shares = part(ProofMessage::Share);
        let mut round = Round {
            local,
            sends: vec![transfer(share(level, 0), next, shares)],
            recvs: vec![transfer(share(level, 1), previous, shares)],
            ..Round::default()
        };
        if level > 1 {
            let [mine, told, given] = [One::Challenge, One::Echo, One::Given([NEXT_PROVER])]
                .map(|which| one(level - 1, which));
            let echo = part(ProofMessage::Echo);
            round.sends.push(transfer(mine, previous, echo));
            round.recvs.push(transfer(told, next, echo));
            let suspects = vec![next, previous];
            check(
                &mut round,
                told,
                given,
                suspects,
                "the challenge to a proof",
            );
        }
        round
    }

    /// The round in which this party, which has a level of both others' proofs, challenges the previous one.
    fn verify(&self, level: u32) -> Round {
        let [previous, next] = [self.previous(), self.next()].map(|p| p.index() as u8);
        let products = self.batch.products;
        let last = level == self.levels;
        let from = factor(level);
        let elements = |from, to: Span, call| {
            let elements = step(Proof::Elements { from }, vec![], vec![to]);
            with_calls(elements, vec![call])
        };
        let given = [PREVIOUS_PROVER, NEXT_PROVER].map(|p| one(level, One::Given([p])));
        let mut local = vec![
            elements(
                from,
                given[0],
                self.call(KEY_OWN, DomainTag::dzkp_challenge(previous), level),
            ),
            elements(
                from,
                given[1],
                self.call(KEY_PREVIOUS, DomainTag::dzkp_challenge(next), level),
            ),
            elements(
                0,
                share(level, 2),
                self.call(KEY_OWN, DomainTag::dzkp_share(next), level),
            ),
        ];
        for prover in [PREVIOUS_PROVER, NEXT_PROVER] {
            let found = found(self.levels, prover, false);
            let then = if last {
                nth(found, self.levels + 1)
            } else {
                one(level + 1, One::Claim([prover]))
            };
            let src = vec![
                one(level, One::Claim([prover])),
                share(level, 1 + prover),
                given[prover as usize],
            ];
            let dst = vec![nth(found, level - 1), then];
            local.push(step(Proof::Verify { last }, src, dst));
        }
        let sides = [
            (Side::Previous, One::Given([PREVIOUS_PROVER])),
            (Side::Next, One::Given([NEXT_PROVER])),
        ];
        if last {
            let masks = [
                self.call(KEY_PREVIOUS, DomainTag::dzkp_p_mask(previous), 0),
                self.call(KEY_OWN, DomainTag::dzkp_q_mask(next), 0),
            ];
            for (prover, (side, mask)) in
                (0..).zip(sides.map(|(side, _)| side).into_iter().zip(masks))
            {
                let src = vec![vector(side, self.batch), given[prover as usize]];
                let to = nth(found(self.levels, prover, false), self.levels);
                let end = step(Proof::End { level, products }, src, vec![to]);
                local.push(with_calls(end, vec![mask]));
            }
        } else {
            local.extend(self.fold(level, &sides));
        }
        let part = part(ProofMessage::Challenge);
        let received = one(level, One::Challenge);
        Round {
            local,
            sends: vec![transfer(given[0], Peer::Party(self.previous()), part)],
            recvs: vec![transfer(received, Peer::Party(self.next()), part)],
            ..Round::default()
        }
    }

    /// The round in which both verifiers of a proof tell each other what they found.
    fn compare(&self) -> Round {
        let [previous, next] = [self.previous(), self.next()].map(Peer::Party);
        let part = part(ProofMessage::Findings);
        let mut round = Round::default();
        // Of each prover this party and the other verifier, who is the third.
        for (prover, of, other) in [
            (PREVIOUS_PROVER, previous, next),
            (NEXT_PROVER, next, previous),
        ] {
            let [mine, theirs] = [false, true].map(|told| found(self.levels, prover, told));
            round.sends.push(transfer(mine, other, part));
            round.recvs.push(transfer(theirs, other, part));
            round.checks.push(Check {
                command: round.finish.len(),
                suspects: vec![of, other],
                what: "the proof of a party's products",
            });
            let compare = step(Proof::Compare, vec![mine, theirs], vec![]);
            round.finish.push(compare);
        }
        round
    }
}

/// A share and a challenge of each level, all challenges but the last once more, and what was found about both others.
fn cost(batch: &Batch) -> Cost {
    if batch.products == 0 {
        return Cost::default();
    }
    let levels = levels(batch.products, batch.rows);
    let shares: u32 = (1..=levels).map(values).sum();
    Cost {
        rounds: 2 * u64::from(levels) + 1,
        messages: 3 * u64::from(levels) + 1,
        bytes: 8 * u64::from(shares + 2 * levels - 1 + 2 * findings(levels)),
    }
}
