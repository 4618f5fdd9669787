//! Where a record goes: framed, with a running digest.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use super::format::{MAGIC, Step};

/// A record that is being written. Clones write to the same one.
#[derive(Clone)]
pub struct Tape(Arc<Mutex<Inner>>);

struct Inner {
    to: To,
    digest: [u8; 32],
    /// A step on its way: it holds shares and keys.
    step: Vec<u8>,
    steps: u64,
    bytes: u64,
    failed: Option<io::Error>,
}

enum To {
    Memory(Vec<u8>),
    Writer(Box<dyn Write + Send>),
}

/// The length of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Calls.
    pub steps: u64,
    /// Bytes of the record.
    pub bytes: u64,
}

impl Tape {
    /// Records into memory.
    pub fn memory() -> Self {
        Self::start(To::Memory(Vec::new()))
    }

    /// Records into a file, which should be readable by its owner alone. An error of the writer ends the record, not the run.
    pub fn to(writer: Box<dyn Write + Send>) -> Self {
        Self::start(To::Writer(writer))
    }

    fn start(to: To) -> Self {
        let mut inner = Inner {
            to,
            digest: [0; 32],
            step: Vec::new(),
            steps: 0,
            bytes: 0,
            failed: None,
        };
        inner.write(MAGIC);
        Tape(Arc::new(Mutex::new(inner)))
    }

    /// Writes a step.
    pub(super) fn put(&self, step: &Step<'_>) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = std::mem::take(&mut inner.step);
        step.encode(&mut bytes);
        inner.frame(&bytes);
        bytes.zeroize();
        inner.step = bytes;
    }

    /// Writes the end of the record, and returns the bytes of a record in memory.
    ///
    /// # Errors
    /// The first error of the writer, after which nothing was recorded, or that of the last flush. A record in memory has none.
    pub fn finish(&self) -> io::Result<Vec<u8>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.frame(&[]);
        if let Some(error) = inner.failed.take() {
            return Err(error);
        }
        match &mut inner.to {
            To::Memory(bytes) => Ok(std::mem::take(bytes)),
            To::Writer(writer) => writer.flush().map(|()| Vec::new()),
        }
    }

    /// The length of the record so far.
    pub fn summary(&self) -> Summary {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Summary {
            steps: inner.steps,
            bytes: inner.bytes,
        }
    }
}

impl Inner {
    /// A step as `[length][bytes][first 8 bytes of SHA-256(digest so far ‖ bytes)]`. An empty step is the end.
    fn frame(&mut self, step: &[u8]) {
        self.digest = chain(&self.digest, step);
        let check: [u8; 8] = self.digest[..8].try_into().expect("8 of 32 bytes");
        self.write(&(step.len() as u64).to_le_bytes());
        self.write(step);
        self.write(&check);
        self.steps += 1;
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        self.bytes += bytes.len() as u64;
        match &mut self.to {
            To::Memory(to) => to.extend_from_slice(bytes),
            To::Writer(writer) => self.failed = writer.write_all(bytes).err(),
        }
    }
}

pub(super) fn chain(digest: &[u8; 32], step: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(digest);
    hash.update(step);
    hash.finalize().into()
}
