//! Looking into a run of this machine: its trace, a record of one participant's device, a cleartext twin.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use veil_device::record::{Recording, Tape};
use veil_device::shadow::{Shadow as DeviceShadow, Shadowed};
use veil_device::{Device, Reference};
use veil_engine::shadow::Shadow;
use veil_engine::{DeviceFactory, Recorder};
use veil_job::Source;
use veil_program::Job;
use veil_protocol::Plan;
use veil_runtime::Passes;
use veil_session::{PartyId, Peer};

use crate::commands::query;
use crate::failure::{Code, Failure};
use crate::launch::Answer;
use crate::output;
use crate::trace::TraceFile;

/// What is looked at while a job runs on this machine.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct InspectArgs {
    /// Write down every round: times, messages and waits, never a value. `veil-lab trace` draws it.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Show every participant live: phase, rate, bytes, who waits for whom.
    #[arg(long)]
    pub watch: bool,
    /// Write all that one participant's device is told and answers into a new folder, for `veil-lab device replay`. It holds keys,
    /// shares and values.
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Whose device is recorded [default: the first party]
    #[arg(long, value_name = "NAME", requires = "record")]
    pub party: Option<String>,
    /// Compare every layer with the clear computation on the same values, or, of a job of many passes, every command of all devices with the device
    /// that defines it, and results with the clear computation; name the first that differs.
    #[arg(long)]
    pub shadow: bool,
    /// The data are generated, or all my own. --record and --shadow lay them open, and do nothing without this.
    #[arg(long)]
    pub data_are_mine: bool,
}

impl InspectArgs {
    /// Refuses what must not be, or cannot be, before anything else is done.
    pub(crate) fn check(&self, processes: bool) -> Result<(), Failure> {
        let what = match (self.shadow, &self.record) {
            (true, _) => "--shadow",
            (false, Some(_)) => "--record",
            (false, None) => return Ok(()),
        };
        if processes {
            return Err(
                Failure::new(
                    Code::Usage,
                    format!("{what} looks at participants of this process, and --processes puts them into others"),
                )
                .help("leave --processes out: the computation is the same"),
            );
        }
        if !self.data_are_mine {
            return Err(Failure::new(
                Code::Usage,
                format!("{what} lays open the values of all owners, and what the parties compute from them"),
            )
            .help("if the data are generated or all your own, say so: add --data-are-mine"));
        }
        Ok(())
    }
}

/// What looks at a run.
pub(crate) struct Inspection {
    trace: Option<Arc<TraceFile>>,
    record: Option<Record>,
    pub(crate) shadow: Option<Arc<Shadow>>,
    /// The shadow of the devices of a job of many passes.
    devices: Option<Arc<DeviceShadow>>,
}

/// A participant whose devices are recorded, a file for each: of one circuit a lane has one, of many passes one for each kind of pass.
struct Record {
    of: Peer,
    folder: PathBuf,
    many: bool,
    tapes: Arc<Mutex<Vec<Tape>>>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl Inspection {
    /// Whether it looks at messages, or at what devices are told.
    pub(crate) fn looks(&self) -> bool {
        self.record.is_some() || self.shadow.is_some() || self.devices.is_some()
    }

    /// Prepares what `args` ask for.
    pub(crate) fn new(
        args: &InspectArgs,
        plan: &Passes,
        sources: impl Iterator<Item = (Peer, Option<Arc<dyn Source>>)>,
    ) -> Result<Self, Failure> {
        let trace = args
            .trace
            .as_ref()
            .map(|path| TraceFile::create(path, plan));
        // Passes have names, a job of one circuit has none.
        let many = plan.name_of(0).is_some();
        let record = args.record.as_ref().map(|folder| {
            let of = whose(plan, args.party.as_deref())?;
            Record::new(folder, of, many)
        });
        let devices = (args.shadow && many).then(DeviceShadow::new);
        let shadow = (args.shadow && !many).then(|| {
            let protocol = veil_protocol::protocol(Arc::clone(plan), Peer::Party(PartyId::TWO[0]));
            let sources: BTreeMap<_, _> = sources
                .filter_map(|(peer, source)| Some((peer, source?)))
                .collect();
            Shadow::new(plan, protocol, sources)
                .map_err(|error| Failure::new(Code::Input, error.to_string()))
        });
        Ok(Inspection {
            trace: trace.transpose()?.map(Arc::new),
            record: record.transpose()?,
            shadow: shadow.transpose()?,
            devices,
        })
    }

    /// What writes down the rounds.
    pub(crate) fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        let trace = self.trace.clone();
        trace.map(|trace| trace as Arc<dyn Recorder>)
    }

    /// The devices of `peer`, which are those that `make` makes.
    pub(crate) fn device(&self, plan: &Plan, peer: Peer, make: DeviceFactory) -> DeviceFactory {
        let make: DeviceFactory = match &self.devices {
            Some(shadow) => {
                let shadow = Arc::clone(shadow);
                let of = veil_engine::name_of(plan, peer).to_owned();
                Arc::new(move || {
                    let other = Box::new(Reference::default());
                    let shadowed = Shadowed::new(make()?, other, &shadow, of.clone());
                    Ok(Box::new(shadowed) as Box<dyn Device>)
                })
            }
            None => make,
        };
        match &self.record {
            Some(record) if record.of == peer => record.devices(make),
            _ => make,
        }
    }

