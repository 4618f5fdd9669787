//! The part of the handshake in which both parties compare their marks of stock: each tells its own; one that is a session behind catches up and says so; both
//! write the marks of this run, and say that they have. Only then anything depends on a cell, so neither has used what the other one does not know of.

use std::sync::Arc;

use veil_job::{STOCK_WORD, StockSource, Turn};
use veil_protocol::{Cost, Plan, Protocol, StockUse};
use veil_session::{Secret, SessionId};

use super::exchange::{Exchange, exchange};
use crate::abort::Abort;

/// Places of its steps.
pub(super) const PLACES: u32 = 3;

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
    Words,
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
        rounds: 2,
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
        let word = source.word()?;
        let peer = stock.peer;
        let to = |other| (other == peer).then(|| word.clone());
        let from = |other| (other == peer).then_some(STOCK_WORD);
        let goes = exchange(plan, protocol, place, to, from);
        let begun = Stocking {
            source,
            stock,
            place,
            at: At::Words,
        };
        Ok((begun, goes))
    }

    /// Takes what came, and says what follows.
    pub(super) fn step(
        &mut self,
        (plan, protocol): (&Plan, &dyn Protocol),
        session: SessionId,
        came: &Exchange,
    ) -> Result<Next, Abort> {
        let message = came.recvs.first().map(|recv| &recv.2[..]);
        if !matches!(self.at, At::Words) && message.is_some_and(|said| *said != [WRITTEN]) {
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
            At::Words => {
                let word = message.unwrap_or_default();
                match self.source.hear(word, self.stock.cells)? {
                    Turn::Begins => {}
                    Turn::Waits => return Ok(Next::Goes(goes(1, false, true))),
                    Turn::CaughtUp => return Ok(Next::Goes(goes(1, true, false))),
                }
            }
            At::CatchesUp => {}
            At::Marks(offset) => return Ok(Next::Over(offset)),
        }
        let marks = goes(2, true, true);
        self.at = At::Marks(self.source.begin(&session)?);
        Ok(Next::Goes(marks))
    }
}
