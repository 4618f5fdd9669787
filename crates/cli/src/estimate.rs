//! How long a job takes: measured on this machine with the job's own layers, then extrapolated.
//!
//! A few chunks of made-up values run through the job's plan over TLS on loopback, all participants in this process, twice: the
//! difference is what a chunk costs, the rest is what a run costs whatever its rows. Nothing is read, nothing leaves the machine. A
//! network that is imitated adds its delay for every round that is waited for, and its rate.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use serde::Serialize;
use veil_engine::Data;
use veil_job::{Audience, Holder, JobSpec};
use veil_link::shape::Profile;
use veil_protocol::{Options, Plan};
use veil_session::{PartyId, Peer};

use crate::loopback::{self, Nowhere, Pattern};

/// Measuring ends after this, unless a single chunk takes longer.
const LONGEST: Duration = Duration::from_millis(400);

/// What a run of a plan costs here, over TLS on loopback.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Seconds, whatever the number of rows.
    fixed: f64,
    /// Seconds per row, with all lanes and all parties on this machine.
    per_row: f64,
}

/// Rounds that follow each other.
#[derive(Serialize, Clone, Copy, Default, Debug)]
pub(crate) struct Rounds {
    pub(crate) handshake: u64,
    pub(crate) set_up: u64,
    pub(crate) per_chunk: u64,
    pub(crate) totals: u64,
}

/// Rounds and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    pub(crate) rounds: Rounds,
    /// Chunks in flight over all lanes.
    pub(crate) in_flight: u64,
    /// Bytes that the busiest participant sends.
    pub(crate) busiest: u64,
}

impl Measured {
    /// Measures; nothing if this machine has no loopback to measure on.
    pub(crate) fn new(plan: &Plan) -> Option<Self> {
        let began = Instant::now();
        let lanes = u64::from(plan.lanes);
        let few = lanes * u64::from(plan.chunk_rows);
        let job_rows = plan.job.rows();
        // A job that is shorter than that is measured as it is.
        let few = few.min(job_rows);
        let mut short = f64::INFINITY;
        // The first run finds cold caches, and starts threads for the first time.
        for _ in 0..3 {
            short = short.min(run(plan, few)?);
            if began.elapsed() > LONGEST / 2 {
                break;
            }
        }
        if few == job_rows {
            return Some(Measured {
                fixed: short,
                per_row: 0.0,
            });
        }
        // As many more as the rest of the time allows.
        let room = (LONGEST.saturating_sub(began.elapsed())).as_secs_f64() / short.max(1e-4);
        let many = few * (room as u64).clamp(3, 16);
        let many = many.min(job_rows.max(2 * few));
        let long = run(plan, many)?;
        let per_row = ((long - short) / (many - few) as f64).max(0.0);
        Some(Measured {
            fixed: (short - per_row * few as f64).max(0.0),
            per_row,
        })
    }

    /// Seconds over TLS on loopback.
    pub(crate) fn loopback(self, plan: &Plan) -> f64 {
        self.fixed + self.per_row * plan.job.rows() as f64
    }

    /// Seconds with a machine per party, over a network.
    pub(crate) fn over(self, plan: &Plan, traffic: &Traffic, net: Profile) -> f64 {
        let chunks = u64::from(plan.chunks()).div_ceil(traffic.in_flight.max(1));
        let rounds = &traffic.rounds;
        let waits = rounds.handshake + rounds.set_up + chunks * rounds.per_chunk + rounds.totals;
        // Three parties shared the cores of this machine: how many of them could run at once?
        let cores = available_parallelism().map_or(1, usize::from) as f64;
        let together = (3.0 * f64::from(plan.lanes) / cores).clamp(1.0, 3.0);
        let computing = self.loopback(plan) / together;
        let sending = traffic.busiest as f64 * 8.0 / net.bandwidth as f64;
        net.latency.as_secs_f64() * waits as f64 + sending.max(computing)
    }
}

/// Seconds of a run with `rows` rows of made-up values.
fn run(plan: &Plan, rows: u64) -> Option<f64> {
    let job = cut(&plan.job, rows);
    let options = Options {
        lanes: plan.lanes,
        chunk_rows: Some(plan.chunk_rows),
    };
    let short = Arc::new(Plan::new(Arc::new(job), options).ok()?);
    let data = |_: Peer| Data {
        source: Some(Arc::new(Pattern)),
        sink: Some(Arc::new(Nowhere)),
        ..Data::default()
    };
    let reports =
        loopback::over_tls(&short, &veil_engine::Settings::default(), &data, None).ok()?;
    let slowest = reports.values().map(|report| report.elapsed).max()?;
    Some(slowest.as_secs_f64())
}

/// The job with so many rows in all, each block with its part of them; what is stored comes from the first party instead.
fn cut(job: &JobSpec, rows: u64) -> JobSpec {
    let mut short = job.clone();
    let all = job.rows().max(1);
    let first = PartyId::THREE[0];
    for block in &mut short.blocks {
        let part = u128::from(block.rows) * u128::from(rows) / u128::from(all);
        block.rows = u64::try_from(part).unwrap_or(block.rows).max(1);
        block.order = veil_job::Order::Unsaid;
        block.stored = None;
        for holder in &mut block.holders {
            if *holder == Holder::Stored {
                *holder = Holder::Party(first);
            }
        }
    }
    for audience in &mut short.audiences {
        if *audience == Audience::Stored {
            *audience = Audience::Party(first);
        }
    }
    short
}
