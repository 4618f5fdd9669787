//! Files of a home: read with limits, written whole.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// No file that people write by hand is longer; a members file of this size has several thousand members.
const LONGEST: u64 = 1 << 20;

/// A file of a home cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refuses.
    #[error("cannot {doing} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// The operation that was refused.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others may change it.
    #[error("{}: others may {verb} it (mode {:o}); run `chmod {want:o} {}`{}", path.display(), mode, path.display(), if *verb == "change" { ", after checking what it says" } else { "" })]
    Permissions {
        /// The file or folder.
        path: PathBuf,
        /// The access that others have.
        verb: &'static str,
        /// Its mode.
        mode: u32,
        /// The mode it should have.
        want: u32,
    },
    /// The file belongs to another user.
    #[error("{} belongs to user {owner}, and this is user {me}: run as that user, or `chown -R {me}` the home", path.display())]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who is asking.
        me: u32,
    },
    /// Longer than any such file.
    #[error("{}: has {bytes} bytes, and the limit is {limit}; this is no file of a home, or it is damaged", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Not what such a file looks like.
    #[error("{}:{line}:{column}: {what}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The defect.
        what: String,
        /// Bytes of the file, for tools that mark them.
        span: Range<usize>,
    },
    /// Written by another release.
    #[error("{}: version {found} of this file is unknown; this program reads version {known}: use the release that wrote it", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The version that this release knows.
        known: i64,
    },
}

impl FileError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| FileError::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    /// A mistake at `span` of `text`.
    pub(crate) fn at(path: &Path, text: &str, span: Range<usize>, what: impl Into<String>) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        FileError::Syntax {
            path: path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what: what.into(),
            span,
        }
    }

    /// Whether the file is simply not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, FileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; check who owns file and folder",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and try again, nothing was changed"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; the home must be on a file system that can be written"
        }
        _ => "",
    }
}

/// Reads a text file of a home. Refuses one that others may change, or that is another user's.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    let file = File::open(path).map_err(FileError::io("read", path))?;
    let meta = file.metadata().map_err(FileError::io("read", path))?;
    check_owner(path, &meta)?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(FileError::Permissions {
            path: path.to_owned(),
            verb: "change",
            mode,
            want: 0o600,
        });
    }
    if meta.len() > LONGEST {
        return Err(FileError::TooLong {
            path: path.to_owned(),
            bytes: meta.len(),
            limit: LONGEST,
        });
    }
    let mut text = String::new();
    file.take(LONGEST)
        .read_to_string(&mut text)
        .map_err(FileError::io("read", path))?;
    Ok(text)
}

/// Checks that a folder is this user's alone.
pub(crate) fn check_private(path: &Path) -> Result<(), FileError> {
    let meta = fs::metadata(path).map_err(FileError::io("open", path))?;
    check_owner(path, &meta)?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(FileError::Permissions {
            path: path.to_owned(),
            verb: "enter",
            mode,
            want: 0o700,
        });
    }
    Ok(())
}

fn check_owner(path: &Path, meta: &fs::Metadata) -> Result<(), FileError> {
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() == me {
        return Ok(());
    }
    Err(FileError::Owner {
        path: path.to_owned(),
        owner: meta.uid(),
        me,
    })
}

/// Parses the TOML text of a file. `version` is that of the file's format, and its first field.
pub(crate) fn parse<T: DeserializeOwned>(
    path: &Path,
    text: &str,
    version: i64,
) -> Result<T, FileError> {
    let syntax = |error: &toml::de::Error| {
        let message = error.message().trim_end();
        FileError::at(
            path,
            text,
            error.span().unwrap_or(0..0),
            misspelt(message).unwrap_or_else(|| message.to_owned()),
        )
    };
    // The version first: a later format may have fields that this one would call mistakes.
    let whole: toml::Table = toml::from_str(text).map_err(|error| syntax(&error))?;
    match whole.get("version") {
        Some(toml::Value::Integer(found)) if *found == version => {}
        Some(toml::Value::Integer(found)) => {
            return Err(FileError::Version {
                path: path.to_owned(),
                found: *found,
                known: version,
            });
        }
        Some(_) => {
            return Err(FileError::at(
                path,
                text,
                0..0,
                "`version` must be a number",
            ));
        }
        None => {
            let what = format!("`version = {version}` is missing; add it as the first line");
            return Err(FileError::at(path, text, 0..0, what));
        }
    }
    toml::from_str(text).map_err(|error| syntax(&error))
}

