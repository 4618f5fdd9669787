//! Links of the parties of a run whose messages go from node to node. Names and lengths of messages are as the link within has them.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use veil_link::{Link, LinkError, LinkFault, Meters, Woken};
use veil_session::{Channel, PartyId, Peer, SessionId};

use super::carrier::{ROOM, SLOT_WORDS, node_of};
use super::{Carrier, Failure, NodeError};

/// How long a host leaves others alone that have to come to something first.
const REST: Duration = Duration::from_micros(100);

/// A message under way.
struct Flight {
    to: Peer,
    /// The node that it goes to; none of a participant that is no party.
    node: Option<u8>,
    at: Channel,
    /// Bytes that have to land.
    length: usize,
    landed: Vec<u8>,
}

/// A participant's link whose messages to other parties go from node to node.
pub struct Carried<L> {
    inner: L,
    carrier: Carrier,
    me: Peer,
    /// Among the links of the carrier.
    number: u64,
    /// In the order in which they were posted.
    flights: VecDeque<Flight>,
    /// The node to which there was no room.
    refused: Option<u8>,
    sent: Meters,
    /// The session's name, while messages from before it had one are under way, and how many those are.
    unnamed: Option<(SessionId, usize)>,
}

impl<L: Link> Carried<L> {
    pub(super) fn new(me: Peer, inner: L, carrier: Carrier, number: u64) -> Self {
        Carried {
            inner,
            carrier,
            me,
            number,
            flights: VecDeque::new(),
            refused: None,
            sent: Meters::default(),
            unnamed: None,
        }
    }

    /// Hands on what has landed. `true` if anything was, or if there is room again for a caller that was refused.
    fn release(&mut self) -> Result<bool, LinkError> {
        let mut moved = self.hand_on()?;
        if let Some((session, 0)) = self.unnamed {
            self.unnamed = None;
            self.inner.bind(session);
            self.hand_on()?;
            moved = true;
        }
        if let (Some(me), Some(node)) = (node_of(self.me), self.refused) {
            let mut all = self.carrier.lock();
            if all.line(me, node).is_none_or(|line| line.bytes <= ROOM / 2) {
                self.refused = None;
                moved = true;
            }
        }
        Ok(moved)
    }

    fn hand_on(&mut self) -> Result<bool, LinkError> {
        let mut moved = false;
        // Messages to a peer keep their order, and do not wait for those to others.
        let mut behind: Vec<Peer> = Vec::new();
        let mut at = 0;
        while at < self.flights.len() && self.unnamed.is_none_or(|(_, before)| at < before) {
            self.take(at);
            let flight = &self.flights[at];
            let whole = flight.landed.len() == flight.length;
            let to = flight.to;
            let posted = whole && !behind.contains(&to);
            let posted = posted && {
                let posted = self.inner.post(to, flight.at, &flight.landed);
                posted.inspect_err(|_| self.forget(to))?
            };
            if posted {
                self.flights.remove(at);
                if let Some((_, before)) = &mut self.unnamed {
                    *before -= 1;
                }
                moved = true;
            } else {
                behind.push(to);
                at += 1;
            }
        }
        Ok(moved)
    }

    /// Takes what has landed of a message, unless another one to the same node comes before it.
    fn take(&mut self, at: usize) {
        let (Some(me), Some(node)) = (node_of(self.me), self.flights[at].node) else {
            return;
        };
        let before = self.flights.iter().take(at);
        if before
            .filter(|flight| flight.node == Some(node))
            .any(|flight| flight.landed.len() < flight.length)
        {
            return;
        }
        let mut all = self.carrier.lock();
        let landed = all
            .line(me, node)
            .and_then(|line| line.landed.get_mut(&self.number));
        let flight = &mut self.flights[at];
        if let Some(landed) = landed {
            while flight.landed.len() < flight.length
                && let Some(bytes) = landed.pop_front()
            {
                flight.landed.extend_from_slice(&bytes);
            }
        }
    }

    /// A peer takes nothing any more; what is on its way to others reaches them.
    fn forget(&mut self, peer: Peer) {
        if let Some((_, before)) = &mut self.unnamed {
            let early = self.flights.iter().take(*before);
            *before -= early.filter(|flight| flight.to == peer).count();
        }
        self.flights.retain(|flight| flight.to != peer);
    }

