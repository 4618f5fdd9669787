//! One run of a job: where this party is, whom it meets, what it brings and takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use veil_engine::{Progress, Report};
use veil_job::DataError;
use veil_program::Output;
use veil_protocol::Plan;
use veil_session::{PartyId, Peer, PlanHash};

use super::ServiceState;
use super::attendance::{self, Watch};
use super::ended::Failed;
use super::handler::Consent;
use super::meet::meet;
use super::said::held;
use super::slots::Claim;
use super::taking::taking;
use crate::approvals::Binding;
use crate::jobs::{Entry, State, Status, Why};
use crate::log::Event;
use crate::planner::Prepared;
use crate::receipt::{self, Receipt};
use crate::stages::StageStore;
use crate::time::Time;
use veil_runtime::{Ends, Stage};

/// Where a job goes on.
pub(super) struct Position<'a> {
    /// As whom this party takes part in the stage.
    pub(super) me: Peer,
    /// Which party of the job it is.
    pub(super) party: PartyId,
    /// At which view it is, if it has kept the inputs of a job whose output is guaranteed.
    pub(super) view: Option<u32>,
    pub(super) stage_store: StageStore<'a>,
    pub(super) stage: Stage,
}

impl Position<'_> {
    /// Whether the others run without this party.
    pub(super) fn is_left_out(&self) -> bool {
        self.stage == Stage::Finish(self.party)
    }
}

/// Finds out at which stage of the job this party is.
pub(super) fn begin<'a>(
    shared: &ServiceState,
    prepared: &'a Prepared,
) -> Result<Position<'a>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let name = &shared.home.settings().name;
    let as_party = |plan: &Plan| {
        let roles = veil_runtime::roles(plan, name).map_err(|e| text(&e))?;
        let party = roles.into_iter().find_map(Peer::party);
        party.ok_or_else(|| "this participant is no party of the job".to_owned())
    };
    let party = as_party(&prepared.plan)?;
    let stage_store = StageStore::of_home(&shared.home, &prepared.job, &prepared.stages);
    let stage_store = stage_store.map_err(|e| text(&e))?;
    let (stage, unusable) = stage_store.stage().map_err(|e| text(&e))?;
    if let Some(error) = unusable {
        tracing::warn!(%error, "the inputs that are kept cannot be used: their owners have to send them again");
    }
    let job = prepared.plan.hash;
    if prepared.stages.are_guaranteed() {
        shared.attendances.open(job, stage_store.kept(stage));
    }
    // What is known may not be written down yet.
    let (view, stage) = match attendance::now(shared, prepared) {
        Some((view, now)) => (Some(view), now),
        None => (None, stage),
    };
    let me = if stage == Stage::Finish(party) {
        party
    } else {
        as_party(prepared.stages.plan(stage))?
    };
    Ok(Position {
        me: Peer::Party(me),
        party,
        view,
        stage_store,
        stage,
    })
}

/// Removes the inputs that are kept.
pub(super) fn forget(stage_store: &StageStore<'_>) {
    if let Err(error) = stage_store.forget() {
        tracing::error!(%error, "the kept inputs cannot be removed: `veil shares list` shows them");
    }
}

/// Writes down which run keeps the inputs.
fn note(shared: &ServiceState, job: PlanHash, at: &Position<'_>) {
    let run = shared.jobs.with(job, |entry| entry.status.trace.clone());
    if let Some(run) = run.flatten()
        && let Err(error) = at.stage_store.note(run)
    {
        tracing::error!(%error, "which inputs are kept cannot be written down: they will be asked for again");
    }
}

/// Waits while the others run without this party: why that ended.
pub(super) fn rest(
    shared: &ServiceState,
    prepared: &Prepared,
    at: &Position<'_>,
    stop: &AtomicBool,
) -> Failed {
    let why = prepared.stages.awaits(at.stage);
    shared
        .jobs
        .set(prepared.plan.hash, State::Meeting, why.map(Why::all));
    tracing::info!("the others run without this party");
    let watch = Watch::new(shared, prepared, at);
    watch
        .rest(shared.wait(), stop)
        .map_or(Failed::Rested, Failed::Seen)
}

