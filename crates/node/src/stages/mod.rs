//! The stages of a job at one participant: the shares that it keeps between them, and what the parties tell each other of where they are.
//!
//! Which stage follows which is in [`veil_runtime`].

mod inputs;
mod store;
mod views;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use veil_link::tls::Fingerprint;
use veil_program::Job;
use veil_protocol::PlanError;
use veil_runtime::{Passes, Stages};

use crate::Home;

pub use inputs::{Inputs, Said, inputs};
pub(crate) use store::{CheckpointedInputs, Note};
pub use store::{Ends, Kept, StageStore, inputs_name, keeps, loads, supplies};
pub(crate) use views::{ANSWER, ENOUGH, agreed, ask_all};
pub use views::{At, now};

/// How often a participant that waits looks whether to stop.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// Plans the stages of `job`, which is planned as `plan`.
///
/// # Errors
/// [`PlanError`] as of [`Stages::new`].
pub fn of(job: &Job, plan: &Passes) -> Result<Stages, PlanError> {
    Stages::new(job.spec(), job.is_durable(), plan)
}

/// Sleeps so long, unless it is asked to stop.
pub fn nap(pause: Duration, stop: &AtomicBool) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(GLANCE);
    }
}

/// The keys of a job's parties, in their order, as a home knows them.
pub(crate) fn party_keys(stages: &Stages, home: &Home) -> Option<Vec<Fingerprint>> {
    let (identity, members) = (home.identity(), home.members());
    stages.party_keys(&*members, (&home.settings().name, &identity))
}
