//! `veil run`: all roles of a job on this machine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use veil_link::shape;
use veil_program::{Job, Kind};
use veil_protocol::Protocol;
use veil_runtime::Passes;
use veil_session::Peer;

use crate::consent::LANES;
use crate::devices::{DevicesArgs, Registry};
use crate::failure::{Code, Failure};
use crate::launch::ahead::{self, Ahead};
use crate::launch::inspect::InspectArgs;
use crate::launch::stores::Shares;
use crate::launch::threads::{self, Site};
use crate::launch::{Answer, Crossed, Outcome, Took, durable, processes, stores};
use crate::links::{self, LinkArgs};
use crate::ordered::{self, Ordered, Planned};
use crate::output;
use crate::prepare::{self, JobArgs};
use crate::room::RoomArgs;
use crate::signals::Stop;
use crate::views::Views;

/// Runs all roles of a job on this machine.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil run job.toml                    threads and links in memory
  veil run job.toml --processes        a process per participant, TLS on loopback, keys made for this run
  veil run job.toml --processes --link fabric:shm
                                       the same, over libfabric
  veil run job.toml --net wan          as it would feel between two cities
  veil run job.toml --trace run.jsonl  what every round did, for `veil-lab trace`
  veil run job.toml --watch --net wan  every participant live
  veil run job.toml --protocol yao --device garbler=fpga:board/card
                                       the board behind that socket: `veil-lab card` serves one
  veil-lab run job.toml --protocol yao --device garbler=fpga-sim
                                       one party garbles on a core that is simulated
  veil-lab run job.toml --protocol rep3 --device fpga-sim
                                       all multiply shares on such cores
  veil-lab run job.toml --link fpga-sim --device fpga-sim --headless
                                       cards with a network between them, one of which has a host that does something
  veil run job.toml --shadow --data-are-mine
                                       every layer compared with the clear computation
  veil run job.toml --stock            products are made first, as `veil prepare` does, and then taken
  veil run job.toml --data ann:north=/data/pay.csv --out results")]
pub struct RunArgs {
    #[command(flatten)]
    pub(crate) local: LocalArgs,
}

/// How a job runs on this machine.
#[derive(clap::Args, Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags of a command, each of which is there or not"
)]
pub struct LocalArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// Give up when nothing moves for so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub timeout: u64,
    /// Imitate the delay and the rate of a network: lan or wan.
    #[arg(long, value_name = "NET")]
    pub net: Option<shape::Profile>,
    /// A process per participant, over TLS on loopback, with keys that are made for this run.
    #[arg(long)]
    pub processes: bool,
    /// What carries the bytes.
    #[command(flatten)]
    pub link: LinkArgs,
    /// Parties that are nodes compute circuits of bits without their hosts: the host of the first party's node starts each circuit at all nodes.
    /// With `--link fpga-sim --device fpga-sim`
    #[arg(long)]
    pub headless: bool,
    /// Make the products of two parties against a malicious one, or the transfers of two that follow the protocol, first, as stock, and then run from it: both times are said.
    #[arg(long, conflicts_with_all = ["processes", "headless"])]
    pub stock: bool,
    /// Folder for results, one folder in it per recipient [default: `results` beside a job with a circuit or queries;
    /// statistics are only printed]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Folder in which the parties of a run on this machine keep shares, a folder for each [default: `.veil-run` beside
    /// the job]
    #[arg(long, value_name = "DIR")]
    pub stores: Option<PathBuf>,
    /// What parties compute on.
    #[command(flatten)]
    pub devices: DevicesArgs,
    /// What memory they take.
    #[command(flatten)]
    pub room: RoomArgs,
    /// What is looked at meanwhile.
    #[command(flatten)]
    pub inspect: InspectArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A run that succeeded.
pub struct Finished {
    pub(crate) job: Job,
    /// Its plan.
    pub plan: Passes,
    ordered: Option<Ordered>,
    /// What it came to.
    pub outcome: Outcome,
    /// The line of each dataset that says its opened size.
    sizes: BTreeMap<String, String>,
    link: String,
    seconds: f64,
    /// What making its stock took, if it has taken some.
    stock: Option<Ahead>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    job: &'a str,
    protocol: &'static str,
    guarantee: Cow<'static, str>,
    plan: String,
    #[serde(flatten)]
    ordered: Option<&'a Ordered>,
    rows: u64,
    lanes: u16,
    link: &'a str,
    seconds: f64,
    /// What making its stock took, if it has taken some.
    #[serde(skip_serializing_if = "Option::is_none")]
    stock: Option<Ahead>,
    participants: &'a [Took],
    results: &'a [Answer],
    /// Whether the clear computation gave the same, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    checked: Option<bool>,
    /// What crossed the network of nodes in simulation, if parties were such.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'a Crossed>,
}

/// Runs the command.
pub fn run(args: &RunArgs, verbose: bool, registry: &Arc<dyn Registry>) -> Result<(), Failure> {
    let finished = execute(&args.local, verbose, registry)?;
    if args.local.json {
        finished.print_json(None)
    } else {
        finished.print()
    }
}

