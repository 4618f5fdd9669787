//! The side that dials: tries until the peer is up, then proves who both are.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ClientConnection, Error};
use veil_session::Peer;

use super::config::{self, UnknownKey};
use super::handshake::{Fail, Handshake, Progress};
use super::identity::Identity;
use super::preface::{ANSWER, Answer, Call, Garbled, Refusal, VERSION};
use super::{Connected, SetupError, Terms};

/// First pause between two attempts; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Longest pause: a peer that starts late is met within a second.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A SYN without answer for so long was dropped by a firewall or the machine is down; another attempt may fare better.
const CONNECT: Duration = Duration::from_secs(3);

/// How often a dialler looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(100);

/// Dials `peer` at `address` for `lane`, again and again until it answers or `until` has passed. What cannot become better by
/// waiting (another key, plan or version) fails at once.
pub fn dial(
    identity: &Identity,
    terms: &Terms,
    peer: Peer,
    address: &str,
    lane: u16,
    until: Instant,
) -> Result<Connected, SetupError> {
    Dial::new(identity, terms, peer, address)?.connect(lane, until, &AtomicBool::new(false))
}

/// One peer to dial, for any of its lanes.
pub(super) struct Dial<'a> {
    identity: &'a Identity,
    terms: &'a Terms,
    peer: Peer,
    address: &'a str,
    config: Arc<ClientConfig>,
}

/// What came of one attempt.
enum Attempt {
    Again(String),
    Never(SetupError),
}

impl<'a> Dial<'a> {
    pub(super) fn new(
        identity: &'a Identity,
        terms: &'a Terms,
        peer: Peer,
        address: &'a str,
    ) -> Result<Self, SetupError> {
        let pinned = terms.pin(peer)?;
        let config =
            config::client(identity, pinned).map_err(|e| SetupError::Local(e.to_string()))?;
        Ok(Dial {
            identity,
            terms,
            peer,
            address,
            config,
        })
    }

    /// Connects one lane. Gives up early when `stop` is set.
    pub(super) fn connect(
        &self,
        lane: u16,
        until: Instant,
        stop: &AtomicBool,
    ) -> Result<Connected, SetupError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let hint = match self.attempt(lane, until, stop) {
                Ok(connected) => return Ok(connected),
                Err(Attempt::Never(error)) => return Err(error),
                Err(Attempt::Again(hint)) => hint,
            };
            let now = Instant::now();
            if now >= until || stop.load(Ordering::Relaxed) {
                return Err(SetupError::TimedOut {
                    peers: vec![self.peer],
                    hint,
                });
            }
            std::thread::sleep(pause.min(until - now));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn attempt(&self, lane: u16, until: Instant, stop: &AtomicBool) -> Result<Connected, Attempt> {
        let again = |e: &dyn std::fmt::Display| Attempt::Again(format!("{}: {e}", self.address));
        let local = |e: &dyn std::fmt::Display| Attempt::Never(SetupError::Local(e.to_string()));
        let socket = self.open(until).map_err(|e| again(&e))?;
        let name = ServerName::try_from(config::NAME).map_err(|e| local(&e))?;
        let tls = ClientConnection::new(Arc::clone(&self.config), name).map_err(|e| local(&e))?;
        let mut handshake = Handshake::new(socket, tls.into()).map_err(|e| local(&e))?;
        let call = Call {
            plan: self.terms.plan,
            from: self.terms.me,
            to: self.peer,
            lane,
        };
        let (mut answer, mut have) = ([0; ANSWER], 0);
        let mut go = handshake.say(&call.encode());
        loop {
            match go.and_then(|()| handshake.hear(&mut answer, &mut have)) {
                Ok(Progress::Complete) => break,
                Ok(Progress::Waiting) => {}
                Err(Fail::Broken(why)) => return Err(again(&why)),
                Err(Fail::Tls(error)) => return Err(Attempt::Never(self.refused_by_tls(&error))),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                return Err(again(&"it is up but does not answer"));
            }
            await_socket(&handshake, left.min(GLANCE)).map_err(|e| local(&e))?;
            go = Ok(());
        }
        self.judge(&answer).map_err(Attempt::Never)?;
        let Handshake { socket, tls } = handshake;
        Ok(Connected {
            socket,
            tls,
            peer: self.peer,
            lane,
            plan: self.terms.plan,
        })
    }

    /// Opens a TCP connection to the first address that takes one.
    fn open(&self, until: Instant) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let addresses: Vec<SocketAddr> = self.address.to_socket_addrs()?.collect();
        for address in addresses {
            let left = until.saturating_duration_since(Instant::now()).min(CONNECT);
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn refused_by_tls(&self, error: &Error) -> SetupError {
        let peer = self.peer;
        if let Some(shown) = UnknownKey::within(error) {
            let address = self.address.to_owned();
            return match self.terms.pin(peer) {
                Ok(pinned) => SetupError::WrongKey {
                    peer,
                    address,
                    pinned,
                    shown,
                },
                Err(error) => error,
            };
        }
        match error {
            // What the listener's verifier is answered with when it finds our key unknown.
            Error::AlertReceived(
                AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::AccessDenied,
            ) => SetupError::OurKey {
                peer,
                ours: self.identity.fingerprint(),
            },
            other => SetupError::Tls {
                peer,
                why: format!("{}: {other}", self.address),
            },
        }
    }

    fn judge(&self, answer: &[u8; ANSWER]) -> Result<(), SetupError> {
        let peer = self.peer;
        let refused = |why: &str| {
            Err(SetupError::Refused {
                peer,
                why: why.to_owned(),
            })
        };
        let answer = match Answer::decode(answer) {
            Ok(answer) => answer,
            Err(Garbled::Version(theirs)) => {
                return Err(SetupError::Version {
                    peer,
                    ours: VERSION,
                    theirs,
                });
            }
            Err(Garbled::NotOurs) => return refused("its answer is none of ours"),
        };
        match answer.refusal {
            None => Ok(()),
            Some(Refusal::Version) => Err(SetupError::Version {
                peer,
                ours: VERSION,
                theirs: answer.version,
            }),
            Some(Refusal::Plan) => Err(SetupError::Plan {
                peer,
                ours: self.terms.plan,
                theirs: answer.plan,
            }),
            Some(Refusal::Stranger) => {
                refused("it does not await us in this job: compare the jobs")
            }
            Some(Refusal::WrongNumber) => {
                refused("its own name in the job is another: compare the addresses")
            }
            Some(Refusal::Lane) => refused(
                "that lane is connected already: is another process running as this participant?",
            ),
            Some(Refusal::Key) => {
                refused("it pins our key for another participant: compare the party files")
            }
        }
    }
}

/// Sleeps until the socket can do what the handshake waits for.
fn await_socket(handshake: &Handshake, at_most: Duration) -> io::Result<()> {
    let mut flags = PollFlags::IN;
    flags.set(PollFlags::OUT, handshake.tls.wants_write());
    let mut fds = [PollFd::new(&handshake.socket, flags)];
    super::settle(poll(&mut fds, Some(&timespec(at_most))))
}

/// A duration as the kernel wants it, rounded down.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
