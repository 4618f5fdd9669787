//! Driving a device with a record.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use veil_session::Frame;

use super::decode::Reader;
use super::format::{Bytes, Call, Damage};
use crate::program::Needs;
use crate::written::{Written, differ};
use crate::{
    Command, Completion, Device, Fault, Layout, Op, Outcome, ProgramId, Residency, Span, Tag,
    Workspace,
};

/// Bytes of all workspaces that a record may have open together.
const MOST_BYTES: u64 = 1 << 32;

/// How long a device may think about one batch.
const PATIENCE: Duration = Duration::from_secs(60);

/// The totals of a replay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// The device that the record was made with.
    pub recorded_on: String,
    /// Calls.
    pub steps: u64,
    /// Banks opened: one per chunk.
    pub workspaces: u64,
    /// Batches submitted.
    pub batches: u64,
    /// Commands in them.
    pub commands: u64,
    /// Bytes compared: what the host looked at, or sent.
    pub bytes: u64,
    /// Passes of the job that it was used in, from 0; a job of one circuit has pass 0.
    pub passes: BTreeSet<u16>,
    /// Time in calls of the device.
    pub busy: Duration,
}

/// Where a device differs from the one that was recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Step of the record.
    pub step: u64,
    /// The chunk; of a job of many passes its epoch is the number of the pass, from 0.
    pub frame: Frame,
    /// The bytes that were looked at.
    pub span: Span,
    /// First item that differs, counted in the region.
    pub item: u32,
    /// First byte of it that differs.
    pub byte: u64,
    /// The batch that wrote it last, counted from 1 within the workspace, and its command: number and name.
    pub command: Option<(u64, usize, &'static str)>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Frame {
            epoch,
            lane,
            chunk,
            rows,
        } = self.frame;
        write!(
            f,
            "step {} of the record: item {} of region {} (part {}) differs from byte {} on, in the workspace of chunk {chunk}",
            self.step, self.item, self.span.region, self.span.component, self.byte
        )?;
        // A job of one circuit has one pass.
        if epoch > 0 {
            write!(f, " of pass {}", u32::from(epoch) + 1)?;
        }
        write!(f, " (lane {lane}, {rows} rows)")?;
        match self.command {
            Some((batch, command, name)) => write!(
                f,
                "; it was written by command {command} ({name}) of batch {batch} of this workspace"
            ),
            None => f.write_str("; no command wrote it: it is not what the host put there"),
        }
    }
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The record cannot be read.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// Other bytes than the recorded ones.
    #[error("{0}")]
    Differs(Box<Difference>),
    /// A batch ended in another way than recorded.
    #[error(
        "step {step} of the record: batch {tag} ended with {got:?}, and with {want:?} when it was recorded"
    )]
    Outcome {
        /// Step of the record.
        step: u64,
        /// Name of the batch.
        tag: u64,
        /// The recorded outcome.
        want: Outcome,
        /// The outcome now; nothing if the batch did not end in a minute.
        got: Option<Outcome>,
    },
    /// The device refused what the recorded one did.
    #[error("step {step} of the record: {fault}")]
    Fault {
        /// Step of the record.
        step: u64,
        /// The device's fault.
        fault: Fault,
    },
}

/// Drives `device`, which must be fresh, with a record alone, and compares every byte and every outcome that the recorded one gave.
///
/// # Errors
/// [`ReplayError::Damaged`] if the record cannot be read or a step is none that a recorder writes; [`ReplayError::Differs`] at
/// the first byte that differs; [`ReplayError::Outcome`] if a batch ends otherwise than recorded, or not within a minute;
/// [`ReplayError::Fault`] if the device refuses a call. The device is wiped in every case.
pub fn replay(record: impl Read, device: &mut dyn Device) -> Result<Replayed, ReplayError> {
    replay_within(record, device, MOST_BYTES)
}

/// The same with so many bytes of workspaces at once.
pub(super) fn replay_within(
    record: impl Read,
    device: &mut dyn Device,
    most: u64,
) -> Result<Replayed, ReplayError> {
    let mut reader = Reader::new(record)?;
    let mut player = Player {
        device,
        step: 0,
        layouts: Vec::new(),
        programs: BTreeMap::new(),
        workspaces: BTreeMap::new(),
        room: most,
        under_way: Vec::new(),
        ended: Vec::new(),
        done: Replayed::default(),
    };
    let result = loop {
        match reader.next() {
            Ok(None) => break Ok(()),
            Ok(Some(call)) => {
                player.step = reader.step;
                if let Err(error) = player.play(call) {
                    break Err(error);
                }
            }
            Err(damage) => break Err(damage.into()),
        }
    };
    // Keys and shares of the record do not stay behind.
    player.device.wipe();
    result.map(|()| Replayed {
        steps: reader.step,
        ..player.done
    })
}

