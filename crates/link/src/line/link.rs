//! All of one participant's connections of one lane, as a link.

use std::time::Instant;

use rustix::event::{PollFlags, poll};
use veil_session::{Channel, Peer, SessionId, Wiped};

use super::{Line, Wire};
use crate::copy::copy;
use crate::frame::tag;
use crate::tls::timespec;
use crate::{Bounds, Link, LinkError, LinkFault, Meters, Woken, check_post};

/// One participant's end of its connections of one lane. No threads: bytes move in `poll` and `wait`, and a long message
/// also in `post`.
#[derive(Debug)]
pub(crate) struct Lines<W> {
    all: Vec<Line<W>>,
    bounds: Bounds,
    meters: Meters,
    over: bool,
}

impl<W: Wire> Lines<W> {
    /// A link over these.
    pub(crate) fn new(lines: Vec<Line<W>>, bounds: Bounds) -> Self {
        Lines {
            all: lines,
            bounds,
            meters: Meters::default(),
            over: false,
        }
    }

    fn line(&mut self, peer: Peer, at: Channel) -> Result<&mut Line<W>, LinkError> {
        let found = self.all.iter_mut().find(|line| line.peer == peer);
        found.ok_or(LinkError {
            peer,
            at: Some(at),
            fault: LinkFault::NoSuchPeer,
        })
    }

    fn check(&self) -> Result<(), LinkError> {
        match LinkError::foremost(self.all.iter().filter_map(|line| line.inbox.fault())) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Has anything happened that the owner was not told of?
    fn news(&mut self) -> bool {
        self.all
            .iter_mut()
            .fold(false, |news, line| std::mem::take(&mut line.news) | news)
    }

    /// Sleeps until some connection can move, and moves it. `None` if `until` came first.
    fn turn(&mut self, until: Instant) -> Result<Option<bool>, LinkError> {
        let left = until.saturating_duration_since(Instant::now());
        let mut rest = left;
        for line in &mut self.all {
            if line.interest() != (false, false) {
                rest = rest.min(line.wire.rest());
            }
        }
        if rest.is_zero() && !left.is_zero() {
            return Ok(Some(false));
        }
        let mut which = Vec::with_capacity(self.all.len());
        let mut fds = Vec::with_capacity(self.all.len());
        for (i, line) in self.all.iter().enumerate() {
            let (read, write) = line.interest();
            if read || write {
                line.wire.watch(read, write, &mut fds);
                which.resize(fds.len(), (i, PollFlags::empty()));
            }
        }
        match poll(&mut fds, Some(&timespec(rest))) {
            Ok(0) => return Ok((rest < left).then_some(false)),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Some(false)),
            Err(error) => {
                let peer = self.all.first().map_or(Peer::Owner(0), |line| line.peer);
                let fault = LinkFault::Closed(format!("poll failed on this machine: {error}"));
                return Err(LinkError {
                    peer,
                    at: None,
                    fault,
                });
            }
        }
        for (fd, (_, events)) in fds.iter().zip(&mut which) {
            *events = fd.revents();
        }
        let mut moved = false;
        for (i, events) in which {
            let line = &mut self.all[i];
            if events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                moved |= line.receive();
            }
            if events.contains(PollFlags::OUT) {
                moved |= line.send();
            }
        }
        Ok(Some(moved))
    }
}

impl<W: Wire> Link for Lines<W> {
    fn bind(&mut self, session: SessionId) {
        for line in &mut self.all {
            line.inbox.bind(tag(&session.0));
            line.news = true;
        }
    }

    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        self.post_pieces(to, at, &[bytes])
    }

    fn post_pieces(&mut self, to: Peer, at: Channel, pieces: &[&[u8]]) -> Result<bool, LinkError> {
        let bytes = pieces.iter().map(|piece| piece.len()).sum();
        let checked = check_post(self.over, bytes, self.bounds.longest);
        checked.map_err(|fault| LinkError {
            peer: to,
            at: Some(at),
            fault,
        })?;
        let posted = self.line(to, at)?.post(at, pieces, bytes)?;
        if posted {
            self.meters.sent(bytes);
        }
        Ok(posted)
    }

    fn expect(&mut self, from: Peer, at: Channel, bytes: u64) -> Result<(), LinkError> {
        self.line(from, at)?.inbox.expect(at, bytes)
    }

    fn land(&mut self, from: Peer, at: Channel, into: &mut [u8]) -> Result<bool, LinkError> {
        let bytes = into.len();
        self.land_pieces(from, at, bytes, &mut |body| copy(into, body))
    }

    fn land_pieces(
        &mut self,
        from: Peer,
        at: Channel,
        bytes: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, LinkError> {
        let line = self.line(from, at)?;
        let here = line.inbox.land_pieces(at, bytes, put)?;
        if here {
            self.meters.received(bytes);
        } else if let Some(error) = line.gone(at) {
            return Err(error);
        }
        Ok(here)
    }

    fn land_whole(
        &mut self,
        from: Peer,
        at: Channel,
        into: &mut Wiped<u8>,
    ) -> Result<bool, LinkError> {
        let bytes = into.len();
        let line = self.line(from, at)?;
        let here = line.inbox.land_whole(at, into)?;
        if here {
            self.meters.received(bytes);
        } else if let Some(error) = line.gone(at) {
            return Err(error);
        }
        Ok(here)
    }

    fn poll(&mut self) -> Result<bool, LinkError> {
        let mut moved = false;
        for line in &mut self.all {
            moved |= line.receive();
            moved |= line.send();
        }
        self.check()?;
        Ok(moved | self.news())
    }

    /// Returns as soon as a message is complete or a refused post has room. At `until`, a link whose bytes still moved meanwhile
    /// is `Ready`, not `TimedOut`: a long message on a slow line is no stall.
    fn wait(&mut self, until: Instant) -> Result<Woken, LinkError> {
        let mut moved = false;
        loop {
            for line in &mut self.all {
                if line.backlog() {
                    moved |= line.receive();
                }
                moved |= line.send();
            }
            self.check()?;
            if self.news() {
                return Ok(Woken::Ready);
            }
            match self.turn(until)? {
                Some(more) => moved |= more,
                None => return Ok(if moved { Woken::Ready } else { Woken::TimedOut }),
            }
        }
    }

    fn abort(&mut self) {
        self.over = true;
        for line in &mut self.all {
            line.abort();
            line.send();
        }
    }

    /// Also waits until each peer has said goodbye or is gone, as far as `until` allows: a socket that is dropped while bytes are
    /// under way may lose them. After an abort it only gives the abort time to leave.
    fn close(&mut self, until: Instant) -> Result<(), LinkError> {
        let aborted = self.all.iter().any(Line::aborted);
        self.over = true;
        for line in &mut self.all {
            line.goodbye();
        }
        loop {
            for line in &mut self.all {
                line.receive();
                line.send();
            }
            if self.all.iter().all(Line::finished) || self.turn(until)?.is_none() {
                break;
            }
        }
        if aborted {
            return Ok(());
        }
        self.check()?;
        for line in &self.all {
            if !line.flushed() {
                return Err(LinkError {
                    peer: line.peer,
                    at: None,
                    fault: LinkFault::Unsent(line.queued()),
                });
            }
            if let Some(at) = line.inbox.left_over() {
                return Err(LinkError {
                    peer: line.peer,
                    at: Some(at),
                    fault: LinkFault::Unexpected,
                });
            }
        }
        Ok(())
    }

    fn meters(&self) -> Meters {
        self.meters
    }
}
