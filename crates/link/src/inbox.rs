//! Messages that one peer may send, and messages that are here: expected names, early arrivals, and every check on them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;
use veil_session::{Channel, Peer, Wiped};

use crate::copy::copy;
use crate::pool::{Pool, forget};
use crate::{Bounds, LinkError, LinkFault};

/// What an early arrival costs beside its payload: a flood of empty messages is bounded like one of long messages.
pub(crate) const EARLY_OVERHEAD: u64 = 64;

/// How many landed names are remembered, to tell a repeated message from an unknown one. A power of two.
const REMEMBERED: usize = 1024;

/// May the payload of an announced message be read now?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admit {
    /// Yes.
    Now,
    /// Not before this side has taken, or expects, something more: read nothing further from this peer.
    Later,
}

#[derive(Debug)]
enum Slot {
    Expected(u64),
    Here(Vec<u8>),
    Early(Vec<u8>),
}

/// One peer's messages at the receiving side.
///
/// The transport asks [`Inbox::admit`] as soon as it has read a header, reads the payload if it may, and gives the message to
/// [`Inbox::deliver`]; the owner of the link calls `expect`, `land` and `bind`. Neither keeps more than `Bounds::early`.
#[derive(Debug)]
pub(crate) struct Inbox {
    peer: Peer,
    bounds: Bounds,
    tag: u64,
    bound: bool,
    slots: HashMap<Channel, Slot, RandomState>,
    landed: Vec<Option<Channel>>,
    held: Vec<(u64, Channel, Vec<u8>)>,
    early: u64,
    pool: Pool,
    fault: Option<LinkError>,
}

impl Inbox {
    /// An empty inbox for what `peer` sends under `tag`.
    pub(crate) fn new(peer: Peer, bounds: Bounds, tag: u64) -> Self {
        Inbox {
            peer,
            bounds,
            tag,
            bound: false,
            slots: HashMap::default(),
            landed: vec![None; REMEMBERED],
            held: Vec::new(),
            early: 0,
            pool: Pool::new(bounds.early.saturating_add(bounds.credit)),
            fault: None,
        }
    }

    /// The tag under which this side sends and receives.
    pub(crate) const fn tag(&self) -> u64 {
        self.tag
    }

    /// Where buffers for the payloads come from.
    pub(crate) fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// What messages that the caller does not expect cost now; never more than `Bounds::early`.
    pub(crate) const fn early(&self) -> u64 {
        self.early
    }

    /// What is wrong with this peer, if anything is.
    pub(crate) const fn fault(&self) -> Option<&LinkError> {
        self.fault.as_ref()
    }

    /// Remembers the first fault; later ones are its consequences.
    pub(crate) fn fail(&mut self, at: Option<Channel>, fault: LinkFault) {
        if self.fault.is_none() {
            self.fault = Some(LinkError {
                peer: self.peer,
                at,
                fault,
            });
        }
    }

    /// An abort overrides what was noticed before: it is the cause, a closed connection its consequence.
    pub(crate) fn aborted(&mut self) {
        self.fault = Some(LinkError {
            peer: self.peer,
            at: None,
            fault: LinkFault::Aborted,
        });
    }

    /// Checks a header before anything is allocated for its payload.
    pub(crate) fn admit(&self, tag: u64, at: Channel, length: u64) -> Result<Admit, LinkFault> {
        let Bounds {
            places,
            chunks,
            epochs,
            ..
        } = self.bounds;
        let frame = at.frame;
        if at.step.place >= places || frame.chunk >= chunks || frame.epoch >= epochs {
            return Err(LinkFault::Unexpected);
        }
        if length > self.bounds.longest {
            return Err(LinkFault::Length {
                got: length,
                want: self.bounds.longest,
            });
        }
        if tag == self.tag {
            match self.slots.get(&at) {
                Some(&Slot::Expected(want)) if want == length => return Ok(Admit::Now),
                Some(&Slot::Expected(want)) => return Err(LinkFault::Length { got: length, want }),
                Some(Slot::Here(_) | Slot::Early(_)) => return Err(LinkFault::Duplicate),
                None if self.landed[place(&at)] == Some(at) => {
                    return Err(LinkFault::Duplicate);
                }
                None => {}
            }
        } else if self.bound || self.held.first().is_some_and(|h| h.0 != tag) {
            return Err(LinkFault::Session);
        }
        let room = self.early.saturating_add(length + EARLY_OVERHEAD) <= self.bounds.early;
        Ok(if room { Admit::Now } else { Admit::Later })
    }

