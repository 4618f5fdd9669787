//! What commands print, and where results go.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
pub use veilworks::explain::words::{bytes, columns, count, seconds};
use veilworks::folder_name;

use crate::failure::{Code, Failure};

/// Prints text to standard output. A reader that has seen enough, such as `head`, is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            Code::Other,
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Prints one JSON object.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| {
        Failure::new(
            Code::Other,
            format!("cannot write the result as JSON: {error}"),
        )
    })?;
    print(&(text + "\n"))
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// Folders for results, one per recipient. Unless the run succeeded, those that were made and are empty are removed again.
#[derive(Debug)]
pub(crate) struct Folders {
    made: Vec<PathBuf>,
    keep: bool,
}

impl Folders {
    pub(crate) fn new() -> Self {
        Folders {
            made: Vec::new(),
            keep: false,
        }
    }

    /// The folder `root/name` for a recipient's results; made if `wanted`.
    pub(crate) fn of(&mut self, root: &Path, name: &str, wanted: bool) -> Result<PathBuf, Failure> {
        let folder = root.join(folder_name(name));
        if wanted {
            self.make(&folder)?;
        }
        Ok(folder)
    }

    /// Makes a folder and those that it is in.
    pub(crate) fn make(&mut self, folder: &Path) -> Result<(), Failure> {
        let above = folder
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let missing: Vec<PathBuf> = above.map(Path::to_owned).collect();
        std::fs::create_dir_all(folder).map_err(|error| {
            let message = format!(
                "cannot create the folder {} for results: {error}",
                folder.display()
            );
            Failure::new(Code::Input, message).help("choose another one with `--out`")
        })?;
        self.made.extend(missing.into_iter().rev());
        Ok(())
    }

    /// The run succeeded.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        if !self.keep {
            // One that is not empty stays: it was used before, or by others.
            self.made
                .iter()
                .rev()
                .for_each(|folder| drop(std::fs::remove_dir(folder)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_their_folder() {
        assert_eq!(folder_name("north-mill"), "north-mill");
        assert_eq!(folder_name("../../etc"), "_.._.._etc");
        assert_eq!(folder_name(".."), "_..");
    }

    #[test]
    fn empty_folders_of_a_failed_run_are_gone() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("a/b");
        let mut folders = Folders::new();
        assert!(folders.of(&out, "eve", true).unwrap().is_dir());
        drop(folders);
        assert!(!root.path().join("a").exists());
        let mut folders = Folders::new();
        std::fs::write(folders.of(&out, "eve", true).unwrap().join("x"), "x").unwrap();
        drop(folders);
        assert!(out.join("eve/x").is_file());
    }

    #[test]
    fn units() {
        assert_eq!(
            [count(0, "row"), count(1, "row"), count(2, "row")],
            ["0 rows", "1 row", "2 rows"]
        );
        assert_eq!(
            [bytes(0), bytes(999), bytes(1500), bytes(2_000_000)],
            ["0 B", "999 B", "1.5 kB", "2.0 MB"]
        );
        assert_eq!(
            [seconds(0.0015), seconds(0.5), seconds(90.0), seconds(600.0)],
            ["1.50 ms", "500 ms", "90.0 s", "10 min"]
        );
    }
}
