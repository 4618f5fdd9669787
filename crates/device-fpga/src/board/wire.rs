//! Greetings and messages of a connection between a host and a board.
//!
//! A greeting has a fixed form, which no version changes. A message is LE32 bytes of its head, LE32 bytes of its payload, the head by postcard,
//! the payload as it is.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::BoardFault;
use crate::share::port::{GIVEN, MADE, Order, Said};

/// What a greeting begins with.
const MAGIC: [u8; 8] = *b"veil-brd";

/// Bytes of a greeting: magic, LE32 version, LE32 number.
const GREETING: usize = 16;

/// Bytes of a head at most: a run's heads of five streams, or a list of as many ranges as rings have descriptors, are some hundred.
const HEAD: usize = 4 << 10;

/// Bytes of a payload at most: operands of a chunk of cores of shares are some MiB.
pub(super) const PAYLOAD: usize = 64 << 20;

/// Bytes of requests that wait for the next flush, at most.
const WAITING: usize = 16 << 10;

/// Ranges of memory in a message, at most.
pub(super) const RANGES: usize = 64;

/// Bytes of memory that both see: a few times what a driver keeps on its way.
pub(super) const MEMORY: usize = 1 << 20;

/// A range of the host's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Range {
    pub(super) address: u64,
    pub(super) bytes: u32,
}

impl Range {
    /// As indices of memory of so many bytes, if all of it is there.
    pub(super) fn within(self, memory: usize) -> Option<std::ops::Range<usize>> {
        let end = self.address.checked_add(self.bytes.into())?;
        (end <= memory as u64).then_some(self.address as usize..end as usize)
    }
}

/// What a host tells a board.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// Read a register: [`Answer::Value`].
    Read(u32),
    /// Write a register. Not answered.
    Write(u32, u32),
    /// Descriptors of a stream are here. Not answered.
    Place {
        stream: u8,
        address: u64,
        descriptors: u32,
    },
    /// Descriptors of a stream up to this count are there. Not answered.
    Doorbell { stream: u8, tail: u32 },
    /// Wait until something has moved: [`Answer::Fetch`] and [`Answer::Deliver`], then [`Answer::Waited`].
    Wait,
    /// What was to be fetched, as payload.
    Fetched,
    /// An order for a core of shares: [`Answer::Said`].
    Order(u8, Order),
    /// Run a core of shares on streams, which are the payload, and make streams of these lengths: [`Answer::Ran`].
    Run {
        core: u8,
        given: [u32; GIVEN],
        made: [u32; MADE],
    },
    /// Write a register of a node: [`Answer::Done`].
    Set(u32, u32),
    /// Queue the command that is the payload. Not answered.
    Command,
    /// Give the next completion, if there is one: [`Answer::Completion`].
    Completion,
    /// Wait until there is a completion: [`Answer::Done`].
    Pause,
    /// Read the node's memory: [`Answer::Done`], with the bytes as payload.
    Load { address: u64, bytes: u32 },
    /// Write the payload to the node's memory: [`Answer::Done`].
    Store { address: u64 },
    /// Say how far the network is: [`Answer::Meters`].
    Meters,
}

/// What a board tells its host.
#[derive(Serialize, Deserialize)]
pub(super) enum Answer {
    /// The value of a register.
    Value(u32),
    /// The engine reads memory: [`Request::Fetched`].
    Fetch(Vec<Range>),
    /// The engine writes memory; the payload is written there.
    Deliver(Vec<Range>),
    /// Whether something has moved or the interrupt is high, and how many descriptors of each stream the engine is done with.
    Waited { moved: bool, heads: [u32; 5] },
    /// What a core says.
    Said(Said),
    /// What became of streams: cycles, bytes that moved of each stream that was made; the payload is those streams, at their full lengths.
    Ran { cycles: u64, moved: [u64; MADE] },
    /// Whether it was done, or is there.
    Done(bool),
    /// A completion, LE128.
    Completion(Option<[u8; 16]>),
    /// Cycles of the network, and words that the node has sent.
    Meters { cycle: u64, sent: u64 },
}

/// One end of a connection.
pub(super) struct Wire {
    stream: UnixStream,
    /// Messages that wait for the next flush: registers' writes and doorbells need no journey each. They may hold secrets.
    waiting: Zeroizing<Vec<u8>>,
}

impl Wire {
    pub(super) fn new(stream: UnixStream) -> Self {
        Wire {
            stream,
            waiting: Zeroizing::new(Vec::with_capacity(2 * WAITING)),
        }
    }

    /// Sends a greeting.
    pub(super) fn greet(&mut self, version: u32, number: u32, until: Instant) -> Result<(), Stop> {
        let mut greeting = [0; GREETING];
        greeting[..8].copy_from_slice(&MAGIC);
        greeting[8..12].copy_from_slice(&version.to_le_bytes());
        greeting[12..].copy_from_slice(&number.to_le_bytes());
        self.write(&greeting, until)
    }

    /// The version and the number of the other end's greeting; none if it is no greeting.
    pub(super) fn greeted(&mut self, until: Instant) -> Result<Option<[u32; 2]>, Stop> {
        let mut greeting = [0; GREETING];
        self.read(&mut greeting, until)?;
        let (magic, numbers) = greeting.split_at(8);
        let (numbers, _) = numbers.as_chunks::<4>();
        match numbers {
            [version, number] if magic == MAGIC => Ok(Some(
                [version, number].map(|bytes| u32::from_le_bytes(*bytes)),
            )),
            _ => Ok(None),
        }
    }

