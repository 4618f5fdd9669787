//! Requests between participants outside of runs: one request, one reply, as JSON over an authenticated connection.
//!
//! The key that a request comes from is known from TLS; a request says nothing about who sends it. A request of another version,
//! or with a field that is not known, is refused and changes nothing.

mod proposal;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub use proposal::{Proposal, ProposalError};
use serde::{Deserialize, Serialize};
use veil_device::Device;
use veil_job::ChunkRows;
use veil_link::tls::{self, ControlError, Identity};
use veil_math::Ring;

use crate::attendance::Missing;
use crate::invitation::Join;
use crate::jobs::Status;
use crate::meeting::HeldFor;
use crate::members::Member;
use crate::names::Role;
use crate::rotation::Statement;
use crate::stages::At;
use crate::time::Time;

/// Version of the requests and replies.
pub const VERSION: u32 = 1;

/// A request.
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
    #[serde(rename = "roll")]
    Attendance {
        /// All digits of its plan hash.
        plan: String,
        /// The statements that the caller knows.
        said: Vec<Missing>,
    },
    /// In which order do you garble this job, which says none?
    Schedule {
        /// All digits of the hash of the plan that it has as it is written.
        plan: String,
    },
    /// I go on with this durable job, whose inputs I have kept: how is it there?
    GoOn {
        /// All digits of its plan hash.
        plan: String,
    },
    /// We are both idle, and short of stock: shall we make some?
    Refill {
        /// All digits of the hash of the plan that makes it.
        plan: String,
        /// How many items.
        cells: u64,
        /// Whether they are random transfers, in the place of cells.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        transfers: bool,
        /// The statistical parameter of its making.
        statistical: u8,
        /// Whether the caller garbles.
        garbles: bool,
        /// The generations that the caller has with the called party: what it does not name is of no use to either.
        generations: Vec<String>,
    },
    /// A making of ours has ended: so many of its cells have passed here, from the first on. How many do we keep?
    Keep {
        /// All digits of the hash of its plan.
        plan: String,
        /// Cells.
        cells: u64,
    },
    /// Makings of ours are over without an agreement: of each, by its name, so many cells have passed here, from the first on. How many do we keep?
    Unfinished {
        /// Items by the name of the generation.
        makings: BTreeMap<String, u64>,
        /// Whether they are random transfers, in the place of cells.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        transfers: bool,
    },
    /// I shall take part in this job, and something holds me up.
    Held {
        /// All digits of its plan hash.
        plan: String,
        /// The reason.
        why: HeldFor,
    },
}

/// A reply.
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
    /// A person has to approve it first.
    Pending {
        /// The plan, as the party computed it.
        plan: String,
    },
    /// No.
    Refused {
        /// Why.
        why: String,
    },
    /// The key that asks is no member's here.
    Stranger {},
    /// Who is missing.
    #[serde(rename = "roll")]
    Attendance {
        /// The statements that the answering party knows.
        said: Vec<Missing>,
        /// The stage of the answering party.
        at: At,
    },
    /// Yes: this party comes to make stock now.
    Refills {
        /// The generations that it has with the caller.
        generations: Vec<String>,
    },
    /// So many cells of the making are kept, from the first on: they are written.
    Kept {
        /// Cells.
        cells: u64,
    },
    /// So many cells of these makings are kept, from the first on: they are written. Of others nothing is.
    Finished {
        /// Cells by the name of the generation.
        makings: BTreeMap<String, u64>,
    },
    /// In this order.
    Schedule {
        /// The word of a job file; nothing if it is garbled as the job is written.
        schedule: Option<String>,
    },
    /// The jobs.
    Jobs {
        /// The jobs in which the caller has a part.
        jobs: Vec<Status>,
    },
}

/// Who a participant is, and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The version of its program. Not `version` in the bytes: that is the version of the requests.
    #[serde(rename = "release")]
    pub version: String,
    /// Its clock, in seconds since 1970.
    pub time: i64,
    /// The name under which it knows the caller.
    pub knows_you_as: Option<String>,
    /// Its device, if it is a party that serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computes: Option<Computes>,
}

/// The device that a party computes on, as it says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Computes {
    /// Its name.
    pub device: String,
    /// By names of rings, the rows of a chunk that the device is best at, where it is best at more than fits the cache of a processor.
    pub chunk_rows: BTreeMap<String, u64>,
}

