//! The first bytes inside TLS: who calls whom, about which plan, for which lane; and the answer.
//!
//! The dialler sends 45 bytes: `VEIL`, version, plan hash (32), its own name (3), the name of the peer it wants (3), lane
//! (2, little-endian). The listener answers with 38: `VEIL`, version, code, its own plan hash. Version 1 fixes these offsets
//! for ever, so that two releases can at least tell each other that they differ.

use veil_session::{Peer, PlanHash};

/// Version of everything that two participants must have in common beside the plan.
pub(super) const VERSION: u8 = 1;

const MAGIC: [u8; 4] = *b"VEIL";

/// Bytes of a call.
pub(super) const CALL: usize = 45;

/// Bytes of an answer.
pub(super) const ANSWER: usize = 38;

/// What the dialler says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) plan: PlanHash,
    pub(super) from: Peer,
    pub(super) to: Peer,
    pub(super) lane: u16,
}

/// Why a call is turned down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// Another version of the preface.
    Version,
    /// Another plan.
    Plan,
    /// The caller is not awaited here.
    Stranger,
    /// The caller wanted somebody else.
    WrongNumber,
    /// That lane is connected already, or does not exist.
    Lane,
    /// The key that was shown is pinned for somebody else.
    Key,
}

/// What the listener says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) version: u8,
    pub(super) refusal: Option<Refusal>,
    pub(super) plan: PlanHash,
}

/// What is wrong with a call that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Garbled {
    /// It does not begin like one of ours, or names nobody.
    NotOurs,
    /// It is of this version.
    Version(u8),
}

impl Call {
    pub(super) fn encode(&self) -> [u8; CALL] {
        let mut out = [0; CALL];
        out[..4].copy_from_slice(&MAGIC);
        out[4] = VERSION;
        out[5..37].copy_from_slice(&self.plan.0);
        out[37..40].copy_from_slice(&self.from.to_bytes());
        out[40..43].copy_from_slice(&self.to.to_bytes());
        out[43..].copy_from_slice(&self.lane.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8; CALL]) -> Result<Self, Garbled> {
        check(bytes)?;
        let peer = |from| Peer::from_bytes(part(bytes, from)).ok_or(Garbled::NotOurs);
        Ok(Call {
            plan: PlanHash(part(bytes, 5)),
            from: peer(37)?,
            to: peer(40)?,
            lane: u16::from_le_bytes(part(bytes, 43)),
        })
    }
}

impl Answer {
    pub(super) fn encode(&self) -> [u8; ANSWER] {
        let mut out = [0; ANSWER];
        out[..4].copy_from_slice(&MAGIC);
        out[4] = self.version;
        out[5] = match self.refusal {
            None => 0,
            Some(Refusal::Version) => 1,
            Some(Refusal::Plan) => 2,
            Some(Refusal::Stranger) => 3,
            Some(Refusal::WrongNumber) => 4,
            Some(Refusal::Lane) => 5,
            Some(Refusal::Key) => 6,
        };
        out[6..].copy_from_slice(&self.plan.0);
        out
    }

    pub(super) fn decode(bytes: &[u8; ANSWER]) -> Result<Self, Garbled> {
        check(bytes)?;
        let refusal = match bytes[5] {
            0 => None,
            1 => Some(Refusal::Version),
            2 => Some(Refusal::Plan),
            3 => Some(Refusal::Stranger),
            4 => Some(Refusal::WrongNumber),
            5 => Some(Refusal::Lane),
            6 => Some(Refusal::Key),
            _ => return Err(Garbled::NotOurs),
        };
        Ok(Answer {
            version: bytes[4],
            refusal,
            plan: PlanHash(part(bytes, 6)),
        })
    }
}

/// For fuzzing: takes `bytes` for the call of a dialler, and for the answer to one.
///
/// # Panics
///
/// If what was read does not encode to the bytes that it was read from.
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

fn check(bytes: &[u8]) -> Result<(), Garbled> {
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

    const CALL_EXAMPLE: Call = Call {
        plan: PlanHash([7; 32]),
        from: Peer::Owner(0x0102),
        to: Peer::Recipient(3),
        lane: 0x0405,
    };

    #[test]
    fn calls_and_answers_survive_their_bytes() {
        let bytes = CALL_EXAMPLE.encode();
        assert_eq!(&bytes[..6], b"VEIL\x01\x07");
        assert_eq!(bytes[37..], [1, 0x02, 0x01, 2, 3, 0, 0x05, 0x04]);
        assert_eq!(Call::decode(&bytes), Ok(CALL_EXAMPLE));
        for code in 0..=255 {
            let mut bytes = Answer {
                version: VERSION,
                refusal: None,
                plan: PlanHash([9; 32]),
            }
            .encode();
            bytes[5] = code;
            match Answer::decode(&bytes) {
                Ok(answer) => assert_eq!(answer.encode(), bytes),
                Err(why) => assert!(code > 6 && why == Garbled::NotOurs),
            }
        }
    }

    #[test]
    fn other_magic_versions_and_peers_are_refused() {
        let with = |at: usize, byte: u8| {
            let mut bytes = CALL_EXAMPLE.encode();
            bytes[at] = byte;
            Call::decode(&bytes)
        };
        assert_eq!(with(0, b'v'), Err(Garbled::NotOurs));
        assert_eq!(with(4, 2), Err(Garbled::Version(2)));
        assert_eq!(with(37, 9), Err(Garbled::NotOurs));
    }

    /// Every byte of a valid call and answer takes every value: nothing panics, and what is read is what was sent.
    #[test]
    fn damaged_prefaces_are_read_or_refused() {
        let answer = Answer {
            version: VERSION,
            refusal: Some(Refusal::Plan),
            plan: CALL_EXAMPLE.plan,
        };
        for good in [&CALL_EXAMPLE.encode()[..], &answer.encode()[..]] {
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
