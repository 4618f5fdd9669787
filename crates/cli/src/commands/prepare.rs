//! `veil prepare`: two parties make stock for jobs to come.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use veil_engine::{Data, Progress, Settings};
use veil_job::StockKind;
use veil_link::LinkKind;
use veil_link::tls::{Caller, Port, Reception};
use veil_node::Home;
use veil_node::control::{self, Reply, Request};
use veil_node::stock::{self, Making};
use veil_protocol::{Options, Plan, Stock, items_of_row, making_of, stock_kind};
use veil_runtime::{Neighbours, Part, Passes, RunError};
use veil_session::Peer;

use super::party::LANES;
use crate::devices::{DevicesArgs, Registry};
use crate::failure::{Code, Failure};
use crate::home::note;
use crate::output;
use crate::prepare::JobArgs;
use crate::progress::{Meter, Snapshot};
use crate::signals::Stop;
use crate::stocks;

/// Makes stock for jobs of two parties, so that they run without making products (where one may be malicious) or transfers (where none is) on the way.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil prepare job.toml                     for one run of this job; the other party gives the same command
  veil prepare job.toml --runs 1000         for a thousand
  veil prepare job.toml --cells 1000000 --most 500
                                            a million ANDs, if all stock with this party takes 500 MB at most
  veil prepare job.toml --cells 100000000 --for 10m
                                            what is made in ten minutes, and no more than that
  veil prepare job.toml --transfers 1000000  the same of transfers, for jobs of two parties that follow the protocol
  veil party job.toml --stock               takes them; all participants must give it

No data are needed, and nothing is opened. Stock is encrypted under a key of the home and used once.
A folder of stock must not be restored from a backup: `veil stock` lists what there is.")]
pub(crate) struct PrepareArgs {
    #[command(flatten)]
    job: JobArgs,
    /// The home of this party [default: $VEIL_HOME, else ~/.veil]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// For so many runs of the job.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["cells", "transfers"])]
    runs: u64,
    /// So many cells, at least: a run takes one for each AND, and one for three bits of inputs.
    #[arg(long, value_name = "N", conflicts_with = "transfers")]
    cells: Option<u64>,
    /// So many transfers, at least: a run takes one for each bit of an input that the second party does not get from the first one.
    #[arg(long, value_name = "N")]
    transfers: Option<u64>,
    /// No longer than this, such as 90s, 10m or 8h: what has passed at both parties by then is kept.
    #[arg(long = "for", value_name = "SPAN", value_parser = span)]
    span: Option<Duration>,
    /// Megabytes on the disk that all stock with this party may take.
    #[arg(long, value_name = "MB")]
    most: Option<u64>,
    /// Where this party listens [default: as its home says]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// How many seconds the other party has to turn up [default: as the home says, 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    wait: Option<u64>,
    /// Give up when nothing moves for so many seconds [default: as the home says, 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: Option<u64>,
    #[command(flatten)]
    devices: DevicesArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// How often the time is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    with: &'a str,
    plan: String,
    /// Cells or transfers.
    cells: u64,
    of: &'static str,
    bytes_sent: u64,
    seconds: f64,
    cells_per_second: f64,
}

