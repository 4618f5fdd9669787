//! The commands of `veil-lab`, and those of `veil` that take devices.

mod bench;
mod calibrate;
mod card;
mod circuit;
mod device;
mod node;
mod trace;

use std::sync::Arc;

use veil_cli::commands::{completions, explain, party, run, stats};
use veil_cli::devices::Registry;
use veil_cli::failure::Failure;

/// What `veil-lab` can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    /// Measure speed against the bound of this machine
    Bench(bench::BenchArgs),
    /// Measure the table of rates by which `explain` estimates times
    Calibrate(calibrate::CalibrateArgs),
    /// List the devices of this machine, check them against the reference, or replay a record of one
    #[command(subcommand)]
    Device(device::DeviceCommand),
    /// Serve a board of simulated cores behind a socket, for `--device fpga:SOCKET`
    Card(card::CardArgs),
    /// Serve the nodes of a simulated network behind sockets, for `--link fpga:SOCKET`
    Node(node::NodeArgs),
    /// Look at circuits, make, convert and check them
    #[command(subcommand)]
    Circuit(circuit::Circuits),
    /// Draw what a run did and when, from its traces
    Trace(trace::TraceArgs),
    /// Run a job of any kind, all roles on this machine
    Run(run::RunArgs),
    /// Private statistics: run a statistics job on this machine and print its tables
    Stats(stats::StatsArgs),
    /// Take part in one job, in the foreground
    Party(party::PartyArgs),
    /// Say what a job costs, and every value that it opens, before anything runs
    Explain(explain::ExplainArgs),
    /// Print the completions of a shell
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, verbose: bool, registry: &Arc<dyn Registry>) -> Result<(), Failure> {
        match self {
            Command::Bench(args) => Ok(bench::run(&args, registry)?),
            Command::Calibrate(args) => Ok(calibrate::run(&args)?),
            Command::Device(command) => device::run(&command, &**registry),
            Command::Card(args) => card::run(&args),
            Command::Node(args) => node::run(&args),
            Command::Circuit(command) => circuit::run(&command),
            Command::Trace(args) => trace::run(&args),
            Command::Run(args) => run::run(&args, verbose, registry),
            Command::Stats(args) => stats::run(&args, verbose, registry),
            Command::Party(args) => party::run(&args, registry),
            Command::Explain(args) => explain::run(&args, registry),
            Command::Completions(args) => completions::run::<crate::Cli>(&args, "veil-lab"),
        }
    }
}
