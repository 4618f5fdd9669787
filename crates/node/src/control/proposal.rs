//! A job that is proposed to a party: the job file, and the circuit or models that go with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use veil_program::Sent;

use crate::file::FileError;

/// Longest file that goes with a proposal, in bytes: a circuit of some hundred thousand gates, a model of as many splits.
const LONGEST_FILE: usize = 12 << 20;

/// A proposed job: all that a party needs to plan it. Data never travel this way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The text of the job file.
    pub job: String,
    /// Lanes: under the plan hash.
    pub lanes: u16,
    /// Whether products come from the stock of the two parties: under the plan hash, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stocked: bool,
    /// Files that the job names, by their paths in it: its circuit, its models.
    pub files: BTreeMap<String, String>,
}

/// A proposal cannot be made or taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProposalError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Not a file in the folder of the job file.
    #[error(
        "the job names the file `{0}`: only a file beside the job file can be proposed, so move it there"
    )]
    Path(String),
    /// Too long to send.
    #[error(
        "`{path}` has {bytes} bytes, and the limit of a proposal is {limit}: give the file to every party, and let each run `veil approve` itself"
    )]
    TooLong {
        /// Which file.
        path: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
}

impl Proposal {
    /// Reads a job file, and what it needs.
    ///
    /// # Errors
    /// [`ProposalError::File`] if the job file or its circuit cannot be read, [`ProposalError::Path`] if the circuit is not in the folder
    /// of the job file, [`ProposalError::TooLong`] if one of them is too long to send.
    pub fn read(job: &Path, lanes: u16) -> Result<Self, ProposalError> {
        let text = read(job)?;
        let mut files = BTreeMap::new();
        // A job that is no TOML is refused where it is planned, with the place.
        for path in veil_program::Job::named_files(&text) {
            let folder = job.parent().unwrap_or(Path::new(""));
            let file = read(&folder.join(beside(&path)?))?;
            files.insert(path, file);
        }
        Ok(Proposal {
            job: text,
            lanes,
            stocked: false,
            files,
        })
    }

    /// The files that came with the job, if each can be filed beside it.
    pub(crate) fn sent(&self) -> Result<Sent, ProposalError> {
        let file = |(name, text): (&String, &String)| {
            let name = beside(name)?.to_owned();
            Ok((name, text.clone().into_bytes()))
        };
        self.files.iter().map(file).collect()
    }
}

fn read(path: &Path) -> Result<String, ProposalError> {
    let text = fs::read_to_string(path).map_err(FileError::io("read", path))?;
    if text.len() > LONGEST_FILE {
        return Err(ProposalError::TooLong {
            path: path.display().to_string(),
            bytes: text.len(),
            limit: LONGEST_FILE,
        });
    }
    Ok(text)
}

/// The same path, if it is the plain name of a file that is no other file of a filed job.
fn beside(path: &str) -> Result<&str, ProposalError> {
    let mut components = Path::new(path).components();
    let plain = matches!((components.next(), components.next()), (Some(Component::Normal(name)), None) if name == path);
    let reserved = [
        "job.toml",
        "entry.toml",
        "explained.txt",
        "results",
        "kept.json",
    ];
    if plain && !path.contains('\0') && !path.starts_with('.') && !reserved.contains(&path) {
        Ok(path)
    } else {
        Err(ProposalError::Path(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_brings_the_circuit_and_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("there")).unwrap();
        fs::write(at("there/adder.txt"), "1 2").unwrap();
        let text = "name = \"x\"\n[circuit]\nfile = \"adder.txt\"\n";
        fs::write(at("there/x.toml"), text).unwrap();
        let read = Proposal::read(&at("there/x.toml"), 3).unwrap();
        let files = BTreeMap::from([("adder.txt".to_owned(), "1 2".to_owned())]);
        assert_eq!(read.files, files);
        let sent = Sent::from([("adder.txt".to_owned(), b"1 2".to_vec())]);
        assert_eq!(read.sent().unwrap(), sent);
        for path in ["../evil", "/etc/evil", "a/../../evil", "", "nul\0", ".."] {
            let mut bad = read.clone();
            bad.files = BTreeMap::from([(path.to_owned(), "evil".to_owned())]);
            let error = bad.sent().unwrap_err();
            assert!(matches!(error, ProposalError::Path(_)), "{path}: {error}");
        }
        let models = "[model.a]\nfile = \"a.json\"\n[model.b]\nfile = \"a.json\"\n";
        fs::write(at("there/z.toml"), models).unwrap();
        let error = Proposal::read(&at("there/z.toml"), 3).unwrap_err();
        assert!(error.to_string().contains("a.json"), "{error}");
        fs::write(at("there/a.json"), "{}").unwrap();
        let read = Proposal::read(&at("there/z.toml"), 3).unwrap();
        let files = BTreeMap::from([("a.json".to_owned(), "{}".to_owned())]);
        assert_eq!(read.files, files);
        fs::write(at("there/y.toml"), text.replace("adder", "../there/adder")).unwrap();
        let error = Proposal::read(&at("there/y.toml"), 3)
            .unwrap_err()
            .to_string();
        assert!(error.contains("`../there/adder.txt`"), "{error}");
    }
}
