//! The proof that a batch's products of bits are right: every party proves it to the other two, level by level.
//!
//! Party i proves of each of its messages that a b + c d + e + f = 0 over bits, where a = u_i, c = w_i, e = r_i + ρ_i are known to the
//! next party as well, and b = w_(i-1), d = u_(i-1), f = ρ_(i-1) + u_(i-1) w_(i-1) to the previous one. When the previous party has computed
//! all of the batch, it tells the next one, and when that has all of the batch's messages, it tells the prover the seed of their weights: from
//! then on nothing that the prover sends changes what the weights are for. For each level the prover shares values of a polynomial: the previous
//! party draws its share, the next one is sent the rest, and only then tells the challenge. Both verifiers draw the seed and the challenges
//! under the key that the prover lacks, and with each share the prover tells the previous party what it was told before: by another seed,
//! or challenge, it would share another polynomial, whose difference is a secret. In the end both compare what they found.
//!
//! Rows that a party moved it proves in the same rounds, from the third level on: vectors and claims are of rows there ([`Moved`]).
//!
//! `docs/protocol-rep3.md` has the equations, and what a forged proof has to guess.

mod elements;

use veil_device::proof::rows::PRODUCTS;
use veil_device::proof::{FINDINGS, SEED, Side, factor, levels, values};
use veil_device::{Command, KeyId, Op, PrfCall, Proof, Span};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use self::elements::{In, One};
pub(crate) use self::elements::{elements, longest, sizes_of_rows};
use super::{KEY_OWN, KEY_PREVIOUS, SCHEME};
use crate::replicated::regions::{PROOF, TRACE, VECTORS};
use crate::replicated::{Batch, ProofOf, check, transfer};
use crate::round::{Check, Cost, Round, Transfer};

pub(super) const PROOF_OF: ProofOf = ProofOf { rounds, cost };

/// A message of a proof.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ProofMessage {
    /// A verifier has computed the batch, to the other one: the seed.
    Ready,
    /// The seed of the weights, from verifier to prover.
    Seed,
    /// A level's share, from prover to verifier.
    Share,
    /// The challenge of a level, from verifier to prover.
    Challenge,
    /// The seed that the prover was told, to the other verifier.
    SeedEcho,
    /// The challenge that the prover was told, to the other verifier.
    Echo,
    /// A verifier's findings, to the other one.
    Findings,
}

/// The kind of message that is sent from, or received to, a span.
pub fn proof_message(of: &Transfer) -> Option<ProofMessage> {
    let all = [
        ProofMessage::Ready,
        ProofMessage::Seed,
        ProofMessage::SeedEcho,
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
        ProofMessage::Seed => 4,
        ProofMessage::Ready => 5,
        ProofMessage::SeedEcho => 6,
    }
}

/// The first level of a proof of rows: their vectors are as those of products of bits after two levels.
const FIRST_OF_ROWS: u32 = 3;

/// The two provers that a party verifies.
const PREVIOUS_PROVER: u32 = 0;
const NEXT_PROVER: u32 = 1;

/// Element `k` of a span.
fn nth(span: Span, k: u32) -> Span {
    Span {
        first: span.first + k,
        count: 1,
        ..span
    }
}

fn step(proof: Proof, src: Vec<Span>, dst: Vec<Span>) -> Command {
    Command::new(Op::Proof(proof), src, dst)
}

/// Draws elements from `from` on.
fn draw(from: u32, to: Span, call: PrfCall) -> Command {
    with_calls(step(Proof::Elements { from }, vec![], vec![to]), vec![call])
}

fn with_calls(mut command: Command, calls: Vec<PrfCall>) -> Command {
    command.calls = calls;
    command
}

/// Rows that the parties have moved, as one of them proves and verifies that they did: what each side has of it.
pub(crate) trait Moved {
    /// The steps that write the vector of a side, of this seed.
    fn vector(&self, side: Side, seed: Span, to: Span) -> Vec<Command>;
    /// The steps that write the claim of a side that verifies, of this seed.
    fn claim(&self, side: Side, seed: Span, to: Span) -> Vec<Command>;
}

