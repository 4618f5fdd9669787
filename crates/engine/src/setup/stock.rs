//! The part of the handshake in which both parties compare their marks of stock: one tells its own, then the other one; one that is a session behind catches up and says so;
//! both write the marks of this run, and say that they have. From its word until it has written, no other run of a party begins; as one party is always the first, no two
//! runs hold one party each and wait for the other. Only then anything depends on a cell, so neither has used what the other one does not know of.

use std::sync::Arc;

use veil_job::{STOCK_WORD, StockSource, Turn};
use veil_protocol::{Cost, Plan, Protocol, StockUse};
use veil_session::{Secret, SessionId};

use super::exchange::{Exchange, exchange};
use crate::abort::Abort;

/// Places of its steps.
pub(super) const PLACES: u32 = 4;

/// What an end says when it has written.
const WRITTEN: u8 = 1;

/// The steps of a party.
pub(super) struct Stocking {
    source: Arc<dyn StockSource>,
    stock: StockUse,
    place: u32,
    at: At,
}

/// What the messages on their way are.
enum At {
    /// The word of the party that leads.
    First,
    /// That of the other party, which has the first one.
    Second(Vec<u8>),
    CatchesUp,
    Marks(Secret),
}

/// What follows a step.
pub(super) enum Next {
    /// Another one.
    Goes(Exchange),
    /// The cells are marked at both ends: the offset.
    Over(Secret),
}

/// What a run takes from a stock.
pub(super) fn used(protocol: &dyn Protocol) -> Option<StockUse> {
    protocol.stock().filter(|stock| !stock.makes)
}

/// What it costs where no party has to catch up.
pub(super) fn cost(protocol: &dyn Protocol) -> Cost {
    used(protocol).map_or(Cost::default(), |_| Cost {
        rounds: 3,
        messages: 2,
        bytes: STOCK_WORD as u64 + 1,
    })
}

impl Stocking {
    /// The first step, whose messages go out.
    pub(super) fn begin(
        (plan, protocol): (&Plan, &dyn Protocol),
        stock: StockUse,
        source: Arc<dyn StockSource>,
        place: u32,
    ) -> Result<(Self, Exchange), Abort> {
        let begun = Stocking {
            source,
            stock,
            place,
            at: At::First,
        };
        let leads = begun.source.leads();
        let word = leads.then(|| begun.source.word()).transpose()?;
        let goes = begun.tells((plan, protocol), 0, word.as_deref());
        Ok((begun, goes))
    }

    /// Tells a word, or waits for the other party's.
    fn tells(
        &self,
        (plan, protocol): (&Plan, &dyn Protocol),
        step: u32,
        word: Option<&[u8]>,
    ) -> Exchange {
        let is = |other| other == self.stock.peer;
        let to = |other| word.filter(|_| is(other)).map(<[u8]>::to_vec);
        let from = |other| (is(other) && word.is_none()).then_some(STOCK_WORD);
        exchange(plan, protocol, self.place + step, to, from)
    }

    /// Takes what came, and says what follows.
    pub(super) fn step(
        &mut self,
        (plan, protocol): (&Plan, &dyn Protocol),
        session: SessionId,
        came: &Exchange,
    ) -> Result<Next, Abort> {
        let message = came.recvs.first().map(|recv| &recv.2[..]);
        let of_word = matches!(self.at, At::First | At::Second(_));
        if !of_word && message.is_some_and(|said| *said != [WRITTEN]) {
            return Err(Abort::SetUp {
                peer: self.stock.peer,
                what: "says of its stock what no party says",
            });
        }
        let goes = |step, says: bool, hears: bool| {
            let is = |other| other == self.stock.peer;
            let to = |other| (is(other) && says).then(|| vec![WRITTEN]);
            let from = |other| (is(other) && hears).then_some(1);
            exchange(plan, protocol, self.place + step, to, from)
        };
        match std::mem::replace(&mut self.at, At::CatchesUp) {
            At::First => {
                let theirs = message.unwrap_or_default().to_vec();
                let waits = self.source.leads();
                let word = (!waits).then(|| self.source.word()).transpose()?;
                self.at = At::Second(theirs);
                return Ok(Next::Goes(self.tells((plan, protocol), 1, word.as_deref())));
            }
            At::Second(first) => {
                let word = message.unwrap_or(&first);
                match self.source.hear(word, self.stock.cells)? {
                    Turn::Begins => {}
                    Turn::Waits => return Ok(Next::Goes(goes(2, false, true))),
                    Turn::CaughtUp => return Ok(Next::Goes(goes(2, true, false))),
                }
            }
            At::CatchesUp => {}
            At::Marks(offset) => return Ok(Next::Over(offset)),
        }
        let marks = goes(3, true, true);
        self.at = At::Marks(self.source.begin(&session)?);
        Ok(Next::Goes(marks))
    }
}
