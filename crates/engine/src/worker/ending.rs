//! How a lane ends: it closes when all is done, and gives up when something failed.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use veil_link::LinkError;

use super::{Stage, Step, Worker};
use crate::abort::Abort;
use crate::words::LastWords;

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
        // Whatever a link or another lane says once that is known is its consequence.
        let abort = self.shared.misaligned.get().cloned().unwrap_or(abort);
        // The first reason is the one to report: what follows at other lanes is its consequence.
        let mut first = self.shared.failed.get_or_init(|| abort.clone()).clone();
        first.join(abort);
        self.give_up();
        first
    }

    pub(super) fn give_up(&mut self) {
        self.link.abort();
        self.device.wipe();
        self.shared.wipe();
        self.sums.iter_mut().for_each(zeroize::Zeroize::zeroize);
        self.active.clear();
        self.stage = Stage::Done;
        // The news has to leave this machine. Whoever does not take it soon finds the connection closed.
        let _ = self.link.close(Instant::now() + Duration::from_millis(200));
    }

    /// Everything is computed and given away. Where others have to hear that it is written, it is written here.
    pub(super) fn conclude(&mut self) -> Result<(), Abort> {
        let words = LastWords::new(&self.plan, &*self.protocol);
        if words.is_empty() {
            self.close();
        } else {
            self.shared.finish(&self.data)?;
            self.stage = Stage::LastWords(words);
        }
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.stage = Stage::Closing(Instant::now() + self.timeout);
    }

    /// The last step of a lane, when nothing is held up any more.
    pub(super) fn closed(&mut self, until: Instant) -> Result<Step, Abort> {
        match self.link.close(until) {
            Err(error) if self.settled && error.fault.is_end() => {}
            closed => closed?,
        }
        self.shared.add_meters(self.link.meters() + self.exchanged);
        self.device.wipe();
        self.stage = Stage::Done;
        if self.lane != 0 {
            self.shared.lanes_done.fetch_add(1, Ordering::Release);
        }
        Ok(Step::Done)
    }
}
