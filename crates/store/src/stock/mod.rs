//! Stock of a party: generations of cells or of random transfers that it has made with another one, encrypted, each item used once. Items of both kinds are *cells* here.
//!
//! ```text
//! run ─ put ─► NewStock ─ finish ─► <generation>.stock   header │ pages of cells
//!                                   <generation>.marks   used │ sessions │ chain        written before anything depends on them
//!              <generation>.stock ─ take ─► Taking ─► a later run
//! ```
//!
//! # Promises
//!
//! - The marks are on the disk before a run has its first cell: a party that is ended at any point uses nothing twice.
//! - Marks that were set back at one party are found when both compare theirs, if the other one has written newer ones; the generation is burnt at both.
//! - A file of another peer, role or generation, and one that was changed in any bit, is refused before anything is used.
//! - A generation is there with as many cells as both parties have agreed on, all of which have passed their checks, or is not there.
//!
//! # Limits
//!
//! - Marks that were set back at both parties to the same session are not found: what is restored must not have stock. A marks file that is set back at a party whose
//!   peer is malicious is not found either.
//! - Pages are overwritten when they are used; what a medium keeps of them is sealed. A holder of the identity's secret opens it.

mod file;
mod list;
mod making;
mod marks;
mod taking;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use veil_job::{DataError, StockError, StockKind};

pub use file::{Between, page_of};
pub use list::{Listed, ListedState, discard_unfinished, remove_stock, stocks};
pub use making::NewStock;
pub use marks::{Choice, Marks, choose, heard, word};
pub use taking::Taking;

use crate::key::{StoreKey, hex};
use file::{PageFile, sync_parent};

const DAY: Duration = Duration::from_secs(86400);

/// The stock of a party with one other party.
#[derive(Clone)]
pub struct Stocks {
    folder: PathBuf,
    key: StoreKey,
    between: Between,
}

impl Stocks {
    /// Those in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`StockError::Data`] if the folder cannot be made.
    pub fn open(folder: &Path, key: &StoreKey, between: Between) -> Result<Self, StockError> {
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(folder);
        made.map_err(DataError::io("create the folder", folder))?;
        Ok(Stocks {
            folder: folder.to_owned(),
            key: key.clone(),
            between,
        })
    }

    /// What it is of.
    pub const fn kind(&self) -> StockKind {
        self.between.kind
    }

    /// For a run that takes from it.
    pub fn taking(&self) -> Taking {
        Taking::new(self.clone())
    }

    /// For a run that makes so many cells, if those of this peer take `most` bytes at most.
    pub fn making(&self, cells: u64, most: Option<u64>) -> NewStock {
        NewStock::new(self.clone(), cells, most)
    }

    /// Cells that are left in each generation of this peer.
    ///
    /// # Errors
    /// [`StockError`] if the folder or a file cannot be read, or is damaged.
    pub fn left(&self) -> Result<Vec<u64>, StockError> {
        let held = self.held()?;
        Ok(held.iter().map(|held| held.marks.left()).collect())
    }

    /// Names of the generations with this peer that have cells left, and how many: those that both parties have serve.
    ///
    /// # Errors
    /// [`StockError`] as of [`Stocks::left`].
    pub fn generations(&self) -> Result<Vec<(String, u64)>, StockError> {
        let held = self.held()?.into_iter();
        Ok(held
            .map(|held| (short(&held.marks.generation), held.marks.left()))
            .collect())
    }

    /// Burns the generations with this peer that it does not name: it has burnt them, was set back, or has used them up, and nothing of them can be used.
    /// How many cells that were.
    ///
    /// # Errors
    /// [`StockError::Busy`] if a run is about to take from the stock, else as of [`Stocks::left`].
    pub fn burn_unnamed(&self, named: &[String]) -> Result<u64, StockError> {
        let _lock = self.lock()?;
        let mut lost = 0;
        for held in self.held()? {
            if !named.contains(&short(&held.marks.generation)) {
                lost += held.marks.left();
                held.burn("orphan");
            }
        }
        Ok(lost)
    }

    /// Burns the smallest generations with this peer until one more has a name: the parties name 8. How many cells that were.
    ///
    /// # Errors
    /// [`StockError`] as of [`Stocks::burn_unnamed`].
    pub fn make_room(&self) -> Result<u64, StockError> {
        let _lock = self.lock()?;
        let mut held = self.held()?;
        held.sort_by_key(|held| (held.marks.left(), held.marks.generation));
        let over = (held.len() + 1).saturating_sub(marks::NAMED);
        let mut lost = 0;
        for held in held.drain(..over) {
            lost += held.marks.left();
            held.burn("replaced");
        }
        Ok(lost)
    }

