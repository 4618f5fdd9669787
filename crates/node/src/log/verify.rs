//! Checking a log: each entry by itself, each against the one before, and the end against known heads.

use std::io::{self, BufRead, BufReader, Read};

use veil_link::tls::Fingerprint;

use super::entry::{Entry, LONGEST, NOTHING};
use crate::home::hex;

/// The last known entry of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Number of the entry.
    pub seq: u64,
    /// Its hash.
    pub hash: [u8; 32],
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.seq, hex(&self.hash))
    }
}

/// Text that is no head of a log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "this is no head of a log: one is a number, a colon and 64 hexadecimal digits, as `veil log verify` prints it"
)]
pub struct HeadError;

impl std::str::FromStr for Head {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<Self, HeadError> {
        let parse = || {
            let (seq, hash) = text.trim().split_once(':')?;
            let hash = data_encoding::HEXLOWER.decode(hash.as_bytes()).ok()?;
            Some(Head {
                seq: seq.parse().ok()?,
                hash: hash.try_into().ok()?,
            })
        };
        parse().ok_or(HeadError)
    }
}

/// A log that is in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// Whose log it is, as the first entry says.
    pub name: String,
    /// The key that signed the first entry.
    pub first_key: Fingerprint,
    /// The key that signed the last one.
    pub last_key: Fingerprint,
    /// Entries.
    pub entries: u64,
    /// The last one. Kept elsewhere, it shows later whether the log still has everything up to here.
    pub head: Head,
}

/// A log that is not in order, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogFault {
    /// It cannot be read.
    #[error("cannot read the log: {0}")]
    Read(#[from] io::Error),
    /// A line that no entry looks like.
    #[error("line {line}: this is no entry of a log as it was written; it was edited")]
    Entry {
        /// The line, from 1.
        line: u64,
    },
    /// The last line has no end.
    #[error(
        "line {line}: the last entry is not complete: the machine stopped while it was written, or the file was cut; the next entry that is written removes it if it was never acknowledged"
    )]
    Torn {
        /// The line, from 1.
        line: u64,
    },
    /// The numbers do not follow each other.
    #[error(
        "line {line}: entry {found} stands where entry {wanted} belongs: entries were removed, added or exchanged"
    )]
    Order {
        /// The line, from 1.
        line: u64,
        /// Its number.
        found: u64,
        /// The number due.
        wanted: u64,
    },
    /// The content has another hash.
    #[error(
        "line {line}: the entry says something else than when it was written: its hash differs"
    )]
    Content {
        /// The line, from 1.
        line: u64,
    },
    /// It follows another entry.
    #[error("line {line}: the entry was written after another one than line {}: that one was replaced", line - 1)]
    Chain {
        /// The line, from 1.
        line: u64,
    },
    /// Not signed by the participant.
    #[error(
        "line {line}: the entry is not signed by {key}, the key of this log: a program without the key wrote it"
    )]
    Signature {
        /// The line, from 1.
        line: u64,
        /// The key that should have signed.
        key: Fingerprint,
    },
    /// It does not begin as logs do.
    #[error(
        "line 1: a log begins with the making of its home, and this one does not: its beginning was removed"
    )]
    Beginning,
    /// A change of keys that is none.
    #[error("line {line}: the entry names a new key and another fingerprint")]
    NewKey {
        /// The line, from 1.
        line: u64,
    },
    /// Nothing there.
    #[error("the log is empty: its first entry is written when a home is made")]
    Empty,
    /// It ends before an entry that is known.
    #[error("the log ends with entry {found}, and once had entry {known}: its end was cut off")]
    Cut {
        /// The last entry.
        found: u64,
        /// The entry that is known.
        known: u64,
    },
    /// A known entry is another one.
    #[error(
        "line {line}: entry {line} is another one than was known: the log was replaced from there or before"
    )]
    Replaced {
        /// The line, from 1.
        line: u64,
    },
    /// Another home's.
    #[error(
        "the log is signed by {found}, and this home's key is {ours}: it is another participant's log, or the key was replaced without `veil identity rotate`"
    )]
    OtherKey {
        /// The key of the log.
        found: Fingerprint,
        /// The key of the home.
        ours: Fingerprint,
    },
}

