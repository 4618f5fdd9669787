//! `veil-lab calibrate`: the table of rates by which `veil explain` estimates times.
//!
//! Small plans run on this machine over TLS on loopback. The CPU time of all participants of a plan is a sum of rates, each as often as the
//! plan says ([`Work`]); the rates that explain all measurements best, of which none is negative, are the table.

mod fit;
mod plans;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, WrapErr};
use veil_cli::estimate::Run;
use veil_cli::output;
use veil_cli::rates::{self, Kind, Rates, Work};
use veil_device::{Cpu, Device};
use veil_engine::{Data, Settings};
use veil_protocol::Plan;
use veil_session::Peer;

use crate::loopback::{self, Keys, Nowhere, Pattern};
use plans::{Extent, Sample};

/// A plan is run until this has passed, since short runs differ more from each other, and at least so often, unless it is too long for that.
const LONG_ENOUGH: Duration = Duration::from_millis(60);
const RUNS: usize = 3;
const TOO_LONG: Duration = Duration::from_millis(600);
/// Runs of a plan that may fail before measuring gives up: a machine that is busy for long enough breaks connections.
const MOST_FAILED: usize = 3;

/// Measures the table of rates.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil-lab calibrate                           prints the table; what it explains goes to standard error
  veil-lab calibrate --out ~/.veil/rates.toml  the table that `veil explain` takes here from now on

It takes about a minute on a machine that does nothing else. CPU time is measured, so that other programs disturb it little; what a round
waits for its messages is measured by the clock.")]
pub(crate) struct CalibrateArgs {
    /// Write the table to this file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Measure few plans: a table that shows that measuring works, and that is good for nothing else.
    #[arg(long, hide = true)]
    small: bool,
}

/// What a plan took.
struct Measurement {
    name: String,
    plan: Arc<Plan>,
    run: Run,
    /// Seconds of CPU time of all participants.
    cpu: f64,
    /// Seconds of the slowest participant.
    wall: f64,
}

impl Measurement {
    /// What all participants do.
    fn work(&self) -> Work {
        self.run
            .work
            .iter()
            .fold(Work::default(), |all, one| all + *one)
    }
}

/// Runs the command.
pub(crate) fn run(args: &CalibrateArgs) -> Result<()> {
    let extent = if args.small {
        Extent::Small
    } else {
        Extent::Full
    };
    let samples = plans::samples(extent)?;
    let count = samples.len();
    let mut all = Vec::new();
    for (index, sample) in samples.into_iter().enumerate() {
        eprintln!("{} of {count}: {}", index + 1, sample.name);
        all.push(measure(sample)?);
    }
    let rates = fitted(&all);
    tell(&all, &rates);
    let text = rates.to_toml();
    // What is written is what `explain` reads.
    Rates::parse(Path::new("the table"), &text).into_diagnostic()?;
    match &args.out {
        Some(path) => std::fs::write(path, text)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write the table to {}", path.display())),
        None => Ok(output::print(&text)?),
    }
}

