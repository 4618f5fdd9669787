//! Stock of a party: generations of cells that it has made with another one, encrypted, each cell used once.
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
//! - A generation is complete or is not there.
//!
//! # Limits
//!
//! - Marks that were set back at both parties to the same session are not found: what is restored must not have stock. A marks file that is set back at a party whose
//!   peer is malicious is not found either.
//! - Pages are overwritten when they are used; what a medium keeps of them is sealed. A holder of the identity's secret opens it.

mod file;
mod marks;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use veil_job::{Cells, DataError, FIELDS, StockError, StockSink, StockSource, Turn};
use veil_session::{Secret, SessionId};

pub use file::{Between, PAGE};
pub use marks::{Choice, Marks, choose, heard, word};

use crate::key::{StoreKey, hex};
use file::{PageFile, bytes_of, sync_parent};

/// Failed checks against a peer within a day after which nothing is made with it.
const FAILURES: usize = 3;

const DAY: Duration = Duration::from_secs(86400);

/// The stock of a party with one other party.
#[derive(Clone)]
pub struct Stocks {
    folder: PathBuf,
    key: StoreKey,
    between: Between,
}

/// A generation, as it is listed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Listed {
    /// Its name.
    pub generation: String,
    /// What is known of it.
    pub state: ListedState,
}

