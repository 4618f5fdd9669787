//! The commands, one per file.

mod approve;
pub(crate) mod bench;
mod circuit;
mod completions;
mod data;
mod device;
mod doctor;
pub(crate) mod explain;
mod identity;
mod init;
pub(crate) mod inner;
mod invite;
mod jobs;
mod join;
mod log;
mod members;
mod party;
mod policy;
pub(crate) mod run;
mod serve;
mod shares;
mod stats;
mod submit;
mod trace;

use crate::failure::Failure;

/// What `veil` can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a job of any kind, all roles on this machine
    Run(run::RunArgs),
    /// Private statistics: run a statistics job on this machine and print its tables
    Stats(stats::StatsArgs),
    /// Serve a computing party: one port, many jobs, until it is asked to stop
    Serve(serve::ServeArgs),
    /// Propose a job to its parties
    Submit(submit::SubmitArgs),
    /// Take part in one job, in the foreground
    Party(party::PartyArgs),
    /// Say what parties run, wait for, and have done
    Jobs(jobs::JobsArgs),
    /// Make a home: everything that one participant owns
    Init(init::InitArgs),
    /// Invite another participant with one string
    Invite(invite::InviteArgs),
    /// Take the string that another participant sent
    Join(join::JoinArgs),
    /// List the participants that this one knows, or revoke one
    Members(members::MembersArgs),
    /// Show or replace the key by which other participants know this one
    #[command(subcommand)]
    Identity(identity::IdentityCommand),
    /// Look at a job, and say that it may run here
    Approve(approve::ApproveArgs),
    /// Try the standing rules of a home on a job
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Show or check the record of what happened here
    #[command(subcommand)]
    Log(log::LogCommand),
    /// List, show, check and remove the shares that this party keeps between runs
    #[command(subcommand)]
    Shares(shares::SharesCommand),
    /// Say what a job costs, and every value that it opens, before anything runs
    Explain(explain::ExplainArgs),
    /// Check an owner's tables before anything is sent, and make the key for comparing the order of rows
    #[command(subcommand)]
    Data(data::DataCommand),
    /// Look at circuits, make, convert and check them
    #[command(subcommand)]
    Circuit(circuit::CircuitCommand),
    /// List the devices of this machine, or check them against the reference
    #[command(subcommand)]
    Device(device::DeviceCommand),
    /// Say what this machine has, what is missing, and how to get it
    Doctor(doctor::DoctorArgs),
    /// Draw what a run did and when, from its traces
    Trace(trace::TraceArgs),
    /// Measure speed against the bound of this machine
    Bench(bench::BenchArgs),
    /// Print the completions of a shell
    Completions(completions::CompletionsArgs),
    /// What a service starts for what others wrote
    #[command(subcommand, hide = true)]
    Inner(inner::InnerCommand),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, verbose: bool) -> Result<(), Failure> {
        match self {
            Command::Run(args) => run::run(&args, verbose),
            Command::Stats(args) => stats::run(&args, verbose),
            Command::Serve(args) => serve::run(&args),
            Command::Submit(args) => submit::run(&args),
            Command::Party(args) => party::run(&args, verbose),
            Command::Jobs(args) => jobs::run(&args),
            Command::Init(args) => init::run(&args),
            Command::Invite(args) => invite::run(&args),
            Command::Join(args) => join::run(&args),
            Command::Members(args) => members::run(&args),
            Command::Identity(command) => identity::run(&command),
            Command::Approve(args) => approve::run(&args),
            Command::Policy(command) => policy::run(&command),
            Command::Log(command) => log::run(&command),
            Command::Shares(command) => shares::run(&command),
            Command::Explain(args) => explain::run(&args),
            Command::Data(command) => data::run(&command),
            Command::Circuit(command) => circuit::run(&command),
            Command::Device(command) => device::run(&command),
            Command::Doctor(args) => doctor::run(&args),
            Command::Trace(args) => trace::run(&args),
            Command::Bench(args) => Ok(bench::run(&args)?),
            Command::Completions(args) => completions::run(&args),
            Command::Inner(command) => {
                inner::run(&command);
                Ok(())
            }
        }
    }
}