/// Checks a log from its first byte to its last, in memory for one line. `known` are heads that it once had.
///
/// # Errors
/// [`LogFault`] with the first line that breaks a rule; [`LogFault::Empty`] if there is none; [`LogFault::Cut`] and
/// [`LogFault::Replaced`] if the log lacks an entry of `known` or has another in its place.
pub fn verify(log: impl Read, known: &[Head]) -> Result<Verified, LogFault> {
    let mut checker = Checker::default();
    for_each_line(log, 1, |_, bytes| checker.take(bytes, known).map(drop))?;
    let verified = checker.verified.ok_or(LogFault::Empty)?;
    match known.iter().find(|head| head.seq > verified.entries) {
        Some(head) => Err(LogFault::Cut {
            found: verified.entries,
            known: head.seq,
        }),
        None => Ok(verified),
    }
}

/// Checks entry after entry. What it was given so far is in order.
#[derive(Clone, Default, Debug)]
pub(super) struct Checker {
    pub(super) verified: Option<Verified>,
    /// The public key that signs the next entry.
    key: Vec<u8>,
}

impl Checker {
    /// The number of the line that comes next, from 1.
    pub(super) fn next(&self) -> u64 {
        self.verified.as_ref().map_or(0, |so_far| so_far.entries) + 1
    }

    /// Checks the next line. If it is not in order, nothing has changed.
    pub(super) fn take(&mut self, bytes: &[u8], known: &[Head]) -> Result<Entry, LogFault> {
        let line = self.next();
        let entry = Entry::parse(bytes).ok_or(LogFault::Entry { line })?;
        if line == 1 && entry.kind != "init" {
            return Err(LogFault::Beginning);
        }
        if entry.seq != line {
            let (found, wanted) = (entry.seq, line);
            return Err(LogFault::Order {
                line,
                found,
                wanted,
            });
        }
        if entry.digest() != entry.hash {
            return Err(LogFault::Content { line });
        }
        let before = self.verified.as_ref();
        if entry.prev != before.map_or(NOTHING, |so_far| so_far.head.hash) {
            return Err(LogFault::Chain { line });
        }
        let announced = || {
            let bytes = data_encoding::HEXLOWER.decode(entry.text("key")?.as_bytes());
            bytes.ok()
        };
        let first = if line == 1 { announced() } else { None };
        let signs = first.as_ref().unwrap_or(&self.key);
        if line == 1 && first.is_none() {
            return Err(LogFault::NewKey { line });
        }
        if !entry.signed_by(signs) {
            let key = Fingerprint::of_key(signs);
            return Err(LogFault::Signature { line, key });
        }
        let expected = match entry.kind.as_str() {
            "init" => Some("fingerprint"),
            "key_rotated" => Some("new"),
            _ => None,
        };
        let mut key = signs.clone();
        if let Some(field) = expected {
            key = announced().ok_or(LogFault::NewKey { line })?;
            if entry.text(field) != Some(Fingerprint::of_key(&key).to_string().as_str()) {
                return Err(LogFault::NewKey { line });
            }
        }
        let head = Head {
            seq: entry.seq,
            hash: entry.hash,
        };
        if known
            .iter()
            .any(|k| k.seq == head.seq && k.hash != head.hash)
        {
            return Err(LogFault::Replaced { line });
        }
        let last_key = Fingerprint::of_key(&key);
        let (name, first_key) = match self.verified.take() {
            Some(so_far) => (so_far.name, so_far.first_key),
            None => (entry.text("name").unwrap_or_default().to_owned(), last_key),
        };
        self.key = key;
        self.verified = Some(Verified {
            name,
            first_key,
            last_key,
            entries: line,
            head,
        });
        Ok(entry)
    }
}

/// Hands out line after line without its end, and counts them from `first` on. One that is longer than any entry is no entry.
pub(super) fn for_each_line(
    log: impl Read,
    first: u64,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), LogFault>,
) -> Result<(), LogFault> {
    let mut log = BufReader::new(log);
    let mut bytes = Vec::new();
    for line in first.. {
        bytes.clear();
        (&mut log)
            .take(LONGEST as u64 + 1)
            .read_until(b'\n', &mut bytes)?;
        match bytes.strip_suffix(b"\n") {
            Some(bytes) => take(line, bytes)?,
            None if bytes.is_empty() => break,
            None if bytes.len() > LONGEST => return Err(LogFault::Entry { line }),
            None => return Err(LogFault::Torn { line }),
        }
    }
    Ok(())
}
