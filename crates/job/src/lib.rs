//! The contract: what a job computes, on whose values, for whom. All participants consent to the same one.
//!
//! A [`JobSpec`] names owners, parties and recipients, the circuit, who supplies each input and how it is read, to whom each output is
//! opened, and the protocol with what it holds against. Its canonical encoding ([mod@canonical]) is part of every plan hash, so that two
//! participants that compare one hash have agreed to all of it.
//!
//! ```text
//!   job file, table, SQL ──►  JobSpec  ──► plan (protocol) ──► engine
//!                               │              ▲
//!                     canonical encoding ── plan hash
//!
//!   Source ──► values of an owner          Sink ──► opened values
//!   ShareSource ──► stored shares          ShareSink ──► shares to store
//! ```
//!
//! ```
//! use veil_job::canonical::Canonical;
//! use veil_job::{Audience, Holder};
//! use veil_session::PartyId;
//!
//! // A party and all parties are different readers, and encoded differently.
//! let [one, all] = [Audience::Party(PartyId::FOUR[3]), Audience::Parties];
//! assert_ne!(one.encoded(), all.encoded());
//! assert_ne!(Holder::Owner(0).encoded(), Holder::Owner(1).encoded());
//! ```
//!
//! # Promises
//!
//! - Two specs with one encoding are equal. Each type in a spec is encoded by `canonical!`, which destructures it exhaustively: a field or a
//!   variant that is not encoded does not compile.
//! - [`evaluate`] defines what a job means: parties compute the same bytes.
//!
//! # Limits
//!
//! This crate reads no files and knows no table formats: job files, tables and statistics are `veil-program`'s, and end in a spec. A spec
//! says which column of which owner feeds an input; whether the owner's data are what they are called, no hash can tell.

pub mod canonical;
mod chunk_rows;
mod clear;
mod ends;
mod intersect;
pub mod passes;
mod schedule;
mod security;
mod spec;
mod stages;
mod stock;

pub use chunk_rows::ChunkRows;
pub use clear::{ClearError, evaluate};
pub use ends::{DataError, ShareSink, ShareSource, Sink, Slice, Source, Spill};
pub use intersect::{Intersection, KEY_BYTES, equality};
pub use schedule::{Rows, Schedule};
pub use security::{
    Adversary, Assumption, Delivery, Guarantee, Ot, ProtocolKind, Security, Statistical, Tables,
    Technique, UnknownWord, Word,
};
pub use spec::{Audience, Block, DatasetRef, Holder, InputSpec, JobSpec, Keep, Order, StoredPort};
pub use stock::{Cells, STOCK_WORD, StockError, StockKind, StockSink, StockSource, Turn};
