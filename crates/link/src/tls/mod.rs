//! Links over TCP with TLS 1.3: both sides prove the key that the other has pinned, and agree on the plan before anything
//! else is said.
//!
//! A [`Port`] is the one address on which a participant is called, whatever the number of its jobs. [`meet`] dials, and awaits
//! on the port, until all peers of a job are there; [`TlsLink`] is one lane of the result. [`control()`] asks another participant's
//! port something that is no job: one request, one reply.

mod config;
mod control;
mod dial;
mod error;
pub(crate) mod handshake;
mod identity;
mod link;
#[cfg(test)]
pub(crate) mod pair;
mod port;
mod preface;
mod record;
mod secrets;
mod sign;
mod socket;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use veil_session::{Peer, PlanHash};

use crate::LinkKind;

pub use control::{control, control_slow};
pub use dial::dial;
pub(crate) use dial::timespec;
pub use error::{ControlError, SetupError};
use handshake::Handshake;
pub use identity::{Fingerprint, FingerprintError, Identity, IdentityError};
pub use link::TlsLink;
pub use port::{
    Admission, Admit, Caller, Handler, LONGEST_REQUEST, Lane, Lanes, Noticed, OnConnectRequest,
    Port, Reception, Turned,
};
#[doc(hidden)]
pub use preface::fuzz_preface;
#[doc(hidden)]
pub use record::fuzz_records;
pub use sign::verify;
use socket::hung_up;

/// Terms that two participants must agree on before they talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// This participant.
    pub me: Peer,
    /// The plan.
    pub plan: PlanHash,
    /// Whose key is which.
    pub pins: BTreeMap<Peer, Fingerprint>,
    /// The kind of link that carries the bytes of the job, once its participants have met.
    pub link: LinkKind,
    /// The other stages of the same job, if it has several: a peer that comes for one of them is told at which stage this side is.
    pub others: Vec<OtherStage>,
}

/// The stage of a job at which a participant is not.
///
/// Parties that meet for different stages disagree about the finished ones, and the earlier stage has to be done again. The party at the
/// later stage is told by [`SetupError::Plan`], which ends its meeting, whether it calls or is called; the party at the earlier stage waits
/// for it to come back. An owner that comes for another stage is told the same, and the meeting goes on without it. A recipient comes again
/// later, or is told if the stage is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherStage {
    /// Its plan.
    pub plan: PlanHash,
    /// The key of each peer of that stage. A caller with another key that comes for it is told nothing.
    pub pins: BTreeMap<Peer, Fingerprint>,
    /// Whether it comes before the stage at which this side is.
    pub over: bool,
}

impl Terms {
    fn pin(&self, peer: Peer) -> Result<Fingerprint, SetupError> {
        self.pins
            .get(&peer)
            .copied()
            .ok_or(SetupError::NoPin { peer })
    }

    /// As whom the holder of `key` takes part in the other stage for which it came, if it is one, and whether that stage is over.
    fn came_for_other(&self, key: &Fingerprint, plan: PlanHash) -> Option<(Peer, bool)> {
        let other = self.others.iter().find(|other| other.plan == plan)?;
        let mut pins = other.pins.iter();
        let peer = pins.find_map(|(peer, pin)| (pin == key).then_some(*peer))?;
        Some((peer, other.over))
    }

    /// Whether a party that waits for `theirs` is further than this one: it is told so by the call, and comes back.
    fn comes_back(&self, theirs: PlanHash) -> bool {
        let mut others = self.others.iter();
        self.me.party().is_some() && others.any(|other| other.plan == theirs && !other.over)
    }
}

/// An authenticated connection to one peer for one lane, on which the plan is agreed.
#[derive(Debug)]
pub struct Connected {
    pub(crate) line: Handshake,
    peer: Peer,
    lane: u16,
    pub(crate) plan: PlanHash,
    link: LinkKind,
}

impl Connected {
    /// The other end.
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// The lane.
    pub const fn lane(&self) -> u16 {
        self.lane
    }

    /// The kind of link that will carry the bytes.
    pub const fn link(&self) -> LinkKind {
        self.link
    }

    /// A secret that only the two ends of this connection know (RFC 8446, section 7.5), for the key schedule.
    pub fn exporter(&self, label: &[u8], context: &[u8]) -> [u8; 32] {
        self.line
            .tls
            .export_keying_material([0; 32], label, Some(context))
            .expect("call and answer went through TLS, so its handshake is complete")
    }
}

