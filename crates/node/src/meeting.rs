//! Participants that have not come for a job, and reasons that hold one up: the questions of a waiting participant to the parties, and
//! their answers.
//!
//! A participant whose own data, disk or approval hold a job up says which of the three, and no more: a word of a list, never a reason.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use veil_engine::Progress;
use veil_link::tls::{Handler, Identity};
use veil_protocol::Plan;
use veil_session::Peer;

use crate::control::{self, Reply, Request};
use crate::home::{Home, hex};
use crate::jobs::{State, Status};
use crate::log::Event;
use crate::members::Members;
use crate::stages::ask_all;

/// The sentence that others read about a party whose own files hold it up: neither their contents nor their paths (rule R3).
pub const OWN_FILES: &str =
    "this party's own files do not allow it; its operator reads why with `veil jobs` there";

/// The reason that holds a participant up, as all participants of the job read it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldFor {
    /// Its own data cannot be used as they are.
    Data,
    /// It has no room for them.
    Disk,
    /// It has not approved the job.
    Approval,
    /// Something that a later release can name.
    #[serde(other)]
    Other,
}

impl HeldFor {
    /// The sentence that others read: always the same.
    pub const fn sentence(self) -> &'static str {
        match self {
            HeldFor::Data => "its data are being corrected",
            HeldFor::Disk => "it has to make room",
            HeldFor::Approval => "it has not approved the job",
            HeldFor::Other => "it is not ready",
        }
    }
}

/// One party's answer about a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// It does not answer the question.
    Nothing,
    /// It does not know the job.
    Unknown,
    /// How it is there.
    Is(Box<Status>),
}

/// The parties of a job, as one of its participants reaches them.
#[derive(Clone)]
pub struct Parties {
    identity: Arc<Identity>,
    members: Arc<Members>,
    names: Vec<String>,
    plan: String,
}

impl Parties {
    /// The parties of `plan`, without the participant itself.
    pub fn of(home: &Home, plan: &Plan) -> Self {
        let own = &home.settings().name;
        let others = plan.job.parties.iter().filter(|name| *name != own);
        Parties {
            identity: home.identity(),
            members: home.members(),
            names: others.cloned().collect(),
            plan: hex(&plan.hash.0),
        }
    }

    /// The answer of each party about the job, within so much time.
    pub fn ask(&self, within: Duration) -> Vec<(String, Said)> {
        let replies = self.all(&Request::Jobs {}, within).into_iter();
        let said = replies.map(|reply| match reply {
            Some(Reply::Jobs { jobs }) => jobs
                .into_iter()
                .find(|job| job.plan == self.plan)
                .map_or(Said::Unknown, |job| Said::Is(Box::new(job))),
            _ => Said::Nothing,
        });
        self.names.iter().cloned().zip(said).collect()
    }

    /// Tells them the reason that holds this participant up. A party that does not hear it waits without knowing why.
    pub fn tell(&self, why: HeldFor, within: Duration) {
        let plan = self.plan.clone();
        self.all(&Request::Held { plan, why }, within);
    }

    fn all(&self, request: &Request, within: Duration) -> Vec<Option<Reply>> {
        let names = self.names.iter().map(String::as_str);
        let replies = ask_all(&self.identity, &self.members, names, request, within);
        replies.into_iter().map(Result::ok).collect()
    }
}

/// The status of the only job of a party in the foreground, for the job's participants.
#[derive(Clone)]
pub struct Foreground(Arc<Mutex<Status>>);

impl Foreground {
    /// Before any participant is there.
    pub fn new(plan: &Plan) -> Self {
        let status = Status {
            state: State::Meeting,
            ..Status::new(
                Event::plan(plan.hash),
                plan.job.name.clone(),
                plan.job.rows(),
            )
        };
        Foreground(Arc::new(Mutex::new(status)))
    }

    fn with(&self, change: impl FnOnce(&mut Status)) {
        // Every change leaves it whole.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// These are missing.
    pub fn misses(&self, plan: &Plan, peers: &[Peer]) {
        self.with(|status| status.misses(plan, peers));
    }

    /// How far the run is.
    pub fn goes(&self, plan: &Plan, progress: &Progress) {
        self.with(|status| {
            status.state = State::Running;
            status.goes(plan, progress);
        });
    }

    /// Answers who asks how the job is; everything else goes to `others`.
    pub fn handler(&self, others: Handler) -> Handler {
        let status = Arc::clone(&self.0);
        Arc::new(move |caller, request| {
            if let Ok(Request::Jobs {}) = control::decode(request) {
                let status = status.lock().unwrap_or_else(PoisonError::into_inner);
                let jobs = vec![status.clone()];
                return control::encode(&Reply::Jobs { jobs });
            }
            others(caller, request)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_party_up_is_a_word_and_a_later_one_is_read_as_something() {
        for (word, held) in [
            ("data", HeldFor::Data),
            ("disk", HeldFor::Disk),
            ("approval", HeldFor::Approval),
            ("licence", HeldFor::Other),
        ] {
            let read: HeldFor = serde_json::from_str(&format!("\"{word}\"")).unwrap();
            assert_eq!(read, held);
        }
        let text = "{\"version\":1,\"ask\":\"held\",\"plan\":\"ab\",\"why\":\"row 12: 99\"}";
        let read = control::decode::<Request>(text.as_bytes()).unwrap();
        let held = Request::Held {
            plan: "ab".into(),
            why: HeldFor::Other,
        };
        assert_eq!(read, held, "no text of a participant reaches the others");
    }
}
