//! A batch: leaky products of random authenticated bits, buckets of them, and the gates of some layers, which take a product each.
//!
//! Every message whose content another one must not depend on waits for it: the order is that of `docs/protocol-ag.md`.

use veil_device::ag::{Ag, Role};
use veil_device::{Command, PrfCall, Span};
use veil_prss::DomainTag;

use super::expansion::{self, Piece, Stream};
use super::regions::{self, By, Of, Said, Use, items};
use super::steps::{Party, Rounds, ag, digest, fold};
use super::{Ends, Shape, label, what};
use crate::ot::extension::At;
use crate::ot::silent;
use crate::plan::{Plan, Stock};
use crate::round::Round;
use crate::yao::{COMMON, Group, OFFSET, PRIVATE, random};

/// Rounds of a batch, each of which has a place.
pub(super) const ROUNDS: u32 = 18;

/// Those of them that are transfers.
const TRANSFERS: u32 = 3;

/// Challenges that a party draws for a batch, and digests.
pub(super) const CHALLENGES: u64 = 3;

/// Where a batch has its authenticated bits from, unless products come from a stock.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Transfers of its own.
    Extension(&'a Ends),
    /// The stream of its lane, in the chunk that is number `chunk` of the lane's.
    Stream {
        stream: Stream,
        ends: &'a expansion::Ends,
        chunk: u64,
    },
    /// The same, whose rounds are counted elsewhere.
    Counted,
}

/// A batch of one party.
pub(super) struct Batch<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shape: &'a Shape,
    pub(super) me: Party,
    /// Its number in the chunk.
    pub(super) number: u64,
    /// The place of its first round.
    pub(super) place: u32,
    /// The layers of a cycle, and which of its groups they are.
    pub(super) group: &'a Group,
    pub(super) of_cycle: u32,
    /// The first of its cycles, and how many it has.
    pub(super) cycle: u64,
    pub(super) cycles: u32,
}

