//! The meeting of a job: with the members as they are, also when they change meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use veil_link::tls::Identity;
use veil_protocol::Plan;
use veil_session::Peer;

use super::Desk;
use super::door::Prepared;
use super::run::{At, Failed};
use crate::home::Home;
use crate::jobs::{Meeting, State};
use crate::participant::{Connections, Neighbours, Part};

/// By which keys a run is met.
pub(super) struct Here {
    pub(super) identity: Arc<Identity>,
    pub(super) neighbours: Neighbours,
}

impl Here {
    pub(super) fn part<'a>(
        &'a self,
        desk: &'a Desk,
        plan: &'a Arc<Plan>,
        me: Peer,
        stop: &'a AtomicBool,
    ) -> Part<'a> {
        Part {
            plan,
            me,
            identity: &self.identity,
            port: Some(desk.port()),
            neighbours: &self.neighbours,
            net: desk.options.net,
            stop,
        }
    }
}

/// Connects with everybody. Members that change meanwhile, or this party's own key, make it begin anew.
pub(super) fn meet(
    desk: &Desk,
    prepared: &Prepared,
    at: &At<'_>,
    stop: &AtomicBool,
) -> Result<(Here, Connections), Failed> {
    let (job, me, stage) = (prepared.plan.hash, at.me, at.stage);
    let wait = desk.options.wait;
    let until = Instant::now() + wait.unwrap_or(desk.home.settings().timeouts.meet);
    loop {
        let stages = prepared.stages.clone();
        let find = move |home: &Home| stages.neighbours(stage, me, &home.members());
        let neighbours = find(&desk.home).map_err(|error| Failed::Here(error.to_string()))?;
        let identity = desk.home.identity();
        let here = Here {
            identity,
            neighbours: neighbours.clone(),
        };
        let key = here.identity.fingerprint();
        let keys = neighbours.pins.values().copied().collect();
        let halt = Arc::new(AtomicBool::new(false));
        let stale = Box::new(move |home: &Home| {
            home.identity().fingerprint() != key || find(home).as_ref() != Ok(&neighbours)
        });
        let meeting = Meeting {
            halt: Arc::clone(&halt),
            stale,
        };
        desk.jobs.meets(job, keys, meeting);
        let part = here.part(desk, prepared.stages.plan(stage), me, &halt);
        let met = part.meet(until.saturating_duration_since(Instant::now()));
        if met.is_ok() {
            desk.jobs.set(job, State::Queued, None);
        }
        if halt.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
            tracing::info!("a member or a key changed: the participants are met anew");
            if met.is_ok() {
                desk.jobs.set(job, State::Meeting, None);
            }
            continue;
        }
        return Ok((here, met.map_err(|error| Failed::Run(error.into()))?));
    }
}
