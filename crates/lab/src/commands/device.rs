//! `veil-lab device`: what computes here, and whether it computes right.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Serialize;
use veil_cli::commands::device::{Line, list, print};
use veil_cli::devices::{Candidate, Registry, candidates, make};
use veil_cli::failure::{Code, Failure};
use veil_cli::output;
use veil_device::conformance;
use veil_device::record::{self, ReplayError};

/// Lists and checks devices.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil-lab device list
  veil-lab device check --cases 1000       against the reference, on random programs of ragged sizes
  veil-lab device check --seed 7           the same cases as another time
  veil-lab device replay rec               one recorded party, alone; see `veil run --record`
  veil-lab device replay rec --device reference")]
pub(crate) enum DeviceCommand {
    /// List the devices that are here, and say why others are not
    List {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Compare every device that is here with the reference
    Check {
        /// Random cases per device.
        #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
        cases: u32,
        /// Seed of the cases [default: random, and printed]
        #[arg(long)]
        seed: Option<u64>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Drive a device with the record of one participant, and compare every byte that it gave
    Replay {
        /// The folder that `veil run --record` made.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// A device of `veil-lab device list`; `cpu` is the fastest that is here.
        #[arg(long, value_name = "DEVICE", default_value = "cpu")]
        device: String,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(command: &DeviceCommand, registry: &dyn Registry) -> Result<(), Failure> {
    match command {
        DeviceCommand::List { json } => list(registry, *json),
        DeviceCommand::Replay {
            folder,
            device,
            json,
        } => replay(folder, device, registry, *json),
        DeviceCommand::Check { cases, seed, json } => {
            let seed = seed.map_or_else(random, Ok)?;
            let lines: Vec<Line> = candidates(registry)
                .iter()
                .map(|candidate| checked(candidate, seed, *cases))
                .collect();
            print(&lines, Some(seed), *json)?;
            match lines.iter().find(|line| line.state == "failed") {
                None => Ok(()),
                Some(line) => {
                    let help = format!(
                        "do not compute with it; `veil-lab device check --seed {seed} --cases {cases}` shows it again"
                    );
                    Err(Failure::new(
                        Code::Device,
                        format!("{} does not compute what the reference does", line.name),
                    )
                    .help(help))
                }
            }
        }
    }
}

/// What `replay --json` prints for each file.
#[derive(Serialize)]
struct Played {
    file: PathBuf,
    device: &'static str,
    recorded_on: String,
    steps: u64,
    #[serde(rename = "banks")]
    workspaces: u64,
    batches: u64,
    commands: u64,
    /// Passes of the job that the device was used in, counted from 1.
    passes: Vec<u32>,
    bytes_compared: u64,
    device_seconds: f64,
}

/// What to do about a record that cannot be used.
const AGAIN: &str = "record the run again: `veil run JOB --record DIR --data-are-mine`";

fn replay(folder: &Path, name: &str, registry: &dyn Registry, json: bool) -> Result<(), Failure> {
    let mut all = Vec::new();
    for path in files(folder)? {
        let shown = path.display();
        let file = File::open(&path).map_err(|error| {
            Failure::new(Code::Input, format!("cannot read {shown}: {error}")).help(AGAIN)
        })?;
        // A lane has a device of its own, as in the run.
        let mut device = make(name, registry)?;
        let played = record::replay(BufReader::with_capacity(1 << 20, file), &mut *device);
        let played = played.map_err(|error| differs(&path, device.name(), &error))?;
        all.push(Played {
            device: device.name(),
            recorded_on: played.recorded_on,
            steps: played.steps,
            workspaces: played.workspaces,
            batches: played.batches,
            commands: played.commands,
            passes: played
                .passes
                .iter()
                .map(|pass| u32::from(*pass) + 1)
                .collect(),
            bytes_compared: played.bytes,
            device_seconds: played.busy.as_secs_f64(),
            file: path,
        });
    }
    if json {
        return output::print_json(&serde_json::json!({ "files": all }));
    }
    let mut text = String::new();
    for played in &all {
        let seconds = played.device_seconds;
        let rate = played.commands as f64 / seconds.max(1e-9);
        let _ = writeln!(
            text,
            "{}: {} as on {}\n  {} in {} on {}{}, {} compared, all equal\n  {} in the device, {rate:.0} commands/s",
            played.file.display(),
            played.device,
            played.recorded_on,
            output::count(played.commands, "command"),
            format_args!("{} batches", played.batches),
            output::count(played.workspaces, "workspace"),
            match &played.passes[..] {
                // All there is of a job of one circuit.
                [] | [1] => String::new(),
                [pass] => format!(" of pass {pass}"),
                [first, .., last] =>
                    format!(" of {} passes from {first} to {last}", played.passes.len()),
            },
            output::bytes(played.bytes_compared),
            output::seconds(seconds),
        );
    }
    output::print(&text)
}

/// The files of a record, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |what: &str| {
        Failure::new(Code::Input, format!("{}: {what}", folder.display()))
            .help("a record is made by `veil run JOB --record DIR --data-are-mine`")
    };
    let listed = fs::read_dir(folder).map_err(|error| wrong(&error.to_string()))?;
    let mut files: Vec<PathBuf> = listed
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "record"))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(wrong("there is no record in this folder"));
    }
    Ok(files)
}

fn differs(path: &Path, device: &str, error: &ReplayError) -> Failure {
    let (code, help) = match error {
        ReplayError::Damaged(_) => (Code::Input, AGAIN),
        _ => (
            Code::Device,
            "do not compute with this device; `veil-lab device check` tries it on random programs",
        ),
    };
    Failure::new(code, format!("{}, on {device}: {error}", path.display())).help(help)
}

fn checked(candidate: &Candidate, seed: u64, cases: u32) -> Line {
    let (state, detail) = match (candidate.make)() {
        Err(why) => ("skipped", why),
        Ok(mut device) => match conformance::check(&mut *device, seed, cases) {
            Ok(()) => ("passed", format!("{cases} cases")),
            Err(difference) => ("failed", difference.to_string()),
        },
    };
    Line {
        name: candidate.name.to_owned(),
        state,
        detail,
    }
}

fn random() -> Result<u64, Failure> {
    getrandom::u64().map_err(|error| {
        Failure::new(
            Code::Other,
            format!("the operating system gives no randomness: {error}"),
        )
    })
}
