//! `veil submit`: proposes a job to its parties.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use veil_node::control::{self, Proposal, Reply, Request};
use veil_node::jobs::{State, Status};
use veil_node::log::Event;
use veil_node::{Home, Member};

use crate::commands::jobs;
use crate::commands::party::LANES;
use crate::failure::{Code, Failure};
use crate::home::note;
use crate::output;
use crate::prepare::JobArgs;
use crate::signals::Stop;
use crate::stocks;
use crate::wishes;

/// Proposes a job to its computing parties, each of which plans it, and allows or refuses it by its own policy.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil submit job.toml
  veil submit job.toml --watch        and shows how it goes, until it is over
  veil submit job.toml --stock        takes products that the two parties have made; each has to allow it
  veil submit job.toml --json

The job file and its circuit are sent; data never are. Owners and recipients take part with `veil party job.toml`, now or
within the time for which parties wait (300 s unless they say otherwise); they may also come first.")]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    job: JobArgs,
    /// The home of this participant [default: $VEIL_HOME, else ~/.veil]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Take products or transfers from the stock of the two parties: a party that does not allow it refuses the job.
    #[arg(long)]
    stock: bool,
    /// How many seconds a party has to answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
    /// Show how the job goes until it is over.
    #[arg(long)]
    watch: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What one party said.
#[derive(Serialize)]
struct Said {
    party: String,
    #[serde(flatten)]
    reply: Reply,
}

pub(crate) fn run(args: &SubmitArgs) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let home = Home::open(&Home::locate(args.home.as_deref()))?;
    let job = args.job.load()?;
    let lanes = args.job.lanes.unwrap_or(LANES);
    let plan = stocks::plan(&job, lanes, args.stock)?;
    let me = &home.settings().name;
    veil_runtime::roles(&plan, me)?;
    let mut proposal = Proposal::read(&args.job.job, lanes)
        .map_err(|error| Failure::new(Code::Input, error.to_string()))?;
    proposal.job = job.written(&proposal.job);
    proposal.stocked = args.stock;
    let members = home.members();
    let mut parties: Vec<Member> = Vec::new();
    for name in plan.job.parties.iter().filter(|name| *name != me) {
        let member = members.by_name(name).ok_or_else(|| {
            Failure::new(
                Code::Input,
                format!("the party `{name}` of the job is no member here"),
            )
            .help("`veil members` lists who is known; `veil join` takes its invitation")
        })?;
        parties.push(member.clone());
    }
    if job.leaves_chunk_rows()
        && let Some(advice) = wishes::of_members(&home, &plan).and_then(|wish| wish.advice(&plan))
    {
        note(&advice);
    }
    let ours = Event::plan(plan.hash);
    let mut said = Vec::new();
    let mut failure = None;
    for party in &parties {
        let until = Instant::now() + Duration::from_secs(args.wait);
        let request = Request::Propose(proposal.clone());
        // One that is down is no reason not to ask the others: submitting the job again tells it too.
        match control::ask(&home.identity(), party, &request, until) {
            Ok(reply) => {
                failure = failure.or(judge(&party.name, &reply, &ours));
                said.push(Said {
                    party: party.name.clone(),
                    reply,
                });
            }
            Err(error) => failure = failure.or(Some(error.into())),
        }
    }
    if args.json {
        output::print_json(&said)?;
    } else {
        for said in &said {
            output::print(&format!("{}: {}\n", said.party, sentence(&said.reply)))?;
        }
    }
    match failure {
        Some(failure) => Err(failure),
        None if args.watch => watch(&home, &parties, &ours, &stop),
        None => Ok(()),
    }
}

fn sentence(reply: &Reply) -> String {
    match reply {
        Reply::Accepted { plan } => format!(
            "accepted, plan {}; it waits for its participants",
            &plan[..16.min(plan.len())]
        ),
        Reply::Pending { plan } => format!(
            "waits for approval there: `veil approve {}`",
            &plan[..16.min(plan.len())]
        ),
        Reply::Refused { why } => format!("refused: {why}"),
        _ => "gave an answer that makes no sense".into(),
    }
}

/// What is wrong with a reply, if something is.
fn judge(party: &str, reply: &Reply, ours: &str) -> Option<Failure> {
    match reply {
        Reply::Accepted { plan } | Reply::Pending { plan } if plan == ours => None,
        Reply::Accepted { plan } | Reply::Pending { plan } => {
            let message = format!("`{party}` plans this job as {plan}, we as {ours}");
            Some(Failure::new(Code::Input, message).help("run the same release on both sides"))
        }
        Reply::Refused { why } => Some(Failure::new(
            Code::Input,
            format!("`{party}` refuses the job: {why}"),
        )),
        _ => Some(Failure::new(
            Code::Link,
            format!("`{party}` gave an answer that makes no sense"),
        )),
    }
}

/// Whom is watched is there, or gone after so much time.
const THERE: Duration = Duration::from_secs(5);

/// Shows a line whenever a party says something new, until all are done or one has failed.
fn watch(home: &Home, parties: &[Member], plan: &str, stop: &Stop) -> Result<(), Failure> {
    let mut shown: Vec<Option<Status>> = vec![None; parties.len()];
    loop {
        for (party, shown) in parties.iter().zip(&mut shown) {
            let reply = control::ask_if_there(&home.identity(), party, &Request::Jobs {}, THERE)?;
            let Reply::Jobs { jobs } = reply else {
                continue;
            };
            let Some(status) = jobs.into_iter().find(|job| job.plan == plan) else {
                continue;
            };
            if shown.as_ref() != Some(&status) {
                output::print(&format!("{}: {}\n", party.name, jobs::line(&status)))?;
                *shown = Some(status);
            }
        }
        let now = |wanted: State| {
            move |status: &Option<Status>| status.as_ref().is_some_and(|s| s.state == wanted)
        };
        if shown.iter().all(now(State::Done)) {
            return Ok(());
        }
        let over =
            |status: &&Option<Status>| now(State::Failed)(status) || now(State::Refused)(status);
        if let Some(Some(status)) = shown.iter().find(over) {
            let why = status.why.clone().unwrap_or_default();
            return Err(Failure::new(
                Code::Link,
                format!("the job did not run: {why}"),
            ));
        }
        if stop.asked() {
            return Err(Failure::new(
                Code::Other,
                "stopped watching by a signal; the job goes on",
            ));
        }
        thread::sleep(Duration::from_millis(500));
    }
}
