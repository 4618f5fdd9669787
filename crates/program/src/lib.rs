//! Jobs: a computation, the holders of its inputs, and the audiences of its outputs.
//!
//! **What it is for.** A job file (TOML) names owners, three or four computing parties and recipients, and asks for statistics
//! over tables, for a circuit on files, or that kept shares go to other parties. [`Job`] checks it and lowers it to a [`JobSpec`](veil_job::JobSpec): one circuit with a holder for
//! each input and an audience for each output; [`Source`](veil_job::Source) and [`Sink`](veil_job::Sink) are the two ends where values come in and go
//! out. No protocol, no network.
//!
//! ```text
//! job.toml ─► Job ─► Lowered: circuit, blocks of rows and their holders, audiences, security ─► the planner
//!              │
//! tables ──────┼─► Source ─► shares …                        … opened values ─► Sink ─► results
//!              └─► evaluate: the clear answer, for tests
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_program::{Files, Job};
//!
//! let job = r#"
//!     version = 1
//!     kind = "stats"
//!     name = "pay"
//!     owners = ["mill", "harbour"]
//!     parties = ["university", "union", "ministry"]
//!     recipients = ["press"]
//!     column = [{ name = "pay", type = "decimal", scale = 2, min = 0, max = "9999.99" }]
//!     block = [{ name = "mill", rows = 70, holds = { mill = ["pay"] } },
//!              { name = "harbour", rows = 30, holds = { harbour = ["pay"] } }]
//!     analysis = [{ name = "mean pay", kind = "mean", of = "pay", to = "press" }]
//! "#;
//! let job = Job::parse(job, "job.toml".as_ref(), Files::new())?;
//! assert_eq!(job.spec().opened, ["sum of pay over all rows"]);
//! assert_eq!(job.spec().rows(), 100);
//! # Ok::<(), veil_program::JobError>(())
//! ```
//!
//! **What it promises.** Files never cause a panic, an overflow or an allocation that their own size does not justify.
//! A number that is opened is exact, or the job is refused. All values of an owner are checked before the first is
//! handed out. What is opened is exactly [`JobSpec::opened`](veil_job::JobSpec::opened), and results appear complete or not at all.
//!
//! # Promises
//!
//! - Files never cause a panic, an overflow or an allocation that their own size does not justify.
//! - A number that is opened is exact, or the job is refused.
//! - All values of an owner are checked before the first is handed out.
//! - [`JobSpec::opened`](veil_job::JobSpec::opened) is exactly the list of opened values, and results appear complete or not at all.
//!
//! # Limits
//!
//! - The crate does not judge whether an opened value says too much: the sum over a group of one person is that person's pay.
//! - It cannot see whether the rows of two owners really are the same people in the same order, only whether they are equally many, and,
//!   where a job says `align`, whether a key column is the same.

mod bits;
mod dataset;
mod date;
mod draft;
mod error;
mod gates;
mod intersect;
mod literal;
mod load;
mod number;
mod output;
mod pairing;
mod publish;
mod query;
mod raw;
mod reshare;
mod roles;
pub mod stats;
mod table;
mod words;

pub use draft::{Draft, Guess, Guessed, NewJob, NewTable};
pub use error::{JobError, JobProblem, Place};
pub use gates::{FileSink, FileSource, Gates};
pub use intersect::{BinSink, CommonKeys, Intersection, IntersectionSink, OfCommon, Shows};
pub use load::{Asked, ClearAnswer, DataFile, Files, Job, Kind, Sent, Sinks, Sources};
pub use number::{NumberError, Scaled, parse_scaled};
pub use output::Output;
pub use pairing::Paired;
pub use query::{
    Answered, Collisions, ColumnFacts, KeptFacts, NamedQuery, NetworkFacts, Opens, Operator,
    Queries, QuerySink, Shadow, ShadowColumn, SizeSink, TableFacts, Writing, openings, read_model,
    read_network,
};
pub use reshare::{OldShares, Resharing, SharesDiffer, Zeros};
pub use roles::Roles;
#[cfg(feature = "columnar")]
pub use table::MemoryTable;
pub use table::{AlignKey, AlignKeyError, CellFault, CellProblem, InputError, TableReport, Watch};
pub use veil_physical::Wires;
pub use veil_relation::RangeError;
pub use words::Words;
