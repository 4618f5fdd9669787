//! Requirements of a line on the wire that moves its bytes: plaintext in, plaintext out, in order, from the peer that TLS authenticated.

use std::io::IoSlice;
use std::time::Duration;

use rustix::event::PollFd;

use crate::LinkFault;

/// How far sending got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    /// Something left.
    pub(crate) moved: bool,
    /// Nothing waits any more.
    pub(crate) all: bool,
}

/// One connection, under the frames.
pub(crate) trait Wire: Send {
    /// Takes plaintext: how many bytes of it. 0: not before some of what waits has left.
    fn write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, LinkFault>;

    /// Whether something waits to leave.
    fn wants_write(&self) -> bool;

    /// Sends what waits, as far as that goes now; or why nothing more can be sent.
    fn flush(&mut self) -> Result<Sent, String>;

    /// The last frame was taken: says so to the peer, and sends nothing afterwards. `false`: not yet, try again.
    fn finish(&mut self) -> Result<bool, String>;

    /// Tells the peer of an abort beside the frames, if it can: then none of those matters any more.
    fn abort(&mut self) -> bool {
        false
    }

    /// Passes plaintext that is here to `take`, which says how many bytes it took; not called if there is none.
    fn read(&mut self, take: impl FnOnce(&[u8]) -> usize) -> usize;

    /// Moves plaintext to the front of `into`, but for its last byte, which a wire may use as room: how many bytes, 0 if there are none
    /// now. A wire that opens what came into it spares a copy.
    fn fill(&mut self, into: &mut [u8]) -> Result<usize, LinkFault> {
        Ok(self.read(|plain| {
            let taken = plain.len().min(into.len().saturating_sub(1));
            crate::copy::copy(&mut into[..taken], &plain[..taken]);
            taken
        }))
    }

    /// Makes plaintext of what has come. `false`: there is nothing left to make it of.
    fn open(&mut self) -> Result<bool, LinkFault>;

    /// Takes what came from the network: how many bytes, 0 if there are none now, or why none will come.
    fn refill(&mut self) -> Result<usize, LinkFault>;

    /// Nothing that came or comes matters any more.
    fn forget(&mut self);

    /// Whether something may be here that nothing in [`Wire::watch`] tells.
    fn backlog(&self) -> bool;

    /// How long the owner may sleep at most before it looks again. Called before each sleep.
    fn rest(&mut self) -> Duration {
        Duration::MAX
    }

    /// Adds what tells that there is something to read, and room to write.
    fn watch<'a>(&'a self, read: bool, write: bool, fds: &mut Vec<PollFd<'a>>);
}
