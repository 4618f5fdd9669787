//! Participants on loopback, for the tests of links over TLS.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod suite;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use veil_link::tls::{self, Connected, Identity, Meeting, Port, Reception, Terms};
use veil_link::{Bounds, Link, LinkKind, Woken};
use veil_session::{Channel, Frame, PartyId, Peer, PlanHash, SessionId, StepId};

pub(crate) const BOUNDS: Bounds = Bounds {
    longest: 4 << 20,
    early: 1 << 24,
    credit: 1 << 24,
    places: 1000,
    chunks: 4,
    epochs: 1,
};

pub(crate) fn at(place: u32) -> Channel {
    Channel {
        frame: Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: 1,
        },
        step: StepId { place, cycle: 0 },
        part: 0,
    }
}

pub(crate) fn party(i: u8) -> Peer {
    Peer::Party(PartyId::new(i).unwrap())
}

pub(crate) fn session(i: u8) -> SessionId {
    SessionId([i; 32])
}

pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(120)
}

/// Waits for one message, as an engine does.
pub(crate) fn take(link: &mut impl Link, from: Peer, at: Channel, into: &mut [u8]) {
    while !link.land(from, at, into).unwrap() {
        assert_eq!(link.wait(soon()).unwrap(), Woken::Ready, "nothing came");
    }
}

/// What a participant gets from meeting the others.
pub(crate) type Met = Result<Vec<Vec<Connected>>, tls::SetupError>;

/// What two ends do.
pub(crate) type Act<'a> = dyn Fn(&mut Box<dyn Link>, &mut Box<dyn Link>) + 'a;

/// One participant before it is connected.
pub(crate) struct Member {
    pub(crate) identity: Identity,
    pub(crate) terms: Terms,
    /// Parties listen.
    pub(crate) port: Option<Port>,
}

/// Participants who know each other's keys.
pub(crate) struct World {
    pub(crate) members: BTreeMap<Peer, Member>,
}

impl World {
    pub(crate) fn new(peers: &[Peer]) -> World {
        Self::over(peers, LinkKind::Tls)
    }

    /// The same, who want this link.
    pub(crate) fn over(peers: &[Peer], link: LinkKind) -> World {
        let identities: Vec<Identity> = peers
            .iter()
            .map(|_| Identity::generate().unwrap())
            .collect();
        let pins: BTreeMap<_, _> = peers
            .iter()
            .copied()
            .zip(identities.iter().map(Identity::fingerprint))
            .collect();
        let members = peers.iter().zip(identities).map(|(&me, identity)| {
            let terms = Terms {
                me,
                plan: PlanHash([9; 32]),
                pins: pins.clone(),
                link,
                others: Vec::new(),
            };
            let port = me.party().map(|_| {
                let reception = Reception::sole(pins.values().copied());
                Port::bind(&identity, "127.0.0.1:0", reception).unwrap()
            });
            (
                me,
                Member {
                    identity,
                    terms,
                    port,
                },
            )
        });
        World {
            members: members.collect(),
        }
    }

    pub(crate) fn address(&self, peer: Peer) -> String {
        self.port(peer).address().to_string()
    }

    pub(crate) fn port(&self, peer: Peer) -> &Port {
        self.members[&peer].port.as_ref().unwrap()
    }

    /// All participants meet: parties dial parties of lower index, the others dial all parties.
    pub(crate) fn try_meet(&self, lanes: u16, until: Instant) -> Vec<(Peer, Met)> {
        thread::scope(|scope| {
            let handles: Vec<_> = self
                .members
                .iter()
                .map(|(&me, member)| {
                    let meets =
                        |&p: &Peer| p != me && (p.party().is_some() || me.party().is_some());
                    let (dial, from): (Vec<Peer>, Vec<Peer>) = member
                        .terms
                        .pins
                        .keys()
                        .copied()
                        .filter(meets)
                        .partition(|&p| p.party().is_some() && p < me);
                    let dial: Vec<_> = dial.into_iter().map(|p| (p, self.address(p))).collect();
                    scope.spawn(move || {
                        let Member {
                            identity,
                            terms,
                            port,
                        } = member;
                        let meeting = Meeting {
                            dial: &dial,
                            from: &from,
                            lanes,
                            until,
                        };
                        let go = AtomicBool::new(false);
                        (me, tls::meet(identity, terms, port.as_ref(), &meeting, &go))
                    })
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        })
    }

    pub(crate) fn meet(&self, lanes: u16) -> Vec<(Peer, Vec<Vec<Connected>>)> {
        self.try_meet(lanes, soon())
            .into_iter()
            .map(|(me, met)| (me, met.unwrap()))
            .collect()
    }

    /// Two parties with one lane.
    pub(crate) fn pair(kind: LinkKind, bounds: Bounds) -> (Box<dyn Link>, Box<dyn Link>) {
        let mut ends = World::over(&[party(0), party(1)], kind).meet(1);
        let mut link = || {
            let connections = ends.pop().unwrap().1.remove(0);
            kind.open(connections, bounds).unwrap()
        };
        let second = link();
        (link(), second)
    }
}
