//! The set-up of oblivious transfers, as steps of the handshake: two messages that cross, and one more.

use veil_device::KeyId;
use veil_protocol::ot::{self, ReceiverSetUp, SenderSetUp, SenderTrees};
use veil_protocol::{Cost, Plan, Protocol, Transfers};
use veil_session::{Peer, Secret, SessionId};
use zeroize::{Zeroize, Zeroizing};

use super::{Exchange, Random, exchange};
use crate::abort::Abort;

/// Places of its steps.
pub(super) const PLACES: u32 = 2;

/// What this participant has to do with transfers.
pub(super) struct SetUp {
    transfers: Transfers,
    /// Place of the first step, among those of the handshake.
    place: u32,
    /// What it will draw: the session is not known yet.
    random: Zeroizing<Vec<u8>>,
    state: State,
}

enum State {
    Begins,
    Receiver(ReceiverSetUp),
    Sender(SenderSetUp),
    Trees(SenderTrees),
    /// The receiver has its keys; its last message is on its way.
    Sent(Vec<(KeyId, Secret)>),
    Over,
}

/// What follows a step.
pub(super) enum Next {
    /// Another one.
    Goes(Exchange),
    /// The keys are there.
    Over(Vec<(KeyId, Secret)>),
}

impl SetUp {
    /// Of a participant; nothing if it takes part in no transfers.
    pub(super) fn new(
        protocol: &dyn Protocol,
        place: u32,
        random: Random<'_>,
    ) -> Result<Option<Self>, Abort> {
        let Some(transfers) = protocol.transfers() else {
            return Ok(None);
        };
        let bytes = if protocol.me() == transfers.sender {
            SenderSetUp::RANDOM
        } else {
            ReceiverSetUp::random(transfers.trees)
        };
        let mut drawn = Zeroizing::new(vec![0; bytes]);
        random(&mut drawn)?;
        Ok(Some(SetUp {
            transfers,
            place,
            random: drawn,
            state: State::Begins,
        }))
    }

    /// The first messages of both ends.
    pub(super) fn begin(
        &mut self,
        plan: &Plan,
        protocol: &dyn Protocol,
        session: SessionId,
    ) -> Exchange {
        let Transfers {
            sender,
            receiver,
            trees,
            ..
        } = self.transfers;
        let ends = ot::Ends {
            session,
            sender,
            receiver,
        };
        let mut at = 0;
        let drawn = &self.random;
        let mut draw = |bytes: &mut [u8]| {
            bytes.copy_from_slice(&drawn[at..at + bytes.len()]);
            at += bytes.len();
            Ok::<_, std::convert::Infallible>(())
        };
        let (state, message, expects) = if protocol.me() == sender {
            let Ok((set_up, message)) = SenderSetUp::start(&ends, trees, &mut draw);
            (State::Sender(set_up), message, SenderSetUp::EXPECTS)
        } else {
            let Ok((set_up, message)) = ReceiverSetUp::start(&ends, trees, &mut draw);
            (State::Receiver(set_up), message, ReceiverSetUp::EXPECTS)
        };
        self.random.zeroize();
        self.state = state;
        let other = self.other(protocol);
        let to = |peer| (peer == other).then(|| message.clone());
        let from = |peer| (peer == other).then_some(expects);
        exchange(plan, protocol, self.place, to, from)
    }

    /// Takes what came, and says what follows.
    pub(super) fn step(
        &mut self,
        plan: &Plan,
        protocol: &dyn Protocol,
        came: &Exchange,
    ) -> Result<Next, Abort> {
        let other = self.other(protocol);
        let message = came.recvs.first().map_or(&[][..], |recv| &recv.2);
        let cheated = |cheat: ot::Cheat| Abort::SetUp {
            peer: other,
            what: cheat.what(),
        };
        let place = self.place + 1;
        match std::mem::replace(&mut self.state, State::Over) {
            State::Receiver(receiver) => {
                let (message, leaves) = receiver.finish(message).map_err(cheated)?;
                let to = |peer| (peer == other).then(|| message.clone());
                let exchange = exchange(plan, protocol, place, to, |_| None);
                self.state = State::Sent(self.keys(None, leaves));
                Ok(Next::Goes(exchange))
            }
            State::Sender(sender) => {
                let trees = sender.base(message).map_err(cheated)?;
                let from = |peer| (peer == other).then_some(trees.expects());
                let exchange = exchange(plan, protocol, place, |_| None, from);
                self.state = State::Trees(trees);
                Ok(Next::Goes(exchange))
            }
            State::Trees(trees) => {
                let (offset, leaves) = trees.finish(message).map_err(cheated)?;
                Ok(Next::Over(self.keys(Some(offset), leaves)))
            }
            State::Sent(keys) => Ok(Next::Over(keys)),
            State::Begins | State::Over => Ok(Next::Over(Vec::new())),
        }
    }

    fn other(&self, protocol: &dyn Protocol) -> Peer {
        if protocol.me() == self.transfers.sender {
            self.transfers.receiver
        } else {
            self.transfers.sender
        }
    }

    fn keys(&self, offset: Option<Secret>, leaves: Vec<ot::Leaf>) -> Vec<(KeyId, Secret)> {
        let leaf = |(number, key)| (KeyId(self.transfers.leaves.0 + number), key);
        let offset = offset.map(|offset| (self.transfers.offset, offset));
        offset
            .into_iter()
            .chain(leaves.into_iter().map(leaf))
            .collect()
    }
}

/// What the set-up costs a participant.
pub(super) fn cost(protocol: &dyn Protocol) -> Cost {
    let Some(Transfers { sender, trees, .. }) = protocol.transfers() else {
        return Cost::default();
    };
    let sent = if protocol.me() == sender {
        vec![ReceiverSetUp::EXPECTS]
    } else {
        vec![SenderSetUp::EXPECTS, ot::trees::message_length(trees)]
    };
    Cost {
        rounds: PLACES.into(),
        messages: sent.len() as u64,
        bytes: sent.iter().map(|bytes| *bytes as u64).sum(),
    }
}

/// Bytes of the longest message of either end.
pub(super) fn longest(transfers: Transfers) -> u64 {
    let first = ReceiverSetUp::EXPECTS.max(SenderSetUp::EXPECTS);
    first.max(ot::trees::message_length(transfers.trees)) as u64
}
