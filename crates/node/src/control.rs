//! What participants ask each other beside jobs: one request, one reply, as JSON over an authenticated connection.
//!
//! The key that a request comes from is known from TLS; a request says nothing about who sends it. A request of another version,
//! or with a field that is not known, is refused and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use veil_link::tls::{self, ControlError, Identity};

use crate::file::FileError;
use crate::invitation::Join;
use crate::jobs::Status;
use crate::members::Member;
use crate::names::Role;
use crate::roll::Missing;
use crate::rotation::Statement;
use crate::time::Time;

/// Version of the requests and replies.
pub const VERSION: u32 = 1;

/// Longest file that goes with a proposal, in bytes: a circuit of some hundred thousand gates.
const LONGEST_FILE: usize = 12 << 20;

/// What is asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Who are you?
    Hello {},
    /// I was invited: here is the token.
    Join(Join),
    /// I have a new key.
    Rotate {
        /// Signed by both keys.
        statement: Box<Statement>,
    },
    /// Will you take part in this job?
    Propose(Proposal),
    /// How are the jobs in which I have a part?
    Jobs {},
    /// Who of the parties of this job is missing?
    Roll {
        /// All digits of its plan hash.
        plan: String,
        /// What is known where this is asked.
        said: Vec<Missing>,
    },
    /// I go on with this durable job, whose inputs I have kept: how is it there?
    GoOn {
        /// All digits of its plan hash.
        plan: String,
    },
}

/// What is answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// This is who.
    Hello(Hello),
    /// You are a member now, or your new key is taken.
    Welcome {
        /// Name of the participant that says so.
        name: String,
    },
    /// Yes: it waits for its participants now.
    Accepted {
        /// The plan, as the party computed it.
        plan: String,
    },
    /// Somebody has to approve it first.
    Pending {
        /// The plan, as the party computed it.
        plan: String,
    },
    /// No.
    Refused {
        /// Why.
        why: String,
    },
    /// Who is missing.
    Roll {
        /// What is known.
        said: Vec<Missing>,
    },
    /// The jobs.
    Jobs {
        /// Those in which whoever asks has a part.
        jobs: Vec<Status>,
    },
}

/// Who a participant is, and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Its name.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// The version of its program. Not `version` in the bytes: that is the version of the requests.
    #[serde(rename = "release")]
    pub version: String,
    /// Its clock, in seconds since 1970.
    pub time: i64,
    /// The name under which it knows whoever asks.
    pub knows_you_as: Option<String>,
}

/// A job that somebody proposes: all that a party needs to plan it. Data never travel this way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The text of the job file.
    pub job: String,
    /// Lanes: under the plan hash.
    pub lanes: u16,
    /// Files that the job names, by their paths in it: its circuit.
    pub files: BTreeMap<String, String>,
}

/// A proposal cannot be made or taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProposalError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Not a file beside the job file.
    #[error(
        "the job names the circuit file `{0}`: only a file beside the job file can be proposed, so move it there"
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

/// The part of a job file that names other files.
#[derive(Deserialize)]
struct Named {
    circuit: Option<NamedCircuit>,
}

#[derive(Deserialize)]
struct NamedCircuit {
    file: Option<String>,
}

impl Proposal {
    /// Reads a job file, and what it needs.
    pub fn read(job: &Path, lanes: u16) -> Result<Self, ProposalError> {
        let text = read(job)?;
        let mut files = BTreeMap::new();
        // A job that is no TOML is refused where it is planned, with the place.
        let named = toml::from_str::<Named>(&text).ok();
        if let Some(path) = named.and_then(|named| named.circuit?.file) {
            let folder = job.parent().unwrap_or(Path::new(""));
            let circuit = read(&folder.join(beside(&path)?))?;
            files.insert(path, circuit);
        }
        Ok(Proposal {
            job: text,
            lanes,
            files,
        })
    }

