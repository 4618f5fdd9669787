//! Progress of a run while it goes on, and its report when it is over.
//!
//! Lanes write a few relaxed counters; a display reads them ten times a second. A list of waits is only made when a lane has been waiting
//! for a while, so that a run that moves takes no lock.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use veil_link::Meters;
use veil_session::{Peer, SessionId};

use crate::abort::Wait;

/// The name of one run, the same at all its participants, for logs and receipts. Says nothing about keys: it is a digest of the
/// session id, which is one of nonces.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

impl TraceId {
    /// The first 16 bytes of SHA-256("veilworks trace" ‖ session id).
    pub fn of(session: SessionId) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"veilworks trace");
        hash.update(session.0);
        let digest: [u8; 32] = hash.finalize().into();
        TraceId(digest[..16].try_into().expect("16 of 32 bytes"))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceId({self})")
    }
}

/// The phase of a participant. Chunks overtake each other: the phase is that of the first lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Phase {
    /// Connections are being made. The engine starts after that; the caller that makes the connections sets this phase.
    #[default]
    Meeting,
    /// Nonces, key shares, seeds.
    Handshake,
    /// The list of accepted inputs, and job-wide values.
    SetUp,
    /// Chunks of rows: inputs, layers, openings per row.
    Rows,
    /// Sums over all rows are added up and opened.
    Opening,
    /// Over.
    Done,
}

impl Phase {
    const ALL: [Phase; 6] = [
        Phase::Meeting,
        Phase::Handshake,
        Phase::SetUp,
        Phase::Rows,
        Phase::Opening,
        Phase::Done,
    ];

    /// The phase of this name: the inverse of [`Phase::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// A word or two for people, the same in every release.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Meeting => "meeting",
            Phase::Handshake => "handshake",
            Phase::SetUp => "set-up",
            Phase::Rows => "rows",
            Phase::Opening => "opening",
            Phase::Done => "done",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a participant is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The participant.
    pub me: Peer,
    /// Rows that are finished.
    pub rows: u64,
    /// Rows of the job.
    pub of: u64,
    /// Cycles of each row: one, unless the circuit is sequential.
    pub cycles: u64,
    /// Cycles that are over, of all rows.
    pub passed: u64,
    /// The phase.
    pub phase: Phase,
    /// Payload bytes posted.
    pub sent: u64,
    /// Payload bytes landed.
    pub received: u64,
    /// Whom it waits for, if no lane of it has moved for a while.
    pub waits: Vec<Wait>,
    /// For how long it has been waiting; zero while it moves.
    pub waiting: Duration,
    /// The name of the run, once the session has its id.
    pub trace: Option<TraceId>,
    /// Whether any participant may have received an opened value: without another message of this participant, the others could open one.
    /// At a recipient, which sends none: whether it may have received one itself.
    pub may_have_opened: bool,
}

impl Progress {
    /// A participant of which nothing is known yet.
    pub fn new(me: Peer, of: u64) -> Self {
        Progress {
            me,
            rows: 0,
            of,
            cycles: 1,
            passed: 0,
            phase: Phase::Meeting,
            sent: 0,
            received: 0,
            waits: Vec::new(),
            waiting: Duration::ZERO,
            trace: None,
            may_have_opened: false,
        }
    }
}

/// Times and amounts of a run at one participant.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// From the first message to the last.
    pub elapsed: Duration,
    /// Of that, the handshake and the job-wide inputs.
    pub set_up: Duration,
    /// From the first message until the last result was given, or the last rows were done, without the wiping and closing that follow.
    pub results: Duration,
    /// Messages and bytes, over all lanes and peers.
    pub meters: Meters,
    /// The name of the run.
    pub trace: TraceId,
    /// Time in which lanes had nothing to do until a peer's message came, over all lanes. Of a run in one process, in which the
    /// participants take turns, the others' turns count.
    pub waited: Duration,
    /// Time in which devices worked, over all lanes: measured for the first batches, extrapolated from an eighth of the others.
    pub busy: Duration,
    /// Where its oblivious transfers came from, if it took part in any.
    pub transfers: Option<TransfersFrom>,
}

/// Where the transfers come from that a session begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransfersFrom {
    /// Points of a curve, in this session.
    Curves,
    /// The session before, between the same two parties.
    Cache,
}

