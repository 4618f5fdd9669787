//! A chunk on its way through its tasks: round by round, without ever blocking.

use std::sync::Arc;
use std::time::{Duration, Instant};

use veil_device::{Device, Fault, Layout, Outcome, Residency, Span, Tag, Workspace};
use veil_job::Slice;
use veil_link::copy::copy;
use veil_link::{Link, Meters};
use veil_protocol::{Chunk, Cleared, Flow, Protocol, Round, Task, Transfer, WorkspaceOf};
use veil_session::{Channel, Frame, StepId, Wiped};

use crate::abort::{Abort, Wait};
use crate::trace::{Recorder, RoundEvent, Stamps};

/// Where in a round a run is.
enum Phase {
    /// Between rounds.
    Between,
    /// The host has put in what the round that comes needs.
    Fed,
    /// The device works on the local commands.
    Local,
    /// Messages up to this one are sent.
    Sending(usize),
    /// Some messages are not here yet.
    Receiving,
    /// The device works on the finishing commands.
    Finish,
    /// The device does whole rounds, and moves their messages.
    Exchanging,
}

/// Tasks of a run, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    SetUp,
    /// Inputs, layers, and the opening if something is opened per row.
    Chunk {
        block: u32,
        opens: bool,
    },
    Totals,
}

impl Work {
    /// What the workspace holds.
    pub(crate) const fn workspace(self) -> WorkspaceOf {
        match self {
            Work::Chunk { .. } => WorkspaceOf::Rows,
            Work::SetUp | Work::Totals => WorkspaceOf::Job,
        }
    }
}

/// What a run needs from its lane.
pub(crate) struct Means<'a> {
    pub(crate) protocol: &'a dyn Protocol,
    pub(crate) device: &'a mut dyn Device,
    pub(crate) link: &'a mut dyn Link,
    /// Batches that ended and were not asked for yet.
    pub(crate) ended: &'a mut Vec<(Tag, Outcome)>,
    pub(crate) tags: &'a mut u64,
    /// Messages that devices moved themselves.
    pub(crate) exchanged: &'a mut Meters,
    /// Time in which the device worked.
    pub(crate) busy: &'a mut Duration,
    pub(crate) recorder: Option<&'a dyn Recorder>,
    pub(crate) stepped: Stepped,
}

/// Who steps a lane.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stepped {
    /// A thread that steps nothing else.
    Alone,
    /// The thread that steps its peers, too.
    InTurn,
}

/// How a run went on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advance {
    /// Something moved.
    Moved,
    /// Everything waits for a peer or the device.
    Waiting,
    /// The round that comes needs inputs of this cycle and of later cycles that are shared with them, or cells of stock: the lane puts them into the workspace.
    Feeds {
        /// The place of the round.
        place: u32,
        /// The cycle.
        cycle: u64,
    },
    /// A task is over: the lane may reach into the workspace before the next one.
    TaskDone(Task),
    /// All tasks are over.
    Done,
}

pub(crate) struct Run {
    pub(crate) chunk: Chunk,
    pub(crate) workspace: Workspace,
    /// Rows of the workspace.
    rows: u32,
    work: Work,
    task: usize,
    cleared: Option<Cleared>,
    flow: Option<(Task, Flow)>,
    round: Option<Arc<Round>>,
    /// Rounds that the device does as wholes.
    exchanged: Vec<Arc<Round>>,
    phase: Phase,
    landed: Vec<bool>,
    tag: Tag,
    /// The latest cycle, from 0.
    cycles: u64,
    /// Rounds of the task that are over, if a recorder is set.
    index: u32,
    stamps: Option<Box<Stamps>>,
}

impl Run {
    pub(crate) fn new(chunk: Chunk, (workspace, rows): (Workspace, u32), work: Work) -> Self {
        Run {
            chunk,
            workspace,
            rows,
            work,
            task: 0,
            cleared: None,
            flow: None,
            round: None,
            exchanged: Vec::new(),
            phase: Phase::Between,
            landed: Vec::new(),
            tag: Tag(0),
            cycles: 0,
            index: 0,
            stamps: None,
        }
    }

