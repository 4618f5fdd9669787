//! A TLS connection under the frames of a line.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, recv};

use super::handshake::Handshake;
use super::record::Records;
use super::socket::Quiet;
use crate::LinkFault;
use crate::line::{Sent, Wire};

/// A TLS connection over a socket that never blocks.
#[derive(Debug)]
pub(crate) struct TlsWire {
    socket: TcpStream,
    /// Or why there is no connection.
    records: Result<Records, LinkFault>,
    /// Plaintext that came before the record layer took over; `before[read..]` was not taken.
    before: Vec<u8>,
    read: usize,
    /// Bytes for the socket from before it took over.
    outgoing: Vec<u8>,
    /// Nothing was read yet; the peer's first frames may have come with the handshake.
    fresh: bool,
    /// The socket had less than it was asked for: it has no more now.
    drained: bool,
    /// The peer was told that this side has finished.
    finished: bool,
}

impl TlsWire {
    /// Goes on where `line` is.
    pub(crate) fn new(line: Handshake) -> Self {
        let Handshake {
            socket,
            mut tls,
            incoming,
            secrets,
        } = line;
        let mut before = Vec::new();
        // An error is how the reader says that there is no more now, and the end is what the peer said to be one.
        let ended = tls.reader().read_to_end(&mut before).is_ok();
        let mut outgoing = Vec::new();
        while tls.wants_write() {
            // A vector takes everything.
            let _ = tls.write_tls(&mut outgoing);
        }
        let mut records = secrets.records(tls, incoming);
        if let Ok(records) = &mut records
            && ended
        {
            records.end();
        }
        TlsWire {
            socket,
            records: records.map_err(|error| LinkFault::Cipher(error.to_string())),
            before,
            read: 0,
            outgoing,
            fresh: true,
            drained: false,
            finished: false,
        }
    }

    fn before(&self) -> &[u8] {
        &self.before[self.read..]
    }

    /// What is sealed is for the socket. `true` if all of it left.
    fn leave(&mut self) -> Result<bool, String> {
        let Ok(records) = &mut self.records else {
            return Ok(true);
        };
        loop {
            let first = !self.outgoing.is_empty();
            let waiting = if first {
                &self.outgoing[..]
            } else {
                records.waiting().map_err(|error| error.to_string())?
            };
            if waiting.is_empty() {
                return Ok(true);
            }
            match Quiet(&self.socket).write_vectored(&[IoSlice::new(waiting)]) {
                Ok(bytes) if first => drop(self.outgoing.drain(..bytes)),
                Ok(bytes) => records.left(bytes),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
    }

    /// Tells the peer why this side ends the connection, if it can be told.
    fn refused(&mut self, error: &rustls::Error) -> LinkFault {
        let _ = self.leave();
        LinkFault::Cipher(error.to_string())
    }
}

impl Wire for TlsWire {
    fn write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, LinkFault> {
        let records = self.records.as_mut().map_err(|fault| fault.clone())?;
        let taken = records.write(slices);
        taken.map_err(|error| LinkFault::Cipher(error.to_string()))
    }

    fn wants_write(&self) -> bool {
        let records = self.records.as_ref();
        records.is_ok_and(|records| records.wants_write() || !self.outgoing.is_empty())
    }

    fn flush(&mut self) -> Result<Sent, String> {
        let moved = self.wants_write();
        let all = self.leave()?;
        Ok(Sent { moved, all })
    }

    /// After the last frame comes the end of the stream.
    fn finish(&mut self) -> Result<bool, String> {
        if !self.finished {
            self.finished = true;
            if let Ok(records) = &mut self.records {
                records.close().map_err(|error| error.to_string())?;
            }
        }
        let all = self.leave()?;
        if all {
            // Fails only where the peer is gone already.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        Ok(all)
    }

    fn read(&mut self, take: impl FnOnce(&[u8]) -> usize) -> usize {
        let before = self.before();
        if !before.is_empty() {
            let taken = take(before);
            self.read += taken;
            return taken;
        }
        let Ok(records) = &mut self.records else {
            return 0;
        };
        let plain = records.plain();
        if plain.is_empty() {
            return 0;
        }
        let taken = take(plain);
        records.take(taken);
        taken
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<usize, LinkFault> {
        if !self.before().is_empty() {
            return Ok(self.read(|plain| {
                let taken = plain.len().min(into.len() - 1);
                crate::copy::copy(&mut into[..taken], &plain[..taken]);
                taken
            }));
        }
        let records = self.records.as_mut().map_err(|fault| fault.clone())?;
        let filled = records.fill(into);
        filled.map_err(|error| self.refused(&error))
    }

    fn open(&mut self) -> Result<bool, LinkFault> {
        self.fresh = false;
        let records = self.records.as_mut().map_err(|fault| fault.clone())?;
        let opened = records.open();
        opened.map_err(|error| self.refused(&error))
    }

    fn refill(&mut self) -> Result<usize, LinkFault> {
        let records = self.records.as_mut().map_err(|fault| fault.clone())?;
        if std::mem::take(&mut self.drained) {
            return Ok(0);
        }
        let space = records.space();
        let asked = space.capacity() - space.len();
        let got = loop {
            match recv(&self.socket, spare_capacity(space), RecvFlags::empty()) {
                Ok((got, _)) => break Ok(got),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => break Err(io::Error::from(error)),
            }
        };
        match got {
            Ok(0) => Err(LinkFault::gone()),
            Ok(got) => {
                self.drained = got < asked;
                Ok(got)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(LinkFault::Closed(error.to_string())),
        }
    }

    fn forget(&mut self) {
        self.before = Vec::new();
        self.read = 0;
        if let Ok(records) = &mut self.records {
            records.forget();
        }
    }

    fn backlog(&self) -> bool {
        let records = self.records.as_ref();
        self.fresh || !self.before().is_empty() || records.is_ok_and(Records::backlog)
    }

    fn watch<'a>(&'a self, read: bool, write: bool, fds: &mut Vec<PollFd<'a>>) {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, read);
        flags.set(PollFlags::OUT, write);
        fds.push(PollFd::new(&self.socket, flags));
    }
}