    /// Leaves a message for the next flush.
    pub(super) fn post(
        &mut self,
        head: &impl Serialize,
        payload: &[u8],
        until: Instant,
    ) -> Result<(), Stop> {
        let head = Zeroizing::new(postcard::to_allocvec(head).map_err(|_| Stop::Garbled)?);
        for bytes in [head.len(), payload.len()] {
            self.waiting
                .extend_from_slice(&(bytes as u32).to_le_bytes());
        }
        self.waiting.extend_from_slice(&head);
        if self.waiting.len() + payload.len() <= WAITING {
            self.waiting.extend_from_slice(payload);
            return Ok(());
        }
        self.flush(until)?;
        self.write(payload, until)
    }

    /// Sends all that waits.
    pub(super) fn flush(&mut self, until: Instant) -> Result<(), Stop> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let sent = self.write(&waiting, until);
        // What was sent holds keys: wiped, and the room is used again.
        zeroize::Zeroize::zeroize(&mut waiting[..]);
        waiting.clear();
        self.waiting = waiting;
        sent
    }

    /// Sends a message.
    pub(super) fn send(
        &mut self,
        head: &impl Serialize,
        payload: &[u8],
        until: Instant,
    ) -> Result<(), Stop> {
        self.post(head, payload, until)?;
        self.flush(until)
    }

    /// The next message.
    pub(super) fn receive<T: DeserializeOwned>(
        &mut self,
        until: Instant,
    ) -> Result<(T, Zeroizing<Vec<u8>>), Stop> {
        let mut lengths = [0; 8];
        self.read(&mut lengths, until)?;
        let [head, payload] = [0, 4].map(|at| {
            let bytes = lengths[at..at + 4]
                .try_into()
                .expect("half of 8 bytes is 4");
            u32::from_le_bytes(bytes) as usize
        });
        let head = self.bytes(head, HEAD, until)?;
        let payload = self.bytes(payload, PAYLOAD, until)?;
        // All of a head is one message: what is left over belongs to none.
        match postcard::take_from_bytes(&head) {
            Ok((message, [])) => Ok((message, payload)),
            _ => Err(Stop::Garbled),
        }
    }

    /// Waits for the first byte of a message, for as long as it takes. `false`: the connection was closed.
    pub(super) fn is_next(&mut self) -> bool {
        let set = self.stream.set_read_timeout(None);
        let mut first = [0];
        set.is_ok() && matches!(rustix_peek(&self.stream, &mut first), Ok(1))
    }

    /// So many bytes, which are as long as announced and no longer than `most`; memory is taken as they come.
    fn bytes(
        &mut self,
        bytes: usize,
        most: usize,
        until: Instant,
    ) -> Result<Zeroizing<Vec<u8>>, Stop> {
        if bytes > most {
            return Err(Stop::TooLong {
                bytes: bytes as u64,
                most: most as u64,
            });
        }
        let mut all = Zeroizing::new(Vec::new());
        while all.len() < bytes {
            let (from, more) = (all.len(), (bytes - all.len()).min(1 << 20));
            all.resize(from + more, 0);
            self.read(&mut all[from..], until)?;
        }
        Ok(all)
    }

    fn read(&mut self, mut into: &mut [u8], until: Instant) -> Result<(), Stop> {
        while !into.is_empty() {
            self.stream.set_read_timeout(Some(left(until)?))?;
            match self.stream.read(into) {
                Ok(0) => return Err(Stop::Closed),
                Ok(count) => into = &mut into[count..],
                Err(error) => again(&error)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, mut from: &[u8], until: Instant) -> Result<(), Stop> {
        while !from.is_empty() {
            self.stream.set_write_timeout(Some(left(until)?))?;
            match self.stream.write(from) {
                Ok(0) => return Err(Stop::Closed),
                Ok(count) => from = &from[count..],
                Err(error) => again(&error)?,
            }
        }
        Ok(())
    }
}

/// The first byte of what comes next, which stays there.
fn rustix_peek(stream: &UnixStream, first: &mut [u8; 1]) -> rustix::io::Result<usize> {
    let flags = rustix::net::RecvFlags::PEEK;
    loop {
        match rustix::net::recv(stream, &mut first[..], flags) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(|(count, _)| count),
        }
    }
}

/// The time that is left.
fn left(until: Instant) -> Result<Duration, Stop> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Stop::Late);
    }
    Ok(left)
}

/// Whether what did not work is tried again until the time is over.
fn again(error: &std::io::Error) -> Result<(), Stop> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(()),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
            Err(Stop::Closed)
        }
        _ => Err(Stop::Failed(error.to_string())),
    }
}

/// Why a connection ends.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Stop {
    /// Nothing came in time.
    #[error("it was silent for too long")]
    Late,
    /// The other end closed it.
    #[error("it closed the connection")]
    Closed,
    /// Bytes that are no message.
    #[error("it sent bytes that are no message")]
    Garbled,
    /// A message that is longer than any.
    #[error("it announced a message of {bytes} bytes; {most} are the most")]
    TooLong {
        /// Announced bytes.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// The operating system says so.
    #[error("the connection fails: {0}")]
    Failed(String),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Stop::Failed(error.to_string())
    }
}

impl Stop {
    /// The same as the host says it, which waited for `what`, for `patience` at most.
    pub(super) fn fault(self, what: &'static str, patience: Duration) -> BoardFault {
        match self {
            Stop::Late => BoardFault::Late {
                what,
                seconds: patience.as_secs(),
            },
            Stop::Closed => BoardFault::Gone { what },
            Stop::Garbled => BoardFault::Garbled,
            Stop::TooLong { bytes, most } => BoardFault::TooLong { bytes, most },
            Stop::Failed(why) => BoardFault::Connection { why },
        }
    }
}
