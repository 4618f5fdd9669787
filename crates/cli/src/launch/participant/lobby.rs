//! Who has not come, while a participant waits for the others; and how far the parties are, once they run.
//!
//! A participant sees which of the parties it has no connection with. The parties say whom they wait for: a participant that waits asks
//! them every two seconds, and shows who is missing whenever that changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use veil_engine::{Phase, Progress, name_of, participants};
use veil_link::tls::SetupError;
use veil_node::jobs::{State, Status};
use veil_node::meeting::{HeldFor, OWN_FILES, Parties, Said};
use veil_protocol::Plan;
use veil_session::Peer;

use super::Engagement;
use crate::failure::{Code, Failure};

/// Between two questions of a participant that waits, and how long a party has to answer one.
const BETWEEN: Duration = Duration::from_secs(2);

/// Between two questions about a run that goes on, at most: each next pause is longer.
const LONGEST: Duration = Duration::from_secs(10);

/// What takes less needs no word about how far it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is looked whether there is something to do.
const GLANCE: Duration = Duration::from_millis(20);

/// A participant that waits, in all its roles at once.
pub(super) struct Lobby<'a> {
    engagement: &'a Engagement<'a>,
    plan: &'a Arc<Plan>,
    since: Instant,
    seen: Arc<Mutex<Seen>>,
    over: Arc<AtomicBool>,
}

/// What is known of those who have not come, and of the run.
#[derive(Default)]
struct Seen {
    /// The roles that wait, and whom each has no connection with.
    own: BTreeMap<Peer, Vec<Peer>>,
    /// Those with whom a role is connected and who have not said a word.
    silent: BTreeMap<Peer, Vec<Peer>>,
    /// Whom the parties miss, and what holds those up as far as it is known.
    said: BTreeMap<String, Option<&'static str>>,
    /// Rows that all parties have done, as they say.
    rows: Option<u64>,
    /// Since when it runs.
    runs: Option<Instant>,
    /// The parties were asked so often.
    asked: u64,
    /// They are to be asked now.
    now: bool,
}

