//! Cores of shares behind a socket: orders, and streams that travel in messages.

use zeroize::Zeroizing;

use super::serve::{Answered, Wrong};
use super::wire::{Answer, PAYLOAD, Request};
use crate::share::port::{Order, Port, simulated};
use crate::{Absent, Stalls};

/// Cores for a client.
pub(super) struct Computes([Box<dyn Port>; 3]);

impl Computes {
    /// Simulated ones, just switched on.
    pub(super) fn new(stalls: Stalls) -> Result<Self, Absent> {
        simulated(stalls).map(Computes)
    }

    /// Does what a client asks for.
    pub(super) fn does(&mut self, request: Request, payload: &[u8]) -> Result<Answered, Wrong> {
        let nothing = Zeroizing::new(Vec::new());
        match request {
            Request::Order(core, order) => {
                let said = self.core(core)?.order(&order);
                let said = said.map_err(|_| Wrong::Order("a core that is gone"))?;
                Ok((Answer::Said(said), nothing))
            }
            Request::Run { core, given, made } => {
                let core = self.core(core)?;
                let [all_given, all_made] = [&given[..], &made[..]].map(|all| {
                    all.iter()
                        .fold(0usize, |sum, n| sum.saturating_add(*n as usize))
                });
                if all_given != payload.len() || all_made > PAYLOAD {
                    return Err(Wrong::Order("streams of other lengths than it gives"));
                }
                let mut left = payload;
                let given = given.map(|bytes| {
                    let (own, rest) = left.split_at(bytes as usize);
                    left = rest;
                    own
                });
                let mut results = Zeroizing::new(vec![0; all_made]);
                let mut room = &mut results[..];
                let mut streams = made.map(|bytes| {
                    let (own, rest) = std::mem::take(&mut room).split_at_mut(bytes as usize);
                    room = rest;
                    own
                });
                let ran = core.run(&given, &mut streams);
                let ran = ran.map_err(|_| Wrong::Order("streams that are no whole beats"))?;
                let answer = Answer::Ran {
                    cycles: ran.cycles,
                    moved: ran.moved,
                };
                Ok((answer, results))
            }
            _ => Err(Wrong::unexpected()),
        }
    }

    fn core(&mut self, core: u8) -> Result<&mut dyn Port, Wrong> {
        match self.0.get_mut(usize::from(core)) {
            Some(core) => Ok(&mut **core),
            None => Err(Wrong::Order("a core that is not there")),
        }
    }

    /// Wipes them, when their client is gone.
    pub(super) fn scrub(&mut self) {
        for core in &mut self.0 {
            let _ = core.order(&Order::Scrub);
        }
    }
}
