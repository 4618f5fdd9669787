//! The bytes of a table, from any place in it.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path, sync::Arc};

use crate::InputError;
use veil_job::DataError;

/// An open file, or bytes in memory where tests and fuzzers come from. Many readers at once.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    bytes: Kind,
    len: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    File(Arc<File>),
    Memory(Arc<[u8]>),
}

impl Input {
    /// Opens a regular file. What cannot be read twice, such as a pipe, is refused.
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        // Asked before it is opened: opening a pipe waits for its other end.
        let kind = std::fs::metadata(path).map_err(DataError::io("open", path))?;
        if !kind.is_file() {
            return Err(InputError::NotAFile(path.to_owned()).into());
        }
        let file = File::open(path).map_err(DataError::io("open", path))?;
        let len = file.metadata().map_err(DataError::io("read", path))?.len();
        Ok(Self {
            bytes: Kind::File(Arc::new(file)),
            len,
        })
    }

    /// Bytes in memory.
    pub(crate) fn memory(bytes: &[u8]) -> Self {
        Self {
            bytes: Kind::Memory(bytes.into()),
            len: bytes.len() as u64,
        }
    }

    /// Length when it was opened.
    pub(crate) fn length(&self) -> u64 {
        self.len
    }

    /// Reads from `offset` until `into` is full or nothing is left; returns how many bytes that were.
    pub(crate) fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.bytes {
            Kind::File(file) => {
                let mut done = 0;
                while done < into.len() {
                    match file.read_at(&mut into[done..], offset + done as u64) {
                        Ok(0) => break,
                        Ok(count) => done += count,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(done)
            }
            Kind::Memory(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
                let rest = rest.unwrap_or_default();
                let count = rest.len().min(into.len());
                into[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }
}
