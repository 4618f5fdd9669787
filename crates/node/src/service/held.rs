//! Reasons that hold up the participants of a job, as they give them and as others read them.

use std::time::Duration;

use veil_protocol::Plan;

use super::ServiceState;
use super::said::OWN_FILES;
use crate::approvals::plan_of;
use crate::jobs::Status;
use crate::meeting::{HeldFor, Parties};

/// How long the other parties have to hear it.
const WITHIN: Duration = Duration::from_secs(2);

impl ServiceState {
    /// Notes what holds a member up, in a job that is known here and in which it has a part: how the job is.
    pub(super) fn held(&self, plan: &str, why: HeldFor, by: &str) -> Vec<Status> {
        let Some(job) = plan_of(plan).and_then(|plan| self.jobs.find(plan)) else {
            return Vec::new();
        };
        self.jobs.hold(job, by, why);
        self.jobs.status(job, by).into_iter().collect()
    }

    /// Tells the other parties of a job that this one's own files hold it up, if that is why it was given up.
    pub(super) fn holds_up(&self, plan: &Plan, why: &str) {
        if why == OWN_FILES {
            Parties::of(&self.home, plan).tell(HeldFor::Data, WITHIN);
        }
    }
}
