//! The bytes of a record: little-endian numbers, a tag before each variant, a count before each list.

use std::io;

use veil_session::{Frame, Secret, SessionId};
use zeroize::Zeroize;

use crate::{Command, Completion, KeyId, Layout, Program, ProgramId, Span, Tag, Workspace};

/// The first line tells a reader what the file is, the second that it is secret.
pub(super) const MAGIC: &[u8] = b"veilworks device record 2\n\
SECRET: this file holds the keys, the shares and the values of one party. Keep it to yourself and delete it after use.\n";

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// Not a record at all, or of another version.
    #[error("this is no device record of version 2")]
    Stranger,
    /// The file ends before its end mark.
    #[error("the record ends within step {step}: it was cut off, or the run was")]
    Cut {
        /// Number of the step.
        step: u64,
    },
    /// A digest does not match.
    #[error("step {step} of the record was changed after it was written")]
    Changed {
        /// Number of the step.
        step: u64,
    },
    /// A step that no recorder writes.
    #[error("step {step} of the record makes no sense: {what}")]
    Nonsense {
        /// Number of the step.
        step: u64,
        /// The defect.
        what: &'static str,
    },
    /// The file cannot be read.
    #[error("step {step} of the record cannot be read: {error}")]
    Unreadable {
        /// Number of the step.
        step: u64,
        /// The system's error.
        error: io::Error,
    },
}

/// One call, as it is written.
pub(super) enum Step<'a> {
    Device {
        name: &'a str,
    },
    Bind {
        session: SessionId,
    },
    Key {
        id: KeyId,
        key: &'a Secret,
    },
    Layout {
        layout: &'a Layout,
    },
    Program {
        id: ProgramId,
        program: &'a Program,
        layout: u32,
    },
    Open {
        workspace: Workspace,
        layout: u32,
        frame: Frame,
    },
    Close {
        workspace: Workspace,
    },
    Write {
        workspace: Workspace,
        span: Span,
        bytes: &'a [u8],
    },
    Mapped {
        workspace: Workspace,
        span: Span,
        bytes: &'a [u8],
    },
    View {
        workspace: Workspace,
        span: Span,
        bytes: &'a [u8],
    },
    Submit {
        workspace: Workspace,
        batch: &'a [Command],
        tag: Tag,
    },
    Completion {
        completion: &'a Completion,
    },
    Wipe,
}

/// One call, as it is read.
pub(super) enum Call {
    Device(String),
    Bind(SessionId),
    Key(KeyId, Secret),
    Layout(Layout),
    Program(ProgramId, Program, u32),
    Open(Workspace, u32, Frame),
    Close(Workspace),
    /// Bytes that the host wrote, or that a transfer put there.
    Write(Workspace, Span, Bytes),
    View(Workspace, Span, Bytes),
    Submit(Workspace, Vec<Command>, Tag),
    Completion(Completion),
    Wipe,
}

/// Bytes of a party: wiped when they are done with.
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Drop for Bytes {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
