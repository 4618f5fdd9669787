//! Holders of a block compare the order of a key column, before anything that depends on an input is sent.
//!
//! Every holder has a chain of digests, keyed so that nobody but the holders can make one. It hashes each once more with the session and
//! the block, so that no two runs say the same, and sends the list to one party, the judge; the judge answers with the index of the first
//! digest that is not the same everywhere. A holder that hears of a difference says so and waits until the judge has heard it from all: so
//! every one of them knows the reason before the run ends.
//!
//! The judge learns which parts agree and nothing else, unless it holds a column itself: then it has the key, and could try guesses of a
//! whole key column. A judge that answers wrongly can end the run, or leave a difference unnoticed.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use veil_program::Source;
use veil_protocol::{Cost, OrderPlan, Plan};
use veil_session::{Channel, Peer, SessionId, StepId};

use crate::abort::Abort;
use crate::setup::Exchange;

/// The answer that all digests agree.
const NONE: u32 = u32::MAX;
/// Bytes of an answer.
const ANSWER: usize = 4;
/// What a holder says that has heard of a difference. There is nothing else to say.
const HEARD: [u8; 1] = [1];

/// Refuses to start without the digests that the plan compares.
pub(crate) fn check(plan: &Plan, me: Peer, source: Option<&dyn Source>) -> Result<(), Abort> {
    for order in plan.orders.iter().filter(|o| o.holders.contains(&me)) {
        let found = source.map_or(0, |source| source.order(order.block).len());
        if found != order.digests as usize {
            let block = &plan.job.blocks[order.block as usize].name;
            return Err(Abort::Missing(format!(
                "the order of block `{block}` is compared by {} digests of its key column, and this participant has \
                 {found}",
                order.digests
            )));
        }
    }
    Ok(())
}

/// What the comparison costs a participant of a run in which nothing differs.
pub(crate) fn cost(plan: &Plan, me: Peer) -> Cost {
    let mut cost = Cost::default();
    for order in &plan.orders {
        let holds = order.holders.contains(&me);
        if Peer::Party(order.judge) == me {
            let others = (order.holders.len() - usize::from(holds)) as u64;
            cost.messages += others;
            cost.bytes += others * ANSWER as u64;
        } else if holds {
            cost.messages += 1;
            cost.bytes += digests_bytes(order) as u64;
        } else {
            continue;
        }
        // Of all blocks together: the digests, and the answers to them.
        cost.rounds = 2;
    }
    cost
}

/// Bytes of a list of digests.
fn digests_bytes(order: &OrderPlan) -> usize {
    32 * order.digests as usize
}

/// Differences that a participant knows of.
#[derive(Default)]
pub(crate) struct Differences {
    /// The first one: why the run ends.
    pub(crate) first: Option<Abort>,
    /// Blocks of which this participant is the judge and that differ.
    pub(crate) judged: Vec<u32>,
}

impl Differences {
    /// The first one, for all lanes of the participant.
    pub(crate) fn note(&self, misaligned: &OnceLock<Abort>) {
        if let Some(first) = &self.first {
            // Set by a judge that is a holder as well: it says the same.
            let _ = misaligned.set(first.clone());
        }
    }
}

/// What a participant has to say and to hear about the order of blocks, step by step.
pub(crate) struct Orders<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) me: Peer,
    pub(crate) session: SessionId,
    /// Place of the first of three steps.
    pub(crate) place: u32,
    pub(crate) source: Option<&'a dyn Source>,
}

