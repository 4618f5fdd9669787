//! The sending half of a connection: frames into TLS, records into the socket.

use std::io::{self, IoSlice};
use std::net::Shutdown;

use rustls::Connection;

use super::{Ending, Line, Outgoing};
use crate::frame::HEADER;
use crate::tls::socket::Quiet;
use crate::{LinkError, LinkFault};

/// Encrypted bytes that wait for the socket at most: enough for one long vectored write.
pub(super) const WIRE: usize = 256 * 1024;

/// A message of at least one TLS record goes into TLS at once; shorter ones wait to share records.
pub(super) const RECORD: usize = 16 * 1024;

/// Slices handed to TLS at once: 32 short frames.
const GATHER: usize = 64;

impl Line {
    /// Puts as much of a long message into TLS and the socket as they take; the rest is returned, and was not copied.
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

    /// Sends what the socket takes. `true` if anything moved.
    pub(in crate::tls) fn send(&mut self) -> bool {
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
                let _ = self.socket.shutdown(Shutdown::Write);
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
    pub(super) fn flush_wire(&mut self) -> bool {
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
}

/// Gives TLS plaintext; how much it took.
fn write_tls(tls: &mut Connection, slices: &[IoSlice<'_>]) -> Result<usize, LinkFault> {
    io::Write::write_vectored(&mut tls.writer(), slices).map_err(|e| LinkFault::Tls(e.to_string()))
}
