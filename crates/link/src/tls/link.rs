//! All of one participant's connections of one lane, as a link.

use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use veil_session::{Channel, Peer, SessionId};

use super::Connected;
use super::dial::timespec;
use super::line::Line;
use crate::frame::tag;
use crate::{Bounds, Link, LinkError, LinkFault, Meters, Woken, check_post};

/// One participant's end of its TLS connections of one lane. No threads: bytes move in `poll` and `wait`, and a long message
/// also in `post`.
#[derive(Debug)]
pub struct TlsLink {
    lines: Vec<Line>,
    bounds: Bounds,
    meters: Meters,
    over: bool,
}

impl TlsLink {
    /// A link over `connections`, all of the same lane.
    pub fn new(connections: Vec<Connected>, bounds: Bounds) -> Self {
        TlsLink {
            lines: connections
                .into_iter()
                .map(|c| Line::new(c, bounds))
                .collect(),
            bounds,
            meters: Meters::default(),
            over: false,
        }
    }

    fn line(&mut self, peer: Peer, at: Channel) -> Result<&mut Line, LinkError> {
        let found = self.lines.iter_mut().find(|line| line.peer == peer);
        found.ok_or(LinkError {
            peer,
            at: Some(at),
            fault: LinkFault::NoSuchPeer,
        })
    }

