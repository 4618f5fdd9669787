//! The service's side of planning: a few processes at a time, and what they found out before.
//!
//! Most proposals are planned in a few milliseconds. So a process with small limits begins each of them at once, and only what exceeds these
//! waits for one of the few processes with large limits, in the order in which it came. A member who proposes large jobs waits for other
//! large jobs; small jobs wait for none of them.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use veil_sandbox::{Ended, Limit, Limits, run};

use super::errand::{Answer, errand};
use super::inner::{Asked, confinement, unconfined};
use super::{Planned, Terms};

/// Proposals whose planning is remembered.
const REMEMBERED: usize = 256;

/// Longer answers are not remembered: all together take 16 MiB.
const LONGEST: usize = 64 << 10;

/// Processor time of the first process.
const SMALL: Duration = Duration::from_secs(1);

/// Memory of the first process.
const SMALL_MEMORY: u64 = 256 << 20;

/// Its priority: jobs have the processor first, and it has it before large processes, which are behind all else.
const SMALL_NICE: i32 = 5;
const LARGE_NICE: i32 = 19;

/// Proposals that run in a process with large limits or wait for one, each in a thread of the port. Whatever members send, the other threads
/// are left for small ones.
const LARGE: usize = 5;

/// Why a proposal was not planned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The job makes no sense, or does not fit here: in words that the sender may read.
    Job(String),
    /// The sender has used up its quota.
    Quota(String),
    /// Planning it took more than it may.
    Limit(Limit, String),
    /// Proposals cannot be planned here.
    Unconfined(String),
    /// The planning process ended otherwise: for the operator alone.
    Crashed(String),
    /// All processes were busy for too long.
    Busy,
}

impl Refusal {
    /// What the sender of the proposal reads.
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
    large: Mutex<Large>,
    freed: Condvar,
    found: Mutex<Remembered>,
}

/// Processes with large limits.
struct Large {
    most: usize,
    running: usize,
    /// Proposals that wait for one, by number, the first in front.
    waiting: VecDeque<u64>,
    /// The number of the next proposal.
    next: u64,
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
            large: Mutex::new(Large {
                most: processes.clamp(1, LARGE),
                running: 0,
                waiting: VecDeque::new(),
                next: 0,
            }),
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
        let (ran, took) = self.run(&errand, terms.kept);
        let (found, length) = match ran {
            Some(Ok(bytes)) => (answered(&bytes), bytes.len()),
            Some(Err(ended)) => (Err(self.refusal(&ended)), 0),
            None => (Err(Refusal::Busy), 0),
        };
        // A crash, or the clock, may be of this machine, and not of the proposal.
        let of_machine = matches!(
            found,
            Err(Refusal::Crashed(_)
                | Refusal::Unconfined(_)
                | Refusal::Busy
                | Refusal::Limit(Limit::Wall, _))
        );
        if length <= LONGEST && !of_machine {
            self.remember(digest, found.clone());
        }
        Worked {
            found,
            took: Some(took),
        }
    }

    /// Runs one process for an errand, or a second with larger limits: what came of it, nothing if those were busy for too long, and how long
    /// the processes ran. A job that was taken in before waits for no proposals.
    fn run(&self, errand: &[u8], kept: bool) -> (Option<Result<Vec<u8>, Ended>>, Duration) {
        let Asked { require, limits } = self.asked;
        let run = |limits| {
            let asked = Asked { require, limits };
            let words = asked.words();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let began = Instant::now();
            let ran = run(&self.program, &words, errand, &limits);
            (ran, began.elapsed())
        };
        if kept {
            let (ran, took) = run(limits);
            return (Some(ran), took);
        }
        let small = Limits {
            memory: limits.memory.min(SMALL_MEMORY),
            cpu: limits.cpu.min(SMALL),
            nice: SMALL_NICE,
            ..limits
        };
        let large = Limits {
            nice: LARGE_NICE,
            ..limits
        };
        let (ran, took) = run(small);
        let more = |limit| match limit {
            Limit::Memory => small.memory < limits.memory,
            Limit::Cpu => small.cpu < limits.cpu,
            Limit::Wall | Limit::Reply | Limit::Call => false,
        };
        match ran {
            Err(Ended::Limit(limit)) if more(limit) => {
                let Some(_process) = self.process() else {
                    return (None, took);
                };
                let (ran, again) = run(large);
                (Some(ran), took + again)
            }
            ran => (Some(ran), took),
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

    /// The right to start a process with large limits, once one is free; nothing if that takes too long, or too many wait.
    fn process(&self) -> Option<Process<'_>> {
        let until = Instant::now() + self.asked.limits.wall;
        let mut large = self.lock();
        if large.running + large.waiting.len() >= LARGE {
            return None;
        }
        let number = large.next;
        large.next += 1;
        large.waiting.push_back(number);
        while large.running >= large.most || large.waiting.front() != Some(&number) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                large.waiting.retain(|other| *other != number);
                self.freed.notify_all();
                return None;
            }
            let waited = self.freed.wait_timeout(large, left);
            large = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        large.waiting.pop_front();
        large.running += 1;
        self.freed.notify_all();
        Some(Process(self))
    }

    fn lock(&self) -> MutexGuard<'_, Large> {
        // Every change leaves it whole.
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
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

