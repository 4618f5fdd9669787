//! The host's end of a connection with a board: what drivers take for a card.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use zeroize::{Zeroize, Zeroizing};

use super::wire::{Answer, MEMORY, RANGES, Range, Request, Wire};
use super::{BOARD, BoardError, BoardFault, Identity, Patience, VERSION, socket};
use crate::driver::{CardError, Garbler};
use crate::share::Cores;
use crate::share::port::{GIVEN, MADE, Order, Port, Ran, Said};
use crate::transport::{Stream, Transport};

/// How long a host leaves a board alone whose cards are all in use.
const REST: Duration = Duration::from_millis(10);

/// A card of a board that is a process of its own.
///
/// One connection is one card: the garbler and the cores of shares that it has are for this host alone until the last of their drivers is dropped.
#[derive(Clone)]
pub struct Board(Arc<Mutex<Line>>);

pub(super) struct Line {
    wire: Wire,
    socket: PathBuf,
    patience: Patience,
    identity: Identity,
    /// When what goes on began, or got further.
    pub(super) since: Instant,
    /// Why there is no board any more.
    lost: Option<BoardError>,
}

impl Board {
    /// Connects to the board behind a socket. While all its cards are in use, this asks again.
    ///
    /// # Errors
    /// [`BoardError`] if no process of this user listens there, if it is no board or one of another version, or if it is silent, or has no free
    /// card, for as long as `patience` has for the greeting.
    pub fn connect(socket: &Path, patience: Patience) -> Result<Self, BoardError> {
        let until = Instant::now() + patience.greeting;
        let mut busy = None;
        loop {
            let met = meet(socket, patience, until).map_err(|fault| match (fault, busy) {
                // The last answer came too late.
                (BoardFault::Late { .. }, Some(cards)) => BoardFault::Busy { cards },
                (fault, _) => fault,
            });
            match met.map_err(|fault| BoardError::new(socket, fault))? {
                Ok((wire, identity)) => {
                    return Ok(Board(Arc::new(Mutex::new(Line {
                        wire,
                        socket: socket.to_owned(),
                        patience,
                        identity,
                        since: Instant::now(),
                        lost: None,
                    }))));
                }
                Err(cards) => {
                    busy = Some(cards);
                    thread::sleep(REST);
                }
            }
        }
    }

    /// What it says that it is.
    pub fn identity(&self) -> Identity {
        self.lock().identity.clone()
    }

    /// Its garbler, taken into use.
    ///
    /// # Errors
    /// [`BoardFault::Kind`] if it has none, else [`CardError`] as of [`Garbler::open`].
    pub fn garbler(&self) -> Result<Garbler, CardError> {
        self.has("with a garbler", |identity| identity.kind.garbles())?;
        Garbler::open(Box::new(Card {
            board: self.clone(),
            memory: Zeroizing::new(vec![0; MEMORY]),
            heads: [0; 5],
            tails: [0; 5],
        }))
    }

    /// Its cores of shares.
    ///
    /// # Errors
    /// [`BoardFault::Kind`] if it has none.
    pub fn cores(&self) -> Result<Cores, BoardError> {
        self.has("with cores of shares", |identity| identity.kind.shares())?;
        let port = |core| -> Box<dyn Port> {
            Box::new(Core {
                board: self.clone(),
                core,
            })
        };
        Ok(Cores::with([port(0), port(1), port(2)]))
    }

