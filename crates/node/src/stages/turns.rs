//! Which of its plans a job whose output is guaranteed runs next, and how the parties tell each other.
//!
//! A *turn* is a run on the kept inputs, with a plan that follows from its number alone. A run that fails is the end of its turn, and the
//! next one follows: first all four parties, then the four plans without one of them. These are secure against a malicious party, so a turn
//! without the malicious party gives the result, and every other turn at worst fails. No party has to know which one it was. A party that
//! all others find missing is left out at once, and in every other turn: should it be missing by the doing of a malicious party, that one
//! is left out in the turns between.

use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use veil_link::tls::Identity;
use veil_runtime::{Stage, Stages};

use super::party_keys;
use crate::control::{self, CallError, Reply, Request};
use crate::home::hex;
use crate::roll::{Checkpoint, Missing, Roll};
use crate::{Home, Members};

/// How long each of the parties has to say where it is.
pub(crate) const ANSWER: Duration = Duration::from_secs(2);

/// Of so many parties, one at least is honest.
pub(crate) const ENOUGH: usize = 2;

/// Where a party is in a job whose output is guaranteed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// It is there, and not at the job.
    #[default]
    Away,
    /// It waits for the inputs.
    Inputs,
    /// It has kept the inputs.
    Kept {
        /// In which run.
        run: String,
        /// At which turn it is.
        turn: u32,
    },
    /// It is done with the job.
    Done,
}

/// What was said about the inputs of a run that two parties say to have kept, and at which turn one honest party is at least.
pub(crate) fn agreed(
    stages: &Stages,
    home: &Home,
    replies: &[(Vec<Missing>, At)],
) -> Option<(Roll, u32)> {
    let turns = |wanted: &str| {
        let turns = replies.iter().filter_map(|(_, at)| match at {
            At::Kept { run, turn } if run == wanted => Some(*turn),
            _ => None,
        });
        let mut turns: Vec<u32> = turns.collect();
        turns.sort_unstable_by(|a, b| b.cmp(a));
        turns
    };
    let mut runs = replies.iter().filter_map(|(_, at)| match at {
        At::Kept { run, .. } => Some(run),
        _ => None,
    });
    let run = runs.find(|run| turns(run).len() >= ENOUGH)?;
    let of = Checkpoint {
        plan: stages.plan(Stage::Compute).hash,
        run: run.clone(),
    };
    let mut roll = Roll::new(of, party_keys(stages, home)?);
    for (said, _) in replies {
        roll.hear(said);
    }
    Some((roll, turns(run)[ENOUGH - 1]))
}

/// At which stage the parties are that use the inputs they have kept, by the word of two of them and, where it matters who is left out, by
/// a verdict. Nothing, if they do not say so.
pub fn now(home: &Home, stages: &Stages) -> Option<Stage> {
    let (identity, members) = (home.identity(), home.members());
    let request = Request::Roll {
        plan: hex(&stages.whole().hash.0),
        said: Vec::new(),
    };
    let names = stages.whole().job.parties.iter().map(String::as_str);
    let replies = ask_all(&identity, &members, names, &request, ANSWER).into_iter();
    let replies: Vec<_> = replies
        .filter_map(|reply| match reply {
            Ok(Reply::Roll { said, at }) => Some((said, at)),
            _ => None,
        })
        .collect();
    let (roll, turn) = agreed(stages, home, &replies)?;
    Some(Stage::at_turn(turn, roll.out()))
}

/// Asks members the same at once; what each of them answers within so much time.
pub(crate) fn ask_all<'a>(
    identity: &Identity,
    members: &Members,
    names: impl Iterator<Item = &'a str>,
    request: &Request,
    within: Duration,
) -> Vec<Result<Reply, CallError>> {
    let until = Instant::now() + within;
    thread::scope(|scope| {
        let one = |name: &'a str| {
            scope.spawn(move || match members.by_name(name) {
                Some(member) => control::ask(identity, member, request, until),
                None => Err(CallError::NoAddress {
                    name: name.to_owned(),
                }),
            })
        };
        let asked: Vec<_> = names.map(one).collect();
        let replies = asked.into_iter().map(|asked| {
            asked
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        replies.collect()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use veil_job::Adversary;
    use veil_program::{Files, Job};
    use veil_protocol::{Options, Plan};
    use veil_runtime::TURNS;
    use veil_session::PartyId;

    use super::*;

    const BLOCKS: &str = r#"version = 1
kind = "circuit"
name = "blocks"
owners = ["ann"]
parties = ["a", "b", "c", "d"]
recipients = ["eve"]
delivery = "guaranteed"
circuit = { make = "aes128", rows = 4 }
input = [{ port = "key", owner = "ann", per = "job", format = "hex", file = "key.hex" },
         { port = "block", owner = "ann", format = "counter", start = "00000000000000000000000000000000" }]
output = [{ port = "out", to = "eve", format = "binary", file = "blocks" }]
"#;

    #[test]
    fn every_party_is_left_out_in_turn_and_first_the_one_that_is_out() {
        let job = Job::parse(BLOCKS, Path::new("job.toml"), Files::new()).unwrap();
        let options = Options {
            lanes: 1,
            chunk_rows: None,
        };
        let plan = Plan::new(Arc::new(job.spec().clone()), options).unwrap();
        let stages = super::super::of(&job, &Arc::new(plan)).unwrap();
        assert!(stages.are_guaranteed());
        assert_eq!(stages.adversary(), Adversary::Malicious);
        let turns: Vec<Stage> = (0..TURNS).map(|turn| Stage::at_turn(turn, None)).collect();
        assert_eq!(turns[..2], [Stage::Compute; 2]);
        for (turn, stage) in turns[2..].iter().enumerate() {
            assert_eq!(*stage, Stage::Finish(PartyId::FOUR[turn % 4]));
        }
        assert_eq!(turns.len(), 2 + 2 * 4);
        // First without the party that is out; but all others are left out too, since it may be an honest party that is out.
        for out in PartyId::FOUR {
            let at = |turn| Stage::at_turn(turn, Some(out));
            for turn in [0, 1, 2, 4, 6, 8] {
                assert_eq!(at(turn), Stage::Finish(out));
            }
            for (k, other) in (0..).zip(PartyId::FOUR) {
                assert_eq!(at(3 + 2 * k), Stage::Finish(other));
            }
        }
        // Whatever a note says.
        assert!(matches!(Stage::at_turn(u32::MAX, None), Stage::Finish(_)));
    }
}
