//! `log.jsonl`: what happened at this participant, in a chain that only its key can continue.
//!
//! Every line is one entry, a JSON object in canonical form: `seq`, `time`, `kind`, `fields`, `prev` (the hash of the entry
//! before), `hash` (SHA-256 of all these), and `sig`, the participant's Ed25519 signature of the hash. `log.head` says how
//! far the log has come, so that a cut end is noticed. `docs/consent.md` says what this proves and what it does not.

mod entry;
mod event;
mod ledger;
mod uses;
mod verify;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use veil_link::tls::{Fingerprint, Identity};

use crate::file::{self, FileError};
use crate::home::{Home, HomeError, Lock, hex};

pub(crate) use ledger::{Ledger, Run};
pub(crate) use uses::Uses;

pub use entry::Entry;
pub use event::{Bound, Decided, Event};
pub use verify::{Head, HeadError, LogFault, Verified, verify};

use entry::{LONGEST, NOTHING};
use verify::for_each_line;

/// The log of a home.
#[derive(Clone, Copy, Debug)]
pub struct Log<'a> {
    home: &'a Home,
}

impl<'a> Log<'a> {
    pub(crate) const fn of(home: &'a Home) -> Self {
        Log { home }
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.home.path().join("log.jsonl")
    }

    /// Adds an entry. It is on the disk when this returns; if it cannot be written, the log is as it was.
    ///
    /// # Errors
    /// [`HomeError::Busy`] if another process holds the home's lock, [`HomeError::LogDamaged`] if the log does not end as its
    /// head says, [`HomeError::Identity`] if the entry cannot be signed, [`HomeError::File`] if it cannot be written.
    pub fn append(&self, event: Event) -> Result<(), HomeError> {
        let lock = self.home.lock()?;
        self.append_under(&lock, event)
    }

    /// Begins the log, if there is none.
    pub(crate) fn begin(self) -> Result<(), HomeError> {
        let lock = self.home.lock()?;
        self.begin_under(&lock)
    }

    fn begin_under(self, lock: &Lock) -> Result<(), HomeError> {
        let written = fs::metadata(self.path()).is_ok_and(|meta| meta.len() > 0);
        if written || self.head_path().exists() {
            return Ok(());
        }
        let identity = self.home.identity();
        let event = Event::Init {
            name: self.home.settings().name.clone(),
            role: self.home.settings().role,
            fingerprint: identity.fingerprint().to_string(),
            key: hex(&identity.public_key()?),
        };
        self.write(lock, event)
    }

    /// The same for a caller that has the right to write already.
    pub(crate) fn append_under(self, lock: &Lock, event: Event) -> Result<(), HomeError> {
        // Another process may have replaced the key; the chain goes on with the new one.
        self.home.reload_if_changed()?;
        self.begin_under(lock)?;
        self.home.finish_rotation(lock)?;
        self.write(lock, event)
    }

    /// Writes the entry in which one key hands over to the next, unless it is the last one already.
    pub(crate) fn hand_over(
        self,
        lock: &Lock,
        old: Fingerprint,
        new: &Identity,
    ) -> Result<(), HomeError> {
        let new_key = new.fingerprint().to_string();
        let mut last = None;
        self.for_each(|entry| last = Some(entry))
            .map_err(|_| HomeError::LogDamaged(self.path()))?;
        let done = |entry: Entry| {
            entry.kind == "key_rotated" && entry.text("new") == Some(new_key.as_str())
        };
        if last.is_some_and(done) {
            return Ok(());
        }
        let event = Event::KeyRotated {
            old: old.to_string(),
            new: new.fingerprint().to_string(),
            key: hex(&new.public_key()?),
        };
        self.write(lock, event)
    }

    fn write(self, _lock: &Lock, event: Event) -> Result<(), HomeError> {
        append(&self.path(), &self.head_path(), |after| {
            Ok(Entry::make(after, event, &self.home.identity())?)
        })
    }

    /// Checks the whole log against itself, its head and the home's key. `known` are heads from elsewhere.
    ///
    /// # Errors
    /// [`LogFault`] as of [`verify()`]; [`LogFault::OtherKey`] if the last entry's key is not the home's.
    pub fn verify(&self, known: &[Head]) -> Result<Verified, LogFault> {
        let mut known = known.to_vec();
        known.extend(head(&self.head_path()));
        let verified = verify(File::open(self.path())?, &known)?;
        let ours = self.home.identity().fingerprint();
        if verified.last_key != ours {
            return Err(LogFault::OtherKey {
                found: verified.last_key,
                ours,
            });
        }
        Ok(verified)
    }