/// Whom a participant meets for a job, and how.
#[derive(Clone, Copy, Debug)]
pub struct Meeting<'a> {
    /// Whom it dials, and where.
    pub dial: &'a [(Peer, String)],
    /// Whom it awaits on its port.
    pub from: &'a [Peer],
    /// Connections with each.
    pub lanes: u16,
    /// How long the others have to turn up.
    pub until: Instant,
}

/// Meets all peers of this participant: dials some, awaits the others on `port`. The result has one entry per lane with one
/// connection per peer, in the order of [`Meeting::dial`], then [`Meeting::from`].
///
/// The caller decides who dials whom, the same way at all participants: parties dial parties of lower index, owners and recipients dial all
/// parties. The first failure ends the meeting, and so does `stop`; peers that are missing when the time is over are named.
///
/// # Errors
/// The first [`SetupError`] that no waiting mends, as of [`dial()`] and [`Port::accept`]; else [`SetupError::Stopped`] or
/// [`SetupError::TimedOut`] with every peer that is missing. [`SetupError::Local`] if peers are awaited and `port` is none.
pub fn meet(
    identity: &Identity,
    terms: &Terms,
    port: Option<&Port>,
    meeting: &Meeting<'_>,
    stop: &AtomicBool,
) -> Result<Vec<Vec<Connected>>, SetupError> {
    let around = Around {
        moved: &|_| None,
        missing: &|_| (),
    };
    meet_at(identity, terms, port, meeting, stop, &around)
}

/// Says where a peer is dialled now, if it is elsewhere than the meeting says.
pub type Moved<'a> = dyn Fn(Peer) -> Option<String> + Sync + 'a;

/// Hears who is missing.
pub type Misses<'a> = dyn Fn(&[Peer]) + Sync + 'a;

/// Callbacks of a meeting while it goes on.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Asked before every attempt: a peer that is not there yet is found where it has moved to.
    pub moved: &'a Moved<'a>,
    /// Told who is missing, at first and whenever that changes.
    pub missing: &'a Misses<'a>,
}