impl Computes {
    /// What a device says of itself.
    pub fn of(device: &dyn Device) -> Self {
        let wish = |ring: Ring| Some((ring.name().to_owned(), device.chunk_rows(ring)?));
        Computes {
            device: device.name().to_owned(),
            chunk_rows: Ring::ALL.into_iter().filter_map(wish).collect(),
        }
    }

    /// The chunk that a job over `ring` should have for it; nothing if it has no wish, or states a number that is none.
    pub fn wish(&self, ring: Ring) -> Option<ChunkRows> {
        ChunkRows::within(*self.chunk_rows.get(ring.name())?)
    }

    /// Its name, as far as another participant's text may be shown.
    pub fn shown(&self) -> String {
        let plain = self.device.chars().filter(char::is_ascii_graphic);
        plain.take(LONGEST_NAME).collect()
    }
}

/// Characters of a device's name that are shown, at most.
const LONGEST_NAME: usize = 40;

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

/// Longest request that is read where it came in: statements of all parties about each other. Only proposals are longer.
const LONGEST_USUAL: usize = 16 << 10;

/// How a request is treated, before it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Its answer takes no planning, and no lock of the home.
    Quick,
    /// It proposes a job, or is so long that it can be nothing else.
    Proposal,
    /// Any other.
    Other,
}

/// Of which kind a request is.
pub(crate) fn kind(request: &[u8]) -> Kind {
    #[derive(Deserialize)]
    struct Asked<'a> {
        ask: &'a str,
    }
    if request.len() > LONGEST_USUAL {
        return Kind::Proposal;
    }
    match serde_json::from_slice::<Asked<'_>>(request) {
        Ok(Asked {
            ask: "hello" | "roll" | "schedule" | "held",
        }) => Kind::Quick,
        Ok(Asked { ask: "propose" }) => Kind::Proposal,
        _ => Kind::Other,
    }
}

/// Reads a request or a reply. Whatever the bytes are, nothing panics.
///
/// # Errors
/// [`Unreadable::Version`] if the bytes are of another version, [`Unreadable::Garbled`] if they are not JSON of a `T`.
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
/// If decoded content does not survive encoding and decoding again.
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
        /// The defect.
        why: Unreadable,
    },
}

/// Asks a member something. It has until `until` to be there and to answer.
///
/// # Errors
/// [`CallError::NoAddress`] if the member has none, [`CallError::Call`] if the call fails or the member does not know our key,
/// [`CallError::Reply`] if its reply cannot be read.
pub fn ask(
    identity: &Identity,
    member: &Member,
    request: &Request,
    until: Instant,
) -> Result<Reply, CallError> {
    ask_slow(identity, member, request, (until, Duration::ZERO))
}

/// The time that a member that is there has to answer, however much else its machine has to do.
const SLOW: Duration = Duration::from_secs(30);

/// Asks a member something that may be away: it has so much time to be there, and more to answer if it is.
///
/// # Errors
/// [`CallError`] as of [`ask`].
pub fn ask_if_there(
    identity: &Identity,
    member: &Member,
    request: &Request,
    within: Duration,
) -> Result<Reply, CallError> {
    ask_slow(identity, member, request, (Instant::now() + within, SLOW))
}

/// [`ask`], of a member that is there within the first of these times, and then has the second one to answer.
pub(crate) fn ask_slow(
    identity: &Identity,
    member: &Member,
    request: &Request,
    (until, reply): (Instant, Duration),
) -> Result<Reply, CallError> {
    let name = || member.name.clone();
    let address = member
        .address
        .as_deref()
        .ok_or_else(|| CallError::NoAddress { name: name() })?;
    let reply = tls::control_slow(
        identity,
        member.fingerprint,
        address,
        &encode(request),
        until,
        reply,
    );
    let reply = reply.map_err(|error| CallError::Call {
        name: name(),
        error,
    })?;
    match decode(&reply) {
        // A caller that is expected to join is heard before it is refused.
        Ok(Reply::Stranger {}) => Err(CallError::Call {
            name: name(),
            error: ControlError::OurKey {
                address: address.to_owned(),
                ours: identity.fingerprint(),
            },
        }),
        reply => reply.map_err(|why| CallError::Reply { name: name(), why }),
    }
}

