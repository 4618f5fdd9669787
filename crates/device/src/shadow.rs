//! A device in the shadow of another one: every batch runs on both, and all that the host reaches of it is compared.
//!
//! The other device is the one that defines what commands mean, [`Reference`](crate::Reference). [`Shadowed`] wraps the device of a participant during a
//! run, whatever the protocol and the pass: both devices get the same keys, programs, bytes and batches. After a batch the columns that it wrote are
//! compared where the host reaches them, and everything else when the host looks at it or sends it. The first difference is named: participant, pass,
//! chunk, column and byte, and the batch and its commands that wrote the column; the run ends with it.
//!
//! ```
//! use veil_device::shadow::{Shadow, Shadowed};
//! use veil_device::{ColumnType, Cpu, Device, Frame, Layout, Reference, Region, Residency};
//! # use veil_math::Ring;
//! let shadow = Shadow::new();
//! let mut device = Shadowed::new(Box::new(Cpu::detect()), Box::new(Reference::default()), &shadow, "ann");
//! let mut layout = Layout { chunk_rows: 8, regions: vec![] };
//! let r = layout.add(Region { residency: Residency::Mapped, column: ColumnType::Rows(Ring::Z64), components: 1, count: 1 });
//! let workspace = device.open(&layout, Frame { epoch: 0, lane: 0, chunk: 0, rows: 1 })?;
//! device.write(workspace, layout.all(r, 0), &7u64.to_le_bytes())?;
//! assert_eq!(device.view(workspace, layout.all(r, 0))?, 7u64.to_le_bytes());
//! assert_eq!(shadow.verdict().unwrap().bytes, 8);
//! # Ok::<(), veil_device::Fault>(())
//! ```
//!
//! Promises: the device sees the calls that it would see alone, but for columns that it would lend ([`Device::swap`]), which are copied, and for looks at
//! what it wrote. Does not promise to find what never leaves a device that hides it: a column that stays there is compared by what is made of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use veil_session::{Frame, Secret, SessionId};

use crate::program::Needs;
use crate::written::{Written, Wrote, differ};
use crate::{
    Command, Completion, Device, Fault, KeyId, Layout, Outcome, Program, ProgramId, Span, Tag,
    Workspace,
};

/// What the shadows of a run found.
#[derive(Default)]
pub struct Shadow(Mutex<Found>);

#[derive(Default)]
struct Found {
    compared: Compared,
    difference: Option<Box<Difference>>,
}

/// Counts of what was compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// Devices: of a participant one for each lane and each kind of pass.
    pub devices: u64,
    /// Batches.
    pub batches: u64,
    /// Commands in them.
    pub commands: u64,
    /// Bytes of columns, as often as they were compared.
    pub bytes: u64,
}

/// The first difference between a device and the one that defines its commands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Whose device it is.
    pub of: String,
    /// Its name.
    pub device: &'static str,
    /// The chunk; its epoch is the number of the pass, from 0.
    pub frame: Frame,
    /// What differs.
    pub what: Differs,
    /// The commands of the last batch that wrote it, if one did, that had a part in it: the batch, counted from 1 within the workspace, the command's number in
    /// the batch, and its name. The last of them wrote it, the others what it was made of.
    pub commands: Vec<(u64, usize, &'static str)>,
}

/// The kind of difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Differs {
    /// Bytes of a column.
    Bytes {
        /// The columns that were compared.
        span: Span,
        /// First item that differs, counted in the region.
        item: u32,
        /// First byte of it that differs.
        byte: u64,
    },
    /// How a batch ended.
    Outcome {
        /// What it is by definition.
        want: Outcome,
        /// What the device says.
        got: Outcome,
    },
    /// By definition the call is an error, and the device took it.
    Taken(Fault),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Frame {
            epoch,
            lane,
            chunk,
            rows,
        } = self.frame;
        write!(
            f,
            "{} in pass {}, chunk {chunk} (lane {lane}, {rows} rows): ",
            self.of,
            u32::from(epoch) + 1
        )?;
        match &self.what {
            Differs::Bytes { span, item, byte } => write!(
                f,
                "item {item} of region {} (part {}) differs on {} from byte {byte} on",
                span.region, span.component, self.device
            )?,
            Differs::Outcome { want, got } => write!(
                f,
                "a batch ended with {got:?} on {}, and ends with {want:?} by definition",
                self.device
            )?,
            Differs::Taken(fault) => write!(
                f,
                "{} took what is an error by definition: {fault}",
                self.device
            )?,
        }
        let of = self.commands.iter();
        let of = of.map(|(_, command, name)| format!("command {command} ({name})"));
        match (self.commands.first(), &self.what) {
            (Some((batch, ..)), _) => write!(
                f,
                "; it was made by {} of batch {batch} of this workspace",
                of.collect::<Vec<_>>().join(", then ")
            ),
            (None, Differs::Bytes { .. }) => {
                f.write_str("; no command wrote it: it is not what the host put there")
            }
            (None, _) => Ok(()),
        }
    }
}

