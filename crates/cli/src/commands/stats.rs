//! `veil stats`: a statistics job on this machine, and its tables.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use veil_program::Paired;

use crate::commands::run::{Finished, LocalArgs, execute_seen};
use crate::devices::Registry;
use crate::failure::{Code, Failure};
use crate::output;
use crate::prepare;
use crate::views::Views;

/// Runs a statistics job on this machine and prints its tables.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil stats job.toml                   tables, and every number that was opened
  veil stats job.toml --check           compare with the clear computation over the data of all owners
  veil stats job.toml --show-views      show what each participant saw
  veil stats job.toml --out results     result.txt, .csv, .json and .svg for each recipient")]
pub struct StatsArgs {
    #[command(flatten)]
    local: LocalArgs,
    /// Compute the same in the clear, from all owners' files, and compare.
    #[arg(long)]
    check: bool,
    /// Show what the parties received, beside what the owners hold.
    #[arg(long, conflicts_with_all = ["processes", "json"])]
    show_views: bool,
}

/// Runs the command.
pub fn run(args: &StatsArgs, verbose: bool, registry: &Arc<dyn Registry>) -> Result<(), Failure> {
    let job = args.local.job.load()?;
    if !job.is_statistics() {
        let message = format!("{} is no statistics job", args.local.job.job.display());
        return Err(Failure::new(Code::Usage, message).help("`veil run` runs jobs of any kind"));
    }
    let views = args.show_views.then(Views::default);
    let finished = execute_seen(&args.local, views.clone(), verbose, registry)?;
    let checked = if args.check {
        Some(check(&finished)?)
    } else {
        None
    };
    if args.local.json {
        finished.print_json(checked)?;
    } else {
        finished.print()?;
        if checked == Some(true) {
            output::print(
                "checked: the clear computation over the data of all owners gives the same numbers\n",
            )?;
            for paired in finished.job.paired() {
                output::print(&checked_order(&paired))?;
            }
        }
        if let Some(views) = &views {
            output::print(&show(&finished, views))?;
        }
    }
    if checked == Some(false) {
        let message =
            "the result is not what the clear computation over the data of all owners gives";
        return Err(Failure::new(Code::Check, message)
            .help("please report this as a bug, with the job and `veil doctor`"));
    }
    Ok(())
}

/// What a comparison with the clear computation says of the order of rows: nothing by itself, since that pairs them in the same way.
fn checked_order(paired: &Paired) -> String {
    match &paired.column {
        None => format!("not checked: {paired}; the clear computation pairs them alike\n"),
        Some(_) => format!("checked: {paired}\n"),
    }
}

/// Whether every recipient got what the clear computation gives.
fn check(finished: &Finished) -> Result<bool, Failure> {
    let mut answers = finished.outcome.answers.iter();
    let peers = veil_engine::participants(&finished.plan);
    let recipients: Vec<_> = peers
        .into_iter()
        .filter(|peer| prepare::receives(&finished.plan, *peer))
        .collect();
    if recipients.len() != finished.outcome.answers.len() {
        return Ok(false);
    }
    for peer in recipients {
        let name = veil_engine::name_of(&finished.plan, peer);
        let clear = finished
            .job
            .clear_statistics(peer)?
            .map(|result| result.to_json());
        // Both have been text once, so that a number is the same one on both sides.
        let clear: Option<serde_json::Value> =
            clear.and_then(|text| serde_json::from_str(&text).ok());
        let answer = answers.find(|answer| answer.recipient == name);
        let got = answer
            .and_then(|answer| answer.statistics.as_ref())
            .map(|statistics| statistics.json.to_string());
        let got: Option<serde_json::Value> = got.and_then(|text| serde_json::from_str(&text).ok());
        let analyses = |value: &Option<serde_json::Value>| {
            value
                .as_ref()
                .and_then(|value| value.get("analyses").cloned())
        };
        if analyses(&clear).is_none() || analyses(&clear) != analyses(&got) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the owners hold, and what every other participant received of it.
fn show(finished: &Finished, views: &Views) -> String {
    let mut text = String::from("\nwhat the owners hold, and show to no participant\n");
    let mut rows = Vec::new();
    for data in finished.job.data() {
        let lines = data.path.as_deref().map(first_lines).unwrap_or_default();
        for (index, line) in lines.into_iter().enumerate() {
            let owner = if index == 0 {
                format!("{}, {}", data.owner, data.what)
            } else {
                String::new()
            };
            rows.push(vec![owner, line]);
        }
    }
    text += &output::columns(&rows);
    text += "\nwhat was received: shares, which look like noise whatever the data are\n";
    let mut rows = Vec::new();
    for peer in veil_engine::participants(&finished.plan) {
        let view = views.of(peer);
        if view.messages == 0 {
            continue;
        }
        let sample = output::hex(&view.sample);
        rows.push(vec![
            format!(
                "{} ({})",
                veil_engine::name_of(&finished.plan, peer),
                prepare::role(peer)
            ),
            format!(
                "{} in {}",
                output::bytes(view.bytes),
                output::count(view.messages, "message")
            ),
            format!(
                "{:.1} % ones",
                view.ones as f64 / (view.bytes * 8) as f64 * 100.0
            ),
            format!("{sample}…"),
        ]);
    }
    text + &output::columns(&rows)
}

/// The header of a table and its first two rows, cut to a line of a terminal.
fn first_lines(path: &Path) -> Vec<String> {
    let Ok(file) = File::open(path) else {
        return Vec::new();
    };
    // Enough for three lines of any sensible table.
    let lines = BufReader::new(file.take(1 << 16))
        .lines()
        .map_while(Result::ok)
        .take(3);
    lines.map(|line| line.chars().take(60).collect()).collect()
}
