//! The receiving direction: records into plaintext, and everything that a record may be instead.

use std::ops::Range;

use rustls::{AlertDescription, ContentType, Error, InvalidMessage, PeerMisbehaved};

use super::keys::Keys;
use super::post::Post;
use super::{FULL, HEAD, LONGEST, Refusal, TAG, kind};

/// Bytes taken from the socket per call: sixteen records; more would leave the second-level cache.
pub(super) const RECEIVE: usize = 256 * 1024;

/// Records one after the other that may bring no data: empty ones, key updates, tickets.
pub(super) const FRUITLESS: u32 = 32;

/// What a record was for the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// Data, or nothing to do.
    Nothing,
    /// The peer has other keys from here on, and may want the same of this side.
    Updated { answer: bool },
}

pub(super) struct Opener {
    keys: Keys,
    /// Bytes from the socket; those from `start` on are not opened.
    received: Vec<u8>,
    start: usize,
    /// Plaintext in `received` that was not taken, before `start`.
    plain: Range<usize>,
    post: Post,
    fruitless: u32,
    /// The peer sends nothing more: what comes is ignored (RFC 8446, section 6.1).
    over: bool,
}

/// A record that is here as a whole: its header, and where its sealed part is.
type Whole = ([u8; HEAD], Range<usize>);

impl Opener {
    pub(super) const fn new(keys: Keys, client: bool, came: Vec<u8>) -> Self {
        Opener {
            keys,
            received: came,
            start: 0,
            plain: 0..0,
            post: Post::new(client),
            fruitless: 0,
            over: false,
        }
    }

    /// Its capacity stays: the kernel writes into it, and no code clears it first.
    pub(super) fn space(&mut self) -> &mut Vec<u8> {
        let keep = if self.plain.is_empty() {
            self.start
        } else {
            self.plain.start
        };
        if self.over || keep == self.received.len() {
            self.received.clear();
            (self.start, self.plain) = (0, 0..0);
        } else if self.received.len() > RECEIVE / 2 {
            // The beginning of a record, or a few that are not taken yet.
            self.received.copy_within(keep.., 0);
            self.received.truncate(self.received.len() - keep);
            self.start -= keep;
            self.plain = self.plain.start.saturating_sub(keep)..self.plain.end.saturating_sub(keep);
        }
        let more = (RECEIVE + LONGEST).saturating_sub(self.received.len());
        self.received.reserve_exact(more);
        &mut self.received
    }

    pub(super) fn plain(&self) -> &[u8] {
        &self.received[self.plain.clone()]
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.plain.start += bytes;
    }

    pub(super) fn forget(&mut self) {
        self.received = Vec::new();
        (self.start, self.plain) = (0, 0..0);
    }

    /// What comes is ignored from here on.
    pub(super) const fn end(&mut self) {
        self.over = true;
    }

    /// Whether the next record is here, or something that is none.
    pub(super) fn whole(&self) -> bool {
        !self.over && !matches!(self.next(), Ok(None))
    }

    /// Other keys from here on.
    pub(super) fn renew(&mut self) {
        self.keys.renew();
    }

    /// The next record. A header that makes no sense is refused before the bytes behind it come.
    fn next(&self) -> Result<Option<Whole>, Refusal> {
        let rest = &self.received[self.start..];
        let Some((head, behind)) = rest.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if head[0] == kind::CHANGE_CIPHER_SPEC {
            return Err(Refusal::new(
                AlertDescription::UnexpectedMessage,
                PeerMisbehaved::IllegalMiddleboxChangeCipherSpec,
            ));
        }
        if head[0] != kind::DATA {
            return Err(unexpected(head[0]));
        }
        if head[1..3] != [3, 3] {
            return Err(Refusal::new(
                AlertDescription::DecodeError,
                InvalidMessage::UnknownProtocolVersion,
            ));
        }
        if length > LONGEST {
            return Err(too_long());
        }
        if length < TAG {
            return Err(Refusal::new(
                AlertDescription::BadRecordMac,
                Error::DecryptError,
            ));
        }
        let from = self.start + HEAD;
        Ok((behind.len() >= length).then(|| (*head, from..from + length)))
    }