/// A process with large limits that may be started.
struct Process<'a>(&'a Planner);

impl Drop for Process<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.freed.notify_all();
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

    use veil_sandbox::Require;

    use super::*;

    fn terms() -> Terms {
        Terms {
            name: "a".into(),
            rows: 1000,
            lanes: 1,
            memory_mib: 1000,
            spill: false,
            window: 4,
            link: "tls".into(),
            kept: false,
        }
    }

    /// One test at a time: a program that is being written cannot be started, and a process that another thread starts has it open for a
    /// moment.
    static TURN: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A planner that is a script: it says that it is confined when it is asked that, and does `script` with a proposal.
    fn planner(folder: &std::path::Path, script: &str) -> Planner {
        planner_within(folder, script, Duration::from_secs(2))
    }

    /// The same, where planning may take so long on the clock.
    fn planner_within(folder: &std::path::Path, script: &str, wall: Duration) -> Planner {
        let program = folder.join("planner");
        let confined = r#"{"version":1,"answer":"confined","by":"a test"}"#;
        let text = format!(
            "#!/bin/sh\nif [ -z \"$(/usr/bin/head -c1 | /usr/bin/od -An -c)\" ]; then printf '%s' '{confined}'; exit; fi\n{script}\n"
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let limits = Limits {
            wall,
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
        let _alone = alone();
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

    /// A planner whose large processes sleep, and whose small ones end at their limit unless the proposal is `small`.
    fn sleepy(folder: &std::path::Path, seconds: &str, wall: u64) -> Planner {
        let refused = r#"{"version":1,"answer":"refused","why":"no"}"#;
        planner_within(
            folder,
            &format!(
                "case \"$(/usr/bin/tr -d '\\000')\" in *small*) printf '%s' '{refused}'; exit;; esac\n\
                 case \"$*\" in *--cpu=1\\ *|*--cpu=1) kill -XCPU $$;; esac\n/usr/bin/sleep {seconds}; printf '%s' '{refused}'"
            ),
            Duration::from_secs(wall),
        )
    }

    #[test]
    fn small_proposals_wait_for_no_large_one() {
        let _alone = alone();
        let folder = tempfile::tempdir().unwrap();
        let planner = sleepy(folder.path(), "2.7", 4);
        let plan = |text: &str| planner.plan(&terms(), text.as_bytes(), || Ok(())).found;
        std::thread::scope(|scope| {
            let plan = &plan;
            let large = (0..LARGE).map(|n| scope.spawn(move || plan(&format!("large {n}"))));
            let large: Vec<_> = large.collect();
            let held = || {
                let large = planner.lock();
                large.running + large.waiting.len()
            };
            while held() < LARGE {
                std::thread::yield_now();
            }
            // More large ones are not even kept waiting.
            assert_eq!(plan("one more").unwrap_err(), Refusal::Busy);
            for n in 0..3 {
                let found = plan(&format!("small {n}"));
                assert_eq!(found.unwrap_err(), Refusal::Job("no".into()));
            }
            assert!(held() > 0, "small proposals waited for large ones");
            let found = large
                .into_iter()
                .map(|large| large.join().unwrap().unwrap_err());
            let mut how: Vec<&str> = found.map(|refusal| refusal.how()).collect();
            how.sort_unstable();
            // One process at a time, which takes 2.7 of the 4 s that the others wait.
            assert_eq!(how, ["busy", "busy", "busy", "ok", "ok"]);
        });
        // What the clock or the others were to blame for is tried again.
        assert_eq!(plan("one more").unwrap_err(), Refusal::Job("no".into()));
    }

    #[test]
    fn what_took_too_long_on_the_clock_is_tried_again() {
        let _alone = alone();
        let folder = tempfile::tempdir().unwrap();
        let planner = sleepy(folder.path(), "100", 1);
        for _ in 0..2 {
            let worked = planner.plan(&terms(), b"large", || Ok(()));
            assert_eq!(worked.found.unwrap_err().how(), "time");
            assert!(worked.took.is_some());
        }
    }

    #[test]
    fn what_was_found_out_is_not_planned_again() {
        let _alone = alone();
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
