//! The sending direction: plaintext into records, in one buffer for the socket.

use std::io::IoSlice;
use std::ops::Range;

use rustls::{AlertDescription, Error};

use super::keys::{Keys, LIMIT};
use super::{FULL, HEAD, OVERHEAD, TAG, head, kind};

/// Full records that wait for the socket at most, beside some short ones: enough for one long write, within the second-level cache.
const WAITING: usize = 16;

/// Room that data leaves free: a key update and an alert always fit.
const RESERVE: usize = 64;

/// Slices of at least so many bytes are sealed from where they are. Shorter ones share records: two copies, at both ends, cost less than a
/// record more.
const DIRECT: usize = 4096;

/// A key update that asks for none (RFC 8446, section 4.6.3), with its header.
const UPDATE: [u8; 5] = [24, 0, 0, 1, 0];

pub(super) struct Sealer {
    keys: Keys,
    /// Records for one key.
    limit: u64,
    /// `out[ready]` is sealed; behind the header of the next record lie `fill` bytes that are not. Made when the first bytes come.
    out: Vec<u8>,
    ready: Range<usize>,
    fill: usize,
    /// The peer asked for a key update, which goes ahead of the next data.
    pub(super) owes: bool,
    /// An alert was the last thing to send.
    over: bool,
}

impl Sealer {
    pub(super) const fn new(keys: Keys) -> Self {
        Sealer {
            keys,
            limit: LIMIT,
            out: Vec::new(),
            ready: 0..0,
            fill: 0,
            owes: false,
            over: false,
        }
    }

    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, Error> {
        if self.over {
            // The peer was told that nothing more comes, and ignores it (RFC 8446, section 6.1): what a link still has to say when a run ends,
            // such as why, does not become a fault of this peer.
            return Ok(slices.iter().map(|slice| slice.len()).sum());
        }
        self.make();
        let mut taken = 0;
        for slice in slices {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                if self.fill > 0 && (self.fill == FULL || rest.len() >= DIRECT) {
                    self.seal()?;
                }
                let some = rest.len().min(FULL - self.fill);
                // All of it or nothing: a buffer that is nearly full makes no short records.
                if self.ready.end + self.fill + some + OVERHEAD + RESERVE > self.out.len() {
                    return Ok(taken);
                }
                if self.fill == 0 {
                    self.renew()?;
                }
                let (now, later) = rest.split_at(some);
                if now.len() >= DIRECT {
                    self.record(kind::DATA, now)?;
                } else {
                    let from = self.ready.end + HEAD + self.fill;
                    self.out[from..from + some].copy_from_slice(now);
                    self.fill += some;
                }
                taken += some;
                rest = later;
            }
        }
        Ok(taken)
    }

    pub(super) fn wants_write(&self) -> bool {
        self.fill > 0 || !self.ready.is_empty()
    }

    pub(super) fn waiting(&mut self) -> Result<&[u8], Error> {
        self.seal()?;
        Ok(&self.out[self.ready.clone()])
    }

    pub(super) fn left(&mut self, bytes: usize) {
        self.ready.start += bytes;
        if self.ready.is_empty() && self.fill == 0 {
            self.ready = 0..0;
        }
    }

    /// Sends an alert as the last record, once: to close, or of a failure.
    pub(super) fn alert(&mut self, alert: AlertDescription) -> Result<(), Error> {
        if self.over {
            return Ok(());
        }
        self.make();
        self.seal()?;
        // Levels: 1 is a warning, 2 is fatal (RFC 8446, section 6).
        let level = 1 + u8::from(alert != AlertDescription::CloseNotify);
        self.record(kind::ALERT, &[level, alert.into()])?;
        self.over = true;
        Ok(())
    }

    fn make(&mut self) {
        if self.out.is_empty() {
            self.out = vec![0; WAITING * (FULL + OVERHEAD) + DIRECT + RESERVE];
        }
    }

    /// Takes the next keys if these have sealed their share, or if the peer asked for it.
    fn renew(&mut self) -> Result<(), Error> {
        if self.owes || self.keys.count() >= self.limit {
            self.record(kind::HANDSHAKE, &UPDATE)?;
            self.keys.renew();
            self.owes = false;
        }
        Ok(())
    }

    /// Seals `plain` as a record of its own.
    fn record(&mut self, kind: u8, plain: &[u8]) -> Result<(), Error> {
        let body = self.begin(plain.len());
        let head = head(body.len());
        self.keys
            .seal(kind, plain, head, &mut self.out[body.clone()])?;
        self.ready.end = body.end;
        Ok(())
    }

    /// Seals what was gathered.
    fn seal(&mut self) -> Result<(), Error> {
        if self.fill > 0 {
            let body = self.begin(self.fill);
            let head = head(body.len());
            self.keys
                .seal_here(kind::DATA, head, &mut self.out[body.clone()])?;
            self.ready.end = body.end;
            self.fill = 0;
        }
        Ok(())
    }

    /// Writes the header of a record of so many bytes: where its sealed part goes.
    fn begin(&mut self, plain: usize) -> Range<usize> {
        let from = self.ready.end + HEAD;
        let body = from..from + plain + 1 + TAG;
        self.out[from - HEAD..from].copy_from_slice(&head(body.len()));
        body
    }

    /// As if only so many records were for one key.
    #[cfg(test)]
    pub(super) fn limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// As if so many records had left.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, count: u64) {
        self.keys.skip_to(count);
    }
}