    pub(super) fn has(
        &self,
        wanted: &'static str,
        has: impl Fn(&Identity) -> bool,
    ) -> Result<(), BoardError> {
        let line = self.lock();
        if has(&line.identity) {
            return Ok(());
        }
        let got = line.identity.kind;
        Err(BoardError::new(
            &line.socket,
            BoardFault::Kind { wanted, got },
        ))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Greets the board behind a socket. Gives the connection, or how many cards it has if all are in use.
fn meet(
    path: &Path,
    patience: Patience,
    until: Instant,
) -> Result<Result<(Wire, Identity), u32>, BoardFault> {
    let stream = UnixStream::connect(path).map_err(|error| BoardFault::Absent {
        why: error.to_string(),
    })?;
    socket::same_user(&stream)?;
    let stop = |stop: super::wire::Stop| stop.fault("the greeting", patience.greeting);
    let mut wire = Wire::new(stream);
    wire.greet(VERSION, MEMORY as u32, until).map_err(stop)?;
    let Some([theirs, in_use]) = wire.greeted(until).map_err(stop)? else {
        return Err(BoardFault::NoBoard);
    };
    if theirs != VERSION {
        return Err(BoardFault::Version { theirs });
    }
    if in_use > 0 {
        return Ok(Err(in_use));
    }
    let (identity, _) = wire.receive::<Identity>(until).map_err(stop)?;
    Ok(Ok((wire, identity)))
}

impl Line {
    /// Tells the board something that is not answered.
    fn tell(&mut self, what: &'static str, request: &Request) -> Result<(), BoardError> {
        self.post(what, request, &[])
    }

    /// The same, with a payload.
    pub(super) fn post(
        &mut self,
        what: &'static str,
        request: &Request,
        payload: &[u8],
    ) -> Result<(), BoardError> {
        self.through(what, |line, until| {
            let sent = line.wire.post(request, payload, until);
            sent.map_err(|stop| stop.fault(what, line.patience.answer))
        })
    }

    /// Asks the board something, and takes the next answer.
    pub(super) fn ask(
        &mut self,
        what: &'static str,
        request: &Request,
        payload: &[u8],
    ) -> Result<(Answer, Zeroizing<Vec<u8>>), BoardError> {
        self.through(what, |line, until| {
            let sent = line.wire.send(request, payload, until);
            let answer = sent.and_then(|()| line.wire.receive(until));
            answer.map_err(|stop| stop.fault(what, line.patience.answer))
        })
    }

    /// The next answer to what was asked before.
    fn next(&mut self, what: &'static str) -> Result<(Answer, Zeroizing<Vec<u8>>), BoardError> {
        self.through(what, |line, until| {
            let answer = line.wire.receive(until);
            answer.map_err(|stop| stop.fault(what, line.patience.answer))
        })
    }

    /// Does something with the connection, unless the board is gone; it is, when that fails.
    fn through<T>(
        &mut self,
        what: &'static str,
        f: impl FnOnce(&mut Self, Instant) -> Result<T, BoardFault>,
    ) -> Result<T, BoardError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let until = self.since + self.patience.answer;
        let done = if Instant::now() < until {
            f(self, until)
        } else {
            Err(BoardFault::Late {
                what,
                seconds: self.patience.answer.as_secs(),
            })
        };
        done.map_err(|fault| self.lose(fault))
    }

    /// There is no board any more.
    pub(super) fn lose(&mut self, fault: BoardFault) -> BoardError {
        let error = BoardError::new(&self.socket, fault);
        self.lost.get_or_insert(error).clone()
    }

    pub(super) fn unexpected(&mut self, what: &'static str) -> BoardError {
        self.lose(BoardFault::Unexpected { what })
    }
}

/// The garbler of a board.
struct Card {
    board: Board,
    memory: Zeroizing<Vec<u8>>,
    /// Descriptors of each stream that the engine is done with.
    heads: [u32; 5],
    /// Those that it was given.
    tails: [u32; 5],
}

impl Card {
    /// Ranges of memory that the engine names, if all of them are there.
    fn ranges(&self, ranges: &[Range]) -> Result<Vec<std::ops::Range<usize>>, BoardFault> {
        if ranges.len() > RANGES {
            return Err(BoardFault::Garbled);
        }
        let within = |range: &Range| {
            range.within(self.memory.len()).ok_or(BoardFault::Memory {
                address: range.address,
                bytes: range.bytes.into(),
                memory: self.memory.len() as u64,
            })
        };
        ranges.iter().map(within).collect()
    }

    /// What the engine reads.
    fn fetched(&self, ranges: &[Range]) -> Result<Zeroizing<Vec<u8>>, BoardFault> {
        let mut bytes = Zeroizing::new(Vec::new());
        for range in self.ranges(ranges)? {
            bytes.extend_from_slice(&self.memory[range]);
        }
        Ok(bytes)
    }

    /// Writes what the engine writes.
    fn delivered(&mut self, ranges: &[Range], payload: &[u8]) -> Result<(), BoardFault> {
        let ranges = self.ranges(ranges)?;
        let expected: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        if expected != payload.len() {
            return Err(BoardFault::Amount {
                what: "memory",
                got: payload.len() as u64,
                expected: expected as u64,
            });
        }
        let mut left = payload;
        for range in ranges {
            let (bytes, rest) = left.split_at(range.len());
            self.memory[range].copy_from_slice(bytes);
            left = rest;
        }
        Ok(())
    }

    /// Takes the counts of descriptors. None goes back, and none is of more than there are.
    fn count(&mut self, heads: [u32; 5]) -> Result<(), BoardFault> {
        for (stream, head) in (0..).zip(heads) {
            let at = usize::from(stream);
            let (before, tail) = (self.heads[at], self.tails[at]);
            if head.wrapping_sub(before) > tail.wrapping_sub(before) {
                return Err(BoardFault::Descriptors { stream, head, tail });
            }
        }
        self.heads = heads;
        Ok(())
    }
}

impl Transport for Card {
    fn name(&self) -> &'static str {
        BOARD
    }

    fn read(&mut self, register: u32) -> Result<u32, BoardError> {
        let what = "a read of a register";
        let mut line = self.board.lock();
        match line.ask(what, &Request::Read(register), &[])? {
            (Answer::Value(value), _) => Ok(value),
            _ => Err(line.unexpected(what)),
        }
    }

    fn write(&mut self, register: u32, value: u32) -> Result<(), BoardError> {
        let mut line = self.board.lock();
        line.tell("a write of a register", &Request::Write(register, value))
    }

    fn memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    fn place(&mut self, stream: Stream, address: u64, descriptors: u32) -> Result<(), BoardError> {
        let at = stream as usize;
        (self.heads[at], self.tails[at]) = (0, 0);
        let request = Request::Place {
            stream: stream as u8,
            address,
            descriptors,
        };
        self.board.lock().tell("the place of a ring", &request)
    }

