//! The `veil-lab` command: what measures, compares and simulates, and what no party needs to run.
//!
//! **What it is for.** Benchmarks, rates of estimates, checks of devices and circuits, pictures of traces; and runs on devices that are simulated or emulated:
//! `run`, `stats`, `party` and `explain` are those of `veil`, with more devices to choose from ([`simulated`]).
//!
//! **Who may use it.** People and scripts that develop or judge the system. It is built on the library of `veil`, and has none of its
//! services.
//!
//! ```text
//! veil-lab bench aes                                      # how fast this machine is
//! veil-lab calibrate --out rates.toml                     # what units of work take, for the estimates of `veil explain`
//! veil-lab device check                                   # every device against the reference
//! veil-lab run job.toml --device garbler=fpga-sim         # a party garbles on a core that is simulated
//! ```
//!
//! **What it promises.** What `veil` does of output, files and exit codes. **What it does not.** Times of devices that are simulated or
//! emulated mean nothing.

mod commands;
mod loopback;
mod simulated;
mod trace;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use veil_cli::devices::Registry;
use veil_cli::failure;

/// Measures, compares and simulates: what no party of a computation needs to run.
#[derive(Parser, Debug)]
#[command(name = "veil-lab", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    /// Say more about what is done, on standard error.
    #[arg(short, long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: commands::Command,
}

const AFTER_HELP: &str = "Examples:
  veil-lab bench aes               how fast this machine is
  veil-lab calibrate               the table of rates of `veil explain`
  veil-lab device check            every device against the reference
  veil-lab trace run.jsonl         what a run did, as a picture
  veil-lab run job.toml --device garbler=fpga-sim
                                   a job on a device that is simulated

Exit codes are those of `veil`.";

fn main() -> ExitCode {
    let cli = Cli::parse();
    veil_device_cuda::prepare();
    failure::install_reporter();
    let registry: Arc<dyn Registry> = Arc::new(simulated::Simulated::default());
    veil_cli::ended(cli.command.run(cli.verbose, &registry))
}
