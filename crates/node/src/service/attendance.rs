//! Who of the parties is there, and at which view, asked while a job of guaranteed output waits for them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use veil_runtime::{Stage, VIEWS};
use veil_session::{PartyId, PlanHash};

use super::ServiceState;
use super::attempt::Position;
use crate::attendance::{Missing, TOGETHER};
use crate::control::{Reply, Request};
use crate::log::Event;
use crate::planner::Prepared;
use crate::stages::{self, ANSWER, At, CheckpointedInputs, ENOUGH, Note, agreed, ask_all};

/// How often the others are asked.
const BETWEEN: Duration = Duration::from_millis(500);

/// Why a meeting is over before every party is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// This party of the job is out.
    Out(PartyId),
    /// The others are at a later view.
    LaterView,
    /// Two others have not kept the inputs, or others than this party.
    Lost,
    /// Two others are done with the job.
    Over,
}

/// What is known about the parties of jobs whose output is guaranteed; nothing but that there is one, while its inputs are not kept.
#[derive(Default)]
pub(super) struct Attendances(Mutex<BTreeMap<PlanHash, Option<CheckpointedInputs>>>);

impl Attendances {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<PlanHash, Option<CheckpointedInputs>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, job: PlanHash, with: impl FnOnce(&mut CheckpointedInputs) -> T) -> Option<T> {
        self.lock().get_mut(&job)?.as_mut().map(with)
    }

    /// Takes what is said about a job, and gives all that is known, and where this party is.
    pub(super) fn hear(&self, job: PlanHash, said: &[Missing]) -> (Vec<Missing>, At) {
        match self.lock().get_mut(&job) {
            None => (Vec::new(), At::Away),
            Some(None) => (Vec::new(), At::Inputs),
            Some(Some(kept)) => {
                kept.attendance.hear(said);
                let (run, view) = (kept.attendance.of().run.clone(), kept.view);
                (kept.attendance.statements(), At::Kept { run, view })
            }
        }
    }

    /// Opens the roll of a job. What was heard about the same inputs before stays.
    pub(super) fn open(&self, job: PlanHash, kept: Option<&CheckpointedInputs>) {
        let mut attendances = self.lock();
        let known = attendances.remove(&job).flatten();
        let same = known
            .filter(|known| kept.is_some_and(|kept| kept.attendance.is_like(&known.attendance)));
        attendances.insert(job, same.or_else(|| kept.cloned()));
    }

    fn close(&self, job: PlanHash) {
        self.lock().remove(&job);
    }
}

/// The roll of a job is closed when this is dropped: no party is missing any more.
pub(super) struct Closes<'a>(pub(super) &'a ServiceState, pub(super) PlanHash);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        self.0.attendances.close(self.1);
    }
}

/// At which view of a job this party is, if it has kept the inputs.
pub(super) fn view(shared: &ServiceState, job: PlanHash) -> Option<u32> {
    shared.attendances.with(job, |kept| kept.view)
}

/// The turn, and the stage that runs there.
pub(super) fn now(shared: &ServiceState, prepared: &Prepared) -> Option<(u32, Stage)> {
    let known = |kept: &mut CheckpointedInputs| (kept.view, kept.attendance.out());
    let (view, out) = shared.attendances.with(prepared.plan.hash, known)?;
    Some((view, Stage::at_view(view, out)))
}

/// The run at this turn is given up: the next one follows. At which view this party is now.
pub(super) fn give_up(shared: &ServiceState, prepared: &Prepared, view: u32) -> u32 {
    advance(shared, prepared, view + 1).unwrap_or(VIEWS)
}

/// Comes to a view, unless it is past it.
fn advance(shared: &ServiceState, prepared: &Prepared, to: u32) -> Option<u32> {
    let job = prepared.plan.hash;
    let now = shared.attendances.with(job, |kept| {
        kept.view = kept.view.max(to.min(VIEWS));
        kept.view
    });
    write_down(shared, job);
    now
}

/// One of the others, as this party sees it.
struct Other<'a> {
    name: &'a str,
    party: PartyId,
    /// When it was last heard, and did not say that it lacks what this party has kept: a party alone is not believed that inputs are not
    /// kept, or that the job is done, and without them it is as good as lost.
    heard: Instant,
    /// Whether it said so since.
    lacks: bool,
    /// Where it is by its last answer.
    at: At,
}

