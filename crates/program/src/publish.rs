//! Results appear complete or not at all.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use veil_job::DataError;

/// A file that is written under another name in the same folder, and gets its own when everything is complete. Until
/// then dropping it removes it.
#[derive(Debug)]
pub(crate) struct Staged {
    file: NamedTempFile,
    target: PathBuf,
}

impl Staged {
    /// Makes the folder and the file, so that a wrong path is noticed before anything is computed.
    pub(crate) fn create(target: &Path) -> Result<Self, DataError> {
        let folder = target
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(DataError::io("create the folder", folder))?;
        if target.is_dir() {
            let source = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(DataError::Io {
                doing: "write",
                file: target.to_owned(),
                source,
            });
        }
        let file = tempfile::Builder::new()
            .prefix(".veil-")
            .suffix(".partial")
            .tempfile_in(folder)
            .map_err(DataError::io("write a file beside", target))?;
        Ok(Self {
            file,
            target: target.to_owned(),
        })
    }

    pub(crate) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Adds bytes at the end.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        self.file
            .write_all(bytes)
            .map_err(DataError::io("write", &self.target))
    }

    /// An error of this file, under its final name.
    pub(crate) fn failed(&self, source: std::io::Error) -> DataError {
        DataError::Io {
            doing: "write",
            file: self.target.clone(),
            source,
        }
    }
}

/// Brings all files to the disk, then gives each its name.
pub(crate) fn publish(files: Vec<Staged>) -> Result<(), DataError> {
    for staged in &files {
        staged
            .file
            .as_file()
            .sync_all()
            .map_err(|source| staged.failed(source))?;
    }
    for Staged { file, target } in files {
        file.persist(&target).map_err(|error| DataError::Io {
            doing: "rename a finished file to",
            file: target.clone(),
            source: error.error,
        })?;
        // The name is safe once the folder is on the disk too; not every file system can say so.
        if let Some(folder) = target.parent().and_then(|folder| File::open(folder).ok()) {
            let _ = folder.sync_all();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_has_its_name_before_all_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let mut a = Staged::create(&folder.path().join("a")).unwrap();
        let b = Staged::create(&folder.path().join("b")).unwrap();
        a.append(b"hello").unwrap();
        assert!(
            !names(folder.path())
                .iter()
                .any(|name| name == "a" || name == "b")
        );
        publish(vec![a, b]).unwrap();
        assert_eq!(names(folder.path()), ["a", "b"]);
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"hello");
    }

    #[test]
    fn what_is_given_up_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let mut staged = Staged::create(&folder.path().join("a")).unwrap();
        staged.append(b"half").unwrap();
        drop(staged);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn an_impossible_target_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let error = Staged::create(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("cannot write "), "{error}");
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let error = Staged::create(&file.join("below")).unwrap_err().to_string();
        assert!(error.starts_with("cannot create the folder "), "{error}");
    }
}
