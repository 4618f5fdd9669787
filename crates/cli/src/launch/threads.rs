//! All participants in this process, over links in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use veil_engine::Settings;
use veil_engine::local::{self, Conditions};
use veil_link::{Link, LinkKind, shape};
use veil_node::{Receipt, Time};
use veil_program::{Job, Sources};
use veil_runtime::{Ends, Passes};

use crate::devices::{Devices, Network};
use crate::failure::Failure;
use crate::launch::inspect::{InspectArgs, Inspection};
use crate::launch::stores::Shares;
use crate::launch::{Answer, Outcome, Took};
use crate::output::Folders;
use crate::prepare;
use crate::progress::{Meter, Snapshot};
use crate::room::RoomArgs;
use crate::signals::Stop;
use crate::views::{Views, Watched};

/// Where and how a job runs.
#[derive(Clone)]
pub(crate) struct Site<'a> {
    /// Without any progress for this long, the run is given up.
    pub(crate) timeout: Duration,
    /// What carries the bytes between processes.
    pub(crate) link: LinkKind,
    /// Whether parties in one process are nodes.
    pub(crate) nodes: bool,
    /// Where the sockets of these are, if they are boards.
    pub(crate) boards: Option<&'a Path>,
    /// Whether these compute circuits without their hosts.
    pub(crate) headless: bool,
    /// The network to imitate, if any.
    pub(crate) net: Option<shape::Profile>,
    /// Where results go; a folder per recipient is made there.
    pub(crate) out: &'a Path,
    /// Whether the results are there for longer than the command.
    pub(crate) kept: bool,
    /// Collects what participants see.
    pub(crate) views: Option<Views>,
    /// Ends the run.
    pub(crate) stop: &'a Stop,
    /// What parties compute on.
    pub(crate) devices: &'a Devices,
    /// What memory they take.
    pub(crate) room: &'a RoomArgs,
    /// What is looked at meanwhile.
    pub(crate) inspect: &'a InspectArgs,
}

impl Site<'_> {
    /// What shows how far the run is.
    pub(crate) fn meter(&self, plan: &Passes) -> Meter {
        if self.inspect.watch {
            Meter::board(plan)
        } else {
            Meter::new(plan)
        }
    }
}

/// Runs the job; `shares` are what its parties load and keep.
pub(crate) fn run(
    job: &Job,
    plan: &Passes,
    site: &Site<'_>,
    shares: &Shares,
) -> Result<Outcome, Failure> {
    let started = Time::now();
    let peers = veil_engine::participants(plan);
    let rooms = peers.iter();
    let rooms = rooms.map(|peer| site.room.of(plan, *peer, LinkKind::Tls));
    let rooms = rooms.collect::<Result<Vec<_>, _>>()?;
    // All data are read and checked before any file for results is made.
    let sources = peers
        .iter()
        .map(|&peer| {
            if prepare::supplies(plan, peer) {
                prepare::sources(job, peer)
            } else {
                Ok(Sources::new())
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let first = |sources: &Sources| sources.first().map(|(_, source)| Arc::clone(source));
    let pairs = peers.iter().copied().zip(sources.iter().map(first));
    let inspection = Inspection::new(site.inspect, plan, pairs)?;
    // A caller that inspects messages, or what devices are told, sees none of those that nodes move by themselves.
    let looks = site.views.is_some() || inspection.looks();
    let network = (site.nodes)
        .then(|| {
            site.devices
                .network(plan, looks, site.headless, site.boards)
        })
        .transpose()?;
    let network = network.as_deref();
    // One factory per participant: it is called once for each lane.
    let devices: Vec<_> = (peers.iter())
        .map(|&peer| {
            let made = site.devices.factory(plan, peer, network);
            inspection.device(plan, peer, made)
        })
        .collect();
    let mut folders = Folders::new();
    let mut sinks = Vec::new();
    for &peer in &peers {
        sinks.push(if prepare::receives(plan, peer) {
            let folder = folders.of(site.out, veil_engine::name_of(plan, peer), true)?;
            Some((prepare::sink(job, peer, &folder, None)?, folder))
        } else {
            None
        });
    }
    let index = |peer| {
        peers
            .iter()
            .position(|other| *other == peer)
            .expect("a participant of the plan")
    };
    let shadow = inspection.shadow.as_ref();
    let data = |peer| {
        let sink = sinks[index(peer)].as_ref();
        let mut ends = Ends {
            sources: sources[index(peer)].clone(),
            sinks: sink.map(|(sink, _)| sink.sinks()).unwrap_or_default(),
            ..Ends::default()
        };
        if let Some(shadow) = shadow {
            for (_, sink) in &mut ends.sinks {
                *sink = shadow.sink(Arc::clone(sink));
            }
        }
        let mut data = plan.data(shares.of(peer, ends)).to_vec();
        if let (Some(stock), Some(data)) = (shares.stock.get(&peer), data.first_mut()) {
            data.stock = Some(Arc::clone(stock));
        }
        data
    };
    let brought: Vec<_> = peers.iter().map(|peer| data(*peer)).collect();
    let data = |peer, pass: usize| brought[index(peer)][pass].clone();
    let settings = |peer| Settings {
        timeout: site.timeout,
        trace: inspection.recorder(),
        device: Arc::clone(&devices[index(peer)]),
        room: rooms[index(peer)].clone(),
        ..Settings::default()
    };
    let wrap = |me, _: u16, link| -> Box<dyn Link> {
        let inner: Box<dyn Link> = Box::new(link);
        let inner = match network {
            Some(network) => network.link(me, inner),
            None => inner,
        };
        let inner: Box<dyn Link> = match site.net {
            Some(profile) => Box::new(shape::Shaped::new(inner, profile)),
            None => inner,
        };
        let watched = Box::new(Watched {
            inner,
            me,
            views: site.views.clone(),
        });
        match shadow {
            Some(shadow) => shadow.link(me, watched),
            None => watched,
        }
    };
    let conditions = Conditions {
        settings: &settings,
        wrap: &wrap,
        stop: Some(site.stop.flag()),
    };
    let meter = site.meter(plan);
    let progress = |progress| meter.show(&Snapshot::from(&progress));
    let reports = local::run_program(plan.program(), data, &progress, &conditions);
    drop(meter);
    if site.stop.asked() && reports.is_err() {
        return Err(Failure::stopped());
    }
    inspection.finish(plan)?;
    let reports = match reports {
        Ok(reports) => reports,
        Err(failure) => return Err(Failure::local(plan, &failure)),
    };
    let answers = peers.iter().zip(&sinks).filter_map(|(&peer, sink)| {
        let (sink, folder) = sink.as_ref()?;
        Answer::new(plan, peer, site.kept.then(|| folder.clone()), sink)
    });
    let answers: Vec<Answer> = answers.collect();
    // Wrong results are not published.
    inspection.results(job, &answers)?;
    if site.kept {
        for (&peer, sink) in peers.iter().zip(&sinks) {
            let Some((_, folder)) = sink else { continue };
            let report = reports.iter().find(|(other, _)| **other == peer);
            let trace = report.map(|(_, report)| report.trace.to_string());
            let protocol = plan.protocol(peer);
            Receipt::new(plan, &*protocol, peer, &|_| None, true, started).write(
                folder,
                &prepare::results(job, peer),
                trace,
            )?;
        }
    }
    folders.keep();
    let participants = reports
        .iter()
        .map(|(peer, report)| Took::new(plan, *peer, report, site.devices));
    Ok(Outcome {
        answers,
        participants: participants.collect(),
        ordered: None,
        network: network.map(Network::crossed),
    })
}
