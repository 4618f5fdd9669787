//! What the parties of a durable job say of its inputs, to an owner that asks whether it is needed.

use super::turns::{ANSWER, ask_all};
use super::{Stage, Stages};
use crate::Home;
use crate::control::{Reply, Request};
use crate::home::hex;
use crate::jobs::State;

/// How many of the parties say what. Whoever does not answer, or is not at the job, says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inputs {
    /// All of them.
    parties: usize,
    /// They wait for the inputs, or are about to take them.
    wanted: usize,
    /// They have kept them.
    kept: usize,
    /// They are done with the job, and know nothing of a run that follows.
    done: usize,
}

impl Inputs {
    /// Whether the job is under way at one party at least.
    pub const fn is_under_way(&self) -> bool {
        self.wanted + self.kept > 0
    }

    /// Whether all parties have kept them, or have had them: nobody asks their owners again. No single party makes this true.
    pub const fn are_kept(&self) -> bool {
        self.parties > 0 && self.kept + self.done == self.parties
    }

    /// Whether a party asks for them.
    pub const fn are_wanted(&self) -> bool {
        self.wanted > 0
    }
}

/// Asks all parties of a durable job.
pub fn inputs(home: &Home, stages: &Stages) -> Inputs {
    let (identity, members) = (home.identity(), home.members());
    let parties = &stages.plan(Stage::Whole).job.parties;
    let names = parties.iter().map(String::as_str);
    let plan = hex(&stages.whole.hash.0);
    let mut inputs = Inputs {
        parties: parties.len(),
        ..Inputs::default()
    };
    for reply in ask_all(&identity, &members, names, &Request::Jobs {}, ANSWER) {
        let Ok(Reply::Jobs { jobs }) = reply else {
            continue;
        };
        let Some(job) = jobs.into_iter().find(|job| job.plan == plan) else {
            continue;
        };
        match (job.state, job.kept) {
            (State::Done, _) => inputs.done += 1,
            // Whoever has still to approve it will need them.
            (State::Pending, _) => inputs.wanted += 1,
            (state, Some(true)) if state.active() => inputs.kept += 1,
            (state, _) if state.active() => inputs.wanted += 1,
            _ => {}
        }
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parties_have_to_say_that_the_inputs_are_kept() {
        let of = |wanted, kept, done| Inputs {
            parties: 3,
            wanted,
            kept,
            done,
        };
        for (inputs, under_way, kept, wanted) in [
            (Inputs::default(), false, false, false),
            (of(0, 0, 0), false, false, false),
            (of(0, 2, 0), true, false, false),
            (of(1, 2, 0), true, false, true),
            (of(3, 0, 0), true, false, true),
            (of(0, 3, 0), true, true, false),
            (of(0, 1, 2), true, true, false),
            (of(0, 0, 3), false, true, false),
        ] {
            assert_eq!(inputs.is_under_way(), under_way, "{inputs:?}");
            assert_eq!(inputs.are_kept(), kept, "{inputs:?}");
            assert_eq!(inputs.are_wanted(), wanted, "{inputs:?}");
        }
    }
}