    /// Hands out the entries in order, unchecked.
    ///
    /// # Errors
    /// [`LogFault::Read`] if the log cannot be read, [`LogFault::Entry`] with the first line that is no entry. A last line
    /// without an end is passed over.
    pub fn for_each(&self, mut take: impl FnMut(Entry)) -> Result<(), LogFault> {
        let log = match File::open(self.path()) {
            Ok(log) => log,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let ended = for_each_line(log, 1, |line, bytes| {
            take(Entry::parse(bytes).ok_or(LogFault::Entry { line })?);
            Ok(())
        });
        match ended {
            // It was never acknowledged, and the next writer removes it.
            Err(LogFault::Torn { .. }) => Ok(()),
            ended => ended,
        }
    }

    /// Runs that began and have no end: the plan, the name of what ran, and the stage, of each.
    pub(crate) fn begun(self) -> Result<Vec<[String; 3]>, LogFault> {
        let mut begun: Vec<[String; 3]> = Vec::new();
        self.for_each(|entry| {
            let (Some(plan), Some(job)) = (entry.text("plan"), entry.text("job")) else {
                return;
            };
            let stage = entry.text("stage").unwrap_or_default();
            let is_of = |run: &[String; 3]| run[0] == plan;
            match entry.kind.as_str() {
                "run_started" => begun.push([plan, job, stage].map(str::to_owned)),
                "run_ended" => {
                    if let Some(at) = begun.iter().rposition(is_of) {
                        begun.remove(at);
                    }
                }
                _ => {}
            }
        })?;
        Ok(begun)
    }

    /// Whether an entry could be added now: the log ends as it was left, and there is room for some more.
    ///
    /// # Errors
    /// [`HomeError::LogDamaged`] if the log does not end as its head says, [`HomeError::File`] if it cannot be opened or the disk
    /// has no room.
    pub fn writable(&self) -> Result<(), HomeError> {
        writable(&self.path(), &self.head_path())
    }

    fn head_path(self) -> PathBuf {
        self.home.path().join("log.head")
    }
}

/// How far the log had come, as the file beside it says.
fn head(path: &Path) -> Option<Head> {
    fs::read_to_string(path).ok()?.parse().ok()
}

/// Room for the next entries, and for as much beside the log: less is a disk that is full.
const ROOM: u64 = 16 << 10;

/// Whether an entry could be added, as far as that can be known without one.
fn writable(path: &Path, head_path: &Path) -> Result<(), HomeError> {
    // The head first: another thread may add an entry meanwhile.
    let head = head(head_path);
    let mut log = open(path)?;
    let (end, _) = end_of(path, &mut log, head.as_ref())?;
    let flags = FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(&log, flags, end, ROOM) {
        // Not every file system can set room apart.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
        Err(error) => return Err(FileError::io("write", path)(error.into()).into()),
    }
    let folder = file::folder_of(path);
    let free = file::free_bytes(folder)?;
    if free < ROOM {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        return Err(FileError::io("write", path)(full).into());
    }
    Ok(())
}

/// Opens the log to add to it.
fn open(path: &Path) -> Result<File, HomeError> {
    let log = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    Ok(log.map_err(FileError::io("open", path))?)
}

/// Where the next entry goes, and what it follows.
fn end_of(
    path: &Path,
    log: &mut File,
    head: Option<&Head>,
) -> Result<(u64, (u64, [u8; 32])), HomeError> {
    end(log, head).map_err(|problem| match problem {
        End::Io(error) => HomeError::from(FileError::io("read", path)(error)),
        End::Damaged => HomeError::LogDamaged(path.to_owned()),
    })
}

/// Writes the entry that `make` makes after the last one.
fn append(
    path: &Path,
    head_path: &Path,
    make: impl FnOnce((u64, [u8; 32])) -> Result<Entry, HomeError>,
) -> Result<(), HomeError> {
    let mut log = open(path)?;
    let head = head(head_path);
    let (end, after) = end_of(path, &mut log, head.as_ref())?;
    let entry = make(after)?;
    let line = entry.line() + "\n";
    let written = log
        .set_len(end)
        .and_then(|()| log.seek(SeekFrom::Start(end)))
        .and_then(|_| log.write_all(line.as_bytes()))
        .and_then(|()| log.sync_all());
    if let Err(error) = written {
        // Half an entry would be taken for damage. If even this fails, the next writer does it.
        let _ = log.set_len(end);
        return Err(FileError::io("write", path)(error).into());
    }
    let head = Head {
        seq: entry.seq,
        hash: entry.hash,
    };
    if let Err(error) = file::write(head_path, format!("{head}\n").as_bytes()) {
        let _ = log.set_len(end);
        return Err(error.into());
    }
    Ok(())
}

enum End {
    Io(io::Error),
    Damaged,
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        End::Io(error)
    }
}

/// Where the next entry goes, its number, and the hash before it. A last line without an end was never acknowledged if
/// the head is that of the line before: then it is written over.
fn end(log: &mut File, head: Option<&Head>) -> Result<(u64, (u64, [u8; 32])), End> {
    let length = log.metadata()?.len();
    // The last complete line, and perhaps half a one after it.
    let from = length.saturating_sub(2 * (LONGEST as u64 + 1));
    log.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    Read::by_ref(log)
        .take(length - from)
        .read_to_end(&mut tail)?;
    let complete = tail
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    let torn = complete < tail.len();
    let end = from + complete as u64;
    if end == 0 {
        return if head.is_some() || (torn && from > 0) {
            Err(End::Damaged)
        } else {
            Ok((0, (1, NOTHING)))
        };
    }
    let lines = &tail[..complete - 1];
    let start = lines
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    let last = Entry::parse(&lines[start..]).ok_or(End::Damaged)?;
    let reached = head.map_or(0, |head| head.seq);
    let replaced = head.is_some_and(|head| head.seq == last.seq && head.hash != last.hash);
    if last.digest() != last.hash || last.seq < reached || replaced {
        return Err(End::Damaged);
    }
    Ok((end, (last.seq + 1, last.hash)))
}

/// For fuzzing: takes `bytes` for a log. Returns whether it is in order.
#[doc(hidden)]
pub fn fuzz_log(bytes: &[u8]) -> bool {
    verify(bytes, &[]).is_ok()
}
