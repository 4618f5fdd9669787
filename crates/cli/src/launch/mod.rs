//! Running jobs: in this process, in a process per participant, or as one participant of a deployment.

pub(crate) mod durable;
pub(crate) mod inspect;
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

use crate::devices::DevicesArgs;
use crate::ordered::Ordered;
use crate::prepare;

/// What a run came to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// One for every recipient.
    pub(crate) answers: Vec<Answer>,
    /// What the run took at each participant.
    pub(crate) participants: Vec<Took>,
    /// The order of gates, where they are garbled, as a participant of a deployment knows it.
    #[serde(flatten)]
    pub(crate) ordered: Option<Ordered>,
    /// What crossed the network of nodes in simulation, if parties were such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<Crossed>,
}

/// What a run took of a network in simulation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Crossed {
    /// Cycles in which messages were under way, at 275 MHz.
    pub(crate) cycles: u64,
    /// Words of 16 bytes that all nodes sent: messages, headers, seals and answers.
    pub(crate) words: u64,
    /// What nodes computed without their hosts, if they were to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) headless: Option<Headless>,
}

/// Circuits that nodes computed without their hosts, each started by the host of node 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Headless {
    /// How many.
    pub(crate) circuits: u64,
    /// Rounds that they were.
    pub(crate) rounds: u64,
    /// Cycles that they took.
    pub(crate) cycles: u64,
    /// Commands and completions of the host of each node meanwhile, whatever they were of.
    pub(crate) hosts: Vec<[u64; 2]>,
}

/// What one recipient got.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Its name.
    pub(crate) recipient: String,
    /// Where its files are, if they were kept.
    pub(crate) folder: Option<PathBuf>,
    /// The result of a statistics job.
    pub(crate) statistics: Option<Statistics>,
}

/// A result of a statistics job, for machines and for people.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Statistics {
    /// As in `result.json`.
    pub(crate) json: serde_json::Value,
    /// As in `result.txt`.
    pub(crate) text: String,
}

/// What a run took at one participant.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Took {
    /// Its name.
    pub(crate) name: String,
    /// `party`, `owner` or `recipient`.
    pub(crate) role: String,
    /// From the first message to the last.
    pub(crate) seconds: f64,
    /// Of these, from the end of the set-up until the last result was given, or the last rows were done.
    #[serde(default)]
    pub(crate) online_seconds: f64,
    /// Messages sent.
    pub(crate) messages_sent: u64,
    /// Bytes sent, with headers, before encryption.
    pub(crate) bytes_sent: u64,
    /// Payload bytes received.
    pub(crate) bytes_received: u64,
    /// Largest resident memory of its process, in bytes, if it had one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) peak_bytes: Option<u64>,
    /// Clock cycles of its cores, if it computed on some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) core_cycles: Option<u64>,
}

impl Answer {
    /// Nothing where there is nothing to read.
    fn new(plan: &Plan, peer: Peer, folder: Option<PathBuf>, output: &Output) -> Option<Self> {
        if matches!(output, Output::Zeros(_)) {
            return None;
        }
        let statistics = output.statistics().map(|result| Statistics {
            json: serde_json::to_value(result).unwrap_or_default(),
            text: result.to_string(),
        });
        Some(Answer {
            recipient: veil_engine::name_of(plan, peer).to_owned(),
            folder,
            statistics,
        })
    }
}

impl Took {
    fn new(plan: &Plan, peer: Peer, report: &Report, devices: &DevicesArgs) -> Self {
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