/// What is proved.
#[derive(Clone, Copy)]
enum Of<'a> {
    /// Products of bits.
    Batch(&'a Batch),
    /// That rows were moved rightly.
    Rows(&'a dyn Moved),
}

/// What one party does in the proofs of a batch.
struct Prover<'a> {
    of: Of<'a>,
    me: PartyId,
    /// The region of single elements, and that of vectors.
    at: In,
    vectors: u16,
    /// Elements of a vector.
    longest: u32,
    /// What draws of this batch begin with.
    number: u32,
    products: u32,
    first: u32,
    levels: u32,
}

fn rounds(me: PartyId, batch: &Batch) -> Vec<Round> {
    if batch.products == 0 {
        return Vec::new();
    }
    let prover = Prover {
        of: Of::Batch(batch),
        me,
        at: In(PROOF),
        vectors: VECTORS,
        longest: longest(batch),
        number: batch.number,
        products: batch.products,
        first: 1,
        levels: levels(batch.products, batch.rows),
    };
    prover.rounds(batch.place)
}

/// The rounds from `place` on in which parties prove to each other that rows were moved rightly. Single elements are in the first of two regions, vectors in the other one.
pub(crate) fn rounds_of_rows(
    me: PartyId,
    (of, rows): (&dyn Moved, u32),
    [elements, vectors]: [u16; 2],
    place: u32,
) -> Vec<Round> {
    let [_, longest] = sizes_of_rows(rows);
    let prover = Prover {
        of: Of::Rows(of),
        me,
        at: In(elements),
        vectors,
        longest,
        number: 0,
        products: PRODUCTS,
        first: FIRST_OF_ROWS,
        levels: levels(PRODUCTS, rows),
    };
    prover.rounds(place)
}