/// Asks the other parties where they are.
pub(super) struct Watch<'a> {
    shared: &'a ServiceState,
    prepared: &'a Prepared,
    position: &'a Position<'a>,
    others: Vec<Other<'a>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        shared: &'a ServiceState,
        prepared: &'a Prepared,
        position: &'a Position<'a>,
    ) -> Self {
        let heard = Instant::now();
        let others = prepared.plan.job.parties.iter().zip(PartyId::FOUR);
        let others = others.filter(|(_, party)| *party != position.party);
        Watch {
            shared,
            prepared,
            position,
            others: others
                .map(|(name, party)| Other {
                    name,
                    party,
                    heard,
                    lacks: false,
                    at: At::Away,
                })
                .collect(),
        }
    }

    /// Asks until the meeting is over, or is to be: then it is halted.
    pub(super) fn until(mut self, over: &AtomicBool, halt: &AtomicBool) -> Option<Seen> {
        while !over.load(Ordering::Relaxed) {
            if let Some(seen) = self.look() {
                halt.store(true, Ordering::Relaxed);
                return Some(seen);
            }
            stages::nap(BETWEEN, over);
        }
        None
    }

    /// Waits while the others run without this party, and no longer than they have to turn up; `None` if nothing came of it.
    pub(super) fn rest(mut self, wait: Duration, stop: &AtomicBool) -> Option<Seen> {
        let mut alone = Instant::now();
        while !stop.load(Ordering::Relaxed) && alone.elapsed() < wait {
            let seen = self.look();
            if seen.is_some() {
                return seen;
            }
            let there = |other: &&Other<'_>| matches!(other.at, At::Kept { .. });
            if self.others.iter().filter(there).count() >= ENOUGH {
                alone = Instant::now();
            }
            stages::nap(BETWEEN, stop);
        }
        None
    }

    /// Asks once, and says who is missing.
    fn look(&mut self) -> Option<Seen> {
        let (shared, job) = (self.shared, self.prepared.plan.hash);
        let (said, own) = shared.attendances.hear(job, &[]);
        let request = Request::Attendance {
            plan: Event::plan(job),
            said,
        };
        let names = self.others.iter().map(|other| other.name);
        let (identity, members) = (shared.home.identity(), shared.home.members());
        let replies = ask_all(&identity, &members, names, &request, ANSWER);
        let mut all = Vec::new();
        for (other, reply) in self.others.iter_mut().zip(replies) {
            let (said, at) = match reply {
                Ok(Reply::Attendance { said, at }) => (said, at),
                // The party is there.
                Ok(_) => (Vec::new(), At::Away),
                Err(error) if error.is_answer() => (Vec::new(), At::Away),
                Err(_) => {
                    (other.at, other.lacks) = (At::Away, false);
                    continue;
                }
            };
            shared.attendances.hear(job, &said);
            other.take(&own, at.clone());
            all.push((said, at));
        }
        if own == At::Inputs {
            // A party that has lost inputs that the others have checkpointed thereby finds out that it is out.
            let (attendance, _) = agreed(&self.prepared.stages, &shared.home, &all)?;
            let me = Some(self.position.party);
            return me.filter(|_| attendance.out() == me).map(Seen::Out);
        }
        let count = |at: &dyn Fn(&Other<'_>) -> bool| self.others.iter().filter(|o| at(o)).count();
        if count(&|other| other.at == At::Done) >= ENOUGH {
            return Some(Seen::Over);
        }
        let patience = shared.engine().timeout;
        let silent = |other: &Other<'_>| other.heard.elapsed() >= patience;
        if count(&|other| silent(other) && other.lacks && other.at != At::Done) >= ENOUGH {
            return Some(Seen::Lost);
        }
        // A party that hears no other one is cut off itself, and says nothing about the others.
        if count(&silent) == 1
            && let Some(missing) = self.others.iter().find(|other| silent(other))
        {
            say(shared, job, missing);
        }
        self.out().or_else(|| self.at_later_view(&own))
    }

    /// Whether a party is out, so that another stage runs than the one that this party is at.
    fn out(&self) -> Option<Seen> {
        let (shared, job) = (self.shared, self.prepared.plan.hash);
        let known = |kept: &mut CheckpointedInputs| {
            let out = kept.attendance.out()?;
            Some((out, std::mem::replace(&mut kept.told, true)))
        };
        let (out, told) = shared.attendances.with(job, known).flatten()?;
        if !told && out != self.position.party {
            let name = self.prepared.stages.party(out);
            tracing::warn!(plan = %job, party = name, "it is out: all others miss it, and finish without it");
            shared.record(Event::PartyOut {
                plan: Event::plan(job),
                job: self.prepared.plan.job.name.clone(),
                party: name.to_owned(),
            });
        }
        if !told {
            write_down(shared, job);
        }
        let now = Stage::at_view(self.position.view?, Some(out));
        (self.position.stage != now).then_some(Seen::Out(out))
    }

    /// Whether the view is over: an honest party is at a later one, or one that is needed says that it is.
    fn at_later_view(&self, own: &At) -> Option<Seen> {
        let At::Kept { run: ours, view } = own else {
            return None;
        };
        let later = |other: &Other<'_>| match &other.at {
            At::Kept { run, view: theirs } if run == ours && theirs > view => Some(*theirs),
            _ => None,
        };
        let mut views: Vec<u32> = self.others.iter().filter_map(later).collect();
        views.sort_unstable_by(|a, b| b.cmp(a));
        let needed = |other: &Other<'_>| self.position.stage != Stage::Finish(other.party);
        // A party that is left out does not know whether the others need it: it follows them.
        let takes_part = !self.position.is_left_out();
        let leaves = |other: &Other<'_>| takes_part && needed(other) && later(other).is_some();
        let next = match views.get(ENOUGH - 1) {
            Some(honest) => *honest,
            None if self.others.iter().any(leaves) => view + 1,
            None => return None,
        };
        advance(self.shared, self.prepared, next);
        Some(Seen::LaterView)
    }
}

