//! A word in a file of the home, by which a service finds out that its memory is a copy.
//!
//! Oblivious transfers that are kept in memory are used once ([`veil_engine::OtCache`]). A virtual machine that is set back to a snapshot, or
//! a process that is restored or goes on twice, has them again. So the file has a random word that the memory knows, too, and every use
//! begins with another word, which is on the disk before anything is sent. A memory that knows another word than the file is a copy, and
//! another copy has used transfers since. A reset of the disk together with the memory deceives this check.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use veil_engine::Marks;

use crate::metrics::Metrics;

/// Bytes of a word. Two of them are never the same.
const WORD: usize = 16;

/// What the file begins with.
const HEAD: &[u8] = b"veilworks transfers 1\n";

/// The file, and the word that this memory wrote last.
pub(crate) struct MarkFile {
    path: PathBuf,
    last: Mutex<[u8; WORD]>,
    metrics: Arc<Metrics>,
}

impl MarkFile {
    /// Writes a word: every memory of before is a copy from now on.
    pub(crate) fn open(path: &Path, metrics: Arc<Metrics>) -> io::Result<Self> {
        let marks = MarkFile {
            path: path.to_owned(),
            last: Mutex::default(),
            metrics,
        };
        marks.replace()?;
        Ok(marks)
    }

    /// Writes another word, to the disk; whether the one before was this memory's.
    fn replace(&self) -> io::Result<bool> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file: File = options.mode(0o600).open(&self.path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let mut found = [0; HEAD.len() + WORD];
        // A file that is shorter is new, or torn: no memory's.
        let whole = file.read_exact_at(&mut found, 0).is_ok();
        let same = whole && found[..HEAD.len()] == *HEAD && found[HEAD.len()..] == *last;
        let mut next = [0; WORD];
        getrandom::fill(&mut next).map_err(io::Error::other)?;
        file.write_all_at(&[HEAD, &next].concat(), 0)?;
        file.sync_all()?;
        *last = next;
        Ok(same)
    }
}

impl Marks for MarkFile {
    fn used(&self) -> bool {
        match self.replace() {
            Ok(true) => true,
            Ok(false) => {
                self.metrics.copied();
                tracing::warn!(
                    "this memory was restored or copied, and kept transfers may have been used since: they are dropped, and the run begins with curves"
                );
                false
            }
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%error, %path, "cannot write down that kept transfers are used: they are dropped, and the run begins with curves");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MarkFile {
        /// The same in another memory.
        fn copied(&self) -> Self {
            let last = *self.last.lock().expect("no thread panics");
            MarkFile {
                path: self.path.clone(),
                last: Mutex::new(last),
                metrics: Arc::clone(&self.metrics),
            }
        }
    }

    fn metrics() -> Arc<Metrics> {
        Arc::new(Metrics::new("cpu".to_owned()))
    }

    #[test]
    fn a_memory_that_was_set_back_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ot.marks");
        let original = MarkFile::open(&path, metrics()).expect("a file");
        assert!(original.used());
        let snapshot = original.copied();
        assert!(original.used());
        // Again and again: a copy that has found out is one that goes on.
        for _ in 0..68 {
            assert!(!snapshot.copied().used());
        }
        let copy = snapshot.copied();
        assert!(!copy.used());
        assert!(copy.used());
        assert!(!original.used());
        // A process that begins is the last one.
        let next = MarkFile::open(&path, metrics()).expect("a file");
        assert!(!copy.used());
        assert!(!next.used());
        assert!(next.used());
    }

    #[test]
    fn a_file_that_is_gone_or_torn_is_no_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ot.marks");
        let marks = MarkFile::open(&path, metrics()).expect("a file");
        std::fs::write(&path, b"veil").expect("written");
        assert!(!marks.used());
        assert!(marks.used());
        std::fs::remove_file(&path).expect("removed");
        assert!(!marks.used());
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a folder");
        assert!(!marks.used());
        assert!(MarkFile::open(&path, metrics()).is_err());
    }
}