/// Runs the job.
pub fn execute(
    args: &LocalArgs,
    verbose: bool,
    registry: &Arc<dyn Registry>,
) -> Result<Finished, Failure> {
    execute_seen(args, None, verbose, registry)
}

/// The same; `views` collects what participants see.
pub(crate) fn execute_seen(
    args: &LocalArgs,
    views: Option<Views>,
    verbose: bool,
    registry: &Arc<dyn Registry>,
) -> Result<Finished, Failure> {
    args.inspect.check(args.processes)?;
    args.link.check_local(args.processes, &**registry)?;
    if args.headless && !args.link.nodes() {
        let message = "--headless is for parties that are nodes, and these are not";
        let help = "add --link fpga-sim --device fpga-sim";
        return Err(Failure::new(Code::Usage, message).help(help));
    }
    let job = args.job.load()?;
    execute_job(job, args, (views, Results::Kept), verbose, registry)
}

/// What becomes of results where no folder is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Results {
    /// Those of circuits and queries go to a folder beside the job.
    Kept,
    /// They are printed.
    Printed,
}

/// The same of a job that was read.
pub(crate) fn execute_job(
    job: Job,
    args: &LocalArgs,
    (views, results): (Option<Views>, Results),
    verbose: bool,
    registry: &Arc<dyn Registry>,
) -> Result<Finished, Failure> {
    let devices = args.devices.among(registry);
    let planned = if args.stock {
        ordered::stocked(job, args.job.lanes.unwrap_or(LANES), &devices)?
    } else {
        ordered::plan(job, args.job.lanes, &devices, None)?
    };
    let Planned {
        job, plan, ordered, ..
    } = planned;
    if verbose && plan.count() > 1 {
        let (passes, lanes) = (plan.count(), plan.lanes);
        eprintln!("plan {}: {passes} passes, {lanes} lanes", plan.hash);
    } else if verbose {
        let (rows, slots, lanes) = (plan.chunk_rows, plan.slots, plan.lanes);
        eprintln!(
            "plan {}: {} layers, {slots} slots, chunks of {rows} rows, {lanes} lanes",
            plan.hash,
            plan.layers.len()
        );
    }
    let stop = Stop::install()?;
    // Results that the caller does not keep still need a place until they are printed.
    let temporary = tempfile::tempdir().map_err(|error| {
        Failure::new(
            Code::Other,
            format!("cannot make a temporary folder: {error}"),
        )
    })?;
    let beside = args
        .job
        .job
        .parent()
        .unwrap_or(Path::new(""))
        .join("results");
    let (out, kept) = match (&args.out, job.kind()) {
        (Some(out), _) => (out.as_path(), true),
        (None, Kind::Circuit(_) | Kind::Query(_) | Kind::Intersection(_))
            if results == Results::Kept && !job.is_statistics() =>
        {
            (beside.as_path(), true)
        }
        (None, _) => (temporary.path(), false),
    };
    let timeout = Duration::from_secs(args.timeout);
    let site = Site {
        timeout,
        link: args.link.kind(),
        nodes: args.link.nodes(),
        boards: args.link.boards(),
        headless: args.headless,
        net: args.net,
        out,
        kept,
        views,
        stop: &stop,
        devices: &devices,
        room: &args.room,
        inspect: &args.inspect,
    };
    durable::check(&job, args)?;
    let beside = || args.job.job.with_file_name(".veil-run");
    let root = args.stores.clone().unwrap_or_else(beside);
    let made = args
        .stock
        .then(|| ahead::make(&plan, &site, temporary.path()));
    let (stock, made) = made.transpose()?.unzip();
    let start = Instant::now();
    let outcome = if let Some(stock) = stock {
        let shares = Shares {
            stock,
            ..Shares::default()
        };
        threads::run(&job, &plan, &site, &shares)?
    } else if args.processes {
        processes::run(&job, &plan, &args.job, &site, &root, verbose)?
    } else {
        durable::run(&job, &plan, args.job.lanes, &site, &root)?
    };
    let link = if args.processes {
        args.link.kind().to_string()
    } else if args.link.nodes() {
        args.link.name().to_owned()
    } else {
        "memory".to_owned()
    };
    let sizes = stores::sizes(&root, &job)?;
    Ok(Finished {
        job,
        sizes,
        plan,
        ordered,
        outcome,
        link,
        seconds: start.elapsed().as_secs_f64(),
        stock: made,
    })
}

impl Finished {
    /// Rows that were computed on.
    fn rows(&self) -> u64 {
        if self.job.queries().is_some() {
            return self.plan.job.rows();
        }
        self.job.rows()
    }