    /// Writes it into a folder, from which the job can be loaded: the path of the job file.
    pub(crate) fn unpack(&self, folder: &Path) -> Result<PathBuf, ProposalError> {
        for (name, text) in &self.files {
            let path = folder.join(beside(name)?);
            fs::write(&path, text).map_err(FileError::io("write", &path))?;
        }
        let job = folder.join("job.toml");
        fs::write(&job, &self.job).map_err(FileError::io("write", &job))?;
        Ok(job)
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
        "out.json",
    ];
    if plain && !path.contains('\0') && !path.starts_with('.') && !reserved.contains(&path) {
        Ok(path)
    } else {
        Err(ProposalError::Path(path.to_owned()))
    }
}

/// A request with its version.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

/// Only the version: what every release can read of any other.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// A request that cannot be read, or a reply.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// Of another version.
    #[error(
        "it speaks version {theirs} of the requests, and this program version {VERSION}: run the same release on both sides"
    )]
    Version {
        /// Theirs.
        theirs: u32,
    },
    /// Not one of ours.
    #[error("it makes no sense: {0}")]
    Garbled(String),
}

/// Writes a request or a reply.
pub fn encode<T: Serialize>(content: &T) -> Vec<u8> {
    let versioned = Versioned {
        version: VERSION,
        content,
    };
    serde_json::to_vec(&versioned).expect("strings, numbers and maps with text keys are JSON")
}

/// Reads a request or a reply. Whatever the bytes are, nothing panics.
pub fn decode<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, Unreadable> {
    let garbled = |error: serde_json::Error| Unreadable::Garbled(error.to_string());
    let Version { version } = serde_json::from_slice(bytes).map_err(garbled)?;
    if version != VERSION {
        return Err(Unreadable::Version { theirs: version });
    }
    let read: Versioned<T> = serde_json::from_slice(bytes).map_err(garbled)?;
    Ok(read.content)
}

/// For fuzzing: takes `bytes` for a request and for a reply. Returns whether it was either.
///
/// # Panics
///
/// If what was read is not read again from what is written of it.
#[doc(hidden)]
pub fn fuzz_control(bytes: &[u8]) -> bool {
    fn read<T: Serialize + for<'de> Deserialize<'de> + PartialEq>(bytes: &[u8]) -> bool {
        let Ok(content) = decode::<T>(bytes) else {
            return false;
        };
        let again = decode::<T>(&encode(&content));
        assert!(again.is_ok_and(|again| again == content), "{bytes:?}");
        true
    }
    read::<Request>(bytes) || read::<Reply>(bytes)
}

/// A member could not be asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// It has no address.
    #[error(
        "`{name}` has no address here: an owner or recipient is never called; a party's address comes with its invitation"
    )]
    NoAddress {
        /// Who.
        name: String,
    },
    /// The call failed.
    #[error("`{name}`: {error}")]
    Call {
        /// Who.
        name: String,
        /// How.
        error: ControlError,
    },
    /// The reply cannot be read.
    #[error("`{name}`: {why}")]
    Reply {
        /// Who.
        name: String,
        /// What is wrong with it.
        why: Unreadable,
    },
}

/// Asks a member something.
pub fn ask(
    identity: &Identity,
    member: &Member,
    request: &Request,
    until: Instant,
) -> Result<Reply, CallError> {
    let name = || member.name.clone();
    let address = member
        .address
        .as_deref()
        .ok_or_else(|| CallError::NoAddress { name: name() })?;
    let reply = tls::control(
        identity,
        member.fingerprint,
        address,
        &encode(request),
        until,
    );
    let reply = reply.map_err(|error| CallError::Call {
        name: name(),
        error,
    })?;
    decode(&reply).map_err(|why| CallError::Reply { name: name(), why })
}