/// The least that a plan takes: whatever else the machine does only adds to it.
fn measure(Sample { name, plan }: Sample) -> Result<Measurement> {
    let keys = Keys::new(&plan)?;
    let settings = Settings::default();
    let (mut cpu, mut wall) = (f64::INFINITY, f64::INFINITY);
    let began = Instant::now();
    let (mut runs, mut failed) = (0, 0);
    let enough = |runs: usize, passed: Duration| match runs {
        0 => false,
        runs if runs < RUNS => passed > TOO_LONG,
        _ => passed > LONG_ENOUGH,
    };
    while !enough(runs, began.elapsed()) {
        let (reports, spent) = match loopback::timed(&plan, &keys, &settings, &data) {
            Ok(measured) => measured,
            Err(error) if failed < MOST_FAILED => {
                eprintln!("repeated, since it failed: {error}");
                failed += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        let slowest = reports.values().map(|report| report.elapsed).max();
        cpu = cpu.min(spent.as_secs_f64());
        wall = wall.min(slowest.unwrap_or_default().as_secs_f64());
        runs += 1;
    }
    let run = Run::of(&plan);
    Ok(Measurement {
        name,
        plan,
        run,
        cpu,
        wall,
    })
}

fn data(_: Peer) -> Data {
    Data {
        source: Some(Arc::new(Pattern)),
        sink: Some(Arc::new(Nowhere)),
        ..Data::default()
    }
}

/// The rates by which the relative errors of all plans have the least squares.
fn fitted(all: &[Measurement]) -> Rates {
    let work: Vec<Work> = all.iter().map(Measurement::work).collect();
    let column = |kind: &Kind| -> Vec<f64> {
        let relative = |(work, of): (&Work, &Measurement)| work.units(*kind) as f64 / of.cpu;
        work.iter().zip(all).map(relative).collect()
    };
    let columns: Vec<Vec<f64>> = Kind::ALL.iter().map(column).collect();
    let found = fit::nonnegative(&columns, &vec![1.0; all.len()]);
    let mut rates = Rates {
        measured: rates::today(),
        machine: rates::machine(),
        device: Cpu::detect().name().to_owned(),
        cores: cores(),
        wait: 0.0,
        seconds: Default::default(),
    };
    for (kind, seconds) in Kind::ALL.iter().zip(found) {
        rates.seconds[*kind as usize] = rounded(seconds);
    }
    // By the clock, runs compute and wait. Other programs make them compute for longer: that part is not the machine's.
    let part = |seconds: &dyn Fn(&Measurement) -> f64| -> Vec<f64> {
        all.iter().map(|of| seconds(of) / of.wall).collect()
    };
    let computing = part(&|of| of.run.together(&of.plan, &rates));
    let waiting = part(&|of| of.run.waits(&of.plan) as f64);
    let found = fit::nonnegative(&[computing, waiting], &vec![1.0; all.len()]);
    if let [slower, wait] = found[..] {
        eprintln!(
            "by the clock, computing took {slower:.2} times as long as on a machine without other programs"
        );
        rates.wait = rounded(wait);
    }
    rates
}

/// Cores that this process may use.
fn cores() -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u16::try_from(cores).unwrap_or(u16::MAX)
}

/// Three digits: no measurement has more.
fn rounded(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

/// Says how well the table explains what was measured.
fn tell(all: &[Measurement], rates: &Rates) {
    let mut rows = vec![
        ["plan", "CPU", "by the table", "clock", "by the table"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let (mut cpu_errors, mut wall_errors) = (Vec::new(), Vec::new());
    for of in all {
        let cpu = of.work().seconds(rates) / of.cpu - 1.0;
        let wall = of.run.loopback(&of.plan, rates) / of.wall - 1.0;
        cpu_errors.push(cpu.abs());
        wall_errors.push(wall.abs());
        rows.push(vec![
            of.name.clone(),
            output::seconds(of.cpu),
            format!("{:+.0} %", cpu * 100.0),
            output::seconds(of.wall),
            format!("{:+.0} %", wall * 100.0),
        ]);
    }
    eprint!("{}", output::columns(&rows));
    for (what, mut errors) in [("CPU time", cpu_errors), ("the clock", wall_errors)] {
        errors.sort_by(f64::total_cmp);
        let at = |part: usize| {
            errors.get((errors.len() * part / 10).min(errors.len().saturating_sub(1)))
        };
        let [half, most] = [at(5), at(9)].map(|e| e.copied().unwrap_or_default() * 100.0);
        eprintln!("{what}: half of all plans within {half:.0} %, nine of ten within {most:.0} %");
    }
    let unseen = Kind::ALL.iter().filter(|kind| rates.of(**kind) == 0.0);
    let unseen: Vec<&str> = unseen.map(|kind| kind.name()).collect();
    if !unseen.is_empty() {
        eprintln!("without a cost of their own: {}", unseen.join(", "));
    }
}
