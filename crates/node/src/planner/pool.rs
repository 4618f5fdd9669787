//! The service's side of planning: a few processes at a time, and what they found out before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use veil_sandbox::{Ended, Limit, run};

use super::errand::{Answer, errand};
use super::inner::{Asked, confinement, unconfined};
use super::{Planned, Terms};

/// Proposals whose planning is remembered.
const REMEMBERED: usize = 256;

/// Longer answers are not remembered: all together take 16 MiB.
const LONGEST: usize = 64 << 10;

/// Why a proposal was not planned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The job makes no sense, or does not fit here: in words that whoever sent it may read.
    Job(String),
    /// Whoever sent it has used up its quota.
    Quota(String),
    /// Planning it took more than it may.
    Limit(Limit, String),
    /// Nobody can plan for others here.
    Unconfined(String),
    /// The planning process ended otherwise: for the operator alone.
    Crashed(String),
    /// All processes were busy for too long.
    Busy,
}

impl Refusal {
    /// What whoever sent the proposal reads.
    pub(crate) fn for_sender(&self) -> String {
        match self {
            Refusal::Job(why) | Refusal::Quota(why) => why.clone(),
            Refusal::Limit(_, limit) => {
                format!("planning it takes more than this party allows: {limit}")
            }
            Refusal::Unconfined(_) => {
                "this party takes no proposals: its machine cannot confine planning".to_owned()
            }
            Refusal::Crashed(_) => {
                "this party cannot plan the job: its operator finds the reason in its log lines"
                    .to_owned()
            }
            Refusal::Busy => "this party plans other proposals: propose it again later".to_owned(),
        }
    }

    /// A word for it, as metrics have it.
    pub(crate) const fn how(&self) -> &'static str {
        match self {
            Refusal::Job(_) => "ok",
            Refusal::Quota(_) => "quota",
            Refusal::Limit(limit, _) => limit.name(),
            Refusal::Unconfined(_) => "unconfined",
            Refusal::Crashed(_) => "crash",
            Refusal::Busy => "busy",
        }
    }
}

type Found = Result<Arc<Planned>, Refusal>;

/// Plans proposals in processes of their own.
pub(crate) struct Planner {
    program: OsString,
    asked: Asked,
    confinement: Result<String, String>,
    /// Processes that may be started now.
    free: Mutex<usize>,
    freed: Condvar,
    found: Mutex<Remembered>,
}

/// What was found out, and when it was last asked for.
#[derive(Default)]
struct Remembered {
    found: BTreeMap<[u8; 32], (u64, Found)>,
    asked: u64,
}

/// How a proposal was planned.
pub(crate) struct Worked {
    /// What came of it.
    pub(crate) found: Found,
    /// How long it took; nothing if it was remembered.
    pub(crate) took: Option<Duration>,
}

impl Planner {
    /// Plans by `program`, in so many processes at a time. How they are confined is tried once.
    pub(crate) fn new(program: OsString, asked: Asked, processes: usize) -> Self {
        Planner {
            confinement: confinement(&program, asked.require),
            program,
            asked,
            free: Mutex::new(processes.max(1)),
            freed: Condvar::new(),
            found: Mutex::default(),
        }
    }

    /// How planning is confined, or why it cannot be.
    pub(crate) fn confinement(&self) -> Result<&str, &str> {
        match &self.confinement {
            Ok(by) => Ok(by),
            Err(why) => Err(why),
        }
    }

    /// Plans a request that proposes a job, if `may` lets it: what is known already costs nothing.
    pub(crate) fn plan(
        &self,
        terms: &Terms,
        request: &[u8],
        may: impl FnOnce() -> Result<(), String>,
    ) -> Worked {
        let remembered = |found| Worked { found, took: None };
        if let Err(why) = &self.confinement {
            return remembered(Err(Refusal::Unconfined(why.clone())));
        }
        let errand = errand(terms, request);
        let digest = Sha256::digest(&errand).into();
        if let Some(found) = self.remembered(&digest) {
            return remembered(found);
        }
        if let Err(why) = may() {
            return remembered(Err(Refusal::Quota(why)));
        }
        // What was taken in before waits for nobody's proposals.
        let process = if terms.kept { None } else { self.process() };
        if process.is_none() && !terms.kept {
            return remembered(Err(Refusal::Busy));
        }
        let began = Instant::now();
        let words = self.asked.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = run(&self.program, &words, &errand, &self.asked.limits);
        let (found, length) = match ran {
            Ok(bytes) => (answered(&bytes), bytes.len()),
            Err(ended) => (Err(self.refusal(&ended)), 0),
        };
        drop(process);
        // A crash may be of this machine, and not of the proposal.
        if length <= LONGEST && !matches!(found, Err(Refusal::Crashed(_) | Refusal::Unconfined(_)))
        {
            self.remember(digest, found.clone());
        }
        Worked {
            found,
            took: Some(began.elapsed()),
        }
    }