struct Player<'a> {
    device: &'a mut dyn Device,
    step: u64,
    layouts: Vec<Layout>,
    programs: BTreeMap<ProgramId, (ProgramId, Needs)>,
    workspaces: BTreeMap<u32, Open>,
    /// Bytes that workspaces may still take.
    room: u64,
    /// Batches that were submitted and have not ended.
    under_way: Vec<Tag>,
    ended: Vec<Completion>,
    done: Replayed,
}

/// A workspace that is open.
struct Open {
    workspace: Workspace,
    layout: usize,
    bytes: u64,
    frame: Frame,
    written: Written,
    /// Columns of planes that the host may look at: published ones, and those that it wrote.
    published: Vec<Span>,
}

impl Open {
    fn publish(&mut self, span: Span) {
        if !self.published.contains(&span) {
            self.published.push(span);
        }
    }

    /// Whether every column of a span was published.
    fn is_published(&self, span: Span) -> bool {
        let mut columns = span.first..span.first + span.count;
        columns.all(|column| {
            self.published.iter().any(|of| {
                (of.region, of.component) == (span.region, span.component)
                    && (of.first..of.first + of.count).contains(&column)
            })
        })
    }
}

impl Player<'_> {
    fn nonsense(&self, what: &'static str) -> ReplayError {
        let step = self.step;
        Damage::Nonsense { step, what }.into()
    }

    /// Calls the device, and counts the time.
    fn call<T>(
        &mut self,
        call: impl FnOnce(&mut dyn Device) -> Result<T, Fault>,
    ) -> Result<T, ReplayError> {
        let began = Instant::now();
        let result = call(self.device);
        self.done.busy += began.elapsed();
        let step = self.step;
        result.map_err(|fault| ReplayError::Fault { step, fault })
    }

    fn play(&mut self, call: Call) -> Result<(), ReplayError> {
        match call {
            Call::Device(name) => self.done.recorded_on = name,
            Call::Bind(session) => self.device.bind(session),
            Call::Key(id, key) => self.call(|device| device.load_key(id, &key))?,
            Call::Layout(layout) => {
                // How many rows a workspace has is known when it is opened.
                if size(&layout, 1) > MOST_BYTES {
                    return Err(self.nonsense("a layout larger than any plan has"));
                }
                self.layouts.push(layout);
            }
            Call::Program(recorded, program, layout) => {
                let layout = self.layout(layout)?;
                let layout = self.layouts[layout].clone();
                let needs = Needs::of(&program, &layout);
                let needs = needs.map_err(|_| self.nonsense("a program that breaks a rule"))?;
                let program = Arc::new(program);
                let id = self.call(|device| device.load(&program, &layout))?;
                self.programs.insert(recorded, (id, needs));
            }
            Call::Open(recorded, layout, frame) => self.open(recorded, layout, frame)?,
            Call::Close(recorded) => {
                if let Some(open) = self.workspaces.remove(&recorded.0) {
                    self.room += open.bytes;
                    self.device.close(open.workspace);
                }
            }
            Call::Write(recorded, span, bytes) => {
                let workspace = self.spanned(recorded, span, &bytes)?;
                if let Some(open) = self.workspaces.get_mut(&recorded.0) {
                    open.publish(span);
                }
                self.call(|device| device.write(workspace, span, &bytes.0))?;
            }
            Call::View(recorded, span, bytes) => self.view(recorded, span, &bytes)?,
            Call::Submit(recorded, batch, tag) => self.submit(recorded, batch, tag)?,
            Call::Completion(completion) => self.completion(&completion)?,
            Call::Wipe => {
                self.device.wipe();
                self.room += self.workspaces.values().map(|open| open.bytes).sum::<u64>();
                self.workspaces.clear();
            }
        }
        Ok(())
    }

    fn layout(&self, index: u32) -> Result<usize, ReplayError> {
        let index = index as usize;
        (index < self.layouts.len())
            .then_some(index)
            .ok_or_else(|| self.nonsense("a layout that was not announced"))
    }

    fn open(&mut self, recorded: Workspace, layout: u32, frame: Frame) -> Result<(), ReplayError> {
        let layout = self.layout(layout)?;
        let of = &self.layouts[layout];
        let bytes = size(of, frame.rows);
        if bytes > self.room || frame.rows > of.chunk_rows {
            return Err(self.nonsense("workspaces larger than any plan has"));
        }
        if self.workspaces.len() >= 1024 || self.workspaces.contains_key(&recorded.0) {
            return Err(self.nonsense("a workspace that is open already, or one too many"));
        }
        let of = of.clone();
        let workspace = self.call(|device| device.open(&of, frame))?;
        self.done.workspaces += 1;
        self.done.passes.insert(frame.epoch);
        self.room -= bytes;
        self.workspaces.insert(
            recorded.0,
            Open {
                workspace,
                layout,
                bytes,
                frame,
                written: Written::default(),
                published: Vec::new(),
            },
        );
        Ok(())
    }

    /// The device's workspace, if the span lies in it and the bytes fill it.
    fn spanned(
        &self,
        recorded: Workspace,
        span: Span,
        bytes: &Bytes,
    ) -> Result<Workspace, ReplayError> {
        let open = self
            .workspaces
            .get(&recorded.0)
            .ok_or_else(|| self.nonsense("a workspace that is not open"))?;
        let layout = &self.layouts[open.layout];
        if !layout.contains(span) || layout.bytes(span, open.frame.rows) != bytes.0.len() as u64 {
            return Err(self.nonsense("bytes that do not fill their span"));
        }
        Ok(open.workspace)
    }

    fn view(&mut self, recorded: Workspace, span: Span, want: &Bytes) -> Result<(), ReplayError> {
        let workspace = self.spanned(recorded, span, want)?;
        let open = &self.workspaces[&recorded.0];
        let region = &self.layouts[open.layout].regions[span.region as usize];
        if region.residency == Residency::Plane && !open.is_published(span) {
            // What a device has of them is its own affair.
            return Err(self.nonsense("columns of a plane that were not published"));
        }
        let began = Instant::now();
        let step = self.step;
        let got = self
            .device
            .view(workspace, span)
            .map_err(|fault| ReplayError::Fault { step, fault })?;
        self.done.busy += began.elapsed();
        self.done.bytes += want.0.len() as u64;
        let open = &self.workspaces[&recorded.0];
        let layout = &self.layouts[open.layout];
        let found = differ(layout, open.frame.rows, span, (&want.0, got));
        let Some((item, byte)) = found else {
            return Ok(());
        };
        let place = Span {
            first: item,
            count: 1,
            ..span
        };
        Err(ReplayError::Differs(Box::new(Difference {
            step,
            frame: open.frame,
            span,
            item,
            byte,
            command: open.written.last(place).pop(),
        })))
    }

    fn submit(
        &mut self,
        recorded: Workspace,
        mut batch: Vec<Command>,
        tag: Tag,
    ) -> Result<(), ReplayError> {
        let unknown = self.nonsense("a program or workspace that is not there");
        let Some(open) = self.workspaces.get_mut(&recorded.0) else {
            return Err(unknown);
        };
        let layout = &self.layouts[open.layout];
        let mut slots = Vec::with_capacity(batch.len());
        // No device has to ask.
        for (index, command) in batch.iter_mut().enumerate() {
            let program = match command.program {
                None => None,
                Some(id) => match self.programs.get(&id) {
                    Some(known) => Some(known),
                    None => return Err(unknown),
                },
            };
            let needs = program.map(|(_, needs)| needs);
            let fits = command.check(index, (layout, open.frame.rows), needs);
            if fits.is_err() {
                return Err(self.nonsense("a command that fits no workspace"));
            }
            slots.push(needs.map(Needs::slots));
            command.program = program.map(|(id, _)| *id);
        }
        let published = batch.iter().filter(|c| matches!(c.op, Op::Publish));
        for span in published.flat_map(|command| command.src.clone()) {
            open.publish(span);
        }
        open.written.batch(layout, batch.iter().zip(slots));
        let workspace = open.workspace;
        self.done.batches += 1;
        self.done.commands += batch.len() as u64;
        self.under_way.push(tag);
        self.call(|device| device.submit(workspace, &batch, tag))
    }

    fn completion(&mut self, want: &Completion) -> Result<(), ReplayError> {
        let Some(at) = self.under_way.iter().position(|tag| *tag == want.tag) else {
            return Err(self.nonsense("the end of a batch that was not under way"));
        };
        self.under_way.swap_remove(at);
        let began = Instant::now();
        let got = loop {
            let step = self.step;
            while let Some(completion) =
                (self.device.poll()).map_err(|fault| ReplayError::Fault { step, fault })?
            {
                self.ended.push(completion);
            }
            if let Some(at) = self.ended.iter().position(|c| c.tag == want.tag) {
                break Some(self.ended.swap_remove(at).outcome);
            }
            if began.elapsed() > PATIENCE {
                break None;
            }
            std::thread::yield_now();
        };
        self.done.busy += began.elapsed();
        if got.as_ref() == Some(&want.outcome) {
            return Ok(());
        }
        Err(ReplayError::Outcome {
            step: self.step,
            tag: want.tag.0,
            want: want.outcome.clone(),
            got,
        })
    }
}

/// Bytes of a workspace, with something for every item that has none.
fn size(layout: &Layout, rows: u32) -> u64 {
    layout.regions.iter().fold(0u64, |sum, region| {
        let item = region.column.bytes(rows).max(1);
        let all = item
            .saturating_mul(u64::from(region.components.max(1)))
            .saturating_mul(u64::from(region.count));
        sum.saturating_add(all)
    })
}
