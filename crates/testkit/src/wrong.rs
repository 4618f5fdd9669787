//! A device that computes one bit wrong.

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
