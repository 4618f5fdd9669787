//! `veil query`: a first look at what queries over private tables are.

use std::path::PathBuf;
use std::sync::Arc;

use veil_job::{
    Adversary, ChunkRows, Delivery, Ot, ProtocolKind, Schedule, Statistical, Technique,
};
use veil_program::{Asked, Files, Job};

use super::run::{self, LocalArgs, Results};
use crate::devices::{DevicesArgs, Registry};
use crate::failure::{Code, Failure};
use crate::launch::Answer;
use crate::launch::inspect::InspectArgs;
use crate::links::LinkArgs;
use crate::output;
use crate::prepare::{JobArgs, Replacement, SecurityArgs, replacement};
use crate::room::RoomArgs;

/// Asks the tables of a job file a query, all roles on this machine, and prints the result.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil query 'SELECT ward, count(*) AS stays FROM stays GROUP BY ward' --tables job.toml
  veil query 'SELECT …' --tables job.toml --to ministry --min-count 10
  veil query 'SELECT …' --tables job.toml --check    compared with the same query in the clear
  veil query 'SELECT …' --tables job.toml --out results
  veil query 'SELECT …' --tables job.toml --adversary semi-honest    cheaper, if no party lies

The tables are those of the job file, whose own queries are not asked. A process that has all roles hides nothing from itself: where owners
are apart, write the query into the job file, and see `veil explain` and `veil submit`.")]
pub(crate) struct QueryArgs {
    /// The query, in SQL.
    #[arg(value_name = "SELECT …")]
    sql: String,
    /// The job file that has the tables.
    #[arg(long, value_name = "JOB.toml")]
    tables: PathBuf,
    /// To whom the result is opened [default: the first recipient of the job file, else the first party]
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// Leave out groups of fewer rows.
    #[arg(long, value_name = "ROWS")]
    min_count: Option<u32>,
    /// Take a table's file from elsewhere.
    #[arg(long, value_name = "OWNER:TABLE=FILE", value_parser = replacement)]
    data: Vec<Replacement>,
    /// Evaluate the same in the clear, from all owners' files, and compare.
    #[arg(long)]
    check: bool,
    /// Folder for files of the result, in one of the recipient's name [default: it is only printed]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Give up when nothing moves for so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,
    /// What parties compute on.
    #[command(flatten)]
    devices: DevicesArgs,
    /// What memory they take.
    #[command(flatten)]
    room: RoomArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Where the job file leaves it open; the last, for its heading holds for all that follows.
    #[command(flatten)]
    security: AskedSecurityArgs,
}

/// What `veil run` takes of a job's security, but for the tables of garbled circuits: `--tables` is the job file here, and garbled circuits answer no
/// queries. What applies to no query is heard, and refused by the rules of jobs.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(next_help_heading = "Security, where the job file leaves it open")]
struct AskedSecurityArgs {
    /// The protocol: rep3 among three parties, rep4 among four [default: by the number of parties]
    #[arg(long, value_name = "NAME")]
    protocol: Option<ProtocolKind>,
    /// Against one party that is semi-honest or malicious [default: rep3 semi-honest, rep4 malicious]
    #[arg(long, value_name = "WHICH")]
    adversary: Option<Adversary>,
    /// Rows that are computed together, at most: a power of two from 64 to 1048576 [default: what the devices of the parties are best at, else what
    /// fits a processor's cache]
    #[arg(long, value_name = "N")]
    chunk_rows: Option<ChunkRows>,
    #[arg(long, value_name = "WHICH", hide = true)]
    technique: Option<Technique>,
    #[arg(long, alias = "output", value_name = "WHICH", hide = true)]
    delivery: Option<Delivery>,
    #[arg(long, value_name = "WHICH", hide = true)]
    schedule: Option<Schedule>,
    #[arg(long, value_name = "S", hide = true)]
    statistical: Option<Statistical>,
    #[arg(long, value_name = "WHICH", hide = true)]
    ot: Option<Ot>,
}

impl AskedSecurityArgs {
    fn all(&self) -> SecurityArgs {
        SecurityArgs {
            protocol: self.protocol,
            adversary: self.adversary,
            technique: self.technique,
            delivery: self.delivery,
            tables: None,
            schedule: self.schedule,
            statistical: self.statistical,
            ot: self.ot,
            chunk_rows: self.chunk_rows,
        }
    }
}

/// Runs the command.
pub(crate) fn run(
    args: &QueryArgs,
    verbose: bool,
    registry: &Arc<dyn Registry>,
) -> Result<(), Failure> {
    let files: Files = (args.data.iter())
        .map(|one| ((one.owner.clone(), one.what.clone()), one.file.clone()))
        .collect();
    let asked = Asked {
        sql: args.sql.clone(),
        to: args.to.clone(),
        min_count: args.min_count,
    };
    let mut job = Job::asking(&args.tables, files, &asked)?;
    let security = args.security.all();
    security.choose(&mut job, &args.tables)?;
    if args.check && !job.spec().datasets.is_empty() {
        // What it could not say in the end is said before anything runs.
        job.clear_answers()?;
    }
    let local = LocalArgs {
        stock: false,
        job: JobArgs {
            job: args.tables.clone(),
            data: args.data.clone(),
            align_key: None,
            lanes: None,
            security,
        },
        timeout: args.timeout,
        net: None,
        processes: false,
        link: LinkArgs::default(),
        headless: false,
        out: args.out.clone(),
        stores: None,
        devices: args.devices.clone(),
        room: args.room.clone(),
        inspect: InspectArgs::default(),
        json: args.json,
    };
    let finished = run::execute_job(job, &local, (None, Results::Printed), verbose, registry)?;
    let same = || same_in_the_clear(&finished.job, &finished.outcome.answers);
    let checked = args.check.then(same).transpose()?;
    if args.json {
        finished.print_json(checked)?;
    } else {
        finished.print()?;
        if checked == Some(true) {
            output::print(
                "checked: the query in the clear, over the tables of all owners, gives the same rows\n",
            )?;
        }
    }
    if checked == Some(false) {
        let message =
            "the result is not what the query in the clear gives over the tables of all owners";
        return Err(Failure::new(Code::Check, message)
            .help("please report this as a bug, with the job and `veil doctor`"));
    }
    Ok(())
}

/// Whether every recipient got what the queries mean, evaluated in the clear.
pub(crate) fn same_in_the_clear(job: &Job, answers: &[Answer]) -> Result<bool, Failure> {
    let Some(opened) = job.clear_answers()? else {
        return Ok(false);
    };
    let mut got = Vec::new();
    for answer in answers {
        let queries = answer
            .statistics
            .as_ref()
            .and_then(|of| of.json.get("queries"));
        let queries = queries.and_then(serde_json::Value::as_array);
        got.extend(
            queries
                .into_iter()
                .flatten()
                .map(|of| (&answer.recipient, of)),
        );
    }
    let same = |clear: &veil_program::ClearAnswer| {
        // Both have been text once, so that a number is the same one on both sides.
        let expected: Option<serde_json::Value> = serde_json::from_str(&clear.json).ok();
        let mut all = got.iter();
        let found = all.find(|(to, of)| {
            **to == clear.to && of.get("query") == Some(&clear.query.clone().into())
        });
        let said =
            |of: &serde_json::Value| Some((of.get("rows")?.clone(), of.get("incomplete").cloned()));
        let found = found.and_then(|(_, of)| said(of));
        found.is_some() && found == expected.as_ref().and_then(said)
    };
    Ok(opened.len() == got.len() && opened.iter().all(same))
}
