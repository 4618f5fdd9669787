//! All participants in this process, over links in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use veil_engine::{Recorder, Settings, local};
use veil_link::{Link, shape};
use veil_program::Job;
use veil_protocol::Plan;

use crate::failure::Failure;
use crate::launch::{Answer, Outcome, Took};
use crate::output::Folders;
use crate::prepare;
use crate::progress::Meter;
use crate::signals::Stop;
use crate::trace::write::TraceFile;
use crate::views::{Views, Watched};

/// Where and how a job runs.
pub(crate) struct Site<'a> {
    /// Without any progress for this long, the run is given up.
    pub(crate) timeout: Duration,
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
    /// Where the trace goes, if one is wanted.
    pub(crate) trace: Option<&'a Path>,
}

/// Runs the job.
pub(crate) fn run(job: &Job, plan: &Arc<Plan>, site: &Site<'_>) -> Result<Outcome, Failure> {
    let trace = site.trace.map(|path| TraceFile::create(path, plan));
    let trace = trace.transpose()?.map(Arc::new);
    let settings = Settings {
        timeout: site.timeout,
        trace: trace.clone().map(|trace| trace as Arc<dyn Recorder>),
        ..Settings::default()
    };
    let peers = veil_engine::participants(plan);
    // All data are read and checked before any file for results is made.
    let sources = peers
        .iter()
        .map(|&peer| prepare::source(job, peer))
        .collect::<Result<Vec<_>, _>>()?;
    let mut folders = Folders::new();
    let mut sinks = Vec::new();
    for &peer in &peers {
        sinks.push(if prepare::receives(plan, peer) {
            let folder = folders.of(site.out, veil_engine::name_of(plan, peer), true)?;
            Some((prepare::sink(job, peer, &folder)?, folder))
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
    let data = |peer| {
        let sink = sinks[index(peer)].as_ref().map(|(sink, _)| sink);
        prepare::data(sources[index(peer)].clone(), sink)
    };
    let meter = Meter::new();
    let reports = local::run_on(
        plan,
        &settings,
        data,
        &|progress| meter.show(&progress),
        |me, _, link| {
            let inner: Box<dyn Link> = match site.net {
                Some(profile) => Box::new(shape::Shaped::new(link, profile)),
                None => Box::new(link),
            };
            Box::new(Watched {
                inner,
                me,
                stop: site.stop.clone(),
                views: site.views.clone(),
            })
        },
    );
    drop(meter);
    if let Some(trace) = trace {
        trace.finish();
    }
    let reports = match reports {
        Ok(reports) => reports,
        Err(_) if site.stop.asked() => return Err(Failure::stopped()),
        Err(failure) => return Err(Failure::local(plan, &failure)),
    };
    folders.keep();
    let answers = peers.iter().zip(sinks).filter_map(|(&peer, sink)| {
        let (sink, folder) = sink?;
        Some(Answer::new(plan, peer, site.kept.then_some(folder), &sink))
    });
    let participants = reports
        .iter()
        .map(|(peer, report)| Took::new(plan, *peer, report));
    Ok(Outcome {
        answers: answers.collect(),
        participants: participants.collect(),
    })
}
