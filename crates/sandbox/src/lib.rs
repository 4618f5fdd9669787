//! Sandboxed child processes: text of a stranger is parsed and planned by a process that can do nothing but compute.
//!
//! A proposer of a job writes text that a planner must understand. A planner may have defects, and text may be made to take all memory or
//! never to end. Therefore a child process plans: [`enter()`] takes everything from it but its own memory, its standard streams and a few
//! seconds, before it reads the first byte; [`run()`] starts it, and says how it ended. A service uses this for proposals, and so may any
//! program that reads untrusted text.
//!
//! ```text
//! service   run(program, arguments, text, limits) ──stdin──► child   enter(limits) ─► read, plan ─► write
//!              ◄─────────────── stdout, or Ended ───────────────────┘   (Landlock, seccomp, rlimits)
//! ```
//!
//! # Getting started
//!
//! ```no_run
//! use std::io::{Read, Write};
//! use veil_sandbox::{Limits, Require, enter, run};
//!
//! // In the child, before anything is read:
//! enter(&Limits::default(), Require::Landlock)?;
//! let mut text = Vec::new();
//! std::io::stdin().read_to_end(&mut text)?;
//! std::io::stdout().write_all(&(text.len() as u64).to_le_bytes())?;
//!
//! // In the service:
//! let reply = run("/proc/self/exe".as_ref(), &["count"], b"text of a member", &Limits::default());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! - A confined process opens no file, makes no socket, starts no process and no thread, makes no memory executable, signals no process but
//!   itself, and reads and writes no other descriptor than its standard streams, whatever code runs in it.
//! - It ends when its time or its memory is used up, and with the thread that started it.
//! - Other processes have the processor first.
//!
//! # Limits
//!
//! - The kernel is trusted, and the processor's side channels are open.
//! - An answer is not right because a sandbox gave it: a caller checks its form, and relies on it no more than on a planner's word.

mod enter;
mod filter;
mod run;

use std::time::Duration;

pub use enter::{Confinement, EnterError, Require, enter};
pub use run::{Ended, Limit, run};

/// Limits of a confined process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of address space.
    pub memory: u64,
    /// Time of the processor, in whole seconds, at least 1.
    pub cpu: Duration,
    /// Time on the clock, from its start to its last byte.
    pub wall: Duration,
    /// Bytes of its reply.
    pub reply: u64,
    /// How far behind others it stands where both want a processor: 0 to 19, as nice(2) has it. With 10 they have about ten times as much of
    /// it, with 19 about seventy times.
    pub nice: i32,
}

impl Default for Limits {
    /// 2 GiB, 60 s, 90 s, 16 MiB, 10: planning a circuit of a million gates takes a fifth of it.
    fn default() -> Self {
        Limits {
            memory: 2 << 30,
            cpu: Duration::from_secs(60),
            wall: Duration::from_secs(90),
            reply: 16 << 20,
            nice: 10,
        }
    }
}
