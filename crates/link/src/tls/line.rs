//! One connection of a link at work: frames into TLS into the socket, and back.

use std::collections::VecDeque;
use std::io::{self, BufRead, IoSlice};
use std::net::TcpStream;

use rustix::net::{RecvFlags, recv};
use rustls::Connection;
use veil_session::{Channel, Peer};

use super::Connected;
use super::socket::Quiet;
use crate::frame::{self, Body, HEADER, Header};
use crate::inbox::{Admit, Inbox};
use crate::pool::Pool;
use crate::{Bounds, LinkError, LinkFault};

/// Bytes taken from the socket per call: sixteen TLS records; more would leave the second-level cache.
const RECEIVE: usize = 256 * 1024;

/// Encrypted bytes that wait for the socket at most: enough for one long vectored write.
const WIRE: usize = 256 * 1024;

/// A message of at least one TLS record goes into TLS at once; shorter ones wait to share records.
const RECORD: usize = 16 * 1024;

/// Slices handed to TLS at once: 32 short frames.
const GATHER: usize = 64;

/// Bytes that one call may take from one peer before the others have their turn.
const TURN: usize = 16 * RECEIVE;

/// A frame that waits to be sent, or what is left of it.
#[derive(Debug)]
struct Outgoing {
    head: [u8; HEADER],
    head_sent: usize,
    body: Vec<u8>,
    body_sent: usize,
}

impl Outgoing {
    fn bare(header: Header) -> Self {
        Outgoing {
            head: header.encode(),
            head_sent: 0,
            body: Vec::new(),
            body_sent: 0,
        }
    }

    fn started(&self) -> bool {
        self.head_sent > 0
    }
}

/// What is being read.
#[derive(Debug)]
enum Incoming {
    Head {
        bytes: [u8; HEADER],
        have: usize,
    },
    /// A header was read whose payload may not come in yet.
    Stalled {
        tag: u64,
        at: Channel,
        length: u32,
    },
    Payload {
        tag: u64,
        at: Channel,
        left: usize,
        body: Vec<u8>,
    },
    /// A payload that nobody wants any more.
    Skip {
        left: usize,
    },
}

const NEXT: Incoming = Incoming::Head {
    bytes: [0; HEADER],
    have: 0,
};

/// How this side ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Open,
    /// Goodbye is queued or sent: what comes is dropped.
    Goodbye,
    Aborted,
}

/// One peer's connection.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts: any of them may hold with any other"
)]
pub(super) struct Line {
    pub(super) peer: Peer,
    pub(super) socket: TcpStream,
    pub(super) inbox: Inbox,
    tls: Connection,
    bounds: Bounds,
    /// Bytes from the socket that TLS has not taken: `received[start..]`.
    received: Vec<u8>,
    start: usize,
    incoming: Incoming,
    queue: VecDeque<Outgoing>,
    /// Payload bytes in `queue`.
    queued: u64,
    pool: Pool,
    ending: Ending,
    /// A post was refused: tell the owner when there is room.
    refused: bool,
    /// The peer said goodbye.
    left: bool,
    /// Nothing more comes: the socket is at its end, or its content no longer matters.
    deaf: bool,
    /// Nothing more can be sent.
    mute: bool,
    /// TLS was told to say that this side has finished, and the socket after it.
    shut: bool,
    /// Why sending failed; what the peer said before is read first.
    broken: Option<String>,
    /// Nothing was read yet; the peer's first frames may have come with the handshake.
    fresh: bool,
    /// Something happened that the owner should look at.
    pub(super) news: bool,
}

impl Line {
    pub(super) fn new(connected: Connected, bounds: Bounds) -> Self {
        let Connected {
            socket,
            mut tls,
            peer,
            plan,
            ..
        } = connected;
        tls.set_buffer_limit(Some(WIRE));
        Line {
            peer,
            socket,
            inbox: Inbox::new(peer, bounds, frame::tag(&plan.0)),
            tls,
            bounds,
            received: Vec::new(),
            start: 0,
            incoming: NEXT,
            queue: VecDeque::new(),
            queued: 0,
            pool: Pool::new(bounds.credit),
            ending: Ending::Open,
            refused: false,
            left: false,
            deaf: false,
            mute: false,
            shut: false,
            broken: None,
            fresh: true,
            news: false,
        }
    }

    fn error(&self, at: Option<Channel>, fault: LinkFault) -> LinkError {
        LinkError {
            peer: self.peer,
            at,
            fault,
        }
    }