    /// Cells for which there is room, if all stock with this peer takes `most` bytes at most; of the generations that are named alone, if some are.
    ///
    /// # Errors
    /// [`StockError`] as of [`Stocks::left`].
    pub fn room(&self, most: u64, named: Option<&[String]>) -> Result<u64, StockError> {
        let kind = self.between.kind;
        let held = self.held()?;
        let counts =
            |held: &&Held| named.is_none_or(|named| named.contains(&short(&held.marks.generation)));
        let there: u64 = held.iter().filter(counts).map(Held::bytes).sum();
        let there = there.saturating_add(self.beside()?);
        let (page, empty) = (file::page_of(kind), file::bytes_of(kind, 0));
        let free = most.saturating_sub(there).saturating_sub(empty);
        Ok(free / (file::bytes_of(kind, page) - empty) * page)
    }

    /// Bytes on the disk of what this peer has of other kinds.
    fn beside(&self) -> Result<u64, StockError> {
        let kinds = StockKind::ALL.into_iter();
        let others = kinds.filter(|kind| *kind != self.between.kind);
        let bytes = others.map(|kind| {
            let between = Between {
                kind,
                ..self.between
            };
            // Of whatever parameter.
            let between = Between {
                statistical: 0,
                ..between
            };
            let held = Stocks {
                between,
                ..self.clone()
            }
            .held()?;
            Ok(held.iter().map(Held::bytes).sum::<u64>())
        });
        bytes.sum()
    }

    /// Why nothing is made with this peer, if too many checks have failed.
    ///
    /// # Errors
    /// [`StockError::Failures`] then, [`StockError::Data`] if the folder cannot be read.
    pub fn may_make(&self) -> Result<(), StockError> {
        match self.failures()? {
            failures if failures >= making::FAILURES => Err(StockError::Failures { failures }),
            _ => Ok(()),
        }
    }

    /// Removes generations with this peer that are used up.
    fn sweep(&self) -> Result<(), StockError> {
        let Ok(_lock) = self.lock() else {
            return Ok(());
        };
        for path in with_extension(&self.folder, "stock")? {
            let file = PageFile::open(&path, &self.key)?;
            let with = (file.between.me, file.between.peer);
            let marks = path.with_extension("marks");
            if with == (self.between.me, self.between.peer) && file.marks(&marks)?.left() == 0 {
                let _ = file.erase_header();
                let _ = fs::remove_file(&path);
                let _ = fs::remove_file(&marks);
            }
        }
        Ok(())
    }

    fn held(&self) -> Result<Vec<Held>, StockError> {
        let mut all = Vec::new();
        for path in with_extension(&self.folder, "stock")? {
            let file = PageFile::open(&path, &self.key)?;
            let marks = path.with_extension("marks");
            let fits = Between {
                statistical: file.between.statistical,
                ..self.between
            };
            // One of another peer is none of this one.
            if file.between != fits || file.between.statistical < self.between.statistical {
                continue;
            }
            let marks = file.marks(&marks)?;
            if marks.left() > 0 {
                all.push(Held { path, file, marks });
            }
        }
        all.sort_by_key(|held| held.marks.generation);
        Ok(all)
    }

    fn lock(&self) -> Result<File, StockError> {
        // One peer holds up no run with another one.
        let path = self
            .folder
            .join(format!(".lock-{}", short(&self.between.peer)));
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.mode(0o600).open(&path);
        let file = file.map_err(DataError::io("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(_) => Err(StockError::Busy),
        }
    }

    /// Burnt generations of this peer of failed checks within a day.
    fn failures(&self) -> Result<usize, StockError> {
        let (peer, now) = (hex(&self.between.peer), seconds());
        let burnt = with_extension(&self.folder, "burnt")?;
        let of_check = burnt.iter().filter(|path| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let mut words = text.split_whitespace();
            let why = words.next();
            let at = words.next().and_then(|word| word.parse::<u64>().ok());
            let recent = at.is_none_or(|at| now.saturating_sub(at) < DAY.as_secs());
            why == Some("check") && recent && words.next().is_none_or(|word| word == peer)
        });
        Ok(of_check.count())
    }
}

/// A generation of this peer.
struct Held {
    path: PathBuf,
    file: PageFile,
    marks: Marks,
}

impl Held {
    /// Bytes on the disk.
    fn bytes(&self) -> u64 {
        file::bytes_of(self.file.between.kind, self.marks.made)
    }

    /// Nothing of it is used again.
    fn burn(&self, why: &str) {
        burn(&self.path, Some(&self.file), why, &self.file.between.peer);
    }
}

/// Burns a generation, as far as the disk allows: what says so comes first.
fn burn(path: &Path, file: Option<&PageFile>, why: &str, peer: &[u8; 32]) {
    let text = format!("{why} {} {}\n", seconds(), hex(peer));
    let _ = fs::write(path.with_extension("burnt"), text);
    if let Some(file) = file {
        let _ = file.erase_header();
    }
    let _ = fs::remove_file(path);
    let _ = fs::remove_file(path.with_extension("marks"));
    let _ = sync_parent(path);
}

fn with_extension(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, StockError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(DataError::io("read", folder))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(DataError::io("read", folder))?.path();
        if path.extension().is_some_and(|of| of == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The name of a generation in names of files.
fn short(generation: &[u8; 32]) -> String {
    hex(&generation[..8])
}

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
