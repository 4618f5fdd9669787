//! The header of every message on a wire, of fixed length.
//!
//! Little-endian, 40 bytes:
//!
//! | offset | bytes | field |
//! | --- | --- | --- |
//! | 0 | 1 | version, [`VERSION`] |
//! | 1 | 1 | kind: 0 message, 1 abort, 2 goodbye |
//! | 2 | 2 | epoch |
//! | 4 | 2 | lane |
//! | 6 | 2 | part |
//! | 8 | 4 | chunk |
//! | 12 | 4 | rows |
//! | 16 | 4 | place |
//! | 20 | 4 | length of the payload in bytes |
//! | 24 | 8 | cycle |
//! | 32 | 8 | tag of the session |
//!
//! Who speaks to whom is not in it: a connection belongs to one pair of peers, whom TLS named. In an abort and in a goodbye
//! everything but version, kind and tag is zero, so that an abort says nothing beyond itself.

use veil_session::{Channel, Frame, StepId};

use crate::LinkFault;

/// Version of the frame layout; another one is refused.
pub(crate) const VERSION: u8 = 1;

/// Bytes of a header.
pub(crate) const HEADER: usize = 40;

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// A message: its name and the length of the payload that follows, in bytes.
    Message { at: Channel, length: u32 },
    /// The sender gave up the run.
    Abort,
    /// The sender has sent all it had to send and needs nothing more.
    Goodbye,
}

/// A frame without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// First eight bytes of the session's name, or of the plan hash before the session has a name.
    pub(crate) tag: u64,
    /// All the rest.
    pub(crate) body: Body,
}

/// What an abort and a goodbye carry where a message has its name.
const NOWHERE: Channel = Channel {
    frame: Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: 0,
    },
    step: StepId { place: 0, cycle: 0 },
    part: 0,
};

impl Header {
    /// The bytes of this header.
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let (kind, at, length) = match self.body {
            Body::Message { at, length } => (0, at, length),
            Body::Abort => (1, NOWHERE, 0),
            Body::Goodbye => (2, NOWHERE, 0),
        };
        let mut out = [0; HEADER];
        out[0] = VERSION;
        out[1] = kind;
        out[2..4].copy_from_slice(&at.frame.epoch.to_le_bytes());
        out[4..6].copy_from_slice(&at.frame.lane.to_le_bytes());
        out[6..8].copy_from_slice(&at.part.to_le_bytes());
        out[8..12].copy_from_slice(&at.frame.chunk.to_le_bytes());
        out[12..16].copy_from_slice(&at.frame.rows.to_le_bytes());
        out[16..20].copy_from_slice(&at.step.place.to_le_bytes());
        out[20..24].copy_from_slice(&length.to_le_bytes());
        out[24..32].copy_from_slice(&at.step.cycle.to_le_bytes());
        out[32..40].copy_from_slice(&self.tag.to_le_bytes());
        out
    }

    /// Reads a header. Total: any bytes give a header or a fault, and a header that is given encodes to these very bytes.
    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Result<Header, LinkFault> {
        if bytes[0] != VERSION {
            return Err(LinkFault::Version {
                ours: VERSION,
                theirs: bytes[0],
            });
        }
        let at = Channel {
            frame: Frame {
                epoch: u16::from_le_bytes(field(bytes, 2)),
                lane: u16::from_le_bytes(field(bytes, 4)),
                chunk: u32::from_le_bytes(field(bytes, 8)),
                rows: u32::from_le_bytes(field(bytes, 12)),
            },
            step: StepId {
                place: u32::from_le_bytes(field(bytes, 16)),
                cycle: u64::from_le_bytes(field(bytes, 24)),
            },
            part: u16::from_le_bytes(field(bytes, 6)),
        };
        let length = u32::from_le_bytes(field(bytes, 20));
        let body = match bytes[1] {
            0 => Body::Message { at, length },
            1 | 2 if at != NOWHERE || length != 0 => {
                return Err(LinkFault::Malformed(
                    "an abort or a goodbye with something in it",
                ));
            }
            1 => Body::Abort,
            2 => Body::Goodbye,
            _ => return Err(LinkFault::Malformed("a frame of unknown kind")),
        };
        Ok(Header {
            tag: u64::from_le_bytes(field(bytes, 32)),
            body,
        })
    }
}

/// `N` bytes of a header from offset `from`.
fn field<const N: usize>(bytes: &[u8; HEADER], from: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[from + i])
}

/// The tag of a name: its first eight bytes.
pub(crate) fn tag(name: &[u8; 32]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| name[i]))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message name for tests: chunk 0, `rows` rows, place `place`.
    pub(crate) fn at(place: u32) -> Channel {
        Channel {
            frame: Frame {
                epoch: 0,
                lane: 0,
                chunk: 0,
                rows: 8,
            },
            step: StepId { place, cycle: 0 },
            part: 0,
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let at = Channel {
            frame: Frame {
                epoch: 0x0102,
                lane: 0x0304,
                chunk: 0x0506_0708,
                rows: 0x090a_0b0c,
            },
            step: StepId {
                place: 0x0d0e_0f10,
                cycle: 0x1112_1314_1516_1718,
            },
            part: 0x191a,
        };
        let header = Header {
            tag: 0x1b1c_1d1e_1f20_2122,
            body: Body::Message {
                at,
                length: 0x2324_2526,
            },
        };
        let want = [
            1, 0, 0x02, 0x01, 0x04, 0x03, 0x1a, 0x19, 0x08, 0x07, 0x06, 0x05, 0x0c, 0x0b, 0x0a,
            0x09, 0x10, 0x0f, 0x0e, 0x0d, 0x26, 0x25, 0x24, 0x23, 0x18, 0x17, 0x16, 0x15, 0x14,
            0x13, 0x12, 0x11, 0x22, 0x21, 0x20, 0x1f, 0x1e, 0x1d, 0x1c, 0x1b,
        ];
        assert_eq!(header.encode(), want);
        assert_eq!(Header::decode(&want), Ok(header));
    }

    #[test]
    fn other_versions_kinds_and_laden_aborts_are_refused() {
        let mut bytes = Header {
            tag: 0,
            body: Body::Abort,
        }
        .encode();
        bytes[0] = 2;
        assert_eq!(
            Header::decode(&bytes),
            Err(LinkFault::Version { ours: 1, theirs: 2 })
        );
        bytes[0] = VERSION;
        bytes[1] = 3;
        assert!(matches!(
            Header::decode(&bytes),
            Err(LinkFault::Malformed(_))
        ));
        bytes[1] = 1;
        bytes[16] = 1;
        assert!(matches!(
            Header::decode(&bytes),
            Err(LinkFault::Malformed(_))
        ));
    }

    proptest! {
        #[test]
        fn whatever_decodes_encodes_to_the_same_bytes(mut bytes: [u8; HEADER], valid: bool, kind in 0..4u8) {
            if valid {
                bytes[0] = VERSION;
                bytes[1] = kind;
            }
            if let Ok(header) = Header::decode(&bytes) {
                prop_assert_eq!(header.encode(), bytes);
            }
        }
    }
}
