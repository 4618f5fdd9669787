//! `veil device`: what computes here, and whether it computes right.

use serde::Serialize;
use veil_device::{Cpu, Device, Isa, Reference, conformance};

use crate::failure::{Code, Failure};
use crate::output::{self, columns};

/// Lists and checks devices.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil device list
  veil device check --cases 1000       against the reference, on random programs of ragged sizes
  veil device check --seed 7           the same cases as another time")]
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
}

/// A device that could be here.
struct Candidate {
    name: &'static str,
    what: &'static str,
    make: Result<Box<dyn Device>, String>,
}

/// A line of either command.
#[derive(Serialize)]
struct Line {
    name: &'static str,
    state: &'static str,
    detail: String,
}

pub(crate) fn run(command: &DeviceCommand) -> Result<(), Failure> {
    match command {
        DeviceCommand::List { json } => print(
            &candidates().into_iter().map(listed).collect::<Vec<_>>(),
            None,
            *json,
        ),
        DeviceCommand::Check { cases, seed, json } => {
            let seed = seed.map_or_else(random, Ok)?;
            let lines: Vec<Line> = candidates()
                .into_iter()
                .map(|candidate| checked(candidate, seed, *cases))
                .collect();
            print(&lines, Some(seed), *json)?;
            match lines.iter().find(|line| line.state == "failed") {
                None => Ok(()),
                Some(line) => {
                    let help = format!(
                        "do not compute with it; `veil device check --seed {seed} --cases {cases}` shows it again"
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

fn print(lines: &[Line], seed: Option<u64>, json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(&serde_json::json!({ "seed": seed, "devices": lines }));
    }
    let rows: Vec<_> = lines
        .iter()
        .map(|l| vec![l.name.to_owned(), l.state.to_owned(), l.detail.clone()])
        .collect();
    let seed = seed
        .map(|seed| format!("seed {seed}\n"))
        .unwrap_or_default();
    output::print(&(seed + &columns(&rows)))
}

fn listed(candidate: Candidate) -> Line {
    let (state, detail) = match candidate.make {
        Ok(_) => ("present", candidate.what.to_owned()),
        Err(why) => ("absent", why),
    };
    Line {
        name: candidate.name,
        state,
        detail,
    }
}

fn checked(candidate: Candidate, seed: u64, cases: u32) -> Line {
    let (state, detail) = match candidate.make {
        Err(why) => ("skipped", why),
        Ok(mut device) => match conformance::check(&mut *device, seed, cases) {
            Ok(()) => ("passed", format!("{cases} cases")),
            Err(difference) => ("failed", difference.to_string()),
        },
    };
    Line {
        name: candidate.name,
        state,
        detail,
    }
}

fn candidates() -> Vec<Candidate> {
    let cpu = |name, what, isa, needs: &[(&str, bool)]| {
        let make = if Isa::available().contains(&isa) {
            Ok(Box::new(Cpu::with(isa)) as Box<dyn Device>)
        } else {
            let missing: Vec<&str> = needs
                .iter()
                .filter(|(_, there)| !there)
                .map(|(name, _)| *name)
                .collect();
            Err(format!("this processor lacks {}", missing.join(", ")))
        };
        Candidate { name, what, make }
    };
    let reference = Candidate {
        name: "reference",
        what: "defines every operation, and is slow",
        make: Ok(Box::new(Reference::default())),
    };
    vec![
        reference,
        cpu(
            "cpu-avx512",
            "512 bits at a time, AES in vectors",
            Isa::Avx512,
            &avx512(),
        ),
        cpu(
            "cpu-avx2",
            "256 bits at a time, AES instructions",
            Isa::Avx2,
            &avx2(),
        ),
        cpu(
            "cpu-portable",
            "64 bits at a time, any processor",
            Isa::Portable,
            &[],
        ),
    ]
}

/// What the fastest device needs of a processor, and whether it is there.
#[cfg(target_arch = "x86_64")]
pub(crate) fn avx512() -> [(&'static str, bool); 4] {
    [
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512dq", is_x86_feature_detected!("avx512dq")),
        ("vaes", is_x86_feature_detected!("vaes")),
    ]
}

/// What the second device needs of a processor, and whether it is there.
#[cfg(target_arch = "x86_64")]
pub(crate) fn avx2() -> [(&'static str, bool); 2] {
    [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("aes", is_x86_feature_detected!("aes")),
    ]
}

/// What the fastest device needs of a processor, and whether it is there.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn avx512() -> [(&'static str, bool); 1] {
    [("x86-64", false)]
}

/// What the second device needs of a processor, and whether it is there.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn avx2() -> [(&'static str, bool); 1] {
    [("x86-64", false)]
}

fn random() -> Result<u64, Failure> {
    getrandom::u64().map_err(|error| {
        Failure::new(
            Code::Other,
            format!("the operating system gives no randomness: {error}"),
        )
    })
}
