//! One participant's TLS connections of one lane, as a link.

use super::Connected;
use super::wire::TlsWire;
use crate::line::{Line, Lines};
use crate::{Bounds, Link, frame};

/// One participant's end of its TLS connections of one lane. No threads: bytes move in `poll` and `wait`, and a long message
/// also in `post`.
#[derive(Debug)]
pub struct TlsLink(Lines<TlsWire>);

impl TlsLink {
    /// A link over `connections`, all of the same lane.
    pub fn new(connections: Vec<Connected>, bounds: Bounds) -> Self {
        let line = |connected: Connected| {
            let tag = frame::tag(&connected.plan.0);
            let wire = TlsWire::new(connected.line);
            Line::new(wire, connected.peer, tag, bounds)
        };
        let lines = connections.into_iter().map(line).collect();
        TlsLink(Lines::new(lines, bounds))
    }
}

impl Link for TlsLink {
    crate::forward!(self, self.0, bind post expect land poll wait abort under_way close meters);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::frame::tests::at;
    use crate::frame::{Body, Header, tag};
    use crate::tls::handshake::Handshake;
    use crate::tls::pair::{PLAN, met, parties};
    use crate::{LinkError, LinkFault, LinkKind, Woken};

    const BOUNDS: Bounds = Bounds {
        longest: 1000,
        early: 10_000,
        credit: 10_000,
        places: 10,
        chunks: 1,
    };

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    /// A link of the first party, and the bare connection of the second.
    fn ends() -> (TlsLink, Connected) {
        let [heard, bare] = met(LinkKind::Tls);
        (TlsLink::new(vec![heard], BOUNDS), bare)
    }

    /// What the link says to `bytes` inside TLS, after which the peer stays silent.
    fn answer(bytes: &[u8]) -> LinkError {
        let (mut link, mut bare) = ends();
        let Handshake { socket, tls, .. } = &mut bare.line;
        tls.writer().write_all(bytes).unwrap();
        while tls.wants_write() {
            tls.write_tls(socket).unwrap();
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
        bare.line
            .socket
            .write_all(&[0x17, 3, 3, 0, 32, 1, 2, 3, 4, 5])
            .unwrap();
        bare.line.socket.write_all(&[9; 27]).unwrap();
        let error = loop {
            if let Err(error) = link.wait(soon()) {
                break error;
            }
        };
        assert!(matches!(error.fault, LinkFault::Cipher(_)), "{error}");
    }

    #[test]
    fn a_clean_end_of_tls_without_goodbye_is_no_clean_end() {
        let (mut link, mut bare) = ends();
        let Handshake { socket, tls, .. } = &mut bare.line;
        tls.send_close_notify();
        tls.write_tls(socket).unwrap();
        drop(bare);
        let error = loop {
            if let Err(error) = link.wait(soon()) {
                break error;
            }
        };
        assert!(matches!(error.fault, LinkFault::Closed(_)), "{error}");
    }
}