impl Hello {
    /// How far its clock is ahead of this one's, in seconds.
    pub fn ahead(&self) -> i64 {
        self.time.saturating_sub(Time::now().seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal() -> Proposal {
        Proposal {
            job: "name = \"x\"".into(),
            lanes: 3,
            files: BTreeMap::from([("adder.txt".into(), "1 2".into())]),
        }
    }

    #[test]
    fn requests_survive_their_bytes_and_other_versions_are_named() {
        for request in [
            Request::Hello {},
            Request::Jobs {},
            Request::GoOn {
                plan: "0".repeat(64),
            },
            Request::Roll {
                plan: "0".repeat(64),
                said: Vec::new(),
            },
            Request::Propose(proposal()),
        ] {
            let bytes = encode(&request);
            assert_eq!(decode(&bytes), Ok(request));
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.starts_with("{\"version\":1,\"ask\":"), "{text}");
            let later = text.replace("\"version\":1", "\"version\":2,\"more\":[]");
            let error = decode::<Request>(later.as_bytes()).unwrap_err();
            assert_eq!(error, Unreadable::Version { theirs: 2 });
        }
    }

    #[test]
    fn replies_survive_their_bytes() {
        let hello = Hello {
            name: "union".into(),
            role: Role::Party,
            version: "1.2.3".into(),
            time: 1_800_000_000,
            knows_you_as: Some("mill".into()),
        };
        let digits = || "0".repeat(64);
        for reply in [
            Reply::Hello(hello),
            Reply::Welcome {
                name: "union".into(),
            },
            Reply::Accepted { plan: digits() },
            Reply::Pending { plan: digits() },
            Reply::Refused { why: "no".into() },
            Reply::Jobs { jobs: Vec::new() },
            Reply::Roll { said: Vec::new() },
        ] {
            assert_eq!(decode(&encode(&reply)), Ok(reply));
        }
    }

    #[test]
    fn what_is_none_of_ours_is_refused() {
        for text in [
            "",
            "[]",
            "{\"version\":1}",
            "{\"version\":1,\"ask\":\"everything\"}",
            "{\"version\":1,\"ask\":\"propose\",\"job\":1,\"lanes\":1,\"files\":{}}",
            "{\"version\":1,\"ask\":\"propose\",\"job\":\"\",\"lanes\":70000,\"files\":{}}",
            "{\"version\":1,\"ask\":\"propose\",\"job\":\"\",\"lanes\":1,\"files\":{},\"yes\":1}",
        ] {
            let read = decode::<Request>(text.as_bytes());
            assert!(
                matches!(read, Err(Unreadable::Garbled(_))),
                "{text}: {read:?}"
            );
        }
    }

    #[test]
    fn a_proposal_brings_the_circuit_and_leads_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("there")).unwrap();
        fs::write(at("there/adder.txt"), "1 2").unwrap();
        let text = "name = \"x\"\n[circuit]\nfile = \"adder.txt\"\n";
        fs::write(at("there/x.toml"), text).unwrap();
        let read = Proposal::read(&at("there/x.toml"), 3).unwrap();
        assert_eq!(read.files, proposal().files);
        let here = at("here");
        fs::create_dir(&here).unwrap();
        assert_eq!(read.unpack(&here).unwrap(), here.join("job.toml"));
        assert_eq!(fs::read_to_string(here.join("adder.txt")).unwrap(), "1 2");
        for path in ["../evil", "/etc/evil", "a/../../evil", "", "nul\0", ".."] {
            let mut bad = proposal();
            bad.files = BTreeMap::from([(path.to_owned(), "evil".to_owned())]);
            let error = bad.unpack(&here).unwrap_err();
            assert!(matches!(error, ProposalError::Path(_)), "{path}: {error}");
        }
        fs::write(at("there/y.toml"), text.replace("adder", "../there/adder")).unwrap();
        let error = Proposal::read(&at("there/y.toml"), 3)
            .unwrap_err()
            .to_string();
        assert!(error.contains("`../there/adder.txt`"), "{error}");
    }
}
