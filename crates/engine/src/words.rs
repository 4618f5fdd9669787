//! The last words of a run: a participant that writes something for good tells the participants that would otherwise have to repeat the
//! run.
//!
//! A run that loads shares can be repeated for as long as the parties keep them: before they let go, every participant that receives or
//! keeps something tells them that it is on the disk. A run that only keeps shares would be repeated by its owners: they hear it from the
//! parties. It is one byte, always the same, and says nothing of the written values.
//!
//! Once a participant has heard all that it waits for, connections that end take nothing from it any more. Who never says its word
//! ends the run at the others, by the time-out, and they keep what they have.

use veil_job::{Audience, Holder};
use veil_link::{Link, LinkError};
use veil_protocol::{Cost, Plan, Protocol};
use veil_session::{Channel, Peer, StepId};

use crate::abort::{Abort, Wait};
use crate::setup::LAST_WORD;

/// There is nothing else to say.
const WRITTEN: [u8; 1] = [1];

/// Whether `from` says to `to` that what it has to write is written.
fn tells(plan: &Plan, from: Peer, to: Peer) -> bool {
    let job = &plan.job;
    let kept = |audience: &Audience| matches!(audience, Audience::Stored);
    let keeps = from.party().is_some() && job.audiences.iter().any(kept);
    let receives = job.audiences.iter().any(|a| a.includes(from));
    let repeats = match to {
        Peer::Party(_) => {
            let loads = |holders: &[Holder]| holders.contains(&Holder::Stored);
            job.blocks.iter().any(|block| loads(&block.holders))
        }
        Peer::Owner(_) => job.audiences.iter().all(kept),
        Peer::Recipient(_) => false,
    };
    repeats && (keeps || receives)
}

/// The cost of the last words for the participant that runs `protocol`: a byte to each that needs them.
pub fn last_words_cost(plan: &Plan, protocol: &dyn Protocol) -> Cost {
    let me = protocol.me();
    let peers = protocol.peers().into_iter();
    let told = peers.filter(|peer| tells(plan, me, *peer)).count() as u64;
    Cost {
        rounds: told.min(1),
        messages: told,
        bytes: told * WRITTEN.len() as u64,
    }
}

/// The last words of one participant, as a machine that is stepped.
pub(crate) struct LastWords {
    at: Channel,
    /// Who was not told yet.
    tell: Vec<Peer>,
    /// Who has not said it yet.
    hear: Vec<Peer>,
    announced: bool,
    /// The first connection that ended meanwhile. Its other end may owe this participant nothing, but be why another one says nothing.
    lost: Option<LinkError>,
}

impl LastWords {
    pub(crate) fn new(plan: &Plan, protocol: &dyn Protocol) -> Self {
        let (me, peers) = (protocol.me(), protocol.peers());
        let those = |told: &dyn Fn(Peer) -> bool| -> Vec<Peer> {
            peers.iter().copied().filter(|peer| told(*peer)).collect()
        };
        let place = protocol.places() + LAST_WORD;
        LastWords {
            at: Channel {
                frame: plan.totals_frame(),
                step: StepId { place, cycle: 0 },
                part: 0,
            },
            tell: those(&|peer| tells(plan, me, peer)),
            hear: those(&|peer| tells(plan, peer, me)),
            announced: false,
            lost: None,
        }
    }

    /// Nothing to say, and nothing to hear.
    pub(crate) fn is_empty(&self) -> bool {
        self.tell.is_empty() && self.hear.is_empty()
    }

    /// Goes on as far as it can: whether all is said and heard.
    pub(crate) fn step(&mut self, link: &mut dyn Link) -> Result<bool, Abort> {
        if !self.announced {
            for peer in &self.hear {
                link.expect(*peer, self.at, WRITTEN.len() as u64)?;
            }
            self.announced = true;
        }
        while let Some(peer) = self.tell.last() {
            match link.post(*peer, self.at, &WRITTEN) {
                Ok(false) => break,
                // A peer that is gone finds out by itself.
                Err(error) => self.bear(error)?,
                Ok(true) => {}
            }
            self.tell.pop();
        }
        let mut still = Vec::new();
        for peer in std::mem::take(&mut self.hear) {
            let mut word = [0; WRITTEN.len()];
            match link.land(peer, self.at, &mut word) {
                Ok(false) => still.push(peer),
                Ok(true) if word == WRITTEN => {}
                Ok(true) => {
                    return Err(Abort::SetUp {
                        peer,
                        what: "says something else than that its results are written",
                    });
                }
                Err(error) => return Err(self.lost.take().unwrap_or(error).into()),
            }
        }
        self.hear = still;
        Ok(self.tell.is_empty() && self.hear.is_empty())
    }

    /// Takes note of a connection that ended: the words that come by others count still.
    pub(crate) fn bear(&mut self, error: LinkError) -> Result<(), Abort> {
        if !error.fault.is_end() {
            return Err(error.into());
        }
        self.lost.get_or_insert(error);
        Ok(())
    }

    pub(crate) fn waits(&self) -> Vec<Wait> {
        let wait = |sending| move |peer: &Peer| (*peer, sending);
        let tell = self.tell.iter().map(wait(true));
        let waits = tell.chain(self.hear.iter().map(wait(false)));
        waits
            .map(|(peer, sending)| Wait {
                peer,
                at: self.at,
                sending,
            })
            .collect()
    }
}
