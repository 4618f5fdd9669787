//! How a run ends when it does not end well.

use std::fmt;
use std::time::Duration;

use veil_device::Fault;
use veil_job::{DataError, StockError};
use veil_link::{LinkError, LinkFault};
use veil_session::{Channel, Peer};

/// A participant waits for a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// From whom.
    pub peer: Peer,
    /// Which message.
    pub at: Channel,
    /// `true`: the peer does not take what we send; `false`: we wait for what it sends.
    pub sending: bool,
}

/// A run was given up. A cheat is never mixed up with a network that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Abort {
    /// A check failed: one of the suspects sent a message that contradicts another one.
    #[error("a check failed at {at}: {what}, as {} sent it, contradicts what was received elsewhere; nothing that depends on it was opened", List(.suspects))]
    Cheated {
        /// Where.
        at: Channel,
        /// Who may have done it. Of two that contradict each other both are named.
        suspects: Vec<Peer>,
        /// The compared values, in words.
        what: &'static str,
    },
    /// A peer gave up and told us.
    #[error("{by} gave up the run; the reason is in its own log{}", Meanwhile(.waits))]
    Told {
        /// The peer.
        by: Peer,
        /// The messages that this participant was waiting for itself: if the peer gave up because it waited too long, the cause is found by
        /// following who waits for whom.
        waits: Vec<Wait>,
    },
    /// A link failed.
    #[error(transparent)]
    Link(LinkError),
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(#[from] Fault),
    /// Nothing happened for the time-out.
    #[error("nothing happened for {:.1} s: {}", after.as_secs_f64(), Waits(.waits))]
    Stalled {
        /// The messages that did not come or were not taken.
        waits: Vec<Wait>,
        /// For how long.
        after: Duration,
    },
    /// A participant had not come when the time for meeting was over.
    #[error("waited for {} until the time was over", Several(.peers))]
    Unmet {
        /// Who has said nothing.
        peers: Vec<Peer>,
    },
    /// Values could not be read or written at this participant.
    #[error("{0}")]
    Data(std::sync::Arc<DataError>),
    /// This party has no stock that the run can take, or cannot put any away.
    #[error("{0}")]
    Stock(std::sync::Arc<StockError>),
    /// Participants do not agree on the session.
    #[error("{peer}: {what}")]
    SetUp {
        /// The other end.
        peer: Peer,
        /// The difference, in words.
        what: &'static str,
    },
    /// The holders of a block have its rows in different orders. Holders of the block and the party that compared learn which rows; the
    /// others only that the run was given up.
    #[error(
        "the rows of block `{block}` are not the same ones in the same order at all of its holders: the first difference is between rows {} \
         and {}; sort all tables of the block by the key column and run again; nothing was shared",
        first_row + 1,
        first_row.saturating_add(*rows)
    )]
    Misaligned {
        /// Name of the block.
        block: String,
        /// First row of the part that differs, from 0.
        first_row: u64,
        /// Rows of that part.
        rows: u64,
    },
    /// What the job claims of its rows is false: the parties have opened that, and nothing that follows.
    #[error("{what}: that is false, and the run is over; nothing else was opened")]
    Claim {
        /// What is claimed.
        what: std::sync::Arc<str>,
    },
    /// Rows were not put in order: nothing that depends on their order was opened.
    #[error("{what}; nothing that depends on it was opened")]
    Unordered {
        /// Why, in words.
        what: &'static str,
    },
    /// This participant lacks something that the job needs from it.
    #[error("{0}")]
    Missing(String),
}

impl Abort {
    /// The caller ended the run.
    pub(crate) fn stopped() -> Self {
        Abort::Missing("stopped by a signal".into())
    }

    /// The same reason, as a lane sees it that waits for `waits`.
    pub(crate) fn seen_with(self, waits: Vec<Wait>) -> Self {
        match self {
            Abort::Told { by, .. } => Abort::Told { by, waits },
            Abort::Stalled { after, .. } => Abort::Stalled { waits, after },
            other => other,
        }
    }

    /// How much is known by it at this participant itself: what a link, a check or a device has shown, a silence, or a message of another
    /// participant, which may have been the first to notice and abort with the same constant code.
    const fn weight(&self) -> u8 {
        match self {
            Abort::Told { .. } => 0,
            Abort::Stalled { .. } | Abort::Unmet { .. } => 1,
            Abort::Link(LinkError {
                fault: LinkFault::Closed(_) | LinkFault::Unsent(_),
                ..
            }) => 2,
            _ => 3,
        }
    }

    /// Whether the other party has sent what no honest one sends: a check has failed, or a message is not one of the plan.
    pub fn is_cheat(&self) -> bool {
        match self {
            Abort::Cheated { .. } | Abort::SetUp { .. } => true,
            Abort::Link(error) => !error.fault.is_end(),
            _ => false,
        }
    }

    /// Whether it is nothing but a message of another participant.
    pub(crate) const fn is_hearsay(&self) -> bool {
        matches!(self, Abort::Told { .. })
    }

    /// Adds what another lane of the same participant knows: what weighs more counts; else what that lane was waiting for when the run was
    /// given up.
    pub(crate) fn join(&mut self, other: Self) {
        if other.weight() > self.weight() {
            *self = other;
            return;
        }
        if let Abort::Told { waits, .. } | Abort::Stalled { waits, .. } = self
            && let Abort::Told { waits: more, .. } | Abort::Stalled { waits: more, .. } = other
        {
            let known = waits.clone();
            waits.extend(more.into_iter().filter(|wait| !known.contains(wait)));
        }
    }
}

impl From<LinkError> for Abort {
    fn from(error: LinkError) -> Self {
        match error.fault {
            LinkFault::Aborted => Abort::Told {
                by: error.peer,
                waits: Vec::new(),
            },
            _ => Abort::Link(error),
        }
    }
}

impl From<StockError> for Abort {
    fn from(error: StockError) -> Self {
        Abort::Stock(std::sync::Arc::new(error))
    }
}

impl From<DataError> for Abort {
    fn from(error: DataError) -> Self {
        Abort::Data(std::sync::Arc::new(error))
    }
}

struct List<'a>(&'a [Peer]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, peer) in self.0.iter().enumerate() {
            write!(f, "{}{peer}", if k == 0 { "" } else { " or " })?;
        }
        Ok(())
    }
}

struct Several<'a>(&'a [Peer]);

impl fmt::Display for Several<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, peer) in self.0.iter().enumerate() {
            write!(f, "{}{peer}", if k == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

struct Meanwhile<'a>(&'a [Wait]);

impl fmt::Display for Meanwhile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, "; meanwhile this participant was {}", Waits(self.0))
        }
    }
}

struct Waits<'a>(&'a [Wait]);

impl fmt::Display for Waits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("this participant waits for its other lanes");
        }
        // A few are enough to see which peers hold up the run.
        for (k, wait) in self.0.iter().take(4).enumerate() {
            let verb = if wait.sending { "to take" } else { "for" };
            write!(
                f,
                "{}waiting for {} {verb} {}",
                if k == 0 { "" } else { "; " },
                wait.peer,
                wait.at
            )?;
        }
        if self.0.len() > 4 {
            write!(f, "; and {} more", self.0.len() - 4)?;
        }
        Ok(())
    }
}
