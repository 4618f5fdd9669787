//! How long a job takes: what each participant does by its plan, at the rates of a table.
//!
//! Nothing is run, read or asked of the machine: one plan and one table give one estimate everywhere. Computing takes the CPU time of the
//! participants, over the cores that the table states; a network adds its delay for every round that is waited for, and its rate.

mod costs;
mod passes;

use std::sync::Arc;

use serde::Serialize;
use veil_engine::Settings;
use veil_link::shape::Profile;
use veil_protocol::{Cost, Plan, Protocol};

pub use costs::{Sent, sent};
pub use passes::rounds;
pub use passes::{Costs, OfPass};

use crate::explain::rates::{Rates, Work};

/// Rounds that follow each other.
#[derive(Serialize, Clone, Copy, Default, Debug)]
pub struct Rounds {
    /// Of the handshake.
    pub handshake: u64,
    /// Of the set-up.
    pub set_up: u64,
    /// Of each chunk.
    pub per_chunk: u64,
    /// Of the totals.
    pub totals: u64,
}

impl Rounds {
    /// All of them, one time after the other, where so many chunks follow each other.
    pub const fn in_a_row(&self, chunks: u64) -> u64 {
        let of_chunks = chunks.saturating_mul(self.per_chunk);
        self.handshake + self.set_up + of_chunks + self.totals
    }
}

/// What a run takes, as its plan says.
#[derive(Clone, Debug)]
pub struct Run {
    /// The rounds that are waited for.
    pub rounds: Rounds,
    /// Chunks in flight over all lanes.
    pub in_flight: u64,
    /// How often all wait in passes after the first.
    pub also: u64,
    /// Bytes that the busiest participant sends.
    pub busiest: u64,
    /// What each participant does.
    pub work: Vec<Work>,
}

/// Chunks in flight over all lanes, at the participant that has the fewest.
pub fn in_flight(plan: &Plan, all: &[Arc<dyn Protocol>]) -> u64 {
    let window = Settings::default().window;
    let of_each = all
        .iter()
        .map(|protocol| veil_engine::in_flight(plan, &**protocol, window));
    of_each.min().unwrap_or(1) as u64 * u64::from(plan.lanes)
}

impl Run {
    /// That of a plan.
    pub fn of(plan: &Arc<Plan>) -> Self {
        let all = protocols(plan);
        let sent: Vec<Sent> = all.iter().map(|p| sent(plan, &**p)).collect();
        Run::new(plan, &all, &sent)
    }

    /// The same of participants whose messages were counted.
    pub fn new(plan: &Plan, all: &[Arc<dyn Protocol>], sent: &[Sent]) -> Self {
        let longest = |of: fn(&Sent) -> Cost| sent.iter().map(|sent| of(sent).rounds).max();
        Run {
            rounds: Rounds {
                handshake: longest(|sent| sent.handshake).unwrap_or(0),
                set_up: longest(|sent| sent.set_up).unwrap_or(0),
                per_chunk: longest(|sent| sent.chunk).unwrap_or(0),
                totals: longest(|sent| sent.totals).unwrap_or(0),
            },
            in_flight: in_flight(plan, all),
            also: 0,
            busiest: sent.iter().map(|sent| sent.framed).max().unwrap_or(0),
            work: all.iter().map(|p| Work::of(plan, &**p)).collect(),
        }
    }

    /// Seconds of CPU time of each participant.
    pub fn cpu_seconds(&self, rates: &Rates) -> Vec<f64> {
        self.work.iter().map(|work| work.seconds(rates)).collect()
    }

    /// How often all wait for messages, one time after the other.
    pub fn waits(&self, plan: &Plan) -> u64 {
        let chunks = u64::from(plan.chunks()).div_ceil(self.in_flight.max(1));
        self.rounds.in_a_row(chunks) + self.also
    }

    /// Seconds of computing with all participants on one machine.
    pub fn together(&self, plan: &Plan, rates: &Rates) -> f64 {
        let threads = self.work.len() as u64 * u64::from(plan.lanes);
        let all: f64 = self.cpu_seconds(rates).iter().sum();
        let shared = all / threads.clamp(1, rates.cores.into()) as f64;
        shared.max(self.apart(plan, rates))
    }

    /// Seconds of computing with a machine per participant: those of the slowest.
    fn apart(&self, plan: &Plan, rates: &Rates) -> f64 {
        let slowest = self.cpu_seconds(rates).into_iter().fold(0.0, f64::max);
        slowest / f64::from(plan.lanes.clamp(1, rates.cores))
    }

    /// Seconds with all participants on one machine, over TLS.
    pub fn loopback(&self, plan: &Plan, rates: &Rates) -> f64 {
        self.together(plan, rates) + self.waits(plan) as f64 * rates.wait
    }

    /// Seconds with a machine per participant, over a network.
    pub fn over(&self, plan: &Plan, rates: &Rates, net: Profile) -> f64 {
        let sending = self.busiest as f64 * 8.0 / net.bandwidth as f64;
        let waiting = net.latency.as_secs_f64() * self.waits(plan) as f64;
        waiting + sending.max(self.apart(plan, rates))
    }
}

/// The protocol of each participant.
pub fn protocols(plan: &Arc<Plan>) -> Vec<Arc<dyn Protocol>> {
    let peers = veil_engine::participants(plan).into_iter();
    let protocol = |peer| veil_protocol::protocol(Arc::clone(plan), peer);
    peers.map(protocol).collect()
}
