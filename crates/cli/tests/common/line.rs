//! The line from party c to party a, on which a test keeps back what c sends: so a run stands still in each phase for as long as the test
//! wants, on a slow machine too.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use veil_node::Home;
use veil_node::control::{self, Request};

use super::Folder;
use super::deployment::{At, PATIENCE, wait_for};
use super::relay::Relay;

/// The party that is kept waiting, and the one whose messages are kept back: it calls the other.
const WAITS: &str = "a";
const CALLS: &str = "c";

/// What does not change for so many looks will not, since something came that has been taken;
const SETTLED: u32 = 3;
/// or whether anything was taken or not: a part of a message is not.
const AT_REST: u32 = 15;

/// A run's phases in their order.
const PHASES: [&str; 5] = ["meeting", "handshake", "set-up", "rows", "opening"];

/// The line. Nothing is kept back at first.
pub(crate) struct Line {
    relay: Relay,
    /// Records of a connection before its first message: a certificate, and a call.
    call: usize,
    /// Runs that were reached.
    traces: BTreeSet<String>,
}

impl Line {
    /// Stands on the line from now on, in a folder with the homes of a and c. Their services are started after that.
    pub(crate) fn stand(folder: &Folder, a: &Home) -> Self {
        let relay = Relay::on_the_line(folder, CALLS, a);
        relay.hold(usize::MAX);
        Line {
            relay,
            call: 0,
            traces: BTreeSet::new(),
        }
    }

    /// Finds out of what a call consists: c calls a, whose service runs, about something that is no job. To be done before there is one.
    pub(crate) fn learn(&mut self, folder: &Folder) {
        let c = Home::open(&folder.at(CALLS)).unwrap();
        let members = c.members();
        let until = Instant::now() + Duration::from_secs(PATIENCE);
        let request = Request::Hello {};
        control::ask(
            &c.identity(),
            members.by_name(WAITS).unwrap(),
            &request,
            until,
        )
        .unwrap();
        self.call = *self.relay.passed().last().unwrap();
        assert!(self.call > 1, "a certificate and a call are two records");
    }

    /// Keeps back all messages of every run from now on, but those that [`Line::step`] and [`Line::reach`] let through: not the calls for a
    /// run, and no questions beside it.
    pub(crate) fn hold(&self) {
        assert!(self.call > 0, "what a call consists of was not learnt");
        self.relay.hold(self.call);
    }

    /// Keeps nothing back.
    pub(crate) fn let_go(&self) {
        self.relay.hold(usize::MAX);
    }

    /// Passes on what comes next: a record, however many messages c has put into it.
    pub(crate) fn step(&self) {
        self.relay.step();
    }

    /// Waits until a run that was not reached before has come to this phase, and a waits there for c. In the phases before it, what a waits
    /// for is passed on, step by step: each when a has taken the one before and moves no more. On a busy machine c puts the messages of two
    /// phases into one record: then a waits in the phase after this one. A run that was given up meanwhile, since the machine stood still,
    /// does not count: the next one is held as this one was.
    pub(crate) fn reach(&mut self, phase: &str, look: impl Fn() -> At) {
        let order = |name: &str| PHASES.iter().position(|phase| *phase == name);
        let wanted = order(phase).unwrap();
        let (mut before, mut same, mut taken) = (At::default(), 0, None);
        let stepped = || {
            let seen = look();
            same = if seen == before { same + 1 } else { 0 };
            let early =
                self.stands(&seen) && order(&seen.phase).is_some_and(|phase| phase < wanted);
            let enough = if taken == Some(seen.received) {
                AT_REST
            } else {
                SETTLED
            };
            if early && same >= enough {
                self.step();
                (same, taken) = (0, Some(seen.received));
            }
            before = seen.clone();
            seen
        };
        let seen = wait_for(phase, stepped, |seen| {
            self.stands(seen) && order(&seen.phase) >= Some(wanted)
        });
        self.traces.insert(seen.trace);
    }

    /// Whether a waits for c, in a run that was not reached before. One without a name yet is new: it has no second chance to be reached.
    fn stands(&self, seen: &At) -> bool {
        let new = seen.trace.is_empty() || !self.traces.contains(&seen.trace);
        seen.state == "running" && new && seen.waits_for.iter().any(|name| name == CALLS)
    }
}
