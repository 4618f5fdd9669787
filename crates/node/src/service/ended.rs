//! How a run of a job ended, if not well: for logs, for the job's participants, and for the next attempt.

use std::sync::Arc;

use veil_engine::Abort;
use veil_job::DataError;
use veil_link::tls::SetupError;
use veil_runtime::{Again, PartError, RunError, Stage};
use veil_session::Peer;

use super::ServiceState;
use super::attempt::Position;
use super::attendance::{self, Seen};
use super::said::{FULL, NOT_HERE, OWN_FILES, QUOTA, of_run, public_reason, with_names};
use crate::approvals::Decision;
use crate::jobs::{State, Why};
use crate::log::Event;
use crate::planner::Prepared;

/// Why a run did not come to its end.
pub(super) enum Failed {
    Run(RunError),
    /// This participant cannot take part.
    Here(String),
    /// A participant of the job is not known here.
    Part(PartError),
    /// Its own data cannot be read, or its results not be written.
    Data(Arc<DataError>),
    /// It may not run now.
    Kept(Decision),
    /// Other jobs ran for too long: what it waited for.
    Full(String),
    /// The member that asked for it has used up a quota.
    Quota(String),
    /// The stages that the other parties report.
    Seen(Seen),
    /// The others ran without this party, and nothing came of it.
    Rested,
}

/// A run that was given up.
pub(super) struct GivenUp {
    pub(super) why: String,
    /// What only this participant's people may read, if it is more.
    pub(super) here: Option<String>,
    /// Why another attempt may fare better, if it may.
    pub(super) again: Option<Again>,
    /// Where the job is if there is none.
    pub(super) state: State,
    /// Whether what only they may read quotes data, and is for no log.
    quotes: bool,
}

impl GivenUp {
    /// That the job has failed.
    fn failed(why: impl Into<String>, here: Option<String>, again: Option<Again>) -> Self {
        GivenUp {
            why: why.into(),
            here,
            again,
            state: State::Failed,
            quotes: false,
        }
    }

    /// The inputs were kept, and are gone when the next stage is to begin.
    pub(super) fn gone() -> Self {
        let here =
            "the inputs were kept and cannot be read again; `veil shares list` shows what is there";
        GivenUp::failed(NOT_HERE, Some(here.to_owned()), None)
    }

    /// Why, after some words, for those who have a part in the job.
    pub(super) fn says_with(&self, before: &str) -> Why {
        let all = format!("{before}{}", self.why);
        match &self.here {
            Some(here) => Why::apart(all, format!("{before}{here}")),
            None => Why::all(all),
        }
    }

    /// Why, for log lines.
    pub(super) fn logged(&self) -> &str {
        let here = self.here.as_ref().filter(|_| !self.quotes);
        here.unwrap_or(&self.why)
    }
}

/// The code of a failure, why, and whether to try again. A view that has failed is over from here on.
pub(super) fn explain(
    shared: &ServiceState,
    prepared: &Prepared,
    position: Option<&Position<'_>>,
    failed: &Failed,
) -> (&'static str, GivenUp) {
    let stages = &prepared.stages;
    let stage = position.map_or(Stage::Whole, |position| position.stage);
    if let Failed::Run(RunError::Abort(abort)) = failed {
        shared.metrics.aborted(abort);
        suspected(shared, prepared, stage, abort);
    }
    let stopped = shared
        .jobs
        .with(prepared.plan.hash, |entry| entry.stopped_for.clone())
        .flatten();
    let (code, why, here) = match (failed, stopped) {
        (_, Some(why)) => {
            let here = None;
            let again = rekeyed(shared, prepared, position);
            return ("stopped", GivenUp::failed(why, here, again));
        }
        (Failed::Run(RunError::Setup(error)), None)
            if let Some(other) = stages.disagree(stage, error) =>
        {
            let again = next_view(shared, prepared, position, failed).or(Some(Again::Disagreed));
            let (why, here) = (other.why, None);
            return ("not met", GivenUp::failed(why, here, again));
        }
        (Failed::Seen(seen), None) => return of_others(shared, prepared, position, *seen),
        (Failed::Kept(decision), None) => return kept(decision),
        (Failed::Rested, None) => (
            "not met",
            "the others were to finish without this party, and nothing came of it".to_owned(),
            None,
        ),
        (Failed::Data(error) | Failed::Run(RunError::Abort(Abort::Data(error))), None)
            if error.is_own() =>
        {
            if error.quotes() {
                tracing::warn!("`veil jobs` says what is wrong with this party's data");
            } else {
                tracing::warn!(%error, "this party's own files do not allow it");
            }
            ("input", OWN_FILES.to_owned(), Some(error.to_string()))
        }
        // Where they differ is for the owners of the block alone, and every participant of the job reads the reason.
        (Failed::Run(RunError::Abort(abort @ Abort::Misaligned { .. })), None) => {
            let why =
                "the owners of a block have its rows in different orders; they were told where";
            ("input", why.to_owned(), Some(abort.to_string()))
        }
        (Failed::Run(error), None) => {
            let plan = stages.plan(stage);
            let here = with_names(plan, error.to_string());
            (cause(error), of_run(plan, error), Some(here))
        }
        (Failed::Here(why), None) => ("input", NOT_HERE.to_owned(), Some(why.clone())),
        (Failed::Part(error), None) => ("input", error.to_string(), None),
        (Failed::Data(error), None) => ("input", error.to_string(), None),
        (Failed::Full(why), None) => {
            let here = format!("other jobs ran all the time, and {why}; ask again later");
            ("busy", FULL.to_owned(), Some(here))
        }
        (Failed::Quota(why), None) => ("quota", QUOTA.to_owned(), Some(why.clone())),
    };
    let repeats = match failed {
        Failed::Run(RunError::Abort(abort)) => stages.may_repeat(stage, abort),
        // The others are there, and do not stay for ever.
        Failed::Full(_) => stages.goes_on(stage),
        _ => false,
    };
    let again = next_view(shared, prepared, position, failed);
    let again = again.or(repeats.then_some(Again::Interrupted));
    let given = GivenUp::failed(why, here, again);
    let quotes = match failed {
        Failed::Data(error) | Failed::Run(RunError::Abort(Abort::Data(error))) => error.quotes(),
        Failed::Run(RunError::Abort(Abort::Misaligned { .. })) => true,
        _ => false,
    };
    (code, GivenUp { quotes, ..given })
}

