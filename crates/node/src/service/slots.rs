//! Who among the members has which part of what a party takes on: places to wait, working memory, and places to run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use veil_session::PlanHash;

use crate::jobs::mib;
use crate::settings::{Limits, Quota};

const MIB: u64 = 1 << 20;

/// Plans of jobs that are met and do not run yet may take one part in so many of the working memory: the rest is always there for jobs that
/// run.
const WAITING: u64 = 4;

/// One place to run is kept for jobs of less work than this, where there are several: some ten seconds of a processor.
const SMALL: u64 = 1_000_000_000;

/// How often a job that waits looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(100);

/// What a job wants of the places.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// Which job.
    pub(crate) job: PlanHash,
    /// The member that asked for it; none, if this participant did.
    pub(crate) member: Option<String>,
    /// What that member may ask for.
    pub(crate) quota: Quota,
    /// Bytes of working memory of a run, at most.
    pub(crate) need: u64,
    /// Its size.
    pub(crate) work: u64,
}

/// The places of a service.
pub(crate) struct Slots {
    limits: Limits,
    taken: Mutex<Taken>,
    freed: Condvar,
}

#[derive(Default)]
struct Taken {
    /// Jobs that run, and the bytes that each may take.
    running: BTreeMap<PlanHash, Running>,
    /// Plans of jobs that are met or wait for a place: whose, and how many bytes.
    plans: BTreeMap<PlanHash, (Option<String>, u64)>,
    /// Jobs that wait for a place, in the order in which they came.
    waiting: Vec<Waiting>,
    /// The share of the machine that each member's jobs have had, in work divided by weight: the member that had least is next.
    had: BTreeMap<Option<String>, u64>,
    /// The share that was had by the job that started last: members who were away begin there, and not at zero.
    now: u64,
    tickets: u64,
}

struct Running {
    member: Option<String>,
    bytes: u64,
    small: bool,
}

struct Waiting {
    ticket: u64,
    /// Its place in the order: what its member will have had when it is over.
    tag: u64,
    claim: Claim,
}

/// A place among the running jobs, until it is dropped.
pub(crate) struct Slot<'a>(&'a Slots, PlanHash);

/// The bytes of the plans of a job that is met, until they are dropped.
pub(crate) struct Reservation<'a>(&'a Slots, PlanHash);

impl Claim {
    const fn is_small(&self) -> bool {
        self.work < SMALL
    }
}

impl Slots {
    pub(crate) fn new(limits: Limits) -> Self {
        Slots {
            limits,
            taken: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Every change leaves it whole.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for the plans of a job that is to be met; why there is none.
    pub(crate) fn reserve(
        &self,
        claim: &Claim,
        held: u64,
        shares: u64,
    ) -> Result<Reservation<'_>, String> {
        let mut taken = self.lock();
        self.has_room(&taken, claim, held, shares)?;
        let plans = (claim.member.clone(), held);
        taken.plans.insert(claim.job, plans);
        Ok(Reservation(self, claim.job))
    }

    /// Whether there is such room now.
    pub(crate) fn may_reserve(&self, claim: &Claim, held: u64, shares: u64) -> Result<(), String> {
        self.has_room(&self.lock(), claim, held, shares)
    }

    /// Half of the room is for jobs that come first, and the other half for all in equal shares, of which there are so many; a job that is
    /// too large for both is met when no other one waits. What runs and what waits are within the working memory together.
    fn has_room(&self, taken: &Taken, claim: &Claim, held: u64, shares: u64) -> Result<(), String> {
        let half = self.memory() / WAITING / 2;
        let all = taken.waiting_plans(|_, _| true);
        let own = taken.waiting_plans(|_, member| *member == claim.member);
        let fits = |used: u64, room: u64| used.saturating_add(held) <= room;
        if !fits(taken.running_bytes().saturating_add(all), self.memory()) {
            return Err(format!(
                "its plan takes up to {} MiB, and jobs that run or wait for their participants take {} of {} MiB (`memory_mib` under \
                 [admission] in veil.toml)",
                mib(held),
                mib(taken.running_bytes().saturating_add(all)),
                self.limits.memory_mib
            ));
        }
        if all == 0 || fits(all, half) || fits(own, half / shares.max(1)) {
            return Ok(());
        }
        Err(format!(
            "its plan takes up to {} MiB, and those of jobs that wait for their participants take {} of {} MiB (a part of `memory_mib` under \
             [admission] in veil.toml)",
            mib(held),
            mib(all),
            2 * half / MIB
        ))
    }

    /// Working memory of all jobs, in bytes.
    fn memory(&self) -> u64 {
        self.limits.memory_mib.saturating_mul(MIB)
    }

    /// Bytes that neither jobs that run have nor plans of other jobs that wait.
    fn free(&self, taken: &Taken, claim: &Claim) -> u64 {
        let others = taken.waiting_plans(|job, _| *job != claim.job);
        let used = taken.running_bytes().saturating_add(others);
        self.memory().saturating_sub(used)
    }

    /// Waits for a place among the running jobs and working memory, at most so long, and `say`s what it waits for.
    pub(crate) fn slot(
        &self,
        claim: &Claim,
        wait: Duration,
        stop: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<Slot<'_>, String> {
        let until = Instant::now() + wait;
        let mut taken = self.lock();
        let ticket = taken.join(claim);
        let mut said = String::new();
        while let Some(why) = self.full(&taken, ticket, claim) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                taken.leave(ticket);
                drop(taken);
                self.freed.notify_all();
                return Err(why);
            }
            if why != said {
                say(&why);
                said = why;
            }
            let waited = self.freed.wait_timeout(taken, left.min(GLANCE));
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        taken.start(ticket);
        drop(taken);
        // The job that is next now may fit as well.
        self.freed.notify_all();
        Ok(Slot(self, claim.job))
    }

