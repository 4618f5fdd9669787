//! `veil inner`: processes that a service starts for what others wrote. People have no use for them.

use std::process::ExitCode;
use std::time::Duration;

use veil_node::planner::{Asked, inner};
use veil_sandbox::{Limits, Require};

/// What a service has done in a process that may do nothing else.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum InnerCommand {
    /// Plan the proposal on standard input.
    Plan(PlanArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct PlanArgs {
    /// Address space, in MiB.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    memory_mib: u64,
    /// Time of the processor, in seconds.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86400))]
    cpu: u64,
    /// How far behind others it stands where both want a processor.
    #[arg(long, default_value_t = Limits::default().nice, value_parser = clap::value_parser!(i32).range(0..=19))]
    nice: i32,
    /// Be content where the kernel has no Landlock.
    #[arg(long)]
    without_landlock: bool,
}

pub(crate) fn run(command: &InnerCommand) -> ExitCode {
    let InnerCommand::Plan(args) = command;
    let asked = Asked {
        require: if args.without_landlock {
            Require::Filter
        } else {
            Require::Landlock
        },
        limits: Limits {
            memory: args.memory_mib << 20,
            cpu: Duration::from_secs(args.cpu),
            nice: args.nice,
            ..Limits::default()
        },
    };
    ExitCode::from(inner(&asked) as u8)
}