/// Meets all participants and runs; whether it had begun to run when it failed.
pub(super) fn attempt(
    shared: &ServiceState,
    prepared: &Prepared,
    at: &Position<'_>,
    (asked_by, before): (Option<&str>, Option<String>),
    stop: &AtomicBool,
    span: &tracing::Span,
) -> Result<Report, (bool, Failed)> {
    let (job, stages) = (prepared.plan.hash, &prepared.stages);
    let (me, stage) = (at.me, at.stage);
    let plan = stages.plan(stage);
    // A participant that is no member is known before any table is read.
    let members = shared.home.members();
    let known = stages.neighbours(stage, me, &*members);
    known.map_err(|error| (false, Failed::Part(error)))?;
    let folder = shared.home.job_folder(job).join("results");
    let Ready {
        ends: own,
        sink,
        read,
    } = ends(shared, prepared, at, &folder).map_err(|failed| (false, failed))?;
    if let Some(awaits) = stages.awaits(stage) {
        tracing::info!("waiting for the participants; {awaits}");
        let why = match before {
            Some(before) => format!("{awaits}; the attempt before ended: {before}"),
            None => awaits,
        };
        shared.jobs.set(job, State::Meeting, Some(Why::all(why)));
    } else {
        tracing::info!("waiting for the participants");
    }
    if let (Some(member), false) = (asked_by, own.keeps.is_empty()) {
        // What this run keeps has its place on the disk already.
        let may = shared.may_store(member);
        may.map_err(|why| (false, Failed::Quota(why)))?;
    }
    let (here, connections) = meet(shared, prepared, at, stop).map_err(|failed| (false, failed))?;
    let mut engine = shared.engine();
    let claim = shared.claim(job, &prepared.planned, asked_by);
    let waits = |why: &str| shared.jobs.waits(job, why);
    let patience = patience(job, engine.timeout);
    let place = shared.slots.slot(&claim, patience, stop, &waits);
    let _place = place.map_err(|why| (false, Failed::Full(why)))?;
    let charge = Charge::new(shared, &claim).map_err(|why| (false, Failed::Quota(why)))?;
    let stock = taking(shared, &prepared.planned, asked_by, (plan, me, &here));
    let stock = stock.map_err(|failed| (false, failed))?;
    let how = match stage {
        Stage::Input => Consent::StartInput,
        _ if at.view.is_some_and(|view| view > 0) => Consent::StartAgain(stage),
        Stage::Whole | Stage::Compute | Stage::Finish(_) => Consent::Start(stage),
    };
    let decision = shared.consent(&prepared.planned, asked_by, how);
    if !decision.allows() {
        return Err((false, Failed::Kept(decision)));
    }
    shared
        .home
        .note_read(&prepared.plan, &read)
        .map_err(|error| (false, Failed::Kept(held(&error))))?;
    let room = shared.room(plan, me, prepared.planned.need);
    engine.room = room.map_err(|error| (false, Failed::Data(Arc::new(error.into()))))?;
    shared.jobs.set(job, State::Running, None);
    let started = Time::now();
    tracing::info!("running");
    // What is kept is worth nothing without the name of the run that kept it.
    let noted = AtomicBool::new(false);
    let progress = |progress: Progress| {
        if let Some(trace) = progress.trace {
            span.record("trace", tracing::field::display(trace));
        }
        shared.jobs.progress(job, plan, &progress);
        if stage == Stage::Input && progress.trace.is_some() && !noted.swap(true, Ordering::Relaxed)
        {
            note(shared, job, at);
        }
    };

    // A participant that is there may still wait for others. The runs of a durable job are tried again, which finds them too.
    engine.meeting = (stage == Stage::Whole).then_some(here.until);
    let wrap = |link| shared.metrics.count(link);
    let mut data = plan.data(own).to_vec();
    if let (Some(taking), Some(data)) = (stock, data.first_mut()) {
        data.stock = Some(taking);
    }
    let run =
        here.part(shared, plan, me, stop)
            .run(connections, &engine, data.into(), &wrap, &progress);
    if stage == Stage::Input {
        // It may have kept the inputs, however it ended.
        note(shared, job, at);
    }
    let report = run.map_err(|abort| (true, Failed::Run(abort.into())))?;
    charge.earned();
    if let Some(output) = &sink {
        let keys = |peer: Peer| match here.neighbours.pins.get(&peer) {
            Some(pin) => Some(*pin),
            None => (peer == me).then(|| here.identity.fingerprint()),
        };
        let protocol = plan.protocol(me);
        let receipt = Receipt::new(plan, &*protocol, me, &keys, false, started);
        let receipt = receipt.finished(stages.finished(stage));
        published(shared, &prepared.plan, receipt, &report, &folder);
        // A file may have no place for it, as CSV has none.
        for lacks in output.queries().iter().flat_map(|of| of.incomplete()) {
            tracing::warn!("{lacks}");
        }
    }
    Ok(report)
}

/// For how long a job that has met waits for a place: the stall time-out, and up to as much again, by its plan hash. Two parties that have
/// given their last places to different jobs wait for each other. Both know both hashes: one of the jobs gives up first, at either of them,
/// and the other runs.
pub(super) fn patience(job: PlanHash, stall: Duration) -> Duration {
    let part = u16::from_le_bytes([job.0[0], job.0[1]]);
    stall + stall * u32::from(part) / u32::from(u16::MAX)
}