impl Orders<'_> {
    /// Holders send their digests to the judge of the block.
    pub(crate) fn digests(&self) -> Exchange {
        let mut exchange = Exchange::default();
        for order in &self.plan.orders {
            let at = self.channel(order, 0);
            let judge = Peer::Party(order.judge);
            if judge == self.me {
                let length = digests_bytes(order);
                exchange.recvs.extend(
                    self.others(order)
                        .map(|peer| (peer, at, vec![0; length], false)),
                );
            } else if order.holders.contains(&self.me) {
                exchange.sends.push((judge, at, self.mine(order)));
            }
        }
        exchange
    }

    /// Judges answer, and know what they have found.
    pub(crate) fn answers(&self, digests: &Exchange) -> (Exchange, Differences) {
        let mut exchange = Exchange::default();
        let mut found = Differences::default();
        for order in &self.plan.orders {
            let at = self.channel(order, 1);
            let judge = Peer::Party(order.judge);
            if judge == self.me {
                let mine = order.holders.contains(&self.me).then(|| self.mine(order));
                let received = digests.recvs.iter();
                let here = self.channel(order, 0);
                let lists: Vec<&[u8]> = received
                    .filter(|(_, at, ..)| *at == here)
                    .map(|(_, _, bytes, _)| bytes.as_slice())
                    .chain(mine.as_deref())
                    .collect();
                let first = first_difference(&lists);
                if let Some(index) = first {
                    found.judged.push(order.block);
                    found
                        .first
                        .get_or_insert_with(|| self.misaligned(order, index));
                }
                let answer = first.unwrap_or(NONE).to_le_bytes();
                exchange
                    .sends
                    .extend(self.others(order).map(|peer| (peer, at, answer.to_vec())));
            } else if order.holders.contains(&self.me) {
                exchange.recvs.push((judge, at, vec![0; ANSWER], false));
            }
        }
        (exchange, found)
    }

    /// Holders read the answers, and say that they have heard of a difference; judges that have found one hear it from its holders.
    pub(crate) fn heard(
        &self,
        answers: &Exchange,
        found: &mut Differences,
    ) -> Result<Exchange, Abort> {
        let mut exchange = Exchange::default();
        for order in &self.plan.orders {
            let (here, at) = (self.channel(order, 1), self.channel(order, 2));
            let judge = Peer::Party(order.judge);
            if judge == self.me {
                if found.judged.contains(&order.block) {
                    let peers = self.others(order);
                    exchange
                        .recvs
                        .extend(peers.map(|peer| (peer, at, vec![0; HEARD.len()], false)));
                }
                continue;
            }
            let answer = answers.recvs.iter().find(|(_, at, ..)| *at == here);
            let Some((_, _, answer, _)) = answer else {
                continue;
            };
            let index = u32::from_le_bytes(answer[..].try_into().expect("an answer has 4 bytes"));
            if index == NONE {
                continue;
            }
            if index >= order.digests {
                return Err(Abort::SetUp {
                    peer: judge,
                    what: "says that rows differ which the block does not have",
                });
            }
            found
                .first
                .get_or_insert_with(|| self.misaligned(order, index));
            exchange.sends.push((judge, at, HEARD.to_vec()));
        }
        Ok(exchange)
    }

    fn channel(&self, order: &OrderPlan, step: u32) -> Channel {
        Channel {
            frame: self.plan.set_up_frame(),
            step: StepId {
                place: self.place + step,
                cycle: 0,
            },
            part: order.block as u16,
        }
    }

    fn others<'o>(&self, order: &'o OrderPlan) -> impl Iterator<Item = Peer> + use<'o> {
        let me = self.me;
        order.holders.iter().copied().filter(move |p| *p != me)
    }

    /// This participant's digests, as the judge sees them.
    fn mine(&self, order: &OrderPlan) -> Vec<u8> {
        let inner = self
            .source
            .map_or(&[][..], |source| source.order(order.block));
        let outer = |inner: &[u8; 32]| -> [u8; 32] {
            let mut hash = Sha256::new();
            hash.update(b"veilworks order");
            hash.update(self.session.0);
            hash.update(order.block.to_le_bytes());
            hash.update(inner);
            hash.finalize().into()
        };
        inner.iter().flat_map(outer).collect()
    }

    fn misaligned(&self, order: &OrderPlan, index: u32) -> Abort {
        let block = &self.plan.job.blocks[order.block as usize];
        let (first_row, rows) = order.rows(block, index);
        Abort::Misaligned {
            block: block.name.clone(),
            first_row,
            rows,
        }
    }
}

/// Index of the first digest that is not the same in all lists, which are equally long.
fn first_difference(lists: &[&[u8]]) -> Option<u32> {
    let (first, others) = lists.split_first()?;
    let same = |k: usize| {
        let digest = &first[32 * k..][..32];
        others.iter().all(|list| list[32 * k..][..32] == *digest)
    };
    (0..first.len() / 32).find(|k| !same(*k)).map(|k| k as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_found() {
        let list = |changed: &[usize]| -> Vec<u8> {
            let mut bytes = vec![7; 5 * 32];
            for k in changed {
                bytes[32 * k + 31] ^= 1;
            }
            bytes
        };
        let of = |lists: &[Vec<u8>]| {
            let lists: Vec<&[u8]> = lists.iter().map(Vec::as_slice).collect();
            first_difference(&lists)
        };
        assert_eq!(of(&[list(&[]), list(&[])]), None);
        assert_eq!(of(&[list(&[]), list(&[4])]), Some(4));
        assert_eq!(of(&[list(&[2, 3]), list(&[2, 4])]), Some(3));
        assert_eq!(of(&[list(&[1]), list(&[1]), list(&[])]), Some(1));
        assert_eq!(of(&[list(&[0])]), None);
    }
}
