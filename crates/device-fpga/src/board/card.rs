//! A garbler behind a socket: its registers, and the engine that moves data between the host's memory and its streams.

use zeroize::{Zeroize, Zeroizing};

use super::serve::{Wrong, until};
use super::wire::{Answer, RANGES, Range, Request, Wire};
use crate::abi;
use crate::transport::{DESCRIPTOR, Descriptor, Stream, Transport};

/// Descriptors of a ring, at most: those of all rings fit into one message.
const DESCRIPTORS: u32 = (RANGES / (2 * Stream::ALL.len())) as u32;

/// How often a card is waited for until it has ended a scrub.
const WAITS: u32 = 1 << 10;

/// A ring, as the engine knows it.
#[derive(Clone, Copy, Default)]
struct Ring {
    address: u64,
    descriptors: u32,
    /// Descriptors that the client has given.
    tail: u32,
    /// Those that were fetched.
    fetched: u32,
    /// Those that are done, of which the client was told.
    head: u32,
}

impl Ring {
    /// Where a descriptor is.
    fn descriptor(&self, number: u32) -> Range {
        Range {
            address: self.address + u64::from(number % self.descriptors) * DESCRIPTOR as u64,
            bytes: DESCRIPTOR as u32,
        }
    }
}

/// A garbler for a client.
///
/// The card has a memory of its own, with everything at the addresses that it has in the client's: what descriptors name is fetched when they are new,
/// and delivered when they are done.
pub(super) struct Garbles {
    card: Box<dyn Transport>,
    rings: [Ring; 5],
}

impl Garbles {
    pub(super) fn new(card: Box<dyn Transport>) -> Self {
        Garbles {
            card,
            rings: [Ring::default(); 5],
        }
    }

    /// Does what a client asks for.
    pub(super) fn does(&mut self, request: &Request, wire: &mut Wire) -> Result<(), Wrong> {
        let gone = |_| Wrong::Order("a card that is gone");
        match *request {
            Request::Read(register) => {
                let value = self.card.read(register).map_err(gone)?;
                Ok(wire.send(&Answer::Value(value), &[], until())?)
            }
            Request::Write(register, value) => self.card.write(register, value).map_err(gone),
            Request::Place {
                stream,
                address,
                descriptors,
            } => self.place(stream, address, descriptors),
            Request::Doorbell { stream, tail } => self.doorbell(stream, tail),
            Request::Wait => self.wait(wire),
            _ => Err(Wrong::Order("cores that this board does not have")),
        }
    }

    fn place(&mut self, stream: u8, address: u64, descriptors: u32) -> Result<(), Wrong> {
        let at = usize::from(stream);
        let (Some(ring), Some(stream)) = (self.rings.get_mut(at), Stream::ALL.get(at)) else {
            return Err(Wrong::Order("a stream that is not there"));
        };
        let all = Range {
            address,
            bytes: descriptors.saturating_mul(DESCRIPTOR as u32),
        };
        let there = all.within(self.card.memory().len()).is_some();
        if !there || !(1..=DESCRIPTORS).contains(&descriptors) {
            return Err(Wrong::Order(
                "a ring that is too long, or outside of memory",
            ));
        }
        let before = std::mem::replace(
            ring,
            Ring {
                address,
                descriptors,
                ..Ring::default()
            },
        );
        // What lies in memory of descriptors that are done no more.
        let mut number = before.head;
        while number != before.fetched {
            let named = self.named(before.descriptor(number))?;
            let memory = self.card.memory();
            if let Some(range) = named.within(memory.len()) {
                memory[range].zeroize();
            }
            number = number.wrapping_add(1);
        }
        let placed = self.card.place(*stream, address, descriptors);
        placed.map_err(|_| Wrong::Order("a card that is gone"))
    }

    fn doorbell(&mut self, stream: u8, tail: u32) -> Result<(), Wrong> {
        let Some(ring) = self.rings.get_mut(usize::from(stream)) else {
            return Err(Wrong::Order("a stream that is not there"));
        };
        let [before, after] = [ring.tail, tail].map(|tail| tail.wrapping_sub(ring.head));
        if after < before || after > ring.descriptors {
            return Err(Wrong::Order("more descriptors than a ring has"));
        }
        ring.tail = tail;
        Ok(())
    }

