//! The side that listens: one declared port for all peers and lanes, and any number of strangers who get nowhere.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustls::{ServerConfig, ServerConnection};
use veil_session::Peer;

use super::config::{self, UnknownKey};
use super::dial::timespec;
use super::handshake::{Fail, Handshake, Progress};
use super::identity::{Fingerprint, Identity};
use super::preface::{Answer, CALL, Call, Garbled, Refusal, VERSION};
use super::{Connected, SetupError, Terms};

/// Connections that may be in their handshake at once; strangers cost no more than that.
const PENDING: usize = 64;

/// A handshake takes a few round trips; who takes longer is cut off.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a listener looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(100);

/// The declared port of this participant.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
}

/// A connection in its handshake.
struct Pending {
    handshake: Handshake,
    from: SocketAddr,
    expires: Instant,
    call: [u8; CALL],
    have: usize,
    /// Set once the answer is written: what to make of the connection when it has left.
    verdict: Option<Result<Call, SetupError>>,
}

/// What became of a connection that is no longer pending.
enum Outcome {
    Waiting,
    Done(Call),
    Fatal(SetupError),
    Stranger(String),
}

impl Listener {
    /// Listens on `address`, such as `0.0.0.0:7000`; port 0 lets the system choose.
    pub fn bind(address: &str) -> Result<Self, SetupError> {
        let err = |e: &io::Error| {
            let advice = match e.kind() {
                io::ErrorKind::AddrInUse => {
                    ": the port is in use; stop the other program (`ss -ltnp` shows it) or declare another port"
                }
                io::ErrorKind::AddrNotAvailable => {
                    ": this machine has no such address; 0.0.0.0 means all of them"
                }
                io::ErrorKind::PermissionDenied => {
                    ": ports below 1024 need privileges; declare a higher one"
                }
                _ => "",
            };
            SetupError::Listen {
                address: address.to_owned(),
                why: format!("{e}{advice}"),
            }
        };
        let socket = TcpListener::bind(address).map_err(|e| err(&e))?;
        socket.set_nonblocking(true).map_err(|e| err(&e))?;
        Ok(Listener { socket })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts `lanes` connections from each of `peers`. Strangers are turned away and change nothing; a peer that proved its
    /// key and runs another plan or version ends the wait at once, with an error on both sides.
    pub fn accept(
        &self,
        identity: &Identity,
        terms: &Terms,
        peers: &[Peer],
        lanes: u16,
        until: Instant,
    ) -> Result<Vec<Connected>, SetupError> {
        self.gather(
            identity,
            terms,
            peers,
            lanes,
            until,
            &AtomicBool::new(false),
        )
    }

    pub(super) fn gather(
        &self,
        identity: &Identity,
        terms: &Terms,
        peers: &[Peer],
        lanes: u16,
        until: Instant,
        stop: &AtomicBool,
    ) -> Result<Vec<Connected>, SetupError> {
        let local = |e: &dyn std::fmt::Display| SetupError::Local(e.to_string());
        let pins = peers
            .iter()
            .map(|&peer| terms.pin(peer))
            .collect::<Result<Vec<_>, _>>()?;
        let config = config::server(identity, pins).map_err(|e| local(&e))?;
        let mut gathering = Gathering {
            terms,
            peers,
            lanes,
            connected: Vec::new(),
        };
        let mut pending: Vec<Pending> = Vec::new();
        let mut hint = String::new();
        loop {
            self.answer(&config, &mut pending).map_err(|e| local(&e))?;
            let mut i = 0;
            while i < pending.len() {
                match gathering.step(&mut pending[i]) {
                    Outcome::Waiting => {
                        i += 1;
                        continue;
                    }
                    Outcome::Done(call) => {
                        let Handshake { socket, tls } = pending.swap_remove(i).handshake;
                        let (peer, lane, plan) = (call.from, call.lane, call.plan);
                        gathering.connected.push(Connected {
                            socket,
                            tls,
                            peer,
                            lane,
                            plan,
                        });
                        continue;
                    }
                    Outcome::Fatal(error) => return Err(error),
                    Outcome::Stranger(why) => {
                        hint = format!("{} was turned away: {why}", pending[i].from);
                    }
                }
                pending.swap_remove(i);
            }
            let missing = gathering.missing();
            if missing.is_empty() {
                return Ok(gathering.connected);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                return Err(SetupError::TimedOut {
                    peers: missing,
                    hint,
                });
            }
            self.sleep(&pending, left.min(GLANCE))
                .map_err(|e| local(&e))?;
        }
    }

    /// Takes in new connections, as far as there is room for them.
    fn answer(
        &self,
        config: &Arc<ServerConfig>,
        pending: &mut Vec<Pending>,
    ) -> Result<(), rustls::Error> {
        while pending.len() < PENDING {
            // An error here is one of the caller's connection or a shortage that passes; whoever is missing is reported.
            let Ok((socket, from)) = self.socket.accept() else {
                break;
            };
            if let Some(handshake) = prepare(socket, config)? {
                let expires = Instant::now() + PATIENCE;
                pending.push(Pending {
                    handshake,
                    from,
                    expires,
                    call: [0; CALL],
                    have: 0,
                    verdict: None,
                });
            }
        }
        Ok(())
    }

    fn sleep(&self, pending: &[Pending], at_most: Duration) -> io::Result<()> {
        let mut fds = Vec::with_capacity(pending.len() + 1);
        if pending.len() < PENDING {
            fds.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        for one in pending {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, one.handshake.tls.wants_write());
            fds.push(PollFd::new(&one.handshake.socket, flags));
        }
        super::settle(poll(&mut fds, Some(&timespec(at_most))))
    }
}

fn prepare(
    socket: TcpStream,
    config: &Arc<ServerConfig>,
) -> Result<Option<Handshake>, rustls::Error> {
    let tls = ServerConnection::new(Arc::clone(config))?;
    // A socket that cannot be prepared was closed already.
    Ok(Handshake::new(socket, tls.into()).ok())
}

/// Who is awaited, and who is there.
struct Gathering<'a> {
    terms: &'a Terms,
    peers: &'a [Peer],
    lanes: u16,
    connected: Vec<Connected>,
}

