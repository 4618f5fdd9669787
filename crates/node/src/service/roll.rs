//! Who of the parties is there, asked while a job of guaranteed output waits for all four of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use veil_link::tls::Fingerprint;
use veil_session::{PartyId, PlanHash};

use super::Desk;
use super::door::Prepared;
use crate::control::{self, CallError, Reply, Request};
use crate::log::Event;
use crate::roll::{FRESH, Missing, Roll};
use crate::stages::{self, Stage};

/// How often the others are asked.
const BETWEEN: Duration = Duration::from_millis(500);

/// How long each of them has to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// What is known about the parties of jobs whose output is guaranteed.
#[derive(Default)]
pub(super) struct Rolls(Mutex<BTreeMap<PlanHash, Known>>);

/// What is known about one job.
struct Known {
    /// The plan of the stage that all four run.
    plan: PlanHash,
    /// The keys of the parties.
    keys: Vec<Fingerprint>,
    roll: Roll,
}

impl Rolls {
    fn with<T>(&self, job: PlanHash, with: impl FnOnce(&mut Known) -> T) -> Option<T> {
        let mut rolls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rolls.get_mut(&job).map(with)
    }

    /// Takes what is said about a job, and gives all that is known.
    pub(super) fn hear(&self, job: PlanHash, said: &[Missing]) -> Vec<Missing> {
        let known = self.with(job, |known| {
            known.roll.hear(said, known.plan, &known.keys, FRESH);
            known.roll.statements().to_vec()
        });
        known.unwrap_or_default()
    }

    fn out(&self, job: PlanHash) -> Option<PartyId> {
        self.with(job, |known| known.roll.out(known.plan, &known.keys, FRESH))
            .flatten()
    }

    /// Nobody is missing any more: the job is over.
    pub(super) fn close(&self, job: PlanHash) {
        let mut rolls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rolls.remove(&job);
    }
}

/// Opens the roll of a job, with what was written down before.
pub(super) fn open(desk: &Desk, prepared: &Prepared) {
    if !prepared.stages.are_guaranteed() {
        return;
    }
    let Some(keys) = prepared.stages.party_keys(&desk.home) else {
        return;
    };
    let (job, plan) = (
        prepared.plan.hash,
        prepared.stages.plan(Stage::Compute).hash,
    );
    let mut rolls = desk.rolls.0.lock().unwrap_or_else(PoisonError::into_inner);
    let roll = rolls.remove(&job).map(|known| known.roll);
    let roll = roll.unwrap_or_else(|| {
        let mut roll = Roll::default();
        let written = Roll::read(&desk.home.roll_file(job));
        roll.hear(&written, plan, &keys, i64::MAX);
        roll
    });
    rolls.insert(job, Known { plan, keys, roll });
}

/// Asks the other parties whether they are there, until the meeting is over. If one has not been heard for as long as a run may stall, and
/// the others have found the same, it is out: the meeting is halted.
pub(super) fn watch(
    desk: &Desk,
    prepared: &Prepared,
    over: &AtomicBool,
    halt: &AtomicBool,
) -> Option<PartyId> {
    let job = prepared.plan.hash;
    let patience = desk.engine().timeout;
    let own = desk.home.settings().name.clone();
    let start = Instant::now();
    let others = prepared.plan.job.parties.iter().zip(PartyId::FOUR);
    let mut others: Vec<_> = others
        .filter(|(name, _)| **name != own)
        .map(|(name, party)| (name, party, start))
        .collect();
    while !over.load(Ordering::Relaxed) {
        let request = Request::Roll {
            plan: Event::plan(job),
            said: desk.rolls.hear(job, &[]),
        };
        let replies = ask(
            desk,
            others.iter().map(|(name, ..)| name.as_str()),
            &request,
        );
        for ((_, _, heard), reply) in others.iter_mut().zip(replies) {
            let Some(said) = reply else { continue };
            *heard = Instant::now();
            desk.rolls.hear(job, &said);
        }
        let mut silent = others.iter().filter(|other| other.2.elapsed() >= patience);
        // Who hears nobody is cut off itself, and says nothing about the others.
        if let (Some((name, party, _)), None) = (silent.next(), silent.next()) {
            say(desk, job, *party, name);
        }
        if let Some(out) = desk.rolls.out(job) {
            let name = prepared.stages.party(out);
            if *name != *own {
                write_down(desk, prepared, name);
            }
            halt.store(true, Ordering::Relaxed);
            return Some(out);
        }
        stages::nap(BETWEEN, over);
    }
    None
}

/// What each of the others says; nothing of who does not answer.
fn ask<'a>(
    desk: &Desk,
    others: impl Iterator<Item = &'a str>,
    request: &Request,
) -> Vec<Option<Vec<Missing>>> {
    let (identity, members) = (desk.home.identity(), desk.home.members());
    thread::scope(|scope| {
        let one = |name: &'a str| {
            let member = members.by_name(name).cloned();
            let identity = &identity;
            scope.spawn(move || {
                let until = Instant::now() + ANSWER;
                match control::ask(identity, &member?, request, until) {
                    Ok(Reply::Roll { said }) => Some(said),
                    // Somebody is there.
                    Ok(_) | Err(CallError::Reply { .. }) => Some(Vec::new()),
                    Err(_) => None,
                }
            })
        };
        let asked: Vec<_> = others.map(one).collect();
        let replies = asked.into_iter().map(|asked| asked.join().ok().flatten());
        replies.collect()
    })
}

/// Says that a party is missing, unless that was said a while ago and is still fresh.
fn say(desk: &Desk, job: PlanHash, party: PartyId, name: &str) {
    let identity = desk.home.identity();
    let own = identity.fingerprint();
    let about = desk.rolls.with(job, |known| {
        let said = known
            .roll
            .says(&own, &known.keys[party.index()], known.plan, FRESH / 2);
        (known.plan, known.keys[party.index()], said)
    });
    let Some((plan, missing, false)) = about else {
        return;
    };
    tracing::warn!(plan = %job, party = name, "it does not answer: this party says so to the others");
    match Missing::make(&identity, plan, &missing) {
        Ok(statement) => drop(desk.rolls.hear(job, &[statement])),
        Err(error) => tracing::error!(%error, "a statement cannot be signed"),
    }
}

/// Writes down who is out, so that this party knows it when it starts again.
fn write_down(desk: &Desk, prepared: &Prepared, out: &str) {
    let job = prepared.plan.hash;
    tracing::warn!(plan = %job, party = out, "it is out: all others miss it, and finish without it");
    let path = desk.home.roll_file(job);
    let written = desk.rolls.with(job, |known| known.roll.write(&path));
    if let Some(Err(error)) = written {
        tracing::error!(%error, "who is out cannot be written down");
    }
    desk.record(Event::PartyOut {
        plan: Event::plan(job),
        job: prepared.plan.job.name.clone(),
        party: out.to_owned(),
    });
}
