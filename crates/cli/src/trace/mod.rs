//! Traces: what a run did and when, as JSON lines; and what can be read from them.
//!
//! A file holds one or more sections. A section begins with a header that names the run and its participants; a line per round
//! follows. Sections of one run may lie in one file or in several. `docs/seeing.md` describes every field.

pub(crate) mod draw;
pub(crate) mod gather;
pub(crate) mod merge;
pub(crate) mod read;
pub(crate) mod summary;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use serde::{Deserialize, Serialize};

/// Version of the format: of headers, which say what the other lines are.
pub(crate) const VERSION: u32 = 1;

/// The first line of a section.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq)]
pub(crate) struct Header {
    /// Version of the format.
    pub(crate) veil_trace: u32,
    /// Name of the job.
    pub(crate) job: String,
    /// Plan hash, in hexadecimal.
    pub(crate) plan: String,
    /// Trace id of the run.
    pub(crate) trace: String,
    /// Protocol.
    pub(crate) protocol: String,
    /// Release that wrote the trace.
    pub(crate) version: String,
    /// Rows of the job.
    pub(crate) rows: u64,
    /// Rows of a full chunk.
    pub(crate) chunk_rows: u32,
    /// Lanes.
    pub(crate) lanes: u16,
    /// The machine's clock at time 0 of the section: nanoseconds since 1970 in UTC.
    pub(crate) clock_ns: u64,
    /// All participants of the run; lines name them by their place in this list.
    pub(crate) participants: Vec<Participant>,
}

/// A participant, as a header names it.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub(crate) struct Participant {
    /// Its name in the job.
    pub(crate) name: String,
    /// `party`, `owner` or `recipient`.
    pub(crate) role: String,
}

/// A round of one chunk at one participant.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Whose round.
    pub(crate) by: u32,
    /// Lane.
    pub(crate) lane: u16,
    /// Chunk as in messages: 0 is the set-up, the one after the last the totals.
    pub(crate) chunk: u32,
    /// Rows of the chunk.
    pub(crate) rows: u32,
    /// `set-up`, `inputs`, `layers`, `agree`, `open` or `open totals`.
    pub(crate) task: String,
    /// Which round of the task, from 0; of `layers`, the layer.
    pub(crate) index: u32,
    /// Place of the round in the plan.
    pub(crate) place: u32,
    /// Commands and how many items of columns they write: `["product", 96]`.
    pub(crate) commands: Vec<(String, u64)>,
    /// Nanoseconds after time 0: submitted, local commands done, posted, landed, finished.
    pub(crate) t: [u64; 5],
    /// Messages: to whom, which of the round, payload bytes.
    pub(crate) sent: Vec<(u32, u16, u64)>,
    /// Messages: from whom, which of the round, payload bytes, when it landed.
    pub(crate) received: Vec<(u32, u16, u64, u64)>,
}

impl Event {
    /// Whom the round waited for last, and for how long after its own messages were posted.
    pub(crate) fn wait(&self) -> Option<(u32, u64)> {
        let last = self.received.iter().max_by_key(|(_, _, _, at)| *at)?;
        let waited = last.3.saturating_sub(self.t[2]);
        (waited > 0).then_some((last.0, waited))
    }

    /// What the round is, for people.
    pub(crate) fn what(&self) -> String {
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
