//! `veil-lab trace`: what a run did, as a picture.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use veil_cli::failure::{Code, Failure};
use veil_cli::output;

use crate::trace::summary::{Summary, summarise};
use crate::trace::{draw, merge, perfetto, read};

/// Draws a run from its traces.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil run job.toml --trace run.jsonl
  veil-lab trace run.jsonl                          draws run.svg, and sums it up
  veil-lab trace a.jsonl b.jsonl c.jsonl --out run.svg
                                                traces of three parties on one time axis
  veil-lab trace run.jsonl --out run.json           for ui.perfetto.dev: zoom, search, an arrow per message
  veil-lab trace run.jsonl --json                   busy, waiting and bytes of each participant

Clocks of several machines are taken as they are unless a message would land before it was posted. Then they are moved
such that the shortest journeys in both directions take equally long, and the summary says by how much.")]
pub(crate) struct TraceArgs {
    /// Trace files of one run.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The picture, or with `.json` events in Chrome's trace format, which Perfetto shows [default: the first file's name, with .svg]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the summary as one JSON object, and draw only with --out.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TraceArgs) -> Result<(), Failure> {
    let run = merge::join(read::read_all(args.files.iter().map(PathBuf::as_path))?)?;
    let summary = summarise(&run);
    let beside = args.files[0].with_extension("svg");
    let picture: Option<&Path> = match (&args.out, args.json) {
        (Some(out), _) => Some(out),
        (None, false) => Some(&beside),
        (None, true) => None,
    };
    if let Some(path) = picture {
        save(path, &run, &summary).map_err(|error| {
            let message = format!("cannot write the picture {}: {error}", path.display());
            Failure::new(Code::Input, message).help("choose another file: `--out FILE`")
        })?;
    }
    if args.json {
        return output::print_json(&summary);
    }
    output::print(&text(&summary, picture))
}

/// Writes the picture, or the events that Perfetto shows, by the file's extension.
fn save(path: &Path, run: &merge::Run, summary: &Summary) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        perfetto::write(run, &mut file)?;
    } else {
        file.write_all(draw::svg(run, summary).as_bytes())?;
    }
    file.flush()
}

fn text(summary: &Summary, picture: Option<&Path>) -> String {
    let mut rows = vec![
        [
            "participant",
            "busy",
            "sending",
            "waiting",
            "for",
            "sent",
            "received",
        ]
        .map(String::from)
        .to_vec(),
    ];
    for spent in &summary.participants {
        let whom = spent.waited_for.iter().take(2);
        let whom: Vec<String> = whom
            .map(|(whom, time)| format!("{whom} {}", output::seconds(*time)))
            .collect();
        rows.push(vec![
            format!("{}, {}", spent.name, spent.role),
            output::seconds(spent.busy_seconds),
            output::seconds(spent.sending_seconds),
            output::seconds(spent.waiting_seconds),
            whom.join(", "),
            output::bytes(spent.bytes_sent),
            output::bytes(spent.bytes_received),
        ]);
    }
    let mut text = format!(
        "{}: {} in {}, {}\n{}",
        summary.job,
        output::count(summary.rows, "row"),
        output::seconds(summary.seconds),
        output::count(summary.rounds as u64, "round"),
        output::columns(&rows)
    );
    if !summary.longest_waits.is_empty() {
        text += "\nlongest waits\n";
    }
    for wait in &summary.longest_waits {
        let _ = writeln!(
            text,
            "  {}: {} for {}, {} (lane {})",
            output::seconds(wait.seconds),
            wait.who,
            wait.for_whom,
            wait.at,
            wait.lane
        );
    }
    for (file, by) in &summary.clocks_moved {
        let _ = writeln!(
            text,
            "  the clock of {file} was moved by {by:+.6} s to fit the others"
        );
    }
    if let Some(path) = picture {
        let _ = writeln!(text, "\ndrawn: {}", path.display());
    }
    text
}
