//! The set-up of oblivious transfers, as steps of the handshake: two messages that cross, and one more. Where both ends have cached transfers
//! from the run before ([`OtCache`]), one message in the place of the first two. Where there are transfers of both directions, a message of the
//! sender comes last, and there is no cache: its transfers are those that this run turns for itself.
//!
//! With its proof of the keys, each end states its cached transfers: that it keeps none, none yet, or a claim that only the end with the same
//! transfers can make and check. If the claims do not match, both ends wipe what they had and run the base OT on curves. A peer that claims
//! transfers which it lacks cannot go on: its messages fail their checks, like any Byzantine party's in the set-up.

use std::sync::Arc;

use subtle::ConstantTimeEq;
use veil_device::KeyId;
use veil_protocol::ot::cache::{CLAIM, claim};
use veil_protocol::ot::{self, ReceiverSetUp, SenderSetUp, SenderTrees, reversal};
use veil_protocol::{Back, Cost, Plan, Protocol, Transfers};
use veil_session::{Label, Peer, Secret, SessionId};
use zeroize::{Zeroize, Zeroizing};

use super::exchange::{Exchange, exchange};
use super::{Binding, Random};
use crate::abort::Abort;
use crate::ot_cache::{Chain, End, OtCache, PendingEntry, State as Held, With};
use crate::status::TransfersFrom;

/// Places of its steps, also where there are none.
pub(super) fn places(protocol: &dyn Protocol) -> u32 {
    let back = protocol.transfers().and_then(|transfers| transfers.back);
    2 + u32::from(back.is_some())
}

/// Bytes that an end says of what it has kept: one of those below, and its claim or zeros.
pub(super) const WORD: usize = 1 + CLAIM;

/// This end keeps nothing.
const NEVER: u8 = 0;
/// It keeps transfers, and has none now.
const NONE: u8 = 1;
/// It has some, and claims them.
const SOME: u8 = 2;

/// What this participant has to do with transfers.
pub(super) struct SetUp {
    transfers: Transfers,
    /// Number of the first step within the handshake.
    place: u32,
    /// What it will draw: the session is not known yet.
    random: Zeroizing<Vec<u8>>,
    /// What it has drawn for transfers of the other direction: the sender roots of trees, the receiver the bits that its offset is made of.
    back: Vec<Secret>,
    state: State,
    keeps: Option<Keeps>,
    from: TransfersFrom,
}

/// An end that keeps transfers.
struct Keeps {
    store: Arc<OtCache>,
    with: Option<With>,
    /// What it has, taken out; while claims do not match, nothing.
    held: Option<Box<Held>>,
    /// The other end keeps some, too.
    both: bool,
    chain: Chain,
    /// Of the transfers that this run leaves, if both ends keep some.
    next: Option<Box<Leaves>>,
}

/// What transfers are left with. In a box: it moves, and nothing of it is left behind.
struct Leaves {
    /// The key of their claims.
    key: Secret,
    /// The receiver's choices; of the sender nothing.
    choices: Secret,
}

enum State {
    Begins,
    Receiver(ReceiverSetUp),
    Sender(SenderSetUp),
    /// The sender has turned what it kept.
    Turned(SenderTrees),
    Trees(SenderTrees),
    /// The receiver has all leaves; its trees are on their way, and what it begins the other direction with.
    Answered(SenderTrees, Vec<ot::Leaf>),
    /// It waits for trees.
    Back(SenderTrees, Vec<ot::Leaf>),
    /// This end has its keys; its last message is on its way.
    Sent(Box<Made>),
    Over,
}

/// The keys of one direction at an end: its offset if it is the sender there, and leaves.
type Half = (Option<Secret>, Vec<ot::Leaf>);

/// What follows a step.
pub(super) enum Next {
    /// Another one.
    Goes(Exchange),
    /// The keys are there.
    Over(Box<Made>),
}

/// What the set-up ends with.
pub(crate) struct Made {
    pub(super) keys: Vec<(KeyId, Secret)>,
    pub(crate) from: TransfersFrom,
    /// What is kept if the run ends well.
    pub(crate) pending: Option<PendingEntry>,
}

