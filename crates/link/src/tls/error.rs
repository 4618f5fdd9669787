//! Why participants cannot be connected.

use veil_session::{Peer, PlanHash};

use super::identity::Fingerprint;
use crate::LinkKind;

/// Connecting failed. Each says who, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The declared port cannot be had.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// The declared address.
        address: String,
        /// The system's error, and what to do.
        why: String,
    },
    /// A peer did not turn up.
    #[error("waited for {} until the time was over{}", list(peers), if hint.is_empty() { String::new() } else { format!("; {hint}") })]
    TimedOut {
        /// Who is missing.
        peers: Vec<Peer>,
        /// The last thing that went wrong meanwhile, empty if nothing did.
        hint: String,
    },
    /// Another key answers at the peer's address.
    #[error(
        "{peer} at {address} shows the key {shown}, pinned is {pinned}: correct the fingerprint or the address, or an attacker is in between"
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
    #[error(
        "{peer} does not accept our key: it must pin {ours} for us; `veil members` there shows whom it knows"
    )]
    OurKey {
        /// Who refused.
        peer: Peer,
        /// Our fingerprint.
        ours: Fingerprint,
    },
    /// The peer runs another plan.
    #[error(
        "{peer} runs plan {theirs}, we run {ours}: job, circuit, --lanes, --protocol, --adversary and --output must be the same on both sides"
    )]
    Plan {
        /// Who.
        peer: Peer,
        /// Our plan.
        ours: PlanHash,
        /// Theirs.
        theirs: PlanHash,
    },
    /// The peer would have the bytes carried by something else.
    #[error("{peer} uses the link {theirs}, we use {ours}: --link must be the same on both sides")]
    Link {
        /// Who.
        peer: Peer,
        /// Our link.
        ours: LinkKind,
        /// Theirs.
        theirs: LinkKind,
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
    #[error(
        "no key is pinned for {peer}: `veil invite` and `veil join` make members of each other"
    )]
    NoPin {
        /// Who.
        peer: Peer,
    },
    /// The key of a peer is known no longer.
    #[error(
        "{peer}'s key was revoked or replaced here while the job waited for others: it no longer takes part"
    )]
    Dropped {
        /// Who.
        peer: Peer,
    },
    /// The same plan is being met already on this port.
    #[error("plan {plan} already waits for its participants here: let it end, or stop it, first")]
    Twice {
        /// The plan.
        plan: PlanHash,
    },
    /// This side was told to stop before all peers were there.
    #[error("stopped while it waited for {}", list(peers))]
    Stopped {
        /// Who was missing.
        peers: Vec<Peer>,
    },
    /// This machine failed.
    #[error("connecting failed on this machine: {0}")]
    Local(String),
}

impl SetupError {
    /// Whether it comes of this side alone, whatever others do.
    pub const fn is_ours(&self) -> bool {
        matches!(
            self,
            SetupError::Listen { .. }
                | SetupError::NoPin { .. }
                | SetupError::Twice { .. }
                | SetupError::Stopped { .. }
                | SetupError::Local(_)
        )
    }
}

/// A control call failed. Each says where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No port answers there.
    #[error(
        "{address} cannot be reached: {why}; is `veil serve` running there, and does a firewall let this machine through?"
    )]
    Unreachable {
        /// Where.
        address: String,
        /// The last failure.
        why: String,
    },
    /// The wanted participant answers there, and has too many callers.
    #[error("{address} is up, and has too many callers: ask again later")]
    Busy {
        /// Where.
        address: String,
    },
    /// Another key answers there.
    #[error(
        "{address} shows the key {shown}, pinned is {pinned}: correct the member's address, take its rotated key, or an attacker is in between"
    )]
    WrongKey {
        /// Where.
        address: String,
        /// The key that was pinned.
        pinned: Fingerprint,
        /// The key that was shown.
        shown: Fingerprint,
    },
    /// The other side does not know this side's key.
    #[error(
        "{address} does not accept our key {ours}: we are no member there, were revoked, or have a new key that it was not told; ask for an invitation, or let it take the statement of the new key"
    )]
    OurKey {
        /// Where.
        address: String,
        /// Our fingerprint.
        ours: Fingerprint,
    },
    /// The other side runs another release.
    #[error(
        "{address} speaks version {theirs} of the connection, we speak {ours}: run the same release on both sides"
    )]
    Version {
        /// Where.
        address: String,
        /// Our version.
        ours: u8,
        /// Theirs.
        theirs: u8,
    },
    /// The request is longer than the other side takes from us.
    #[error(
        "{address} takes no request of {bytes} bytes from us: the limit for members is {limit}"
    )]
    TooLong {
        /// Where.
        address: String,
        /// How long it is.
        bytes: usize,
        /// How long one may be.
        limit: usize,
    },
    /// The other side does not take such calls.
    #[error("{address} takes no such calls: {why}")]
    Refused {
        /// Where.
        address: String,
        /// Why, as far as it is known.
        why: String,
    },
    /// TLS failed.
    #[error("TLS with {address} failed: {why}")]
    Tls {
        /// Where.
        address: String,
        /// What TLS says.
        why: String,
    },
    /// This machine failed.
    #[error("calling failed on this machine: {0}")]
    Local(String),
}

impl ControlError {
    /// Whether it is an answer of the called participant, by the key that is pinned for it.
    pub const fn is_answer(&self) -> bool {
        matches!(
            self,
            ControlError::Busy { .. }
                | ControlError::Version { .. }
                | ControlError::TooLong { .. }
                | ControlError::Refused { .. }
        )
    }
}

fn list(peers: &[Peer]) -> String {
    peers
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