impl Shadow {
    /// A shadow of a run that has compared nothing yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The counts of what was compared, or the first difference.
    ///
    /// # Errors
    /// [`Difference`] if a device did anything else than the other one.
    pub fn verdict(&self) -> Result<Compared, Box<Difference>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &found.difference {
            Some(difference) => Err(difference.clone()),
            None => Ok(found.compared),
        }
    }

    fn count(&self, what: impl FnOnce(&mut Compared)) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        what(&mut found.compared);
    }

    /// Keeps the first difference; the fault ends the run.
    fn differs(&self, difference: Difference) -> Fault {
        let fault = Fault::Differs {
            device: difference.device,
            why: difference.to_string(),
        };
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.difference.get_or_insert(Box::new(difference));
        fault
    }
}

/// A device whose every batch runs on another one, too.
pub struct Shadowed {
    inner: Box<dyn Device>,
    shadow: Arc<Shadow>,
    of: String,
    state: RefCell<State>,
}

struct State {
    other: Box<dyn Device>,
    /// The other device's programs, by the numbers of the first.
    programs: BTreeMap<u32, (ProgramId, u16)>,
    workspaces: BTreeMap<u32, Open>,
    under_way: Vec<UnderWay>,
    /// How batches ended on the other device.
    ended: Vec<Completion>,
}

struct Open {
    /// On the other device.
    other: Workspace,
    layout: Layout,
    frame: Frame,
    /// Spans that the host may be filling; what it put there is known at the next batch.
    mapped: Vec<Span>,
    written: Written,
}

/// A batch that has not ended, and what it writes where the host reaches it.
struct UnderWay {
    tag: Tag,
    workspace: Workspace,
    spans: Vec<Span>,
}

impl Shadowed {
    /// `inner`, of the participant `of`, beside `other`, which is new.
    pub fn new(
        inner: Box<dyn Device>,
        other: Box<dyn Device>,
        shadow: &Arc<Shadow>,
        of: impl Into<String>,
    ) -> Self {
        shadow.count(|compared| compared.devices += 1);
        Shadowed {
            inner,
            shadow: Arc::clone(shadow),
            of: of.into(),
            state: RefCell::new(State {
                other,
                programs: BTreeMap::new(),
                workspaces: BTreeMap::new(),
                under_way: Vec::new(),
                ended: Vec::new(),
            }),
        }
    }

    fn difference(&self, frame: Frame, what: Differs, commands: Vec<Wrote>) -> Difference {
        Difference {
            of: self.of.clone(),
            device: self.inner.name(),
            frame,
            what,
            commands,
        }
    }

    /// A difference of a batch as a whole.
    fn differs(&self, frame: Frame, what: Differs) -> Fault {
        let difference = self.difference(frame, what, Vec::new());
        self.shadow.differs(difference)
    }

    /// Brings what the host put into the spans that it was given to the other device.
    fn settle(&self, workspace: Workspace) -> Result<(), Fault> {
        let mut state = self.state.borrow_mut();
        let State {
            other, workspaces, ..
        } = &mut *state;
        let Some(open) = workspaces.get_mut(&workspace.0) else {
            return Ok(());
        };
        for span in open.mapped.drain(..) {
            let bytes = self.inner.view(workspace, span)?;
            other.write(open.other, span, bytes)?;
        }
        Ok(())
    }

    /// Compares columns of a workspace, which are `bytes` on the device.
    fn compare(
        &self,
        state: &State,
        workspace: Workspace,
        span: Span,
        bytes: &[u8],
    ) -> Result<Result<(), Difference>, Fault> {
        let Some(open) = state.workspaces.get(&workspace.0) else {
            return Ok(Ok(()));
        };
        let want = state.other.view(open.other, span)?;
        self.shadow
            .count(|compared| compared.bytes += bytes.len() as u64);
        let found = differ(&open.layout, open.frame.rows, span, (want, bytes));
        let Some((item, byte)) = found else {
            return Ok(Ok(()));
        };
        let place = Span {
            first: item,
            count: 1,
            ..span
        };
        let commands = open.written.last(place);
        let what = Differs::Bytes { span, item, byte };
        Ok(Err(self.difference(open.frame, what, commands)))
    }

    /// A batch has ended on the device.
    fn judge(&self, completion: &Completion) -> Result<(), Fault> {
        let mut state = self.state.borrow_mut();
        let tag = completion.tag;
        let Some(at) = state.under_way.iter().position(|batch| batch.tag == tag) else {
            return Ok(());
        };
        let batch = state.under_way.swap_remove(at);
        let Some(at) = state.ended.iter().position(|ended| ended.tag == tag) else {
            return Ok(());
        };
        let want = state.ended.swap_remove(at).outcome;
        let Some(open) = state.workspaces.get(&batch.workspace.0) else {
            return Ok(());
        };
        if want != completion.outcome {
            let got = completion.outcome.clone();
            return Err(self.differs(open.frame, Differs::Outcome { want, got }));
        }
        // After a check that failed the run is over.
        if want != Outcome::Done {
            return Ok(());
        }
        let filling = &open.mapped;
        let spans = batch.spans.iter();
        let mut found = None;
        for span in spans.filter(|span| !filling.iter().any(|other| other.overlaps(**span))) {
            let bytes = self.inner.view(batch.workspace, *span)?;
            let Err(difference) = self.compare(&state, batch.workspace, *span, bytes)? else {
                continue;
            };
            // What was written last the earliest: the error is not behind it.
            let last = |of: &Difference| of.commands.last().map(|(_, command, _)| *command);
            if found
                .as_ref()
                .is_none_or(|found| last(&difference) < last(found))
            {
                found = Some(difference);
            }
        }
        found.map_or(Ok(()), |difference| Err(self.shadow.differs(difference)))
    }
}