/// What a run is charged to the member that asked for it: its work, when it begins, and its bytes, when it is over. What was not done is given back.
struct Charge<'a> {
    shared: &'a ServiceState,
    claim: &'a Claim,
    done: bool,
}

impl<'a> Charge<'a> {
    fn new(shared: &'a ServiceState, claim: &'a Claim) -> Result<Self, String> {
        if let Some(member) = &claim.member {
            shared.usage.starts(member, &claim.quota, claim.work)?;
        }
        let done = false;
        Ok(Charge {
            shared,
            claim,
            done,
        })
    }

    /// All of it was done.
    fn earned(mut self) {
        self.done = true;
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        let Some(member) = &self.claim.member else {
            return;
        };
        let went = |entry: &mut Entry| {
            let Status {
                rows,
                of,
                sent,
                received,
                ..
            } = &entry.status;
            (sent.saturating_add(*received), *rows, (*of).max(1))
        };
        let (bytes, rows, of) = self
            .shared
            .jobs
            .with(self.claim.job, went)
            .unwrap_or((0, 0, 1));
        let left =
            u128::from(self.claim.work) * u128::from(of.saturating_sub(rows)) / u128::from(of);
        let undone = if self.done { 0 } else { left as u64 };
        self.shared.usage.ended(member, bytes, undone);
    }
}

/// Puts the receipt beside a result, and says in the log that it is there.
fn published(shared: &ServiceState, plan: &Plan, receipt: Receipt, report: &Report, folder: &Path) {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = names.map(|entry| PathBuf::from(entry.file_name()));
    let mut names: Vec<PathBuf> = names
        .filter(|name| name.as_os_str() != receipt::NAME)
        .collect();
    names.sort();
    let trace = Some(report.trace.to_string());
    if let Err(error) = receipt.write(folder, &names, trace.clone()) {
        tracing::error!(%error, "the receipt cannot be written");
    }
    shared.record(Event::ResultPublished {
        plan: Event::plan(plan.hash),
        job: plan.job.name.clone(),
        trace,
        files: names.len() as u64,
    });
    tracing::info!(folder = %folder.display(), "results are written");
}

/// What this party brings, takes, loads and keeps, if anything.
struct Ready {
    ends: Ends,
    sink: Option<Arc<Output>>,
    /// Its data files, as they were read.
    read: Vec<Binding>,
}

/// Makes them ready.
fn ends(
    shared: &ServiceState,
    prepared: &Prepared,
    at: &Position<'_>,
    folder: &Path,
) -> Result<Ready, Failed> {
    let data = |error: DataError| Failed::Data(Arc::new(error));
    let (job, plan, me) = (&prepared.job, prepared.stages.plan(at.stage), at.me);
    let holders = plan.job.blocks.iter().flat_map(|block| &block.holders);
    let holder = holders.copied().find(|holder| holder.peer() == Some(me));
    let shares = at.stage_store.ends(at.stage);
    let shares = shares.map_err(|error| Failed::Here(error.to_string()))?;
    let (sources, read) = match (shares.source, holder) {
        (None, Some(holder)) => {
            let read = shared.home.reading(job, || job.sources(holder));
            read.map_err(data)?
        }
        (source, _) => (source.into_iter().map(|own| (0, own)).collect(), Vec::new()),
    };
    let receives = plan
        .job
        .audiences
        .iter()
        .any(|audience| audience.includes(me));
    let sink = if receives {
        std::fs::create_dir_all(folder).map_err(|source| {
            data(DataError::Io {
                doing: "create",
                file: folder.to_owned(),
                source,
            })
        })?;
        // The job numbers all its parties, whichever is out.
        let own = Peer::Party(at.party);
        let sink = job.sink(own, folder).map_err(data)?;
        Some(Arc::new(match prepared.stages.finished(at.stage) {
            Some(security) => sink.guaranteed(security),
            None => sink,
        }))
    } else {
        None
    };
    let ends = Ends {
        sources,
        sinks: {
            let opened = sink.as_ref().map(Output::sinks).unwrap_or_default();
            opened.into_iter().chain(shares.sizes).collect()
        },
        stored: shares.stored,
        keeps: shares.keeps,
    };
    Ok(Ready { ends, sink, read })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_wait_for_a_place_for_different_times() {
        let stall = Duration::from_secs(30);
        let of = |first, second| {
            let mut hash = [7; 32];
            (hash[0], hash[1]) = (first, second);
            patience(PlanHash(hash), stall)
        };
        assert_eq!(of(0, 0), stall);
        assert_eq!(of(255, 255), 2 * stall);
        // Time for the news of one that gave up.
        assert!(of(0, 129) > of(0, 128) + Duration::from_millis(100));
    }
}