    /// Cycles before the present one, over the rows of the chunk.
    pub(crate) fn passed(&self) -> u64 {
        self.cycles.saturating_mul(self.chunk.frame.rows.into())
    }

    /// Rows of the workspace.
    pub(crate) const fn rows(&self) -> u32 {
        self.rows
    }

    /// The rows of the chunk, as data are asked for.
    pub(crate) fn slice(&self) -> Slice {
        Slice {
            block: self.chunk.block,
            first: self.chunk.first,
            rows: self.chunk.frame.rows,
        }
    }

    /// The next task; an opening needs the permission of the agreement before it.
    fn next_task(&self) -> Option<Task> {
        match (self.work, self.task) {
            (Work::SetUp, 0) => Some(Task::SetUp),
            (Work::Chunk { block, .. }, 0) => Some(Task::Inputs { block }),
            (Work::Chunk { .. }, 1) => Some(Task::Layers),
            (Work::Totals, 0) => Some(Task::Totals),
            (Work::Chunk { opens: true, .. }, 2) | (Work::Totals, 1) => Some(Task::Agree),
            (Work::Chunk { opens: true, .. }, 3) => self.cleared.map(Task::Open),
            (Work::Totals, 2) => self.cleared.map(Task::OpenTotals),
            _ => None,
        }
    }

    fn channel(&self, round: &Round, part: u16) -> Channel {
        let frame: Frame = self.chunk.frame;
        let Round { place, cycle, .. } = *round;
        Channel {
            frame,
            step: StepId { place, cycle },
            part,
        }
    }