    /// Opens the next record where it is. None: it is not here as a whole.
    pub(super) fn open(&mut self) -> Result<Option<Event>, Refusal> {
        if self.over {
            self.start = self.received.len();
            return Ok(None);
        }
        let Some((head, body)) = self.next()? else {
            return Ok(None);
        };
        let record = &mut self.received[body.clone()];
        if !self.keys.open_here(head, record) {
            return Err(Refusal::new(
                AlertDescription::BadRecordMac,
                Error::DecryptError,
            ));
        }
        self.start = body.end;
        let inner = &self.received[body.start..body.end - TAG];
        let (kind, length) = inside(inner)?;
        let content = body.start..body.start + length;
        if kind == kind::DATA {
            self.data(length)?;
            self.plain = content;
            return Ok(Some(Event::Nothing));
        }
        let event = self.post.record(kind, &self.received[content]);
        self.other(event?).map(Some)
    }

    /// Opens the next record to the front of `into`: how many bytes of it are data. None: it is not here as a whole, or may be longer than
    /// `into`.
    pub(super) fn open_into(&mut self, into: &mut [u8]) -> Result<Option<(usize, Event)>, Refusal> {
        if self.over {
            return Ok(None);
        }
        let Some((head, body)) = self.next()? else {
            return Ok(None);
        };
        let Some(into) = into.get_mut(..body.len() - TAG) else {
            return Ok(None);
        };
        if !self.keys.open(head, &self.received[body.clone()], into) {
            return Err(Refusal::new(
                AlertDescription::BadRecordMac,
                Error::DecryptError,
            ));
        }
        self.start = body.end;
        let (kind, length) = inside(into)?;
        if kind == kind::DATA {
            self.data(length)?;
            return Ok(Some((length, Event::Nothing)));
        }
        let event = self.post.record(kind, &into[..length])?;
        Ok(Some((0, self.other(event)?)))
    }

    /// Data came, of so many bytes.
    fn data(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.post.whole()?;
        if bytes == 0 {
            return self.fruitless(PeerMisbehaved::TooManyEmptyFragments);
        }
        self.fruitless = 0;
        Ok(())
    }

    /// Something else came.
    fn other(&mut self, event: super::post::Said) -> Result<Event, Refusal> {
        use super::post::Said;

        match event {
            Said::Nothing => {
                self.fruitless(PeerMisbehaved::TooManyWarningAlertsReceived)?;
                Ok(Event::Nothing)
            }
            Said::Closed => {
                self.over = true;
                Ok(Event::Nothing)
            }
            Said::Update { answer } => {
                self.fruitless(PeerMisbehaved::TooManyKeyUpdateRequests)?;
                Ok(Event::Updated { answer })
            }
        }
    }

    fn fruitless(&mut self, what: PeerMisbehaved) -> Result<(), Refusal> {
        self.fruitless += 1;
        if self.fruitless > FRUITLESS {
            return Err(Refusal::new(AlertDescription::UnexpectedMessage, what));
        }
        Ok(())
    }

    /// As if so many records had come.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, count: u64) {
        self.keys.skip_to(count);
    }
}

/// The type of an inner plaintext and the length of its content: the type is the last byte that is not zero (RFC 8446, section 5.4).
fn inside(inner: &[u8]) -> Result<(u8, usize), Refusal> {
    if inner.len() > FULL + 1 {
        return Err(too_long());
    }
    let Some(length) = inner.iter().rposition(|byte| *byte != 0) else {
        return Err(Refusal::new(
            AlertDescription::UnexpectedMessage,
            PeerMisbehaved::IllegalTlsInnerPlaintext,
        ));
    };
    Ok((inner[length], length))
}

fn too_long() -> Refusal {
    Refusal::new(
        AlertDescription::RecordOverflow,
        Error::PeerSentOversizedRecord,
    )
}

/// A record of a type that has no place here.
pub(super) fn unexpected(kind: u8) -> Refusal {
    let error = Error::InappropriateMessage {
        expect_types: vec![ContentType::ApplicationData, ContentType::Handshake],
        got_type: ContentType::from(kind),
    };
    Refusal::new(AlertDescription::UnexpectedMessage, error)
}
