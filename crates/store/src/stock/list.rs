//! Lists of stock, for those who own it.

use std::fs;
use std::path::{Path, PathBuf};

use veil_job::StockError;

use super::file::{Between, PageFile, bytes_of};
use super::{burn, with_extension};
use crate::key::StoreKey;

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
    /// Its making goes on, or is over without an agreement on how much of it is kept: the next refill of both parties settles that.
    Unfinished {
        /// Between whom.
        between: Between,
        /// Cells that were to be made.
        cells: u64,
        /// Bytes on the disk.
        bytes: u64,
        /// Whether a run makes it now.
        goes_on: bool,
    },
    /// It is burnt: why, and when, in seconds since 1970.
    Burnt {
        /// `check`, `forked`, `orphan`, `replaced` or `asked`.
        why: String,
        /// When.
        at: u64,
    },
    /// It cannot be read.
    Damaged(String),
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
                bytes: bytes_of(file.between.kind, marks.made),
            },
            Err(error) => ListedState::Damaged(error.to_string()),
        };
        let generation = name(&path);
        all.push(Listed { generation, state });
    }
    for path in with_extension(folder, "making")? {
        let generation = name(&path);
        let state = unfinished(&path, key);
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

/// What is known of a making.
fn unfinished(path: &Path, key: &StoreKey) -> ListedState {
    match PageFile::open_part(path, key) {
        Ok(file) => ListedState::Unfinished {
            between: file.between,
            cells: file.cells,
            bytes: fs::metadata(path).map_or(0, |of| of.len()),
            goes_on: !file.is_alone(),
        },
        Err(error) => ListedState::Damaged(error.to_string()),
    }
}

/// Removes what is left of makings that no run holds, and that are not wanted any more. How many.
///
/// # Errors
/// [`StockError::Data`] if the folder cannot be read.
pub fn discard_unfinished(
    folder: &Path,
    key: &StoreKey,
    wanted: &dyn Fn(&Between) -> bool,
) -> Result<usize, StockError> {
    let mut removed = 0;
    for path in with_extension(folder, "making")? {
        let file = PageFile::open_part(&path, key).ok();
        if let Some(file) = file.filter(|file| !wanted(&file.between) && file.is_alone()) {
            discard(&path, &file);
            removed += 1;
        }
    }
    Ok(removed)
}

/// Nothing of a making is kept.
fn discard(path: &Path, file: &PageFile) {
    let _ = file.erase_header();
    let _ = fs::remove_file(path);
}

/// Removes a generation of this name, what is left of its making, or what says that it is burnt. Whether there was one.
///
/// # Errors
/// [`StockError::Data`] if the folder cannot be read.
pub fn remove_stock(folder: &Path, key: &StoreKey, generation: &str) -> Result<bool, StockError> {
    let named = |extension| -> Result<Option<PathBuf>, StockError> {
        let mut all = with_extension(folder, extension)?.into_iter();
        Ok(all.find(|path| path.file_stem().is_some_and(|stem| stem == generation)))
    };
    let (whole, burnt) = (named("stock")?, named("burnt")?);
    let part = named("making")?;
    if let Some(path) = &part {
        let file = PageFile::open_part(path, key).ok();
        match file {
            Some(file) if !file.is_alone() => return Err(StockError::Busy),
            Some(file) => discard(path, &file),
            None => {
                let _ = fs::remove_file(path);
            }
        }
    }
    if let Some(path) = &whole {
        let file = PageFile::open(path, key).ok();
        burn(path, file.as_ref(), "asked", &[0; 32]);
    }
    for path in burnt.iter().chain(&whole) {
        let _ = fs::remove_file(path.with_extension("burnt"));
    }
    Ok(whole.is_some() || burnt.is_some() || part.is_some())
}
