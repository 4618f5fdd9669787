//! One measurement: a workload on a link, with the CPU time of everything that takes part.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, miette};
use rustix::time::ClockId;
use veil_cli::peak;
use veil_cli::trace::TraceFile;
use veil_device::Cpu;
use veil_engine::{Data, DeviceFactory, Recorder, Report, Settings, TransfersFrom, local};
use veil_job::{ChunkRows, Word};
use veil_link::{Link, floor, shape};
use veil_protocol::passes::PassProgram;
use veil_protocol::{Options, Plan};
use veil_session::Peer;

use super::silent;
use super::workload::Workload;
use crate::loopback::{DataOfPass, Keys, Nowhere, Pattern, Reports, cpu_time, program_over_tls};

/// Over what messages travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Carrier {
    /// In this process.
    Memory,
    /// TLS 1.3 over loopback, a thread per participant and lane.
    Tls,
}

impl Carrier {
    /// Its name in rows.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Carrier::Memory => "memory",
            Carrier::Tls => "tls",
        }
    }
}

/// Bytes of a message of the measurement of what a byte costs, and messages.
const MESSAGE: usize = 64 << 10;
const MESSAGES: u32 = 1024;

impl Carrier {
    /// Seconds of CPU time that no link spares for a byte: the least of three measurements, as neighbours only make them longer.
    fn cost_of_a_byte(self) -> Result<f64> {
        let mut least = f64::INFINITY;
        for _ in 0..3 {
            let cost = match self {
                Carrier::Memory => copy(),
                Carrier::Tls => {
                    let cipher = floor::cipher(MESSAGE, MESSAGES);
                    let cipher = cipher.map_err(|_| miette!("the cipher refused a record"))?;
                    let socket = floor::socket(MESSAGE, MESSAGES).into_diagnostic()?;
                    cipher.cpu + socket.cpu
                }
            };
            least = least.min(cost / 1e9);
        }
        Ok(least)
    }
}

/// Nanoseconds of a byte that is copied once, from one workspace to another.
fn copy() -> f64 {
    // Where both begin at nearly the same place of a page, loads seem to wait for stores, and a copy takes ten times as long.
    const GAP: usize = 1088;
    let mut all = vec![1u8; 2 * MESSAGE + GAP];
    let (from, rest) = all.split_at_mut(MESSAGE);
    let to = &mut rest[GAP..];
    let copied = floor::measure(MESSAGE as u64 * u64::from(MESSAGES), || {
        for _ in 0..MESSAGES {
            black_box(&mut *to).copy_from_slice(black_box(&*from));
        }
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(cost) = copied;
    cost.cpu
}

/// A row of results. Field names are those of the JSON rows; protocols and devices add rows, never another format.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct Row {
    pub(crate) bench: String,
    pub(crate) protocol: &'static str,
    pub(crate) adversary: &'static str,
    /// How gates are garbled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tables: Option<&'static str>,
    pub(crate) device: &'static str,
    pub(crate) link: &'static str,
    /// Delay and rate of a shaped link; `none` as the machine is.
    pub(crate) net: String,
    /// Rows computed together.
    pub(crate) batch: u64,
    pub(crate) cores: u16,
    /// Operations per CPU-second, user and system, of all participants together.
    pub(crate) rate_per_cpu_s: f64,
    /// Operations per second of the clock, set-up included.
    pub(crate) rate_per_s: f64,
    /// Part of what the masks alone would allow, measured in the same run.
    pub(crate) bound_fraction: f64,
    /// Part of what the bytes alone would allow, which all participants send: a copy of each in memory; the cipher at both ends and the socket over
    /// TLS, measured in the same run.
    pub(crate) bytes_fraction: f64,
    /// Bytes that one party sends per operation, our frames included.
    pub(crate) bytes_per_op: f64,
    /// Gb/s that one party sends.
    pub(crate) gbit_per_s: f64,
    /// Gb that a party sends per CPU-second of its own, over all parties: what one core of it fills.
    pub(crate) gbit_per_core_s: f64,
    /// CPU-seconds of a run, user and system, of all participants together.
    pub(crate) cpu_s: f64,
    /// Bytes that all participants send in a run, our frames included.
    pub(crate) bytes_sent: u64,
    /// Largest memory of this process, with all participants in it.
    pub(crate) peak_rss_mb: f64,
    /// Milliseconds from the end of the set-up to the last result.
    pub(crate) online_ms: f64,
    /// Milliseconds of handshake and job-wide inputs, in the first of the runs.
    pub(crate) set_up_ms: f64,
    /// The same in the others, where they began with what the first one had kept: the least.
    pub(crate) kept_set_up_ms: Option<f64>,
}

/// What is measured besides the workload.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) carrier: Carrier,
    pub(crate) net: Option<shape::Profile>,
    pub(crate) cores: u16,
    pub(crate) chunk_rows: Option<u32>,
    pub(crate) repeat: u32,
    /// What makes the device of each lane of each party.
    pub(crate) device: DeviceFactory,
    /// Where every round of the last run is written down.
    pub(crate) trace: Option<PathBuf>,
}