impl Device for Shadowed {
    // It exchanges no rounds by itself, and lends no memory: both devices take what the host moves.
    crate::forward!(self, self.inner, name engines chunk_rows window ahead);

    fn bind(&mut self, session: SessionId) {
        self.inner.bind(session);
        self.state.get_mut().other.bind(session);
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        self.inner.load_key(id, key)?;
        self.state.get_mut().other.load_key(id, key)
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let id = self.inner.load(program, layout)?;
        let state = self.state.get_mut();
        let other = state.other.load(program, layout)?;
        let slots = Needs::of(program, layout)?.slots();
        state.programs.insert(id.0, (other, slots));
        Ok(id)
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        let workspace = self.inner.open(layout, frame)?;
        let state = self.state.get_mut();
        let open = Open {
            other: state.other.open(layout, frame)?,
            layout: layout.clone(),
            frame,
            mapped: Vec::new(),
            written: Written::default(),
        };
        state.workspaces.insert(workspace.0, open);
        Ok(workspace)
    }

    fn close(&mut self, workspace: Workspace) {
        let state = self.state.get_mut();
        if let Some(open) = state.workspaces.remove(&workspace.0) {
            state.other.close(open.other);
        }
        self.inner.close(workspace);
    }

    fn write(&mut self, workspace: Workspace, to: Span, bytes: &[u8]) -> Result<(), Fault> {
        self.settle(workspace)?;
        self.inner.write(workspace, to, bytes)?;
        let state = self.state.get_mut();
        match state.workspaces.get(&workspace.0) {
            Some(open) => state.other.write(open.other, to, bytes),
            None => Ok(()),
        }
    }

    fn map(&mut self, workspace: Workspace, to: Span) -> Result<&mut [u8], Fault> {
        let bytes = self.inner.map(workspace, to)?;
        let open = self.state.get_mut().workspaces.get_mut(&workspace.0);
        if let Some(open) = open.filter(|open| !open.mapped.contains(&to)) {
            open.mapped.push(to);
        }
        Ok(bytes)
    }

    fn view(&self, workspace: Workspace, from: Span) -> Result<&[u8], Fault> {
        self.settle(workspace)?;
        let bytes = self.inner.view(workspace, from)?;
        match self.compare(&self.state.borrow(), workspace, from, bytes)? {
            Ok(()) => Ok(bytes),
            Err(difference) => Err(self.shadow.differs(difference)),
        }
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.settle(workspace)?;
        self.inner.submit(workspace, batch, tag)?;
        let state = self.state.get_mut();
        let Some(open) = state.workspaces.get_mut(&workspace.0) else {
            return Ok(());
        };
        let known = |id: ProgramId| state.programs.get(&id.0).copied();
        let slots = |command: &Command| Some(known(command.program?)?.1);
        let theirs: Vec<Command> = batch
            .iter()
            .map(|command| Command {
                program: command.program.and_then(|id| Some(known(id)?.0)),
                ..command.clone()
            })
            .collect();
        let commands = batch.iter().map(|command| (command, slots(command)));
        open.written.batch(&open.layout, commands);
        let regions = &open.layout.regions;
        let reached = |span: &Span| {
            let region = regions.get(span.region as usize);
            span.count > 0 && region.is_some_and(|region| region.residency.is_packed())
        };
        let mut spans: Vec<Span> = Vec::new();
        for span in batch.iter().flat_map(|command| &command.dst).copied() {
            if reached(&span) && !spans.contains(&span) {
                spans.push(span);
            }
        }
        let (other, frame) = (open.other, open.frame);
        state.under_way.push(UnderWay {
            tag,
            workspace,
            spans,
        });
        let taken = state.other.submit(other, &theirs, tag);
        let mut ended = Vec::new();
        while let Some(completion) = state.other.poll()? {
            ended.push(completion);
        }
        state.ended.extend(ended);
        self.shadow.count(|compared| {
            compared.batches += 1;
            compared.commands += batch.len() as u64;
        });
        taken.map_err(|fault| self.differs(frame, Differs::Taken(fault)))
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        let completion = self.inner.poll()?;
        if let Some(completion) = &completion {
            self.judge(completion)?;
        }
        Ok(completion)
    }

    fn wipe(&mut self) {
        let state = self.state.get_mut();
        state.workspaces.clear();
        state.under_way.clear();
        state.ended.clear();
        state.other.wipe();
        self.inner.wipe();
    }
}
