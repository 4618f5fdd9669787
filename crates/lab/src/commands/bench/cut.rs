//! `veil-lab bench cut`: oblivious AES-128 between two parties of whom one cheats, by cut-and-choose: time by phase of both parties against the
//! statistical parameter, beside what was published (Frederiksen, Nielsen 2013, tables 1 and 2 and figure 1).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use miette::{IntoDiagnostic, Result};
use plotters::prelude::*;
use veil_device::{Cpu, Device, Fault};
use veil_device_cuda::Seconds;
use veil_engine::{Recorder, RoundEvent, Settings, TraceId};
use veil_job::{Adversary, ProtocolKind, Security, Statistical, Word};
use veil_protocol::{Options, Plan, Task};
use veil_session::{PartyId, Peer};

use super::chart::{self, Drawn, Line};
use super::measure::{Carrier, data};
use super::workload::Name;
use super::{BenchArgs, gpu, print_json};
use crate::loopback::over_tls;

/// Published: s, and seconds of the whole run on two desktops with a GTX 670 each and a gigabit link.
const PAPER: [(u8, f64); 5] = [(9, 0.300), (19, 0.539), (29, 0.83), (59, 1.833), (79, 2.7)];

/// Published milliseconds of both parties at s = 9, 19, 59: transfers, then garbled circuits, of which computing.
const PAPER_PHASES: [(u8, [[f64; 3]; 2]); 3] = [
    (9, [[37.1, 230.0, 35.7], [24.4, 235.0, 53.2]]),
    (19, [[39.0, 441.0, 75.1], [24.6, 434.0, 107.0]]),
    (59, [[42.9, 1543.0, 336.0], [24.2, 1466.0, 386.0]]),
];

/// What rounds are for.
const PHASES: [&str; 6] = ["commit", "transfer", "garble", "toss", "check", "evaluate"];

/// Milliseconds of a phase.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct Phase {
    compute_ms: f64,
    wait_ms: f64,
}