    fn doorbell(&mut self, stream: Stream, tail: u32) -> Result<(), BoardError> {
        self.tails[stream as usize] = tail;
        let stream = stream as u8;
        let request = Request::Doorbell { stream, tail };
        self.board.lock().tell("a doorbell", &request)
    }

    fn head(&mut self, stream: Stream) -> u32 {
        self.heads[stream as usize]
    }

    fn wait(&mut self) -> Result<bool, BoardError> {
        let what = "its streams";
        let board = self.board.clone();
        let mut line = board.lock();
        let mut answer = line.ask(what, &Request::Wait, &[])?;
        loop {
            answer = match answer {
                (Answer::Fetch(ranges), _) => {
                    let bytes = self.fetched(&ranges).map_err(|fault| line.lose(fault))?;
                    line.ask(what, &Request::Fetched, &bytes)?
                }
                (Answer::Deliver(ranges), payload) => {
                    let there = self.delivered(&ranges, &payload);
                    there.map_err(|fault| line.lose(fault))?;
                    line.next(what)?
                }
                (Answer::Waited { moved, heads }, _) => {
                    self.count(heads).map_err(|fault| line.lose(fault))?;
                    return Ok(moved);
                }
                _ => return Err(line.unexpected(what)),
            }
        }
    }

    fn anew(&mut self) {
        self.board.lock().since = Instant::now();
    }
}

/// A core of shares of a board.
struct Core {
    board: Board,
    core: u8,
}

impl Port for Core {
    fn name(&self) -> &'static str {
        BOARD
    }

    fn order(&mut self, order: &Order) -> Result<Said, CardError> {
        let what = "an order to a core of shares";
        let mut line = self.board.lock();
        line.since = Instant::now();
        match line.ask(what, &Request::Order(self.core, order.clone()), &[])? {
            (Answer::Said(said), _) => Ok(said),
            _ => Err(line.unexpected(what).into()),
        }
    }

    fn run(&mut self, given: &[&[u8]], made: &mut [&mut [u8]]) -> Result<Ran, CardError> {
        let what = "a run of a core of shares";
        let mut lengths = ([0; GIVEN], [0; MADE]);
        let mut payload = Zeroizing::new(Vec::new());
        payload.reserve(given.iter().map(|bytes| bytes.len()).sum());
        for (length, bytes) in lengths.0.iter_mut().zip(given) {
            *length = bytes.len() as u32;
            payload.extend_from_slice(bytes);
        }
        for (length, bytes) in lengths.1.iter_mut().zip(&*made) {
            *length = bytes.len() as u32;
        }
        let request = Request::Run {
            core: self.core,
            given: lengths.0,
            made: lengths.1,
        };
        let mut line = self.board.lock();
        line.since = Instant::now();
        let answer = line.ask(what, &request, &payload)?;
        let (Answer::Ran { cycles, moved }, mut payload) = answer else {
            return Err(line.unexpected(what).into());
        };
        let expected: usize = made.iter().map(|bytes| bytes.len()).sum();
        if payload.len() != expected {
            let fault = BoardFault::Amount {
                what: "streams",
                got: payload.len() as u64,
                expected: expected as u64,
            };
            return Err(line.lose(fault).into());
        }
        let mut left = &payload[..];
        for bytes in made {
            let (own, rest) = left.split_at(bytes.len());
            bytes.copy_from_slice(own);
            left = rest;
        }
        payload.zeroize();
        Ok(Ran { cycles, moved })
    }
}

/// Takes arbitrary bytes as the answers of a board, and as the requests of a host. For the fuzz target `board`.
#[doc(hidden)]
pub fn fuzz_messages(bytes: &[u8]) {
    // As much as a socket holds while it is not read.
    let bytes = &bytes[..bytes.len().min(1 << 16)];
    let sent = || {
        let (own, mut other) = UnixStream::pair().ok()?;
        std::io::Write::write_all(&mut other, bytes).ok()?;
        other.shutdown(std::net::Shutdown::Write).ok()?;
        Some((own, other))
    };
    let patience = Patience {
        greeting: Duration::from_secs(1),
        answer: Duration::from_secs(1),
    };
    if let Some((own, _other)) = sent() {
        let mut wire = Wire::new(own);
        let until = Instant::now() + patience.greeting;
        while wire.receive::<Request>(until).is_ok() {}
    }
    let Some((own, mut other)) = sent() else {
        return;
    };
    let line = Line {
        wire: Wire::new(own),
        socket: PathBuf::new(),
        patience,
        identity: Identity {
            kind: super::Kind::Both,
            build: String::new(),
            clock_khz: 0,
            registers: None,
            node: None,
        },
        since: Instant::now(),
        lost: None,
    };
    let mut card = Card {
        board: Board(Arc::new(Mutex::new(line))),
        memory: Zeroizing::new(vec![0; MEMORY]),
        heads: [0; 5],
        tails: [4; 5],
    };
    thread::scope(|scope| {
        scope.spawn(|| std::io::copy(&mut other, &mut std::io::sink()));
        while card.wait().is_ok() && card.read(0).is_ok() {}
        drop(card);
    });
}