    /// Goes on as far as it can without waiting, at most to the end of a task.
    pub(crate) fn advance(&mut self, means: &mut Means<'_>) -> Result<Advance, Abort> {
        let mut moved = false;
        loop {
            match self.phase {
                Phase::Between => {
                    let Some((task, flow)) = &mut self.flow else {
                        let Some(task) = self.next_task() else {
                            return Ok(Advance::Done);
                        };
                        self.flow = Some((task, means.protocol.flow(task, self.chunk.frame)));
                        continue;
                    };
                    let rounds = flow.until_fed();
                    if !rounds.is_empty() {
                        let tag = Tag(*means.tags + 1);
                        let taken = means.device.exchange(self.workspace, rounds, tag)?;
                        if taken > 0 {
                            *means.tags = tag.0;
                            self.tag = tag;
                            self.exchanged = rounds[..taken].to_vec();
                            self.round = self.exchanged.first().cloned();
                            if means.recorder.is_some()
                                && let Some(round) = &self.round
                            {
                                self.stamps = Some(Box::new(self.stamps(means, round)));
                            }
                            self.phase = Phase::Exchanging;
                            moved = true;
                            continue;
                        }
                    }
                    let Some(round) = flow.next() else {
                        let task = *task;
                        self.cleared = flow.cleared();
                        self.flow = None;
                        self.task += 1;
                        self.index = 0;
                        return Ok(Advance::TaskDone(task));
                    };
                    let (feeds, place, cycle) = (round.feeds, round.place, round.cycle);
                    self.cycles = self.cycles.max(cycle);
                    self.round = Some(round);
                    self.phase = Phase::Fed;
                    if feeds {
                        return Ok(Advance::Feeds { place, cycle });
                    }
                }
                Phase::Fed => {
                    let round = Arc::clone(self.round.as_ref().expect("a round is begun"));
                    self.landed.clear();
                    for recv in &round.recvs {
                        let layout = means.protocol.layout(self.work.workspace());
                        let bytes = recv.bytes(layout, self.rows);
                        // Nothing is sent where nothing is to be said: a port without wires.
                        self.landed.push(bytes == 0);
                        if bytes > 0 {
                            means
                                .link
                                .expect(recv.peer, self.channel(&round, recv.part), bytes)?;
                        }
                    }
                    if means.recorder.is_some() {
                        self.stamps = Some(Box::new(self.stamps(means, &round)));
                    }
                    self.tag = submit(means, self.workspace, &round.local)?;
                    self.phase = Phase::Local;
                }
                Phase::Local => match ended(means, self.tag)? {
                    Some(Outcome::Done) => {
                        self.stamp(|stamps, now| stamps.computed = now);
                        self.phase = Phase::Sending(0);
                    }
                    Some(Outcome::Mismatch { command }) => return Err(self.cheated(command)),
                    None => break,
                },
                Phase::Sending(from) => {
                    let round = self.round.as_ref().expect("a round is sent");
                    let mut sent = from;
                    for send in &round.sends[from..] {
                        let at = self.channel(round, send.part);
                        let first = means.device.view(self.workspace, send.span)?;
                        let posted = if send.more.is_empty() {
                            first.is_empty() || means.link.post(send.peer, at, first)?
                        } else {
                            let pieces = send.pieces();
                            let pieces =
                                pieces.map(|piece| means.device.view(self.workspace, piece));
                            let pieces: Vec<&[u8]> = pieces.collect::<Result<_, _>>()?;
                            pieces.iter().all(|piece| piece.is_empty())
                                || means.link.post_pieces(send.peer, at, &pieces)?
                        };
                        if !posted {
                            break;
                        }
                        moved = true;
                        sent += 1;
                    }
                    if sent < round.sends.len() {
                        self.phase = Phase::Sending(sent);
                        break;
                    }
                    self.stamp(|stamps, now| stamps.posted = now);
                    self.phase = Phase::Receiving;
                }
                Phase::Receiving => {
                    let round = Arc::clone(self.round.as_ref().expect("a round is received"));
                    for (k, recv) in round.recvs.iter().enumerate() {
                        if !self.landed[k] {
                            let at = self.channel(&round, recv.part);
                            let layout = means.protocol.layout(self.work.workspace());
                            self.landed[k] = if is_lent(layout, recv.span) {
                                land_whole(means, self.workspace, recv, at)?
                            } else if recv.more.is_empty() {
                                let into = means.device.map(self.workspace, recv.span)?;
                                means.link.land(recv.peer, at, into)?
                            } else {
                                self.land_pieces(means, recv, at)?
                            };
                            moved |= self.landed[k];
                            if self.landed[k] {
                                self.stamp(|stamps, now| stamps.received[k].1 = now);
                            }
                        }
                    }
                    if !self.landed.iter().all(|l| *l) {
                        break;
                    }
                    self.stamp(|stamps, now| stamps.landed = now);
                    self.tag = submit(means, self.workspace, &round.finish)?;
                    self.phase = Phase::Finish;
                }
                Phase::Finish => match ended(means, self.tag)? {
                    Some(Outcome::Done) => {
                        self.record(means);
                        let round = self.round.take().expect("a round is over");
                        self.phase = Phase::Between;
                        moved = true;
                        // A sender that never waits would be far ahead of a peer that the same thread steps, and what it sent no longer in the
                        // cache when that peer takes it. And a participant that only computes is looked after now and then.
                        if round.recvs.is_empty()
                            && (means.stepped == Stepped::InTurn || round.sends.is_empty())
                        {
                            break;
                        }
                    }
                    Some(Outcome::Mismatch { command }) => return Err(self.cheated(command)),
                    None => break,
                },
                Phase::Exchanging => match ended(means, self.tag)? {
                    Some(Outcome::Done) => {
                        self.exchanged(means);
                        self.phase = Phase::Between;
                        moved = true;
                    }
                    Some(Outcome::Mismatch { command }) => {
                        let mut command = command;
                        for round in &self.exchanged {
                            self.round = Some(Arc::clone(round));
                            match command.checked_sub(round.finish.len()) {
                                Some(behind) => command = behind,
                                None => break,
                            }
                        }
                        return Err(self.cheated(command));
                    }
                    None => break,
                },
            }
        }
        Ok(if moved {
            Advance::Moved
        } else {
            Advance::Waiting
        })
    }

