//! One participant's service: its home, its members, its consent, and the jobs that it runs on one port.
//!
//! **What it is for.** A *home* is a folder with everything that one participant owns: [`Settings`], the key, the
//! [`Members`] it knows, its standing policy, what its people have approved, the log of all of it. This crate
//! keeps these files, and decides from them whether a job may run.
//!
//! **Who may use it.** The `veil` command, and programs that run a participant of their own.
//!
//! ```
//! use veil_node::{Home, Role, Settings};
//!
//! let folder = tempfile::tempdir()?;
//! let [ann, bob] = ["ann", "bob"].map(|name| folder.path().join(name));
//! let ann = Home::create(&ann, &Settings::new("ann", Role::Party)?.reached_at("ann.example:7000"))?;
//! let bob = Home::create(&bob, &Settings::new("bob", Role::Owner)?)?;
//!
//! ann.pin("bob", Role::Owner, bob.identity().fingerprint(), None)?;
//! assert_eq!(ann.members().by_name("bob").map(|bob| bob.role), Some(Role::Owner));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **What it promises.** Files appear complete or not at all, are read by nobody else, and survive several processes at
//! once. What was not approved is not decided to run. The log shows every change to it by anybody without the key.
//! Bytes of a file or of a member never cause a panic, or an allocation beyond a stated limit.
//!
//! **What it does not.** It trusts the file system of its own user: who can write as that user can act as the
//! participant. It cannot judge whether an answer says too much; a person or a policy does.

mod file;
mod home;
mod members;
mod names;
mod settings;
mod time;

pub use file::FileError;
pub use home::{Changed, Home, HomeError, Lock};
pub use members::{Former, Member, Members, Revoked, Standing};
pub use names::{NameError, Role, RoleError};
pub use settings::{Limits, LogFormat, LogSettings, Settings, SettingsError, Timeouts};
pub use time::Time;
