//! `veil party`: one participant of a deployment, in the foreground, for one job.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use veil_engine::{Phase, Progress};
use veil_link::shape;
use veil_node::Home;
use veil_node::meeting::Foreground;
use veil_runtime::{Passes, Stage};

use crate::devices::{Devices, DevicesArgs, Registry};
use crate::failure::{Code, Failure};
use crate::launch::participant::{self, Engagement};
use crate::launch::processes::Word;
use crate::launch::{Answer, Outcome};
use crate::links::LinkArgs;
use crate::ordered;
use crate::output;
use crate::prepare::{self, JobArgs};
use crate::progress::{Meter, Snapshot};
use crate::room::RoomArgs;
use crate::signals::Stop;
use crate::stocks;
use crate::trace::TraceFile;

/// Lanes of a deployment, unless the operator says otherwise: the plan must not depend on the machine.
pub(crate) const LANES: u16 = 1;

/// Takes part in one job, as owner, as recipient, or as a party without a service, over TLS.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags of a command, each of which is there or not"
)]
#[command(after_help = "Examples:
  veil party job.toml                            as what the job names this home's participant
  veil party job.toml --data mill:north=pay.csv --home ~/mill     [default: as `veil approve` was told]
  veil party job.toml --yes                      approves this run without asking
  veil party job.toml --stock                    takes what `veil prepare` has made

The participant is the one of the home (`veil init`); the others are its members. Owners and recipients dial the parties;
a party dials those before it in the job's list. All participants must give the same --lanes. SIGINT or SIGTERM ends the
run at everybody.")]
pub struct PartyArgs {
    #[command(flatten)]
    job: JobArgs,
    /// The home of this participant [default: $VEIL_HOME, else ~/.veil]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Folder for results.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Where a party listens [default: as its home says]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// How many seconds the others have to turn up [default: as the home says, 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    wait: Option<u64>,
    /// Give up when nothing moves for so many seconds [default: as the home says, 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: Option<u64>,
    /// Imitate the delay and the rate of a network: lan or wan.
    #[arg(long, value_name = "NET")]
    net: Option<shape::Profile>,
    /// Take products or transfers from the stock that `veil prepare` has made: all participants must give it.
    #[arg(long)]
    stock: bool,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    devices: DevicesArgs,
    #[command(flatten)]
    room: RoomArgs,
    /// Write down every round here: times, messages and waits, never a value. `veil-lab trace` draws it.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Approve this run without being asked; a rule of the policy that refuses it stands.
    #[arg(long)]
    yes: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Where parties keep shares, instead of in their homes.
    #[arg(long, value_name = "DIR", hide = true)]
    stores: Option<PathBuf>,
    /// Speak to the process that started this one.
    #[arg(long, hide = true)]
    child: bool,
}

/// Runs the command.
pub fn run(args: &PartyArgs, registry: &Arc<dyn Registry>) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let devices = args.devices.among(registry);
    if args.child {
        return as_child(args, &devices, &stop);
    }
    let meter = OnceLock::new();
    let progress = |progress: Progress, passes: &Passes| {
        let meter = meter.get_or_init(|| Meter::new(passes));
        meter.show(&Snapshot::from(&progress));
    };
    let say = |line: &str| eprintln!("{line}");
    let outcome = take_part(args, &devices, &stop, &progress, &say)?;
    drop(meter);
    outcome.answers.iter().for_each(Answer::warn);
    if args.json {
        output::print_json(&outcome)
    } else {
        print(&outcome)
    }
}

fn take_part(
    args: &PartyArgs,
    devices: &Devices,
    stop: &Stop,
    progress: &(dyn Fn(Progress, &Passes) + Sync),
    say: &(dyn Fn(&str) + Sync),
) -> Result<Outcome, Failure> {
    let home = Home::open(&Home::locate(args.home.as_deref()))?;
    args.link.check()?;
    let mut job = args.job.load()?;
    let plan = stocks::plan(&job, args.job.lanes.unwrap_or(LANES), args.stock)?;
    let known = if args.stock {
        // Gates are in the order of layers there.
        devices.check(&plan, Some(&home.settings().name))?;
        ordered::Known::Written
    } else {
        ordered::known(&job, &plan, devices, &home.settings().name)?
    };
    // The others have to plan alike, and cannot know what this device is best at.
    let wish = ordered::wish(&job, &plan, devices, Some(&home.settings().name))?;
    if let Some(advice) = wish.and_then(|wish| wish.advice(&plan)) {
        say(&advice);
    }
    prepare::as_approved(&mut job, &plan, &args.job, &home)?;
    // Of a durable job, the stage that computes is written down.
    let traced = veil_node::stages::of(&job, &plan)?
        .plan(Stage::Compute)
        .clone();
    let trace = args
        .trace
        .as_ref()
        .map(|path| TraceFile::create(path, &traced));
    let trace = trace.transpose()?.map(Arc::new);
    let timeouts = home.settings().timeouts;
    let progress = &|seen| progress(seen, &plan);
    let outcome = participant::run(&Engagement {
        home: &home,
        job: &job,
        plan: &plan,
        known: &known,
        out: &args.out,
        listen: args.listen.as_deref(),
        stores: args.stores.as_deref(),
        wait: args.wait.map_or(timeouts.meet, Duration::from_secs),
        timeout: args.timeout.map_or(timeouts.stall, Duration::from_secs),
        link: args.link.kind(),
        net: args.net,
        devices,
        room: &args.room,
        trace: trace.as_ref(),
        again: !args.child,
        yes: args.yes,
        counted: AtomicBool::new(false),
        opened: AtomicBool::new(false),
        // Owners of a durable job take parties in the foreground for silent ones.
        foreground: (!job.is_durable()).then(|| Foreground::new(&plan)),
        stop,
        progress,
        say,
    });
    if let Some(trace) = trace {
        trace.finish();
    }
    outcome
}

fn print(outcome: &Outcome) -> Result<(), Failure> {
    let mut text = String::new();
    if let Some(ordered) = &outcome.ordered {
        text += &(ordered.line() + "\n");
    }
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
fn as_child(args: &PartyArgs, devices: &Devices, stop: &Stop) -> Result<(), Failure> {
    let last = Mutex::new(BTreeMap::new());
    let progress = |progress: Progress, _: &Passes| {
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
    match take_part(args, devices, stop, &progress, &|_| ()) {
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
