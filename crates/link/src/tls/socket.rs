//! Writing to a socket whose other end may be gone.

use std::io::{self, IoSlice, Write};
use std::net::TcpStream;

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

/// A socket that answers a lost peer with an error and never with SIGPIPE, whatever the host program made of that signal.
pub(super) struct Quiet<'a>(pub(super) &'a TcpStream);

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut none = SendAncillaryBuffer::default();
        Ok(sendmsg(self.0, parts, &mut none, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
