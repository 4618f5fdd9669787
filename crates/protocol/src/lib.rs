//! Protocols: a circuit's layers become rounds, and a round is data.
//!
//! A [`Plan`] fixes everything that all participants must agree on: schedule, slots, PRF counters, chunks, lanes. A [`Protocol`] turns each
//! [`Task`] of the plan into a [`Flow`] of [`Round`]s for one participant: commands for a device, transfers over links, commands that finish.
//! This crate does no I/O, draws no randomness and looks at no value; `veil-engine` moves the bytes.
//!
//! ```text
//! job ─► Plan::new ─► Plan: layers, slots, counters, chunks, lanes; its hash
//!                       │
//!                       ▼  protocol(plan, peer)
//! Protocol::flow(task) ─► Flow ─► Round { local, sends, recvs, finish } ─► Round ─► …
//!
//! rep3, rep4   replicated sharing, three and four parties     yao   garbled circuits, two parties
//! ot           oblivious transfer and its extension            cut   cut-and-choose
//!                                                              ag    authenticated garbling
//! ```
//!
//! # Getting started
//!
//! ```
//! use std::sync::Arc;
//! use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
//! use veil_math::Ring;
//! use veil_job::{Audience, Block, Holder, JobSpec};
//! use veil_protocol::{Plan, Options};
//! let port = |name: &str| InputPort { name: name.into(), width: 1, per: Per::Row, bits: false };
//! let circuit = Circuit {
//!     ring: Ring::Bits,
//!     inputs: vec![port("x"), port("y")],
//!     gates: vec![Gate::Mul(Wire(0), Wire(1))],
//!     outputs: vec![OutputPort { name: "z".into(), wires: vec![Wire(2)], reduce: Reduce::None }],
//!     clock: veil_circuit::Clock::default(),
//! };
//! let job = JobSpec {
//!     name: "and".into(),
//!     schema: String::new(),
//!     owners: vec!["ann".into(), "bob".into()],
//!     parties: ["p0", "p1", "p2"].map(String::from).into(),
//!     recipients: vec!["eve".into()],
//!     security: veil_job::Security::among(3),
//!     totals: None,
//!     circuit,
//!     blocks: vec![Block { name: "all".into(), rows: 1000, holders: vec![Holder::Owner(0), Holder::Owner(1)], stored: None, order: veil_job::Order::Unsaid }],
//!     audiences: vec![Audience::Recipient(0)],
//!     opened: vec!["z of every row".into()],
//!     inputs: Vec::new(),
//!     datasets: Vec::new(),
//!     keep: None,
//! };
//! let plan = Plan::new(Arc::new(job), Options::default()).unwrap();
//! assert_eq!(plan.layers.len(), 2); // one round of products, and what is linear after it
//! ```
//!
//! # Promises
//!
//! - Equal jobs and options give equal plans and hashes, on every machine.
//! - No two PRF calls of a plan overlap.
//!
//! # Limits
//!
//! - A plan does not say whether a job is worth consent: the job says what is opened.

pub mod ag;
mod choose;
pub mod cut;
pub mod intersect;
pub mod ot;
pub mod passes;
mod plan;
pub mod rep3;
pub mod rep4;
mod replicated;
mod round;
mod stock;
pub mod yao;

pub use choose::protocol;
pub use plan::{
    BitsPlan, Chunk, Conversion, ConversionPlan, CyclesPlan, Gives, JobPlan, LayerPlan, LiftPlan,
    MacPlan, MacsOfJobWide, OpenedPlan, Options, OrderPlan, OutputPlan, Plan, PlanError, PortPlan,
    Stock, TotalsPlan, TruncationPlan, WorkspaceOf,
};
pub use replicated::{Replicated, is_masked};
pub use round::{
    Back, Check, Cleared, Cost, Flow, Meaning, Protocol, Put, Round, Seed, Spans, StockUse, Stored,
    Take, Task, Transfer, Transfers, seed_digest,
};
pub use stock::{items_of_row, making_of, stock_kind, stock_parameter};
