//! A test instrument: a participant that does not send what its protocol says.
//!
//! [`Tapped`] stands between a participant and its link. A closure sees every message that is posted and decides its fate; with
//! [`Fate::Pass`] for all of them it only records. For tests that cheat on purpose: no product code builds one, and a wrapper
//! around a party's own link gives it no power that the party lacks anyway.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use veil_session::{Channel, Peer};

use crate::{Link, LinkError, Woken};

/// The fate of a posted message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is sent as it is.
    Pass,
    /// It is not sent; its sender believes that it was.
    Drop,
    /// Other bytes are sent under its name.
    Replace(Vec<u8>),
    /// It is sent twice.
    Twice,
    /// It is sent later; messages posted meanwhile go before it.
    Delay(Duration),
    /// Any other messages are sent instead, to any peer, under any name.
    Instead(Vec<(Peer, Channel, Vec<u8>)>),
}

/// A message that the tap still has to send.
#[derive(Debug)]
struct Pending {
    due: Option<Instant>,
    to: Peer,
    at: Channel,
    bytes: Vec<u8>,
}

/// A link whose outgoing messages pass through a closure.
#[derive(Debug)]
pub struct Tapped<L, F> {
    inner: L,
    tap: F,
    pending: VecDeque<Pending>,
}

impl<L: Link, F: FnMut(Peer, Channel, &[u8]) -> Fate + Send> Tapped<L, F> {
    /// Lets `tap` decide about every message that is posted to `inner`. It is asked once per message.
    pub fn new(inner: L, tap: F) -> Self {
        Tapped {
            inner,
            tap,
            pending: VecDeque::new(),
        }
    }

    /// The link behind the tap, to say or hear something on the side.
    pub const fn inner_mut(&mut self) -> &mut L {
        &mut self.inner
    }

    /// Sends what is due, in order. `true` if anything was sent.
    fn release(&mut self) -> Result<bool, LinkError> {
        let now = Instant::now();
        let mut moved = false;
        let mut i = 0;
        while let Some(next) = self.pending.get(i) {
            if next.due.is_some_and(|due| due > now)
                || !self.inner.post(next.to, next.at, &next.bytes)?
            {
                i += 1;
                continue;
            }
            self.pending.remove(i);
            moved = true;
        }
        Ok(moved)
    }

    fn later(&mut self, due: Option<Instant>, to: Peer, at: Channel, bytes: Vec<u8>) {
        self.pending.push_back(Pending { due, to, at, bytes });
    }

    fn next_due(&self) -> Option<Instant> {
        let now = Instant::now();
        self.pending
            .iter()
            .filter_map(|p| p.due)
            .filter(|&due| due > now)
            .min()
    }
}

impl<L: Link, F: FnMut(Peer, Channel, &[u8]) -> Fate + Send> Link for Tapped<L, F> {
    /// Always has room for a message that the tap lets pass, unless an earlier one to this peer still waits for room.
    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        self.release()?;
        if self.pending.iter().any(|p| p.to == to && p.due.is_none()) {
            return Ok(false);
        }
        match (self.tap)(to, at, bytes) {
            Fate::Pass => self.later(None, to, at, bytes.to_vec()),
            Fate::Drop => {}
            Fate::Replace(other) => self.later(None, to, at, other),
            Fate::Twice => {
                self.later(None, to, at, bytes.to_vec());
                self.later(None, to, at, bytes.to_vec());
            }
            Fate::Delay(time) => self.later(Some(Instant::now() + time), to, at, bytes.to_vec()),
            Fate::Instead(others) => {
                for (to, at, bytes) in others {
                    self.later(None, to, at, bytes);
                }
            }
        }
        self.release()?;
        Ok(true)
    }

    fn poll(&mut self) -> Result<bool, LinkError> {
        Ok(self.release()? | self.inner.poll()?)
    }

    fn wait(&mut self, until: Instant) -> Result<Woken, LinkError> {
        loop {
            if self.release()? {
                return Ok(Woken::Ready);
            }
            let due = self.next_due().filter(|&due| due < until);
            match self.inner.wait(due.unwrap_or(until))? {
                Woken::TimedOut if due.is_some() => {}
                woken => return Ok(woken),
            }
        }
    }

    fn abort(&mut self) {
        self.pending.clear();
        self.inner.abort();
    }

    fn under_way(&self) -> bool {
        !self.pending.is_empty() || self.inner.under_way()
    }

    fn close(&mut self, until: Instant) -> Result<(), LinkError> {
        while !self.pending.is_empty() && Instant::now() < until {
            self.wait(until)?;
        }
        self.inner.close(until)
    }

    // A message that is held back while the session gets its name goes out under the new one.
    crate::forward!(self, self.inner, bind expect land meters);
}

