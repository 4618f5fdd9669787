//! Which files belong to the project?

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a check did not pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    /// A file that the check needs could not be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Git could not list the files.
    #[error("git ls-files failed; run this inside a checkout with git installed: {reason}")]
    Git {
        /// What git or the system said.
        reason: String,
    },
    /// Cargo could not describe the workspace.
    #[error("cargo metadata failed: {0}")]
    Metadata(#[from] cargo_metadata::Error),
    /// The list of allowed dependencies is wrong in itself.
    #[error("ARCHITECTURE.md: {0}")]
    Rule(#[from] crate::layers::RuleError),
    /// A description makes nothing.
    #[error(transparent)]
    Generate(#[from] crate::generate::GenerateError),
    /// Hot loops could not be counted.
    #[error(transparent)]
    Counts(#[from] crate::counts::CountsError),
    /// Polynomials could not be made, or are others than are there.
    #[error(transparent)]
    Curves(#[from] crate::curves::CurveError),
    /// The check found something.
    #[error("{}{advice}", findings.iter().fold(String::new(), |all, one| all + one + "\n"))]
    Findings {
        /// One line each.
        findings: Vec<String>,
        /// What to do about them.
        advice: &'static str,
    },
}

impl Failure {
    /// Nothing if there are no findings.
    pub(crate) fn unless_empty<T: fmt::Display>(
        findings: &[T],
        advice: &'static str,
    ) -> Result<(), Self> {
        if findings.is_empty() {
            return Ok(());
        }
        Err(Failure::Findings {
            findings: findings.iter().map(ToString::to_string).collect(),
            advice,
        })
    }
}

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// The text of a file of the project.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|source| Failure::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Files that git tracks, and new ones that it does not ignore, relative to the root. Deleted ones are left out.
pub(crate) fn files() -> Result<Vec<PathBuf>, Failure> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ])
        .current_dir(root())
        .output()
        .map_err(|error| Failure::Git {
            reason: error.to_string(),
        })?;
    if !output.status.success() {
        return Err(Failure::Git {
            reason: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names
        .split_terminator('\0')
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect())
}
