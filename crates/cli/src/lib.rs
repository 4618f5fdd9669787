//! The `veil` command: a thin shell over the libraries.
//!
//! **What it is for.** Running jobs on one machine or as one participant of a deployment, explaining what a job costs and
//! opens, and looking at circuits, devices and the machine. A file per command in `commands`; what several of them share
//! stands beside it.
//!
//! **Who may use it.** The programs `veil` and `veil-lab`, which is built on the same code and has the commands that measure, compare and
//! simulate. What is public here is what that one needs. Other programs use `veil_program`, `veil_protocol` and `veil_engine` instead:
//! nothing happens here that they cannot do.
//!
//! ```text
//! veil explain job.toml      # what is computed, what it costs, what is opened to whom
//! veil stats job.toml        # all roles on this machine
//! veil party job.toml        # one role of a deployment
//! ```
//!
//! **What it promises.** Results go to standard output, everything else to standard error; `--json` prints one object. Files
//! appear complete or not at all. Exit codes mean what [`failure::Code`] says, and every failure says what to do. `veil` has no simulator,
//! no emulator, no benchmark and no plotter inside, and `explain` and `approve` run nothing.
//!
//! **What it does not.** The words of messages and tables are for people and may change; JSON fields only grow.

#![allow(
    clippy::missing_errors_doc,
    reason = "a failure of a command is a sentence and an exit code, which `failure` describes once"
)]

pub mod boards;
pub mod commands;
mod consent;
pub mod devices;
pub mod failure;
mod home;
pub mod launch;
pub mod links;
pub mod nodes;
mod ordered;
pub mod output;
pub mod peak;
pub mod prepare;
mod progress;
pub mod rates;
pub mod room;
pub mod signals;
mod stocks;
pub mod trace;
mod views;
mod wishes;

pub use veilworks::explain::estimate;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use devices::{Plain, Registry};
use failure::Failure;

/// Secure multi-party computation: owners who may not show each other their data compute on all of it together.
#[derive(Parser, Debug)]
#[command(name = "veil", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    /// Say more about what is done, on standard error.
    #[arg(short, long, global = true)]
    verbose: bool,
    /// How a failure is said on standard error: for people, or as one line of JSON for a program that runs this one.
    #[arg(long, global = true, value_name = "FORM", hide_short_help = true, default_value = "text", value_parser = ["text", "json"])]
    errors: String,
    #[command(subcommand)]
    command: commands::Command,
}

const AFTER_HELP: &str = "Examples:
  veil explain job.toml            what a job costs, and every value it opens
  veil stats job.toml --check      statistics, all roles on this machine,
                                   compared with the clear result
  veil run job.toml --processes    any job, a process per participant, over TLS
  veil init mill --role owner      a home; then: veil invite, join, approve
  veil serve                       a party as a service; then: veil submit job.toml

Benchmarks, simulated devices, and checks of devices, circuits and traces are commands of `veil-lab`.

Exit codes:
  0  done
  1  anything else, such as a signal
  2  the command line
  3  a job, party, circuit or data file is wrong
  4  a participant cheated, or a check failed
  5  a link failed, or a time-out passed
  6  a device failed";

/// The program `veil`.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // Nothing is read, written or started before it is confined.
    if let commands::Command::Inner(command) = &cli.command {
        return commands::inner::run(command);
    }
    // It opens a file: a service that is asked for no GPU opens none outside its home.
    let mut arguments = std::env::args_os();
    if arguments.any(|argument| argument.to_string_lossy().contains("cuda")) {
        veil_device_cuda::prepare();
    }
    failure::install_reporter();
    let registry: Arc<dyn Registry> = Arc::new(Plain);
    match cli.command.run(cli.verbose, &registry) {
        Err(failure) if cli.errors == "json" => {
            eprintln!("{}", failure.json());
            ExitCode::from(failure.code() as u8)
        }
        result => ended(result),
    }
}

/// How a program ends: with the code of its failure, which it has said.
pub fn ended(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = failure.code();
            eprintln!("{:?}", miette::Report::new(failure));
            ExitCode::from(code as u8)
        }
    }
}
