//! Jobs whose parties load or keep shares, all roles on this machine.
//!
//! A durable job is two runs, each with a session and keys of its own. The first brings the owners' values to the parties' stores and
//! opens nothing; the second computes on them. When the second fails, what the first has made stays: the same command goes on from
//! there, without the owners. When it succeeds, it is removed: another run of the job reads its data again.

use std::path::Path;
use std::time::{Duration, Instant};

use veil_program::Job;
use veil_runtime::{As, Because, Course, Ended, Heard, Participant, Passes, Stage, Step};

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
        // The shadow of passes is one of devices, which takes shares as they are.
        (true, args) if args.inspect.shadow && job.queries().is_none() => refuse(
            "--shadow computes on the values of all owners, and this job computes on shares that were kept",
            "leave --shadow out, or run the same computation without `durable` and `stored`",
        ),
        _ => Ok(()),
    }
}

/// Runs the job; its parties keep shares in the folder `root`.
pub(crate) fn run(
    job: &Job,
    plan: &Passes,
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
            stored: stores.loads(job, plan)?,
            keeps: stores.keeps(job, plan)?,
            supplies: stores::supplies(root, job)?,
            ..Shares::default()
        };
        return threads::run(job, plan, site, &shares);
    }
    let (input, compute) = job.spec().stages();
    let input = prepare::plan_of(input, lanes)?;
    let compute = prepare::plan_of(compute, lanes)?;
    // All parties are here, and are at the same stage.
    let course = Course {
        me: As::Party { serves: false },
        two: true,
        guaranteed: false,
        wait: Duration::ZERO,
    };
    let mut stored = None;
    let mut outcome = Outcome::default();
    let (mut parties, mut step) = Participant::<Failure>::new(course, Instant::now());
    loop {
        let heard = match step {
            Step::Locate => {
                stored = stores.resume(&compute.job, &input)?;
                Heard::At(if stored.is_some() {
                    Stage::Compute
                } else {
                    Stage::Input
                })
            }
            Step::Run(Stage::Input) => {
                stores.forget(&input.job.name)?;
                let shares = Shares {
                    stored: stores.loads(job, &input)?,
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
                ended(threads::run(job, &input, &site, &shares).map(drop))
            }
            Step::Run(_) => {
                let shares = Shares {
                    stored: stored.take().unwrap_or_default(),
                    keeps: stores.keeps(job, &compute)?,
                    ..Shares::default()
                };
                let ran = threads::run(job, &compute, site, &shares);
                ended(ran.map(|ran| outcome = ran))
            }
            Step::Prepare(Stage::Compute, Because::Course) if parties.is_resumed() => {
                eprintln!(
                    "the inputs are kept from a run that was interrupted: their owners are not asked again"
                );
                Heard::Ready
            }
            Step::Forget => {
                stores.forget(&input.job.name)?;
                Heard::Ready
            }
            Step::Finished => return Ok(outcome),
            Step::GivenUp(given) => {
                let gone = "the inputs were kept, and are gone: run the job again";
                let failure = given.failure;
                return Err(failure.unwrap_or_else(|| Failure::new(Code::Other, gone)));
            }
            // The first failure ends the command, and no other participant has to be asked.
            Step::Prepare(..)
            | Step::Rest { .. }
            | Step::AskDone
            | Step::AskKept
            | Step::AskWanted
            | Step::AskStage => Heard::Ready,
        };
        step = parties.next(heard, Instant::now());
    }
}

/// How a run of a stage ended.
fn ended(ran: Result<(), Failure>) -> Heard<Failure> {
    let ended = match ran {
        Ok(()) => Ended::Done,
        Err(failure) => Ended::Failed(failure),
    };
    Heard::Ended { ended, void: false }
}
