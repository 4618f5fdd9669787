//! The first bytes inside TLS: what kind of call it is; who calls whom, about which plan, for which lane; and the answer.
//!
//! The dialler sends 62 bytes: `VEIL`, version, kind. For a lane follow plan hash (32), its own name (3), the name of the peer
//! it wants (3), lane (2, little-endian), the link (16: zeros for TLS, or the provider's name and zeros); for a control call the
//! length of the request (4, little-endian) and zeros, and then the request. The listener answers with 38: `VEIL`, version,
//! code, a plan hash, or its link and zeros if that is what differs; to a control call it adds the length of the reply (4, little-endian) and the reply. Every version begins with `VEIL` and its number, so that two releases can at least
//! tell each other that they differ: a listener looks at these five bytes before it waits for more.

use veil_session::{Peer, PlanHash};

use crate::{LinkKind, Provider};

/// Version of everything that two participants must have in common beside the plan.
pub(super) const VERSION: u8 = 3;

const MAGIC: [u8; 4] = *b"VEIL";

/// Bytes that every version begins with.
pub(super) const START: usize = 5;

/// Bytes of a call.
pub(super) const CALL: usize = 62;

/// Bytes of an answer.
pub(super) const ANSWER: usize = 38;

/// What the dialler says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Call {
    /// It brings a lane of a job.
    Lane(LaneCall),
    /// It asks something, in so many bytes.
    Control { length: u32 },
}

/// Which lane of which job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LaneCall {
    pub(super) plan: PlanHash,
    pub(super) from: Peer,
    pub(super) to: Peer,
    pub(super) lane: u16,
    pub(super) link: LinkKind,
}

const LANE: u8 = 0;
const CONTROL: u8 = 1;

/// Why a call is turned down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// Another version of the preface.
    Version,
    /// Another plan, and this side will have no other.
    Plan,
    /// The caller is not awaited here.
    Stranger,
    /// The caller wanted another participant.
    WrongNumber,
    /// That lane is connected already, or does not exist.
    Lane,
    /// The key that was shown is pinned for another participant.
    Key,
    /// No such job awaits the caller, now: it may later.
    NotYet,
    /// Too many callers at once: later.
    Busy,
    /// A request that is longer than this caller may send.
    TooLong,
    /// A kind of call that this side does not take.
    Kind,
    /// Another link.
    Link,
    /// The key that was shown is unknown here.
    Unknown,
}

/// Refusals in the order of their codes, from 1.
const REFUSALS: [Refusal; 12] = [
    Refusal::Version,
    Refusal::Plan,
    Refusal::Stranger,
    Refusal::WrongNumber,
    Refusal::Lane,
    Refusal::Key,
    Refusal::NotYet,
    Refusal::Busy,
    Refusal::TooLong,
    Refusal::Kind,
    Refusal::Link,
    Refusal::Unknown,
];

/// What the listener says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) version: u8,
    pub(super) refusal: Option<Refusal>,
    pub(super) plan: PlanHash,
    /// The listener's, if it says that this is what differs.
    pub(super) link: LinkKind,
}

/// What is wrong with a call that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Garbled {
    /// It does not begin like a preface, or names no participant.
    NotOurs,
    /// It is of this version.
    Version(u8),
    /// It is of a kind that we do not know.
    Kind,
}

impl Call {
    pub(super) fn encode(&self) -> [u8; CALL] {
        let mut out = [0; CALL];
        out[..4].copy_from_slice(&MAGIC);
        out[4] = VERSION;
        match self {
            Call::Lane(call) => {
                out[5] = LANE;
                out[6..38].copy_from_slice(&call.plan.0);
                out[38..41].copy_from_slice(&call.from.to_bytes());
                out[41..44].copy_from_slice(&call.to.to_bytes());
                out[44..46].copy_from_slice(&call.lane.to_le_bytes());
                out[46..].copy_from_slice(&call.link.to_bytes());
            }
            Call::Control { length } => {
                out[5] = CONTROL;
                out[6..10].copy_from_slice(&length.to_le_bytes());
            }
        }
        out
    }

    pub(super) fn decode(bytes: &[u8; CALL]) -> Result<Self, Garbled> {
        check(bytes)?;
        let peer = |from| Peer::from_bytes(part(bytes, from)).ok_or(Garbled::NotOurs);
        match bytes[5] {
            LANE => Ok(Call::Lane(LaneCall {
                plan: PlanHash(part(bytes, 6)),
                from: peer(38)?,
                to: peer(41)?,
                lane: u16::from_le_bytes(part(bytes, 44)),
                link: LinkKind::from_bytes(part(bytes, 46)).ok_or(Garbled::NotOurs)?,
            })),
            CONTROL if bytes[10..].iter().all(|byte| *byte == 0) => Ok(Call::Control {
                length: u32::from_le_bytes(part(bytes, 6)),
            }),
            CONTROL => Err(Garbled::NotOurs),
            _ => Err(Garbled::Kind),
        }
    }
}

impl Answer {
    /// An answer of this release.
    pub(super) const fn new(refusal: Option<Refusal>, plan: PlanHash) -> Self {
        Answer {
            version: VERSION,
            refusal,
            plan,
            link: LinkKind::Tls,
        }
    }

    /// The same, and says which link is ours.
    pub(super) const fn with_link(mut self, link: LinkKind) -> Self {
        self.link = link;
        self
    }

