//! Writing a trace while a run goes on.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use veil_device::{Command, Op};
use veil_engine::{Recorder, RoundEvent, TraceId};
use veil_protocol::{Plan, Task};
use veil_session::Peer;

use super::{Header, Participant, VERSION};
use crate::failure::{Code, Failure};
use crate::{output, prepare};

/// What is held back before it is written: few system calls, and little to lose.
const BUFFER: usize = 1 << 18;

/// A trace file that a run writes.
pub struct TraceFile {
    path: PathBuf,
    started: Instant,
    peers: Vec<Peer>,
    state: Mutex<State>,
}

struct State {
    out: BufWriter<File>,
    /// A line on its way.
    line: String,
    /// The header, but for the trace id.
    header: Header,
    headed: bool,
    failed: Option<io::Error>,
}

impl fmt::Debug for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TraceFile").field(&self.path).finish()
    }
}

impl TraceFile {
    /// Creates the file; nothing is in it before the session has a name.
    ///
    /// # Errors
    /// [`Code::Input`] if it cannot be created.
    pub fn create(path: &Path, plan: &Plan) -> Result<Self, Failure> {
        let file = create(path)?;
        let peers = veil_engine::participants(plan);
        // One right after the other: sections of several processes are drawn together by these clocks.
        let (clock, started) = (SystemTime::now(), Instant::now());
        let clock = clock.duration_since(UNIX_EPOCH);
        let header = Header {
            veil_trace: VERSION,
            job: plan.job.name.clone(),
            plan: output::hex(&plan.hash.0),
            trace: String::new(),
            protocol: veil_job::Word::word(plan.job.security.protocol).into(),
            version: env!("CARGO_PKG_VERSION").into(),
            rows: plan.job.rows(),
            chunk_rows: plan.chunk_rows,
            lanes: plan.lanes,
            clock_ns: clock.map_or(0, |since| since.as_nanos() as u64),
            participants: peers
                .iter()
                .map(|peer| Participant {
                    name: veil_engine::name_of(plan, *peer).to_owned(),
                    role: prepare::role(*peer).to_owned(),
                })
                .collect(),
        };
        Ok(TraceFile {
            path: path.to_owned(),
            started,
            peers,
            state: Mutex::new(State {
                out: BufWriter::with_capacity(BUFFER, file),
                line: String::new(),
                header,
                headed: false,
                failed: None,
            }),
        })
    }

    /// The run has this plan, which has the same participants.
    pub(crate) fn is_of(&self, plan: &Plan) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.header.plan = output::hex(&plan.hash.0);
        state.header.chunk_rows = plan.chunk_rows;
    }

    /// Writes what is held back.
    pub fn finish(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let flushed = state.out.flush();
        if let Some(error) = state.failed.take().or(flushed.err()) {
            not_complete(&self.path, &error);
        }
    }

    fn index(&self, peer: Peer) -> usize {
        // A stranger cannot be: links are to participants. It would show as one too many.
        let at = self.peers.iter().position(|other| *other == peer);
        at.unwrap_or(self.peers.len())
    }

    fn nanos(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.started).as_nanos() as u64
    }
}

/// Creates the file of a trace.
pub(super) fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| {
        let message = format!("cannot create the trace {}: {error}", path.display());
        Failure::new(Code::Input, message).help("choose another file: `--trace FILE`")
    })
}

/// A trace that could not be written is no reason to lose a result: it is said, and that is all.
pub(super) fn not_complete(path: &Path, error: &io::Error) {
    eprintln!(
        "the trace {} is not complete: {error}; the run itself is not affected",
        path.display()
    );
}

impl State {
    fn put(&mut self) {
        self.line.push('\n');
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(self.line.as_bytes())
        {
            self.failed = Some(error);
        }
        self.line.clear();
    }
}