impl SetUp {
    /// Of a participant, which keeps transfers if it has where and they are of one direction; nothing if it takes part in none.
    pub(super) fn new(
        protocol: &dyn Protocol,
        place: u32,
        random: Random<'_>,
        store: Option<&Arc<OtCache>>,
    ) -> Result<Option<Self>, Abort> {
        let Some(transfers) = protocol.transfers() else {
            return Ok(None);
        };
        let store = store.filter(|_| transfers.back.is_none());
        let more = store.is_some() || transfers.back.is_some();
        let bytes = if protocol.me() == transfers.sender {
            let trees = transfers.back.map_or(0, |_| transfers.trees.count());
            SenderSetUp::RANDOM + 16 * trees as usize
        } else {
            // And choices: of the transfers that it leaves, or an offset of its own.
            ReceiverSetUp::random(transfers.trees) + if more { 16 } else { 0 }
        };
        let mut drawn = Zeroizing::new(vec![0; bytes]);
        random(&mut drawn)?;
        let keeps = store.map(|store| Keeps {
            store: Arc::clone(store),
            with: None,
            held: None,
            both: false,
            chain: Chain::begin(),
            next: None,
        });
        Ok(Some(SetUp {
            transfers,
            place,
            random: drawn,
            back: Vec::new(),
            state: State::Begins,
            keeps,
            from: TransfersFrom::Curves,
        }))
    }

    /// What this end says to the other one of what it has kept. It is taken out.
    pub(super) fn word(
        &mut self,
        protocol: &dyn Protocol,
        binding: &Binding,
        session: SessionId,
    ) -> [u8; WORD] {
        let mut word = [NEVER; WORD];
        let (ends, other) = (self.ends(session), self.other(protocol));
        if let Some(keeps) = &mut self.keeps {
            let identity = |peer: Peer| {
                let party = peer.party()?;
                binding.identities.get(party.index()).copied()
            };
            let with = With {
                identities: [protocol.me(), other].map(|peer| identity(peer).unwrap_or_default()),
                protocol: protocol.name(),
                sends: protocol.me() == self.transfers.sender,
                trees: self.transfers.trees,
            };
            word[0] = NONE;
            keeps.held = keeps.store.take(&with);
            keeps.with = Some(with);
            if let Some(held) = &keeps.held {
                word[0] = SOME;
                word[1..].copy_from_slice(&claim(&ends, protocol.me(), &held.key));
            }
        }
        word
    }

    /// What the other end says; an error if no honest end says that.
    pub(super) fn hear(
        &mut self,
        protocol: &dyn Protocol,
        session: SessionId,
        word: &[u8],
    ) -> Result<(), Abort> {
        let (ends, other) = (self.ends(session), self.other(protocol));
        let (&what, theirs) = word.split_first().expect("a word has 33 bytes");
        let most = self.transfers.back.map_or(SOME, |_| NEVER);
        if what > most || what < SOME && theirs.iter().any(|b| *b != 0) {
            return Err(Abort::SetUp {
                peer: other,
                what: "says of kept transfers what no party says",
            });
        }
        if let Some(keeps) = &mut self.keeps {
            keeps.both = what != NEVER;
            let held = keeps.held.take().filter(|held| {
                what == SOME && bool::from(claim(&ends, other, &held.key).ct_eq(theirs))
            });
            if let Some(held) = &held {
                keeps.chain = held.chain.longer();
                self.from = TransfersFrom::Cache;
            }
            keeps.held = held;
        }
        Ok(())
    }

