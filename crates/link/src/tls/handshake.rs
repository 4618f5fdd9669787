//! One connection on its way from TCP to an agreed lane: TLS, then call and answer. Never blocks.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use rustls::Connection;

use super::record;
use super::secrets::Secrets;
use super::socket::Quiet;

/// After so much silence the kernel asks the other end for a sign of life,
const SILENCE: Duration = Duration::from_secs(15);
/// so often,
const BETWEEN_PROBES: Duration = Duration::from_secs(5);
/// and after so many questions without an answer the connection is gone: half a minute in all, as long as a run may stall.
const PROBES: u32 = 3;

/// Bytes taken from the socket at once.
const STEP: usize = 16 << 10;

/// How far a handshake came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// It waits for the other side.
    Waiting,
    /// The requested bytes are complete.
    Complete,
}

/// Why it failed.
#[derive(Debug)]
pub(crate) enum Fail {
    /// The connection broke: the other side may not be ready yet.
    Broken(String),
    /// TLS refused.
    Tls(rustls::Error),
}

/// A TLS connection over a non-blocking socket, before it belongs to a link.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) socket: TcpStream,
    pub(crate) tls: Connection,
    /// Bytes from the socket that TLS did not get: it gets whole records, one at a time, so that a link that goes on here misses none.
    pub(super) incoming: Vec<u8>,
    /// What TLS encrypts under, for a link that goes on here.
    pub(super) secrets: Arc<Secrets>,
}

impl Handshake {
    /// Prepares the socket.
    pub(super) fn new(
        socket: TcpStream,
        tls: Connection,
        secrets: Arc<Secrets>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        // A recipient may wait for hours while the parties compute: the kernel asks whether the other end is still there.
        sockopt::set_socket_keepalive(&socket, true)?;
        sockopt::set_tcp_keepidle(&socket, SILENCE)?;
        sockopt::set_tcp_keepintvl(&socket, BETWEEN_PROBES)?;
        sockopt::set_tcp_keepcnt(&socket, PROBES)?;
        // Buffer sizes are left to the kernel: a fixed size turns its tuning off and is capped far below what a WAN needs.
        Ok(Handshake {
            socket,
            tls,
            incoming: Vec::new(),
            secrets,
        })
    }

    /// Sends `call` once, as soon as TLS can: before the handshake is complete nothing of it leaves.
    pub(crate) fn say(&mut self, call: &[u8]) -> Result<(), Fail> {
        self.tls
            .writer()
            .write_all(call)
            .map_err(|e| Fail::Broken(e.to_string()))
    }

    /// Reads until `into` is full; `have` counts what is in it.
    pub(crate) fn hear(&mut self, into: &mut [u8], have: &mut usize) -> Result<Progress, Fail> {
        loop {
            self.flush()?;
            // Plaintext first: it may have come with the last bytes of the handshake.
            match self.tls.reader().read(&mut into[*have..]) {
                Ok(0) if *have < into.len() => {
                    return Err(Fail::Broken("the other side hung up".into()));
                }
                Ok(read) => {
                    *have += read;
                    if *have == into.len() {
                        return Ok(Progress::Complete);
                    }
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(Fail::Broken(e.to_string())),
            }
            if self.pass_on()? {
                continue;
            }
            let have = self.incoming.len();
            self.incoming.resize(have + STEP, 0);
            let got = self.socket.read(&mut self.incoming[have..]);
            self.incoming.truncate(have + *got.as_ref().unwrap_or(&0));
            match got {
                Ok(0) => return Err(Fail::Broken("the other side hung up".into())),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::Waiting),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Fail::Broken(e.to_string())),
            }
        }
    }

    /// Hands TLS the next record that came. `false`: it is not here as a whole.
    fn pass_on(&mut self) -> Result<bool, Fail> {
        let Some(bytes) = record::first(&self.incoming) else {
            return Ok(false);
        };
        let mut rest = &self.incoming[..bytes];
        // TLS takes nothing after the end of the stream.
        while !rest.is_empty() {
            match self.tls.read_tls(&mut rest) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) => return Err(Fail::Broken(e.to_string())),
            }
            if let Err(error) = self.tls.process_new_packets() {
                // The alert tells the other side why; if it cannot be sent, the connection ends all the same.
                let _ = self.flush();
                return Err(Fail::Tls(error));
            }
        }
        self.incoming.drain(..bytes);
        Ok(true)
    }

    /// Sends what TLS has to send.
    pub(crate) fn flush(&mut self) -> Result<Progress, Fail> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Quiet(&self.socket)) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::Waiting),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // What the other side said before it broke off may still be read.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(Progress::Waiting),
                Err(e) => return Err(Fail::Broken(e.to_string())),
            }
        }
        Ok(Progress::Complete)
    }
}
