//! Lists of datasets, and clearing up.

use std::fs;
use std::path::Path;

use crate::describe::Head;
use crate::error::StoreError;
use crate::folder::{self, Guard, Home};
use crate::key::StoreKey;
use crate::reader::Reader;

/// One dataset of a folder.
#[derive(Debug)]
pub struct Dataset {
    /// Its name.
    pub name: String,
    /// Its header, if that can be read. Authentic only where [`Dataset::state`] is [`State::Complete`].
    pub head: Option<Head>,
    /// Bytes on the disk, all files together.
    pub bytes: u64,
    /// Whether it can be used.
    pub state: State,
}

/// Whether a dataset can be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum State {
    /// A job can load it.
    Complete,
    /// A run writes it.
    Busy,
    /// The run that wrote it was interrupted.
    Incomplete,
    /// It cannot be used; the error says why.
    Broken(StoreError),
}

/// All datasets in the folder `root`, by name. A folder that is not there has none.
///
/// Each is opened with `key`, which checks header, manifest and footer; [`verify`] checks the shares too.
///
/// # Errors
/// [`StoreError::Io`] if the folder cannot be listed. A dataset that cannot be used is no error, but has its [`State`].
pub fn datasets(root: &Path, key: &StoreKey) -> Result<Vec<Dataset>, StoreError> {
    let names = folder::names(root)?.into_iter();
    names.map(|name| dataset(root, &name, key)).collect()
}

/// One dataset in the folder `root`.
///
/// # Errors
/// [`StoreError::Name`] if no dataset can have the name, [`StoreError::NotThere`] if none has. A dataset that cannot be used is
/// no error, but has its [`State`].
pub fn dataset(root: &Path, name: &str, key: &StoreKey) -> Result<Dataset, StoreError> {
    let home = Home::new(root, name)?;
    let (head, state) = match Reader::open_any(root, name, key) {
        Ok(reader) => (Some(reader.head().clone()), State::Complete),
        Err(error @ (StoreError::NotThere { .. } | StoreError::Name { .. })) => return Err(error),
        Err(error) => {
            let head = home.open().ok().map(|(_, _, _, head)| head);
            let state = match error {
                StoreError::Busy { .. } => State::Busy,
                StoreError::Incomplete { .. } => State::Incomplete,
                error => State::Broken(error),
            };
            (head, state)
        }
    };
    Ok(Dataset {
        name: name.to_owned(),
        head,
        bytes: size(&home),
        state,
    })
}

/// Decrypts all of a dataset, and fails at the first damaged chunk.
///
/// # Errors
/// [`StoreError`] as of [`Reader::open`], and [`StoreError::Damaged`] with the first chunk that does not decrypt.
pub fn verify(root: &Path, name: &str, key: &StoreKey) -> Result<(), StoreError> {
    Reader::open_any(root, name, key)?.verify()
}

/// Removes a dataset, complete or not, unless a run writes it.
///
/// Its bytes may stay on the disk until they are overwritten: what protects them there is the key.
///
/// # Errors
/// [`StoreError::Name`] and [`StoreError::NotThere`] if there is no such dataset, [`StoreError::Busy`] if a run writes it,
/// [`StoreError::Io`] if the system refuses.
pub fn remove(root: &Path, name: &str) -> Result<(), StoreError> {
    let home = Home::new(root, name)?;
    if !home.folder.is_dir() {
        return Err(StoreError::NotThere {
            name: name.to_owned(),
            folder: root.to_owned(),
            known: folder::names(root)?,
        });
    }
    let _guard = Guard::take(root)?;
    if home.is_busy() {
        return Err(StoreError::Busy {
            name: name.to_owned(),
        });
    }
    home.remove()
}

/// Removes what interrupted runs left, and returns the names.
///
/// # Errors
/// [`StoreError::Io`] if the folder cannot be listed or locked, or a dataset not removed.
pub fn sweep(root: &Path) -> Result<Vec<String>, StoreError> {
    if !root.is_dir() {
        return Ok(Vec::new());
    }
    let _guard = Guard::take(root)?;
    let mut swept = Vec::new();
    for name in folder::names(root)? {
        let home = Home::new(root, &name)?;
        if !home.is_complete()? && !home.is_busy() {
            home.remove()?;
            swept.push(name);
        }
    }
    Ok(swept)
}

/// Bytes that a dataset's files take.
fn size(home: &Home) -> u64 {
    let entries = fs::read_dir(&home.folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
    sizes.sum()
}
