//! The sending half of a connection: frames into the wire.

use std::io::IoSlice;

use super::{Ending, Line, Outgoing, Sent, Wire};
use crate::frame::HEADER;
use crate::{LinkError, LinkFault};

/// Bytes that wait for the network at most: enough for one long vectored write.
pub(crate) const WIRE: usize = 256 * 1024;

/// A message of at least one TLS record goes into the wire at once; shorter ones wait to share records.
pub(super) const LONG: usize = 16 * 1024;

/// Slices handed to the wire at once: 32 short frames.
const GATHER: usize = 64;

impl<W: Wire> Line<W> {
    /// Puts as much of a long message into the wire as it takes; the rest is returned, and was not copied.
    pub(super) fn send_now<'a>(
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
            let taken = self.wire.write(&slices);
            let taken = taken.map_err(|fault| self.error(None, fault))?;
            let head = taken.min(HEADER - frame.head_sent);
            frame.head_sent += head;
            rest = &rest[taken - head..];
            if rest.is_empty() || !self.flush().all {
                return Ok(rest);
            }
        }
    }

    /// Sends what the network takes. `true` if anything moved.
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
            if self.wire.wants_write() {
                let sent = self.flush();
                moved |= sent.moved;
                if !sent.all {
                    break;
                }
            }
            if !filled {
                break;
            }
        }
        if self.ending != Ending::Open && !self.shut && self.queue.is_empty() && !self.mute {
            match self.wire.finish() {
                Ok(done) => self.shut = done,
                Err(why) => self.break_off(why),
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

    /// Moves frames into the wire as long as it takes them. `true` if it took anything.
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
            let taken = self.wire.write(&slices[..count])?;
            if taken == 0 {
                break;
            }
            any = true;
            self.advance(taken);
        }
        Ok(any)
    }

    /// Notes that the wire took the next `taken` bytes of the queue.
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

    /// Sends what waits in the wire.
    fn flush(&mut self) -> Sent {
        self.wire.flush().unwrap_or_else(|why| {
            self.break_off(why);
            Sent {
                moved: true,
                all: false,
            }
        })
    }

    /// Nothing more can be sent.
    fn break_off(&mut self, why: String) {
        self.mute = true;
        self.broken = Some(why);
        self.news = true;
    }
}