    fn refusal(&self, ended: &Ended) -> Refusal {
        let limits = &self.asked.limits;
        let limit = match ended {
            Ended::Limit(limit) => *limit,
            other => {
                return match unconfined(other) {
                    Some(why) => Refusal::Unconfined(why),
                    None => Refusal::Crashed(other.to_string()),
                };
            }
        };
        let what = match limit {
            Limit::Memory => format!("{} MiB of memory", limits.memory >> 20),
            Limit::Cpu => format!("{} s of a processor", limits.cpu.as_secs()),
            Limit::Wall => format!("{} s", limits.wall.as_secs()),
            Limit::Reply => format!("{} MiB of what is found out", limits.reply >> 20),
            Limit::Call => return Refusal::Crashed(ended.to_string()),
        };
        Refusal::Limit(limit, what)
    }

    /// The right to start a process, once one is free; nothing if that takes too long.
    fn process(&self) -> Option<Process<'_>> {
        let until = Instant::now() + self.asked.limits.wall;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.freed.wait_timeout(free, left);
            free = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *free -= 1;
        Some(Process(self))
    }

    fn remembered(&self, digest: &[u8; 32]) -> Option<Found> {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        all.asked += 1;
        let now = all.asked;
        let (last, found) = all.found.get_mut(digest)?;
        *last = now;
        Some(found.clone())
    }

    fn remember(&self, digest: [u8; 32], found: Found) {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let now = all.asked;
        all.found.insert(digest, (now, found));
        while all.found.len() > REMEMBERED {
            let oldest = all.found.iter().min_by_key(|(_, (last, _))| *last);
            let Some(oldest) = oldest.map(|(digest, _)| *digest) else {
                break;
            };
            all.found.remove(&oldest);
        }
    }
}

/// A process that may be started.
struct Process<'a>(&'a Planner);

impl Drop for Process<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

fn answered(bytes: &[u8]) -> Found {
    match Answer::read(bytes) {
        Ok(Answer::Planned(planned)) => Ok(Arc::from(planned)),
        Ok(Answer::Refused { why }) => Err(Refusal::Job(why)),
        Ok(Answer::Confined { .. }) => Err(Refusal::Crashed("it planned nothing".into())),
        Err(error) => Err(Refusal::Crashed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use veil_sandbox::{Limits, Require};

    use super::*;

    fn terms() -> Terms {
        Terms {
            name: "a".into(),
            rows: 1000,
            lanes: 1,
            memory_mib: 1000,
            window: 4,
            link: "tls".into(),
            kept: false,
        }
    }

    /// A planner that is a script: it says that it is confined when it is asked that, and does `script` with a proposal.
    fn planner(folder: &std::path::Path, script: &str) -> Planner {
        let program = folder.join("planner");
        let confined = r#"{"version":1,"answer":"confined","by":"a test"}"#;
        let text = format!(
            "#!/bin/sh\nif [ -z \"$(/usr/bin/head -c1 | /usr/bin/od -An -c)\" ]; then printf '%s' '{confined}'; exit; fi\n{script}\n"
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let limits = Limits {
            wall: Duration::from_secs(2),
            reply: 1 << 20,
            ..Limits::default()
        };
        let asked = Asked {
            require: Require::Landlock,
            limits,
        };
        Planner::new(program.into(), asked, 1)
    }

    #[test]
    fn whatever_a_planner_answers_harms_one_proposal() {
        let folder = tempfile::tempdir().unwrap();
        for (script, want) in [
            ("exit 0", "crash"),
            ("exit 1", "crash"),
            ("echo garbage", "crash"),
            (r#"printf '{"version":1,"answer":"planned"}'"#, "crash"),
            (
                r#"printf '{"version":2,"answer":"refused","why":""}'"#,
                "crash",
            ),
            ("/usr/bin/head -c 1000000000 /dev/zero", "reply"),
            ("exec /usr/bin/sleep 100", "time"),
            ("kill -9 $$", "crash"),
            ("kill -XCPU $$", "cpu"),
            ("exit 77", "unconfined"),
            (
                r#"printf '{"version":1,"answer":"refused","why":"no"}'"#,
                "ok",
            ),
        ] {
            let planner = planner(folder.path(), script);
            assert_eq!(planner.confinement(), Ok("a test"));
            let found = planner
                .plan(&terms(), b"proposal", || Ok(()))
                .found
                .unwrap_err();
            assert_eq!(found.how(), want, "{script}: {found:?}");
        }
    }

    #[test]
    fn what_was_found_out_is_not_planned_again() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = format!(
            "echo x >> {}; printf '{{\"version\":1,\"answer\":\"refused\",\"why\":\"no\"}}'",
            count.display()
        );
        let planner = planner(folder.path(), &script);
        for _ in 0..1000 {
            let worked = planner.plan(&terms(), b"the same", || Ok(()));
            assert_eq!(worked.found.unwrap_err(), Refusal::Job("no".into()));
        }
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
        assert!(planner.plan(&terms(), b"another", || Ok(())).took.is_some());
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\nx\n");
    }
}
