//! From a job file to a plan and to what each participant brings and takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use veil_job::{
    Adversary, ChunkRows, Delivery, Guarantee, Holder, JobSpec, Ot, ProtocolKind, Schedule,
    Statistical, Tables, Technique,
};
use veil_node::Home;
use veil_program::{AlignKey, Files, Job, JobError, Kind, Output, Sources, Words};
use veil_protocol::{Options, Plan};
use veil_runtime::Passes;
use veil_session::Peer;

pub(crate) use veilworks::explain::role;

use crate::failure::Failure;

/// The job of a command line.
#[derive(clap::Args, Debug, Clone)]
pub struct JobArgs {
    /// The job file.
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// Take a data file from elsewhere; WHAT is the block, or the input port.
    #[arg(long, value_name = "OWNER:WHAT=FILE", value_parser = replacement)]
    pub data: Vec<Replacement>,
    /// Key under which the owners of a block compare the order of its rows; `veil data key new` makes one.
    #[arg(long, value_name = "FILE")]
    pub align_key: Option<PathBuf>,
    /// Lanes: parts of the rows that run in parallel [default: as many as cores; 1 where others take part, and for explain]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub lanes: Option<u16>,
    /// Where the job leaves it open.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// What a command line says of a job's security where the job file leaves it open.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(
    next_help_heading = "Security, where the job leaves it open (all participants must give the same)"
)]
pub struct SecurityArgs {
    /// The protocol: rep3, rep4 or yao [default: by the number of parties]
    #[arg(long, value_name = "NAME")]
    pub protocol: Option<ProtocolKind>,
    /// Against one party that is semi-honest or malicious [default: rep3 and yao semi-honest, rep4 malicious]
    #[arg(long, value_name = "WHICH")]
    pub adversary: Option<Adversary>,
    /// How yao holds against a malicious party: cut-and-choose
    #[arg(long, value_name = "WHICH")]
    pub technique: Option<Technique>,
    /// What a cheat or a lost party makes of the run: abort, or guaranteed output [default: abort]
    #[arg(long, alias = "output", value_name = "WHICH")]
    pub delivery: Option<Delivery>,
    /// How yao garbles gates: half-gates, or three-halves for slow links [default: half-gates]
    #[arg(long, value_name = "WHICH")]
    pub tables: Option<Tables>,
    /// Order of yao's gates and tables: layers, or list(N) as hardware of 1, 2, 4, 8 or 16 rows starts them [default: what the garbler's device is best at, else layers]
    #[arg(long, value_name = "WHICH")]
    pub schedule: Option<Schedule>,
    /// A cheat of cut-and-choose gets away with probability 2^-S: 9, 19, 29, 39, 40, 49, 59, 64, 69, 79, 80, 89, 99, 109 or 119 [default: 40]
    #[arg(long, value_name = "S")]
    pub statistical: Option<Statistical>,
    /// Transfers of authenticated garbling: extension, or silent for slow links, which rests on one more assumption [default: extension]
    #[arg(long, value_name = "WHICH")]
    pub ot: Option<Ot>,
    /// Rows that are computed together, at most: a power of two from 64 to 1048576 [default: what the devices of the parties are best at, else what
    /// fits a processor's cache]
    #[arg(long, value_name = "N")]
    pub chunk_rows: Option<ChunkRows>,
}

impl SecurityArgs {
    /// The words that were given.
    pub(crate) fn words(&self) -> Words {
        Words {
            protocol: self.protocol,
            adversary: self.adversary,
            technique: self.technique,
            delivery: self.delivery,
            tables: self.tables,
            schedule: self.schedule,
            statistical: self.statistical,
            ot: self.ot,
            chunk_rows: self.chunk_rows,
        }
    }

    /// Has a job that was read from `file` take them.
    pub(crate) fn choose(&self, job: &mut Job, file: &Path) -> Result<(), Failure> {
        job.choose(self.words()).map_err(|problem| JobError {
            file: file.to_owned(),
            place: None,
            problem: Box::new(problem),
        })?;
        Ok(())
    }
}

/// A data file that is elsewhere than the job says.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// Whose.
    pub owner: String,
    /// The block, or the input port.
    pub what: String,
    /// Where it is.
    pub file: PathBuf,
}

pub(crate) fn replacement(text: &str) -> Result<Replacement, String> {
    let parts = text
        .split_once(':')
        .and_then(|(owner, rest)| Some((owner, rest.split_once('=')?)));
    let (owner, (what, file)) =
        parts.ok_or("write OWNER:WHAT=FILE, such as `ann:north=pay.csv`")?;
    Ok(Replacement {
        owner: owner.into(),
        what: what.into(),
        file: file.into(),
    })
}

