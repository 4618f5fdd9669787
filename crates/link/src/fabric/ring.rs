//! The layout of a ring, and the completion data that ring for it.
//!
//! The completion data of a write are 32 bits, as little as any provider carries. Of a packet: its place, times 2^16, and its length less
//! one. Of a credit: 2^31 and its place. Packets lie 64 KiB apart, [`SLOTS`] of them, then credits 64 bytes apart, [`CREDITS`] of them: at
//! most `SLOTS / EVERY` credits are under way, since each needs packets that were only sent after earlier credits came.

use super::seal::TAG;
use super::sys::Extent;
use super::{BUFFERS, EVERY, SLOT, SLOTS};

/// Places for credits.
pub(super) const CREDITS: usize = 8;

/// Packets of this side under way at once.
pub(super) const OUT: usize = 8;

/// From one credit to the next.
const APART: usize = 64;

const CREDIT: u32 = 1 << 31;

/// How big everything is.
pub(super) const EXTENT: Extent = Extent {
    ring: SLOTS * SLOT + CREDITS * APART,
    out: OUT * SLOT + CREDITS * APART,
    writes: OUT + CREDITS,
};

const _: () = assert!(CREDITS > SLOTS / EVERY && SLOT <= 1 << 16);
// Both halves, and the packet that is being opened.
const _: () = assert!((EXTENT.ring + EXTENT.out + SLOT) as u64 <= BUFFERS);

/// What the peer says by ringing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ring {
    /// A packet of so many bytes is at this place.
    Packet { place: usize, bytes: usize },
    /// A credit is at this place.
    Credit { place: usize },
}

impl Ring {
    pub(super) const fn encode(self) -> u32 {
        match self {
            Ring::Packet { place, bytes } => (place as u32) << 16 | (bytes as u32 - 1),
            Ring::Credit { place } => CREDIT | place as u32,
        }
    }

    /// `None` if it makes no sense: no such place, or not even a seal and a byte.
    pub(super) fn decode(data: u64) -> Option<Self> {
        let data = u32::try_from(data).ok()?;
        if data & CREDIT != 0 {
            let place = (data ^ CREDIT) as usize;
            return (place < CREDITS).then_some(Ring::Credit { place });
        }
        let (place, bytes) = ((data >> 16) as usize, (data & 0xffff) as usize + 1);
        (place < SLOTS && bytes > TAG && bytes <= SLOT).then_some(Ring::Packet { place, bytes })
    }
}

/// Where packet `number` lies in a ring.
pub(super) const fn packet(number: u64) -> usize {
    number as usize % SLOTS * SLOT
}

/// Where credit `number` lies in a ring.
pub(super) const fn credit(number: u64) -> usize {
    SLOTS * SLOT + number as usize % CREDITS * APART
}

/// From where credit `number` is written.
pub(super) const fn credit_out(number: u64) -> usize {
    OUT * SLOT + number as usize % CREDITS * APART
}

/// What has come, place by place, and was not taken yet. A peer that rings twice for a place lies.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    packets: [usize; SLOTS],
    credits: [bool; CREDITS],
}

impl Arrived {
    /// Notes what the peer rang for. `false`: it may not, as things are.
    pub(super) fn note(&mut self, ring: Ring) -> bool {
        match ring {
            Ring::Packet { place, bytes } => {
                std::mem::replace(&mut self.packets[place], bytes) == 0
            }
            Ring::Credit { place } => !std::mem::replace(&mut self.credits[place], true),
        }
    }

    /// Takes packet `number`: its length, if it is here.
    pub(super) fn take_packet(&mut self, number: u64) -> Option<usize> {
        let bytes = std::mem::take(&mut self.packets[number as usize % SLOTS]);
        (bytes > 0).then_some(bytes)
    }

    /// Takes credit `number`, if it is here.
    pub(super) fn take_credit(&mut self, number: u64) -> bool {
        std::mem::take(&mut self.credits[number as usize % CREDITS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_understood_is_what_was_rung() {
        for data in (0..1 << 22).chain((1 << 31) - 9..(1 << 31) + 99) {
            if let Some(ring) = Ring::decode(data) {
                assert_eq!(u64::from(ring.encode()), data);
            }
        }
        let last = Ring::Packet {
            place: SLOTS - 1,
            bytes: SLOT,
        };
        assert_eq!(Ring::decode(last.encode().into()), Some(last));
        let seal = Ring::Packet {
            place: 0,
            bytes: TAG,
        };
        for wrong in [
            seal.encode().into(),
            (SLOTS as u64) << 16 | 0xff,
            1 << 31 | CREDITS as u64,
            1 << 32,
            u64::MAX,
        ] {
            assert_eq!(Ring::decode(wrong), None, "{wrong:x}");
        }
    }

    #[test]
    fn a_place_is_rung_for_once_until_it_is_taken() {
        let mut arrived = Arrived::default();
        let packet = Ring::Packet {
            place: 1,
            bytes: 20,
        };
        assert!(arrived.note(packet) && !arrived.note(packet));
        assert_eq!(arrived.take_packet(SLOTS as u64 + 1), Some(20));
        assert_eq!(arrived.take_packet(1), None);
        assert!(arrived.note(packet));
        let credit = Ring::Credit { place: 3 };
        assert!(arrived.note(credit) && !arrived.note(credit));
        assert!(arrived.take_credit(3) && !arrived.take_credit(3) && arrived.note(credit));
    }
}