impl Other<'_> {
    /// Takes what it says of itself, where this party is at `own`.
    fn take(&mut self, own: &At, at: At) {
        let lacks = match (own, &at) {
            (At::Kept { run, .. }, At::Kept { run: theirs, .. }) => run != theirs,
            (At::Kept { .. }, At::Inputs | At::Done) => true,
            _ => false,
        };
        self.lacks = lacks;
        if !lacks {
            self.heard = Instant::now();
        }
        self.at = at;
    }
}

/// Says that a party is missing, unless that was said a while ago; again and again while it stays so.
fn say(shared: &ServiceState, job: PlanHash, missing: &Other<'_>) {
    let identity = shared.home.identity();
    let own = identity.fingerprint();
    let name = missing.name;
    let about = shared.attendances.with(job, |kept| {
        let key = kept.attendance.key(missing.party)?;
        let known =
            kept.attendance.out().is_some() || kept.attendance.says(&own, &key, TOGETHER / 2);
        (!known).then(|| (kept.attendance.of().clone(), key))
    });
    let Some((of, key)) = about.flatten() else {
        return;
    };
    let party = name;
    if missing.lacks {
        tracing::warn!(plan = %job, party, "it says that it does not keep the inputs: this party counts it as missing, and says so to the others");
    } else {
        tracing::warn!(plan = %job, party, "it does not answer: this party says so to the others");
    }
    match Missing::make(&identity, &of, &key) {
        Ok(statement) => drop(shared.attendances.hear(job, &[statement])),
        Err(error) => tracing::error!(%error, "a statement cannot be signed"),
    }
}

/// Writes down who is out and at which view the job is, so that this party knows it when it starts again.
fn write_down(shared: &ServiceState, job: PlanHash) {
    let note = shared.attendances.with(job, |kept| Note {
        run: kept.attendance.of().run.clone(),
        view: kept.view,
        said: kept.attendance.statements(),
    });
    let path = shared.home.note_file(job);
    if let Some(Err(error)) = note.map(|note| note.write(&path)) {
        tracing::error!(%error, "what is known of the kept inputs cannot be written down");
    }
}

/// Whether two other parties are needed, and not one, to say that a job is done: one of them may lie where that does not end the job anyway.
pub(super) const fn enough(guaranteed: bool) -> usize {
    if guaranteed { ENOUGH } else { 1 }
}
