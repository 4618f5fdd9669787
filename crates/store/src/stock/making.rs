//! A generation that a run makes: as many of its cells as both parties agree on, or not there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use veil_job::{Cells, DataError, StockError, StockSink};
use veil_session::{Secret, SessionId};

use super::file::{PageFile, bytes_of, sync_parent};
use super::marks::{self, Marks};
use super::{Held, Stocks, burn, seconds, short, with_extension};

/// Failed checks against a peer within a day after which nothing is made with it.
pub(super) const FAILURES: usize = 3;

/// Why cells are not kept.
const NOT_PASSED: &str = "cells of stock are kept that have not passed their checks here";

/// A generation that a run makes.
pub struct NewStock {
    stocks: Stocks,
    cells: u64,
    most: Option<u64>,
    made: OnceLock<(PathBuf, PageFile)>,
    /// Pages that were put.
    pages: Mutex<Vec<bool>>,
    /// Whether there is nothing more to keep: a check has failed, or the generation is there.
    over: AtomicBool,
    /// Whether the file stays where it is: the parties have not agreed on how many cells they keep.
    stays: AtomicBool,
}

impl NewStock {
    pub(super) fn new(stocks: Stocks, cells: u64, most: Option<u64>) -> Self {
        NewStock {
            stocks,
            cells,
            most,
            made: OnceLock::new(),
            pages: Mutex::default(),
            over: AtomicBool::new(false),
            stays: AtomicBool::new(false),
        }
    }

    /// Cells from the first on whose checks have passed at this party, without a gap: those that may be kept of a run that has ended early. None if a check
    /// has failed, or the generation is there.
    pub fn passed(&self) -> u64 {
        if self.over.load(Ordering::Acquire) {
            return 0;
        }
        let pages = self.pages().iter().take_while(|put| **put).count() as u64;
        (pages * self.page()).min(self.cells)
    }

    /// Cells of a page.
    const fn page(&self) -> u64 {
        self.stocks.between.page()
    }

    /// Makes a generation of the first `cells` cells of a run that has ended early: as many as have passed at both parties, which agree on the number.
    ///
    /// # Errors
    /// [`StockError`] if fewer have passed here, the number is not one of whole pages, or the disk does not take what is left.
    pub fn keep(&self, cells: u64) -> Result<(), StockError> {
        if cells == 0 || cells > self.passed() || !cells.is_multiple_of(self.page()) {
            return Err(DataError::own(NOT_PASSED).into());
        }
        self.complete(cells)
    }

    /// Leaves what has passed where it is, for [`Stocks::keep_unfinished`]: the other party could not be asked how much both keep.
    pub fn stay(&self) {
        let passed = self.passed() > 0;
        self.stays.store(passed, Ordering::Release);
    }

    /// Writes the marks of the first `cells` cells, and gives the file its name.
    fn complete(&self, cells: u64) -> Result<(), StockError> {
        let (path, file) = self.made()?;
        complete(path, file, cells)?;
        self.over.store(true, Ordering::Release);
        file.release()
    }

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
        self.stocks.may_make()?;
        let held = self.stocks.held()?;
        let there: u64 = held.iter().map(Held::bytes).sum();
        let there = there.saturating_add(self.stocks.beside()?);
        let (kind, cells) = (self.stocks.between.kind, self.cells);
        let bytes = bytes_of(kind, cells);
        if let Some(most) = self.most.filter(|most| there.saturating_add(bytes) > *most) {
            return Err(StockError::Budget {
                kind,
                cells,
                bytes,
                most,
            });
        }
        self.stocks.sweep()?;
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
            if abandoned && !self.stocks.is_of_another(&left) {
                let _ = fs::remove_file(&left);
            }
        }
        let of = (generation, self.cells, seconds());
        let file = PageFile::create((&path, &self.stocks.key), self.stocks.between, of, offset)?;
        self.pages().resize(
            usize::try_from(self.cells.div_ceil(self.page())).unwrap_or_default(),
            false,
        );
        let made = self.made.set((path, file));
        made.map_err(|_| DataError::own("a run makes its stock once"))?;
        Ok(())
    }

    fn put(&self, first: u64, cells: &Cells<'_>) -> Result<(), StockError> {
        let (_, file) = self.made()?;
        let page = self.page() as usize * 16;
        let count = cells.first().map_or(0, |of| of.len()) / page;
        let whole = cells.iter().all(|of| of.len() == count * page);
        let all = cells.len() == self.stocks.between.kind.fields();
        if !all || !whole || !first.is_multiple_of(self.page()) {
            return Err(DataError::own("stock is put by whole pages").into());
        }
        for k in 0..count {
            let number = first / self.page() + k as u64;
            let of_page = cells.iter().map(|of| &of[k * page..(k + 1) * page]);
            let fields: Vec<&[u8]> = of_page.collect();
            match self.pages().get_mut(number as usize) {
                Some(put) if !*put => *put = true,
                _ => return Err(DataError::own("a page of stock is put once").into()),
            }
            if let Err(error) = file.write(number, &fields) {
                // The page counts as put, and is not there.
                self.over.store(true, Ordering::Release);
                return Err(error);
            }
        }
        Ok(())
    }

    fn fail(&self) {
        self.over.store(true, Ordering::Release);
        if let Some((path, file)) = self.made.get() {
            burn(path, Some(file), "check", &file.between.peer);
        }
    }

    fn finish(&self) -> Result<(), StockError> {
        if !self.pages().iter().all(|put| *put) {
            return Err(DataError::own("pages of the stock are missing").into());
        }
        self.complete(self.cells)
    }
}