    /// Takes in a message whose payload is here already, or gives it back if it must wait.
    pub(crate) fn offer(
        &mut self,
        tag: u64,
        at: Channel,
        body: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, LinkFault> {
        let length = body.len() as u64;
        if tag == self.tag
            && let Some(slot) = self.slots.get_mut(&at)
            && matches!(slot, Slot::Expected(want) if *want == length)
        {
            *slot = Slot::Here(body);
            return Ok(None);
        }
        match self.admit(tag, at, length)? {
            Admit::Now => self.deliver(tag, at, body).map(|()| None),
            Admit::Later => Ok(Some(body)),
        }
    }

    /// Takes in a message that was admitted.
    pub(crate) fn deliver(
        &mut self,
        tag: u64,
        at: Channel,
        body: Vec<u8>,
    ) -> Result<(), LinkFault> {
        if tag != self.tag {
            if self.bound {
                return Err(LinkFault::Session);
            }
            self.early += body.len() as u64 + EARLY_OVERHEAD;
            self.held.push((tag, at, body));
            return Ok(());
        }
        match self.slots.entry(at) {
            Entry::Occupied(mut slot) => match *slot.get() {
                Slot::Expected(want) if want == body.len() as u64 => {
                    slot.insert(Slot::Here(body));
                }
                Slot::Expected(want) => {
                    return Err(LinkFault::Length {
                        got: body.len() as u64,
                        want,
                    });
                }
                Slot::Here(_) | Slot::Early(_) => return Err(LinkFault::Duplicate),
            },
            Entry::Vacant(slot) => {
                self.early += body.len() as u64 + EARLY_OVERHEAD;
                slot.insert(Slot::Early(body));
            }
        }
        Ok(())
    }

    /// See [`crate::Link::expect`].
    pub(crate) fn expect(&mut self, at: Channel, bytes: u64) -> Result<(), LinkError> {
        let peer = self.peer;
        let err = |fault| LinkError {
            peer,
            at: Some(at),
            fault,
        };
        match self.slots.entry(at) {
            Entry::Vacant(slot) => {
                slot.insert(Slot::Expected(bytes));
            }
            Entry::Occupied(mut slot) => match slot.get_mut() {
                Slot::Early(body) => {
                    let body = std::mem::take(body);
                    let got = body.len() as u64;
                    self.early -= got + EARLY_OVERHEAD;
                    slot.insert(Slot::Here(body));
                    if got != bytes {
                        let fault = LinkFault::Length { got, want: bytes };
                        self.fail(Some(at), fault.clone());
                        return Err(err(fault));
                    }
                }
                Slot::Expected(_) | Slot::Here(_) => {
                    return Err(err(LinkFault::Misuse("a message was announced twice")));
                }
            },
        }
        Ok(())
    }

    /// See [`crate::Link::land`]. What is here can be taken even from a peer that failed since.
    pub(crate) fn land(&mut self, at: Channel, into: &mut [u8]) -> Result<bool, LinkError> {
        self.land_pieces(at, into.len(), &mut |body| copy(into, body))
    }

    /// See [`crate::Link::land_pieces`].
    pub(crate) fn land_pieces(
        &mut self,
        at: Channel,
        bytes: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, LinkError> {
        let Some(body) = self.take(at, bytes)? else {
            return Ok(false);
        };
        put(&body);
        self.pool.put(body);
        Ok(true)
    }

    /// See [`crate::Link::land_whole`].
    pub(crate) fn land_whole(
        &mut self,
        at: Channel,
        into: &mut Wiped<u8>,
    ) -> Result<bool, LinkError> {
        let Some(body) = self.take(at, into.len())? else {
            return Ok(false);
        };
        let held = std::mem::replace(into, Wiped::from(body));
        self.pool.put(held.into_inner());
        Ok(true)
    }

    /// The expected message, of so many bytes, if it is here.
    fn take(&mut self, at: Channel, bytes: usize) -> Result<Option<Vec<u8>>, LinkError> {
        let fault = match self.slots.entry(at) {
            Entry::Occupied(slot) => match slot.get() {
                Slot::Expected(_) => return Ok(None),
                Slot::Here(body) if body.len() == bytes => {
                    let Slot::Here(body) = slot.remove() else {
                        return Ok(None);
                    };
                    self.landed[place(&at)] = Some(at);
                    return Ok(Some(body));
                }
                Slot::Here(_) => {
                    LinkFault::Misuse("a message is landed at another length than announced")
                }
                Slot::Early(_) => LinkFault::Misuse("a message is landed that was not announced"),
            },
            Entry::Vacant(_) => LinkFault::Misuse("a message is landed that was not announced"),
        };
        Err(LinkError {
            peer: self.peer,
            at: Some(at),
            fault,
        })
    }

    /// See [`crate::Link::bind`].
    pub(crate) fn bind(&mut self, tag: u64) {
        self.tag = tag;
        self.bound = true;
        for (tag, at, body) in std::mem::take(&mut self.held) {
            self.early -= body.len() as u64 + EARLY_OVERHEAD;
            let taken = self
                .admit_again(tag, at, body.len() as u64)
                .and_then(|()| self.deliver(tag, at, body));
            if let Err(fault) = taken {
                self.fail(Some(at), fault);
            }
        }
    }

    /// A held message was within the limits when it came; its name and length are checked now.
    fn admit_again(&self, tag: u64, at: Channel, length: u64) -> Result<(), LinkFault> {
        self.admit(tag, at, length).map(|_| ())
    }

    /// The name of a message that came and that the caller did not ask for, if there is one.
    pub(crate) fn left_over(&self) -> Option<Channel> {
        let early = self
            .slots
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Early(_)));
        early
            .map(|(at, _)| *at)
            .chain(self.held.iter().map(|h| h.1))
            .min()
    }
}