    /// Prints one object.
    pub(crate) fn print_json(&self, checked: Option<bool>) -> Result<(), Failure> {
        self.outcome.answers.iter().for_each(Answer::warn);
        let protocol = self.protocol();
        output::print_json(&Printed {
            job: &self.plan.job.name,
            protocol: protocol.name(),
            guarantee: protocol.guarantee(),
            plan: self.plan.hash.to_string(),
            ordered: self.ordered.as_ref(),
            rows: self.rows(),
            lanes: self.plan.lanes,
            link: &self.link,
            seconds: self.seconds,
            stock: self.stock,
            participants: &self.outcome.participants,
            results: &self.outcome.answers,
            checked,
            network: self.outcome.network.as_ref(),
        })
    }

    /// Prints what recipients got, then what it took.
    pub(crate) fn print(&self) -> Result<(), Failure> {
        let mut text = String::new();
        for answer in &self.outcome.answers {
            match &answer.statistics {
                Some(statistics) => text += &(statistics.text.clone() + "\n"),
                None => text += &["for ", &answer.recipient, ":\n"].concat(),
            }
            if let Some(folder) = &answer.folder {
                let peers = veil_engine::participants(&self.plan).into_iter();
                let own = peers
                    .filter(|peer| veil_engine::name_of(&self.plan, *peer) == answer.recipient)
                    .find(|peer| prepare::receives(&self.plan, *peer));
                for name in own.map_or_else(Vec::new, |peer| prepare::results(&self.job, peer)) {
                    let _ = writeln!(text, "  {}", folder.join(name).display());
                }
            }
        }
        let parties = self.plan.job.parties.join(", ");
        let of_queries = self.job.queries().map(veil_program::Queries::kept);
        let of_queries = of_queries.into_iter().flatten().map(|kept| kept.dataset);
        let keep = self.job.spec().keep.iter().map(|keep| keep.name.clone());
        let of_statistics = keep.filter(|_| self.job.queries().is_none());
        for name in of_queries.chain(of_statistics) {
            let size = self.sizes.get(&name);
            let size = size.map_or_else(String::new, |line| format!(", with `{line}`"));
            let _ = writeln!(text, "kept as `{name}` by {parties}{size}");
        }
        output::print(&text)?;
        self.outcome.answers.iter().for_each(Answer::warn);
        output::print(&self.summary())
    }

    fn protocol(&self) -> Arc<dyn Protocol> {
        self.plan.protocol(Peer::Party(self.plan.parties()[0]))
    }

    /// What it took, and what it is worth.
    fn summary(&self) -> String {
        let (plan, protocol) = (&self.plan, self.protocol());
        let rows: Vec<Vec<String>> = self
            .outcome
            .participants
            .iter()
            .map(|took| {
                let sent = format!(
                    "sent {} in {}",
                    output::bytes(took.bytes_sent),
                    output::count(took.messages_sent, "message")
                );
                let memory = took.peak_bytes.map_or_else(String::new, |peak| {
                    format!("at most {} of memory", output::bytes(peak))
                });
                let cycles = took.core_cycles.map_or_else(String::new, |cycles| {
                    format!("{} of its cores", output::count(cycles, "cycle"))
                });
                vec![took.name.clone(), took.role.clone(), sent, memory, cycles]
            })
            .collect();
        let ordered = self.ordered.as_ref();
        let ordered = ordered.map_or_else(String::new, |ordered| ordered.line() + "\n");
        let stock = self.stock.map_or_else(String::new, |stock| {
            format!(
                "stock: {} taken of {} that were made before, in {}, with {} sent\n",
                output::count(stock.cells, stock.kind.item()),
                stock.made,
                output::seconds(stock.seconds),
                output::bytes(stock.bytes_sent)
            )
        });
        let network = self.outcome.network.as_ref();
        let network = network.map_or_else(String::new, |network| {
            let headless = network.headless.as_ref().map_or_else(String::new, |headless| {
                format!(
                    "headless: {} of {} in all, each started once by the host of the first party's node\n",
                    output::count(headless.circuits, "circuit"),
                    output::count(headless.rounds, "round")
                )
            });
            format!(
                "network: {} cycles, {} at {} MHz, {} with headers, seals and answers\n{headless}",
                network.cycles,
                output::seconds(network.cycles as f64 / (network.clock_mhz * 1e6)),
                network.clock_mhz,
                output::bytes(16 * network.words)
            )
        });
        format!(
            "{} by {} {}, {}, links {}, in {}\n{}: {}\n{stock}{ordered}{network}{}",
            output::count(self.rows(), "row"),
            protocol.name(),
            match plan.count() {
                1 => format!("over {}", plan.ring.name()),
                passes => format!("in {passes} passes"),
            },
            output::count(plan.lanes.into(), "lane"),
            match self.link.as_str() {
                "tls" => "over TLS".to_owned(),
                "memory" => "in memory".to_owned(),
                links::NODES => "between nodes in simulation".to_owned(),
                links::BOARDS => "between nodes that are boards".to_owned(),
                fabric => ["over libfabric, ", fabric].concat(),
            },
            output::seconds(self.seconds),
            protocol.name(),
            protocol.guarantee(),
            output::columns(&rows)
        )
    }
}