impl Batch<'_> {
    /// Its number among challenges and digests.
    fn first(&self) -> u64 {
        Shape::challenges(self.number)
    }

    /// Gates in a row.
    fn products(&self) -> u32 {
        self.group.gates * self.cycles
    }

    /// Its rounds.
    pub(super) fn rounds(&self, source: Option<Source<'_>>) -> Vec<Round> {
        let mut rounds = Rounds::new(self.me, self.place);
        if self.shape.stock == Stock::Made {
            if let Some(source) = source {
                self.products_of(&mut rounds, source);
            }
            self.open(&mut rounds);
            return rounds.made;
        }
        if self.group.gates == 0 {
            // What is linear has no products, and says nothing.
            rounds.next().local = [self.masks(), self.gates()].concat();
            self.public(&mut rounds);
            return rounds.made;
        }
        match source {
            Some(source) => self.products_of(&mut rounds, source),
            // The host puts cells of the stock into the workspace.
            None => rounds.next().feeds = true,
        }
        self.open(&mut rounds);
        self.garble(&mut rounds);
        self.check(&mut rounds);
        rounds.made
    }

    /// Leaky products, up to the shifts of buckets.
    fn products_of(&self, rounds: &mut Rounds, source: Source<'_>) {
        let taken = match source {
            Source::Extension(ends) => {
                self.transfer(rounds, ends);
                vec![]
            }
            Source::Stream {
                stream,
                ends,
                chunk,
            } => self.expand(rounds, (&stream, ends), stream.pieces(chunk, self.number)),
            Source::Counted => {
                rounds.go_on_at(self.place + TRANSFERS);
                vec![]
            }
        };
        let first = rounds.made.len();
        self.leaky(rounds);
        rounds.made[first].local.splice(0..0, taken);
        self.compare(rounds);
    }

    /// Authenticated bits: three of each candidate, and a mask of each result.
    fn transfer(&self, rounds: &mut Rounds, ends: &Ends) {
        let shape = self.shape;
        let parts = regions::flat_parts(shape);
        let [macs, keys] = regions::authenticated(shape);
        let at = At {
            place: self.place,
            first: shape.leaves.batch(self.number),
            label: 0,
        };
        rounds.both(ends.rounds(at, parts, [macs, keys]));
        let first = shape.parts.batch(self.number);
        let draw = random(PRIVATE, DomainTag::AG_PARTS, first, parts);
        rounds.made[0].local.insert(0, draw);
    }

    /// The same from the stream of the lane: rounds, and what is taken after the last one.
    fn expand(
        &self,
        rounds: &mut Rounds,
        (stream, ends): (&Stream, &expansion::Ends),
        pieces: Vec<Piece>,
    ) -> Vec<Command> {
        let shape = self.shape;
        let to = regions::authenticated(shape);
        let mut taken = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Base => rounds.both(ends.base(At {
                    place: self.place,
                    first: shape.leaves_of_base(),
                    label: 0,
                })),
                Piece::Round { number, nth } => {
                    let place = shape.place_of_stream(stream, self.of_cycle);
                    let first = rounds.made.len();
                    rounds.both(ends.round(place + silent::ROUNDS * nth, number));
                    // Outputs of the round before are taken before there are others.
                    rounds.made[first].local.splice(0..0, taken.drain(..));
                }
                Piece::Take { from, at } => taken.extend(ends.take(&from, at, to)),
            }
        }
        rounds.go_on_at(self.place + TRANSFERS);
        taken
    }

    /// Leaky products of all layers.
    fn leaky(&self, rounds: &mut Rounds) {
        let (shape, role) = (self.shape, self.me.role());
        let [[mac_a, key_a], [mac_b, key_b], [mac_c, key_c]] =
            [Of::A, Of::B, Of::C].map(|of| regions::candidates(shape, of));
        let all = u64::from(shape.layers) * u64::from(shape.candidates);
        let calls = vec![PrfCall {
            key: COMMON,
            tag: DomainTag::AG_LEAKY,
            first: self.number * all,
        }];
        let offset = OFFSET;
        rounds.next();
        let to = regions::offers(shape, By::Me);
        let mut offer = ag(
            Ag::Offer { offset, role },
            vec![key_a, mac_b, key_b],
            vec![to],
        );
        offer.calls.clone_from(&calls);
        rounds.local(offer);
        rounds.exchange(|by| regions::offers(shape, by), 0);
        rounds.next();
        let from = vec![
            mac_a,
            key_a,
            mac_b,
            key_b,
            mac_c,
            key_c,
            regions::offers(shape, By::Them),
        ];
        let (sums, bits) = (regions::sums(shape), |by| regions::bits(shape, by));
        let mut take = ag(Ag::Take { offset, role }, from, vec![sums, bits(By::Me)]);
        take.calls = calls;
        rounds.local(take);
        rounds.exchange(bits, 0);
        let changed = match role {
            Role::Garbler => mac_c,
            Role::Evaluator => key_c,
        };
        rounds.finish(ag(
            Ag::Settle { offset, role },
            vec![bits(By::Me), bits(By::Them)],
            vec![sums, changed],
        ));
    }

    /// Digests of what both have of leaky products, and the coins of the shifts.
    fn compare(&self, rounds: &mut Rounds) {
        let me = self.me;
        let coin = regions::coin;
        let (garbler, evaluator) = (Role::Garbler, Role::Evaluator);
        rounds.next();
        rounds.challenge(Use::Products, self.first(), 0);
        rounds.challenged(Use::Products, 0);
        rounds.next();
        if me.garbles() {
            self.own_digest(rounds, Said::Digest);
            rounds.local(self.draw(DomainTag::AG_NONCE, Said::Nonce));
            let from = vec![coin(Said::Nonce), coin(Said::Digest)];
            rounds.local(self.hash(label::PRODUCTS, from, coin(Said::Commitment)));
        }
        rounds.from(garbler, |_| coin(Said::Commitment), 0);
        rounds.next();
        if !me.garbles() {
            self.own_digest(rounds, Said::Other);
            rounds.local(self.draw(DomainTag::AG_COIN, Said::OtherCoin));
            rounds.local(self.draw(DomainTag::AG_NONCE, Said::OtherNonce));
            let from = vec![coin(Said::OtherNonce), coin(Said::OtherCoin)];
            rounds.local(self.hash(label::COIN, from, coin(Said::OtherCommitment)));
        }
        rounds.from(evaluator, |_| coin(Said::Other), 0);
        rounds.from(evaluator, |_| coin(Said::OtherCommitment), 1);
        if me.garbles() {
            rounds.compare([coin(Said::Other), coin(Said::Digest)], what::PRODUCTS);
        }
        rounds.next();
        if me.garbles() {
            rounds.local(self.draw(DomainTag::AG_COIN, Said::Coin));
        }
        for (k, said) in (0..).zip([Said::Nonce, Said::Digest, Said::Coin]) {
            rounds.from(garbler, |_| coin(said), k);
        }
        if !me.garbles() {
            let from = vec![coin(Said::Nonce), coin(Said::Digest)];
            rounds.finish(self.hash(label::PRODUCTS, from, regions::digest()));
            rounds.compare(
                [coin(Said::Commitment), regions::digest()],
                what::COMMITMENT,
            );
            rounds.compare([coin(Said::Other), coin(Said::Digest)], what::PRODUCTS);
        }
    }

    /// A random value of this party, two blocks for each batch.
    fn draw(&self, tag: DomainTag, to: Said) -> Command {
        let first = 2 * self.number;
        random(PRIVATE, tag, first, regions::coin(to))
    }

    fn hash(&self, label: u16, from: Vec<Span>, to: Span) -> Command {
        digest(label, self.first(), from, to)
    }

    /// The digest of L under both parties' challenges.
    fn own_digest(&self, rounds: &mut Rounds, to: Said) {
        let sums = regions::sums(self.shape);
        for (k, role) in (0..).zip([Role::Garbler, Role::Evaluator]) {
            let challenge = regions::challenge(self.me.by(role), Use::Products);
            rounds.local(fold(challenge, None, &[sums], regions::own_folds(k, 1)));
        }
        let from = vec![regions::own_folds(0, 2)];
        rounds.local(self.hash(label::EQUAL, from, regions::coin(to)));
    }

    /// Layers rotated, and the bits that this party opens.
    fn combined(&self) -> Vec<Command> {
        let shape = self.shape;
        let mut commands = vec![];
        if !shape.is_stocked() {
            let coins = vec![regions::coin(Said::Coin), regions::coin(Said::OtherCoin)];
            commands.push(self.hash(label::SHIFTS, coins, regions::shifts()));
        }
        for layer in 1..shape.layers {
            for of in [Of::A, Of::B, Of::C] {
                for array in regions::layer(shape, of, layer) {
                    let src = vec![regions::shifts(), array];
                    commands.push(ag(Ag::Rotate { layer }, src, vec![array]));
                }
            }
        }
        if shape.stock != Stock::Made {
            commands.extend(self.masks());
        }
        for (k, arrays) in (0..).zip(self.opened()) {
            let macs = arrays.iter().map(|[mac, _]| *mac).collect();
            let to = items(regions::opened_bits(shape, By::Me), k, 1);
            commands.push(ag(Ag::Bits { bit: 0 }, macs, vec![to]));
        }
        commands
    }

    /// MACs and keys of what is opened, as sums: d of every layer but the first; ε and δ, if there are gates.
    fn opened(&self) -> Vec<Vec<[Span; 2]>> {
        let shape = self.shape;
        let layer = |of, layer| regions::layer(shape, of, layer);
        let [alpha, beta, _] = regions::masks();
        let others = 1..shape.layers;
        let mut opened: Vec<Vec<[Span; 2]>> = others
            .map(|k| vec![layer(Of::B, 0), layer(Of::B, k)])
            .collect();
        if shape.stock == Stock::Made {
            return opened;
        }
        let all = (0..shape.layers).map(|k| layer(Of::A, k));
        opened.push([alpha].into_iter().chain(all).collect());
        opened.push(vec![beta, layer(Of::B, 0)]);
        opened
    }

    /// The opening of d, ε and δ, with its checks, and σ.
    fn open(&self, rounds: &mut Rounds) {
        let (shape, me) = (self.shape, self.me);
        let coin = regions::coin;
        let (garbler, evaluator) = (Role::Garbler, Role::Evaluator);
        let count = shape.openings();
        let bits = |by| regions::opened_bits(shape, by);
        rounds.next();
        if !me.garbles() {
            self.combined().into_iter().for_each(|c| rounds.local(c));
        }
        if !shape.is_stocked() {
            rounds.from(evaluator, |_| coin(Said::OtherCoin), 0);
            rounds.from(evaluator, |_| coin(Said::OtherNonce), 1);
        }
        rounds.from(evaluator, bits, 2);
        if me.garbles() {
            if !shape.is_stocked() {
                let from = vec![coin(Said::OtherNonce), coin(Said::OtherCoin)];
                rounds.finish(self.hash(label::COIN, from, regions::digest()));
                let compared = [coin(Said::OtherCommitment), regions::digest()];
                rounds.compare(compared, what::COMMITMENT);
            }
            self.combined().into_iter().for_each(|c| rounds.finish(c));
        }
        rounds.next();
        rounds.from(garbler, bits, 0);
        if me.garbles() {
            rounds.challenge(Use::Opening, self.first() + 1, 1);
        } else {
            rounds.challenged(Use::Opening, 1);
        }
        for told in [evaluator, garbler] {
            rounds.next();
            if me.role() == told {
                for (k, arrays) in (0..).zip(self.opened()) {
                    let macs: Vec<Span> = arrays.iter().map(|[mac, _]| *mac).collect();
                    let challenge = regions::challenge(By::Them, Use::Opening);
                    let to = regions::folds(By::Me, k, 1);
                    rounds.local(fold(challenge, None, &macs, to));
                }
                rounds.send(regions::folds(By::Me, 0, count), 0);
                if told == evaluator {
                    rounds.challenge(Use::Opening, self.first() + 1, 1);
                }
            } else {
                rounds.receive(regions::folds(By::Them, 0, count), 0);
                if told == evaluator {
                    rounds.challenged(Use::Opening, 1);
                }
                for (k, arrays) in (0..).zip(self.opened()) {
                    let keys: Vec<Span> = arrays.iter().map(|[_, key]| *key).collect();
                    let challenge = regions::challenge(By::Me, Use::Opening);
                    let of = Some(items(bits(By::Them), k, 1));
                    let to = regions::own_folds(k, 1);
                    rounds.finish(fold(challenge, of, &keys, to));
                }
                let compared = [
                    regions::folds(By::Them, 0, count),
                    regions::own_folds(0, count),
                ];
                rounds.compare(compared, what::BITS);
            }
        }
        self.spend(rounds);
    }

    /// Layers become one, and products those of the gates.
    fn spend(&self, rounds: &mut Rounds) {
        let (shape, role) = (self.shape, self.me.role());
        let bits = |by, k| items(regions::opened_bits(shape, by), k, 1);
        let both = |k| [bits(By::Me, k), bits(By::Them, k)];
        let layer = |of, k| regions::layer(shape, of, k);
        for k in 1..shape.layers {
            let from = [both(k - 1), layer(Of::A, k), layer(Of::C, k)].concat();
            let to = [layer(Of::A, 0), layer(Of::C, 0)].concat();
            rounds.finish(ag(Ag::Absorb, from, to));
        }
        if shape.stock == Stock::Made {
            return;
        }
        let (epsilon, delta) = (both(shape.layers - 1), both(shape.layers));
        let products = [Of::A, Of::B, Of::C].map(|of| layer(of, 0));
        let from = [epsilon, delta]
            .into_iter()
            .chain(products)
            .chain([regions::fresh(shape)]);
        let [_, _, to] = regions::masks();
        let step = Ag::Spend {
            offset: OFFSET,
            role,
        };
        rounds.finish(ag(step, from.flatten().collect(), to.to_vec()));
    }

    /// Tables go to the evaluator, and Λ of results back.
    fn garble(&self, rounds: &mut Rounds) {
        let tables = regions::tables(0, self.products());
        rounds.next();
        if self.me.garbles() {
            rounds.last().local.extend(self.gates());
        }
        rounds.from(Role::Garbler, |_| tables, 0);
        rounds.from(Role::Garbler, |_| regions::z(), 1);
        if !self.me.garbles() {
            rounds.last().finish.extend(self.gates());
        }
        rounds.next();
        let [_, _, gamma] = regions::lambda();
        rounds.from(Role::Evaluator, |_| gamma, 0);
        if self.me.garbles() {
            rounds.challenged(Use::Gates, 1);
        } else {
            rounds.challenge(Use::Gates, self.first() + 2, 1);
        }
        self.public(rounds);
    }

    /// The garbler checks labels, then the evaluator masks.
    fn check(&self, rounds: &mut Rounds) {
        let [alpha, beta, gamma] = regions::lambda();
        let masks = regions::masks();
        let (own, told) = (regions::own_folds(0, 1), |by| regions::folds(by, 0, 1));
        let asked = regions::challenge(By::Them, Use::Gates);
        let chosen = regions::challenge(By::Me, Use::Gates);
        rounds.next();
        if self.me.garbles() {
            rounds.challenge(Use::Gates, self.first() + 2, 0);
        } else {
            rounds.challenged(Use::Gates, 0);
        }
        rounds.next();
        if !self.me.garbles() {
            rounds.local(fold(asked, None, &[regions::results()], told(By::Me)));
        }
        rounds.from(Role::Evaluator, told, 0);
        if self.me.garbles() {
            rounds.finish(fold(chosen, Some(gamma), &[regions::results()], own));
            rounds.compare([told(By::Them), own], what::LABELS);
        }
        rounds.next();
        let products = self.products();
        let sum = regions::work(0);
        let macs = masks.map(|[mac, _]| mac);
        if self.me.garbles() {
            let step = Ag::Gates {
                offset: None,
                products,
            };
            let from = [&[alpha, beta], &macs[..]].concat();
            rounds.local(ag(step, from, vec![sum]));
            rounds.local(fold(asked, None, &[sum], told(By::Me)));
        }
        rounds.from(Role::Garbler, told, 0);
        if !self.me.garbles() {
            let step = Ag::Gates {
                offset: Some(OFFSET),
                products,
            };
            let keys = masks.map(|[_, key]| key);
            let from = [&[alpha, beta, gamma], &macs[..], &keys[..]].concat();
            rounds.finish(ag(step, from, vec![sum]));
            rounds.finish(fold(chosen, None, &[sum], own));
            rounds.compare([told(By::Them), own], what::GATES);
        }
    }
}
