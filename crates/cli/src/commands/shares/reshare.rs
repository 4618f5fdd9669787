//! `veil shares reshare`: writes the job that gives a dataset to other parties.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use veil_math::Ring;
use veil_node::{Home, HomeError};
use veil_program::{Files, Job, Resharing};
use veil_store::{Description, State, StoreKey};

use super::Place;
use crate::failure::{Code, Failure};
use crate::home::note;
use crate::output;

/// Characters of a job's name.
const LONGEST_NAME: usize = 64;

/// Which dataset goes to whom.
#[derive(clap::Args, Debug)]
pub(crate) struct ReshareArgs {
    /// The dataset's name.
    name: String,
    /// The three or four parties that get it, in their order; some may have it already.
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', required = true)]
    to: Vec<String>,
    /// Its name at them [default: the same]
    #[arg(long = "as", value_name = "NAME")]
    name_there: Option<String>,
    /// The job file to write [default: `reshare NAME.toml`]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(args: &ReshareArgs) -> Result<(), Failure> {
    let home = args.place.home()?;
    check_names(&home, &args.to)?;
    let of = complete(&home, &args.name)?;
    let old = of
        .parties
        .iter()
        .map(|member| member.name.clone())
        .collect();
    let resharing = Resharing {
        dataset: args.name.clone(),
        made_by: of.plan,
        name: args.name_there.clone().unwrap_or_else(|| args.name.clone()),
        ring: of.ring,
        ports: (of.ports.into_iter())
            .map(|port| (port.name, port.width))
            .collect(),
        blocks: (of.blocks.into_iter())
            .map(|block| (block.name, block.rows))
            .collect(),
        schema: of.schema,
        old,
    };
    let title = format!("reshare {}", args.name);
    let title: String = title.chars().take(LONGEST_NAME).collect();
    let default = || PathBuf::from(veilworks::folder_name(&title) + ".toml");
    let file = args.out.clone().unwrap_or_else(default);
    let text = resharing.to_job(title.trim_end(), &args.to);
    // What is wrong with it is wrong on the command line: there is no file to point at.
    let job = Job::parse(&text, &file, Files::new());
    let job = job.map_err(|error| {
        Failure::new(Code::Input, error.problem.to_string())
            .help("`--to A,B,C` names the parties that get it, and `--as NAME` says how it is called there")
    })?;
    write(&file, &text)?;
    output::print(&format!("{}\n", file.display()))?;
    note(&next(&job, &resharing, &file));
    Ok(())
}

/// Every name is this home's or a member's.
fn check_names(home: &Home, names: &[String]) -> Result<(), Failure> {
    let members = home.members();
    let known = |name: &&String| **name == home.settings().name || members.by_name(name).is_some();
    match names.iter().find(|name| !known(name)) {
        Some(name) => Err(HomeError::NoMember {
            name: name.clone(),
            known: members.iter().map(|member| member.name.clone()).collect(),
        }
        .into()),
        None => Ok(()),
    }
}

/// The dataset of this name, which a job could load.
fn complete(home: &Home, name: &str) -> Result<Description, Failure> {
    let key = StoreKey::derive(home.store_secret()?.as_slice());
    let dataset = veil_store::dataset(&home.shares(), name, &key)?;
    let unusable = |what: &str, help: &str| {
        let message = format!("the dataset `{name}` {what}");
        Err(Failure::new(Code::Input, message).help(help))
    };
    match (dataset.state, dataset.head) {
        (State::Complete, Some(head)) => {
            let of = head.description;
            if of.schema.is_empty() || of.ports.iter().any(|port| port.once) {
                let help = "run that job again: it goes on from them; what `[keep]` keeps can go to other parties";
                return unusable("holds the inputs of an interrupted job", help);
            }
            if of.ring == Ring::Bits {
                let help = "run the query that keeps it among the other parties; columns of statistics, which `[keep]` keeps, can go to them";
                return unusable(
                    "is a relation of a query, of bits, which does not go to other parties",
                    help,
                );
            }
            Ok(of)
        }
        (State::Broken(error), _) => Err(error.into()),
        (State::Busy, _) => unusable("is being written", "wait for the run that writes it"),
        _ => unusable(
            "is incomplete: its run was interrupted",
            "run that job again, or `veil shares sweep`",
        ),
    }
}

/// Writes a new file.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    let written = options.write(true).create_new(true).open(file);
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let message = format!("cannot write the job {}: {error}", file.display());
        let help = match error.kind() {
            ErrorKind::AlreadyExists => {
                "it is there already, and is not overwritten: choose another with `--out FILE`"
            }
            _ => "choose another file with `--out FILE`",
        };
        Failure::new(Code::Input, message).help(help)
    })
}

/// What to do with the job.
fn next(job: &Job, of: &Resharing, file: &Path) -> String {
    let file = file.display();
    let new = job.spec().parties.join(", ");
    let outside = job.spec().owners.join(", ");
    let old = of.old.join(", ");
    format!(
        "this job gives `{}` of {old} to {new}, as `{}`; nothing was sent yet\n\
         1. give the file to all of them: `veil explain \"{file}\"` says what it does\n\
         2. {new}: approve it and serve (`veil approve \"{file}\"`, `veil submit \"{file}\"`), or `veil party \"{file}\"`\n\
         3. {outside}: `veil party \"{file}\"`, which brings the shares from the store\n\
         The shares of {old} stay as they are: `veil shares remove` removes them when {new} have theirs.",
        of.dataset, of.name
    )
}
