//! State shared by the lanes of one participant. Touched at the start, at the end and at a failure; never per chunk but for a counter.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use veil_link::Meters;
use veil_math::Ring;
use zeroize::Zeroize;

use crate::Data;
use crate::abort::Abort;
use crate::acts::Acts;
use crate::columns::{Columns, Limit, Room};
use crate::ot_cache::PendingEntry;
use crate::setup::Keys;
use crate::setup::transfers::Made;
use crate::status::{Progress, Report, Status, TransfersFrom};

/// What a lane needs before its first chunk.
pub(crate) struct Ready {
    pub(crate) keys: Keys,
    /// Shares of the values that all rows use, per component.
    pub(crate) job_wide: Vec<Vec<u8>>,
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.job_wide.iter_mut().for_each(Zeroize::zeroize);
    }
}

/// State of one participant over all its lanes.
pub(crate) struct Shared {
    pub(crate) ready: OnceLock<Ready>,
    pub(crate) status: Status,
    ready_after: OnceLock<Duration>,
    /// Nanoseconds until the latest rows were done.
    done_after: AtomicU64,
    pub(crate) failed: OnceLock<Abort>,
    /// The order of rows differs: the reason to report, whichever participant ends the run.
    pub(crate) misaligned: OnceLock<Abort>,
    tally: Mutex<Vec<Vec<u8>>>,
    /// Columns between passes.
    pub(crate) columns: Columns,
    /// Lanes that have finished the present pass, but for the last pass.
    passing: AtomicUsize,
    /// The pass that lanes may begin.
    pub(crate) pass: AtomicUsize,
    pub(crate) lanes_done: AtomicUsize,
    pub(crate) rows_done: AtomicU64,
    pub(crate) meters: Mutex<Meters>,
    finished: AtomicBool,
    /// Where transfers came from, if there are any.
    transfers: OnceLock<TransfersFrom>,
    /// The transfers to keep if the run ends well.
    pending: Mutex<Option<PendingEntry>>,
}

impl Shared {
    /// Of a participant, in as much memory as it has room.
    pub(crate) fn new(acts: &Acts, room: Option<&Room>) -> Self {
        let (me, program) = (acts.me(), acts.program());
        let plan = acts.plan();
        let (rows, cycles) = match acts.count() {
            1 => (plan.job.rows(), plan.cycle_count()),
            _ => (program.rows(), 1),
        };
        let parts = acts.protocol(0).spans().sums.len();
        let limit = room.map(|room| Limit::new(room.clone(), acts));
        let columns = Columns::new(Arc::clone(program), parts, limit);
        columns.begin(0);
        Shared {
            columns,
            passing: AtomicUsize::new(0),
            pass: AtomicUsize::new(0),
            ready: OnceLock::new(),
            status: Status::new(me, plan.lanes, (rows, cycles)),
            ready_after: OnceLock::new(),
            done_after: AtomicU64::new(0),
            failed: OnceLock::new(),
            misaligned: OnceLock::new(),
            tally: Mutex::new(Vec::new()),
            lanes_done: AtomicUsize::new(0),
            rows_done: AtomicU64::new(0),
            meters: Mutex::new(Meters::default()),
            finished: AtomicBool::new(false),
            transfers: OnceLock::new(),
            pending: Mutex::default(),
        }
    }

    /// Adds a lane's sums, per component, to those of the others.
    pub(crate) fn add(&self, ring: Ring, sums: &[Vec<u8>]) {
        let mut tally = self
            .tally
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if tally.is_empty() {
            tally.extend(sums.iter().cloned());
        } else {
            tally
                .iter_mut()
                .zip(sums)
                .for_each(|(a, b)| add(ring, a, b));
        }
    }