/// A lane that has waited for less is not worth a word.
pub(crate) const NOTED_AFTER: Duration = Duration::from_millis(20);

/// What is not the case now.
const NOT: u64 = u64::MAX;

/// Counters of one lane, written by it alone.
pub(crate) struct LaneStatus {
    sent: AtomicU64,
    received: AtomicU64,
    waited: AtomicU64,
    busy: AtomicU64,
    /// Cycles that are over in chunks in flight, of all their rows.
    passed: AtomicU64,
    /// Since when it waits, in nanoseconds after the start.
    since: AtomicU64,
    waits: Mutex<Vec<Wait>>,
    /// Whether no chunk is left for it to begin.
    in_last_chunk: AtomicBool,
}

impl LaneStatus {
    fn new() -> Self {
        LaneStatus {
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            since: AtomicU64::new(NOT),
            waits: Mutex::new(Vec::new()),
            in_last_chunk: AtomicBool::new(false),
        }
    }

    pub(crate) fn moved(&self, meters: Meters, waited: Duration, busy: Duration) {
        self.sent.store(meters.payload_sent, Ordering::Relaxed);
        self.received
            .store(meters.payload_received, Ordering::Relaxed);
        self.waited
            .store(waited.as_nanos() as u64, Ordering::Relaxed);
        self.busy.store(busy.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn have_passed(&self, cycles: u64) {
        self.passed.store(cycles, Ordering::Relaxed);
    }

    pub(crate) fn goes_on(&self) {
        self.since.store(NOT, Ordering::Relaxed);
    }

    /// The lane is finished: whether the participant waits is for its other lanes to say.
    pub(crate) fn over(&self) {
        self.waits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.since.store(0, Ordering::Relaxed);
    }
}

/// The status of one participant over all its lanes.
pub(crate) struct Status {
    me: Peer,
    of: u64,
    cycles: u64,
    started: Instant,
    phase: AtomicU8,
    trace: OnceLock<TraceId>,
    may_have_opened: AtomicBool,
    lanes: Box<[LaneStatus]>,
}

impl Status {
    /// Of so many rows, and cycles of each.
    pub(crate) fn new(me: Peer, lanes: u16, (of, cycles): (u64, u64)) -> Self {
        Status {
            me,
            of,
            cycles,
            started: Instant::now(),
            phase: AtomicU8::new(Phase::Handshake as u8),
            trace: OnceLock::new(),
            may_have_opened: AtomicBool::new(false),
            lanes: (0..lanes).map(|_| LaneStatus::new()).collect(),
        }
    }

    pub(crate) fn lane(&self, lane: u16) -> &LaneStatus {
        &self.lanes[usize::from(lane)]
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// A message is about to be sent after which the others may open a value, or a part of one has come.
    pub(crate) fn opens(&self) {
        self.may_have_opened.store(true, Ordering::Relaxed);
    }

    /// No chunk is left for this lane to begin. When that is so of all lanes, what the others need for the sums may be sent.
    pub(crate) fn in_last_chunk(&self, lane: u16) {
        self.lane(lane).in_last_chunk.store(true, Ordering::Relaxed);
    }

    pub(crate) fn name(&self, session: SessionId) -> TraceId {
        *self.trace.get_or_init(|| TraceId::of(session))
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// A lane has been waiting since `since`.
    pub(crate) fn note(&self, lane: u16, since: Instant, waits: Vec<Wait>) {
        let lane = self.lane(lane);
        *lane.waits.lock().unwrap_or_else(PoisonError::into_inner) = waits;
        let since = since.saturating_duration_since(self.started);
        lane.since.store(since.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn progress(&self, rows: u64) -> Progress {
        let sum = |of: fn(&LaneStatus) -> &AtomicU64| -> u64 {
            self.lanes
                .iter()
                .map(|l| of(l).load(Ordering::Relaxed))
                .sum()
        };
        let all = self.of.saturating_mul(self.cycles);
        let finished = rows.saturating_mul(self.cycles);
        let phase = Phase::ALL[usize::from(self.phase.load(Ordering::Relaxed))];
        let mut progress = Progress {
            rows,
            cycles: self.cycles,
            passed: finished.saturating_add(sum(|l| &l.passed)).min(all),
            phase,
            sent: sum(|l| &l.sent),
            received: sum(|l| &l.received),
            trace: self.trace.get().copied(),
            may_have_opened: self.may_have_opened.load(Ordering::Relaxed)
                || (self.lanes.iter()).all(|lane| lane.in_last_chunk.load(Ordering::Relaxed)),
            ..Progress::new(self.me, self.of)
        };
        // It waits if none of its lanes moves, since the last of them stopped.
        let since = self.lanes.iter().map(|l| l.since.load(Ordering::Relaxed));
        if let Some(since) = since
            .max()
            .filter(|since| *since != NOT && phase != Phase::Done)
        {
            let since = Duration::from_nanos(since);
            progress.waiting = self.elapsed().saturating_sub(since);
            for lane in &self.lanes {
                let waits = lane.waits.lock().unwrap_or_else(PoisonError::into_inner);
                progress.waits.extend(waits.iter().copied());
            }
        }
        progress
    }

    /// Time that lanes waited and that their devices worked.
    pub(crate) fn times(&self) -> (Duration, Duration) {
        let sum = |of: fn(&LaneStatus) -> &AtomicU64| {
            let nanos = self.lanes.iter().map(|l| of(l).load(Ordering::Relaxed));
            Duration::from_nanos(nanos.sum())
        };
        (sum(|l| &l.waited), sum(|l| &l.busy))
    }

    /// The name of the run; zeros if it has none.
    pub(crate) fn trace(&self) -> TraceId {
        self.trace.get().copied().unwrap_or(TraceId([0; 16]))
    }
}

#[cfg(test)]
mod tests {
    use veil_session::{Channel, Frame, PartyId, StepId};

    use super::*;

    const ME: Peer = Peer::Party(PartyId::THREE[0]);

    fn wait(lane: u16) -> Wait {
        let frame = Frame {
            epoch: 0,
            lane,
            chunk: 3,
            rows: 8,
        };
        let step = StepId { place: 9, cycle: 0 };
        Wait {
            peer: Peer::Party(PartyId::THREE[2]),
            at: Channel {
                frame,
                step,
                part: 0,
            },
            sending: false,
        }
    }

    #[test]
    fn a_participant_waits_when_all_its_lanes_do() {
        let status = Status::new(ME, 2, (100, 3));
        let now = Instant::now();
        status.note(0, now, vec![wait(0)]);
        assert_eq!(status.progress(7), {
            Progress {
                rows: 7,
                cycles: 3,
                passed: 21,
                phase: Phase::Handshake,
                ..Progress::new(ME, 100)
            }
        });
        status.note(1, now, vec![wait(1)]);
        std::thread::sleep(Duration::from_millis(2));
        let progress = status.progress(7);
        assert_eq!(progress.waits, [wait(0), wait(1)]);
        assert!(progress.waiting >= Duration::from_millis(2));
        status.lane(0).goes_on();
        assert_eq!(status.progress(7).waits, []);
        // Two cycles of sixteen rows; no more than there are.
        status.lane(1).have_passed(32);
        assert_eq!(status.progress(7).passed, 21 + 32);
        assert_eq!(status.progress(95).passed, 300);
        status.lane(0).over();
        assert_eq!(status.progress(7).waits, [wait(1)]);
        status.enter(Phase::Done);
        assert_eq!(status.progress(7).waiting, Duration::ZERO);
    }

    #[test]
    fn sums_may_be_open_when_all_lanes_are_in_their_last_chunks() {
        let status = Status::new(ME, 2, (100, 1));
        status.in_last_chunk(1);
        status.in_last_chunk(1);
        assert!(!status.progress(0).may_have_opened);
        status.in_last_chunk(0);
        assert!(status.progress(0).may_have_opened);
        let status = Status::new(ME, 2, (100, 1));
        status.opens();
        assert!(status.progress(0).may_have_opened);
    }

    #[test]
    fn a_trace_id_is_a_digest_of_the_session() {
        // printf 'veilworks trace' | cat - <(head -c 32 /dev/zero) | sha256sum
        assert_eq!(
            TraceId::of(SessionId([0; 32])).to_string(),
            "1ebc4027660b06bdd1735cebc7d834eb"
        );
    }

    #[test]
    fn phases_have_names() {
        for phase in Phase::ALL {
            assert_eq!(Phase::from_name(phase.name()), Some(phase));
            assert_eq!(Phase::ALL[phase as usize], phase);
        }
        assert_eq!(Phase::from_name("lunch"), None);
    }
}
