//! Jobs whose parties load or keep shares, all roles on this machine.
//!
//! A durable job is two runs, each with a session and keys of its own. The first brings the owners' values to the parties' stores and
//! opens nothing; the second computes on them. When the second fails, what the first has made stays: the same command goes on from
//! there, without the owners. When it succeeds, it is removed: another run of the job reads its data again.

use std::path::Path;
use std::sync::Arc;

use veil_program::Job;
use veil_protocol::Plan;

use crate::commands::run::LocalArgs;
use crate::failure::{Code, Failure};
use crate::launch::Outcome;
use crate::launch::inspect::InspectArgs;
use crate::launch::stores::{self, Shares, Stores};
use crate::launch::threads::{self, Site};
use crate::prepare;

/// Refuses ways to run that a job which keeps or loads shares cannot go.
pub(crate) fn check(job: &Job, args: &LocalArgs) -> Result<(), Failure> {
    let refuse = |message: &str, help: &str| Err(Failure::new(Code::Usage, message).help(help));
    match (job.needs_stores(), args) {
        (true, args) if args.inspect.shadow => refuse(
            "--shadow computes on the values of all owners, and this job computes on shares that were kept",
            "leave --shadow out, or run the same computation without `durable` and `stored`",
        ),
        _ => Ok(()),
    }
}

/// Runs the job; its parties keep shares in the folder `root`.
pub(crate) fn run(
    job: &Job,
    plan: &Arc<Plan>,
    lanes: Option<u16>,
    site: &Site<'_>,
    root: &Path,
) -> Result<Outcome, Failure> {
    if !job.needs_stores() {
        return threads::run(job, plan, site, &Shares::default());
    }
    let stores = Stores::open(root, job)?;
    if !job.is_durable() {
        let shares = Shares {
            stored: stores.loads(job)?,
            keeps: stores.keeps(job, plan)?,
            supplies: stores::supplies(root, job)?,
        };
        return threads::run(job, plan, site, &shares);
    }
    let (input, compute) = job.lowered().stages();
    let input = prepare::plan_of(input, lanes)?;
    let compute = prepare::plan_of(compute, lanes)?;
    let stored = if let Some(stored) = stores.resume(&compute.job, &input)? {
        eprintln!(
            "the inputs are kept from a run that was interrupted: their owners are not asked again"
        );
        stored
    } else {
        stores.forget(&input.job.name)?;
        let shares = Shares {
            stored: stores.loads(job)?,
            keeps: stores.input(&input)?,
            ..Shares::default()
        };
        // What is written down is the stage that computes.
        let inspect = InspectArgs {
            watch: site.inspect.watch,
            ..InspectArgs::default()
        };
        let site = Site {
            inspect: &inspect,
            ..site.clone()
        };
        threads::run(job, &input, &site, &shares)?;
        stores.resume(&compute.job, &input)?.ok_or_else(|| {
            Failure::new(
                Code::Other,
                "the inputs were kept, and are gone: run the job again",
            )
        })?
    };
    let shares = Shares {
        stored,
        keeps: stores.keeps(job, &compute)?,
        ..Shares::default()
    };
    let outcome = threads::run(job, &compute, site, &shares)?;
    drop(shares);
    stores.forget(&input.job.name)?;
    Ok(outcome)
}
