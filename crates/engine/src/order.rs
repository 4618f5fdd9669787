//! Holders of a block compare the order of a key column, before anything that depends on an input is sent.
//!
//! Every holder has a chain of digests, keyed so that the holders alone can make one. It hashes each once more with the session and the
//! block, so that no two runs say the same, and sends the list to two parties, the judges; each judge answers with the index of the first
//! digest that is not the same everywhere. The run goes on only if both judges say that all agree. A holder that hears of a difference from
//! both says so and waits until the judges have heard it from all: so every holder knows the reason before the run ends. Judges with
//! different answers end it at once: one of them is Byzantine, or a holder sent them different lists.
//!
//! A judge learns which parts agree and nothing else, unless it holds a column itself: then it has the key, and could try guesses of a
//! whole key column. One judge that answers wrongly can end the run, and leave no difference unnoticed.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use veil_job::Source;
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
        let (holds, judges) = (order.holders.contains(&me), is_judge(order, me));
        if !holds && !judges {
            continue;
        }
        if judges {
            let others = (order.holders.len() - usize::from(holds)) as u64;
            cost.messages += others;
            cost.bytes += others * ANSWER as u64;
        }
        if holds {
            let lists = other_judges(order, me).count() as u64;
            cost.messages += lists;
            cost.bytes += lists * digests_bytes(order) as u64;
        }
        // Of all blocks together: the digests, and the answers to them.
        cost.rounds = 2;
    }
    cost
}

fn is_judge(order: &OrderPlan, me: Peer) -> bool {
    me.party().is_some_and(|me| order.judges.contains(&me))
}

fn other_judges(order: &OrderPlan, me: Peer) -> impl Iterator<Item = Peer> {
    let judges = order.judges.into_iter().map(Peer::Party);
    judges.filter(move |judge| *judge != me)
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
    /// Blocks of which this participant is a judge and that differ.
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
    /// Holders send their digests to the judges of the block.
    pub(crate) fn digests(&self) -> Exchange {
        let mut exchange = Exchange::default();
        for order in &self.plan.orders {
            let at = self.channel(order, 0);
            if is_judge(order, self.me) {
                let length = digests_bytes(order);
                exchange.recvs.extend(
                    self.others(order)
                        .map(|peer| (peer, at, vec![0; length], false)),
                );
            }
            if order.holders.contains(&self.me) {
                let mine = self.mine(order);
                let lists = other_judges(order, self.me).map(|judge| (judge, at, mine.clone()));
                exchange.sends.extend(lists);
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
            if is_judge(order, self.me) {
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
            }
            if order.holders.contains(&self.me) {
                let judges = other_judges(order, self.me);
                exchange
                    .recvs
                    .extend(judges.map(|judge| (judge, at, vec![0; ANSWER], false)));
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
            let at = self.channel(order, 2);
            let own = found.judged.contains(&order.block);
            if own {
                let peers = self.others(order);
                exchange
                    .recvs
                    .extend(peers.map(|peer| (peer, at, vec![0; HEARD.len()], false)));
            }
            let verdicts = self.verdicts(order, answers)?;
            let differs = |(_, verdict): &&(Peer, u32)| *verdict != NONE;
            let saying = verdicts.iter().filter(differs).map(|(judge, _)| *judge);
            exchange
                .sends
                .extend(saying.map(|judge| (judge, at, HEARD.to_vec())));
            // What it has seen itself it need not believe.
            if own {
                continue;
            }
            let trusted = is_judge(order, self.me).then_some(NONE);
            let mut all = trusted.into_iter().chain(verdicts.iter().map(|(_, v)| *v));
            let Some(verdict) = all.next() else { continue };
            if all.any(|other| other != verdict) {
                let judges = verdicts.iter().map(|(judge, _)| *judge);
                let mut suspects: Vec<Peer> = judges.chain(self.others(order)).collect();
                suspects.sort_unstable();
                suspects.dedup();
                let at = Channel {
                    part: 0,
                    ..self.channel(order, 1)
                };
                return Err(Abort::Cheated {
                    at,
                    suspects,
                    what: "what two judges say of the order of rows",
                });
            }
            if verdict != NONE {
                found
                    .first
                    .get_or_insert_with(|| self.misaligned(order, verdict));
            }
        }
        Ok(exchange)
    }

    /// What the other judges of a block have answered to this holder of it.
    fn verdicts(&self, order: &OrderPlan, answers: &Exchange) -> Result<Vec<(Peer, u32)>, Abort> {
        let here = self.channel(order, 1);
        let mut verdicts = Vec::new();
        for (judge, _, answer, _) in answers.recvs.iter().filter(|(_, at, ..)| *at == here) {
            let index = u32::from_le_bytes(answer[..].try_into().expect("an answer has 4 bytes"));
            if index != NONE && index >= order.digests {
                return Err(Abort::SetUp {
                    peer: *judge,
                    what: "says that rows differ which the block does not have",
                });
            }
            verdicts.push((*judge, index));
        }
        Ok(verdicts)
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
