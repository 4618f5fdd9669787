//! Usage of quotas by members, in the home: a restart resets no quota.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::file::{self, FileError};
use crate::settings::Quota;
use crate::time::Time;

/// Its file in the home.
const NAME: &str = "usage.json";

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// What is used within a minute is one entry: a day of one member is 1440 of them at most.
const MINUTE: i64 = 60;

/// What a member has used, in a minute.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Used {
    /// Its first second, since 1970.
    at: i64,
    #[serde(default)]
    proposals: u64,
    #[serde(default)]
    planning_ms: u64,
    #[serde(default)]
    work: u64,
    #[serde(default)]
    bytes: u64,
    /// Cells of stock that its jobs have taken.
    #[serde(default)]
    taken: u64,
    /// Cells of stock that were made with it, as far as they were kept.
    #[serde(default)]
    made: u64,
    /// How long this party was making stock with it.
    #[serde(default)]
    making_ms: u64,
}

/// What was made of stock with a party in the last day.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Made {
    /// Cells.
    pub(crate) cells: u64,
    /// Seconds that went into making.
    pub(crate) seconds: f64,
    /// Cells in a second, of the last minute in which some were made; nothing if none were.
    pub(crate) rate: Option<f64>,
}

/// What all members have used in the last day.
pub(crate) struct Usage {
    path: PathBuf,
    members: Mutex<BTreeMap<String, Vec<Used>>>,
}

