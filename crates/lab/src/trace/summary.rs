//! What a run spent its time on, in numbers.

use serde::Serialize;

use super::merge::Run;

/// How many of the longest waits are told.
const LONGEST: usize = 5;

/// What `veil-lab trace --json` prints.
#[derive(Serialize, Debug)]
pub(crate) struct Summary {
    pub(crate) job: String,
    pub(crate) plan: String,
    pub(crate) trace: String,
    pub(crate) protocol: String,
    pub(crate) rows: u64,
    pub(crate) lanes: u16,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) participants: Vec<Spent>,
    pub(crate) longest_waits: Vec<LongWait>,
    /// Files whose clocks were moved, and by how many seconds.
    pub(crate) clocks_moved: Vec<(String, f64)>,
}

/// What one participant spent its time on, over all its lanes.
#[derive(Serialize, Debug)]
pub(crate) struct Spent {
    pub(crate) name: String,
    pub(crate) role: String,
    /// Rounds that it took part in.
    pub(crate) rounds: u64,
    /// Its device computed.
    pub(crate) busy_seconds: f64,
    /// Messages did not leave at once.
    pub(crate) sending_seconds: f64,
    /// Nothing was computed or sent, and a message was missing.
    pub(crate) waiting_seconds: f64,
    /// Whom it waited for, the longest first.
    pub(crate) waited_for: Vec<(String, f64)>,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
}

/// One long wait.
#[derive(Serialize, Debug)]
pub(crate) struct LongWait {
    pub(crate) who: String,
    pub(crate) for_whom: String,
    pub(crate) at: String,
    pub(crate) lane: u16,
    pub(crate) seconds: f64,
    /// When it began, from the start of the trace.
    pub(crate) since_seconds: f64,
}

/// What a lane does at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    Computing,
    Sending,
    /// For this participant.
    Waiting(u32),
}

/// A stretch of time in which one lane of a participant does one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) doing: Doing,
    /// Index of the event.
    pub(crate) event: usize,
}

/// What a lane of a participant does, in order of time and without overlap: chunks are in flight together, and computing hides waiting.
pub(crate) fn stretches(run: &Run, by: u32, lane: u16) -> Vec<Stretch> {
    let mine = || {
        let all = run.events.iter().enumerate();
        all.filter(|(_, e)| (e.by, e.lane) == (by, lane))
    };
    let mut busy = Vec::new();
    let mut waits = Vec::new();
    for (event, e) in mine() {
        let add = |to: &mut Vec<Stretch>, from, until, doing| {
            if until > from {
                to.push(Stretch {
                    from,
                    to: until,
                    doing,
                    event,
                });
            }
        };
        let [began, computed, posted, landed, ended] = e.t;
        add(&mut busy, began, computed, Doing::Computing);
        add(&mut busy, computed, posted, Doing::Sending);
        if let Some((whom, waited)) = e.wait() {
            add(&mut waits, posted, posted + waited, Doing::Waiting(whom));
        }
        add(&mut busy, landed, ended, Doing::Computing);
    }
    busy.sort_by_key(|s| (s.from, s.to));
    waits.sort_by_key(|s| (s.from, s.to));
    let mut all: Vec<Stretch> = Vec::with_capacity(busy.len() + waits.len());
    // A lane does one thing at a time; where clocks were moved or a device works beside it, the earlier one counts.
    let mut until = 0;
    for mut s in busy {
        s.from = s.from.max(until);
        if s.to > s.from {
            until = s.to;
            all.push(s);
        }
    }
    let filled = all.len();
    let (mut next, mut until) = (0, 0);
    for wait in waits {
        let mut from = wait.from.max(until);
        while next < filled && all[next].to <= from {
            next += 1;
        }
        let mut k = next;
        while from < wait.to {
            let stop = all[..filled]
                .get(k)
                .map_or(wait.to, |s| s.from.min(wait.to));
            if stop > from {
                all.push(Stretch {
                    from,
                    to: stop,
                    ..wait
                });
            }
            let Some(s) = all[..filled].get(k) else { break };
            from = from.max(s.to);
            k += 1;
        }
        until = until.max(wait.to);
    }
    all.sort_by_key(|s| s.from);
    all
}

