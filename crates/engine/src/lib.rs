//! The engine: runs a plan's flows on devices and links, in the order that the security argument needs.
//!
//! A [`Worker`] is one lane of one participant: it never blocks, and the owner of its thread steps it. It pulls rounds from the protocol's
//! flows, submits their commands to a device and their messages to a link, and starts an opening only after every check in the value's cone
//! has passed at every party. [`local::run`] steps all participants of a job in this process; [`party::run`] runs one participant over its
//! links.
//!
//! ```text
//!            Plan ─► flows of rounds                       Source        Sink
//!                          │                                 │ fill        ▲ put, finish
//!                          ▼                                 ▼             │
//! Worker (a lane):  local commands ─► sends, receives ─► finishing commands, checks ─► opening
//!                          │ submit, poll    │ post, expect, land
//!                          ▼                 ▼
//!                       Device             Link ◄─► the other participants
//! ```
//!
//! # Getting started
//!
//! Values come from a `Source` and go to a `Sink` of `veil_program`, which publishes only when everything is verified.
//!
//! ```
//! use std::sync::Arc;
//! use veil_engine::{local, Data, Settings};
//! # use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
//! # use veil_job::{Audience, Block, DataError, Holder, JobSpec, Sink, Slice, Source};
//! # let port = |name: &str| InputPort { name: name.into(), width: 1, per: Per::Row, bits: false };
//! # let circuit = Circuit { ring: veil_math::Ring::Z64, inputs: vec![port("x"), port("y")], gates: vec![Gate::Mul(Wire(0), Wire(1))],
//! #     outputs: vec![OutputPort { name: "z".into(), wires: vec![Wire(2)], reduce: Reduce::None }], clock: Default::default() };
//! # let job = JobSpec { name: "product".into(), schema: String::new(), owners: vec!["ann".into(), "bob".into()], parties: ["a", "b", "c"].map(String::from).into(),
//! #     recipients: vec!["eve".into()], security: veil_job::Security::among(3), circuit, totals: None,
//! #     blocks: vec![Block { name: "all".into(), rows: 3, holders: vec![Holder::Owner(0), Holder::Owner(1)], stored: None, order: veil_job::Order::Unsaid }],
//! #     audiences: vec![Audience::Recipient(0)], opened: vec!["z".into()], inputs: Vec::new(), datasets: Vec::new(), keep: None };
//! struct Column(Vec<u64>);
//! impl Source for Column {
//!     fn fill(&self, _port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
//!         let rows = &self.0[slice.first as usize..][..slice.rows as usize];
//!         into.chunks_mut(8).zip(rows).for_each(|(b, x)| b.copy_from_slice(&x.to_le_bytes()));
//!         Ok(())
//!     }
//! }
//! # #[derive(Default)] struct Seen(std::sync::Mutex<Vec<u8>>);
//! # impl Sink for Seen {
//! #     fn put(&self, _: usize, _: Slice, values: &[u8]) -> Result<(), DataError> { self.0.lock().unwrap().extend(values); Ok(()) }
//! #     fn finish(&self) -> Result<(), DataError> { Ok(()) }
//! # }
//! let plan = Arc::new(veil_protocol::Plan::new(Arc::new(job), Default::default())?);
//! let eve = Arc::new(Seen::default());
//! let data = |peer| match peer {
//!     veil_session::Peer::Owner(0) => Data { source: Some(Arc::new(Column(vec![2, 3, 4]))), ..Data::default() },
//!     veil_session::Peer::Owner(_) => Data { source: Some(Arc::new(Column(vec![5, 6, 7]))), ..Data::default() },
//!     veil_session::Peer::Recipient(_) => Data { sink: Some(eve.clone()), ..Data::default() },
//!     veil_session::Peer::Party(_) => Data::default(),
//! };
//! local::run(&plan, &Settings::default(), data, &|_| ())?;
//! let z: Vec<u64> = eve.0.lock().unwrap().chunks(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
//! assert_eq!(z, [10, 18, 28]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! - No value is opened before every check in its cone has passed and every party has said so.
//! - A failure at one participant ends the run at all of them within the time-out, with an error that says who, where and what.
//! - Keys and shares are wiped then.
//!
//! # Limits
//!
//! - The engine is not fair: the participant that fails last may know the result.

