//! Records after the handshake that are no data: alerts, key updates, tickets.

use rustls::{AlertDescription, Error, HandshakeType, InvalidMessage, PeerMisbehaved};

use super::open::unexpected;
use super::{Refusal, kind};

/// Types of handshake messages (RFC 8446, section 4).
const TICKET: u8 = 4;
const UPDATE: u8 = 24;

/// The longest ticket message: as rustls has it.
const LONGEST: usize = 0xffff;

/// What such a record said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// Nothing that matters here.
    Nothing,
    /// The peer sends nothing more.
    Closed,
    /// The peer has other keys from here on. `answer`: it wants the same of this side.
    Update { answer: bool },
}

/// Handshake messages on their way in; no more of them is kept than their header.
pub(super) struct Post {
    client: bool,
    head: [u8; 4],
    have: usize,
    /// Bytes of a ticket that are still to come.
    left: usize,
}

impl Post {
    /// At the side that dialled if `client`: no other gets tickets.
    pub(super) const fn new(client: bool) -> Self {
        Post {
            client,
            head: [0; 4],
            have: 0,
            left: 0,
        }
    }

    /// An error in the middle of a handshake message: its records follow each other (RFC 8446, section 5.1).
    pub(super) fn whole(&self) -> Result<(), Refusal> {
        if self.have > 0 || self.left > 0 {
            return Err(Refusal::new(
                AlertDescription::UnexpectedMessage,
                PeerMisbehaved::MessageInterleavedWithHandshakeMessage,
            ));
        }
        Ok(())
    }

    /// Takes a record that is no data.
    pub(super) fn record(&mut self, kind: u8, content: &[u8]) -> Result<Said, Refusal> {
        match kind {
            kind::HANDSHAKE => self.handshake(content),
            kind::ALERT => {
                self.whole()?;
                alert(content)
            }
            kind::CHANGE_CIPHER_SPEC => Err(Refusal::new(
                AlertDescription::UnexpectedMessage,
                PeerMisbehaved::IllegalMiddleboxChangeCipherSpec,
            )),
            other => Err(unexpected(other)),
        }
    }

    fn handshake(&mut self, mut content: &[u8]) -> Result<Said, Refusal> {
        if content.is_empty() {
            return Err(Refusal::new(
                AlertDescription::UnexpectedMessage,
                InvalidMessage::InvalidEmptyPayload,
            ));
        }
        while let Some((byte, rest)) = content.split_first() {
            if self.left > 0 {
                let skipped = self.left.min(content.len());
                self.left -= skipped;
                content = &content[skipped..];
                continue;
            }
            if self.have < self.head.len() {
                self.head[self.have] = *byte;
                self.have += 1;
                content = rest;
                if self.have == self.head.len() {
                    self.begin()?;
                }
                continue;
            }
            // The one byte of a key update. What follows it would have come under both keys.
            self.have = 0;
            if !rest.is_empty() {
                return Err(Refusal::new(
                    AlertDescription::UnexpectedMessage,
                    PeerMisbehaved::KeyEpochWithPendingFragment,
                ));
            }
            return match byte {
                0 | 1 => Ok(Said::Update { answer: *byte == 1 }),
                _ => Err(Refusal::new(
                    AlertDescription::IllegalParameter,
                    InvalidMessage::InvalidKeyUpdate,
                )),
            };
        }
        Ok(Said::Nothing)
    }

    /// The header of a message is here.
    fn begin(&mut self) -> Result<(), Refusal> {
        let [kind, high, middle, low] = self.head;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        match kind {
            TICKET if self.client && length <= LONGEST => {
                (self.have, self.left) = (0, length);
                Ok(())
            }
            TICKET if self.client => Err(Refusal::new(
                AlertDescription::DecodeError,
                InvalidMessage::HandshakePayloadTooLarge,
            )),
            UPDATE if length == 1 => Ok(()),
            UPDATE => Err(Refusal::new(
                AlertDescription::DecodeError,
                InvalidMessage::InvalidKeyUpdate,
            )),
            other => {
                let mut expect_types = vec![HandshakeType::KeyUpdate];
                if self.client {
                    expect_types.push(HandshakeType::NewSessionTicket);
                }
                let error = Error::InappropriateHandshakeMessage {
                    expect_types,
                    got_type: HandshakeType::from(other),
                };
                Err(Refusal::new(AlertDescription::UnexpectedMessage, error))
            }
        }
    }
}

/// An alert is one record of two bytes, and fatal whatever level it states, but for these two (RFC 8446, section 6).
fn alert(content: &[u8]) -> Result<Said, Refusal> {
    let &[level, what] = content else {
        return Err(Refusal::new(
            AlertDescription::DecodeError,
            InvalidMessage::MissingData("alert"),
        ));
    };
    let what = AlertDescription::from(what);
    if !matches!(level, 1 | 2) {
        return Err(Refusal::new(
            AlertDescription::IllegalParameter,
            Error::AlertReceived(what),
        ));
    }
    match what {
        AlertDescription::CloseNotify => Ok(Said::Closed),
        AlertDescription::UserCanceled if level == 1 => Ok(Said::Nothing),
        _ => Err(Refusal {
            alert: None,
            error: Error::AlertReceived(what),
        }),
    }
}