impl<'a> Lobby<'a> {
    /// Waits for those of `plan`, a stage of the job.
    pub(super) fn new(engagement: &'a Engagement<'a>, plan: &'a Arc<Plan>) -> Self {
        let (seen, over) = (Arc::default(), Arc::default());
        let lobby = Lobby {
            engagement,
            plan,
            since: Instant::now(),
            seen,
            over,
        };
        let parties = Parties::of(engagement.home, engagement.plan);
        let (seen, over) = (Arc::clone(&lobby.seen), Arc::clone(&lobby.over));
        // Not waited for: the party that is asked may be gone. Without it, what this side sees itself is all that is said.
        let asks = thread::Builder::new().name("who is missing".into());
        drop(asks.spawn(move || ask(&parties, &seen, &over)));
        lobby
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    /// `me` has no connection with these.
    pub(super) fn misses(&self, me: Peer, peers: &[Peer]) {
        if let (Some(_), Some(foreground)) = (me.party(), &self.engagement.foreground) {
            foreground.misses(self.plan, peers);
        }
        self.seen().own.insert(me, peers.to_owned());
    }

    /// What is known of a run, to be shown: only the parties know how far the job is.
    pub(super) fn goes(&self, mut progress: Progress) -> Progress {
        let me = progress.me;
        if let (Some(_), Some(foreground)) = (me.party(), &self.engagement.foreground) {
            foreground.goes(self.plan, &progress);
        }
        let mut seen = self.seen();
        if progress.phase == Phase::Meeting {
            let silent = progress.waits.iter().map(|wait| wait.peer).collect();
            seen.silent.insert(me, silent);
            return progress;
        }
        seen.own.remove(&me);
        seen.silent.remove(&me);
        if seen.own.is_empty() {
            seen.runs.get_or_insert_with(Instant::now);
        }
        if me.party().is_none() && self.engagement.again && progress.phase != Phase::Done {
            let rows = seen.rows.unwrap_or(0);
            progress.rows = progress.rows.min(rows);
            let passed = progress.rows.saturating_mul(progress.cycles);
            progress.passed = progress.passed.min(passed);
        }
        progress
    }

    /// Says who is missing whenever that is news, until `over`.
    pub(super) fn watch(&self, over: &AtomicBool) {
        let (mut shown, mut due) = (Vec::new(), self.since + BETWEEN);
        let (mut asked, mut pause) = (0, BETWEEN);
        while !over.load(Ordering::Relaxed) {
            thread::sleep(GLANCE);
            let mut seen = self.seen();
            match seen.runs {
                Some(since) if since.elapsed() >= PATIENCE && Instant::now() >= due => {
                    seen.now = true;
                    due = Instant::now() + pause;
                    pause = (pause * 2).min(LONGEST);
                }
                None if !seen.own.is_empty() && Instant::now() >= due => {
                    seen.now = true;
                    due = Instant::now() + BETWEEN;
                }
                _ => {}
            }
            let news = seen.asked != asked && !seen.own.is_empty();
            asked = seen.asked;
            let missing = self.missing(&seen);
            drop(seen);
            if news && missing != shown && !missing.is_empty() {
                (self.engagement.say)(&self.line(&missing));
                shown = missing;
            }
        }
    }

    /// Who is missing, each as people call it, and what holds it up.
    fn missing(&self, seen: &Seen) -> Vec<(String, Option<&'static str>)> {
        let own = &self.engagement.home.settings().name;
        let direct = seen.own.values().flatten();
        let mut names: BTreeMap<&str, Option<&'static str>> = direct
            .map(|peer| (name_of(self.plan, *peer), None))
            .collect();
        for (name, why) in &seen.said {
            let known = names.entry(name.as_str()).or_default();
            *known = known.or(*why);
        }
        names.remove(own.as_str());
        if names.is_empty() {
            let silent = seen.silent.values().flatten();
            names.extend(silent.map(|peer| (name_of(self.plan, *peer), None)));
        }
        let mut all = participants(self.engagement.plan);
        all.retain(|peer| names.contains_key(name_of(self.engagement.plan, *peer)));
        let mut missing: Vec<_> = all
            .into_iter()
            .filter_map(|peer| {
                let name = name_of(self.engagement.plan, peer);
                let why = names.remove(name)?;
                Some((format!("{} `{name}`", role(peer)), why))
            })
            .collect();
        missing.sort_by_key(|(_, why)| why.is_some());
        missing
    }

    fn line(&self, missing: &[(String, Option<&'static str>)]) -> String {
        let held = missing.iter().any(|(_, why)| why.is_some());
        let one = |(who, why): &(String, Option<&'static str>)| match why {
            Some(why) => format!("{who}: {why}"),
            None => who.clone(),
        };
        let all: Vec<String> = missing.iter().map(one).collect();
        let (between, end) = if held { ("; ", ",") } else { (", ", "") };
        format!(
            "waiting for {}{end} since {} ({} at most)",
            all.join(between),
            span(self.since.elapsed()),
            span(self.engagement.wait)
        )
    }

    /// What a meeting failed for: if the time was over, who has not come.
    pub(super) fn failure(&self, error: &SetupError) -> Failure {
        let SetupError::TimedOut { peers, hint } = error else {
            return Failure::setup(self.plan, error);
        };
        self.ask_once();
        let mut seen = self.seen();
        // Another role may be there, and wait no more.
        let own = seen.own.keys().next().copied();
        if let Some(me) = own {
            seen.own.insert(me, Vec::new());
            let (silent, direct): (Vec<Peer>, Vec<Peer>) =
                peers.iter().partition(|peer| is_silent(&seen, **peer));
            seen.own.insert(me, direct);
            seen.silent.insert(me, silent);
        }
        let missing = self.missing(&seen);
        drop(seen);
        if missing.is_empty() {
            return Failure::setup(self.plan, error);
        }
        let line = self.line(&missing);
        let message = if hint.is_empty() {
            line
        } else {
            format!("{line}; {hint}")
        };
        Failure::new(Code::Link, message)
            .help("`veil jobs` shows how the job is at each party, and whom it waits for")
    }

    /// Adds who is missing to a failure, if `me` still waited: a peer that had waited for longer may have given up.
    pub(super) fn meanwhile(&self, me: Peer, failure: Failure) -> Failure {
        let seen = self.seen();
        let missing = self.missing(&seen);
        if !seen.own.contains_key(&me) || seen.asked == 0 || missing.is_empty() {
            return failure;
        }
        let message = format!("{failure}; meanwhile {}", self.line(&missing));
        Failure::new(failure.code(), message).help(failure.advice())
    }

    /// Asks the parties once more, if they answer soon.
    fn ask_once(&self) {
        let before = {
            let mut seen = self.seen();
            seen.now = true;
            seen.asked
        };
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && self.seen().asked == before {
            thread::sleep(GLANCE);
        }
    }
}

impl Drop for Lobby<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn is_silent(seen: &Seen, peer: Peer) -> bool {
    seen.silent.values().flatten().any(|silent| *silent == peer)
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    // Every change leaves it whole.
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the parties whenever they are to be asked, until `over`.
fn ask(parties: &Parties, seen: &Mutex<Seen>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        thread::sleep(GLANCE);
        if !std::mem::take(&mut lock(seen).now) {
            continue;
        }
        let all = parties.ask(BETWEEN);
        let mut said = BTreeMap::new();
        for (party, status) in &all {
            heard(&mut said, party, status);
        }
        let rows = all.iter().filter_map(|(_, said)| match said {
            Said::Is(status) if status.state == State::Running => Some(status.rows),
            _ => None,
        });
        let rows = rows.min();
        let mut seen = lock(seen);
        seen.rows = seen.rows.max(rows);
        seen.said = said;
        seen.asked += 1;
    }
}

/// Takes note of what a party says of those who are missing.
fn heard(missing: &mut BTreeMap<String, Option<&'static str>>, party: &str, said: &Said) {
    let mut misses = |name: &str, why: Option<&'static str>| {
        let known = missing.entry(name.to_owned()).or_default();
        *known = known.or(why);
    };
    match said {
        Said::Nothing => {}
        Said::Unknown => misses(party, Some("it does not know the job")),
        Said::Is(status) => match status.state {
            State::Pending | State::Failed if status.why.as_deref() == Some(OWN_FILES) => {
                misses(party, Some(HeldFor::Data.sentence()));
            }
            State::Pending => misses(party, Some(HeldFor::Approval.sentence())),
            State::Interrupted => misses(party, Some("it was interrupted there")),
            State::Refused => misses(party, Some("it refuses the job")),
            State::Queued => misses(party, Some("other jobs run there")),
            State::Meeting => waits(status, &mut misses),
            State::Running if status.phase.as_deref() == Some(Phase::Meeting.name()) => {
                waits(status, &mut misses);
            }
            State::Running | State::Done | State::Failed => {}
        },
    }
}

/// Whom a party waits for that is ready itself.
fn waits(status: &Status, misses: &mut dyn FnMut(&str, Option<&'static str>)) {
    for name in &status.waits_for {
        misses(name, status.held.get(name).map(|held| held.sentence()));
    }
}

/// A role, in a word.
const fn role(peer: Peer) -> &'static str {
    match peer {
        Peer::Party(_) => "party",
        Peer::Owner(_) => "owner",
        Peer::Recipient(_) => "recipient",
    }
}

/// A time as people say it.
fn span(time: Duration) -> String {
    match (time.as_secs() / 60, time.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (1, seconds) => format!("{} s", 60 + seconds),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (seconds, text) in [
            (0, "0 s"),
            (38, "38 s"),
            (60, "1 min"),
            (95, "95 s"),
            (300, "5 min"),
            (310, "5 min 10 s"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), text);
        }
    }
}
