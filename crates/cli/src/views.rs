//! Links that look: at what their owner receives, and at the signal to stop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use veil_link::{Link, LinkError};
use veil_session::{Channel, Peer};

/// Bytes of a sample: a line of a terminal.
const SAMPLE: usize = 16;

/// What a participant received on the values of the job: the handshake is left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// Messages.
    pub(crate) messages: u64,
    /// Bytes.
    pub(crate) bytes: u64,
    /// Bits that are 1, of all.
    pub(crate) ones: u64,
    /// The first bytes of the longest message of a party: with products in the job, one of them.
    pub(crate) sample: Vec<u8>,
    /// How long that message was.
    longest: usize,
}

impl View {
    fn add(&mut self, from: Peer, message: &[u8]) {
        self.messages += 1;
        self.bytes += message.len() as u64;
        self.ones += message
            .iter()
            .map(|byte| u64::from(byte.count_ones()))
            .sum::<u64>();
        // Both parties that hold a component get the same from its owner, which would look strange side by side.
        if from.party().is_some() && message.len() > self.longest {
            self.longest = message.len();
            self.sample = message[..message.len().min(SAMPLE)].to_vec();
        }
    }
}

/// Views by participant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views(Arc<Mutex<BTreeMap<Peer, View>>>);

impl Views {
    /// What `peer` saw.
    pub(crate) fn of(&self, peer: Peer) -> View {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&peer)
            .cloned()
            .unwrap_or_default()
    }

    fn add(&self, peer: Peer, from: Peer, message: &[u8]) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(peer)
            .or_default()
            .add(from, message);
    }
}

/// A link whose owner can be watched.
pub(crate) struct Watched {
    pub(crate) inner: Box<dyn Link>,
    pub(crate) me: Peer,
    pub(crate) views: Option<Views>,
}

impl Link for Watched {
    fn land(&mut self, from: Peer, at: Channel, into: &mut [u8]) -> Result<bool, LinkError> {
        let landed = self.inner.land(from, at, into)?;
        // Chunk 0 is the set-up: keys and seeds, which no view shows.
        if let (true, Some(views), 1..) = (landed, &self.views, at.frame.chunk) {
            views.add(self.me, from, into);
        }
        Ok(landed)
    }

    veil_link::forward!(self, self.inner, bind post expect poll wait abort under_way close meters);
}
