//! Sockets whose other end may be gone: writing to them, and finding out.

use std::io::{self, IoSlice, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::dial::timespec;

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

/// Whether the other side has closed its end.
pub(super) fn hung_up(socket: &TcpStream) -> bool {
    let over = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let mut fds = [PollFd::new(socket, over)];
    let polled = poll(&mut fds, Some(&timespec(Duration::ZERO)));
    polled.is_ok_and(|ready| ready > 0) && fds[0].revents().intersects(over)
}