/// Runs the command.
pub(crate) fn run(args: &PrepareArgs, registry: &Arc<dyn Registry>) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let devices = args.devices.among(registry);
    let home = Home::open(&Home::locate(args.home.as_deref()))?;
    let job = args.job.load()?;
    let lanes = args.job.lanes.unwrap_or(LANES);
    let used = stocks::plan(&job, lanes, true)?;
    let name = home.settings().name.clone();
    let making = making(args, &used, lanes)?;
    let me = veil_runtime::roles(&making, &name)?[0];
    let neighbours = Neighbours::find(&making, me, &*home.members())?;
    let kind = stock_kind(&making.job).unwrap_or_default();
    let cells = making.job.rows() * items_of_row(kind);
    let most = args
        .most
        .map(|megabytes| megabytes.saturating_mul(1_000_000));
    let made = stocks::of(&home, &making, me, &neighbours)?.making(cells, most);
    let made = Arc::new(made);
    let end = Arc::new(Making::default());
    let port = port(args, &home, &neighbours, &making, &end)?;
    let other = making.job.parties.iter().find(|party| **party != name);
    let other = other.map_or("", String::as_str);
    eprintln!("listening on {}", port.address());
    eprintln!(
        "plan {}: {} with `{other}`, waiting for it",
        making.hash,
        output::count(cells, kind.item())
    );
    let identity = home.identity();
    let over = AtomicBool::new(false);
    let part = Part {
        plan: &making,
        me,
        identity: &identity,
        port: Some(&port),
        neighbours: &neighbours,
        link: LinkKind::Tls,
        net: None,
        stop: &over,
    };
    let timeouts = home.settings().timeouts;
    let wait = args.wait.map_or(timeouts.meet, Duration::from_secs);
    let meeting = Part {
        stop: stop.flag(),
        ..part
    };
    let connections = meeting
        .meet(wait)
        .map_err(|error| Failure::setup(&making, &error))?;
    let settings = Settings {
        timeout: args.timeout.map_or(timeouts.stall, Duration::from_secs),
        device: devices.factory(&making, me, None),
        ..Settings::default()
    };
    let data = Data {
        makes: Some(Arc::clone(&made) as Arc<dyn veil_job::StockSink>),
        ..Data::default()
    };
    let start = Instant::now();
    let meter = Meter::new(&making);
    let progress = |progress| meter.show(&Snapshot::from(&progress));
    let peer = neighbours.pins.values().next().copied();
    let peer = peer.expect("two parties make stock");
    end.begins(making.hash, peer);
    let sent = AtomicU64::new(0);
    let ran = within(args.span, &stop, &over, || {
        let progress = |seen: Progress| {
            sent.store(seen.sent, Ordering::Relaxed);
            progress(seen);
        };
        let data = Arc::from([data]);
        part.run(connections, &settings, data, &|link| link, &progress)
    });
    drop(meter);
    let (cells, bytes_sent) = match ran {
        Ok(report) => (cells, report.meters.bytes_sent),
        Err(abort) => {
            // A party that dials the other one asks how much both keep.
            let asks = !neighbours.dial.is_empty();
            let member = home.members().by_name(other).cloned();
            let kept = match member.filter(|_| asks) {
                _ if abort.is_cheat() => Ok(0),
                Some(member) => stock::agree(&identity, &member, making.hash, &made),
                None => Ok(end.ends(&made)),
            };
            let kept = kept.unwrap_or_else(|why| {
                note(&why);
                0
            });
            if kept == 0 {
                return Err(match RunError::from(abort) {
                    _ if stop.asked() => Failure::stopped(),
                    RunError::Setup(error) => Failure::setup(&making, &error),
                    RunError::Abort(abort) => Failure::abort(&making, me, &abort),
                });
            }
            if !over.load(Ordering::Relaxed) {
                note(&format!(
                    "the run ended early, and what was made is kept: {abort}"
                ));
            }
            (kept, sent.load(Ordering::Relaxed))
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let printed = Printed {
        with: other,
        plan: making.hash.to_string(),
        cells,
        of: kind.items(),
        bytes_sent,
        seconds,
        cells_per_second: cells as f64 / seconds,
    };
    if args.json {
        return output::print_json(&printed);
    }
    output::print(&format!(
        "made {} with `{other}` in {}, {} each second: sent {}\n",
        output::count(cells, kind.item()),
        output::seconds(seconds),
        printed.cells_per_second as u64,
        output::bytes(printed.bytes_sent)
    ))
}

/// A span of time, of seconds too.
fn span(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').and_then(|text| text.parse().ok());
    match seconds {
        Some(seconds @ 1..=86400) => Ok(Duration::from_secs(seconds)),
        _ => super::invite::span(text),
    }
}

/// Runs until it is over, the time is, or the command is asked to stop: `over` says so then.
fn within<T>(span: Option<Duration>, stop: &Stop, over: &AtomicBool, run: impl FnOnce() -> T) -> T {
    let until = span.map(|span| Instant::now() + span);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if stop.asked() || until.is_some_and(|until| Instant::now() >= until) {
                    over.store(true, Ordering::Relaxed);
                }
                thread::sleep(GLANCE);
            }
        });
        let ran = run();
        ended.store(true, Ordering::Relaxed);
        ran
    })
}

/// The plan of the run that makes stock for a job.
fn making(args: &PrepareArgs, used: &Passes, lanes: u16) -> Result<Passes, Failure> {
    let protocol = used.protocol(Peer::Party(used.parties()[0]));
    let need = protocol.stock().map_or(0, |stock| stock.cells);
    let spec = &used.job;
    let kind = stock_kind(spec).unwrap_or_default();
    let (asked, other) = match kind {
        StockKind::Cells => (args.cells, args.transfers),
        StockKind::Transfers => (args.transfers, args.cells),
    };
    let items = kind.items();
    if other.is_some() {
        let message = format!("runs of this job take {items} from a stock, and nothing else");
        return Err(Failure::new(Code::Usage, message).help(format!("say `--{items} N`")));
    }
    let cells = asked.unwrap_or(need.saturating_mul(args.runs));
    let rows = cells.div_ceil(items_of_row(kind));
    if cells < need || cells == 0 || rows > u64::from(u32::MAX >> 1) {
        let message = format!("{cells} {items} serve no run of this job, which takes {need}");
        return Err(Failure::new(Code::Usage, message).help("ask for more, or for fewer runs"));
    }
    let parties = [spec.parties[0].clone(), spec.parties[1].clone()];
    let mut job = making_of(kind, parties, spec.security.statistical, cells);
    if kind == StockKind::Cells {
        job.security.ot = spec.security.ot;
    }
    let lanes = u16::try_from(rows).map_or(lanes, |rows| lanes.min(rows));
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    Ok(Plan::stocked(Arc::new(job), options, Stock::Made)?.into())
}

/// Where this party is reached.
fn port(
    args: &PrepareArgs,
    home: &Home,
    neighbours: &Neighbours,
    plan: &Plan,
    end: &Arc<Making>,
) -> Result<Port, Failure> {
    let own = home.settings().listen;
    let listen = args
        .listen
        .clone()
        .or_else(|| own.map(|own| own.to_string()));
    let listen = listen.ok_or_else(|| {
        let message = "a computing party needs an address to listen on";
        Failure::new(Code::Input, message)
            .help("set `listen` in veil.toml of its home, or give `--listen 0.0.0.0:7000`")
    })?;
    let end = Arc::clone(end);
    let handler = move |caller: Caller, request: &[u8]| {
        let reply = match control::decode(request) {
            Ok(Request::Keep { plan, cells }) => end.answer(&plan, cells, caller.key),
            _ => Reply::Refused {
                why: "stock is made here, and nothing else".to_owned(),
            },
        };
        control::encode(&reply)
    };
    let reception = Reception::sole(neighbours.pins.values().copied());
    let reception = reception.with_handler(Arc::new(handler));
    let port = Port::bind(&home.identity(), &listen, reception);
    port.map_err(|error| Failure::setup(plan, &error))
}
