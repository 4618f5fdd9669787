//! Recording what one party's device is told and what it answers, and replaying it on another device.
//!
//! A device can be driven with the real traffic of one party, alone, and every byte compared that the host looked at: [`Recording`] wraps a
//! device during a run and writes everything that crosses the [`Device`] interface; [`replay()`] reads it back and drives any device.
//!
//! The owner of the data alone may use a record: it holds the keys, the shares and the values of its party. It is for generated data and
//! for data of one's own.
//!
//! ```
//! use veil_device::record::{Recording, Tape, replay};
//! use veil_device::{Cpu, Device, Frame, ColumnType, Layout, Residency, Reference, Region};
//! # use veil_math::Ring;
//! let tape = Tape::memory();
//! let mut device = Recording::new(Box::new(Cpu::detect()), tape.clone());
//! let mut layout = Layout { chunk_rows: 8, regions: vec![] };
//! let r = layout.add(Region { residency: Residency::Mapped, column: ColumnType::Rows(Ring::Z64), components: 1, count: 1 });
//! let workspace = device.open(&layout, Frame { epoch: 0, lane: 0, chunk: 0, rows: 1 })?;
//! device.write(workspace, layout.all(r, 0), &7u64.to_le_bytes())?;
//! assert_eq!(device.view(workspace, layout.all(r, 0))?, 7u64.to_le_bytes());
//! device.wipe();
//! let record = tape.finish()?;
//! let same = replay(&record[..], &mut Reference::default())?;
//! assert_eq!((same.workspaces, same.bytes), (1, 8));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Promises: whatever a file holds, reading it does not panic, and takes no more memory than the file is long and its workspaces are
//! allowed to be; a file that was changed or cut is refused by its digests before a device sees the change. Does not promise
//! secrecy, nor that a record was made by whom it says: the digests have no key.

mod authenticated;
mod decode;
mod encode;
mod format;
mod fuzz;
mod psi;
mod replay;
mod silent;
mod tape;

use std::cell::RefCell;
use std::sync::Arc;

use veil_session::{Frame, Secret, SessionId};

use crate::{
    Command, Completion, Device, Fault, KeyId, Layout, Program, ProgramId, Span, Tag, Workspace,
};

pub use format::Damage;
pub use fuzz::fuzz_record;
pub use replay::{Difference, ReplayError, Replayed, replay};
pub use tape::{Summary, Tape};

use format::Step;

/// A device whose every call is written down.
pub struct Recording {
    inner: Box<dyn Device>,
    tape: Tape,
    state: RefCell<State>,
}

/// What was handed out and is not written yet.
#[derive(Default)]
struct State {
    /// Spans that the host may be filling; what it put there is known at the next batch.
    mapped: Vec<(Workspace, Span)>,
    /// Layouts by number: written once each.
    layouts: Vec<Layout>,
}

impl Recording {
    /// Records what happens to `inner` on `tape`.
    pub fn new(inner: Box<dyn Device>, tape: Tape) -> Self {
        tape.put(&Step::Device { name: inner.name() });
        Recording {
            inner,
            tape,
            state: RefCell::default(),
        }
    }

    /// Writes what the host put into the spans of `workspace` that it was given.
    fn settle(&self, workspace: Workspace) {
        let mut state = self.state.borrow_mut();
        state.mapped.retain(|(of, span)| {
            if *of != workspace {
                return true;
            }
            if let Ok(bytes) = self.inner.view(workspace, *span) {
                self.tape.put(&Step::Mapped {
                    workspace,
                    span: *span,
                    bytes,
                });
            }
            false
        });
    }

    /// The number of a layout, written at its first use.
    fn layout(&self, layout: &Layout) -> u32 {
        let layouts = &mut self.state.borrow_mut().layouts;
        let at = layouts.iter().position(|known| known == layout);
        at.unwrap_or_else(|| {
            self.tape.put(&Step::Layout { layout });
            layouts.push(layout.clone());
            layouts.len() - 1
        }) as u32
    }
}

impl Device for Recording {
    // It exchanges no rounds by itself: what a device does with its peers is not on the record.
    crate::forward!(self, self.inner, name engines chunk_rows window ahead);

    fn bind(&mut self, session: SessionId) {
        self.tape.put(&Step::Bind { session });
        self.inner.bind(session);
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        self.inner.load_key(id, key)?;
        self.tape.put(&Step::Key { id, key });
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let id = self.inner.load(program, layout)?;
        let layout = self.layout(layout);
        self.tape.put(&Step::Program {
            id,
            program,
            layout,
        });
        Ok(id)
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        let workspace = self.inner.open(layout, frame)?;
        let layout = self.layout(layout);
        self.tape.put(&Step::Open {
            workspace,
            layout,
            frame,
        });
        Ok(workspace)
    }

    fn close(&mut self, workspace: Workspace) {
        self.state
            .borrow_mut()
            .mapped
            .retain(|(of, _)| *of != workspace);
        self.tape.put(&Step::Close { workspace });
        self.inner.close(workspace);
    }

    fn write(&mut self, workspace: Workspace, to: Span, bytes: &[u8]) -> Result<(), Fault> {
        self.settle(workspace);
        self.inner.write(workspace, to, bytes)?;
        self.tape.put(&Step::Write {
            workspace,
            span: to,
            bytes,
        });
        Ok(())
    }

    fn map(&mut self, workspace: Workspace, to: Span) -> Result<&mut [u8], Fault> {
        let bytes = self.inner.map(workspace, to)?;
        let mapped = &mut self.state.borrow_mut().mapped;
        if !mapped.contains(&(workspace, to)) {
            mapped.push((workspace, to));
        }
        Ok(bytes)
    }

    fn view(&self, workspace: Workspace, from: Span) -> Result<&[u8], Fault> {
        self.settle(workspace);
        let bytes = self.inner.view(workspace, from)?;
        self.tape.put(&Step::View {
            workspace,
            span: from,
            bytes,
        });
        Ok(bytes)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.settle(workspace);
        self.tape.put(&Step::Submit {
            workspace,
            batch,
            tag,
        });
        self.inner.submit(workspace, batch, tag)
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        let completion = self.inner.poll()?;
        if let Some(completion) = &completion {
            self.tape.put(&Step::Completion { completion });
        }
        Ok(completion)
    }

    fn wipe(&mut self) {
        self.state.borrow_mut().mapped.clear();
        self.tape.put(&Step::Wipe);
        self.inner.wipe();
    }
}