impl Stocks {
    /// Whether a making is one with another peer, or of another kind, whose end is no matter of this one.
    fn is_of_another(&self, path: &Path) -> bool {
        let file = PageFile::open_part(path, &self.key);
        file.is_ok_and(|file| {
            let (of, own) = (file.between, self.between);
            of.peer != own.peer || of.kind != own.kind
        })
    }

    /// Makings with this peer that are over without an agreement, as of a process that was killed: the name of each, and how many of its cells have passed
    /// here, from the first on.
    ///
    /// # Errors
    /// [`StockError::Data`] if the folder cannot be read.
    pub fn unfinished(&self) -> Result<Vec<(String, u64)>, StockError> {
        let paths = with_extension(&self.folder, "making")?.into_iter();
        let left = paths.filter_map(|path| self.unfinished_at(&path));
        Ok(left
            .map(|(file, passed)| (short(&file.generation), passed))
            .collect())
    }

    /// A making that no run holds, and cells that have passed; nothing if it is none with this peer, or has none.
    fn unfinished_at(&self, path: &Path) -> Option<(PageFile, u64)> {
        let file = PageFile::open_part(path, &self.key).ok()?;
        if file.between != self.between || !file.is_alone() {
            return None;
        }
        // A process that was killed may have written a part of a page, and a machine that has lost power no page at all.
        let of_page = self.between.page();
        let pages = (0..file.cells.div_ceil(of_page)).take_while(|page| file.page(*page).is_ok());
        let passed = (pages.count() as u64 * of_page).min(file.cells);
        (passed > 0).then_some((file, passed))
    }

    /// Makes a generation of the first `cells` cells of a making that is over without an agreement: as many as have passed at both parties, which agree on
    /// the number.
    ///
    /// # Errors
    /// [`StockError`] if fewer have passed here, the number is not one of whole pages, or the disk does not take what is left.
    pub fn keep_unfinished(&self, name: &str, cells: u64) -> Result<(), StockError> {
        let paths = with_extension(&self.folder, "making")?;
        let path = paths
            .iter()
            .find(|path| path.file_stem() == Some(name.as_ref()));
        let found = path.and_then(|path| Some((path, self.unfinished_at(path)?)));
        match found {
            Some((path, (file, passed)))
                if (1..=passed).contains(&cells) && cells.is_multiple_of(self.between.page()) =>
            {
                complete(path, &file, cells)
            }
            _ => Err(DataError::own(NOT_PASSED).into()),
        }
    }
}

/// Writes the marks of the first `cells` cells of a making, and gives its file its name.
fn complete(path: &Path, file: &PageFile, cells: u64) -> Result<(), StockError> {
    file.sync()?;
    let marks = Marks::new(file.generation, cells);
    file.mark(&path.with_extension("marks"), &marks)?;
    // Its name makes it complete.
    let complete = path.with_extension("stock");
    let renamed = fs::rename(path, &complete).and_then(|()| sync_parent(&complete));
    Ok(renamed.map_err(DataError::io("rename a finished file to", &complete))?)
}

impl Drop for NewStock {
    fn drop(&mut self) {
        if self.stays.load(Ordering::Acquire) {
            return;
        }
        if let Some((path, _)) = self.made.get() {
            let _ = fs::remove_file(path);
        }
    }
}