    fn error(&self, (node, error): (u8, NodeError)) -> LinkError {
        let text = format!("node {node}: {error}");
        let peer = PartyId::new(node).map(Peer::Party);
        LinkError {
            peer: peer.unwrap_or(self.me),
            at: self.flights.front().map(|flight| flight.at),
            fault: match error {
                NodeError::Failed {
                    failure: Failure::Unopened(_),
                    ..
                } => LinkFault::Cipher(text),
                _ => LinkFault::Closed(text),
            },
        }
    }

    /// Lets time go on while something is under way.
    fn advance(&mut self) -> Result<bool, LinkError> {
        let mut all = self.carrier.lock();
        let works = node_of(self.me).is_some_and(|me| all.works(me) || all.has_failed(me));
        if self.flights.is_empty() && !works {
            return Ok(false);
        }
        let advanced = all.advance();
        drop(all);
        advanced.map_err(|failed| self.error(failed))
    }

    /// Whether messages or products are under way.
    fn goes_on(&self) -> bool {
        !self.flights.is_empty() || node_of(self.me).is_some_and(|me| self.carrier.lock().works(me))
    }
}

impl<L: Link> Link for Carried<L> {
    /// Takes effect when the messages that are under way have left: they belong to the time before.
    fn bind(&mut self, session: SessionId) {
        if self.flights.is_empty() {
            self.inner.bind(session);
        } else {
            self.unnamed = Some((session, self.flights.len()));
        }
    }

    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        self.release()?;
        let node = node_of(self.me).and(node_of(to));
        match (node_of(self.me), node) {
            (Some(me), Some(node)) => {
                let mut all = self.carrier.lock();
                let Some(line) = all.line(me, node) else {
                    return Err(LinkError {
                        peer: to,
                        at: Some(at),
                        fault: LinkFault::NoSuchPeer,
                    });
                };
                if line.bytes > 0 && line.bytes + bytes.len() > ROOM {
                    drop(all);
                    self.refused = Some(node);
                    return Ok(false);
                }
                for piece in bytes.chunks(16 * SLOT_WORDS as usize) {
                    line.waiting.push_back((self.number, piece.to_vec()));
                }
                line.bytes += bytes.len();
                let started = all.start(me, node);
                drop(all);
                started.map_err(|error| self.error((me, error)))?;
                self.flights.push_back(Flight {
                    to,
                    node: Some(node),
                    at,
                    length: bytes.len(),
                    landed: Vec::new(),
                });
            }
            _ if self.flights.is_empty() => {
                if !self.inner.post(to, at, bytes)? {
                    return Ok(false);
                }
            }
            _ => self.flights.push_back(Flight {
                to,
                node: None,
                at,
                length: bytes.len(),
                landed: bytes.to_vec(),
            }),
        }
        self.sent.sent(bytes.len());
        Ok(true)
    }

    fn poll(&mut self) -> Result<bool, LinkError> {
        Ok(self.advance()? | self.release()? | self.inner.poll()?)
    }

    fn wait(&mut self, until: Instant) -> Result<Woken, LinkError> {
        while self.goes_on() {
            if self.poll()? {
                return Ok(Woken::Ready);
            }
            if Instant::now() >= until {
                return Ok(Woken::TimedOut);
            }
            // Others have to come first to what is waited for.
            if !self.carrier.lock().goes_on() {
                thread::sleep(REST);
            }
        }
        self.inner.wait(until)
    }

    fn abort(&mut self) {
        self.flights.clear();
        self.inner.abort();
    }

    fn under_way(&self) -> bool {
        !self.flights.is_empty() || self.inner.under_way()
    }

    fn close(&mut self, until: Instant) -> Result<(), LinkError> {
        while let Some(flight) = self.flights.front() {
            let (peer, bytes) = (flight.to, flight.length as u64);
            if Instant::now() >= until {
                return Err(LinkError {
                    peer,
                    at: None,
                    fault: LinkFault::Unsent(bytes),
                });
            }
            self.wait(until)?;
        }
        self.inner.close(until)
    }

    fn meters(&self) -> Meters {
        self.inner.meters().with_sent(self.sent)
    }

    veil_link::forward!(self, self.inner, expect land);
}
