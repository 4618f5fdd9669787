//! One participant in one job: its course through the job's stages, whom it meets, and the run.
//!
//! A [`Participant`] is a state machine: it says what its caller does next ([`Step`]) and takes what came of it ([`Heard`]) with the time, so that
//! every pause and time-out is decided here, for a party of a service, a party in the foreground, owners and recipients alike. [`Stages`] has
//! the plans of a job's runs, [`Neighbours`] whom a role meets, and [`Part`] connects and runs.
//!
//! ```text
//!                     Step                                    ┌ the store: Locate, Forget
//! Participant ─────────────────────► caller ──────────────────┼ the other parties: AskDone, AskKept, AskStage
//!   stage, failures, since ◄──────── (service, command,       ├ Part::meet, Part::run
//!                     Heard, now      library)                └ a pause
//! ```
//!
//! # Getting started
//!
//! [`Participant`] has an example of its course, [`Part`] is what a caller of [`Step::Run`] uses. The crate `veilworks` does all of it.
//!
//! # Promises
//!
//! - The machine has no clock, no thread and no socket: what it does follows from its inputs alone.
//! - Each sequence of answers comes to an end: attempts are counted, and waiting has a limit.
//! - No party alone decides that an owner's values are not wanted, or at which stage a guaranteed job goes on.
//!
//! # Limits
//!
//! - Consent, receipts and logs are the caller's.

mod memory;
mod part;
mod participant;
mod passes;
mod stages;

pub use memory::TooSmall;
pub use part::{Connections, Neighbours, Part, PartError, Roster, RunError, roles, who_is_who};
pub use participant::{
    AGAIN, Again, As, Because, Course, Ended, GivenUp, Heard, Participant, Stage, Step, VIEWS,
    pause,
};
pub use passes::{Ends, Passes};
pub use stages::{Disagreement, Stages, interrupted};
