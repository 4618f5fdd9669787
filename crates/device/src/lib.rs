//! Devices: command queues that do a party's local work on whole layers of whole batches.
//!
//! A device knows rings, forms and bytes, and no protocol. The scalar [`Reference`] *defines* what each operation means, keeps
//! the ledger of draws, and is slow; [`Cpu`] gives the same bytes with SIMD. [`conformance`] is the suite that every device must
//! pass, and `veil-lab device check` runs it.
//!
//! ```
//! use veil_device::{Cpu, Device, Frame, Item, Layout, Place, Region};
//! use veil_math::Ring;
//! let mut layout = Layout { chunk_rows: 100, regions: vec![] };
//! let r = layout.add(Region { place: Place::Mapped, item: Item::Rows(Ring::Bits), parts: 1, count: 3 });
//! let mut device = Cpu::detect();
//! let bank = device.open(&layout, Frame { epoch: 0, lane: 0, chunk: 0, rows: 10 }).unwrap();
//! device.write(bank, layout.all(r, 0), &[1, 0, 2, 0, 3, 0]).unwrap(); // three wires of ten rows
//! assert_eq!(device.view(bank, layout.all(r, 0)).unwrap(), [1, 0, 2, 0, 3, 0]);
//! device.close(bank);
//! ```
//!
//! Promises: commands of a bank take effect in order, banks are independent, a closed bank is scrubbed, no branch and no
//! memory index of the CPU device depends on a value. Does not promise secrecy against whoever controls the machine.

mod command;
pub mod conformance;
mod cpu;
pub mod cut;
mod form;
mod forward;
pub mod garble;
pub mod hash;
mod layout;
pub mod mac;
pub mod ot;
mod program;
pub mod proof;
pub mod record;
mod reference;
mod repeat;
mod round;

pub use command::{Command, Completion, Draw, KeyId, Op, Outcome, ProgramId, Tag};
pub use cpu::{Cpu, Gates, HashRate, Isa, Shares};
pub use cut::Cut;
pub use form::{Cross, Form};
pub use garble::Garbling;
pub use layout::{Item, Layout, Place, Region, Span};
pub use ot::{Ot, Trees};
pub use program::{Dst, Instr, Needs, Program, Src};
pub use proof::{Proof, Side};
pub use reference::Reference;
pub use repeat::{Repeat, Step};
pub use round::{Check, Round, Transfer};

use std::sync::Arc;

pub use veil_session::Frame;
use veil_session::{Secret, SessionId};

/// An open bank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bank(pub u32);

/// A device could not do what it was told. Always a defect of a plan or a machine, never a peer's doing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No such bank, program or key.
    #[error("{0} was not loaded into the device")]
    Unknown(&'static str),
    /// A span outside its region, or of the wrong shape for the operation.
    #[error("command {command}: {what}")]
    Shape {
        /// Index in the batch.
        command: usize,
        /// What does not fit.
        what: &'static str,
    },
    /// The host asked for a region that is not its business.
    #[error("the host may not reach this region")]
    NotReachable,
    /// A program that breaks a rule.
    #[error("malformed program: {0}")]
    Program(&'static str),
    /// A bank larger than the device has room for.
    #[error("a bank of {bytes} bytes does not fit the device")]
    TooLarge {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A program that a card has no room for.
    #[error("a program does not fit {device}: {why}")]
    NoRoom {
        /// The device.
        device: &'static str,
        /// What there is too much of.
        why: String,
    },
    /// A device that was asked for does not start.
    #[error("{device} did not start: {why}")]
    Absent {
        /// The device.
        device: String,
        /// What is in the way.
        why: String,
    },
    /// A card does not do what it was told.
    #[error("{device}: {why}")]
    Card {
        /// The device.
        device: &'static str,
        /// What it does instead.
        why: String,
    },
    /// A command that the device has nothing for.
    #[error("{device} has nothing for {what}")]
    Unsupported {
        /// The device.
        device: &'static str,
        /// What it does not do.
        what: &'static str,
    },
    /// A tuple of the PRF would be used twice (rule R4).
    #[error("refused to reuse randomness: {0}")]
    Reuse(#[from] veil_prss::Reuse),
}

/// A command queue over banks.
pub trait Device: Send {
    /// Name for reports, such as `cpu-avx512`.
    fn name(&self) -> &'static str;

    /// Rows of hardware that start a gate in each cycle, if it is best at programs over labels whose gates are in order for so many.
    fn rows(&self) -> Option<u32> {
        None
    }

    /// Binds the device to a session: hashes of other sessions differ.
    fn bind(&mut self, session: SessionId);

    /// Loads a key. It is wiped with [`Device::wipe`] or on drop.
    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault>;

    /// Loads a program that will run on banks of `layout` that are opened after this; may compile it.
    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault>;

    /// Opens a bank for one chunk, all zero.
    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Bank, Fault>;

    /// Scrubs and frees a bank.
    fn close(&mut self, bank: Bank);

    /// Writes packed bytes into a mapped span.
    fn write(&mut self, bank: Bank, to: Span, bytes: &[u8]) -> Result<(), Fault> {
        let into = self.map(bank, to)?;
        if into.len() != bytes.len() {
            return Err(Fault::Shape {
                command: 0,
                what: "written bytes do not fill the span",
            });
        }
        into.copy_from_slice(bytes);
        Ok(())
    }

    /// The packed bytes of a mapped span, to be filled by a transfer.
    fn map(&mut self, bank: Bank, to: Span) -> Result<&mut [u8], Fault>;

    /// The packed bytes of a mapped or public span.
    fn view(&self, bank: Bank, from: Span) -> Result<&[u8], Fault>;

    /// Queues a batch. Returns at once; one completion per batch.
    fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault>;

    /// Does the first of these rounds as wholes, as many as it says: what they compute, their messages to the devices of the peers and from
    /// them, and what is computed then. They are the next ones of a bank, all of one task. One completion for all of them; a check that fails
    /// has the number of its command among all that finish them. A device that says 0, as most do, has done nothing: the host goes through
    /// the round then, and moves its messages.
    ///
    /// Rounds are public, and devices that are joined decide about them alike: either all whose messages meet in a round do it, or none.
    fn exchange(&mut self, bank: Bank, rounds: &[Arc<Round>], tag: Tag) -> Result<usize, Fault> {
        let _ = (bank, rounds, tag);
        Ok(0)
    }

    /// The next completion, if a batch ended.
    fn poll(&mut self) -> Option<Completion>;

    /// Scrubs all banks and keys: after a failed check, a time-out, or the end.
    fn wipe(&mut self);
}
