//! Which of its plans a job whose output is guaranteed runs next, and how the parties tell each other.
//!
//! A *view* is a run on the checkpointed inputs, with a plan that follows from its number alone. A run that fails is the end of its view, and the
//! next one follows: first all four parties, then the four plans without one of them. These are secure against a malicious party, so a view
//! without the malicious party gives the result, and every other view at worst fails. No party has to know which one it was. A party that
//! all others find missing is left out at once, and in every other view: should it be missing by the doing of a malicious party, that one
//! is left out in the views between.

use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use veil_link::tls::Identity;
use veil_runtime::{Stage, Stages};

use super::party_keys;
use crate::attendance::{Attendance, Checkpoint, Missing};
use crate::control::{self, CallError, Reply, Request};
use crate::home::hex;
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
        /// At which view it is.
        #[serde(rename = "turn")]
        view: u32,
    },
    /// It is done with the job.
    Done,
}

/// What was said about the inputs of a run that two parties say to have kept, and at which view one honest party is at least.
pub(crate) fn agreed(
    stages: &Stages,
    home: &Home,
    replies: &[(Vec<Missing>, At)],
) -> Option<(Attendance, u32)> {
    let views = |wanted: &str| {
        let views = replies.iter().filter_map(|(_, at)| match at {
            At::Kept { run, view } if run == wanted => Some(*view),
            _ => None,
        });
        let mut views: Vec<u32> = views.collect();
        views.sort_unstable_by(|a, b| b.cmp(a));
        views
    };
    let mut runs = replies.iter().filter_map(|(_, at)| match at {
        At::Kept { run, .. } => Some(run),
        _ => None,
    });
    let run = runs.find(|run| views(run).len() >= ENOUGH)?;
    let of = Checkpoint {
        plan: stages.plan(Stage::Compute).hash,
        run: run.clone(),
    };
    let mut attendance = Attendance::new(of, party_keys(stages, home)?);
    for (said, _) in replies {
        attendance.hear(said);
    }
    Some((attendance, views(run)[ENOUGH - 1]))
}

/// At which stage the parties are that use the inputs they have kept, by the word of two of them and, where it matters who is left out, by
/// a verdict. Nothing, if they do not say so.
pub fn now(home: &Home, stages: &Stages) -> Option<Stage> {
    let (identity, members) = (home.identity(), home.members());
    let request = Request::Attendance {
        plan: hex(&stages.whole().hash.0),
        said: Vec::new(),
    };
    let names = stages.whole().job.parties.iter().map(String::as_str);
    let replies = ask_all(&identity, &members, names, &request, ANSWER).into_iter();
    let replies: Vec<_> = replies
        .filter_map(|reply| match reply {
            Ok(Reply::Attendance { said, at }) => Some((said, at)),
            _ => None,
        })
        .collect();
    let (attendance, view) = agreed(stages, home, &replies)?;
    Some(Stage::at_view(view, attendance.out()))
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
    use veil_runtime::VIEWS;
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
        let stages = super::super::of(&job, &plan.into()).unwrap();
        assert!(stages.are_guaranteed());
        assert_eq!(stages.adversary(), Adversary::Malicious);
        let views: Vec<Stage> = (0..VIEWS).map(|view| Stage::at_view(view, None)).collect();
        assert_eq!(views[..2], [Stage::Compute; 2]);
        for (view, stage) in views[2..].iter().enumerate() {
            assert_eq!(*stage, Stage::Finish(PartyId::FOUR[view % 4]));
        }
        assert_eq!(views.len(), 2 + 2 * 4);
        // First without the party that is out; but all others are left out too, since it may be an honest party that is out.
        for out in PartyId::FOUR {
            let at = |view| Stage::at_view(view, Some(out));
            for view in [0, 1, 2, 4, 6, 8] {
                assert_eq!(at(view), Stage::Finish(out));
            }
            for (k, other) in (0..).zip(PartyId::FOUR) {
                assert_eq!(at(3 + 2 * k), Stage::Finish(other));
            }
        }
        // Whatever a note says.
        assert!(matches!(Stage::at_view(u32::MAX, None), Stage::Finish(_)));
    }
}
