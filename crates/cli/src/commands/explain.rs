//! `veil explain`: what a job computes, what it costs, and what it opens, before anything runs.

mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use veil_circuit::{Per, Reduce};
use veil_engine::{Memory, Settings};
use veil_job::{Audience, Block, Guarantee, Holder, Ot, StockKind};
use veil_link::LinkKind;
use veil_link::shape::Profile;
use veil_node::stock;
use veil_program::{Job, Kind, Paired};
use veil_protocol::ag::transfer_bytes;
use veil_protocol::{Options, Plan, Protocol, Stock, stock_kind};
use veil_runtime::{Passes, Stage, Stages};
use veil_session::{PartyId, Peer};
use veilworks::explain::{self as explained, Estimate, Numbers, Participant, estimates};

use crate::consent::LANES;
use crate::devices::{DevicesArgs, Registry};
use crate::estimate::{self, Rounds, Run, Sent};
use crate::failure::{Code, Failure};
use crate::home::{HomeArgs, note};
use crate::ordered::{self, Ordered, Planned};
use crate::output;
use crate::prepare::{self, JobArgs};
use crate::rates::{Found, Origin, Rates, RatesArgs};
use crate::stocks;
use crate::wishes::{self, Wish};

/// Says what a job costs and opens.
#[derive(clap::Args, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags of a command, each of which is there or not"
)]
#[command(after_help = "Examples:
  veil explain job.toml
  veil explain job.toml --lanes 4 --json
  veil explain job.toml --rates fast.toml            on a machine that was measured
  veil explain job.toml --net wan
  veil explain job.toml --stock                      what is left of it where products were made ahead
  veil explain job.toml --plan                       the operators of queries, each with its rows, bytes and rounds
  veil explain job.toml --ask                        in chunks as the devices of its parties wish them
  veil-lab explain job.toml --device garbler=fpga-sim
                                                     in the order of gates that the device asks for

Nothing is run, and no data file is read. Bytes are exact: payload is what the protocol says, framed is what a run's summary counts,
with message headers (40 bytes each), the handshake and the last words, before TLS. Times are from the first message to the last. They are
estimates: the work of each participant, counted from the plan, at the rates of a table that `veil-lab calibrate` has measured; a network
adds the delay of every round that is waited for, and its rate. The table is that of --rates, else rates.toml of the home, else the one of
the program; one job and one table give one estimate on every machine, and so the plan is for 1 lane unless --lanes says otherwise.")]
pub struct ExplainArgs {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    devices: DevicesArgs,
    /// Ask the parties that serve, members of the home, for how many rows in a chunk their devices are best, and plan for the fewest.
    #[arg(long, conflicts_with = "devices")]
    ask: bool,
    /// Estimate the time over this network alone: lan or wan [default: both, and loopback]
    #[arg(long, value_name = "NET")]
    net: Option<Profile>,
    #[command(flatten)]
    rates: RatesArgs,
    #[command(flatten)]
    home: HomeArgs,
    /// A run that takes its products or transfers from the stock of the two parties.
    #[arg(long, conflicts_with_all = ["plan", "ask"])]
    stock: bool,
    /// Of a job with queries: how each operator is made, with its rows, bytes and rounds.
    #[arg(long)]
    plan: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize, Debug)]
struct Explanation {
    job: String,
    plan: String,
    protocol: &'static str,
    guarantee: Cow<'static, str>,
    /// Of the runs without one of the parties, if there may be some.
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_by: Option<Finishing>,
    security: Guarantee,
    ring: String,
    /// Rows of all owners' data.
    rows: u64,
    /// Whether keys of two lists meet, which have no circuit of rows.
    #[serde(skip)]
    meets: bool,
    /// Rows of the plan: 1 where two parties compute statistics.
    plan_rows: u64,
    /// Cycles of the circuit.
    cycles: u64,
    products_per_row: u64,
    summed_products_per_row: u64,
    /// Of statistics between two parties, what more parties would send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    among_more: Vec<AmongMore>,
    chunk_rows: u32,
    /// Why there are so many rows in a chunk.
    chunk_rows_why: String,
    chunks: u32,
    lanes: u16,
    layers: usize,
    /// The order of gates, where they are garbled.
    #[serde(flatten)]
    ordered: Option<Ordered>,
    rounds: Rounds,
    /// Of two parties: what a run from stock takes, and leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    stock: Option<FromStock>,
    /// Of the same: where the transfers come from that batches take.
    #[serde(skip_serializing_if = "Option::is_none")]
    transfers: Option<TransfersOf>,
    participants: Vec<Participant>,
    estimates: Vec<Estimate>,
    /// The table of rates that they are by.
    rates: Origin,
    inputs: Vec<Supplied>,
    /// Of a circuit job: what each input is read from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    read: Vec<Read>,
    /// Why the rows of several owners are rows of the same people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paired: Vec<Paired>,
    opened: Vec<Opened>,
    /// How many numbers are opened, and the job's own limit of them: of jobs with analyses.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_numbers: Option<Numbers>,
    kept: Vec<Kept>,
}