    /// The first messages of both ends.
    pub(super) fn begin(
        &mut self,
        plan: &Plan,
        protocol: &dyn Protocol,
        session: SessionId,
        schedules: &super::Schedules,
    ) -> Exchange {
        let Transfers { trees, pins, .. } = self.transfers;
        let (ends, other) = (self.ends(session), self.other(protocol));
        let mut at = 0;
        let drawn = &self.random;
        let mut call = |bytes: &mut [u8]| {
            bytes.copy_from_slice(&drawn[at..at + bytes.len()]);
            at += bytes.len();
            Ok::<_, std::convert::Infallible>(())
        };
        let held = self.keeps.as_mut().and_then(|keeps| keeps.held.take());
        let sends = protocol.me() == self.transfers.sender;
        let (state, message, expects) = match held.map(|held| held.end) {
            Some(End::Sender(cache)) => {
                let Ok((trees, message)) = SenderSetUp::again(&ends, trees, pins, cache, &mut call);
                (State::Turned(trees), Some(message), None)
            }
            Some(End::Receiver(cache)) => {
                let Ok(set_up) = ReceiverSetUp::again(&ends, trees, cache, &mut call);
                (State::Receiver(set_up), None, Some(reversal::MESSAGE))
            }
            None if sends => {
                let Ok((set_up, message)) = SenderSetUp::start(&ends, trees, pins, &mut call);
                let expects = SenderSetUp::EXPECTS;
                (State::Sender(set_up), Some(message), Some(expects))
            }
            None => {
                let Ok((set_up, message)) = ReceiverSetUp::start(&ends, trees, &mut call);
                let expects = ReceiverSetUp::EXPECTS;
                (State::Receiver(set_up), Some(message), Some(expects))
            }
        };
        if let Some(keeps) = self.keeps.as_mut().filter(|keeps| keeps.both) {
            let key = schedules[&other].derive(Label {
                protocol: protocol.name(),
                purpose: "kept transfers",
                epoch: 0,
                run: 0,
            });
            let mut choices = Zeroizing::new([0; 16]);
            if !sends {
                let Ok(()) = call(&mut choices[..]);
            }
            let choices = Secret::new(*choices);
            keeps.next = Some(Box::new(Leaves { key, choices }));
        }
        if self.transfers.back.is_some() {
            let count = if sends { trees.count() } else { 1 };
            let Ok(secrets) = ot::secrets(count as usize, &mut call);
            self.back = secrets;
        }
        self.random.zeroize();
        self.state = state;
        let to = |peer| message.clone().filter(|_| peer == other);
        let from = |peer| expects.filter(|_| peer == other);
        exchange(plan, protocol, self.place, to, from)
    }

    /// Takes what came, and says what follows.
    pub(super) fn step(
        &mut self,
        plan: &Plan,
        protocol: &dyn Protocol,
        session: SessionId,
        came: &Exchange,
    ) -> Result<Next, Abort> {
        let other = self.other(protocol);
        let message = came.recvs.first().map_or(&[][..], |recv| &recv.2);
        let cheated = |cheat: ot::Cheat| Abort::SetUp {
            peer: other,
            what: cheat.what(),
        };
        let place = self.place + 1;
        let next = self.keeps.as_mut().and_then(|keeps| keeps.next.take());
        let sender = match std::mem::replace(&mut self.state, State::Over) {
            State::Receiver(receiver) if let Some(Back { pins, .. }) = self.transfers.back => {
                let [drawn] = &self.back[..] else {
                    unreachable!("a receiver that begins has drawn one secret");
                };
                let made = receiver.finish_and_turn(message, drawn, pins);
                let (message, all, trees) = made.map_err(cheated)?;
                self.back.clear();
                let to = |peer| (peer == other).then(|| message.clone());
                let exchange = exchange(plan, protocol, place, to, |_| None);
                self.state = State::Answered(trees, all);
                return Ok(Next::Goes(exchange));
            }
            State::Receiver(receiver) => {
                let (message, leaves, end) = if let Some(next) = &next {
                    let made = receiver.finish_and_keep(message, &next.choices);
                    let (message, leaves, cache) = made.map_err(cheated)?;
                    (message, leaves, Some(End::Receiver(cache)))
                } else {
                    let (message, leaves) = receiver.finish(message).map_err(cheated)?;
                    (message, leaves, None)
                };
                let to = |peer| (peer == other).then(|| message.clone());
                let exchange = exchange(plan, protocol, place, to, |_| None);
                let halves = [(None, leaves), Half::default()];
                self.state = State::Sent(self.made(session, halves, next, end));
                return Ok(Next::Goes(exchange));
            }
            State::Answered(trees, all) => {
                let from = |peer| (peer == other).then_some(trees.expects());
                let exchange = exchange(plan, protocol, place + 1, |_| None, from);
                self.state = State::Back(trees, all);
                return Ok(Next::Goes(exchange));
            }
            State::Back(trees, all) => {
                let (offset, some) = trees.finish(message).map_err(cheated)?;
                let halves = [(None, all), (Some(offset), some)];
                return Ok(Next::Over(self.made(session, halves, None, None)));
            }
            State::Sender(sender) => sender.base(message).map_err(cheated)?,
            State::Turned(trees) => trees,
            State::Trees(trees) if self.transfers.back.is_some() => {
                let made = trees.finish_and_grow(message, &self.back);
                let ((offset, some), (message, all)) = made.map_err(cheated)?;
                self.back.clear();
                let to = |peer| (peer == other).then(|| message.clone());
                let exchange = exchange(plan, protocol, place + 1, to, |_| None);
                let halves = [(Some(offset), some), (None, all)];
                self.state = State::Sent(self.made(session, halves, None, None));
                return Ok(Next::Goes(exchange));
            }
            State::Trees(trees) => {
                let (offset, leaves, end) = if next.is_some() {
                    let made = trees.finish_and_keep(message).map_err(cheated)?;
                    (made.0, made.1, Some(End::Sender(made.2)))
                } else {
                    let (offset, leaves) = trees.finish(message).map_err(cheated)?;
                    (offset, leaves, None)
                };
                let halves = [(Some(offset), leaves), Half::default()];
                return Ok(Next::Over(self.made(session, halves, next, end)));
            }
            State::Sent(made) => return Ok(Next::Over(made)),
            State::Begins | State::Over => {
                unreachable!("a set-up is stepped from its beginning to its end")
            }
        };
        let turns = next.is_some() || self.transfers.back.is_some();
        if let Some(keeps) = &mut self.keeps {
            keeps.next = next;
        }
        let more = if turns { reversal::MESSAGE } else { 0 };
        let from = |peer| (peer == other).then_some(sender.expects() + more);
        let exchange = exchange(plan, protocol, place, |_| None, from);
        self.state = State::Trees(sender);
        Ok(Next::Goes(exchange))
    }

