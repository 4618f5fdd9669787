//! Devices that compute a bit wrong.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use veil_device::{
    Command, Completion, Device, Fault, Frame, Layout, Op, Program, ProgramId, Span, Tag, Workspace,
};

/// Programs that were loaded, in order: they say where messages of products are.
#[derive(Default)]
struct Programs(Vec<Arc<Program>>);

impl Programs {
    fn load(
        &mut self,
        inner: &mut dyn Device,
        program: &Arc<Program>,
        layout: &Layout,
    ) -> Result<ProgramId, Fault> {
        let id = inner.load(program, layout)?;
        self.0.push(Arc::clone(program));
        Ok(id)
    }

    /// The first message of a command, of sums if it has no products of rows: a region of messages, or slots of which a component is it.
    fn message(&self, command: &Command) -> Option<Span> {
        let there = command.dst.iter().find(|span| span.count > 0).copied();
        self.products(command).first().copied().or(there)
    }

    /// Components of slots that are the first message of a command.
    fn products(&self, command: &Command) -> Vec<Span> {
        match (&command.op, command.program) {
            (Op::Product(form), Some(id)) if command.dst[0].count == 0 => {
                self.0[id.0 as usize].products_in_slots(form.crosses[0].to)
            }
            _ => Vec::new(),
        }
    }
}

/// Another device, but for the first bit of the message of one layer.
pub struct OneBitWrong {
    inner: Box<dyn Device>,
    programs: Programs,
    /// The program of that layer.
    program: ProgramId,
}

impl OneBitWrong {
    /// `inner`, wrong in the products, or the sums of products, of program `program`.
    pub fn new(inner: Box<dyn Device>, program: u32) -> Self {
        OneBitWrong {
            inner,
            programs: Programs::default(),
            program: ProgramId(program),
        }
    }
}

impl Device for OneBitWrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.inner.submit(workspace, batch, tag)?;
        let wrong = batch
            .iter()
            .find(|c| matches!(c.op, Op::Product(_)) && c.program == Some(self.program));
        let message = wrong.and_then(|c| self.programs.message(c));
        if let Some(message) = message {
            self.inner.map(workspace, message)?[0] ^= 1;
        }
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        self.programs.load(&mut *self.inner, program, layout)
    }

    veil_device::forward!(self, self.inner, bind load_key open close write map view poll wipe);
}

/// A device that flips the first bit of the result of one kind of command, in every run: a party with it sends wrong messages wherever that
/// result is sent.
pub struct Lying {
    inner: Box<dyn Device>,
    programs: Programs,
    lies: fn(&Op) -> bool,
}

impl Lying {
    /// `inner`, wrong in what commands of this kind make.
    pub fn new(inner: Box<dyn Device>, lies: fn(&Op) -> bool) -> Self {
        Lying {
            inner,
            programs: Programs::default(),
            lies,
        }
    }
}

impl Device for Lying {
    fn name(&self) -> &'static str {
        "lying"
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.inner.submit(workspace, batch, tag)?;
        for command in batch.iter().filter(|command| (self.lies)(&command.op)) {
            if let Some(made) = self.programs.message(command) {
                self.inner.map(workspace, made)?[0] ^= 1;
            }
        }
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        self.programs.load(&mut *self.inner, program, layout)
    }

    veil_device::forward!(self, self.inner, bind load_key open close write map view poll wipe);
}

/// Another device of a party, which adds something to messages of products: to an element of 128 bits in the message of a layer, in one
/// chunk. The party's later messages fit the one that it sent.
pub struct Adding {
    inner: Box<dyn Device>,
    programs: Programs,
    /// The program of that layer.
    program: ProgramId,
    /// Whether to the message of sums.
    sums: bool,
    /// Which element of the message.
    element: usize,
    /// The added error.
    error: u128,
}

impl Adding {
    /// `inner`, which adds `error` to an element of the message of program `program`, if that has so many.
    pub fn new(inner: Box<dyn Device>, program: u32, element: usize, error: u128) -> Self {
        Adding {
            inner,
            programs: Programs::default(),
            program: ProgramId(program),
            sums: false,
            element,
            error,
        }
    }

    /// The same in the message of sums.
    #[must_use]
    pub fn in_sums(self) -> Self {
        Adding { sums: true, ..self }
    }
}

impl Device for Adding {
    fn name(&self) -> &'static str {
        "adding"
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.inner.submit(workspace, batch, tag)?;
        let of_layer = batch
            .iter()
            .find(|c| matches!(c.op, Op::Product(_)) && c.program == Some(self.program));
        let message = match of_layer {
            Some(command) if self.sums => command.dst.get(1).copied().into_iter().collect(),
            Some(command) => self.programs.products(command),
            None => Vec::new(),
        };
        let mut element = self.element;
        for part in message.iter().filter(|span| span.count > 0) {
            let elements = self.inner.map(workspace, *part)?.as_chunks_mut::<16>().0;
            if let Some(element) = elements.get_mut(element) {
                let sum = u128::from_le_bytes(*element).wrapping_add(self.error);
                *element = sum.to_le_bytes();
                break;
            }
            element -= elements.len();
        }
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        self.programs.load(&mut *self.inner, program, layout)
    }

    veil_device::forward!(self, self.inner, bind load_key open close write map view poll wipe);
}

/// Where a device erred: the chunk, and the number of the command in its batch.
pub type Erred = Arc<Mutex<Option<(Frame, usize)>>>;

/// The tag of the part of a batch that ends with the error; no batch of a run has it.
const BEFORE: Tag = Tag(u64::MAX);

/// A device that errs once: it flips the first bit of what one command makes, in one pass of a program.
pub struct Slip {
    inner: Box<dyn Device>,
    programs: Programs,
    pass: u16,
    slips: fn(&Op) -> bool,
    frames: BTreeMap<u32, Frame>,
    erred: Erred,
}

impl Slip {
    /// `inner`, wrong in the first command of this kind in pass `pass`; `erred` says where it was.
    pub fn new(inner: Box<dyn Device>, pass: u16, slips: fn(&Op) -> bool, erred: &Erred) -> Self {
        Slip {
            inner,
            programs: Programs::default(),
            pass,
            slips,
            frames: BTreeMap::new(),
            erred: Arc::clone(erred),
        }
    }
}

impl Device for Slip {
    fn name(&self) -> &'static str {
        "slip"
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        let workspace = self.inner.open(layout, frame)?;
        self.frames.insert(workspace.0, frame);
        Ok(workspace)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let frame = self.frames[&workspace.0];
        let mut erred = self.erred.lock().unwrap_or_else(PoisonError::into_inner);
        let slips = frame.epoch == self.pass && erred.is_none();
        let mut commands = batch.iter().filter(|_| slips);
        let at = commands.position(|command| (self.slips)(&command.op));
        let made = at.and_then(|at| Some((at, self.programs.message(&batch[at])?)));
        let Some((at, made)) = made else {
            return self.inner.submit(workspace, batch, tag);
        };
        // What follows it computes with what it has made.
        let (before, after) = batch.split_at(at + 1);
        self.inner.submit(workspace, before, BEFORE)?;
        self.inner.map(workspace, made)?[0] ^= 1;
        *erred = Some((frame, at));
        self.inner.submit(workspace, after, tag)
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        let ended = self.inner.poll()?;
        match ended {
            Some(Completion { tag: BEFORE, .. }) => self.inner.poll(),
            other => Ok(other),
        }
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        self.programs.load(&mut *self.inner, program, layout)
    }

    veil_device::forward!(self, self.inner, bind load_key close write map view wipe);
}