/// Lanes that a participant has rounds in.
pub(crate) fn lanes(run: &Run, by: u32) -> Vec<u16> {
    let mut lanes: Vec<u16> = run
        .events
        .iter()
        .filter(|e| e.by == by)
        .map(|e| e.lane)
        .collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// Sums a run up.
pub(crate) fn summarise(run: &Run) -> Summary {
    let name = |index: u32| run.header.participants[index as usize].name.clone();
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let all = |bytes: &mut dyn Iterator<Item = u64>| bytes.fold(0, u64::saturating_add);
    let mut participants = Vec::new();
    let mut waits = Vec::new();
    for (by, participant) in (0u32..).zip(&run.header.participants) {
        let mine = || run.events.iter().filter(|e| e.by == by);
        if mine().next().is_none() {
            continue;
        }
        let (mut busy, mut sending, mut waited) = (0u64, 0u64, 0u64);
        let mut whom = vec![0u64; run.header.participants.len()];
        for lane in lanes(run, by) {
            for s in stretches(run, by, lane) {
                let took = s.to - s.from;
                match s.doing {
                    Doing::Computing => busy = busy.saturating_add(took),
                    Doing::Sending => sending = sending.saturating_add(took),
                    Doing::Waiting(peer) => {
                        waited = waited.saturating_add(took);
                        let whom = &mut whom[peer as usize];
                        *whom = whom.saturating_add(took);
                        waits.push((took, by, peer, s));
                    }
                }
            }
        }
        let mut waited_for: Vec<(String, f64)> = (0u32..)
            .zip(&whom)
            .filter(|(_, took)| **took > 0)
            .map(|(peer, took)| (name(peer), seconds(*took)))
            .collect();
        waited_for.sort_by(|a, b| b.1.total_cmp(&a.1));
        participants.push(Spent {
            name: participant.name.clone(),
            role: participant.role.clone(),
            rounds: mine().count() as u64,
            busy_seconds: seconds(busy),
            sending_seconds: seconds(sending),
            waiting_seconds: seconds(waited),
            waited_for,
            bytes_sent: all(&mut mine().flat_map(|e| &e.sent).map(|s| s.2)),
            bytes_received: all(&mut mine().flat_map(|e| &e.received).map(|r| r.2)),
        });
    }
    waits.sort_by_key(|(took, ..)| std::cmp::Reverse(*took));
    let longest_waits = waits.iter().take(LONGEST).map(|(took, by, peer, s)| {
        let event = &run.events[s.event];
        LongWait {
            who: name(*by),
            for_whom: name(*peer),
            at: event.what(),
            lane: event.lane,
            seconds: seconds(*took),
            since_seconds: seconds(s.from),
        }
    });
    Summary {
        job: run.header.job.clone(),
        plan: run.header.plan.clone(),
        trace: run.header.trace.clone(),
        protocol: run.header.protocol.clone(),
        rows: run.header.rows,
        lanes: run.header.lanes,
        seconds: seconds(run.end),
        rounds: run.events.len(),
        participants,
        longest_waits: longest_waits.collect(),
        clocks_moved: run
            .moved
            .iter()
            .map(|(file, by)| (file.clone(), *by as f64 / 1e9))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Event;
    use super::super::read::tests::{event, header};
    use super::*;

    fn run(events: Vec<Event>) -> Run {
        let end = events.iter().map(|e| e.t[4]).max().unwrap_or(0);
        Run {
            header: header(),
            events,
            moved: Vec::new(),
            end,
        }
    }

    #[test]
    fn computing_hides_waiting() {
        // Chunk 1 waits from 20 to 50; chunk 2 computes from 30 to 40 on the same lane.
        let first = event(0, [0, 10, 20, 50, 60]);
        let mut second = event(0, [30, 40, 40, 60, 65]);
        second.received.clear();
        let run = run(vec![first, second]);
        let seen: Vec<_> = stretches(&run, 0, 0)
            .into_iter()
            .map(|s| (s.from, s.to, s.doing))
            .collect();
        assert_eq!(
            seen,
            [
                (0, 10, Doing::Computing),
                (10, 20, Doing::Sending),
                (20, 30, Doing::Waiting(1)),
                (30, 40, Doing::Computing),
                (40, 50, Doing::Waiting(1)),
                (50, 60, Doing::Computing),
                (60, 65, Doing::Computing),
            ]
        );
        let summary = summarise(&run);
        let spent = &summary.participants[0];
        assert_eq!(summary.participants.len(), 1);
        assert!((spent.busy_seconds - 35e-9).abs() < 1e-12);
        assert!((spent.waiting_seconds - 20e-9).abs() < 1e-12);
        assert_eq!((spent.bytes_sent, spent.bytes_received), (128, 64));
        assert_eq!(spent.waited_for[0].0, "b");
        assert_eq!(summary.longest_waits[0].at, "layer 1 of chunk 1");
    }

    #[test]
    fn two_waits_at_once_count_once() {
        let first = event(0, [0, 10, 10, 50, 60]);
        let mut second = event(0, [10, 20, 20, 70, 80]);
        second.chunk = 2;
        let run = run(vec![first, second]);
        let waited: u64 = stretches(&run, 0, 0)
            .into_iter()
            .filter(|s| matches!(s.doing, Doing::Waiting(_)))
            .map(|s| s.to - s.from)
            .sum();
        // 20 to 50, then 60 to 70: from 10 to 20 and from 50 to 60 it computes.
        assert_eq!(waited, 40);
    }
}
