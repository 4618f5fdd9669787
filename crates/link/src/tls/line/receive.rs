//! The receiving half of a connection: records from the socket, frames out of TLS.

use std::io::{self, BufRead};

use rustix::buffer::spare_capacity;
use rustix::net::{RecvFlags, recv};
use veil_session::Channel;

use super::{Ending, Incoming, Line, NEXT};
use crate::LinkFault;
use crate::frame::{Body, HEADER, Header};
use crate::inbox::Admit;

/// Bytes taken from the socket per call: sixteen TLS records; more would leave the second-level cache.
const RECEIVE: usize = 256 * 1024;

/// Bytes that one call may take from one peer before the others have their turn.
const TURN: usize = 16 * RECEIVE;

impl Line {
    /// Takes what came. `true` if anything moved.
    pub(in crate::tls) fn receive(&mut self) -> bool {
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

    pub(super) fn stop_reading(&mut self) {
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
        self.received.clear();
        // Its capacity stays: the kernel writes into it, nobody clears it first.
        self.received.reserve_exact(RECEIVE);
        let got = loop {
            match recv(
                &self.socket,
                spare_capacity(&mut self.received),
                RecvFlags::empty(),
            ) {
                Ok((got, _)) => break Ok(got),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => break Err(error),
            }
        };
        match got {
            Ok(0) => Err("it is gone: its process or the network ended".into()),
            Ok(got) => Ok(got),
            Err(error) => {
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
