//! The end of a making that is over before all of its cells are there: both parties keep the cells that have passed at both.
//!
//! One party asks, and says how many cells from the first on have passed there; the other one writes the smaller of the two numbers, says it, and then the one
//! that has asked writes it too. If the answer is lost, the cells of the one that answered have no other half: the next refill burns them.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use veil_link::tls::{Fingerprint, Identity};
use veil_session::PlanHash;
use veil_store::stock::NewStock;

use crate::control::{self, Reply, Request};
use crate::log::Event;
use crate::members::Member;

/// To a party that asks for the end of a making that is not over here.
const STILL_MAKING: &str = "the making goes on here";

/// To a party that asks for the end of a making that is none of its own, or of which nothing can be kept.
const NO_MAKING: &str = "there is no such making here";

/// How long the other party has for the end of its run.
const WITHIN: Duration = Duration::from_secs(10);

/// Between two questions.
const AGAIN: Duration = Duration::from_millis(200);

/// A making at the party that is asked for its end.
#[derive(Default)]
pub struct Making(Mutex<Option<UnderWay>>);

struct UnderWay {
    plan: PlanHash,
    by: Fingerprint,
    /// Set when the run has ended.
    ended: Option<Arc<NewStock>>,
    /// What was kept.
    kept: Option<u64>,
}

impl Making {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<UnderWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run of this plan, with the holder of this key, is under way.
    pub fn begins(&self, plan: PlanHash, by: Fingerprint) {
        *self.lock() = Some(UnderWay {
            plan,
            by,
            ended: None,
            kept: None,
        });
    }

    /// The run has ended early: waits until the other party asks, and says how many cells are kept.
    pub fn ends(&self, made: &Arc<NewStock>) -> u64 {
        if let Some(under_way) = &mut *self.lock() {
            under_way.ended = Some(Arc::clone(made));
        }
        let until = Instant::now() + WITHIN;
        while Instant::now() < until {
            // An answer that was lost is given again until the next making begins.
            if let Some(kept) = self.lock().as_ref().and_then(|of| of.kept) {
                return kept;
            }
            thread::sleep(AGAIN / 4);
        }
        self.lock().take().and_then(|of| of.kept).unwrap_or(0)
    }

    /// The run has come to its end, or there is nothing to keep.
    pub fn is_over(&self) {
        self.lock().take();
    }

    /// Answers the other party, whose key is `by`, of whose cells so many have passed.
    pub fn answer(&self, plan: &str, cells: u64, by: Fingerprint) -> Reply {
        let refused = |why: &str| Reply::Refused { why: why.into() };
        let mut of = self.lock();
        let Some(under_way) = of
            .as_mut()
            .filter(|of| of.by == by && Event::plan(of.plan) == plan)
        else {
            return refused(NO_MAKING);
        };
        if let Some(cells) = under_way.kept {
            return Reply::Kept { cells };
        }
        let Some(made) = &under_way.ended else {
            return refused(STILL_MAKING);
        };
        let cells = cells.min(made.passed());
        if cells > 0
            && let Err(error) = made.keep(cells)
        {
            tracing::error!(%error, "what was made of the stock cannot be kept");
            return refused(NO_MAKING);
        }
        under_way.kept = Some(cells);
        Reply::Kept { cells }
    }
}

/// Asks the other party of a making that has ended early how many cells both keep, and keeps them. How many.
///
/// # Errors
/// Why nothing is kept, in a sentence.
pub fn agree(
    identity: &Identity,
    member: &Member,
    plan: PlanHash,
    made: &NewStock,
) -> Result<u64, String> {
    let passed = made.passed();
    let request = Request::Keep {
        plan: Event::plan(plan),
        cells: passed,
    };
    let until = Instant::now() + WITHIN;
    loop {
        let name = &member.name;
        match control::ask(identity, member, &request, until) {
            Ok(Reply::Kept { cells }) if cells > passed => {
                return Err(format!("`{name}` keeps cells that have not passed here"));
            }
            Ok(Reply::Kept { cells: 0 }) => return Ok(0),
            Ok(Reply::Kept { cells }) => {
                let kept = made.keep(cells);
                return kept.map(|()| cells).map_err(|error| error.to_string());
            }
            Ok(Reply::Refused { why }) if why == STILL_MAKING && Instant::now() < until => {
                thread::sleep(AGAIN);
            }
            Ok(Reply::Refused { why }) => return Err(format!("`{name}` keeps nothing: {why}")),
            Ok(_) => return Err(format!("`{name}` gave an answer that makes no sense")),
            Err(error) => return Err(error.to_string()),
        }
    }
}
