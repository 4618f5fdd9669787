//! The side that dials: tries until the peer is up and awaits us, then proves who both are.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig, ClientConnection, Error};
use veil_session::{Peer, PlanHash};

use super::config::{self, UnknownKey};
use super::handshake::{Fail, Handshake, Progress};
use super::identity::{Fingerprint, Identity};
use super::preface::{ANSWER, Answer, Call, Garbled, LaneCall, Refusal, VERSION};
use super::secrets::Secrets;
use super::{Connected, Ended, GLANCE, Moved, SetupError, Terms};

/// First pause between two attempts; each next one is twice as long.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Longest pause: a peer that starts late is met within a second.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A SYN without answer for so long was dropped by a firewall or the machine is down; another attempt may fare better.
const CONNECT: Duration = Duration::from_secs(3);

/// Dials `peer` at `address` for `lane`, again and again until it answers or `until` has passed. Failures that waiting cannot mend (another
/// key or version, or a peer that has no other plan than its own) end it at once.
///
/// # Errors
/// [`SetupError::NoPin`] if `terms` have no key of `peer`; [`SetupError::TimedOut`] if the peer did not answer until `until`,
/// with what went wrong last; at once [`SetupError::WrongKey`], [`SetupError::OurKey`] and [`SetupError::Tls`] if TLS refuses,
/// [`SetupError::Version`], [`SetupError::Plan`], [`SetupError::Link`] and [`SetupError::Refused`] if the peer does;
/// [`SetupError::Local`] if this machine fails.
pub fn dial(
    identity: &Identity,
    terms: &Terms,
    peer: Peer,
    address: &str,
    lane: u16,
    until: Instant,
) -> Result<Connected, SetupError> {
    let never = AtomicBool::new(false);
    let ended = Ended {
        asked: &never,
        failed: &never,
    };
    Dial::new(identity, terms, peer, address, &|_| None)?.connect(lane, until, &ended)
}

