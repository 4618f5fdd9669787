//! A build that is bad on purpose: checks come after the messages that depend on what they check.

use std::borrow::Cow;
use std::sync::Arc;

use veil_device::{Command, KeyId, Layout, Program, Region, Residency, Span};
use veil_protocol::{Cost, Flow, Protocol, Replicated, Round, Seed, Spans, Task, WorkspaceOf};
use veil_session::{Frame, Peer};

/// A protocol that checks what its layers receive after the last of them: what peers of ours call deferred verification, and what rule R1
/// forbids. It exists to show that the attack on it works (attack case B7).
#[derive(Debug)]
pub struct Late {
    inner: Replicated,
    /// Of chunks.
    layout: Layout,
    /// The place of the operands of a late comparison: the two sides of a check next to each other.
    kept: u16,
}

impl Late {
    /// The same protocol, with late checks.
    pub fn new(inner: Replicated) -> Self {
        let mut layout = inner.layout(WorkspaceOf::Rows).clone();
        let mut checks = 0;
        let mut item = None;
        for chunk in 0..2 {
            let rounds = layers(&inner, chunk);
            let all = rounds
                .iter()
                .flat_map(|r| r.checks.iter().map(|c| &r.finish[c.command]));
            item = item.or_else(|| {
                let span = all.clone().next()?.src[0];
                Some(layout.regions[span.region as usize].column)
            });
            checks = checks.max(all.count() as u32);
        }
        let kept = item.map_or(0, |column| {
            layout.add(Region {
                residency: Residency::Mapped,
                column,
                components: 1,
                count: 2 * checks,
            })
        });
        Late {
            inner,
            layout,
            kept,
        }
    }

    /// The rounds of the layers, with all checks in the last one.
    fn late(&self, mut rounds: Vec<Round>) -> Vec<Round> {
        let mut late: Vec<(Command, veil_protocol::Check)> = Vec::new();
        for round in &mut rounds {
            let checks = std::mem::take(&mut round.checks);
            for check in &checks {
                let mut command = round.finish[check.command].clone();
                for (which, side) in command.src.iter_mut().enumerate() {
                    let to = Span {
                        region: self.kept,
                        component: 0,
                        first: (2 * late.len() + which) as u32,
                        count: 1,
                    };
                    let made = round.finish.iter_mut().flat_map(|c| &mut c.dst);
                    // What is compared came in one piece.
                    let got = round.recvs.iter_mut().map(|r| &mut r.span);
                    made.chain(got).filter(|s| *s == side).for_each(|s| *s = to);
                    *side = to;
                }
                late.push((command, check.clone()));
            }
            let checked = |k: &usize| checks.iter().any(|c| c.command == *k);
            let commands = round.finish.drain(..).enumerate();
            round.finish = commands
                .filter(|(k, _)| !checked(k))
                .map(|(_, c)| c)
                .collect();
        }
        if let Some(last) = rounds.last_mut() {
            for (command, mut check) in late {
                check.command = last.finish.len();
                last.finish.push(command);
                last.checks.push(check);
            }
        }
        rounds
    }
}

/// The rounds of the layers in chunk `chunk`.
fn layers(protocol: &dyn Protocol, chunk: u32) -> Vec<Round> {
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk,
        rows: 1,
    };
    let flow = protocol.flow(Task::Layers, frame);
    flow.rounds()
        .iter()
        .map(|round| (**round).clone())
        .collect()
}

impl Protocol for Late {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn guarantee(&self) -> Cow<'static, str> {
        "none: it checks too late".into()
    }

    fn me(&self) -> Peer {
        self.inner.me()
    }

    fn layout(&self, of: WorkspaceOf) -> &Layout {
        match of {
            WorkspaceOf::Rows => &self.layout,
            WorkspaceOf::Job => self.inner.layout(of),
        }
    }

    fn programs(&self) -> &[Arc<Program>] {
        self.inner.programs()
    }

    fn flow(&self, task: Task, frame: Frame) -> Flow {
        match task {
            Task::Layers => Flow::of(self.late(layers(&self.inner, frame.chunk))),
            task => self.inner.flow(task, frame),
        }
    }

    fn cost(&self, task: Task, frame: Frame) -> Cost {
        self.inner.cost(task, frame)
    }

    fn spans(&self) -> &Spans {
        self.inner.spans()
    }

    fn places(&self) -> u32 {
        self.inner.places()
    }

    fn peers(&self) -> Vec<Peer> {
        self.inner.peers()
    }

    fn keys(&self, peer: Peer) -> Vec<(&'static str, KeyId)> {
        self.inner.keys(peer)
    }

    fn dealt(&self, by: Peer) -> Vec<Seed> {
        self.inner.dealt(by)
    }
}
