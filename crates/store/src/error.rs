//! Why shares cannot be kept or loaded.

use std::io;
use std::path::{Path, PathBuf};

use veil_job::{DataError, Slice};
use veil_math::Ring;
use veil_session::PartyId;

use crate::KeyId;

/// Why a dataset cannot be written, read or removed. Such an error stays at the party whose store it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("cannot {doing} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// The operation that was refused.
        doing: &'static str,
        /// File or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Columns of a run did not come back from the disk as they went there.
    #[error(
        "columns that waited in {} are not the ones that this run has written: the disk fails, or something else writes there; run again in another folder",
        folder.display()
    )]
    Spilled {
        /// The folder.
        folder: PathBuf,
    },
    /// No name for a dataset.
    #[error("`{name}` cannot name a dataset: {why}")]
    Name {
        /// The name, shortened.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// There is one of this name.
    #[error(
        "there is a dataset `{name}` in {} already, made on {created} by plan {plan}; \
         give the new one another name, or remove the old one: `veil shares remove`",
        folder.display()
    )]
    Exists {
        /// Its name.
        name: String,
        /// The folder of datasets.
        folder: PathBuf,
        /// When it was made.
        created: String,
        /// The plan that made it.
        plan: String,
    },
    /// Another process writes it.
    #[error("the dataset `{name}` is being written by another run; wait for its end")]
    Busy {
        /// Its name.
        name: String,
    },
    /// There is none of this name.
    #[error(
        "no dataset `{name}` in {}; {}",
        folder.display(),
        list(known)
    )]
    NotThere {
        /// The name.
        name: String,
        /// The folder of datasets.
        folder: PathBuf,
        /// The datasets that there are.
        known: Vec<String>,
    },
    /// It was not written to its end.
    #[error(
        "the dataset `{name}` in {} is incomplete: the run that wrote it was interrupted; \
         run that job again, which replaces it, or remove it: `veil shares sweep`",
        folder.display()
    )]
    Incomplete {
        /// Its name.
        name: String,
        /// The folder of datasets.
        folder: PathBuf,
    },
    /// Encrypted under another key.
    #[error(
        "{} was encrypted under key {written}, and this party's key is {ours}; \
         use the home that made it, or its former identity",
        path.display()
    )]
    OtherKey {
        /// The file.
        path: PathBuf,
        /// The key that it names.
        written: KeyId,
        /// The key at hand.
        ours: KeyId,
    },
    /// The dataset was changed after it was written.
    #[error(
        "{}: {what}; it was damaged or changed after it was written: restore it from a copy, \
         or remove the dataset and run the job that makes it again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The evidence.
        what: Damage,
    },
    /// A format that this version does not know.
    #[error(
        "{} has format {found}, and this version reads format {known}; use the version of veil that wrote it",
        path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: String,
        /// The format of this release.
        known: &'static str,
    },
    /// It does not fit the job that wants it.
    #[error("the dataset `{name}` does not fit this job: {why}")]
    Unfit {
        /// Its name.
        name: String,
        /// The property that does not fit.
        why: Unfit,
    },
    /// No room for it.
    #[error(
        "the dataset `{name}` needs {needs} bytes in {}, and {free} are free there; \
         free some space and run again, nothing was begun",
        folder.display()
    )]
    Full {
        /// Its name.
        name: String,
        /// The folder of datasets.
        folder: PathBuf,
        /// Bytes that it needs.
        needs: u64,
        /// Bytes that this user may still write.
        free: u64,
    },
    /// The caller wrote or asked for what the dataset has not.
    #[error(
        "port {port}, component {component} has no rows {first} to {} of block {block} here, or in another shape; \
         this is a mistake of the program",
        first.saturating_add(*rows)
    )]
    OutOfReach {
        /// Index of the port.
        port: usize,
        /// Component.
        component: u8,
        /// Index of the block.
        block: u32,
        /// First row.
        first: u64,
        /// Rows.
        rows: u64,
    },
    /// A place written a second time: the same nonce would encrypt two texts.
    #[error(
        "port {port}, component {component} of rows from {first} of block {block} came twice; \
         nothing was kept; this is a mistake of the program"
    )]
    Twice {
        /// Index of the port.
        port: usize,
        /// Component.
        component: u8,
        /// Index of the block.
        block: u32,
        /// First row.
        first: u64,
    },
    /// Not everything came.
    #[error("the shares to keep are incomplete: {got} of {want} parts came; nothing was kept")]
    Missing {
        /// Parts that came.
        got: u64,
        /// Parts that should have come.
        want: u64,
    },
    /// A description that no dataset can have.
    #[error("cannot keep these shares: {0}")]
    Shape(&'static str),
    /// The system's source of randomness failed.
    #[error("the system gives no randomness for a new key")]
    Random,
}

