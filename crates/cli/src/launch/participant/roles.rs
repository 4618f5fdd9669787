//! One stage in each role that a participant has in it, all at once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use veil_engine::{Abort, Recorder, Report, Room, Settings};
use veil_link::tls::{Around, SetupError};
use veil_node::log::Event;
use veil_node::meeting::HeldFor;
use veil_node::stages::Ends;
use veil_node::{Binding, Receipt, Time, receipt};
use veil_program::{Output, Sources};
use veil_runtime::{Disagreement, Stage};
use veil_runtime::{Neighbours, Part, RunError};
use veil_session::Peer;

use super::lobby::Lobby;
use super::{At, Engagement};
use crate::failure::{Code, Failure};
use crate::{prepare, stocks};

/// What a participant brings to one stage as one of its roles, ready to connect.
pub(super) struct Role {
    pub(super) me: Peer,
    pub(super) neighbours: Neighbours,
    pub(super) sources: Sources,
    /// The data files behind it, as they were read.
    pub(super) read: Vec<Binding>,
    pub(super) sink: Option<Arc<Output>>,
    pub(super) shares: Ends,
    /// What its columns may take in memory.
    pub(super) room: Option<Room>,
}

/// Why a stage did not come to its end.
pub(super) enum Stopped {
    /// Parties are at the other stage.
    Disagree(Disagreement),
    /// A party, which may lie, lets no meeting come about: others may be at another stage.
    Unmet(Failure),
    /// The run may be tried again.
    Interrupted(Failure),
    Failed(Failure),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Stopped::Failed(failure)
    }
}