    /// The run is over, well or not.
    pub(crate) fn finish(&self, plan: &Passes) -> Result<(), Failure> {
        if let Some(trace) = &self.trace {
            trace.finish();
        }
        if let Some(record) = &self.record {
            record.finish(plan)?;
        }
        if let Some(shadow) = &self.shadow {
            match shadow.verdict() {
                Ok(compared) => eprintln!(
                    "shadow: {}, {} compared, {} opened, all equal",
                    output::count(compared.layers as u64, "layer"),
                    output::count(compared.products, "product"),
                    output::count(compared.opened, "value")
                ),
                Err(divergence) => {
                    return Err(Failure::new(Code::Check, format!("shadow: {divergence}")).help(
                        "a device or the protocol computes wrongly: `veil-lab device check` compares the devices, and `--record` keeps what one was told",
                    ));
                }
            }
        }
        if let Some(shadow) = &self.devices {
            match shadow.verdict() {
                Ok(compared) => eprintln!(
                    "shadow: {} in {} passes, {} compared, {}, all equal",
                    output::count(compared.commands, "command"),
                    plan.count(),
                    output::count(compared.devices, "device"),
                    output::bytes(compared.bytes)
                ),
                Err(difference) => {
                    let pass = plan.name_of(difference.frame.epoch.into());
                    let part = pass.filter(|name| !name.is_empty());
                    let part = part.map_or_else(String::new, |name| format!(" ({name})"));
                    let message = format!("shadow: {difference}{part}");
                    return Err(Failure::new(Code::Check, message).help(
                        "the device computes wrongly: `veil-lab device check` compares it on random programs, and `--record` keeps what it was told",
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Inspection {
    /// In a shadow, what recipients of queries get is what the queries mean, evaluated in the clear; relations of datasets are nowhere in the clear.
    pub(crate) fn results(&self, job: &Job, answers: &[Answer]) -> Result<(), Failure> {
        if self.devices.is_none() || job.is_statistics() || !job.spec().datasets.is_empty() {
            return Ok(());
        }
        if job.queries().is_none() || query::same_in_the_clear(job, answers)? {
            return Ok(());
        }
        let message = "shadow: the result is not what the queries in the clear give over the tables of all owners, and all devices do what defines them";
        Err(Failure::new(Code::Check, message)
            .help("please report this as a bug, with the job and `veil doctor`"))
    }
}

/// The participant of this name: as a party, if it is one.
fn whose(plan: &Plan, name: Option<&str>) -> Result<Peer, Failure> {
    let peers = veil_engine::participants(plan);
    let Some(name) = name else {
        return Ok(peers[0]);
    };
    peers
        .iter()
        .copied()
        .find(|peer| veil_engine::name_of(plan, *peer) == name)
        .ok_or_else(|| {
            let mut names: Vec<&str> = peers
                .iter()
                .map(|p| veil_engine::name_of(plan, *p))
                .collect();
            names.dedup();
            Failure::new(
                Code::Usage,
                format!("no participant is called `{name}` in this job"),
            )
            .help(format!("--party takes one of: {}", names.join(", ")))
        })
}

impl Record {
    fn new(folder: &Path, of: Peer, many: bool) -> Result<Self, Failure> {
        let made = DirBuilder::new().mode(0o700).create(folder);
        made.map_err(|error| {
            Failure::new(
                Code::Input,
                format!("cannot make the folder {}: {error}", folder.display()),
            )
            .help("a record goes into a folder of its own that is not there yet")
        })?;
        eprintln!(
            "recording into {}: it holds keys, shares and values; keep it to yourself and delete it after use",
            folder.display()
        );
        Ok(Record {
            of,
            folder: folder.to_owned(),
            many,
            tapes: Arc::default(),
            failed: Arc::default(),
        })
    }

    fn devices(&self, make: DeviceFactory) -> DeviceFactory {
        let (folder, next) = (self.folder.clone(), AtomicU32::new(0));
        let (tapes, failed) = (Arc::clone(&self.tapes), Arc::clone(&self.failed));
        let many = self.many;
        let room = if many { 1 << 16 } else { 1 << 20 };
        Arc::new(move || {
            // Lanes are made in order; each makes the devices of later passes when it comes to them.
            let number = next.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(if many {
                format!("device-{number:04}.record")
            } else {
                format!("lane-{number}.record")
            });
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path);
            let inner = make()?;
            match file {
                Ok(file) => {
                    let tape = Tape::to(Box::new(BufWriter::with_capacity(room, file)));
                    let mut tapes = tapes.lock().unwrap_or_else(PoisonError::into_inner);
                    tapes.push(tape.clone());
                    Ok(Box::new(Recording::new(inner, tape)) as Box<dyn Device>)
                }
                Err(error) => {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(error);
                    Ok(inner)
                }
            }
        })
    }

    fn finish(&self, plan: &Plan) -> Result<(), Failure> {
        let tapes = self.tapes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut error = failed.take();
        let (mut steps, mut bytes) = (0, 0);
        for tape in tapes.iter() {
            error = error.or(tape.finish().err());
            let summary = tape.summary();
            steps += summary.steps;
            bytes += summary.bytes;
        }
        if let Some(error) = error {
            let message = format!(
                "the record in {} is not complete: {error}",
                self.folder.display()
            );
            return Err(Failure::new(Code::Other, message)
                .help("make room and run again; the result is not affected"));
        }
        eprintln!(
            "recorded {}: {} of its device, {} in {}; veil-lab device replay {}",
            veil_engine::name_of(plan, self.of),
            output::count(steps, "call"),
            output::bytes(bytes),
            output::count(tapes.len() as u64, "file"),
            self.folder.display()
        );
        Ok(())
    }
}