    pub(super) fn encode(&self) -> [u8; ANSWER] {
        let mut out = [0; ANSWER];
        out[..4].copy_from_slice(&MAGIC);
        out[4] = self.version;
        let code = REFUSALS
            .iter()
            .position(|refusal| Some(*refusal) == self.refusal);
        out[5] = code.map_or(0, |index| index as u8 + 1);
        if self.refusal == Some(Refusal::Link) {
            out[6..6 + Provider::LONGEST].copy_from_slice(&self.link.to_bytes());
        } else {
            out[6..].copy_from_slice(&self.plan.0);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8; ANSWER]) -> Result<Self, Garbled> {
        check(bytes)?;
        let refusal = match bytes[5].checked_sub(1) {
            None => None,
            Some(index) => Some(*REFUSALS.get(usize::from(index)).ok_or(Garbled::NotOurs)?),
        };
        let mut answer = Answer {
            version: bytes[4],
            ..Answer::new(refusal, PlanHash(part(bytes, 6)))
        };
        if refusal == Some(Refusal::Link) {
            if bytes[6 + Provider::LONGEST..].iter().any(|byte| *byte != 0) {
                return Err(Garbled::NotOurs);
            }
            answer.link = LinkKind::from_bytes(part(bytes, 6)).ok_or(Garbled::NotOurs)?;
            answer.plan = PlanHash([0; 32]);
        }
        Ok(answer)
    }
}

/// For fuzzing: takes `bytes` for the call of a dialler, and for the answer to one.
///
/// # Panics
///
/// If a decoded preface does not encode to the same bytes.
pub fn fuzz_preface(bytes: &[u8]) {
    if let Some(bytes) = bytes.first_chunk::<CALL>()
        && let Ok(call) = Call::decode(bytes)
    {
        assert_eq!(&call.encode(), bytes, "a call is what it was read from");
    }
    if let Some(bytes) = bytes.first_chunk::<ANSWER>()
        && let Ok(answer) = Answer::decode(bytes)
    {
        assert_eq!(
            &answer.encode(),
            bytes,
            "an answer is what it was read from"
        );
    }
}

/// Whether `bytes`, at least [`START`] of them, begin a preface of this version.
pub(super) fn check(bytes: &[u8]) -> Result<(), Garbled> {
    if bytes[..4] != MAGIC {
        return Err(Garbled::NotOurs);
    }
    if bytes[4] != VERSION {
        return Err(Garbled::Version(bytes[4]));
    }
    Ok(())
}

fn part<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[from + i])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE_EXAMPLE: Call = Call::Lane(LaneCall {
        plan: PlanHash([7; 32]),
        from: Peer::Owner(0x0102),
        to: Peer::Recipient(3),
        lane: 0x0405,
        link: LinkKind::Fabric(Provider::SHM),
    });
    const CONTROL_EXAMPLE: Call = Call::Control {
        length: 0x0102_0304,
    };

    #[test]
    fn calls_and_answers_survive_their_bytes() {
        let bytes = LANE_EXAMPLE.encode();
        assert_eq!(&bytes[..7], b"VEIL\x03\x00\x07");
        assert_eq!(bytes[38..46], [1, 0x02, 0x01, 2, 3, 0, 0x05, 0x04]);
        assert_eq!(&bytes[46..], b"shm\0\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(Call::decode(&bytes), Ok(LANE_EXAMPLE));
        let bytes = CONTROL_EXAMPLE.encode();
        assert_eq!(&bytes[..11], b"VEIL\x03\x01\x04\x03\x02\x01\x00");
        assert_eq!(Call::decode(&bytes), Ok(CONTROL_EXAMPLE));
        for code in 0..=255_u8 {
            // Where a link is said, there is no plan.
            let refusal = code.checked_sub(1).map(usize::from);
            let refusal = refusal.and_then(|at| REFUSALS.get(at));
            let link = refusal == Some(&Refusal::Link);
            let plan = PlanHash([if link { 0 } else { 9 }; 32]);
            let mut bytes = Answer::new(None, plan).encode();
            bytes[5] = code;
            match Answer::decode(&bytes) {
                Ok(answer) => assert_eq!(answer.encode(), bytes),
                Err(why) => assert!(usize::from(code) > REFUSALS.len() && why == Garbled::NotOurs),
            }
        }
    }

    #[test]
    fn other_magic_versions_kinds_and_peers_are_refused() {
        let with = |call: Call, at: usize, byte: u8| {
            let mut bytes = call.encode();
            bytes[at] = byte;
            Call::decode(&bytes)
        };
        for call in [LANE_EXAMPLE, CONTROL_EXAMPLE] {
            assert_eq!(with(call, 0, b'v'), Err(Garbled::NotOurs));
            assert_eq!(with(call, 4, 1), Err(Garbled::Version(1)));
            assert_eq!(with(call, 5, 2), Err(Garbled::Kind));
        }
        assert_eq!(with(LANE_EXAMPLE, 38, 9), Err(Garbled::NotOurs));
        assert_eq!(with(CONTROL_EXAMPLE, CALL - 1, 1), Err(Garbled::NotOurs));
    }

    /// Every byte of a valid call and answer takes every value: nothing panics, and what is read is what was sent.
    #[test]
    fn damaged_prefaces_are_read_or_refused() {
        let answer = Answer::new(Some(Refusal::Link), PlanHash([7; 32]));
        let answer = answer.with_link(LinkKind::Fabric(Provider::TCP));
        let [lane, control] = [LANE_EXAMPLE, CONTROL_EXAMPLE].map(|call| call.encode());
        for good in [&lane[..], &control[..], &answer.encode()[..]] {
            for at in 0..good.len() {
                for value in 0..=255 {
                    let mut bytes = good.to_vec();
                    bytes[at] = value;
                    fuzz_preface(&bytes);
                    fuzz_preface(&bytes[..at]);
                }
            }
        }
    }
}