    /// Why a message that is not here will not come, if that is known.
    pub(super) fn gone(&self, at: Channel) -> Option<LinkError> {
        let left = self.left.then(|| self.error(Some(at), LinkFault::left()));
        self.inbox.fault().cloned().or(left)
    }

    /// Queues a message, or says that there is no room.
    pub(super) fn post(&mut self, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        if let Some(error) = self.gone(at) {
            return Err(error);
        }
        let length = bytes.len() as u64;
        if self.queued > 0 && self.queued.saturating_add(length) > self.bounds.credit {
            self.refused = true;
            return Ok(false);
        }
        let header = Header {
            tag: self.inbox.tag(),
            // Checked by the link against `u32`.
            body: Body::Message {
                at,
                length: bytes.len() as u32,
            },
        };
        let mut frame = Outgoing::bare(header);
        let mut rest = bytes;
        if self.queue.is_empty() && bytes.len() >= RECORD && !self.mute {
            rest = self.send_now(&mut frame, bytes)?;
            if frame.started() && rest.is_empty() {
                return Ok(true);
            }
        }
        frame.body = self.pool.take(rest.len());
        frame.body.extend_from_slice(rest);
        self.queued += rest.len() as u64;
        self.queue.push_back(frame);
        if self.queued >= WIRE as u64 {
            self.send();
        }
        Ok(true)
    }

