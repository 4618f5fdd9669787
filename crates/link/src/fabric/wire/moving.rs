//! Requests of a line to a ring: plaintext in and out, and when to look again.

use std::io::IoSlice;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::FabricWire;
use crate::LinkFault;
use crate::fabric::hello::LastWord;
use crate::fabric::ring::{self, OUT};
use crate::fabric::seal::{PAYLOAD, TAG};
use crate::fabric::sys::Endpoint;
use crate::fabric::{EVERY, SLOT};
use crate::line::{Sent, Wire};

/// The control connection is listened to after so many looks at the ring, while those find something.
const LOOKS: u32 = 16;

/// How long packets may be on their way whose sender has gone in order.
const LATE: Duration = Duration::from_secs(5);

/// After so many looks a bell is not believed that rings for nothing.
const WEARY: u32 = 4096;

/// Looks one after the other before this side lets others have the core between them.
const AT_ONCE: u32 = 32;

/// Looks before this side sleeps. Where all share one core, a look is time that the peer lacks.
fn looks_at_once() -> u32 {
    static LOOKS: OnceLock<u32> = OnceLock::new();
    *LOOKS.get_or_init(|| match thread::available_parallelism() {
        Ok(cores) if cores.get() > 1 => 400,
        _ => 0,
    })
}

impl Wire for FabricWire {
    fn write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, LinkFault> {
        let mut taken = 0;
        for slice in slices {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                if self.sealed || self.fill == PAYLOAD {
                    if !self.dispatch() {
                        return Ok(taken);
                    }
                    continue;
                }
                let write = self.sent as usize % OUT;
                if self.busy[write] {
                    self.drive();
                    if self.busy[write] {
                        return Ok(taken);
                    }
                }
                let (now, later) = rest.split_at(rest.len().min(PAYLOAD - self.fill));
                self.endpoint
                    .out(write * SLOT + self.fill, now.len())
                    .copy_from_slice(now);
                self.fill += now.len();
                taken += now.len();
                rest = later;
            }
        }
        Ok(taken)
    }

    fn wants_write(&self) -> bool {
        self.fill > 0 || self.owed > 0 || self.under_way() || self.control.wants_write()
    }

    fn flush(&mut self) -> Result<Sent, String> {
        let mut moved = self.drive();
        let mut again = true;
        while again {
            again = self.dispatch();
            moved |= again;
            // A provider that takes nothing now does when it was driven.
            again |= self.fill > 0 && self.drive();
        }
        let left = self.control.leave()?;
        let all = left && self.fill == 0 && self.owed == 0 && !self.under_way();
        if !all && !moved && self.quiet > looks_at_once() {
            // What the peer said is for the reader; that it is gone is for the writer, too.
            if let Err(fault) = self.listen() {
                self.fault.get_or_insert(fault);
            }
            if self.over.is_some() {
                return Err("it is gone".into());
            }
        }
        match &self.broken {
            Some(why) => Err(why.clone()),
            None => Ok(Sent { moved, all }),
        }
    }

    fn finish(&mut self) -> Result<bool, String> {
        if self.fill > 0 || self.under_way() {
            return Ok(false);
        }
        self.control.end(LastWord::End(self.sent))
    }

    fn abort(&mut self) -> bool {
        self.fill = 0;
        self.sealed = false;
        // A peer that cannot be told finds the connection closed.
        let _ = self.control.end(LastWord::Abort);
        true
    }

    fn read(&mut self, take: impl FnOnce(&[u8]) -> usize) -> usize {
        if self.plain.is_empty() {
            return 0;
        }
        let taken = take(&self.packet[self.plain.clone()]);
        self.plain.start += taken;
        taken
    }

    /// Copies the next packet out of the ring, since the peer could change it there between check and use, and opens the copy.
    fn open(&mut self) -> Result<bool, LinkFault> {
        let number = self.into.packets.count();
        let credit = self.into.credits.count();
        let place = credit as usize % ring::CREDITS;
        // The peer has the credit that was written from there, and this side may not have been told yet.
        if self.busy[OUT + place] {
            self.drive();
        }
        if !self.plain.is_empty() || self.busy[OUT + place] {
            return Ok(false);
        }
        let Some(bytes) = self.arrived.take_packet(number) else {
            return Ok(false);
        };
        let packet = &mut self.packet[..bytes];
        self.endpoint.copy(ring::packet(number), packet);
        let Some(plain) = self.into.packets.open(packet) else {
            let what = format!("packet {} does not open", number + 1);
            return Err(LinkFault::Cipher(what));
        };
        self.plain = 0..plain.len();
        if (number + 1).is_multiple_of(EVERY as u64) {
            let tag = self.into.credits.seal(&mut []);
            self.endpoint
                .out(ring::credit_out(credit), TAG)
                .copy_from_slice(&tag);
            self.owed += 1;
            self.give_credits();
        }
        Ok(true)
    }

    fn refill(&mut self) -> Result<usize, LinkFault> {
        self.drive();
        let came = std::mem::take(&mut self.came);
        if came > 0 {
            return Ok(came);
        }
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        self.looks = self.looks.wrapping_add(1);
        let listen = self.looks.is_multiple_of(LOOKS) || self.quiet >= looks_at_once() || !self.met;
        if listen || self.broken.is_some() {
            self.listen()?;
        }
        if let Some(why) = &self.broken {
            return Err(LinkFault::Closed(why.clone()));
        }
        match self.over {
            // It went in order, and its last packets are on their way.
            Some((since, Some(sent)))
                if self.into.packets.count() < sent && since.elapsed() < LATE =>
            {
                Ok(0)
            }
            Some(_) => Err(LinkFault::gone()),
            None => Ok(0),
        }
    }

    fn forget(&mut self) {
        self.plain = 0..0;
    }

    fn backlog(&self) -> bool {
        true
    }

    fn rest(&mut self) -> Duration {
        self.quiet = self.quiet.saturating_add(1);
        let naps = self.quiet.saturating_sub(looks_at_once());
        if naps == 0 {
            if self.quiet > AT_ONCE {
                // The peer may need this core.
                thread::yield_now();
            }
            return Duration::ZERO;
        }
        // A provider may have something to do that its bell does not tell, so the sleep is short at first in any case.
        let rings = self.met && self.endpoint.bell().is_some() && naps <= WEARY;
        let now = rings && !self.endpoint.may_sleep();
        Endpoint::nap(if now { 0 } else { naps })
    }

    fn watch<'a>(&'a self, read: bool, _write: bool, fds: &mut Vec<PollFd<'a>>) {
        self.control.watch(read, fds);
        if let Some(bell) = self.endpoint.bell()
            && self.quiet <= looks_at_once() + WEARY
        {
            fds.push(PollFd::from_borrowed_fd(bell, PollFlags::IN));
        }
    }
}