    /// The sums of all lanes, per component. They are gone afterwards.
    pub(crate) fn take_sums(&self) -> Vec<Vec<u8>> {
        std::mem::take(
            &mut *self
                .tally
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }

    pub(crate) fn add_meters(&self, m: Meters) {
        let mut sum = self
            .meters
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *sum = *sum + m;
    }

    /// Makes what this participant keeps and receives visible, once.
    pub(crate) fn finish(&self, ends: &[Data]) -> Result<(), Abort> {
        if self.finished.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        for data in ends {
            if let Some(keeps) = &data.keeps {
                keeps.finish()?;
            }
            if let Some(makes) = &data.makes {
                makes.finish()?;
            }
            if let Some(sink) = &data.sink {
                sink.finish()?;
            }
        }
        Ok(())
    }

    /// Transfers are set up.
    pub(crate) fn hold(&self, made: Made) {
        let _ = self.transfers.set(made.from);
        *self.pending() = made.pending;
    }

    /// The run has ended well: what it leaves is kept.
    pub(crate) fn keep(&self) {
        let pending = self.pending().take();
        pending.into_iter().for_each(PendingEntry::keep);
    }

    fn pending(&self) -> MutexGuard<'_, Option<PendingEntry>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keys are there: the set-up is over.
    pub(crate) fn note_ready(&self) {
        let _ = self.ready_after.set(self.status.elapsed());
    }

    /// A chunk or the totals are done: what they give is given.
    pub(crate) fn note_done(&self) {
        let after = self.status.elapsed().as_nanos() as u64;
        self.done_after.fetch_max(after, Ordering::Relaxed);
    }

    /// What the run took.
    pub(crate) fn report(&self, elapsed: Duration) -> Report {
        let meters = *self
            .meters
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let set_up = self.ready_after.get().copied().unwrap_or_default();
        let (waited, busy) = self.status.times();
        Report {
            elapsed,
            set_up,
            results: Duration::from_nanos(self.done_after.load(Ordering::Relaxed)),
            meters,
            trace: self.status.trace(),
            waited,
            busy,
            transfers: self.transfers.get().copied(),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.status.progress(self.rows_done.load(Ordering::Relaxed))
    }

    /// A lane has finished pass number `pass`; with the last of them the next one may begin.
    ///
    /// # Errors
    /// [`Abort::Unordered`] if what the pass has opened puts no rows in order, [`Abort::Data`] if columns that wait on the disk do not come back.
    pub(crate) fn passed(&self, pass: usize, lanes: u16) -> Result<(), Abort> {
        if self.passing.fetch_add(1, Ordering::AcqRel) + 1 < usize::from(lanes) {
            return Ok(());
        }
        self.passing.store(0, Ordering::Relaxed);
        let mut sums = self.take_sums();
        self.columns.leave_sums(pass, &sums);
        sums.iter_mut().for_each(Zeroize::zeroize);
        self.columns.order(pass)?;
        self.columns.bring_for_made(pass + 1)?;
        self.columns.make(pass + 1);
        self.columns.end(pass);
        self.columns.bring_for(pass + 1)?;
        self.columns.begin(pass + 1);
        self.pass.store(pass + 1, Ordering::Release);
        Ok(())
    }

    /// Wipes what is left of shares, and what would be kept of transfers.
    pub(crate) fn wipe(&self) {
        drop(self.pending().take());
        self.columns.wipe();
        self.take_sums().iter_mut().for_each(Zeroize::zeroize);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// a += b, packed elements of a ring with more than bits.
pub(crate) fn add(ring: Ring, a: &mut [u8], b: &[u8]) {
    if ring == Ring::Bits {
        return a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
    }
    let size = ring.bytes(1) as usize;
    let element = |of: &[u8]| {
        let mut bytes = [0; 16];
        bytes[..size].copy_from_slice(of);
        u128::from_le_bytes(bytes)
    };
    for (a, b) in a.chunks_exact_mut(size).zip(b.chunks_exact(size)) {
        let sum = ring.add(element(a), element(b));
        a.copy_from_slice(&sum.to_le_bytes()[..size]);
    }
}