/// What is known of a generation.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ListedState {
    /// It can be used.
    There {
        /// Between whom.
        between: Between,
        /// Cells that were made, and that are used.
        cells: [u64; 2],
        /// Sessions that have begun.
        sessions: u64,
        /// Seconds since 1970 when it was made.
        created: u64,
        /// Bytes on the disk.
        bytes: u64,
    },
    /// It is burnt: why, and when, in seconds since 1970.
    Burnt {
        /// `check`, `forked` or `asked`.
        why: String,
        /// When.
        at: u64,
    },
    /// It cannot be read.
    Damaged(String),
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

    /// For a run that takes from it.
    pub fn taking(&self) -> Taking {
        Taking {
            stocks: self.clone(),
            state: Mutex::default(),
            begun: OnceLock::new(),
        }
    }

    /// For a run that makes so many cells, if those of this peer take `most` bytes at most.
    pub fn making(&self, cells: u64, most: Option<u64>) -> NewStock {
        NewStock {
            stocks: self.clone(),
            cells,
            most,
            made: OnceLock::new(),
            pages: Mutex::default(),
        }
    }

    /// Cells that are left in each generation of this peer.
    ///
    /// # Errors
    /// [`StockError`] if the folder or a file cannot be read, or is damaged.
    pub fn left(&self) -> Result<Vec<u64>, StockError> {
        let held = self.held()?;
        Ok(held.iter().map(|held| held.marks.left()).collect())
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
        let path = self.folder.join(".lock");
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

/// What a run takes from the stock of its party.
pub struct Taking {
    stocks: Stocks,
    state: Mutex<State>,
    begun: OnceLock<Begun>,
}

/// Before cells are marked.
#[derive(Default)]
struct State {
    /// Held from the word on until the run has begun.
    lock: Option<File>,
    held: Vec<Held>,
    /// The generation that the run takes from, and its cells.
    chosen: Option<(usize, u64)>,
}

/// The cells of a run.
struct Begun {
    held: Held,
    cells: Range<u64>,
    /// Those that were given, by their first: each is given once.
    given: Mutex<BTreeMap<u64, u64>>,
}

impl Begun {
    /// Whether none of these was given before; they are from now on.
    fn is_first(&self, cells: &Range<u64>) -> bool {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let before = given.range(..cells.end).next_back();
        if cells.is_empty() || before.is_some_and(|(_, end)| *end > cells.start) {
            return cells.is_empty();
        }
        let before = before.filter(|(_, end)| **end == cells.start);
        let first = before.map_or(cells.start, |(first, _)| *first);
        given.insert(first, cells.end);
        true
    }
}

impl Taking {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StockSource for Taking {
    fn word(&self) -> Result<Vec<u8>, StockError> {
        let mut state = self.state();
        state.lock = Some(self.stocks.lock()?);
        state.held = self.stocks.held()?;
        let marks: Vec<Marks> = state.held.iter().map(|held| held.marks).collect();
        Ok(word(&marks))
    }

    fn hear(&self, word: &[u8], need: u64) -> Result<Turn, StockError> {
        let mut state = self.state();
        let theirs = heard(word).ok_or(StockError::Word)?;
        let mine: Vec<Marks> = state.held.iter().map(|held| held.marks).collect();
        match choose(&mine, &theirs, need) {
            Choice::Of(own, turn) => {
                state.chosen = Some((own, need));
                let held = &mut state.held[own];
                if turn == Turn::CaughtUp {
                    let mut newer = theirs.iter();
                    let newer = newer.find(|of| of.generation == held.marks.generation);
                    held.marks = *newer.expect("a generation in common");
                    held.file
                        .mark(&held.path.with_extension("marks"), &held.marks)?;
                }
                Ok(turn)
            }
            Choice::Forked(own, other) => {
                for held in &state.held {
                    let generation = held.marks.generation;
                    let mut same = theirs.iter().filter(|of| of.generation == generation);
                    if same.any(|of| held.marks.beside(of).is_none()) {
                        held.burn("forked");
                    }
                }
                Err(StockError::Forked {
                    generation: short(&mine[own].generation),
                    own: mine[own].sessions,
                    theirs: theirs[other].sessions,
                })
            }
            Choice::TooFew(left) => Err(StockError::TooFew { need, left }),
            Choice::NoneInCommon => Err(StockError::NoneInCommon {
                own: mine.len(),
                theirs: theirs.len(),
            }),
        }
    }

    fn begin(&self, session: &SessionId) -> Result<Secret, StockError> {
        let mut state = self.state();
        let Some((own, need)) = state.chosen.take() else {
            return Err(StockError::Word);
        };
        let mut held = state.held.swap_remove(own);
        let offset = held.file.offset()?;
        let first = held.marks.used;
        held.marks = held.marks.advanced(need, &session.0);
        let path = held.path.with_extension("marks");
        held.file.mark(&path, &held.marks)?;
        let cells = first..first + need;
        let given = Mutex::default();
        let begun = self.begun.set(Begun { held, cells, given });
        state.lock = None;
        state.held.clear();
        begun.map_err(|_| DataError::own("a run takes its stock once"))?;
        Ok(offset)
    }

    fn take(
        &self,
        first: u64,
        cells: u64,
        give: &mut dyn FnMut(u64, &Cells<'_>),
    ) -> Result<(), StockError> {
        let of_run = |begun: &Begun| {
            let from = begun.cells.start.checked_add(first)?;
            let to = from.checked_add(cells)?;
            let cells = from..to;
            (to <= begun.cells.end && begun.is_first(&cells)).then_some(cells)
        };
        let asked = self
            .begun
            .get()
            .and_then(|begun| Some((begun, of_run(begun)?)));
        let Some((begun, Range { start, end })) = asked else {
            let what = "the run takes stock that it has not marked, or takes it twice";
            return Err(DataError::own(what).into());
        };
        let mut at = start;
        while at < end {
            let page = begun.held.file.page(at / PAGE)?;
            let (from, until) = (at % PAGE, end.min((at / PAGE + 1) * PAGE));
            let (from, length) = (from as usize * 16, (until - at) as usize * 16);
            let field = |k: usize| {
                let field = &page[k * PAGE as usize * 16..][..PAGE as usize * 16];
                &field[from..from + length]
            };
            let fields: Cells<'_> = std::array::from_fn(field);
            give(at - start, &fields);
            at = until;
        }
        Ok(())
    }

    fn burn(&self) {
        if let Some(begun) = self.begun.get() {
            begun.held.burn("check");
        }
    }
}

impl Drop for Taking {
    /// The cells of the run are used, whether it has come to them or not.
    fn drop(&mut self) {
        if let Some(Begun { held, cells, .. }) = self.begun.get() {
            // All before the first one are used.
            let pages = cells.start / PAGE..cells.end / PAGE;
            if held.path.exists() {
                held.file.erase(pages);
            }
        }
    }
}

/// A generation that a run makes.
pub struct NewStock {
    stocks: Stocks,
    cells: u64,
    most: Option<u64>,
    made: OnceLock<(PathBuf, PageFile)>,
    /// Pages that were put.
    pages: Mutex<Vec<bool>>,
}

impl NewStock {
    fn pages(&self) -> MutexGuard<'_, Vec<bool>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> Result<&(PathBuf, PageFile), StockError> {
        let made = self.made.get();
        Ok(made.ok_or_else(|| DataError::own("stock is put before its making has begun"))?)
    }
}

impl StockSink for NewStock {
    fn begin(&self, session: &SessionId, offset: &Secret) -> Result<(), StockError> {
        let failures = self.stocks.failures()?;
        if failures >= FAILURES {
            return Err(StockError::Failures { failures });
        }
        let held = self.stocks.held()?;
        let there: u64 = held.iter().map(|held| bytes_of(held.file.cells)).sum();
        let bytes = bytes_of(self.cells);
        if let Some(most) = self.most.filter(|most| there.saturating_add(bytes) > *most) {
            let cells = self.cells;
            return Err(StockError::Budget { cells, bytes, most });
        }
        if held.len() >= marks::NAMED {
            let what = "there are 8 generations with this party that are not used up: use them first, or remove some with `veil stock`";
            return Err(DataError::own(what).into());
        }
        let mut hash = Sha256::new();
        hash.update(b"veilworks stock generation");
        hash.update(session.0);
        let generation: [u8; 32] = hash.finalize().into();
        let path = self.stocks.folder.join(short(&generation));
        let path = path.with_extension("making");
        for left in with_extension(&self.stocks.folder, "making")? {
            // What a run has left that was ended; a run that goes on holds its file.
            let abandoned = File::open(&left)
                .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
            if abandoned {
                let _ = fs::remove_file(&left);
            }
        }
        let of = (generation, self.cells, seconds());
        let file = PageFile::create((&path, &self.stocks.key), self.stocks.between, of, offset)?;
        self.pages().resize(
            usize::try_from(self.cells.div_ceil(PAGE)).unwrap_or_default(),
            false,
        );
        let made = self.made.set((path, file));
        made.map_err(|_| DataError::own("a run makes its stock once"))?;
        Ok(())
    }

    fn put(&self, first: u64, cells: &Cells<'_>) -> Result<(), StockError> {
        let (_, file) = self.made()?;
        let page = PAGE as usize * 16;
        let count = cells[0].len() / page;
        let whole = first.is_multiple_of(PAGE) && cells.iter().all(|of| of.len() == count * page);
        if !whole {
            return Err(DataError::own("stock is put by whole pages").into());
        }
        for k in 0..count {
            let number = first / PAGE + k as u64;
            let fields: Cells<'_> = std::array::from_fn(|f| &cells[f][k * page..(k + 1) * page]);
            match self.pages().get_mut(number as usize) {
                Some(put) if !*put => *put = true,
                _ => return Err(DataError::own("a page of stock is put once").into()),
            }
            file.write(number, &fields)?;
        }
        Ok(())
    }

    fn fail(&self) {
        if let Some((path, file)) = self.made.get() {
            burn(path, Some(file), "check", &file.between.peer);
        }
    }

    fn finish(&self) -> Result<(), StockError> {
        let (path, file) = self.made()?;
        if !self.pages().iter().all(|put| *put) {
            return Err(DataError::own("pages of the stock are missing").into());
        }
        file.sync()?;
        let marks = Marks::new(file.generation, file.cells);
        file.mark(&path.with_extension("marks"), &marks)?;
        // Its name makes it complete.
        let complete = path.with_extension("stock");
        let renamed = fs::rename(path, &complete).and_then(|()| sync_parent(&complete));
        Ok(renamed.map_err(DataError::io("rename a finished file to", &complete))?)
    }
}

impl Drop for NewStock {
    fn drop(&mut self) {
        if let Some((path, _)) = self.made.get() {
            let _ = fs::remove_file(path);
        }
    }
}

/// All generations in a folder, of all peers.
///
/// # Errors
/// [`StockError::Data`] if the folder cannot be read.
pub fn stocks(folder: &Path, key: &StoreKey) -> Result<Vec<Listed>, StockError> {
    let name = |path: &Path| {
        let name = path.file_stem().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let mut all = Vec::new();
    for path in with_extension(folder, "stock")? {
        let of = PageFile::open(&path, key)
            .and_then(|file| Ok((file.marks(&path.with_extension("marks"))?, file)));
        let state = match of {
            Ok((marks, file)) => ListedState::There {
                between: file.between,
                cells: [marks.made, marks.used],
                sessions: marks.sessions,
                created: file.created,
                bytes: bytes_of(file.cells),
            },
            Err(error) => ListedState::Damaged(error.to_string()),
        };
        let generation = name(&path);
        all.push(Listed { generation, state });
    }
    for path in with_extension(folder, "burnt")? {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut words = text.split_whitespace();
        let why = words.next().unwrap_or("unknown").to_owned();
        let at = words.next().and_then(|word| word.parse().ok());
        let at = at.unwrap_or_default();
        let generation = name(&path);
        let state = ListedState::Burnt { why, at };
        all.push(Listed { generation, state });
    }
    Ok(all)
}

/// Removes a generation of this name, or what says that it is burnt. Whether there was one.
///
/// # Errors
/// [`StockError::Data`] if the folder cannot be read.
pub fn remove_stock(folder: &Path, key: &StoreKey, generation: &str) -> Result<bool, StockError> {
    let named = |extension| -> Result<Option<PathBuf>, StockError> {
        let mut all = with_extension(folder, extension)?.into_iter();
        Ok(all.find(|path| path.file_stem().is_some_and(|stem| stem == generation)))
    };
    let (whole, burnt) = (named("stock")?, named("burnt")?);
    if let Some(path) = &whole {
        let file = PageFile::open(path, key).ok();
        burn(path, file.as_ref(), "asked", &[0; 32]);
    }
    for path in burnt.iter().chain(&whole) {
        let _ = fs::remove_file(path.with_extension("burnt"));
    }
    Ok(whole.is_some() || burnt.is_some())
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

const _: () = assert!(FIELDS == 8, "pages have eight fields");