#[cfg(test)]
mod tests {
    use veil_session::PartyId;

    use super::*;
    use crate::frame::tests::at;
    use crate::memory::{self, MemoryLink};
    use crate::{Bounds, LinkFault};

    const BOUNDS: Bounds = Bounds {
        longest: 100,
        early: 10_000,
        credit: 10_000,
        places: 100,
        chunks: 1,
        epochs: 1,
    };

    fn ends() -> (Peer, Peer, MemoryLink, MemoryLink) {
        let [a, b, _] = PartyId::THREE.map(Peer::Party);
        let mut links = memory::mesh(&[a, b], BOUNDS);
        let far = links.pop().unwrap();
        (a, b, links.pop().unwrap(), far)
    }

    /// What lands, place by place, when `0..count` are posted through `tap`.
    fn landed(count: u32, tap: impl FnMut(Peer, Channel, &[u8]) -> Fate + Send) -> Vec<Option<u8>> {
        let (a, b, near, mut far) = ends();
        let mut near = Tapped::new(near, tap);
        for place in 0..count {
            assert!(near.post(b, at(place), &[place as u8]).unwrap());
        }
        (0..count)
            .map(|place| {
                let mut got = [0];
                far.expect(a, at(place), 1).unwrap();
                far.land(a, at(place), &mut got).unwrap().then_some(got[0])
            })
            .collect()
    }

    #[test]
    fn each_message_meets_its_fate() {
        let got = landed(4, |_, at, _| match at.step.place {
            0 => Fate::Pass,
            1 => Fate::Drop,
            2 => Fate::Replace(vec![77]),
            _ => Fate::Delay(Duration::from_secs(60)),
        });
        assert_eq!(got, [Some(0), None, Some(77), None]);
    }

    #[test]
    fn repeated_and_foreign_messages_reach_the_checks_of_the_other_side() {
        let (_, b, near, mut far) = ends();
        let mut near = Tapped::new(near, |_, _, _: &[u8]| Fate::Twice);
        near.post(b, at(0), &[1]).unwrap();
        assert_eq!(far.poll().unwrap_err().fault, LinkFault::Duplicate);

        let (_, b, near, mut far) = ends();
        let mut near = Tapped::new(near, |to, _, _: &[u8]| {
            Fate::Instead(vec![(to, at(100), vec![])])
        });
        near.post(b, at(0), &[1]).unwrap();
        assert_eq!(far.poll().unwrap_err().fault, LinkFault::Unexpected);
    }

    #[test]
    fn a_delayed_message_comes_after_those_posted_later() {
        let (a, b, near, mut far) = ends();
        let mut near = Tapped::new(near, |_, at: Channel, _: &[u8]| match at.step.place {
            0 => Fate::Delay(Duration::from_millis(20)),
            _ => Fate::Pass,
        });
        for place in 0..2 {
            near.post(b, at(place), &[1]).unwrap();
            far.expect(a, at(place), 1).unwrap();
        }
        assert!(!far.land(a, at(0), &mut [0]).unwrap());
        assert!(far.land(a, at(1), &mut [0]).unwrap());
        near.close(Instant::now() + Duration::from_secs(5)).unwrap();
        assert!(far.land(a, at(0), &mut [0]).unwrap());
    }
}
