//! Devices that compute a bit wrong.

use veil_device::{Bank, Command, Device, Fault, Op, ProgramId, Tag};

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

    veil_device::forward!(self, self.inner, bind load_key load open close write map view poll wipe);
}

/// Another device, but for the first bit of what it makes by one kind of command, in every run: whoever has it lies to others wherever
/// that goes to them.
pub struct Lying {
    inner: Box<dyn Device>,
    lies: fn(&Op) -> bool,
}

impl Lying {
    /// `inner`, wrong in what commands of this kind make.
    pub fn new(inner: Box<dyn Device>, lies: fn(&Op) -> bool) -> Self {
        Lying { inner, lies }
    }
}

impl Device for Lying {
    fn name(&self) -> &'static str {
        "lying"
    }

    fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.inner.submit(bank, batch, tag)?;
        for command in batch.iter().filter(|command| (self.lies)(&command.op)) {
            if let Some(made) = command.dst.iter().find(|span| span.count > 0) {
                self.inner.map(bank, *made)?[0] ^= 1;
            }
        }
        Ok(())
    }

    veil_device::forward!(self, self.inner, bind load_key load open close write map view poll wipe);
}