impl JobArgs {
    /// Reads and checks the job.
    pub(crate) fn load(&self) -> Result<Job, Failure> {
        let files: Files = self
            .data
            .iter()
            .map(|r| ((r.owner.clone(), r.what.clone()), r.file.clone()))
            .collect();
        let mut job = Job::load(&self.job, files)?;
        self.security.choose(&mut job, &self.job)?;
        if let Some(file) = &self.align_key {
            job.set_align_key(AlignKey::read(file)?);
        }
        Ok(job)
    }
}

/// Takes for `job` what the approval of its plan says of data files and of the key for the order of rows, where the command line says
/// nothing.
pub(crate) fn as_approved(
    job: &mut Job,
    plan: &Plan,
    args: &JobArgs,
    home: &Home,
) -> Result<(), Failure> {
    let filed = home.filed(plan.hash)?;
    let Some(filed) = filed.filter(|filed| filed.approved.is_some()) else {
        return Ok(());
    };
    job.add_files(filed.files());
    if args.align_key.is_none()
        && let Some(key) = filed.align_key()?
    {
        job.set_align_key(key);
    }
    Ok(())
}

/// Plans `job` for so many lanes, or for as many as there are cores and chunks.
pub(crate) fn plan(job: &Job, lanes: Option<u16>) -> Result<Passes, Failure> {
    let Some(queries) = job.queries() else {
        return plan_of(job.shared(), lanes);
    };
    let make = |lanes| {
        let options = Options {
            lanes,
            chunk_rows: None,
        };
        let passes = &queries.physical().passes;
        Passes::new(passes, job.shared(), queries.names_of_passes(), options)
    };
    if let Some(lanes) = lanes {
        return Ok(make(lanes)?);
    }
    // A lane without a chunk only costs; a move is one chunk.
    let passes = make(1)?;
    let chunks = passes.program().passes().iter();
    let chunks = chunks.filter_map(|pass| Some(pass.rows()?.chunks())).max();
    let useful = u16::try_from(chunks.unwrap_or(1)).unwrap_or(u16::MAX);
    match useful.min(cores()) {
        0 | 1 => Ok(passes),
        lanes => Ok(make(lanes)?),
    }
}

fn cores() -> u16 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores.min(1024) as u16
}

/// Plans a stage of a job, or all of it.
pub(crate) fn plan_of(
    spec: impl Into<Arc<JobSpec>>,
    lanes: Option<u16>,
) -> Result<Passes, Failure> {
    let options = Options {
        lanes: lanes.unwrap_or_else(cores),
        chunk_rows: None,
    };
    let plan = Plan::new(spec.into(), options)?;
    if lanes.is_some() {
        return Ok(plan.into());
    }
    // A lane without a chunk only costs.
    let useful = u16::try_from(plan.chunks())
        .unwrap_or(u16::MAX)
        .clamp(1, options.lanes);
    Ok(plan.on_lanes(useful).into())
}

/// The holder behind a peer, if it supplies values.
pub(crate) fn holder(job: &Job, peer: Peer) -> Option<Holder> {
    job.holders()
        .into_iter()
        .find(|holder| holder.peer() == Some(peer))
}

/// Whether `peer` supplies values in this plan.
pub(crate) fn supplies(plan: &Plan, peer: Peer) -> bool {
    let holders = plan.job.blocks.iter().flat_map(|block| &block.holders);
    holders
        .into_iter()
        .any(|holder| holder.peer() == Some(peer))
}

/// Whether something is opened to `peer`.
pub(crate) fn receives(plan: &Plan, peer: Peer) -> bool {
    plan.job
        .audiences
        .iter()
        .any(|audience| audience.includes(peer))
}

/// Reads and checks what `peer` brings, if anything.
pub(crate) fn sources(job: &Job, peer: Peer) -> Result<Sources, Failure> {
    match holder(job, peer) {
        Some(holder) => Ok(job.sources(holder)?),
        None => Ok(Sources::new()),
    }
}

/// Prepares the files of what `peer` gets, which say what the run is worth: what the job says, unless parties finish without one of them.
pub(crate) fn sink(
    job: &Job,
    peer: Peer,
    folder: &Path,
    finished: Option<Guarantee>,
) -> Result<Arc<Output>, Failure> {
    let sink = job.sink(peer, folder)?;
    Ok(Arc::new(match finished {
        Some(security) => sink.guaranteed(security),
        None => sink,
    }))
}

/// The files of what `peer` gets, within its folder.
pub(crate) fn results(job: &Job, peer: Peer) -> Vec<PathBuf> {
    match job.kind() {
        Kind::Circuit(gates) => {
            let mine = gates
                .outputs
                .iter()
                .filter(|output| output.to.includes(peer));
            mine.map(|output| output.file.clone()).collect()
        }
        Kind::Reshare(_) => Vec::new(),
        Kind::Intersection(of) => of.files(peer),
        Kind::Query(queries) => queries.files(&job.roles().peer_name(peer)),
        _ => ["result.txt", "result.csv", "result.json", "result.svg"]
            .map(PathBuf::from)
            .to_vec(),
    }
}