impl Recorder for TraceFile {
    fn session(&self, _me: Peer, trace: TraceId) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Of a run in one process every participant says it; the section is theirs together.
        if std::mem::replace(&mut state.headed, true) {
            return;
        }
        let header = Header {
            trace: trace.to_string(),
            ..state.header.clone()
        };
        match serde_json::to_string(&header) {
            Ok(line) => {
                state.line = line;
                state.put();
            }
            Err(error) => state.failed = Some(error.into()),
        }
    }

    fn round(&self, event: &RoundEvent<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let line = &mut state.line;
        // By hand: all strings are ours, and a round may take less time than a serialiser does. Writing to a string cannot fail.
        let frame = event.frame;
        let _ = write!(
            line,
            "{{\"by\":{},\"lane\":{},\"chunk\":{},\"rows\":{},\"task\":\"{}\",\"index\":{},\"place\":{},\"commands\":[",
            self.index(event.me),
            frame.lane,
            frame.chunk,
            frame.rows,
            task(event.task),
            event.index,
            event.round.place,
        );
        let commands = event.round.local.iter().chain(&event.round.finish);
        for (k, command) in commands.enumerate() {
            let (name, items) = described(command);
            let _ = write!(line, "{}[\"{name}\",{items}]", comma(k));
        }
        let times = [
            event.began,
            event.computed,
            event.posted,
            event.landed,
            event.ended,
        ];
        line.push_str("],\"t\":[");
        for (k, at) in times.into_iter().enumerate() {
            let _ = write!(line, "{}{}", comma(k), self.nanos(at));
        }
        line.push_str("],\"sent\":[");
        for (k, (send, bytes)) in event.round.sends.iter().zip(event.sent).enumerate() {
            let to = self.index(send.peer);
            let _ = write!(line, "{}[{to},{},{bytes}]", comma(k), send.part);
        }
        line.push_str("],\"received\":[");
        for (k, (recv, (bytes, at))) in event.round.recvs.iter().zip(event.received).enumerate() {
            let (from, at) = (self.index(recv.peer), self.nanos(*at));
            let _ = write!(line, "{}[{from},{},{bytes},{at}]", comma(k), recv.part);
        }
        line.push_str("]}");
        state.put();
    }
}

fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

fn task(task: Task) -> &'static str {
    match task {
        Task::SetUp => "set-up",
        Task::Inputs { .. } => "inputs",
        Task::Layers => "layers",
        Task::Totals => "totals",
        Task::Agree => "agree",
        Task::Open(_) => "open",
        Task::OpenTotals(_) => "open totals",
    }
}

/// Name of a command, and items that it writes, or compares.
fn described(command: &Command) -> (&'static str, u64) {
    let items = |spans: &[veil_device::Span]| spans.iter().map(|s| u64::from(s.count)).sum();
    let written = items(&command.dst);
    match command.op {
        Op::Linear => ("linear", written),
        Op::Product(_) => ("product", written),
        Op::AddReceived { .. } => ("add received", items(&command.src)),
        Op::Publish => ("publish", items(&command.src)),
        Op::Random => ("random", written),
        Op::Combine { .. } => ("combine", written),
        Op::Permutation => ("permutation", written),
        Op::Permute { .. } => ("permute", written),
        Op::Invert => ("invert", written),
        Op::Rank(_) => ("rank", written),
        Op::MatMul(_) => ("product of matrices", written),
        Op::Hash { .. } => ("hash", written),
        Op::CheckEqual => ("check equal", items(&command.src) / 2),
        Op::Proof(_) => ("proof", written),
        Op::Garble { .. } => ("garble", written),
        Op::Evaluate { .. } => ("evaluate", items(&command.src)),
        Op::Encode { .. } => ("encode", written),
        Op::Colour => ("colour", written),
        Op::Repeat(ref repeat) => {
            let items = repeat.body.iter().map(|step| described(&step.command).1);
            ("repeat", items.sum::<u64>() * u64::from(repeat.count))
        }
        _ => ("other", written),
    }
}
