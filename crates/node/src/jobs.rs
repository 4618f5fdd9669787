//! The jobs of a service: where each of them is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use veil_engine::{Phase, Progress, name_of};
use veil_link::tls::Fingerprint;
use veil_protocol::Plan;
use veil_session::{Peer, PlanHash};

use crate::home::Home;
use crate::meeting::HeldFor;
use crate::metrics::Metrics;
use crate::planner::Planned;
use crate::stock::Takes;
use crate::time::Time;

/// Where a job is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A person has to approve it.
    Pending,
    /// It waits for its participants.
    Meeting,
    /// Its participants are there, and other jobs run.
    Queued,
    /// It runs.
    Running,
    /// It ran.
    Done,
    /// It was given up.
    Failed,
    /// It was refused.
    Refused,
    /// This participant's process ended in its middle.
    Interrupted,
}

impl State {
    pub(crate) const ALL: [State; 8] = [
        State::Pending,
        State::Meeting,
        State::Queued,
        State::Running,
        State::Done,
        State::Failed,
        State::Refused,
        State::Interrupted,
    ];

    /// A word for people, the same in every release.
    pub const fn name(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Meeting => "meeting",
            State::Queued => "queued",
            State::Running => "running",
            State::Done => "done",
            State::Failed => "failed",
            State::Refused => "refused",
            State::Interrupted => "interrupted",
        }
    }

    /// Whether no participant waits for it any more.
    pub const fn is_over(self) -> bool {
        matches!(self, State::Done | State::Failed | State::Refused)
    }

    /// Whether a thread is about it.
    pub const fn active(self) -> bool {
        matches!(self, State::Meeting | State::Queued | State::Running)
    }
}

/// The status of a job, for its participants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Status {
    /// All digits of its plan hash.
    pub plan: String,
    /// Its name.
    pub job: String,
    /// Where it is.
    pub state: State,
    /// Since when.
    pub since: Time,
    /// Why it failed, was refused or waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The phase of a running job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Rows that are finished.
    pub rows: u64,
    /// Rows of the job.
    pub of: u64,
    /// Payload bytes sent.
    pub sent: u64,
    /// Payload bytes received.
    pub received: u64,
    /// Whom it waits for, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// Whom of its participants something holds up that they are about to put right.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held: BTreeMap<String, HeldFor>,
    /// Whether this party has kept the inputs of a durable job; nothing of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<bool>,
    /// The name of its last run, the same at all participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// What a run takes from the stock of this party, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Takes>,
}

impl Status {
    /// A job of which nothing is known yet.
    pub(crate) fn new(plan: String, job: String, rows: u64) -> Self {
        Status {
            plan,
            job,
            state: State::Pending,
            since: Time::now(),
            why: None,
            phase: None,
            rows: 0,
            of: rows,
            sent: 0,
            received: 0,
            waits_for: Vec::new(),
            held: BTreeMap::new(),
            kept: None,
            trace: None,
            takes: None,
        }
    }

    /// These are missing where it is met, in a run of `plan`.
    pub(crate) fn misses(&mut self, plan: &Plan, peers: &[Peer]) {
        self.waits_for = in_order(plan, peers.iter().copied());
    }

    /// How far a run of `plan` is.
    pub(crate) fn goes(&mut self, plan: &Plan, progress: &Progress) {
        self.phase =
            Some(progress.phase.name().to_owned()).filter(|_| progress.phase != Phase::Done);
        self.rows = progress.rows;
        self.sent = progress.sent;
        self.received = progress.received;
        self.trace = progress.trace.map(|trace| trace.to_string());
        self.waits_for = in_order(plan, progress.waits.iter().map(|wait| wait.peer));
    }
}

/// Why a job is where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Why {
    /// The text that all participants of the job read: sentences of this program, and names in the job. Nothing of this machine (rule R3).
    all: String,
    /// The text that this participant's people read instead, if they read more.
    here: Option<String>,
}

impl Why {
    /// The same for all participants.
    pub(crate) fn all(all: impl Into<String>) -> Self {
        let (all, here) = (all.into(), None);
        Why { all, here }
    }