    /// Puts as much of a long message into TLS and the socket as they take; the rest is returned, and was not copied.
    fn send_now<'a>(
        &mut self,
        frame: &mut Outgoing,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], LinkError> {
        let mut rest = bytes;
        loop {
            let slices = [
                IoSlice::new(&frame.head[frame.head_sent..]),
                IoSlice::new(rest),
            ];
            let taken =
                write_tls(&mut self.tls, &slices).map_err(|fault| self.error(None, fault))?;
            let head = taken.min(HEADER - frame.head_sent);
            frame.head_sent += head;
            rest = &rest[taken - head..];
            if rest.is_empty() || !self.flush_wire() {
                return Ok(rest);
            }
        }
    }

    /// Says goodbye once all that is queued is sent.
    pub(super) fn goodbye(&mut self) {
        if self.ending == Ending::Open {
            self.ending = Ending::Goodbye;
            let tag = self.inbox.tag();
            self.queue.push_back(Outgoing::bare(Header {
                tag,
                body: Body::Goodbye,
            }));
        }
    }

    /// Says abort before anything else, save the rest of a frame that is half sent.
    pub(super) fn abort(&mut self) {
        if self.ending != Ending::Aborted {
            self.ending = Ending::Aborted;
            self.drop_unstarted();
            let tag = self.inbox.tag();
            self.queue.push_back(Outgoing::bare(Header {
                tag,
                body: Body::Abort,
            }));
        }
    }

    fn drop_unstarted(&mut self) {
        let started = usize::from(self.queue.front().is_some_and(Outgoing::started));
        for frame in self.queue.drain(started..) {
            self.queued -= (frame.body.len() - frame.body_sent) as u64;
            self.pool.put(frame.body);
        }
    }

    /// Payload bytes that are not in TLS yet.
    pub(super) const fn queued(&self) -> u64 {
        self.queued
    }

    /// Everything was sent, or never can be.
    pub(super) fn flushed(&self) -> bool {
        self.mute || (self.queue.is_empty() && !self.tls.wants_write())
    }

    /// This end may be dropped: all is sent and the peer needs nothing, as far as that can be known.
    pub(super) fn finished(&self) -> bool {
        self.flushed() && (self.left || self.deaf || self.inbox.fault().is_some())
    }

    /// Did this side give up?
    pub(super) fn aborted(&self) -> bool {
        self.ending == Ending::Aborted
    }

    /// Is something here that `receive` can look at without asking the socket?
    pub(super) fn backlog(&self) -> bool {
        self.fresh
            || self.start < self.received.len()
            || matches!(self.incoming, Incoming::Stalled { .. })
    }

    /// Does it wait to read, and to write?
    pub(super) fn interest(&self) -> (bool, bool) {
        let read = !self.deaf && !matches!(self.incoming, Incoming::Stalled { .. });
        (
            read,
            !self.mute && (!self.queue.is_empty() || self.tls.wants_write()),
        )
    }

    /// Sends what the socket takes. `true` if anything moved.
    pub(super) fn send(&mut self) -> bool {
        let mut moved = false;
        while !self.mute {
            let filled = match self.fill() {
                Ok(filled) => filled,
                Err(fault) => {
                    self.inbox.fail(None, fault);
                    self.mute = true;
                    break;
                }
            };
            moved |= filled;
            if self.tls.wants_write() {
                let all = self.flush_wire();
                moved = true;
                if !all {
                    break;
                }
            }
            if !filled {
                break;
            }
        }
        if self.ending != Ending::Open && !self.shut && self.queue.is_empty() && !self.mute {
            // The last frame is in TLS; after it comes the end of the stream.
            self.shut = true;
            self.tls.send_close_notify();
            if self.flush_wire() {
                // Fails only where the peer is gone already.
                let _ = self.socket.shutdown(std::net::Shutdown::Write);
            } else {
                self.shut = false;
            }
        }
        self.explain_break();
        if self.refused && self.queued <= self.bounds.credit / 2 {
            self.refused = false;
            self.news = true;
        }
        moved
    }

    /// After a failed write: what the peer said before it broke off is the reason; if it said nothing, the failure is.
    fn explain_break(&mut self) {
        if self.broken.is_none() {
            return;
        }
        self.receive();
        if let Some(why) = self.broken.take() {
            if !self.left && self.ending == Ending::Open {
                self.inbox.fail(None, LinkFault::Closed(why));
            }
            self.stop_reading();
        }
    }

    /// Moves frames into TLS as long as it takes them. `true` if it took anything.
    fn fill(&mut self) -> Result<bool, LinkFault> {
        let mut any = false;
        while !self.queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); GATHER];
            let mut count = 0;
            for frame in self.queue.iter().take(GATHER / 2) {
                slices[count] = IoSlice::new(&frame.head[frame.head_sent..]);
                slices[count + 1] = IoSlice::new(&frame.body[frame.body_sent..]);
                count += 2;
            }
            let taken = write_tls(&mut self.tls, &slices[..count])?;
            if taken == 0 {
                break;
            }
            any = true;
            self.advance(taken);
        }
        Ok(any)
    }

    /// Notes that TLS took the next `taken` bytes of the queue.
    fn advance(&mut self, mut taken: usize) {
        while let Some(frame) = self.queue.front_mut() {
            let head = taken.min(HEADER - frame.head_sent);
            let body = (taken - head).min(frame.body.len() - frame.body_sent);
            frame.head_sent += head;
            frame.body_sent += body;
            taken -= head + body;
            self.queued -= body as u64;
            if frame.head_sent < HEADER || frame.body_sent < frame.body.len() {
                break;
            }
            if let Some(done) = self.queue.pop_front() {
                self.pool.put(done.body);
            }
        }
    }

    /// Writes what is encrypted. `true` if all of it left.
    fn flush_wire(&mut self) -> bool {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Quiet(&self.socket)) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.mute = true;
                    self.broken = Some(e.to_string());
                    self.news = true;
                    return false;
                }
            }
        }
        true
    }

    /// Takes what came. `true` if anything moved.
    pub(super) fn receive(&mut self) -> bool {
        let mut moved = false;
        let mut turn = 0;
        self.fresh = false;
        while !self.deaf {
            if let Err((at, fault)) = self.read_frames(&mut moved) {
                self.inbox.fail(at, fault);
                self.stop_reading();
                break;
            }
            if self.deaf || matches!(self.incoming, Incoming::Stalled { .. }) {
                break;
            }
            match self.feed_tls() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    self.inbox.fail(None, LinkFault::Tls(error.to_string()));
                    self.stop_reading();
                    // The alert tells the peer why, if it can be told.
                    self.flush_wire();
                    break;
                }
            }
            if turn >= TURN {
                self.news = true;
                break;
            }
            match self.refill() {
                Ok(0) => break,
                Ok(bytes) => turn += bytes,
                Err(why) => {
                    if !self.left && self.ending != Ending::Goodbye {
                        let why = self.broken.take().unwrap_or(why);
                        self.inbox.fail(None, LinkFault::Closed(why));
                    }
                    self.stop_reading();
                    break;
                }
            }
        }
        moved
    }

    fn stop_reading(&mut self) {
        self.deaf = true;
        self.news = true;
        self.received = Vec::new();
        self.start = 0;
    }

    /// Hands TLS what came from the socket. `false` if there is nothing left to hand over.
    fn feed_tls(&mut self) -> Result<bool, rustls::Error> {
        let mut rest = &self.received[self.start..];
        if rest.is_empty() {
            return Ok(false);
        }
        // TLS takes nothing while it holds plaintext, and `read_frames` has just emptied it; nor after the end of the stream.
        let taken = self.tls.read_tls(&mut rest).unwrap_or(0);
        if taken == 0 {
            self.start = self.received.len();
            return Ok(false);
        }
        self.start += taken;
        self.tls.process_new_packets()?;
        Ok(true)
    }

    /// Takes from the socket: bytes taken, 0 if none are there, or why none will come.
    fn refill(&mut self) -> Result<usize, String> {
        self.start = 0;
        self.received.resize(RECEIVE, 0);
        let got = loop {
            match recv(
                &self.socket,
                self.received.as_mut_slice(),
                RecvFlags::empty(),
            ) {
                Ok((_, got)) => break Ok(got),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => break Err(error),
            }
        };
        match got {
            Ok(0) => Err("it is gone: its process or the network ended".into()),
            Ok(got) => {
                self.received.truncate(got);
                Ok(got)
            }
            Err(error) => {
                self.received.clear();
                let error = io::Error::from(error);
                if error.kind() == io::ErrorKind::WouldBlock {
                    Ok(0)
                } else {
                    Err(error.to_string())
                }
            }
        }
    }

    /// Makes frames of the plaintext that TLS has, until it has no more or a frame must wait.
    fn read_frames(&mut self, moved: &mut bool) -> Result<(), (Option<Channel>, LinkFault)> {
        loop {
            // A frame without payload is complete before another byte is there.
            self.incoming = match std::mem::replace(&mut self.incoming, NEXT) {
                Incoming::Head { bytes, have } if have == HEADER => {
                    let header = Header::decode(&bytes).map_err(|fault| (None, fault))?;
                    match header.body {
                        Body::Message { at, length } => Incoming::Stalled {
                            tag: header.tag,
                            at,
                            length,
                        },
                        Body::Abort => {
                            self.inbox.aborted();
                            self.stop_reading();
                            return Ok(());
                        }
                        Body::Goodbye => {
                            self.left = true;
                            self.news = true;
                            // It needs nothing more of us, so neither side has a reason to stay.
                            self.drop_unstarted();
                            self.goodbye();
                            self.stop_reading();
                            return Ok(());
                        }
                    }
                }
                Incoming::Stalled { length, .. } if self.ending != Ending::Open => Incoming::Skip {
                    left: length as usize,
                },
                Incoming::Stalled { tag, at, length } => {
                    match self
                        .inbox
                        .admit(tag, at, u64::from(length))
                        .map_err(|fault| (Some(at), fault))?
                    {
                        Admit::Now => {
                            let left = length as usize;
                            Incoming::Payload {
                                tag,
                                at,
                                left,
                                body: self.inbox.pool().take(left),
                            }
                        }
                        Admit::Later => {
                            self.incoming = Incoming::Stalled { tag, at, length };
                            return Ok(());
                        }
                    }
                }
                Incoming::Payload {
                    tag,
                    at,
                    left: 0,
                    body,
                } => {
                    self.inbox
                        .deliver(tag, at, body)
                        .map_err(|fault| (Some(at), fault))?;
                    self.news = true;
                    NEXT
                }
                Incoming::Skip { left: 0 } => NEXT,
                partial => {
                    self.incoming = partial;
                    if !self.read_bytes() {
                        return Ok(());
                    }
                    *moved = true;
                    continue;
                }
            };
        }
    }

    /// Moves plaintext into the frame at hand. `false` if there is none.
    fn read_bytes(&mut self) -> bool {
        let mut reader = self.tls.reader();
        // The two errors, nothing there and end of stream, both end in what the socket says next.
        let Ok(plain) = reader.fill_buf() else {
            return false;
        };
        if plain.is_empty() {
            return false;
        }
        let taken = match &mut self.incoming {
            Incoming::Head { bytes, have } => {
                let taken = plain.len().min(HEADER - *have);
                bytes[*have..*have + taken].copy_from_slice(&plain[..taken]);
                *have += taken;
                taken
            }
            Incoming::Payload { left, body, .. } => {
                let taken = plain.len().min(*left);
                body.extend_from_slice(&plain[..taken]);
                *left -= taken;
                taken
            }
            Incoming::Skip { left } => {
                let taken = plain.len().min(*left);
                *left -= taken;
                taken
            }
            Incoming::Stalled { .. } => 0,
        };
        reader.consume(taken);
        taken > 0
    }
}

/// Gives TLS plaintext; how much it took.
fn write_tls(tls: &mut Connection, slices: &[IoSlice<'_>]) -> Result<usize, LinkFault> {
    io::Write::write_vectored(&mut tls.writer(), slices).map_err(|e| LinkFault::Tls(e.to_string()))
}