impl CallError {
    /// Whether it is the member that answered, though not what was asked.
    pub(crate) const fn is_answer(&self) -> bool {
        match self {
            CallError::NoAddress { .. } => false,
            CallError::Call { error, .. } => error.is_answer(),
            CallError::Reply { .. } => true,
        }
    }
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
            stocked: false,
            files: BTreeMap::from([("adder.txt".into(), "1 2".into())]),
        }
    }

    #[test]
    fn requests_survive_their_bytes_and_other_versions_are_named() {
        for request in [
            Request::Hello {},
            Request::Jobs {},
            Request::Schedule {
                plan: "0".repeat(64),
            },
            Request::GoOn {
                plan: "0".repeat(64),
            },
            Request::Held {
                plan: "0".repeat(64),
                why: HeldFor::Data,
            },
            Request::Attendance {
                plan: "0".repeat(64),
                said: Vec::new(),
            },
            Request::Propose(proposal()),
            Request::Propose(Proposal {
                stocked: true,
                ..proposal()
            }),
            Request::Refill {
                plan: "0".repeat(64),
                cells: 1 << 20,
                transfers: false,
                statistical: 40,
                garbles: true,
                generations: vec!["01".repeat(8)],
            },
            Request::Keep {
                plan: "0".repeat(64),
                cells: 1 << 14,
            },
            Request::Unfinished {
                makings: BTreeMap::from([("01".repeat(8), 512)]),
                transfers: true,
            },
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
    fn what_takes_no_planning_is_known_by_its_first_word() {
        let attendance = |said| Request::Attendance {
            plan: "0".repeat(64),
            said,
        };
        assert_eq!(kind(&encode(&Request::Hello {})), Kind::Quick);
        assert_eq!(kind(&encode(&attendance(Vec::new()))), Kind::Quick);
        assert_eq!(kind(&encode(&Request::Propose(proposal()))), Kind::Proposal);
        assert_eq!(kind(&encode(&Request::Jobs {})), Kind::Other);
        assert_eq!(kind(b"{\"ask\":\"roll\""), Kind::Other);
        let mut long = encode(&Request::Hello {});
        long.resize(LONGEST_USUAL + 1, b' ');
        assert_eq!(kind(&long), Kind::Proposal);
    }

    #[test]
    fn replies_survive_their_bytes() {
        let hello = Hello {
            name: "union".into(),
            role: Role::Party,
            version: "1.2.3".into(),
            time: 1_800_000_000,
            knows_you_as: Some("mill".into()),
            computes: None,
        };
        let digits = || "0".repeat(64);
        for reply in [
            Reply::Hello(hello.clone()),
            Reply::Hello(Hello {
                computes: Some(Computes {
                    device: "cuda".into(),
                    chunk_rows: BTreeMap::from([("bits".into(), 1 << 18)]),
                }),
                ..hello
            }),
            Reply::Welcome {
                name: "union".into(),
            },
            Reply::Accepted { plan: digits() },
            Reply::Pending { plan: digits() },
            Reply::Refused { why: "no".into() },
            Reply::Jobs { jobs: Vec::new() },
            Reply::Refills {
                generations: vec!["01".repeat(8)],
            },
            Reply::Kept { cells: 1 << 14 },
            Reply::Finished {
                makings: BTreeMap::from([("01".repeat(8), 512)]),
            },
            Reply::Schedule { schedule: None },
            Reply::Schedule {
                schedule: Some("list(2)".into()),
            },
            Reply::Attendance {
                said: Vec::new(),
                at: At::Kept {
                    run: digits(),
                    view: 2,
                },
            },
        ] {
            assert_eq!(decode(&encode(&reply)), Ok(reply));
        }
    }

    /// A member may state anything: only numbers that are wishes count, and of a name only what is harmless on a terminal.
    #[test]
    fn wishes_of_members_are_within_bounds() {
        let computes = |device: &str, rows: u64| Computes {
            device: device.into(),
            chunk_rows: BTreeMap::from([(Ring::Z64.name().to_owned(), rows)]),
        };
        let wish = |rows| computes("cuda", rows).wish(Ring::Z64).map(ChunkRows::count);
        assert_eq!([0, 63].map(wish), [None; 2]);
        assert_eq!(
            [64, 3000, 1 << 40, u64::MAX].map(wish),
            [64, 2048, 1 << 20, 1 << 20].map(Some)
        );
        assert_eq!(computes("cuda", 4096).wish(Ring::Bits), None);
        assert_eq!(
            computes("cu\u{1b}[2Jda:0 \n\u{202e}", 64).shown(),
            "cu[2Jda:0"
        );
        assert_eq!(
            computes(&"x".repeat(1 << 12), 64).shown().len(),
            LONGEST_NAME
        );
        // The devices of the host have none, and say so.
        let own = Computes::of(&veil_device::Reference::default());
        assert_eq!(
            (own.device.as_str(), own.chunk_rows),
            ("reference", BTreeMap::new())
        );
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
}
