//! A device that computes one bit wrong.

use std::sync::Arc;

use veil_device::{
    Bank, Command, Completion, Device, Fault, Frame, KeyId, Layout, Op, Program, ProgramId, Span,
    Tag,
};
use veil_session::{Secret, SessionId};

/// Another device, but for the first bit of the message of one layer.
pub struct OneBitWrong {
    inner: Box<dyn Device>,
    /// The program of that layer.
    program: ProgramId,
}

impl OneBitWrong {
    /// `inner`, wrong in the products, or the sums of products, of program `program`.
    pub fn new(inner: Box<dyn Device>, program: u32) -> Self {
        OneBitWrong {
            inner,
            program: ProgramId(program),
        }
    }
}

impl Device for OneBitWrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn bind(&mut self, session: SessionId) {
        self.inner.bind(session);
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        self.inner.load_key(id, key)
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        self.inner.load(program, layout)
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Bank, Fault> {
        self.inner.open(layout, frame)
    }

    fn close(&mut self, bank: Bank) {
        self.inner.close(bank);
    }

    fn write(&mut self, bank: Bank, to: Span, bytes: &[u8]) -> Result<(), Fault> {
        self.inner.write(bank, to, bytes)
    }

    fn map(&mut self, bank: Bank, to: Span) -> Result<&mut [u8], Fault> {
        self.inner.map(bank, to)
    }

    fn view(&self, bank: Bank, from: Span) -> Result<&[u8], Fault> {
        self.inner.view(bank, from)
    }

    fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.inner.submit(bank, batch, tag)?;
        let wrong = batch
            .iter()
            .find(|c| matches!(c.op, Op::Product(_)) && c.program == Some(self.program));
        let message = wrong.and_then(|c| c.dst.iter().find(|span| span.count > 0));
        if let Some(message) = message {
            self.inner.map(bank, *message)?[0] ^= 1;
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.inner.poll()
    }

    fn wipe(&mut self) {
        self.inner.wipe();
    }
}
