//! How a lane ends: it closes when all is done, and gives up when something failed.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use veil_link::{LinkError, LinkFault};

use super::{Stage, Step, Worker};
use crate::abort::Abort;
use crate::run::Stepped;
use crate::words::LastWords;

/// How long the news that this side gave up has to leave this machine.
const LEAVE: Duration = Duration::from_millis(200);

/// Peers that notice the same at the same time tell each other before each has seen it: a connection that ends so long after a peer's word
/// is its reason.
const EVIDENCE: Duration = Duration::from_secs(2);

impl Worker {
    /// A link's failure as the reason to give up, with what this lane was waiting for if a peer gave up first.
    pub(super) fn told(&self, error: LinkError) -> Abort {
        Abort::from(error).seen_with(self.waits())
    }

    /// A link's failure, unless it takes nothing from a run of which only the last words are missing.
    pub(super) fn bear(&mut self, error: LinkError) -> Result<(), Abort> {
        match &mut self.stage {
            Stage::LastWords(words) => words.bear(error),
            Stage::Closing(_) if self.settled && error.fault.is_end() => Ok(()),
            _ => Err(self.told(error)),
        }
    }

    pub(super) fn fail(&mut self, abort: Abort) -> Abort {
        if abort.is_cheat() {
            self.burn_stock();
        }
        // Whatever a link or another lane says once that is known is its consequence.
        let abort = self.shared.misaligned.get().cloned().unwrap_or(abort);
        // The first reason is the one to report: what follows at other lanes is its consequence.
        let mut first = self.shared.failed.get_or_init(|| abort.clone()).clone();
        first.join(abort);
        self.end_with(first)
    }

    /// Ends the lane for a reason; one that is only a peer's word gives way to what this lane's own links show. Each lane looks: a peer
    /// that is gone may have finished its part of another lane.
    fn end_with(&mut self, reason: Abort) -> Abort {
        let heard = reason.is_hearsay() && self.shared.misaligned.get().is_none();
        self.leave(if heard { self.evidence() } else { LEAVE });
        let shown = heard.then(|| self.shown()).flatten();
        shown.unwrap_or(reason)
    }

    /// For how long a participant that was told that the run is over looks for what its own links show of the reason.
    fn evidence(&self) -> Duration {
        EVIDENCE.min(self.timeout / 4)
    }

    /// What a link itself shows of the reason: a peer that is gone without a word, or has sent what it may not.
    fn shown(&mut self) -> Option<Abort> {
        let error = self.link.poll().err()?;
        let shows = error.peer != self.protocol.me() && error.fault != LinkFault::Aborted;
        shows.then(|| Abort::Link(error))
    }

    /// Ends the lane because another one of this participant has failed for this reason.
    pub(super) fn give_up(&mut self, failed: Abort) -> Abort {
        let failed = failed.seen_with(self.waits());
        self.end_with(failed)
    }

    /// Tells the others, wipes, and closes. Ends as soon as each of the others is known to have left, too.
    fn leave(&mut self, within: Duration) {
        self.link.abort();
        self.device.wipe();
        self.wipe_devices();
        self.shared.wipe();
        self.sums.iter_mut().for_each(zeroize::Zeroize::zeroize);
        self.active.clear();
        self.left.clear();
        self.stage = Stage::Done;
        // The news has to leave this machine. A peer that does not take it soon finds the connection closed. Peers that the same thread steps
        // do nothing meanwhile.
        let within = match self.stepped {
            Stepped::Alone => within,
            Stepped::InTurn => Duration::ZERO,
        };
        let _ = self.link.close(Instant::now() + within);
    }

    /// Everything is computed and given away. Where others have to hear that it is written, it is written here.
    pub(super) fn conclude(&mut self) -> Result<(), Abort> {
        let words = LastWords::new(&self.plan, &*self.protocol);
        if words.is_empty() {
            self.close();
        } else {
            self.shared.finish(&self.ends)?;
            self.stage = Stage::LastWords(words);
        }
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.stage = Stage::Closing((self.clock)() + self.timeout);
    }

    /// The last step of a lane, when nothing is held up any more.
    pub(super) fn closed(&mut self, until: Instant) -> Result<Step, Abort> {
        let left = until.saturating_duration_since((self.clock)());
        match self.link.close(Instant::now() + left) {
            Err(error) if self.settled && error.fault.is_end() => {}
            closed => closed?,
        }
        self.shared.add_meters(self.link.meters() + self.exchanged);
        self.device.wipe();
        self.wipe_devices();
        self.stage = Stage::Done;
        if self.lane != 0 {
            self.shared.lanes_done.fetch_add(1, Ordering::Release);
        }
        Ok(Step::Done)
    }
}
