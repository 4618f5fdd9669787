//! One participant's service: its home, its members, its consent, and the jobs that it runs on one port.
//!
//! A [`Home`] is a folder with everything that one participant owns: [`Settings`], the identity key, the [`Members`] whose keys it pins, its
//! standing [`Policy`], the jobs that its people have approved, and the signed log of all of it. This crate keeps these files, and decides
//! from them whether a job may run. [`service`] runs a party's home: it takes requests and jobs on one port.
//!
//! ```text
//! member ── propose ──► service ── plan in a sandbox ──► filed in jobs/
//!                                                           │ policy.toml, or veil approve
//!                                                           ▼
//!               log ◄── decision, start ◄── Home::start ── consent
//!                                                           │
//!                        meet by pinned keys ─► run ─► receipt, stored shares
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_node::{Home, Role, Settings};
//!
//! let folder = tempfile::tempdir()?;
//! let [ann, bob] = ["ann", "bob"].map(|name| folder.path().join(name));
//! let ann = Home::create(&ann, &Settings::new("ann", Role::Party)?.reached_at("ann.example:7000"))?;
//! let bob = Home::create(&bob, &Settings::new("bob", Role::Owner)?)?;
//!
//! let invitation = ann.invite("bob", Role::Owner, std::time::Duration::from_secs(3600))?;
//! let (_, answer) = bob.join(&invitation.to_string().parse()?)?; // bob pins ann's key
//! ann.accept_answer(&answer)?;                                   // ann pins bob's, on the strength of the token
//! assert_eq!(ann.members().by_name("bob").map(|bob| bob.role), Some(Role::Owner));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The `veil` command uses this crate, and so may any program that runs a participant of its own.
//!
//! # Promises
//!
//! - Files appear complete or not at all, are readable by their owner alone, and survive several processes at once.
//! - No job is decided to run that was not approved by a person or a rule.
//! - The log shows every change that was made to it without the key.
//! - Bytes of a file or of a member never cause a panic, or an allocation beyond a stated limit.
//!
//! # Limits
//!
//! - The home trusts the file system of its own user: a process that can write as that user can act as the participant.
//! - This crate cannot judge whether an answer says too much; a person or a policy does.

mod admin;
mod approvals;
mod attendance;
pub mod control;
mod file;
mod home;
mod invitation;
pub mod jobs;
pub mod log;
pub mod logs;
mod marks;
pub mod meeting;
mod members;
mod metrics;
mod names;
pub mod notify;
pub mod order;
mod pairing;
pub mod planner;
pub mod policy;
pub mod receipt;
mod renewal;
mod rotation;
pub mod service;
mod settings;
pub mod stages;
pub mod stock;
mod stores;
mod strings;
mod time;
mod usage;

pub use approvals::{
    Approval, Begins, Binding, Decision, Filed, FiledError, Filing, How, Request, Term, filed_as,
    plan_of, roles_of,
};
pub use attendance::{Attendance, Checkpoint, Missing, TOGETHER};
pub use file::FileError;
pub use home::{Changed, Home, HomeError, Lock};
pub use invitation::{Answer, Introduction, Invitation, Join, Token};
#[doc(hidden)]
pub use members::fuzz_members;
pub use members::{Former, Member, Members, Revoked, Standing};
pub use names::{NameError, Role, RoleError};
pub use pairing::{JoinError, Joined};
pub use policy::Policy;
pub use receipt::Receipt;
pub use renewal::RotationError;
pub use rotation::{Statement, StatementError};
pub use settings::{
    Admission, Limits, LogFormat, LogSettings, OwnData, Quota, Quotas, Settings, SettingsError,
    StockWith, Timeouts, Transfers,
};
pub use strings::StringError;
pub use time::Time;

/// Which of the strings that people send each other a text is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Sent {
    /// `veil1-…`.
    Invitation(Box<Invitation>),
    /// `veil2-…`.
    Answer(Box<Answer>),
    /// `veil3-…`.
    Statement(Box<Statement>),
}

impl std::str::FromStr for Sent {
    type Err = StringError;

    fn from_str(text: &str) -> Result<Self, StringError> {
        Ok(match strings::Kind::of(text) {
            Some(strings::Kind::Invitation) => Sent::Invitation(Box::new(text.parse()?)),
            Some(strings::Kind::Answer) => Sent::Answer(Box::new(text.parse()?)),
            Some(strings::Kind::Rotation) => Sent::Statement(Box::new(text.parse()?)),
            None => return Err(StringError::Foreign),
        })
    }
}

/// For fuzzing: takes `bytes` for a string of another participant. Returns whether it was understood.
#[doc(hidden)]
pub fn fuzz_string(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<Sent>().is_ok())
}
