//! Counters of a service, in the names of Prometheus.
//!
//! Labels are states, roles, directions and phases: no job, no member, and nothing that depends on a value. How long rounds and
//! runs take is no secret: it follows from the plan, which is public, from the network and from the machine.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use veil_engine::{Abort, Recorder, Report, RoundEvent, TraceId, TransfersFrom};
use veil_link::tls::Turned;
use veil_link::{Link, LinkError};
use veil_protocol::Task;
use veil_session::{Channel, Peer, Wiped};

type Seconds = Counter<f64, AtomicU64>;

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct FromLabel {
    from: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct HowLabel {
    how: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct PhaseLabel {
    phase: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct TrafficLabel {
    peer: &'static str,
    direction: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct DeviceLabel {
    device: String,
}

/// The counters of one service.
pub(crate) struct Metrics {
    registry: Registry,
    jobs: Family<StateLabel, Gauge>,
    runs: Family<OutcomeLabel, Counter>,
    rounds: Family<PhaseLabel, Counter>,
    waits: Histogram,
    messages: Family<TrafficLabel, Counter>,
    bytes: Family<TrafficLabel, Counter>,
    busy: Family<DeviceLabel, Seconds>,
    busy_ratio: Family<DeviceLabel, Gauge<f64, AtomicU64>>,
    checks: Counter,
    transfers: Family<FromLabel, Counter>,
    planning: Histogram,
    planners: Family<HowLabel, Counter>,
    copies: Counter,
    stock: Gauge,
    stock_cells: Family<HowLabel, Counter>,
    turned: Family<OutcomeLabel, Counter>,
    disk: Gauge,
    log: Gauge,
    policy: Gauge,
    last: Mutex<Turned>,
    device: String,
}

impl Metrics {
    /// Counters at zero, of a service that computes on `device`.
    pub(crate) fn new(device: String) -> Self {
        let mut registry = Registry::default();
        let jobs = Family::default();
        registry.register("mpc_job_state", "Jobs by state", jobs.clone());
        let runs = Family::default();
        registry.register("mpc_runs", "Runs that ended, by how", runs.clone());
        let rounds = Family::default();
        registry.register("mpc_rounds", "Rounds, by phase", rounds.clone());
        // From a tenth of a millisecond, a fast LAN, to half a minute, the usual time-out.
        let waits = Histogram::new(exponential_buckets(1e-4, 4.0, 10));
        registry.register_with_unit(
            "mpc_round_wait",
            "Time from the last message sent in a round to the last received",
            Unit::Seconds,
            waits.clone(),
        );
        let messages = Family::default();
        registry.register(
            "mpc_messages",
            "Messages by the peer's role and direction",
            messages.clone(),
        );
        let bytes = Family::default();
        registry.register(
            "mpc_bytes",
            "Payload bytes by the peer's role and direction",
            bytes.clone(),
        );
        let busy = Family::default();
        registry.register_with_unit(
            "mpc_device_busy",
            "Time in which devices worked",
            Unit::Seconds,
            busy.clone(),
        );
        let busy_ratio = Family::default();
        registry.register(
            "mpc_device_busy_ratio",
            "Part of its lanes' time in which the device of the last run worked",
            busy_ratio.clone(),
        );
        let checks = Counter::default();
        registry.register(
            "mpc_check_failures",
            "Runs that ended because a check failed",
            checks.clone(),
        );
        let transfers = Family::default();
        registry.register(
            "mpc_transfer_set_ups",
            "Runs that ended well, by where their oblivious transfers came from",
            transfers.clone(),
        );
        // From a hundredth of a second to a minute and a half, the longest that planning may take.
        let planning = Histogram::new(exponential_buckets(1e-2, 3.0, 9));
        registry.register_with_unit(
            "veil_planner",
            "Time that proposals were planned",
            Unit::Seconds,
            planning.clone(),
        );
        let planners = Family::default();
        registry.register(
            "veil_planner_ended",
            "Planning processes that ended, by how",
            planners.clone(),
        );
        let copies = Counter::default();
        registry.register(
            "mpc_memory_copies",
            "Kept transfers that were dropped because the memory was restored or copied",
            copies.clone(),
        );
        let stock = Gauge::default();
        registry.register(
            "veil_stock_cells_left",
            "Cells and transfers of stock that are left, with all parties",
            stock.clone(),
        );
        let stock_cells = Family::default();
        registry.register(
            "veil_stock_cells",
            "Cells and transfers of stock that were made, spent by runs, or lost with their generation",
            stock_cells.clone(),
        );
        let turned = Family::default();
        registry.register(
            "mpc_refused_connections",
            "Callers that were turned away, by why",
            turned.clone(),
        );
        let [disk, log, policy] = [(); 3].map(|()| Gauge::default());
        registry.register_with_unit(
            "mpc_disk_free",
            "Room on the disk of the home",
            Unit::Bytes,
            disk.clone(),
        );
        registry.register(
            "mpc_log_writable",
            "1 if the log takes entries",
            log.clone(),
        );
        registry.register(
            "mpc_policy_readable",
            "1 if there is no policy, or one that can be read",
            policy.clone(),
        );
        let build = vec![("version", env!("CARGO_PKG_VERSION"))];
        registry.register("veil_build", "This program", Info::new(build));
        Metrics {
            registry,
            jobs,
            runs,
            rounds,
            waits,
            messages,
            bytes,
            busy,
            busy_ratio,
            checks,
            transfers,
            planning,
            planners,
            copies,
            stock,
            stock_cells,
            turned,
            disk,
            log,
            policy,
            last: Mutex::default(),
            device,
        }
    }

    /// How many jobs are in a state.
    pub(crate) fn set_jobs(&self, state: &'static str, count: usize) {
        let label = StateLabel { state };
        self.jobs.get_or_create(&label).set(count as i64);
    }

    /// The memory was found to be a copy.
    pub(crate) fn copied(&self) {
        self.copies.inc();
    }

    /// So many cells of stock are left.
    pub(crate) fn set_stock(&self, cells: u64) {
        self.stock.set(i64::try_from(cells).unwrap_or(i64::MAX));
    }

    /// So many cells of stock were made, spent and lost.
    pub(crate) fn stock(&self, cells: [u64; 3]) {
        for (how, cells) in ["made", "spent", "lost"].into_iter().zip(cells) {
            let label = HowLabel { how };
            self.stock_cells.get_or_create(&label).inc_by(cells);
        }
    }

    /// How much room is left.
    pub(crate) fn set_disk(&self, free: u64) {
        self.disk.set(i64::try_from(free).unwrap_or(i64::MAX));
    }

    /// Whether the log takes entries, and the policy can be read.
    pub(crate) fn set_readable(&self, log: bool, policy: bool) {
        self.log.set(log.into());
        self.policy.set(policy.into());
    }

    /// A run ended well.
    pub(crate) fn done(&self, report: &Report, lanes: u16) {
        let label = DeviceLabel {
            device: self.device.clone(),
        };
        if let Some(from) = report.transfers {
            let from = match from {
                TransfersFrom::Curves => "curves",
                TransfersFrom::Cache => "kept",
            };
            self.transfers.get_or_create(&FromLabel { from }).inc();
        }
        let busy = report.busy.as_secs_f64();
        self.busy.get_or_create(&label).inc_by(busy);
        let all = report.elapsed.as_secs_f64() * f64::from(lanes);
        if all > 0.0 {
            self.busy_ratio
                .get_or_create(&label)
                .set((busy / all).min(1.0));
        }
        self.ended("done");
    }

    /// A proposal was planned for so long, and its process ended so.
    pub(crate) fn planned(&self, took: Duration, how: &'static str) {
        self.planning.observe(took.as_secs_f64());
        self.planners.get_or_create(&HowLabel { how }).inc();
    }

    /// A run ended, for this reason.
    pub(crate) fn ended(&self, outcome: &'static str) {
        self.runs.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// A run was given up.
    pub(crate) fn aborted(&self, abort: &Abort) {
        if matches!(abort, Abort::Cheated { .. } | Abort::SetUp { .. }) {
            self.checks.inc();
        }
    }

    /// All of it, in the text format of Prometheus.
    pub(crate) fn text(&self, turned: Turned) -> String {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |outcome, now: u64, before: u64| {
            let label = OutcomeLabel { outcome };
            let counter = self.turned.get_or_create(&label).clone();
            counter.inc_by(now.saturating_sub(before));
        };
        count("stranger", turned.strangers, last.strangers);
        count("refused", turned.refused, last.refused);
        count("later", turned.later, last.later);
        *last = turned;
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }

    /// The same link, counted.
    pub(crate) fn count(&self, link: Box<dyn Link>) -> Box<dyn Link> {
        let counters = |direction| {
            ["party", "owner", "recipient"].map(|peer| {
                let label = TrafficLabel { peer, direction };
                (
                    self.messages.get_or_create(&label).clone(),
                    self.bytes.get_or_create(&label).clone(),
                )
            })
        };
        Box::new(Counted {
            link,
            sent: counters("sent"),
            received: counters("received"),
        })
    }
}

impl Recorder for Metrics {
    fn session(&self, _me: Peer, _trace: TraceId) {}

    fn round(&self, event: &RoundEvent<'_>) {
        let phase = match event.task {
            Task::SetUp => "set-up",
            Task::Inputs { .. } => "inputs",
            Task::Layers | Task::Totals => "layers",
            Task::Agree => "agree",
            Task::Open(_) | Task::OpenTotals(_) => "open",
        };
        self.rounds.get_or_create(&PhaseLabel { phase }).inc();
        if !event.received.is_empty() {
            let wait = event.landed.saturating_duration_since(event.posted);
            self.waits.observe(wait.as_secs_f64());
        }
    }
}

type Traffic = [(Counter, Counter); 3];

/// A link whose messages are counted.
struct Counted {
    link: Box<dyn Link>,
    sent: Traffic,
    received: Traffic,
}

fn count(traffic: &Traffic, peer: Peer, bytes: usize) {
    let (messages, payload) = match peer {
        Peer::Party(_) => &traffic[0],
        Peer::Owner(_) => &traffic[1],
        Peer::Recipient(_) => &traffic[2],
    };
    messages.inc();
    payload.inc_by(bytes as u64);
}

impl Link for Counted {
    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        let posted = self.link.post(to, at, bytes)?;
        if posted {
            count(&self.sent, to, bytes.len());
        }
        Ok(posted)
    }

    fn post_pieces(&mut self, to: Peer, at: Channel, pieces: &[&[u8]]) -> Result<bool, LinkError> {
        let posted = self.link.post_pieces(to, at, pieces)?;
        if posted {
            count(&self.sent, to, pieces.iter().map(|piece| piece.len()).sum());
        }
        Ok(posted)
    }

    fn land_pieces(
        &mut self,
        from: Peer,
        at: Channel,
        bytes: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, LinkError> {
        let landed = self.link.land_pieces(from, at, bytes, put)?;
        if landed {
            count(&self.received, from, bytes);
        }
        Ok(landed)
    }

    fn land_whole(
        &mut self,
        from: Peer,
        at: Channel,
        into: &mut Wiped<u8>,
    ) -> Result<bool, LinkError> {
        let bytes = into.len();
        let landed = self.link.land_whole(from, at, into)?;
        if landed {
            count(&self.received, from, bytes);
        }
        Ok(landed)
    }

    fn land(&mut self, from: Peer, at: Channel, into: &mut [u8]) -> Result<bool, LinkError> {
        let landed = self.link.land(from, at, into)?;
        if landed {
            count(&self.received, from, into.len());
        }
        Ok(landed)
    }

    veil_link::forward!(self, self.link, bind expect poll wait abort under_way close meters);
}
