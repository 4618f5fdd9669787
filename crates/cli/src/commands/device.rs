//! `veil device`: what computes here.

use serde::Serialize;

use crate::boards;
use crate::commands::moved::{self, Moved};
use crate::devices::{Candidate, Registry, candidates, gpus};
use crate::failure::Failure;
use crate::output::{self, columns};

/// Lists devices.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil device list
  veil-lab device check            every device against the reference
  veil-lab device replay rec       one recorded party, alone; see `veil run --record`")]
pub(crate) enum DeviceCommand {
    /// List the devices that are here, and say why others are not
    List {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    #[command(hide = true, disable_help_flag = true)]
    Check(Moved),
    #[command(hide = true, disable_help_flag = true)]
    Replay(Moved),
}

/// How a device is, in a line.
#[derive(Serialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// In a word.
    pub state: &'static str,
    /// What is to be said of that.
    pub detail: String,
}

pub(crate) fn run(command: &DeviceCommand, registry: &dyn Registry) -> Result<(), Failure> {
    match command {
        DeviceCommand::List { json } => list(registry, *json),
        DeviceCommand::Check(_) => Err(moved::to("device check")),
        DeviceCommand::Replay(_) => Err(moved::to("device replay")),
    }
}

/// Lists the devices that are here, and says why others are not.
pub fn list(registry: &dyn Registry, json: bool) -> Result<(), Failure> {
    let mut all: Vec<Line> = candidates(registry).iter().map(listed).collect();
    all.extend(gpus().into_iter().map(|gpu| Line {
        name: gpu.name,
        state: if gpu.present { "present" } else { "absent" },
        detail: gpu.detail,
    }));
    // Which sockets there are, no program knows.
    all.push(Line {
        name: boards::NAME.to_owned(),
        state: "by socket",
        detail: boards::WHAT.to_owned(),
    });
    print(&all, None, json)
}

/// Prints a line for every device.
pub fn print(lines: &[Line], seed: Option<u64>, json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(&serde_json::json!({ "seed": seed, "devices": lines }));
    }
    let rows: Vec<_> = lines
        .iter()
        .map(|l| vec![l.name.clone(), l.state.to_owned(), l.detail.clone()])
        .collect();
    let seed = seed
        .map(|seed| format!("seed {seed}\n"))
        .unwrap_or_default();
    output::print(&(seed + &columns(&rows)))
}

fn listed(candidate: &Candidate) -> Line {
    let (state, detail) = match (candidate.make)() {
        Ok(_) => ("present", candidate.what.to_owned()),
        Err(why) => ("absent", why),
    };
    Line {
        name: candidate.name.to_owned(),
        state,
        detail,
    }
}