/// One peer to dial, for any of its lanes.
pub(super) struct Dial<'a> {
    identity: &'a Identity,
    terms: &'a Terms,
    peer: Peer,
    address: &'a str,
    moved: &'a Moved<'a>,
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
        moved: &'a Moved<'a>,
    ) -> Result<Self, SetupError> {
        let pinned = terms.pin(peer)?;
        let config =
            config::client(identity, pinned).map_err(|e| SetupError::Local(e.to_string()))?;
        Ok(Dial {
            identity,
            terms,
            peer,
            address,
            moved,
            config,
        })
    }

    /// Connects one lane. Gives up early when the meeting has `ended`.
    pub(super) fn connect(
        &self,
        lane: u16,
        until: Instant,
        ended: &Ended<'_>,
    ) -> Result<Connected, SetupError> {
        let mut pause = FIRST_PAUSE;
        let mut hint = String::new();
        loop {
            match self.attempt(lane, until, ended) {
                Ok(connected) => return Ok(connected),
                Err(Attempt::Never(error)) => return Err(error),
                // One that the end of the time cut off says less than the one before it.
                Err(Attempt::Again(why)) if hint.is_empty() || Instant::now() < until => hint = why,
                Err(Attempt::Again(_)) => {}
            }
            nap(
                pause.min(until.saturating_duration_since(Instant::now())),
                &|| ended.now(),
            );
            if Instant::now() >= until || ended.now() {
                return Err(ended.missing(vec![self.peer], hint));
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn attempt(&self, lane: u16, until: Instant, ended: &Ended<'_>) -> Result<Connected, Attempt> {
        let call = Call::Lane(LaneCall {
            plan: self.terms.plan,
            from: self.terms.me,
            to: self.peer,
            lane,
            link: self.terms.link,
        });
        let moved = (self.moved)(self.peer);
        let address = moved.as_deref().unwrap_or(self.address);
        let again = |why: &str| Attempt::Again(format!("{address}: {why}"));
        let reached = reach(address, &self.config, until);
        let called = reached.and_then(|mut handshake| {
            let answer = ask(&mut handshake, &call.encode(), until, &|| ended.now())?;
            Ok((handshake, answer))
        });
        let (handshake, answer) = called.map_err(|missed| match missed {
            Missed::Broken(why) => again(&why),
            Missed::Tls(error) => Attempt::Never(self.refused_by_tls(&error, address)),
            Missed::Local(why) => Attempt::Never(SetupError::Local(why)),
        })?;
        self.judge(&answer, address)?;
        Ok(Connected {
            line: handshake,
            peer: self.peer,
            lane,
            plan: self.terms.plan,
            link: self.terms.link,
        })
    }

    fn refused_by_tls(&self, error: &Error, address: &str) -> SetupError {
        let peer = self.peer;
        match verdict(error) {
            Verdict::Theirs(shown) => match self.terms.pin(peer) {
                Ok(pinned) => SetupError::WrongKey {
                    peer,
                    address: address.to_owned(),
                    pinned,
                    shown,
                },
                Err(error) => error,
            },
            Verdict::Ours => SetupError::OurKey {
                peer,
                ours: self.identity.fingerprint(),
            },
            Verdict::Other => SetupError::Tls {
                peer,
                why: format!("{address}: {error}"),
            },
        }
    }

    fn judge(&self, answer: &[u8; ANSWER], address: &str) -> Result<(), Attempt> {
        let peer = self.peer;
        let never = |error| Err(Attempt::Never(error));
        let refused = |why: &str| {
            never(SetupError::Refused {
                peer,
                why: why.to_owned(),
            })
        };
        let later = |why: &str| Err(Attempt::Again(format!("{address}: {why}")));
        let version = |theirs| {
            never(SetupError::Version {
                peer,
                ours: VERSION,
                theirs,
            })
        };
        let answer = match Answer::decode(answer) {
            Ok(answer) => answer,
            Err(Garbled::Version(theirs)) => return version(theirs),
            Err(Garbled::NotOurs | Garbled::Kind) => return refused("its answer is none of ours"),
        };
        match answer.refusal {
            None => Ok(()),
            Some(Refusal::Version) => version(answer.version),
            Some(Refusal::Plan) if self.terms.comes_back(answer.plan) => later(
                "it is at a later stage of the job, and is told that the one before it is done again",
            ),
            Some(Refusal::Plan) => never(SetupError::Plan {
                peer,
                ours: self.terms.plan,
                theirs: answer.plan,
            }),
            Some(Refusal::Link) => never(SetupError::Link {
                peer,
                ours: self.terms.link,
                theirs: answer.link,
            }),
            Some(Refusal::NotYet) => later(&not_yet(self.terms.plan)),
            Some(Refusal::Busy) => later("it is up, and has too many callers"),
            Some(Refusal::Unknown) => never(SetupError::OurKey {
                peer,
                ours: self.identity.fingerprint(),
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
            Some(Refusal::Key) => refused(
                "it pins our key for another participant: compare names and fingerprints (`veil members`)",
            ),
            Some(Refusal::TooLong | Refusal::Kind) => refused("it takes no jobs on this port"),
        }
    }
}

fn not_yet(plan: PlanHash) -> String {
    format!(
        "it is up, and does not await us for plan {plan}: it may not have approved the job, may have ended it, or has another one"
    )
}

/// Why there is no answer.
pub(super) enum Missed {
    /// It may be there later.
    Broken(String),
    /// TLS refused.
    Tls(Error),
    /// This machine failed.
    Local(String),
}

/// Whose key is not accepted, if that is what a TLS error means.
pub(super) enum Verdict {
    /// The other side showed this key, which is not the pinned one.
    Theirs(Fingerprint),
    /// The other side does not know ours.
    Ours,
    Other,
}

pub(super) fn verdict(error: &Error) -> Verdict {
    if let Some(shown) = UnknownKey::within(error) {
        return Verdict::Theirs(shown);
    }
    match error {
        // What the listener's verifier is answered with when it finds our key unknown.
        Error::AlertReceived(
            AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::AccessDenied,
        ) => Verdict::Ours,
        _ => Verdict::Other,
    }
}

/// Opens a connection to `address` that is ready for its TLS handshake.
pub(super) fn reach(
    address: &str,
    config: &Arc<ClientConfig>,
    until: Instant,
) -> Result<Handshake, Missed> {
    let local = |e: &dyn std::fmt::Display| Missed::Local(e.to_string());
    let socket = open(address, until).map_err(|e| Missed::Broken(e.to_string()))?;
    let name = ServerName::try_from(config::NAME).map_err(|e| local(&e))?;
    let (secrets, config) = Secrets::client(config);
    let tls = ClientConnection::new(config, name).map_err(|e| local(&e))?;
    Handshake::new(socket, tls.into(), secrets).map_err(|e| local(&e))
}

/// Says `call` once TLS is there, and hears the answer.
pub(super) fn ask(
    handshake: &mut Handshake,
    call: &[u8],
    until: Instant,
    ended: &dyn Fn() -> bool,
) -> Result<[u8; ANSWER], Missed> {
    let mut answer = [0; ANSWER];
    let said = handshake.say(call);
    said.map_err(missed)?;
    hear(handshake, &mut answer, until, ended)?;
    Ok(answer)
}

/// Hears as many bytes as fit `into`.
pub(super) fn hear(
    handshake: &mut Handshake,
    into: &mut [u8],
    until: Instant,
    ended: &dyn Fn() -> bool,
) -> Result<(), Missed> {
    let mut have = 0;
    while handshake.hear(into, &mut have).map_err(missed)? == Progress::Waiting {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || ended() {
            return Err(Missed::Broken("it is up but does not answer".into()));
        }
        await_socket(handshake, left.min(GLANCE)).map_err(|e| Missed::Local(e.to_string()))?;
    }
    Ok(())
}

fn missed(fail: Fail) -> Missed {
    match fail {
        Fail::Broken(why) => Missed::Broken(why),
        Fail::Tls(error) => Missed::Tls(error),
    }
}

/// Opens a TCP connection to the first address that takes one.
fn open(address: &str, until: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
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

/// Sleeps so long, unless `ended` meanwhile.
pub(super) fn nap(time: Duration, ended: &dyn Fn() -> bool) {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || ended() {
            return;
        }
        std::thread::sleep(left.min(GLANCE));
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
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
