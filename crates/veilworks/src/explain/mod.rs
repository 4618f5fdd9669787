//! What a job opens and costs, before anything runs.
//!
//! An explanation is a function of a plan and of a table of rates, and of nothing else: bytes and rounds are by the formulas of the protocol, times are
//! estimates. `veil explain` prints it, and so does [`Job::explain`](crate::Job::explain).

pub mod estimate;
mod parts;
mod query;
mod rates;
pub mod words;

use serde::Serialize;
use veil_link::shape::Profile;
use veil_program::Job;
use veil_protocol::Plan;
use veil_session::Peer;

use estimate::Run;
pub use query::{Explained, of_queries};
pub use rates::{Found, IN_HOME, KINDS, Kind, Origin, Rates, RatesError, VERSION, Work, machine};

/// How many numbers are opened at most, and the limit that the job states.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct Numbers {
    /// At most so many.
    pub at_most: u64,
    /// The limit.
    pub limit: u64,
}

impl Numbers {
    /// Of a job; nothing where it states no limit.
    pub fn of(job: &Job) -> Option<Self> {
        let (at_most, limit) = job.opened_numbers()?;
        Some(Self { at_most, limit })
    }

    /// For people.
    pub fn text(self) -> String {
        format!(
            "at most {}; `most_opened`, the job's limit, is {}",
            words::count(self.at_most, "number"),
            self.limit
        )
    }
}

/// One participant's part.
#[derive(Serialize, Debug)]
pub struct Participant {
    /// Its name.
    pub name: String,
    /// Its role, in a word.
    pub role: &'static str,
    /// Messages that it sends.
    pub messages: u64,
    /// Payload.
    pub bytes: u64,
    /// Payload and message headers.
    pub framed: u64,
    /// Working memory, at most.
    pub memory_bytes: u64,
    /// The same with columns of queries on the disk that no present pass takes, where that is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_memory_bytes: Option<u64>,
    /// Seconds of one core, as estimated.
    pub cpu_seconds: f64,
}

/// How long it takes over a network.
#[derive(Serialize, Debug)]
pub struct Estimate {
    /// The network, in a word.
    pub net: &'static str,
    /// The network.
    pub description: String,
    /// Seconds.
    pub seconds: f64,
}

/// How long it takes on one machine, and over networks.
pub fn estimates(plan: &Plan, run: &Run, rates: &Rates, net: Option<Profile>) -> Vec<Estimate> {
    let over = |name, profile: Profile| Estimate {
        net: name,
        description: format!("{profile}, a machine per participant"),
        seconds: run.over(plan, rates, profile),
    };
    match net {
        Some(Profile::LAN) => vec![over("lan", Profile::LAN)],
        Some(profile) => vec![over("wan", profile)],
        None => vec![
            Estimate {
                net: "loopback",
                description: "all participants on one machine, over TLS".into(),
                seconds: run.loopback(plan, rates),
            },
            over("lan", Profile::LAN),
            over("wan", Profile::WAN),
        ],
    }
}

/// What a participant is, in a word.
pub fn role(peer: Peer) -> &'static str {
    match peer {
        Peer::Party(_) => "party",
        Peer::Owner(_) => "owner",
        Peer::Recipient(_) => "recipient",
    }
}
