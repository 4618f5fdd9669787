//! A TLS connection under the frames of a line.

use std::io::{self, BufRead, IoSlice, Write};
use std::net::{Shutdown, TcpStream};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, recv};
use rustls::Connection;

use super::socket::Quiet;
use crate::LinkFault;
use crate::line::{Sent, WIRE, Wire};

/// Bytes taken from the socket per call: sixteen TLS records; more would leave the second-level cache.
const RECEIVE: usize = 256 * 1024;

/// A TLS connection over a socket that never blocks.
#[derive(Debug)]
pub(crate) struct TlsWire {
    socket: TcpStream,
    tls: Connection,
    /// Bytes from the socket that TLS has not taken: `received[start..]`.
    received: Vec<u8>,
    start: usize,
    /// Nothing was read yet; the peer's first frames may have come with the handshake.
    fresh: bool,
    /// TLS was told to say that this side has finished.
    finished: bool,
}

impl TlsWire {
    pub(crate) fn new(socket: TcpStream, mut tls: Connection) -> Self {
        tls.set_buffer_limit(Some(WIRE));
        TlsWire {
            socket,
            tls,
            received: Vec::new(),
            start: 0,
            fresh: true,
            finished: false,
        }
    }

    /// What is encrypted is for the socket. `true` if all of it left.
    fn leave(&mut self) -> Result<bool, String> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Quiet(&self.socket)) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(true)
    }
}

impl Wire for TlsWire {
    fn write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, LinkFault> {
        Write::write_vectored(&mut self.tls.writer(), slices)
            .map_err(|error| LinkFault::Cipher(error.to_string()))
    }

    fn wants_write(&self) -> bool {
        self.tls.wants_write()
    }

    fn flush(&mut self) -> Result<Sent, String> {
        let moved = self.tls.wants_write();
        let all = self.leave()?;
        Ok(Sent { moved, all })
    }

    /// After the last frame comes the end of the stream.
    fn finish(&mut self) -> Result<bool, String> {
        if !self.finished {
            self.finished = true;
            self.tls.send_close_notify();
        }
        let all = self.leave()?;
        if all {
            // Fails only where the peer is gone already.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        Ok(all)
    }

    fn read(&mut self, take: impl FnOnce(&[u8]) -> usize) -> usize {
        let mut reader = self.tls.reader();
        // The two errors, nothing there and end of stream, both end in what the socket says next.
        let taken = match reader.fill_buf() {
            Ok(plain) if !plain.is_empty() => take(plain),
            _ => 0,
        };
        reader.consume(taken);
        taken
    }

    /// Hands TLS what came from the socket.
    fn open(&mut self) -> Result<bool, LinkFault> {
        self.fresh = false;
        let mut rest = &self.received[self.start..];
        if rest.is_empty() {
            return Ok(false);
        }
        // TLS takes nothing while it holds plaintext, and the caller has just emptied it; nor after the end of the stream.
        let taken = self.tls.read_tls(&mut rest).unwrap_or(0);
        if taken == 0 {
            self.start = self.received.len();
            return Ok(false);
        }
        self.start += taken;
        if let Err(error) = self.tls.process_new_packets() {
            // The alert tells the peer why, if it can be told.
            let _ = self.leave();
            return Err(LinkFault::Cipher(error.to_string()));
        }
        Ok(true)
    }

    fn refill(&mut self) -> Result<usize, LinkFault> {
        self.start = 0;
        self.received.clear();
        // Its capacity stays: the kernel writes into it, and no code clears it first.
        self.received.reserve_exact(RECEIVE);
        let got = loop {
            match recv(
                &self.socket,
                spare_capacity(&mut self.received),
                RecvFlags::empty(),
            ) {
                Ok((got, _)) => break Ok(got),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => break Err(io::Error::from(error)),
            }
        };
        match got {
            Ok(0) => Err(LinkFault::gone()),
            Ok(got) => Ok(got),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(LinkFault::Closed(error.to_string())),
        }
    }

    fn forget(&mut self) {
        self.received = Vec::new();
        self.start = 0;
    }

    fn backlog(&self) -> bool {
        self.fresh || self.start < self.received.len()
    }

    fn watch<'a>(&'a self, read: bool, write: bool, fds: &mut Vec<PollFd<'a>>) {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, read);
        flags.set(PollFlags::OUT, write);
        fds.push(PollFd::new(&self.socket, flags));
    }
}