/// The transfers of a run's batches, and what both parties send for them in full chunks.
#[derive(Serialize, Debug)]
struct TransfersOf {
    /// Whether they are silent.
    silent: bool,
    /// Whether the job asks for that.
    asked: bool,
    count: u64,
    silent_bytes: u64,
    extension_bytes: u64,
}

impl TransfersOf {
    fn new(plan: &Plan) -> Option<Self> {
        let security = plan.job.security;
        let garbles = security.takes_silent() && plan.job.intersection().is_none();
        let bytes = garbles.then(|| transfer_bytes(plan)).flatten()?;
        Some(TransfersOf {
            silent: plan.silent.is_some(),
            asked: security.ot == Ot::Silent,
            count: bytes.transfers,
            silent_bytes: bytes.silent,
            extension_bytes: bytes.extension,
        })
    }
}

/// What a run takes from a stock, and leaves to be sent.
#[derive(Serialize, Debug)]
struct FromStock {
    /// Whether the explained run is such a one.
    taken: bool,
    /// Cells or transfers.
    cells: u64,
    /// What they are: `cells`, each 128 bytes on the disk of either party, or `transfers`, each 16.
    #[serde(rename = "of", serialize_with = "stocks::items")]
    kind: StockKind,
    /// From stock.
    online: Effort,
    /// Where products or transfers are made on the way.
    fresh: Effort,
}

/// What all participants send, and how often they wait for each other if chunks follow each other.
#[derive(Serialize, Debug)]
struct Effort {
    /// Payload.
    bytes: u64,
    rounds: u64,
}

/// How the others finish without a party that is lost.
#[derive(Serialize, Debug)]
struct Finishing {
    protocol: &'static str,
    guarantee: Cow<'static, str>,
}

/// Who supplies what.
#[derive(Serialize, Debug)]
struct Supplied {
    owner: String,
    inputs: Vec<String>,
    values: u64,
}

/// What an input of a circuit is read from.
#[derive(Serialize, Debug)]
struct Read {
    owner: String,
    port: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    what: String,
}

/// What the parties keep.
#[derive(Serialize, Debug)]
struct Kept {
    what: String,
    values: u64,
}

/// The same statistics among more parties.
#[derive(Serialize, Debug)]
struct AmongMore {
    parties: usize,
    security: Guarantee,
    /// Payload of all participants.
    bytes: u64,
    /// Seconds with all participants on one machine, as estimated.
    seconds: f64,
}

/// An opened value.
#[derive(Serialize, Debug)]
struct Opened {
    what: String,
    to: String,
    values: u64,
}

