//! Datasets in their folder: a folder each, with the Arrow file and, once it is complete, the manifest.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::describe::{FORMAT, Head, check_name};
use crate::error::{Damage, StoreError};
use crate::frame::read_header;

/// The Arrow file.
pub(crate) const SHARES: &str = "shares.arrow";

/// The manifest.
pub(crate) const MANIFEST: &str = "manifest";

/// The manifest while it is written.
pub(crate) const MANIFEST_PART: &str = "manifest.part";

/// Locked while datasets are made or removed.
const LOCK: &str = ".lock";

/// Where one dataset is.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    /// The folder of all datasets.
    pub(crate) root: PathBuf,
    /// The name of this one.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
}

impl Home {
    pub(crate) fn new(root: &Path, name: &str) -> Result<Self, StoreError> {
        check_name(name).map_err(|why| StoreError::Name {
            name: name.chars().take(80).collect(),
            why,
        })?;
        Ok(Home {
            root: root.to_owned(),
            name: name.to_owned(),
            folder: root.join(file_name(name)),
        })
    }

    /// One of the folder's own files.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn incomplete(&self) -> StoreError {
        StoreError::Incomplete {
            name: self.name.clone(),
            folder: self.root.clone(),
        }
    }

    /// Whether its manifest is there.
    pub(crate) fn is_complete(&self) -> Result<bool, StoreError> {
        let manifest = self.file(MANIFEST);
        manifest
            .try_exists()
            .map_err(StoreError::io("look for", &manifest))
    }

    /// Whether some process writes it.
    pub(crate) fn is_busy(&self) -> bool {
        let file = File::open(self.file(SHARES));
        file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err())
    }

    /// Removes it: first what makes it complete, so that what an interruption leaves is nothing half-valid.
    pub(crate) fn remove(&self) -> Result<(), StoreError> {
        let manifest = self.file(MANIFEST);
        match fs::remove_file(&manifest) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::io("remove", &manifest)(error));
            }
            _ => sync_folder(&self.folder)?,
        }
        fs::remove_dir_all(&self.folder).map_err(StoreError::io("remove", &self.folder))
    }

    /// Opens the Arrow file, and reads its header: the file, its length, the header's bytes, what they say.
    pub(crate) fn open(&self) -> Result<(File, u64, Vec<u8>, Head), StoreError> {
        let path = self.file(SHARES);
        let damaged = |what| StoreError::damaged(&path, what);
        let mut file = File::open(&path).map_err(StoreError::io("open", &path))?;
        let length = file
            .metadata()
            .map_err(StoreError::io("read", &path))?
            .len();
        let header = read_header(&mut file, length).map_err(StoreError::io("read", &path))?;
        let (header, metadata) = header
            .ok_or_else(|| damaged(Damage::Header("it is not that of an Arrow file of shares")))?;
        match metadata.get("veil.format") {
            Some(format) if format == FORMAT => {}
            Some(format) => {
                return Err(StoreError::Format {
                    path,
                    found: format.chars().take(20).collect(),
                    known: FORMAT,
                });
            }
            None => return Err(damaged(Damage::Header("veil.format"))),
        }
        let head = Head::from_metadata(&metadata).map_err(damaged)?;
        if head.description.name != self.name {
            return Err(damaged(Damage::Header(
                "the name is another than the folder's",
            )));
        }
        Ok((file, length, header, head))
    }
}

/// Held while datasets are made or removed.
pub(crate) struct Guard {
    _file: File,
}

impl Guard {
    /// Waits for other processes that make or remove datasets; makes the folder if it is not there.
    pub(crate) fn take(root: &Path) -> Result<Self, StoreError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(root)
            .map_err(StoreError::io("create the folder", root))?;
        let path = root.join(LOCK);
        let file = new_file(OpenOptions::new().create(true), &path)?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| StoreError::io("lock", &path)(error.into()))?;
        Ok(Guard { _file: file })
    }
}

/// Opens a file that only its owner can read, for reading and writing.
pub(crate) fn new_file(how: &mut OpenOptions, path: &Path) -> Result<File, StoreError> {
    how.read(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(StoreError::io("create", path))
}

/// Brings the names in a folder to the disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder)
        .and_then(|file| file.sync_all())
        .map_err(StoreError::io("write to the disk the names in", folder))
}

/// Reads a whole file of at most `longest` bytes; nothing if it is longer.
pub(crate) fn read_all(path: &Path, longest: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let error = |error| StoreError::io("read", path)(error);
    let file = File::open(path).map_err(error)?;
    if file.metadata().map_err(error)?.len() > longest {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(longest).read_to_end(&mut bytes).map_err(error)?;
    Ok(Some(bytes))
}

/// Names of all datasets in a folder, those included that are not complete; sorted.
pub(crate) fn names(root: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("read", root)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io("read", root))?;
        let name = entry.file_name().to_str().and_then(name_of);
        names.extend(name.filter(|_| entry.path().is_dir()));
    }
    names.sort();
    Ok(names)
}

/// A dataset's name as the name of its folder: letters, digits, `-`, `_` and spaces as they are, other bytes as `%` and two digits.
fn file_name(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b' ' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02x}"),
    };
    name.bytes().map(byte).collect()
}

/// The inverse of [`file_name`]; nothing for what it never makes.
fn name_of(file: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = file.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            (digit(rest.next())? * 16 + digit(rest.next())?) as u8
        } else {
            byte
        });
    }
    let name = String::from_utf8(bytes).ok()?;
    (check_name(&name).is_ok() && file_name(&name) == file).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_stay_in_their_folder() {
        for name in [
            "pay 2025",
            "../../etc",
            ".",
            "..",
            ".lock",
            "a/b",
            "a%b",
            "Größe",
            "%2e",
        ] {
            let file = file_name(name);
            assert!(!file.contains(['/', '.']), "{file}");
            assert_eq!(name_of(&file).as_deref(), Some(name));
        }
        for file in [".lock", "", "a.b", "%", "%2", "%zz", "%41", "%2E", "%ff"] {
            assert_eq!(name_of(file), None, "{file}");
        }
        let error = Home::new(Path::new("shares"), "").unwrap_err().to_string();
        assert_eq!(error, "`` cannot name a dataset: it is empty");
        assert!(Home::new(Path::new("shares"), "a\nb").is_err());
        assert!(Home::new(Path::new("shares"), &"x".repeat(81)).is_err());
    }
}
