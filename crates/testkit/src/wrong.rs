//! Devices that compute a bit wrong.

use veil_device::{Command, Device, Fault, Op, ProgramId, Tag, Workspace};

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

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.inner.submit(workspace, batch, tag)?;
        let wrong = batch
            .iter()
            .find(|c| matches!(c.op, Op::Product(_)) && c.program == Some(self.program));
        let message = wrong.and_then(|c| c.dst.iter().find(|span| span.count > 0));
        if let Some(message) = message {
            self.inner.map(workspace, *message)?[0] ^= 1;
        }
        Ok(())
    }

    veil_device::forward!(self, self.inner, bind load_key load open close write map view poll wipe);
}

/// A device that flips the first bit of the result of one kind of command, in every run: a party with it sends wrong messages wherever that
/// result is sent.
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

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.inner.submit(workspace, batch, tag)?;
        for command in batch.iter().filter(|command| (self.lies)(&command.op)) {
            if let Some(made) = command.dst.iter().find(|span| span.count > 0) {
                self.inner.map(workspace, *made)?[0] ^= 1;
            }
        }
        Ok(())
    }

    veil_device::forward!(self, self.inner, bind load_key load open close write map view poll wipe);
}

/// Another device of a party, which adds something to messages of products: to an element of 128 bits in the message of a layer, in one
/// chunk. The party's later messages fit the one that it sent.
pub struct Adding {
    inner: Box<dyn Device>,
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
        let message = of_layer.and_then(|c| c.dst.get(usize::from(self.sums)));
        if let Some(message) = message.filter(|span| span.count > 0) {
            let bytes = self.inner.map(workspace, *message)?;
            if let Some(element) = bytes.as_chunks_mut::<16>().0.get_mut(self.element) {
                let sum = u128::from_le_bytes(*element).wrapping_add(self.error);
                *element = sum.to_le_bytes();
            }
        }
        Ok(())
    }

    veil_device::forward!(self, self.inner, bind load_key load open close write map view poll wipe);
}