/// Runs the command.
pub fn run(args: &ExplainArgs, registry: &Arc<dyn Registry>) -> Result<(), Failure> {
    let job = args.job.load()?;
    let rates = args.rates.load(&args.home.path())?;
    let devices = args.devices.among(registry);
    // A plan must not depend on the machine.
    let lanes = args.job.lanes.unwrap_or(LANES);
    let (job, stated) = if args.ask {
        asked(job, lanes, &args.home)?
    } else {
        (job, None)
    };
    let planned = if args.stock {
        ordered::stocked(job, lanes, &devices)?
    } else {
        ordered::plan(job, Some(lanes), &devices, None)?
    };
    let Planned {
        job,
        plan,
        ordered,
        wish,
    } = planned;
    if let Some(queries) = job.queries() {
        let explained = explained::of_queries(&job, queries, &plan, args.net, &rates.rates)?;
        return if args.json {
            output::print_json(&explained)
        } else {
            output::print(&explained.text(&args.job.job, &rates, args.plan))
        };
    }
    if args.plan {
        let message = "--plan shows the operators of queries, and this job has none";
        return Err(Failure::new(Code::Usage, message).help("leave it out"));
    }
    let wish = stated.or(wish);
    let stages = veil_node::stages::of(&job, &plan)?;
    let parties = plan.parties().iter().map(|party| Peer::Party(*party));
    let windows = parties.map(|party| Ok((party, devices.window(&plan, party)?)));
    let chosen = Chosen {
        ordered,
        wish,
        windows: windows.collect::<Result<_, Failure>>()?,
    };
    let explanation = explain(&job, &plan, &stages, args.net, &rates.rates, chosen);
    if args.json {
        output::print_json(&explanation)
    } else {
        output::print(&explanation.text(&args.job.job, &rates))
    }
}

/// A job with chunks as its parties wish them, and whose wish it was; the job as it is where it says how long chunks are, or none has a wish.
fn asked(job: Job, lanes: u16, home: &HomeArgs) -> Result<(Job, Option<Wish>), Failure> {
    let plan = prepare::plan(&job, Some(lanes))?;
    let open = job.leaves_chunk_rows();
    let wish = wishes::of_members(&home.open()?, &plan).filter(|_| open);
    let Some(wish) = wish else {
        return Ok((job, None));
    };
    if let Some(advice) = wish.advice(&plan) {
        note(&advice);
    }
    Ok((ordered::chosen(job.in_chunks(wish.rows))?, Some(wish)))
}

/// What `veil explain` prints of a plan whose job is in `file`.
pub(crate) fn text(
    job: &Job,
    plan: &Passes,
    stages: &Stages,
    (file, rates): (&Path, &Found),
    ordered: Option<Ordered>,
) -> String {
    if let Some(queries) = job.queries() {
        let explained = explained::of_queries(job, queries, plan, None, &rates.rates);
        // What was planned once is planned again.
        return explained.map_or_else(|error| error.to_string(), |of| of.text(file, rates, false));
    }
    let chosen = Chosen {
        ordered,
        ..Chosen::default()
    };
    explain(job, plan, stages, None, &rates.rates, chosen).text(file, rates)
}

/// What of a plan was left open, and the devices or their garbler have chosen.
#[derive(Default)]
struct Chosen {
    ordered: Option<Ordered>,
    wish: Option<Wish>,
    /// Chunks in flight of parties whose devices are known.
    windows: BTreeMap<Peer, usize>,
}

fn explain(
    described: &Job,
    plan: &Arc<Plan>,
    stages: &Stages,
    net: Option<Profile>,
    rates: &Rates,
    chosen: Chosen,
) -> Explanation {
    let job = &plan.job;
    let (protocols, sent) = sent(plan);
    let run = Run::new(plan, &protocols, &sent);
    let cpu = run.cpu_seconds(rates);
    let participants = protocols.iter().zip(&sent).zip(cpu);
    let participants = participants.map(|((protocol, sent), cpu_seconds)| Participant {
        name: veil_engine::name_of(plan, protocol.me()).to_owned(),
        role: prepare::role(protocol.me()),
        messages: sent.all.messages,
        bytes: sent.all.bytes,
        framed: sent.framed,
        memory_bytes: memory(plan, stages, protocol.me(), &chosen.windows),
        least_memory_bytes: None,
        cpu_seconds,
    });
    let participants = participants.collect();
    let first = &protocols[0];
    Explanation {
        job: job.name.clone(),
        plan: plan.hash.to_string(),
        protocol: first.name(),
        guarantee: first.guarantee(),
        finished_by: finished_by(stages),
        security: plan.job.guarantee(),
        ring: plan.ring.name().to_string(),
        rows: described.rows(),
        meets: job.intersection().is_some(),
        plan_rows: job.rows(),
        cycles: plan.cycle_count(),
        products_per_row: plan.products(),
        summed_products_per_row: summed(plan),
        among_more: among_more(described, plan.lanes, rates),
        chunk_rows: plan.chunk_rows,
        chunk_rows_why: chunk_rows_why(plan, chosen.wish.as_ref()),
        chunks: plan.chunks(),
        lanes: plan.lanes,
        layers: plan.layers.len(),
        ordered: chosen.ordered,
        rounds: run.rounds,
        stock: from_stock(described, plan),
        transfers: TransfersOf::new(plan),
        participants,
        estimates: estimates(plan, &run, rates, net),
        rates: rates.origin(),
        inputs: supplied(described, plan),
        read: read(described),
        paired: described.paired(),
        opened: opened(plan),
        opened_numbers: Numbers::of(described),
        kept: kept(plan),
    }
}