/// Measures `workload` and gives the median of the repetitions by CPU time.
pub(crate) fn measure(workload: &Workload, setup: &Setup) -> Result<Row> {
    measure_with(workload, setup, &data)
}

/// As [`measure`], with what each participant brings.
pub(super) fn measure_with(
    workload: &Workload,
    setup: &Setup,
    data: &(dyn Fn(Peer) -> Data + Sync),
) -> Result<Row> {
    let device = (setup.device)().into_diagnostic()?;
    let mut job = (*workload.job).clone();
    if setup.chunk_rows.is_none() {
        // As a run does.
        let wish = device.chunk_rows(job.circuit.ring);
        job.security.chunk_rows = wish.and_then(ChunkRows::within);
    }
    let options = Options {
        lanes: setup.cores,
        chunk_rows: setup.chunk_rows,
    };
    let plan = Arc::new(Plan::new(Arc::new(job), options).into_diagnostic()?);
    let silent = silent::least_seconds(&plan);
    let of_transfers = silent.map_or(0.0, |_| workload.blocks_of_transfers);
    let course = Course {
        name: silent.map_or(workload.name, |_| "ag-silent"),
        batch: plan.job.rows(),
        ops: workload.job.rows() as f64 * workload.ops as f64,
        blocks_per_op: workload.blocks_per_op - of_transfers,
        gather_seconds: silent.unwrap_or(0.0),
        program: Arc::new(Arc::clone(&plan).into()),
        data: &|peer, _| data(peer),
    };
    measure_program(&course, setup)
}

/// A program that is measured.
pub(super) struct Course<'a> {
    pub(super) name: &'static str,
    pub(super) batch: u64,
    /// Operations in all.
    pub(super) ops: f64,
    /// AES blocks of masks per operation, over all parties.
    pub(super) blocks_per_op: f64,
    /// Seconds that memory takes for rows that move, or silent transfers at the least, at all parties, measured in the same run.
    pub(super) gather_seconds: f64,
    pub(super) program: Arc<PassProgram>,
    pub(super) data: &'a DataOfPass<'a>,
}

