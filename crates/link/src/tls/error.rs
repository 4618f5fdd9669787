//! Why participants cannot be connected.

use veil_session::{Peer, PlanHash};

use super::identity::Fingerprint;

/// Connecting failed. Each says who, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The declared port cannot be had.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// The declared address.
        address: String,
        /// What the system says, and what to do.
        why: String,
    },
    /// Somebody did not turn up.
    #[error("waited for {} until the time was over{}", list(peers), if hint.is_empty() { String::new() } else { format!("; {hint}") })]
    TimedOut {
        /// Who is missing.
        peers: Vec<Peer>,
        /// The last thing that went wrong meanwhile, empty if nothing did.
        hint: String,
    },
    /// At the peer's address somebody else answers.
    #[error(
        "{peer} at {address} shows the key {shown}, pinned is {pinned}: correct the fingerprint or the address, or somebody is in between"
    )]
    WrongKey {
        /// Who was wanted.
        peer: Peer,
        /// Where.
        address: String,
        /// The key that was pinned.
        pinned: Fingerprint,
        /// The key that was shown.
        shown: Fingerprint,
    },
    /// The peer does not accept this side's key.
    #[error("{peer} does not accept our key: its party file must pin {ours} for us")]
    OurKey {
        /// Who refused.
        peer: Peer,
        /// Our fingerprint.
        ours: Fingerprint,
    },
    /// The peer runs another plan.
    #[error(
        "{peer} runs plan {theirs}, we run {ours}: job, circuit and parameters must be the same on both sides"
    )]
    Plan {
        /// Who.
        peer: Peer,
        /// Our plan.
        ours: PlanHash,
        /// Theirs.
        theirs: PlanHash,
    },
    /// The peer runs another release.
    #[error(
        "{peer} speaks version {theirs} of the connection, we speak {ours}: run the same release on both sides"
    )]
    Version {
        /// Who.
        peer: Peer,
        /// Our version.
        ours: u8,
        /// Theirs.
        theirs: u8,
    },
    /// The peer turned us down for another reason.
    #[error("{peer} turned us down: {why}")]
    Refused {
        /// Who.
        peer: Peer,
        /// Why, and what to do.
        why: String,
    },
    /// The handshake failed.
    #[error("TLS with {peer} failed: {why}")]
    Tls {
        /// Who.
        peer: Peer,
        /// What TLS says.
        why: String,
    },
    /// No key is pinned for a peer that this side is to meet.
    #[error("no key is pinned for {peer}: add its fingerprint to the party file")]
    NoPin {
        /// Who.
        peer: Peer,
    },
    /// This machine failed.
    #[error("connecting failed on this machine: {0}")]
    Local(String),
}

fn list(peers: &[Peer]) -> String {
    peers
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
