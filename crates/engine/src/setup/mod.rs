//! The handshake of a session, over the links of lane 0: nonces and X25519 shares, the session id and its echo, owners' seeds.
//!
//! sid = SHA-256("veilworks session 1" ‖ plan hash ‖ for each party: identity ‖ nonce). Every participant computes it from what the parties
//! told it, and compares with every party; a pair's keys are HKDF under it of the transport's exporter and an X25519 secret, and both
//! ends prove that they hold the same before anything else is sent (so a wrong exporter, or a man in the middle of one, is found).

mod exchange;
mod pairs;
mod stock;
#[cfg(test)]
mod tests;
pub(crate) mod transfers;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};
use veil_device::KeyId;
use veil_job::{STOCK_WORD, Source, StockSource};
use veil_link::Link;
use veil_protocol::ot::Pins;
use veil_protocol::{Cost, Plan, Protocol, Seed, seed_digest};
use veil_session::{KeySchedule, Label, Peer, PlanHash, Secret, SessionId};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::abort::{Abort, Wait};
use crate::order::{self, Differences, Orders};
use crate::ot_cache::OtCache;
use exchange::exchange;

pub(crate) use exchange::Exchange;

/// Places of messages beside those of the plan, after them: hello, proof, seeds, three for the order of blocks, the last word, and two for
/// oblivious transfers, or three if they are of both directions, or three for stock in their place.
pub(crate) fn places(protocol: &dyn Protocol) -> u32 {
    let of_stock = stock::used(protocol).map(|_| stock::PLACES);
    TRANSFERS + of_stock.unwrap_or_else(|| transfers::places(protocol))
}
/// The first of the three.
const ORDER: u32 = 3;
/// The last word of a run.
pub(crate) const LAST_WORD: u32 = 6;
/// The first of those for transfers.
const TRANSFERS: u32 = 7;

const HELLO: usize = 96;
const PROOF: usize = 64;

/// The transport's knowledge of the ends of its connections. Empty in memory.
#[derive(Clone, Default)]
pub struct Binding {
    /// Identities (key fingerprints) of the parties, by index. Nothing in memory.
    pub identities: Vec<[u8; 32]>,
    /// A secret that only the two ends of a connection know, such as a TLS exporter.
    pub exporters: BTreeMap<Peer, Vec<u8>>,
}

/// What a handshake ends with.
pub(crate) struct Keys {
    pub(crate) session: SessionId,
    pub(crate) secrets: Vec<(KeyId, Secret)>,
    /// Digests of the seeds that this party holds, and where they go.
    pub(crate) seed_digests: Vec<(veil_device::Span, [u8; 32])>,
    /// What the set-up of transfers has left beside keys, if there was one.
    pub(crate) transfers: Option<Box<transfers::Made>>,
}

enum Stage {
    Hello,
    Proof,
    Seeds,
    /// Oblivious transfers are set up.
    Transfers(Box<transfers::SetUp>),
    /// Marks of stock are compared.
    Stock(Box<stock::Stocking>),
    /// Digests of the order of blocks are on their way.
    Order,
    /// Answers to them.
    Answers,
    /// Holders have heard of a difference: nothing follows.
    Heard,
}

/// The handshake as a machine that is stepped until it has keys.
pub(crate) struct Handshake {
    stage: Stage,
    exchange: Exchange,
    nonce: [u8; 32],
    share: StaticSecret,
    schedules: Schedules,
    session: SessionId,
    /// Keys that this participant chooses for others.
    seeds: Vec<(Seed, Secret)>,
    /// The offset that it has drawn itself, if it has.
    offset: Option<(KeyId, Secret)>,
    /// What this participant has to do with oblivious transfers, until it begins.
    transfers: Option<transfers::SetUp>,
    /// The stock of this party, until it begins.
    stock: Option<Arc<dyn StockSource>>,
    /// Made when all seeds are here; given away when the order of blocks is compared, too.
    keys: Option<Keys>,
    /// Blocks whose order differs, as this participant knows them.
    differences: Differences,
    /// What participants agree on.
    agreed: PlanHash,
}

/// The key schedule of each peer.
type Schedules = BTreeMap<Peer, KeySchedule>;

/// Where nonces, key shares and seeds come from.
pub(crate) type Random<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), Abort>;

/// The operating system's random numbers: what every run takes that is not a rehearsal.
pub(crate) fn system(bytes: &mut [u8]) -> Result<(), Abort> {
    getrandom::fill(bytes)
        .map_err(|e| Abort::Missing(format!("the operating system gives no randomness: {e}")))
}

