//! In which order the garbler of a job garbles, where the job does not say so: it states that, and the others ask.
//!
//! The order is public, and under the plan hash. A statement only says which of a few plans to make: participants who were told different
//! orders, or whom the garbler told another order than its own, have different plans, and refuse each other when they meet. A garbler that
//! gives no answer has nothing to state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use veil_job::{Schedule, Word};
use veil_link::tls::{ControlError, Handler, Identity};
use veil_session::PlanHash;

use crate::control::{self, CallError, Reply, Request};
use crate::home::hex;
use crate::members::Member;
use crate::stages::nap;

/// A garbler is called again so often while it is not there, or does not answer: a caller that waits looks whether to stop.
const LOOK: Duration = Duration::from_millis(500);

/// Between two calls.
const PAUSE: Duration = Duration::from_millis(50);

/// A garbler that is there has so long to answer, whatever else its machine has to do.
const ANSWER: Duration = Duration::from_secs(5);

/// A garbler states an order that does not exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{name}` states that it garbles in the order {said:?}, and there is none of this name: run the same release on both sides"
)]
pub struct NoOrder {
    /// Who.
    pub name: String,
    /// Its statement, as far as it may be shown.
    pub said: String,
}

/// Answers in which order the job is garbled whose plan is `plan` as it is written.
pub fn statement(plan: PlanHash, schedule: Option<Schedule>) -> Handler {
    let own = hex(&plan.0);
    Arc::new(move |_, request| {
        let reply = match control::decode(request) {
            Ok(Request::Schedule { plan }) if plan == own => Reply::Schedule {
                schedule: schedule.map(|schedule| schedule.word().to_owned()),
            },
            Ok(Request::Schedule { .. }) => Reply::Refused {
                why: format!("it waits for the participants of plan {own}"),
            },
            Ok(_) => Reply::Refused {
                why: "it serves a single job, not `veil serve`".into(),
            },
            Err(error) => Reply::Refused {
                why: format!("the request was not understood: {error}"),
            },
        };
        control::encode(&reply)
    })
}

/// The answer of a garbler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// It states this order, or none: the meeting finds out whether it answered truthfully.
    States(Option<Schedule>),
    /// It was not there in time, for this reason.
    Missing(String),
}

/// Asks the garbler in which order it garbles the job whose plan is `plan` as it is written. It has until `until` to be there, unless
/// `stop` comes first.
///
/// # Errors
/// [`NoOrder`] if the garbler states an order that this release does not know. A garbler that cannot be asked is no error, but
/// [`Heard::Missing`].
pub fn ask(
    identity: &Identity,
    garbler: &Member,
    plan: PlanHash,
    until: Instant,
    stop: &AtomicBool,
) -> Result<Heard, NoOrder> {
    let request = Request::Schedule { plan: hex(&plan.0) };
    loop {
        let within = LOOK.min(until.saturating_duration_since(Instant::now()));
        let there = (Instant::now() + within, ANSWER);
        match control::ask_slow(identity, garbler, &request, there) {
            Ok(Reply::Schedule { schedule }) => {
                return stated(garbler, schedule).map(Heard::States);
            }
            Err(error) if may_come(&error) => {
                if Instant::now() >= until || stop.load(Ordering::Relaxed) {
                    return Ok(Heard::Missing(error.to_string()));
                }
                nap(PAUSE, stop);
            }
            Ok(_) | Err(_) => return Ok(Heard::States(None)),
        }
    }
}

/// Whether it may answer later.
fn may_come(error: &CallError) -> bool {
    use ControlError::{Busy, Unreachable};
    matches!(error, CallError::Call { error, .. } if matches!(error, Busy { .. } | Unreachable { .. }))
}

fn stated(garbler: &Member, schedule: Option<String>) -> Result<Option<Schedule>, NoOrder> {
    let Some(said) = schedule else {
        return Ok(None);
    };
    let known = Schedule::parse(&said).map(Some);
    known.map_err(|_| NoOrder {
        name: garbler.name.clone(),
        said: said.chars().take(LONGEST_SHOWN).collect(),
    })
}

/// Characters of a statement that are shown, at most.
const LONGEST_SHOWN: usize = 32;
