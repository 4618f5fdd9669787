//! `veil shadow`: what sample rows use of the ranges that a job declares and derives.

use serde::Serialize;
use veil_program::Shadow;

use crate::failure::{Code, Failure};
use crate::output;
use crate::prepare::JobArgs;

/// Evaluates the queries of a job in the clear on sample rows, without any connection, and says what columns use of their ranges.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil shadow job.toml --data mill:pay=sample.csv    a file of sample rows for each table
  veil shadow job.toml --json

For each column that queries read or make: the range that the job declares or that follows,
and of the sample the least and the greatest value, bits used of those that the range takes,
nulls, and rows at the ends of the range, where `least` and `greatest` put what is beyond; where
functions such as ln and exp made it, the largest distance from IEEE doubles. A table may have
fewer rows than the job says.

It is a look at the job, and changes no plan. Nothing is sent; the participant that runs it has
sample rows of all tables, made up or its own. The exit code is 3 if a cell is outside its
declared range, which is said with row and column.")]
pub(crate) struct ShadowArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Said {
    good: bool,
    #[serde(flatten)]
    shadow: Option<Shadow>,
    problems: Vec<String>,
}

pub(crate) fn run(args: &ShadowArgs) -> Result<(), Failure> {
    let job = args.job.load()?;
    let ran = job.shadow(&|_, _| {});
    let (shadow, problems) = match ran {
        Ok(None) => {
            let message = format!("`{}` has no queries over tables", job.spec().name);
            let help = "`veil data check` looks at the files of other jobs";
            return Err(Failure::new(Code::Usage, message).help(help));
        }
        Ok(shadow) => (shadow, Vec::new()),
        Err(problems) => (None, problems),
    };
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    if args.json {
        output::print_json(&Said {
            good: problems.is_empty(),
            shadow,
            problems: problems.clone(),
        })?;
    } else if let Some(shadow) = shadow {
        output::print(&shadow.text())?;
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::new(Code::Input, problems.join("\n")))
}
