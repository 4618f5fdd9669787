//! The outcome of a run, and assertions about it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use veil_circuit::Per;
use veil_engine::{Abort, Report};
use veil_protocol::Plan;
use veil_session::{Channel, Peer};

use crate::values::Rows;
use crate::{Kind, Seed, Seen, Shares, Values};

/// A message on a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Who sent it.
    pub from: Peer,
    /// To whom.
    pub to: Peer,
    /// Its name.
    pub at: Channel,
    /// The kind. `None`: no such message is in the plan.
    pub kind: Option<Kind>,
    /// Its payload.
    pub bytes: Vec<u8>,
}

/// The outcome of a run.
pub struct Outcome {
    /// The plan that was run.
    pub plan: Arc<Plan>,
    /// Repeats the run.
    pub seed: Seed,
    /// All inputs.
    pub values: Arc<Values>,
    /// How long it took.
    pub elapsed: Duration,
    /// The report of each participant that is done. A run in one process tells it only if all are.
    pub reports: BTreeMap<Peer, Report>,
    /// Why participants gave up.
    pub aborts: BTreeMap<Peer, Abort>,
    /// The opened values that each participant was given.
    pub seen: BTreeMap<Peer, Arc<Seen>>,
    /// The shares that each party keeps.
    pub kept: Vec<Arc<Shares>>,
    /// Every message that was sent, after cheating. For a participant with a crash fault it includes the messages that it could no longer
    /// send.
    pub transcript: Vec<Message>,
}

impl Drop for Outcome {
    /// Whatever assertion failed: this is how to see it again.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat this run: {}", self.seed);
        }
    }
}

impl Outcome {
    /// Output ports that are opened to `peer`.
    pub fn ports_of(&self, peer: Peer) -> Vec<usize> {
        let audiences = self.plan.job.audiences.iter().enumerate();
        audiences
            .filter(|(_, audience)| audience.includes(peer))
            .map(|(port, _)| port)
            .collect()
    }

    /// What `peer` got for output port `port`.
    pub fn rows(&self, peer: Peer, port: usize) -> Option<Rows> {
        self.seen[&peer].rows(self.plan.ring, port)
    }

    /// Every participant is done and has the right results.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn assert_right(&self) -> &Self {
        assert!(self.aborts.is_empty(), "{}: {:?}", self.seed, self.aborts);
        let expected = self.values.expected(&self.plan.job);
        for (&peer, seen) in &self.seen {
            assert!(seen.finished(), "{}: {peer} has not finished", self.seed);
            for port in self.ports_of(peer) {
                let rows = self.rows(peer, port);
                assert_eq!(
                    rows.as_ref(),
                    Some(&expected[port]),
                    "{}: {peer}, output {port}",
                    self.seed
                );
            }
        }
        for (k, port) in self.plan.job.keeps().into_iter().enumerate() {
            assert!(
                self.kept.iter().all(|kept| kept.finished()),
                "{}: what is kept is not complete",
                self.seed
            );
            let mut expected = expected[port.port].clone();
            if port.per == Per::Job {
                expected.truncate(1);
            }
            assert_eq!(
                self.joined(port.port),
                expected,
                "{}: kept port {k}",
                self.seed
            );
        }
        self
    }

    /// The values of output port `port`, whose shares the parties keep.
    ///
    /// # Panics
    /// If the holders of a component have not the same.
    #[track_caller]
    pub fn joined(&self, port: usize) -> Rows {
        Shares::join(&self.kept, port)
    }

    /// Whatever happened, no participant but perhaps `crashed` was given a wrong value, and none finished without all of its values.
    ///
    /// # Panics
    /// If not.
    #[track_caller]
    pub fn assert_sound(&self, crashed: Option<Peer>) -> &Self {
        let expected = self.values.expected(&self.plan.job);
        for (&peer, seen) in self.seen.iter().filter(|(peer, _)| Some(**peer) != crashed) {
            let done = seen.finished() || !self.aborts.contains_key(&peer);
            for port in self.ports_of(peer) {
                let rows = self.rows(peer, port);
                if done {
                    assert_eq!(
                        rows.as_ref(),
                        Some(&expected[port]),
                        "{}: {peer} is done, output {port}",
                        self.seed
                    );
                } else {
                    let right = |rows: &Rows| rows.iter().all(|row| expected[port].contains(row));
                    assert!(
                        rows.as_ref().is_none_or(right),
                        "{}: {peer} was given a wrong value of {port}",
                        self.seed
                    );
                }
            }
            // Where there are last words, what they say is written before they are heard.
            let words = !self.plan.job.loads().is_empty() || self.plan.keeps();
            let both = seen.finished() && self.aborts.contains_key(&peer) && !words;
            assert!(!both, "{}: {peer} gave up and finished", self.seed);
        }
        self
    }

    /// Why `peer` gave up.
    ///
    /// # Panics
    /// If it did not.
    #[track_caller]
    pub fn abort(&self, peer: Peer) -> &Abort {
        self.aborts.get(&peer).unwrap_or_else(|| {
            panic!(
                "{}: {peer} did not give up; others: {:?}",
                self.seed, self.aborts
            )
        })
    }

    /// Messages of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Message> {
        self.transcript.iter().filter(move |m| m.kind == Some(kind))
    }

    /// SHA-256 of the messages of each direction, in the order of their names, in hex, with the number of messages.
    pub fn digests(&self) -> BTreeMap<(Peer, Peer), String> {
        let mut directions: BTreeMap<(Peer, Peer), Vec<&Message>> = BTreeMap::new();
        for message in &self.transcript {
            directions
                .entry((message.from, message.to))
                .or_default()
                .push(message);
        }
        let digest = |mut messages: Vec<&Message>| {
            messages.sort_by_key(|m| m.at);
            let mut hash = Sha256::new();
            for Message {
                at: Channel { frame, step, part },
                bytes,
                ..
            } in &messages
            {
                hash.update(frame.epoch.to_le_bytes());
                hash.update(frame.lane.to_le_bytes());
                hash.update(frame.chunk.to_le_bytes());
                hash.update(frame.rows.to_le_bytes());
                hash.update(step.place.to_le_bytes());
                hash.update(step.cycle.to_le_bytes());
                hash.update(part.to_le_bytes());
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            }
            let mut text = format!("{} ", messages.len());
            for byte in hash.finalize() {
                // Writing to a string does not fail.
                let _ = write!(text, "{byte:02x}");
            }
            text
        };
        directions
            .into_iter()
            .map(|(ends, messages)| (ends, digest(messages)))
            .collect()
    }
}
