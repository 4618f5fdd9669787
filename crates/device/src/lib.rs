//! Devices: command queues that do a party's local work on whole layers of whole batches.
//!
//! A [`Device`] holds a party's shares or labels in workspaces and executes [`Command`]s on them: products, linear gates, masks, hashes, MACs,
//! garbling, OT extension, proofs. It knows rings, bilinear forms and bytes, and no protocol. The scalar [`Reference`] *defines* what each
//! operation means, keeps the ledger of PRF calls, and is slow; [`Cpu`] gives the same bytes with SIMD.
//!
//! ```text
//! host    load_key, load   open                      write, map   submit       poll          view
//!               ▼            ▼                             ▼         ▼            ▲            ▲
//! device  keys, programs   workspace of a chunk: regions ── Mapped ── commands ── completion ── Mapped, Public
//!                          that are Resident stay on the device     in order     one a batch
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_device::{Cpu, Device, Frame, ColumnType, Layout, Residency, Region};
//! use veil_math::Ring;
//! let mut layout = Layout { chunk_rows: 100, regions: vec![] };
//! let r = layout.add(Region { residency: Residency::Mapped, column: ColumnType::Rows(Ring::Bits), components: 1, count: 3 });
//! let mut device = Cpu::detect();
//! let workspace = device.open(&layout, Frame { epoch: 0, lane: 0, chunk: 0, rows: 10 }).unwrap();
//! device.write(workspace, layout.all(r, 0), &[1, 0, 2, 0, 3, 0]).unwrap(); // three wires of ten rows
//! assert_eq!(device.view(workspace, layout.all(r, 0)).unwrap(), [1, 0, 2, 0, 3, 0]);
//! device.close(workspace);
//! ```
//!
//! [`conformance`] is the suite that every device must pass, and `veil device check` runs it. [`record`] records the calls of a device and
//! replays them on another one; [`shadow`] runs two devices side by side, and compares.
//!
//! # Promises
//!
//! - Commands of a workspace take effect in order, and workspaces are independent.
//! - A closed workspace is scrubbed.
//! - What a command reads of a workspace that was opened is zero until it is written. Of one that serves another chunk ([`Device::reuse`]) that holds only of
//!   the columns that the host names.
//! - No branch and no memory index of the CPU device depends on a value, but for permutations that a party draws or is told, and for its own keys in
//!   intersections ([`psi`]): memory is reached at positions that follow from them.
//!
//! # Limits
//!
//! - A device keeps no secret from the operator of its machine.

pub mod ag;
mod command;
mod compiled;
pub mod conformance;
mod cpu;
pub mod cut;
mod form;
mod forward;
pub mod garble;
mod gf128;
pub mod hash;
mod layout;
mod lift;
pub mod mac;
mod matmul;
mod moves;
pub mod ot;
mod program;
pub mod proof;
pub mod psi;
mod rank;
pub mod record;
mod reference;
mod repeat;
mod round;
pub mod shadow;
pub mod silent;
mod truncation;
mod waiting;
mod written;

pub use ag::Ag;
pub use command::{Command, Completion, KeyId, Op, Outcome, PrfCall, ProgramId, Tag};
pub use compiled::Compiled;
pub use cpu::{Cpu, Gates, HashRate, Isa, Shares};
pub use cut::Cut;
pub use form::{Cross, Form};
pub use garble::Garbling;
pub use layout::{ColumnType, Layout, Region, Residency, Span, fits_reuse};
pub use lift::Lifting;
pub use matmul::{MatMul, OfSums};
pub use ot::{Ot, Trees};
pub use program::{Dst, Instr, Needs, Program, Src};
pub use proof::{Proof, RowStep, Side};
pub use psi::{Okvs, Psi};
pub use reference::Reference;
pub use repeat::{Repeat, Step};
pub use round::{Ahead, Check, Products, Round, Transfer};
pub use silent::{Lpn, Over, Silent};
pub use truncation::Truncation;
pub use waiting::completion;

use std::sync::Arc;

use veil_math::Ring;
pub use veil_session::Frame;
use veil_session::{Secret, SessionId, Wiped};

/// An open workspace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Workspace(pub u32);