mod abort;
mod acts;
mod bounds;
mod columns;
pub mod local;
mod memory;
mod order;
mod ot_cache;
pub mod party;
mod run;
mod setup;
pub mod shadow;
mod shared;
mod status;
mod stored;
mod trace;
mod words;
mod worker;

pub use abort::{Abort, Wait};
pub use acts::Acts;
pub use bounds::{bounds, program_bounds};
pub use columns::{Room, columns_of_a_pass};
pub use memory::{Memory, in_flight};
pub use ot_cache::{Limits, Marks, OtCache};
pub use setup::{Binding, handshake_cost};
pub use status::{Phase, Progress, Report, TraceId, TransfersFrom};
pub use trace::{Recorder, RoundEvent};
pub use words::last_words_cost;
pub use worker::{Step, Worker};

use std::sync::Arc;
use std::time::{Duration, Instant};

use veil_device::{Cpu, Device, Fault};
use veil_job::{ShareSink, ShareSource, Sink, Source, StockSink, StockSource};
use veil_protocol::Plan;
use veil_session::Peer;

/// The data of one participant: sources and sinks.
#[derive(Clone, Default)]
pub struct Data {
    /// Its values, if it supplies any.
    pub source: Option<Arc<dyn Source>>,
    /// Where opened values go, if it gets any.
    pub sink: Option<Arc<dyn Sink>>,
    /// A party's stored shares, if the job loads any.
    pub stored: Option<Arc<dyn ShareSource>>,
    /// Where a party's shares go, if the job keeps any.
    pub keeps: Option<Arc<dyn ShareSink>>,
    /// A party's stock of authenticated products, if the run takes from one.
    pub stock: Option<Arc<dyn StockSource>>,
    /// Where a party's stock goes, if the run makes some.
    pub makes: Option<Arc<dyn StockSink>>,
}

/// Makes the device of a lane, or says why there is none: then the run ends, and no other device takes its place.
pub type DeviceFactory = Arc<dyn Fn() -> Result<Box<dyn Device>, Fault> + Send + Sync>;

/// Choices of one participant that the others need not know.
#[derive(Clone)]
pub struct Settings {
    /// Without any progress for this long, the run is given up with a stall report.
    pub timeout: Duration,
    /// Until when the others have to turn up, where they may still be meeting when this participant begins: until each of them has said its
    /// first word, the time-out above does not run.
    pub meeting: Option<Instant>,
    /// Tells the time by which this participant judges the two above; [`Instant::now`] unless a test has its own.
    pub clock: Clock,
    /// Chunks in flight per lane: while the messages of one travel, the next is computed. A device that wants more ([`Device::window`]) has more. Where all of
    /// them have waited for a while, as on a network, more begin, up to [`in_flight`]; with 1 there is one at a time.
    pub window: usize,
    /// The device of each lane.
    pub device: DeviceFactory,
    /// What columns of a program may take in memory, and where others wait; without a bound all are in memory.
    pub room: Option<Room>,
    /// Writes down every round, if there is one.
    pub trace: Option<Arc<dyn Recorder>>,
    /// Where oblivious transfers are kept for the next run with the same party; nothing to have them anew in every run.
    pub ot_cache: Option<Arc<OtCache>>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            timeout: Duration::from_secs(30),
            meeting: None,
            clock: Arc::new(Instant::now),
            window: 2,
            device: Arc::new(|| Ok(Box::new(Cpu::detect()))),
            room: None,
            trace: None,
            ot_cache: None,
        }
    }
}

/// The largest window that peers reckon with.
const LARGEST_WINDOW: usize = 16;

/// Tells the time. Waiting for a link is by the clock of the machine; whether a participant has waited too long is by this one.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// All participants of a plan, parties first.
pub fn participants(plan: &Plan) -> Vec<Peer> {
    let parties = plan.parties().iter().copied().map(Peer::Party);
    let owners = (0..plan.job.owners.len() as u16).map(Peer::Owner);
    let recipients = (0..plan.job.recipients.len() as u16).map(Peer::Recipient);
    parties.chain(owners).chain(recipients).collect()
}

/// The name of a participant in its job.
pub fn name_of(plan: &Plan, peer: Peer) -> &str {
    match peer {
        Peer::Party(p) => &plan.job.parties[p.index()],
        Peer::Owner(o) => &plan.job.owners[o as usize],
        Peer::Recipient(r) => &plan.job.recipients[r as usize],
    }
}
