//! For how long a lane has waited for others.

use std::time::{Duration, Instant};

/// A lane that waits looks every few milliseconds. If it has not looked for longer, its own machine stood still, or had other work.
const LOOKS: Duration = Duration::from_millis(250);

/// The time since something has moved, without the time in which the lane itself could not look: what came meanwhile is not known yet, and
/// a machine that stands still usually does so with all participants on it. So a participant that was suspended takes no peer for lost
/// because of that.
pub(super) struct Quiet {
    since: Instant,
    looked: Instant,
    away: Duration,
}

impl Quiet {
    /// Something has moved just now.
    pub(super) const fn new(now: Instant) -> Self {
        Quiet {
            since: now,
            looked: now,
            away: Duration::ZERO,
        }
    }

    /// Since when nothing has moved.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    /// The lane looks, and nothing moves: for how long it has waited. A look that is late counts for [`LOOKS`].
    pub(super) fn look(&mut self, now: Instant) -> Duration {
        let gap = now.saturating_duration_since(self.looked);
        self.away += gap.saturating_sub(LOOKS);
        self.looked = now;
        now.saturating_duration_since(self.since)
            .saturating_sub(self.away)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_away_has_not_waited() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let waited = |looks: &[u64]| {
            let mut quiet = Quiet::new(start);
            let waited = looks.iter().map(|millis| quiet.look(at(*millis)));
            waited.last().unwrap().as_millis()
        };
        assert_eq!(waited(&[50, 100, 150]), 150);
        assert_eq!(waited(&[250, 500]), 500);
        // A minute of standstill, in the middle and at once.
        assert_eq!(waited(&[50, 60_050, 60_100]), 350);
        assert_eq!(waited(&[60_000]), 250);
        // Always late: it takes longer, and comes to an end all the same.
        let late: Vec<u64> = (1..=100).map(|k| 1000 * k).collect();
        assert_eq!(waited(&late), 25_000);
        let mut quiet = Quiet::new(start);
        quiet.look(at(60_000));
        assert_eq!(quiet.since(), start);
    }
}