    /// Lands a message in several places.
    fn land_pieces(
        &mut self,
        means: &mut Means<'_>,
        recv: &Transfer,
        at: Channel,
    ) -> Result<bool, Abort> {
        let layout = means.protocol.layout(self.work.workspace());
        let bytes = recv.bytes(layout, self.rows);
        let bytes = usize::try_from(bytes).expect("a message that was agreed on fits the memory");
        let (device, workspace) = (&mut *means.device, self.workspace);
        let mut done = Ok(());
        let mut put = |whole: &[u8]| {
            let mut rest = whole;
            for piece in recv.pieces() {
                match device.map(workspace, piece) {
                    Ok(into) => {
                        let (these, others) = rest.split_at(into.len());
                        copy(into, these);
                        rest = others;
                    }
                    Err(fault) => done = Err(fault),
                }
            }
        };
        let here = means.link.land_pieces(recv.peer, at, bytes, &mut put)?;
        done?;
        Ok(here)
    }

    /// The rounds that the device has done are over.
    fn exchanged(&mut self, means: &mut Means<'_>) {
        for round in std::mem::take(&mut self.exchanged) {
            if let Some((_, flow)) = &mut self.flow {
                flow.next();
            }
            self.cycles = self.cycles.max(round.cycle);
            let layout = means.protocol.layout(self.work.workspace());
            let bytes = |of: &Transfer| of.bytes(layout, self.rows);
            for sent in round.sends.iter().map(bytes).filter(|bytes| *bytes > 0) {
                means.exchanged.sent(sent as usize);
            }
            for came in round.recvs.iter().map(bytes).filter(|bytes| *bytes > 0) {
                means.exchanged.received(came as usize);
            }
            if means.recorder.is_some() {
                let mut stamps = match self.stamps.take() {
                    Some(stamps) => stamps,
                    None => Box::new(self.stamps(means, &round)),
                };
                // When what happened the device does not say: all of it until now.
                let now = Instant::now();
                (stamps.computed, stamps.posted, stamps.landed) = (now, now, now);
                stamps.received.iter_mut().for_each(|(_, at)| *at = now);
                self.stamps = Some(stamps);
                self.round = Some(round);
                self.record(means);
            }
        }
        self.round = None;
    }

    /// Times of a round that begins now.
    fn stamps(&self, means: &Means<'_>, round: &Round) -> Stamps {
        let layout = means.protocol.layout(self.work.workspace());
        let bytes = |t: &Transfer| t.bytes(layout, self.rows);
        let sent = round.sends.iter().map(bytes).collect();
        Stamps::new(sent, round.recvs.iter().map(bytes))
    }

    fn stamp(&mut self, set: impl FnOnce(&mut Stamps, Instant)) {
        if let Some(stamps) = &mut self.stamps {
            set(stamps, Instant::now());
        }
    }

    /// Tells the recorder, if there is one, that the round is over.
    fn record(&mut self, means: &Means<'_>) {
        if let (Some(recorder), Some(stamps), Some(round), Some((task, _))) =
            (means.recorder, self.stamps.take(), &self.round, &self.flow)
        {
            recorder.round(&RoundEvent {
                me: means.protocol.me(),
                frame: self.chunk.frame,
                task: *task,
                index: self.index,
                round,
                began: stamps.began,
                computed: stamps.computed,
                posted: stamps.posted,
                landed: stamps.landed,
                ended: Instant::now(),
                sent: &stamps.sent,
                received: &stamps.received,
            });
            self.index += 1;
        }
    }

    fn cheated(&self, command: usize) -> Abort {
        let round = self.round.as_ref().expect("a check belongs to a round");
        let check = round.checks.iter().find(|c| c.command == command);
        Abort::Cheated {
            at: self.channel(round, 0),
            suspects: check.map(|c| c.suspects.clone()).unwrap_or_default(),
            what: check.map_or("a value", |c| c.what),
        }
    }

