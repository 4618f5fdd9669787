//! The request to a planning process, and its answer.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use veil_session::PlanHash;

use crate::approvals::plan_of;
use crate::control::{self, Unreadable};
use crate::policy::Facts;
use crate::stock::Takes;

/// Under which terms a job is planned: all that its plan depends on at this party, beside the job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// The name of this participant.
    pub(crate) name: String,
    /// Rows of a job, at most.
    pub(crate) rows: u64,
    /// Lanes of a job, at most.
    pub(crate) lanes: u16,
    /// Working memory of a job, at most, in MiB.
    pub(crate) memory_mib: u64,
    /// Whether columns of queries may wait on the disk.
    pub(crate) spill: bool,
    /// Chunks in flight per lane.
    pub(crate) window: usize,
    /// What carries the bytes of jobs, as `--link` has it.
    pub(crate) link: String,
    /// Whether the job was taken in before: its paths, which no process follows, are no reason to refuse it any more.
    pub(crate) kept: bool,
}

/// What is known of a job that was planned: all by which it is decided, shown and waited for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Planned {
    /// All digits of its plan hash.
    pub(crate) plan: String,
    /// Those of the plans of its stages.
    pub(crate) stages: Vec<String>,
    /// Its name.
    pub(crate) name: String,
    /// The name of its input stage, if it is durable: what the log says of that.
    pub(crate) input: String,
    /// Its rows.
    pub(crate) rows: u64,
    /// Names of its participants.
    pub(crate) participants: Vec<String>,
    /// Names of its parties.
    pub(crate) parties: Vec<String>,
    /// As what this participant takes part.
    pub(crate) roles: BTreeSet<String>,
    /// What it asks this participant for: its blocks, or its input ports.
    pub(crate) asks: Vec<String>,
    /// What it does.
    pub(crate) facts: Facts,
    /// What is opened to whom, a line each.
    pub(crate) opened: String,
    /// Bytes of working memory that a run takes here, at most.
    pub(crate) need: u64,
    /// Those of them that the job and its plans take as soon as they are made.
    pub(crate) held: u64,
    /// Products of all rows, as many bits each as its ring has: its size, the same on every machine.
    pub(crate) work: u64,
    /// What it takes from the stock of this party, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) takes: Option<Takes>,
}

impl Planned {
    /// Its plan hash.
    pub(crate) fn hash(&self) -> Option<PlanHash> {
        plan_of(&self.plan)
    }

    /// The hashes of its stages.
    pub(crate) fn stage_hashes(&self) -> Vec<PlanHash> {
        self.stages
            .iter()
            .filter_map(|stage| plan_of(stage))
            .collect()
    }

    /// Whether it has digits where there must be some. A planner is confined, and what it answers is looked at.
    fn is_sound(&self) -> bool {
        self.hash().is_some()
            && self.stage_hashes().len() == self.stages.len()
            && !self.participants.is_empty()
            && self.held <= self.need
    }
}

/// What a planning process answers.
#[derive(Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Answer {
    /// It could be planned.
    Planned(Box<Planned>),
    /// It is refused: why, in words that the sender may read.
    Refused {
        /// Why.
        why: String,
    },
    /// Nothing was to be planned: how the process is confined.
    Confined {
        /// How.
        by: String,
    },
}

impl Answer {
    /// Reads what a planning process wrote.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let answer = control::decode(bytes)?;
        match &answer {
            Answer::Planned(planned) if !planned.is_sound() => {
                Err(Unreadable::Garbled("its plan makes no sense".into()))
            }
            _ => Ok(answer),
        }
    }
}

/// The bytes for a planning process: its terms, preceded by their length, and the request as it came.
pub(super) fn errand(terms: &Terms, request: &[u8]) -> Vec<u8> {
    let terms = serde_json::to_vec(terms).expect("strings and numbers are JSON");
    let mut bytes = Vec::with_capacity(4 + terms.len() + request.len());
    bytes.extend_from_slice(&(terms.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&terms);
    bytes.extend_from_slice(request);
    bytes
}

/// The terms and the request in such bytes; nothing if they are none.
pub(super) fn read_errand(bytes: &[u8]) -> Option<(Terms, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (terms, request) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((serde_json::from_slice(terms).ok()?, request))
}
