//! Faults of a link.

use veil_session::{Channel, Peer};

/// A link failed: which peer, at which message where one is known, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{peer}{}: {fault}", at.map(|c| format!(", {c}")).unwrap_or_default())]
pub struct LinkError {
    /// The other end.
    pub peer: Peer,
    /// The message, where one is known.
    pub at: Option<Channel>,
    /// The fault.
    pub fault: LinkFault,
}

/// How a link failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkFault {
    /// The peer gave up and said so.
    #[error("gave up the run; the reason is in its own log")]
    Aborted,
    /// The connection ended before the run did.
    #[error("the connection ended before the run did ({0})")]
    Closed(String),
    /// The peer speaks another version.
    #[error(
        "speaks frame version {theirs}, this side speaks {ours}: run the same release on both sides"
    )]
    Version {
        /// Ours.
        ours: u8,
        /// Theirs.
        theirs: u8,
    },
    /// A frame of another session.
    #[error("sent a frame of another session")]
    Session,
    /// A header that makes no sense.
    #[error("sent a malformed frame: {0}")]
    Malformed(&'static str),
    /// A message longer than the plan allows, or not as long as announced.
    #[error("sent {got} bytes where the plan says {want}")]
    Length {
        /// Length in the frame.
        got: u64,
        /// Length in the plan.
        want: u64,
    },
    /// The same message twice.
    #[error("sent the same message twice")]
    Duplicate,
    /// A message that the plan does not contain.
    #[error("sent a message that is not in the plan")]
    Unexpected,
    /// This side has no link to that peer.
    #[error("this participant has no link to it")]
    NoSuchPeer,
    /// The bytes that came are not the peer's: they do not decrypt, or were sent at another time or in another place.
    #[error("what came under its name is not what it sent: {0}")]
    Cipher(String),
    /// The peer had not taken so many bytes when the time for closing was over.
    #[error("has not taken {0} bytes that were sent to it: it is stalled or the network is")]
    Unsent(u64),
    /// This side's end cannot be opened.
    #[error("this side's end of the link to it cannot be opened: {0}")]
    Local(String),
    /// The owner of this end of the link asked for something that its own announcements exclude.
    #[error("this side uses the link wrongly: {0}; please report this as a bug")]
    Misuse(&'static str),
}

impl LinkFault {
    /// The other end is gone, gave up, or takes nothing any more: a side that needs nothing more of it may go on.
    pub const fn is_end(&self) -> bool {
        matches!(
            self,
            LinkFault::Aborted | LinkFault::Closed(_) | LinkFault::Unsent(_)
        )
    }

    /// The other end has gone without a word.
    pub(crate) fn gone() -> Self {
        LinkFault::Closed("it is gone: its process or the network ended".into())
    }

    /// The peer said goodbye, or is gone, while this side still needs it.
    pub(crate) fn left() -> Self {
        LinkFault::Closed("it left while this side still needs it".into())
    }
}

impl LinkError {
    /// Of several faults the one to report: what a peer may not send, before a connection that ended without a word, before the word of a
    /// peer that gave up. Such a peer says so before it closes, and is then never taken for one that is gone.
    pub(crate) fn foremost<'a>(
        errors: impl Iterator<Item = &'a LinkError>,
    ) -> Option<&'a LinkError> {
        errors.min_by_key(|error| match error.fault {
            LinkFault::Aborted => 2,
            LinkFault::Closed(_) | LinkFault::Unsent(_) => 1,
            _ => 0,
        })
    }
}
