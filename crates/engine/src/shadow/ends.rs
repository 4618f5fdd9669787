//! Where a shadow listens: at the links of the parties, and before the sinks.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use veil_job::{DataError, Sink, Slice};
use veil_link::{Link, LinkError, LinkFault};
use veil_session::{Channel, Peer};

use super::Shadow;

/// A link that the shadow listens at.
pub(super) struct Tapped {
    pub(super) inner: Box<dyn Link>,
    pub(super) me: Peer,
    pub(super) shadow: Arc<Shadow>,
}

impl Tapped {
    /// The run is over once a difference was found.
    fn stop(&self, at: Option<Channel>, why: String) -> LinkError {
        LinkError {
            peer: self.me,
            at,
            fault: LinkFault::Closed(why),
        }
    }
}

impl Link for Tapped {
    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        let taken = self.inner.post(to, at, bytes)?;
        if taken
            && self.me.party().is_some()
            && let Err(error) = self.shadow.posted(self.me, at, bytes)
        {
            return Err(self.stop(Some(at), error.to_string()));
        }
        Ok(taken)
    }

    fn poll(&mut self) -> Result<bool, LinkError> {
        if self.shadow.diverged.load(Ordering::Acquire) {
            return Err(self.stop(None, "the shadow of this run found a difference".into()));
        }
        self.inner.poll()
    }

    veil_link::forward!(self, self.inner, bind expect land wait abort under_way close meters);
}

/// A sink behind the shadow.
pub(super) struct Compares {
    pub(super) inner: Arc<dyn Sink>,
    pub(super) shadow: Arc<Shadow>,
}

impl Sink for Compares {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        self.shadow.opened(port, slice, values)?;
        self.inner.put(port, slice, values)
    }

    fn finish(&self) -> Result<(), DataError> {
        // Wrong values are not published.
        if let Err(divergence) = self.shadow.verdict() {
            return Err(DataError::Io {
                doing: "publish",
                file: PathBuf::from("the result"),
                source: std::io::Error::other(divergence.to_string()),
            });
        }
        self.inner.finish()
    }
}