/// Why chunks of a plan have so many rows.
fn chunk_rows_why(plan: &Plan, wish: Option<&Wish>) -> String {
    let Some(most) = plan.job.security.chunk_rows else {
        return "what fits a processor's cache".into();
    };
    let who = match wish {
        Some(wish) => format!(
            "{}, on which `{}` computes, is best at",
            wish.device, wish.party
        ),
        None => "the job says".to_owned(),
    };
    if plan.chunk_rows == most.count() {
        format!("as many as {who}")
    } else {
        format!("as many of the {most} that {who} as memory and proofs have room for")
    }
}

/// What the protocol of the weakest run without one of the parties promises.
fn finished_by(stages: &Stages) -> Option<Finishing> {
    let finish = |stage: &Stage| matches!(stage, Stage::Finish(_));
    let plans = stages.all().into_iter().filter(finish);
    let plans = plans.map(|stage| stages.plan(stage));
    let weakest = plans.min_by_key(|plan| plan.job.security.adversary)?;
    let protocol = veil_protocol::protocol(Arc::clone(weakest), Peer::Party(PartyId::TWO[0]));
    Some(Finishing {
        protocol: protocol.name(),
        guarantee: protocol.guarantee(),
    })
}

/// The working memory of a participant, in whichever run of the job takes most.
fn memory(plan: &Arc<Plan>, stages: &Stages, me: Peer, windows: &BTreeMap<Peer, usize>) -> u64 {
    let window = windows.get(&me).copied();
    let window = window.unwrap_or_else(|| Settings::default().window);
    let name = veil_engine::name_of(plan, me);
    let of = |stage| {
        let plan = stages.plan(stage);
        let mut all = veil_engine::participants(plan).into_iter();
        let me = all.find(|peer| {
            prepare::role(*peer) == prepare::role(me) && veil_engine::name_of(plan, *peer) == name
        })?;
        let protocol = veil_protocol::protocol(Arc::clone(plan), me);
        Some(Memory::new(plan, &*protocol, window, LinkKind::Tls).total())
    };
    stages
        .all()
        .into_iter()
        .filter_map(of)
        .max()
        .unwrap_or_default()
}

/// The protocols of all participants, and what each of them sends.
fn sent(plan: &Arc<Plan>) -> (Vec<Arc<dyn Protocol>>, Vec<Sent>) {
    let protocols = estimate::protocols(plan);
    let sent = protocols.iter().map(|p| estimate::sent(plan, &**p));
    let sent = sent.collect();
    (protocols, sent)
}

/// What three parties would send, and four, where two compute statistics.
fn among_more(job: &Job, lanes: u16, rates: &Rates) -> Vec<AmongMore> {
    let more = |parties: usize| {
        let job = job.among_more(parties)?;
        let plan = prepare::plan(&job, Some(lanes)).ok()?;
        let (protocols, sent) = sent(&plan);
        Some(AmongMore {
            parties,
            security: plan.job.guarantee(),
            bytes: sent.iter().map(|sent| sent.all.bytes).sum(),
            seconds: Run::new(&plan, &protocols, &sent).loopback(&plan, rates),
        })
    };
    [3, 4].into_iter().filter_map(more).collect()
}