    /// Fetches what is new, lets time go on until something has moved, and delivers what is done.
    fn wait(&mut self, wire: &mut Wire) -> Result<(), Wrong> {
        let mut new = Vec::new();
        for (stream, ring) in Stream::ALL.into_iter().zip(&mut self.rings) {
            while ring.fetched != ring.tail {
                new.push((stream, ring.descriptor(ring.fetched)));
                ring.fetched = ring.fetched.wrapping_add(1);
            }
        }
        if !new.is_empty() {
            let ranges = new.iter().map(|(_, range)| *range).collect();
            self.fetch(ranges, wire)?;
            let mut ranges = Vec::new();
            for (stream, at) in &new {
                let named = self.named(*at)?;
                if to_card(*stream) && named.bytes > 0 {
                    ranges.push(named);
                }
            }
            if !ranges.is_empty() {
                self.fetch(ranges, wire)?;
            }
            for (stream, ring) in Stream::ALL.into_iter().zip(self.rings) {
                let rung = self.card.doorbell(stream, ring.tail);
                rung.map_err(|_| Wrong::Order("a card that is gone"))?;
            }
        }
        let moved = self.card.wait();
        let moved = moved.map_err(|_| Wrong::Order("a card that is gone"))?;
        self.deliver(wire)?;
        let heads = self.rings.map(|ring| ring.head);
        Ok(wire.send(&Answer::Waited { moved, heads }, &[], until())?)
    }

    /// What a descriptor names, which is in memory.
    fn named(&mut self, at: Range) -> Result<Range, Wrong> {
        let descriptor = self.descriptor(at);
        let named = Range {
            address: descriptor.address,
            bytes: descriptor.bytes,
        };
        named
            .within(self.card.memory().len())
            .map(|_| named)
            .ok_or(Wrong::Order("memory that it has not registered"))
    }

    fn descriptor(&mut self, at: Range) -> Descriptor {
        let memory = self.card.memory();
        let bytes = at
            .within(memory.len())
            .and_then(|range| memory[range].first_chunk());
        Descriptor::from_bytes(bytes.unwrap_or(&[0; DESCRIPTOR]))
    }

    /// Takes ranges of the client's memory.
    fn fetch(&mut self, ranges: Vec<Range>, wire: &mut Wire) -> Result<(), Wrong> {
        let answer = Answer::Fetch(ranges);
        wire.send(&answer, &[], until())?;
        let (Request::Fetched, payload) = wire.receive(until())? else {
            return Err(Wrong::unexpected());
        };
        let Answer::Fetch(ranges) = answer else {
            return Err(Wrong::unexpected());
        };
        let mut left = &payload[..];
        let memory = self.card.memory();
        for range in ranges {
            let there = range.within(memory.len());
            let bytes = left.split_at_checked(range.bytes as usize);
            let (Some(there), Some((bytes, rest))) = (there, bytes) else {
                return Err(Wrong::Order("fewer bytes than the engine fetches"));
            };
            memory[there].copy_from_slice(bytes);
            left = rest;
        }
        if left.is_empty() {
            return Ok(());
        }
        Err(Wrong::Order("more bytes than the engine fetches"))
    }

    /// Gives the client what is done: descriptors, and what came from the card. The card's memory forgets it.
    fn deliver(&mut self, wire: &mut Wire) -> Result<(), Wrong> {
        let mut ranges = Vec::new();
        let mut payload = Zeroizing::new(Vec::new());
        for stream in Stream::ALL {
            let head = self.card.head(stream);
            let at = stream as usize;
            while self.rings[at].head != head {
                let range = self.rings[at].descriptor(self.rings[at].head);
                let named = self.named(range)?;
                let mut done = vec![range];
                if !to_card(stream) {
                    done.push(named);
                }
                let memory = self.card.memory();
                for range in &done {
                    let bytes = range.within(memory.len()).map(|range| &memory[range]);
                    payload.extend_from_slice(bytes.unwrap_or_default());
                }
                ranges.extend(done);
                if let Some(range) = named.within(memory.len()) {
                    memory[range].zeroize();
                }
                self.rings[at].head = self.rings[at].head.wrapping_add(1);
            }
        }
        if ranges.is_empty() {
            return Ok(());
        }
        Ok(wire.post(&Answer::Deliver(ranges), &payload, until())?)
    }

    /// Wipes the card, when its client is gone.
    pub(super) fn scrub(&mut self) {
        self.card.memory().zeroize();
        let begun = self.card.write(abi::CONTROL, abi::CONTROL_SCRUB);
        for _ in 0..WAITS {
            let status = self.card.read(abi::STATUS);
            if begun.is_err() || !matches!(status, Ok(bits) if bits & abi::STATUS_SCRUBS != 0) {
                break;
            }
            let _ = self.card.wait();
        }
    }
}

/// Whether a stream goes to the card.
fn to_card(stream: Stream) -> bool {
    matches!(stream, Stream::Program | Stream::Labels)
}
