//! Unknown keys: each is named in the log lines, once a minute however often it comes, and counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use veil_link::tls::Fingerprint;

use crate::members::{Members, Standing};

/// A key is named so often, and no oftener.
const EVERY: Duration = Duration::from_secs(60);

/// Keys that are told apart: they cost nothing, and a line each would fill a disk.
const TOLD_APART: usize = 32;

/// Callers whose key is no member's.
#[derive(Default)]
pub(super) struct Strangers {
    /// Callers that were let in to join, and asked for something else.
    asked: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// When each was named, and how often it came since.
    keys: BTreeMap<Fingerprint, (Instant, u64)>,
    /// The same of the keys beyond the limit.
    others: Option<(Instant, u64)>,
}

/// What is to be said of a key that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Nothing,
    /// It is named, and came so often since it was last.
    Key(u64),
    /// So many were not named.
    Others(u64),
}

impl Seen {
    fn comes(&mut self, key: Fingerprint, now: Instant) -> Said {
        let is_old = |at: &Instant| now.duration_since(*at) >= EVERY;
        if let Some((at, since)) = self.keys.get_mut(&key) {
            *since += 1;
            if !is_old(at) {
                return Said::Nothing;
            }
            *at = now;
            return Said::Key(std::mem::take(since));
        }
        if self.keys.len() >= TOLD_APART {
            self.keys.retain(|_, (at, _)| !is_old(at));
        }
        if self.keys.len() < TOLD_APART {
            self.keys.insert(key, (now, 0));
            return Said::Key(1);
        }
        let (at, since) = self.others.get_or_insert((now, 0));
        *since += 1;
        if !is_old(at) {
            return Said::Nothing;
        }
        *at = now;
        Said::Others(std::mem::take(since))
    }
}

impl Strangers {
    /// A key was refused, since it is no member's.
    pub(super) fn notice(&self, key: &Fingerprint, members: &Members) {
        // A thread that panics here leaves counts that are as good.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let said = seen.comes(*key, Instant::now());
        drop(seen);
        match (said, members.standing(key)) {
            (Said::Nothing, _) => {}
            (Said::Key(times), Standing::Revoked(member)) => {
                tracing::warn!(%key, member = %member.name, times, "refused: the key of a member that was revoked");
            }
            (Said::Key(times), Standing::Former(member)) => {
                tracing::warn!(%key, member = %member.name, times, "refused: a key that its member has replaced");
            }
            (Said::Key(times), Standing::Stranger | Standing::Active(_)) => {
                tracing::warn!(%key, times, "refused: nobody here knows this key; if a member has replaced its own, `veil join` takes its statement (`veil identity show --statements` there)");
            }
            (Said::Others(times), _) => {
                tracing::warn!(times, "refused: more keys that nobody here knows");
            }
        }
    }

    /// The same of a caller that was let in to join, and asked for something else.
    pub(super) fn asks(&self, key: &Fingerprint, members: &Members) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.notice(key, members);
    }

    /// How many asked for something else than to join.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_once_a_minute_and_many_keys_in_one_line() {
        let mut seen = Seen::default();
        let key = |k: u8| Fingerprint::from_bytes([k; 32]);
        let now = Instant::now();
        assert_eq!(seen.comes(key(0), now), Said::Key(1));
        for _ in 0..10 {
            assert_eq!(seen.comes(key(0), now), Said::Nothing);
        }
        assert_eq!(seen.comes(key(0), now + EVERY), Said::Key(11));
        for k in 1..TOLD_APART as u8 {
            assert_eq!(seen.comes(key(k), now + EVERY), Said::Key(1));
        }
        for k in 100..200 {
            assert_eq!(seen.comes(key(k), now + EVERY), Said::Nothing);
        }
        let later = now + EVERY + EVERY / 2;
        assert_eq!(seen.comes(key(0), now + 2 * EVERY), Said::Key(1));
        assert_eq!(seen.comes(key(201), later), Said::Nothing);
    }
}