/// What comes of a job that may not run, though its participants have met: it waits, unless it is refused.
fn kept(decision: &Decision) -> (&'static str, GivenUp) {
    let (code, state) = match decision {
        decision if decision.refuses() => ("refused", State::Refused),
        _ => ("held", State::Pending),
    };
    let (why, here) = public_reason(decision).into_parts();
    let given = GivenUp::failed(why, here, None);
    (code, GivenUp { state, ..given })
}

/// What comes of what the other parties say of where they are.
fn of_others(
    shared: &ServiceState,
    prepared: &Prepared,
    position: Option<&Position<'_>>,
    seen: Seen,
) -> (&'static str, GivenUp) {
    let own = |party: &str| party == shared.home.settings().name;
    let kept = position.is_some_and(|position| position.view.is_some());
    let (code, why, again) = match seen {
        Seen::Out(out) if own(prepared.stages.party(out)) && !kept => (
            "out",
            "this party was out of reach for too long: the others finish the job without it".into(),
            None,
        ),
        Seen::Out(out) => (
            "out",
            format!(
                "`{}` is out: all others have missed it for too long, and finish without it",
                prepared.stages.party(out)
            ),
            Some(Again::Seen),
        ),
        Seen::LaterView => (
            "not met",
            "the others have given up this run, and begin the next one".into(),
            attendance::view(shared, prepared.plan.hash).map(Again::Follow),
        ),
        Seen::Lost => (
            "not met",
            "two others have not kept the inputs: they are made anew".into(),
            Some(Again::Disagreed),
        ),
        Seen::Over => (
            "done",
            "two others have finished the job without this party".into(),
            None,
        ),
    };
    let here = None;
    (code, GivenUp::failed(why, here, again))
}

/// Where a job can be finished without a party that lies, and it was a party that made a run on the checkpointed inputs fail: the next view.
fn next_view(
    shared: &ServiceState,
    prepared: &Prepared,
    position: Option<&Position<'_>>,
    failed: &Failed,
) -> Option<Again> {
    let (stages, position) = (&prepared.stages, position?);
    let view = position.view?;
    let over = match failed {
        Failed::Rested => true,
        Failed::Run(RunError::Abort(abort)) => stages.may_repeat(position.stage, abort),
        Failed::Run(RunError::Setup(error)) => match error {
            SetupError::TimedOut { peers, .. } if peers.iter().copied().any(is_party) => true,
            SetupError::TimedOut { .. } if view > 0 => return Some(Again::Recipients),
            SetupError::Plan { peer, .. }
            | SetupError::Link { peer, .. }
            | SetupError::Version { peer, .. }
            | SetupError::Refused { peer, .. }
            | SetupError::Tls { peer, .. }
            | SetupError::WrongKey { peer, .. }
            | SetupError::OurKey { peer, .. } => is_party(*peer),
            _ => false,
        },
        _ => false,
    };
    over.then(|| Again::View(attendance::give_up(shared, prepared, view)))
}

/// Where a job can be finished without a party that lies, no party ends it by changing its key in the middle of a run: the next view.
fn rekeyed(
    shared: &ServiceState,
    prepared: &Prepared,
    position: Option<&Position<'_>>,
) -> Option<Again> {
    let view = position?.view?;
    let changed = shared.jobs.resumes(prepared.plan.hash);
    changed.then(|| Again::View(attendance::give_up(shared, prepared, view)))
}

const fn is_party(peer: Peer) -> bool {
    peer.party().is_some()
}

/// Writes down whom a failed check names, where the job goes on all the same.
fn suspected(shared: &ServiceState, prepared: &Prepared, stage: Stage, abort: &Abort) {
    let Abort::Cheated { suspects, what, .. } = abort else {
        return;
    };
    if !prepared.stages.are_guaranteed() || stage == Stage::Input {
        return;
    }
    let plan = prepared.stages.plan(stage);
    let names = suspects
        .iter()
        .map(|peer| veil_engine::name_of(plan, *peer));
    shared.record(Event::Suspected {
        plan: Event::plan(prepared.plan.hash),
        job: prepared.plan.job.name.clone(),
        one_of: names.map(str::to_owned).collect(),
        what: (*what).to_owned(),
    });
}

/// The code of a cause, for logs and metrics.
fn cause(error: &RunError) -> &'static str {
    match error {
        RunError::Setup(_) => "not met",
        RunError::Abort(Abort::Cheated { .. } | Abort::SetUp { .. }) => "check",
        RunError::Abort(Abort::Device(_)) => "device",
        RunError::Abort(Abort::Stock(_)) => "stock",
        RunError::Abort(Abort::Data(_) | Abort::Misaligned { .. }) => "input",
        RunError::Abort(Abort::Told { .. }) => "told",
        RunError::Abort(Abort::Link(_) | Abort::Stalled { .. }) => "link",
        RunError::Abort(_) => "other",
    }
}