/// A run.
#[derive(Clone, Debug, serde::Serialize)]
struct Row {
    bench: &'static str,
    statistical: u8,
    circuits: u64,
    link: &'static str,
    device: String,
    /// From the end of the set-up to the result.
    online_ms: f64,
    /// What kernels of both parties took on a GPU, by its clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_ms: Option<f64>,
    set_up_ms: f64,
    /// Bytes that the garbler and the evaluator send.
    sent: [u64; 2],
    /// Garbler, then evaluator.
    phases: [BTreeMap<&'static str, Phase>; 2],
    /// The published time of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    published_ms: Option<f64>,
}

/// Adds up what rounds take.
#[derive(Default)]
struct Phases(Mutex<[BTreeMap<&'static str, Phase>; 2]>);

impl Recorder for Phases {
    fn session(&self, _: Peer, _: TraceId) {}

    fn round(&self, event: &RoundEvent<'_>) {
        let Some(party) = event.me.party() else {
            return;
        };
        let phase = match (event.task, event.index) {
            (Task::Inputs { .. }, k) => PHASES[k.min(3) as usize],
            (Task::Layers, 0) => PHASES[4],
            (Task::Layers, _) => PHASES[5],
            _ => return,
        };
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        let mut all = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let of = all[party.index()].entry(phase).or_default();
        of.compute_ms += ms(event.computed - event.began) + ms(event.ended - event.landed);
        of.wait_ms += ms(event.landed - event.computed);
    }
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs) -> Result<()> {
    let decades = |s: &&Statistical| s.bits() % 10 == 9;
    let all: Vec<Statistical> = match args.statistical {
        Some(one) => vec![one],
        None => Statistical::ALL.iter().filter(decades).copied().collect(),
    };
    let mut rows = Vec::new();
    for s in all {
        let row = measure(args, s)?;
        if args.json {
            print_json(&row)?;
        }
        rows.push(row);
    }
    if !args.json {
        print(&rows);
    }
    match &args.svg {
        Some(path) => {
            let mut svg = String::new();
            let drawn = draw(&rows, &mut svg);
            chart::put(drawn, &svg, path)
        }
        None => Ok(()),
    }
}

fn measure(args: &BenchArgs, statistical: Statistical) -> Result<Row> {
    let security = Security {
        statistical,
        ..Security::of(ProtocolKind::Yao).against(Adversary::CutAndChoose)
    };
    let workload = Name::Cut.workload(1, security);
    let options = Options {
        lanes: 1,
        chunk_rows: Some(1),
    };
    let plan = Arc::new(Plan::new(Arc::clone(&workload.job), options).into_diagnostic()?);
    let mut runs = Vec::new();
    for _ in 0..args.repeat.max(1) {
        let phases = Arc::new(Phases::default());
        let clock = Seconds::default();
        let mut settings = Settings {
            trace: Some(phases.clone()),
            ..Settings::default()
        };
        if args.device.is_some() {
            // It is there, or says why it is not, before anything runs.
            drop(gpu::device(args)?);
            let (args, clock) = (args.clone(), Arc::clone(&clock));
            settings.device = Arc::new(move || match gpu::device(&args) {
                Ok(device) => Ok(Box::new(device.timed(&clock))),
                Err(absent) => Err(Fault::Absent {
                    device: args.device.clone().unwrap_or_default(),
                    why: absent.to_string(),
                }),
            });
        }
        let reports = over_tls(&plan, &settings, &data, args.net)?;
        let ms = |of: fn(&veil_engine::Report) -> Duration| {
            let longest = reports.values().map(of).max().unwrap_or_default();
            longest.as_secs_f64() * 1e3
        };
        let sent = PartyId::TWO.map(|p| {
            let report = reports.get(&Peer::Party(p));
            report.map_or(0, |r| r.meters.bytes_sent)
        });
        let phases = phases
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        runs.push(Row {
            bench: "cut",
            statistical: statistical.bits(),
            circuits: 2 * u64::from(veil_protocol::cut::half(statistical)),
            link: Carrier::Tls.name(),
            device: args
                .device
                .clone()
                .unwrap_or_else(|| Cpu::detect().name().to_owned()),
            kernel_ms: (args.device.is_some()).then(|| {
                *clock
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    * 1e3
            }),
            online_ms: ms(|r| r.results.saturating_sub(r.set_up)),
            set_up_ms: ms(|r| r.set_up),
            sent,
            phases: phases.clone(),
            published_ms: published(statistical.bits()).map(|s| s * 1e3),
        });
    }
    runs.sort_by(|a, b| a.online_ms.total_cmp(&b.online_ms));
    Ok(runs.swap_remove((runs.len() - 1) / 2))
}

fn published(s: u8) -> Option<f64> {
    let of = PAPER.iter().find(|(of, _)| *of == s);
    of.map(|(_, seconds)| *seconds)
}

fn print(rows: &[Row]) {
    println!(
        "One AES-128 block (128-bit key of the garbler, block of the evaluator), TLS on loopback, after the set-up, in ms."
    );
    println!(
        "Published: Frederiksen, Nielsen 2013, two desktops with a GTX 670 each, gigabit link.\n"
    );
    println!("  s  circuits   online   set-up   sent MB (garbler, evaluator)   published   ratio");
    for row in rows {
        let mb = row.sent.map(|bytes| bytes as f64 / 1e6);
        let (published, ratio) = match row.published_ms {
            Some(ms) => (format!("{ms:.0}"), format!("{:.1}", ms / row.online_ms)),
            None => ("-".into(), "-".into()),
        };
        println!(
            "{:>3} {:>9} {:>8.1} {:>8.1} {:>15.2} {:>14.3} {:>11} {:>7}",
            row.statistical,
            row.circuits,
            row.online_ms,
            row.set_up_ms,
            mb[0],
            mb[1],
            published,
            ratio
        );
    }
    for row in rows {
        if let Some(ms) = row.kernel_ms {
            println!(
                "{:>3}: kernels of both parties on {}: {ms:.2} ms",
                row.statistical, row.device
            );
        }
    }
    for (party, name) in ["garbler", "evaluator"].into_iter().enumerate() {
        println!("\n{name}: computing + waiting");
        print!("  s");
        for phase in PHASES {
            print!(" {phase:>15}");
        }
        println!("   published: transfers, circuits (of which computing)");
        for row in rows {
            print!("{:>3}", row.statistical);
            for phase in PHASES {
                let of = row.phases[party].get(phase).copied().unwrap_or_default();
                print!(
                    " {:>15}",
                    format!("{:.1} + {:.1}", of.compute_ms, of.wait_ms)
                );
            }
            match PAPER_PHASES.iter().find(|(s, _)| *s == row.statistical) {
                Some((_, of)) => {
                    let [transfers, circuits, computing] = of[party];
                    println!("   {transfers}, {circuits} ({computing})");
                }
                None => println!(),
            }
        }
    }
}

fn draw(rows: &[Row], svg: &mut String) -> Drawn {
    let points = |ms: &dyn Fn(&Row) -> f64| -> Vec<(f64, f64)> {
        let of = rows.iter().map(|row| (f64::from(row.statistical), ms(row)));
        of.collect()
    };
    let busy = |party: usize| {
        move |row: &Row| -> f64 { row.phases[party].values().map(|p| p.compute_ms).sum() }
    };
    let line = |number: usize, name: &str, points| Line {
        name: name.to_owned(),
        color: Palette99::pick(number).to_rgba(),
        points,
        limit: vec![],
    };
    let lines = vec![
        line(0, "from inputs to the result", points(&|row| row.online_ms)),
        line(1, "computing, garbler", points(&busy(0))),
        line(2, "computing, evaluator", points(&busy(1))),
        line(
            3,
            "published, a tenth",
            PAPER
                .iter()
                .map(|(s, t)| (f64::from(*s), t * 100.0))
                .collect(),
        ),
    ];
    let most = lines.iter().flat_map(|l| &l.points).map(|p| p.1);
    let most = most.fold(1.0, f64::max) * 1.2;
    let title = "Oblivious AES-128 against a malicious party, by cut-and-choose";
    chart::lines(title, ["s, for an error of 2^-s", "ms"], most, lines, svg)
}