impl Usage {
    /// Reads what was used before.
    pub(crate) fn open(home: &std::path::Path) -> Result<Self, FileError> {
        let path = home.join(NAME);
        let members = match file::read(&path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| FileError::Io {
                doing: "understand",
                path: path.clone(),
                source: std::io::Error::other(error),
            })?,
            Err(error) if error.is_missing() => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Usage {
            path,
            members: Mutex::new(members),
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Used>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something, and writes it down. A disk that is full holds up no job: what is used is in memory too.
    fn note(&self, member: &str, now: i64, change: impl FnOnce(&mut Used)) {
        let mut members = self.lock();
        let minute = now - now.rem_euclid(MINUTE);
        let list = members.entry(member.to_owned()).or_default();
        match list.last_mut() {
            Some(last) if last.at == minute => change(last),
            _ => {
                let mut used = Used {
                    at: minute,
                    ..Used::default()
                };
                change(&mut used);
                list.push(used);
            }
        }
        for list in members.values_mut() {
            list.retain(|used| used.at > now - DAY - MINUTE);
        }
        members.retain(|_, list| !list.is_empty());
        let text = serde_json::to_vec(&*members).expect("names and numbers are JSON");
        if let Err(error) = file::write(&self.path, &text) {
            tracing::error!(%error, "what members have used cannot be written down");
        }
    }

    /// How much was used since then, and when the first of it is over.
    fn since(&self, member: &str, now: i64, window: i64, of: fn(&Used) -> u64) -> (u64, i64) {
        let members = self.lock();
        let list = members.get(member).into_iter().flatten();
        let list = list.filter(|used| used.at > now - window && of(used) > 0);
        let (mut all, mut first) = (0_u64, now);
        for used in list {
            all = all.saturating_add(of(used));
            first = first.min(used.at);
        }
        (all, first + window + MINUTE)
    }

    /// Whether a member may propose one more job.
    pub(crate) fn may_propose(&self, member: &str, quota: &Quota) -> Result<(), String> {
        let now = Time::now().seconds();
        let (proposals, again) = self.since(member, now, HOUR, |used| used.proposals);
        if proposals >= quota.proposals_per_hour {
            return Err(full(quota.proposals_per_hour, "proposals an hour", again));
        }
        let (planning, again) = self.since(member, now, HOUR, |used| used.planning_ms);
        let seconds = quota.planning_seconds_per_hour;
        if planning >= seconds.saturating_mul(1000) {
            return Err(full(seconds, "seconds of planning an hour", again));
        }
        Ok(())
    }

    /// A member has proposed a job, which took so long to plan.
    pub(crate) fn proposed(&self, member: &str, took: Duration) {
        self.note(member, Time::now().seconds(), |used| {
            used.proposals += 1;
            used.planning_ms += took.as_millis() as u64;
        });
    }

    /// Whether a job of this size may run that a member asked for; if so, it is charged for it.
    pub(crate) fn starts(&self, member: &str, quota: &Quota, work: u64) -> Result<(), String> {
        let now = Time::now().seconds();
        let (done, again) = self.since(member, now, DAY, |used| used.work);
        // One job larger than all may run when nothing else did: else none of its size could, ever.
        if done > 0 && done.saturating_add(work) > quota.work_per_day {
            return Err(full(quota.work_per_day, "products a day", again));
        }
        let (bytes, again) = self.since(member, now, DAY, |used| used.bytes);
        if bytes >= quota.bytes_per_day {
            return Err(full(quota.bytes_per_day, "bytes a day", again));
        }
        self.note(member, now, |used| {
            used.work = used.work.saturating_add(work);
        });
        Ok(())
    }

    /// Whether a job may take so many cells of stock that a member asked for.
    pub(crate) fn may_take(&self, member: &str, quota: &Quota, cells: u64) -> Result<(), String> {
        let most = quota.stock_cells_per_day;
        let (taken, again) = self.since(member, Time::now().seconds(), DAY, |used| used.taken);
        if taken.saturating_add(cells) <= most {
            return Ok(());
        }
        let why = full(most, "cells of stock a day", again);
        Err(if taken == 0 {
            format!(
                "quota: the job takes {cells} cells of stock, and jobs of `{member}` may take {most} a day"
            )
        } else {
            why
        })
    }

    /// A run that a member asked for takes so many cells of stock.
    pub(crate) fn takes(&self, member: &str, cells: u64) {
        self.note(member, Time::now().seconds(), |used| {
            used.taken = used.taken.saturating_add(cells);
        });
    }

    /// So many cells of stock were made with a party, in so much time.
    pub(crate) fn makes(&self, party: &str, cells: u64, took: Duration) {
        self.note(party, Time::now().seconds(), |used| {
            used.made = used.made.saturating_add(cells);
            used.making_ms = used.making_ms.saturating_add(took.as_millis() as u64);
        });
    }

    /// What was made with a party in the last day.
    pub(crate) fn made(&self, party: &str) -> Made {
        let now = Time::now().seconds();
        let members = self.lock();
        let list = members.get(party).into_iter().flatten();
        let mut made = Made::default();
        for used in list.filter(|used| used.at > now - DAY) {
            let seconds = used.making_ms as f64 / 1e3;
            made.cells = made.cells.saturating_add(used.made);
            made.seconds += seconds;
            if used.made > 0 && seconds > 0.0 {
                made.rate = Some(used.made as f64 / seconds);
            }
        }
        made
    }

    /// A run has ended: so many bytes went to and fro, and so much of it was not done.
    pub(crate) fn ended(&self, member: &str, bytes: u64, undone: u64) {
        let now = Time::now().seconds();
        self.note(member, now, |used| {
            used.bytes = used.bytes.saturating_add(bytes);
        });
        let mut left = undone;
        let mut members = self.lock();
        for used in members.get_mut(member).into_iter().flatten().rev() {
            let back = left.min(used.work);
            used.work -= back;
            left -= back;
        }
    }
}

/// That a quota is used up, and until when.
fn full(quota: u64, of: &str, again: i64) -> String {
    format!(
        "quota: {quota} {of} are used; again at {}",
        Time::from_seconds(again).unwrap_or_else(Time::now)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_counted_across_restarts_and_runs_out() {
        let home = tempfile::tempdir().unwrap();
        let quota = Quota {
            proposals_per_hour: 2,
            planning_seconds_per_hour: 10,
            work_per_day: 100,
            bytes_per_day: 1000,
            ..Quota::default()
        };
        let usage = || Usage::open(home.path()).unwrap();
        assert_eq!(usage().may_propose("ann", &quota), Ok(()));
        usage().proposed("ann", Duration::from_secs(1));
        assert_eq!(usage().may_propose("ann", &quota), Ok(()));
        usage().proposed("ann", Duration::from_secs(1));
        let why = usage().may_propose("ann", &quota).unwrap_err();
        assert!(
            why.starts_with("quota: 2 proposals an hour are used; again at "),
            "{why}"
        );
        // No other member has used them.
        assert_eq!(usage().may_propose("bob", &quota), Ok(()));
        usage().proposed("bob", Duration::from_secs(11));
        let why = usage().may_propose("bob", &quota).unwrap_err();
        assert!(
            why.starts_with("quota: 10 seconds of planning an hour are used"),
            "{why}"
        );
        assert_eq!(usage().starts("ann", &quota, 99), Ok(()));
        let why = usage().starts("ann", &quota, 2).unwrap_err();
        assert!(
            why.starts_with("quota: 100 products a day are used"),
            "{why}"
        );
        // What was not done is given back; the larger job that is alone may run.
        let usage = usage();
        usage.ended("ann", 10, 99);
        assert_eq!(usage.starts("ann", &quota, 1000), Ok(()));
        usage.ended("ann", 1000, 1000);
        let why = usage.starts("ann", &quota, 1).unwrap_err();
        assert!(why.starts_with("quota: 1000 bytes a day are used"), "{why}");
    }

    #[test]
    fn stock_is_counted_by_who_takes_it_and_with_whom_it_is_made() {
        let home = tempfile::tempdir().unwrap();
        let quota = Quota {
            stock_cells_per_day: 100,
            ..Quota::default()
        };
        let usage = || Usage::open(home.path()).unwrap();
        let why = usage().may_take("ann", &quota, 101).unwrap_err();
        assert_eq!(
            why,
            "quota: the job takes 101 cells of stock, and jobs of `ann` may take 100 a day"
        );
        assert_eq!(usage().may_take("ann", &quota, 100), Ok(()));
        usage().takes("ann", 60);
        let why = usage().may_take("ann", &quota, 41).unwrap_err();
        assert!(
            why.starts_with("quota: 100 cells of stock a day are used; again at "),
            "{why}"
        );
        assert_eq!(usage().may_take("ann", &quota, 40), Ok(()));
        assert_eq!(usage().may_take("bob", &quota, 100), Ok(()));
        assert_eq!(usage().made("b"), Made::default());
        usage().makes("b", 1000, Duration::from_millis(500));
        usage().makes("b", 0, Duration::from_millis(500));
        let made = usage().made("b");
        assert_eq!((made.cells, made.seconds), (1000, 1.0));
        assert!(made.rate.is_some());
    }

    #[test]
    fn an_hour_passes() {
        let home = tempfile::tempdir().unwrap();
        let usage = Usage::open(home.path()).unwrap();
        usage.note("ann", 10_000, |used| used.proposals = 5);
        assert_eq!(
            usage
                .since("ann", 10_000 + HOUR - 100, HOUR, |used| used.proposals)
                .0,
            5
        );
        assert_eq!(
            usage
                .since("ann", 10_000 + HOUR, HOUR, |used| used.proposals)
                .0,
            0
        );
    }

    #[test]
    fn a_damaged_file_is_no_fresh_start() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(
            home.path().join(NAME),
            "{\"ann\": [{\"at\": 1, \"proposals\": -1}]}",
        )
        .unwrap();
        assert!(Usage::open(home.path()).is_err());
    }
}