    fn check(&self) -> Result<(), LinkError> {
        match LinkError::foremost(self.lines.iter().filter_map(|line| line.inbox.fault())) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Has anything happened that the owner was not told of?
    fn news(&mut self) -> bool {
        self.lines
            .iter_mut()
            .fold(false, |news, line| std::mem::take(&mut line.news) | news)
    }

    /// Sleeps until some connection can move, and moves it. `None` if `until` came first.
    fn turn(&mut self, until: Instant) -> Result<Option<bool>, LinkError> {
        let mut which = Vec::with_capacity(self.lines.len());
        let mut fds = Vec::with_capacity(self.lines.len());
        for (i, line) in self.lines.iter().enumerate() {
            let (read, write) = line.interest();
            if read || write {
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, read);
                flags.set(PollFlags::OUT, write);
                fds.push(PollFd::new(&line.socket, flags));
                which.push((i, PollFlags::empty()));
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut fds, Some(&timespec(left))) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Some(false)),
            Err(error) => {
                let peer = self.lines.first().map_or(Peer::Owner(0), |line| line.peer);
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
            let line = &mut self.lines[i];
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

impl Link for TlsLink {
    fn bind(&mut self, session: SessionId) {
        for line in &mut self.lines {
            line.inbox.bind(tag(&session.0));
            line.news = true;
        }
    }

    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        let checked = check_post(self.over, bytes.len(), self.bounds.longest);
        checked.map_err(|fault| LinkError {
            peer: to,
            at: Some(at),
            fault,
        })?;
        let posted = self.line(to, at)?.post(at, bytes)?;
        if posted {
            self.meters.sent(bytes.len());
        }
        Ok(posted)
    }

    fn expect(&mut self, from: Peer, at: Channel, bytes: u64) -> Result<(), LinkError> {
        self.line(from, at)?.inbox.expect(at, bytes)
    }

    fn land(&mut self, from: Peer, at: Channel, into: &mut [u8]) -> Result<bool, LinkError> {
        let line = self.line(from, at)?;
        let here = line.inbox.land(at, into)?;
        if here {
            self.meters.received(into.len());
        } else if let Some(error) = line.gone(at) {
            return Err(error);
        }
        Ok(here)
    }

    fn poll(&mut self) -> Result<bool, LinkError> {
        let mut moved = false;
        for line in &mut self.lines {
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
            for line in &mut self.lines {
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
        for line in &mut self.lines {
            line.abort();
            line.send();
        }
    }

    /// Also waits until each peer has said goodbye or is gone, as far as `until` allows: a socket that is dropped while bytes are
    /// under way may lose them. After an abort it only gives the abort time to leave.
    fn close(&mut self, until: Instant) -> Result<(), LinkError> {
        let aborted = self.lines.iter().any(Line::aborted);
        self.over = true;
        for line in &mut self.lines {
            line.goodbye();
        }
        loop {
            for line in &mut self.lines {
                line.receive();
                line.send();
            }
            if self.lines.iter().all(Line::finished) || self.turn(until)?.is_none() {
                break;
            }
        }
        if aborted {
            return Ok(());
        }
        self.check()?;
        for line in &self.lines {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Duration;

    use veil_session::{PartyId, PlanHash};

    use super::*;
    use crate::frame::tests::at;
    use crate::frame::{Body, Header};
    use crate::tls::{Identity, Meeting, Port, Reception, Terms, meet};

    const BOUNDS: Bounds = Bounds {
        longest: 1000,
        early: 10_000,
        credit: 10_000,
        places: 10,
        chunks: 1,
    };
    const PLAN: PlanHash = PlanHash([6; 32]);

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    fn parties() -> [Peer; 2] {
        [0, 1].map(|i| Peer::Party(PartyId::new(i).unwrap()))
    }

    /// A link of the first party, and the bare connection of the second.
    fn ends() -> (TlsLink, Connected) {
        let [a, b] = parties();
        let [first, second] = [(); 2].map(|()| Identity::generate().unwrap());
        let pins = BTreeMap::from([(a, first.fingerprint()), (b, second.fingerprint())]);
        let terms = |me| Terms {
            me,
            plan: PLAN,
            pins: pins.clone(),
            others: Vec::new(),
        };
        let reception = Reception::sole([second.fingerprint()]);
        let port = Port::bind(&first, "127.0.0.1:0", reception).unwrap();
        let dial = [(a, port.address().to_string())];
        let go = AtomicBool::new(false);
        let dialling = Meeting {
            dial: &dial,
            from: &[],
            lanes: 1,
            until: soon(),
        };
        let listening = Meeting {
            dial: &[],
            from: &[b],
            ..dialling
        };
        thread::scope(|scope| {
            let dialler = scope.spawn(|| meet(&second, &terms(b), None, &dialling, &go).unwrap());
            let mut heard = meet(&first, &terms(a), Some(&port), &listening, &go).unwrap();
            let bare = dialler.join().unwrap().remove(0).remove(0);
            (TlsLink::new(heard.remove(0), BOUNDS), bare)
        })
    }

    /// What the link says to `bytes` inside TLS, after which the peer stays silent.
    fn answer(bytes: &[u8]) -> LinkError {
        let (mut link, mut bare) = ends();
        bare.tls.writer().write_all(bytes).unwrap();
        while bare.tls.wants_write() {
            bare.tls.write_tls(&mut bare.socket).unwrap();
        }
        loop {
            match link.wait(soon()) {
                Ok(woken) => assert_eq!(woken, Woken::Ready, "no error came"),
                Err(error) => return error,
            }
        }
    }

    fn header(tag: u64, length: u32) -> Vec<u8> {
        Header {
            tag,
            body: Body::Message { at: at(3), length },
        }
        .encode()
        .to_vec()
    }

    #[test]
    fn garbage_inside_tls_is_a_fault_of_the_peer() {
        let error = answer(&[0xff; 500]);
        assert_eq!(error.peer, parties()[1]);
        assert_eq!(
            error.fault,
            LinkFault::Version {
                ours: 1,
                theirs: 0xff
            }
        );
        assert!(matches!(answer(&[1; 500]).fault, LinkFault::Malformed(_)));
    }

    #[test]
    fn a_length_beyond_the_bounds_is_refused_at_the_header() {
        let tag = tag(&PLAN.0);
        for length in [1001, u32::MAX] {
            let error = answer(&header(tag, length));
            assert_eq!(error.at, Some(at(3)));
            assert_eq!(
                error.fault,
                LinkFault::Length {
                    got: length.into(),
                    want: 1000
                }
            );
        }
    }

    #[test]
    fn garbage_under_tls_is_a_fault_of_tls() {
        let (mut link, mut bare) = ends();
        bare.socket
            .write_all(&[0x17, 3, 3, 0, 32, 1, 2, 3, 4, 5])
            .unwrap();
        bare.socket.write_all(&[9; 27]).unwrap();
        let error = loop {
            if let Err(error) = link.wait(soon()) {
                break error;
            }
        };
        assert!(matches!(error.fault, LinkFault::Tls(_)), "{error}");
    }

    #[test]
    fn a_clean_end_of_tls_without_goodbye_is_no_clean_end() {
        let (mut link, mut bare) = ends();
        bare.tls.send_close_notify();
        bare.tls.write_tls(&mut bare.socket).unwrap();
        drop(bare);
        let error = loop {
            if let Err(error) = link.wait(soon()) {
                break error;
            }
        };
        assert!(matches!(error.fault, LinkFault::Closed(_)), "{error}");
    }
}