    /// The other end.
    pub(super) fn other(&self, protocol: &dyn Protocol) -> Peer {
        if protocol.me() == self.transfers.sender {
            self.transfers.receiver
        } else {
            self.transfers.sender
        }
    }

    fn ends(&self, session: SessionId) -> ot::Ends {
        ot::Ends {
            session,
            sender: self.transfers.sender,
            receiver: self.transfers.receiver,
        }
    }

    /// What it ends with, of both directions.
    fn made(
        &mut self,
        session: SessionId,
        [first, second]: [Half; 2],
        next: Option<Box<Leaves>>,
        end: Option<End>,
    ) -> Box<Made> {
        let Transfers {
            offset,
            leaves,
            back,
            ..
        } = self.transfers;
        let back = back.map_or((offset, leaves), |back| (back.offset, back.leaves));
        let keys = numbered((offset, leaves), first).chain(numbered(back, second));
        let pending = self.keeps.take().and_then(|keeps| {
            let state = Box::new(Held {
                end: end?,
                key: next?.key,
                chain: keeps.chain,
                left_by: session,
            });
            Some(PendingEntry::new(keeps.store, keeps.with?, state))
        });
        Box::new(Made {
            keys: keys.collect(),
            from: self.from,
            pending,
        })
    }
}

/// The keys of a direction by their numbers: that of the offset, and that of the first leaf.
fn numbered(
    (number, first): (KeyId, KeyId),
    (offset, leaves): Half,
) -> impl Iterator<Item = (KeyId, Secret)> {
    let leaf = move |(index, key)| (KeyId(first.0 + index), key);
    let offset = offset.map(|offset| (number, offset));
    offset.into_iter().chain(leaves.into_iter().map(leaf))
}

/// What the set-up costs a participant that keeps nothing, with what it says of that.
pub(super) fn cost(protocol: &dyn Protocol) -> Cost {
    let Some(transfers) = protocol.transfers() else {
        return Cost::default();
    };
    let trees = ot::trees::message_length(transfers.trees);
    let sent = match (protocol.me() == transfers.sender, transfers.back) {
        (true, None) => vec![ReceiverSetUp::EXPECTS],
        (true, Some(_)) => vec![ReceiverSetUp::EXPECTS, trees],
        (false, None) => vec![SenderSetUp::EXPECTS, trees],
        (false, Some(_)) => vec![SenderSetUp::EXPECTS, trees + reversal::MESSAGE],
    };
    Cost {
        rounds: places(protocol).into(),
        messages: sent.len() as u64,
        bytes: sent.iter().map(|bytes| *bytes as u64).sum::<u64>() + WORD as u64,
    }
}

/// Bytes of the longest message of either end.
pub(super) fn longest(transfers: Transfers) -> u64 {
    let first = ReceiverSetUp::EXPECTS.max(SenderSetUp::EXPECTS);
    first.max(ot::trees::message_length(transfers.trees) + reversal::MESSAGE) as u64
}
