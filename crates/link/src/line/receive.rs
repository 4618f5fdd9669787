//! The receiving half of a connection: frames out of what the wire brings.

use veil_session::Channel;

use super::{Ending, Incoming, Line, NEXT, Wire};
use crate::LinkFault;
use crate::frame::{Body, HEADER, Header};
use crate::inbox::Admit;

/// Bytes that one call may take from one peer before the others have their turn.
const TURN: usize = 4 << 20;

impl<W: Wire> Line<W> {
    /// Takes what came. `true` if anything moved.
    pub(super) fn receive(&mut self) -> bool {
        let mut moved = false;
        let mut turn = 0;
        while !self.deaf {
            if let Err((at, fault)) = self.read_frames(&mut moved) {
                self.inbox.fail(at, fault);
                self.stop_reading();
                break;
            }
            if self.deaf || matches!(self.incoming, Incoming::Stalled { .. }) {
                break;
            }
            match self.wire.open() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(fault) => {
                    self.inbox.fail(None, fault);
                    self.stop_reading();
                    break;
                }
            }
            if turn >= TURN {
                self.news = true;
                break;
            }
            match self.wire.refill() {
                Ok(0) => break,
                Ok(bytes) => turn += bytes,
                Err(fault) => {
                    self.ended(fault);
                    break;
                }
            }
        }
        moved
    }

    /// Nothing more comes, and this is why.
    fn ended(&mut self, fault: LinkFault) {
        match fault {
            LinkFault::Aborted => self.inbox.aborted(),
            // A peer that has said goodbye, or was told it, may go.
            LinkFault::Closed(_) if self.left || self.ending == Ending::Goodbye => {}
            LinkFault::Closed(why) => {
                let why = self.broken.take().unwrap_or(why);
                self.inbox.fail(None, LinkFault::Closed(why));
            }
            fault => self.inbox.fail(None, fault),
        }
        self.stop_reading();
    }

    pub(super) fn stop_reading(&mut self) {
        self.deaf = true;
        self.news = true;
        self.wire.forget();
    }

    /// Makes frames of the plaintext that is here, until there is no more or a frame must wait.
    fn read_frames(&mut self, moved: &mut bool) -> Result<(), (Option<Channel>, LinkFault)> {
        loop {
            // A frame without payload is complete before another byte is there.
            self.incoming = match std::mem::replace(&mut self.incoming, NEXT) {
                Incoming::Head { bytes, have } if have == HEADER => {
                    let header = Header::decode(&bytes).map_err(|fault| (None, fault))?;
                    match header.body {
                        Body::Message { at, length } => Incoming::Stalled {
                            tag: header.tag,
                            at,
                            length,
                        },
                        Body::Abort => {
                            self.inbox.aborted();
                            self.stop_reading();
                            return Ok(());
                        }
                        Body::Goodbye => {
                            self.left = true;
                            self.news = true;
                            // It needs nothing more of us, so neither side has a reason to stay.
                            self.drop_unstarted();
                            self.goodbye();
                            self.stop_reading();
                            return Ok(());
                        }
                    }
                }
                Incoming::Stalled { length, .. } if self.ending != Ending::Open => Incoming::Skip {
                    left: length as usize,
                },
                Incoming::Stalled { tag, at, length } => {
                    match self
                        .inbox
                        .admit(tag, at, u64::from(length))
                        .map_err(|fault| (Some(at), fault))?
                    {
                        Admit::Now => {
                            let left = length as usize;
                            Incoming::Payload {
                                tag,
                                at,
                                left,
                                body: self.inbox.pool().take_full(left),
                            }
                        }
                        Admit::Later => {
                            self.incoming = Incoming::Stalled { tag, at, length };
                            return Ok(());
                        }
                    }
                }
                Incoming::Payload {
                    tag,
                    at,
                    left: 0,
                    mut body,
                } => {
                    body.truncate(body.len() - 1);
                    self.inbox
                        .deliver(tag, at, body)
                        .map_err(|fault| (Some(at), fault))?;
                    self.news = true;
                    NEXT
                }
                Incoming::Skip { left: 0 } => NEXT,
                partial => {
                    self.incoming = partial;
                    if !self.read_bytes().map_err(|fault| (None, fault))? {
                        return Ok(());
                    }
                    *moved = true;
                    continue;
                }
            };
        }
    }

    /// Moves plaintext into the frame at hand. `false` if there is none.
    fn read_bytes(&mut self) -> Result<bool, LinkFault> {
        let incoming = &mut self.incoming;
        if let Incoming::Payload { left, body, .. } = incoming {
            let have = body.len() - 1 - *left;
            let taken = self.wire.fill(&mut body[have..])?;
            *left -= taken;
            return Ok(taken > 0);
        }
        let taken = self.wire.read(|plain| match incoming {
            Incoming::Head { bytes, have } => {
                let taken = plain.len().min(HEADER - *have);
                bytes[*have..*have + taken].copy_from_slice(&plain[..taken]);
                *have += taken;
                taken
            }
            Incoming::Skip { left } => {
                let taken = plain.len().min(*left);
                *left -= taken;
                taken
            }
            Incoming::Payload { .. } | Incoming::Stalled { .. } => 0,
        });
        Ok(taken > 0)
    }
}