impl Gathering<'_> {
    fn missing(&self) -> Vec<Peer> {
        let here = |peer| self.connected.iter().filter(|c| c.peer == peer).count();
        self.peers
            .iter()
            .copied()
            .filter(|&peer| here(peer) < usize::from(self.lanes))
            .collect()
    }

    /// Moves one handshake on.
    fn step(&self, one: &mut Pending) -> Outcome {
        match self.advance(one) {
            Ok(Progress::Waiting) if Instant::now() < one.expires => Outcome::Waiting,
            Ok(Progress::Waiting) => Outcome::Stranger("it did not finish its handshake".into()),
            Ok(Progress::Complete) => match one.verdict.take() {
                Some(Ok(call)) => Outcome::Done(call),
                Some(Err(error)) => Outcome::Fatal(error),
                None => Outcome::Stranger("it was refused".into()),
            },
            Err(Fail::Tls(error)) => Outcome::Stranger(match UnknownKey::within(&error) {
                Some(key) => format!("its key {key} is pinned for nobody who is awaited"),
                None => error.to_string(),
            }),
            Err(broken @ Fail::Broken(_)) => Outcome::Stranger(broken.text()),
        }
    }

    fn advance(&self, one: &mut Pending) -> Result<Progress, Fail> {
        if one.verdict.is_none() {
            if one.handshake.hear(&mut one.call, &mut one.have)? == Progress::Waiting {
                return Ok(Progress::Waiting);
            }
            let (refusal, verdict) = self.judge(&one.call, shown(&one.handshake));
            let answer = Answer {
                version: VERSION,
                refusal,
                plan: self.terms.plan,
            };
            one.handshake.say(&answer.encode())?;
            one.verdict = Some(verdict);
            if refusal.is_some() {
                one.handshake.tls.send_close_notify();
            }
        }
        one.handshake.flush()
    }

    /// What to answer a caller that proved to hold the key `shown`, and what to make of the connection.
    fn judge(
        &self,
        call: &[u8; CALL],
        shown: Option<Fingerprint>,
    ) -> (Option<Refusal>, Result<Call, SetupError>) {
        let holder = shown.and_then(|key| {
            self.peers
                .iter()
                .copied()
                .find(|&p| self.terms.pin(p) == Ok(key))
        });
        let Some(holder) = holder else {
            let why = "its key is pinned for nobody".to_owned();
            return (
                Some(Refusal::Stranger),
                Err(SetupError::Refused {
                    peer: self.terms.me,
                    why,
                }),
            );
        };
        let refuse = |refusal, why: &str| {
            (
                Some(refusal),
                Err(SetupError::Refused {
                    peer: holder,
                    why: format!("we turned it down: {why}"),
                }),
            )
        };
        let call = match Call::decode(call) {
            Ok(call) => call,
            Err(Garbled::Version(theirs)) => {
                let error = SetupError::Version {
                    peer: holder,
                    ours: VERSION,
                    theirs,
                };
                return (Some(Refusal::Version), Err(error));
            }
            Err(Garbled::NotOurs) => return refuse(Refusal::Version, "its call is none of ours"),
        };
        if call.plan != self.terms.plan {
            let error = SetupError::Plan {
                peer: holder,
                ours: self.terms.plan,
                theirs: call.plan,
            };
            return (Some(Refusal::Plan), Err(error));
        }
        if !self.peers.contains(&call.from) {
            return refuse(
                Refusal::Stranger,
                "it says it is somebody whom we do not await",
            );
        }
        if self.terms.pin(call.from) != shown.ok_or(SetupError::NoPin { peer: call.from }) {
            return refuse(
                Refusal::Key,
                "the key that it shows is not pinned for whom it says it is",
            );
        }
        if call.to != self.terms.me {
            return refuse(
                Refusal::WrongNumber,
                "it wanted somebody else: compare the addresses",
            );
        }
        let taken = self
            .connected
            .iter()
            .any(|c| (c.peer, c.lane) == (call.from, call.lane));
        if taken || call.lane >= self.lanes {
            return refuse(
                Refusal::Lane,
                "that lane is connected already or not in the plan",
            );
        }
        (None, Ok(call))
    }
}

/// The key that the other side proved to hold.
fn shown(handshake: &Handshake) -> Option<Fingerprint> {
    let certificate = handshake.tls.peer_certificates()?.first()?;
    Fingerprint::of(certificate).ok()
}