/// Runs every role in a thread of its own. The first failure ends the others; `halt` ends the meeting.
pub(super) fn all(
    engagement: &Engagement<'_>,
    at: At<'_>,
    roles: &[Role],
    lobby: &Lobby<'_>,
    began: &Mutex<bool>,
    halt: &AtomicBool,
) -> Result<Vec<Report>, Stopped> {
    let over = AtomicBool::new(false);
    let first = Mutex::new(None);
    let run = |role| {
        let fail = |stopped| {
            // A disagreement or an interruption is no end: roles that wait for the same parties find it out themselves.
            let failed = matches!(stopped, Stopped::Failed(_));
            first
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(stopped);
            if failed {
                engagement.stop.flag().store(true, Ordering::Relaxed);
            }
        };
        one(engagement, at, role, lobby, began, halt)
            .map_err(fail)
            .ok()
    };
    let reports: Vec<Option<Report>> = thread::scope(|scope| {
        scope.spawn(|| lobby.watch(&over));
        let threads: Vec<_> = roles.iter().map(|role| scope.spawn(|| run(role))).collect();
        let ended: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        ended
            .into_iter()
            .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(stopped) => Err(stopped),
        None => Ok(reports.into_iter().flatten().collect()),
    }
}

/// How long a party that is called by itself has to say at which stage it is.
const ANSWER: Duration = Duration::from_secs(2);

/// Which of the parties, in their order, say that they are past the stage for which `role` comes. Each is called by itself: in a meeting
/// the first that says so ends it.
pub(super) fn past(engagement: &Engagement<'_>, at: At<'_>, role: &Role) -> Vec<bool> {
    let alone = |(peer, address): &(Peer, String)| {
        let neighbours = Neighbours {
            dial: vec![(*peer, address.clone())],
            from: Vec::new(),
            ..role.neighbours.clone()
        };
        let part = Part {
            plan: at.plan,
            me: role.me,
            identity: at.identity,
            port: None,
            neighbours: &neighbours,
            link: engagement.link,
            net: None,
            stop: engagement.stop.flag(),
        };
        let met = part.meet(ANSWER);
        met.is_err_and(|error| at.stages.disagree(at.stage, &error).is_some())
    };
    let mut past = vec![false; at.plan.parties().len()];
    thread::scope(|scope| {
        let called = role.neighbours.dial.iter();
        let called: Vec<_> = called
            .map(|dial| (dial.0, scope.spawn(move || alone(dial))))
            .collect();
        for (peer, said) in called {
            let said = said
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Some(past) = peer.party().and_then(|party| past.get_mut(party.index())) {
                *past = said;
            }
        }
    });
    past
}

fn one(
    engagement: &Engagement<'_>,
    at: At<'_>,
    role: &Role,
    lobby: &Lobby<'_>,
    began: &Mutex<bool>,
    halt: &AtomicBool,
) -> Result<Report, Stopped> {
    let (plan, stop) = (at.plan, engagement.stop);
    let part = Part {
        plan,
        me: role.me,
        identity: at.identity,
        port: at.port,
        neighbours: &role.neighbours,
        link: engagement.link,
        net: engagement.net,
        stop: stop.flag(),
    };
    let meeting = Part { stop: halt, ..part };
    let unmet = |error: SetupError| {
        if stop.asked() {
            return Stopped::Failed(Failure::stopped());
        }
        match at.stages.disagree(at.stage, &error) {
            Some(other) => Stopped::Disagree(other),
            None if at.stages.goes_on(at.stage) && !error.is_ours() => {
                Stopped::Unmet(lobby.failure(&error))
            }
            // Parties that have kept the inputs await no owner.
            None if matches!(
                error,
                SetupError::TimedOut { .. } | SetupError::Stopped { .. }
            ) && matches!((at.stage, role.me), (Stage::Input, Peer::Owner(_))) =>
            {
                Stopped::Unmet(lobby.failure(&error))
            }
            None => Stopped::Failed(lobby.failure(&error)),
        }
    };
    let until = Instant::now() + engagement.wait;
    let around = Around {
        moved: &|_| None,
        missing: &|peers| lobby.misses(role.me, peers),
    };
    let connections = meeting.meet_at(engagement.wait, &around).map_err(unmet)?;
    lobby.misses(role.me, &[]);
    {
        // Once for all roles: it is one run.
        let mut began = began.lock().unwrap_or_else(PoisonError::into_inner);
        if !*began {
            engagement.consent(at.stages, Some(at))?;
            *began = true;
        }
    }
    let noted = engagement.home.note_read(engagement.plan, &role.read);
    noted.map_err(Failure::from)?;
    (engagement.say)(&format!("connected as {}", prepare::role(role.me)));
    let settings = Settings {
        timeout: engagement.timeout,
        // Those who are there may still wait for others. Parties of a durable job find out in the next attempt.
        meeting: (role.me.party().is_none() || at.stage == Stage::Whole).then_some(until),
        device: engagement.devices.factory(plan, role.me, None),
        room: role.room.clone(),
        // What is written down is the stage that computes.
        trace: engagement
            .trace
            .filter(|_| at.stage != Stage::Input)
            .map(|trace| Arc::clone(trace) as Arc<dyn Recorder>),
        ..Settings::default()
    };
    let sink = role.sink.as_ref();
    let opened = sink.map(Output::sinks).unwrap_or_default().into_iter();
    let sizes = role.shares.sizes.iter().cloned();
    let data = plan.data(veil_runtime::Ends {
        sources: role.sources.clone(),
        sinks: opened.chain(sizes).collect(),
        stored: role.shares.stored.clone(),
        keeps: role.shares.keeps.clone(),
    });
    let data = stocks::with(data, (engagement.home, plan), role.me, &role.neighbours)?;
    let ran = part.run(connections, &settings, data, &|link| link, &|progress| {
        if progress.may_have_opened {
            engagement.opened.store(true, Ordering::Relaxed);
        }
        (engagement.progress)(lobby.goes(progress));
    });
    ran.map_err(|abort| {
        let abort = match RunError::from(abort) {
            RunError::Setup(error) => return unmet(error),
            RunError::Abort(abort) => abort,
        };
        if matches!(&abort, Abort::Data(error) if error.is_own()) {
            engagement.held(HeldFor::Data);
        }
        let failure = Failure::abort(plan, role.me, &abort);
        let failure = lobby.meanwhile(role.me, failure);
        if stop.asked() {
            Stopped::Failed(Failure::stopped())
        } else if engagement.again && at.stages.may_repeat(at.stage, &abort) {
            Stopped::Interrupted(failure)
        } else {
            Stopped::Failed(failure)
        }
    })
}

/// Puts the receipt beside a result, and says in the log that it is there.
pub(super) fn write_receipt(
    engagement: &Engagement<'_>,
    at: At<'_>,
    role: &Role,
    report: &Report,
    started: Time,
) -> Result<(), Failure> {
    let (plan, out) = (at.plan, engagement.out);
    let keys = |peer: Peer| match role.neighbours.pins.get(&peer) {
        Some(pin) => Some(*pin),
        None => (peer == role.me).then(|| at.identity.fingerprint()),
    };
    let protocol = plan.protocol(role.me);
    let names: Vec<PathBuf> = prepare::results(engagement.job, role.me)
        .into_iter()
        .filter(|name| out.join(name).is_file())
        .collect();
    let trace = Some(report.trace.to_string());
    let receipt = Receipt::new(plan, &*protocol, role.me, &keys, false, started);
    let receipt = receipt.finished(at.stages.finished(at.stage));
    receipt.write(out, &names, trace.clone()).map_err(|error| {
        let message = format!(
            "the result is there, and its {} is not: {error}",
            receipt::NAME
        );
        Failure::new(Code::Other, message)
    })?;
    engagement.home.log().append(Event::ResultPublished {
        plan: Event::plan(engagement.plan.hash),
        job: engagement.plan.job.name.clone(),
        trace,
        files: names.len() as u64,
    })?;
    Ok(())
}
