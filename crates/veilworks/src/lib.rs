//! Secure multi-party computation from Rust: parties compute on values that none of them sees.
//!
//! A [`Job`] says who computes, on whose values, and what is opened to whom. It is read from a job file, or made of a circuit of your own by
//! [`Computation`]. [`Local`] runs all its participants in this process; [`Participant`] is one of them, and meets the others over TLS.
//!
//! ```text
//!  job file ──────► Job ──► Local ────────────────► Outcome: statistics, opened values, what the run took
//!  Computation ───►  │  └─► Participant ◄── TLS ──► Participant, in other processes
//!                    │            ▲   │
//!                   hash      Values  Opened        (or a Source and a Sink of your own)
//! ```
//!
//! # Getting started
//!
//! A job file, all participants in this process:
//!
//! ```no_run
//! let job = veilworks::Job::read("examples/pay-gap/job.toml")?;
//! let outcome = veilworks::Local::of(&job).run()?;
//! println!("{}", outcome.statistics("newspaper").ok_or("nothing was opened to it")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A circuit of your own, on values in memory:
//!
//! ```
//! use veilworks::{Builder, Computation, Local, Per, Ring, Values};
//!
//! let mut circuit = Builder::new(Ring::Z64);
//! let [x, y] = ["x", "y"].map(|name| circuit.input(name, 1, Per::Row)[0]);
//! let product = circuit.mul(x, y);
//! circuit.output("z", &[product]);
//! let job = Computation::new("products", circuit.finish()?)
//!     .parties(["a", "b", "c"])
//!     .input("x", "ann")
//!     .input("y", "bob")
//!     .output("z", "eve", "the product of both values, for every row")
//!     .rows(3)
//!     .job()?;
//! let outcome = Local::of(&job)
//!     .values("ann", Values::new().integers("x", [2_u64, 3, 4]))
//!     .values("bob", Values::new().integers("y", [5_u64, 6, 7]))
//!     .run()?;
//! let z = outcome.opened("eve").and_then(|opened| opened.integers("z"));
//! assert_eq!(z, Some(vec![10, 18, 28]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Running`] is a run in the background: a future of its outcome, and a stream of its progress. `examples/` has two processes over TLS, and a
//! source and a sink of one's own.
//!
//! # Promises
//!
//! - The promises of the protocols and the engine hold: no value is opened before every check in its cone has passed at every party.
//! - An [`Error`] says who, where and what to do, in the words of the command `veil`.
//! - Values are wiped when they are dropped.
//!
//! # Limits
//!
//! - Consent is the caller's: [`Job::opens`] says what is opened, [`Job::hash`] what all have agreed to. `veil serve` keeps members, rules and a
//!   signed log.
//! - Jobs that keep or load shares need a party's home: the command runs them.
//! - Without the feature `columnar`, tables are CSV files.

mod asked;
mod ends;
mod error;
pub mod explain;
mod job;
mod local;
mod participant;
mod running;
mod values;

pub use asked::RowCircuit;
pub use ends::{Outcome, folder_name};
pub use error::{About, Code, Error, Excerpt, Place, Refused};
pub use job::{Computation, Job};
pub use local::Local;
pub use participant::Participant;
pub use running::{Running, Updates};
pub use values::{Opened, Values};

#[doc(no_inline)]
pub use veil_circuit::{Builder, Circuit, Per, make};
#[doc(no_inline)]
pub use veil_engine::{DeviceFactory, Phase, Progress, Report, name_of};
#[doc(no_inline)]
pub use veil_job::{DataError, Guarantee, JobSpec, Security, Sink, Slice, Source};
#[doc(no_inline)]
pub use veil_link::tls::{Fingerprint, Identity};
#[doc(no_inline)]
pub use veil_math::Ring;
#[cfg(feature = "columnar")]
#[doc(no_inline)]
pub use veil_program::MemoryTable;
#[doc(no_inline)]
pub use veil_program::stats::StatsResult;
#[doc(no_inline)]
pub use veil_program::{
    Answered, CellProblem, ColumnFacts, DataFile, Draft, Guess, Guessed, NetworkFacts, Opens,
    Operator, Sent, Shadow, ShadowColumn, TableFacts, TableReport, read_model, read_network,
};
#[doc(no_inline)]
pub use veil_protocol::Plan;
#[doc(no_inline)]
pub use veil_runtime::Passes;
#[doc(no_inline)]
pub use veil_session::PlanHash;
