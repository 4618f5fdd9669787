//! Answers of a durable job's parties about its inputs, to an owner that asks whether it is needed.

use veil_runtime::{Stage, Stages};

use super::views::{ANSWER, ENOUGH, ask_all};
use crate::Home;
use crate::control::{Reply, Request};
use crate::home::hex;
use crate::jobs::State;

/// A party's answer about the inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    /// It does not answer; parties in the foreground answer no questions.
    Nothing,
    /// It is not at the job, or has given it up.
    Away,
    /// It waits for the inputs, or is about to take them.
    Wanted,
    /// It has kept them.
    Kept,
    /// It is done with the job, and knows nothing of a run that follows.
    Done,
}

/// The parties' latest answers, to an owner that asks again and again.
///
/// Of so many parties as `ENOUGH` one at least is honest, so no single corrupt party makes an owner leave whose values the others still
/// want, whether they contradict it or are silent. A party that is done may be so since a former run: it is believed to be done with what
/// the owner came for if enough of the parties were at the job since.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inputs {
    /// The last answer of each party.
    said: Vec<Said>,
    /// Whether it was at the job since the owner came.
    seen: Vec<bool>,
}

impl Inputs {
    /// Takes note of what all parties say now, in their order.
    pub fn hear(&mut self, said: Vec<Said>) {
        self.seen.resize(said.len(), false);
        for (seen, said) in self.seen.iter_mut().zip(&said) {
            *seen |= matches!(said, Said::Wanted | Said::Kept);
        }
        self.said = said;
    }

    /// Whether a party that is done was at the job since the owner came.
    fn is_recent(&self) -> bool {
        let seen = self.seen.iter().filter(|seen| **seen).count();
        seen >= ENOUGH.min(self.seen.len())
    }

    /// Whether all parties have kept them, or have had them since the owner came: no party asks for them again.
    pub fn are_kept(&self) -> bool {
        let over = |said: &Said| matches!(said, Said::Kept | Said::Done);
        !self.said.is_empty() && self.said.iter().all(over) && self.is_recent()
    }

    /// Whether no party says that it wants them or is not at the job, and enough of them that they have kept them, or have had them since
    /// the owner came. Of the parties that do not answer, `past` marks the ones that were called, each by itself, and take only callers for
    /// a later stage.
    pub fn are_wanted_by_no_party(&self, past: &[bool]) -> bool {
        let over = self
            .said
            .iter()
            .enumerate()
            .map(|(party, said)| match said {
                Said::Nothing => Some(past.get(party) == Some(&true)),
                Said::Kept => Some(true),
                Said::Done => self.is_recent().then_some(true),
                Said::Away | Said::Wanted => None,
            });
        let over: Option<Vec<bool>> = over.collect();
        over.is_some_and(|over| {
            let say_so = over.iter().filter(|over| **over).count();
            say_so >= ENOUGH.min(over.len()) && say_so > 0
        })
    }
}

/// Asks all parties of a durable job.
pub fn inputs(home: &Home, stages: &Stages) -> Vec<Said> {
    let (identity, members) = (home.identity(), home.members());
    let parties = &stages.plan(Stage::Whole).job.parties;
    let names = parties.iter().map(String::as_str);
    let plan = hex(&stages.whole().hash.0);
    let replies = ask_all(&identity, &members, names, &Request::Jobs {}, ANSWER).into_iter();
    let said = replies.map(|reply| {
        let Ok(Reply::Jobs { jobs }) = reply else {
            return Said::Nothing;
        };
        let Some(job) = jobs.into_iter().find(|job| job.plan == plan) else {
            return Said::Away;
        };
        match (job.state, job.kept) {
            (State::Done, _) => Said::Done,
            // A party that has still to approve it will need them.
            (State::Pending, _) => Said::Wanted,
            (state, Some(true)) if state.active() => Said::Kept,
            (state, _) if state.active() => Said::Wanted,
            _ => Said::Away,
        }
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::Said::{Away, Done, Kept, Nothing, Wanted};
    use super::*;

    /// Whether the inputs are checkpointed, and wanted by no party, after these answers.
    fn after(answers: &[&[Said]]) -> (bool, bool) {
        let inputs = heard(answers);
        (inputs.are_kept(), inputs.are_wanted_by_no_party(&[]))
    }

    fn heard(answers: &[&[Said]]) -> Inputs {
        let mut inputs = Inputs::default();
        for said in answers {
            inputs.hear(said.to_vec());
        }
        inputs
    }

    #[test]
    fn all_parties_have_to_say_that_the_inputs_are_kept() {
        assert_eq!(after(&[]), (false, false));
        for (said, expected) in [
            ([Nothing, Nothing, Nothing], (false, false)),
            ([Nothing, Kept, Kept], (false, true)),
            ([Nothing, Kept, Away], (false, false)),
            ([Wanted, Kept, Kept], (false, false)),
            ([Wanted, Nothing, Nothing], (false, false)),
            ([Wanted, Wanted, Wanted], (false, false)),
            ([Kept, Kept, Kept], (true, true)),
            ([Kept, Kept, Done], (true, true)),
            ([Done, Done, Done], (false, false)),
        ] {
            assert_eq!(after(&[&said]), expected, "{said:?}");
        }
        // Of two parties each may lie.
        assert_eq!(after(&[&[Kept, Done]]), (false, false));
        assert_eq!(after(&[&[Kept, Kept], &[Done, Done]]), (true, true));
    }

    #[test]
    fn one_party_that_lies_dismisses_no_owner_of_a_job_that_others_have_done_before() {
        for lie in [Kept, Done, Wanted, Nothing] {
            for before in [Done, Away] {
                let said = [lie, before, before];
                assert_eq!(after(&[&said, &said]), (false, false), "{said:?}");
                // It says that it was at the job before it is done.
                let said = [&[Kept, before, before], &said];
                assert_eq!(after(&said.map(<[_; 3]>::as_slice)), (false, false));
            }
        }
        // Those who were at the job are done with what the owner came for.
        let seen: [&[Said]; 2] = [&[Nothing, Kept, Wanted], &[Done, Done, Done]];
        assert_eq!(after(&seen), (true, true));
        assert_eq!(after(&[seen[0], &[Nothing, Done, Done]]), (false, true));
    }

    #[test]
    fn one_party_that_lies_dismisses_no_owner_while_the_others_are_silent() {
        for lie in [Kept, Done, Nothing] {
            for silent in 1..=3 {
                let mut said = vec![Nothing; 1 + silent];
                said[0] = lie;
                let mut past = vec![false; 1 + silent];
                past[0] = true;
                let inputs = heard(&[&vec![Kept; 1 + silent], &said]);
                assert!(!inputs.are_wanted_by_no_party(&past), "{said:?}");
                // A second one, whichever way it says so.
                past[1] = true;
                assert!(inputs.are_wanted_by_no_party(&past), "{said:?}");
                said[1] = Kept;
                let inputs = heard(&[&vec![Kept; 1 + silent], &said]);
                assert_eq!(inputs.are_wanted_by_no_party(&[]), lie != Nothing);
                // One that answers goes by what it answers.
                said[1] = Wanted;
                assert!(!heard(&[&said]).are_wanted_by_no_party(&[true; 4]));
            }
        }
    }
}