/// A message about an unknown word, with the known one that is near to it in place of all that there are.
fn misspelt(message: &str) -> Option<String> {
    // `unknown field `colums`, expected one of `columns`, `jobs`` and the like.
    let (what, rest) = message.strip_prefix("unknown ")?.split_once(" `")?;
    let word = rest.split('`').next()?;
    let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
    let near = nearest(word, &known);
    (!near.is_empty()).then(|| format!("unknown {what} `{word}`{near}"))
}

/// `, did you mean …?` if one of the known words is at most two letters away.
pub(crate) fn nearest(word: &str, known: &[&str]) -> String {
    let word: String = word.chars().take(64).collect();
    let found = known
        .iter()
        .map(|known| (distance(&word, known), known))
        .min();
    match found {
        Some((1..=2, known)) => format!(", did you mean `{known}`?"),
        _ => String::new(),
    }
}

/// Letters to insert, remove or change (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut above_left = i;
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let changed = above_left + usize::from(a != *b);
            above_left = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(above_left + 1);
        }
    }
    row[b.len()]
}

/// Writes a file whole: under another name first, brought to the disk, then renamed. Only its owner can read it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let folder = folder_of(path);
    let mut file = tempfile::Builder::new()
        .prefix(".veil-")
        .suffix(".partial")
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)
        .map_err(FileError::io("write a file beside", path))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(FileError::io("write", path))?;
    file.persist(path)
        .map_err(|error| FileError::io("replace", path)(error.error))?;
    sync_folder(folder);
    Ok(())
}

/// Bytes that are free for this user on the disk of a folder.
pub(crate) fn free_bytes(folder: &Path) -> Result<u64, FileError> {
    let disk = rustix::fs::statvfs(folder)
        .map_err(|error| FileError::io("measure the disk of", folder)(error.into()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// A name is safe once its folder is on the disk too; not every file system can say so.
pub(crate) fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Tells one version of a file from the next. Files of a home are replaced, so that each version is another inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stamp(Option<(u64, u64, i64, i64, u64)>);

impl Stamp {
    pub(crate) fn of(path: &Path) -> Self {
        Stamp(fs::metadata(path).ok().map(|meta| {
            let (seconds, nanos) = (meta.mtime(), meta.mtime_nsec());
            (meta.dev(), meta.ino(), seconds, nanos, meta.len())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "read by serde")]
    struct Sample {
        version: i64,
        name: String,
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let path = Path::new("veil.toml");
        let wrong = |text: &str| parse::<Sample>(path, text, 1).unwrap_err().to_string();
        let error = wrong("version = 1\nname = \"a\"\ncolour = 3\n");
        assert!(
            error.starts_with("veil.toml:3:1: unknown field `colour`"),
            "{error}"
        );
        let error = wrong("version = 1\nname = \n");
        assert!(error.starts_with("veil.toml:2:"), "{error}");
        let error = wrong("version = 2\ncolour = 3");
        assert!(
            error.starts_with("veil.toml: version 2 of this file is unknown"),
            "{error}"
        );
        let error = wrong("name = \"a\"");
        assert!(error.contains("`version = 1` is missing"), "{error}");
    }

    #[test]
    fn a_file_that_others_may_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("members.toml");
        write(&path, b"version = 1").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap(), "version = 1");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.contains("others may change it (mode 620); run `chmod 600 "),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        write(&path, &vec![b' '; LONGEST as usize + 1]).unwrap();
        assert!(matches!(read(&path), Err(FileError::TooLong { .. })));
    }

    #[test]
    fn stamps_tell_versions_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let none = Stamp::of(&path);
        write(&path, b"a").unwrap();
        let first = Stamp::of(&path);
        write(&path, b"b").unwrap();
        assert!(none != first && first != Stamp::of(&path));
        assert_eq!(Stamp::of(&path), Stamp::of(&path));
    }
}
