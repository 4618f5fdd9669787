//! What a lane waits for, how long it rests, and when it has waited in vain.

use std::time::{Duration, Instant};

use veil_device::Fault;
use veil_link::Woken;
use veil_session::Peer;

use super::{AHEAD_AFTER, Stage, Worker};
use crate::abort::{Abort, Wait};
use crate::run::Run;

/// Between two looks at links of which one has ended, while the last words of others are under way.
const BEAR: Duration = Duration::from_millis(5);

/// A device that computes is looked after without a rest for so long: small batches take less, and a thread that sleeps wakes some 50 µs late.
const SOON: Duration = Duration::from_micros(200);
/// And is left alone for so long, at most.
const LONGEST_REST: Duration = Duration::from_millis(1);

impl Worker {
    /// Blocks until something may have changed, for at most `longest`.
    ///
    /// # Errors
    /// [`Abort`] if the link failed and the run cannot go on without it.
    pub fn wait(&mut self, longest: Duration) -> Result<Woken, Abort> {
        // Neither other lanes nor devices wake the link: look at them often while they are what is waited for.
        let longest = match self.stage {
            Stage::Keys | Stage::Passing | Stage::Lanes => longest.min(Duration::from_micros(500)),
            _ if self.computes() => longest.min(self.rest()),
            Stage::Chunks if self.may_begin() => longest.min(AHEAD_AFTER),
            _ => longest,
        };
        if longest.is_zero() {
            std::thread::yield_now();
        }
        let woken = self.link.wait(Instant::now() + longest);
        woken.or_else(|error| {
            self.bear(error).map_err(|abort| self.fail(abort))?;
            // The link says so at once, again and again.
            std::thread::sleep(longest.min(BEAR));
            Ok(Woken::TimedOut)
        })
    }

    /// How long to leave a device alone that computes: the longer it has, the longer, so that a batch is noticed soon after it has ended and a lane
    /// takes little of a core.
    fn rest(&self) -> Duration {
        let waited = self.has_waited();
        if waited < SOON {
            Duration::ZERO
        } else {
            (waited / 16).min(LONGEST_REST)
        }
    }

    /// For how long nothing has moved.
    pub(super) fn has_waited(&self) -> Duration {
        (self.clock)().saturating_duration_since(self.quiet.since())
    }

    pub(super) fn stall(&self, after: Duration) -> Option<Abort> {
        if let Some(until) = self.meeting {
            let mut peers: Vec<Peer> = self.in_the_way().iter().map(|wait| wait.peer).collect();
            peers.dedup();
            return ((self.clock)() >= until).then_some(Abort::Unmet { peers });
        }
        // A lane that waits for a sibling is not stalled: the sibling is, if it is, and says whom it waits for. One that closes knows
        // by itself until when.
        if let Stage::Keys | Stage::Passing | Stage::Lanes | Stage::Closing(_) = self.stage {
            return None;
        }
        // Other owners may be sending for hours. The parties watch them, and the link notices a connection that is gone.
        if let (Stage::LastWords(_), Peer::Owner(_)) = (&self.stage, self.protocol.me()) {
            return None;
        }
        // The parties may compute for hours before a recipient hears of it. They watch each other, and the link notices a
        // connection that is gone; once the first part of an opening has come, the others are due.
        if matches!(self.protocol.me(), Peer::Recipient(_)) {
            let under_way = match &self.stage {
                Stage::Chunks => self.active.iter().any(Run::is_under_way),
                Stage::Totals(run) => run.is_under_way(),
                _ => true,
            };
            if !under_way {
                return None;
            }
        }
        if after <= self.timeout {
            return None;
        }
        let waits = self.waits();
        if waits.is_empty() && self.computes() {
            return Some(Abort::Device(Fault::Card {
                device: self.device.name(),
                why: format!("no batch has ended for {:.1} s", after.as_secs_f64()),
            }));
        }
        Some(Abort::Stalled { waits, after })
    }

    /// Whether this lane waits for its device.
    fn computes(&self) -> bool {
        match &self.stage {
            Stage::SetUp(run, _) | Stage::Totals(run) => run.computes(),
            Stage::Chunks => self.active.iter().any(Run::computes),
            _ => false,
        }
    }

    /// The messages that this lane waits for now.
    pub fn waits(&self) -> Vec<Wait> {
        match &self.stage {
            Stage::Handshake(handshake) => handshake.waits(),
            Stage::SetUp(run, _) | Stage::Totals(run) => run.waits(),
            Stage::Chunks => self.active.iter().flat_map(Run::waits).collect(),
            Stage::LastWords(words) => words.waits(),
            Stage::Keys | Stage::Passing | Stage::Lanes | Stage::Closing(_) | Stage::Done => {
                Vec::new()
            }
        }
    }

    /// What this lane waits for, without those who wait themselves: until all parties have met, no other participant begins.
    pub(super) fn in_the_way(&self) -> Vec<Wait> {
        let mut waits = self.waits();
        let is_party = |wait: &Wait| wait.peer.party().is_some();
        if self.meeting.is_some() && waits.iter().any(is_party) {
            waits.retain(is_party);
        }
        waits
    }
}