impl Handshake {
    pub(crate) fn new(
        (plan, agreed): (&Plan, PlanHash),
        protocol: &dyn Protocol,
        random: Random<'_>,
        (cache, stock): (Option<&Arc<OtCache>>, Option<&Arc<dyn StockSource>>),
    ) -> Result<Self, Abort> {
        let transfers = transfers::SetUp::new(protocol, TRANSFERS, random, cache)?;
        let mut random = || {
            let mut bytes = Zeroizing::new([0; 32]);
            random(&mut bytes[..])?;
            Ok::<_, Abort>(bytes)
        };
        let (nonce, share_bytes) = (*random()?, random()?);
        let share = StaticSecret::from(*share_bytes);
        let mut hello = Vec::with_capacity(HELLO);
        hello.extend_from_slice(&nonce);
        hello.extend_from_slice(PublicKey::from(&share).as_bytes());
        hello.extend_from_slice(&agreed.0);
        let exchange = exchange(plan, protocol, 0, |_| Some(hello.clone()), |_| Some(HELLO));
        let mut seeds = Vec::new();
        for seed in protocol.dealt(protocol.me()) {
            let mut bytes = Zeroizing::new([0; 16]);
            bytes.copy_from_slice(&random()?[..16]);
            seeds.push((seed, Secret::new(*bytes)));
        }
        let offset = match protocol.own_offset() {
            Some(number) => {
                let mut bytes = Zeroizing::new([0; 16]);
                bytes.copy_from_slice(&random()?[..16]);
                Some((number, Pins::default().offset(&Secret::new(*bytes))))
            }
            None => None,
        };
        let (schedules, session) = (BTreeMap::new(), SessionId([0; 32]));
        Ok(Handshake {
            stage: Stage::Hello,
            exchange,
            nonce,
            share,
            schedules,
            session,
            seeds,
            offset,
            transfers,
            stock: stock.cloned(),
            keys: None,
            differences: Differences::default(),
            agreed,
        })
    }

    /// Goes on as far as it can; the keys when all is done. A difference in the order of rows becomes the content of `misaligned` before
    /// any participant is told of it: it is the reason for whatever ends the run then.
    pub(crate) fn step(
        &mut self,
        plan: &Plan,
        protocol: &dyn Protocol,
        binding: &Binding,
        source: Option<&dyn Source>,
        misaligned: &OnceLock<Abort>,
        link: &mut dyn Link,
    ) -> Result<Option<Keys>, Abort> {
        while self.exchange.step(link)? {
            let orders = Orders {
                plan,
                me: protocol.me(),
                session: self.session,
                place: protocol.places() + ORDER,
                source,
            };
            match &mut self.stage {
                Stage::Hello => self.hello(plan, protocol, binding)?,
                Stage::Proof => self.proof(plan, protocol, link)?,
                Stage::Seeds => {
                    self.keys = Some(self.finish(protocol));
                    if let Some((stock, source)) = stock::used(protocol).zip(self.stock.take()) {
                        let begun =
                            stock::Stocking::begin((plan, protocol), stock, source, TRANSFERS)?;
                        self.exchange = begun.1;
                        self.stage = Stage::Stock(Box::new(begun.0));
                        continue;
                    }
                    match self.transfers.take() {
                        Some(mut transfers) => {
                            self.exchange =
                                transfers.begin(plan, protocol, self.session, &self.schedules);
                            self.stage = Stage::Transfers(Box::new(transfers));
                        }
                        None if plan.orders.is_empty() => return Ok(self.keys.take()),
                        None => {
                            self.exchange = orders.digests();
                            self.stage = Stage::Order;
                        }
                    }
                }
                Stage::Transfers(transfers) => {
                    match transfers.step(plan, protocol, self.session, &self.exchange)? {
                        transfers::Next::Goes(exchange) => self.exchange = exchange,
                        transfers::Next::Over(mut made) => {
                            let keys = self.keys.as_mut().expect("made before transfers");
                            keys.secrets.append(&mut made.keys);
                            keys.transfers = Some(made);
                            if plan.orders.is_empty() {
                                return Ok(self.keys.take());
                            }
                            self.exchange = orders.digests();
                            self.stage = Stage::Order;
                        }
                    }
                }
                Stage::Stock(stock) => {
                    match stock.step((plan, protocol), self.session, &self.exchange)? {
                        stock::Next::Goes(exchange) => self.exchange = exchange,
                        stock::Next::Over(offset) => {
                            let of = stock::used(protocol).expect("it uses stock");
                            let keys = self.keys.as_mut().expect("made before stock");
                            keys.secrets
                                .extend(of.offset.map(|number| (number, offset)));
                            if plan.orders.is_empty() {
                                return Ok(self.keys.take());
                            }
                            self.exchange = orders.digests();
                            self.stage = Stage::Order;
                        }
                    }
                }
                Stage::Order => {
                    (self.exchange, self.differences) = orders.answers(&self.exchange);
                    self.differences.note(misaligned);
                    self.stage = Stage::Answers;
                }
                Stage::Answers => {
                    self.exchange = orders.heard(&self.exchange, &mut self.differences)?;
                    self.differences.note(misaligned);
                    if self.differences.first.is_none() {
                        return Ok(self.keys.take());
                    }
                    self.stage = Stage::Heard;
                }
                Stage::Heard => {
                    return match &self.differences.first {
                        // All holders know it.
                        Some(first) if !self.differences.judged.is_empty() => Err(first.clone()),
                        // The judges end the run.
                        _ => Ok(None),
                    };
                }
            }
        }
        Ok(None)
    }

