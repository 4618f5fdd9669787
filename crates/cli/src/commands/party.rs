//! `veil party`: one participant of a deployment.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use veil_engine::{Phase, Progress};
use veil_link::shape;

use crate::failure::{Code, Failure};
use crate::launch::Outcome;
use crate::launch::participant;
use crate::launch::party_file::PartyFile;
use crate::launch::processes::Word;
use crate::output;
use crate::progress::{Meter, Snapshot};
use crate::signals::Stop;

/// Runs one participant of a deployment, over TLS.
#[derive(clap::Args, Debug)]
#[command(after_help = r#"A party file:
  job = "job.toml"              # the same file at every participant
  me = "university"             # a name of the job
  identity = "university.key"   # from: veil identity new university.key
  listen = "0.0.0.0:7000"       # computing parties only: one port for everything
  lanes = 2                     # the same at every participant
  [[peer]]                      # for owners and recipients, the three parties; for parties, everybody
  name = "union"
  address = "union.example:7000"
  fingerprint = "vw1:..."       # what `veil identity show` prints there

Owners and recipients dial the parties; a party dials those before it in the job's list. SIGINT or SIGTERM ends the run
at everybody."#)]
pub(crate) struct PartyArgs {
    /// The party file.
    #[arg(value_name = "PARTY.toml")]
    file: PathBuf,
    /// Imitate the delay and the rate of a network: lan or wan.
    #[arg(long, value_name = "NET")]
    net: Option<shape::Profile>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Speak to the process that started this one.
    #[arg(long, hide = true)]
    child: bool,
}

pub(crate) fn run(args: &PartyArgs, _verbose: bool) -> Result<(), Failure> {
    let stop = Stop::install()?;
    if args.child {
        return as_child(args, &stop);
    }
    let file = PartyFile::load(&args.file)?;
    let meter = Meter::new();
    let outcome = participant::run(
        &file,
        args.net,
        &stop,
        &|progress| meter.show(&Snapshot::from(&progress)),
        &|line| eprintln!("{line}"),
    )?;
    drop(meter);
    if args.json {
        output::print_json(&outcome)
    } else {
        print(&outcome)
    }
}

fn print(outcome: &Outcome) -> Result<(), Failure> {
    let mut text = String::new();
    for answer in &outcome.answers {
        if let Some(statistics) = &answer.statistics {
            text += &statistics.text;
        }
        if let Some(folder) = &answer.folder {
            let _ = writeln!(text, "results are in {}", folder.display());
        }
    }
    for took in &outcome.participants {
        let (sent, time) = (
            output::bytes(took.bytes_sent),
            output::seconds(took.seconds),
        );
        let _ = writeln!(
            text,
            "done as {}: sent {sent} in {}, in {time}",
            took.role,
            output::count(took.messages_sent, "message")
        );
    }
    output::print(&text)
}

/// How often a parent is told how far its child is.
const BETWEEN_WORDS: Duration = Duration::from_millis(200);

/// Says everything in lines that the parent understands.
fn as_child(args: &PartyArgs, stop: &Stop) -> Result<(), Failure> {
    let last = Mutex::new(BTreeMap::new());
    let progress = |progress: Progress| {
        let mut last = last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let said = last.insert(progress.me, Instant::now());
        match said {
            Some(at) if at.elapsed() < BETWEEN_WORDS && progress.phase != Phase::Done => {
                last.insert(progress.me, at);
            }
            // A parent that is gone hears nothing, and its signal or the end of the run ends this process.
            _ => drop(say(&Word::Progress(Snapshot::from(&progress)))),
        }
    };
    let outcome = PartyFile::load(&args.file)
        .and_then(|file| participant::run(&file, args.net, stop, &progress, &|_| ()));
    match outcome {
        Ok(outcome) => say(&Word::Done(outcome)),
        Err(failure) => {
            let help = failure.advice().to_owned();
            say(&Word::Failed {
                code: failure.code() as u8,
                message: failure.to_string(),
                help,
            })?;
            Err(failure)
        }
    }
}

fn say(word: &Word) -> Result<(), Failure> {
    let line = serde_json::to_string(word)
        .map_err(|error| Failure::new(Code::Other, error.to_string()))?;
    output::print(&(line + "\n"))
}
