//! The planning process: confined before it reads anything.

use std::ffi::OsStr;
use std::io::{Read, Write};

use veil_program::{Files, Job, Sent};
use veil_sandbox::{Ended, Limits, Require, enter, run};

use super::errand::{Answer, read_errand};
use super::{Terms, prepare};
use crate::control::{self, Request};

/// The exit code of a process that cannot be confined.
const UNCONFINED: i32 = 77;

/// More bytes than this no errand has: a request of the longest kind, and terms.
const LONGEST_ERRAND: u64 = 17 << 20;

/// The command line of a planning process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The least confinement of the child process.
    pub require: Require,
    /// Its limits.
    pub limits: Limits,
}

impl Asked {
    /// The words of the command line that ask this of the program: `inner plan` and its options.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![
            "inner".to_owned(),
            "plan".to_owned(),
            format!("--memory-mib={}", self.limits.memory >> 20),
            format!("--cpu={}", self.limits.cpu.as_secs()),
            format!("--nice={}", self.limits.nice),
        ];
        if self.require == Require::Filter {
            words.push("--without-landlock".to_owned());
        }
        words
    }
}

/// Confines this process, which must have one thread and have read nothing, then plans the proposal on standard input and answers on
/// standard output: the exit code.
pub fn inner(asked: &Asked) -> i32 {
    let confinement = match enter(&asked.limits, asked.require) {
        Ok(confinement) => confinement,
        Err(error) => {
            eprintln!("{error}");
            return UNCONFINED;
        }
    };
    let mut errand = Vec::new();
    let read = std::io::stdin()
        .lock()
        .take(LONGEST_ERRAND)
        .read_to_end(&mut errand);
    if let Err(error) = read {
        eprintln!("the errand cannot be read: {error}");
        return 1;
    }
    let answer = if errand.is_empty() {
        Answer::Confined {
            by: confinement.name().to_owned(),
        }
    } else if let Some((terms, request)) = read_errand(&errand) {
        answer(&terms, request)
    } else {
        eprintln!("the errand is none of this release");
        return 1;
    };
    let mut out = std::io::stdout().lock();
    let wrote = out
        .write_all(&control::encode(&answer))
        .and_then(|()| out.flush());
    i32::from(wrote.is_err())
}

/// Reads and plans a proposal. Nothing of this machine is in the answer but the party's limits.
pub(super) fn answer(terms: &Terms, request: &[u8]) -> Answer {
    let refused = |why: String| Answer::Refused { why };
    let proposal = match control::decode::<Request>(request) {
        Ok(Request::Propose(proposal)) => proposal,
        Ok(_) => return refused("the request is no proposal".into()),
        Err(error) => return refused(format!("the request was not understood: {error}")),
    };
    let files: Sent = proposal
        .files
        .into_iter()
        .map(|(name, text)| (name, text.into_bytes()))
        .collect();
    let read = if terms.kept {
        Job::kept(&proposal.job, &files, Files::new())
    } else {
        Job::sent(&proposal.job, &files)
    };
    let job = match read {
        Ok(job) => job,
        Err(error) => return refused(error.for_sender()),
    };
    match prepare(job, (proposal.lanes, proposal.stocked), terms) {
        Ok(prepared) => Answer::Planned(Box::new((*prepared.planned).clone())),
        Err(why) => refused(why),
    }
}

/// How planning processes of `program` are confined on this machine.
///
/// # Errors
/// Why they cannot be.
pub fn confinement(program: &OsStr, require: Require) -> Result<String, String> {
    let asked = Asked {
        require,
        limits: Limits::default(),
    };
    let words = asked.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(program, &words, &[], &asked.limits) {
        Ok(bytes) => match Answer::read(&bytes) {
            Ok(Answer::Confined { by }) => Ok(by),
            _ => Err("the planning process gives no answer: run the same release again".into()),
        },
        Err(error) => Err(unconfined(&error).unwrap_or_else(|| error.to_string())),
    }
}

/// Why a process could not be confined, if that ended it.
pub(super) fn unconfined(ended: &Ended) -> Option<String> {
    match ended {
        Ended::Crashed { status, said } if status.code() == Some(UNCONFINED) => Some(format!(
            "this kernel cannot confine planning: {}; Linux 5.13 or later can, or set `sandbox = \"seccomp\"` under [admission] in veil.toml",
            said.trim()
        )),
        _ => None,
    }
}

/// For fuzzing: takes `bytes` for a proposal and does what a planning process does with it. Returns whether it could be planned.
#[doc(hidden)]
pub fn fuzz_proposal(bytes: &[u8]) -> bool {
    let terms = Terms {
        name: "a".into(),
        rows: 1 << 20,
        lanes: 4,
        memory_mib: 256,
        spill: false,
        window: 4,
        link: "tls".into(),
        kept: false,
    };
    matches!(answer(&terms, bytes), Answer::Planned(_))
}