    /// A sentence for all participants, and the whole for this participant's people.
    pub(crate) fn apart(all: impl Into<String>, here: impl Into<String>) -> Self {
        let (all, here) = (all.into(), Some(here.into()));
        Why { all, here }
    }

    /// What all participants read, and what this participant's people read instead.
    pub(crate) fn into_parts(self) -> (String, Option<String>) {
        (self.all, self.here)
    }
}

/// A job that this service knows.
pub(crate) struct Entry {
    pub(crate) status: Status,
    /// The reasons that its participants gave for being held up, and when.
    held: BTreeMap<String, (HeldFor, Instant)>,
    /// What is known of it: by that it is decided again, and not planned.
    pub(crate) planned: Arc<Planned>,
    /// The plans of its stages, if it runs in two.
    stages: Vec<PlanHash>,
    /// Who asked for it, if it was not this participant.
    pub(crate) asked_by: Option<String>,
    /// The keys with which its active run was or is met.
    pub(crate) keys: Vec<Fingerprint>,
    /// Ends its active run.
    pub(crate) stop: Arc<AtomicBool>,
    /// Its meeting, if it is being met.
    meeting: Option<Meeting>,
    /// Why its active run was stopped from here, if it was.
    pub(crate) stopped_for: Option<String>,
    /// Whether that was because of a key that changed, and for nothing else.
    rekeyed: bool,
    /// The reason for its state that only this participant's people may read.
    here: Option<String>,
    /// Whether something may have been opened in its last run.
    pub(crate) opened: bool,
    /// When its last run ended.
    pub(crate) ended: Option<Instant>,
    /// The parties have tried often enough: the operator, an owner or a recipient has to ask for it again.
    pub(crate) spent: bool,
}

impl Entry {
    /// How it is now.
    fn status(&self) -> Status {
        let held = self.held.iter();
        let held = held.filter(|(_, (_, since))| since.elapsed() < HELD);
        Status {
            held: held.map(|(name, (why, _))| (name.clone(), *why)).collect(),
            ..self.status.clone()
        }
    }

    /// Notes what holds a participant up, for as long as it is not done.
    fn hold(&mut self, name: &str, why: HeldFor) {
        let over = matches!(self.status.state, State::Done | State::Refused);
        if !over && self.planned.participants.iter().any(|known| known == name) {
            self.held.insert(name.to_owned(), (why, Instant::now()));
        }
    }

    fn says(&mut self, why: Option<Why>) {
        (self.status.why, self.here) = match why {
            Some(Why { all, here }) => (Some(all), here),
            None => (None, None),
        };
    }

    /// Forgets that its run was stopped from here.
    pub(crate) fn clear_stop(&mut self) {
        (self.stopped_for, self.rekeyed) = (None, false);
    }

    /// Whether its participants are there.
    pub(crate) fn is_met(&self) -> bool {
        matches!(self.status.state, State::Queued | State::Running)
    }
}

/// A meeting that is under way.
pub(crate) struct Meeting {
    /// Ends it, and not the job.
    pub(crate) halt: Arc<AtomicBool>,
    /// Whether it would be one of other keys by what the home says now.
    pub(crate) stale: Box<dyn Fn(&Home) -> bool + Send>,
}

/// All jobs of a service.
pub(crate) struct Jobs {
    entries: Mutex<BTreeMap<PlanHash, Entry>>,
    metrics: Arc<Metrics>,
}

/// A participant that says what holds it up, and does not come, says it again within this time or its statement lapses.
const HELD: Duration = Duration::from_secs(3600);

/// For so long after its end a job is not made ready again because a participant calls.
const PAUSE: Duration = Duration::from_secs(2);

/// Jobs that are remembered at most: the oldest that are over are forgotten, and their folders stay.
const REMEMBERED: usize = 1000;

/// What others read of a job that waits for room.
const FULL: &str = "other jobs run at this party, and it waits for a place";

/// Bytes as people set limits: whole MiB, not less.
pub(crate) const fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(MIB)
}

const MIB: u64 = 1 << 20;