impl Drop for Inbox {
    /// What the owner gave in exchange is among the buffers.
    fn drop(&mut self) {
        for slot in self.slots.drain() {
            if let (_, Slot::Here(body) | Slot::Early(body)) = slot {
                forget(body);
            }
        }
        self.held.drain(..).for_each(|(_, _, body)| forget(body));
    }
}

/// Where a landed name is remembered. A peer that makes names collide only blurs which error is reported.
fn place(at: &Channel) -> usize {
    let mixed = at
        .step
        .place
        .wrapping_add(at.step.cycle as u32)
        .wrapping_add(u32::from(at.part) << 5);
    (mixed ^ at.frame.chunk.wrapping_mul(0x9e37_79b1)) as usize % REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::tests::at;

    const BOUNDS: Bounds = Bounds {
        longest: 100,
        early: 300,
        credit: 1000,
        places: 1000,
        chunks: 1,
        epochs: 1,
    };

    fn inbox() -> Inbox {
        Inbox::new(Peer::Owner(3), BOUNDS, 7)
    }

    #[test]
    fn expected_then_here_then_landed() {
        let mut inbox = inbox();
        inbox.expect(at(1), 3).unwrap();
        let mut into = [0; 3];
        assert_eq!(inbox.land(at(1), &mut into), Ok(false));
        assert_eq!(inbox.admit(7, at(1), 3), Ok(Admit::Now));
        inbox.deliver(7, at(1), vec![1, 2, 3]).unwrap();
        assert_eq!(inbox.land(at(1), &mut into), Ok(true));
        assert_eq!(into, [1, 2, 3]);
    }

    #[test]
    fn early_then_expected() {
        let mut inbox = inbox();
        inbox.deliver(7, at(1), vec![9]).unwrap();
        inbox.expect(at(1), 1).unwrap();
        let mut into = [0];
        assert_eq!(inbox.land(at(1), &mut into), Ok(true));
        assert_eq!((into, inbox.early), ([9], 0));
    }

    #[test]
    fn a_repeated_message_is_named_before_and_after_it_landed() {
        let mut inbox = inbox();
        inbox.expect(at(1), 1).unwrap();
        inbox.deliver(7, at(1), vec![9]).unwrap();
        assert_eq!(inbox.admit(7, at(1), 1), Err(LinkFault::Duplicate));
        assert_eq!(inbox.deliver(7, at(1), vec![9]), Err(LinkFault::Duplicate));
        inbox.land(at(1), &mut [0]).unwrap();
        assert_eq!(inbox.admit(7, at(1), 1), Err(LinkFault::Duplicate));
    }

    #[test]
    fn what_is_not_in_the_plan_or_too_long_is_refused_at_its_header() {
        let mut inbox = inbox();
        assert_eq!(inbox.admit(7, at(1000), 1), Err(LinkFault::Unexpected));
        let mut chunk = at(1);
        chunk.frame.chunk = 1;
        assert_eq!(inbox.admit(7, chunk, 1), Err(LinkFault::Unexpected));
        assert_eq!(
            inbox.admit(7, at(1), 101),
            Err(LinkFault::Length {
                got: 101,
                want: 100
            })
        );
        inbox.expect(at(1), 3).unwrap();
        assert_eq!(
            inbox.admit(7, at(1), 4),
            Err(LinkFault::Length { got: 4, want: 3 })
        );
    }

    #[test]
    fn early_arrivals_are_bounded_even_when_they_are_empty() {
        let mut inbox = inbox();
        let mut taken = 0;
        while inbox.admit(7, at(taken), 0) == Ok(Admit::Now) {
            inbox.deliver(7, at(taken), Vec::new()).unwrap();
            taken += 1;
        }
        assert_eq!(u64::from(taken), BOUNDS.early / EARLY_OVERHEAD);
        inbox.expect(at(0), 0).unwrap();
        assert_eq!(
            inbox.admit(7, at(taken), 0),
            Ok(Admit::Now),
            "taking one makes room for one"
        );
    }

    #[test]
    fn an_early_message_of_another_length_fails_when_it_is_expected() {
        let mut inbox = inbox();
        inbox.deliver(7, at(1), vec![9; 4]).unwrap();
        let error = inbox.expect(at(1), 5).unwrap_err();
        assert_eq!(error.fault, LinkFault::Length { got: 4, want: 5 });
        assert_eq!(inbox.fault(), Some(&error));
    }

    #[test]
    fn messages_of_the_session_wait_for_its_name_and_others_fail() {
        let mut inbox = inbox();
        assert_eq!(inbox.admit(8, at(1), 1), Ok(Admit::Now));
        inbox.deliver(8, at(1), vec![5]).unwrap();
        assert_eq!(
            inbox.admit(9, at(2), 1),
            Err(LinkFault::Session),
            "one session only"
        );
        inbox.bind(8);
        inbox.expect(at(1), 1).unwrap();
        let mut into = [0];
        assert_eq!(inbox.land(at(1), &mut into), Ok(true));
        assert_eq!((into, inbox.early), ([5], 0));
        assert_eq!(inbox.admit(7, at(2), 1), Err(LinkFault::Session));

        let mut other = self::inbox();
        other.deliver(8, at(1), vec![5]).unwrap();
        other.bind(10);
        assert_eq!(other.fault().unwrap().fault, LinkFault::Session);
    }

    #[test]
    fn mistakes_of_this_side_are_called_so() {
        let mut inbox = inbox();
        let misuse =
            |r: Result<(), LinkError>| matches!(r.unwrap_err().fault, LinkFault::Misuse(_));
        assert!(misuse(inbox.land(at(1), &mut []).map(|_| ())));
        inbox.expect(at(1), 1).unwrap();
        assert!(misuse(inbox.expect(at(1), 1)));
        inbox.deliver(7, at(1), vec![1]).unwrap();
        assert!(misuse(inbox.land(at(1), &mut [0; 2]).map(|_| ())));
    }
}
