//! `veil job`: a first job from data files.

use std::io::Write;
use std::path::{Path, PathBuf};

use veil_program::{Draft, NewJob, NewTable};

use crate::failure::{Code, Failure};
use crate::home::note;
use crate::output;

/// Writes job files.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum JobCommand {
    /// Write a first job from data files, to be read and corrected
    New(NewArgs),
}

/// Guesses types and ranges of columns from data files, and writes a job with them. Nothing is sent.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil job new stays.csv people.parquet --out job.toml
  veil job new --owner north=stays.csv --owner south=people.parquet --party p0 --party p1 --party p2 --recipient ministry
  veil job new pay.csv --rare           values of categories that few rows have, too

Files are CSV, Parquet or Arrow. All rows are read. What a comment calls a guess is one: read it. What has to be filled in is an empty
name, and the job is refused until it is. Then: veil explain job.toml, veil data check job.toml --owner NAME --data NAME:TABLE=FILE

The job file goes to all participants, and what is guessed says something of the data: so ranges are rounded outwards, numbers of rows are
rounded up, no value of a key is written, and values of categories that are in fewer than 5 rows are left out unless --rare says otherwise.
Names of columns and files are written as they are.")]
pub(crate) struct NewArgs {
    /// Data files, whose owners have to be filled in.
    #[arg(value_name = "FILE", required_unless_present = "owner")]
    files: Vec<PathBuf>,
    /// A data file, and the name of its owner.
    #[arg(long, value_name = "NAME=FILE", value_parser = owned)]
    owner: Vec<(String, PathBuf)>,
    /// A computing party.
    #[arg(long = "party", value_name = "NAME")]
    parties: Vec<String>,
    /// Who gets the result.
    #[arg(long, value_name = "NAME")]
    recipient: Option<String>,
    /// Name of the job.
    #[arg(long, value_name = "NAME", default_value = "draft")]
    name: String,
    /// List values of categories that are in fewer than 5 rows, too: all participants will read that they are there.
    #[arg(long)]
    rare: bool,
    /// Where the job goes; an existing file is never overwritten [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn owned(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text
        .split_once('=')
        .filter(|(name, file)| !name.is_empty() && !file.is_empty())
        .ok_or("write NAME=FILE, such as `north=stays.csv`")?;
    Ok((name.to_owned(), file.into()))
}

pub(crate) fn run(command: &JobCommand) -> Result<(), Failure> {
    let JobCommand::New(args) = command;
    let owned = args.owner.iter();
    let owned = owned.map(|(name, file)| (Some(name.clone()), file));
    let files = owned.chain(args.files.iter().map(|file| (None, file)));
    let table = |(owner, file): (Option<String>, &PathBuf)| {
        Ok(NewTable::new(file, owner, Draft::of_file(file)?))
    };
    let job = NewJob {
        name: args.name.clone(),
        parties: args.parties.clone(),
        recipient: args.recipient.clone(),
        tables: files.map(table).collect::<Result<_, Failure>>()?,
        rare: args.rare,
    };
    let text = job.text();
    let Some(out) = &args.out else {
        return output::print(&text);
    };
    write(out, &text)?;
    note(&format!(
        "{} is a draft: read each guess, and fill in the names that are empty; ranges and values in it are public",
        out.display()
    ));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let file = std::fs::File::options()
        .write(true)
        .create_new(true)
        .open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new(Code::Input, message).help("choose another file with `--out`")
    })
}