impl Jobs {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Jobs {
            entries: Mutex::default(),
            metrics,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PlanHash, Entry>> {
        // Every change of an entry leaves it whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a job, or changes it.
    pub(crate) fn with<T>(&self, plan: PlanHash, look: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let looked = self.lock().get_mut(&plan).map(look);
        self.count();
        looked
    }

    /// The known job with this plan, or with a stage of this plan.
    pub(crate) fn find(&self, plan: PlanHash) -> Option<PlanHash> {
        let entries = self.lock();
        if entries.contains_key(&plan) {
            return Some(plan);
        }
        let found = entries
            .iter()
            .find(|(_, entry)| entry.stages.contains(&plan));
        found.map(|(job, _)| *job)
    }

    /// Notes a job, unless it is known.
    pub(crate) fn note(&self, job: PlanHash, planned: &Arc<Planned>, asked_by: Option<String>) {
        let mut entries = self.lock();
        let entry = entries.entry(job).or_insert_with(|| Entry {
            status: Status {
                takes: planned.takes.clone(),
                ..Status::new(planned.plan.clone(), planned.name.clone(), planned.rows)
            },
            held: BTreeMap::new(),
            stages: planned.stage_hashes(),
            planned: Arc::clone(planned),
            asked_by: None,
            keys: Vec::new(),
            stop: Arc::default(),
            meeting: None,
            stopped_for: None,
            rekeyed: false,
            here: None,
            opened: false,
            ended: None,
            spent: false,
        });
        entry.asked_by = asked_by;
        while entries.len() > REMEMBERED {
            let over = entries
                .iter()
                .filter(|(_, entry)| entry.status.state.is_over());
            let oldest = over
                .min_by_key(|(_, entry)| entry.status.since)
                .map(|(plan, _)| *plan);
            match oldest.filter(|oldest| *oldest != job) {
                Some(oldest) => entries.remove(&oldest),
                None => break,
            };
        }
        drop(entries);
        self.count();
    }

    /// How a job is, for one of its participants.
    pub(crate) fn status(&self, plan: PlanHash, of: &str) -> Option<Status> {
        let status = self.with(plan, |entry| {
            let has_part = entry.planned.participants.iter().any(|name| name == of);
            has_part.then(|| entry.status())
        });
        status.flatten()
    }

    /// Whether a participant of this name who comes for a job makes it ready again.
    pub(crate) fn wakes(&self, plan: PlanHash, by: &str) -> bool {
        let wakes = self.with(plan, |entry| {
            let has_part = entry.planned.participants.iter().any(|name| name == by);
            let goes_round = entry.spent && entry.planned.parties.iter().any(|name| name == by);
            has_part && !goes_round && !entry.status.state.active()
        });
        wakes == Some(true)
    }

    /// Whether a job has ended a moment ago: a participant that has not heard of it yet may still call.
    pub(crate) fn ended_lately(&self, plan: PlanHash) -> bool {
        let lately = |entry: &mut Entry| entry.ended.is_some_and(|ended| ended.elapsed() < PAUSE);
        self.with(plan, lately) == Some(true)
    }

    /// Moves a job to a state.
    pub(crate) fn set(&self, plan: PlanHash, state: State, why: Option<Why>) {
        self.with(plan, |entry| {
            entry.status.state = state;
            entry.status.since = Time::now();
            entry.says(why);
            if state != State::Meeting {
                entry.meeting = None;
            }
            if state != State::Running {
                entry.status.phase = None;
                entry.status.waits_for.clear();
            }
            if matches!(state, State::Running | State::Done | State::Refused) {
                entry.held.clear();
            }
            if !state.active() {
                entry.keys.clear();
                entry.ended = Some(Instant::now());
            }
        });
    }

    /// Leaves a job where it is, if it is there already for this reason, or moves it: what waits is looked at all the time.
    pub(crate) fn keep(&self, plan: PlanHash, state: State, why: &Why) {
        let same = |entry: &mut Entry| {
            let status = &entry.status;
            let said = (status.why.as_ref(), &entry.here);
            status.state == state && said == (Some(&why.all), &why.here)
        };
        if self.with(plan, same) != Some(true) {
            self.set(plan, state, Some(why.clone()));
        }
    }

    /// Notes how far a run of `job` is, whose stage is planned as `plan`.
    pub(crate) fn progress(&self, job: PlanHash, plan: &Plan, progress: &Progress) {
        if let Some(entry) = self.lock().get_mut(&job) {
            entry.opened |= progress.may_have_opened;
            entry.status.goes(plan, progress);
        }
    }

    /// Notes what holds a participant of a job up.
    pub(crate) fn hold(&self, job: PlanHash, name: &str, why: HeldFor) {
        if let Some(entry) = self.lock().get_mut(&job) {
            entry.hold(name, why);
        }
    }

    /// Notes who is missing where a run of `job` is met, whose stage is planned as `plan`.
    pub(crate) fn missing(&self, job: PlanHash, plan: &Plan, peers: &[Peer]) {
        if let Some(entry) = self.lock().get_mut(&job)
            && entry.status.state == State::Meeting
        {
            entry.status.misses(plan, peers);
            let missing = &entry.status.waits_for;
            // A participant that is there is ready.
            entry.held.retain(|name, _| missing.contains(name));
        }
    }

    /// The jobs of a member, or all with what only this participant's people may read, the last that changed first.
    pub(crate) fn list(&self, of: Option<&str>) -> Vec<Status> {
        let entries = self.lock();
        let has_part = |entry: &&Entry| {
            of.is_none_or(|name| entry.planned.participants.iter().any(|p| p == name))
        };
        let mut list: Vec<Status> = entries
            .values()
            .filter(has_part)
            .map(|entry| {
                let mut status = entry.status();
                if let (None, Some(here)) = (of, &entry.here) {
                    status.why = Some(here.clone());
                }
                status
            })
            .collect();
        list.sort_by_key(|status| std::cmp::Reverse(status.since));
        list
    }

    /// The plans of jobs in one of these states.
    pub(crate) fn in_state(&self, wanted: impl Fn(State) -> bool) -> Vec<PlanHash> {
        let entries = self.lock();
        let found = entries
            .iter()
            .filter(|(_, entry)| wanted(entry.status.state));
        found.map(|(plan, _)| *plan).collect()
    }

    /// Ends the active runs of jobs, of which some may go on with the next one, because of keys that changed.
    pub(crate) fn rekey(&self, concerned: impl Fn(&Entry) -> bool, why: &str) -> usize {
        self.halt(concerned, why, true)
    }

    /// Ends active jobs.
    pub(crate) fn stop(&self, concerned: impl Fn(&Entry) -> bool, why: &str) -> usize {
        self.halt(concerned, why, false)
    }

    /// Whether a job whose run was stopped may go on, since that was for a key alone: then it is not stopped any more.
    pub(crate) fn resumes(&self, plan: PlanHash) -> bool {
        let resumed = self.with(plan, |entry| {
            let resumes = std::mem::take(&mut entry.rekeyed);
            if resumes {
                entry.stopped_for = None;
                entry.stop.store(false, Ordering::Relaxed);
            }
            resumes
        });
        resumed.unwrap_or(false)
    }

    fn halt(&self, concerned: impl Fn(&Entry) -> bool, why: &str, rekeyed: bool) -> usize {
        let mut entries = self.lock();
        let active = entries
            .values_mut()
            .filter(|entry| entry.status.state.active());
        let mut stopped = 0;
        for entry in active.filter(|entry| concerned(entry)) {
            entry.rekeyed = rekeyed && (entry.stopped_for.is_none() || entry.rekeyed);
            entry.stopped_for.get_or_insert_with(|| why.to_owned());
            entry.stop.store(true, Ordering::Relaxed);
            if let Some(meeting) = &entry.meeting {
                meeting.halt.store(true, Ordering::Relaxed);
            }
            stopped += 1;
        }
        stopped
    }

    /// Notes whom a job meets by which keys, and how its meeting is ended.
    pub(crate) fn meets(&self, plan: PlanHash, keys: Vec<Fingerprint>, meeting: Meeting) {
        self.with(plan, |entry| {
            // What stopped the job before did not know this meeting.
            let stopped = entry.stop.load(Ordering::Relaxed);
            meeting.halt.fetch_or(stopped, Ordering::Relaxed);
            entry.keys = keys;
            entry.meeting = Some(meeting);
        });
    }

    /// Ends the meetings that would be others by what the home says now; each of them begins anew.
    pub(crate) fn meet_anew(&self, home: &Home) {
        for entry in self.lock().values() {
            if let Some(meeting) = entry.meeting.as_ref().filter(|m| (m.stale)(home)) {
                meeting.halt.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Says what a job waits for, while it waits for a place.
    pub(crate) fn waits(&self, job: PlanHash, why: &str) {
        self.with(job, |entry| entry.says(Some(Why::apart(FULL, why))));
    }

    /// How many jobs of a member wait: for approval, for their participants, or for a place.
    pub(crate) fn waiting_of(&self, member: &str) -> u64 {
        let waits = |state| matches!(state, State::Pending | State::Meeting | State::Queued);
        let entries = self.lock();
        let of = entries
            .values()
            .filter(|entry| entry.asked_by.as_deref() == Some(member));
        of.filter(|entry| waits(entry.status.state)).count() as u64
    }

    /// How many jobs are met or run, and how many of them a member asked for; without a member, those of this participant.
    pub(crate) fn active(&self, of: Option<&str>) -> [usize; 2] {
        let entries = self.lock();
        let active = entries.values().filter(|entry| entry.status.state.active());
        let own = active
            .clone()
            .filter(|entry| entry.asked_by.as_deref() == of);
        [active.count(), own.count()]
    }

    fn count(&self) {
        let entries = self.lock();
        for state in State::ALL {
            let of = entries.values().filter(|entry| entry.status.state == state);
            self.metrics.set_jobs(state.name(), of.count());
        }
    }
}

/// Names of participants, each once.
fn in_order(plan: &Plan, peers: impl Iterator<Item = Peer>) -> Vec<String> {
    let names: BTreeSet<&str> = peers.map(|peer| name_of(plan, peer)).collect();
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use veil_program::{Files, Job, Sent};

    use super::*;
    use crate::planner::{Terms, prepare};

    const SUM: &str = r#"version = 1
kind = "stats"
name = "wages"
owners = ["ann"]
parties = ["a", "b", "c", "d"]
recipients = ["eve"]
delivery = "guaranteed"
column = [{ name = "wage", type = "integer", min = 0, max = 20000 }]
block = [{ name = "all", rows = 5, holds = { ann = ["wage"] }, files = { ann = "ann.csv" } }]
analysis = [{ name = "wages", kind = "sum", of = "wage", to = "eve" }]
"#;

    /// Parties that have tried often enough do not wake each other for ever.
    #[test]
    fn a_participant_that_has_had_enough_is_woken_by_no_party() {
        let job = Job::kept(SUM, &Sent::new(), Files::new()).unwrap();
        let terms = Terms {
            name: "a".into(),
            rows: 1000,
            lanes: 1,
            memory_mib: 1000,
            spill: false,
            window: 4,
            link: "tls".into(),
            kept: true,
        };
        let prepared = prepare(job, (1, false), &terms).unwrap();
        let (plan, planned) = (prepared.plan, prepared.planned);
        let metrics = Arc::new(Metrics::new("cpu".into()));
        let jobs = Jobs::new(metrics);
        assert!(!jobs.wakes(plan.hash, "a"));
        jobs.note(plan.hash, &planned, None);
        let wakes = || ["a", "d", "ann", "eve", "bob"].map(|by| jobs.wakes(plan.hash, by));
        assert_eq!(wakes(), [true, true, true, true, false]);
        jobs.set(plan.hash, State::Running, None);
        assert_eq!(wakes(), [false; 5]);
        jobs.set(plan.hash, State::Failed, Some(Why::all("often enough")));
        assert_eq!(wakes(), [true, true, true, true, false]);
        jobs.with(plan.hash, |entry| entry.spent = true);
        assert_eq!(wakes(), [false, false, true, true, false]);
        assert!(jobs.ended_lately(plan.hash));
    }
}
