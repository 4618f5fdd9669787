//! The `veil` command: a thin shell over the libraries.
//!
//! **What it is for.** Running jobs on one machine or as one participant of a deployment, explaining what a job costs and
//! opens, and looking at circuits, devices and the machine. A file per command in `commands`; what several of them share
//! stands beside it.
//!
//! **Who may use it.** People and scripts. Programs use `veil_program`, `veil_protocol` and `veil_engine` instead: nothing
//! happens here that they cannot do.
//!
//! ```text
//! veil explain job.toml      # what is computed, what it costs, what is opened to whom
//! veil stats job.toml        # all roles on this machine
//! veil party job.toml        # one role of a deployment
//! ```
//!
//! **What it promises.** Results go to standard output, everything else to standard error; `--json` prints one object. Files
//! appear complete or not at all. Exit codes mean what [`failure::Code`] says, and every failure says what to do.
//!
//! **What it does not.** The words of messages and tables are for people and may change; JSON fields only grow.

mod commands;
mod consent;
mod devices;
mod estimate;
mod failure;
mod home;
mod launch;
mod links;
mod ordered;
mod output;
mod peak;
mod prepare;
mod progress;
mod signals;
mod trace;
mod views;

use std::process::ExitCode;

use clap::Parser;

/// Secure multi-party computation: owners who may not show each other their data compute on all of it together.
#[derive(Parser, Debug)]
#[command(name = "veil", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    /// Say more about what is done, on standard error.
    #[arg(short, long, global = true)]
    verbose: bool,
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

Exit codes:
  0  done
  1  anything else, such as a signal
  2  the command line
  3  a job, party, circuit or data file is wrong
  4  a participant cheated, or a check failed
  5  a link failed, or a time-out passed
  6  a device failed";

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Nothing is read, written or started before it is confined.
    if let commands::Command::Inner(command) = &cli.command {
        return commands::inner::run(command);
    }
    failure::install_reporter();
    match cli.command.run(cli.verbose) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = failure.code();
            eprintln!("{:?}", miette::Report::new(failure));
            ExitCode::from(code as u8)
        }
    }
}
