//! One connection of a link at work: its state, and how it ends. Its two halves move the bytes.

mod link;
mod receive;
mod send;
mod wire;

use std::collections::VecDeque;

use veil_session::{Channel, Peer};

pub(crate) use self::link::Lines;
use self::send::LONG;
pub(crate) use self::send::WIRE;
pub(crate) use self::wire::{Sent, Wire};
use crate::copy::append;
use crate::frame::{Body, HEADER, Header};
use crate::inbox::Inbox;
use crate::pool::{Pool, forget};
use crate::{Bounds, LinkError, LinkFault};

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
    /// `body` has a byte more than the payload, for [`Wire::fill`].
    Payload {
        tag: u64,
        at: Channel,
        left: usize,
        body: Vec<u8>,
    },
    /// A payload that is no longer wanted.
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
pub(crate) struct Line<W> {
    peer: Peer,
    inbox: Inbox,
    wire: W,
    bounds: Bounds,
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
    /// Nothing more comes: the wire is at its end, or its content no longer matters.
    deaf: bool,
    /// Nothing more can be sent.
    mute: bool,
    /// The peer was told that this side has finished.
    shut: bool,
    /// Why sending failed; what the peer said before is read first.
    broken: Option<String>,
    /// Something happened that the owner should look at.
    news: bool,
}

impl<W: Wire> Line<W> {
    /// A line over `wire` to `peer`, whose messages carry `tag` until the session has a name.
    pub(crate) fn new(wire: W, peer: Peer, tag: u64, bounds: Bounds) -> Self {
        Line {
            peer,
            inbox: Inbox::new(peer, bounds, tag),
            wire,
            bounds,
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
    fn gone(&self, at: Channel) -> Option<LinkError> {
        let left = self.left.then(|| self.error(Some(at), LinkFault::left()));
        self.inbox.fault().cloned().or(left)
    }

    /// Queues a message, or says that there is no room.
    fn post(&mut self, at: Channel, pieces: &[&[u8]], bytes: usize) -> Result<bool, LinkError> {
        if let Some(error) = self.gone(at) {
            return Err(error);
        }
        let length = bytes as u64;
        if self.queued > 0 && self.queued.saturating_add(length) > self.bounds.credit {
            self.refused = true;
            return Ok(false);
        }
        let header = Header {
            tag: self.inbox.tag(),
            // Checked by the link against `u32`.
            body: Body::Message {
                at,
                length: bytes as u32,
            },
        };
        let mut frame = Outgoing::bare(header);
        let (mut pieces, mut left) = (pieces, bytes);
        let rest;
        if let [whole] = pieces
            && self.queue.is_empty()
            && bytes >= LONG
            && !self.mute
        {
            rest = [self.send_now(&mut frame, whole)?];
            if frame.started() && rest[0].is_empty() {
                return Ok(true);
            }
            (pieces, left) = (&rest, rest[0].len());
        }
        frame.body = self.pool.take(left);
        for piece in pieces {
            append(&mut frame.body, piece);
        }
        self.queued += left as u64;
        self.queue.push_back(frame);
        if self.queued >= WIRE as u64 {
            self.send();
        }
        Ok(true)
    }

    /// Says goodbye once all that is queued is sent.
    fn goodbye(&mut self) {
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
    fn abort(&mut self) {
        if self.ending != Ending::Aborted {
            self.ending = Ending::Aborted;
            if self.wire.abort() {
                self.queue.clear();
                self.queued = 0;
                return;
            }
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

    /// Payload bytes that the wire has not taken yet.
    const fn queued(&self) -> u64 {
        self.queued
    }

    /// Everything was sent, or never can be.
    fn flushed(&self) -> bool {
        self.mute || (self.queue.is_empty() && !self.wire.wants_write())
    }

    /// This end may be dropped: all is sent and the peer needs nothing, as far as that can be known.
    fn finished(&self) -> bool {
        self.flushed() && (self.left || self.deaf || self.inbox.fault().is_some())
    }

    /// Did this side give up?
    fn aborted(&self) -> bool {
        self.ending == Ending::Aborted
    }

    /// Is something here that `receive` can look at without being told?
    fn backlog(&self) -> bool {
        (!self.deaf && self.wire.backlog()) || matches!(self.incoming, Incoming::Stalled { .. })
    }

    /// Does it wait to read, and to write?
    fn interest(&self) -> (bool, bool) {
        let read = !self.deaf && !matches!(self.incoming, Incoming::Stalled { .. });
        (
            read,
            !self.mute && (!self.queue.is_empty() || self.wire.wants_write()),
        )
    }
}

impl<W> Drop for Line<W> {
    /// Buffers may have held what is the owner's.
    fn drop(&mut self) {
        if let Incoming::Payload { body, .. } = &mut self.incoming {
            forget(std::mem::take(body));
        }
        self.queue.drain(..).for_each(|frame| forget(frame.body));
    }
}