/// A device could not do what it was told. Always a defect of a plan or a machine, never a peer's doing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No such workspace, program or key.
    #[error("{0} was not loaded into the device")]
    Unknown(&'static str),
    /// A span outside its region, or of the wrong shape for the operation.
    #[error("command {command}: {what}")]
    Shape {
        /// Index in the batch.
        command: usize,
        /// The rule that is broken, in words.
        what: &'static str,
    },
    /// The host asked for a region that is not its business.
    #[error("the host may not reach this region")]
    NotReachable,
    /// A program that breaks a rule.
    #[error("malformed program: {0}")]
    Program(&'static str),
    /// A workspace larger than the device has room for.
    #[error("a workspace of {bytes} bytes does not fit the device")]
    TooLarge {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A program that a card has no room for.
    #[error("a program does not fit {device}: {why}")]
    NoRoom {
        /// The device.
        device: &'static str,
        /// The resource that is exceeded.
        why: String,
    },
    /// A device that was asked for does not start.
    #[error("{device} did not start: {why}")]
    Absent {
        /// The device.
        device: String,
        /// The obstacle, and what to do about it.
        why: String,
    },
    /// A card does not do what it was told.
    #[error("{device}: {why}")]
    Card {
        /// The device.
        device: &'static str,
        /// Its behaviour, in words.
        why: String,
    },
    /// Another device, by which this one is judged, does something else ([`shadow`]).
    #[error("{device} is wrong: {why}")]
    Differs {
        /// The device.
        device: &'static str,
        /// What differs where, in words.
        why: String,
    },
    /// A command that the device has nothing for.
    #[error("{device} has nothing for {what}")]
    Unsupported {
        /// The device.
        device: &'static str,
        /// The unsupported operation.
        what: &'static str,
    },
    /// A tuple of the PRF would be used twice (rule R4).
    #[error("refused to reuse randomness: {0}")]
    Reuse(#[from] veil_prss::Reuse),
}

/// A command queue over workspaces.
pub trait Device: Send {
    /// Name for reports, such as `cpu-avx512`.
    fn name(&self) -> &'static str;

    /// Garbling engines that each start a gate in each cycle, if it is best at programs over labels whose gates are in order for so many.
    fn engines(&self) -> Option<u32> {
        None
    }

    /// Rows of a chunk over a ring that it is best at, where that is more than fits the cache of a processor: one value per row. Devices of the
    /// host have no wish.
    fn chunk_rows(&self, ring: Ring) -> Option<u64> {
        let _ = ring;
        None
    }

    /// Chunks in flight that keep it busy, where those that hide the network from a processor do not: it moves one chunk while it computes others.
    fn window(&self) -> usize {
        1
    }

    /// Whether chunks may be in flight beyond those, while others wait for messages: a workspace takes nothing but memory of the host.
    fn ahead(&self) -> bool {
        false
    }

    /// Another device like it, new, for other programs of the same lane: with the memory of workspaces that either has closed, which is zeros. Nothing if
    /// such a device has memory of its own.
    fn beside(&self) -> Option<Box<dyn Device>> {
        None
    }

    /// Binds the device to a session: hashes of other sessions differ.
    fn bind(&mut self, session: SessionId);

    /// Loads a key. It is wiped with [`Device::wipe`] or on drop.
    ///
    /// # Errors
    /// [`Fault::Unknown`] if a card has no room for the key, [`Fault::Card`] if it fails. Devices of the host have no error.
    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault>;

    /// Loads a program that will run on workspaces of `layout` that are opened after this; may compile it.
    ///
    /// # Errors
    /// [`Fault::Program`] if the program breaks a rule for this layout (see [`Needs::of`]), [`Fault::NoRoom`] if a card has no
    /// room for it, [`Fault::Card`] if it does not take it.
    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault>;

    /// Opens a workspace for one chunk, all zero.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] if the device has no room for the workspace, [`Fault::Card`] if a card fails.
    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault>;

    /// Makes an open workspace that of another chunk of as many rows: the columns of `zeros` are zero then, those of `kept` are what they were, and any other holds anything until it is written. So
    /// a host whose commands and messages write what they read passes over no memory between chunks. What is left of a chunk stays on the device until the
    /// workspace is closed. The host reuses one only for chunks of the same plan, key and run.
    ///
    /// `false`: nothing was done, and the host closes the workspace and opens another one. A device says so that does not tell columns apart, as most do.
    ///
    /// # Errors
    /// [`Fault::Unknown`] if the workspace is not open, [`Fault::NotReachable`] if a span is outside its region, [`Fault::Shape`] if the chunk has other rows.
    fn reuse(
        &mut self,
        workspace: Workspace,
        frame: Frame,
        (zeros, kept): (&[Span], &[Span]),
    ) -> Result<bool, Fault> {
        let _ = (workspace, frame, zeros, kept);
        Ok(false)
    }

    /// Scrubs and frees a workspace.
    fn close(&mut self, workspace: Workspace);

    /// Writes packed bytes into a mapped span.
    ///
    /// # Errors
    /// [`Fault`] as of [`Device::map`]; [`Fault::Shape`] if `bytes` do not fill the span.
    fn write(&mut self, workspace: Workspace, to: Span, bytes: &[u8]) -> Result<(), Fault> {
        let into = self.map(workspace, to)?;
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
    ///
    /// # Errors
    /// [`Fault::Unknown`] if the workspace is not open, [`Fault::NotReachable`] if the span is outside its region or the region is not
    /// mapped.
    fn map(&mut self, workspace: Workspace, to: Span) -> Result<&mut [u8], Fault>;

    /// The packed bytes of a mapped or public span.
    ///
    /// # Errors
    /// [`Fault::Unknown`] if the workspace is not open, [`Fault::NotReachable`] if the span is outside its region or the region is
    /// resident.
    fn view(&self, workspace: Workspace, from: Span) -> Result<&[u8], Fault>;

    /// Exchanges the memory of a column that is [`Residency::Lent`] for `bytes`, which are what it holds then; `bytes` are what it held. Without any bytes it
    /// holds nothing, which is zeros where it is read before it is written; and nothing is what `bytes` become of a column that holds nothing.
    ///
    /// `false`: nothing was exchanged, and the host copies. A device says so that has memory of its own, as most do.
    ///
    /// # Errors
    /// [`Fault::Unknown`] if the workspace is not open, [`Fault::NotReachable`] if the span is no lent column, [`Fault::Shape`] if there are bytes, but not
    /// as many as it has.
    fn swap(
        &mut self,
        workspace: Workspace,
        of: Span,
        bytes: &mut Wiped<u8>,
    ) -> Result<bool, Fault> {
        let _ = (workspace, of, bytes);
        Ok(false)
    }

    /// Queues a batch. Returns at once; one completion per batch.
    ///
    /// # Errors
    /// [`Fault::Unknown`] if workspace, program or key are not there; [`Fault::Shape`] and [`Fault::Program`] with the first command
    /// that does not fit the workspace (see [`Command::check`]); [`Fault::Unsupported`] for one that the device has nothing for;
    /// [`Fault::Reuse`] where a ledger knows a call. Commands before it may have run. A check that fails is none of these, but
    /// the [`Outcome`] of the completion.
    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault>;

    /// Does the first of these rounds as wholes, as many as it says: what they compute, their messages to the devices of the peers and from
    /// them, and what is computed then. They are the next ones of a workspace, all of one task. One completion for all of them; a check that fails
    /// has the number of its command among all that finish them. A device that says 0, as most do, has done nothing: the host goes through
    /// the round then, and moves its messages.
    ///
    /// Rounds are public, and devices that are joined decide about them alike: either all whose messages meet in a round do it, or none.
    ///
    /// # Errors
    /// [`Fault`] as of [`Device::submit`]; [`Fault::Card`] if a card that moves the messages fails.
    fn exchange(
        &mut self,
        workspace: Workspace,
        rounds: &[Arc<Round>],
        tag: Tag,
    ) -> Result<usize, Fault> {
        let _ = (workspace, rounds, tag);
        Ok(0)
    }

    /// The next completion, if a batch ended. Never waits: a caller with nothing else to do asks again ([`completion`]).
    ///
    /// # Errors
    /// [`Fault::Card`], with the reason, if the device failed while it had batches: those have no completion any more. [`Fault::Shape`] of a batch whose step of an
    /// intersection cannot be done with its keys ([`Psi`]), on a device that finds that out when it does it. Devices of the host have no error.
    fn poll(&mut self) -> Result<Option<Completion>, Fault>;

    /// Scrubs all workspaces and keys: after a failed check, a time-out, or the end.
    fn wipe(&mut self);
}
