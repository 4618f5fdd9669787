//! Links over TCP with TLS 1.3: both sides prove the key that the other has pinned, and agree on the plan before anything
//! else is said.
//!
//! [`meet`] dials and listens until all peers of a participant are there; [`TlsLink`] is one lane of the result.

mod config;
mod dial;
mod error;
mod handshake;
mod identity;
mod line;
mod link;
mod listen;
mod preface;
mod sign;
mod socket;

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use rustls::Connection;
use veil_session::{Peer, PlanHash};

pub use dial::dial;
pub use error::SetupError;
pub use identity::{Fingerprint, FingerprintError, Identity, IdentityError};
pub use link::TlsLink;
pub use listen::Listener;
#[doc(hidden)]
pub use preface::fuzz_preface;
pub use sign::verify;

/// What two participants must agree on before they talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// This participant.
    pub me: Peer,
    /// The plan.
    pub plan: PlanHash,
    /// Whose key is which.
    pub pins: BTreeMap<Peer, Fingerprint>,
}

impl Terms {
    fn pin(&self, peer: Peer) -> Result<Fingerprint, SetupError> {
        self.pins
            .get(&peer)
            .copied()
            .ok_or(SetupError::NoPin { peer })
    }
}

/// An authenticated connection to one peer for one lane, on which the plan is agreed.
#[derive(Debug)]
pub struct Connected {
    socket: TcpStream,
    tls: Connection,
    peer: Peer,
    lane: u16,
    plan: PlanHash,
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

    /// A secret that only the two ends of this connection know (RFC 8446, section 7.5), for the key schedule.
    pub fn exporter(&self, label: &[u8], context: &[u8]) -> [u8; 32] {
        self.tls
            .export_keying_material([0; 32], label, Some(context))
            .expect("call and answer went through TLS, so its handshake is complete")
    }
}

/// Meets all peers of this participant: dials those in `dial`, awaits those in `from` on `listener`, `lanes` connections with
/// each. The result has one entry per lane with one connection per peer, in the order of `dial`, then `from`.
///
/// Who dials whom is up to the caller, the same for all: parties dial parties of lower index, owners and recipients dial all
/// parties. The first failure ends the meeting; whoever is missing when `until` comes is named.
pub fn meet(
    identity: &Identity,
    terms: &Terms,
    dial: &[(Peer, String)],
    listener: Option<&Listener>,
    from: &[Peer],
    lanes: u16,
    until: Instant,
) -> Result<Vec<Vec<Connected>>, SetupError> {
    let stop = AtomicBool::new(false);
    let noted = |result: Result<Vec<Connected>, SetupError>| {
        // Being late is no reason to stop the others: they may be late too, and are then named as well.
        if result
            .as_ref()
            .is_err_and(|e| !matches!(e, SetupError::TimedOut { .. }))
        {
            stop.store(true, Ordering::Relaxed);
        }
        result
    };
    let mut results = Vec::new();
    thread::scope(|scope| {
        let dialled: Vec<_> = dial
            .iter()
            .map(|(peer, address)| {
                let (stop, noted) = (&stop, &noted);
                scope.spawn(move || {
                    noted(
                        dial::Dial::new(identity, terms, *peer, address).and_then(|dial| {
                            (0..lanes)
                                .map(|lane| dial.connect(lane, until, stop))
                                .collect()
                        }),
                    )
                })
            })
            .collect();
        results.push(match listener {
            Some(listener) if !from.is_empty() => {
                noted(listener.gather(identity, terms, from, lanes, until, &stop))
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

/// All connections, or the failure to report: a definite one before those of being late, which are joined.
fn all_or_worst(
    results: Vec<Result<Vec<Connected>, SetupError>>,
) -> Result<Vec<Connected>, SetupError> {
    let (mut all, mut late, mut hints) = (Vec::new(), Vec::new(), Vec::new());
    let mut definite = None;
    for result in results {
        match result {
            Ok(mut some) => all.append(&mut some),
            Err(SetupError::TimedOut { mut peers, hint }) => {
                late.append(&mut peers);
                hints.extend(Some(hint).filter(|hint| !hint.is_empty()));
            }
            Err(error) => definite = definite.or(Some(error)),
        }
    }
    if let Some(error) = definite {
        return Err(error);
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
