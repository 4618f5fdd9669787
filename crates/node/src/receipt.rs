//! `receipt.json`: in the folder of each result, the job, the participants and the run that made it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use veil_job::{Audience, Guarantee};
use veil_link::tls::Fingerprint;
use veil_protocol::{Plan, Protocol};
use veil_session::Peer;

use crate::file::{self, FileError};
use crate::home::hex;
use crate::names::Role;
use crate::time::Time;

/// The name of a receipt.
pub const NAME: &str = "receipt.json";

/// The receipt of a result: its job, its participants and its run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// The version of this format.
    pub version: u32,
    /// Name of the job.
    pub job: String,
    /// Its plan, all digits: what every participant agreed to.
    pub plan: String,
    /// The run: the same at all its participants and in their logs.
    pub trace: Option<String>,
    /// Whether all participants were in one process or on one machine, which proves nothing about other participants.
    pub local: bool,
    /// For whom the result is.
    pub recipient: String,
    /// The party of the job that was out when the others finished it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
    /// All participants.
    pub participants: Vec<Participant>,
    /// The protocol.
    pub protocol: String,
    /// The guarantee of the run.
    pub guarantee: String,
    /// The same in the words of a job. Receipts of earlier releases have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Guarantee>,
    /// The ring of all values.
    pub ring: String,
    /// Rows that were computed on.
    pub rows: u64,
    /// The values opened to this recipient, one sentence each.
    pub opened: Vec<String>,
    /// The release of this program.
    pub software: String,
    /// When the run began, by this machine's clock.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
    /// The files of the result.
    pub files: Vec<ResultFile>,
}

/// One who took part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Participant {
    /// Its name.
    pub name: String,
    /// As what.
    pub role: Role,
    /// Its key; unknown in a local run, and where a recipient does not meet an owner.
    pub fingerprint: Option<String>,
}

/// A file of a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResultFile {
    /// Its name within the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of it.
    pub sha256: String,
}

/// A result differs from its receipt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// Something cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// No receipt.
    #[error("{}: this is no receipt: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A file of the result was changed.
    #[error("{}: is not the file that the receipt is of: it was changed, or belongs to another run", .0.display())]
    Changed(PathBuf),
}

impl Receipt {
    /// The receipt of a run that `recipient` began at `started`, without files yet. `keys` says whose key is which, as
    /// far as that is known; a run on one machine knows none and is `local`.
    pub fn new(
        plan: &Plan,
        protocol: &dyn Protocol,
        recipient: Peer,
        keys: &dyn Fn(Peer) -> Option<Fingerprint>,
        local: bool,
        started: Time,
    ) -> Self {
        let name = |peer| veil_engine::name_of(plan, peer).to_owned();
        let participant = |peer| Participant {
            name: name(peer),
            role: match peer {
                Peer::Party(_) => Role::Party,
                Peer::Owner(_) => Role::Owner,
                Peer::Recipient(_) => Role::Recipient,
            },
            fingerprint: keys(peer).map(|key| key.to_string()),
        };
        let opened = plan.job.audiences.iter().zip(&plan.job.opened);
        Receipt {
            version: 1,
            job: plan.job.name.clone(),
            plan: hex(&plan.hash.0),
            trace: None,
            local,
            recipient: name(recipient),
            without: None,
            participants: (veil_engine::participants(plan).into_iter())
                .map(participant)
                .collect(),
            protocol: protocol.name().to_owned(),
            guarantee: protocol.guarantee().into_owned(),
            security: Some(plan.job.guarantee()),
            ring: plan.ring.name().to_owned(),
            rows: plan.job.rows(),
            opened: opened
                .filter(|(audience, _): &(&Audience, _)| audience.includes(recipient))
                .map(|(_, sentence)| sentence.clone())
                .collect(),
            software: concat!("veil ", env!("CARGO_PKG_VERSION")).to_owned(),
            started,
            ended: started,
            files: Vec::new(),
        }
    }

    /// The same of a run in which the others finished without a party of the job, if `security` says so.
    #[must_use]
    pub fn finished(self, security: Option<Guarantee>) -> Self {
        match security {
            Some(security) => Receipt {
                without: security.without.clone(),
                security: Some(security),
                ..self
            },
            None => self,
        }
    }

    /// Writes the receipt for `files` of the finished result in `folder`: complete, or not at all. A result without one is of a run that
    /// was cut off at its very end.
    ///
    /// # Errors
    /// [`ReceiptError::File`] if a file of the result cannot be read or the receipt not be written.
    pub fn write(
        mut self,
        folder: &Path,
        files: &[PathBuf],
        trace: Option<String>,
    ) -> Result<Self, ReceiptError> {
        self.trace = trace;
        self.ended = Time::now();
        for name in files {
            let path = folder.join(name);
            let (bytes, sha256) = digest(&path).map_err(FileError::io("read", &path))?;
            self.files.push(ResultFile {
                name: name.display().to_string(),
                bytes,
                sha256,
            });
        }
        let text = serde_json::to_string_pretty(&self).expect("texts and numbers are JSON");
        file::write(&folder.join(NAME), (text + "\n").as_bytes())?;
        Ok(self)
    }

    /// Reads the receipt in `folder`, and compares the files there with it.
    ///
    /// # Errors
    /// [`ReceiptError::File`] if receipt or result cannot be read, [`ReceiptError::Foreign`] if the receipt is none,
    /// [`ReceiptError::Changed`] with the first file that has another length or digest.
    pub fn check(folder: &Path) -> Result<Self, ReceiptError> {
        let path = folder.join(NAME);
        let text = file::read(&path)?;
        let receipt: Receipt =
            serde_json::from_str(&text).map_err(|error| ReceiptError::Foreign {
                path,
                why: error.to_string(),
            })?;
        for file in &receipt.files {
            let path = folder.join(&file.name);
            let found = digest(&path).map_err(FileError::io("read", &path))?;
            if found != (file.bytes, file.sha256.clone()) {
                return Err(ReceiptError::Changed(path));
            }
        }
        Ok(receipt)
    }
}

/// Length and SHA-256 of a file of any length.
fn digest(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut sum, mut bytes) = (Sha256::new(), 0);
    let mut part = vec![0; 1 << 16];
    loop {
        match file.read(&mut part) {
            Ok(0) => return Ok((bytes, hex(&sum.finalize()))),
            Ok(count) => {
                sum.update(&part[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