impl Prover<'_> {
    fn rounds(&self, place: u32) -> Vec<Round> {
        let levels = (self.first..=self.levels).flat_map(|level| {
            let verify = (level < self.levels).then(|| self.verify(level));
            [Some(self.prove(level)), verify]
        });
        let mut rounds = vec![self.ready(), self.seeds()];
        rounds.extend(levels.flatten());
        rounds.push(self.compare());
        for (place, round) in (place..).zip(&mut rounds) {
            round.place = place;
        }
        rounds
    }

    /// The level whose challenge a level begins with: the first one begins with the seed.
    const fn before(&self, level: u32) -> u32 {
        if level == self.first { 0 } else { level - 1 }
    }

    fn vector(&self, side: Side) -> Span {
        let part = Side::ALL.iter().position(|s| *s == side);
        Span {
            region: self.vectors,
            component: part.expect("all sides are listed") as u8,
            first: 0,
            count: self.longest,
        }
    }

    fn next(&self) -> PartyId {
        SCHEME.next(self.me)
    }

    fn previous(&self) -> PartyId {
        SCHEME.previous(self.me)
    }

    /// Elements of a level are drawn from this counter on: batch, level and element have fields of their own.
    fn call(&self, key: KeyId, tag: DomainTag, level: u32) -> PrfCall {
        let first = u64::from(self.number) << 32 | u64::from(level) << 16;
        PrfCall { key, tag, first }
    }

    /// The steps in which this party draws what it, and the other verifier, tell the previous party and the next one: seeds at level 0, else challenges.
    fn draw_given(&self, level: u32) -> [Command; 2] {
        let [previous, next] = [self.previous(), self.next()].map(|p| p.index() as u8);
        let provers = [
            (PREVIOUS_PROVER, KEY_OWN, previous),
            (NEXT_PROVER, KEY_PREVIOUS, next),
        ];
        provers.map(|(prover, key, index)| {
            let (from, tag) = match level {
                0 => (0, DomainTag::dzkp_seed(index)),
                _ => (factor(level), DomainTag::dzkp_challenge(index)),
            };
            let to = self.at.one(level, One::Given([prover]));
            draw(from, to, self.call(key, tag, level))
        })
    }

    /// Makes the vectors of `sides` those after `level`, of which the challenges are those of `which`. Vectors are there from level 2 on.
    fn fold(&self, level: u32, sides: &[(Side, One)]) -> Vec<Command> {
        let products = self.products;
        let fold = |&(side, which): &(Side, One)| {
            let vector = self.vector(side);
            let told = |level| self.at.one(level, which);
            match self.of {
                Of::Batch(batch) if level == 2 => {
                    let src = gates(batch).into_iter().chain([0, 1, 2].map(told));
                    vec![step(Proof::Expand { side }, src.collect(), vec![vector])]
                }
                Of::Rows(of) if level == 2 => of.vector(side, told(0), vector),
                Of::Batch(_) | Of::Rows(_) => {
                    let src = vec![vector, told(level)];
                    vec![step(Proof::Fold { level, products }, src, vec![vector])]
                }
            }
        };
        let folds = sides.iter().flat_map(fold);
        if level < 2 { vec![] } else { folds.collect() }
    }

    /// The round in which this party, which has computed the batch, tells the previous one the seed for the next one, as both are its verifiers.
    fn ready(&self) -> Round {
        let part = part(ProofMessage::Ready);
        let [mine, theirs] =
            [NEXT_PROVER, PREVIOUS_PROVER].map(|p| self.at.one(0, One::Given([p])));
        let told = self.at.one(0, One::Ready);
        let next = Peer::Party(self.next());
        let mut round = Round {
            local: self.draw_given(0).to_vec(),
            sends: vec![transfer(mine, Peer::Party(self.previous()), part)],
            recvs: vec![transfer(told, next, part)],
            ..Round::default()
        };
        check(&mut round, told, theirs, vec![next], "the seed of a proof");
        round
    }

    /// The round in which this party, which has all of the previous one's messages and heard that the next one has computed the batch, tells the
    /// previous one the seed of its weights.
    fn seeds(&self) -> Round {
        let part = part(ProofMessage::Seed);
        let given = self.at.one(0, One::Given([PREVIOUS_PROVER]));
        Round {
            sends: vec![transfer(given, Peer::Party(self.previous()), part)],
            recvs: vec![transfer(
                self.at.one(0, One::Challenge),
                Peer::Party(self.next()),
                part,
            )],
            ..Round::default()
        }
    }

    /// The round in which this party shares a level of its proof with the next, and compares what the next was told with its own.
    fn prove(&self, level: u32) -> Round {
        let me = self.me.index() as u8;
        let products = self.products;
        let last = level == self.levels;
        let own = [Side::OwnNext, Side::OwnPrevious];
        let mut local = self.fold(level - 1, &own.map(|side| (side, One::Challenge)));
        let src = match self.of {
            Of::Batch(batch) if level <= 2 => {
                let told = (0..level).map(|level| self.at.one(level, One::Challenge));
                gates(batch).into_iter().chain(told).collect()
            }
            Of::Batch(_) | Of::Rows(_) => own.map(|side| self.vector(side)).to_vec(),
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
            step(step_of_level, src, vec![self.at.share(level, 0)]),
            calls,
        ));
        let [previous, next] = [self.previous(), self.next()].map(Peer::Party);
        let shares = part(ProofMessage::Share);
        let before = self.before(level);
        let echo = part(match before {
            0 => ProofMessage::SeedEcho,
            _ => ProofMessage::Echo,
        });
        let [mine, told, given] = [One::Challenge, One::Echo, One::Given([NEXT_PROVER])]
            .map(|which| self.at.one(before, which));
        let mut round = Round {
            local,
            sends: vec![
                transfer(self.at.share(level, 0), next, shares),
                transfer(mine, previous, echo),
            ],
            recvs: vec![
                transfer(self.at.share(level, 1), previous, shares),
                transfer(told, next, echo),
            ],
            ..Round::default()
        };
        let suspects = vec![next, previous];
        check(
            &mut round,
            told,
            given,
            suspects,
            "the challenge to a proof",
        );
        round
    }

    /// The steps in which this party, which has a level of both others' proofs, draws its challenges and makes the claims that follow: the next
    /// level's, or what was found at last.
    fn claims(&self, level: u32) -> Vec<Command> {
        let last = level == self.levels;
        let mut steps = self.draw_given(level).to_vec();
        let next = self.next().index() as u8;
        steps.push(draw(
            0,
            self.at.share(level, 2),
            self.call(KEY_OWN, DomainTag::dzkp_share(next), level),
        ));
        for (prover, side) in [(PREVIOUS_PROVER, Side::Previous), (NEXT_PROVER, Side::Next)] {
            let given = |level| self.at.one(level, One::Given([prover]));
            let claim = self.at.claims(level, prover);
            match self.of {
                _ if level > self.first => {}
                Of::Batch(batch) => {
                    let src = gates(batch).into_iter().chain([given(0)]).collect();
                    steps.push(step(Proof::Claims { side }, src, vec![claim]));
                }
                Of::Rows(of) => steps.extend(of.claim(side, given(0), claim)),
            }
            let then = if last {
                nth(self.at.found(self.levels, prover, false), 1)
            } else {
                self.at.claims(level + 1, prover)
            };
            let src = vec![claim, self.at.share(level, 1 + prover), given(level)];
            steps.push(step(Proof::Verify { level, last }, src, vec![then]));
        }
        steps
    }

    /// The round in which this party, which has a level of both others' proofs, challenges the previous one.
    fn verify(&self, level: u32) -> Round {
        let given = [PREVIOUS_PROVER, NEXT_PROVER].map(|prover| One::Given([prover]));
        let sides = [(Side::Previous, given[0]), (Side::Next, given[1])];
        let mut local = self.claims(level);
        // Vectors of rows are those before the first level.
        if matches!(self.of, Of::Rows(_)) && level == self.first {
            local.extend(self.fold(level - 1, &sides));
        }
        local.extend(self.fold(level, &sides));
        let part = part(ProofMessage::Challenge);
        let received = self.at.one(level, One::Challenge);
        let sent = self.at.one(level, given[0]);
        Round {
            local,
            sends: vec![transfer(sent, Peer::Party(self.previous()), part)],
            recvs: vec![transfer(received, Peer::Party(self.next()), part)],
            ..Round::default()
        }
    }

    /// The round in which both verifiers of a proof tell each other what they found. All echoes were right before.
    fn compare(&self) -> Round {
        let [previous, next] = [self.previous(), self.next()];
        let (level, products) = (self.levels, self.products);
        let mut local = self.claims(level);
        let masks = [
            self.call(
                KEY_PREVIOUS,
                DomainTag::dzkp_p_mask(previous.index() as u8),
                0,
            ),
            self.call(KEY_OWN, DomainTag::dzkp_q_mask(next.index() as u8), 0),
        ];
        for ((prover, side), mask) in (0..).zip([Side::Previous, Side::Next]).zip(masks) {
            let src = vec![self.vector(side), self.at.one(level, One::Given([prover]))];
            let to = nth(self.at.found(level, prover, false), 0);
            let end = step(Proof::End { level, products }, src, vec![to]);
            local.push(with_calls(end, vec![mask]));
        }
        let part = part(ProofMessage::Findings);
        let mut round = Round {
            local,
            ..Round::default()
        };
        let [previous, next] = [previous, next].map(Peer::Party);
        // Of each prover this party and the other verifier, who is the third.
        for (prover, of, other) in [
            (PREVIOUS_PROVER, previous, next),
            (NEXT_PROVER, next, previous),
        ] {
            let [mine, theirs] = [false, true].map(|told| self.at.found(level, prover, told));
            round.sends.push(transfer(mine, other, part));
            round.recvs.push(transfer(theirs, other, part));
            round.checks.push(Check {
                command: round.finish.len(),
                suspects: vec![of, other],
                what: match self.of {
                    Of::Batch(_) => "the proof of a party's products",
                    Of::Rows(_) => "the proof of rows that a party moved",
                },
            });
            let compare = step(Proof::Compare, vec![mine, theirs], vec![]);
            round.finish.push(compare);
        }
        round
    }
}

/// The trace of a batch, and what was received of it.
fn gates(batch: &Batch) -> [Span; 2] {
    [TRACE, batch.received].map(|region| Span {
        region,
        component: 0,
        first: 0,
        count: batch.products,
    })
}

fn cost(batch: &Batch) -> Cost {
    if batch.products == 0 {
        return Cost::default();
    }
    cost_of(1..=levels(batch.products, batch.rows))
}

/// What a proof costs that rows were moved rightly.
pub(crate) fn cost_of_rows(rows: u32) -> Cost {
    cost_of(FIRST_OF_ROWS..=levels(PRODUCTS, rows))
}

/// A seed to the other verifier and to the prover, a share of each level, a challenge of each but the last, all that was told to the prover once
/// more, and what was found about both others.
fn cost_of(levels: std::ops::RangeInclusive<u32>) -> Cost {
    let shares: u32 = levels.clone().map(values).sum();
    let levels = levels.count() as u32;
    let told = SEED + levels - 1;
    Cost {
        rounds: 2 * u64::from(levels) + 2,
        messages: 3 * u64::from(levels) + 3,
        bytes: 8 * u64::from(SEED + shares + 2 * told + 2 * FINDINGS),
    }
}
