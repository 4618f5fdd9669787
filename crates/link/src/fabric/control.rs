//! The TLS connection that accompanies a ring: hellos, last words, and the end of the peer.

use std::net::{IpAddr, Shutdown};

use rustix::event::{PollFd, PollFlags};

use super::hello::{HELLO, Hello, LAST, LastWord};
use crate::LinkFault;
use crate::tls::handshake::{Fail, Handshake, Progress};

/// What was heard.
#[derive(Debug)]
pub(super) enum Heard {
    /// Nothing new.
    Nothing,
    /// Where the peer's ring is.
    Hello(Box<[u8; HELLO]>),
    /// The peer is gone. If it went in order, it has sent so many packets.
    Over(Option<u64>),
}

/// The connection.
#[derive(Debug)]
pub(super) struct Control {
    line: Handshake,
    hello: Box<[u8; HELLO]>,
    last: [u8; LAST],
    have: usize,
    /// The peer's hello is here.
    met: bool,
    /// Packets that the peer says it has sent in all.
    sent: Option<u64>,
    over: bool,
    /// This side's last word was said.
    said: bool,
}

impl Control {
    pub(super) fn new(line: Handshake) -> Self {
        Control {
            line,
            hello: Box::new([0; HELLO]),
            last: [0; LAST],
            have: 0,
            met: false,
            sent: None,
            over: false,
            said: false,
        }
    }

    /// The other end of the connection.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        let address = self.line.socket.peer_addr().ok()?;
        Some(address.ip().to_canonical())
    }

    pub(super) fn greet(&mut self, hello: &Hello) -> Result<(), String> {
        self.line.say(&hello.encode()).map_err(why)?;
        self.leave().map(|_| ())
    }

    /// Says the last word, once. It leaves as far as it can now.
    pub(super) fn end(&mut self, last: LastWord) -> Result<bool, String> {
        if !self.said {
            self.said = true;
            self.line.say(&last.encode()).map_err(why)?;
            self.line.tls.send_close_notify();
        }
        let all = self.leave()?;
        if all {
            // Fails only where the peer is gone already.
            let _ = self.line.socket.shutdown(Shutdown::Write);
        }
        Ok(all)
    }

    /// Sends what waits. `true` if all of it left.
    pub(super) fn leave(&mut self) -> Result<bool, String> {
        let progress = self.line.flush().map_err(why)?;
        Ok(progress == Progress::Complete)
    }

    pub(super) fn wants_write(&self) -> bool {
        self.line.tls.wants_write()
    }

    /// Takes what came.
    pub(super) fn hear(&mut self) -> Result<Heard, LinkFault> {
        if self.over {
            return Ok(Heard::Over(self.sent));
        }
        let heard = self.next();
        match heard {
            Err(Fail::Tls(error)) => Err(LinkFault::Cipher(error.to_string())),
            Err(Fail::Broken(_)) => {
                self.over = true;
                Ok(Heard::Over(self.sent))
            }
            Ok(heard) => heard,
        }
    }

    fn next(&mut self) -> Result<Result<Heard, LinkFault>, Fail> {
        if !self.met {
            if self.line.hear(&mut self.hello[..], &mut self.have)? == Progress::Waiting {
                return Ok(Ok(Heard::Nothing));
            }
            self.met = true;
            self.have = 0;
            return Ok(Ok(Heard::Hello(self.hello.clone())));
        }
        if self.sent.is_none() {
            if self.line.hear(&mut self.last, &mut self.have)? == Progress::Waiting {
                return Ok(Ok(Heard::Nothing));
            }
            match LastWord::decode(&self.last) {
                Ok(LastWord::Abort) => return Ok(Err(LinkFault::Aborted)),
                Ok(LastWord::End(count)) => self.sent = Some(count),
                Err(fault) => return Ok(Err(fault)),
            }
        }
        Ok(match self.line.hear(&mut [0], &mut 0)? {
            Progress::Waiting => Ok(Heard::Nothing),
            Progress::Complete => Err(LinkFault::Malformed("it spoke on after its last word")),
        })
    }

    /// Adds what tells that there is something to hear, or room to speak.
    pub(super) fn watch<'a>(&'a self, hear: bool, fds: &mut Vec<PollFd<'a>>) {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, hear && !self.over);
        flags.set(PollFlags::OUT, self.wants_write());
        if !flags.is_empty() {
            fds.push(PollFd::new(&self.line.socket, flags));
        }
    }
}

fn why(fail: Fail) -> String {
    match fail {
        Fail::Broken(why) => why,
        Fail::Tls(error) => error.to_string(),
    }
}