/// Measures a program, as [`measure`] does.
pub(super) fn measure_program(course: &Course<'_>, setup: &Setup) -> Result<Row> {
    let device = (setup.device)().into_diagnostic()?;
    let plan = course.program.first();
    let prf = Cpu::detect().prf_rate(Duration::from_millis(200));
    let byte = setup.carrier.cost_of_a_byte()?;
    let mut runs = Vec::new();
    // Both ends of a pair may keep things in one place: they are for other roles.
    let mut settings = settings(setup);
    let keys = Keys::new(plan)?;
    let (mut set_up_ms, mut kept_set_up_ms) = (None, None::<f64>);
    for left in (0..setup.repeat.max(1)).rev() {
        let last = setup.trace.as_ref().filter(|_| left == 0);
        let trace = last
            .map(|path| TraceFile::create(path, plan))
            .transpose()?
            .map(Arc::new);
        settings.trace = trace.clone().map(|trace| trace as Arc<dyn Recorder>);
        peak::forget();
        let (cpu, start) = (cpu_time(ClockId::ProcessCPUTime), Instant::now());
        let reports = match setup.carrier {
            Carrier::Memory => in_memory(course, &settings, setup.net)?,
            Carrier::Tls => {
                program_over_tls(&course.program, &keys, &settings, course.data, setup.net)?
            }
        };
        if let Some(trace) = trace {
            trace.finish();
        }
        let took = slowest(&reports, |r| r.set_up);
        set_up_ms.get_or_insert(took);
        if reports
            .values()
            .any(|r| r.transfers == Some(TransfersFrom::Cache))
        {
            kept_set_up_ms = Some(kept_set_up_ms.map_or(took, |least| least.min(took)));
        }
        runs.push((
            cpu_time(ClockId::ProcessCPUTime)
                .saturating_sub(cpu)
                .as_secs_f64(),
            start.elapsed().as_secs_f64(),
            reports,
            peak::bytes().unwrap_or(0) as f64 / (1 << 20) as f64,
        ));
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (cpu, wall, reports, peak) = runs.swap_remove((runs.len() - 1) / 2);
    let ops = course.ops;
    let parties = plan.parties().iter().copied().map(Peer::Party);
    let sent = parties.filter_map(|p| Some(reports.get(&p)?.meters.bytes_sent));
    let all_sent = sent.clone().sum::<u64>() as f64;
    let sent = sent.max().unwrap_or(0) as f64;
    let rate = ops / cpu;
    let all_bytes: u64 = reports.values().map(|r| r.meters.bytes_sent).sum();
    let protocol = veil_protocol::protocol(Arc::clone(plan), Peer::Party(plan.parties()[0]));
    Ok(Row {
        bench: course.name.to_owned(),
        protocol: protocol.name(),
        adversary: plan.job.security.adversary.word(),
        tables: (protocol.transfers().is_some()).then(|| plan.job.security.tables.word()),
        device: device.name(),
        link: setup.carrier.name(),
        net: setup
            .net
            .map_or_else(|| "none".to_owned(), |n| n.to_string()),
        batch: course.batch,
        cores: setup.cores,
        rate_per_cpu_s: rate,
        rate_per_s: ops / wall,
        bound_fraction: (ops * course.blocks_per_op / prf + course.gather_seconds) / cpu,
        bytes_fraction: all_bytes as f64 * byte / cpu,
        bytes_per_op: sent / ops,
        gbit_per_s: sent * 8.0 / wall / 1e9,
        gbit_per_core_s: all_sent * 8.0 / cpu / 1e9,
        cpu_s: cpu,
        bytes_sent: all_bytes,
        peak_rss_mb: peak,
        online_ms: slowest(&reports, |r| r.results.saturating_sub(r.set_up)),
        set_up_ms: set_up_ms.unwrap_or_default(),
        kept_set_up_ms,
    })
}

/// Milliseconds of the participant that takes longest.
fn slowest(reports: &Reports, of: fn(&Report) -> Duration) -> f64 {
    let longest = reports.values().map(of).max().unwrap_or_default();
    longest.as_secs_f64() * 1e3
}

pub(super) fn data(peer: Peer) -> Data {
    match peer {
        Peer::Party(p) if p.index() == 0 => Data {
            source: Some(Arc::new(Pattern)),
            ..Data::default()
        },
        Peer::Party(p) if p.index() == 1 => Data {
            source: Some(Arc::new(Pattern)),
            sink: Some(Arc::new(Nowhere)),
            ..Data::default()
        },
        Peer::Party(_) | Peer::Owner(_) | Peer::Recipient(_) => Data::default(),
    }
}

/// Settings of a benchmark: a window that hides the network's delay, and none in one process, where there is nothing to hide.
fn settings(setup: &Setup) -> Settings {
    let window = match (setup.carrier, setup.net) {
        (_, Some(_)) => 8,
        (Carrier::Memory, None) => 1,
        (Carrier::Tls, None) => 4,
    };
    Settings {
        window,
        device: Arc::clone(&setup.device),
        ot_cache: Some(Arc::default()),
        ..Settings::default()
    }
}

fn in_memory(
    course: &Course<'_>,
    settings: &Settings,
    net: Option<shape::Profile>,
) -> Result<Reports> {
    let wrap = |_, _, link| -> Box<dyn Link> {
        match net {
            Some(profile) => Box::new(shape::Shaped::new(link, profile)),
            None => Box::new(link),
        }
    };
    let conditions = local::Conditions {
        settings: &|_| settings.clone(),
        wrap: &wrap,
        stop: None,
    };
    local::run_program(&course.program, course.data, &|_| (), &conditions).into_diagnostic()
}

/// That of this thread.
pub(super) fn thread_cpu() -> Duration {
    cpu_time(ClockId::ThreadCPUTime)
}
