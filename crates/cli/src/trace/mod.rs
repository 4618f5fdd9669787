//! Traces: what a run did and when, as JSON lines. `veil-lab trace` reads them.
//!
//! A file holds one or more sections. A section begins with a header that names the run and its participants; a line per round
//! follows. Sections of one run may lie in one file or in several. `docs/seeing.md` describes every field.

pub(crate) mod gather;
mod write;

use serde::{Deserialize, Serialize};

pub use write::TraceFile;

/// Version of the format: of headers, which say what the other lines are.
pub const VERSION: u32 = 1;

/// The first line of a section.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
pub struct Header {
    /// Version of the format.
    pub veil_trace: u32,
    /// Name of the job.
    pub job: String,
    /// Plan hash, in hexadecimal.
    pub plan: String,
    /// Trace id of the run.
    pub trace: String,
    /// Protocol.
    pub protocol: String,
    /// Release that wrote the trace.
    pub version: String,
    /// Rows of the job.
    pub rows: u64,
    /// Rows of a full chunk.
    pub chunk_rows: u32,
    /// Lanes.
    pub lanes: u16,
    /// The machine's clock at time 0 of the section: nanoseconds since 1970 in UTC.
    pub clock_ns: u64,
    /// All participants of the run; lines name them by their place in this list.
    pub participants: Vec<Participant>,
}

/// A participant, as a header names it.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// Its name in the job.
    pub name: String,
    /// `party`, `owner` or `recipient`.
    pub role: String,
}

/// A round of one chunk at one participant.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whose round.
    pub by: u32,
    /// Lane.
    pub lane: u16,
    /// Chunk as in messages: 0 is the set-up, the one after the last the totals.
    pub chunk: u32,
    /// Rows of the chunk.
    pub rows: u32,
    /// `set-up`, `inputs`, `layers`, `agree`, `open` or `open totals`.
    pub task: String,
    /// Which round of the task, from 0; of `layers`, the layer.
    pub index: u32,
    /// Place of the round in the plan.
    pub place: u32,
    /// Commands and how many items of columns they write: `["product", 96]`.
    pub commands: Vec<(String, u64)>,
    /// Nanoseconds after time 0: submitted, local commands done, posted, landed, finished.
    pub t: [u64; 5],
    /// Messages: to whom, which of the round, payload bytes.
    pub sent: Vec<(u32, u16, u64)>,
    /// Messages: from whom, which of the round, payload bytes, when it landed.
    pub received: Vec<(u32, u16, u64, u64)>,
}

impl Event {
    /// Whom the round waited for last, and for how long after its own messages were posted.
    pub fn wait(&self) -> Option<(u32, u64)> {
        let last = self.received.iter().max_by_key(|(_, _, _, at)| *at)?;
        let waited = last.3.saturating_sub(self.t[2]);
        (waited > 0).then_some((last.0, waited))
    }

    /// What the round is, for people.
    pub fn what(&self) -> String {
        match self.task.as_str() {
            "layers" => format!(
                "layer {} of chunk {}",
                u64::from(self.index) + 1,
                self.chunk
            ),
            "set-up" => format!("set-up, round {}", u64::from(self.index) + 1),
            "open totals" => "opening of totals".into(),
            "agree" => format!("agreement to open, chunk {}", self.chunk),
            "open" => format!("opening of chunk {}", self.chunk),
            task => format!("{task} of chunk {}", self.chunk),
        }
    }
}
