//! Plans of jobs that ran here: a job that runs again is not planned again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use veil_program::Job;
use veil_runtime::{Passes, Stages};

use super::prepare::{Prepared, asks, prepare};
use super::{Planned, Terms};

/// Plans that are held at most.
const MOST: usize = 8;

/// The largest that is held, in bytes: those of larger jobs are within the memory that jobs reserve, while they run.
const LARGEST: u64 = 16 << 20;

/// What follows from a contract, a number of lanes, where products come from and whether the job runs in stages.
struct Entry {
    plan: Passes,
    stages: Stages,
    planned: Arc<Planned>,
}

/// Plans by their contract, the one that was used last in front.
#[derive(Default)]
pub(crate) struct Known(Mutex<VecDeque<Entry>>);

impl Known {
    /// As [`prepare`] does, with the plan of an equal contract if there is one.
    pub(crate) fn prepare(
        &self,
        job: Job,
        (lanes, stocked): (u16, bool),
        terms: &Terms,
    ) -> Result<Prepared, String> {
        if let Some(entry) = self.find(&job, (lanes, stocked)) {
            let Entry {
                plan,
                stages,
                planned,
            } = entry;
            let asks = asks(&job, terms);
            let planned = if planned.asks == asks {
                planned
            } else {
                Arc::new(Planned {
                    asks,
                    ..Planned::clone(&planned)
                })
            };
            return Ok(Prepared {
                job,
                plan,
                stages,
                planned,
            });
        }
        let prepared = prepare(job, (lanes, stocked), terms)?;
        if prepared.planned.held <= LARGEST {
            self.hold(Entry {
                plan: prepared.plan.clone(),
                stages: prepared.stages.clone(),
                planned: Arc::clone(&prepared.planned),
            });
        }
        Ok(prepared)
    }

    /// An entry of the same contract, which is then in front.
    fn find(&self, job: &Job, (lanes, stocked): (u16, bool)) -> Option<Entry> {
        // Every change leaves it whole.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = all.iter().position(|entry| {
            entry.plan.lanes == lanes
                && entry.planned.takes.is_some() == stocked
                && entry.stages.are_two() == job.is_durable()
                && *entry.plan.job == *job.spec()
        })?;
        let entry = all.remove(index)?;
        let found = Entry {
            plan: entry.plan.clone(),
            stages: entry.stages.clone(),
            planned: Arc::clone(&entry.planned),
        };
        all.push_front(entry);
        Some(found)
    }

    fn hold(&self, entry: Entry) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_front(entry);
        all.truncate(MOST);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use veil_program::Files;

    use super::*;

    fn job(rows: u32, durable: bool) -> Job {
        let text = format!(
            "version = 1\nkind = \"circuit\"\nname = \"sum\"\nowners = [\"ann\", \"bob\"]\nparties = [\"a\", \"b\", \"c\"]\nrecipients = [\"eve\"]\n\
             durable = {durable}\ncircuit = {{ make = \"adder:8\", rows = {rows} }}\n\
             input = [{{ port = \"x\", owner = \"ann\", format = \"hex\", file = \"x.hex\" }},\n\
                      {{ port = \"y\", owner = \"bob\", format = \"hex\", file = \"y.hex\" }}]\n\
             output = [{{ port = \"out\", to = \"eve\", format = \"hex\", file = \"sum.hex\" }}]\n"
        );
        Job::parse(&text, Path::new("job.toml"), Files::new()).unwrap()
    }

    fn terms() -> Terms {
        Terms {
            name: "a".into(),
            rows: 1000,
            lanes: 2,
            memory_mib: 1000,
            spill: false,
            window: 4,
            link: "tls".into(),
            kept: false,
        }
    }

    #[test]
    fn a_job_that_comes_again_is_not_planned_again() {
        let (known, terms) = (Known::default(), terms());
        let plan = |rows, lanes, durable| {
            let prepared = known
                .prepare(job(rows, durable), (lanes, false), &terms)
                .unwrap();
            assert_eq!(*prepared.plan.job, *prepared.job.spec());
            assert_eq!(prepared.stages.are_two(), durable);
            prepared
        };
        let first = plan(4, 1, false);
        let again = plan(4, 1, false);
        assert!(Arc::ptr_eq(&first.plan, &again.plan));
        assert!(Arc::ptr_eq(&first.planned, &again.planned));
        // Another contract, other lanes, and stages are other plans.
        for (rows, lanes, durable) in [(5, 1, false), (4, 2, false), (4, 1, true)] {
            let other = plan(rows, lanes, durable);
            assert!(!Arc::ptr_eq(&first.plan, &other.plan));
            let again = plan(rows, lanes, durable);
            assert!(Arc::ptr_eq(&other.plan, &again.plan));
        }
        // The ones that were used least recently go.
        for rows in 10..10 + MOST as u32 {
            plan(rows, 1, false);
        }
        assert!(!Arc::ptr_eq(&first.plan, &plan(4, 1, false).plan));
        assert_eq!(known.0.lock().unwrap().len(), MOST);
    }

    #[test]
    fn what_a_party_does_not_take_is_refused_as_without_it() {
        let (known, mut terms) = (Known::default(), terms());
        terms.rows = 3;
        let refused = known.prepare(job(4, false), (1, false), &terms).err();
        assert_eq!(refused, prepare(job(4, false), (1, false), &terms).err());
        assert!(refused.is_some() && known.0.lock().unwrap().is_empty());
    }
}
