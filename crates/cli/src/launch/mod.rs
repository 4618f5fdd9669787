//! Running jobs: in this process, in a process per participant, or as one participant of a deployment.

pub(crate) mod ahead;
pub(crate) mod durable;
pub mod inspect;
pub(crate) mod participant;
pub(crate) mod processes;
pub(crate) mod stores;
pub(crate) mod threads;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use veil_engine::Report;
use veil_program::Output;
use veil_protocol::Plan;
use veil_session::Peer;

use crate::devices::Devices;
use crate::ordered::Ordered;
use crate::prepare;

/// What a run came to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// One for every recipient.
    pub answers: Vec<Answer>,
    /// What the run took at each participant.
    pub participants: Vec<Took>,
    /// The order of gates, where they are garbled, as a participant of a deployment knows it.
    #[serde(flatten)]
    pub(crate) ordered: Option<Ordered>,
    /// What crossed the network of nodes in simulation, if parties were such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Crossed>,
}

/// What a run took of a network in simulation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Crossed {
    /// Cycles in which messages were under way.
    pub cycles: u64,
    /// The clock of the cores, in MHz.
    #[serde(skip)]
    pub clock_mhz: f64,
    /// Words of 16 bytes that all nodes sent: messages, headers, seals and answers.
    pub words: u64,
    /// What nodes computed without their hosts, if they were to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headless: Option<Headless>,
}

/// Circuits that nodes computed without their hosts, each started by the host of node 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Headless {
    /// How many.
    pub circuits: u64,
    /// Rounds that they were.
    pub rounds: u64,
    /// Cycles that they took.
    pub cycles: u64,
    /// Commands and completions of the host of each node meanwhile, whatever they were of.
    pub hosts: Vec<[u64; 2]>,
}

/// What one recipient got.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Its name.
    pub recipient: String,
    /// Where its files are, if they were kept.
    pub folder: Option<PathBuf>,
    /// The result of a job with statistics or queries.
    pub statistics: Option<Statistics>,
    /// What its files may not say themselves, in sentences: CSV has no place for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A result of a job with statistics or queries, for machines and for people.
#[derive(Debug, Serialize, Deserialize)]
pub struct Statistics {
    /// As in `result.json`.
    pub json: serde_json::Value,
    /// As in `result.txt`.
    pub text: String,
}

/// What a run took at one participant.
#[derive(Debug, Serialize, Deserialize)]
pub struct Took {
    /// Its name.
    pub name: String,
    /// `party`, `owner` or `recipient`.
    pub role: String,
    /// From the first message to the last.
    pub seconds: f64,
    /// Of these, from the end of the set-up until the last result was given, or the last rows were done.
    #[serde(default)]
    pub online_seconds: f64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Bytes sent, with headers, before encryption.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Largest resident memory of its process, in bytes, if it had one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Clock cycles of its cores, if it computed on some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_cycles: Option<u64>,
}

impl Answer {
    /// Nothing where there is nothing to read.
    fn new(plan: &Plan, peer: Peer, folder: Option<PathBuf>, output: &Output) -> Option<Self> {
        if matches!(output, Output::Zeros(_)) {
            return None;
        }
        let statistics = match (output.statistics(), output.queries()) {
            (None, Some(queries)) => {
                queries
                    .json()
                    .zip(queries.text())
                    .map(|(json, text)| Statistics {
                        json: serde_json::from_str(&json).unwrap_or_default(),
                        text,
                    })
            }
            (statistics, _) => statistics.map(|result| Statistics {
                json: serde_json::to_value(result).unwrap_or_default(),
                text: result.to_string(),
            }),
        };
        let warnings = output.queries().map(|queries| queries.incomplete());
        Some(Answer {
            warnings: warnings.unwrap_or_default(),
            recipient: veil_engine::name_of(plan, peer).to_owned(),
            folder,
            statistics,
        })
    }

    /// Says on standard error what the files of the result may not say.
    pub(crate) fn warn(&self) {
        for warning in &self.warnings {
            eprintln!("warning: {warning}");
        }
    }
}

impl Took {
    fn new(plan: &Plan, peer: Peer, report: &Report, devices: &Devices) -> Self {
        Took {
            name: veil_engine::name_of(plan, peer).to_owned(),
            role: prepare::role(peer).to_owned(),
            seconds: report.elapsed.as_secs_f64(),
            online_seconds: report.results.saturating_sub(report.set_up).as_secs_f64(),
            messages_sent: report.meters.messages_sent,
            bytes_sent: report.meters.bytes_sent,
            bytes_received: report.meters.payload_received,
            peak_bytes: None,
            core_cycles: devices.cycles(plan, peer),
        }
    }
}