    /// What a job waits for, if it cannot run beside those that run.
    fn full(&self, taken: &Taken, ticket: u64, claim: &Claim) -> Option<String> {
        let Limits {
            jobs, memory_mib, ..
        } = self.limits;
        let running = taken.running.len();
        if running >= usize::from(jobs) {
            return Some(format!(
                "{jobs} jobs run, the most at this party (`jobs` under [limits] in its veil.toml)"
            ));
        }
        let of_member = |one: &&Running| one.member.is_some() && one.member == claim.member;
        let own = taken.running.values().filter(of_member).count() as u64;
        if claim.member.is_some() && own >= claim.quota.running_jobs {
            return Some(format!("quota: {own} jobs of the same member run"));
        }
        let large = taken.running.values().filter(|one| !one.small).count();
        if jobs > 1 && !claim.is_small() && large + 1 >= usize::from(jobs) {
            return Some("the last place is kept for small jobs".to_owned());
        }
        let free = self.free(taken, claim);
        if claim.need > free {
            return Some(format!(
                "it needs up to {} MiB of working memory, and {} of {memory_mib} MiB are free at this party (`memory_mib` under \
                 [admission] in its veil.toml)",
                mib(claim.need),
                free / MIB
            ));
        }
        let mine = taken.waiting.iter().find(|one| one.ticket == ticket)?;
        // Another job goes first if it could start now.
        let before = |one: &&Waiting| (one.tag, one.ticket) < (mine.tag, mine.ticket);
        let mut others = taken.waiting.iter().filter(before);
        let goes = |one: &Waiting| {
            let own = taken.running.values();
            let own = own.filter(|other| other.member == one.claim.member).count() as u64;
            (one.claim.member.is_none() || own < one.claim.quota.running_jobs)
                && (jobs == 1 || one.claim.is_small() || large + 1 < usize::from(jobs))
        };
        others
            .any(goes)
            .then(|| "jobs of others go first, whose turn it is".to_owned())
    }
}