/// Evidence that a file is not as it was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The header of the Arrow file.
    #[error("its header cannot be read: {0}")]
    Header(&'static str),
    /// The manifest.
    #[error("the manifest cannot be read: {0}")]
    Manifest(&'static str),
    /// The manifest's MAC does not match.
    #[error("the manifest does not carry the authentication code of this party's key")]
    Mac,
    /// Another length.
    #[error("it has {found} bytes where the manifest says {expected}")]
    Length {
        /// Bytes found.
        found: u64,
        /// Bytes that the manifest says.
        expected: u64,
    },
    /// Header or footer is another than the manifest says.
    #[error("its {0} is not the one that the manifest is for")]
    Part(&'static str),
    /// A chunk.
    #[error("rows {first} to {} of block {block}, port `{port}`, component {component} fail their check", first + u64::from(*rows))]
    Chunk {
        /// Index of the block.
        block: u32,
        /// First row.
        first: u64,
        /// Rows.
        rows: u32,
        /// Name of the port.
        port: String,
        /// Component.
        component: u8,
    },
}

/// Why a dataset cannot serve a job.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Shares of another party.
    #[error(
        "it holds the shares of {theirs} (`{name}`), and this run is {ours}; each party loads its own"
    )]
    Party {
        /// Whose shares it holds.
        theirs: PartyId,
        /// Name of that party.
        name: String,
        /// Who wants them.
        ours: PartyId,
    },
    /// Shared among others.
    #[error(
        "it is shared among {theirs}, and the job names {ours}; name the same parties in the same order, or give it to others: `veil shares reshare`"
    )]
    Parties {
        /// Who has the shares.
        theirs: String,
        /// Whom the job names.
        ours: String,
    },
    /// Made by another plan.
    #[error(
        "plan {theirs} made it, and this job continues plan {ours}; run the job from its start"
    )]
    Plan {
        /// The plan that made it.
        theirs: String,
        /// The plan that is wanted.
        ours: String,
    },
    /// Another dataset of the same name.
    #[error(
        "plan {theirs} made it, and the job is about the one that plan {ours} made; put that one back, or have this one shared \
         again: `veil shares reshare`"
    )]
    Dataset {
        /// The plan that made it.
        theirs: String,
        /// The plan of the dataset that is wanted.
        ours: String,
    },
    /// Other columns.
    #[error(
        "{}; declare the columns as the job that kept them did",
        other_schema(theirs, ours)
    )]
    Schema {
        /// Columns that it has.
        theirs: String,
        /// Columns that the job declares.
        ours: String,
    },
    /// Other rows.
    #[error("it has {theirs} rows, and the job declares {ours}; declare {theirs}")]
    Rows {
        /// Rows that it has.
        theirs: u64,
        /// Rows that the job declares.
        ours: u64,
    },
    /// A ring that cannot be had from its own.
    #[error(
        "its shares are over {}, and the job computes over {}; only shares over Z_2^128 can be loaded into another ring, Z_2^64",
        theirs.name(), ours.name()
    )]
    Ring {
        /// The ring of the shares.
        theirs: Ring,
        /// The ring of the job.
        ours: Ring,
    },
}

impl StoreError {
    /// A port has no such rows of a component here, or another shape than the caller believes.
    pub(crate) fn out_of_reach(port: usize, component: u8, slice: Slice) -> Self {
        StoreError::OutOfReach {
            port,
            component,
            block: slice.block,
            first: slice.first,
            rows: slice.rows.into(),
        }
    }

    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn damaged(path: &Path, what: Damage) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what,
        }
    }
}

impl From<StoreError> for DataError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Io {
                doing,
                path,
                source,
            } => DataError::Io {
                doing,
                file: path,
                source,
            },
            StoreError::OutOfReach {
                port,
                block,
                first,
                rows,
                ..
            } => DataError::OutOfReach {
                port,
                block,
                first,
                rows,
            },
            other => DataError::own(other),
        }
    }
}

/// Names for a message.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 12;
    match names {
        [] => "there is none at all".into(),
        _ if names.len() > SHOWN => {
            format!(
                "there are `{}`, … ({})",
                names[..SHOWN].join("`, `"),
                names.len()
            )
        }
        _ => format!("there are `{}`", names.join("`, `")),
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "; free some space and run again, nothing half-written was kept"
        }
        io::ErrorKind::PermissionDenied => "; check the permissions of file and folder",
        _ => "",
    }
}

/// How two descriptions of columns differ: of several lines, in the first line that does.
fn other_schema(theirs: &str, ours: &str) -> String {
    if !theirs.contains('\n') || !ours.contains('\n') {
        return format!("its columns are `{theirs}`, and the job declares `{ours}`");
    }
    let (mut theirs, mut ours) = (theirs.lines(), ours.lines());
    loop {
        let line = match (theirs.next(), ours.next()) {
            (Some(theirs), Some(ours)) if theirs == ours => continue,
            (Some(theirs), Some(ours)) => {
                return format!("it has `{theirs}`, where the job declares `{ours}`");
            }
            (Some(theirs), None) => format!("it has `{theirs}`, which the job does not declare"),
            (None, Some(ours)) => format!("the job declares `{ours}`, which it does not have"),
            (None, None) => "its columns are others".into(),
        };
        return line;
    }
}
