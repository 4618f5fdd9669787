//! `veil data`: an owner's tables before anything is sent, and the key under which owners compare the order of rows.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use veil_job::{DataError, Holder};
use veil_program::stats::{Column, Missing, Stats};
use veil_program::{AlignKey, Job, Kind, TableReport};

use crate::failure::{Code, Failure};
use crate::output;
use crate::prepare::JobArgs;

/// A check that takes less shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Checks tables and makes alignment keys.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum DataCommand {
    /// Check an owner's tables against the job, without any connection
    Check(CheckArgs),
    /// Make or show the key under which the owners of a block compare the order of its rows
    #[command(subcommand)]
    Key(KeyCommand),
}

/// Checks tables.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil data check job.toml --owner mill                        all tables of `mill`
  veil data check job.toml --owner mill --data mill:2025=pay.parquet
  veil data check job.toml --owner mill --align-key align.key  where the order of rows is compared

Every cell that the job needs is read. Nothing is sent. The exit code is 3 if something is wrong.")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Whose tables.
    #[arg(long, value_name = "NAME")]
    owner: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Makes and shows alignment keys.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil data key new align.key          one owner makes the key
  veil data key import align.key       the others paste its text, and get the same file
  veil data key fingerprint align.key  all read the same to each other

The text of the key is the content of the file. Send it over a channel that only the owners of the block read: whoever
has it, and sees what owners send, can try which persons are in a table.")]
pub(crate) enum KeyCommand {
    /// Make a key in a new file that only you can read
    New {
        /// The file; an existing one is never overwritten.
        file: PathBuf,
    },
    /// Read the text of a key from standard input, into a new file that only you can read
    Import {
        /// The file; an existing one is never overwritten.
        file: PathBuf,
    },
    /// Print the text of a key, to hand it to the other owners
    Show {
        /// The file.
        file: PathBuf,
    },
    /// Print what owners compare to be sure that they have the same key
    Fingerprint {
        /// The file.
        file: PathBuf,
    },
}

pub(crate) fn run(command: &DataCommand) -> Result<(), Failure> {
    match command {
        DataCommand::Check(args) => check(args),
        DataCommand::Key(command) => key(command),
    }
}

fn key(command: &KeyCommand) -> Result<(), Failure> {
    let made = |file: &Path, key: &AlignKey| {
        key.write(file)?;
        output::print(&format!("{}\n", key.fingerprint()))
    };
    match command {
        KeyCommand::New { file } => {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(|error| {
                let message = format!("this machine gives no random numbers: {error}");
                Failure::new(Code::Other, message)
            })?;
            made(file, &AlignKey::new(bytes))
        }
        KeyCommand::Import { file } => {
            let mut text = String::new();
            std::io::stdin().read_line(&mut text).map_err(|error| {
                Failure::new(Code::Other, format!("cannot read standard input: {error}"))
            })?;
            made(file, &AlignKey::parse(&text)?)
        }
        KeyCommand::Show { file } => {
            output::print(&format!("{}\n", AlignKey::read(file)?.text().as_str()))
        }
        KeyCommand::Fingerprint { file } => {
            output::print(&format!("{}\n", AlignKey::read(file)?.fingerprint()))
        }
    }
}

fn check(args: &CheckArgs) -> Result<(), Failure> {
    let job = args.job.load()?;
    let holder = holder(&job, &args.owner)?;
    let bar = Bar::new();
    let (reports, problems) = job.check_data(holder, &|done, all| bar.show(done, all));
    drop(bar);
    let stats = match job.kind() {
        Kind::Stats(stats) => Some(stats),
        _ => None,
    };
    if args.json {
        output::print_json(&Checked::new(&args.owner, stats, &reports, &problems))?;
    } else {
        let text: Vec<String> = match stats {
            Some(stats) => reports.iter().map(|report| table(stats, report)).collect(),
            None if problems.is_empty() => files(&job, holder),
            None => Vec::new(),
        };
        output::print(&text.join("\n"))?;
    }
    if problems.is_empty() {
        return Ok(());
    }
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Err(Failure::new(Code::Input, messages.join("\n")))
}

fn holder(job: &Job, name: &str) -> Result<Holder, Failure> {
    let holders = job.holders();
    let name_of = |holder: &Holder| job.roles().holder_name(*holder);
    let found = holders.iter().find(|holder| name_of(holder) == name);
    found.copied().ok_or_else(|| {
        if holders.is_empty() {
            let message =
                "no owner brings files to this job: its values are in the parties' stores";
            return Failure::new(Code::Input, message)
                .help("`veil shares list` shows what is kept");
        }
        let names: Vec<String> = holders
            .iter()
            .map(|holder| format!("`{}`", name_of(holder)))
            .collect();
        let message = format!(
            "`{name}` brings no data to this job; {} do",
            names.join(", ")
        );
        Failure::new(Code::Input, message).help("write --owner and one of these names")
    })
}