/// What a run of a job takes from a stock, if its protocol has one, and what that leaves.
fn from_stock(job: &Job, plan: &Arc<Plan>) -> Option<FromStock> {
    let options = Options {
        lanes: plan.lanes,
        chunk_rows: None,
    };
    let taken = plan.stock == Stock::Used;
    let own = Passes::from(Arc::clone(plan));
    let (stocked, fresh) = if taken {
        (own, prepare::plan(job, Some(plan.lanes)).ok()?)
    } else {
        (stock::planned(job, options).ok()?, own)
    };
    let effort = |plan: &Passes| {
        let (protocols, sent) = sent(plan);
        let run = Run::new(plan, &protocols, &sent);
        Effort {
            bytes: sent.iter().map(|sent| sent.all.bytes).sum(),
            rounds: run.rounds.in_a_row(plan.chunks().into()),
        }
    };
    Some(FromStock {
        taken,
        cells: stock::cells_of(&stocked),
        kind: stock_kind(&plan.job).unwrap_or_default(),
        online: effort(&stocked),
        fresh: effort(&fresh),
    })
}

/// Products of every row that only their sum over the rows leaves the party: dot products.
fn summed(plan: &Plan) -> u64 {
    plan.layers.iter().map(|layer| u64::from(layer.sums)).sum()
}

fn supplied(described: &Job, plan: &Plan) -> Vec<Supplied> {
    let job = &plan.job;
    let mut all: Vec<Supplied> = Vec::new();
    for block in &job.blocks {
        for (port, holder) in job.circuit.inputs.iter().zip(&block.holders) {
            let keys = match described.kind() {
                Kind::Intersection(of) => of.keys_of(*holder),
                _ => None,
            };
            let rows = match (port.per, keys) {
                (Per::Job, _) => 1,
                (_, Some(keys)) => keys,
                (_, None) => block.rows,
            };
            let owner = holder_name(plan, block, *holder);
            let at = all
                .iter()
                .position(|other| other.owner == owner)
                .unwrap_or_else(|| {
                    all.push(Supplied {
                        owner,
                        inputs: Vec::new(),
                        values: 0,
                    });
                    all.len() - 1
                });
            let entry = &mut all[at];
            let known = entry.inputs.contains(&port.name);
            // What all rows share is supplied once, whatever the number of blocks.
            if port.per == Per::Row || !known {
                entry.values += rows;
            }
            if !known {
                entry.inputs.push(port.name.clone());
            }
        }
    }
    all
}

fn read(job: &Job) -> Vec<Read> {
    let Kind::Circuit(gates) = job.kind() else {
        return Vec::new();
    };
    let inputs = gates.inputs.iter();
    inputs
        .map(|input| Read {
            owner: job.roles().holder_name(input.holder),
            port: input.port.clone(),
            column: input.column().map(str::to_owned),
            what: input.read(),
        })
        .collect()
}

fn opened(plan: &Plan) -> Vec<Opened> {
    let job = &plan.job;
    let outputs = job
        .circuit
        .outputs
        .iter()
        .zip(&job.audiences)
        .zip(&job.opened);
    outputs
        .filter(|((_, audience), _)| !matches!(audience, Audience::Stored | Audience::Column))
        .map(|((port, audience), what)| Opened {
            what: what.clone(),
            to: audience_name(plan, *audience),
            values: if port.reduce == Reduce::Sum {
                1
            } else {
                job.rows()
            },
        })
        .collect()
}

fn kept(plan: &Plan) -> Vec<Kept> {
    let job = &plan.job;
    let ports = job.keeps().into_iter();
    ports
        .map(|kept| Kept {
            what: job.opened[kept.port].clone(),
            values: match kept.per {
                Per::Job => 1,
                Per::Row | Per::Cycle => job.rows(),
            },
        })
        .collect()
}

fn audience_name(plan: &Plan, audience: Audience) -> String {
    let name = |peer| veil_engine::name_of(plan, peer).to_owned();
    match audience {
        Audience::Parties => {
            let parties = plan.parties().iter().copied().map(Peer::Party);
            parties.map(name).collect::<Vec<_>>().join(", ")
        }
        Audience::Party(party) => name(Peer::Party(party)),
        Audience::Recipient(recipient) => name(Peer::Recipient(recipient)),
        Audience::Stored | Audience::Column => "nobody".into(),
    }
}

fn holder_name(plan: &Plan, block: &Block, holder: Holder) -> String {
    match (holder.peer(), &block.stored) {
        (Some(peer), _) => veil_engine::name_of(plan, peer).to_owned(),
        (None, Some(dataset)) => format!("the parties' stores (`{dataset}`)"),
        (None, None) => "the parties' stores".into(),
    }
}