/// [`meet`], with functions that follow its progress.
///
/// # Errors
/// [`SetupError`] as of [`meet`].
pub fn meet_at(
    identity: &Identity,
    terms: &Terms,
    port: Option<&Port>,
    meeting: &Meeting<'_>,
    stop: &AtomicBool,
    around: &Around<'_>,
) -> Result<Vec<Vec<Connected>>, SetupError> {
    let Meeting {
        dial,
        from,
        lanes,
        until,
    } = *meeting;
    let failed = AtomicBool::new(false);
    let ended = Ended {
        asked: stop,
        failed: &failed,
    };
    let noted = |result: Result<Vec<Connected>, SetupError>| {
        // Being late is no reason to stop the others: they may be late too, and are then named as well.
        if result
            .as_ref()
            .is_err_and(|e| !matches!(e, SetupError::TimedOut { .. }))
        {
            failed.store(true, Ordering::Relaxed);
        }
        result
    };
    let all = dial.iter().map(|(peer, _)| *peer).chain(from.to_owned());
    let there = There::new(all.collect(), around.missing);
    let mut results = Vec::new();
    thread::scope(|scope| {
        let dialled: Vec<_> =
            dial.iter()
                .map(|(peer, address)| {
                    let (ended, noted, there) = (&ended, &noted, &there);
                    scope.spawn(move || {
                        noted(
                            dial::Dial::new(identity, terms, *peer, address, around.moved)
                                .and_then(|dial| {
                                    let connect = |lane| dial.connect(lane, until, ended);
                                    let connected =
                                        (0..lanes).map(connect).collect::<Result<_, _>>()?;
                                    there.hold(*peer, connected, connect, until, ended)
                                }),
                        )
                    })
                })
                .collect();
        results.push(match port {
            Some(port) if !from.is_empty() => {
                let lacks = |missing: &[Peer]| there.lacks(from, missing);
                let gathered = noted(port.gather(terms, from, lanes, (until, &ended), &lacks));
                if gathered.is_ok() {
                    there.lacks(from, &[]);
                }
                gathered
            }
            _ if from.is_empty() => Ok(Vec::new()),
            _ => Err(SetupError::Local(
                "peers are awaited, and no port is declared".into(),
            )),
        });
        for handle in dialled {
            results.push(
                handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
    });
    let order: Vec<Peer> = dial
        .iter()
        .map(|(peer, _)| *peer)
        .chain(from.iter().copied())
        .collect();
    let mut sorted: Vec<Vec<Connected>> = (0..lanes)
        .map(|_| Vec::with_capacity(order.len()))
        .collect();
    for connected in all_or_worst(results)? {
        sorted[usize::from(connected.lane)].push(connected);
    }
    for lane in &mut sorted {
        lane.sort_by_key(|c| order.iter().position(|&peer| peer == c.peer));
    }
    Ok(sorted)
}

/// Who of a meeting is missing.
struct There<'a> {
    missing: Mutex<BTreeSet<Peer>>,
    changed: Condvar,
    says: &'a Misses<'a>,
}

impl<'a> There<'a> {
    fn new(missing: BTreeSet<Peer>, says: &'a Misses<'a>) -> Self {
        says(&missing.iter().copied().collect::<Vec<_>>());
        There {
            missing: Mutex::new(missing),
            changed: Condvar::new(),
            says,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Peer>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of `those`, these are missing.
    fn lacks(&self, those: &[Peer], missing: &[Peer]) {
        let mut known = self.lock();
        let others = known.iter().filter(|peer| !those.contains(peer));
        let now: BTreeSet<Peer> = others.chain(missing).copied().collect();
        if *known != now {
            *known = now;
            // While it is locked, so that what is said last is what is so.
            (self.says)(&known.iter().copied().collect::<Vec<_>>());
            self.changed.notify_all();
        }
    }

    /// Keeps the connections with a peer until all peers are there. Those that end meanwhile, since the peer was started
    /// again perhaps, are made anew.
    fn hold(
        &self,
        peer: Peer,
        mut connected: Vec<Connected>,
        connect: impl Fn(u16) -> Result<Connected, SetupError>,
        until: Instant,
        ended: &Ended<'_>,
    ) -> Result<Vec<Connected>, SetupError> {
        self.lacks(&[peer], &[]);
        let mut missing = self.lock();
        // A late peer is reported by the part that lacks it.
        while !missing.is_empty() && Instant::now() < until && !ended.now() {
            if connected.iter().any(|c| hung_up(&c.line.socket)) {
                drop(missing);
                self.lacks(&[peer], &[peer]);
                for one in connected.iter_mut().filter(|c| hung_up(&c.line.socket)) {
                    *one = connect(one.lane)?;
                }
                self.lacks(&[peer], &[]);
                missing = self.lock();
                continue;
            }
            let waited = self.changed.wait_timeout(missing, GLANCE);
            missing = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(connected)
    }
}

/// How often a participant that waits in a meeting looks whether it is still wanted, and whether those who are there still are.
const GLANCE: Duration = Duration::from_millis(100);

/// Why a meeting may end early.
struct Ended<'a> {
    /// It was asked to.
    asked: &'a AtomicBool,
    /// A part of it failed.
    failed: &'a AtomicBool,
}

impl Ended<'_> {
    fn now(&self) -> bool {
        self.asked.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// What to say of those who are missing.
    fn missing(&self, peers: Vec<Peer>, hint: String) -> SetupError {
        if self.asked.load(Ordering::Relaxed) {
            SetupError::Stopped { peers }
        } else {
            SetupError::TimedOut { peers, hint }
        }
    }
}

/// All connections, or the failure to report: a definite one before having been stopped, and that before being late, which are
/// joined.
fn all_or_worst(
    results: Vec<Result<Vec<Connected>, SetupError>>,
) -> Result<Vec<Connected>, SetupError> {
    let (mut all, mut late, mut hints) = (Vec::new(), Vec::new(), Vec::new());
    let (mut definite, mut stopped) = (None, Vec::new());
    for result in results {
        match result {
            Ok(mut some) => all.append(&mut some),
            Err(SetupError::TimedOut { mut peers, hint }) => {
                late.append(&mut peers);
                hints.extend(Some(hint).filter(|hint| !hint.is_empty()));
            }
            Err(SetupError::Stopped { mut peers }) => stopped.append(&mut peers),
            Err(error) => definite = definite.or(Some(error)),
        }
    }
    if let Some(error) = definite {
        return Err(error);
    }
    if !stopped.is_empty() {
        stopped.append(&mut late);
        return Err(SetupError::Stopped { peers: stopped });
    }
    if late.is_empty() {
        Ok(all)
    } else {
        Err(SetupError::TimedOut {
            peers: late,
            hint: hints.join("; "),
        })
    }
}

/// A poll that a signal interrupted is one that found nothing.
fn settle(polled: rustix::io::Result<usize>) -> io::Result<()> {
    match polled {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
