//! The commands of `veil`, one per file. Those that `veil-lab` has, too, are public.

mod approve;
pub mod circuit;
pub mod completions;
mod data;
pub mod device;
mod doctor;
pub mod explain;
mod identity;
mod init;
pub(crate) mod inner;
mod invite;
mod job;
mod jobs;
mod join;
mod log;
mod members;
mod moved;
pub mod party;
mod policy;
mod prepare;
pub(crate) mod query;
pub mod run;
mod serve;
mod shadow;
mod shares;
pub mod stats;
mod stock;
mod submit;

use std::sync::Arc;

use crate::devices::Registry;
use crate::failure::Failure;

/// What `veil` can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a job of any kind, all roles on this machine
    Run(run::RunArgs),
    /// Ask the tables of a job file a query in SQL, all roles on this machine
    Query(query::QueryArgs),
    /// Private statistics: run a statistics job on this machine and print its tables
    Stats(stats::StatsArgs),
    /// Serve a computing party: one port, many jobs, until it is asked to stop
    Serve(serve::ServeArgs),
    /// Propose a job to its parties
    Submit(submit::SubmitArgs),
    /// Take part in one job, in the foreground
    Party(party::PartyArgs),
    /// Make stock for jobs of two parties of whom one may be malicious
    Prepare(prepare::PrepareArgs),
    /// List the stock that this party has made ahead, or remove some
    Stock(stock::StockArgs),
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
    /// Write a first job from data files
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Say what a job costs, and every value that it opens, before anything runs
    Explain(explain::ExplainArgs),
    /// Check an owner's tables before anything is sent, and make the key for comparing the order of rows
    #[command(subcommand)]
    Data(data::DataCommand),
    /// Say what sample rows use of the ranges of a job with queries, in the clear and without any connection
    Shadow(shadow::ShadowArgs),
    /// Look at circuits, make and convert them
    #[command(subcommand)]
    Circuit(circuit::Circuits),
    /// List the devices of this machine
    #[command(subcommand)]
    Device(device::DeviceCommand),
    /// Say what this machine has, what is missing, and how to get it
    Doctor(doctor::DoctorArgs),
    #[command(hide = true, disable_help_flag = true)]
    Trace(moved::Moved),
    #[command(hide = true, disable_help_flag = true)]
    Bench(moved::Moved),
    /// Print the completions of a shell
    Completions(completions::CompletionsArgs),
    /// What a service starts for what others wrote
    #[command(subcommand, hide = true)]
    Inner(inner::InnerCommand),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, verbose: bool, registry: &Arc<dyn Registry>) -> Result<(), Failure> {
        match self {
            Command::Run(args) => run::run(&args, verbose, registry),
            Command::Query(args) => query::run(&args, verbose, registry),
            Command::Stats(args) => stats::run(&args, verbose, registry),
            Command::Serve(args) => serve::run(&args, registry),
            Command::Submit(args) => submit::run(&args),
            Command::Party(args) => party::run(&args, registry),
            Command::Prepare(args) => prepare::run(&args, registry),
            Command::Stock(args) => stock::run(&args),
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
            Command::Job(command) => job::run(&command),
            Command::Explain(args) => explain::run(&args, registry),
            Command::Data(command) => data::run(&command),
            Command::Shadow(args) => shadow::run(&args),
            Command::Circuit(command) => circuit::run(&command),
            Command::Device(command) => device::run(&command, &**registry),
            Command::Doctor(args) => doctor::run(&args),
            Command::Trace(_) => Err(moved::to("trace")),
            Command::Bench(_) => Err(moved::to("bench")),
            Command::Completions(args) => completions::run::<crate::Cli>(&args, "veil"),
            Command::Inner(command) => {
                inner::run(&command);
                Ok(())
            }
        }
    }
}
