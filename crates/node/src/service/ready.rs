//! Whether jobs can be taken: that what they need can be read and written, now.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::ServiceState;
use crate::file;

/// Why no job can be taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Unready {
    #[error("it is stopping")]
    Stopping,
    #[error("the log takes no entry: {0}")]
    Log(String),
    #[error(
        "{} MiB free, {} MiB kept for running jobs (`disk_reserve` under [admission] in veil.toml)",
        free >> 20,
        reserve >> 20
    )]
    Disk { free: u64, reserve: u64 },
    #[error("{0}")]
    Sandbox(String),
    #[error("the policy cannot be read, and allows nothing: {0}")]
    Policy(String),
}

impl Unready {
    /// Whether the same is in the way, whatever the numbers.
    fn is_like(&self, other: &Self) -> bool {
        matches!((self, other), (Unready::Disk { .. }, Unready::Disk { .. })) || self == other
    }
}

/// What is in the way, all of it, one after the other.
pub(super) fn in_a_line(unready: &[Unready]) -> String {
    let texts: Vec<String> = unready.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

impl ServiceState {
    /// All that is in the way of a job.
    pub(super) fn unready(&self) -> Vec<Unready> {
        let stopping = self.stopping.load(Ordering::Relaxed);
        let log = self.home.log().writable().err();
        let policy = self.home.policy().err();
        self.metrics.set_readable(log.is_none(), policy.is_none());
        let stopping = stopping.then_some(Unready::Stopping);
        let log = log.map(|error| Unready::Log(error.to_string()));
        let policy = policy.map(|error| Unready::Policy(error.to_string()));
        let sandbox = self.planner.confinement().err();
        let sandbox = sandbox.map(|why| Unready::Sandbox(why.to_owned()));
        [stopping, log, self.no_room(), sandbox, policy]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Whether the disk has no more room than running jobs are to have.
    pub(super) fn no_room(&self) -> Option<Unready> {
        let reserve = self.home.settings().admission.disk_reserve;
        // What cannot be measured is full at the first write, which says so.
        let free = file::free_bytes(self.home.path()).ok()?;
        self.metrics.set_disk(free);
        (free < reserve).then_some(Unready::Disk { free, reserve })
    }
}

/// How often it is looked at without being asked.
const EVERY: Duration = Duration::from_secs(2);

/// What was said of what is in the way, and when it was looked at.
#[derive(Default)]
pub(super) struct Said {
    said: Vec<Unready>,
    at: Option<Instant>,
}

impl Said {
    /// Whether it was not looked at for a while.
    pub(super) fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= EVERY)
    }

    /// Says it in the log lines, if it is not as it was.
    pub(super) fn say(&mut self, unready: Vec<Unready>) {
        let known = |list: &[Unready], one: &Unready| list.iter().any(|other| other.is_like(one));
        for one in unready.iter().filter(|one| !known(&self.said, one)) {
            tracing::error!(why = %one, "not ready");
        }
        if unready.is_empty() && !self.said.is_empty() {
            tracing::info!("ready again");
        }
        self.said = unready;
        self.at = Some(Instant::now());
    }
}
