//! Sums over the entries of a log, each entry checked once: the entries read before are remembered, and later ones are checked from there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use veil_link::tls::Fingerprint;

use super::verify::{Checker, for_each_line};
use super::{Entry, Head, Log, LogFault, Uses, head};
use crate::time::Time;

/// A run that a rule allowed, and that rules count.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) rule: Arc<str>,
    pub(crate) job: Arc<str>,
    pub(crate) time: Time,
    /// The member who asked; nothing, if this participant did.
    pub(crate) asked_by: Option<Arc<str>>,
    /// The families of its queries; nothing, if the log does not have them.
    pub(crate) families: Option<Vec<Arc<str>>>,
}

impl Run {
    /// Whether it counts as one of a family for an asker. One of which the log does not say the families may be of any.
    pub(crate) fn is_of(&self, family: &str, asked_by: Option<&str>) -> bool {
        let families = self.families.as_ref();
        self.asked_by.as_deref() == asked_by
            && families.is_none_or(|all| all.iter().any(|of| **of == *family))
    }
}

/// The entries of a log that were found in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ledger {
    checker: Checker,
    /// Which file it is: device and inode.
    file: Option<(u64, u64)>,
    /// Where its last entry that was checked ends, and that entry with its end.
    offset: u64,
    last: Vec<u8>,
    runs: Vec<Run>,
    /// What approvals that hold were used for, by plan.
    uses: BTreeMap<String, Uses>,
    /// Names, each of them once.
    names: BTreeSet<Arc<str>>,
}

impl Ledger {
    /// Runs that rules allowed, the oldest first.
    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The key that signs the next entry.
    pub(crate) fn key(&self) -> Option<Fingerprint> {
        let verified = self.checker.verified.as_ref();
        verified.map(|verified| verified.last_key)
    }

    /// The last entry that is in order.
    pub(crate) fn head(&self) -> Option<&Head> {
        let verified = self.checker.verified.as_ref();
        verified.map(|verified| &verified.head)
    }

    /// Checks what was added since. If that is not in order, or something before was touched, what is known is not the whole.
    pub(crate) fn read(&mut self, log: Log<'_>) -> Result<(), LogFault> {
        // The head first: entries may be added meanwhile.
        let head = head(&log.head_path());
        match File::open(log.path()) {
            Ok(file) => self.read_from(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => *self = Ledger::default(),
            Err(error) => return Err(error.into()),
        }
        let Some(known) = head else { return Ok(()) };
        let found = self.checker.next() - 1;
        if known.seq > found {
            let known = known.seq;
            return Err(LogFault::Cut { found, known });
        }
        if (self.head()).is_some_and(|head| head.seq == known.seq && head.hash != known.hash) {
            return Err(LogFault::Replaced { line: known.seq });
        }
        Ok(())
    }

    fn read_from(&mut self, mut log: File) -> Result<(), LogFault> {
        let meta = log.metadata()?;
        let file = Some((meta.dev(), meta.ino()));
        if self.file != file || !self.is_in(&mut log, meta.len())? {
            *self = Ledger {
                file,
                ..Ledger::default()
            };
        }
        log.seek(SeekFrom::Start(self.offset))?;
        let first = self.checker.next();
        let read = for_each_line(log, first, |_, bytes| {
            let entry = self.checker.take(bytes, &[])?;
            self.count(&entry);
            self.offset += bytes.len() as u64 + 1;
            self.last.clear();
            self.last.extend_from_slice(bytes);
            self.last.push(b'\n');
            Ok(())
        });
        match read {
            // It was never acknowledged, and the next writer removes it.
            Err(LogFault::Torn { .. }) => Ok(()),
            read => read,
        }
    }

    /// Whether the last entry that was checked still stands where it did. The hashes in it are of all before.
    fn is_in(&self, log: &mut File, length: u64) -> io::Result<bool> {
        if length < self.offset {
            return Ok(false);
        }
        log.seek(SeekFrom::Start(self.offset - self.last.len() as u64))?;
        let mut there = vec![0; self.last.len()];
        log.read_exact(&mut there)?;
        Ok(there == self.last)
    }

    /// What the approval of a plan was used for since it was given.
    pub(crate) fn uses(&self, plan: &str) -> Uses {
        self.uses.get(plan).copied().unwrap_or_default()
    }

    fn count(&mut self, entry: &Entry) {
        if let Some(plan) = entry.text("plan") {
            match entry.kind.as_str() {
                "approval" => {
                    self.uses.insert(plan.to_owned(), Uses::default());
                }
                "withdrawal" => {
                    self.uses.remove(plan);
                }
                _ => {
                    if let Some(uses) = self.uses.get_mut(plan) {
                        uses.take(entry);
                    }
                }
            }
        }
        if entry.kind != "run_started" {
            return;
        }
        if let (Some(rule), Some(job)) = (entry.text("rule"), entry.text("job")) {
            let [rule, job] = [rule, job].map(|name| self.name(name));
            let asked_by = entry.text("asked_by").map(|name| self.name(name));
            let families = entry.fields.get("families");
            let families = families.and_then(serde_json::Value::as_array);
            let families = families.and_then(|all| all.iter().map(|of| of.as_str()).collect());
            let families = families.map(|all: Vec<&str>| {
                let names = all.into_iter().map(|name| self.name(name));
                names.collect()
            });
            self.runs.push(Run {
                rule,
                job,
                time: entry.time,
                asked_by,
                families,
            });
        }
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }
}
