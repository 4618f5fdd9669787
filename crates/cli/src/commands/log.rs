//! `veil log`: what happened at this participant, and whether the record of it is whole.

use std::fmt::Write;
use std::fs::File;
use std::path::PathBuf;

use serde::Serialize;
use veil_node::log::{Head, Verified, verify};

use crate::failure::{Code, Failure};
use crate::home::HomeArgs;
use crate::output;

/// Shows the log, and checks it.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil log show                       a line per entry
  veil log show --json                an object per line, for other programs
  veil log verify                     the whole chain, its signatures, and that its end was not cut off
  veil log verify --head 81:3f0c…     also that it still has everything up to there
  veil log verify copy.jsonl          a copy, or another participant's log

Keep what `verify` prints as the head with somebody else: an old copy put in the place of the log shows only against it.")]
pub(crate) enum LogCommand {
    /// Check that nothing was changed, removed, added, exchanged or cut off
    Verify {
        /// A log file, in place of the home's.
        #[arg(value_name = "FILE", conflicts_with = "home")]
        file: Option<PathBuf>,
        /// A head that the log once had, as `verify` printed it.
        #[arg(long, value_name = "NUMBER:HASH")]
        head: Vec<String>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
    /// Print the entries
    Show {
        /// Print a JSON object per line.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        home: HomeArgs,
    },
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed {
    name: String,
    entries: u64,
    head: String,
    first_key: String,
    last_key: String,
}

pub(crate) fn run(command: &LogCommand) -> Result<(), Failure> {
    match command {
        LogCommand::Verify {
            file,
            head,
            json,
            home,
        } => {
            let heads = head.iter().map(|head| head.parse());
            let heads = heads.collect::<Result<Vec<Head>, _>>()?;
            let verified = match file {
                Some(file) => {
                    let log = File::open(file).map_err(|error| {
                        let message = format!("cannot read {}: {error}", file.display());
                        Failure::new(Code::Input, message)
                    })?;
                    verify(log, &heads)?
                }
                None => home.open()?.log().verify(&heads)?,
            };
            print(&verified, *json)
        }
        LogCommand::Show { json, home } => {
            let home = home.open()?;
            let mut text = String::new();
            home.log().for_each(|entry| {
                if *json {
                    text += &(entry.to_json().to_string() + "\n");
                    return;
                }
                let fields: Vec<String> = (entry.fields.iter())
                    .filter(|(name, value)| !value.is_null() && *name != "key")
                    .map(|(name, value)| format!("{name}: {value}"))
                    .collect();
                let _ = writeln!(
                    text,
                    "{:>5}  {}  {:<16} {}",
                    entry.seq,
                    entry.time,
                    entry.kind.replace('_', " "),
                    fields.join(", ")
                );
            })?;
            output::print(&text)
        }
    }
}

fn print(verified: &Verified, json: bool) -> Result<(), Failure> {
    let printed = Printed {
        name: verified.name.clone(),
        entries: verified.entries,
        head: verified.head.to_string(),
        first_key: verified.first_key.to_string(),
        last_key: verified.last_key.to_string(),
    };
    if json {
        return output::print_json(&printed);
    }
    let rows = [
        ("log of", printed.name),
        (
            "entries",
            format!("{}, each as it was written", printed.entries),
        ),
        ("first key", printed.first_key),
        ("last key", printed.last_key),
        ("head", printed.head),
    ];
    output::print(&output::columns(
        &rows.map(|(name, value)| vec![name.to_owned(), value]),
    ))
}