    /// Whether every peer has sent its first message: a peer that has is done with its own meeting.
    pub(crate) const fn is_met(&self) -> bool {
        !matches!(self.stage, Stage::Hello)
    }

    pub(crate) fn waits(&self) -> Vec<Wait> {
        self.exchange.waits()
    }

    fn finish(&mut self, protocol: &dyn Protocol) -> Keys {
        let mut keys: Vec<(KeyId, Secret)> = self.offset.take().into_iter().collect();
        let mut seed_digests = Vec::new();
        for (peer, schedule) in &self.schedules {
            for (purpose, id) in protocol.keys(*peer) {
                let label = Label {
                    protocol: protocol.name(),
                    purpose,
                    epoch: 0,
                    run: 0,
                };
                keys.push((id, schedule.derive(label)));
            }
        }
        for (seed, key) in self.seeds.drain(..) {
            keys.push((seed.key, key));
        }
        for (peer, _, bytes, _) in &self.exchange.recvs {
            let seeds = protocol.dealt(*peer).into_iter();
            for (seed, bytes) in seeds.zip(bytes.chunks_exact(16)) {
                let secret = Secret::new(bytes.try_into().expect("16 bytes"));
                if let Some(span) = seed.digest {
                    let digest = seed_digest(&self.session, *peer, seed.index, &secret);
                    seed_digests.push((span, digest));
                }
                keys.push((seed.key, secret));
            }
        }
        Keys {
            session: self.session,
            secrets: keys,
            seed_digests,
            transfers: None,
        }
    }
}

/// Bytes of the longest message of oblivious transfers that a handshake sets up, or of stock.
pub(crate) fn longest(protocol: &dyn Protocol) -> u64 {
    let of_stock = stock::used(protocol).map_or(0, |_| STOCK_WORD as u64);
    protocol.transfers().map_or(of_stock, transfers::longest)
}

/// The cost of the handshake for a participant: a hello and a proof to each peer, seeds from an owner, and the comparison of orders.
pub fn handshake_cost(plan: &Plan, protocol: &dyn Protocol) -> Cost {
    let peers = protocol.peers().len() as u64;
    let mut cost = Cost {
        // Hellos, proofs, seeds.
        rounds: 3,
        messages: 2 * peers,
        bytes: peers * (HELLO + PROOF) as u64,
    };
    let seeds = protocol.dealt(protocol.me());
    for peer in protocol.peers() {
        let theirs = seeds.iter().filter(|seed| seed.holders.contains(&peer));
        let bytes = 16 * theirs.count() as u64;
        cost.messages += u64::from(bytes > 0);
        cost.bytes += bytes;
    }
    cost + transfers::cost(protocol) + stock::cost(protocol) + order::cost(plan, protocol.me())
}

/// SHA-256 of the list of accepted inputs: what parties compare before they use any (attack case A7).
pub(crate) fn list_digest(
    (plan, agreed): (&Plan, PlanHash),
    session: SessionId,
    accepted: impl Iterator<Item = u16>,
) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"veilworks accepted inputs");
    hash.update(session.0);
    hash.update(agreed.0);
    for owner in accepted {
        hash.update(owner.to_le_bytes());
        let rows: u64 = plan
            .job
            .blocks
            .iter()
            .filter(|b| b.holders.contains(&veil_job::Holder::Owner(owner)))
            .map(|b| b.rows)
            .sum();
        hash.update(rows.to_le_bytes());
    }
    hash.finalize().into()
}
