//! Tests of whole runs: all participants of a job in one process, honest or not.
//!
//! A [`World`] runs a job on plain integers with links, devices and randomness that the test chooses; an [`Outcome`] says which participant
//! got which values, which one gave up and why, and which messages were on the links. Tests of every crate below this one use it; no product
//! code may depend on it.
//!
//! ```text
//! job, Seed ─► World ─┬─ values, devices, window, timeout      honest participants
//!                     ├─ cheat(message → Fate)                 a Byzantine one: a tap on its links
//!                     ├─ crash(peer, Crash, after)               a crash fault
//!                     └─ net(Profile)                          another network
//!                          │ run
//!                          ▼
//!                       Outcome: values, aborts, messages, costs
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_link::tap::Fate;
//! use veil_math::Ring;
//! use veil_job::Audience;
//! use veil_testkit::{Kind, World, sample};
//! let job = sample::product(Ring::Z64, 100, Audience::Recipient(0));
//! World::new(job.clone()).run().assert_right();
//! // The first component that is opened arrives with one bit changed.
//! let cheat = |m: &veil_testkit::Message| match m.kind {
//!     Some(Kind::Opened) if m.from == sample::peer(0) => Fate::Replace(veil_testkit::flipped(&m.bytes)),
//!     _ => Fate::Pass,
//! };
//! let outcome = World::new(job).cheat(cheat).run();
//! assert!(matches!(outcome.abort(veil_session::Peer::Recipient(0)), veil_engine::Abort::Cheated { .. }));
//! ```
//!
//! # Promises
//!
//! - A [`World`] of the same job and [`Seed`] puts the same bytes on the links, on any device; every assertion prints the seed.
//!
//! # Limits
//!
//! - Nothing is said about time: a [`World`] runs all participants on the cores of one machine.

mod clocked;
mod crash;
mod damage;
mod kind;
mod late;
mod outcome;
pub mod sample;
mod seed;
mod shares;
mod values;
mod world;
mod wrong;

pub use clocked::clocked;
pub use crash::Crash;
pub use damage::damaged;
pub use kind::{Kind, Kinds, tasks};
pub use late::Late;
pub use outcome::{Message, Outcome};
pub use seed::{Numbers, Seed};
pub use shares::Shares;
pub use values::{Rows, Seen, Values, pack};
pub use world::World;
pub use wrong::{Adding, Erred, Lying, OneBitWrong, Slip};

/// `bytes` with one bit changed: the first, which is a row of every packed column. Bytes of no length stay as they are.
pub fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(first) = bytes.first_mut() {
        *first ^= 1;
    }
    bytes
}

/// The most memory in bytes that this process ever had, as Linux counts it: for a test that has a process of its own.
///
/// # Panics
/// Where the system does not say it.
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let kilobytes: u64 = kilobytes
        .and_then(|number| number.parse().ok())
        .expect("a number of kilobytes");
    kilobytes << 10
}
