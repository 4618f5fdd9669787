//! How a driver reaches a card: registers, memory that both see, and rings of descriptors.
//!
//! This is what a card on PCI Express gives: a window of registers, and an engine that moves data between the host's memory and the streams
//! of the card, told by descriptors in rings. The driver writes descriptors and rings a doorbell; the engine moves what they name, writes into
//! each how much it was, and counts those it is done with.

use crate::board::BoardError;

/// A stream of the card, with a ring of descriptors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stream {
    /// Programs, to the card.
    Program,
    /// Labels of inputs, to the card.
    Labels,
    /// Tables, from the card.
    Tables,
    /// Labels of inputs that the card made, from it.
    Made,
    /// Labels that leave, from the card.
    Leaves,
}

impl Stream {
    /// All of them.
    pub const ALL: [Stream; 5] = [
        Stream::Program,
        Stream::Labels,
        Stream::Tables,
        Stream::Made,
        Stream::Leaves,
    ];
}

/// Bytes of a descriptor in memory: LE64 address, LE32 bytes, LE32 flags.
pub const DESCRIPTOR: usize = 16;

/// Memory that a stream reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// Where it begins in the memory that both see.
    pub address: u64,
    /// How long it is; when the engine is done with it, how much of it has moved.
    pub bytes: u32,
    /// Whether a packet ends with it.
    pub last: bool,
}

impl Descriptor {
    /// As it is in memory.
    pub fn to_bytes(self) -> [u8; DESCRIPTOR] {
        let mut bytes = [0; DESCRIPTOR];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12..].copy_from_slice(&u32::from(self.last).to_le_bytes());
        bytes
    }

    /// From memory.
    pub fn from_bytes(bytes: &[u8; DESCRIPTOR]) -> Self {
        let [low, high] = [0, 8].map(|at| {
            let half = bytes[at..at + 8].try_into().expect("half of 16 bytes is 8");
            u64::from_le_bytes(half)
        });
        Descriptor {
            address: low,
            bytes: high as u32,
            last: high >> 32 & 1 == 1,
        }
    }
}

/// A card.
///
/// A card that is gone answers nothing any more: whatever is asked of it has the same [`BoardError`], at once. Simulated cards of this process are never gone.
pub trait Transport: Send {
    /// Name of the kind, for reports.
    fn name(&self) -> &'static str;

    /// Reads a register.
    ///
    /// # Errors
    /// [`BoardError`] if the card is gone.
    fn read(&mut self, register: u32) -> Result<u32, BoardError>;

    /// Writes a register. The write may be under way still when this returns; it takes effect before whatever is asked next.
    ///
    /// # Errors
    /// [`BoardError`] if the card is gone.
    fn write(&mut self, register: u32, value: u32) -> Result<(), BoardError>;

    /// The memory that both see.
    fn memory(&mut self) -> &mut [u8];

    /// Says where the descriptors of a stream are, and how many there are, and starts to count them from 0.
    ///
    /// # Errors
    /// [`BoardError`] if the card is gone.
    fn place(&mut self, stream: Stream, address: u64, descriptors: u32) -> Result<(), BoardError>;

    /// The doorbell: descriptors up to this count are there for the engine.
    ///
    /// # Errors
    /// [`BoardError`] if the card is gone.
    fn doorbell(&mut self, stream: Stream, tail: u32) -> Result<(), BoardError>;

    /// How many descriptors the engine is done with: no more than it was given.
    fn head(&mut self, stream: Stream) -> u32;

    /// Waits until something has moved or the interrupt is high. `false`: neither came in all the time that a card may take.
    ///
    /// # Errors
    /// [`BoardError`] if the card is gone.
    fn wait(&mut self) -> Result<bool, BoardError>;

    /// Something else begins, or bytes have come that were waited for: the time that the card may take begins anew. A card that is asked again and
    /// again, and gets no further, is gone when that time is over.
    fn anew(&mut self) {}
}