impl Taken {
    /// Bytes of jobs that run.
    fn running_bytes(&self) -> u64 {
        let bytes = self.running.values().map(|one| one.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Bytes of the plans of jobs that do not run, of those that are asked for.
    fn waiting_plans(&self, of: impl Fn(&PlanHash, &Option<String>) -> bool) -> u64 {
        let waiting = self
            .plans
            .iter()
            .filter(|&(job, (member, _))| !self.running.contains_key(job) && of(job, member));
        waiting.fold(0, |all, (_, (_, bytes))| all.saturating_add(*bytes))
    }

    /// Puts a job where it belongs in the order.
    fn join(&mut self, claim: &Claim) -> u64 {
        self.tickets += 1;
        let had = self.had.get(&claim.member).copied().unwrap_or(0);
        let queued = self.waiting.iter();
        let queued = queued.filter(|one| one.claim.member == claim.member);
        let last = queued.map(|one| one.tag).max().unwrap_or(had);
        let share = claim.work / claim.quota.weight.max(1);
        self.waiting.push(Waiting {
            ticket: self.tickets,
            tag: last.max(self.now).saturating_add(share.max(1)),
            claim: claim.clone(),
        });
        self.tickets
    }

    fn leave(&mut self, ticket: u64) -> Option<Waiting> {
        let at = self.waiting.iter().position(|one| one.ticket == ticket)?;
        Some(self.waiting.remove(at))
    }

    fn start(&mut self, ticket: u64) {
        let Some(Waiting { tag, claim, .. }) = self.leave(ticket) else {
            return;
        };
        let share = claim.work / claim.quota.weight.max(1);
        self.now = self.now.max(tag.saturating_sub(share.max(1)));
        self.had.insert(claim.member.clone(), tag);
        let now = self.now;
        // A member that had less than all have now is as good as new.
        self.had.retain(|_, had| *had > now);
        self.running.insert(
            claim.job,
            Running {
                small: claim.is_small(),
                bytes: claim.need,
                member: claim.member,
            },
        );
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.lock().running.remove(&self.1);
        // A job that needs less than the one that was woken may fit.
        self.0.freed.notify_all();
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.0.lock().plans.remove(&self.1);
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn limits(jobs: u16) -> Limits {
        Limits {
            jobs,
            memory_mib: 100,
            ..Limits::default()
        }
    }

    fn claim(number: u8, member: &str, work: u64) -> Claim {
        Claim {
            job: PlanHash([number; 32]),
            member: (!member.is_empty()).then(|| member.to_owned()),
            quota: Quota::default(),
            need: MIB,
            work,
        }
    }

    /// In which order jobs that wait behind another one start, where one runs at a time.
    fn order(claims: &[Claim]) -> Vec<u8> {
        let slots = Slots::new(limits(1));
        let never = AtomicBool::new(false);
        let long = Duration::from_secs(60);
        let started = Mutex::new(Vec::new());
        let first = slots
            .slot(&claim(255, "", 1), long, &never, &|_| ())
            .unwrap();
        thread::scope(|scope| {
            for (before, one) in claims.iter().enumerate() {
                let (slots, started, never) = (&slots, &started, &never);
                scope.spawn(move || {
                    let _slot = slots.slot(one, long, never, &|_| ()).unwrap();
                    started.lock().unwrap().push(one.job.0[0]);
                });
                while slots.lock().waiting.len() <= before {
                    thread::yield_now();
                }
            }
            drop(first);
        });
        started.into_inner().unwrap()
    }

    #[test]
    fn members_take_turns_by_the_work_that_they_ask_for() {
        let many: Vec<Claim> = (1..=4).map(|number| claim(number, "ann", 100)).collect();
        let late = [claim(9, "bob", 100)];
        assert_eq!(order(&[&many[..], &late].concat()), [1, 9, 2, 3, 4]);
        let small = [claim(9, "bob", 10)];
        assert_eq!(order(&[&many[..], &small].concat()), [9, 1, 2, 3, 4]);
        let mut heavy = claim(9, "bob", 300);
        assert_eq!(
            order(&[&many[..], &[heavy.clone()]].concat()),
            [1, 2, 3, 9, 4]
        );
        heavy.quota.weight = 3;
        assert_eq!(order(&[&many[..], &[heavy]].concat()), [1, 9, 2, 3, 4]);
    }

    #[test]
    fn no_member_has_all_places() {
        let slots = Slots::new(limits(4));
        let never = AtomicBool::new(false);
        let at_once = |claim: &Claim| slots.slot(claim, Duration::ZERO, &never, &|_| ());
        let _two = [1, 2].map(|number| at_once(&claim(number, "ann", 1)).unwrap());
        let why = at_once(&claim(3, "ann", 1)).err().unwrap();
        assert_eq!(why, "quota: 2 jobs of the same member run");
        let _other = at_once(&claim(4, "bob", 1)).unwrap();
    }

    #[test]
    fn the_last_place_is_for_small_jobs() {
        let slots = Slots::new(limits(2));
        let never = AtomicBool::new(false);
        let at_once = |claim: &Claim| slots.slot(claim, Duration::ZERO, &never, &|_| ());
        let _large = at_once(&claim(1, "ann", SMALL)).unwrap();
        let why = at_once(&claim(2, "bob", SMALL)).err().unwrap();
        assert_eq!(why, "the last place is kept for small jobs");
        let _small = at_once(&claim(3, "bob", SMALL - 1)).unwrap();
    }

    #[test]
    fn plans_that_wait_have_a_part_of_the_memory_and_each_member_its_share() {
        // 25 MiB: 12 for jobs that come first, and as much in four shares.
        let slots = Slots::new(limits(4));
        let never = AtomicBool::new(false);
        let reserve = |claim: &Claim, mib| slots.reserve(claim, mib * MIB, 4);
        let first = reserve(&claim(1, "ann", 1), 12).unwrap();
        let why = reserve(&claim(2, "ann", 1), 2).err().unwrap();
        assert_eq!(
            why,
            "its plan takes up to 2 MiB, and those of jobs that wait for their participants take 12 of 25 MiB (a part of `memory_mib` under \
             [admission] in veil.toml)"
        );
        let _bobs = reserve(&claim(3, "bob", 1), 3).unwrap();
        assert!(reserve(&claim(4, "bob", 1), 1).is_err());
        // What runs and what waits are within the memory together.
        let place = |number, member, need| {
            let mut own = claim(number, member, 1);
            own.need = need * MIB;
            slots.slot(&own, Duration::ZERO, &never, &|_| ())
        };
        let why = place(1, "ann", 98).err().unwrap();
        assert!(
            why.contains("it needs up to 98 MiB of working memory, and 97 of 100 MiB are free"),
            "{why}"
        );
        let first_runs = place(1, "ann", 95).unwrap();
        let _second = reserve(&claim(2, "ann", 1), 2).unwrap();
        let why = reserve(&claim(6, "ann", 1), 1).err().unwrap();
        assert_eq!(
            why,
            "its plan takes up to 1 MiB, and jobs that run or wait for their participants take 100 of 100 MiB (`memory_mib` under \
             [admission] in veil.toml)"
        );
        let why = place(5, "bob", 1).err().unwrap();
        assert!(why.contains("0 of 100 MiB are free"), "{why}");
        drop((first, first_runs));
        // However large it is, one may wait.
        let empty = Slots::new(limits(4));
        let _large = empty.reserve(&claim(1, "ann", 1), 90 * MIB, 4).unwrap();
    }
}