    /// Whether a message of the present round has come, so that the others of the round are due.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.phase, Phase::Receiving) && self.landed.contains(&true)
    }

    /// Whether it waits for its device.
    pub(crate) const fn computes(&self) -> bool {
        matches!(self.phase, Phase::Local | Phase::Finish | Phase::Exchanging)
    }

    /// What this run waits for.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        let Some(round) = &self.round else {
            return Vec::new();
        };
        match self.phase {
            Phase::Sending(from) => round.sends[from..]
                .iter()
                .map(|s| Wait {
                    peer: s.peer,
                    at: self.channel(round, s.part),
                    sending: true,
                })
                .collect(),
            Phase::Receiving => round
                .recvs
                .iter()
                .zip(&self.landed)
                .filter(|(_, landed)| !**landed)
                .map(|(r, _)| Wait {
                    peer: r.peer,
                    at: self.channel(round, r.part),
                    sending: false,
                })
                .collect(),
            // Any of them, as far as the host knows.
            Phase::Exchanging => (round.recvs.iter())
                .map(|r| Wait {
                    peer: r.peer,
                    at: self.channel(round, r.part),
                    sending: false,
                })
                .collect(),
            Phase::Between | Phase::Fed | Phase::Local | Phase::Finish => Vec::new(),
        }
    }
}

/// Whether the memory of a span may be exchanged.
pub(crate) fn is_lent(layout: &Layout, span: Span) -> bool {
    layout.regions[span.region as usize].residency == Residency::Lent
}

/// Lands a message whose place is a lent column: its memory is exchanged, where device and link do that.
fn land_whole(
    means: &mut Means<'_>,
    workspace: Workspace,
    recv: &Transfer,
    at: Channel,
) -> Result<bool, Abort> {
    let mut memory = Wiped::default();
    let exchanges = means.device.swap(workspace, recv.span, &mut memory)?;
    if !exchanges || memory.is_empty() {
        let into = means.device.map(workspace, recv.span)?;
        return Ok(means.link.land(recv.peer, at, into)?);
    }
    let here = means.link.land_whole(recv.peer, at, &mut memory);
    // Also where the link has failed: the memory is the column's.
    if !means.device.swap(workspace, recv.span, &mut memory)? {
        let into = means.device.map(workspace, recv.span)?;
        copy(into, &memory);
    }
    Ok(here?)
}

fn submit(
    means: &mut Means<'_>,
    workspace: Workspace,
    batch: &[veil_device::Command],
) -> Result<Tag, Abort> {
    *means.tags += 1;
    let tag = Tag(*means.tags);
    if batch.is_empty() {
        means.ended.push((tag, Outcome::Done));
        return Ok(tag);
    }
    let weight = weight(tag);
    let began = (weight > 0).then(Instant::now);
    means.device.submit(workspace, batch, tag)?;
    if let Some(began) = began {
        *means.busy += began.elapsed() * weight;
    }
    Ok(tag)
}

/// How many batches the time of this one stands for: the first ones are all measured, later ones by a sample, because reading the
/// clock takes as long as a small batch. Which ones looks random, so that no layer of the plan is always the one.
fn weight(tag: Tag) -> u32 {
    const ALL: u64 = 256;
    const ONE_IN: u32 = 8;
    if tag.0 <= ALL {
        return 1;
    }
    // Fibonacci hashing: the upper bits of a multiple of 2^64 / golden ratio.
    let hash = tag.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    if hash.is_multiple_of(u64::from(ONE_IN)) {
        ONE_IN
    } else {
        0
    }
}

fn ended(means: &mut Means<'_>, tag: Tag) -> Result<Option<Outcome>, Fault> {
    while let Some(completion) = means.device.poll()? {
        means.ended.push((completion.tag, completion.outcome));
    }
    let at = means.ended.iter().position(|(t, _)| *t == tag);
    Ok(at.map(|at| means.ended.swap_remove(at).1))
}