/// The files of a circuit job, which have no columns.
fn files(job: &Job, holder: Holder) -> Vec<String> {
    let mine = job.data().into_iter().filter(|data| data.holder == holder);
    let line = |data: veil_program::DataFile| {
        let path = data.path.map(|path| path.display().to_string());
        format!("{}: {}, good\n", data.what, path.unwrap_or_default())
    };
    mine.map(line).collect()
}

/// What a table has, for people.
fn table(stats: &Stats, report: &TableReport) -> String {
    let seconds = report.elapsed.as_secs_f64();
    let mut text = format!(
        "block {}: {}\n  {}, {}, {}; read in {}, {:.0} MB/s\n",
        report.block,
        report.file.display(),
        report.format,
        output::count(report.rows, "row"),
        output::bytes(report.bytes),
        output::seconds(seconds),
        report.bytes as f64 / 1e6 / seconds.max(1e-9),
    );
    let head = ["column", "type", "declared", "missing", ""].map(str::to_owned);
    let mut lines = vec![head.to_vec()];
    for &(index, missing) in &report.columns {
        let column = &stats.columns[index];
        lines.push(vec![
            column.name.clone(),
            column.type_name().to_owned(),
            values(column),
            missing.to_string(),
            policy(column, missing),
        ]);
    }
    if let Some(key) = &report.order {
        let what = "key, compared in order and never shared";
        lines.push(
            [key.as_str(), what, "", "0", ""]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    text += &output::columns(&lines);
    text
}

/// The declared range.
fn values(column: &Column) -> String {
    match column.range() {
        Some((min, max)) => format!("{} to {}", column.show(min), column.show(max)),
        None => output::count(column.categories().len() as u64, "value"),
    }
}

/// What happens to rows without a value.
fn policy(column: &Column, missing: u64) -> String {
    if missing == 0 {
        return String::new();
    }
    match column.missing {
        Missing::Refuse => "refused",
        Missing::DropRow => "these rows count in no analysis",
        Missing::DropPair => "these rows count in no analysis of this column",
        Missing::Zero => "these count as 0",
    }
    .to_owned()
}

/// The outcome for scripts.
#[derive(Serialize)]
struct Checked<'a> {
    owner: &'a str,
    good: bool,
    tables: Vec<CheckedTable<'a>>,
    problems: Vec<String>,
}

#[derive(Serialize)]
struct CheckedTable<'a> {
    block: &'a str,
    file: &'a Path,
    format: &'a str,
    rows: u64,
    bytes: u64,
    seconds: f64,
    columns: Vec<CheckedColumn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

#[derive(Serialize)]
struct CheckedColumn<'a> {
    name: &'a str,
    r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<String>,
    missing: u64,
    policy: &'a str,
}

impl<'a> Checked<'a> {
    fn new(
        owner: &'a str,
        stats: Option<&'a Stats>,
        reports: &'a [TableReport],
        problems: &[DataError],
    ) -> Self {
        let column = |stats: &'a Stats, index: usize, missing| {
            let column = &stats.columns[index];
            let range = column.range();
            CheckedColumn {
                name: &column.name,
                r#type: column.type_name(),
                min: range.map(|range| column.show(range.0)),
                max: range.map(|range| column.show(range.1)),
                missing,
                policy: column.missing.name(),
            }
        };
        let table = |(stats, report): (&'a Stats, &'a TableReport)| CheckedTable {
            block: &report.block,
            file: &report.file,
            format: report.format,
            rows: report.rows,
            bytes: report.bytes,
            seconds: report.elapsed.as_secs_f64(),
            columns: (report.columns.iter())
                .map(|&(index, missing)| column(stats, index, missing))
                .collect(),
            key: report.order.as_deref(),
        };
        Self {
            owner,
            good: problems.is_empty(),
            tables: (stats.into_iter())
                .flat_map(|stats| reports.iter().map(move |report| (stats, report)))
                .map(table)
                .collect(),
            problems: problems.iter().map(ToString::to_string).collect(),
        }
    }
}

/// How far a long reading is, on a terminal.
struct Bar {
    start: Instant,
    bar: OnceLock<ProgressBar>,
}

impl Bar {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            bar: OnceLock::new(),
        }
    }

    fn show(&self, done: u64, all: u64) {
        if self.start.elapsed() < PATIENCE || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let style = ProgressStyle::with_template(
                "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            );
            let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::stderr());
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        bar.set_length(all);
        bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
