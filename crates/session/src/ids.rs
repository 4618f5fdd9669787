//! Names: of participants, of places in a run, of messages.

use std::fmt;

/// A computing party: 0, 1, and 2 and 3 where there are three or four.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PartyId(u8);

impl PartyId {
    /// The parties of a two-party protocol, in order.
    pub const TWO: [PartyId; 2] = [PartyId(0), PartyId(1)];

    /// The parties of a three-party protocol, in order.
    pub const THREE: [PartyId; 3] = [PartyId(0), PartyId(1), PartyId(2)];

    /// The parties of a four-party protocol, in order.
    pub const FOUR: [PartyId; 4] = [PartyId(0), PartyId(1), PartyId(2), PartyId(3)];

    /// Party `index`, or nothing if no protocol has so many.
    pub const fn new(index: u8) -> Option<Self> {
        if (index as usize) < Self::FOUR.len() {
            Some(PartyId(index))
        } else {
            None
        }
    }

    /// The index, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The party `by` places after this one among so many, whose indices go round.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub const fn after(self, by: usize, among: usize) -> Self {
        PartyId(((self.0 as usize + by) % among) as u8)
    }
}

impl fmt::Display for PartyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "party {}", self.0)
    }
}

/// The holder of an end of a link. Owners and recipients are numbered as in the job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Peer {
    /// A computing party.
    Party(PartyId),
    /// A data owner that only sends shares.
    Owner(u16),
    /// A recipient that only receives results.
    Recipient(u16),
}

impl Peer {
    /// The party behind this peer, if it is one.
    pub const fn party(self) -> Option<PartyId> {
        match self {
            Peer::Party(p) => Some(p),
            Peer::Owner(_) | Peer::Recipient(_) => None,
        }
    }

    /// Three bytes that name this peer on the wire and under hashes: kind, then index, little-endian.
    pub const fn to_bytes(self) -> [u8; 3] {
        let (kind, index) = match self {
            Peer::Party(p) => (0, p.0 as u16),
            Peer::Owner(o) => (1, o),
            Peer::Recipient(r) => (2, r),
        };
        let i = index.to_le_bytes();
        [kind, i[0], i[1]]
    }

    /// The inverse of [`Peer::to_bytes`]; nothing if the bytes name no peer.
    pub const fn from_bytes(bytes: [u8; 3]) -> Option<Self> {
        let index = u16::from_le_bytes([bytes[1], bytes[2]]);
        match bytes[0] {
            0 if (index as usize) < PartyId::FOUR.len() => Some(Peer::Party(PartyId(index as u8))),
            1 => Some(Peer::Owner(index)),
            2 => Some(Peer::Recipient(index)),
            _ => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Party(p) => write!(f, "{p}"),
            Peer::Owner(o) => write!(f, "owner {o}"),
            Peer::Recipient(r) => write!(f, "recipient {r}"),
        }
    }
}

/// All that differs between two uses of a round: which part of the batch it works on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Frame {
    /// Key epoch; 0 unless a job continued with fewer parties.
    pub epoch: u16,
    /// Logical lane of the plan, never a hardware lane.
    pub lane: u16,
    /// Chunk of the batch, counted over the whole job.
    pub chunk: u32,
    /// Rows in this chunk.
    pub rows: u32,
}

/// A place in the plan. The same in every chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StepId {
    /// Number of the round in the plan.
    pub place: u32,
    /// Netlist cycle of a sequential circuit, 0 if there is none.
    pub cycle: u64,
}

/// The name of a message: it is in the frame header, in stall reports and in errors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Channel {
    /// Part of the batch.
    pub frame: Frame,
    /// Round.
    pub step: StepId,
    /// Which message of the round, where it has several for one peer.
    pub part: u16,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}", self.step.place)?;
        if self.step.cycle != 0 {
            write!(f, " cycle {}", self.step.cycle)?;
        }
        write!(
            f,
            " message {} of chunk {} (lane {})",
            self.part, self.frame.chunk, self.frame.lane
        )
    }
}

/// SHA-256 of everything the participants must agree on before anything input-dependent is sent (rule R5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanHash(pub [u8; 32]);

/// One run of one plan between these participants.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub [u8; 32]);

macro_rules! hex_name {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // 64 bits are enough to tell two apart in a log.
                self.0[..8].iter().try_for_each(|b| write!(f, "{b:02x}"))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}
hex_name!(PlanHash);
hex_name!(SessionId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_survive_their_bytes() {
        for peer in [
            Peer::Party(PartyId(2)),
            Peer::Owner(0),
            Peer::Owner(65535),
            Peer::Recipient(7),
        ] {
            assert_eq!(Peer::from_bytes(peer.to_bytes()), Some(peer));
        }
        assert_eq!(Peer::from_bytes([0, 4, 0]), None);
        assert_eq!(Peer::from_bytes([3, 0, 0]), None);
    }
}
